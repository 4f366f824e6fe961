//! Why mutants survive: the files in `mutants/survivors`, one for each source.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::mutant::Key;

/// The kind of a survivor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Class {
    /// It behaves like the original. The reason names the line that makes it so.
    Equivalent,
    /// It only takes longer, or more memory.
    Cost,
    /// It changes a value that the specification leaves undefined, or a choice it leaves open.
    Undefined,
    /// No call through the interface reaches it.
    Unreachable,
    /// It only changes a text: the trace, a diagnosis, the message of an error.
    Text,
    /// Only test controls show it: faults, limits, the clock, checkers of models.
    Controls,
    /// Other tests notice it. The reason says why no scenario does.
    Tests,
    /// Nothing notices it.
    Hole,
}

impl Class {
    /// Whether mutants of this class could be noticed.
    pub(crate) fn counts(self) -> bool {
        matches!(self, Self::Tests | Self::Hole)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equivalent => "equivalent",
            Self::Cost => "cost",
            Self::Undefined => "undefined",
            Self::Unreachable => "unreachable",
            Self::Text => "text",
            Self::Controls => "controls",
            Self::Tests => "tests",
            Self::Hole => "hole",
        })
    }
}

/// Why a mutant survives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reason {
    pub(crate) class: Class,
    pub(crate) because: String,
}

/// The contents of the file of a source.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reasons {
    survivors: Vec<Group>,
}

/// Mutants of one function that survive for one reason.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    function: String,
    class: Class,
    because: String,
    mutants: Vec<String>,
}

/// Reads all reasons.
///
/// # Errors
/// If a file cannot be read, names a mutant twice, or gives no reason.
pub(crate) fn read(dir: &Path) -> Result<BTreeMap<Key, Reason>> {
    let mut all = BTreeMap::new();
    for path in files(dir)? {
        let file = path.strip_prefix(dir)?.with_extension("rs");
        let reasons: Reasons = toml::from_str(&fs::read_to_string(&path)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        for Group {
            function,
            class,
            because,
            mutants,
        } in reasons.survivors
        {
            for text in mutants {
                let (file, function) = (file.display().to_string(), function.clone());
                let key = Key {
                    file,
                    function,
                    text,
                };
                let reason = Reason {
                    class,
                    because: because.clone(),
                };
                if reason.because.is_empty() {
                    return Err(format!("no reason is given: {key}").into());
                }
                if let Some(twice) = all.insert(key.clone(), reason) {
                    return Err(format!("said twice, {}: {key}", twice.class).into());
                }
            }
        }
    }
    Ok(all)
}

/// Writes a file for each source, and removes the existing files.
pub(crate) fn write(dir: &Path, reasons: &BTreeMap<Key, Reason>) -> Result<()> {
    let mut by_file: BTreeMap<&str, BTreeMap<(&str, &Reason), Vec<String>>> = BTreeMap::new();
    for (key, reason) in reasons {
        let groups = by_file.entry(&key.file).or_default();
        groups
            .entry((&key.function, reason))
            .or_default()
            .push(key.text.clone());
    }
    for path in files(dir)? {
        fs::remove_file(path)?;
    }
    for (file, groups) in by_file {
        let group = |((function, reason), mutants): ((&str, &Reason), Vec<String>)| Group {
            function: function.to_owned(),
            class: reason.class,
            because: reason.because.clone(),
            mutants,
        };
        let survivors = groups.into_iter().map(group).collect();
        let path = dir.join(file).with_extension("toml");
        fs::create_dir_all(path.parent().expect("it is below the folder"))?;
        fs::write(path, toml::to_string_pretty(&Reasons { survivors })?)?;
    }
    Ok(())
}

fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        if !dir.is_dir() {
            continue;
        }
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() {
                left.push(path);
            } else {
                all.push(path);
            }
        }
    }
    all.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    Ok(all)
}
