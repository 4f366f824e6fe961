//! The device: the layer below queue pairs.
//!
//! It has CQs, channels, memory, SRQs, ports, timers, randomness, the time, and the record of
//! events. Nothing here knows what a queue pair does: queue pairs are only numbers.
//!
//! | file | holds |
//! |---|---|
//! | `base` | behavior, limits, time, trace: what all parts share |
//! | `check`, `refusal` | handles and ranges; why a verb is refused |
//! | `contexts`, `event_queue` | contexts and asynchronous events; queues of events |
//! | `query`, `lab` | what verbs report of a device; its test controls |
//! | `ports`, `egress`, `gsi` | tables and addresses; outgoing packets; QP 1 |
//! | `domain`, `parent` | protection domains, address handles; parent domains, thread domains |
//! | `region`, `key`, `access`, `why` | memory regions; their keys; access checks; reasons of
//! refusals, and bytes that are not mapped |
//! | `dm` | device memory |
//! | `mw` | memory windows: binding, invalidation, access through them |
//! | `work`, `claim` | posted work; which of it names which bytes |
//! | `channel`, `cq`, `cq_ex`, `completion` | completion channels and queues, and their entries |
//! | `undefined` | undefined fields of completions |
//! | `deliver` | adding completions to CQs, and removing them |
//! | `notify`, `moderate` | arming; one event for several completions |
//! | `srq`, `xrcd` | shared receive queues; XRC domains |
//! | `look` | empty polls of a CQ, in virtual time |
//! | `limits` | fault rules for completions and resources |
//! | `turns`, `doubts` | queue pairs that have more to send; those whose peers may only be slow |

mod access;
mod base;
mod channel;
mod check;
mod claim;
mod completion;
mod contexts;
mod cq;
mod cq_ex;
mod deliver;
mod dm;
mod domain;
#[cfg_attr(any(), mutants::skip)] // the suite does not reach it
mod doubts;
mod egress;
mod empty;
mod event_queue;
mod gsi;
mod key;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod lab;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod limits;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod look;
mod moderate;
mod mw;
mod notify;
mod odp;
mod parent;
mod ports;
mod query;
mod refusal;
mod region;
mod srq;
mod turns;
mod undefined;
mod wakeup;
#[cfg_attr(any(), mutants::skip)] // texts, and unmapped memory, which only an option notices
mod why;
mod work;
mod xrcd;

use std::sync::Arc;

use verbs_api::behavior::{Behavior, SqRelease};
use verbs_api::lab::Live;
use verbs_api::profile::DeviceLimits;
use verbs_api::table::Table;
use verbs_api::{Context, Ece, Object};

use crate::memory::SharedMemory;
use crate::time::Timers;

pub(crate) use access::{FirstBytes, check_empty, touch};
pub(crate) use base::Base;
use base::device_attr;
pub(crate) use check::{
    InContext, argument, bad_handle, check_acknowledged, check_sges, find, find_in, find_unchecked,
    in_context, in_range, invalid, numbered, post_each, same_context,
};
pub(crate) use claim::{ClaimedQueue, Claims, Work};
pub(crate) use completion::{Completion, Delivery, Queue, Ticket};
pub(crate) use contexts::node_of;
pub(crate) use cq::Cqs;
pub(crate) use domain::{Ah, Domains, Peer};
pub(crate) use doubts::Doubt;
use doubts::Doubts;
use egress::Egress;
pub(crate) use egress::{Address, OutPacket};
pub(crate) use empty::EmptyCqs;
pub(crate) use event_queue::{Channel, EventQueue, count_waiter, waited_for_and_queued};
pub(crate) use gsi::{GSI_QPN, Gsi};
pub(crate) use look::Moment;
pub(crate) use odp::odp_need;
use parent::parent_at;
pub(crate) use parent::{Parent, index_of, parent};
pub(crate) use ports::{
    Gids, MAX_MSG_SZ, Outside, PORT_MTU, PORT_MTU_BYTES, Ports, QP_INDEX_BITS, gids, pkeys_match,
};
pub(crate) use query::ticks;
pub(crate) use refusal::{Answer, PostRefusal, Refusal, Refused, Result};
pub(crate) use region::ProtectionFault;
pub(crate) use srq::{NoReceive, Srq, Taken};
use turns::Turns;
pub(crate) use wakeup::{Wakeup, Wakeups};
use work::Places;
pub(crate) use work::{Recv, Send, length_of};
pub(crate) use xrcd::{Xrcds, opening, opening_at};

/// With this bit set in the Q_Key of a work request, the QP's own Q_Key is used (UD-06).
pub(crate) const QKEY_OF_QP: u32 = 1 << 31;

/// A device without its queue pairs.
#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) base: Base,
    /// The vendor of the options for queue pairs, and those that it supports.
    pub(crate) ece: Ece,
    pub(crate) ports: Ports,
    pub(crate) domains: Domains,
    pub(crate) cqs: Cqs,
    pub(crate) srqs: Table<Srq>,
    pub(crate) xrcds: Xrcds,
    pub(crate) claims: Claims,
    pub(crate) places: Places,
    /// A timer for each QP.
    pub(crate) timers: Timers,
    pub(crate) doubts: Doubts,
    pub(crate) egress: Egress,
    pub(crate) turns: Turns,
    pub(crate) gsi: Gsi,
}

impl Device {
    /// A device with `ports` ports on a fabric with these GIDs and this memory.
    pub(crate) fn new(
        id: u32,
        ports: u8,
        behavior: Behavior,
        gids: Arc<Gids>,
        memory: SharedMemory,
        seed: u64,
    ) -> Self {
        let attr = device_attr(id, ports, &DeviceLimits::SPEC);
        Self {
            base: Base::new(id, attr, behavior, seed),
            ece: Ece::default(),
            ports: Ports::new(id, ports, gids),
            domains: Domains::new(id, behavior.key_reuse, memory),
            cqs: Cqs::default(),
            srqs: Table::default(),
            xrcds: Xrcds::default(),
            claims: Claims::default(),
            places: Places::default(),
            timers: Timers::default(),
            doubts: Doubts::default(),
            egress: Egress::default(),
            turns: Turns::default(),
            gsi: Gsi::default(),
        }
    }

    /// Whether the slot of a work request is free when it completes, and not when the completion is
    /// polled.
    pub(crate) fn releases_at_completion(&self) -> bool {
        self.base.behavior.sq_release == SqRelease::Completion
    }

    /// Removes the objects of a context, except queue pairs. Returns the work of the completions
    /// that were still in its CQs.
    pub(crate) fn clear_context(&mut self, context: Context) -> Vec<Ticket> {
        use Object::{Ah, CompChannel, Cq, Dm, Mr, Mw, Pd, Srq, Td, Xrcd};
        let mut tickets = Vec::new();
        // Users go before the objects that they use.
        for object in [Srq, Xrcd, Cq, CompChannel, Mw, Mr, Dm, Ah, Pd, Td] {
            for index in self.base.objects(context, object) {
                match object {
                    Srq => self.remove_srq(index),
                    Xrcd => self.remove_xrcd(index),
                    Cq => tickets.extend(self.remove_cq(index)),
                    CompChannel => self.cqs.remove_channel(&mut self.base, index),
                    Mw => self.remove_window(index),
                    Mr => self.remove_region(index),
                    Dm => self.remove_dm(index),
                    Ah => self.destroy_ah(index),
                    Td => self.remove_td(index),
                    _ => match parent_at(index) {
                        Some(slot) => self.remove_parent(slot),
                        None => self.remove_pd(index),
                    },
                }
            }
        }
        tickets
    }

    /// The numbers of objects that programs have created. Each handle of a queue pair counts.
    pub(crate) fn live(&self) -> Live {
        let mut live = Live::default();
        live.contexts = self.base.open_contexts();
        live.pds = self.domains.pds.len() + self.base.parents.table.len();
        live.tds = self.base.parents.tds.len();
        live.mrs = self.domains.regions.table.len();
        live.mws = self.domains.windows.table.len();
        live.dms = self.domains.dms.len();
        live.channels = self.cqs.channels.len();
        live.cqs = self.cqs.table.len();
        live.ahs = self.domains.ahs.len();
        live.srqs = self.srqs.len();
        live.xrcds = self.xrcds.table.len();
        live.qps = self.base.count(Object::Qp);
        // The context of rdma_cm ids belongs to no program.
        if self.base.of_ids.is_some() {
            live.contexts -= 1;
            live.pds -= 1;
        }
        live
    }
}
