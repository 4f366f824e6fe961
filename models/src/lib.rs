//! Model checking of event loops against a simulated RDMA device.
//!
//! A *model* is a small program of two to four threads on the simulator. [`check`] tries its
//! interleavings: all of them in a build with `--cfg loom`, a sample of them with `--cfg shuttle`,
//! and one without either, so that models are ordinary tests too. Everything that a program can
//! observe of the device (a post, a completion, an arming, an event, an acknowledgement, a destroy)
//! is a point where another thread may come in between.
//!
//! ```
//! use verbs_api::{Arm, ErrorKind, Verbs, Wait, Wc};
//!
//! verbs_models::check(|harness| {
//!     let cq = harness.cq(4)?;
//!     let link = harness.link(cq, 2)?;
//!     harness.spawn("loop", move |harness| {
//!         let (verbs, mut left) = (harness.sim(), 2);
//!         loop {
//!             verbs.req_notify_cq(cq, Arm::NEXT)?;
//!             left -= verbs.poll_cq(cq, &mut [Wc::default(); 4])?; // again, after arming
//!             if left == 0 {
//!                 return Ok::<_, verbs_api::Error>(());
//!             }
//!             let event = verbs.get_cq_event(harness.channel(), Wait::Forever)?;
//!             verbs.ack_cq_events(event.cq, 1)?;
//!         }
//!     });
//!     harness.spawn("peer", move |harness| {
//!         link.send(harness, 1)?;
//!         link.send(harness, 2)
//!     });
//!     Ok(())
//! });
//! ```
//!
//! | item | is |
//! |---|---|
//! | [`check`], [`Search`], [`Report`] | the search, how it is bounded, and whether it was complete |
//! | [`Harness`], [`Link`], [`Thread`] | what a model is made of |
//! | [`ModelError`], [`Counterexample`] | what went wrong, and the steps that led there |
//! | [`library`] | event loops, right ones and wrong ones |
//! | [`sync`] | locks and threads for the program under test |
//!
//! `docs/model-checking.md` is the guide.
#![deny(unsafe_code)]

mod block_on;
mod diagram;
mod error;
mod harness;
pub mod library;
mod search;

pub use diagram::Counterexample;
pub use error::{ModelError, Outcome};
pub use harness::{Harness, Link, Thread};
pub use search::{CHECKER, Checker, Coverage, Report, Search, check};
pub use verbs_api::sync;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
