//! Binds and the length of the send queue: on a full one, and at each of its places.

use verbs_api::inc_rkey;
use verbs_api::{ErrorKind, Mw, MwBind, MwBindInfo, MwType, PostError, QpAttrMask, QpCap, SendWr};

use super::{BOTH, LEN, WRITE, opens, options, part};
use crate::failure::{check_eq, in_case};
use crate::{End, OfRule, Pair, PairOptions, Result, Setup, expect_err, wr_ids};

/// Places that are asked for.
const PLACES: u32 = 4;

/// A pair whose B has a short send queue, and how many sends that takes.
fn short<'b>(setup: &'b Setup<'_>) -> Result<(Pair<'b>, u64)> {
    let pair = setup.pair(PairOptions {
        cap: QpCap {
            max_send_wr: PLACES,
            ..QpCap::default()
        },
        ..options()
    })?;
    let cap = setup.query_qp(pair.b.qp, QpAttrMask::CAP)?.init.cap;
    Ok((pair, cap.max_send_wr.into()))
}

/// Posts a bind, in the way of the window's type.
fn try_bind(setup: &Setup<'_>, b: &End<'_>, mw: Mw, info: MwBindInfo) -> Result<(), PostError> {
    let attr = setup.query_mw(mw)?;
    match attr.mw_type {
        MwType::Type1 => Ok(setup.bind_mw(b.qp, mw, &MwBind::new(BIND, info))?),
        _ => setup.post_send(
            b.qp,
            &[SendWr::bind_mw(BIND, mw, inc_rkey(attr.rkey), info)],
        ),
    }
}

const BIND: u64 = 77;

/// Lets the sends of B go, which wait for receives.
fn release(setup: &Setup<'_>, Pair { a, .. }: &Pair<'_>, sends: u64) -> Result {
    for wr_id in 0..sends {
        a.recv(wr_id, LEN)?;
    }
    setup.successes(a.recv_cq, sends as usize).map(drop)
}

scenario!(bind_on_a_full_queue_is_refused: "SQ-03", "MW-23"; needs MW, RNR);
/// Window and key stay as they are, and the queue has its length afterwards.
fn bind_on_a_full_queue_is_refused(setup: &Setup<'_>) -> Result {
    for mw_type in BOTH {
        let (pair, most) = short(setup)?;
        let b = pair.b;
        let mw = setup.alloc_mw(b.pd, mw_type)?;
        let info = part(&b, b.landing(), LEN.into(), WRITE);
        let before = setup.query_mw(mw)?;
        for round in 0..2 {
            (0..most)
                .try_for_each(|wr_id| b.send(wr_id, LEN))
                .rule("SQ-03")?;
            for _ in 0..3 {
                let refused =
                    expect_err(try_bind(setup, &b, mw, info), ErrorKind::NoMemory, "SQ-03");
                in_case(&format!("{mw_type}, round {round}"), refused.map(drop))?;
                check_eq!("MW-23", setup.query_mw(mw)?, before, "the window");
            }
            release(setup, &pair, most)?;
            let done = wr_ids(&setup.successes(b.send_cq, most as usize)?);
            check_eq!("SQ-03", done, (0..most).collect::<Vec<_>>(), "the sends");
            setup.no_completion(b.send_cq, "SQ-03")?;
        }
        try_bind(setup, &b, mw, info).rule("MW-23")?;
        setup.successes(b.send_cq, 1).rule("MW-23")?;
        opens(setup, &pair, setup.query_mw(mw)?.rkey, "MW-23")?;
    }
    Ok(())
}

scenario!(bind_has_any_place_of_the_queue: "MW-27", "MW-02"; needs MW, RNR);
/// Twice round the queue, the bind is at each place of it, between sends that wait.
fn bind_has_any_place_of_the_queue(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-27";
    for mw_type in BOTH {
        let (pair, most) = short(setup)?;
        let b = pair.b;
        for place in 0..2 * most {
            let mw = setup.alloc_mw(b.pd, mw_type)?;
            let info = part(&b, b.landing(), LEN.into(), WRITE);
            let (ahead, behind) = (place % most, most - 1 - place % most);
            (0..ahead).try_for_each(|wr_id| b.send(wr_id, LEN))?;
            try_bind(setup, &b, mw, info).rule(RULE)?;
            (0..behind).try_for_each(|wr_id| b.send(100 + wr_id, LEN))?;
            release(setup, &pair, most - 1)?;
            let done = wr_ids(&setup.successes(b.send_cq, most as usize).rule(RULE)?);
            let expected = (0..ahead).chain([BIND]).chain(100..100 + behind);
            check_eq!(
                RULE,
                done,
                expected.collect::<Vec<_>>(),
                "the order of work"
            );
            let key = setup.query_mw(mw)?.rkey;
            let opened = opens(setup, &pair, key, "MW-02");
            in_case(&format!("{mw_type} at place {place} of {most}"), opened)?;
            // The next one starts a place further.
            b.write(BIND, LEN)?;
            setup.successes(b.send_cq, 1)?;
            setup.dealloc_mw(mw)?;
        }
    }
    Ok(())
}
