//! Runs a test under many seeds and injected faults, and repeats a failure exactly.
//!
//! An [`Exploration`] runs a test in many simulations, each with a seed of its own, under a
//! [`Plan`](verbs_faults::Plan) of faults. If a run fails, the exploration looks for the smallest
//! set of faults that makes it fail, and returns a [`Replay`] that repeats the failure. [`Checked`]
//! is a device around another one, and checks invariants on each call. Module `program` (feature
//! `programs`) generates random programs, which explore the device itself.
//!
//! ```
//! use verbs_explore::Exploration;
//!
//! let explored = Exploration::new("opens").seeds(0..100).run(|world| {
//!     let context = world.verbs().open_device("sim0").map_err(|error| error.to_string())?;
//!     world.verbs().close_device(context).map_err(|error| error.to_string())
//! });
//! assert_eq!(explored.unwrap().tried, 100);
//! ```
//!
//! `docs/exploration.md` is the guide.
#![deny(unsafe_code)]

mod checked;
mod coverage;
mod exploration;
mod idle;
mod panics;
#[cfg(feature = "programs")]
pub mod program;
mod replay;
mod seeds;
mod shrink;

pub use checked::{Broken, Checked, Invariant, Summary};
pub use coverage::Coverage;
pub use exploration::{Exploration, Explored, Found, REPLAY, Trial, World};
pub use replay::{Replay, ReplayError};
pub use seeds::{NoShard, Searched, Seeds, Shard};
pub use shrink::shrink;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
