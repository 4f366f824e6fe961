//! Windows and what they are made of.

use verbs_api::behavior::DeregBound;
use verbs_api::{Capabilities, ErrorKind, MwType, Remote, SendWr, WcStatus};

use super::{BOTH, WRITE, bind, bound, is_shut, opens, pair, part, sibling, write};
use crate::failure::{check_eq, in_case};
use crate::{OfRule, Result, Setup, expect_err, expect_err_among};

scenario!(deallocated_window_opens_nothing: "MW-19"; needs MW);
fn deallocated_window_opens_nothing(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-19";
    for mw_type in BOTH {
        let pair = pair(setup)?;
        let b = pair.b;
        let (mw, rkey) = bound(setup, &b, mw_type)?;
        opens(setup, &pair, rkey, RULE)?;
        setup.dealloc_mw(mw).rule(RULE)?;
        in_case(&mw_type.to_string(), is_shut(setup, &pair, rkey, RULE))?;
        setup.dereg_mr(b.mr).rule(RULE)?;
    }
    Ok(())
}

scenario!(region_with_a_window_is_not_deregistered: "MR-07"; needs MW);
/// Until it is unbound; or it goes, and the window opens nothing.
fn region_with_a_window_is_not_deregistered(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-07";
    for mw_type in BOTH {
        let pair = pair(setup)?;
        let b = pair.b;
        let (mw, rkey) = bound(setup, &b, mw_type)?;
        opens(setup, &pair, rkey, RULE)?;
        let seen = match setup.dereg_mr(b.mr) {
            Ok(()) => DeregBound::Orphan,
            Err(error) if error.kind() == ErrorKind::Busy => DeregBound::Ebusy,
            Err(error) if error.kind() == ErrorKind::Invalid => DeregBound::Einval,
            Err(error) => return Err(error).rule(RULE),
        };
        let case = mw_type.to_string();
        if seen == DeregBound::Orphan {
            let addr = b.mem.addr + b.landing();
            let status = write(setup, &pair.a, Remote { addr, rkey })?;
            check_eq!(RULE, status, WcStatus::RemAccessErr, "a write");
        } else {
            in_case(&case, opens(setup, &pair, rkey, RULE))?;
            match mw_type {
                MwType::Type1 => {
                    bind(setup, &b, mw, part(&b, 0, 0, WRITE)).rule(RULE)?;
                }
                _ => {
                    setup.post_send(b.qp, &[SendWr::local_inv(1, rkey)])?;
                    setup.one_with(b.send_cq, WcStatus::Success, RULE)?;
                }
            }
            in_case(&case, setup.dereg_mr(b.mr).rule(RULE))?;
        }
        setup.as_declared(RULE, setup.behavior()?.dereg_bound, seen)?;
    }
    Ok(())
}

scenario!(queue_pair_with_a_window_is_destroyed: "QP-DESTROY-04"; needs MW; hazards MAY_HANG);
fn queue_pair_with_a_window_is_destroyed(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-DESTROY-04";
    let first = pair(setup)?;
    let b = first.b;
    let (mw, rkey) = bound(setup, &b, MwType::Type2)?;
    setup.destroy_qp(b.qp, setup.wait()).rule(RULE)?;
    let second = sibling(setup, &first)?;
    is_shut(setup, &second, rkey, RULE)?;
    // It is bound to nothing any more.
    setup.dereg_mr(b.mr).rule(RULE)?;
    setup.dealloc_mw(mw).rule(RULE)
}

scenario!(domain_with_a_window_is_busy: "PD-01"; needs MW);
fn domain_with_a_window_is_busy(setup: &Setup<'_>) -> Result {
    const RULE: &str = "PD-01";
    for mw_type in BOTH {
        let pd = setup.alloc_pd(setup.ctx_a())?;
        let mw = setup.alloc_mw(pd, mw_type)?;
        expect_err(setup.dealloc_pd(pd), ErrorKind::Busy, RULE)?;
        setup.dealloc_mw(mw).rule(RULE)?;
        setup.dealloc_pd(pd).rule(RULE)?;
    }
    Ok(())
}

scenario!(device_has_the_types_that_it_says: "MW-26"; without RC);
fn device_has_the_types_that_it_says(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-26";
    let context = setup.ctx_a();
    let device = setup.query_device(context)?;
    let reported = setup.capabilities(context)?;
    let pd = setup.alloc_pd(context)?;
    for (mw_type, has_it, capability) in [
        (MwType::Type1, device.mem_window, Capabilities::MW_TYPE_1),
        (
            MwType::Type2,
            device.mem_window_type_2b,
            Capabilities::MW_TYPE_2,
        ),
        (MwType::from(3), false, Capabilities::empty()),
        (MwType::from(0), false, Capabilities::empty()),
    ] {
        let named = !capability.is_empty() && reported.contains(capability);
        check_eq!(RULE, named, has_it, format!("whether there is {mw_type}"));
        let allocated = setup.alloc_mw(pd, mw_type);
        if has_it {
            let mw = allocated.rule(RULE)?;
            check_eq!(RULE, setup.query_mw(mw)?.mw_type, mw_type);
            setup.dealloc_mw(mw).rule(RULE)?;
        } else {
            let kinds = [ErrorKind::Invalid, ErrorKind::NotSupported];
            let refused = expect_err_among(allocated, &kinds, RULE);
            in_case(&mw_type.to_string(), refused.map(drop))?;
        }
    }
    setup.dealloc_pd(pd).rule(RULE)
}
