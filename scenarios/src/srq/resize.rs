//! Other sizes.

use verbs_api::{Capabilities, ErrorKind, SrqAttr, SrqAttrMask};

use super::{PLACES, Shared};
use crate::failure::{check, check_eq, in_case};
use crate::{OfRule, PairOptions, Result, Setup, expect_err_among};

const RULE: &str = "SRQ-09";

/// How drivers say that they cannot.
const CANNOT: [ErrorKind; 3] = [
    ErrorKind::Invalid,
    ErrorKind::NotSupported,
    ErrorKind::NotImplemented,
];
const BAD: [ErrorKind; 2] = [ErrorKind::Invalid, ErrorKind::NotSupported];

scenario!(size_changes_or_is_refused_as_not_supported: "SRQ-09"; needs SRQ);
fn size_changes_or_is_refused_as_not_supported(setup: &Setup<'_>) -> Result {
    let shared = Shared::new(setup, 8)?;
    let before = shared.reported()?;
    let capabilities = setup.capabilities(shared.context)?;
    let can = capabilities.contains(Capabilities::SRQ_RESIZE);
    let wanted = shared.max_wr()? + 10;
    if can {
        shared.resize(wanted).rule(RULE)?;
        let seen = setup.query_srq(shared.srq)?;
        check!(
            RULE,
            seen.max_wr >= wanted,
            format!("at least {wanted}"),
            "{seen:?}"
        );
    } else {
        expect_err_among(shared.resize(wanted), &CANNOT, RULE)?;
        check_eq!(RULE, shared.reported()?, before, "what a query tells");
    }
    let pair = shared.pair(PairOptions::default())?;
    shared.post([5])?;
    shared.takes(&pair, 1, 5, RULE).map(drop)
}

scenario!(resize_keeps_receives_and_their_order:
    "SRQ-09"; needs SRQ, SRQ_RESIZE; hazards MAY_CRASH);
/// Some have been taken before, so that the queue does not begin where its memory does.
fn resize_keeps_receives_and_their_order(setup: &Setup<'_>) -> Result {
    for sizes in [[40, 20], [8, 60]] {
        let shared = Shared::new(setup, 16)?;
        let pair = shared.pair(PairOptions::default())?;
        shared.post(0..10)?;
        for wr_id in 0..9 {
            shared.takes(&pair, 1, wr_id, RULE)?;
        }
        shared.post(10..17)?;
        shared.set_limit(2)?;
        let mut next = 9;
        for size in sizes {
            let resized = in_case(&format!("to {size}"), shared.resize(size).rule(RULE));
            resized?;
            let seen = setup.query_srq(shared.srq)?;
            check!(
                RULE,
                seen.max_wr >= size,
                format!("at least {size}"),
                "{seen:?}"
            );
            check_eq!(RULE, seen.srq_limit, 2, "the limit, which was not named");
            for _ in 0..2 {
                in_case(
                    &format!("after {size}"),
                    shared.takes(&pair, 1, next, RULE).map(drop),
                )?;
                next += 1;
            }
        }
        // There is room for as many as it says.
        let room = u64::from(setup.query_srq(shared.srq)?.max_wr) - (17 - next);
        let more = room.min(PLACES - 17);
        shared.post(17..17 + more).rule(RULE)?;
        for wr_id in next..17 + more {
            shared.takes(&pair, 2, wr_id, RULE)?;
        }
        setup.no_completion(pair.b.recv_cq, RULE)?;
    }
    Ok(())
}

scenario!(resize_below_what_is_posted_is_refused:
    "SRQ-09"; needs SRQ, SRQ_RESIZE; hazards MAY_CRASH);
fn resize_below_what_is_posted_is_refused(setup: &Setup<'_>) -> Result {
    let shared = Shared::new(setup, 40)?;
    let pair = shared.pair(PairOptions::default())?;
    shared.post(0..40)?;
    let before = shared.reported()?;
    for size in [1, 20] {
        let refused = expect_err_among(shared.resize(size), &BAD, RULE);
        in_case(&format!("to {size}"), refused.map(drop))?;
        check_eq!(RULE, shared.reported()?, before, "what a query tells");
    }
    for wr_id in 0..40 {
        shared.takes(&pair, wr_id as u8, wr_id, RULE)?;
    }
    for size in [20, 1] {
        in_case(&format!("empty, to {size}"), shared.resize(size).rule(RULE))?;
    }
    shared.post([7])?;
    shared.takes(&pair, 1, 7, RULE).map(drop)
}

scenario!(bad_attribute_among_good_ones_changes_none: "SRQ-10"; needs SRQ);
fn bad_attribute_among_good_ones_changes_none(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-10";
    let shared = Shared::new(setup, 8)?;
    shared.set_limit(2)?;
    let before = shared.reported()?;
    let most = setup.query_device(shared.context)?.max_srq_wr;
    for (max_wr, srq_limit) in [(most + 1, 3), (shared.max_wr()?, u32::MAX)] {
        let attr = SrqAttr {
            max_wr,
            srq_limit,
            ..SrqAttr::default()
        };
        let both = SrqAttrMask::MAX_WR | SrqAttrMask::LIMIT;
        let changed = setup.modify_srq(shared.srq, &attr, both);
        let refused = expect_err_among(changed, &BAD, RULE);
        in_case(&format!("{attr:?}"), refused.map(drop))?;
        check_eq!(RULE, shared.reported()?, before, "what a query tells");
    }
    // The earlier limit still applies.
    let pair = shared.pair(PairOptions::default())?;
    shared.post([0, 1])?;
    shared.takes(&pair, 1, 0, RULE)?;
    let events = shared.events()?;
    check_eq!(RULE, events.len(), 1, "the events of the limit");
    Ok(())
}
