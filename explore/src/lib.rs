//! Making rare failures happen, and happen again.
//!
//! A [`Plan`] says what goes wrong on purpose.
#![deny(unsafe_code)]

mod plan;

pub use plan::{InForce, Part, Plan, PlanError};
