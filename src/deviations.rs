//! `verbsim deviations`: drafts of records for the failures in a report.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;
use verbs_scenarios::Deviation;
use verbs_scenarios::deviations::DRAFT;
use verbs_scenarios::report::SCHEMA;

use crate::output::{Stop, note, print, save};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A report of `run --format json`
    report: PathBuf,
    /// Write the drafts to this file [default: the standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn execute(args: &Args) -> Result<(), Stop> {
    let name = args.report.display();
    let text = fs::read_to_string(&args.report)
        .map_err(|error| Stop::usage(format!("{name}: {error}")))?;
    let report: Report = serde_json::from_str(&text)
        .map_err(|error| Stop::usage(format!("{name}: not a report of `run`: {error}")))?;
    if report.schema != SCHEMA {
        let schema = report.schema;
        let text = format!("{name}: schema {schema} is of another verbsim; this one has {SCHEMA}");
        return Err(Stop::usage(text));
    }
    let drafts = report.drafts();
    if drafts.is_empty() {
        note(format_args!("note: no scenario of {name} failed"));
    }
    match &args.out {
        Some(file) => save(file, &drafts),
        None => print(&drafts),
    }
}

/// What is read of a report.
#[derive(Deserialize)]
struct Report {
    schema: u32,
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    driver: String,
    kernel: Option<String>,
    rdma_core: Option<String>,
    device_attr: DeviceAttr,
    scenarios: Vec<Entry>,
}

#[derive(Deserialize)]
struct DeviceAttr {
    fw_ver: Option<String>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    outcome: String,
    failure: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    rule: Option<String>,
    expected: String,
    seen: String,
    ends: bool,
}

impl Report {
    /// An entry of a file for each failure, once for all runs.
    fn drafts(&self) -> String {
        let (mut text, mut seen) = (String::new(), BTreeSet::new());
        for run in &self.runs {
            for entry in run.scenarios.iter().filter(|of| of.outcome == "failed") {
                let failure = entry.failure.iter();
                let new = failure.filter(|of| seen.insert((&entry.id, &of.rule, &of.seen)));
                for failure in new {
                    let draft = draft(&entry.id, failure, run.source());
                    let (expected, seen) = (in_a_line(&failure.expected), in_a_line(&failure.seen));
                    writeln!(text, "# expected: {expected}\n# seen: {seen}\n{draft}")
                        .expect("a string");
                }
            }
        }
        if !text.is_empty() {
            let heading = format!(
                "# Replace each text that begins with \"{}\". `verbsim help deviations`\n\
                 # describes the fields.\n\n",
                DRAFT.trim_end()
            );
            text.insert_str(0, &heading);
        }
        text
    }
}

impl Run {
    /// Where the failures were seen.
    fn source(&self) -> String {
        let known = |name: &str, value: &Option<String>| {
            let value = value.as_deref().filter(|value| !value.is_empty());
            value.map_or_else(String::new, |value| format!(", {name} {value}"))
        };
        format!(
            "measured: driver {}{}{}{}",
            self.driver,
            known("firmware", &self.device_attr.fw_ver),
            known("kernel", &self.kernel),
            known("rdma-core", &self.rdma_core),
        )
    }
}

fn draft(scenario: &str, failure: &Failure, source: String) -> Deviation {
    let mut draft = Deviation::default();
    draft.scenarios = vec![scenario.to_owned()];
    draft.symptom = symptom(&failure.seen).to_owned();
    draft.rule.clone_from(&failure.rule);
    draft.reason = format!("{DRAFT}why the device does this");
    draft.source = source;
    draft.ends = failure
        .ends
        .then(|| format!("{DRAFT}why the scenario cannot continue"));
    draft
}

/// The longest part of what was seen that the next run shows too: without addresses, keys and
/// other long numbers. The case of a table is left out where the rest has a word, since the same
/// failure in other cases is the same deviation.
fn symptom(seen: &str) -> &str {
    let failure = seen
        .strip_suffix(')')
        .and_then(|open| open.rsplit_once(" ("));
    let failure = failure.map(|(failure, _)| stable(failure));
    failure
        .filter(|part| part.chars().filter(char::is_ascii_alphabetic).count() >= WORD)
        .unwrap_or_else(|| stable(seen))
}

/// Letters of a text that tells failures apart.
const WORD: usize = 4;

/// The longest part of a text between words that differ from run to run, or all of it.
fn stable(text: &str) -> &str {
    let mut parts = Vec::new();
    let mut start = 0;
    for word in text.split_whitespace().filter(|word| changes(word)) {
        let at = word.as_ptr().addr() - text.as_ptr().addr();
        parts.push(&text[start..at]);
        start = at + word.len();
    }
    parts.push(&text[start..]);
    let longest = parts
        .into_iter()
        .map(str::trim)
        .max_by_key(|part| part.len());
    longest.filter(|part| !part.is_empty()).unwrap_or(text)
}

/// Whether a word differs from run to run.
fn changes(word: &str) -> bool {
    let mut digits = word.split(|c: char| !c.is_ascii_digit());
    word.contains("0x") || digits.any(|number| number.len() >= LONG)
}

/// Digits of a number that is neither a count nor a code.
const LONG: usize = 5;

/// A comment has one line.
fn in_a_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symptom_is_what_the_next_run_shows_too() {
        for (seen, expected) in [
            ("Err", "Err"),
            ("129 of 4096", "129 of 4096"),
            ("an event of cq#0", "an event of cq#0"),
            ("SUCCESS of qp 0x4e3002, not flushed (RC)", "SUCCESS of qp"),
            (
                "5 (compare where Access(LOCAL_WRITE) is allowed)",
                "5 (compare where Access(LOCAL_WRITE) is allowed)",
            ),
            (
                "MR 0x7f00 has the remote key 305419896, and is invalid",
                "has the remote key",
            ),
            ("0xdeadbeef", "0xdeadbeef"),
        ] {
            assert_eq!(symptom(seen), expected);
            assert!(seen.contains(expected));
        }
    }
}
