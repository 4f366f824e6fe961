//! Checks whether a message is placed over that of an earlier receive, which the program has not
//! polled yet. The memory of both receives was posted twice.

use verbs_api::{Wc, WcOpcode, WcStatus};

use super::common::Common;
use super::receives::Receives;
use crate::device::{Device, FirstBytes, Recv};
use crate::diagnosis::problem::{Overlaid, PostedTo};

impl Receives {
    /// The current receive completes. A write with immediate data places nothing in it.
    #[inline(always)]
    pub(super) fn note_placed(&mut self, qp: &Common, device: &mut Device, wc: &Wc) {
        if device.base.checks_memory
            && (wc.status, wc.opcode) == (WcStatus::Success, WcOpcode::Recv)
        {
            self.note_overlaid(qp, device, wc.byte_len);
            self.set_placed(device, wc.byte_len);
        }
    }

    /// Records a message that is placed over another.
    #[cold]
    fn note_overlaid(&self, qp: &Common, device: &mut Device, length: u32) {
        let Some((_, recv)) = self.present(device) else {
            return;
        };
        let regions = &device.domains.regions;
        let message = FirstBytes::new(&recv.list, length);
        // Nothing is placed in receives that wait.
        let is_under = |other: &&Recv| {
            let under = FirstBytes::new(&other.list, other.placed);
            regions.overlap(under, message)
        };
        let srq = self.taken.and_then(|taken| device.srq_of(taken));
        let (queue, under) = match (srq, self.rq()) {
            (Some(srq), _) => (PostedTo::Srq(srq.handle), srq.recvs.values().find(is_under)),
            (None, Some(rq)) => (PostedTo::Recv(qp.qp_num), rq.unpolled().find(is_under)),
            (None, None) => return,
        };
        if let Some(under) = under {
            let problem = Overlaid {
                queue,
                wr_id: recv.label,
                earlier: under.label,
                posted: under.site,
            };
            let site = recv.site;
            device.base.journal.note(problem, site);
        }
    }

    /// Keeps the number of bytes in the current receive.
    fn set_placed(&mut self, device: &mut Device, length: u32) {
        if let Some(taken) = self.taken {
            if device.srq_of(taken).is_some() {
                let recvs = &mut device.srqs.at_mut(taken.srq.index).recvs;
                recvs
                    .entry(taken.seq)
                    .and_modify(|recv| recv.placed = length);
            }
        } else if let Some(rq) = self.rq_mut() {
            rq.get_mut(rq.oldest()).placed = length;
        }
    }
}
