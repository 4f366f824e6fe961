//! The end of a process by `exit`.

use verbs_settings::Config;

use super::diagnosis::{self, End, has_output, write_once};
use super::signals;
use crate::engine::running;

/// Opens the files that are written at the end, and registers for it if there is something to do.
pub(super) fn register(config: &Config) {
    diagnosis::open(config);
    let is_needed = has_output(config) || !config.fabric().is_private();
    // Miri has no `atexit`.
    if is_needed && !cfg!(miri) {
        // SAFETY: the function is of the right type and stays, as the library does.
        unsafe { libc::atexit(at_exit) };
    }
}

/// Sends the packets that still wait to leave for other processes, and writes the trace and the
/// diagnosis.
extern "C" fn at_exit() {
    let Some(engine) = running() else { return };
    engine.sim.send_waiting();
    write_once(engine, End::ByItself);
    signals::wait_if_ending();
}
