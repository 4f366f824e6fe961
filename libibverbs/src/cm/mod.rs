//! librdmacm: connections by rdma_cm.
//!
//! The engine has what the kernel has, and what librdmacm does to queue pairs. Here is what programs see of it:
//! structures, pointers, ids that wait by themselves, endpoints.
//!
//! | file | holds |
//! |---|---|
//! | `channel`, `id`, `event` | the objects, and how a program's structures follow the engine |
//! | `address` | binding and resolving, options, ports |
//! | `connect`, `group` | connections; multicast |
//! | `qp` | queue pairs of ids, with the CQs and SRQs that come with them |
//! | `device` | contexts that ids have |
//! | `sync` | ids without a channel, which wait for their events; endpoints |
//! | `addrinfo`, `resolved` | names of hosts; those that an id resolves with an event |
//! | `rsocket` | what is not there |

pub(crate) mod address;
pub(crate) mod addrinfo;
pub(crate) mod channel;
pub(crate) mod connect;
pub(crate) mod device;
pub(crate) mod event;
pub(crate) mod group;
pub(crate) mod id;
pub(crate) mod qp;
pub(crate) mod resolved;
pub(crate) mod rsocket;
pub(crate) mod sync;

use std::collections::BTreeMap;

use verbs_api::cm::{Cm, CmId};
use verbs_api::sync::Mutex;
use verbs_api::{Context, Verbs};

use crate::engine::{engine, unobserved};
use crate::object::Holding;
use crate::result::{Refusal, Result};

/// What the process has of rdma_cm beside its objects.
#[derive(Default)]
pub(crate) struct State {
    /// Ids by their handles, for events.
    ids: Mutex<BTreeMap<CmId, Holding<id::Id>>>,
    /// Events that were read and not acknowledged, by the address that the program has.
    events: Mutex<BTreeMap<usize, event::Read>>,
    /// What ids of a device have.
    devices: Mutex<BTreeMap<Context, device::OfIds>>,
}

/// The calls of the engine.
fn cm() -> Result<&'static dyn Cm> {
    engine().sim.cm().ok_or_else(absent)
}

/// The same for what the library needs for itself.
fn unobserved_cm() -> Result<&'static dyn Cm> {
    unobserved().cm().ok_or_else(absent)
}

#[cold]
fn absent() -> Refusal {
    Refusal::unsupported("the devices have no rdma_cm")
}
