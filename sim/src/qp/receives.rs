//! The receives into which messages go: those of the queue pair, of its SRQ, or of the SRQ that an
//! XRC request names.

use std::collections::BTreeMap;

use verbs_api::{OdpOps, Qp as QpHandle, QpType, Wc};

use super::common::Common;
use super::queue::WorkQueue;
use crate::device::{Completion, Delivery, Device, NoReceive, Queue, Recv, Srq, Taken, Ticket};

/// The receives of a queue pair.
#[derive(Clone, Debug)]
pub(crate) struct Receives {
    pub(crate) source: Source,
    /// The receive of an SRQ into which the current message goes.
    pub(super) taken: Option<Taken>,
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
    /// The SRQ it was created with.
    Shared { pd: u32, cq: u32, srq: u32 },
    /// The SRQ that the current request names, for an XRC_RECV queue pair.
    Named {
        /// The XRC domain, which it has in the place of a protection domain and a CQ.
        domain: u32,
        /// The handles by which programs know it, by the index of the opening. There is at least
        /// one.
        openings: BTreeMap<u32, QpHandle>,
        /// The SRQ that the last request named, which may have been destroyed since, and its
        /// protection domain.
        present: Option<(u32, u32)>,
    },
}

/// A receive that is done.
pub(crate) struct Done {
    /// The CQ in which it completes.
    pub(crate) cq: u32,
    pub(crate) wr_id: u64,
    pub(crate) ticket: Ticket,
}

impl Source {
    /// The CQ it was created with.
    pub(crate) fn cq(&self) -> Option<u32> {
        match self {
            Self::Own { cq, .. } | Self::Shared { cq, .. } => Some(*cq),
            Self::Named { .. } => None,
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

    /// The protection domain of the queue pair, or of the SRQ that the current XRC request names.
    pub(crate) fn pd(&self) -> Option<u32> {
        match &self.source {
            Source::Own { pd, .. } | Source::Shared { pd, .. } => Some(*pd),
            Source::Named { present, .. } => present.map(|(_, pd)| pd),
        }
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

    /// What a receive needs of the transport to be in an on-demand region.
    pub(crate) fn odp_need(&self) -> OdpOps {
        match self.rq() {
            Some(_) => OdpOps::RECV,
            None => OdpOps::SRQ_RECV,
        }
    }

    /// The SRQ it was created with.
    pub(crate) fn made_with(&self) -> Option<u32> {
        match &self.source {
            Source::Shared { srq, .. } => Some(*srq),
            _ => None,
        }
    }

    /// The SRQ from which the current message takes its receive.
    fn srq(&self) -> Option<u32> {
        match &self.source {
            Source::Own { .. } => None,
            Source::Shared { srq, .. } => Some(*srq),
            Source::Named { present, .. } => present.map(|(srq, _)| srq),
        }
    }

    /// Selects the SRQ for the current request: its receives, and the memory of its domain
    /// (XRC-04). Returns false if the XRC domain has no such SRQ.
    pub(super) fn steer(&mut self, device: &Device, srq_num: u32) -> bool {
        let Source::Named {
            domain, present, ..
        } = &mut self.source
        else {
            return false;
        };
        *present = match device.srq_of_number(srq_num, *domain) {
            None => return false,
            found => found,
        };
        true
    }

    /// Whether there is a receive that can complete.
    pub(super) fn has_one(&self) -> bool {
        // Receives in an SRQ do not count: they belong to no queue pair until they are taken.
        self.taken.is_some() || self.rq().is_some_and(WorkQueue::has_undone)
    }

    /// Makes sure that there is a receive for the message. A receive of an SRQ is taken now, unless
    /// the message has one.
    pub(crate) fn need(&mut self, device: &mut Device) -> Result<(), NoReceive> {
        match self.srq() {
            // Without an SRQ the receive is taken when it completes.
            None if self.has_one() => Ok(()),
            None => Err(NoReceive::Empty),
            Some(_) if self.taken.is_some() => Ok(()),
            Some(srq) => {
                self.taken = Some(device.take_shared(srq)?);
                Ok(())
            }
        }
    }

    /// The receive into which the current message goes, and the domain of its memory.
    pub(super) fn present<'d>(&'d self, device: &'d Device) -> Option<(u32, &'d Recv)> {
        match self.taken {
            Some(taken) => {
                let srq = device.srq_of(taken)?;
                Some((self.pd_of(device, srq)?, &srq.recvs[&taken.seq]))
            }
            None => {
                let rq = self.rq().filter(|rq| rq.has_undone())?;
                Some((self.pd()?, rq.get(rq.oldest())))
            }
        }
    }

    /// The receive into which the next message will go, and the domain of its memory, before one is
    /// taken from an SRQ.
    pub(crate) fn next<'d>(&'d self, device: &'d Device) -> Result<(u32, &'d Recv), NoReceive> {
        let Some(srq) = self.made_with() else {
            return self.present(device).ok_or(NoReceive::Empty);
        };
        // Nothing is taken yet: a datagram that is dropped leaves the receive in the SRQ.
        let srq = device.srqs.at(srq);
        let recv = srq.first_waiting()?;
        let pd = self.pd_of(device, srq).ok_or(NoReceive::Failed)?;
        Ok((pd, recv))
    }

    /// The domain to which the memory of a receive must belong: the SRQ's, not the QP's (SRQ-12).
    fn pd_of(&self, device: &Device, srq: &Srq) -> Option<u32> {
        if device.base.behavior.srq_checks_qp_pd {
            self.pd()
        } else {
            Some(srq.pd)
        }
    }

    /// Finishes the current receive, and returns where it completes. None if its SRQ was destroyed.
    #[inline(always)]
    pub(crate) fn finish(&mut self, qp: &Common, device: &mut Device) -> Option<Done> {
        let releases = device.releases_at_completion();
        match (self.taken.take(), &mut self.source) {
            (Some(taken), source) => {
                let srq = device.srq_of(taken)?;
                let (wr_id, label) = srq.recvs[&taken.seq].numbers();
                // Receives of an XRC SRQ complete in the CQ of the SRQ, others in that of the queue
                // pair.
                let cq = srq.xrc.map(|xrc| xrc.cq).or(source.cq())?;
                // On some devices slots are free at the completion, and not when it is polled.
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

    /// Completes the current receive. `wc` has status, opcode and the data of the message.
    pub(super) fn complete(
        &mut self,
        qp: &Common,
        device: &mut Device,
        mut wc: Wc,
        solicited: bool,
    ) -> Delivery {
        self.note_placed(qp, device, &wc);
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

    /// Frees the slots of its own queue up to this one.
    #[inline(always)]
    #[cfg_attr(any(), mutants::skip)] // cost
    pub(super) fn release(&mut self, device: &mut Device, seq: u64) {
        if let Source::Own { pd, rq, .. } = &mut self.source {
            let released = rq.release(seq, &mut device.places.recvs, |_| ());
            device.domains.pds.at_mut(*pd).posted -= released;
        }
    }

    /// Drops the receives of its own queue without completions. Returns the receive taken from an
    /// SRQ, whose slot the caller frees.
    pub(super) fn clear(&mut self, device: &mut Device) -> Option<Taken> {
        if let Source::Own { pd, rq, .. } = &mut self.source {
            let dropped = rq.clear(&mut device.places.recvs, |_| ());
            device.domains.pds.at_mut(*pd).posted -= dropped;
        }
        self.taken.take()
    }
}
