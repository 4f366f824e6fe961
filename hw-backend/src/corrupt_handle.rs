//! Corrupt handles in the C structures.

use verbs_abi::{ibv_ah, ibv_cq, ibv_mr, ibv_mw, ibv_pd, ibv_qp, ibv_srq};
use verbs_api::{DriverObject, Result, Verb};

use crate::errno::invalid;
use crate::hw::Hw;
use crate::owner::{Kind, Owned};

/// Kernels give out small numbers, so this one names no object.
const CORRUPT: u32 = 1 << 31;

pub(crate) fn corrupt_object(hw: &Hw, object: DriverObject, corrupt: bool) -> Result<()> {
    let verb = Verb::CorruptHandle;
    match object {
        DriverObject::Pd(pd) => set(&hw.pd(verb, pd)?.raw, corrupt),
        DriverObject::Mr(mr) => set(&hw.mr(verb, mr)?.raw, corrupt),
        DriverObject::Mw(mw) => {
            let mw = hw.find(|tables| &tables.mws, verb, mw)?;
            set(&mw.raw, corrupt)
        }
        DriverObject::Cq(cq) => set(&hw.cq(verb, cq)?.raw, corrupt),
        DriverObject::Qp(qp) => set(&hw.qp(verb, qp)?.raw, corrupt),
        DriverObject::Srq(srq) => set(&hw.srq(verb, srq)?.raw, corrupt),
        DriverObject::Ah(ah) => {
            let ah = hw.find(|tables| &tables.ahs, verb, ah)?;
            set(&ah.raw, corrupt)
        }
        other => Err(invalid(verb, other.kind().name(), "has no number")),
    }
}

/// A C structure with the number by which the kernel knows the object.
trait Numbered {
    fn number(&mut self) -> &mut u32;
}

macro_rules! numbered {
    ($($name:ident),*) => { $(
        impl Numbered for $name {
            fn number(&mut self) -> &mut u32 {
                &mut self.handle
            }
        }
    )* };
}

numbered!(ibv_pd, ibv_mr, ibv_mw, ibv_cq, ibv_qp, ibv_ah, ibv_srq);

fn set<T: Kind + Numbered>(raw: &Owned<T>, corrupt: bool) -> Result<()> {
    let set = |object: *mut T| {
        // SAFETY: the object is live, and no other call can read the number now.
        let number = unsafe { (*object).number() };
        *number = *number & !CORRUPT | if corrupt { CORRUPT } else { 0 };
    };
    raw.alone(Verb::CorruptHandle, set)
}
