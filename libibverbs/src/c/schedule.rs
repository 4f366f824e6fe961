//! Points of a schedule: before and after each verb another thread may go on.

use std::sync::atomic::{AtomicBool, Ordering};

use verbs_settings::is_scheduled;

/// Whether this process runs by a schedule.
static IS_SCHEDULED: AtomicBool = AtomicBool::new(false);

/// The argument of a `sched_yield` that is a point: see `verbs_schedule::POINT`.
const POINT: u64 = 0x0076_5f70_6f69_6e74;

/// The argument of a `sched_yield` of a thread that has found nothing: see `verbs_schedule::EMPTY`.
const EMPTY: u64 = 0x0076_5f65_6d70_7479;

/// Reads whether there is a schedule. Called when the library is loaded.
pub(crate) fn load() {
    IS_SCHEDULED.store(is_scheduled(), Ordering::Relaxed);
}

/// Lets another thread go on, if the schedule wants that.
#[inline]
pub(crate) fn point() {
    if IS_SCHEDULED.load(Ordering::Relaxed) {
        stop(POINT, 0);
    }
}

/// The thread has polled the CQ at this address, and found nothing: others go first if it polls
/// again and again.
#[inline]
pub(crate) fn found_nothing(cq: usize) {
    if IS_SCHEDULED.load(Ordering::Relaxed) {
        stop(EMPTY, cq as u64);
    }
}

#[cold]
fn stop(why: u64, at: u64) {
    // SAFETY: the call changes nothing of this process.
    unsafe { libc::syscall(libc::SYS_sched_yield, why, at) };
}
