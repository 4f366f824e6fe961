//! The traits `Verbs`, `Cm` and `Lab` for a simulation, and the simulator's own functions.

mod call;
mod caller;
mod cm;
#[cfg_attr(any(), mutants::skip)] // texts
pub(crate) mod diagnose;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod lab;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod model;
mod sim;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod threads;
#[cfg_attr(any(), mutants::skip)] // texts
mod trace_args;
mod view;
#[cfg_attr(any(), mutants::skip)] // texts
mod watch;

pub use diagnose::{Annotation, BlockedThread, Misuse, WaitGuard};
pub use model::{Step, What};
pub use sim::Sim;
pub use threads::{JoinHandle, KnownThread, Threads};
