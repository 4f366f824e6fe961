//! The traits `Verbs`, `Cm` and `Lab` for a simulation, and the simulator's own functions.

mod call;
mod caller;
mod cm;
pub(crate) mod diagnose;
mod lab;
mod layer;
mod model;
mod sim;
mod trace_args;
mod watch;

pub use diagnose::{Sleeping, Stuck};
pub use layer::{Annotation, Misuse};
pub use model::{Participant, Step, What};
pub use sim::Sim;
