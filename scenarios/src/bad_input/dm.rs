//! Device memories, and what they are made of, that are zero, stale, or of another context.

use verbs_api::{Access, Context, Dm, DmInit, ErrorKind, Handle, Pd, Verb};

use super::handles::open_again;
use super::refused;
use crate::failure::in_case;
use crate::{Result, Setup};

/// A handle of each kind.
#[derive(Clone, Copy, Default)]
pub(super) struct Handles {
    context: Context,
    pd: Pd,
    dm: Dm,
}

/// A call with one bad handle.
pub(super) type Call = fn(&Setup<'_>, &Handles, &Handles) -> verbs_api::Result<()>;

/// The verbs on device memory.
pub(super) const CALLS: &[(Verb, &str, Call)] = &[
    (Verb::AllocDm, "DEV-13", |v, _, bad| {
        v.alloc_dm(bad.context, &DmInit::new(8)).map(drop)
    }),
    (Verb::FreeDm, "DM-14", |v, _, bad| v.free_dm(bad.dm)),
    (Verb::RegDmMr, "PD-04", |v, good, bad| {
        let access = Access::ZERO_BASED;
        v.reg_dm_mr(bad.pd, good.dm, 0, 8, access).map(drop)
    }),
    (Verb::RegDmMr, "DM-14", |v, good, bad| {
        let access = Access::ZERO_BASED;
        v.reg_dm_mr(good.pd, bad.dm, 0, 8, access).map(drop)
    }),
    (Verb::CopyToDm, "DM-14", |v, _, bad| {
        v.copy_to_dm(bad.dm, 0, &[0; 4])
    }),
    (Verb::CopyFromDm, "DM-14", |v, _, bad| {
        v.copy_from_dm(bad.dm, 0, &mut [0; 4])
    }),
];

fn make(setup: &Setup<'_>, context: Context) -> Result<Handles> {
    Ok(Handles {
        context,
        pd: setup.alloc_pd(context)?,
        dm: setup.alloc_dm(context, &DmInit::new(64))?,
    })
}

scenario!(device_memories_that_are_none_are_refused:
    "DM-14", "PD-04", "DEV-13"; needs DEVICE_MEMORY);
fn device_memories_that_are_none_are_refused(setup: &Setup<'_>) -> Result {
    let closed = make(setup, open_again(setup)?)?;
    setup.close_device(closed.context)?;
    let gone = make(setup, setup.ctx_a())?;
    setup.free_dm(gone.dm)?;
    setup.dealloc_pd(gone.pd)?;
    let stale = Handles {
        context: closed.context,
        ..gone
    };
    let good = make(setup, setup.ctx_a())?;
    let other = open_again(setup)?;
    let moved = Handles {
        context: Context::from_parts(u32::MAX, 1),
        pd: Pd::from_parts(other, good.pd.index(), good.pd.generation()),
        dm: Dm::from_parts(other, good.dm.index(), good.dm.generation()),
    };
    for (problem, bad) in [
        ("zero", Handles::default()),
        ("stale", stale),
        ("foreign", moved),
    ] {
        for (verb, rule, call) in CALLS {
            let result = refused(setup, &[ErrorKind::Invalid], rule, || {
                call(setup, &good, &bad)
            });
            in_case(&format!("{verb}, {problem} handle"), result.map(drop))?;
        }
    }
    Ok(())
}

scenario!(device_memory_of_another_context_is_refused: "DM-14"; needs DEVICE_MEMORY);
fn device_memory_of_another_context_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DM-14";
    let good = make(setup, setup.ctx_a())?;
    let other = make(setup, open_again(setup)?)?;
    refused(setup, &[ErrorKind::Invalid], RULE, || {
        setup.reg_dm_mr(good.pd, other.dm, 0, 8, Access::ZERO_BASED)
    })
    .map(drop)
}
