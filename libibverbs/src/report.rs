//! What is done when a mistake happens, not only at the end: a debugger can stop there, or the program ends.

use std::ffi::{CString, c_char};
use std::fs;
use std::hint::black_box;
use std::io::{self, Write};
use std::sync::atomic::Ordering;

use nix::sys::signal::Signal;
use verbs_sim::{Certainty, Finding, Watch};

use crate::at_exit::{self, End};
use crate::engine::{Engine, running};
use crate::interrupted;

/// A debugger stops here, by `break verbsim_report`: a mistake has just been made, in this thread, unless it shows only in
/// another one. The text says which.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn verbsim_report(finding: *const c_char) {
    // A call of what does nothing could be left out.
    black_box(finding);
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
    // Names of places take time, which others should not have to wait.
    if !(halts || is_traced()) || at_exit::is_suppressed(engine, finding) {
        return;
    }
    let text = finding.in_words(engine);
    let for_c = CString::new(&*text).unwrap_or_default();
    verbsim_report(for_c.as_ptr());
    if halts {
        at_exit::write_once(engine, End::Halted);
        // Nobody may be there to read it.
        let _ = writeln!(io::stderr(), "verbsim: the program is ended here: {text}");
        interrupted::set_default(Signal::SIGABRT);
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    }
}

/// Whether a debugger looks on.
fn is_traced() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let tracer = status
        .lines()
        .find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}
