//! Ctrl-C: what has begun ends, and what was done is shown.

use std::ops::ControlFlow;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// The status of what Ctrl-C ended, as shells have it.
pub(crate) const STATUS: u8 = 130;

/// From now on Ctrl-C only asks, and calls `asked`; a second one calls `insists`, and ends the
/// program. They are called in a thread of their own.
pub(crate) fn listen(
    asked: impl Fn() + Send + 'static,
    mut insists: impl FnMut() + Send + 'static,
) {
    let handler = move || {
        if ASKED.swap(true, Ordering::Relaxed) {
            insists();
            process::exit(STATUS.into());
        }
        asked();
    };
    // Without a handler Ctrl-C ends the program at once, as it does others.
    let _ = ctrlc::set_handler(handler);
}

/// Whether to go on.
pub(crate) fn go_on() -> ControlFlow<()> {
    if ASKED.load(Ordering::Relaxed) {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}
