//! The fast path of datagrams. Each datagram has a path of its own.

use verbs_api::{Dest, Grh, Handle, QpState, QpType, SendFlags, SendWr};

use super::conditions::{End, EndMut, PreparedSend, SlowPath, ensure};
use crate::memory::{Gathered, Span};
use crate::packet::PortId;
use crate::qp::datagram::{self, DatagramPath, Head};
use crate::qp::{Kinds, grh};

/// A datagram to send, without its bytes.
pub(crate) struct DatagramQuery {
    pub(crate) path: DatagramPath,
    pub(crate) to: PortId,
    pkey: u16,
    pub(crate) kinds: Kinds,
}

impl End<'_> {
    /// The receiver to look for, if this end is idle between messages.
    pub(crate) fn datagram_query(self, wr: &SendWr<'_>) -> Result<DatagramQuery, SlowPath> {
        let (qp, device) = (&self.qp.common, self.device);
        ensure(device.is_plain(), SlowPath::LocalDevice)?;
        ensure(qp.state() == QpState::Rts, SlowPath::LocalState)?;
        let requester = self.qp.requester.as_ref().ok_or(SlowPath::LocalTransport)?;
        ensure(requester.is_at_rest(qp), SlowPath::LocalBusy)?;
        let of_context = |ah: verbs_api::Ah| ah.context() == qp.context();
        let has_ah = matches!(wr.dest, Dest::Ud { ah, .. } if of_context(ah));
        let (mtu, length) = (qp.mtu(device), wr.length());
        ensure(has_ah && length <= mtu.into(), SlowPath::Operation)?;
        datagram::check(device, requester.pd, mtu, wr.dest, length as u32)
            .map_err(|_| SlowPath::Operation)?;
        let path = datagram::path(qp, device, wr.dest).ok_or(SlowPath::Operation)?;
        let route = &path.route;
        ensure(device.ports.at(route.from.port).up, SlowPath::LocalPort)?;
        // A group may have several receivers, and without a GRH the header differs.
        let is_single = !path.to_group && !route.dgid.is_multicast() && route.global;
        let to = route.to.filter(|to| is_single && !to.is_outside());
        Ok(DatagramQuery {
            to: to.ok_or(SlowPath::Elsewhere)?,
            kinds: self.kinds_to_send() & Kinds::SENDS,
            pkey: qp.pkey(device),
            path,
        })
    }

    /// Whether this queue pair receives datagrams like this one.
    pub(crate) fn answer_datagram(self, asked: &DatagramQuery) -> Result<(), SlowPath> {
        self.check_takes(QpType::Ud, asked.to.port, asked.pkey)?;
        let has_qkey = asked.path.deth.qkey == self.qp.common.attr.qkey;
        ensure(has_qkey, SlowPath::RemoteQkey)
    }

    /// Where a datagram goes, and the header before its bytes.
    pub(crate) fn check_datagram_receive(
        self,
        prepared: &PreparedSend,
        asked: &DatagramQuery,
        parts: &mut Vec<Span>,
    ) -> Result<(Gathered, [u8; Grh::BYTES]), SlowPath> {
        let whole = prepared.length + grh::BYTES;
        let place = self.check_receive_bytes(whole, parts)?;
        let header = grh::bytes(&head(prepared, asked));
        Ok((place, header))
    }
}

impl EndMut<'_> {
    /// Completes the receive of a datagram that was checked.
    pub(crate) fn take_datagram(
        &mut self,
        prepared: &PreparedSend,
        asked: &DatagramQuery,
        flags: SendFlags,
    ) {
        let device = &*self.device;
        let sl = device.base.behavior.ud_sl;
        let wc = datagram::completion(&head(prepared, asked), &device.ports, sl);
        self.complete_receive(wc, flags);
    }
}

fn head<'a>(prepared: &PreparedSend, asked: &'a DatagramQuery) -> Head<'a> {
    Head {
        route: &asked.path.route,
        deth: asked.path.deth,
        imm: prepared.imm,
        length: prepared.length,
    }
}
