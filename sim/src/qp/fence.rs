//! Sends that take bytes which an earlier read or atomic of their queue brings. Without a fence
//! only the completion of the read orders them (SQ-12, SQ-13).

use verbs_api::{QpState, SendFlags, SendWr};

use super::common::Common;
use super::requester::Requester;
use super::{atomic, send};
use crate::device::{Device, FirstBytes, Send};
use crate::diagnosis::problem::Unfenced;

/// The number of requests up to the last read that are compared with a send.
const MOST: u64 = 64;

impl Requester {
    /// Records that a request was posted, as the last one in the queue. From the first read on it
    /// matters how many the peer accepts.
    #[inline(always)]
    pub(super) fn note_posted(&mut self, qp: &Common, device: &mut Device, wr: &SendWr<'_>) {
        let end = self.sq.end();
        if wr.op.takes_depth() {
            if std::mem::replace(&mut self.reads_end, end) == 0 {
                device.base.journal.first_read(qp.qp_num);
            }
        // Most queues have no read whose completion is unpolled.
        } else if self.reads_end > self.sq.first() {
            self.note_unfenced(qp, device, wr);
        }
        if wr.flags.contains(SendFlags::FENCE) {
            self.fenced = end - 1;
        }
    }

    /// Records a send that takes bytes of a read whose completion is unpolled. That the read may be
    /// done already is luck: the program cannot know.
    #[inline(never)]
    fn note_unfenced(&self, qp: &Common, device: &mut Device, wr: &SendWr<'_>) {
        let is_inline = wr.flags.contains(SendFlags::INLINE);
        // Inline data is taken at the post, so a fence is too late.
        let is_fenced = wr.flags.contains(SendFlags::FENCE) && !is_inline;
        // In the error state the send is flushed.
        let is_sent = matches!(qp.state(), QpState::Rts | QpState::Sqd);
        if is_fenced || !is_sent || send::is_local(&wr.op) {
            return;
        }
        let regions = &device.domains.regions;
        let taken = FirstBytes::new(wr.sg_list, wr.length());
        let brings =
            |earlier: &&Send| earlier.is_read() && regions.overlap(brought(earlier), taken);
        // Sends start in order, so those behind a fenced one wait for the same reads.
        let ordered = if is_inline { 0 } else { self.fenced };
        let last = self.reads_end - 1;
        let first = ordered.max(last.saturating_sub(MOST));
        if first > last {
            return;
        }
        let mut unpolled = self.sq.between(first, last);
        let Some(earlier) = unpolled.find(brings) else {
            return;
        };
        let problem = Unfenced {
            qp_num: qp.qp_num,
            wr_id: wr.label(),
            is_inline,
            op: earlier.op,
            earlier: earlier.label,
            posted: earlier.site,
        };
        device.base.journal.note(problem, device.base.site);
    }
}

/// The bytes that a read or an atomic brings.
fn brought(read: &Send) -> FirstBytes<'_> {
    let length = match atomic::header(&read.op) {
        // Some devices accept a longer list, of which they use the first bytes.
        Some(_) => atomic::BYTES,
        None => read.length,
    };
    FirstBytes::new(&read.list, length)
}
