//! Which message takes which receive, and what is there when there is none.

use std::collections::BTreeSet;
use std::thread;

use verbs_api::lab::{Fault, PacketFilter, PacketOpcode};
use verbs_api::{Access, Arm, CqInit, QpType, RcParams, RecvWr, WcStatus};

use super::{ROOM, Shared};
use crate::failure::{check_eq, value_in_case};
use crate::kind::Kind;
use crate::{EndParts, OfRule, Pair, PairOptions, Result, Setup, wr_ids};

/// In which order the pairs of a scenario send.
const TURNS: [usize; 12] = [0, 1, 2, 2, 1, 0, 0, 0, 2, 1, 1, 2];

/// Three pairs on one SRQ: two with CQs of their own, and one on those of the second.
fn three<'b>(shared: &Shared<'b>, options: PairOptions) -> Result<[Pair<'b>; 3]> {
    let (first, second) = (shared.pair(options)?, shared.pair(options)?);
    let third = shared.pair_on(second.b.send_cq, second.b.recv_cq, options)?;
    Ok([first, second, third])
}

scenario!(messages_of_all_qps_take_receives_in_posting_order: "SRQ-03", "WC-03"; needs SRQ);
fn messages_of_all_qps_take_receives_in_posting_order(setup: &Setup<'_>) -> Result {
    in_posting_order(setup, QpType::Rc, "SRQ-03")
}

scenario!(datagrams_take_receives_in_posting_order: "SRQ-03", "WC-03"; needs UD, SRQ);
fn datagrams_take_receives_in_posting_order(setup: &Setup<'_>) -> Result {
    in_posting_order(setup, QpType::Ud, "SRQ-03")
}

fn in_posting_order(setup: &Setup<'_>, qp_type: QpType, rule: &'static str) -> Result {
    let shared = Shared::new(setup, 16)?;
    let pairs = three(&shared, PairOptions::of(qp_type))?;
    // Numbers in no order of their own.
    let number = |i: usize| (i as u64 * 7) % 16;
    shared.post((0..TURNS.len()).map(number))?;
    for (i, turn) in TURNS.into_iter().enumerate() {
        let taken = shared.takes(&pairs[turn], i as u8, number(i), rule);
        let wc = value_in_case(&format!("message {i}"), taken)?;
        check_eq!([rule, "WC-03"], wc.qp_num, pairs[turn].b.qp_num);
    }
    Ok(())
}

scenario!(messages_with_immediate_take_receives_in_posting_order:
    "SRQ-03"; needs SEND_WITH_IMM, WRITE_WITH_IMM, SRQ);
fn messages_with_immediate_take_receives_in_posting_order(setup: &Setup<'_>) -> Result {
    let shared = Shared::new(setup, 16)?;
    let pairs = three(&shared, PairOptions::default())?;
    shared.post(0..TURNS.len() as u64)?;
    for (i, turn) in TURNS.into_iter().enumerate() {
        let Pair { a, b } = pairs[turn];
        let kind = [Kind::SendImm, Kind::WriteImm][i % 2];
        let data = [a.sge(0, 64)];
        a.post(kind.work_with(&a, 1, &data, [9, 8, 7, i as u8]))?;
        let wc = setup.successes(b.recv_cq, 1).rule("SRQ-03")?[0];
        let seen = (wc.wr_id, wc.qp_num, wc.imm_data);
        check_eq!(
            "SRQ-03",
            seen,
            (i as u64, b.qp_num, [9, 8, 7, i as u8]),
            "receive, QP and data"
        );
        setup.successes(a.send_cq, 1)?;
    }
    Ok(())
}

scenario!(receive_is_taken_when_its_message_begins: "SRQ-03"; needs SRQ, LAB);
/// The end of a long message is lost, and comes after a short one on another QP: each keeps the
/// receive it has taken.
fn receive_is_taken_when_its_message_begins(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-03";
    let shared = Shared::new(setup, 4)?;
    let options = PairOptions {
        rc: RcParams {
            path_mtu: verbs_api::Mtu::Mtu256,
            ..RcParams::default()
        },
        ..PairOptions::default()
    };
    let (long, short) = (shared.pair(options)?, shared.pair(options)?);
    shared.post([0, 1, 2])?;
    let last = setup.lab().inject(
        Fault::drop(
            PacketFilter::EVERY
                .dest_qpn(long.b.qp_num)
                .opcode(PacketOpcode::RcSendLast),
        )
        .first(1),
    )?;
    long.a.fill(1, ROOM)?;
    long.a.send(1, ROOM)?;
    short.a.fill(2, 64)?;
    short.a.send(2, 64)?;
    shared.taken(&short, 2, 1, RULE)?;
    shared.taken(&long, 1, 0, RULE)?;
    check_eq!(RULE, setup.lab().remove(last)?, 1, "lost packets");
    setup.successes(long.a.send_cq, 1)?;
    setup.successes(short.a.send_cq, 1)?;
    shared.takes(&long, 3, 2, RULE).map(drop)
}

scenario!(receives_are_taken_once_whatever_arrives: "SRQ-15"; needs SRQ);
/// No message waits for another: which message takes which receive is open, but each takes one.
fn receives_are_taken_once_whatever_arrives(setup: &Setup<'_>) -> Result {
    const EACH: u64 = 12;
    let shared = Shared::new(setup, 64)?;
    let pairs = three(&shared, PairOptions::default())?;
    let all = EACH * pairs.len() as u64;
    shared.post(0..all)?;
    for wr_id in 0..EACH {
        for pair in &pairs {
            pair.a.send(wr_id, 64)?;
        }
    }
    once(setup, &pairs, EACH)
}

scenario!(threads_that_send_beside_each_other_take_receives_once: "SRQ-15"; needs SRQ, THREADS);
fn threads_that_send_beside_each_other_take_receives_once(setup: &Setup<'_>) -> Result {
    const EACH: u64 = 12;
    let shared = Shared::new(setup, 64)?;
    let pairs = three(&shared, PairOptions::default())?;
    shared.post(0..EACH * pairs.len() as u64)?;
    thread::scope(|scope| {
        let send = |pair: Pair<'_>| (0..EACH).try_for_each(|wr_id| pair.a.send(wr_id, 64));
        let threads = pairs.map(|pair| scope.spawn(move || send(pair)));
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    once(setup, &pairs, EACH)
}

/// Each pair's messages took a receive each, and all together each receive once.
fn once(setup: &Setup<'_>, pairs: &[Pair<'_>; 3], each: u64) -> Result {
    let each = each as usize;
    for pair in pairs {
        setup.successes(pair.a.send_cq, each).rule("SRQ-15")?;
    }
    // The second and the third share a CQ.
    let mut got = setup.successes(pairs[0].b.recv_cq, each).rule("SRQ-15")?;
    got.extend(
        setup
            .successes(pairs[1].b.recv_cq, 2 * each)
            .rule("SRQ-15")?,
    );
    let seen: BTreeSet<_> = wr_ids(&got).into_iter().collect();
    let all: BTreeSet<_> = (0..3 * each as u64).collect();
    check_eq!("SRQ-15", seen, all, "the receives that were taken");
    for pair in pairs {
        let own = got.iter().filter(|wc| wc.qp_num == pair.b.qp_num).count();
        check_eq!("SRQ-15", own, each, "the receives of one QP");
    }
    for pair in &pairs[..2] {
        setup.no_completion(pair.b.recv_cq, "SRQ-15")?;
    }
    Ok(())
}

scenario!(memory_is_that_of_its_own_domain: "SRQ-12", "PD-02"; needs SRQ);
fn memory_is_that_of_its_own_domain(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-12";
    let shared = Shared::new(setup, 4)?;
    let of_qp = setup.alloc_pd(shared.context)?;
    let mr = setup.alloc_mr(of_qp, ROOM as usize, Access::ALL_RDMA)?;
    let pair = || -> Result<Pair<'_>> {
        let options = PairOptions::default();
        let a = setup.end(setup.ctx_a(), options)?;
        let parts = EndParts {
            pd: of_qp,
            mr,
            ..shared.parts(shared.cq()?, shared.cq()?)
        };
        let b = setup.end_of(parts, options)?;
        setup.connect(a, b, options)
    };
    shared.post([1])?;
    shared.takes(&pair()?, 1, 1, RULE)?;
    let Pair { a, b } = pair()?;
    let room = [setup.query_mr(mr)?.sge(0, ROOM)];
    setup.post_srq_recv(shared.srq, &[RecvWr::new(2, &room)])?;
    a.send(1, 64)?;
    let wc = setup.one(b.recv_cq).rule(RULE)?;
    let fault = setup.behavior()?.recv_fault_status;
    let status = fault.map_or(WcStatus::LocProtErr, |fault| fault.status());
    check_eq!(
        [RULE, "PD-02"],
        (wc.wr_id, wc.status),
        (2, status),
        "the receive"
    );
    Ok(())
}

scenario!(empty_queue_is_a_receiver_that_is_not_ready: "SRQ-13"; needs RNR, SRQ);
fn empty_queue_is_a_receiver_that_is_not_ready(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-13";
    let shared = Shared::new(setup, 4)?;
    let waits = shared.pair(PairOptions::default())?;
    let gives_up = shared.pair(PairOptions {
        rc: RcParams {
            rnr_retry: 1,
            ..RcParams::default()
        },
        ..PairOptions::default()
    })?;
    gives_up.a.send(1, 64)?;
    setup.one_with(gives_up.a.send_cq, WcStatus::RnrRetryExcErr, RULE)?;
    waits.a.fill(3, 64)?;
    waits.a.send(3, 64)?;
    setup.no_completion_meanwhile(waits.a.send_cq, RULE)?;
    shared.post([2])?;
    shared.taken(&waits, 3, 2, RULE)?;
    setup.successes(waits.a.send_cq, 1).rule(RULE).map(drop)
}

scenario!(datagram_for_an_empty_queue_is_dropped: "SRQ-13"; needs UD, SRQ);
fn datagram_for_an_empty_queue_is_dropped(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-13";
    let shared = Shared::new(setup, 4)?;
    let pair = shared.pair(PairOptions::of(QpType::Ud))?;
    pair.a.send(1, 64)?;
    setup.successes(pair.a.send_cq, 1).rule(RULE)?;
    setup.no_completion(pair.b.recv_cq, RULE)?;
    shared.post([2])?;
    shared.takes(&pair, 3, 2, RULE)?;
    setup.no_completion(pair.b.recv_cq, RULE)
}

scenario!(solicited_message_fires_as_from_a_queue_of_its_own: "CQ-ARM-46"; needs SRQ);
fn solicited_message_fires_as_from_a_queue_of_its_own(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-ARM-46";
    let shared = Shared::new(setup, 4)?;
    let channel = setup.create_comp_channel(shared.context)?;
    let cq = setup.create_cq(shared.context, &CqInit::new(16).channel(channel))?;
    let pair = shared.pair_on(cq, cq, PairOptions::default())?;
    shared.post([0, 1])?;
    setup.arm(cq, Arm::SOLICITED)?;
    pair.a.send(1, 64)?;
    setup.successes(cq, 1)?;
    setup.no_event(channel, RULE)?;
    pair.a.send_solicited(2, 64)?;
    setup.expect_event(channel, cq, RULE)?;
    setup.successes(cq, 1).map(drop)
}
