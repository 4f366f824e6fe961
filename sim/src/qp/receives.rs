//! The receives into which messages go: a queue pair's own, those of its SRQ, or those of the SRQ that
//! a request of XRC names.

use std::collections::BTreeMap;

use verbs_api::{Qp as QpHandle, QpType, Wc};

use super::common::Common;
use super::queue::WorkQueue;
use crate::device::{Completion, Delivery, Device, NoReceive, Queue, Recv, Srq, Taken, Ticket};

/// The receives of a queue pair.
#[derive(Clone, Debug)]
pub(crate) struct Receives {
    pub(crate) source: Source,
    /// The receive of an SRQ into which the present message goes.
    taken: Option<Taken>,
}

/// Where receives come from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The queue pair's own queue.
    Own {
        pd: u32,
        cq: u32,
        rq: WorkQueue<Recv>,
    },
    /// The SRQ it was made with.
    Shared { pd: u32, cq: u32, srq: u32 },
    /// The SRQ that the present request names, of a queue pair of XRC_RECV.
    Named(Target),
}

/// What a queue pair of XRC_RECV has in place of a protection domain and a CQ.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The XRC domain.
    pub(crate) domain: u32,
    /// The handles by which programs know it, by the index of the opening; at least one.
    pub(crate) openings: BTreeMap<u32, QpHandle>,
    /// The SRQ that the last request named, which may have gone since, and its protection domain.
    present: Option<(u32, u32)>,
}

/// A receive that is done.
pub(crate) struct Done {
    /// Where it completes.
    pub(crate) cq: u32,
    pub(crate) wr_id: u64,
    pub(crate) ticket: Ticket,
}

impl Target {
    /// One that no program has open yet.
    pub(super) fn new(domain: u32) -> Self {
        Self {
            domain,
            openings: BTreeMap::new(),
            present: None,
        }
    }
}

impl Source {
    fn cq(&self) -> Option<u32> {
        match self {
            Self::Own { cq, .. } | Self::Shared { cq, .. } => Some(*cq),
            Self::Named(_) => None,
        }
    }
}

impl Receives {
    pub(super) fn new(source: Source) -> Self {
        Self {
            source,
            taken: None,
        }
    }

    /// The protection domain of the queue pair, or for now that of the SRQ that a request names.
    pub(crate) fn pd(&self) -> Option<u32> {
        match &self.source {
            Source::Own { pd, .. } | Source::Shared { pd, .. } => Some(*pd),
            Source::Named(target) => target.present.map(|(_, pd)| pd),
        }
    }

    /// The CQ it was made with.
    pub(crate) fn cq(&self) -> Option<u32> {
        self.source.cq()
    }

    /// Its own queue.
    pub(crate) fn rq(&self) -> Option<&WorkQueue<Recv>> {
        match &self.source {
            Source::Own { rq, .. } => Some(rq),
            _ => None,
        }
    }

    pub(crate) fn rq_mut(&mut self) -> Option<&mut WorkQueue<Recv>> {
        match &mut self.source {
            Source::Own { rq, .. } => Some(rq),
            _ => None,
        }
    }

    /// The SRQ it was made with.
    pub(super) fn made_with(&self) -> Option<u32> {
        match &self.source {
            Source::Shared { srq, .. } => Some(*srq),
            _ => None,
        }
    }

    /// The SRQ from which the present message takes its receive.
    fn srq(&self) -> Option<u32> {
        match &self.source {
            Source::Own { .. } => None,
            Source::Shared { srq, .. } => Some(*srq),
            Source::Named(target) => target.present.map(|(srq, _)| srq),
        }
    }

    /// The receives of this SRQ, and the memory of its domain, are what the present request is for
    /// (XRC-04). False if the domain has no such SRQ.
    pub(super) fn steer(&mut self, device: &Device, srq_num: u32) -> bool {
        let Source::Named(target) = &mut self.source else {
            return false;
        };
        target.present = match device.srq_of_number(srq_num, target.domain) {
            None => return false,
            found => found,
        };
        true
    }

    /// Whether there is a receive that can complete.
    pub(super) fn has_one(&self) -> bool {
        self.taken.is_some() || self.rq().is_some_and(WorkQueue::has_undone)
    }

    /// Whether the present message has a receive of an SRQ.
    pub(super) fn has_taken(&self) -> bool {
        self.taken.is_some()
    }

    /// Makes sure that there is a receive for the message: of an SRQ one is taken now, unless it has been.
    pub(crate) fn need(&mut self, device: &mut Device) -> Result<(), NoReceive> {
        match self.srq() {
            None if self.has_one() => Ok(()),
            None => Err(NoReceive::Empty),
            Some(_) if self.taken.is_some() => Ok(()),
            Some(srq) => {
                self.taken = Some(device.take_shared(srq)?);
                Ok(())
            }
        }
    }

    /// The receive into which the present message goes, and the domain of its memory.
    pub(super) fn present<'d>(&'d self, device: &'d Device) -> Option<(u32, &'d Recv)> {
        match self.taken {
            Some(taken) => {
                let srq = device.srq_of(taken)?;
                Some((self.pd_of(device, srq)?, srq.get(taken.seq)))
            }
            None => {
                let rq = self.rq().filter(|rq| rq.has_undone())?;
                Some((self.pd()?, rq.get(rq.oldest())))
            }
        }
    }

    /// As above, before the message has taken one of an SRQ.
    pub(crate) fn next<'d>(&'d self, device: &'d Device) -> Result<(u32, &'d Recv), NoReceive> {
        let Some(srq) = self.made_with() else {
            return self.present(device).ok_or(NoReceive::Empty);
        };
        let srq = device.srqs.at(srq);
        let recv = srq.first_waiting()?;
        let pd = self.pd_of(device, srq).ok_or(NoReceive::Failed)?;
        Ok((pd, recv))
    }

    /// The domain that the memory of a receive must be of: the SRQ's, not the QP's (SRQ-12).
    fn pd_of(&self, device: &Device, srq: &Srq) -> Option<u32> {
        match device.base.behavior.srq_checks_qp_pd {
            true => self.pd(),
            false => Some(srq.pd),
        }
    }

    /// The present receive is done: where it completes. None if its SRQ is gone.
    #[inline(always)]
    pub(crate) fn finish(&mut self, qp: &Common, device: &mut Device) -> Option<Done> {
        let releases = device.releases_at_completion();
        match (self.taken.take(), &mut self.source) {
            (Some(taken), source) => {
                let srq = device.srq_of(taken)?;
                let (wr_id, label) = srq.get(taken.seq).numbers();
                let cq = srq.xrc.map(|xrc| xrc.cq).or(source.cq())?;
                if releases {
                    device.release_shared(taken);
                }
                let ticket = qp.ticket(Queue::Shared(taken.srq), taken.seq, label);
                Some(Done { cq, wr_id, ticket })
            }
            (None, Source::Own { pd, cq, rq }) => {
                let seq = rq.finish();
                let (wr_id, label) = rq.get(seq).numbers();
                if releases {
                    let released = rq.release(seq, &mut device.places.recvs, |_| ());
                    device.domains.pds.at_mut(*pd).posted -= released;
                }
                let ticket = qp.ticket(Queue::Recv, seq, label);
                Some(Done {
                    cq: *cq,
                    wr_id,
                    ticket,
                })
            }
            (None, _) => None,
        }
    }

    /// The present receive completes. `wc` has status, opcode and what the message brought.
    pub(super) fn complete(
        &mut self,
        qp: &Common,
        device: &mut Device,
        mut wc: Wc,
        solicited: bool,
    ) -> Delivery {
        let Some(Done { cq, wr_id, ticket }) = self.finish(qp, device) else {
            return Delivery::Made;
        };
        (wc.wr_id, wc.qp_num) = (wr_id, qp.qp_num);
        let of_datagram = qp.init.qp_type == QpType::Ud;
        let completion = Completion {
            wc,
            ticket,
            solicited,
            of_datagram,
        };
        device.complete(cq, completion)
    }

    /// Frees the slots of the own queue up to this one.
    #[inline(always)]
    pub(super) fn release(&mut self, device: &mut Device, seq: u64) {
        if let Source::Own { pd, rq, .. } = &mut self.source {
            let released = rq.release(seq, &mut device.places.recvs, |_| ());
            device.domains.pds.at_mut(*pd).posted -= released;
        }
    }

    /// Drops what is in the own queue, without completions; how many. The receive that was taken is
    /// returned.
    pub(super) fn clear(&mut self, device: &mut Device) -> (u32, Option<Taken>) {
        let spare = &mut device.places.recvs;
        let dropped = self.rq_mut().map_or(0, |rq| rq.clear(spare, |_| ()));
        (dropped, self.taken.take())
    }
}
