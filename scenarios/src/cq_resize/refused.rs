//! Resizes that fail, and that they change nothing.

use verbs_api::behavior::Check;
use verbs_api::lab::Limit;
use verbs_api::{Capabilities, Cq, CqInit, Error, ErrorKind, Handle, QpState, Wait};

use super::{expect_armed, requests_beside_completions};
use crate::cq_create::sizes_above_the_limit;
use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::{OfRule, Result, Setup, expect_err, expect_err_among, wr_ids};

/// A resize that must fail, with an errno value and without another size.
pub(super) fn refused(
    setup: &Setup<'_>,
    cq: Cq,
    size: i32,
    kind: ErrorKind,
    rule: &'static str,
) -> Result<Error> {
    let before = setup.query_cq(cq)?;
    let result = setup.resize_cq(cq, size);
    let error = value_in_case(&format!("size {size}"), expect_err(result, kind, rule))?;
    let errno = error.raw().unwrap_or(error.errno());
    check!("CQ-RESIZE-13", errno > 0, "an errno value", "{errno}");
    check_eq!("CQ-RESIZE-26", setup.query_cq(cq)?, before);
    Ok(error)
}

scenario!(size_below_the_completions_present_is_refused:
    "CQ-RESIZE-06", "CQ-RESIZE-14", "CQ-RESIZE-20"; needs RESIZE_CQ);
fn size_below_the_completions_present_is_refused(setup: &Setup<'_>) -> Result {
    let declared = setup.behavior()?.shrink_below;
    for request in requests_beside_completions(setup)? {
        for (present, below) in [(2, 1), (8, 7), (8, 1)] {
            let pair = setup.rc_pair()?;
            let cq = pair.b.recv_cq;
            pair.deliver(0..present)?;
            setup.settle()?;
            if let Some(arm) = request {
                setup.arm(cq, arm)?;
            }
            let result = setup.resize_cq(cq, below);
            let seen = match &result {
                Ok(()) => Check::Accepted,
                Err(_) => Check::Refused,
            };
            setup.as_declared("CQ-RESIZE-06", declared, seen)?;
            if result.is_err() {
                expect_err(result, ErrorKind::Invalid, "CQ-RESIZE-14")?;
            }
            setup.resize_cq(cq, present as i32).rule("CQ-RESIZE-06")?;
            let got = setup.successes(cq, present as usize);
            let got = wr_ids(&got.rule("CQ-RESIZE-06")?);
            check_eq!("CQ-RESIZE-06", got, (0..present).collect::<Vec<_>>());
            let armed = expect_armed(setup, &pair, request, present, "CQ-RESIZE-20");
            in_case(&format!("{request:?}, {present} to {below}"), armed)?;
        }
    }
    Ok(())
}

scenario!(failure_changes_nothing: "CQ-RESIZE-26", "CQ-RESIZE-13"; needs RESIZE_CQ);
fn failure_changes_nothing(setup: &Setup<'_>) -> Result {
    let mut sizes = sizes_above_the_limit(setup)?;
    sizes.extend([0, -1, i32::MIN]);
    if setup.behavior()?.shrink_below == Some(Check::Refused) {
        sizes.push(3);
    }
    unchanged_by(setup, &sizes, ErrorKind::Invalid)
}

/// Resizes to these sizes fail. A CQ of 64 entries with four completions stays as it is, however
/// it is armed.
fn unchanged_by(setup: &Setup<'_>, sizes: &[i32], kind: ErrorKind) -> Result {
    for request in requests_beside_completions(setup)? {
        for size in sizes {
            let pair = setup.rc_pair()?;
            let cq = pair.b.recv_cq;
            pair.deliver(0..4)?;
            setup.settle()?;
            if let Some(arm) = request {
                setup.arm(cq, arm)?;
            }
            refused(setup, cq, *size, kind, "CQ-RESIZE-26")?;
            setup.no_event(pair.b.channel, "CQ-RESIZE-26")?;
            let armed = expect_armed(setup, &pair, request, 4, "CQ-RESIZE-26");
            in_case(&format!("{request:?}, to {size}"), armed)?;
            let got = wr_ids(&setup.successes(cq, 6).rule("CQ-RESIZE-26")?);
            check_eq!("CQ-RESIZE-26", got, [0, 1, 2, 3, 4, 5]);
            setup.no_completion(cq, "CQ-RESIZE-26")?;
        }
    }
    Ok(())
}

scenario!(no_memory_leaves_the_cq_as_it_was:
    "CQ-RESIZE-15", "CQ-RESIZE-26", "CQ-RESIZE-13"; needs RESIZE_CQ, LAB);
fn no_memory_leaves_the_cq_as_it_was(setup: &Setup<'_>) -> Result {
    let (lab, context) = (setup.lab(), setup.ctx_b());
    let cq = setup.create_cq(context, &CqInit::new(16))?;
    lab.set_limit(context, Limit::CqEntries, Some(0))?;
    for size in [1000, 17_000] {
        refused(setup, cq, size, ErrorKind::NoMemory, "CQ-RESIZE-15")?;
    }
    lab.set_limit(context, Limit::CqEntries, None)?;
    setup.resize_cq(cq, 1000).rule("CQ-RESIZE-15")?;

    let pair = setup.rc_pair()?;
    pair.deliver(0..4)?;
    lab.set_limit(context, Limit::CqEntries, Some(0))?;
    refused(
        setup,
        pair.b.recv_cq,
        1000,
        ErrorKind::NoMemory,
        "CQ-RESIZE-15",
    )?;
    lab.set_limit(context, Limit::CqEntries, None)?;
    let got = wr_ids(&setup.successes(pair.b.recv_cq, 4).rule("CQ-RESIZE-26")?);
    check_eq!("CQ-RESIZE-26", got, [0, 1, 2, 3]);
    expect_armed(setup, &pair, None, 4, "CQ-RESIZE-26")
}

scenario!(failure_does_not_disturb_traffic:
    "CQ-RESIZE-18", "CQ-RESIZE-13", "CQ-RESIZE-26"; needs RESIZE_CQ);
fn failure_does_not_disturb_traffic(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let cqs = [pair.a.send_cq, pair.b.recv_cq];
    let mut sizes = sizes_above_the_limit(setup)?;
    sizes.extend([0, -1]);
    for (round, size) in (0..).zip(sizes) {
        let expected: Vec<u64> = (8 * round..8 * round + 8).collect();
        for wr_id in &expected {
            pair.b.recv(*wr_id, 8)?;
            pair.a.send(*wr_id, 8)?;
            for cq in cqs {
                refused(setup, cq, size, ErrorKind::Invalid, "CQ-RESIZE-18")?;
            }
        }
        for cq in cqs {
            let got = setup.successes(cq, 8).rule("CQ-RESIZE-18")?;
            check_eq!("CQ-RESIZE-18", wr_ids(&got), expected);
        }
    }
    for end in [pair.a, pair.b] {
        check_eq!("CQ-RESIZE-18", setup.state(end.qp)?, QpState::Rts);
        setup.no_async_event(end.context, "CQ-RESIZE-18")?;
    }
    Ok(())
}

scenario!(failure_does_not_tell_the_count:
    "CQ-RESIZE-19", "CQ-RESIZE-13", "CQ-RESIZE-26"; needs RESIZE_CQ);
fn failure_does_not_tell_the_count(setup: &Setup<'_>) -> Result {
    let below_is_refused = setup.behavior()?.shrink_below == Some(Check::Refused);
    let mut errnos = Vec::new();
    for present in [0, 2, 5, 16] {
        let pair = setup.rc_pair()?;
        let cq = pair.b.recv_cq;
        let empty = setup.query_cq(cq)?;
        pair.deliver(0..present)?;
        setup.settle()?;
        check_eq!("CQ-RESIZE-19", setup.query_cq(cq)?, empty);
        let mut sizes = vec![0, -1];
        if below_is_refused && present > 0 {
            sizes.extend([1, present as i32 - 1]);
        }
        for size in sizes {
            let error = refused(setup, cq, size, ErrorKind::Invalid, "CQ-RESIZE-19")?;
            errnos.push(error.raw().unwrap_or(error.errno()));
        }
        let polled = setup.poll_all(cq)?.len() as u64;
        check_eq!("CQ-RESIZE-19", polled, present, "the number polled");
    }
    let alike = errnos.iter().all(|errno| *errno == errnos[0]);
    check!("CQ-RESIZE-19", alike, "always the same errno", "{errnos:?}");
    Ok(())
}

scenario!(what_is_no_cq_is_refused: "CQ-RESIZE-10"; needs RESIZE_CQ);
fn what_is_no_cq_is_refused(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_a();
    let cq = setup.create_cq(context, &CqInit::new(16))?;
    let stale = setup.create_cq(context, &CqInit::new(16))?;
    setup.destroy_cq(stale, Wait::Poll)?;
    let never = Cq::from_parts(context, cq.index() + 1000, 1);
    for bad in [Cq::default(), stale, never] {
        let refused = setup.resize_cq(bad, 32);
        expect_err(refused, ErrorKind::Invalid, "CQ-RESIZE-10")?;
    }
    setup.resize_cq(cq, 32).rule("CQ-RESIZE-10")
}

scenario!(device_without_resize_says_so: "CQ-RESIZE-16"; without RC);
fn device_without_resize_says_so(setup: &Setup<'_>) -> Result {
    let cq = setup.create_cq(setup.ctx_a(), &CqInit::new(16))?;
    let before = setup.query_cq(cq)?;
    let result = setup.resize_cq(cq, 32);
    let can = setup
        .capabilities(setup.ctx_a())?
        .contains(Capabilities::RESIZE_CQ);
    check_eq!("CQ-RESIZE-16", result.is_ok(), can, "whether it resizes");
    if result.is_err() {
        let lacking = [ErrorKind::NotImplemented, ErrorKind::NotSupported];
        expect_err_among(result, &lacking, "CQ-RESIZE-16")?;
        check_eq!("CQ-RESIZE-16", setup.query_cq(cq)?, before);
    }
    Ok(())
}
