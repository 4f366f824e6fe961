//! What is said at the end of a program that is diagnosed, and with which status `exec` ends.

use std::fs::OpenOptions;
use std::io::{self, Write};

use verbs_settings::DiagnoseFormat;

use super::FailOn;
use super::parent::{End, Ended};
use super::verdict::{Facts, Process};
use crate::output::{self, Stop};

/// The program ran, and is not good.
const NOT_GOOD: u8 = 99;

/// A hang need not come of RDMA, and some waits are right for ever.
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
    /// Says what the processes cannot say themselves. A program that ended by itself may get
    /// another status; one that was ended has failed anyway, and its status says more.
    pub(super) fn judge(&self, ended: Ended, facts: &Facts) -> Stop {
        let is_told = self.tell(ended, facts);
        let stop = of_program(ended.how);
        let unused = facts.unused().filter(|_| !self.allow_unused);
        match (ended.how, unused) {
            (End::Status(_), Some(why)) => Stop::Status {
                status: NOT_GOOD,
                message: Some(why),
            },
            (End::Status(_), None) if !is_told || self.is_failure(facts) => Stop::Status {
                status: NOT_GOOD,
                message: None,
            },
            (_, Some(why)) => {
                output::note(format_args!("error: {why}"));
                stop
            }
            _ => stop,
        }
    }

    fn is_failure(&self, facts: &Facts) -> bool {
        let (errors, mut warnings) = facts.found();
        warnings += usize::from(self.fell_back(facts).is_some());
        match self.fail_on {
            Some(FailOn::Error) => errors > 0,
            Some(FailOn::Warning) => errors + warnings > 0,
            None => false,
        }
    }

    fn fell_back(&self, facts: &Facts) -> Option<&'static str> {
        facts.fell_back().filter(|_| !self.allow_unused)
    }

    /// Whether all is told that was found, by the processes or here.
    fn tell(&self, ended: Ended, facts: &Facts) -> bool {
        let mut is_told = !facts.is_full;
        for process in facts.undiagnosed() {
            is_told &= self.say(&remark(process, ended), &process.recorded);
        }
        for process in facts.failed_to_write() {
            let what = process.unwritten.join("; ");
            self.say(&format!("{} could not write {what}", process.who()), &[]);
            is_told = false;
        }
        if facts.is_full {
            self.say(
                "there were more mistakes or processes than the record of the run holds",
                &[],
            );
        }
        if facts.unused().is_none() {
            for foreign in facts.foreign() {
                is_told &= self.say(&foreign, &[]);
            }
        }
        let mut is_any_said = !is_told || facts.undiagnosed().next().is_some();
        // A program that was ended may not have come to its queue pairs yet.
        if let (End::Status(_), Some(why)) = (ended.how, self.fell_back(facts)) {
            is_told &= self.say(why, &[]);
            is_any_said = true;
        }
        match ended.how {
            _ if is_any_said => {}
            End::Signal(signal) if !facts.is_diagnosed() => {
                let text =
                    format!("signal {signal} ended the program before it could be diagnosed");
                is_told &= self.say(&text, &[]);
            }
            how if self.diagnosis == "-" && facts.unused().is_none() && facts.found() == (0, 0) => {
                is_told &= self.say(
                    match how {
                        End::TimedOut => NONE_IN_TIME,
                        _ => "no mistakes were found",
                    },
                    &[],
                );
            }
            _ => {}
        }
        is_told
    }

    /// Writes a remark, and lines of a diagnosis after it, where the diagnosis is. A diagnosis for
    /// programs has no remarks. Whether everything is written.
    fn say(&self, remark: &str, lines: &[String]) -> bool {
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let remark = format!("verbsim: {remark}\n");
        // In one piece: processes that still run may write too.
        let (remarks, diagnosis) = match self.format {
            DiagnoseFormat::Json => (remark, lines),
            _ => (String::new(), remark + &lines),
        };
        let is_written = write("-", &remarks) & write(self.diagnosis, &diagnosis);
        if !is_written && self.diagnosis != "-" {
            // The text is not lost if there is another place for it.
            write("-", &diagnosis);
        }
        is_written
    }
}

/// Whether the text is written. A standard error that nobody reads is no failure.
fn write(to: &str, text: &str) -> bool {
    let written = match to {
        "-" => io::stderr().write_all(text.as_bytes()),
        _ if text.is_empty() => Ok(()),
        path => {
            let file = OpenOptions::new().append(true).open(path);
            file.and_then(|mut file| file.write_all(text.as_bytes()))
        }
    };
    match written {
        Err(error) if to == "-" => error.kind() == io::ErrorKind::BrokenPipe,
        Err(error) => {
            output::note(format_args!("error: {to}: {error}"));
            false
        }
        Ok(()) => true,
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

/// Why a process has no diagnosis of its own. Causes that are not known are not named.
fn remark(process: &Process, ended: Ended) -> String {
    let who = process.who();
    let missing = match ended.how {
        _ if process.still_runs => {
            format!("{who} still runs, and is not diagnosed (--wait waits for its end)")
        }
        End::Signal(signal) if ended.program == process.id => {
            format!("signal {signal} ended {who} before it could be diagnosed")
        }
        _ => format!("{who} ended without a diagnosis: what only its end shows is missing"),
    };
    if process.recorded.is_empty() {
        missing
    } else {
        format!("{missing}; what it did wrong before:")
    }
}
