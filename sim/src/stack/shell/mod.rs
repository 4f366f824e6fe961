//! The node, and what surrounds it: the fabric, its lock, its clock, and the traits.

mod call;
mod caller;
mod clock;
#[cfg(feature = "fd")]
mod descriptor;
mod fabric;
mod lab;
mod model;
mod node;
mod roster;
mod say;
mod sim;
mod timer_thread;
mod world;

pub use model::{Participant, Step, What};
pub use node::Alone;
pub use sim::Sim;
