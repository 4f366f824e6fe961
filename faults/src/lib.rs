//! Fault plans: lists of fault rules that can be written down, put in force, repeated exactly, and
//! made smaller.
//!
//! A [`Plan`] is made by [`Plan::new`], read from a file ([`Plan::parse`]), or the
//! [standard](Plan::standard) one. It prints as its file; `docs/faults.md` describes the format.
//!
//! ```
//! use verbs_api::lab::{Fault, PacketFilter};
//! use verbs_faults::Plan;
//!
//! let plan = Plan::new(vec![Fault::drop(PacketFilter::EVERY.to(1)).nth(3)])?;
//! assert_eq!(Plan::parse("plan.toml", &plan.to_string()).unwrap(), plan);
//! # Ok::<(), verbs_api::Error>(())
//! ```
#![deny(unsafe_code)]

mod plan;
mod read;
#[cfg(feature = "proptest")]
pub mod strategy;
mod write;

pub use plan::{InForce, Part, Plan};
pub use read::PlanError;

/// The program of the document of the format.
#[cfg(doctest)]
#[doc = include_str!("../../docs/faults.md")]
struct Document;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
