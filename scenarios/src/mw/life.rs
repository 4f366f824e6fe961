//! Windows and what they are made of.

use verbs_api::behavior::DeregBound;
use verbs_api::{Capabilities, ErrorKind, MwType, Remote, SendWr, WcStatus};

use super::{BOTH, WRITE, bind, bound, is_shut, opens, pair, part, sibling, write};
use crate::failure::{check_eq, in_case};
use crate::{Bench, OfRule, Result, expect_err, expect_err_among};

scenario!(deallocated_window_opens_nothing: "MW-19"; needs MW);
fn deallocated_window_opens_nothing(bench: &Bench<'_>) -> Result {
    const RULE: &str = "MW-19";
    for mw_type in BOTH {
        let pair = pair(bench)?;
        let b = pair.b;
        let (mw, rkey) = bound(bench, &b, mw_type)?;
        opens(bench, &pair, rkey, RULE)?;
        bench.dealloc_mw(mw).rule(RULE)?;
        in_case(&mw_type.to_string(), is_shut(bench, &pair, rkey, RULE))?;
        bench.dereg_mr(b.mr).rule(RULE)?;
    }
    Ok(())
}

scenario!(region_with_a_window_is_not_deregistered: "MR-07"; needs MW);
/// Until it is unbound; or it goes, and the window opens nothing.
fn region_with_a_window_is_not_deregistered(bench: &Bench<'_>) -> Result {
    const RULE: &str = "MR-07";
    for mw_type in BOTH {
        let pair = pair(bench)?;
        let b = pair.b;
        let (mw, rkey) = bound(bench, &b, mw_type)?;
        opens(bench, &pair, rkey, RULE)?;
        let seen = match bench.dereg_mr(b.mr) {
            Ok(()) => DeregBound::Orphan,
            Err(error) if error.kind() == ErrorKind::Busy => DeregBound::Ebusy,
            Err(error) if error.kind() == ErrorKind::Invalid => DeregBound::Einval,
            Err(error) => return Err(error).rule(RULE),
        };
        let case = mw_type.to_string();
        if seen == DeregBound::Orphan {
            let addr = b.mem.addr + b.landing();
            let status = write(bench, &pair.a, Remote { addr, rkey })?;
            check_eq!(RULE, status, WcStatus::RemAccessErr, "a write");
        } else {
            in_case(&case, opens(bench, &pair, rkey, RULE))?;
            match mw_type {
                MwType::Type1 => {
                    bind(bench, &b, mw, part(&b, 0, 0, WRITE)).rule(RULE)?;
                }
                _ => {
                    bench.post_send(b.qp, &[SendWr::local_inv(1, rkey)])?;
                    bench.one_with(b.send_cq, WcStatus::Success, RULE)?;
                }
            }
            in_case(&case, bench.dereg_mr(b.mr).rule(RULE))?;
        }
        bench.as_declared(RULE, bench.behavior()?.dereg_bound, seen)?;
    }
    Ok(())
}

scenario!(queue_pair_with_a_window_is_destroyed: "QP-DESTROY-04"; needs MW; hazards MAY_HANG);
fn queue_pair_with_a_window_is_destroyed(bench: &Bench<'_>) -> Result {
    const RULE: &str = "QP-DESTROY-04";
    let first = pair(bench)?;
    let b = first.b;
    let (mw, rkey) = bound(bench, &b, MwType::Type2)?;
    bench.destroy_qp(b.qp, bench.wait()).rule(RULE)?;
    let second = sibling(bench, &first)?;
    is_shut(bench, &second, rkey, RULE)?;
    // It is bound to nothing any more.
    bench.dereg_mr(b.mr).rule(RULE)?;
    bench.dealloc_mw(mw).rule(RULE)
}

scenario!(domain_with_a_window_is_busy: "PD-01"; needs MW);
fn domain_with_a_window_is_busy(bench: &Bench<'_>) -> Result {
    const RULE: &str = "PD-01";
    for mw_type in BOTH {
        let pd = bench.alloc_pd(bench.ctx_a())?;
        let mw = bench.alloc_mw(pd, mw_type)?;
        expect_err(bench.dealloc_pd(pd), ErrorKind::Busy, RULE)?;
        bench.dealloc_mw(mw).rule(RULE)?;
        bench.dealloc_pd(pd).rule(RULE)?;
    }
    Ok(())
}

scenario!(device_has_the_types_that_it_says: "MW-26");
fn device_has_the_types_that_it_says(bench: &Bench<'_>) -> Result {
    const RULE: &str = "MW-26";
    let context = bench.ctx_a();
    let device = bench.query_device(context)?;
    let reported = bench.capabilities(context)?;
    let pd = bench.alloc_pd(context)?;
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
        let allocated = bench.alloc_mw(pd, mw_type);
        if has_it {
            let mw = allocated.rule(RULE)?;
            check_eq!(RULE, bench.query_mw(mw)?.mw_type, mw_type);
            bench.dealloc_mw(mw).rule(RULE)?;
        } else {
            let kinds = [ErrorKind::Invalid, ErrorKind::NotSupported];
            let refused = expect_err_among(allocated, &kinds, RULE);
            in_case(&mw_type.to_string(), refused.map(drop))?;
        }
    }
    bench.dealloc_pd(pd).rule(RULE)
}
