//! RDMA verbs on real devices, through libibverbs.
//!
//! `Hw` implements [`Verbs`](verbs_api::Verbs). It is there with feature `hw`, which links
//! libibverbs and librdmacm; without it this crate is empty, so that the rest of the workspace
//! builds on a machine that has neither.
//!
//! Only what would make C touch memory that is gone, or wait for ever, is stopped before it: a
//! stale handle, an acknowledgement too many, inline data outside any region, a wait without bound.
//! Every other mistake goes to the driver, since the suite judges the driver.
//!
//! | module | holds |
//! |---|---|
//! | `hw`, `verbs` | the backend: tables of objects; every verb |
//! | `sys` | every name of the C bindings, with their gaps filled |
//! | `owner`, `objects` | one owner for each C object; what it keeps alive |
//! | `cq`, `cq_ex` | making CQs; iterations over extended ones, moderation |
//! | `post` | posting: what the lists use lives until the call is over |
//! | `srq` | shared receive queues |
//! | `xrc` | XRC domains and their queue pairs |
//! | `batch` | batches of sends |
//! | `convert`, `errno` | structures and errors to and from C |
//! | `region` | regions of other memory, or with other addresses |
//! | `query` | what newer devices and GID tables say of themselves |
//! | `mcast` | multicast groups |
//! | `mw` | memory windows |
//! | `garble` | handles that are garbled on purpose |
//! | `wait` | bounded waits on file descriptors |
//! | `cm` | connecting by rdma_cm |
//! | `devices`, `probe`, `obstacles` | which devices there are, what they can do, what is in the way |
#![cfg(feature = "hw")]

mod batch;
mod cm;
mod convert;
mod cq;
mod cq_ex;
mod devices;
mod errno;
mod events;
mod garble;
mod hw;
#[cfg(test)]
mod layout;
mod mcast;
mod mw;
mod objects;
mod obstacles;
mod owner;
mod post;
mod probe;
mod query;
mod region;
mod srq;
mod sys;
mod unacked;
mod verbs;
mod wait;
mod xrc;

pub use devices::{is_simulated, kernel};
pub use hw::Hw;
pub use obstacles::obstacles;
