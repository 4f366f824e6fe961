//! Why work of a queue pair failed, for the journal of its node.

use verbs_api::site::Site;
use verbs_api::{Access, Dest, Handle, QpType, SendOp, WcStatus};

use super::common::Common;
use super::receives::Receives;
use super::requester::Requester;
use super::responder::Responder;
use super::wait::rnr_wait;
use super::{atomic, grh};
use crate::device::{Device, Recv, Send};
use crate::diagnosis::{
    DropDetails, FailedWork, FailureCause, LabCause, LossCause, Rights, Standing, Why,
};
use crate::packet::{DropReason, Op, Packet, Reth};

impl Common {
    /// Records that the oldest send is about to fail. `loss` is why the first unanswered request,
    /// or a newer one, was lost. Returns whether a fault rule or the test controls made it fail.
    #[cold]
    pub(super) fn note_failed_send(
        &self,
        requester: &Requester,
        loss: Option<LossCause>,
        device: &mut Device,
        status: WcStatus,
    ) -> bool {
        let (pd, send) = (requester.pd, requester.sq.get(requester.sq.oldest()));
        let peer = self.route.and_then(|route| route.to);
        let asked = peer.filter(|to| !to.is_outside());
        let is_silent = status == WcStatus::RetryExcErr;
        // A request that was never answered may have been unsendable: a retry reads the memory
        // again.
        let own = is_silent.then(|| not_there(pd, send, device)).flatten();
        // The program's own mistake is the better reason, if there is one.
        let by_lab = match own {
            None if is_silent => self.lost_by_lab(loss, device),
            _ => None,
        };
        let why = own.or(by_lab.map(Why::from)).or_else(|| match status {
            WcStatus::RnrRetryExcErr => Some(self.not_ready().into()),
            WcStatus::RetryExcErr if peer.is_none() => Some(match self.route {
                Some(route) if route.global => FailureCause::UnownedGid { gid: route.dgid }.into(),
                _ => FailureCause::UnownedLid.into(),
            }),
            // The journal of a peer in another process cannot be read.
            WcStatus::RetryExcErr => asked.is_none().then(|| self.not_answered().into()),
            WcStatus::RemInvReqErr | WcStatus::RemAccessErr | WcStatus::RemOpErr => {
                let is_elsewhere = asked.is_none();
                is_elsewhere.then(|| FailureCause::RefusedElsewhere.into())
            }
            _ => self.not_sent(pd, send, device, status),
        });
        device.base.journal.failed(FailedWork {
            qp_num: self.qp_num,
            receive: false,
            label: send.label,
            status,
            why,
            // The first unanswered request identifies what the peer was asked.
            asked: asked.map(|to| (to.node, requester.una.value())),
            at: device.base.now,
            site: send.site,
            standing: Standing::Open,
        });
        by_lab.is_some()
    }

    /// Why a peer in another process does not answer, if there is one.
    fn not_answered(&self) -> FailureCause {
        let unowned = self.route.filter(|route| route.was_unowned);
        unowned.map_or(FailureCause::NoAnswer, |route| {
            let gid = route.dgid;
            FailureCause::WasUnowned { gid }
        })
    }

    /// Why a send has no tries left although its peer may yet post a receive.
    fn not_ready(&self) -> FailureCause {
        let (tries, of) = (self.attr.rnr_retry, self.by_cm.map(|by_cm| by_cm.rnr_retry));
        of.map_or(FailureCause::PeerNotReady, |of| FailureCause::TriesByCm {
            tries,
            of,
        })
    }

    /// What the test controls did to a request that is not answered, or to its answer, if that is
    /// the reason. `loss` is what the fabric knows of its packets. It knows nothing of packets that
    /// did not leave a port because the port was down.
    fn lost_by_lab(&self, loss: Option<LossCause>, device: &Device) -> Option<LabCause> {
        let port = device.ports.at(self.attr.port_num);
        match loss {
            Some(LossCause::Lab(cause)) => Some(cause),
            Some(LossCause::Lasting) => None,
            // The address existed when the connection was made.
            None if self.route.is_some_and(|route| route.to.is_none()) => {
                self.is_moved.then_some(LabCause::Tables)
            }
            None if self.is_connected_outside() => (!port.up).then_some(LabCause::Port),
            None => port.was_down.then_some(LabCause::Port),
        }
    }

    /// Records that the current receive is about to fail. A flush is not a failure of its own.
    #[cold]
    pub(super) fn note_failed_recv(
        &self,
        receives: &Receives,
        device: &mut Device,
        status: WcStatus,
    ) {
        if status == WcStatus::WrFlushErr {
            return;
        }
        let Some((pd, recv)) = receives.present(device) else {
            return;
        };
        let room = recv.length();
        let too_long = || Some(FailureCause::LongerThanReceive { room }.into());
        let why = match status {
            WcStatus::LocLenErr => too_long(),
            // Some devices use one status for both.
            WcStatus::LocQpOpErr => not_received(device, pd, recv).or_else(too_long),
            _ => not_received(device, pd, recv),
        };
        let failure = FailedWork {
            qp_num: self.qp_num,
            receive: true,
            label: recv.label,
            status,
            why,
            asked: None,
            at: device.base.now,
            site: recv.site,
            standing: Standing::Open,
        };
        device.base.journal.failed(failure);
    }

    /// Why a send cannot be carried out.
    fn not_sent(&self, pd: u32, send: &Send, device: &Device, status: WcStatus) -> Option<Why> {
        let (mtu, length) = (self.mtu(device), send.length);
        if let Dest::Ud { ah, .. } = send.dest
            && self.init.qp_type == QpType::Ud
        {
            let Ok(ah) = device.domains.ahs.get(ah.index(), ah.generation()) else {
                return Some(FailureCause::AhGone.into());
            };
            if ah.pd != pd {
                return Some(FailureCause::AhOfOtherPd.into());
            }
            if length > mtu {
                return Some(FailureCause::OverMtu { length, mtu }.into());
            }
        }
        // The peer cut its answer for its own path MTU.
        if status == WcStatus::LocLenErr && matches!(send.op, SendOp::RdmaRead { .. }) {
            return Some(FailureCause::AnswerCut { mtu }.into());
        }
        if send.op.takes_depth() && self.attr.max_rd_atomic == 0 {
            let by_cm = self.by_cm.map(|by_cm| by_cm.depth);
            let why = by_cm.map_or(FailureCause::NoReads, |of| FailureCause::NoReadsByCm { of });
            return Some(why.into());
        }
        if atomic::header(&send.op).is_some() && length != atomic::BYTES {
            return Some(FailureCause::AtomicLength { length }.into());
        }
        not_there(pd, send, device)
    }

    /// Why a request of a peer cannot be carried out.
    pub(super) fn refused(&self, responder: &Responder, device: &Device, packet: &Packet) -> Why {
        if let Some(why) = self.refused_by_lab(responder, device) {
            return why.into();
        }
        if !self.has_path_mtu(device, packet) {
            let mtu = self.mtu(device);
            return FailureCause::MessageCut { mtu }.into();
        }
        // The beginning of the message was lost or went to another connection.
        let is_rest = !packet.first && responder.is_between_messages();
        if is_rest && !responder.has_taken() {
            return FailureCause::NoBeginning.into();
        }
        let (reth, need) = match packet.op {
            Op::Write(Some(reth)) | Op::AtomicWrite(reth) => (reth, Access::REMOTE_WRITE),
            Op::ReadRequest(reth) => (reth, Access::REMOTE_READ),
            Op::AtomicRequest(eth) => {
                let (va, rkey, length) = (eth.addr, eth.rkey, atomic::BYTES);
                (Reth { va, rkey, length }, Access::REMOTE_ATOMIC)
            }
            Op::Flush(flush) => (flush.reth, flush.needs()),
            _ => return not_taken(responder, device, packet),
        };
        let is_atomic = matches!(packet.op, Op::AtomicRequest(_) | Op::AtomicWrite(_));
        if is_atomic && !atomic::is_aligned(reth.va) {
            return FailureCause::Misaligned.into();
        }
        // The order of these checks is that of the responder.
        if packet.op.takes_depth() && self.attr.max_dest_rd_atomic == 0 {
            return FailureCause::NoReadsThere.into();
        }
        if !self.attr.qp_access_flags.contains(need) {
            let (qp_num, rights) = (self.qp_num, Rights(need));
            return FailureCause::QpForbids { qp_num, rights }.into();
        }
        let (pd, domains) = (responder.receives.pd(), &device.domains);
        let (va, length) = match packet.op {
            Op::Flush(flush) => domains.flushed(&flush),
            _ => (reth.va, reth.length.into()),
        };
        let regions = &domains.regions;
        regions.why_not_remote(&device.base, pd, reth.rkey, va, length, need)
    }

    /// What the test controls did, if a request is refused because of that.
    fn refused_by_lab(&self, responder: &Responder, device: &Device) -> Option<LabCause> {
        let srq = responder.receives.made_with();
        if srq.is_some_and(|srq| device.srqs.at(srq).failed) {
            Some(LabCause::Srq)
        } else {
            self.is_affected.then_some(LabCause::Injected)
        }
    }

    /// Records that the sender of a request without a receive has to wait for the longest time,
    /// whose code looks like that of the shortest (TMR-06).
    pub(super) fn note_long_wait(&self, device: &mut Device, packet: &Packet) {
        if self.attr.min_rnr_timer == 0 {
            let wait = rnr_wait(self.attr.min_rnr_timer).as_secs_f64() * 1e3;
            let (why, details) = (DropReason::NoReceive, DropDetails::Longest { wait });
            device.base.journal.drops(packet, why, details);
        }
    }

    /// Records a datagram with another Q_Key than the queue pair.
    #[cold]
    pub(super) fn note_other_qkey(&self, device: &mut Device, packet: &Packet, qkey: u32) {
        let (why, own) = (DropReason::Qkey, self.attr.qkey);
        let journal = &mut device.base.journal;
        journal.drops(packet, why, DropDetails::Qkey { qkey, own });
    }
}

/// Why a send cannot use the memory that it names.
fn not_there(pd: u32, send: &Send, device: &Device) -> Option<Why> {
    let need = if send.is_read() {
        Access::LOCAL_WRITE
    } else {
        Access::empty()
    };
    let regions = &device.domains.regions;
    regions.why_not_local(&device.base, pd, &send.list, need)
}

/// Why nothing can be put into a receive.
fn not_received(device: &Device, pd: u32, recv: &Recv) -> Option<Why> {
    let regions = &device.domains.regions;
    regions.why_not_local(&device.base, pd, &recv.list, Access::LOCAL_WRITE)
}

/// Records a request of a peer in another process that is out of order before any was in order:
/// perhaps all are. Queue pairs of one process are compared directly.
#[cold]
pub(super) fn note_other_psn(responder: &Responder, device: &mut Device, packet: &Packet) {
    if packet.route.from.is_outside() && !responder.has_taken() {
        let (now, why) = (device.base.now, DropReason::FirstPsn);
        let (waits_for, psn) = (responder.sequence.expected.value(), packet.psn.value());
        let journal = &mut device.base.journal;
        journal.drops(packet, why, DropDetails::Psn { psn, waits_for });
        journal.dropped(now, packet, why);
    }
}

/// Records a datagram that does not fit into a receive, with the header before it.
#[cold]
pub(super) fn note_short(device: &mut Device, packet: &Packet, room: u64, site: Option<Site>) {
    let details = DropDetails::Short {
        length: packet.payload.len(),
        grh: grh::BYTES,
        room,
        posted_at: site,
    };
    let journal = &mut device.base.journal;
    journal.drops(packet, DropReason::ShortReceive, details);
}

/// Why a message cannot be put into the receive that it consumes.
fn not_taken(responder: &Responder, device: &Device, packet: &Packet) -> Why {
    let cq = responder
        .receives
        .source
        .cq()
        .map(|cq| device.cqs.table.at(cq));
    if let Some(cq) = cq.filter(|cq| cq.dead) {
        return FailureCause::Overrun { cq: cq.handle }.into();
    }
    if let Some((pd, recv)) = responder.receives.present(device) {
        let bytes = u64::from(responder.got() + packet.payload.len());
        let (label, room) = (recv.label, recv.length());
        // The length decides before the memory, as in the responder.
        if bytes > room {
            return FailureCause::LongerThan { label, room }.into();
        }
        if let Some(why) = not_received(device, pd, recv) {
            return why.for_receive(label);
        }
    }
    match packet.op {
        Op::SendWithInv(rkey) => FailureCause::NotInvalidated { rkey }.into(),
        _ => FailureCause::Invalid.into(),
    }
}
