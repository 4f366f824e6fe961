//! The processor time of a thread, which other programs on the machine do not affect.

use std::time::Duration;

/// The processor time of this thread.
#[cfg(target_os = "linux")]
pub(crate) fn of_thread() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The elapsed time, on systems without a clock of the thread.
#[cfg(not(target_os = "linux"))]
pub(crate) fn of_thread() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}
