//! The traits `Verbs`, `Cm` and `Lab` on a simulation, and what the simulator has beyond them.

mod call;
mod caller;
mod cm;
pub(crate) mod diagnose;
mod lab;
mod layer;
mod model;
mod sim;
mod trace_args;
pub(crate) mod watch;

pub use diagnose::{Sleeping, Stuck};
pub use layer::{Annotation, Misuse};
pub use model::{Participant, Step, What};
pub use sim::Sim;
pub use watch::Watch;
