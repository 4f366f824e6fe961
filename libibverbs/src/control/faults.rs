//! The faults that the program itself has put in force.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

use verbs_api::lab::{FaultId, Lab, When};
use verbs_api::sync::Mutex;
use verbs_faults::Plan;
use verbs_sim::Annotation;

use super::Wrong;
use crate::engine::Engine;

/// The faults, by the numbers that the program has for them.
#[derive(Default)]
pub(crate) struct Faults(Mutex<Injected>);

#[derive(Default)]
struct Injected {
    in_force: BTreeMap<i64, Vec<Rule>>,
    /// Those that could strike nothing more and were taken out of force: how often they have struck.
    spent: BTreeMap<i64, u64>,
}

struct Rule {
    id: FaultId,
    /// How often it can strike, if that has an end.
    most: Option<u64>,
}

/// The last number. A child after `fork` goes on from it, so a number of its parent's names nothing
/// there.
static LAST: AtomicI64 = AtomicI64::new(0);

impl Faults {
    /// Puts the rules of a plan in force, or none of them. Returns the number of the fault.
    pub(super) fn inject(&self, engine: &Engine, plan: &Plan) -> Result<i64, Wrong> {
        verbs_settings::check_calls(plan).map_err(Wrong::invalid)?;
        if plan.rules().is_empty() {
            return Err(Wrong::invalid("there is no [[rule]]"));
        }
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let text = plan.to_string();
        let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
        let text = format!("verbsim_inject fault {number}: {}", lines.join(" "));
        Annotation { node: 0, text }.note(&engine.sim);
        let faults = &mut *self.0.lock();
        faults.take_out_spent(engine);
        let mut rules = Vec::new();
        for rule in plan.rules() {
            let most = match rule.when() {
                Some(When::First(most)) => Some(*most),
                Some(When::Nth(_)) => Some(1),
                Some(When::These(all)) => Some(all.len() as u64),
                _ => None,
            };
            match engine.sim.inject(rule.clone()) {
                Ok(id) => rules.push(Rule { id, most }),
                Err(error) => {
                    take_out(engine, &rules)?;
                    let what = match plan.rules().len() {
                        1 => error.cause().to_string(),
                        _ => format!("rule {}: {}", rules.len() + 1, error.cause()),
                    };
                    return Err(Wrong::new(error.errno(), what));
                }
            }
        }
        faults.in_force.insert(number, rules);
        Ok(number)
    }

    pub(super) fn struck(&self, engine: &Engine, number: i64) -> Result<i64, Wrong> {
        let faults = self.0.lock();
        let struck = match faults.in_force.get(&number) {
            Some(rules) => rules.iter().map(|rule| rule.struck(engine)).sum(),
            None => faults
                .spent
                .get(&number)
                .copied()
                .ok_or_else(|| unknown(number)),
        };
        Ok(struck? as i64)
    }

    /// Takes a fault out of force. Returns how often it has struck.
    pub(super) fn remove(&self, engine: &Engine, number: i64) -> Result<i64, Wrong> {
        let faults = &mut *self.0.lock();
        let struck = match faults.in_force.remove(&number) {
            Some(rules) => take_out(engine, &rules),
            None => faults.spent.remove(&number).ok_or_else(|| unknown(number)),
        };
        let text = format!("verbsim_remove fault {number}");
        Annotation { node: 0, text }.note(&engine.sim);
        Ok(struck? as i64)
    }
}

impl Injected {
    /// Each packet is compared with each rule in force, so those that can strike nothing more do
    /// not stay.
    fn take_out_spent(&mut self, engine: &Engine) {
        self.in_force.retain(|number, rules| {
            if !rules.iter().all(|rule| rule.is_spent(engine)) {
                return true;
            }
            let struck = take_out(engine, rules);
            struck
                .map(|struck| self.spent.insert(*number, struck))
                .is_err()
        });
    }
}

impl Rule {
    fn struck(&self, engine: &Engine) -> Result<u64, Wrong> {
        Ok(engine.sim.struck(self.id)?)
    }

    fn is_spent(&self, engine: &Engine) -> bool {
        let struck = self.struck(engine);
        matches!((struck, self.most), (Ok(struck), Some(most)) if struck >= most)
    }
}

/// Takes rules out of force. Returns how often they have struck together.
fn take_out(engine: &Engine, rules: &[Rule]) -> Result<u64, Wrong> {
    let struck = rules.iter().map(|rule| engine.sim.remove(rule.id));
    Ok(struck.sum::<verbs_api::Result<u64>>()?)
}

fn unknown(number: i64) -> Wrong {
    Wrong::invalid(format!("there is no fault {number} in this process"))
}

#[cfg(test)]
mod tests {
    use verbs_api::lab::Fault;
    use verbs_api::{ErrorKind, Verb, Verbs};

    use super::*;
    use crate::engine::engine;

    /// Each packet and call is compared with each rule in force.
    #[test]
    fn faults_that_are_over_do_not_stay_in_force() {
        let engine = engine();
        let faults = Faults::default();
        let once = Plan::new(vec![Fault::fail(Verb::QueryPkey, ErrorKind::Io).first(1)]).unwrap();
        let context = engine.sim.open_device("sim0").unwrap();
        let inject_and_strike = || {
            let number = faults.inject(engine, &once).unwrap();
            engine.sim.query_pkey(context, 1, 0).unwrap_err();
            number
        };
        let numbers: Vec<_> = (0..100).map(|_| inject_and_strike()).collect();
        assert_eq!(faults.0.lock().in_force.len(), 1);
        for number in numbers {
            assert_eq!(faults.struck(engine, number).unwrap(), 1);
            assert_eq!(faults.remove(engine, number).unwrap(), 1);
        }
        engine.sim.query_pkey(context, 1, 0).unwrap();
        engine.sim.close_device(context).unwrap();
    }
}
