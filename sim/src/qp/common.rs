//! What both sides of a queue pair know: its identity, its state, and the route to its peer.

use verbs_api::lab::TraceEvent;
use verbs_api::{Context, Handle, Qp as QpHandle, QpAttr, QpInit, QpState, QpType, SendFlags};

use super::ece::EceOptions;
use crate::device::{Address, Device, OutPacket, PORT_MTU_BYTES, Queue, Ticket};
use crate::diagnosis::CmOrigin;
use crate::packet::Route;
use crate::packet::payload::Payload;

/// What both sides of a queue pair know.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) handle: QpHandle,
    pub(crate) qp_num: u32,
    pub(crate) init: QpInit,
    pub(crate) attr: QpAttr,
    /// Payload bytes of one packet of a connected queue pair.
    pub(crate) mtu: u32,
    /// The route to the peer of a connected queue pair.
    pub(crate) route: Option<Route>,
    /// Whether it is counted in `Base::remote_qps`.
    is_listener: bool,
    /// The number of queue pairs with failed work that the program had given up when this one was
    /// connected.
    pub(super) connected_after: u32,
    /// Its options for enhanced connection establishment.
    pub(crate) ece: EceOptions,
    /// What its attributes are from, if rdma_cm has connected it.
    pub(crate) by_cm: Option<CmOrigin>,
    /// Whether the test controls have changed a GID or a P_Key since it was connected.
    pub(crate) is_moved: bool,
    /// Whether a fault rule or the test controls have made some of its work fail.
    pub(super) is_affected: bool,
}

impl Common {
    /// The data of a queue pair in RESET.
    pub(super) fn new(handle: QpHandle, qp_num: u32, init: QpInit) -> Self {
        Self {
            handle,
            qp_num,
            init,
            attr: QpAttr {
                cap: init.cap,
                ..QpAttr::default()
            },
            mtu: PORT_MTU_BYTES,
            route: None,
            is_listener: false,
            connected_after: 0,
            ece: EceOptions::default(),
            by_cm: None,
            is_moved: false,
            is_affected: false,
        }
    }

    pub(crate) fn context(&self) -> Context {
        self.handle.context()
    }

    /// Its slot.
    pub(super) fn index(&self) -> u32 {
        self.handle.index()
    }

    /// Whether a send with these flags has a completion if it succeeds (WC-18, WC-19).
    #[inline(always)]
    pub(super) fn signals(&self, flags: SendFlags) -> bool {
        self.init.sq_sig_all || flags.contains(SendFlags::SIGNALED)
    }

    /// Whether its transport acknowledges and retries.
    pub(crate) fn is_reliable(&self) -> bool {
        let qp_type = self.init.qp_type;
        matches!(qp_type, QpType::Rc | QpType::XrcSend | QpType::XrcRecv)
    }

    pub(crate) fn state(&self) -> QpState {
        self.attr.qp_state
    }

    /// Sets the state. Nothing else writes it.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(super) fn set_state(&mut self, device: &mut Device, to: QpState) {
        let from = std::mem::replace(&mut self.attr.qp_state, to);
        let qp = self.handle;
        if from != to {
            device.base.note(TraceEvent::QpState { qp, from, to });
        }
        let listens = self.listens(device);
        self.count_listener(device, listens);
    }

    /// Payload bytes of one packet.
    pub(crate) fn mtu(&self, device: &Device) -> u32 {
        match self.init.qp_type {
            QpType::Ud => {
                let port = device.ports.at(self.attr.port_num);
                port.mtu.bytes().unwrap_or(PORT_MTU_BYTES)
            }
            _ => self.mtu,
        }
    }

    /// Whether its peer is in another process.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn is_connected_outside(&self) -> bool {
        self.route.is_some_and(|route| route.leads_outside())
    }

    /// Whether a message travels as one packet. No program can observe the difference.
    #[inline(always)]
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(super) fn sends_whole_messages(&self, device: &Device) -> bool {
        device.base.whole_messages && !self.is_connected_outside()
    }

    /// Whether it is in a state in which it accepts packets.
    pub(crate) fn takes_packets(&self) -> bool {
        matches!(
            self.state(),
            QpState::Rtr | QpState::Rts | QpState::Sqd | QpState::Sqe
        )
    }

    /// Whether packets of other processes may be for it.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    fn listens(&self, device: &Device) -> bool {
        let from_outside = match self.init.qp_type {
            QpType::Ud => device.ports.network,
            _ => self.is_connected_outside(),
        };
        self.takes_packets() && from_outside
    }

    /// Counts it among the queue pairs that listen, or no longer.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn count_listener(&mut self, device: &mut Device, listens: bool) {
        match (std::mem::replace(&mut self.is_listener, listens), listens) {
            (false, true) => device.base.remote_qps += 1,
            (true, false) => device.base.remote_qps -= 1,
            _ => {}
        }
    }

    /// Identifies a work request of one of its queues.
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
    pub(crate) fn pkey(&self, device: &Device) -> u16 {
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
        device.send(address, packet, payload);
    }
}
