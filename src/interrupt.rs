//! Ctrl-C: what has begun ends, and what was done is shown.

use std::ops::ControlFlow;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// The status of what Ctrl-C ended, as shells have it.
pub(crate) const STATUS: u8 = 130;

/// From now on Ctrl-C only asks; a second one ends the program.
pub(crate) fn listen() {
    let asked = || {
        if ASKED.swap(true, Ordering::Relaxed) {
            process::exit(STATUS.into());
        }
    };
    // Without a handler Ctrl-C ends the program at once, as it does others.
    let _ = ctrlc::set_handler(asked);
}

/// Whether to go on.
pub(crate) fn go_on() -> ControlFlow<()> {
    if ASKED.load(Ordering::Relaxed) {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}
