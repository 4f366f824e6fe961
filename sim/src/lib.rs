//! A software RDMA device with exact verbs semantics: deterministic, in process.
//!
//! [`Sim`] is a fabric of simulated devices behind the trait [`Verbs`](verbs_api::Verbs), with test
//! controls ([`Lab`](verbs_api::lab::Lab)).
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use verbs_api::lab::{Fault, Lab, PacketFilter};
//! use verbs_api::owned::{Context, Qp, RecvWr, SendWr};
//! use verbs_api::{QpType, RcParams, Result};
//! use verbs_sim::{Sim, SimConfig};
//!
//! let sim = Arc::new(Sim::new(SimConfig::new()));
//! let qp = |device: &str| -> Result<Qp> {
//!     let pd = Context::open(sim.clone(), device)?.alloc_pd()?;
//!     let channel = pd.context().create_comp_channel()?;
//!     let cq = pd.context().cq(16).channel(&channel).create()?;
//!     pd.qp(QpType::Rc, &cq, &cq).create()
//! };
//! let (client, server) = (qp("sim0")?, qp("sim1")?);
//! client.connect_rc(&server, &RcParams::default())?;
//!
//! // The message is lost, so the client's device sends it again after a timeout.
//! sim.inject(Fault::drop(PacketFilter::EVERY).nth(1))?;
//! server.post_recv(RecvWr::new(1, &[]))?;
//! client.post_send(SendWr::send(2, &[]))?;
//! for wc in server.recv_cq().wait_forever()? {
//!     assert_eq!(wc.ok()?.wr_id, 1);
//! }
//! assert!(sim.now() > Duration::from_millis(1), "in virtual time");
//! # Ok::<(), verbs_api::Error>(())
//! ```
//!
//! # What is supported
//! RC, UC, UD and XRC queue pairs with all operations of their transports: Send, RDMA Write and
//! Read, atomics, binds and invalidations; shared receive queues; memory windows of both types;
//! multicast; address handles. Completion queues, also extended ones, with arming, moderation,
//! overrun and resize; completion channels; asynchronous events. Any number of nodes and ports, on
//! Ethernet or InfiniBand; virtual time, faults, limits, a trace, a diagnosis.
//!
//! # What is rejected
//! Queue pairs of other transports: `EOPNOTSUPP`. Access flags that the device does not support,
//! and alternate paths: `EINVAL`. No transport supports TSO.
//!
//! # Divergence from hardware
//! - Inline data must lie in some memory region (of any key), because the simulator knows no other
//!   memory.
//! - Reading or writing bytes that posted work owns, through `read_mr` and `write_mr`, is an error.
//! - Remote and local keys of a region differ, unless a profile makes them the same, so a mix-up is
//!   detected.
//! - Acknowledging too many events is an error, not a destroy that never returns.
//!
//! # Where things are
//! Each folder names those above it in this table, not those below, except that `fabric` and
//! `runtime` hold the gateway and the sockets of `network`.
//!
//! | folder | |
//! |---|---|
//! | `memory`, `packet`, `storage`, `time` | bytes of regions, packets, containers, deadlines |
//! | `device` | what queue pairs need: CQs, memory regions, events, ports, timers |
//! | `descriptor` | file descriptors that are readable while an event is queued (feature `fd`, on Linux) |
//! | `qp` | one queue pair: requester and responder |
//! | `node` | a device with its queue pairs |
//! | `direct` | the fast path: messages that move without packets |
//! | `cm` | the connection manager of rdma_cm, as a plain struct |
//! | `fabric` | all nodes, and how packets, timers and faults reach them |
//! | `runtime` | what lets threads use a fabric: a lock, waits, a clock |
//! | `verbs` | the traits `Verbs`, `Cm` and `Lab` |
//! | `network` | packets to and from other processes, by UDP (feature `network`) |
//! | `diagnosis` | the mistakes of a program |
//! | `rt` | an executor of async tasks on the clock of a simulation |
//! | `tokio` | tokio's runtime on that clock (feature `tokio`) |
//!
//! `diagnosis` has two halves. The core writes facts and problems to its journal, and names
//! nothing else of it, except that `cm` counts with its words and `runtime` passes on its findings.
//! The report reads the journal and the core.
#![deny(unsafe_code)]
#![cfg_attr(
    not(feature = "network"),
    allow(
        dead_code,
        unused_imports,
        reason = "files that a feature replaces use some of the core"
    )
)]

#[cfg(all(feature = "network", not(target_os = "linux")))]
compile_error!("feature `network` is for Linux");

mod address;
mod cm;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod config;
#[cfg_attr(
    not(all(feature = "fd", target_os = "linux")),
    path = "descriptor/none.rs"
)]
mod descriptor;
mod device;
#[cfg_attr(any(), mutants::skip)] // texts
mod diagnosis;
mod direct;
mod displayed;
#[cfg(test)]
mod equivalence;
#[cfg(test)]
mod exhaustive;
mod fabric;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod hosts;
mod memory;
#[cfg_attr(not(feature = "network"), path = "network/none.rs")]
#[cfg_attr(any(), mutants::skip)] // the suite does not run on a network
mod network;
mod node;
mod packet;
mod qp;
mod rng;
#[cfg_attr(any(), mutants::skip)] // controls of tests
pub mod rt;
mod runtime;
mod storage;
mod subnet;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod sync;
mod time;
#[cfg(feature = "tokio")]
#[cfg_attr(any(), mutants::skip)] // controls of tests
pub mod tokio;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod trigger;
mod verbs;

pub use config::{Mode, SimConfig};
#[cfg(all(feature = "fd", target_os = "linux"))]
pub use descriptor::Guarded;
pub use diagnosis::problem;
pub use diagnosis::{
    Certainty, Class, Diagnosis, Finding, Names, PlainNames, Problem, Suppressions, UnknownClass,
    Unposted, Why,
};
#[cfg(feature = "network")]
pub use network::Network;
pub use packet::{DropReason, Pcap};
pub use runtime::Watch;
pub use verbs::{
    Annotation, BlockedThread, JoinHandle, KnownThread, Misuse, Sim, Step, Threads, WaitGuard, What,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
