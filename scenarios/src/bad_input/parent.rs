//! Thread domains, and the domains of parent domains, that are zero, stale, or of another context.

use verbs_api::{Context, ErrorKind, Handle, Pd, Td, Verb};

use super::handles::open_again;
use super::refused;
use crate::failure::in_case;
use crate::{Result, Setup};

/// A handle of each kind.
#[derive(Clone, Copy, Default)]
pub(super) struct Handles {
    context: Context,
    pd: Pd,
    td: Td,
    parent: Pd,
}

/// A call with one bad handle.
pub(super) type Call = fn(&Setup<'_>, &Handles) -> verbs_api::Result<()>;

/// The verbs on parent domains and thread domains.
pub(super) const CALLS: &[(Verb, &str, Call)] = &[
    (Verb::AllocTd, "DEV-13", |v, bad| {
        v.alloc_td(bad.context).map(drop)
    }),
    (Verb::DeallocTd, "DEV-13", |v, bad| v.dealloc_td(bad.td)),
    (Verb::AllocParentDomain, "PD-04", |v, bad| {
        v.alloc_parent_domain(bad.pd, None).map(drop)
    }),
    (Verb::AllocParentDomain, "PD-04", |v, bad| {
        v.alloc_parent_domain(bad.parent, None).map(drop)
    }),
    (Verb::DeallocPd, "PD-04", |v, bad| v.dealloc_pd(bad.parent)),
    (Verb::AllocMr, "PD-04", |v, bad| {
        v.alloc_mr(bad.parent, 8, verbs_api::Access::empty())
            .map(drop)
    }),
];

fn make(setup: &Setup<'_>, context: Context) -> Result<Handles> {
    let (pd, td) = (setup.alloc_pd(context)?, setup.alloc_td(context)?);
    let parent = setup.alloc_parent_domain(pd, Some(td))?;
    Ok(Handles {
        context,
        pd,
        td,
        parent,
    })
}

scenario!(domains_that_are_none_are_refused: "DEV-13", "PD-04"; needs PARENT_DOMAIN; without RC);
fn domains_that_are_none_are_refused(setup: &Setup<'_>) -> Result {
    let closed = make(setup, open_again(setup)?)?;
    setup.close_device(closed.context)?;
    let gone = make(setup, setup.ctx_a())?;
    setup.dealloc_pd(gone.parent)?;
    setup.dealloc_pd(gone.pd)?;
    setup.dealloc_td(gone.td)?;
    let stale = Handles {
        context: closed.context,
        ..gone
    };
    let good = make(setup, setup.ctx_a())?;
    let other = open_again(setup)?;
    let moved = |pd: Pd| Pd::from_parts(other, pd.index(), pd.generation());
    let foreign = Handles {
        context: Context::from_parts(u32::MAX, 1),
        pd: moved(good.pd),
        td: Td::from_parts(other, good.td.index(), good.td.generation()),
        parent: moved(good.parent),
    };
    for (problem, bad) in [
        ("zero", Handles::default()),
        ("stale", stale),
        ("foreign", foreign),
    ] {
        for (verb, rule, call) in CALLS {
            let result = refused(setup, &[ErrorKind::Invalid], rule, || call(setup, &bad));
            in_case(&format!("{verb}, {problem} handle"), result.map(drop))?;
        }
    }
    Ok(())
}
