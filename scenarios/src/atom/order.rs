//! Atomics among others: depth, fence, many queue pairs, retries.

use verbs_api::lab::{Fault, PacketFilter, PacketOpcode};
use verbs_api::{QpCap, QpState, RcParams, SendWr, WcStatus};

use super::{ALL, both, get, options, pair, set};
use crate::failure::{check, check_eq, in_case};
use crate::{OfRule, Pair, PairOptions, Result, Setup, pattern, wr_ids};

scenario!(sum_of_many_queue_pairs_is_exact: "ATOM-08"; needs ATOMICS);
fn sum_of_many_queue_pairs_is_exact(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ATOM-08";
    const EACH: u64 = 16;
    let first = pair(setup)?;
    let counter = first.b;
    let mut adders = vec![first.a];
    for _ in 0..3 {
        // Another queue pair on the domain of the counter.
        let a = setup.end(setup.ctx_a(), options())?;
        let b = setup.sibling(&counter, options())?;
        adders.push(setup.connect(a, b, options())?.a);
    }
    set(&counter, setup, 0, 0)?;
    for round in 0..EACH {
        for a in &adders {
            let into = [a.sge(a.landing() + 8 * round, 8)];
            let work = SendWr::fetch_and_add(round, &into, counter.mem.remote(0), 1);
            setup.post_send(a.qp, &[work])?;
        }
    }
    let mut seen = Vec::new();
    for a in &adders {
        setup.successes(a.send_cq, EACH as usize).rule(RULE)?;
        for round in 0..EACH {
            seen.push(get(a, a.landing() + 8 * round)?);
        }
    }
    seen.sort_unstable();
    let total = EACH * adders.len() as u64;
    check_eq!(RULE, get(&counter, 0)?, total, "the sum");
    let each: Vec<_> = (0..total).collect();
    check_eq!(RULE, seen, each, "what each found");
    Ok(())
}

scenario!(list_is_executed_in_order: "SQ-14"; needs ATOMICS);
fn list_is_executed_in_order(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-14";
    const COUNT: u64 = 8;
    for depth in [1, 4] {
        let rc = RcParams {
            access: ALL,
            max_rd_atomic: depth,
            ..RcParams::default()
        };
        let Pair { a, b } = setup.pair(PairOptions { rc, ..options() })?;
        let into: Vec<_> = (0..COUNT).map(|n| a.sge(a.landing() + 8 * n, 8)).collect();
        let swap = |n: u64| {
            let into = std::slice::from_ref(&into[n as usize]);
            SendWr::compare_and_swap(n, into, b.mem.remote(0), n, n + 1)
        };
        let list: Vec<_> = (0..COUNT).map(swap).collect();
        setup.post_send(a.qp, &list)?;
        let done = setup.successes(a.send_cq, COUNT as usize).rule(RULE)?;
        let each: Vec<_> = (0..COUNT).collect();
        check_eq!(RULE, wr_ids(&done), each, "the order of completions");
        check_eq!(
            RULE,
            get(&b, 0)?,
            COUNT,
            format!("the value, depth {depth}")
        );
    }
    Ok(())
}

scenario!(fenced_send_carries_the_result: "SQ-12"; needs ATOMICS);
/// The send takes its data after the result has come.
fn fenced_send_carries_the_result(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-12";
    for n in 0..2 {
        let Pair { a, b } = pair(setup)?;
        let value = 0x1122_3344_5566_7788;
        set(&b, setup, 0, value)?;
        let into = [a.sge(a.landing(), 8)];
        let (what, atomic) = both(&into, b.mem.remote(0), value)[n];
        b.recv(1, 8)?;
        let send = SendWr::send(2, &into).fence();
        setup.post_send(a.qp, &[atomic, send])?;
        setup.successes(a.send_cq, 2).rule(RULE)?;
        setup.successes(b.recv_cq, 1).rule(RULE)?;
        let carried = get(&b, b.landing())?;
        check_eq!(
            RULE,
            carried,
            value,
            format!("what the send carried behind a {what}")
        );
    }
    Ok(())
}

scenario!(atomics_and_reads_beyond_the_depth_wait: "ATOM-13", "RDMA-18"; needs RDMA_READ, ATOMICS);
/// Reads and atomics in turns, more than may be under way.
fn atomics_and_reads_beyond_the_depth_wait(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ATOM-13";
    for depth in [1, 2, 4] {
        let Pair { a, b } = with_depth(setup, depth)?;
        let seen = in_turns(setup, &Pair { a, b }, 12)?;
        let each: Vec<_> = (0..12).collect();
        check_eq!(
            [RULE, "RDMA-18"],
            seen,
            each,
            format!("the order, depth {depth}")
        );
        check_eq!(RULE, get(&b, 0)?, 6, format!("the sum, depth {depth}"));
        a.expect_data_at(a.landing() + 4096, 6, 3000, RULE)?;
    }
    Ok(())
}

fn with_depth<'b>(setup: &'b Setup<'_>, depth: u8) -> Result<Pair<'b>> {
    let rc = RcParams {
        access: ALL,
        max_rd_atomic: depth,
        ..RcParams::default()
    };
    setup.pair(PairOptions { rc, ..options() })
}

/// Posts that many atomics and reads in turns: the order of their completions.
fn in_turns(setup: &Setup<'_>, Pair { a, b }: &Pair<'_>, count: u64) -> Result<Vec<u64>> {
    set(b, setup, 0, 0)?;
    b.fill_at(64, 6, 3000)?;
    let original = [a.sge(a.landing(), 8)];
    let data = [a.sge(a.landing() + 4096, 3000)];
    for wr_id in 0..count {
        a.post(match wr_id % 2 {
            0 => SendWr::fetch_and_add(wr_id, &original, b.mem.remote(0), 1),
            _ => SendWr::rdma_read(wr_id, &data, b.mem.remote(64)),
        })?;
    }
    let done = setup.successes(a.send_cq, count as usize).rule("ATOM-13")?;
    Ok(wr_ids(&done))
}

scenario!(atomics_count_in_the_depth_of_reads: "ATOM-13", "RDMA-18"; needs RDMA_READ, ATOMICS, LAB);
fn atomics_count_in_the_depth_of_reads(setup: &Setup<'_>) -> Result {
    for depth in [1, 2, 4] {
        let pair = with_depth(setup, depth)?;
        setup.lab().tap();
        in_turns(setup, &pair, 12)?;
        let (mut now, mut most) = (0, 0);
        for packet in setup.packets() {
            match packet.opcode {
                PacketOpcode::RcReadRequest | PacketOpcode::RcFetchAdd => now += 1,
                PacketOpcode::RcReadResponseLast | PacketOpcode::RcAtomicAcknowledge => now -= 1,
                _ => {}
            }
            most = most.max(now);
        }
        // All of the depth is used, too.
        check_eq!(
            ["ATOM-13", "RDMA-18"],
            most,
            i32::from(depth),
            "what is outstanding"
        );
    }
    Ok(())
}

scenario!(responder_without_depth_refuses_atomics: "RDMA-19"; needs MODIFY_CONNECT, ATOMICS);
fn responder_without_depth_refuses_atomics(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RDMA-19";
    for n in 0..2 {
        let [a, b] = [setup.ctx_a(), setup.ctx_b()].map(|side| setup.end(side, options()));
        let of_a = RcParams {
            access: ALL,
            timeout: 8,
            retry_cnt: 1,
            ..RcParams::default()
        };
        let of_b = RcParams {
            max_rd_atomic: 0,
            ..of_a
        };
        let Pair { a, b } = setup.connect_each(a?, b?, of_a, of_b)?;
        let into = [a.sge(a.landing(), 8)];
        let (what, work) = both(&into, b.mem.remote(0), 0)[n];
        a.post(work)?;
        let wc = setup.one(a.send_cq).rule(RULE)?;
        // The simulator's device answers; another may let the requester wait without result.
        let silent = setup.verbs().lab().is_none() && wc.status == WcStatus::RetryExcErr;
        check!(
            RULE,
            wc.status == WcStatus::RemInvReqErr || silent,
            "REM_INV_REQ_ERR or RETRY_EXC_ERR",
            "{wc} ({what})"
        );
        check_eq!(RULE, get(&b, 0)?, 0, format!("the value ({what})"));
        check_eq!(RULE, setup.state(a.qp)?, QpState::Err);
    }
    Ok(())
}

scenario!(retried_atomic_is_executed_once: "ATOM-09", "TMR-09"; needs ATOMICS, LAB);
/// Whichever packet is lost, and however many have come since.
fn retried_atomic_is_executed_once(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ATOM-09";
    const COUNT: u64 = 6;
    for depth in [1, 4] {
        for opcode in [PacketOpcode::RcAtomicAcknowledge, PacketOpcode::RcFetchAdd] {
            for lost in 1..=COUNT {
                let rc = RcParams {
                    access: ALL,
                    timeout: 8,
                    max_rd_atomic: depth,
                    ..RcParams::default()
                };
                let cap = QpCap::default();
                let Pair { a, b } = setup.pair(PairOptions {
                    rc,
                    cap,
                    ..options()
                })?;
                let packets = PacketFilter::EVERY.opcode(opcode);
                let fault = setup.lab().inject(Fault::drop(packets).nth(lost))?;
                set(&b, setup, 0, 100)?;
                b.fill_at(8, 9, 8)?;
                for n in 0..COUNT {
                    let into = [a.sge(a.landing() + 8 * n, 8)];
                    a.post(SendWr::fetch_and_add(n, &into, b.mem.remote(0), 1))?;
                }
                let case = format!("{opcode} {lost} lost, depth {depth}");
                in_case(
                    &case,
                    setup
                        .successes(a.send_cq, COUNT as usize)
                        .rule(RULE)
                        .map(drop),
                )?;
                setup.lab().remove(fault)?;
                check_eq!(
                    [RULE, "TMR-09"],
                    get(&b, 0)?,
                    100 + COUNT,
                    format!("the sum ({case})")
                );
                for n in 0..COUNT {
                    let original = get(&a, a.landing() + 8 * n)?;
                    check_eq!(RULE, original, 100 + n, format!("what was there ({case})"));
                }
                let behind = b.bytes(8, 8)?;
                check_eq!(RULE, behind, pattern(9, 8), "the bytes behind");
            }
        }
    }
    Ok(())
}
