//! QP 1 of a device, which exchanges management messages (IBA 13.5), and the connections that
//! have ended.

use std::sync::Arc;

use verbs_api::QpType;
use verbs_api::behavior::RemoteFaults;
use verbs_api::lab::Syndrome;

use super::Device;
use super::base::Base;
use super::egress::{Address, OutPacket};
use crate::packet::payload::Payload;
use crate::packet::{Deth, DropReason, HOP_LIMIT, NetworkFields, Op, Packet, Psn, Route};

/// The number of the queue pair.
pub(crate) const GSI_QPN: u32 = 1;
/// The Q_Key of every QP 1.
const QKEY: u32 = 0x8001_0000;
const PKEY: u16 = 0xffff;

/// QP 1 of a device. It has no queues.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gsi {
    psn: Psn,
    /// Messages that were received and not taken yet, oldest first, with their routes.
    pub(crate) received: Vec<(Route, Payload)>,
    /// The numbers of queue pairs whose connections have ended, for the connection manager, and who
    /// ended them. Only of devices whose errors end connections.
    pub(crate) ended: Vec<(u32, Ender)>,
}

/// Who has ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ender {
    Own,
    Peer,
}

impl Base {
    /// Whether errors of queue pairs end their connections.
    pub(crate) fn ends_connections(&self) -> bool {
        self.behavior.remote_faults == RemoteFaults::EndsConnection
    }

    /// Whether an answer ends a connection, where errors do.
    pub(crate) fn is_end(&self, syndrome: Syndrome) -> bool {
        let is_fault = matches!(
            syndrome,
            Syndrome::NakInvalidRequest | Syndrome::NakRemoteAccess | Syndrome::NakRemoteOperation
        );
        is_fault && self.ends_connections()
    }
}

impl Device {
    /// Sends a message of QP 1.
    pub(crate) fn send_mad(&mut self, route: &Route, mad: &[u8]) {
        let op = Op::Datagram(Deth {
            qkey: QKEY,
            src_qpn: GSI_QPN,
            sl: 0,
        });
        let route = &Route {
            fields: NetworkFields {
                hop_limit: HOP_LIMIT,
                ..NetworkFields::default()
            },
            ..*route
        };
        let address = Address {
            route,
            transport: QpType::Ud,
            src_qpn: GSI_QPN,
            dest_qpn: GSI_QPN,
            pkey: PKEY,
        };
        let packet = OutPacket::answer(op, self.gsi.psn, 0);
        // Datagrams have no acknowledgements, but each has a number.
        self.gsi.psn = self.gsi.psn.plus(1);
        self.send(address, packet, Payload::inline(Arc::from(mad)));
    }
}

impl Gsi {
    /// Receives a packet.
    pub(crate) fn receive(&mut self, packet: &Packet) -> Result<(), DropReason> {
        match packet.op {
            Op::Datagram(deth) if deth.qkey == QKEY => {
                self.received.push((packet.route, packet.payload.clone()));
                Ok(())
            }
            // Only management messages may use QP 1.
            _ => Err(DropReason::NotForGsi),
        }
    }
}
