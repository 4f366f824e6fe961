//! Recorded deviations of drivers, one file per driver.

use serde::Deserialize;

/// A recorded, explained difference of a device from the rules.
///
/// The files are in `scenarios/deviations`. A deviation that no longer shows is an unexpected pass,
/// and fails the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Deviation {
    /// The scenario that shows it.
    pub scenario: String,
    /// Text that the failure's `seen` contains; a failure without it is another failure.
    pub symptom: String,
    /// The rule that the failure names. Default: any.
    pub rule: Option<String>,
    /// Why the device is so, in a sentence.
    pub reason: String,
    /// The source: kernel file and function, man page, or measurement.
    pub source: String,
    /// Kernel releases it holds for, by their beginning, such as `6.1.`. Default: all.
    #[serde(default)]
    pub kernels: Vec<String>,
    /// It comes and goes: the scenario may also pass. Default: false.
    #[serde(default)]
    pub sometimes: bool,
    /// The scenario crashes the kernel or leaves it damaged: on this driver it runs only if that is
    /// allowed ([`Backend::may_crash_kernel`](crate::Backend::may_crash_kernel)). Default: false.
    #[serde(default)]
    pub crashes_kernel: bool,
    /// Why the scenario cannot go on after it, so that what it would assert then is not judged; of
    /// a table only the rest of the case. Default: it goes on.
    pub ends: Option<String>,
    /// Why the simulator's profile of the driver does not show it. Default: it does.
    pub not_modelled: Option<String>,
}

impl Deviation {
    /// Whether the scenario cannot go on after it.
    pub(crate) fn is_the_end(&self) -> bool {
        self.ends.is_some() || self.crashes_kernel
    }

    /// Whether this is what a failure shows: the rule that it names, and what was seen.
    pub fn explains(&self, rule: Option<&str>, seen: &str) -> bool {
        let is_of_rule = |of: &str| rule == Some(of);
        seen.contains(&self.symptom) && self.rule.as_deref().is_none_or(is_of_rule)
    }
}

#[derive(Deserialize)]
struct File {
    deviation: Vec<Deviation>,
}

const FILES: &[(&str, &str)] = &[
    ("rxe", include_str!("../deviations/rxe.toml")),
    ("siw", include_str!("../deviations/siw.toml")),
    ("mlx5", include_str!("../deviations/mlx5.toml")),
];

/// The deviations of a driver on a kernel of this release.
pub fn of_driver(driver: &str, kernel: &str) -> Vec<Deviation> {
    let holds = |deviation: &Deviation| {
        let kernels = &deviation.kernels;
        kernels.is_empty()
            || kernels
                .iter()
                .any(|release| kernel.starts_with(release.as_str()))
    };
    all(driver).into_iter().filter(holds).collect()
}

/// The kernel whose drivers the simulator's profiles follow.
pub const OF_PROFILES: &str = "6.1.";

/// The deviations that the simulator's profile of a driver shows.
pub fn of_profile(driver: &str) -> Vec<Deviation> {
    let modelled = |deviation: &Deviation| deviation.not_modelled.is_none();
    of_driver(driver, OF_PROFILES)
        .into_iter()
        .filter(modelled)
        .collect()
}

fn all(driver: &str) -> Vec<Deviation> {
    let file = FILES.iter().find(|(of, _)| *of == driver);
    file.map_or_else(Vec::new, |(name, text)| {
        let file: File = toml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        file.deviation
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_deviation_names_a_scenario_and_says_why() {
        for (driver, _) in FILES {
            for deviation in all(driver) {
                let id = &deviation.scenario;
                assert!(
                    crate::all().any(|scenario| scenario.id == id),
                    "{driver}: {id}"
                );
                if let Some(rule) = &deviation.rule {
                    assert!(crate::rule(rule).is_some(), "{driver}: {id}: {rule}");
                }
                for text in [&deviation.symptom, &deviation.reason, &deviation.source] {
                    assert!(!text.is_empty(), "{driver}: {id}");
                }
            }
        }
    }
}
