//! Conditions of the fast path: messages that move without packets.
//!
//! If no observer sees packets and both ends are idle between messages, all effects of the next
//! message are known before it starts. Its bytes are moved, and its receive and its send complete.
//! Then both ends are in the state that packets and acknowledgements would have left. Every
//! exception is found before anything changes, and falls back to packets: a message that fails,
//! waits, or is not whole, and a queue with other work in progress.
//!
//! ```text
//!     local                        remote
//!     prepare: the message
//!                                  check_receive: whether and where it is received
//!                (bytes are moved)
//!                                  take: the receive completes
//!     end: the send is queued, done, and completes
//! ```
//!
//! A send that is done when its message has left completes before the receive. A path to the peer,
//! once found, is valid for an epoch of the fabric. Within an epoch only these happen: messages on
//! the fast path, posted receives, polls, and verbs for events.

use verbs_api::behavior::{AckEffect, Check, Placement, SendDone, UndefinedFields};
use verbs_api::{
    Access, Capabilities, Dest, OdpOps, QpState, QpType, Remote, SendFlags, SendOp, SendWr, Wc,
    WcOpcode,
};

use crate::device::{Device, Peer, Recv, length_of, pkeys_match};
use crate::memory::{Gathered, Span};
use crate::packet::{NetworkType, PortId, Psn, Route, packets};
use crate::qp::requester::Requester;
use crate::qp::responder::completion;
use crate::qp::{CachedPath, Kinds, Qp, atomic, check_data};

/// Why a message falls back to packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SlowPath {
    /// The first five concern the sender. Its device behaves in an exceptional way, or is dead.
    LocalDevice,
    LocalTransport,
    LocalState,
    LocalPort,
    /// Other work is in progress, fails, or waits.
    LocalBusy,
    /// The peer does not exist, or is in another process.
    Elsewhere,
    /// The next seven concern the receiver.
    RemoteDevice,
    RemoteQp,
    RemoteState,
    RemotePort,
    RemotePkey,
    RemoteQkey,
    /// Its packets have another size.
    RemoteMtu,
    /// It is connected with another queue pair.
    RemotePeer,
    /// It has received a part of a message.
    RemoteBusy,
    /// The send is refused, fails, or moves no bytes.
    Operation,
    /// One of the ends is not ready for messages of this kind.
    Kind,
    SendQueue,
    /// The device itself is the peer, and could observe a whole list or earlier bytes.
    ForItself,
    SendCq,
    LocalMemory,
    /// The rest concerns the receive, or the memory at the receiver.
    Sequence,
    NoReceive,
    ReceiveCq,
    ReceiveLength,
    ReceiveMemory,
    Alignment,
    RemoteMemory,
}

/// What one end needs to know to find the path to the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathQuery {
    qp_type: QpType,
    qp_num: u32,
    pub(crate) dest_qpn: u32,
    from: PortId,
    pub(crate) to: PortId,
    pkey: u16,
    network_type: NetworkType,
    mtu: u32,
    pub(crate) kinds: Kinds,
    pub(crate) ends_first: bool,
}

/// A checked message of the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreparedSend {
    pub(crate) path: CachedPath,
    pub(crate) local: Gathered,
    pub(crate) kind: Kinds,
    psn: Psn,
    span: u32,
    pub(crate) length: u32,
    pub(crate) imm: Option<[u8; 4]>,
    /// The memory of the peer that it names.
    place: Remote,
}

impl Device {
    /// Whether the device handles messages as the fast path does.
    pub(crate) fn is_plain(&self) -> bool {
        let behavior = &self.base.behavior;
        !self.base.dead
            && self.base.rules.spares_completions()
            && behavior.placement != Placement::Late
            && behavior.ack_effect == AckEffect::Arrival
            && behavior.undefined_wc_fields == UndefinedFields::Zero
            && behavior.zero_len_sge_check != Check::Refused
            && behavior.recv_sgl_overhang != Check::Refused
    }
}

/// Returns `slow_path` as the reason to fall back to packets, unless the condition holds.
#[inline(always)]
pub(crate) fn ensure(is_so: bool, slow_path: SlowPath) -> Result<(), SlowPath> {
    if is_so { Ok(()) } else { Err(slow_path) }
}

/// An end of messages, for reading.
#[derive(Clone, Copy)]
pub(crate) struct End<'a> {
    pub(crate) qp: &'a Qp,
    pub(crate) device: &'a Device,
}

/// An end of messages, for writing.
pub(crate) struct EndMut<'a> {
    pub(crate) qp: &'a mut Qp,
    pub(crate) device: &'a mut Device,
}

impl<'a> End<'a> {
    /// The query for the peer, if this end is idle between messages.
    pub(crate) fn path_query(self) -> Result<PathQuery, SlowPath> {
        let (qp, device) = (&self.qp.common, self.device);
        ensure(device.is_plain(), SlowPath::LocalDevice)?;
        let is_known = matches!(qp.init.qp_type, QpType::Rc | QpType::Uc);
        ensure(is_known, SlowPath::LocalTransport)?;
        ensure(qp.state() == QpState::Rts, SlowPath::LocalState)?;
        let route = qp.route.as_ref().ok_or(SlowPath::Elsewhere)?;
        let port = route.from.port;
        let is_good = qp.attr.port_num == port && device.ports.at(port).up;
        ensure(is_good, SlowPath::LocalPort)?;
        let rests = |requester: &Requester| requester.is_at_rest(qp);
        let rests = self.qp.requester.as_ref().is_some_and(rests);
        // Earlier packets and timers come first.
        ensure(rests, SlowPath::LocalBusy)?;
        let to = route.to.filter(|to| !to.is_outside());
        Ok(PathQuery {
            qp_type: qp.init.qp_type,
            qp_num: qp.qp_num,
            dest_qpn: qp.attr.dest_qp_num,
            from: route.from,
            to: to.ok_or(SlowPath::Elsewhere)?,
            pkey: qp.pkey(device),
            network_type: route.network_type,
            mtu: qp.mtu(device),
            kinds: self.kinds_to_send(),
            ends_first: !qp.is_reliable() || device.base.behavior.send_done == SendDone::Sent,
        })
    }

    pub(crate) fn kinds_to_send(self) -> Kinds {
        let (lacks, qp) = (self.device.base.lacks, &self.qp.common);
        let may_read = qp.is_reliable() && qp.attr.max_rd_atomic > 0;
        let mut kinds = Kinds::SEND | Kinds::WRITE;
        // Each datagram comes here. The unrolled loop is cheaper than one `set` after the other.
        for (kind, needs, is_ready) in [
            (Kinds::SEND_WITH_IMM, Capabilities::SEND_WITH_IMM, true),
            (Kinds::WRITE_WITH_IMM, Capabilities::WRITE_WITH_IMM, true),
            (Kinds::READ, Capabilities::RDMA_READ, may_read),
            (Kinds::ATOMIC, Capabilities::ATOMICS, may_read),
        ] {
            kinds.set(kind, is_ready && !lacks.contains(needs));
        }
        kinds
    }

    fn kinds_to_receive(self) -> Kinds {
        let attr = &self.qp.common.attr;
        let may_read = attr.max_dest_rd_atomic > 0;
        let mut kinds = Kinds::SENDS;
        for (more, needs, is_ready) in [
            (Kinds::WRITES, Access::REMOTE_WRITE, true),
            (Kinds::READ, Access::REMOTE_READ, may_read),
            (Kinds::ATOMIC, Access::REMOTE_ATOMIC, may_read),
        ] {
            kinds.set(more, is_ready && attr.qp_access_flags.contains(needs));
        }
        kinds
    }

    /// The kinds of messages that this end receives, if it takes packets from the sender.
    pub(crate) fn answer_path(self, asked: &PathQuery) -> Result<Kinds, SlowPath> {
        let (qp, device) = (&self.qp.common, self.device);
        self.check_takes(asked.qp_type, asked.to.port, asked.pkey)?;
        // The first message establishes the connection with an event, which packets raise.
        let raises = device.base.behavior.comm_est && !self.qp.comm_est;
        let establishes = qp.state() == QpState::Rtr && raises;
        ensure(!establishes, SlowPath::RemoteState)?;
        ensure(qp.mtu(device) == asked.mtu, SlowPath::RemoteMtu)?;
        let answers = |route: &Route| {
            route.to == Some(asked.from)
                && route.network_type == asked.network_type
                && (!qp.is_reliable()
                    || route.from == asked.to && qp.attr.dest_qp_num == asked.qp_num)
        };
        ensure(qp.route.as_ref().is_some_and(answers), SlowPath::RemotePeer)?;
        let rests = self.qp.responder.is_between_messages();
        ensure(rests, SlowPath::RemoteBusy)?;
        Ok(self.kinds_to_receive())
    }

    /// Whether this end takes packets of a transport that arrive at a port with a P_Key.
    pub(crate) fn check_takes(self, qp_type: QpType, port: u8, pkey: u16) -> Result<(), SlowPath> {
        let (qp, device) = (&self.qp.common, self.device);
        ensure(device.is_plain(), SlowPath::RemoteDevice)?;
        ensure(qp.init.qp_type == qp_type, SlowPath::RemoteQp)?;
        ensure(qp.takes_packets(), SlowPath::RemoteState)?;
        let is_good = qp.attr.port_num == port && device.ports.at(port).up;
        ensure(is_good, SlowPath::RemotePort)?;
        ensure(pkeys_match(qp.pkey(device), pkey), SlowPath::RemotePkey)
    }

    /// Checks a send, and finds the local memory that it names.
    #[inline(always)]
    pub(crate) fn prepare(
        self,
        path: CachedPath,
        wr: &SendWr<'_>,
        parts: &mut Vec<Span>,
    ) -> Result<PreparedSend, SlowPath> {
        let (qp, device) = (&self.qp.common, self.device);
        let requester = self.qp.requester.as_ref().ok_or(SlowPath::LocalTransport)?;
        let nowhere = Remote { addr: 0, rkey: 0 };
        let (kind, imm, place) = match wr.op {
            SendOp::Send => (Kinds::SEND, None, nowhere),
            SendOp::RdmaWrite { remote } => (Kinds::WRITE, None, remote),
            SendOp::SendWithImm { imm_data } => (Kinds::SEND_WITH_IMM, Some(imm_data), nowhere),
            SendOp::RdmaWriteWithImm { remote, imm_data } => {
                (Kinds::WRITE_WITH_IMM, Some(imm_data), remote)
            }
            SendOp::RdmaRead { remote } => (Kinds::READ, None, remote),
            SendOp::CompareAndSwap { remote, .. } | SendOp::FetchAndAdd { remote, .. } => {
                (Kinds::ATOMIC, None, remote)
            }
            // Binds and invalidations change keys, which packets handle.
            _ => return Err(SlowPath::Operation),
        };
        ensure(path.kinds.contains(kind), SlowPath::Kind)?;
        let reads = kind.intersects(Kinds::READS);
        let is_inline = wr.flags.contains(SendFlags::INLINE);
        let whole = match wr.inline_data {
            None => length_of(wr.sg_list),
            Some(bytes) => bytes.len() as u64,
        };
        // The checks of posting follow; a send that they refuse is refused again with packets.
        let (behavior, cap) = (&device.base.behavior, &qp.init.cap);
        let has_sges = wr.sg_list.len() <= cap.max_send_sge as usize;
        let is_to_peer = matches!(wr.dest, Dest::Connected) || qp.init.qp_type == QpType::Ud;
        ensure(has_sges && is_to_peer, SlowPath::Operation)?;
        check_data(behavior, cap, wr, whole).map_err(|_| SlowPath::Operation)?;
        let mut length = whole as u32;
        if kind == Kinds::ATOMIC {
            let taken = atomic::length(behavior.atomic_check, length);
            length = taken.map_err(|_| SlowPath::Operation)?;
        }
        ensure(!requester.sq.is_full(), SlowPath::SendQueue)?;
        // Both ends may complete to the same CQ.
        let completions = 1 + usize::from(path.node == device.base.id);
        let has_room = device.cqs.has_room(requester.cq, completions);
        ensure(has_room, SlowPath::SendCq)?;
        let need = if reads {
            Access::LOCAL_WRITE
        } else {
            Access::empty()
        };
        let as_of = (!is_inline).then_some((requester.pd, need));
        let regions = &device.domains.regions;
        let local = match wr.inline_data {
            None => regions.spans(as_of, wr.sg_list, length, parts),
            Some(bytes) => Some(Gathered::One(Span::of_shared(bytes))),
        };
        Ok(PreparedSend {
            path,
            local: local.ok_or(SlowPath::LocalMemory)?,
            kind,
            psn: requester.next,
            span: packets(length, qp.mtu),
            length,
            imm,
            place,
        })
    }

    /// Checks the receiver of a message, and finds the memory that it names there.
    #[inline(always)]
    pub(crate) fn check_receive(
        self,
        prepared: &PreparedSend,
        parts: &mut Vec<Span>,
    ) -> Result<Gathered, SlowPath> {
        // After a loss the receiver expects another number, and answers with a NAK.
        ensure(self.qp.responder.expects(prepared.psn), SlowPath::Sequence)?;
        let PreparedSend { kind, place, .. } = *prepared;
        if kind.intersects(Kinds::SENDS) {
            return self.check_receive_bytes(prepared.length, parts);
        }
        if kind == Kinds::WRITE_WITH_IMM {
            self.find_receive()?;
        }
        let (length, need) = match kind {
            Kinds::READ => (prepared.length, Access::REMOTE_READ),
            Kinds::ATOMIC => (atomic::BYTES, Access::REMOTE_ATOMIC),
            _ => (prepared.length, Access::REMOTE_WRITE),
        };
        let is_aligned = kind != Kinds::ATOMIC || atomic::is_aligned(place.addr);
        ensure(is_aligned, SlowPath::Alignment)?;
        if length == 0 {
            parts.clear();
            return Ok(Gathered::Parts);
        }
        let (domains, base) = (&self.device.domains, &self.device.base);
        let peer = Peer {
            qp: self.qp.common.handle,
            pd: self.qp.responder.receives.pd(),
            // On-demand regions do not take this path.
            odp: OdpOps::empty(),
        };
        let found = domains.remote_span(base, peer, place, length, need);
        found.map(Gathered::One).ok_or(SlowPath::RemoteMemory)
    }

    /// The capacity of the send queue.
    pub(crate) fn send_capacity(self) -> usize {
        let requester = self.qp.requester.as_ref();
        requester.map_or(0, |own| own.sq.capacity as usize)
    }

    /// The receive that a message consumes, and the domain of its memory.
    #[inline(always)]
    fn find_receive(self) -> Result<(u32, &'a Recv), SlowPath> {
        let (receives, device) = (&self.qp.responder.receives, self.device);
        let found = receives.next(device).map_err(|_| SlowPath::NoReceive)?;
        let has_room = |cq| device.cqs.has_room(cq, 1);
        ensure(
            receives.source.cq().is_some_and(has_room),
            SlowPath::ReceiveCq,
        )?;
        Ok(found)
    }

    /// Where the bytes of a Send go.
    #[inline(always)]
    pub(crate) fn check_receive_bytes(
        self,
        length: u32,
        parts: &mut Vec<Span>,
    ) -> Result<Gathered, SlowPath> {
        let (pd, recv) = self.find_receive()?;
        ensure(u64::from(length) <= recv.length(), SlowPath::ReceiveLength)?;
        let as_of = Some((pd, Access::LOCAL_WRITE));
        let regions = &self.device.domains.regions;
        let found = regions.spans(as_of, &recv.list, length, parts);
        found.ok_or(SlowPath::ReceiveMemory)
    }
}

impl EndMut<'_> {
    /// Completes the receive of a message that was checked. None of its packets can be repeated, so
    /// a read or an atomic takes no responder resource.
    #[inline(always)]
    pub(crate) fn take(&mut self, prepared: &PreparedSend, flags: SendFlags) {
        let PreparedSend { kind, length, .. } = *prepared;
        if kind.intersects(Kinds::RECEIVED) {
            let opcode = match kind {
                Kinds::WRITE_WITH_IMM => WcOpcode::RecvRdmaWithImm,
                _ => WcOpcode::Recv,
            };
            let wc = completion(self.device, prepared.imm, None, opcode, length);
            self.complete_receive(wc, flags);
        }
        self.qp.responder.advance(prepared.psn, prepared.span, true);
    }

    /// Completes the receive of a message that was checked.
    #[inline(always)]
    pub(crate) fn complete_receive(&mut self, mut wc: Wc, flags: SendFlags) {
        let Self { qp, device } = self;
        let (qp, receives) = (&qp.common, &mut qp.responder.receives);
        let _ = receives.need(device);
        if let Some(done) = receives.finish(qp, device) {
            (wc.wr_id, wc.qp_num) = (done.wr_id, qp.qp_num);
            let solicited = flags.contains(SendFlags::SOLICITED);
            let Device { base, cqs, .. } = &mut **device;
            cqs.add_success(base, done.cq, wc, done.ticket, solicited);
        }
    }

    /// Completes the send of a message, as if it were in its queue and done.
    #[inline(always)]
    pub(crate) fn end(&mut self, prepared: &PreparedSend, wr: &SendWr<'_>) {
        let Self { qp, device } = self;
        if let Some(requester) = &mut qp.requester {
            let (span, length) = (prepared.span, prepared.length);
            requester.record_sent(&qp.common, device, wr, span, length);
        }
    }
}
