//! Datagrams that are carried out at once: each has a way of its own.

use verbs_api::{Dest, Grh, Handle, QpState, QpType, SendFlags, SendWr};

use super::conditions::{Detour, End, EndMut, Leaving, ensure};
use crate::memory::{Gathered, Span};
use crate::packet::PortId;
use crate::qp::datagram::{self, DatagramWay, Head};
use crate::qp::{Kinds, grh};

/// A datagram that is to leave, without its bytes.
pub(crate) struct Asked {
    way: DatagramWay,
    pub(crate) to: PortId,
    pkey: u16,
    pub(crate) kinds: Kinds,
}

impl Asked {
    pub(crate) fn dest_qpn(&self) -> u32 {
        self.way.dest_qpn
    }
}

impl End<'_> {
    /// What is to be asked of the receiver, if this end stands as it does between messages.
    pub(crate) fn ask_datagram(self, wr: &SendWr<'_>) -> Result<Asked, Detour> {
        let (qp, device) = (&self.qp.common, self.device);
        ensure(device.is_plain(), Detour::NearDevice)?;
        ensure(qp.state() == QpState::Rts, Detour::NearState)?;
        let requester = self.qp.requester.as_ref().ok_or(Detour::NearTransport)?;
        ensure(requester.is_at_rest(qp), Detour::NearBusy)?;
        let of_context = |ah: verbs_api::Ah| ah.context() == qp.context();
        let has_ah = matches!(wr.dest, Dest::Ud { ah, .. } if of_context(ah));
        let (mtu, length) = (qp.mtu(device), wr.length());
        ensure(has_ah && length <= mtu.into(), Detour::Operation)?;
        datagram::check(device, requester.pd, mtu, (wr.dest, length as u32))
            .map_err(|_| Detour::Operation)?;
        let way = datagram::way(qp, device, wr.dest).ok_or(Detour::Operation)?;
        let route = &way.route;
        ensure(device.ports.at(route.from.port).up, Detour::NearPort)?;
        let is_single = !way.to_group && !route.dgid.is_multicast() && route.global;
        let to = route.to.filter(|to| is_single && !to.is_outside());
        Ok(Asked {
            to: to.ok_or(Detour::Elsewhere)?,
            kinds: self.kinds_to_send() & Kinds::SENDS,
            pkey: qp.pkey(device),
            way,
        })
    }

    /// Whether this is the receiver, and takes datagrams from there.
    pub(crate) fn answer_datagram(self, asked: &Asked) -> Result<(), Detour> {
        self.check_takes(QpType::Ud, asked.to.port, asked.pkey)?;
        ensure(
            asked.way.deth.qkey == self.qp.common.attr.qkey,
            Detour::FarQkey,
        )
    }

    /// Where a datagram goes, and what is put before its bytes.
    pub(crate) fn admit_datagram(
        self,
        (leaving, asked): (&Leaving, &Asked),
        parts: &mut Vec<Span>,
    ) -> Result<(Gathered, [u8; Grh::BYTES]), Detour> {
        let device = self.device;
        let whole = leaving.length + grh::BYTES;
        let place = self.admit_bytes(whole, parts)?;
        Ok((
            place,
            grh::bytes(&head(leaving, asked), device.ports.subnet()),
        ))
    }
}

impl EndMut<'_> {
    /// A datagram that was admitted has come: its receive completes.
    pub(crate) fn take_datagram(&mut self, (leaving, asked): (&Leaving, &Asked), flags: SendFlags) {
        let device = &*self.device;
        let subnet = device.ports.subnet();
        let sl = device.base.behavior.ud_sl;
        let wc = datagram::completion(&head(leaving, asked), subnet, sl);
        self.complete_receive(wc, flags);
    }
}

fn head<'a>(leaving: &Leaving, asked: &'a Asked) -> Head<'a> {
    Head {
        route: &asked.way.route,
        deth: asked.way.deth,
        imm: leaving
            .kind
            .intersects(Kinds::WITH_IMM)
            .then_some(leaving.imm),
        length: leaving.length,
    }
}
