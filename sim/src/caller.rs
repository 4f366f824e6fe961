//! What the trait has not, for programs that hand over pointers, as those of the drop-in for libibverbs
//! do: regions of the caller's memory, and work that no program asked for.
#![expect(unsafe_code, reason = "the promise of the trait's unsafe method")]

use verbs_api::{Access, Handle, Mr, MrChange, Object, Pd, ReregError, Result, Verb};

use crate::node::Node;
use crate::sim::Sim;

impl Sim {
    /// Works on a node beside the verbs of programs: no fault rule counts it, and it is not in the trace.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn beside<R>(&self, node: u32, work: impl FnOnce(&mut Node) -> R) -> R {
        self.world
            .with(|fabric| fabric.work(node, |node, _| work(node)))
    }

    /// Registers the caller's memory with an address of its choice (`ibv_reg_mr_iova`). Errors as for
    /// [`Verbs::reg_mr`](verbs_api::Verbs::reg_mr); `Invalid` also for an `iova` that does not fit the
    /// memory's place in its page.
    ///
    /// # Safety
    /// That of [`Verbs::reg_mr`](verbs_api::Verbs::reg_mr).
    pub unsafe fn reg_mr_as(
        &self,
        pd: Pd,
        addr: *mut u8,
        length: usize,
        iova: Option<u64>,
        access: Access,
    ) -> Result<Mr> {
        let say = || format!("{pd}, the caller's {length} B, {:#x}", access.bits());
        self.call(Verb::RegMr, Object::Pd, pd.context(), say, |node, _| {
            // SAFETY: the caller of this method makes the same promise.
            unsafe { node.reg_mr_as(pd, addr, length, iova, access) }
        })
    }

    /// Changes a region (`ibv_rereg_mr`): a change of its memory puts the caller's, from `addr` on,
    /// in the place of the old. Errors as for [`Verbs::rereg_mr`](verbs_api::Verbs::rereg_mr), but
    /// never `Busy` for posted work: what names the old memory fails when it is executed.
    ///
    /// # Safety
    /// For a change of the memory, that of [`Verbs::reg_mr`](verbs_api::Verbs::reg_mr).
    pub unsafe fn rereg_mr_as(
        &self,
        mr: Mr,
        change: &MrChange,
        addr: *mut u8,
    ) -> Result<(), ReregError> {
        let say = || format!("{mr}, {change:?}");
        self.call(Verb::ReregMr, Object::Mr, mr.context(), say, |node, _| {
            // SAFETY: the caller of this method makes the same promise.
            unsafe { node.rereg_mr_as(mr, change, addr) }
        })
    }
}
