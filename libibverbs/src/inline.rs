//! Inline data: the bytes that a program hands over with a send.
//!
//! They may lie anywhere in its memory, but the engine knows only regions. So each queue pair with inline
//! data has a region of its own: the bytes are copied there, and the post takes them from there at once.

use verbs_api::sync::{Mutex, MutexGuard};
use verbs_api::{Access, Mr, MrAttr, QpCap, Sge, Verbs};

use crate::context::OpenDevice;
use crate::engine::{engine, unobserved};
use crate::object::CObject;
use crate::result::Result;

/// The region of a queue pair.
pub(crate) struct Inline {
    mr: Mr,
    attr: MrAttr,
    /// Bytes of one send.
    each: usize,
    /// Sends that the queue takes. There is room for one more.
    sends: usize,
    busy: Mutex<()>,
}

impl Inline {
    /// Room for all sends of a queue of these sizes.
    pub(crate) fn new(context: &CObject<OpenDevice>, cap: &QpCap) -> Result<Self> {
        let each = cap.max_inline_data as usize;
        let sends = cap.max_send_wr.max(1) as usize;
        // The machine gives memory for what is used of it.
        let (pd, size) = (context.inline_pd()?, each * (sends + 1));
        let mr = unobserved().alloc_mr(pd, size, Access::empty())?;
        Ok(Self {
            mr,
            attr: unobserved().query_mr(mr)?,
            each,
            sends,
            busy: Mutex::new(()),
        })
    }

    /// With the queue pair.
    pub(crate) fn free(&self) -> Result<()> {
        Ok(unobserved().dereg_mr(self.mr)?)
    }

    /// Bytes of one send.
    pub(crate) fn each(&self) -> usize {
        self.each
    }

    /// Nobody else uses it meanwhile.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.busy.lock()
    }

    /// Copies what the `number`th send of a post is to have, at most [`each`](Self::each) bytes, and
    /// names it.
    pub(crate) fn put(&self, number: usize, bytes: &[u8]) -> Result<Sge> {
        // Those of a batch that the queue does not take share the last place: nobody sees what they have.
        let offset = number.min(self.sends) * self.each;
        engine().sim.write_mr(self.mr, offset, bytes)?;
        Ok(self.attr.sge(offset as u64, bytes.len() as u32))
    }
}
