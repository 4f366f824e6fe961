//! Binds that fail.

use verbs_api::{
    Access, ErrorKind, Mw, MwBind, MwBindInfo, MwType, PostError, QpState, SendWr, WcStatus,
    inc_rkey,
};

use super::{
    ALL, BOTH, LEN, WRITE, bind, bound, is_shut, opens, options, pair, part, part_of, sibling,
};
use crate::failure::{check, check_eq, in_case};
use crate::{Claim, End, OfRule, Pair, Result, Setup, expect_err};

/// Posts a bind that is bad, and a send behind it. It is refused at once, or fails; then the send
/// is flushed and the queue pair is in error (MW-23).
fn fails(
    setup: &Setup<'_>,
    end: &End<'_>,
    mw: Mw,
    info: MwBindInfo,
    rule: impl Into<Claim>,
) -> Result {
    let rule = rule.into();
    let attr = setup.query_mw(mw)?;
    let posted = match attr.mw_type {
        MwType::Type1 => setup
            .bind_mw(end.qp, mw, &MwBind::new(1, info))
            .map_err(PostError::from),
        _ => {
            let work = SendWr::bind_mw(1, mw, inc_rkey(attr.rkey), info);
            setup.post_send(end.qp, &[work])
        }
    };
    if posted.is_err() {
        expect_err(posted, ErrorKind::Invalid, rule)?;
        return Ok(());
    }
    // It needs no receive: if the bind is accepted, it does not wait forever.
    end.write(2, LEN)?;
    let failed = setup.one_with(end.send_cq, WcStatus::MwBindErr, rule.with("WC-26"))?;
    check_eq!(rule, failed.wr_id, 1);
    let flushed = setup.one_with(end.send_cq, WcStatus::WrFlushErr, "MW-23")?;
    check_eq!("MW-23", flushed.wr_id, 2);
    check_eq!("MW-23", setup.state(end.qp)?, QpState::Err);
    Ok(())
}

/// A bind of a fresh window of each type on a fresh pair fails.
fn each_type_fails(
    setup: &Setup<'_>,
    rule: &'static str,
    info: impl Fn(&End<'_>) -> Result<MwBindInfo>,
) -> Result {
    for mw_type in BOTH {
        let pair = pair(setup)?;
        let mw = setup.alloc_mw(pair.b.pd, mw_type)?;
        let failed = fails(setup, &pair.b, mw, info(&pair.b)?, rule);
        in_case(&mw_type.to_string(), failed)?;
    }
    Ok(())
}

fn region(setup: &Setup<'_>, b: &End<'_>, access: Access, of: Access) -> Result<MwBindInfo> {
    let mr = setup.alloc_mr(b.pd, 64, access)?;
    Ok(part_of(mr, setup.query_mr(mr)?.addr, LEN.into(), of))
}

scenario!(region_must_allow_to_be_bound: "MW-06", "WC-26", "MW-23"; needs MW);
fn region_must_allow_to_be_bound(setup: &Setup<'_>) -> Result {
    each_type_fails(setup, "MW-06", |b| {
        region(setup, b, ALL.difference(Access::MW_BIND), WRITE)
    })
}

scenario!(window_to_be_written_needs_a_region_that_may_be_written:
    "MW-07", "WC-26", "MW-23"; needs MW);
fn window_to_be_written_needs_a_region_that_may_be_written(setup: &Setup<'_>) -> Result {
    for of in [WRITE, Access::REMOTE_ATOMIC, WRITE | Access::REMOTE_READ] {
        let failed = each_type_fails(setup, "MW-07", |b| region(setup, b, Access::MW_BIND, of));
        in_case(&format!("{of:?}"), failed)?;
    }
    // To be read it needs nothing.
    for mw_type in BOTH {
        let b = pair(setup)?.b;
        let mw = setup.alloc_mw(b.pd, mw_type)?;
        let info = region(setup, &b, Access::MW_BIND, Access::REMOTE_READ)?;
        bind(setup, &b, mw, info).rule("MW-07")?;
    }
    Ok(())
}

scenario!(window_lies_within_its_region: "MW-08", "WC-26", "MW-23"; needs MW);
fn window_lies_within_its_region(setup: &Setup<'_>) -> Result {
    let whole = options().mem as u64;
    for (offset, length) in [(0, whole + 1), (1, whole), (whole, 1), (whole - 7, 8)] {
        let failed = each_type_fails(setup, "MW-08", |b| Ok(part(b, offset, length, WRITE)));
        in_case(&format!("{length} bytes at {offset}"), failed)?;
    }
    for (offset, length) in [(0, whole), (whole - 1, 1), (whole - 8, 8)] {
        for mw_type in BOTH {
            let b = pair(setup)?.b;
            let mw = setup.alloc_mw(b.pd, mw_type)?;
            bind(setup, &b, mw, part(&b, offset, length, WRITE)).rule("MW-08")?;
        }
    }
    Ok(())
}

scenario!(bind_mw_wants_one_domain: "MW-09", "PD-02"; needs MW);
fn bind_mw_wants_one_domain(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-09";
    let Pair { b, .. } = pair(setup)?;
    let other = setup.alloc_pd(b.context)?;
    let mw = setup.alloc_mw(other, MwType::Type1)?;
    let before = setup.query_mw(mw)?;
    let info = part(&b, 0, LEN.into(), WRITE);
    let refused = setup.bind_mw(b.qp, mw, &MwBind::new(1, info));
    expect_err(refused, ErrorKind::Permission, [RULE, "PD-02"])?;
    check_eq!(RULE, setup.query_mw(mw)?, before);
    setup.no_completion(b.send_cq, RULE)
}

scenario!(window_of_type_2_and_queue_pair_share_a_domain:
    "MW-09", "PD-02", "WC-26", "MW-23"; needs MW);
fn window_of_type_2_and_queue_pair_share_a_domain(setup: &Setup<'_>) -> Result {
    let Pair { b, .. } = pair(setup)?;
    let other = setup.alloc_pd(b.context)?;
    let mr = setup.alloc_mr(other, 64, ALL)?;
    let mw = setup.alloc_mw(other, MwType::Type2)?;
    let info = part_of(mr, setup.query_mr(mr)?.addr, LEN.into(), WRITE);
    fails(setup, &b, mw, info, ["MW-09", "PD-02"])
}

scenario!(window_region_and_queue_pair_share_a_domain:
    "MW-09", "PD-02", "WC-26", "MW-23"; needs MW);
fn window_region_and_queue_pair_share_a_domain(setup: &Setup<'_>) -> Result {
    const RULE: [&str; 2] = ["MW-09", "PD-02"];
    // A region of another domain, for a work request.
    let Pair { b, .. } = pair(setup)?;
    let other = setup.alloc_pd(b.context)?;
    let mr = setup.alloc_mr(other, 64, ALL)?;
    let info = part_of(mr, setup.query_mr(mr)?.addr, LEN.into(), WRITE);
    let mw = setup.alloc_mw(b.pd, MwType::Type2)?;
    in_case("the region is of another", fails(setup, &b, mw, info, RULE))?;
    // A queue pair of another domain, for a window of type 1.
    let Pair { b, .. } = pair(setup)?;
    let other = setup.alloc_pd(b.context)?;
    let mr = setup.alloc_mr(other, 64, ALL)?;
    let info = part_of(mr, setup.query_mr(mr)?.addr, LEN.into(), WRITE);
    let mw = setup.alloc_mw(other, MwType::Type1)?;
    in_case(
        "the queue pair is of another",
        fails(setup, &b, mw, info, RULE),
    )
}

scenario!(bound_window_of_type_2_is_not_bound_again: "MW-13", "WC-26", "MW-23"; needs MW);
fn bound_window_of_type_2_is_not_bound_again(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-13";
    for same_qp in [true, false] {
        let first = pair(setup)?;
        let (mw, rkey) = bound(setup, &first.b, MwType::Type2)?;
        let second = sibling(setup, &first)?;
        let end = if same_qp { first.b } else { second.b };
        let info = part(&end, 0, LEN.into(), WRITE);
        let failed = fails(setup, &end, mw, info, RULE);
        in_case(&format!("on the same queue pair: {same_qp}"), failed)?;
        if !same_qp {
            opens(setup, &first, rkey, "MW-23")?;
        }
    }
    Ok(())
}

scenario!(window_of_type_1_is_not_zero_based: "MW-20"; needs MW);
fn window_of_type_1_is_not_zero_based(setup: &Setup<'_>) -> Result {
    let Pair { b, .. } = pair(setup)?;
    let mw = setup.alloc_mw(b.pd, MwType::Type1)?;
    let before = setup.query_mw(mw)?;
    let info = part(&b, 0, LEN.into(), WRITE | Access::ZERO_BASED);
    let refused = setup.bind_mw(b.qp, mw, &MwBind::new(1, info));
    expect_err(refused, ErrorKind::Invalid, "MW-20")?;
    check_eq!("MW-20", setup.query_mw(mw)?, before);
    setup.no_completion(b.send_cq, "MW-20")
}

scenario!(window_of_type_2_has_bytes: "MW-21", "WC-26", "MW-23"; needs MW);
fn window_of_type_2_has_bytes(setup: &Setup<'_>) -> Result {
    let Pair { b, .. } = pair(setup)?;
    let mw = setup.alloc_mw(b.pd, MwType::Type2)?;
    fails(setup, &b, mw, part(&b, 0, 0, WRITE), "MW-21")
}

scenario!(failed_bind_leaves_the_window_as_it_was: "MW-23", "WC-26"; needs MW);
fn failed_bind_leaves_the_window_as_it_was(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-23";
    let first = pair(setup)?;
    let (mw, rkey) = bound(setup, &first.b, MwType::Type1)?;
    let second = sibling(setup, &first)?;
    let bad = region(setup, &first.b, ALL.difference(Access::MW_BIND), WRITE)?;
    fails(setup, &second.b, mw, bad, RULE)?;
    opens(setup, &first, rkey, RULE)?;
    is_shut(setup, &first, inc_rkey(rkey), RULE)
}

scenario!(unsignaled_bind_that_fails_completes_as_declared: "MW-24"; needs MW);
fn unsignaled_bind_that_fails_completes_as_declared(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-24";
    let Pair { b, .. } = pair(setup)?;
    let mw = setup.alloc_mw(b.pd, MwType::Type2)?;
    let rkey = inc_rkey(setup.query_mw(mw)?.rkey);
    let info = region(setup, &b, ALL.difference(Access::MW_BIND), WRITE)?;
    let data = [b.sge(0, LEN)];
    let list = [
        SendWr::bind_mw(1, mw, rkey, info).unsignaled(),
        SendWr::send(2, &data),
    ];
    setup.post_send(b.qp, &list).rule(RULE)?;
    let first = setup.one(b.send_cq).rule(RULE)?;
    let seen = first.wr_id == 1;
    if seen {
        check_eq!(RULE, first.status, WcStatus::MwBindErr);
    }
    let flushed = if seen {
        setup.one(b.send_cq).rule(RULE)?
    } else {
        first
    };
    let is_it = flushed.wr_id == 2 && flushed.status == WcStatus::WrFlushErr;
    check!(RULE, is_it, "the send behind it, flushed", "{flushed}");
    check_eq!(RULE, setup.state(b.qp)?, QpState::Err);
    setup.as_declared(RULE, setup.behavior()?.bind_err_wc, seen)
}
