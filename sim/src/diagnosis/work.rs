//! Work that failed or was given up, and requests of peers that were refused.

use verbs_api::WcStatus;
use verbs_api::lab::Syndrome;
use verbs_api::site::Site;

use super::cause::{FailureCause, Why};
use super::journal::Journal;
use super::problem::{Describe, problems};
use super::words::{counted, place_named};
use super::{Certainty, Class};
use crate::packet::{Op, Packet};
use crate::time::Time;

problems! {
    /// A work request failed and was not only flushed.
    Failed as failed {
        /// The number of its QP.
        qp_num: u32,
        /// Whether it is a receive.
        receive: bool,
        /// The program's number for it ([`SendWr::label`](verbs_api::SendWr::label)).
        wr_id: u64,
        /// The status of its completion.
        status: WcStatus,
        /// The cause, if it is known.
        why: Option<Why>,
        /// Whether the program has polled the failure, has destroyed or reset the queue pair, and
        /// has posted later work that succeeded.
        handled: bool,
    }
    is class_of(*receive, *status, why.as_ref().map(|why| &why.cause)),
    certainty if failed.is_excused() { Certainty::Hint } else { failed.class().certainty() },
    |names| {
        let kind = if *receive { "receive" } else { "send" };
        let why = why.as_ref().map(|why| why.in_words(names)).unwrap_or_default();
        let handled = if failed.is_excused() { "; the program went on" } else { "" };
        format!("{kind} {wr_id:#x} of qp {qp_num:#x} failed with {status}{why}{handled}")
    };

    /// The program has given sends up before they were acknowledged, so their data may be lost. The
    /// place is where the oldest of them was posted.
    CutOff {
        /// The number of their QP.
        qp_num: u32,
        /// The program's number for the oldest one.
        wr_id: u64,
        /// The number of sends.
        sends: u64,
        /// What the program did.
        how: Ending,
        /// Where, if it is known.
        place: Option<(&'static str, Site)>,
    }
    is Class::CutOff,
    key [how.text(), ""],
    |names| {
        let (how, place) = (how.text(), place_named(*place, names));
        let sends = match sends - 1 {
            0 => format!("send {wr_id:#x} of qp {qp_num:#x} was"),
            more => {
                let more = counted(more, "more send", "more sends");
                format!("send {wr_id:#x} and {more} of qp {qp_num:#x} were")
            }
        };
        format!("{sends} under way when the program {how}{place}: data may be lost")
    };

    /// A request of a peer in another process was refused. For a peer in this process, `Failed`
    /// reports it. The place is where the region was registered or deregistered, if that is the
    /// cause.
    RequestRefused {
        /// The request, such as `a write`.
        operation: &'static str,
        /// The number of the peer's QP, in its process.
        from: u32,
        /// The number of the QP that refused it.
        qp_num: u32,
        /// The status of the peer's work.
        status: WcStatus,
        /// The cause.
        why: Why,
    }
    is class_of(false, *status, Some(&why.cause)),
    |names| {
        let from = format!("qp {from:#x} of another process");
        format!("{operation} from {from} was refused by qp {qp_num:#x}: {}", why.named(names))
    };
}

/// How a program ends the work of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// It disconnects an id of rdma_cm.
    Disconnected,
    /// It destroys the queue pair.
    Destroyed,
    /// It moves the queue pair to RESET.
    Reset,
}

impl Ending {
    fn text(self) -> &'static str {
        match self {
            Self::Disconnected => "disconnected",
            Self::Destroyed => "destroyed the qp",
            Self::Reset => "moved the qp to RESET",
        }
    }
}

impl Failed {
    /// Whether it would be certain if the program had not handled it.
    fn is_excused(&self) -> bool {
        self.handled && self.is_excusable()
    }

    /// Whether the other side can cause this failure, because it has ended or is not ready. It is
    /// no longer certain once the program has handled it.
    pub(super) fn is_excusable(&self) -> bool {
        // These statuses may be the peer's fault, others are the program's.
        let may_be = matches!(
            self.status,
            WcStatus::RetryExcErr | WcStatus::RnrRetryExcErr | WcStatus::RemOpErr
        );
        may_be
            && matches!(
                self.class(),
                Class::NoAnswer | Class::NotReceived | Class::FailedWork
            )
    }
}

/// The class of work that failed for this cause, if it is known.
fn class_of(receive: bool, status: WcStatus, cause: Option<&FailureCause>) -> Class {
    use FailureCause as F;
    // The cause decides if it is known, and the status otherwise.
    if let Some(class) = cause.and_then(F::class) {
        return class;
    }
    match (cause, status) {
        (_, WcStatus::RnrRetryExcErr) => Class::NotReceived,
        (_, WcStatus::RetryExcErr) => Class::NoAnswer,
        (_, WcStatus::RemAccessErr) => Class::RemoteAccess,
        (_, WcStatus::LocLenErr) if receive => Class::ShortReceive,
        (Some(F::LongerThan { .. }), WcStatus::RemInvReqErr) => Class::ShortReceive,
        (_, WcStatus::LocProtErr) => Class::LocalAccess,
        _ => Class::FailedWork,
    }
}

impl Journal {
    /// Records a refused request of a peer, with the syndrome of the answer and the status of the
    /// receive. For a peer in this process its failed work is the finding. For one in another
    /// process this end must report it.
    #[cold]
    pub(crate) fn refused(
        &mut self,
        at: Time,
        packet: &Packet,
        why: Why,
        syndrome: Option<Syndrome>,
        recv: Option<WcStatus>,
    ) {
        let is_send = matches!(packet.op, Op::Send | Op::SendWithInv(_));
        let is_reported = is_send && recv.is_some()
            || matches!(
                why.cause,
                FailureCause::Overrun { .. }
                    | FailureCause::NotMapped { .. }
                    | FailureCause::Withdrawn { .. }
            );
        // A peer in this process has its own finding.
        if packet.route.from.is_outside() && !is_reported {
            let site = why.place.map(|(_, site)| site);
            let refused = RequestRefused {
                operation: operation(packet.op),
                from: packet.src_qpn,
                qp_num: packet.dest_qpn,
                status: status_of(syndrome),
                why: why.clone(),
            };
            self.note(refused, site);
        }
        self.keep_refusal(at, packet, why);
    }
}

/// The status of work that gets this answer.
fn status_of(syndrome: Option<Syndrome>) -> WcStatus {
    match syndrome {
        Some(Syndrome::NakInvalidRequest) => WcStatus::RemInvReqErr,
        Some(Syndrome::NakRemoteAccess) => WcStatus::RemAccessErr,
        Some(Syndrome::NakRemoteOperation) => WcStatus::RemOpErr,
        _ => WcStatus::RetryExcErr,
    }
}

fn operation(op: Op) -> &'static str {
    match op {
        Op::Write(_) => "a write",
        Op::ReadRequest(_) => "a read",
        Op::AtomicRequest(_) => "an atomic",
        Op::AtomicWrite(_) => "an atomic write",
        Op::Flush(_) => "a flush",
        _ => "a send",
    }
}
