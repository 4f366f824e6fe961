//! What a thread has run: other work on the machine takes nothing of it.

use std::time::Duration;

/// Processor time of this thread.
#[cfg(target_os = "linux")]
pub(crate) fn of_thread() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Where there is no such clock, the time that passes.
#[cfg(not(target_os = "linux"))]
pub(crate) fn of_thread() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}
