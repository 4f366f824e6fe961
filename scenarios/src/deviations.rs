//! Recorded deviations of drivers, one file per driver, and those in files of users.

use std::fmt;

use serde::{Deserialize, Serialize};
use toml::Spanned;

/// A recorded, explained difference of a device from the rules.
///
/// The files are in `scenarios/deviations`. A deviation that no longer shows is an unexpected pass,
/// and fails the run. `Display` writes it as an entry of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Deviation {
    /// The scenarios that show it, each of them.
    pub scenarios: Vec<String>,
    /// Text that the failure's `seen` contains; a failure without it is another failure.
    pub symptom: String,
    /// The rule that the failure names. Default: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why the device is so, in a sentence.
    pub reason: String,
    /// The source: kernel file and function, man page, or measurement.
    pub source: String,
    /// Kernel releases it holds for, by their beginning, such as `6.1.`. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<String>,
    /// Intermittent: the scenario may also pass. Default: false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sometimes: bool,
    /// The scenario crashes the kernel or leaves it damaged: on this driver it runs only if that is
    /// allowed ([`Backend::may_crash_kernel`](crate::Backend::may_crash_kernel)). Default: false.
    #[serde(default, skip_serializing_if = "is_default")]
    pub crashes_kernel: bool,
    /// Why the scenario cannot go on after it, so that what it would assert then is not judged; of
    /// a table only the rest of the case. Default: it goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
    /// Why the simulator's profile of the driver does not show it. Default: it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_modelled: Option<String>,
}

/// How a text begins that `verbsim deviations` wrote and that a user is to replace.
pub const DRAFT: &str = "draft: ";

impl Deviation {
    /// Whether the scenario cannot go on after it.
    pub(crate) fn is_the_end(&self) -> bool {
        self.ends.is_some() || self.crashes_kernel
    }

    /// Whether a scenario shows it.
    pub fn is_of(&self, scenario: &str) -> bool {
        self.scenarios.iter().any(|id| id == scenario)
    }

    /// Whether it holds on a kernel of this release.
    pub fn holds_on(&self, kernel: &str) -> bool {
        let mut kernels = self.kernels.iter();
        self.kernels.is_empty() || kernels.any(|release| kernel.starts_with(release.as_str()))
    }

    /// What is wrong with it, whatever the device is.
    fn defect(&self) -> Option<String> {
        let Some(first) = self.scenarios.first() else {
            return Some("`scenarios` is empty".to_owned());
        };
        let texts = [
            ("symptom", Some(&self.symptom)),
            ("reason", Some(&self.reason)),
            ("source", Some(&self.source)),
            ("ends", self.ends.as_ref()),
            ("not_modelled", self.not_modelled.as_ref()),
        ];
        let is_empty = |text: Option<&String>| text.is_some_and(|text| text.trim().is_empty());
        if let Some((field, _)) = texts.into_iter().find(|(_, text)| is_empty(*text)) {
            return Some(format!("`{field}` of {first} is empty"));
        }
        let is_known = |id: &&String| crate::all().any(|scenario| scenario.id == **id);
        if let Some(id) = self.scenarios.iter().find(|id| !is_known(id)) {
            return Some(format!(
                "no scenario is called {id}: `verbsim list` shows all"
            ));
        }
        let unknown = self.rule.iter().find(|id| crate::rule(id).is_none())?;
        Some(format!(
            "no rule is called {unknown}: `verbsim rules` shows all"
        ))
    }

    /// Whether this is what a failure shows: the rule that it names, and what was seen.
    pub fn explains(&self, rule: Option<&str>, seen: &str) -> bool {
        let is_of_rule = |of: &str| rule == Some(of);
        seen.contains(&self.symptom) && self.rule.as_deref().is_none_or(is_of_rule)
    }
}

/// Writes an entry of a file.
impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = toml::to_string(self).map_err(|_| fmt::Error)?;
        write!(f, "[[deviation]]\n{fields}")
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    deviation: Vec<Spanned<Deviation>>,
}

/// The deviations of a file with this text. `name` is what errors call it.
///
/// # Errors
/// Says in which line what is wrong: the syntax, a field that is unknown, missing or empty, or a
/// scenario or rule that there is not.
pub fn parse(name: &str, text: &str) -> Result<Vec<Deviation>, String> {
    let at = |place: usize, wrong: &str| {
        let line = 1 + text[..place.min(text.len())].matches('\n').count();
        format!("{name}:{line}: {wrong}")
    };
    let file: File = toml::from_str(text).map_err(|error| {
        let place = error.span().map_or(0, |span| span.start);
        at(place, error.message())
    })?;
    let checked = file.deviation.into_iter().map(|found| {
        let place = found.span().start;
        let deviation = found.into_inner();
        match deviation.defect() {
            Some(wrong) => Err(at(place, &wrong)),
            None => Ok(deviation),
        }
    });
    checked.collect()
}

const FILES: &[(&str, &str)] = &[
    ("rxe", include_str!("../deviations/rxe.toml")),
    ("siw", include_str!("../deviations/siw.toml")),
    ("mlx5", include_str!("../deviations/mlx5.toml")),
];

/// The deviations of a driver on a kernel of this release.
pub fn of_driver(driver: &str, kernel: &str) -> Vec<Deviation> {
    let all = all(driver).into_iter();
    all.filter(|deviation| deviation.holds_on(kernel)).collect()
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
        parse(name, text).unwrap_or_else(|error| panic!("{error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_right_and_has_no_draft() {
        for (driver, text) in FILES {
            parse(driver, text).unwrap();
            assert!(!text.contains(DRAFT), "{driver}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let entry = |fields: &str| {
            let rest = "reason = \"r\"\nsource = \"s\"\n";
            format!("# mine\n\n[[deviation]]\n{fields}\n{rest}")
        };
        let id = "uc.there_are_no_reads";
        for (fields, wrong) in [
            (
                "symptom = \"s\"".to_owned(),
                "own.toml:3: missing field `scenarios`",
            ),
            (
                "scenarios = [\"uc.nothing\"]\nsymptom = \"s\"".to_owned(),
                "own.toml:3: no scenario is called uc.nothing: `verbsim list` shows all",
            ),
            (
                format!("scenarios = [\"{id}\"]\nsymptom = \"s\"\nrule = \"UC-99\""),
                "own.toml:3: no rule is called UC-99: `verbsim rules` shows all",
            ),
            (
                format!("scenarios = [\"{id}\"]\nsymptom = \" \""),
                "own.toml:3: `symptom` of uc.there_are_no_reads is empty",
            ),
            (
                format!("scenarios = [\"{id}\"]\nsymptm = \"s\""),
                "own.toml:5: unknown field `symptm`, expected one of",
            ),
            (
                "scenarios = []\nsymptom = \"s\"".to_owned(),
                "own.toml:3: `scenarios` is empty",
            ),
            ("scenarios = ".to_owned(), "own.toml:4: "),
        ] {
            let error = parse("own.toml", &entry(&fields)).unwrap_err();
            assert!(error.starts_with(wrong), "{error}");
        }
        assert_eq!(parse("own.toml", "# nothing\n").unwrap(), []);
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let deviation = Deviation {
            scenarios: vec!["uc.there_are_no_reads".to_owned()],
            symptom: "\"quoted\", 'twice'\nand \\ a line".to_owned(),
            rule: Some("UC-01".to_owned()),
            reason: format!("{DRAFT}why"),
            source: "measured".to_owned(),
            kernels: vec!["6.1.".to_owned()],
            sometimes: true,
            ends: Some("it is too late".to_owned()),
            ..Deviation::default()
        };
        let minimal = Deviation {
            rule: None,
            kernels: Vec::new(),
            sometimes: false,
            ends: None,
            ..deviation.clone()
        };
        let text = format!("{deviation}\n{minimal}");
        assert_eq!(
            parse("own.toml", &text),
            Ok(vec![deviation, minimal]),
            "{text}"
        );
    }
}
