//! Queue pairs: the layer between the device and the node.
//!
//! A queue pair owns its two sides, and each side its data. The sides are given what they need of
//! the device. What they want of the whole queue pair they return ([`Stop`]). Nothing here knows
//! the node or another queue pair.
//!
//! | file | holds |
//! |---|---|
//! | `common` | what both sides know: number, attributes, the route to the peer |
//! | `requester`, `phase`, `transmit` | the side that sends; its state; the packets of a send |
//! | `held_ack` | an acknowledgement that counts later than it arrives |
//! | `responder`, `receives` | the side that answers; where its receives come from |
//! | `reading`, `resources` | reads that are being answered; those that may be asked for again |
//! | `receive` | a packet for a queue pair: which side handles it, and with what result |
//! | `cached_path` | the path to the peer, as the fast path keeps it |
//! | `datagram`, `grh`, `atomic` | what is specific to UD and to atomics |
//! | `queue`, `send` | a work queue; a send in it |
//! | `ending` | the end of its connection, where errors end connections |
//! | `ece` | its options for enhanced connection establishment |
//! | `sum`, `fence`, `placed` | whether the bytes of a send have changed; whether it waits for those of a read; whether a message is placed over another |
//! | `outlived` | completions that outlive a RESET |
//! | `post`, `modify` | `ibv_post_send` and similar calls; `ibv_modify_qp` |
//! | `timeout`, `wait` | what happens when its timer fires; how long a requester waits |
//! | `verdict` | what a side returns: stop, or refuse a request |
//! | `loss` | why a request was not answered, as far as the fabric knows |
//! | `recovery` | whether the program continues after a failure |
//! | `why` | why work failed |

pub(crate) mod atomic;
mod cached_path;
mod common;
pub(crate) mod datagram;
mod ece;
mod ending;
mod extension;
#[cfg_attr(any(), mutants::skip)] // texts
mod fence;
pub(crate) mod grh;
mod held_ack;
mod loss;
mod modify;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod number;
#[cfg_attr(any(), mutants::skip)] // texts
mod outlived;
mod phase;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod placed;
mod post;
mod queue;
mod reading;
mod receive;
mod receives;
#[cfg_attr(any(), mutants::skip)] // texts
mod recovery;
pub(crate) mod requester;
mod resources;
pub(crate) mod responder;
mod send;
#[cfg_attr(any(), mutants::skip)] // controls of tests
mod sum;
mod timeout;
mod transmit;
#[cfg_attr(any(), mutants::skip)] // texts
mod unfinished;
mod verdict;
mod wait;
#[cfg_attr(any(), mutants::skip)] // texts
mod why;

use smallvec::SmallVec;
use verbs_api::site::Site;
use verbs_api::{
    AsyncEventType, Element, Handle, Qp as QpHandle, QpAttr, QpInit, QpQuery, QpState, QpType, Wc,
    WcOpcode, WcStatus,
};

use crate::device::{Delivery, Device, Queue, Ticket, in_context};
use crate::packet::Packet;

pub(crate) use cached_path::{CachedPath, Kinds};
pub(crate) use common::Common;
pub(crate) use number::Numbers;
pub(crate) use post::{check_batches, check_data};
pub(crate) use queue::WorkQueue;
pub(crate) use receives::{Receives, Source};
use requester::Requester;
use responder::Responder;
use verdict::Stop;

/// A queue pair.
#[derive(Clone, Debug)]
pub(crate) struct Qp {
    pub(crate) common: Common,
    /// None for XRC_RECV.
    pub(crate) requester: Option<Requester>,
    pub(crate) responder: Responder,
    /// Whether `COMM_EST` has been raised for this connection.
    pub(crate) comm_est: bool,
    /// Packets that arrived before RTR, on a device that keeps them.
    early: Vec<Packet>,
    /// Whether `QP_FATAL` has been raised.
    fatal: bool,
    /// The number of sends posted since the program polled that the queue pair is in the error
    /// state.
    posts_in_error: Option<u32>,
    /// Whether it has been back in RESET: its peer may have state of the earlier connection.
    pub(crate) was_reset: bool,
    /// Where it was moved to RESET last.
    reset_at: Option<Site>,
}

in_context!(Qp, common.handle.context());

impl Qp {
    /// Creates a program's queue pair in RESET, with a send queue of this protection domain and CQ.
    pub(crate) fn new(
        handle: QpHandle,
        qp_num: u32,
        init: QpInit,
        pd: u32,
        send_cq: u32,
        source: Source,
    ) -> Self {
        let requester = Requester::new(pd, send_cq, WorkQueue::new(init.cap.max_send_wr));
        Self {
            requester: Some(requester),
            ..Self::receiving(handle, qp_num, init, source)
        }
    }

    /// Creates a queue pair in RESET that has no send queue, as those of XRC_RECV.
    pub(crate) fn receiving(handle: QpHandle, qp_num: u32, init: QpInit, source: Source) -> Self {
        Self {
            common: Common::new(handle, qp_num, init),
            requester: None,
            responder: Responder::new(Receives::new(source)),
            comm_est: false,
            early: Vec::new(),
            fatal: false,
            posts_in_error: None,
            was_reset: false,
            reset_at: None,
        }
    }

    /// Whether it has posted a read or an atomic since it was in RESET.
    pub(crate) fn has_read(&self) -> bool {
        self.requester.as_ref().is_some_and(|own| own.reads_end > 0)
    }

    /// The CQs it uses: one or two, or none for XRC_RECV.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn cqs(&self) -> SmallVec<[u32; 2]> {
        let send = self.requester.as_ref().map(|requester| requester.cq);
        let mut cqs: SmallVec<[u32; 2]> = send
            .into_iter()
            .chain(self.responder.receives.source.cq())
            .collect();
        // Both queues may complete in one CQ.
        cqs.dedup();
        cqs
    }

    /// `ibv_query_qp`, with all attributes.
    pub(crate) fn query(&self) -> QpQuery {
        let state = self.common.state();
        let is_busy = self.requester.as_ref().is_some_and(Requester::is_busy);
        let attr = QpAttr {
            cur_qp_state: state,
            // Not an attribute that is set: it follows from the queue.
            sq_draining: state == QpState::Sqd && is_busy,
            ..self.common.attr
        };
        QpQuery::new(self.common.qp_num, attr, self.common.init)
    }

    /// The purpose of its timer, for the trace.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn timer_name(&self) -> &'static str {
        match &self.requester {
            Some(requester) if requester.phase.waits => "RNR timer",
            Some(requester) if requester.held_ack.is_some() => "held acknowledgement",
            _ => "ack timeout",
        }
    }

    /// Lets the requester work, and stops what its result says.
    #[inline(always)]
    fn request(
        &mut self,
        device: &mut Device,
        work: impl FnOnce(&mut Requester, &Common, &mut Device) -> Result<(), Stop>,
    ) {
        if let Some(requester) = &mut self.requester
            && let Err(stop) = work(requester, &self.common, device)
        {
            self.stop(device, stop);
        }
    }

    /// Raises an event about the queue pair, in every context that has it open.
    fn raise(&self, device: &mut Device, event: AsyncEventType) {
        let mut raise = |qp: QpHandle| device.base.raise(event, Element::Qp(qp));
        match &self.responder.receives.source {
            // An XRC_RECV queue pair belongs to all programs that have it open.
            Source::Named { openings, .. } => openings.values().copied().for_each(raise),
            _ => raise(self.common.handle),
        }
    }

    /// Stops what one of its sides asks for.
    #[cold]
    fn stop(&mut self, device: &mut Device, stop: Stop) {
        match stop {
            Stop::Sends => self.stop_sends(device),
            Stop::All => self.fail(device),
            Stop::Over => self.hear_end(device),
            Stop::Fatal => {
                // The event is raised once for a queue pair, although several completions may be
                // lost.
                if !std::mem::replace(&mut self.fatal, true) {
                    self.raise(device, AsyncEventType::QpFatal);
                }
                self.fail(device);
            }
        }
    }

    /// Handles a failed send. It stops RC and XRC, and only the send queue of UC and UD if the
    /// device has SQE.
    fn stop_sends(&mut self, device: &mut Device) {
        if self.common.is_reliable() || !device.base.behavior.sqe {
            self.fail(device);
        } else {
            self.common.set_state(device, QpState::Sqe);
            self.flush_sends(device);
        }
    }

    /// Enters the error state, if it is not there yet.
    fn fail(&mut self, device: &mut Device) {
        if self.common.state() != QpState::Err {
            self.enter_error(device);
        }
    }

    /// Enters the error state and flushes all outstanding work in order (QP-FLUSH-01, -02).
    /// Receives in an SRQ stay there, and the QP takes no more of them (QP-FLUSH-04, -05).
    fn enter_error(&mut self, device: &mut Device) {
        self.hang_up(device);
        self.stop_work(device);
    }

    fn stop_work(&mut self, device: &mut Device) {
        device.timers.set(self.common.index(), None);
        let was_in_error = self.common.state() == QpState::Err;
        self.common.set_state(device, QpState::Err);
        // Data whose write was deferred belongs to messages before the error.
        device.flush_deferred_writes();
        self.responder.reads.stop();
        self.flush_sends(device);
        self.flush_recvs(device);
        // Only the transition counts: a queue pair that is in the error state has sent its event.
        if self.responder.receives.made_with().is_some()
            && !was_in_error
            && device.base.behavior.last_wqe
        {
            self.raise(device, AsyncEventType::QpLastWqeReached);
        }
    }

    fn flush_sends(&mut self, device: &mut Device) {
        while let Some(requester) = self.requester.as_mut().filter(|own| own.sq.has_undone()) {
            let delivery = requester.complete(&self.common, device, WcStatus::WrFlushErr);
            // The flush itself may overrun the CQ.
            if delivery == Delivery::Fatal {
                self.stop(device, Stop::Fatal);
            }
        }
    }

    fn flush_recvs(&mut self, device: &mut Device) {
        let wc = failed_receive(WcStatus::WrFlushErr);
        while self.responder.receives.has_one() {
            self.complete_recv(device, wc, false);
        }
    }

    /// Completes the current receive. `wc` has status, opcode and the data of the message.
    #[cfg_attr(any(), mutants::skip)] // texts
    fn complete_recv(&mut self, device: &mut Device, wc: Wc, solicited: bool) -> Delivery {
        if wc.status != WcStatus::Success {
            self.common
                .note_failed_recv(&self.responder.receives, device, wc.status);
        }
        let receives = &mut self.responder.receives;
        let delivery = receives.complete(&self.common, device, wc, solicited);
        self.common.is_affected |= delivery == Delivery::Failed;
        // Without its completion a receive queue cannot continue.
        if let Err(stop) = Stop::after_receive(delivery) {
            self.stop(device, stop);
        }
        delivery
    }

    /// A completion of its queues was polled: frees the slot and those before it.
    #[inline(always)]
    pub(crate) fn release(&mut self, device: &mut Device, ticket: Ticket) {
        match (ticket.queue, &mut self.requester) {
            (Queue::Recv, _) => self.responder.receives.release(device, ticket.seq),
            (Queue::Send, Some(requester)) => {
                sum::compare(requester, &self.common, device, ticket.seq);
                requester.release(device, ticket.seq);
            }
            _ => {}
        }
    }

    /// Returns to RESET, which clears the queues without completions (QP-STATE-25).
    fn reset(&mut self, device: &mut Device) {
        let index = self.common.index();
        device.timers.set(index, None);
        self.common.set_state(device, QpState::Reset);
        self.common.attr = QpAttr {
            cap: self.common.init.cap,
            ..QpAttr::default()
        };
        (self.common.route, self.common.by_cm) = (None, None);
        (self.common.is_moved, self.common.is_affected) = (false, false);
        self.responder.reset();
        self.comm_est = false;
        self.early.clear();
        self.fatal = false;
        self.posts_in_error = None;
        // A diagnosis must not compare old attributes of the peer with new ones.
        self.was_reset = true;
        device.base.journal.forget_reads(self.common.qp_num);
        self.clear(device);
        self.note_outliving(device);
    }

    /// Removes all work from its queues, and its completions from its CQs where the device does so.
    pub(crate) fn clear(&mut self, device: &mut Device) {
        if let Some(requester) = &mut self.requester {
            requester.reset(device);
        }
        let taken = self.responder.receives.clear(device);
        for cq in self.cqs() {
            // Some drivers remove completions of a destroyed queue pair, others leave them
            // (CQ-DESTROY-08).
            device.purge(cq, self.common.handle);
        }
        if let Some(taken) = taken {
            device.release_shared(taken);
        }
    }

    pub(crate) fn qp_type(&self) -> QpType {
        self.common.init.qp_type
    }
}

/// The completion of a receive that failed or was flushed.
fn failed_receive(status: WcStatus) -> Wc {
    let mut wc = Wc::default();
    (wc.opcode, wc.status) = (WcOpcode::Recv, status);
    wc
}
