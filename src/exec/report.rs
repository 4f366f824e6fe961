//! The diagnosis of a run as one document, for continuous integration.
//!
//! The processes write JSON into a file of `exec`, which makes the document of it when the program
//! has ended.

use std::path::{Path, PathBuf};
use std::{env, fs};

use serde::Deserialize;
use verbs_settings::{DiagnoseFormat, trees};

use super::ending::{Remark, write};
use crate::output::{Stop, note, save};
use crate::results::{Case, Failure, Place, Suite, Verdict, github, junit, sarif};
use crate::which::which;

/// The class of a case that is not about a mistake.
const CLASS: &str = "verbsim exec";

/// A document to write.
pub(super) struct Report {
    format: DiagnoseFormat,
    /// The program and its arguments.
    command: Vec<String>,
    /// A path, or `-` for the standard error.
    to: String,
    /// The file that the processes append to.
    findings: PathBuf,
}

/// A finding, as the library writes it (`libibverbs/src/process/json.rs`).
#[derive(Deserialize)]
struct Finding {
    process: u32,
    device: String,
    class: String,
    level: String,
    rule: String,
    sentence: String,
    place: Option<String>,
    sources: Vec<Source>,
    count: u64,
    help: String,
}

/// A line of source, as debug information names it.
#[derive(Deserialize)]
struct Source {
    file: PathBuf,
    line: u32,
}

impl Report {
    /// # Errors
    /// The format needs a file and `to` is not one, or the processes cannot be given a file.
    pub(super) fn new(
        format: DiagnoseFormat,
        command: Vec<String>,
        to: &str,
    ) -> Result<Self, Stop> {
        if to == "-" && format != DiagnoseFormat::Github {
            return Err(Stop::usage(
                "--diagnose-format junit and sarif write a document: name a file for it by --diagnose=FILE",
            ));
        }
        let own = trees::own();
        let findings = own.join("findings.json");
        let made = trees::make(&own).and_then(|()| fs::write(&findings, ""));
        made.map_err(|error| Stop::usage(format!("{}: {error}", findings.display())))?;
        Ok(Self {
            format,
            command,
            to: to.to_owned(),
            findings,
        })
    }

    /// The file that the processes append JSON to.
    pub(super) fn findings(&self) -> &Path {
        &self.findings
    }

    /// Whether the document is on the standard error, so that it has to say everything only once.
    pub(super) fn is_log(&self) -> bool {
        self.to == "-"
    }

    /// Writes the document. `failure` says how the program failed, if it did. A warning is a
    /// failure if `warnings_fail`. Returns whether everything is written.
    pub(super) fn write(
        &self,
        failure: Option<String>,
        remarks: &[Remark],
        warnings_fail: bool,
    ) -> bool {
        let (findings, unread) = self.read();
        for Remark { text, .. } in &unread {
            note(format_args!("error: {text}"));
        }
        if !self.is_log() {
            let lines = findings.iter().map(Finding::in_a_line);
            lines.for_each(note);
        }
        let checkout = checkout();
        let checkout = checkout.as_deref();
        let findings = findings.into_iter();
        let findings = findings.map(|finding| finding.case(checkout, warnings_fail));
        let remarks = remarks.iter().chain(&unread).map(case);
        let cases = [self.case(failure)].into_iter().chain(findings);
        let suite = Suite {
            name: format!("{CLASS} {}", self.command.join(" ")),
            properties: Vec::new(),
            cases: cases.chain(remarks).collect(),
        };
        let document = match self.format {
            DiagnoseFormat::Sarif => sarif::document(&suite, &self.place(checkout)),
            DiagnoseFormat::Github => github::annotations(&[suite]),
            _ => junit::document(&[suite]),
        };
        self.save(&document) && unread.is_empty()
    }

    /// The program itself.
    fn case(&self, failure: Option<String>) -> Case {
        let failed = |why| Verdict::Failed(Failure::in_a_line(CLASS, why));
        Case {
            name: self.command.join(" "),
            class: CLASS.to_owned(),
            verdict: failure.map_or(Verdict::Passed, failed),
        }
    }

    /// Where the program is, for what has no better place.
    fn place(&self, checkout: Option<&Path>) -> Place {
        let program = &self.command[0];
        let file = which(program.as_ref()).unwrap_or_else(|| program.into());
        let name = file.display().to_string();
        let program = Source { file, line: 1 };
        let place = checkout.and_then(|checkout| program.place(checkout));
        place.unwrap_or(Place {
            file: name,
            line: 1,
        })
    }

    /// Returns whether the document is written.
    fn save(&self, document: &str) -> bool {
        if self.is_log() {
            // The last line of the program may have no end, and GitHub reads a command at the
            // beginning of a line only.
            return document.is_empty() || write("-", &format!("\n{document}"));
        }
        let saved = save(self.to.as_ref(), document);
        if let Err(Stop::Usage(why)) = &saved {
            note(format_args!("error: {why}"));
        }
        saved.is_ok()
    }

    /// What the processes have written, and why some of it cannot be read.
    fn read(&self) -> (Vec<Finding>, Vec<Remark>) {
        let (mut findings, mut unread) = (Vec::new(), Vec::new());
        let mut refuse =
            |why: String| unread.push(Remark::new("a finding cannot be read", why, true));
        let bytes = fs::read(&self.findings).unwrap_or_else(|error| {
            let path = self.findings.display();
            refuse(format!("the findings cannot be read: {path}: {error}"));
            Vec::new()
        });
        for line in String::from_utf8_lossy(&bytes).lines() {
            match serde_json::from_str(line) {
                Ok(finding) => findings.push(finding),
                Err(error) => refuse(format!("a finding cannot be read: {error}: {line}")),
            }
        }
        (findings, unread)
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        trees::remove(&trees::own());
    }
}

impl Finding {
    fn case(self, checkout: Option<&Path>, warnings_fail: bool) -> Case {
        let where_it_is = match &self.place {
            Some(place) => format!("at {place}"),
            None => format!("on {}", self.device),
        };
        let places = self
            .sources
            .iter()
            .filter_map(|source| source.place(checkout?));
        let places: Vec<_> = places.collect();
        let failure = Failure {
            title: format!("{} ({})", self.class, self.rule),
            message: self.sentence.clone(),
            text: self.in_full(&places),
            place: places.into_iter().next(),
        };
        Case {
            name: format!("{} {where_it_is}", self.class),
            class: self.class,
            verdict: verdict(failure, warnings_fail || self.level == "error"),
        }
    }

    /// As a diagnosis for people says it.
    fn in_a_line(&self) -> String {
        let Self {
            device,
            class,
            sentence,
            ..
        } = self;
        let hint = if self.level == "error" { "" } else { "hint: " };
        let place = self.place.as_ref();
        let place = place.map_or_else(String::new, |place| format!(" ({place})"));
        format!("{device}: {class}: {hint}{sentence}{place}")
    }

    /// With the lines of the checkout that led to it, or else with the place alone.
    fn in_full(&self, places: &[Place]) -> String {
        let Self {
            process,
            device,
            sentence,
            count,
            help,
            ..
        } = self;
        let lines = places
            .iter()
            .map(|Place { file, line }| format!("{file}:{line}"));
        let mut lines: Vec<_> = lines.collect();
        if lines.is_empty() {
            lines.extend(self.place.clone());
        }
        let lines: String = lines.iter().map(|line| format!("  at {line}\n")).collect();
        let times = match count {
            1 => String::new(),
            count => format!(", {count} times"),
        };
        format!("{sentence}\n{lines}  in process {process}, device {device}{times}\nhelp: {help}\n")
    }
}

impl Source {
    /// The line, if it is in the checkout.
    fn place(&self, checkout: &Path) -> Option<Place> {
        let file = fs::canonicalize(&self.file).ok()?;
        let file = file.strip_prefix(checkout).ok()?;
        Some(Place {
            file: file.to_str()?.to_owned(),
            line: self.line,
        })
    }
}

/// The directory that GitHub or GitLab checked out and names in a variable, if the current
/// directory is in it. Otherwise the current directory.
fn checkout() -> Option<PathBuf> {
    let current = env::current_dir().and_then(fs::canonicalize).ok()?;
    let mut named = ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"]
        .into_iter()
        .filter_map(env::var_os)
        .filter_map(|path| fs::canonicalize(path).ok());
    let around = named.find(|path| current.starts_with(path));
    Some(around.unwrap_or(current))
}

fn case(remark: &Remark) -> Case {
    // The formats have levels of their own.
    let text = remark.text.trim_start_matches("warning: ");
    Case {
        name: remark.name.to_owned(),
        class: CLASS.to_owned(),
        verdict: verdict(Failure::in_a_line(CLASS, text), remark.is_wrong),
    }
}

fn verdict(failure: Failure, is_wrong: bool) -> Verdict {
    if is_wrong {
        Verdict::Failed(failure)
    } else {
        Verdict::Doubtful(failure)
    }
}
