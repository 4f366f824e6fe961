//! Signals to the supervisor: they are meant for the program.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

use libc::{c_int, c_void, siginfo_t};

/// Signals that end programs.
const SIGNALS: [c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// How many have come.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The last one that a process has sent, and that is not passed on. Those of the terminal reach the
/// program, too, which is in the same group.
static SENT: AtomicI32 = AtomicI32::new(0);

/// Notes the signals that end programs, until it is dropped.
pub(crate) struct Signals {
    before: Vec<(c_int, libc::sigaction)>,
}

impl Signals {
    pub(crate) fn note() -> Self {
        COUNT.store(0, Ordering::Relaxed);
        SENT.store(0, Ordering::Relaxed);
        let set = |signal: c_int| {
            let mut before = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: zeros are an action without flags; the handler does only what handlers may;
            // there is room for the action before, which zeros are, too.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = noted as extern "C" fn(_, _, _) as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO;
                libc::sigaction(signal, &raw const action, before.as_mut_ptr());
                (signal, before.assume_init())
            }
        };
        Self {
            before: SIGNALS.map(set).into(),
        }
    }

    /// A signal that is to be passed on.
    pub(crate) fn take(&self) -> Option<c_int> {
        let sent = SENT.swap(0, Ordering::Relaxed);
        (sent != 0).then_some(sent)
    }

    /// Whether the first one was not enough.
    pub(crate) fn insist(&self) -> bool {
        COUNT.load(Ordering::Relaxed) > 1
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: the action was in force before.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
    }
}

extern "C" fn noted(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes the information about the signal.
    let is_sent = unsafe { (*info).si_code } <= 0;
    if is_sent {
        SENT.store(signal, Ordering::Relaxed);
    }
    COUNT.fetch_add(1, Ordering::Relaxed);
}
