//! CQs that are made for an id, because the program names none for its queue pair.

use verbs_abi::{ibv_comp_channel, ibv_cq, ibv_qp_init_attr, int, rdma_cm_id};

use crate::c::result::{Refusal, Result, last_errno};
use crate::verbs::cq;

/// The CQs that were made for an id: of its sends, and of its receives.
#[derive(Default)]
pub(super) struct MadeCqs(pub(super) [Option<MadeCq>; 2]);

/// A CQ with its channel.
#[derive(Clone, Copy)]
pub(super) struct MadeCq {
    cq: *mut ibv_cq,
    pub(super) channel: *mut ibv_comp_channel,
}

// SAFETY: the pointers are those of objects, which any thread may have.
unsafe impl Send for MadeCqs {}

impl MadeCq {
    fn new(id: *mut rdma_cm_id, entries: u32) -> Result<Self> {
        // SAFETY: one of ours, which stays for the call.
        let context = unsafe { (*id).verbs };
        let channel = made(cq::create_comp_channel(context))?;
        let cq = cq::create_cq(context, int(entries), id.cast(), channel, 0);
        let cq = made(cq).inspect_err(|_| {
            cq::destroy_comp_channel(channel);
        })?;
        Ok(Self { cq, channel })
    }

    fn destroy(self) {
        cq::destroy_cq(self.cq);
        cq::destroy_comp_channel(self.channel);
    }
}

/// The object that a function of this library has made.
pub(super) fn made<T>(pointer: *mut T) -> Result<*mut T> {
    if pointer.is_null() {
        return Err(Refusal::noted(last_errno()));
    }
    Ok(pointer)
}

impl MadeCqs {
    /// Makes the CQs that the queue pair needs and the program does not name.
    pub(super) fn fill(&mut self, id: *mut rdma_cm_id, init: &mut ibv_qp_init_attr) -> Result<()> {
        let named = [&mut init.send_cq, &mut init.recv_cq];
        let sizes = [init.cap.max_send_wr, init.cap.max_recv_wr];
        for ((cq, size), own) in named.into_iter().zip(sizes).zip(&mut self.0) {
            if cq.is_null() && size > 0 {
                let made = MadeCq::new(id, size)?;
                (*cq, *own) = (made.cq, Some(made));
            }
        }
        Ok(())
    }

    pub(super) fn destroy(&mut self) {
        for made in self.0.iter_mut().filter_map(Option::take) {
            made.destroy();
        }
    }
}
