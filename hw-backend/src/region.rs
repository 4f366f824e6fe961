//! Regions of other memory, or with other addresses.

use verbs_abi::{ibv_sge, inline};
use verbs_api::{
    Advice, AdviseFlags, Mr as MrHandle, MrInit, MrMemory, Pd as PdHandle, Result, Sge, Verb,
};

use crate::errno::{invalid, no_memory};
use crate::hw::Hw;
use crate::objects::Memory;

pub(crate) fn region_as(hw: &Hw, pd: PdHandle, init: &MrInit) -> Result<MrHandle> {
    let verb = Verb::AllocMrAs;
    let length = init.length;
    hw.pd(verb, pd)?;
    let memory = match init.memory {
        MrMemory::New => Memory::owned(length, init.access),
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

/// Unmaps the memory of an on-demand region, or maps new zeros there.
pub(crate) fn map(hw: &Hw, mr: MrHandle, mapped: bool) -> Result<()> {
    let verb = Verb::MapMr;
    let found = hw.mr(verb, mr)?;
    let mut memory = found.memory.write();
    if !memory.is_on_demand() {
        let problem = "is not on-demand, or of memory that stays";
        return Err(invalid(verb, "mr", problem));
    }
    memory.map(mapped).ok_or_else(|| no_memory(verb))
}

/// `ibv_advise_mr`
pub(crate) fn advise(
    hw: &Hw,
    pd: PdHandle,
    advice: Advice,
    flags: AdviseFlags,
    list: &[Sge],
) -> Result<()> {
    let verb = Verb::AdviseMr;
    let mut list: Vec<_> = list.iter().map(ibv_sge::to_c).collect();
    let count = u32::try_from(list.len()).unwrap_or(u32::MAX);
    let (advice, flags) = (advice.into(), flags.bits());
    let advise = |pd| {
        // SAFETY: the domain is live, and the list lives during the call.
        unsafe { inline::advise_mr(pd, advice, flags, list.as_mut_ptr(), count) }
    };
    hw.pd(verb, pd)?.raw.call(verb, advise)
}
