//! What is stored, and what comes back.

use verbs_api::{AtomicCap, Capabilities, ErrorKind, QpCap, SendWr, WcOpcode, WcStatus};

use super::{both, get, options, pair, set};
use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::{Failure, OfRule, Pair, PairOptions, Result, Setup, expect_err};

const TOP: u64 = 1 << 63;
const PATTERN: u64 = 0x0102_0304_0506_0708;

/// Runs one atomic on a value: what came back, and what is there then. Nothing around either is
/// touched.
fn on_value<'s>(
    setup: &Setup<'_>,
    Pair { a, b }: &Pair<'_>,
    before: u64,
    opcode: WcOpcode,
    rule: &'static str,
    work: impl FnOnce(&'s [verbs_api::Sge], verbs_api::Remote) -> SendWr<'s>,
    sges: &'s [verbs_api::Sge],
) -> Result<(u64, u64)> {
    for (end, at) in [(a, a.landing()), (b, 0)] {
        end.fill_at(at, 5, 24)?;
    }
    set(b, setup, 8, before)?;
    a.post(work(sges, b.mem.remote(8))).rule(rule)?;
    let wc = setup.one_with(a.send_cq, WcStatus::Success, rule)?;
    check_eq!("WC-04", wc.opcode, opcode);
    check_eq!("WC-09", wc.byte_len, 8, "the bytes that came back");
    for (end, at) in [(a, a.landing()), (b, 0)] {
        let (now, as_filled) = (end.bytes(at, 24)?, crate::pattern(5, 24));
        check_eq!(rule, now[..8], as_filled[..8], "the bytes before");
        check_eq!(rule, now[16..], as_filled[16..], "the bytes behind");
    }
    Ok((get(a, a.landing() + 8)?, get(b, 8)?))
}

scenario!(fetch_and_add_wraps_around_and_gives_what_was_there:
    "ATOM-01", "WC-04", "WC-09"; needs ATOMICS);
fn fetch_and_add_wraps_around_and_gives_what_was_there(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ATOM-01";
    let pair = pair(setup)?;
    let into = [pair.a.sge(pair.a.landing() + 8, 8)];
    for (before, add) in [
        (0, 0),
        (0, 1),
        (u64::MAX, 1),
        (u64::from(u32::MAX), 1),
        (5, u64::MAX),
        (TOP, TOP),
        (u64::MAX, u64::MAX),
        (PATTERN, 0xff),
    ] {
        let work = |sges, remote| SendWr::fetch_and_add(1, sges, remote, add);
        let done = on_value(setup, &pair, before, WcOpcode::FetchAdd, RULE, work, &into);
        let case = format!("{before:#x} plus {add:#x}");
        let (original, after) = value_in_case(&case, done)?;
        check_eq!(RULE, original, before, format!("what was there ({case})"));
        let sum = before.wrapping_add(add);
        check_eq!(RULE, after, sum, format!("the sum ({case})"));
    }
    Ok(())
}

scenario!(compare_and_swap_stores_if_equal_and_gives_what_was_there:
    "ATOM-02", "WC-04", "WC-09"; needs ATOMICS);
fn compare_and_swap_stores_if_equal_and_gives_what_was_there(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ATOM-02";
    let pair = pair(setup)?;
    let into = [pair.a.sge(pair.a.landing() + 8, 8)];
    for (before, compare) in [
        (0, 0),
        (0, 1),
        (PATTERN, PATTERN),
        (PATTERN, PATTERN ^ 1),
        (PATTERN, PATTERN ^ TOP),
        (u64::MAX, u64::MAX),
        (PATTERN, PATTERN.swap_bytes()),
    ] {
        let swap = 0xa0b0_c0d0_e0f0_0010;
        let work = |sges, remote| SendWr::compare_and_swap(1, sges, remote, compare, swap);
        let done = on_value(setup, &pair, before, WcOpcode::CompSwap, RULE, work, &into);
        let case = format!("{before:#x} compared with {compare:#x}");
        let (original, after) = value_in_case(&case, done)?;
        check_eq!(RULE, original, before, format!("what was there ({case})"));
        let stored = if before == compare { swap } else { before };
        check_eq!(RULE, after, stored, format!("what is stored ({case})"));
    }
    Ok(())
}

scenario!(result_is_in_the_order_of_the_machine: "ATOM-12"; needs ATOMICS);
/// The bytes come back as they lay there.
fn result_is_in_the_order_of_the_machine(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ATOM-12";
    let Pair { a, b } = pair(setup)?;
    let into = [a.sge(a.landing(), 8)];
    for (what, work) in both(&into, b.mem.remote(0), PATTERN) {
        set(&b, setup, 0, PATTERN)?;
        let before = b.bytes(0, 8)?;
        a.post(work)?;
        in_case(
            what,
            setup.one_with(a.send_cq, WcStatus::Success, RULE).map(drop),
        )?;
        let seen = a.bytes(a.landing(), 8)?;
        check_eq!(RULE, seen, before, format!("the bytes of the {what}"));
    }
    Ok(())
}

scenario!(result_is_scattered_whole_or_not_at_all: "ATOM-11"; needs ATOMICS);
fn result_is_scattered_whole_or_not_at_all(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ATOM-11";
    for first in [1, 4, 7] {
        let cap = QpCap {
            max_send_sge: 2,
            ..QpCap::default()
        };
        let options = PairOptions { cap, ..options() };
        let Pair { a, b } = setup.pair(options)?;
        set(&b, setup, 0, PATTERN)?;
        let into = [
            a.sge(a.landing(), first),
            a.sge(a.landing() + 100, 8 - first),
        ];
        let posted = setup.post_send(a.qp, &[SendWr::fetch_and_add(1, &into, b.mem.remote(0), 1)]);
        if posted.is_err() {
            expect_err(posted, ErrorKind::Invalid, RULE)?;
            check_eq!(RULE, get(&b, 0)?, PATTERN, "the value");
            continue;
        }
        let wc = setup.one(a.send_cq).rule(RULE)?;
        let mut parts = a.bytes(a.landing(), first as usize)?;
        parts.extend(a.bytes(a.landing() + 100, 8 - first as usize)?);
        let expected = match wc.status {
            WcStatus::Success => PATTERN.to_ne_bytes(),
            _ => [0; 8],
        };
        check_eq!(RULE, parts, expected, format!("the result, {wc}"));
    }
    Ok(())
}

scenario!(device_does_what_its_attribute_says: "ATOM-10");
fn device_does_what_its_attribute_says(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ATOM-10";
    let has_them = setup.query_device(setup.ctx_a())?.atomic_cap != AtomicCap::None;
    let reported = setup
        .capabilities(setup.ctx_a())?
        .contains(Capabilities::ATOMICS);
    check_eq!(RULE, reported, has_them, "whether there are atomics");
    for n in 0..2 {
        let options = if has_them {
            options()
        } else {
            PairOptions::default()
        };
        let Pair { a, b } = setup.pair(options)?;
        set(&b, setup, 0, 7)?;
        let into = [a.sge(a.landing(), 8)];
        let (what, work) = both(&into, b.mem.remote(0), 7)[n];
        let posted = setup.post_send(a.qp, &[work]);
        let after = if has_them {
            posted.rule(RULE)?;
            in_case(
                what,
                setup.one_with(a.send_cq, WcStatus::Success, RULE).map(drop),
            )?;
            8
        } else {
            if posted.is_err() {
                in_case(what, expect_err(posted, ErrorKind::Invalid, RULE).map(drop))?;
            } else {
                fails(setup, &a, RULE)?;
            }
            7
        };
        check_eq!(RULE, get(&b, 0)?, after, format!("the value ({what})"));
    }
    Ok(())
}

fn fails(setup: &Setup<'_>, a: &crate::End<'_>, rule: &'static str) -> Result {
    let wc = setup.one(a.send_cq).rule(rule)?;
    let refused = matches!(wc.status, WcStatus::LocQpOpErr | WcStatus::RemInvReqErr);
    check!(rule, refused, "LOC_QP_OP_ERR or REM_INV_REQ_ERR", "{wc}");
    Ok::<(), Failure>(())
}
