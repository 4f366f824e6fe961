//! Everything that lets threads share a fabric: its lock, waits, the machine's clock, and the timer
//! thread.

#[cfg_attr(any(), mutants::skip)] // controls of tests
mod all_wait;
#[cfg_attr(any(), mutants::skip)] // controls of tests
pub(crate) mod clock;
#[cfg_attr(any(), mutants::skip)] // controls of tests
pub(crate) mod idle;
#[cfg_attr(any(), mutants::skip)] // controls of tests
pub(crate) mod roster;
mod shared;
#[cfg_attr(any(), mutants::skip)] // controls of tests
pub(crate) mod timer_thread;
#[cfg_attr(any(), mutants::skip)] // controls of tests
pub(crate) mod turns;
mod watch;

pub(crate) use shared::Runtime;
pub use watch::Watch;
