//! Tells `verbsim exec` what became of this process: whether it loaded the library, used a device, and what was found
//! at its end.
//!
//! Each fact is a line in a file that `exec` keeps open, named by a variable. By a descriptor alone it would be lost to
//! programs whose parent closes all descriptors, as Python's `subprocess` and `mpirun` do.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use verbs_sim::{Certainty, Diagnosis, Finding};

use crate::engine::Engine;

const VARIABLE: &str = "VERBSIM_VERDICT";

/// How the kernel calls the file of `exec`.
const FILE: &[u8] = b"/memfd:verbsim-verdict";

/// What the variable said when the library was loaded: programs change their variables.
static PATH: OnceLock<Option<OsString>> = OnceLock::new();

/// The library has been loaded.
pub(crate) fn loaded() {
    say("loaded");
}

/// A context has been opened, or an object of the parent's was named. The first of a process counts.
pub(crate) fn opened(engine: &Engine) {
    if !engine.is_used.swap(true, Ordering::Relaxed) {
        say("opened");
    }
}

/// The process ends, and was diagnosed. Without a device there is little to diagnose, but what was found counts.
pub(crate) fn ended(engine: &Engine, diagnosis: &Diagnosis) {
    let (errors, warnings) = counts(diagnosis);
    if engine.is_used.load(Ordering::Relaxed) {
        say(&format!("ended {errors} {warnings}"));
    } else if !diagnosis.is_empty() {
        say(&format!("found {errors} {warnings}"));
    }
}

/// How many errors were found, and how many warnings.
fn counts(diagnosis: &Diagnosis) -> (usize, usize) {
    let is_certain = |finding: &&Finding| finding.certainty == Certainty::Certain;
    let all = diagnosis.findings().count();
    let errors = diagnosis.findings().filter(is_certain).count();
    (errors, all - errors)
}

fn say(line: &str) {
    let Some(path) = PATH.get_or_init(|| std::env::var_os(VARIABLE)) else {
        return;
    };
    // `exec` may be gone, and the name another's.
    let is_its =
        fs::read_link(path).is_ok_and(|file| file.as_os_str().as_bytes().starts_with(FILE));
    if is_its && let Ok(mut file) = OpenOptions::new().append(true).open(path) {
        // Nobody is there to be told.
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}
