//! What is said at the end of a program that is diagnosed, and with which status `exec` ends.

use std::fs::OpenOptions;
use std::io::{self, Write};

use verbs_settings::DiagnoseFormat;

use super::FailOn;
use super::parent::End;
use super::verdict::Facts;
use crate::output::Stop;

/// The program ran, and is not good.
const NOT_GOOD: u8 = 99;

/// What hangs need not wait for RDMA, and some waits are right for ever.
const NONE_IN_TIME: &str = "no mistakes were found; to wait for an asynchronous event, for a request for a connection, \
                            or for what is none of RDMA's is no mistake";

/// How a run is judged.
pub(super) struct Judge<'a> {
    /// Where the processes write their diagnoses.
    pub(super) diagnosis: &'a str,
    pub(super) format: DiagnoseFormat,
    pub(super) fail_on: Option<FailOn>,
    pub(super) allow_unused: bool,
}

impl Judge<'_> {
    /// Says what the processes cannot say themselves. A program that ended by itself may get another status; one that
    /// was ended has failed anyway, and its status says more.
    pub(super) fn judge(&self, end: End, facts: &Facts) -> Stop {
        if let Some(text) = undiagnosed(end, facts) {
            self.say(&text);
        } else if self.diagnosis == "-" && facts.unused().is_none() && facts.findings() == 0 {
            self.say(match end {
                End::TimedOut => NONE_IN_TIME,
                _ => "no mistakes were found",
            });
        }
        let stop = of_program(end);
        let unused = facts.unused().filter(|_| !self.allow_unused);
        match (end, unused) {
            (End::Status(_), Some(why)) => Stop::Status {
                status: NOT_GOOD,
                message: Some(why.to_owned()),
            },
            (End::Status(_), None) if self.is_failure(facts) => Stop::Status {
                status: NOT_GOOD,
                message: None,
            },
            (_, Some(why)) => {
                eprintln!("error: {why}");
                stop
            }
            _ => stop,
        }
    }

    fn is_failure(&self, facts: &Facts) -> bool {
        match self.fail_on {
            Some(FailOn::Error) => facts.errors > 0,
            Some(FailOn::Warning) => facts.findings() > 0,
            None => false,
        }
    }

    /// Says it where the diagnosis is, unless that is for programs.
    fn say(&self, text: &str) {
        let to = self.diagnosis;
        // In one piece: processes that are still there may write too.
        let line = format!("verbsim: {text}\n");
        let said = match to {
            to if to == "-" || self.format == DiagnoseFormat::Json => {
                io::stderr().write_all(line.as_bytes())
            }
            path => {
                let file = OpenOptions::new().append(true).open(path);
                file.and_then(|mut file| file.write_all(line.as_bytes()))
            }
        };
        if let Err(error) = said {
            eprintln!("error: {to}: {error}");
        }
    }
}

/// With the status of the program, or 128 and the signal that ended it.
pub(super) fn of_program(end: End) -> Stop {
    let (status, message) = match end {
        End::Status(code) => (code, None),
        End::Signal(signal) => (128 + signal as u8, None),
        End::TimedOut => (
            124,
            Some("the program took too long, and was ended".to_owned()),
        ),
    };
    Stop::Status { status, message }
}

/// A process that could not say what it did is not one without mistakes.
fn undiagnosed(end: End, facts: &Facts) -> Option<String> {
    let processes = match facts.undiagnosed() {
        0 if facts.ended > 0 || !matches!(end, End::Signal(_)) => return None,
        1 => "1 process".to_owned(),
        count => format!("{count} processes"),
    };
    Some(match end {
        End::Signal(signal) => {
            format!("signal {signal} ended the program before it could be diagnosed")
        }
        _ => format!(
            "{processes} with a device could not be diagnosed: ended by _exit, execve or a signal, \
             or still running"
        ),
    })
}
