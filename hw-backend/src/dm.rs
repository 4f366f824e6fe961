//! Device memory.

use std::ffi::c_int;

use verbs_abi::{ibv_alloc_dm_attr, ibv_dm, inline};
use verbs_api::{
    Access, Cause, Context, Dm as DmHandle, DmInit, Error, ErrorKind, Handle, Mr as MrHandle,
    Pd as PdHandle, Result, Verb,
};

use crate::errno::of_context;
use crate::hw::{Hw, destroy};
use crate::objects::{Dm, Memory};

impl Hw {
    /// `ibv_alloc_dm`
    pub(crate) fn alloc_memory(&self, context: Context, init: &DmInit) -> Result<DmHandle> {
        let verb = Verb::AllocDm;
        let device = self.device(verb, context)?;
        let mut attr = ibv_alloc_dm_attr {
            length: init.length,
            log_align_req: init.log_align,
            comp_mask: 0,
        };
        // SAFETY: the context is live, and the memory new.
        let raw = unsafe {
            let alloc = |context| inline::alloc_dm(context, &mut attr);
            device.raw.make(verb, alloc)
        }?;
        let dm = Dm {
            raw,
            context,
            _device: device,
        };
        Ok(self.insert(|t| &mut t.dms, DmHandle::from_parts, context, dm))
    }

    /// `ibv_free_dm`
    pub(crate) fn free_memory(&self, dm: DmHandle) -> Result<()> {
        destroy(Verb::FreeDm, &self.dm(Verb::FreeDm, dm)?.raw)?;
        self.tables.lock().dms.remove(dm.index());
        Ok(())
    }

    /// `ibv_reg_dm_mr`
    pub(crate) fn register_memory(
        &self,
        pd: PdHandle,
        dm: DmHandle,
        offset: u64,
        length: usize,
        access: Access,
    ) -> Result<MrHandle> {
        let verb = Verb::RegDmMr;
        let of = self.dm(verb, dm)?;
        of_context(verb, dm, pd.context())?;
        let held = of.raw.hold(verb)?;
        let memory = Memory::Device { _of: of.clone() };
        // Its addresses are offsets.
        self.keep_mr(verb, pd, memory, Some(0), |pd| {
            // SAFETY: domain and memory are live.
            unsafe { inline::reg_dm_mr(pd, held.get(), offset, length, access.bits()) }
        })
    }

    /// `ibv_memcpy_to_dm`, `ibv_memcpy_from_dm`
    pub(crate) fn copy_memory(
        &self,
        verb: Verb,
        dm: DmHandle,
        offset: u64,
        length: usize,
        copy: impl FnOnce(*mut ibv_dm) -> c_int,
    ) -> Result<()> {
        // A library would take bytes whose end wraps around for bytes of the memory.
        if offset.checked_add(length as u64).is_none() {
            let (what, problem) = ("offset + length", "wraps around");
            let cause = Cause::Argument { what, problem };
            return Err(Error::new(verb, ErrorKind::Fault, cause));
        }
        self.dm(verb, dm)?.raw.call(verb, copy)
    }
}
