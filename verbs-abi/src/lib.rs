//! The C ABI of libibverbs and librdmacm: the border of the project to C, in both directions. The
//! backend for hardware calls it, the drop-in answers it.
//!
//! | module | holds |
//! |---|---|
//! | `context` | devices, contexts and their tables of operations |
//! | `device`, `port` | what they say of themselves |
//! | `pd`, `mr`, `mw` | protection domains, regions, device memory, windows |
//! | `cq`, `cq_ex`, `wc` | completion queues and channels, extended ones, completions |
//! | `qp`, `qp_ex`, `srq`, `ah`, `xrc` | queue pairs, batches, shared receive queues, addresses, XRC |
//! | `wr` | work requests |
//! | `event` | asynchronous events |
//! | `cm`, `ece` | rdma_cm; enhanced connection establishment |
//! | `address` | socket addresses |
//! | `border` | numbers, texts and slices |
//! | [`inline`] | the inline functions of `verbs.h` |
//! | [`library`] | the libraries of the machine, opened at run time |
//!
//! Structures and constants have the names of C, and their manual pages describe them. Next to a
//! structure are its conversions to and from `verbs-api`: `from_c` and `to_c`. Layouts are those of
//! rdma-core 44 to 65. Structures only grew, at an end that old programs do not read. A test
//! compares the layouts with those of the newest release (`rdma-core/facts.txt`), and with feature
//! `witness` also with the headers of the machine.
//!
//! Unsafe code is where unions and pointers of C are read, and where C is called.
#![cfg(target_os = "linux")]
#![allow(non_camel_case_types, reason = "structures have the names of C")]

#[macro_use]
mod macros;

mod address;
mod ah;
mod border;
mod cm;
mod context;
mod cq;
mod cq_ex;
mod device;
mod ece;
mod event;
pub mod inline;
pub mod library;
mod mr;
mod mw;
mod pd;
mod port;
mod qp;
mod qp_ex;
mod srq;
mod wc;
#[cfg(test)]
mod witness;
mod wr;
mod xrc;

pub use address::{address_from_c, address_to_c};
pub use ah::*;
pub use border::{int, slice, text, token};
pub use cm::*;
pub use context::*;
pub use cq::*;
pub use cq_ex::*;
pub use device::*;
pub use ece::*;
pub use event::*;
pub use mr::*;
pub use mw::*;
pub use pd::*;
pub use port::*;
pub use qp::*;
pub use qp_ex::*;
pub use srq::*;
pub use wc::*;
pub use wr::*;
pub use xrc::*;
