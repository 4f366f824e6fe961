//! What the trait has not, for programs that hand over pointers, as those of the drop-in for libibverbs
//! do: regions of the caller's memory, devices that are not open.
#![expect(unsafe_code, reason = "the promise of the trait's unsafe method")]

use verbs_api::{Access, Mr, MrChange, Pd, ReregError, Result, Verb};

use super::sim::Sim;

impl Sim {
    /// The GUID of a device that need not be open (`ibv_get_device_guid`).
    ///
    /// # Panics
    /// If there is no such node.
    pub fn node_guid(&self, node: u32) -> u64 {
        self.runtime
            .with(|fabric| fabric.node(node).device.base.attr.node_guid)
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
        let args = || format!("{pd}, the caller's {length} B, {:#x}", access.bits());
        self.call_device(Verb::RegMr, pd, args, |device| {
            // SAFETY: the caller of this method makes the same promise.
            unsafe {
                device
                    .domains
                    .reg_mr_as(&mut device.base, pd, addr, length, iova, access)
            }
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
        let args = || format!("{mr}, {change:?}");
        self.call_device(Verb::ReregMr, mr, args, |device| {
            // SAFETY: the caller of this method makes the same promise.
            unsafe {
                device
                    .domains
                    .rereg_mr_as(&mut device.base, mr, change, addr)
            }
        })
    }
}
