//! The report at the end of a program that is diagnosed, and the exit status of `exec`.

use std::fs::OpenOptions;
use std::io::{self, Write};

use verbs_settings::DiagnoseFormat;

use super::FailOn;
use super::parent::{End, Ended};
use super::report::Report;
use super::verdict::{Facts, Process};
use crate::output::{self, Stop};

/// The program ran, and is not good.
const NOT_GOOD: u8 = 99;

const NONE: &str = "no mistakes were found";

/// A hang may have a cause other than RDMA, and a program may wait without end on purpose.
const NONE_IN_TIME: &str = "no mistakes were found; to wait for an asynchronous event, for a connection request, \
                            or for something other than RDMA is not a mistake";

const TOO_LONG: &str = "the program ran longer than --timeout, and was killed";

const DEADLOCK: &str = "the program cannot go on under this schedule, and was killed";

const OUT_OF_TIME: &str = "the program ran longer than --virtual-timeout, and was killed";

/// How a run is judged.
pub(super) struct Judge<'a> {
    /// Where the processes write their diagnoses.
    pub(super) diagnosis: &'a str,
    pub(super) format: DiagnoseFormat,
    pub(super) fail_on: Option<FailOn>,
    pub(super) allow_unused: bool,
    /// The document that is made of the diagnoses, if one is asked for.
    pub(super) report: Option<Report>,
}

/// Something that the processes cannot say themselves.
pub(super) struct Remark {
    /// What happened, in words that are the same in each run.
    pub(super) name: &'static str,
    pub(super) text: String,
    /// Lines of a diagnosis that follow it.
    lines: Vec<String>,
    /// The run is not good because of it.
    pub(super) is_wrong: bool,
}

impl Remark {
    pub(super) fn new(name: &'static str, text: impl Into<String>, is_wrong: bool) -> Self {
        Self {
            name,
            text: text.into(),
            lines: Vec::new(),
            is_wrong,
        }
    }
}

impl Judge<'_> {
    /// Says what the processes cannot say themselves. A program that ended by itself may get
    /// another status; one that was ended has failed anyway, and its status says more.
    pub(super) fn judge(&self, ended: Ended, facts: &Facts) -> Stop {
        let mut remarks = self.remarks(ended, facts);
        // What is not recorded or not written is lost.
        let mut is_told = !facts.is_full && facts.failed_to_write().next().is_none();
        for remark in &remarks {
            // Without mistakes nothing is lost.
            is_told &= self.say(remark) || remark.name == NONE;
        }
        let unused = facts.unused().filter(|_| !self.allow_unused);
        if let Some(report) = &self.report {
            // A program that was ended may not have opened its devices yet, and it counts as
            // failed.
            let counted = unused.iter().filter(|_| ended.is_by_itself());
            let name = "the program used no RDMA device";
            remarks.extend(counted.map(|why| Remark::new(name, why, true)));
            let fails = self.fail_on == Some(FailOn::Warning);
            is_told &= report.write(failure(ended.how), &remarks, fails);
        }
        let End::Status(status) = ended.how else {
            if let Some(why) = unused {
                output::note(format_args!("error: {why}"));
            }
            return of_program(ended.how);
        };
        // A program that failed before it opened a device, such as for a wrong option, says why by
        // its status.
        let is_untested = unused.is_some() && status == 0;
        let is_good = is_told && !is_untested && !self.is_failure(facts);
        Stop::Status {
            status: if is_good { status } else { NOT_GOOD },
            message: unused,
        }
    }

    /// The program could not be started.
    pub(super) fn not_started(&self, why: &str) {
        if let Some(report) = &self.report {
            report.write(Some(why.to_owned()), &[], false);
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

    fn remarks(&self, ended: Ended, facts: &Facts) -> Vec<Remark> {
        let undiagnosed = facts.undiagnosed();
        let undiagnosed = undiagnosed.map(|process| without_diagnosis(process, ended));
        let mut remarks: Vec<_> = undiagnosed.collect();
        for process in facts.failed_to_write() {
            let what = process.unwritten.join("; ");
            let text = format!("{} could not write {what}", process.who());
            let name = "a process could not write everything";
            remarks.push(Remark::new(name, text, true));
        }
        if facts.is_full {
            let text = "there were more mistakes or processes than the record of the run holds";
            remarks.push(Remark::new("the record of the run is full", text, true));
        }
        // A process with a library of its own says nothing about the others.
        let is_clean = remarks.is_empty();
        if facts.unused().is_none() {
            let name = "a process has a libibverbs or librdmacm of its own";
            remarks.extend(facts.foreign().map(|text| Remark::new(name, text, false)));
        }
        // A program that was ended may not have come to its queue pairs yet.
        let fell_back = self.fell_back(facts).filter(|_| ended.is_by_itself());
        match (ended.how, fell_back) {
            (_, Some(why)) => {
                let is_wrong = self.fail_on == Some(FailOn::Warning);
                let name = "devices were opened, and no process created a queue pair";
                remarks.push(Remark::new(name, why, is_wrong));
            }
            _ if !is_clean => {}
            (End::Signal(signal), None) if !facts.is_diagnosed() => {
                let name = "a signal ended the program before it could be diagnosed";
                let text =
                    format!("signal {signal} ended the program before it could be diagnosed");
                // The signal is the failure.
                remarks.push(Remark::new(name, text, false));
            }
            (how, None)
                if self.diagnosis == "-" && facts.unused().is_none() && facts.found() == (0, 0) =>
            {
                let text = match how {
                    End::TimedOut | End::Deadlock | End::OutOfTime => NONE_IN_TIME,
                    _ => NONE,
                };
                remarks.push(Remark::new(NONE, text, false));
            }
            _ => {}
        }
        remarks
    }

    /// Writes a remark, and the lines after it, where the diagnosis is. A diagnosis for programs
    /// has no remarks. Returns whether everything is written.
    fn say(&self, remark: &Remark) -> bool {
        let lines = remark.lines.iter().map(|line| format!("{line}\n"));
        let lines: String = lines.collect();
        let text = match &self.report {
            // It is in the document.
            Some(report) if report.is_log() => String::new(),
            _ => format!("verbsim: {}\n", remark.text),
        };
        // In one piece: processes that still run may write too.
        let (remarks, diagnosis) = match self.format {
            DiagnoseFormat::Text => (String::new(), text + &lines),
            _ => (text, lines),
        };
        let is_written = write("-", &remarks) & write(self.diagnosis, &diagnosis);
        if !is_written && self.diagnosis != "-" {
            // The text is not lost if there is another place for it.
            write("-", &diagnosis);
        }
        is_written
    }
}

/// Writes a text. Returns whether it is written, or goes to a standard error whose reader has
/// closed it.
pub(super) fn write(to: &str, text: &str) -> bool {
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

/// How the program failed, if it did.
fn failure(end: End) -> Option<String> {
    match end {
        End::Status(0) => None,
        End::Status(code) => Some(format!("the program ended with status {code}")),
        End::Signal(signal) => Some(format!("signal {signal} ended the program")),
        End::TimedOut => Some(TOO_LONG.to_owned()),
        End::Deadlock => Some(DEADLOCK.to_owned()),
        End::OutOfTime => Some(OUT_OF_TIME.to_owned()),
    }
}

/// With the status of the program, or 128 and the signal that ended it.
pub(super) fn of_program(end: End) -> Stop {
    let (status, message) = match end {
        End::Status(code) => (code, None),
        End::Signal(signal) => (128 + signal as u8, None),
        End::TimedOut | End::Deadlock | End::OutOfTime => (124, failure(end)),
    };
    Stop::Status { status, message }
}

/// Why a process has no diagnosis of its own. Causes that are not known are not named.
fn without_diagnosis(process: &Process, ended: Ended) -> Remark {
    let who = process.who();
    let (name, missing) = match ended.how {
        _ if process.still_runs => (
            "a process still runs",
            format!("{who} still runs, and is not diagnosed (--wait waits for its end)"),
        ),
        End::Signal(signal) if ended.program == process.id => (
            "a signal ended a process before it could be diagnosed",
            format!("signal {signal} ended {who} before it could be diagnosed"),
        ),
        _ => (
            "a process ended without a diagnosis",
            format!("{who} ended without a diagnosis: what only its end shows is missing"),
        ),
    };
    let text = if process.recorded.is_empty() {
        missing
    } else {
        format!("{missing}; what it did wrong before:")
    };
    Remark {
        lines: process.recorded.clone(),
        ..Remark::new(name, text, false)
    }
}
