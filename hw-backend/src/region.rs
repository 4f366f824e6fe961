//! Regions of other memory, or with other addresses.

use verbs_abi::inline;
use verbs_api::{Mr as MrHandle, MrInit, MrMemory, Pd as PdHandle, Result, Verb};

use crate::errno::{invalid, no_memory};
use crate::hw::Hw;
use crate::objects::Memory;

pub(crate) fn region_as(hw: &Hw, pd: PdHandle, init: &MrInit) -> Result<MrHandle> {
    let verb = Verb::AllocMrAs;
    let length = init.length;
    hw.pd(verb, pd)?;
    let memory = match init.memory {
        MrMemory::New => Memory::owned(length),
        MrMemory::ReadOnly => Memory::read_only(length),
        MrMemory::Unmapped => Some(Memory::None),
        MrMemory::Of(of, offset) => {
            let part = Memory::part(&hw.mr(verb, of)?, offset, length);
            let none = || invalid(verb, "memory", "is not memory that the region can share");
            Some(part.ok_or_else(none)?)
        }
        _ => return Err(invalid(verb, "memory", "is of an unknown kind")),
    };
    let Some(memory) = memory else {
        return Err(no_memory(verb));
    };
    hw.insert_mr(verb, pd, memory, length, init.access, init.iova)
}

/// `ibv_alloc_null_mr`
pub(crate) fn null_region(hw: &Hw, pd: PdHandle) -> Result<MrHandle> {
    hw.keep_mr(Verb::AllocNullMr, pd, Memory::None, Some(0), |pd| {
        // SAFETY: the domain is live.
        unsafe { inline::alloc_null_mr(pd) }
    })
}
