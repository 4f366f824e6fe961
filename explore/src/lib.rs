//! Making rare failures happen, and happen again.
//!
//! A [`Plan`] says what goes wrong on purpose. [`Checked`] finds what is wrong with a device by
//! invariants alone, whatever the program does; [`program`] makes random ones.
#![deny(unsafe_code)]

mod checked;
mod plan;
pub mod program;

pub use checked::{Broken, Checked, Invariant, Summary};
pub use plan::{InForce, Part, Plan, PlanError};
