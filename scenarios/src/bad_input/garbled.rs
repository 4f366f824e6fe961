//! Handles that are good here, and garbled behind the trait: what the driver itself refuses.

use std::fmt::Debug;

use verbs_api::behavior::Check;
use verbs_api::{
    Access, Arm, Capabilities, Cq, CqInit, DriverObject, Error, ErrorKind, Handle, MwBind, MwType,
    QpAttrMask, QpInit, QpModify, QpState, QpType, SendWr, SrqAttr, SrqAttrMask, SrqInit, Wait,
    WcStatus, inc_rkey,
};

use super::handles::open_again;
use super::refused;
use crate::failure::{Failure, in_case};
use crate::mcast::{ALL_HOSTS, MLID};
use crate::mw::part;
use crate::{Bench, OfRule, Pair, PairOptions, Result, expect_err};

/// How the kernel says for every driver that it knows no such object, and a driver that it has no
/// such verb.
const NO_SUCH: [ErrorKind; 2] = [ErrorKind::NotFound, ErrorKind::NotSupported];

/// Runs calls on an object whose handle is garbled.
pub(super) fn garbled(
    bench: &Bench<'_>,
    object: DriverObject,
    calls: impl FnOnce() -> Result,
) -> Result {
    bench.garble(object, true)?;
    let result = calls();
    bench.garble(object, false)?;
    result
}

pub(super) fn no_such<T, E>(
    bench: &Bench<'_>,
    what: &str,
    rule: &'static str,
    call: impl FnOnce() -> Result<T, E>,
) -> Result
where
    T: Debug,
    E: Clone + Into<Error>,
{
    in_case(what, refused(bench, &NO_SUCH, rule, call).map(drop))
}

scenario!(garbled_cq_is_not_armed: "CQ-ARM-21"; needs GARBLE; hazards MAY_CRASH);
fn garbled_cq_is_not_armed(bench: &Bench<'_>) -> Result {
    let end = bench.end(bench.ctx_a(), PairOptions::default())?;
    let declared = bench.behavior()?.arm_bad_handle;
    garbled(bench, DriverObject::Cq(end.recv_cq), || {
        for arm in [Arm::NEXT, Arm::SOLICITED] {
            let armed = bench.req_notify_cq(end.recv_cq, arm);
            match (declared, armed) {
                // Some drivers declare that they do not check the handle.
                (Some(Check::Accepted) | None, Ok(())) => {}
                (Some(Check::Accepted), Err(error)) => {
                    let failure = Failure::assertion("it is armed, as declared", error.to_string());
                    return Err(failure).rule("CQ-ARM-21");
                }
                (_, armed) => no_such(bench, "arm", "CQ-ARM-21", || armed)?,
            }
        }
        Ok(())
    })?;
    bench.no_event(end.channel, "CQ-ARM-21")?;
    bench.arm(end.recv_cq, Arm::NEXT).rule("CQ-ARM-21")
}

scenario!(garbled_cq_is_refused: "CQ-DESTROY-05"; needs GARBLE; hazards MAY_CRASH);
fn garbled_cq_is_refused(bench: &Bench<'_>) -> Result {
    const RULE: &str = "CQ-DESTROY-05";
    let cq = bench.create_cq(bench.ctx_a(), &CqInit::new(16))?;
    let resizes = bench.capabilities(bench.ctx_a())?;
    garbled(bench, DriverObject::Cq(cq), || {
        if resizes.contains(Capabilities::RESIZE_CQ) {
            no_such(bench, "resize", RULE, || bench.resize_cq(cq, 32))?;
        }
        no_such(bench, "destroy", RULE, || {
            bench.destroy_cq(cq, bench.wait())
        })
    })?;
    bench.no_completion(cq, RULE)?;
    bench.destroy_cq(cq, bench.wait()).rule(RULE)
}

scenario!(garbled_qp_is_refused: "QP-STATE-32"; needs GARBLE; hazards MAY_CRASH);
fn garbled_qp_is_refused(bench: &Bench<'_>) -> Result {
    const RULE: &str = "QP-STATE-32";
    let end = bench.end(bench.ctx_a(), PairOptions::default())?;
    garbled(bench, DriverObject::Qp(end.qp), || {
        let QpModify { attr, mask } = QpModify::to(QpState::Err);
        no_such(bench, "modify", RULE, || {
            bench.modify_qp(end.qp, &attr, mask)
        })?;
        no_such(bench, "query", RULE, || {
            bench.query_qp(end.qp, QpAttrMask::STATE)
        })?;
        no_such(bench, "destroy", RULE, || {
            bench.destroy_qp(end.qp, Wait::Poll)
        })
    })?;
    crate::failure::check_eq!(RULE, bench.state(end.qp)?, QpState::Reset);
    bench.destroy_qp(end.qp, bench.wait()).rule(RULE)
}

scenario!(garbled_qp_joins_no_group: "QP-STATE-32"; needs UD, MCAST, GARBLE; hazards MAY_CRASH);
fn garbled_qp_joins_no_group(bench: &Bench<'_>) -> Result {
    const RULE: &str = "QP-STATE-32";
    let ud = || bench.end(bench.ctx_a(), PairOptions::of(QpType::Ud));
    let (stranger, member) = (ud()?, ud()?);
    bench.attach_mcast(member.qp, ALL_HOSTS, MLID)?;
    for (what, qp) in [("not attached", stranger.qp), ("attached", member.qp)] {
        garbled(bench, DriverObject::Qp(qp), || {
            let attach = || bench.attach_mcast(qp, ALL_HOSTS, MLID);
            in_case(what, no_such(bench, "attach", RULE, attach))?;
            let detach = || bench.detach_mcast(qp, ALL_HOSTS, MLID);
            in_case(what, no_such(bench, "detach", RULE, detach))
        })?;
    }
    bench.detach_mcast(member.qp, ALL_HOSTS, MLID).rule(RULE)
}

scenario!(garbled_region_is_refused: "MR-22"; needs GARBLE; hazards MAY_CRASH);
fn garbled_region_is_refused(bench: &Bench<'_>) -> Result {
    const RULE: &str = "MR-22";
    let end = bench.end(bench.ctx_a(), PairOptions::default())?;
    let mr = bench.alloc_mr(end.pd, 64, Access::empty())?;
    garbled(bench, DriverObject::Mr(mr), || {
        no_such(bench, "dereg", RULE, || bench.dereg_mr(mr))
    })?;
    bench.dereg_mr(mr).rule(RULE)
}

scenario!(garbled_window_is_refused: "MW-28"; needs MW, GARBLE; hazards MAY_CRASH);
fn garbled_window_is_refused(bench: &Bench<'_>) -> Result {
    const RULE: &str = "MW-28";
    let pd = bench.alloc_pd(bench.ctx_a())?;
    let mw = bench.alloc_mw(pd, MwType::Type1)?;
    garbled(bench, DriverObject::Mw(mw), || {
        no_such(bench, "dealloc", RULE, || bench.dealloc_mw(mw))
    })?;
    bench.dealloc_mw(mw).rule(RULE)?;
    bench.dealloc_pd(pd).rule(RULE)
}

scenario!(garbled_window_and_region_are_bound_as_declared:
    "MW-28"; needs MW_TYPE_1, GARBLE; hazards MAY_CRASH);
/// Drivers that know windows and regions by their keys never look at the handles.
fn garbled_window_and_region_are_bound_as_declared(bench: &Bench<'_>) -> Result {
    const RULE: &str = "MW-28";
    let declared = bench.behavior()?.bind_bad_handle;
    let capabilities = bench.capabilities(bench.ctx_a())?;
    let types = [
        (MwType::Type1, Capabilities::MW_TYPE_1),
        (MwType::Type2, Capabilities::MW_TYPE_2),
    ];
    for (mw_type, needed) in types {
        for garbles_window in [true, false] {
            if !capabilities.contains(needed) {
                continue;
            }
            let Pair { a, .. } = bench.pair(PairOptions {
                access: Access::ALL_RDMA | Access::MW_BIND,
                ..PairOptions::default()
            })?;
            let mw = bench.alloc_mw(a.pd, mw_type)?;
            let rkey = inc_rkey(bench.query_mw(mw)?.rkey);
            let info = part(&a, 0, 8, Access::REMOTE_READ);
            let object = if garbles_window {
                DriverObject::Mw(mw)
            } else {
                DriverObject::Mr(a.mr)
            };
            let mut seen = Check::Refused;
            garbled(bench, object, || {
                let posted = match mw_type {
                    MwType::Type1 => bench.bind_mw(a.qp, mw, &MwBind::new(1, info)),
                    _ => {
                        let bind = SendWr::bind_mw(1, mw, rkey, info);
                        bench.post_send(a.qp, &[bind]).map_err(|error| error.error)
                    }
                };
                match posted {
                    Ok(()) => seen = Check::Accepted,
                    refused => no_such(bench, "bind", RULE, || refused)?,
                }
                Ok(())
            })?;
            let what = format!("{mw_type}, {object:?}");
            if seen == Check::Accepted {
                in_case(
                    &what,
                    bench.one_with(a.send_cq, WcStatus::Success, RULE).map(drop),
                )?;
            }
            in_case(&what, bench.as_declared(RULE, declared, seen))?;
            bench.dealloc_mw(mw).rule(RULE)?;
        }
    }
    Ok(())
}

scenario!(garbled_domain_is_refused: "PD-04"; needs GARBLE; hazards MAY_CRASH);
fn garbled_domain_is_refused(bench: &Bench<'_>) -> Result {
    const RULE: &str = "PD-04";
    let pd = bench.alloc_pd(bench.ctx_a())?;
    let cq = bench.create_cq(bench.ctx_a(), &CqInit::new(16))?;
    garbled(bench, DriverObject::Pd(pd), || {
        no_such(bench, "region", RULE, || {
            bench.alloc_mr(pd, 64, Access::empty())
        })?;
        no_such(bench, "queue pair", RULE, || {
            bench.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq))
        })?;
        no_such(bench, "dealloc", RULE, || bench.dealloc_pd(pd))
    })?;
    let mr = bench.alloc_mr(pd, 64, Access::empty()).rule(RULE)?;
    bench.dereg_mr(mr)?;
    bench.dealloc_pd(pd).rule(RULE)
}

scenario!(handle_of_another_context_garbles_nothing: "DEV-13"; needs GARBLE);
fn handle_of_another_context_garbles_nothing(bench: &Bench<'_>) -> Result {
    const RULE: &str = "DEV-13";
    let end = bench.end(bench.ctx_a(), PairOptions::default())?;
    let other = open_again(bench)?;
    let moved = Cq::from_parts(other, end.recv_cq.index(), end.recv_cq.generation());
    let result = bench.garble(DriverObject::Cq(moved), true);
    expect_err(result, ErrorKind::Invalid, RULE)?;
    bench.no_completion(end.recv_cq, RULE)?;
    bench.close_device(other)?;
    bench.destroy_qp(end.qp, bench.wait())?;
    bench.destroy_cq(end.recv_cq, bench.wait()).rule(RULE)
}

scenario!(garbled_srq_is_refused: "DEV-13"; needs SRQ, GARBLE; hazards MAY_CRASH);
/// Posting stays in the process, and never sees the number.
fn garbled_srq_is_refused(bench: &Bench<'_>) -> Result {
    const RULE: &str = "DEV-13";
    let pd = bench.alloc_pd(bench.ctx_a())?;
    let cq = bench.create_cq(bench.ctx_a(), &CqInit::new(16))?;
    let srq = bench.create_srq(pd, &SrqInit::new(4))?;
    garbled(bench, DriverObject::Srq(srq), || {
        no_such(bench, "query", RULE, || bench.query_srq(srq))?;
        let attr = SrqAttr {
            srq_limit: 2,
            ..SrqAttr::default()
        };
        no_such(bench, "modify", RULE, || {
            bench.modify_srq(srq, &attr, SrqAttrMask::LIMIT)
        })?;
        no_such(bench, "queue pair", RULE, || {
            bench.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq).srq(srq))
        })?;
        no_such(bench, "destroy", RULE, || {
            bench.destroy_srq(srq, Wait::Poll)
        })
    })?;
    bench.destroy_srq(srq, bench.wait()).rule(RULE)?;
    bench.dealloc_pd(pd).rule(RULE)
}

scenario!(garbled_address_handle_is_refused: "AH-06"; needs UD, GARBLE; hazards MAY_CRASH);
fn garbled_address_handle_is_refused(bench: &Bench<'_>) -> Result {
    const RULE: &str = "AH-06";
    let pd = bench.alloc_pd(bench.ctx_a())?;
    let ah = bench.create_ah(pd, &bench.route_to(bench.ctx_a())?)?;
    garbled(bench, DriverObject::Ah(ah), || {
        no_such(bench, "destroy", RULE, || bench.destroy_ah(ah))
    })?;
    bench.destroy_ah(ah).rule(RULE)
}
