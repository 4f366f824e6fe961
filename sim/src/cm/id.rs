//! An id: its address, its device, and its state.

use core::net::SocketAddr;
use std::collections::VecDeque;

use verbs_api::cm::{CmEventType, CmId, CmIdAttr, PortSpace};
use verbs_api::site::Site;
use verbs_api::{Cause, ErrorKind, Qp};

use super::conn::{Conn, Phase};
use super::ece;
use super::host::{Local, Peer};
use super::multicast::Joined;
use crate::device::Refusal;
use crate::displayed::displayed;
use crate::hosts::HostNodes;

/// An event that was read, and where.
pub(crate) type ReadEvent = (CmEventType, Option<Site>);

/// An id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Id {
    pub(super) handle: CmId,
    /// Where the program created it, or read its request.
    pub(super) made_at: Option<Site>,
    /// The listener to which its request came.
    pub(super) listener: Option<CmId>,
    /// Index of its channel.
    pub(super) channel: u32,
    pub(super) context: u64,
    /// The host of its channel. `None` is the machine of all nodes.
    pub(super) home: Option<HostNodes>,
    pub(super) ps: PortSpace,
    pub(super) state: State,
    pub(super) local: Option<SocketAddr>,
    pub(super) peer: Option<SocketAddr>,
    /// The port that it is bound to.
    pub(super) port: Option<Local>,
    /// The destination of its packets.
    pub(super) to: Option<Peer>,
    pub(super) num_paths: u32,
    pub(super) qp: Option<OwnQp>,
    pub(super) conn: Option<Box<Conn>>,
    pub(super) groups: Vec<Joined>,
    pub(super) reuse_addr: bool,
    /// `RDMA_OPTION_ID_AFONLY`, if the program has set it.
    pub(super) af_only: Option<bool>,
    pub(super) tos: u8,
    pub(super) ack_timeout: Option<u8>,
    pub(super) ece: ece::Options,
    /// Numbers of its unread events, oldest first.
    pub(super) unread: VecDeque<u64>,
    /// Events that were read but not acknowledged.
    pub(super) unacked: u32,
    /// The last event that was read, and the call site.
    pub(super) last_read: Option<ReadEvent>,
    /// The number of requests that may wait to be read.
    pub(super) backlog: usize,
}

/// The queue pair of an id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnQp {
    pub(crate) qp: Qp,
    pub(crate) qp_num: u32,
    pub(crate) has_srq: bool,
}

displayed! {
    /// The state of an id.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(super) enum State {
        #[default]
        Idle = "is bound to no address";
        Bound = "is bound to an address, and no more";
        /// The address has no owner, and the timeout is running.
        Resolving = "resolves its address";
        AddrResolved = "has a resolved address, and no route";
        RouteResolved = "has a resolved route, and no connection";
        Listening = "listens";
        /// It has, or had, a connection.
        Connected = "has a connection, or is about to";
        Disconnected = "is disconnected";
        /// Its device was removed.
        Removed = "belongs to a device that was removed";
    }
}

impl Id {
    /// The phase of its connection.
    pub(super) fn phase(&self) -> Option<Phase> {
        self.conn.as_ref().map(|conn| conn.phase)
    }

    /// Whether a listener accepts no further requests.
    pub(super) fn is_full(&self) -> bool {
        self.unread.len() >= self.backlog
    }

    /// Whether an id with this address leaves its port to ids of the other family. Linux assumes so
    /// for IPv4, unless the program has set the option.
    pub(super) fn is_af_only(&self, local: SocketAddr) -> bool {
        self.af_only.unwrap_or(local.is_ipv4())
    }

    /// The attributes that a program sees, except those of librdmacm.
    pub(super) fn attr(&self) -> CmIdAttr {
        let mut attr = CmIdAttr::default();
        attr.context = self.context;
        attr.ps = self.ps;
        attr.port_num = self.port.unwrap_or_default().id.port;
        attr.qp = self.qp.map(|own| own.qp);
        (attr.local_addr, attr.peer_addr) = (self.local, self.peer);
        attr.sgid = self.port.unwrap_or_default().gid;
        attr.dgid = self.to.unwrap_or_default().gid;
        // Ethernet has one partition, which rdma_cm does not name.
        if self.port.is_some_and(|local| local.lid != 0) {
            attr.pkey = PKEY;
        }
        attr.num_paths = self.num_paths;
        attr
    }
}

/// The default partition, the only one of IP paths.
pub(super) const PKEY: u16 = 0xffff;

/// The error of a call that an id in this state cannot execute.
pub(super) fn wrong_state(id: CmId, state: State) -> Refusal {
    let text = format!("{id} {state}");
    Refusal::new(ErrorKind::Invalid, Cause::Text(text.into()))
}
