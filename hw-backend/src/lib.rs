//! RDMA verbs on real devices, through libibverbs.
//!
//! `Hw` implements [`Verbs`](verbs_api::Verbs). The library of the machine is opened when it is first
//! asked for devices ([`verbs_abi::library`]); without one there are none. On systems other than Linux
//! this crate is empty.
//!
//! It refuses only what would make C touch freed memory or wait for ever: a stale handle, an
//! acknowledgement too many, inline data outside any region, a wait without bound. Every other mistake goes
//! to the driver, since the suite judges the driver.
//!
//! | module | holds |
//! |---|---|
//! | `hw`, `verbs` | the backend: tables of objects; every verb |
//! | `owner`, `objects` | one owner for each C object; what it keeps alive |
//! | `cq`, `cq_ex` | making CQs; iterations over extended ones, moderation |
//! | `post` | posting: what the lists use lives until the call is over |
//! | `srq` | shared receive queues |
//! | `xrc` | XRC domains and their queue pairs |
//! | `batch` | batches of sends |
//! | `errno` | errors of C |
//! | `region` | regions of other memory, or with other addresses |
//! | `query` | attributes of newer devices, and GID tables |
//! | `mcast` | multicast groups |
//! | `mw` | memory windows |
//! | `garble` | handles that are garbled on purpose |
//! | `wait` | bounded waits on file descriptors |
//! | `qp` | making queue pairs |
//! | `cm` | rdma_cm |
//! | `devices`, `probe`, `obstacles` | which devices there are, what they can do, what is in the way |
#![cfg(target_os = "linux")]

mod batch;
mod cm;
mod cq;
mod cq_ex;
mod devices;
mod errno;
mod events;
mod garble;
mod hw;
mod mcast;
mod mw;
mod objects;
mod obstacles;
mod owner;
mod post;
mod probe;
mod qp;
mod query;
mod region;
mod srq;
mod unacked;
mod verbs;
mod wait;
mod xrc;

pub use devices::{is_simulated, kernel};
pub use hw::Hw;
pub use obstacles::{locked_memory, obstacles};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
