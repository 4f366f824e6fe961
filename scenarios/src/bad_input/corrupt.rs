//! Handles that are good here, and corrupt behind the trait: what the driver itself refuses.

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
use crate::{OfRule, Pair, PairOptions, Result, Setup, expect_err};

/// How the kernel says for every driver that it knows no such object, and a driver that it has no
/// such verb.
const NO_SUCH: [ErrorKind; 2] = [ErrorKind::NotFound, ErrorKind::NotSupported];

/// Runs calls on an object whose handle is corrupt.
pub(super) fn corrupt(
    setup: &Setup<'_>,
    object: DriverObject,
    calls: impl FnOnce() -> Result,
) -> Result {
    setup.corrupt_handle(object, true)?;
    let result = calls();
    setup.corrupt_handle(object, false)?;
    result
}

pub(super) fn no_such<T, E>(
    setup: &Setup<'_>,
    what: &str,
    rule: &'static str,
    call: impl FnOnce() -> Result<T, E>,
) -> Result
where
    T: Debug,
    E: Clone + Into<Error>,
{
    in_case(what, refused(setup, &NO_SUCH, rule, call).map(drop))
}

scenario!(garbled_cq_is_not_armed: "CQ-ARM-21"; needs CORRUPT_HANDLE; hazards MAY_CRASH);
fn garbled_cq_is_not_armed(setup: &Setup<'_>) -> Result {
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let declared = setup.behavior()?.arm_bad_handle;
    corrupt(setup, DriverObject::Cq(end.recv_cq), || {
        for arm in [Arm::NEXT, Arm::SOLICITED] {
            let armed = setup.req_notify_cq(end.recv_cq, arm);
            match (declared, armed) {
                // Some drivers declare that they do not check the handle.
                (Some(Check::Accepted) | None, Ok(())) => {}
                (Some(Check::Accepted), Err(error)) => {
                    let failure = Failure::assertion("it is armed, as declared", error.to_string());
                    return Err(failure).rule("CQ-ARM-21");
                }
                (_, armed) => no_such(setup, "arm", "CQ-ARM-21", || armed)?,
            }
        }
        Ok(())
    })?;
    setup.no_event(end.channel, "CQ-ARM-21")?;
    setup.arm(end.recv_cq, Arm::NEXT).rule("CQ-ARM-21")
}

scenario!(garbled_cq_is_refused:
    "CQ-DESTROY-05"; needs CORRUPT_HANDLE; without RC; hazards MAY_CRASH);
fn garbled_cq_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-DESTROY-05";
    let cq = setup.create_cq(setup.ctx_a(), &CqInit::new(16))?;
    let resizes = setup.capabilities(setup.ctx_a())?;
    corrupt(setup, DriverObject::Cq(cq), || {
        if resizes.contains(Capabilities::RESIZE_CQ) {
            no_such(setup, "resize", RULE, || setup.resize_cq(cq, 32))?;
        }
        no_such(setup, "destroy", RULE, || {
            setup.destroy_cq(cq, setup.wait())
        })
    })?;
    setup.no_completion(cq, RULE)?;
    setup.destroy_cq(cq, setup.wait()).rule(RULE)
}

scenario!(garbled_qp_is_refused: "QP-STATE-32"; needs CORRUPT_HANDLE; hazards MAY_CRASH);
fn garbled_qp_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-32";
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    corrupt(setup, DriverObject::Qp(end.qp), || {
        let QpModify { attr, mask } = QpModify::to(QpState::Err);
        no_such(setup, "modify", RULE, || {
            setup.modify_qp(end.qp, &attr, mask)
        })?;
        no_such(setup, "query", RULE, || {
            setup.query_qp(end.qp, QpAttrMask::STATE)
        })?;
        no_such(setup, "destroy", RULE, || {
            setup.destroy_qp(end.qp, Wait::Poll)
        })
    })?;
    crate::failure::check_eq!(RULE, setup.state(end.qp)?, QpState::Reset);
    setup.destroy_qp(end.qp, setup.wait()).rule(RULE)
}

scenario!(garbled_qp_joins_no_group: "QP-STATE-32"; needs UD, MCAST, CORRUPT_HANDLE; hazards MAY_CRASH);
fn garbled_qp_joins_no_group(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-STATE-32";
    let ud = || setup.end(setup.ctx_a(), PairOptions::of(QpType::Ud));
    let (stranger, member) = (ud()?, ud()?);
    setup.attach_mcast(member.qp, ALL_HOSTS, MLID)?;
    for (what, qp) in [("not attached", stranger.qp), ("attached", member.qp)] {
        corrupt(setup, DriverObject::Qp(qp), || {
            let attach = || setup.attach_mcast(qp, ALL_HOSTS, MLID);
            in_case(what, no_such(setup, "attach", RULE, attach))?;
            let detach = || setup.detach_mcast(qp, ALL_HOSTS, MLID);
            in_case(what, no_such(setup, "detach", RULE, detach))
        })?;
    }
    setup.detach_mcast(member.qp, ALL_HOSTS, MLID).rule(RULE)
}

scenario!(garbled_region_is_refused: "MR-22"; needs CORRUPT_HANDLE; hazards MAY_CRASH);
fn garbled_region_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-22";
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let mr = setup.alloc_mr(end.pd, 64, Access::empty())?;
    corrupt(setup, DriverObject::Mr(mr), || {
        no_such(setup, "dereg", RULE, || setup.dereg_mr(mr))
    })?;
    setup.dereg_mr(mr).rule(RULE)
}

scenario!(garbled_window_is_refused: "MW-28"; needs MW, CORRUPT_HANDLE; hazards MAY_CRASH);
fn garbled_window_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-28";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let mw = setup.alloc_mw(pd, MwType::Type1)?;
    corrupt(setup, DriverObject::Mw(mw), || {
        no_such(setup, "dealloc", RULE, || setup.dealloc_mw(mw))
    })?;
    setup.dealloc_mw(mw).rule(RULE)?;
    setup.dealloc_pd(pd).rule(RULE)
}

scenario!(garbled_window_and_region_are_bound_as_declared:
    "MW-28"; needs MW_TYPE_1, CORRUPT_HANDLE; hazards MAY_CRASH);
/// Drivers that know windows and regions by their keys never look at the handles.
fn garbled_window_and_region_are_bound_as_declared(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-28";
    let declared = setup.behavior()?.bind_bad_handle;
    let capabilities = setup.capabilities(setup.ctx_a())?;
    let types = [
        (MwType::Type1, Capabilities::MW_TYPE_1),
        (MwType::Type2, Capabilities::MW_TYPE_2),
    ];
    for (mw_type, needed) in types {
        for garbles_window in [true, false] {
            if !capabilities.contains(needed) {
                continue;
            }
            let Pair { a, .. } = setup.pair(PairOptions {
                access: Access::ALL_RDMA | Access::MW_BIND,
                ..PairOptions::default()
            })?;
            let mw = setup.alloc_mw(a.pd, mw_type)?;
            let rkey = inc_rkey(setup.query_mw(mw)?.rkey);
            let info = part(&a, 0, 8, Access::REMOTE_READ);
            let object = if garbles_window {
                DriverObject::Mw(mw)
            } else {
                DriverObject::Mr(a.mr)
            };
            let mut seen = Check::Refused;
            corrupt(setup, object, || {
                let posted = match mw_type {
                    MwType::Type1 => setup.bind_mw(a.qp, mw, &MwBind::new(1, info)),
                    _ => {
                        let bind = SendWr::bind_mw(1, mw, rkey, info);
                        setup.post_send(a.qp, &[bind]).map_err(|error| error.error)
                    }
                };
                match posted {
                    Ok(()) => seen = Check::Accepted,
                    refused => no_such(setup, "bind", RULE, || refused)?,
                }
                Ok(())
            })?;
            let what = format!("{mw_type}, {object:?}");
            if seen == Check::Accepted {
                in_case(
                    &what,
                    setup.one_with(a.send_cq, WcStatus::Success, RULE).map(drop),
                )?;
            }
            in_case(&what, setup.as_declared(RULE, declared, seen))?;
            setup.dealloc_mw(mw).rule(RULE)?;
        }
    }
    Ok(())
}

scenario!(garbled_domain_is_refused: "PD-04"; needs CORRUPT_HANDLE; hazards MAY_CRASH);
fn garbled_domain_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "PD-04";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let cq = setup.create_cq(setup.ctx_a(), &CqInit::new(16))?;
    corrupt(setup, DriverObject::Pd(pd), || {
        no_such(setup, "region", RULE, || {
            setup.alloc_mr(pd, 64, Access::empty())
        })?;
        no_such(setup, "queue pair", RULE, || {
            setup.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq))
        })?;
        no_such(setup, "dealloc", RULE, || setup.dealloc_pd(pd))
    })?;
    let mr = setup.alloc_mr(pd, 64, Access::empty()).rule(RULE)?;
    setup.dereg_mr(mr)?;
    setup.dealloc_pd(pd).rule(RULE)
}

scenario!(handle_of_another_context_garbles_nothing: "DEV-13"; needs CORRUPT_HANDLE);
fn handle_of_another_context_garbles_nothing(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DEV-13";
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let other = open_again(setup)?;
    let moved = Cq::from_parts(other, end.recv_cq.index(), end.recv_cq.generation());
    let result = setup.corrupt_handle(DriverObject::Cq(moved), true);
    expect_err(result, ErrorKind::Invalid, RULE)?;
    setup.no_completion(end.recv_cq, RULE)?;
    setup.close_device(other)?;
    setup.destroy_qp(end.qp, setup.wait())?;
    setup.destroy_cq(end.recv_cq, setup.wait()).rule(RULE)
}

scenario!(garbled_srq_is_refused: "DEV-13"; needs SRQ, CORRUPT_HANDLE; hazards MAY_CRASH);
/// Posting stays in the process, and never sees the number.
fn garbled_srq_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DEV-13";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let cq = setup.create_cq(setup.ctx_a(), &CqInit::new(16))?;
    let srq = setup.create_srq(pd, &SrqInit::new(4))?;
    corrupt(setup, DriverObject::Srq(srq), || {
        no_such(setup, "query", RULE, || setup.query_srq(srq))?;
        let attr = SrqAttr {
            srq_limit: 2,
            ..SrqAttr::default()
        };
        no_such(setup, "modify", RULE, || {
            setup.modify_srq(srq, &attr, SrqAttrMask::LIMIT)
        })?;
        no_such(setup, "queue pair", RULE, || {
            setup.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq).srq(srq))
        })?;
        no_such(setup, "destroy", RULE, || {
            setup.destroy_srq(srq, Wait::Poll)
        })
    })?;
    setup.destroy_srq(srq, setup.wait()).rule(RULE)?;
    setup.dealloc_pd(pd).rule(RULE)
}

scenario!(garbled_address_handle_is_refused: "AH-06"; needs UD, CORRUPT_HANDLE; hazards MAY_CRASH);
fn garbled_address_handle_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "AH-06";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let ah = setup.create_ah(pd, &setup.route_to(setup.ctx_a())?)?;
    corrupt(setup, DriverObject::Ah(ah), || {
        no_such(setup, "destroy", RULE, || setup.destroy_ah(ah))
    })?;
    setup.destroy_ah(ah).rule(RULE)
}
