//! Doubts: a timer has fired, and the peer, another process of this machine, may only be slow.
//!
//! The core does not know, so it asks: queue pairs raise doubts, and `network` settles them.

use core::net::IpAddr;

use verbs_api::table::Id;
use verbs_api::{Handle, Qp as QpHandle};

use crate::packet::Psn;

/// The open doubts of a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Doubts {
    /// How long a queue pair waits for a slow peer, in nanoseconds. With 0 none raises a doubt.
    pub(crate) patience: u64,
    pub(crate) open: Vec<Doubt>,
}

/// A queue pair whose timer has fired.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubt {
    pub(crate) qp: Id,
    /// The address of its peer.
    pub(crate) peer: IpAddr,
    /// The oldest number that is not acknowledged.
    pub(crate) una: Psn,
}

impl Doubts {
    /// Raises a doubt.
    pub(crate) fn raise(&mut self, qp: QpHandle, peer: IpAddr, una: Psn) {
        let qp = Id {
            index: qp.index(),
            generation: qp.generation(),
        };
        self.open.push(Doubt { qp, peer, una });
    }
}
