//! What both sides of a queue pair know of it: who it is, how it stands, and the way to its peer.

use verbs_api::lab::TraceEvent;
use verbs_api::profile::DeviceLimits;
use verbs_api::table::Id;
use verbs_api::{Context, Handle, Qp as QpHandle, QpAttr, QpInit, QpState, QpType};

use crate::device::{Address, Device, OutPacket, PORT_MTU_BYTES, Queue, Ticket};
use crate::packet::Route;
use crate::payload::Payload;

/// What both sides of a queue pair know of it.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) handle: QpHandle,
    pub(crate) qp_num: u32,
    pub(crate) init: QpInit,
    pub(crate) attr: QpAttr,
    /// Payload bytes of one packet, of a connected queue pair.
    pub(super) mtu: u32,
    /// To the peer, of a connected queue pair.
    pub(crate) route: Option<Route>,
}

/// QP numbers are 24 bits: the slot plus 2 (0 and 1 are reserved) in the lower 17, and above them a
/// tag that changes each time the slot is used.
const INDEX_BITS: u32 = 17;
/// Leaves room for slots that rest before they are used again.
const MAX_QP: u32 = (1 << INDEX_BITS) - 2 - 2 * verbs_api::table::QUARANTINE as u32;
const _: () = assert!(DeviceLimits::SPEC.max_qp == MAX_QP);

/// The number of the queue pair in a slot.
fn qp_num(id: Id, number_reuse: bool) -> u32 {
    let tag = if number_reuse { 0 } else { id.generation - 1 };
    (tag & 0x7f) << INDEX_BITS | (id.index + 2)
}

/// The slot of the queue pair that a number would be of.
pub(crate) fn slot_of_number(qp_num: u32) -> Option<u32> {
    (qp_num & ((1 << INDEX_BITS) - 1)).checked_sub(2)
}

/// Whether a transport acknowledges, and tries again.
pub(super) fn is_reliable(qp_type: QpType) -> bool {
    matches!(qp_type, QpType::Rc | QpType::XrcSend | QpType::XrcRecv)
}

impl Common {
    /// One in RESET.
    pub(super) fn new(handle: QpHandle, number_reuse: bool, init: QpInit) -> Self {
        let id = Id {
            index: handle.index(),
            generation: handle.generation(),
        };
        Self {
            handle,
            qp_num: qp_num(id, number_reuse),
            init,
            attr: QpAttr {
                cap: init.cap,
                ..QpAttr::default()
            },
            mtu: PORT_MTU_BYTES,
            route: None,
        }
    }

    pub(super) fn context(&self) -> Context {
        self.handle.context()
    }

    /// Its slot.
    pub(super) fn index(&self) -> u32 {
        self.handle.index()
    }

    pub(super) fn is_reliable(&self) -> bool {
        is_reliable(self.init.qp_type)
    }

    pub(super) fn state(&self) -> QpState {
        self.attr.qp_state
    }

    /// The only writer of the state.
    pub(super) fn set_state(&mut self, device: &mut Device, to: QpState) {
        let from = std::mem::replace(&mut self.attr.qp_state, to);
        let qp = self.handle;
        if from != to {
            device.base.note(TraceEvent::QpState { qp, from, to });
        }
    }

    /// Payload bytes of one packet.
    pub(super) fn mtu(&self, device: &Device) -> u32 {
        match self.init.qp_type {
            QpType::Ud => {
                let port = device.ports.at(self.attr.port_num);
                port.mtu.bytes().unwrap_or(PORT_MTU_BYTES)
            }
            _ => self.mtu,
        }
    }

    /// Names a work request of one of its queues.
    pub(super) fn ticket(&self, queue: Queue, seq: u64, label: u64) -> Ticket {
        Ticket {
            qp: self.index(),
            qp_generation: self.handle.generation(),
            queue,
            seq,
            label,
        }
    }

    #[inline(always)]
    pub(super) fn pkey(&self, device: &Device) -> u16 {
        device.ports.pkey(self.attr.port_num, self.attr.pkey_index)
    }

    /// Sends a packet to the peer of a connected queue pair.
    #[inline(always)]
    pub(super) fn send_to_peer(&self, device: &mut Device, packet: OutPacket, payload: Payload) {
        let Some(route) = &self.route else { return };
        let address = Address {
            route,
            transport: self.init.qp_type,
            src_qpn: self.qp_num,
            dest_qpn: self.attr.dest_qp_num,
            pkey: self.pkey(device),
        };
        let Device {
            base,
            ports,
            outbox,
            ..
        } = device;
        outbox.send(base, ports, address, packet, payload);
    }
}
