//! The node, and what surrounds it: the fabric, its lock, its clock, and the traits.

#[cfg(test)]
mod alike;
#[cfg(feature = "network")]
mod border;
mod call;
mod caller;
mod clock;
mod cm;
mod deadlines;
#[cfg(feature = "fd")]
mod descriptor;
mod diagnose;
mod fabric;
mod idle;
#[cfg(feature = "network")]
mod joined;
mod lab;
mod layer;
mod model;
mod node;
#[cfg(feature = "network")]
mod receiver;
mod roster;
mod say;
mod sim;
#[cfg(feature = "network")]
mod sockets;
#[cfg(test)]
mod tally;
mod timer_thread;
#[cfg(all(test, feature = "network"))]
mod turns;
mod watch;
mod world;

pub use diagnose::{Sleeping, Stuck};
pub use layer::{Annotation, Misuse};
pub use model::{Participant, Step, What};
pub use node::Alone;
pub use sim::Sim;
pub use watch::Watch;
