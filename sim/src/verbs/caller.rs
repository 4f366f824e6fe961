//! Functions for programs that pass pointers, as those of the drop-in for libibverbs do: regions of
//! the caller's memory, and devices that are not open.
#![expect(unsafe_code, reason = "the promise of the trait's unsafe method")]

use verbs_api::{Access, Mr, MrChange, Pd, ReregError, Result, Verb};

use super::sim::Sim;

impl Sim {
    /// The GUID of a device, which need not be open (`ibv_get_device_guid`).
    ///
    /// # Panics
    /// If there is no such node.
    pub fn node_guid(&self, node: u32) -> u64 {
        self.runtime
            .with(|fabric| fabric.node(node).device.base.attr.node_guid)
    }

    /// Registers the caller's memory at a virtual address that the caller chooses
    /// (`ibv_reg_mr_iova`).
    ///
    /// # Errors
    /// The errors of [`Verbs::reg_mr`](verbs_api::Verbs::reg_mr). `Invalid` also for an `iova` whose
    /// offset in its page is not that of the memory.
    ///
    /// # Safety
    /// The promise of [`Verbs::reg_mr`](verbs_api::Verbs::reg_mr).
    #[track_caller]
    pub unsafe fn reg_mr_as(
        &self,
        pd: Pd,
        addr: *mut u8,
        length: usize,
        iova: Option<u64>,
        access: Access,
    ) -> Result<Mr> {
        let args = || format!("{pd}, the caller's {length} B, {:#x}", access.bits());
        self.call(Verb::RegMr, pd, args, |node| {
            // SAFETY: the caller of this method makes the same promise.
            unsafe { node.device.reg_mr(pd, addr, length, iova, access) }
        })
    }

    /// Changes a region (`ibv_rereg_mr`). A change of its memory replaces the old memory by the
    /// caller's, which begins at `addr`.
    ///
    /// # Errors
    /// The errors of [`Verbs::rereg_mr`](verbs_api::Verbs::rereg_mr), except `Busy` for posted work:
    /// work that names the old memory fails when it is executed.
    ///
    /// # Safety
    /// For a change of the memory, that of [`Verbs::reg_mr`](verbs_api::Verbs::reg_mr).
    #[track_caller]
    pub unsafe fn rereg_mr_as(
        &self,
        mr: Mr,
        change: &MrChange,
        addr: *mut u8,
    ) -> Result<(), ReregError> {
        let args = || format!("{mr}, {change:?}");
        Ok(self.call(Verb::ReregMr, mr, args, |node| {
            // SAFETY: the caller of this method makes the same promise.
            unsafe { node.device.rereg_mr_as(mr, change, addr) }
        })?)
    }
}
