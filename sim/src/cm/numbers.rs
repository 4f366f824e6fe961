//! What both sides call connections: how messages find them.

use std::collections::BTreeMap;

use verbs_api::cm::PortSpace;
use verbs_roce::mad::CmMessage;

use super::conn::Conn;
use super::host::Peer;
use super::ids::Ids;
use crate::address::{gid_of, ip_of};
use crate::rng::Random;

/// The ids that messages are for, by what is in the messages.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    /// By what this side calls a connection, or a request for datagrams.
    ours: BTreeMap<u32, u32>,
    /// By the port of the other side, and what it calls one.
    theirs: BTreeMap<(Peer, u32), u32>,
    /// By the port of the other side, and its queue pair.
    qps: BTreeMap<(Peer, u32), u32>,
    last: u32,
    /// Which process it is of those that share an address.
    tenant: Option<u8>,
}

impl Numbers {
    pub(super) fn new(random: &mut Random) -> Self {
        Self {
            ours: BTreeMap::new(),
            theirs: BTreeMap::new(),
            qps: BTreeMap::new(),
            last: random.any() as u32,
            tenant: None,
        }
    }

    /// Numbers tell from now on which process they are of.
    pub(crate) fn become_tenant(&mut self, number: u8) {
        self.tenant = Some(number);
    }

    /// What this side calls a new connection.
    pub(super) fn next(&mut self) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            let ours = match self.tenant {
                Some(number) => self.last >> 8 | u32::from(number) << TENANT,
                None => self.last,
            };
            if ours != 0 && !self.ours.contains_key(&ours) {
                return ours;
            }
        }
    }

    /// Whether a message to an address that several processes share is for a process other than
    /// that of these ids.
    pub(crate) fn is_for_other(&self, ids: &Ids, message: &CmMessage) -> bool {
        match address_of(message) {
            None => false,
            Some(Address::Connection(number)) => self.is_of_other(number),
            Some(Address::Service(service_id)) => {
                let of = verbs_roce::mad::service_port(service_id);
                !of.is_some_and(|(ps, port)| ids.listens(PortSpace::from(u32::from(ps)), port))
            }
        }
    }

    /// Whether a connection may be called so by another process with the same address.
    pub(super) fn is_of_other(&self, number: u32) -> bool {
        let own = self.tenant.zip(tenant_of(number));
        own.is_some_and(|(own, of)| own != of)
    }

    /// How many connections there are.
    pub(super) fn count(&self) -> u32 {
        self.ours.len() as u32
    }

    pub(super) fn by_ours(&self, ours: u32) -> Option<u32> {
        self.ours.get(&ours).copied()
    }

    pub(super) fn by_theirs(&self, peer: Peer, theirs: u32) -> Option<u32> {
        self.theirs.get(&(normal(peer), theirs)).copied()
    }

    pub(super) fn by_qp(&self, peer: Peer, qpn: u32) -> Option<u32> {
        self.qps.get(&(normal(peer), qpn)).copied()
    }

    /// Messages find the connection of an id by what is known of it now.
    pub(super) fn add(&mut self, index: u32, conn: &Conn) {
        let peer = normal(conn.to);
        self.ours.insert(conn.ours, index);
        if conn.theirs != 0 {
            self.theirs.insert((peer, conn.theirs), index);
        }
        if conn.remote_qpn != 0 {
            self.qps.insert((peer, conn.remote_qpn), index);
        }
    }

    /// They no longer do.
    pub(super) fn remove(&mut self, index: u32, conn: &Conn) {
        let peer = normal(conn.to);
        if self.by_ours(conn.ours) == Some(index) {
            self.ours.remove(&conn.ours);
        }
        for (of, number) in [
            (&mut self.theirs, conn.theirs),
            (&mut self.qps, conn.remote_qpn),
        ] {
            if of.get(&(peer, number)) == Some(&index) {
                of.remove(&(peer, number));
            }
        }
    }
}

/// Whom a message is for, of those that share an address.
pub(crate) enum Address {
    /// Who calls a connection so.
    Connection(u32),
    /// Who listens for this.
    Service(u64),
}

/// Whom a message is for; `None` if it does not say.
pub(crate) fn address_of(message: &CmMessage) -> Option<Address> {
    let number = match message {
        CmMessage::Req(req) => return Some(Address::Service(req.service_id)),
        CmMessage::SidrReq(req) => return Some(Address::Service(req.service_id)),
        CmMessage::Mra(mra) => mra.remote_comm_id,
        CmMessage::Rej(rej) => rej.remote_comm_id,
        CmMessage::Rep(rep) => rep.remote_comm_id,
        CmMessage::Rtu(rtu) => rtu.remote_comm_id,
        CmMessage::Dreq(dreq) => dreq.remote_comm_id,
        CmMessage::Drep(drep) => drep.remote_comm_id,
        CmMessage::SidrRep(rep) => rep.request_id,
    };
    (number != 0).then_some(Address::Connection(number))
}

/// Which of the processes that share an address calls a connection so.
pub(crate) fn tenant_of(ours: u32) -> Option<u8> {
    Some((ours >> TENANT) as u8)
}

/// The first of the bits that tell processes apart.
const TENANT: u32 = 24;

/// A port, by the GID that its packets come with: two may lead to it.
pub(super) fn normal(peer: Peer) -> Peer {
    Peer {
        gid: gid_of(ip_of(peer.gid)),
        ..peer
    }
}
