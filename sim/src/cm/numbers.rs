//! What both sides call connections: how messages find them.

use std::collections::BTreeMap;

use super::conn::Conn;
use super::host::Peer;
use crate::address::{gid_of, ip_of};
use crate::rng::Random;

/// The ids that messages are for, by what is in the messages.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
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
    #[cfg(feature = "network")]
    pub(super) fn become_tenant(&mut self, number: u8) {
        self.tenant = Some(number);
    }

    /// What this side calls a new connection.
    pub(super) fn next(&mut self) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            let ours = match self.tenant {
                Some(number) => self.last >> 8 | u32::from(number) << 24,
                None => self.last,
            };
            if ours != 0 && !self.ours.contains_key(&ours) {
                return ours;
            }
        }
    }

    /// How many connections there are.
    #[cfg(feature = "network")]
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

/// A port, by the GID that its packets come with: two may lead to it.
pub(super) fn normal(peer: Peer) -> Peer {
    Peer {
        gid: gid_of(ip_of(peer.gid)),
        ..peer
    }
}
