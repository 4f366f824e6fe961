//! Fault plans.

use core::fmt;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use verbs_api::lab::{Fault, FaultGuard, Firing, Lab, PacketFilter, When};
use verbs_api::{Result, WcStatus};

use crate::read::PlanError;

/// Fault rules, in the order in which they are put in force: if several match, the first one
/// fires.
///
/// ```
/// use verbs_faults::Plan;
///
/// let text = "[[rule]]\nkind = \"packet\"\neffect = \"drop\"\nnth = 2\n";
/// let plan = Plan::parse("plan.toml", text)?;
/// assert_eq!(plan.rules().len(), 1);
/// assert_eq!(plan.to_string(), text);
/// # Ok::<(), verbs_faults::PlanError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub(crate) rules: Vec<Fault>,
}

/// A part of a plan that can be left out alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    /// The index of the rule.
    pub rule: usize,
    /// The firing of the rule, counted from 1; `None` is the rule as a whole, if it does not name
    /// its firings.
    pub ordinal: Option<u64>,
}

/// A plan that is in force as long as this lives.
#[must_use = "the plan goes with it"]
pub struct InForce<'l> {
    plan: Plan,
    lab: &'l dyn Lab,
    guards: Vec<FaultGuard<'l>>,
}

impl Plan {
    /// A plan of these rules.
    ///
    /// # Errors
    /// The error of [`Fault::check`], for the first rule that is refused.
    pub fn new(rules: Vec<Fault>) -> Result<Self> {
        rules.iter().try_for_each(Fault::check)?;
        Ok(Self { rules })
    }

    /// Sometimes loses, damages, duplicates, delays or reorders a packet: 4 packets in 100. A
    /// connection with a time-out of 14 (67 ms) and 7 retries survives it, except for about one
    /// message in a hundred million; delays are far below that time-out.
    pub fn standard() -> Self {
        let us = Duration::from_micros;
        let every = PacketFilter::EVERY;
        Self {
            rules: vec![
                Fault::drop(every).per_million(10_000),
                Fault::corrupt(every).per_million(2_500),
                Fault::duplicate(every, Duration::ZERO).per_million(5_000),
                Fault::duplicate(every, us(200)).per_million(2_500),
                Fault::delay(every, us(3)).per_million(5_000),
                Fault::delay(every, us(300)).per_million(5_000),
                Fault::reorder(every, 1).per_million(5_000),
                Fault::reorder(every, 4).per_million(5_000),
            ],
        }
    }

    /// Breaks connections: five times the losses of the [standard plan](Self::standard), and one
    /// completion in a hundred that fails with `GENERAL_ERR`, which stops its queue pair. A program
    /// that makes its connections again survives it.
    pub fn harsh() -> Self {
        let every = PacketFilter::EVERY;
        let mut plan = Self::standard();
        plan.rules.extend([
            Fault::drop(every).per_million(40_000),
            Fault::delay(every, Duration::from_millis(5)).per_million(10_000),
            Fault::complete(WcStatus::GeneralErr).per_million(10_000),
        ]);
        plan
    }

    /// The rules.
    pub fn rules(&self) -> &[Fault] {
        &self.rules
    }

    /// A number that two plans share only by chance, the same in every version: FNV-1a of the
    /// plan's file, folded to 32 bits.
    pub fn digest(&self) -> u32 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in self.to_string().bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        (hash >> 32) as u32 ^ hash as u32
    }

    /// Puts the plan in force. If that is done first of all, it draws the same for the same seed.
    ///
    /// # Errors
    /// The error of [`Lab::inject`], for the first rule that is refused; then none is in force.
    pub fn inject<'l>(&self, lab: &'l dyn Lab) -> Result<InForce<'l>> {
        let guard = |rule: &Fault| FaultGuard::new(lab, rule.clone());
        Ok(InForce {
            plan: self.clone(),
            lab,
            guards: self.rules.iter().map(guard).collect::<Result<_>>()?,
        })
    }

    /// Checks that a simulator accepts the plan, which was read from `file`.
    ///
    /// # Errors
    /// The first rule that it refuses, for a node or port that does not exist.
    pub fn check(&self, file: &str, lab: &dyn Lab) -> Result<(), PlanError> {
        for (index, rule) in self.rules.iter().enumerate() {
            if let Err(error) = FaultGuard::new(lab, rule.clone()) {
                return Err(PlanError {
                    file: file.to_owned(),
                    line: None,
                    rule: Some(index + 1),
                    field: None,
                    problem: error.cause().to_string(),
                });
            }
        }
        Ok(())
    }

    /// A plan that repeats exactly the firings of this one, whatever the seed. Links, ports and
    /// limits are unchanged.
    #[must_use]
    pub fn scripted(&self, fired: &[Part]) -> Self {
        let mut ordinals = vec![BTreeSet::new(); self.rules.len()];
        for part in fired {
            ordinals[part.rule].extend(part.ordinal);
        }
        let rules = self.rules.iter().zip(ordinals);
        Self {
            rules: rules
                .map(|(rule, ordinals)| rule.clone().at(When::These(ordinals)))
                .collect(),
        }
    }

    /// All parts that can be left out separately: each firing of a rule that names its firings, and
    /// each other rule.
    pub fn parts(&self) -> Vec<Part> {
        let of_rule = |(rule, fault): (usize, &Fault)| match fault.when() {
            Some(When::These(ordinals)) => ordinals
                .iter()
                .map(|ordinal| Part {
                    rule,
                    ordinal: Some(*ordinal),
                })
                .collect(),
            _ => vec![Part {
                rule,
                ordinal: None,
            }],
        };
        self.rules.iter().enumerate().flat_map(of_rule).collect()
    }

    /// A plan with only these parts. A rule without any is left out.
    #[must_use]
    pub fn only(&self, parts: &[Part]) -> Self {
        let mut kept: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        for part in parts {
            kept.entry(part.rule).or_default().extend(part.ordinal);
        }
        let rule = |(rule, ordinals): (usize, BTreeSet<u64>)| {
            let fault = self.rules[rule].clone();
            match fault.when() {
                Some(When::These(_)) => fault.at(When::These(ordinals)),
                _ => fault,
            }
        };
        Self {
            rules: kept.into_iter().map(rule).collect(),
        }
    }
}

impl InForce<'_> {
    /// The firings of the plan so far, oldest first. Links, ports and limits fire too.
    pub fn fired(&self) -> Vec<Part> {
        let rules: BTreeMap<_, _> = self.guards.iter().map(FaultGuard::id).zip(0..).collect();
        let part = |firing: Firing| {
            Some(Part {
                rule: *rules.get(&firing.fault)?,
                ordinal: Some(firing.ordinal),
            })
        };
        self.lab.firings().into_iter().filter_map(part).collect()
    }

    /// A plan that repeats exactly the firings of this one so far.
    pub fn scripted(&self) -> Plan {
        self.plan.scripted(&self.fired())
    }
}

/// As in a replay: `RULE.NUMBER`, or `RULE` for a whole rule.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.rule)?;
        match self.ordinal {
            Some(ordinal) => write!(f, ".{ordinal}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for InForce<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InForce").field(&self.plan).finish()
    }
}
