//! Tables of NICs: how each differs from a device that has everything.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use verbs_api::behavior::Behavior;
use verbs_api::profile::{DeviceLimits, Profile};
use verbs_api::{
    Capabilities, CqFlags, CqInitEx, DeviceAttr, ErrorKind, QpInit, SendOps, Verb, WcFields,
};

/// A NIC. Each row has where it is from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    /// The name of its driver, which has no profile.
    pub(crate) driver: String,
    #[serde(default)]
    lacks: Vec<Lack>,
    #[serde(default)]
    limits: Vec<Limit>,
    /// Limits that it reports without having as much.
    #[serde(default)]
    reports: Vec<Limit>,
    /// The profile that has its choices, which it does not declare. Default: `spec`.
    profile: Option<String>,
    /// Those that differ.
    #[serde(default)]
    knobs: BTreeMap<String, String>,
    /// Places of its tables of GIDs. Those behind the simulator's are empty.
    #[serde(default)]
    pub(crate) gid_places: u32,
    /// The first GID of each port is empty.
    #[serde(default)]
    pub(crate) first_gid_is_empty: bool,
    /// Each context that is opened has events of its port that no program causes.
    #[serde(default)]
    pub(crate) announces: bool,
}

/// What the NIC lacks, and how that is refused.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lack {
    /// A capability, a field of completions, several of them together, a flag of extended CQs, or
    /// an operation of batches.
    what: String,
    /// The call that is refused.
    verb: String,
    errno: String,
    /// File and line of rdma-core 65, or file and function of Linux. The first line of a table of
    /// verbs means that it has no such verb.
    at: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    name: String,
    value: u64,
    at: String,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

/// A kind of error for a call.
pub(crate) type Refusal = (Verb, ErrorKind);

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// Says what is unknown or wrong.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let table: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for lack in &table.lacks {
            lack.refusal()?;
            let is_known = !lack.capability().is_empty()
                || lack.fields().is_some()
                || lack.flag().is_some()
                || lack.op().is_some();
            if !is_known {
                return Err(format!("nothing is called {}", lack.what));
            }
        }
        let rows = table.lacks.iter().map(|lack| (&lack.what, &lack.at));
        let limits = table.limits.iter().chain(&table.reports);
        let mut rows = rows.chain(limits.map(|limit| (&limit.name, &limit.at)));
        if let Some((row, _)) = rows.find(|(_, at)| at.is_empty()) {
            return Err(format!("{row} is from nowhere"));
        }
        table.limits()?;
        table.report(&mut DeviceAttr::default())?;
        table.behavior()?;
        Ok(table)
    }

    pub(crate) fn lacks(&self) -> Capabilities {
        self.lacks.iter().map(Lack::capability).collect()
    }

    /// What it lacks and reports, for the shim, which knows the verb of each. It has no knobs.
    #[cfg(target_os = "linux")]
    pub(crate) fn words(&self) -> String {
        let mut words = vec!["unknown".to_owned()];
        // Several fields together are nothing that it knows.
        let lacks = self.lacks.iter().filter(|lack| !lack.what.contains(' '));
        words.extend(lacks.map(|lack| {
            let (_, kind) = lack.refusal().expect("it was checked");
            format!("{}={}", lack.what, kind.errno())
        }));
        words.extend(self.reports.iter().map(Limit::to_string));
        if self.gid_places > 0 {
            words.push(format!("gid_places={}", self.gid_places));
        }
        words.join(",")
    }

    /// The limits, as `verbsim exec --limits` takes them.
    #[cfg(target_os = "linux")]
    pub(crate) fn limits_in_words(&self) -> String {
        let all: Vec<_> = self.limits.iter().map(Limit::to_string).collect();
        all.join(",")
    }

    pub(crate) fn limits(&self) -> Result<DeviceLimits, String> {
        let mut limits = DeviceLimits::SPEC;
        for Limit { name, value, .. } in &self.limits {
            let lowered = limits.lower(name, *value);
            lowered.map_err(|error| error.to_string())?;
        }
        Ok(limits)
    }

    /// Writes the limits that it reports over those that it has.
    pub(crate) fn report(&self, attr: &mut DeviceAttr) -> Result<(), String> {
        for Limit { name, value, .. } in &self.reports {
            let reported = match &name[..] {
                "max_qp" => &mut attr.max_qp,
                "max_cq" => &mut attr.max_cq,
                "max_mr" => &mut attr.max_mr,
                "max_pd" => &mut attr.max_pd,
                "max_mw" => &mut attr.max_mw,
                "max_ah" => &mut attr.max_ah,
                "max_srq" => &mut attr.max_srq,
                "max_mcast_grp" => &mut attr.max_mcast_grp,
                _ => return Err(format!("no device reports {name}")),
            };
            *reported = u32::try_from(*value).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    pub(crate) fn behavior(&self) -> Result<Behavior, String> {
        let mut behavior = match &self.profile {
            Some(name) => {
                Profile::named(name)
                    .map_err(|error| error.to_string())?
                    .behavior
            }
            None => Behavior::SPEC,
        };
        for (knob, value) in &self.knobs {
            let set = behavior.set(knob, value);
            set.map_err(|error| error.to_string())?;
        }
        Ok(behavior)
    }

    /// How a verb refuses what the device lacks.
    pub(crate) fn refusal(&self, verb: Verb) -> Option<Refusal> {
        let mut refusals = self.lacks.iter().filter_map(|lack| lack.refusal().ok());
        refusals.find(|(of, _)| *of == verb)
    }

    /// How a queue pair is refused.
    pub(crate) fn refuses_qp(&self, init: &QpInit) -> Option<Refusal> {
        let of_type = Capabilities::of_qp_type(init.qp_type);
        self.first(|lack| {
            let of_ops = lack.op().is_some_and(|op| init.send_ops.intersects(op))
                || lack.capability() == Capabilities::BATCHES && !init.send_ops.is_empty();
            of_ops || lack.capability().intersects(of_type)
        })
    }

    /// How an extended CQ is refused.
    pub(crate) fn refuses_cq_ex(&self, init: &CqInitEx) -> Option<Refusal> {
        self.first(|lack| {
            lack.capability() == Capabilities::CQ_EX
                || lack
                    .fields()
                    .is_some_and(|fields| init.wc_flags.contains(fields))
                || lack.flag().is_some_and(|flag| init.flags.intersects(flag))
        })
    }

    fn first(&self, is_it: impl Fn(&Lack) -> bool) -> Option<Refusal> {
        let lack = self.lacks.iter().find(|lack| is_it(lack))?;
        lack.refusal().ok()
    }
}

impl Lack {
    fn name(&self) -> String {
        self.what.to_ascii_uppercase()
    }

    fn capability(&self) -> Capabilities {
        Capabilities::from_name(&self.name()).unwrap_or_default()
    }

    fn fields(&self) -> Option<WcFields> {
        let name = self.name();
        name.split(' ').map(WcFields::from_name).collect()
    }

    fn flag(&self) -> Option<CqFlags> {
        CqFlags::from_name(&self.name())
    }

    fn op(&self) -> Option<SendOps> {
        SendOps::from_name(&self.name())
    }

    fn refusal(&self) -> Result<Refusal, String> {
        let verb = Verb::ALL.iter().find(|verb| verb.name() == self.verb);
        let verb = verb.ok_or_else(|| format!("no verb is called {}", self.verb))?;
        let mut kinds = ErrorKind::FROM_ERRNO.iter();
        let kind = kinds.find(|kind| kind.symbol() == self.errno);
        let kind = kind.ok_or_else(|| format!("no errno is called {}", self.errno))?;
        Ok((*verb, *kind))
    }
}
