//! What lets threads use a fabric: its lock, waiting, the machine's clock, and the thread that fires timers.

pub(crate) mod clock;
pub(crate) mod idle;
pub(crate) mod roster;
mod shared;
pub(crate) mod timer_thread;

pub(crate) use shared::Runtime;
