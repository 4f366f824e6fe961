//! Binds and the length of the send queue: on a full one, and at each of its places.

use verbs_api::inc_rkey;
use verbs_api::{ErrorKind, Mw, MwBind, MwBindInfo, MwType, PostError, QpAttrMask, QpCap, SendWr};

use super::{BOTH, LEN, WRITE, opens, options, part};
use crate::failure::{check_eq, in_case, value_in_case};
use crate::{End, OfRule, Pair, PairOptions, Result, Setup, expect_err, wr_ids};

/// Places that are asked for.
const PLACES: u32 = 4;

/// More than a short send queue has, for receives.
const MANY: u32 = 256;

/// A pair whose B has a short send queue, and how many sends that takes.
fn short<'b>(setup: &'b Setup<'_>) -> Result<(Pair<'b>, u64)> {
    let most = setup.query_device(setup.ctx_a())?.max_qp_wr;
    let pair = setup.pair(PairOptions {
        cap: QpCap {
            max_send_wr: PLACES,
            max_recv_wr: MANY.min(most),
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

/// Lets the sends of B go, which wait for receives: the completions of all that its queue holds.
fn release(setup: &Setup<'_>, Pair { a, b }: &Pair<'_>, sends: u64, most: u64) -> Result<Vec<u64>> {
    for wr_id in 0..sends {
        a.recv(wr_id, LEN)?;
    }
    let done = setup.successes(b.send_cq, most as usize)?;
    setup.successes(a.recv_cq, sends as usize)?;
    Ok(wr_ids(&done))
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
            let done = release(setup, &pair, most, most)?;
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
/// Twice round the queue, a bind is at each place of it, among sends that wait.
fn bind_has_any_place_of_the_queue(setup: &Setup<'_>) -> Result {
    for mw_type in BOTH {
        let (pair, most) = short(setup)?;
        for place in 0..2 * most {
            let bound = bind_among_sends(setup, &pair, mw_type, place % most, most);
            value_in_case(&format!("{mw_type} at place {place} of {most}"), bound)?;
            // The next one starts a place further.
            pair.b.write(BIND, LEN)?;
            setup.successes(pair.b.send_cq, 1)?;
        }
    }
    Ok(())
}

/// As many sends as this are ahead of the bind, and the others of the queue behind it.
fn bind_among_sends(
    setup: &Setup<'_>,
    pair: &Pair<'_>,
    mw_type: MwType,
    ahead: u64,
    most: u64,
) -> Result {
    const RULE: &str = "MW-27";
    let b = pair.b;
    let mw = setup.alloc_mw(b.pd, mw_type)?;
    let info = part(&b, b.landing(), LEN.into(), WRITE);
    (0..ahead).try_for_each(|wr_id| b.send(wr_id, LEN))?;
    try_bind(setup, &b, mw, info).rule(RULE)?;
    (ahead + 1..most).try_for_each(|wr_id| b.send(wr_id, LEN))?;
    let done = release(setup, pair, most - 1, most).rule(RULE)?;
    let expected = (0..ahead).chain([BIND]).chain(ahead + 1..most);
    check_eq!(
        RULE,
        done,
        expected.collect::<Vec<_>>(),
        "the order of work"
    );
    opens(setup, pair, setup.query_mw(mw)?.rkey, "MW-02")?;
    Ok(setup.dealloc_mw(mw)?)
}
