//! What is done when a mistake happens, not only at the end: it is recorded for `verbsim exec`, a debugger can stop there,
//! or the program ends.

use std::collections::BTreeSet;
use std::ffi::{CString, c_char};
use std::fs;
use std::hint::black_box;
use std::sync::atomic::Ordering;

use nix::sys::signal::Signal;
use verbs_api::site::Site;
use verbs_api::sync::Mutex;
use verbs_sim::{Certainty, Class, Diagnosis, Finding, Watch};

use crate::at_exit::{self, End};
use crate::engine::{Engine, running};
use crate::output::say;
use crate::{interrupted, verdict};

/// A debugger stops here, by `break verbsim_report`: a mistake has just been made, in this thread, unless it shows only in
/// another one. The text says which.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn verbsim_report(finding: *const c_char) {
    // A call of what does nothing could be left out.
    black_box(finding);
}

/// Which mistakes were recorded.
#[derive(Default)]
pub(crate) struct Recorded {
    /// The classes and places of the mistakes, including those that are suppressed, and whether the
    /// program may still handle them: those count less than others of the same place.
    places: Mutex<BTreeSet<(Class, Option<Site>, bool)>>,
    /// The classes whose help is in the record.
    helped: Mutex<BTreeSet<Class>>,
}

impl Recorded {
    /// Whether a mistake is the first of its kind at its place.
    fn is_new(&self, finding: &Finding) -> bool {
        let place = (finding.class(), finding.site, finding.may_be_handled());
        self.places.lock().insert(place)
    }

    /// Whether the help of this class is not in the record yet.
    fn lacks_help(&self, class: Class) -> bool {
        self.helped.lock().insert(class)
    }
}

/// Learns of mistakes from now on, if the program is diagnosed.
pub(crate) fn watch(engine: &Engine) {
    if engine.config.diagnose().is_some() {
        Watch::on(&engine.sim, noted);
    }
}

/// A mistake was made. The simulator can be asked.
#[cold]
fn noted(finding: &Finding) {
    let Some(engine) = running() else { return };
    // What shows while the diagnosis is written is in it, or too late.
    if engine.is_ending.load(Ordering::Relaxed) {
        return;
    }
    let is_certain = finding.certainty == Certainty::Certain;
    let halts = engine.config.halts_on_error() && is_certain;
    let is_new = is_certain && verdict::is_recorded() && engine.recorded.is_new(finding);
    // The name of a place takes time to find.
    let is_traced = is_traced();
    if !(is_new || halts || is_traced) || at_exit::is_suppressed(engine, finding) {
        return;
    }
    if is_new {
        record(engine, finding);
    }
    if !(halts || is_traced) {
        return;
    }
    let text = finding.in_words(engine);
    let for_c = CString::new(&*text).unwrap_or_default();
    verbsim_report(for_c.as_ptr());
    if halts {
        at_exit::write_once(engine, End::Halted);
        say(format_args!("the program is ended here: {text}"));
        interrupted::set_default(Signal::SIGABRT);
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    }
}

/// Records the lines that the diagnosis would have. The help stands after the first of each class.
///
/// A failure that the program may still handle is a warning: if the process ends without its
/// diagnosis, it is not known whether the program went on.
fn record(engine: &Engine, finding: &Finding) {
    let mut diagnosis = Diagnosis::default();
    let mut finding = finding.clone();
    if finding.may_be_handled() {
        finding.certainty = Certainty::Hint;
    }
    let (class, certainty) = (finding.class(), finding.certainty);
    diagnosis.mistakes.push(finding);
    let lines = at_exit::lines(engine, &diagnosis);
    let last = if engine.recorded.lacks_help(class) {
        usize::MAX
    } else {
        1
    };
    verdict::found(
        certainty,
        &lines.split_inclusive('\n').take(last).collect::<String>(),
    );
}

/// Whether a debugger looks on.
fn is_traced() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}
