//! Making rare failures happen, and happen again.
//!
//! An [`Exploration`] runs a test in many simulations, a seed each, under a
//! [`Plan`](verbs_faults::Plan) of what goes wrong on purpose. Where it fails, it finds the fewest
//! faults with which it does, and gives a [`Replay`] that brings the failure back. [`Checked`]
//! finds what is wrong with a device by invariants alone, whatever the program does; `program`
//! makes random ones (feature `programs`).
#![deny(unsafe_code)]

mod checked;
mod exploration;
mod idle;
mod panics;
#[cfg(feature = "programs")]
pub mod program;
mod replay;
mod seeds;
mod shrink;

pub use checked::{Broken, Checked, Invariant, Summary};
pub use exploration::{Exploration, Explored, Found, REPLAY, Trial, World};
pub use replay::{Replay, ReplayError};
pub use seeds::{NoShard, Searched, Seeds, Shard};
pub use shrink::shrink;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
