//! The faults that the program itself has put in force.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use verbs_api::lab::{FaultId, Lab, When};
use verbs_api::sync::Mutex;
use verbs_faults::Plan;
use verbs_sim::Annotation;

use super::of_engine;
use crate::base::per_process::PerProcess;
use crate::c::{Refusal, Result};
use crate::engine::sim;

static FAULTS: PerProcess<Mutex<Injected>> = PerProcess::new();

/// The faults, by the numbers that the program has for them.
#[derive(Default)]
struct Injected {
    in_force: BTreeMap<i64, Vec<Rule>>,
    /// How often those have fired that could fire no more and were taken out of force.
    spent: BTreeMap<i64, u64>,
}

struct Rule {
    id: FaultId,
    /// How often it can fire, if there is a limit.
    most: Option<u64>,
}

/// The last number. A child after `fork` continues from it, so a number of the parent names no
/// fault of the child.
static LAST: AtomicI64 = AtomicI64::new(0);

/// Puts the rules of a plan in force, or none of them if one is refused. Returns the number of the
/// fault.
pub(super) fn inject(plan: &Plan) -> Result<i64> {
    verbs_settings::check_calls(plan).map_err(Refusal::invalid)?;
    if plan.rules().is_empty() {
        return Err(Refusal::invalid("there is no [[rule]]"));
    }
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    let text = plan.to_string();
    let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
    let text = format!("verbsim_inject fault {number}: {}", lines.join(" "));
    Annotation { node: 0, text }.note(sim());
    let faults = &mut *FAULTS.get_or_default().lock();
    faults.take_out_spent();
    let mut rules = Vec::new();
    for rule in plan.rules() {
        let most = match rule.when() {
            Some(When::First(most)) => Some(*most),
            Some(When::Nth(_)) => Some(1),
            Some(When::These(all)) => Some(all.len() as u64),
            _ => None,
        };
        match sim().inject(rule.clone()) {
            Ok(id) => rules.push(Rule { id, most }),
            Err(error) => {
                // All rules of a plan are in force, or none.
                take_out(&rules)?;
                let what = match plan.rules().len() {
                    1 => error.cause().to_string(),
                    _ => format!("rule {}: {}", rules.len() + 1, error.cause()),
                };
                return Err(Refusal::new(error.errno(), what));
            }
        }
    }
    faults.in_force.insert(number, rules);
    Ok(number)
}

/// How often a fault has fired.
pub(super) fn fired(number: i64) -> Result<i64> {
    let faults = FAULTS.get_or_default().lock();
    let fired = match faults.in_force.get(&number) {
        Some(rules) => rules.iter().map(|rule| rule.fired()).sum(),
        None => faults
            .spent
            .get(&number)
            .copied()
            .ok_or_else(|| unknown(number)),
    };
    Ok(fired? as i64)
}

/// Removes a fault. Returns how often it has fired.
pub(super) fn remove(number: i64) -> Result<i64> {
    let faults = &mut *FAULTS.get_or_default().lock();
    let fired = match faults.in_force.remove(&number) {
        Some(rules) => take_out(&rules),
        None => faults.spent.remove(&number).ok_or_else(|| unknown(number)),
    };
    let text = format!("verbsim_remove fault {number}");
    Annotation { node: 0, text }.note(sim());
    Ok(fired? as i64)
}

impl Injected {
    /// Takes faults out of force that can fire no more: each packet is compared with each rule in
    /// force.
    fn take_out_spent(&mut self) {
        self.in_force.retain(|number, rules| {
            if !rules.iter().all(Rule::is_spent) {
                return true;
            }
            let fired = take_out(rules);
            fired
                .map(|fired| self.spent.insert(*number, fired))
                .is_err()
        });
    }
}

impl Rule {
    fn fired(&self) -> Result<u64> {
        sim().fired(self.id).map_err(of_engine)
    }

    fn is_spent(&self) -> bool {
        let fired = self.fired();
        matches!((fired, self.most), (Ok(fired), Some(most)) if fired >= most)
    }
}

/// Removes rules. Returns how often they have fired together.
fn take_out(rules: &[Rule]) -> Result<u64> {
    let fired = rules.iter().map(|rule| sim().remove(rule.id));
    fired.sum::<verbs_api::Result<u64>>().map_err(of_engine)
}

fn unknown(number: i64) -> Refusal {
    Refusal::invalid(format!("there is no fault {number} in this process"))
}

#[cfg(test)]
mod tests {
    use verbs_api::lab::Fault;
    use verbs_api::{ErrorKind, Verb, Verbs};

    use super::*;

    /// Each packet and call is compared with each rule in force.
    #[test]
    fn faults_that_are_over_do_not_stay_in_force() {
        let once = Plan::new(vec![Fault::fail(Verb::QueryPkey, ErrorKind::Io).first(1)]).unwrap();
        let context = sim().open_device("sim0").unwrap();
        let inject_and_fire = || {
            let number = inject(&once).unwrap();
            sim().query_pkey(context, 1, 0).unwrap_err();
            number
        };
        let numbers: Vec<_> = (0..100).map(|_| inject_and_fire()).collect();
        assert_eq!(FAULTS.get_or_default().lock().in_force.len(), 1);
        for number in numbers {
            assert_eq!(fired(number).unwrap(), 1);
            assert_eq!(remove(number).unwrap(), 1);
        }
        sim().query_pkey(context, 1, 0).unwrap();
        sim().close_device(context).unwrap();
    }
}
