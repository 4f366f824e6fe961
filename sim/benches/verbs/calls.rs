//! The verbs that are timed: those of the simulator, and no-ops that show the cost of the caller.

use std::hint::black_box;

use verbs_api::{
    Arm, CompChannel, Cq, CqEvent, PostError, Qp, RecvWr, Result, SendWr, Srq, Verbs, Wait, Wc,
};
use verbs_sim::Sim;

/// Verbs of [`Verbs`], for operations on any implementation.
pub(crate) trait Calls: Sync {
    fn post_send(&self, qp: Qp, list: &[SendWr<'_>]) -> Result<(), PostError>;
    fn post_recv(&self, qp: Qp, list: &[RecvWr<'_>]) -> Result<(), PostError>;
    fn post_srq_recv(&self, srq: Srq, list: &[RecvWr<'_>]) -> Result<(), PostError>;
    fn poll_cq(&self, cq: Cq, wc: &mut [Wc]) -> Result<usize>;
    fn req_notify_cq(&self, cq: Cq, arm: Arm) -> Result<()>;
    fn get_cq_event(&self, channel: CompChannel, wait: Wait) -> Result<CqEvent>;
    fn ack_cq_events(&self, cq: Cq, nevents: u32) -> Result<()>;
}

impl Calls for Sim {
    fn post_send(&self, qp: Qp, list: &[SendWr<'_>]) -> Result<(), PostError> {
        Verbs::post_send(self, qp, list)
    }

    fn post_recv(&self, qp: Qp, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        Verbs::post_recv(self, qp, list)
    }

    fn post_srq_recv(&self, srq: Srq, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        Verbs::post_srq_recv(self, srq, list)
    }

    fn poll_cq(&self, cq: Cq, wc: &mut [Wc]) -> Result<usize> {
        Verbs::poll_cq(self, cq, wc)
    }

    fn req_notify_cq(&self, cq: Cq, arm: Arm) -> Result<()> {
        Verbs::req_notify_cq(self, cq, arm)
    }

    fn get_cq_event(&self, channel: CompChannel, wait: Wait) -> Result<CqEvent> {
        Verbs::get_cq_event(self, channel, wait)
    }

    fn ack_cq_events(&self, cq: Cq, nevents: u32) -> Result<()> {
        Verbs::ack_cq_events(self, cq, nevents)
    }
}

/// Does nothing, and reports all work as done.
pub(crate) struct NoOp;

impl Calls for NoOp {
    fn post_send(&self, _: Qp, _: &[SendWr<'_>]) -> Result<(), PostError> {
        Ok(())
    }

    fn post_recv(&self, _: Qp, _: &[RecvWr<'_>]) -> Result<(), PostError> {
        Ok(())
    }

    fn post_srq_recv(&self, _: Srq, _: &[RecvWr<'_>]) -> Result<(), PostError> {
        Ok(())
    }

    fn poll_cq(&self, _: Cq, wc: &mut [Wc]) -> Result<usize> {
        Ok(black_box(wc).len())
    }

    fn req_notify_cq(&self, _: Cq, _: Arm) -> Result<()> {
        Ok(())
    }

    fn get_cq_event(&self, _: CompChannel, _: Wait) -> Result<CqEvent> {
        Ok(CqEvent::new(Cq::default(), 0))
    }

    fn ack_cq_events(&self, _: Cq, _: u32) -> Result<()> {
        Ok(())
    }
}
