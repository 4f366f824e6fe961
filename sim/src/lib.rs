//! A software RDMA device with exact verbs semantics: deterministic, in process.
//!
//! [`Sim`] is a fabric of simulated devices behind the trait [`Verbs`](verbs_api::Verbs), and a
//! laboratory ([`Lab`](verbs_api::lab::Lab)) around them.
//!
//! # What is supported
//! RC, UC, UD and XRC queue pairs with all operations of their transports: Send, RDMA Write and Read, atomics,
//! binds and invalidations; shared receive queues; memory windows of both types; multicast; address handles.
//! Completion queues, also extended ones, with arming, moderation, overrun and resize; completion channels;
//! asynchronous events. Any number of nodes and ports, on Ethernet or InfiniBand; virtual time, faults, limits,
//! a trace, a diagnosis.
//!
//! # What is rejected
//! Queue pairs of other transports: `EOPNOTSUPP`. Access flags that the device does not support, and alternate
//! paths: `EINVAL`. TSO is an operation that no transport has.
//!
//! # Divergence from hardware
//! - Inline data must lie in some memory region (of any key), since the simulator knows no other
//!   memory.
//! - Reading or writing bytes that posted work owns, through `read_mr` and `write_mr`, is an error.
//! - Remote and local keys of a region differ, unless a profile makes them the same, so that one in the place of the other is
//!   noticed.
//! - Acknowledging too many events is an error, not a destroy that never returns.
//!
//! # Where things are
//! The core stands on three floors, without lock, clock or I/O. `device` is what queue pairs stand on: CQs,
//! memory, events, ports, timers. `stack::qp` is one queue pair. `stack::shell::node` is a device with its
//! queue pairs, and the door through which packets come. Around it, in `stack::shell`: `fabric` is all nodes
//! and what is between them, and moves packets; `world` is its lock, and waiting; `clock` is the machine's
//! time, where that counts, and `timer_thread` lets timers fire by it. `sim` and `lab` map the traits on it:
//! `call` is how a verb runs, and `say` what the trace says of it. `caller` adds what programs that hand over
//! pointers need; `model` and `roster` are for models of concurrent programs.
//!
//! On a network (feature `network`): `network` is which addresses ports have, `border` where packets leave and come in,
//! `outgoing` those that are to be sent, `sockets` what sends and reads them, `receiver` the thread that reads, `joined`
//! what verbs do to the sockets.
//!
//! `cm` connects queue pairs by messages to QP 1: a plain struct too, which the fabric has beside its nodes.
//!
//! Beside them: `packet`, `payload` and `memory` are what travels and where it goes; `wire` holds the tap and
//! the rules for packets and calls, `late` the packets that they hold back, `outage` the ports that go down;
//! `fault` decides when a rule strikes; `subnet` has the LIDs of InfiniBand; `diagnosis` says what a program
//! did wrong.
#![deny(unsafe_code)]

#[cfg(all(feature = "fd", not(target_os = "linux")))]
compile_error!("feature `fd` is for Linux");

mod address;
mod checksum;
mod class;
mod cm;
mod config;
mod device;
mod diagnosis;
mod empty;
mod fault;
#[cfg(feature = "fd")]
mod flag;
mod frame;
#[cfg(feature = "fd")]
mod guarded;
mod late;
mod memory;
#[cfg(feature = "network")]
mod network;
mod outage;
#[cfg(feature = "network")]
mod outgoing;
mod packet;
mod payload;
mod pcap;
mod ring;
mod rng;
#[cfg(feature = "network")]
mod service;
mod spare;
mod stack;
mod subnet;
mod suppressions;
mod sync;
mod time;
mod timers;
mod wire;

pub use class::{Certainty, Class, UnknownClass};
pub use config::{Mode, SimConfig};
pub use diagnosis::{Diagnosis, Finding, Names, PlainNames, Problem, Unposted, Why};
#[cfg(feature = "fd")]
pub use guarded::Guarded;
#[cfg(feature = "network")]
pub use network::Network;
pub use pcap::Pcap;
pub use stack::shell::{Annotation, Misuse, Participant, Sim, Sleeping, Step, Stuck, Watch, What};
pub use suppressions::Suppressions;

/// For searches in the simulator's own tests. No promise is made of it.
#[doc(hidden)]
pub mod search {
    pub use crate::stack::shell::Alone;
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
