//! What is refused: length, alignment, keys, rights.

use verbs_api::behavior::{AtomicCheck, QpAccessStatus};
use verbs_api::{
    Access, AsyncEvent, AsyncEventType, Element, ErrorKind, MrAttr, QpState, RcParams, Remote,
    SendWr, Sge, Wc, WcStatus,
};

use super::{ALL, both, get, options, pair, set};
use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::{End, Failure, OfRule, Pair, PairOptions, Result, Setup, expect_err};

const LOCAL: Access = Access::LOCAL_WRITE;

/// How posted work ended: `None` if it was refused at the post.
fn outcome(
    setup: &Setup<'_>,
    a: &End<'_>,
    work: SendWr<'_>,
    rule: &'static str,
) -> Result<Option<Wc>> {
    let posted = setup.post_send(a.qp, &[work]);
    if posted.is_err() {
        expect_err(posted, ErrorKind::Invalid, rule)?;
        return Ok(None);
    }
    setup.one(a.send_cq).rule(rule).map(Some)
}

scenario!(list_of_other_than_8_bytes_is_refused: "ATOM-03"; needs ATOMICS);
fn list_of_other_than_8_bytes_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ATOM-03";
    let declared = setup.behavior()?.atomic_check;
    for length in [0, 7, 9, 16] {
        for n in 0..2 {
            let Pair { a, b } = pair(setup)?;
            set(&b, setup, 0, 7)?;
            let into = [a.sge(a.landing(), length)];
            let (what, work) = both(&into, b.mem.remote(0), 7)[n];
            let case = format!("{what}, {length} bytes");
            let wc = value_in_case(&case, outcome(setup, &a, work, RULE))?;
            let longer = length > 8;
            let (seen, after) = match wc.map(|wc| wc.status) {
                None => (AtomicCheck::Post, 7),
                // A device that knows of the length only later may have carried it out.
                Some(WcStatus::LocLenErr) => (AtomicCheck::Strict, 7),
                Some(WcStatus::Success) if longer => (AtomicCheck::Longer, 8),
                _ => {
                    let expected = "EINVAL, LOC_LEN_ERR, or success with more than 8 bytes";
                    let failure = Failure::assertion(expected, format!("{wc:?}"));
                    return in_case(&case, Err(failure).rule(RULE));
                }
            };
            check_eq!(RULE, get(&b, 0)?, after, format!("the value ({case})"));
            let fits = match declared {
                Some(AtomicCheck::Strict) => seen == AtomicCheck::Strict,
                Some(AtomicCheck::Longer) => {
                    seen == if longer {
                        AtomicCheck::Longer
                    } else {
                        AtomicCheck::Strict
                    }
                }
                Some(AtomicCheck::Post) => {
                    seen == if longer {
                        AtomicCheck::Longer
                    } else {
                        AtomicCheck::Post
                    }
                }
                None | Some(_) => true,
            };
            check!(
                RULE,
                fits,
                format!("{declared:?}, as declared"),
                "{seen:?} ({case})"
            );
        }
    }
    Ok(())
}

scenario!(address_must_be_a_multiple_of_8_whatever_the_key: "ATOM-04", "WC-27"; needs ATOMICS);
fn address_must_be_a_multiple_of_8_whatever_the_key(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ATOM-04";
    for offset in [1, 4, 7] {
        for good_key in [true, false] {
            for n in 0..2 {
                let Pair { a, b } = pair(setup)?;
                b.fill(3, 16)?;
                let into = [a.sge(a.landing(), 8)];
                let good = b.mem.remote(offset);
                let rkey = if good_key {
                    good.rkey
                } else {
                    good.rkey ^ 0xa5
                };
                let (what, work) = both(&into, Remote { rkey, ..good }, 0)[n];
                let case = format!("{what} at {offset}, key good: {good_key}");
                a.post(work).rule(RULE)?;
                let failed = setup.one_with(a.send_cq, WcStatus::RemInvReqErr, "WC-27");
                in_case(&case, failed.map(drop))?;
                in_case(&case, b.expect_data_at(0, 3, 16, RULE))?;
            }
        }
    }
    Ok(())
}

scenario!(responder_learns_of_an_invalid_request: "ASYNC-14"; needs ATOMICS);
fn responder_learns_of_an_invalid_request(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ASYNC-14";
    let Pair { a, b } = pair(setup)?;
    let into = [a.sge(a.landing(), 8)];
    let work = SendWr::fetch_and_add(1, &into, b.mem.remote(4), 1);
    if outcome(setup, &a, work, RULE)?.is_none() {
        // It was refused when it was posted.
        return setup.no_async_event(b.context, RULE);
    }
    let declared = setup.behavior()?.qp_req_event;
    let events = match declared {
        Some(true) => vec![setup.async_event(b.context).rule(RULE)?],
        _ => setup.async_events(b.context)?,
    };
    let event = AsyncEvent::new(AsyncEventType::QpReqErr, Element::Qp(b.qp));
    if !events.is_empty() {
        check_eq!(RULE, events, [event]);
    }
    setup.as_declared(RULE, declared, !events.is_empty())?;
    setup.no_async_event(a.context, RULE)
}

/// Each set of rights, and whether it allows atomics.
const RIGHTS: [(Access, bool); 4] = [
    (LOCAL.union(Access::REMOTE_ATOMIC), true),
    (ALL, true),
    (Access::ALL_RDMA, false),
    (LOCAL, false),
];

scenario!(region_needs_the_right_for_atomics_alone: "ATOM-05"; needs ATOMICS);
fn region_needs_the_right_for_atomics_alone(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ATOM-05";
    for (rights, allowed) in RIGHTS {
        for n in 0..2 {
            let Pair { a, b } = pair(setup)?;
            let mr = setup.alloc_mr(b.pd, 64, rights)?;
            let into = [a.sge(a.landing(), 8)];
            let (what, work) = both(&into, setup.query_mr(mr)?.remote(0), 0)[n];
            a.post(work)?;
            let status = if allowed {
                WcStatus::Success
            } else {
                WcStatus::RemAccessErr
            };
            let case = format!("{what} where {rights:?} is allowed");
            in_case(&case, setup.one_with(a.send_cq, status, RULE).map(drop))?;
            let mut after = [0; 8];
            setup.read_mr(mr, 0, &mut after)?;
            let after = u64::from_ne_bytes(after);
            check_eq!(
                RULE,
                after,
                u64::from(allowed),
                format!("the value ({case})")
            );
        }
    }
    Ok(())
}

scenario!(queue_pair_needs_the_right_for_atomics_alone: "ATOM-05", "RDMA-04"; needs ATOMICS);
fn queue_pair_needs_the_right_for_atomics_alone(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ATOM-05";
    let declared = setup.behavior()?.qp_access_status;
    for (rights, allowed) in RIGHTS {
        for n in 0..2 {
            let rc = RcParams {
                access: rights,
                ..RcParams::default()
            };
            let Pair { a, b } = setup.pair(PairOptions { rc, ..options() })?;
            set(&b, setup, 0, 0)?;
            let into = [a.sge(a.landing(), 8)];
            let (what, work) = both(&into, b.mem.remote(0), 0)[n];
            a.post(work)?;
            let wc = setup.one(a.send_cq).rule(RULE)?;
            let case = format!("{what} where the queue pair allows {rights:?}");
            let after = get(&b, 0)?;
            check_eq!(
                RULE,
                after,
                u64::from(allowed),
                format!("the value ({case})")
            );
            let seen = match wc.status {
                WcStatus::RemAccessErr => QpAccessStatus::RemAccessErr,
                WcStatus::RemInvReqErr => QpAccessStatus::RemInvReqErr,
                status => {
                    let allowed = allowed && status == WcStatus::Success;
                    check!(
                        RULE,
                        allowed,
                        format!("allowed: {allowed}"),
                        "{wc} ({case})"
                    );
                    continue;
                }
            };
            check!(RULE, !allowed, "SUCCESS", "{wc} ({case})");
            in_case(&case, setup.as_declared("RDMA-04", declared, seen))?;
        }
    }
    Ok(())
}

scenario!(key_range_and_domain_are_checked: "ATOM-06", "WC-28"; needs ATOMICS);
fn key_range_and_domain_are_checked(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ATOM-06";
    for case in ["key", "range", "domain", "deregistered"] {
        for n in 0..2 {
            let Pair { a, b } = pair(setup)?;
            let other = setup.alloc_pd(b.context)?;
            let attr = |pd| -> Result<(verbs_api::Mr, MrAttr)> {
                let mr = setup.alloc_mr(pd, 64, ALL)?;
                Ok((mr, setup.query_mr(mr)?))
            };
            let remote = match case {
                "key" => {
                    let good = b.mem.remote(0);
                    let rkey = good.rkey ^ 0xa5;
                    Remote { rkey, ..good }
                }
                "range" => b.mem.remote(b.mem.length),
                "domain" => attr(other)?.1.remote(0),
                _ => {
                    let (mr, gone) = attr(b.pd)?;
                    setup.dereg_mr(mr)?;
                    gone.remote(0)
                }
            };
            let into = [a.sge(a.landing(), 8)];
            let (what, work) = both(&into, remote, 0)[n];
            a.post(work)?;
            let failed = setup.one_with(a.send_cq, WcStatus::RemAccessErr, [RULE, "WC-28"]);
            in_case(&format!("{what}, {case}"), failed.map(drop))?;
            check_eq!(RULE, get(&b, 0)?, 0, format!("the value ({what}, {case})"));
        }
    }
    Ok(())
}

scenario!(result_needs_memory_that_may_be_written: "ATOM-07"; needs ATOMICS);
fn result_needs_memory_that_may_be_written(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ATOM-07";
    for case in ["key", "range", "right"] {
        for n in 0..2 {
            let Pair { a, b } = pair(setup)?;
            set(&b, setup, 0, 7)?;
            let good = a.sge(a.landing(), 8);
            let read_only = setup.alloc_mr(a.pd, 64, Access::REMOTE_READ)?;
            let into = [match case {
                "key" => Sge {
                    lkey: good.lkey ^ 0xa5,
                    ..good
                },
                "range" => a.sge(a.mem.length - 4, 8),
                _ => setup.query_mr(read_only)?.sge(0, 8),
            }];
            let (what, work) = both(&into, b.mem.remote(0), 7)[n];
            a.post(work)?;
            let failed = setup.one_with(a.send_cq, WcStatus::LocProtErr, RULE);
            in_case(&format!("{what}, {case}"), failed.map(drop))?;
            let after = get(&b, 0)?;
            check!(
                RULE,
                after == 7 || after == 8,
                "7, or 8 if it was done",
                "{after}"
            );
            let mut local = [0; 8];
            setup.read_mr(read_only, 0, &mut local)?;
            check_eq!(RULE, local, [0; 8], "what may not be written");
            let state = setup.state(b.qp)?;
            check_eq!(RULE, state, QpState::Rts, "the responder");
        }
    }
    Ok(())
}
