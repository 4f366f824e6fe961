//! A scenario as data.

use bitflags::bitflags;
use verbs_api::Capabilities;

use crate::failure::Result;
use crate::rules::Rule;
use crate::setup::Setup;

/// A small program against the trait that checks one or more rules.
///
/// ```
/// use verbs_api::Capabilities;
/// use verbs_scenarios::{Setup, Result, Scenario};
///
/// const ROW: Scenario = Scenario::new("cq_poll.empty_cq_gives_zero", &["CQ-POLL-03"], body)
///     .needs(Capabilities::LAB);
///
/// fn body(setup: &Setup<'_>) -> Result {
///     let pair = setup.rc_pair()?;
///     setup.no_completion(pair.a.send_cq, "CQ-POLL-03")
/// }
/// # assert_eq!(ROW.group(), "cq_poll");
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Scenario {
    /// The group and, after a dot, the behavior it checks: `cq_arm.next_fires_for_any_completion`.
    pub id: &'static str,
    /// The rules it checks, the main one first: those that its assertions name.
    pub rules: &'static [&'static str],
    /// The capabilities that the device and the backend must have.
    pub needs: Capabilities,
    /// The capabilities that the device must lack.
    pub lacks: Capabilities,
    /// The damage it can do to a device that breaks the rules.
    pub hazards: Hazards,
    /// Why other users of the device disturb it, if they do.
    pub alone: Option<&'static str>,
    /// The program.
    pub body: Body,
}

/// The program of a scenario.
pub type Body = fn(&Setup<'_>) -> Result;

bitflags! {
    /// The damage that a scenario can do to a device that breaks the rules. On a real driver one
    /// with hazards gets less time, and after its failure the next scenario another process.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Hazards: u8 {
        /// A call may never return.
        const MAY_HANG = 1 << 0;
        /// The process may crash.
        const MAY_CRASH = 1 << 1;
    }
}

impl Scenario {
    /// A scenario without hazards that needs RC queue pairs and nothing else.
    pub const fn new(id: &'static str, rules: &'static [&'static str], body: Body) -> Self {
        Self {
            id,
            rules,
            needs: Capabilities::RC,
            lacks: Capabilities::empty(),
            hazards: Hazards::empty(),
            alone: None,
            body,
        }
    }

    /// One that also needs `more`.
    #[must_use]
    pub const fn needs(self, more: Capabilities) -> Self {
        Self {
            needs: self.needs.union(more),
            ..self
        }
    }

    /// One that does not need `less`.
    pub(crate) const fn without(self, less: Capabilities) -> Self {
        Self {
            needs: self.needs.difference(less),
            ..self
        }
    }

    /// One that is for devices without `more`.
    #[must_use]
    pub const fn lacks(self, more: Capabilities) -> Self {
        Self {
            lacks: self.lacks.union(more),
            ..self
        }
    }

    /// One that also has these hazards.
    #[must_use]
    pub const fn hazards(self, more: Hazards) -> Self {
        Self {
            hazards: self.hazards.union(more),
            ..self
        }
    }

    /// One that other users of the device disturb: why.
    #[must_use]
    pub const fn alone(self, why: &'static str) -> Self {
        Self {
            alone: Some(why),
            ..self
        }
    }

    /// Whether it checks this rule, or one that requires the same.
    pub fn checks(&self, rule: &Rule) -> bool {
        let same = rule.same_as.iter().chain([&rule.id]);
        same.into_iter().any(|id| self.rules.contains(&id.as_str()))
    }

    /// The part of the id before the dot.
    pub fn group(&self) -> &'static str {
        self.id.split_once('.').map_or(self.id, |(group, _)| group)
    }

    /// The part of the id behind the dot in words, such as `next fires for any completion`.
    pub fn behavior(&self) -> String {
        let behavior = self.id.split_once('.').map_or("", |(_, behavior)| behavior);
        behavior.replace('_', " ")
    }
}
