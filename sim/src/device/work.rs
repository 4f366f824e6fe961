//! Posted work in its queue.

use std::num::NonZeroU64;

use smallvec::SmallVec;
use verbs_api::site::Site;
use verbs_api::{Dest, RecvWr, SendFlags, SendOp, SendWr, Sge, WcStatus};

use crate::packet::Psn;
use crate::packet::payload::Payload;
use crate::storage::FreeList;

/// A send in its queue.
#[derive(Clone, Debug)]
pub(crate) struct Send {
    pub(crate) wr_id: u64,
    /// The number that traces and reports show for it.
    pub(crate) label: u64,
    pub(crate) op: SendOp,
    pub(crate) flags: SendFlags,
    pub(crate) list: SmallVec<[Sge; 1]>,
    pub(crate) dest: Dest,
    pub(crate) length: u32,
    /// The bytes of inline data, which are copied when it is posted.
    pub(crate) inline: Vec<u8>,
    /// Set when it starts, if it is sent as packets.
    pub(crate) payload: Payload,
    pub(crate) first: Psn,
    pub(crate) span: u32,
    /// The bytes of an RDMA Read that have arrived.
    pub(crate) got: u32,
    /// The sequence numbers of these bytes.
    pub(crate) answered: u32,
    /// The status with which it completes in its turn, if it cannot be carried out.
    pub(crate) failed: Option<WcStatus>,
    /// Where it was posted.
    pub(crate) site: Option<Site>,
    /// The sum of its bytes, from the time when they must not change, where memory is checked.
    pub(crate) sum: Option<NonZeroU64>,
}

/// A receive in its queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recv {
    pub(crate) wr_id: u64,
    /// The number that traces and reports show for it.
    pub(crate) label: u64,
    pub(crate) list: SmallVec<[Sge; 1]>,
    /// Where it was posted.
    pub(crate) site: Option<Site>,
    /// The bytes of the message that was placed in it, where memory is checked.
    pub(crate) placed: u32,
}

/// Slots for work, which all queues of a device share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    pub(crate) sends: FreeList<Send>,
    pub(crate) recvs: FreeList<Recv>,
}

impl Default for Send {
    fn default() -> Self {
        Self {
            wr_id: 0,
            label: 0,
            op: SendOp::Send,
            flags: SendFlags::empty(),
            list: SmallVec::new(),
            dest: Dest::Connected,
            length: 0,
            inline: Vec::new(),
            payload: Payload::default(),
            first: Psn::default(),
            span: 0,
            got: 0,
            answered: 0,
            failed: None,
            site: None,
            sum: None,
        }
    }
}

impl Send {
    /// Fills this slot with a work request that is posted, except for inline data. Lists keep their
    /// allocated memory.
    #[inline(always)]
    pub(crate) fn put(&mut self, wr: &SendWr<'_>, length: u32, failed: Option<WcStatus>) {
        self.wr_id = wr.wr_id;
        self.label = wr.label();
        self.op = wr.op;
        self.flags = wr.flags;
        put_list(&mut self.list, wr.sg_list);
        self.dest = wr.dest;
        self.length = length;
        (self.first, self.span) = (Psn::default(), 0);
        (self.got, self.answered) = (0, 0);
        self.failed = failed;
    }

    /// Releases the memory of the payload when the work is finished.
    #[inline]
    #[cfg_attr(any(), mutants::skip)] // cost
    pub(crate) fn release_payload(&mut self) {
        // Most payloads only name memory, and need no work here.
        if self.payload.holds_memory() {
            self.payload = Payload::default();
        }
    }
}

impl Recv {
    /// Fills this slot with a work request that is posted.
    #[inline(always)]
    pub(crate) fn put(&mut self, wr: &RecvWr<'_>) {
        self.wr_id = wr.wr_id;
        self.label = wr.label();
        put_list(&mut self.list, wr.sg_list);
        self.placed = 0;
    }

    /// Its `wr_id` and its label.
    pub(crate) fn numbers(&self) -> (u64, u64) {
        (self.wr_id, self.label)
    }

    #[inline(always)]
    pub(crate) fn length(&self) -> u64 {
        length_of(&self.list)
    }
}

/// The number of bytes that a list names.
#[inline(always)]
pub(crate) fn length_of(list: &[Sge]) -> u64 {
    match list {
        // Almost all lists have one entry. The compiler makes the loop below one for long lists.
        [sge] => sge.length.into(),
        list => list.iter().map(|sge| u64::from(sge.length)).sum(),
    }
}

#[inline(always)]
fn put_list(place: &mut SmallVec<[Sge; 1]>, list: &[Sge]) {
    // A single entry is written in place, without a loop.
    if let ([sge], false) = (list, place.spilled()) {
        return *place = SmallVec::from_buf([*sge]);
    }
    place.clear();
    place.extend_from_slice(list);
}
