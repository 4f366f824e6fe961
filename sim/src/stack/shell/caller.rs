//! What the trait has not, for programs that hand over pointers, as those of the drop-in for libibverbs
//! do: regions of the caller's memory, devices that are not open.
#![expect(unsafe_code, reason = "the promise of the trait's unsafe method")]

use verbs_api::table::Id;
use verbs_api::{Access, CompChannel, Handle, Mr, MrChange, Pd, ReregError, Result, Verb};

use super::fabric::{WaitFor, Waiting};
use super::sim::Sim;
use crate::class::Class;
use crate::device::node_of;

/// A thread that sleeps outside of the simulator, such as on a descriptor, as long as this value lives.
#[derive(Debug)]
pub struct Sleeping<'s> {
    sim: &'s Sim,
    wait: Id,
}

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        self.sim.world.with(|fabric| fabric.waits.end(self.wait));
    }
}

impl Sim {
    /// From now on this thread sleeps until there is an event on a channel, in a layer over the verbs. A diagnosis says so
    /// while the value lives.
    #[track_caller]
    pub fn sleeping(&self, channel: CompChannel) -> Sleeping<'_> {
        let wait = self.world.with(|fabric| {
            let waiting = Waiting {
                verb: Verb::GetCqEvent,
                wait_for: WaitFor::Event(channel),
                place: node_of(channel.context()),
                since: fabric.now(),
                site: fabric.site,
            };
            fabric.waits.begin(waiting)
        });
        Sleeping { sim: self, wait }
    }

    /// Adds to the diagnosis that a layer over the verbs was misused in a way that the simulator does not see, such as
    /// by a pointer to no object. It is of the first device.
    #[track_caller]
    pub fn note_misuse(&self, class: Class, text: String) {
        self.world.with(|fabric| fabric.note_misuse(class, text));
    }

    /// The GUID of a device that need not be open (`ibv_get_device_guid`).
    ///
    /// # Panics
    /// If there is no such node.
    pub fn node_guid(&self, node: u32) -> u64 {
        self.world
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
        let say = || format!("{pd}, the caller's {length} B, {:#x}", access.bits());
        self.call_device(Verb::RegMr, pd, say, |device| {
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
        let say = || format!("{mr}, {change:?}");
        self.call_device(Verb::ReregMr, mr, say, |device| {
            // SAFETY: the caller of this method makes the same promise.
            unsafe {
                device
                    .domains
                    .rereg_mr_as(&mut device.base, mr, change, addr)
            }
        })
    }
}
