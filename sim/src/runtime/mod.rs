//! Everything that lets threads share a fabric: its lock, waits, the machine's clock, and the timer
//! thread.

pub(crate) mod clock;
pub(crate) mod idle;
pub(crate) mod roster;
mod shared;
pub(crate) mod timer_thread;
mod watch;

pub(crate) use shared::Runtime;
pub use watch::Watch;
