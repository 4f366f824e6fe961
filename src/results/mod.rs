//! Results in the formats that continuous integration shows.
//!
//! A command turns what it found into a [`Suite`]; each file here writes suites in one format.

pub(crate) mod github;
pub(crate) mod junit;
#[cfg(target_os = "linux")]
pub(crate) mod sarif;

use clap::ValueEnum;

/// How a command that judges shows its results. Other commands have
/// [`output::Format`](crate::output::Format).
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// For programs; `verbsim help json` describes it
    Json,
    /// JUnit XML, which most systems for continuous integration read; see `verbsim help ci`
    Junit,
    /// Annotations of GitHub Actions for what failed, and a summary; see `verbsim help ci`
    Github,
}

/// Results that belong together.
pub(crate) struct Suite {
    pub(crate) name: String,
    /// Names and values of what it was about. JUnit XML alone has them.
    pub(crate) properties: Vec<(String, String)>,
    pub(crate) cases: Vec<Case>,
}

/// One result.
pub(crate) struct Case {
    /// What was judged. As far as possible the same in each run, so that runs can be compared.
    pub(crate) name: String,
    /// What `name` is part of.
    pub(crate) class: String,
    pub(crate) verdict: Verdict,
}

/// How a case ended.
pub(crate) enum Verdict {
    Passed,
    /// Why it was not judged, or why its failure does not count.
    Skipped(String),
    /// It may be right, and does not fail the run.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(
            dead_code,
            reason = "only `exec` has such cases, which runs programs on Linux only"
        )
    )]
    Doubtful(Failure),
    Failed(Failure),
}

/// What was wrong.
pub(crate) struct Failure {
    /// What kind of failure it is, in a few words.
    pub(crate) title: String,
    /// What is wrong, in one line.
    pub(crate) message: String,
    /// What is wrong, in full.
    pub(crate) text: String,
    /// Where in the sources of the user.
    pub(crate) place: Option<Place>,
}

/// A line of a file.
pub(crate) struct Place {
    /// Relative to the directory that the system for continuous integration checked out.
    pub(crate) file: String,
    /// Counts from 1.
    pub(crate) line: u32,
}

impl Failure {
    /// A failure that one line says all about.
    pub(crate) fn in_a_line(title: impl Into<String>, line: impl Into<String>) -> Self {
        let line = line.into();
        Self {
            title: title.into(),
            message: line.clone(),
            text: line,
            place: None,
        }
    }
}
