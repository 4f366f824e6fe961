//! A pair of which one CQ is small, to be filled and overrun.

use std::ops::Range;
use std::thread;

use verbs_api::behavior::PollAfterOverrun;
use verbs_api::{
    AsyncEvent, AsyncEventType, CompChannel, Cq, CqInit, Element, Handle, QpCap, QpType, RcParams,
    SendWr, Wait, Wc,
};

use crate::failure::check;
use crate::{End, GRH_LEN, OfRule, Pair, PairOptions, Result, Setup};

/// The queue whose completions go to the small CQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// The send queue of A.
    Send,
    /// The receive queue of B.
    Recv,
}

impl Queue {
    pub(crate) const BOTH: [Self; 2] = [Self::Send, Self::Recv];
}

/// A pair of which one CQ is small. All its other queues have room for what it takes to overrun
/// that one.
#[derive(Clone, Copy)]
pub(crate) struct SmallCq<'b> {
    setup: &'b Setup<'b>,
    queue: Queue,
    /// The pair.
    pub(crate) pair: Pair<'b>,
    /// The end the small CQ belongs to.
    pub(crate) end: End<'b>,
    /// The small CQ.
    pub(crate) cq: Cq,
    /// Its channel.
    pub(crate) channel: CompChannel,
}

/// A responder that has lost a completion may not answer any more (CQ-OVR-04), and seven retries
/// may never end (TMR-04).
pub(crate) fn impatient() -> RcParams {
    RcParams {
        retry_cnt: 3,
        ..RcParams::default()
    }
}

impl<'b> SmallCq<'b> {
    /// A pair with a CQ of at least `cqe` entries.
    pub(crate) fn new(setup: &'b Setup<'b>, queue: Queue, cqe: i32) -> Result<Self> {
        let context = match queue {
            Queue::Send => setup.ctx_a(),
            Queue::Recv => setup.ctx_b(),
        };
        let channel = setup.create_comp_channel(context)?;
        let cq = setup.create_cq(context, &CqInit::new(cqe).channel(channel))?;
        Self::on(setup, queue, cq)
    }

    /// A connected pair with this CQ.
    pub(crate) fn on(setup: &'b Setup<'b>, queue: Queue, cq: Cq) -> Result<Self> {
        Self::of(setup, queue, cq, QpType::Rc)
    }

    /// A pair of this transport with this CQ.
    pub(crate) fn of(setup: &'b Setup<'b>, queue: Queue, cq: Cq, qp_type: QpType) -> Result<Self> {
        let attr = setup.query_cq(cq)?;
        let room = 3 * attr.cqe.max(32) + 8;
        let options = PairOptions {
            qp_type,
            send_cqe: room as i32,
            recv_cqe: room as i32,
            cap: QpCap {
                max_send_wr: room,
                max_recv_wr: room,
                ..QpCap::default()
            },
            rc: impatient(),
            ..PairOptions::default()
        };
        let roomy = setup.create_cq(cq.context(), &CqInit::new(room as i32))?;
        let (a, b) = match queue {
            Queue::Send => (
                setup.end_on(cq, roomy, options)?,
                setup.end(setup.ctx_b(), options)?,
            ),
            Queue::Recv => (
                setup.end(setup.ctx_a(), options)?,
                setup.end_on(roomy, cq, options)?,
            ),
        };
        let pair = setup.connect(a, b, options)?;
        Ok(Self {
            setup,
            queue,
            pair,
            end: match queue {
                Queue::Send => pair.a,
                Queue::Recv => pair.b,
            },
            cq,
            channel: attr.channel.unwrap_or_default(),
        })
    }

    /// The size of the CQ.
    pub(crate) fn cqe(&self) -> Result<u64> {
        Ok(self.setup.query_cq(self.cq)?.cqe.into())
    }

    /// Starts work that makes one completion in the CQ.
    pub(crate) fn push(&self, wr_id: u64) -> Result {
        self.push_all(wr_id..wr_id + 1)
    }

    /// Starts work for these completions, all of it at once: a connection may end with the first
    /// completion that is lost.
    pub(crate) fn push_all(&self, wr_ids: Range<u64>) -> Result {
        let (a, b) = (self.pair.a, self.pair.b);
        let data = [a.sge(0, 8)];
        let work = |wr_id| match (self.queue, a.qp_type) {
            (Queue::Send, QpType::Rc | QpType::Uc) => SendWr::rdma_write(wr_id, &data, a.remote()),
            _ => a.to_peer(SendWr::send(wr_id, &data)),
        };
        if self.queue == Queue::Recv {
            let room = 8 + GRH_LEN;
            wr_ids.clone().try_for_each(|wr_id| b.recv(wr_id, room))?;
        }
        let list: Vec<_> = wr_ids.map(work).collect();
        Ok(self.setup.post_send(a.qp, &list)?)
    }

    /// Puts these completions into the CQ, which must have room.
    pub(crate) fn fill(&self, wr_ids: Range<u64>) -> Result {
        if self.queue == Queue::Recv {
            self.pair.deliver(wr_ids)?;
            return self.setup.settle();
        }
        self.push_all(wr_ids)?;
        // A poll would take the completions of sends, so a device gets time for them.
        if let Wait::For(time) = self.setup.quiet()? {
            thread::sleep(time);
        }
        Ok(())
    }

    /// The number of completions that are surely too many: one above the size on a simulator, which
    /// is exact; elsewhere an entry may hold several.
    pub(crate) fn too_many(&self) -> Result<u64> {
        let cqe = self.cqe()?;
        Ok(match self.setup.verbs().lab() {
            Some(_) => cqe + 1,
            None => 3 * cqe + 1,
        })
    }

    /// Overruns the empty CQ, and gives how many completions were to go there. The `CQ_ERR` has
    /// been read and acknowledged.
    pub(crate) fn overrun(&self, rule: &'static str) -> Result<u64> {
        let count = self.too_many()?;
        self.push_all(0..count)?;
        self.cq_err(rule)?;
        Ok(count)
    }

    /// The CQ raises `CQ_ERR`. Takes it, and events of queue pairs before it.
    pub(crate) fn cq_err(&self, rule: &'static str) -> Result {
        loop {
            let event = self.setup.async_event(self.end.context).rule(rule)?;
            if event == self.cq_err_event() {
                return Ok(());
            }
            let of_qp = event.event_type == AsyncEventType::QpFatal;
            check!(rule, of_qp, self.cq_err_event().to_string(), "{event}");
        }
    }

    pub(crate) fn cq_err_event(&self) -> AsyncEvent {
        AsyncEvent::new(AsyncEventType::CqErr, Element::Cq(self.cq))
    }

    pub(crate) fn qp_fatal_event(&self) -> AsyncEvent {
        AsyncEvent::new(AsyncEventType::QpFatal, Element::Qp(self.end.qp))
    }

    /// The completions that can still be polled, and those that still come.
    pub(crate) fn drained(&self) -> Result<Vec<Wc>> {
        let (mut got, end) = self.leftovers()?;
        if end == PollAfterOverrun::Empty {
            got.extend(self.setup.poll_all(self.cq)?);
        }
        Ok(got)
    }

    /// The completions that can be polled at this moment, and how polling then ends.
    pub(crate) fn leftovers(&self) -> Result<(Vec<Wc>, PollAfterOverrun)> {
        self.setup.settle()?;
        let mut got = Vec::new();
        loop {
            let mut wc = [Wc::default()];
            match self.setup.poll_cq(self.cq, &mut wc) {
                Ok(0) => return Ok((got, PollAfterOverrun::Empty)),
                Ok(_) => got.extend(wc),
                Err(_) => return Ok((got, PollAfterOverrun::Error)),
            }
        }
    }
}
