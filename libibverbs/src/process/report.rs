//! Mistakes at the moment they happen: they are recorded for `verbsim exec`, a debugger can stop at
//! them, or the program ends.

use std::collections::BTreeSet;
use std::ffi::{CString, c_char};
use std::fs;
use std::hint::black_box;

use nix::sys::signal::Signal;
use verbs_api::site::Site;
use verbs_api::sync::Mutex;
use verbs_sim::{Certainty, Class, Diagnosis, Finding, Watch};

use super::diagnosis::{self, End};
use super::{json, signals};
use crate::base::output::say;
use crate::base::per_process::PerProcess;
use crate::base::record;
use crate::engine::{Engine, running};

/// A debugger stops here, by `break verbsim_report`, when a mistake has been made by this thread,
/// or by another one if it shows only here. The text describes the mistake.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn verbsim_report(finding: *const c_char) {
    // The compiler could remove a call of a function that does nothing.
    black_box(finding);
}

/// The mistakes that were recorded.
#[derive(Default)]
struct Recorded {
    /// Their classes and places, and whether the program may still handle them. Those count less
    /// than others of the same place, so they are recorded apart. Suppressed mistakes are included.
    places: Mutex<BTreeSet<(Class, Option<Site>, bool)>>,
    /// The classes whose help is in the record.
    helped: Mutex<BTreeSet<Class>>,
}

static RECORDED: PerProcess<Recorded> = PerProcess::new();

/// Asks the engine to report mistakes from now on, if the program is diagnosed.
pub(super) fn watch(engine: &Engine) {
    if engine.config.diagnose().is_some() {
        Watch::on(&engine.sim, noted);
    }
}

/// Handles a mistake. The simulator's lock is free, so it can be asked.
#[cold]
fn noted(finding: &Finding) {
    let Some(engine) = running() else { return };
    // A mistake that shows while the diagnosis is written is in it, or too late.
    if diagnosis::is_written() {
        return;
    }
    let is_certain = finding.certainty == Certainty::Certain;
    let halts = engine.config.halts_on_error() && is_certain;
    let place = (finding.class(), finding.site, finding.may_be_handled());
    let is_first = || RECORDED.get_or_default().places.lock().insert(place);
    let is_new = is_certain && record::is_read() && is_first();
    // Finding the name of a place, for suppressions, takes time. So that comes last.
    let is_traced = is_traced();
    if !(is_new || halts || is_traced) || diagnosis::is_suppressed(finding) {
        return;
    }
    if is_new {
        record_lines(finding);
    }
    if !(halts || is_traced) {
        return;
    }
    let text = finding.in_words(engine);
    let for_c = CString::new(&*text).unwrap_or_default();
    verbsim_report(for_c.as_ptr());
    if halts {
        diagnosis::write_once(engine, End::Halted);
        say(format_args!("the program is ended here: {text}"));
        signals::set_default(Signal::SIGABRT);
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    }
}

/// Records the lines that the diagnosis would have. Only the first of each class has the help.
///
/// A failure that the program may still handle is a warning: if the process ends without its
/// diagnosis, it is not known whether the program handled it.
fn record_lines(finding: &Finding) {
    let mut diagnosis = Diagnosis::default();
    let mut finding = finding.clone();
    if finding.may_be_handled() {
        finding.certainty = Certainty::Hint;
    }
    let (class, certainty) = (finding.class(), finding.certainty);
    diagnosis.mistakes.push(finding);
    let lines = diagnosis::lines(&diagnosis);
    let last = if RECORDED.get_or_default().helped.lock().insert(class) {
        usize::MAX
    } else {
        1
    };
    record::found(
        json::level(certainty),
        &lines.split_inclusive('\n').take(last).collect::<String>(),
    );
}

/// Whether a debugger is attached.
fn is_traced() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}
