//! What went wrong on a node, for a diagnosis: it outlives the objects that it happened to.

use std::collections::BTreeMap;

use verbs_api::{Cq as CqHandle, WcStatus};

use super::Node;
use super::cq::Ticket;
use crate::diagnosis::{Problem, Why};
use crate::packet::Packet;
use crate::time::Time;

/// Why packets are not taken that came for want of care on a program's side.
pub(super) mod reason {
    pub(in crate::node) const NO_RECEIVE: &str = "no receive is posted";
    pub(in crate::node) const NO_QP: &str = "no such qp";
    pub(in crate::node) const NOT_READY: &str = "the qp is not ready to receive";
    pub(in crate::node) const OTHER_TRANSPORT: &str = "the qp is of another transport";
    pub(in crate::node) const OTHER_PORT: &str = "the qp is on another port";
    pub(in crate::node) const OTHER_PEER: &str = "it is not from the peer";
    pub(in crate::node) const PKEY: &str = "the P_Key does not match";
    pub(in crate::node) const QKEY: &str = "the Q_Key does not match";
    pub(in crate::node) const PATH_MTU: &str = "the message was cut for another path MTU";
    pub(in crate::node) const SHORT_RECEIVE: &str = "the receive is too small";
    pub(in crate::node) const BAD_MESSAGE: &str = "the message cannot be taken";

    pub(super) const ALL: [&str; 11] = [
        NO_RECEIVE,
        NO_QP,
        NOT_READY,
        OTHER_TRANSPORT,
        OTHER_PORT,
        OTHER_PEER,
        PKEY,
        QKEY,
        PATH_MTU,
        SHORT_RECEIVE,
        BAD_MESSAGE,
    ];
}

/// A QP, by its node and its number there.
pub(crate) type Place = (u32, u32);

#[derive(Clone, Debug, Default)]
pub(super) struct History {
    failures: Vec<Failure>,
    refusals: Vec<Refusal>,
    /// By sender, receiver and reason.
    dropped: BTreeMap<(Place, u32, &'static str), Dropped>,
    /// Entries, and completions lost.
    overruns: BTreeMap<CqHandle, (u32, u64)>,
    /// What contexts had when they were closed.
    pub(super) left: Vec<Problem>,
}

/// Of each kind so many are kept, so that a program that goes on failing costs no more.
const MOST: usize = 1000;

/// A work request that failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(super) qp_num: u32,
    pub(super) receive: bool,
    pub(super) wr_id: u64,
    pub(super) status: WcStatus,
    /// As far as this node knows.
    pub(super) why: Option<String>,
    /// The node of the peer, and the number of the request that it had to answer.
    pub(super) asked: Option<(u32, u32)>,
    pub(super) at: Time,
}

/// A request that was answered with a NAK.
#[derive(Clone, Debug)]
struct Refusal {
    from: Place,
    psn: u32,
    why: String,
    at: Time,
}

/// Packets that were not taken.
#[derive(Clone, Copy, Debug, Default)]
struct Dropped {
    count: u64,
    last: Time,
}

impl History {
    pub(super) fn failed(&mut self, failure: Failure) {
        if self.failures.len() < MOST {
            self.failures.push(failure);
        }
    }

    pub(super) fn refused(&mut self, at: Time, packet: &Packet, why: String) {
        if self.refusals.len() < MOST {
            self.refusals.push(Refusal {
                from: (packet.route.from.node, packet.src_qpn),
                psn: packet.psn.value(),
                why,
                at,
            });
        }
    }

    pub(super) fn dropped(&mut self, at: Time, packet: &Packet, why: &'static str) {
        let from = (packet.route.from.node, packet.src_qpn);
        let place = (from, packet.dest_qpn, why);
        if self.dropped.len() < MOST || self.dropped.contains_key(&place) {
            let Dropped { count, last } = self.dropped.entry(place).or_default();
            (*count, *last) = (*count + 1, at);
        }
    }

    pub(super) fn lost(&mut self, cq: CqHandle, cqe: u32) {
        if self.overruns.len() < MOST || self.overruns.contains_key(&cq) {
            let (entries, lost) = self.overruns.entry(cq).or_default();
            (*entries, *lost) = (cqe, *lost + 1);
        }
    }

    pub(super) fn left(&mut self, problems: Vec<Problem>) {
        let room = MOST.saturating_sub(self.left.len());
        self.left.extend(problems.into_iter().take(room));
    }

    /// Lost completions, and packets that were not taken.
    pub(super) fn problems(&self) -> impl Iterator<Item = Problem> {
        let overrun = |(cq, (cqe, lost)): (&CqHandle, &(u32, u64))| Problem::Overrun {
            cq: *cq,
            cqe: *cqe,
            lost: *lost,
        };
        let dropped = self.dropped.iter();
        let dropped = dropped.filter(|((_, _, why), _)| reason::ALL.contains(why));
        let dropped = dropped.map(|((from, qp_num, why), dropped)| Problem::Dropped {
            from: *from,
            qp_num: *qp_num,
            why,
            count: dropped.count,
        });
        self.overruns.iter().map(overrun).chain(dropped)
    }

    /// Why a request of a peer was refused or found nobody.
    fn answer(&self, from: Place, psn: u32, failure: &Failure) -> Option<String> {
        if failure.status == WcStatus::RetryExcErr {
            // A receiver that is not ready says so: that is an answer.
            let silent = |((of, _, why), _): &(&(Place, u32, &str), &Dropped)| {
                *of == from && *why != reason::NO_RECEIVE
            };
            let dropped = self.dropped.iter().filter(silent);
            let ((_, qp_num, why), _) = dropped.max_by_key(|(_, dropped)| dropped.last)?;
            return Some(format!("for qp {qp_num:#x}, {why}"));
        }
        // A number comes again with the next connection.
        let found = |refusal: &&Refusal| {
            refusal.from == from && refusal.psn == psn && refusal.at <= failure.at
        };
        Some(self.refusals.iter().rev().find(found)?.why.clone())
    }
}

impl Node {
    /// The work requests that failed, oldest first.
    pub(crate) fn failures(&self) -> &[Failure] {
        &self.history.failures
    }

    /// A failure as a problem; `node` looks at the node of the peer.
    pub(crate) fn failure<'n>(
        &self,
        failure: &Failure,
        node: impl FnOnce(u32) -> &'n Self,
    ) -> Problem {
        let own = failure.why.clone().map(|text| Why { node: None, text });
        let from = (self.id, failure.qp_num);
        let of_peer = || {
            let (peer, psn) = failure.asked?;
            let text = node(peer).history.answer(from, psn, failure)?;
            let node = Some(peer);
            Some(Why { node, text })
        };
        Problem::Failed {
            qp_num: failure.qp_num,
            receive: failure.receive,
            wr_id: failure.wr_id,
            status: failure.status,
            why: own.or_else(of_peer),
        }
    }

    /// The oldest send that is not done is about to fail.
    #[cold]
    pub(super) fn note_failed_send(&mut self, index: u32, status: WcStatus) {
        let qp = self.qps.at(index);
        let send = qp.sq.get(qp.sq.oldest());
        let peer = qp.route.and_then(|route| route.to);
        let by_peer = matches!(
            status,
            WcStatus::RemInvReqErr
                | WcStatus::RemAccessErr
                | WcStatus::RemOpErr
                | WcStatus::RetryExcErr
        );
        let why = match status {
            WcStatus::RnrRetryExcErr => Some("its peer had no receive posted".to_owned()),
            WcStatus::RetryExcErr if peer.is_none() => {
                Some("no port has the address it is connected with".to_owned())
            }
            _ if by_peer => None,
            _ => self.why_not_sent(index, send, status),
        };
        self.history.failed(Failure {
            qp_num: qp.qp_num,
            receive: false,
            wr_id: send.wr_id,
            status,
            why,
            asked: peer.map(|to| (to.node, qp.requester.oldest_unanswered().value())),
            at: self.now,
        });
    }

    /// The oldest receive is about to fail, or to be flushed.
    #[cold]
    pub(super) fn note_failed_recv(&mut self, index: u32, status: WcStatus) {
        if status == WcStatus::WrFlushErr {
            return;
        }
        let Some((pd, recv)) = self.present_receive(index) else {
            return;
        };
        let too_long = || format!("the message is longer than its {} bytes", recv.length());
        let why = match status {
            WcStatus::LocLenErr => Some(too_long()),
            // Some devices have one status for both.
            WcStatus::LocQpOpErr => self.why_not_received(pd, recv).or_else(|| Some(too_long())),
            _ => self.why_not_received(pd, recv),
        };
        self.history.failed(Failure {
            qp_num: self.qps.at(index).qp_num,
            receive: true,
            wr_id: recv.wr_id,
            status,
            why,
            asked: None,
            at: self.now,
        });
    }

    /// A fault rule makes a completion an error.
    #[cold]
    pub(super) fn note_injected(&mut self, ticket: Ticket, wr_id: u64, status: WcStatus) {
        self.history.failed(Failure {
            qp_num: self.qps.at(ticket.qp).qp_num,
            receive: ticket.is_recv(),
            wr_id,
            status,
            why: Some("a fault rule wants it".to_owned()),
            asked: None,
            at: self.now,
        });
    }
}
