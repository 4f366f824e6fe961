//! For programs that use RDMA: objects that own what they need, over any [`Verbs`](crate::Verbs).
//!
//! Types have the names of the handles they own, and methods those of libibverbs, so knowledge of
//! verbs applies here. This layer adds:
//!
//! - **Life.** A value is a handle that can be cloned. Its object is destroyed when its last clone
//!   is dropped, and so are all objects created from it, all work that uses it and all its events.
//!   So a program may drop everything in any order. `destroy` acts at once, or reports the
//!   obstacle.
//! - **Memory.** The backend owns a region's bytes; the program copies them. Posted work holds the
//!   regions and address handles it uses until its completion is polled. Safe code cannot make a
//!   device write to memory that is freed or borrowed; registering the caller's own memory is
//!   [`unsafe`](Pd::reg_mr).
//! - **Completions.** Each has the program's own `wr_id`, and the program's own value for its QP
//!   ([`Completion::qp_context`]). The program may choose both freely, and let any number of QPs
//!   share a CQ. Completions come as an iterator, or in a buffer of the caller's.
//! - **Waiting.** [`Cq::wait`] and [`CompChannel::wait`] arm, poll again, wait and acknowledge in
//!   the order that never loses a completion. For tasks of any executor each wait has a future,
//!   such as [`Cq::next`] and [`Connection::until_established`]. Dropping it loses nothing.
//! - **Connecting.** [`Cm`] has listeners, requests, routes and connections, each with events and a
//!   descriptor of its own.
//!
//! | object | created by | holds |
//! |---|---|---|
//! | [`Context`] | [`Context::open`] | the backend |
//! | [`Pd`] | [`Context::alloc_pd`], [`Pd::alloc_parent_domain`] | its context; of a parent domain, its domains |
//! | [`Td`] | [`Context::alloc_td`] | its context |
//! | [`Mr`] | [`Pd::alloc_mr`], [`Pd::reg_mr`], [`Pd::reg_dm_mr`] | its PD, its device memory |
//! | [`Mw`] | [`Pd::alloc_mw`] | its PD |
//! | [`Ah`] | [`Pd::create_ah`] | its PD |
//! | [`Dm`] | [`Context::alloc_dm`] | its context |
//! | [`CompChannel`] | [`Context::create_comp_channel`] | its context |
//! | [`Cq`] | [`Context::cq`] | its channel, its context |
//! | [`Srq`] | [`Pd::srq`] | its PD, of XRC its domain and CQ; by its work, regions |
//! | [`Qp`] | [`Pd::qp`] | its PD, its CQs, its SRQ, its id; by its work, regions, windows and address handles |
//! | [`Xrcd`] | [`Context::open_xrcd`] | its context |
//! | [`XrcRecvQp`] | [`Xrcd::create_recv_qp`], [`Xrcd::open_qp`] | its XRC domain |
//! | [`Listener`], [`Request`] | [`Listener::bind`], [`Listener::get_request`] | its id of rdma_cm |
//! | [`Route`], [`Connection`] | [`Cm::route`], [`Route::connect`], [`Request::accept`] | its id of rdma_cm |
//! | [`CqEvent`], [`AsyncEvent`] | [`CompChannel::get_event`], [`Context::get_async_event`] | the object it is about |
//!
//! ```no_run
//! use std::sync::Arc;
//! use verbs_api::owned::{Context, RecvWr, SendWr};
//! use verbs_api::{Access, QpType, RcParams, Result, Verbs, Wait, WcStatus};
//!
//! /// Sends a greeting from a device to itself.
//! fn greet(verbs: Arc<dyn Verbs>, device: &str) -> Result<Vec<u8>> {
//!     let context = Context::open(verbs, device)?;
//!     let pd = context.alloc_pd()?;
//!     let channel = context.create_comp_channel()?;
//!     let cq = context.cq(16).channel(&channel).create()?;
//!     let near = pd.qp(QpType::Rc, &cq, &cq).create()?;
//!     let far = pd.qp(QpType::Rc, &cq, &cq).create()?;
//!     near.connect_rc(&far, &RcParams::default())?;
//!
//!     let mr = pd.alloc_mr(4096, Access::LOCAL_WRITE)?;
//!     mr.write(0, b"hello")?;
//!     far.post_recv(RecvWr::new(1, &[mr.sge(2048..)]))?;
//!     near.post_send(SendWr::send(2, &[mr.sge(..5)]))?;
//!     let mut left = 2;
//!     while left > 0 && let Some(completions) = cq.wait(Wait::Forever)? {
//!         for wc in completions {
//!             assert_eq!(wc.status, WcStatus::Success, "{wc}");
//!             left -= 1;
//!         }
//!     }
//!     mr.read_vec(2048, 5)
//! } // everything is destroyed here, queue pairs first
//! ```
//!
//! # When destruction fails
//!
//! `destroy` returns the object with the error. Dropping cannot report one. An object that the
//! backend does not destroy (a raw read of one of its events was not acknowledged, or raw objects
//! still use it) is kept with all it was made from, and tried again later. If that never succeeds,
//! it stays until the process ends. Neither dropping nor `destroy` waits.
//!
//! # Raw access
//!
//! Each object gives its raw handle, and a context its backend, for verbs that this layer does not
//! have. A raw call can spoil what this layer knows, but no more than that:
//!
//! - After a raw destroy, calls on the object fail with `Invalid`, since the handle names a
//!   destroyed object. Dropping it is fine.
//! - Raw posts hold nothing. On a QP or SRQ of this layer, and on the CQ of an XRC SRQ of this
//!   layer, choose numbers above 2^63, so that they are not taken for this layer's.
//! - A raw poll hides completions from this layer: what their work held is released with a later
//!   completion of the queue, or with the QP.
//! - A raw read of an event takes it from those who wait here; the CQ is not armed again before it
//!   is polled here. Events of raw objects that are read here are acknowledged and skipped.

mod ah;
mod channel;
mod cm;
mod completion;
mod completions;
mod context;
mod cq;
mod dm;
mod event;
mod iteration;
mod ledger;
mod life;
mod mr;
mod mw;
mod pd;
mod qp;
mod shared;
mod sources;
mod srq;
#[cfg(feature = "stream")]
mod stream;
mod tasks;
mod td;
mod wait;
mod wr;
mod xrc;

pub use ah::Ah;
pub use channel::CompChannel;
pub use cm::{Cm, CmId, Connection, Listener, Request, Resolving, Route, RouteBuilder};
pub use completion::Completion;
pub use completions::Completions;
pub use context::Context;
pub use cq::{Cq, CqBuilder};
pub use dm::Dm;
pub use event::{AsyncEvent, Element};
pub use iteration::Iteration;
pub use life::DestroyError;
pub use mr::{Mr, Sge};
pub use mw::{Mw, MwBind, MwBindInfo};
pub use pd::Pd;
pub use qp::{Qp, QpBuilder};
pub use srq::{Srq, SrqBuilder};
#[cfg(feature = "stream")]
pub use stream::CompletionStream;
pub use td::Td;
pub use wait::CqEvent;
pub use wr::{Dest, Objects, RecvWr, SendOp, SendWr};
pub use xrc::{XrcRecvQp, Xrcd};
