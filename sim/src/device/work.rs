//! Posted work, as it stands in its queue.

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
    /// What is shown for it.
    pub(crate) label: u64,
    pub(crate) op: SendOp,
    pub(crate) flags: SendFlags,
    pub(crate) list: SmallVec<[Sge; 1]>,
    pub(crate) dest: Dest,
    pub(crate) length: u32,
    /// The bytes of inline data, which are taken when it is posted.
    pub(crate) inline: Vec<u8>,
    /// Set when it starts, if it travels in packets.
    pub(crate) payload: Payload,
    pub(crate) first: Psn,
    pub(crate) span: u32,
    /// Bytes of an RDMA Read that have come.
    pub(crate) got: u32,
    /// The sequence numbers of those.
    pub(crate) answered: u32,
    /// It cannot be done; it completes with this status when its turn comes.
    pub(crate) failed: Option<WcStatus>,
    /// Where it was posted.
    pub(crate) site: Option<Site>,
    /// That of its bytes from when on they are to stay the same, where memory is checked.
    pub(crate) sum: Option<NonZeroU64>,
}

/// A receive in its queue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recv {
    pub(crate) wr_id: u64,
    /// What is shown for it.
    pub(crate) label: u64,
    pub(crate) list: SmallVec<[Sge; 1]>,
    /// Where it was posted.
    pub(crate) site: Option<Site>,
}

/// Places for work, which all queues of a device have in turn.
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
    /// Puts one here that was just posted, but for its inline data. The lists of those before it keep their memory.
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

    /// The work is over: what it took along is given back.
    #[inline]
    pub(crate) fn let_go(&mut self) {
        if self.payload.holds_memory() {
            self.payload = Payload::default();
        }
    }
}

impl Recv {
    /// Puts one here that was just posted.
    #[inline(always)]
    pub(crate) fn put(&mut self, wr: &RecvWr<'_>) {
        self.wr_id = wr.wr_id;
        self.label = wr.label();
        put_list(&mut self.list, wr.sg_list);
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

/// Bytes that a list names.
#[inline(always)]
pub(crate) fn length_of(list: &[Sge]) -> u64 {
    match list {
        // Nearly always. The loop below becomes one for long lists.
        [sge] => sge.length.into(),
        list => list.iter().map(|sge| u64::from(sge.length)).sum(),
    }
}

#[inline(always)]
fn put_list(place: &mut SmallVec<[Sge; 1]>, list: &[Sge]) {
    if let ([sge], false) = (list, place.spilled()) {
        return *place = SmallVec::from_buf([*sge]);
    }
    place.clear();
    place.extend_from_slice(list);
}
