//! RDMA verbs on real devices, through libibverbs.
//!
//! `Hw` implements [`Verbs`](verbs_api::Verbs). The library of the machine is opened at the first
//! use ([`verbs_abi::library`]). Without one there are no devices. On systems other than Linux this
//! crate is empty.
//!
//! It refuses only calls that would make C access freed memory or wait forever: a stale handle, an
//! excess acknowledgement, inline data outside of any region, an unbounded wait. All other mistakes
//! go to the driver, because the suite judges the driver.
//!
//! ```no_run
//! use verbs_api::{Result, Verbs};
//!
//! fn main() -> Result<()> {
//!     for device in verbs_hw::Hw::new().devices()? {
//!         println!("{}", device.name);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `hw`, `verbs` | the backend: tables of objects; every verb |
//! | `owner`, `objects` | one owner for each C object; the objects that it keeps alive |
//! | `cq`, `cq_ex` | creating CQs; iterations over extended ones, moderation |
//! | `post` | posting; the objects of a list are held until the call returns |
//! | `srq` | shared receive queues |
//! | `xrc` | XRC domains and their queue pairs |
//! | `batch` | batches of sends |
//! | `fields` | fields of C structures that programs read |
//! | `errno` | errors of C |
//! | `parent`, `dm` | parent domains and thread domains; device memory |
//! | `region` | regions of other memory, or with other addresses |
//! | `query` | attributes of newer devices, and GID tables |
//! | `mcast` | multicast groups |
//! | `mw` | memory windows |
//! | `corrupt_handle` | corrupt handles |
//! | `wait` | bounded waits on file descriptors |
//! | `reactor` | tasks that wait, and the thread that wakes them |
//! | `qp`, `ece` | creating and destroying queue pairs; their options |
//! | `cm` | rdma_cm |
//! | `devices`, `probe`, `obstacles` | devices, their capabilities, obstacles to using them |
#![cfg(target_os = "linux")]

mod batch;
mod cm;
mod corrupt_handle;
mod cq;
mod cq_ex;
mod devices;
mod dm;
mod dmabuf;
mod ece;
mod errno;
mod events;
mod fields;
mod hw;
mod mcast;
mod mw;
mod objects;
mod obstacles;
mod owner;
mod parent;
mod post;
mod probe;
mod qp;
mod query;
mod reactor;
mod region;
mod srq;
mod unacked;
mod verbs;
mod wait;
mod xrc;

pub use devices::{is_simulated, kernel, rdma_core};
pub use hw::Hw;
pub use obstacles::{locked_memory, obstacles};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
