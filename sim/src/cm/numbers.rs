//! The numbers of connections, by which messages find them.

use std::collections::BTreeMap;

use verbs_api::cm::PortSpace;
use verbs_roce::mad::CmMessage;

use super::conn::Conn;
use super::host::Peer;
use super::ids::Ids;
use crate::address::{gid_of, ip_of};
use crate::rng::Random;

/// The ids of connections, by the numbers in their messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    /// By the local communication id, or the id of a request for datagrams.
    pub(super) ours: BTreeMap<u32, u32>,
    /// By the port of the other side and its communication id.
    theirs: BTreeMap<(Peer, u32), u32>,
    /// By the port of the other side and its queue pair.
    qps: BTreeMap<(Peer, u32), u32>,
    last: u32,
    /// The number of this process among those that share an address. All numbers that are made
    /// from now on contain it.
    pub(crate) tenant: Option<u8>,
}

impl Numbers {
    pub(super) fn new(random: &mut Random) -> Self {
        Self {
            last: random.any() as u32,
            ..Self::default()
        }
    }

    /// The local communication id of a new connection.
    pub(super) fn next(&mut self) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            let ours = match self.tenant {
                Some(number) => self.last >> 8 | u32::from(number) << TENANT,
                None => self.last,
            };
            // 0 means that a message names no connection.
            if ours != 0 && !self.ours.contains_key(&ours) {
                return ours;
            }
        }
    }

    /// Whether a message to an address that several processes share is for another process.
    pub(crate) fn is_for_other(&self, ids: &Ids, message: &CmMessage) -> bool {
        match address_of(message) {
            None => false,
            // Another process with the same address may have chosen the number.
            Some(Address::Connection(number)) => {
                self.tenant.is_some_and(|own| own != tenant_of(number))
            }
            Some(Address::Service(service_id)) => {
                let of = verbs_roce::mad::service_port(service_id);
                !of.is_some_and(|(ps, port)| ids.listens(PortSpace::from(u32::from(ps)), port))
            }
        }
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

    /// Registers the known numbers of an id's connection.
    pub(super) fn add(&mut self, index: u32, conn: &Conn) {
        let peer = normal(conn.exchange.peer);
        self.ours.insert(conn.ours, index);
        if conn.theirs != 0 {
            self.theirs.insert((peer, conn.theirs), index);
        }
        if conn.remote_qpn != 0 {
            self.qps.insert((peer, conn.remote_qpn), index);
        }
    }

    /// Unregisters the numbers of an id's connection.
    pub(super) fn remove(&mut self, index: u32, conn: &Conn) {
        let peer = normal(conn.exchange.peer);
        // A later connection may have the same numbers.
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

/// The receiver of a message among processes that share an address.
pub(crate) enum Address {
    /// The process that chose this communication id.
    Connection(u32),
    /// The process that listens for this service.
    Service(u64),
}

/// The receiver of a message. `None` if the message does not name it.
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

/// The process, among those that share an address, that chose a communication id.
pub(crate) fn tenant_of(ours: u32) -> u8 {
    (ours >> TENANT) as u8
}

/// The lowest bit of the number of a process.
const TENANT: u32 = 24;

/// A port by the GID that its packets carry, because two GIDs may lead to it.
pub(super) fn normal(peer: Peer) -> Peer {
    Peer {
        gid: gid_of(ip_of(peer.gid)),
        ..peer
    }
}
