//! The end of a connection where an error of one queue pair ends it, as on iWARP
//! ([`EndsConnection`](verbs_api::behavior::RemoteFaults::EndsConnection)).
//!
//! The peer learns of it by a NAK, which is for all of its work, and the connection manager from
//! the device.

use verbs_api::QpType;
use verbs_api::lab::Syndrome;

use super::Qp;
use crate::device::{Device, Ender};
use crate::packet::Packet;

impl Qp {
    /// Ends the connection, if there is one and the device ends them with errors.
    pub(crate) fn hang_up(&mut self, device: &mut Device) {
        let is_connected = self.common.init.qp_type == QpType::Rc && self.common.takes_packets();
        if is_connected && device.base.ends_connections() {
            let (qp, responder) = (&self.common, &self.responder);
            responder.answer_next(qp, device, Syndrome::NakRemoteOperation);
            device.gsi.ended.push((qp.qp_num, Ender::Own));
        }
    }

    /// Whether a packet is of the peer, and not of a queue pair whose peer had the same number
    /// before. Packets of other processes do not say it.
    pub(super) fn is_of_peer(&self, packet: &Packet) -> bool {
        packet.src_qpn == 0 || packet.src_qpn == self.common.attr.dest_qp_num
    }

    /// The peer has ended the connection, which gets no answer.
    pub(super) fn hear_end(&mut self, device: &mut Device) {
        device.gsi.ended.push((self.common.qp_num, Ender::Peer));
        self.stop_work(device);
    }
}
