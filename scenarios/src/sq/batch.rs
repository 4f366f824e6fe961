//! Sends that are posted as a whole or not at all.

use verbs_api::{
    Access, BatchEnd, ErrorKind, MwType, QpCap, QpInit, QpType, RcParams, Remote, SendOps, SendWr,
    WcStatus, inc_rkey,
};

use crate::failure::{check, check_eq, in_case};
use crate::mw::part;
use crate::{
    End, GRH_LEN, OfRule, Pair, PairOptions, Result, Setup, expect_err, expect_err_among, pattern,
    wr_ids,
};

const LEN: u32 = 8;

/// `ENOSPC`, with which some libraries say that a queue is full or a list too long.
const NO_SPACE: ErrorKind = ErrorKind::Os(28);

fn pair<'b>(setup: &'b Setup<'_>, qp_type: QpType, send_ops: SendOps) -> Result<Pair<'b>> {
    setup.pair(PairOptions {
        send_ops,
        cap: QpCap {
            max_send_sge: 2,
            max_inline_data: 64,
            ..QpCap::default()
        },
        ..PairOptions::of(qp_type)
    })
}

scenario!(batch_runs_when_it_is_complete:
    "SQ-26", "SQ-28"; needs SEND_WITH_IMM, WRITE_WITH_IMM, RDMA_READ, BATCHES);
/// Each operation that moves data or reads it once; they are done in this order.
fn batch_runs_when_it_is_complete(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-26";
    let all = SendOps::SEND
        | SendOps::SEND_WITH_IMM
        | SendOps::RDMA_WRITE
        | SendOps::RDMA_WRITE_WITH_IMM
        | SendOps::RDMA_READ;
    let Pair { a, b } = pair(setup, QpType::Rc, all)?;
    for round in 0..3 {
        let at = |place: u64| b.landing() + 64 * place;
        for place in 0..3 {
            b.recv_at(place, at(place), LEN)?;
        }
        for place in 0..5 {
            a.fill_at(64 * place, round * 8 + place as u8, LEN)?;
        }
        b.fill_at(0, 99 - round, LEN)?;
        let data: Vec<_> = (0..5).map(|place| [a.sge(64 * place, LEN)]).collect();
        let into = [a.sge(a.landing(), LEN)];
        let list = [
            SendWr::send(0, &data[0]).inline(),
            SendWr::send_with_imm(1, &data[1], [1, 2, 3, 4]),
            SendWr::rdma_write(2, &data[2], b.mem.remote(at(10))),
            SendWr::rdma_write_with_imm(3, &data[3], b.mem.remote(at(11)), [5, 6, 7, 8]),
            SendWr::rdma_read(4, &into, b.mem.remote(0)),
        ];
        setup
            .post_batch(a.qp, &list, BatchEnd::Complete)
            .rule("SQ-28")?;
        let done = setup.successes(a.send_cq, 5).rule(RULE)?;
        check_eq!(RULE, wr_ids(&done), [0, 1, 2, 3, 4]);
        let came = setup.successes(b.recv_cq, 3).rule(RULE)?;
        check_eq!(RULE, came[1].imm_data, [1, 2, 3, 4]);
        check_eq!(RULE, came[2].imm_data, [5, 6, 7, 8]);
        for (place, landed) in [(0, at(0)), (1, at(1)), (2, at(10)), (3, at(11))] {
            b.expect_data_at(landed, round * 8 + place, LEN, RULE)?;
        }
        a.expect_data_at(a.landing(), 99 - round, LEN, RULE)?;
    }
    Ok(())
}

scenario!(aborted_batch_never_runs: "SQ-26"; needs BATCHES);
/// More of them than the queue has places: they take none.
fn aborted_batch_never_runs(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-26";
    let pair = pair(setup, QpType::Rc, SendOps::SEND)?;
    let Pair { a, b } = pair;
    for wr_id in 0..3 {
        b.recv_at(wr_id, b.landing() + 64 * wr_id, LEN)?;
    }
    let data = [a.sge(0, LEN)];
    let list: Vec<_> = (10..13).map(|wr_id| SendWr::send(wr_id, &data)).collect();
    for _ in 0..100 {
        setup.post_batch(a.qp, &list, BatchEnd::Abort).rule(RULE)?;
    }
    for cq in [a.send_cq, b.recv_cq] {
        setup.no_completion(cq, RULE)?;
    }
    setup
        .post_batch(a.qp, &list, BatchEnd::Complete)
        .rule(RULE)?;
    let done = setup.successes(a.send_cq, 3).rule(RULE)?;
    check_eq!(RULE, wr_ids(&done), [10, 11, 12]);
    setup.successes(b.recv_cq, 3).rule(RULE)?;
    pair.still_works(RULE)
}

scenario!(batch_with_an_error_is_not_posted_at_all: "SQ-27"; needs BATCHES);
fn batch_with_an_error_is_not_posted_at_all(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-27";
    let pair = pair(setup, QpType::Rc, SendOps::SEND)?;
    let Pair { a, b } = pair;
    let good = [a.sge(0, LEN)];
    let many = [a.sge(0, 1); 40];
    let long = [a.sge(0, 4096)];
    let bad = [
        ("entries", SendWr::send(20, &many)),
        ("inline data", SendWr::send(20, &long).inline()),
    ];
    b.recv(1, LEN)?;
    for (what, bad) in bad {
        for place in 0..3 {
            let mut list = [10, 11, 12].map(|wr_id| SendWr::send(wr_id, &good));
            list[place] = bad;
            let posted = setup.post_batch(a.qp, &list, BatchEnd::Complete);
            let kinds = [ErrorKind::Invalid, ErrorKind::NoMemory, NO_SPACE];
            let refused = expect_err_among(posted, &kinds, RULE);
            in_case(
                &format!("too much of {what}, at {place}"),
                refused.map(drop),
            )?;
        }
    }
    for cq in [a.send_cq, b.recv_cq] {
        setup.no_completion(cq, RULE)?;
    }
    // None of them has a place in the queue.
    let list = [SendWr::send(30, &good)];
    setup
        .post_batch(a.qp, &list, BatchEnd::Complete)
        .rule(RULE)?;
    setup.successes(a.send_cq, 1).rule(RULE)?;
    let came = setup.successes(b.recv_cq, 1).rule(RULE)?;
    check_eq!(RULE, wr_ids(&came), [1]);
    pair.still_works(RULE)
}

scenario!(batch_gathers_inline_data: "SQ-08"; needs BATCHES);
fn batch_gathers_inline_data(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-08";
    let Pair { a, b } = pair(setup, QpType::Rc, SendOps::SEND)?;
    a.fill(5, 2 * LEN)?;
    b.recv(1, 2 * LEN)?;
    let parts = [a.sge(0, LEN), a.sge(LEN.into(), LEN)];
    let list = [SendWr::send(1, &parts).inline()];
    setup.post_batch(a.qp, &list, BatchEnd::Complete)?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    let wc = setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
    check_eq!(RULE, wc.byte_len, 2 * LEN, "bytes of the message");
    b.expect_data(5, 2 * LEN, RULE)
}

scenario!(batch_takes_inline_data_at_the_post: "SQ-08"; needs BATCHES);
/// Each request has bytes of its own, which are no more after the post.
fn batch_takes_inline_data_at_the_post(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-08";
    let Pair { a, b } = pair(setup, QpType::Rc, SendOps::SEND | SendOps::RDMA_WRITE)?;
    let at = |place: u64| b.landing() + 64 * place;
    b.recv_at(1, at(0), LEN)?;
    let bytes = [6, 7].map(|tag| pattern(tag, LEN));
    let list = [
        SendWr::rdma_write(1, &[], b.mem.remote(at(1))).inline_data(&bytes[1]),
        SendWr::send(2, &[]).inline_data(&bytes[0]),
    ];
    setup
        .post_batch(a.qp, &list, BatchEnd::Complete)
        .rule(RULE)?;
    drop(bytes);
    let done = setup.successes(a.send_cq, 2).rule(RULE)?;
    check_eq!(RULE, wr_ids(&done), [1, 2]);
    setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
    b.expect_data_at(at(0), 6, LEN, RULE)?;
    b.expect_data_at(at(1), 7, LEN, RULE)
}

scenario!(batch_of_datagrams_names_their_destinations: "SQ-26", "SQ-28"; needs UD, BATCHES);
fn batch_of_datagrams_names_their_destinations(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-26";
    let Pair { a, b } = pair(setup, QpType::Ud, SendOps::SEND)?;
    let data = [a.sge(0, LEN)];
    a.fill(7, LEN)?;
    let to_b = a.to_peer(SendWr::send(1, &data));
    b.recv(1, LEN)?;
    setup
        .post_batch(a.qp, &[to_b], BatchEnd::Complete)
        .rule("SQ-28")?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    let wc = setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
    check_eq!(RULE, (wc.src_qp, wc.byte_len), (a.qp_num, LEN + GRH_LEN));
    b.expect_data(7, LEN, RULE)
}

scenario!(batch_has_only_operations_that_were_asked_for: "SQ-28"; needs BATCHES);
fn batch_has_only_operations_that_were_asked_for(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-28";
    for (what, send_ops) in [
        ("no batches", SendOps::empty()),
        ("sends", SendOps::SEND),
        ("reads and sends", SendOps::RDMA_READ | SendOps::SEND),
    ] {
        let pair = pair(setup, QpType::Rc, send_ops)?;
        let Pair { a, b } = pair;
        b.recv(1, LEN)?;
        let data = [a.sge(0, LEN)];
        let list = [
            SendWr::send(10, &data),
            SendWr::rdma_write(11, &data, a.remote()),
        ];
        let posted = setup.post_batch(a.qp, &list, BatchEnd::Complete);
        let refused = expect_err(posted, ErrorKind::Invalid, RULE);
        in_case(what, refused.map(drop))?;
        if send_ops.is_empty() {
            for end in [BatchEnd::Complete, BatchEnd::Abort] {
                let empty = setup.post_batch(a.qp, &[], end);
                expect_err(empty, ErrorKind::Invalid, RULE)?;
            }
        }
        for cq in [a.send_cq, b.recv_cq] {
            setup.no_completion(cq, RULE)?;
        }
        // It takes what any queue pair takes.
        a.send(12, LEN)?;
        setup.successes(a.send_cq, 1).rule(RULE)?;
        setup.successes(b.recv_cq, 1).rule(RULE)?;
        pair.still_works(RULE)?;
    }
    Ok(())
}

scenario!(queue_pair_with_batches_of_what_it_has_not_is_refused: "SQ-28"; needs RC, UD, BATCHES);
fn queue_pair_with_batches_of_what_it_has_not_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-28";
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let nothing = SendOps::from_bits_retain(1 << 40);
    for (qp_type, send_ops) in [
        (QpType::Rc, nothing),
        (QpType::Rc, nothing | SendOps::SEND),
        (QpType::Ud, SendOps::RDMA_WRITE),
        (QpType::Ud, SendOps::SEND | SendOps::RDMA_READ),
    ] {
        let before = setup.live()?;
        let init = QpInit::new(qp_type, end.send_cq, end.recv_cq).send_ops(send_ops);
        let made = setup.create_qp(end.pd, &init);
        let kinds = [ErrorKind::NotSupported, ErrorKind::Invalid];
        let refused = expect_err_among(made, &kinds, RULE);
        in_case(
            &format!("{qp_type}, {:#x}", send_ops.bits()),
            refused.map(drop),
        )?;
        setup.expect_live(before, RULE)?;
    }
    Ok(())
}

scenario!(batch_binds_counts_and_invalidates: "SQ-26", "SQ-27"; needs ATOMICS, MW_TYPE_2, BATCHES);
/// Work on windows, and atomics. A bind of a batch that is refused leaves the window as it is.
fn batch_binds_counts_and_invalidates(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-26";
    let access = Access::ALL_RDMA | Access::REMOTE_ATOMIC | Access::MW_BIND;
    let atomics = SendOps::ATOMIC_CMP_AND_SWP | SendOps::ATOMIC_FETCH_AND_ADD;
    let Pair { a, b } = setup.pair(PairOptions {
        send_ops: SendOps::BIND_MW | SendOps::LOCAL_INV | atomics,
        access,
        rc: RcParams {
            access,
            ..RcParams::default()
        },
        ..PairOptions::default()
    })?;
    let mw = setup.alloc_mw(a.pd, MwType::Type2)?;
    let before = setup.query_mw(mw)?;
    let rkey = inc_rkey(before.rkey);
    let remote = Remote {
        addr: a.mem.addr + a.landing(),
        rkey,
    };
    let info = part(&a, a.landing(), LEN.into(), Access::REMOTE_WRITE);
    let bind = SendWr::bind_mw(0, mw, rkey, info);
    let counter = b.mem.remote(b.landing());
    let too_many = vec![a.sge(0, LEN); 64];
    let bad = SendWr::fetch_and_add(1, &too_many, counter, 1);
    let refused = setup.post_batch(a.qp, &[bind, bad], BatchEnd::Complete);
    check!("SQ-27", refused.is_err(), "an error", "{refused:?}");
    check_eq!("SQ-27", setup.query_mw(mw)?, before, "the window");
    setup.write_mr(b.mr, b.landing() as usize, &5_u64.to_ne_bytes())?;
    let answers = [[a.sge(0, LEN)], [a.sge(64, LEN)]];
    let list = [
        bind,
        SendWr::compare_and_swap(1, &answers[0], counter, 5, 7),
        SendWr::fetch_and_add(2, &answers[1], counter, 3),
    ];
    setup
        .post_batch(a.qp, &list, BatchEnd::Complete)
        .rule(RULE)?;
    let done = setup.successes(a.send_cq, 3).rule(RULE)?;
    check_eq!(RULE, wr_ids(&done), [0, 1, 2]);
    let number = |end: &End<'_>, at| -> Result<u64> {
        let bytes = end.bytes(at, 8)?;
        Ok(u64::from_ne_bytes(bytes.try_into().unwrap_or_default()))
    };
    let seen = [number(&a, 0)?, number(&a, 64)?, number(&b, b.landing())?];
    check_eq!(RULE, seen, [5, 7, 10], "answers and counter");
    check_eq!(RULE, setup.query_mw(mw)?.rkey, rkey, "the key");
    let write = |status| -> Result {
        b.post(SendWr::rdma_write(9, &[b.sge(0, LEN)], remote))?;
        setup.one_with(b.send_cq, status, RULE).map(drop)
    };
    write(WcStatus::Success)?;
    setup
        .post_batch(a.qp, &[SendWr::local_inv(3, rkey)], BatchEnd::Complete)
        .rule(RULE)?;
    setup.successes(a.send_cq, 1).rule(RULE)?;
    write(WcStatus::RemAccessErr)
}

scenario!(batch_can_invalidate_at_the_peer: "SQ-26"; needs MW, BATCHES);
fn batch_can_invalidate_at_the_peer(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-26";
    let access = Access::ALL_RDMA | Access::MW_BIND;
    let Pair { a, b } = setup.pair(PairOptions {
        send_ops: SendOps::BIND_MW | SendOps::SEND_WITH_INV,
        access,
        rc: RcParams {
            access,
            ..RcParams::default()
        },
        ..PairOptions::default()
    })?;
    let mw = setup.alloc_mw(b.pd, MwType::Type2)?;
    let rkey = inc_rkey(setup.query_mw(mw)?.rkey);
    let info = part(&b, 0, LEN.into(), Access::REMOTE_WRITE);
    b.post(SendWr::bind_mw(1, mw, rkey, info))?;
    setup.successes(b.send_cq, 1)?;
    a.fill(6, LEN)?;
    b.recv(2, LEN)?;
    let data = [a.sge(0, LEN)];
    let list = [SendWr::send_with_inv(3, &data, rkey)];
    setup
        .post_batch(a.qp, &list, BatchEnd::Complete)
        .rule(RULE)?;
    let sent = setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    check_eq!(RULE, sent.wr_id, 3);
    setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
    b.expect_data(6, LEN, RULE)?;
    let addr = b.mem.addr;
    a.post(SendWr::rdma_write(4, &data, Remote { addr, rkey }))?;
    setup
        .one_with(a.send_cq, WcStatus::RemAccessErr, RULE)
        .map(drop)
}

scenario!(uc_qp_has_batches_of_what_its_transport_has: "SQ-18", "SQ-28"; needs UC, MW, BATCHES);
/// Each operation, all of them, and none that it has not.
fn uc_qp_has_batches_of_what_its_transport_has(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-28";
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let init = QpInit::new(QpType::Uc, end.send_cq, end.recv_cq);
    let has = SendOps::SEND
        | SendOps::SEND_WITH_IMM
        | SendOps::RDMA_WRITE
        | SendOps::RDMA_WRITE_WITH_IMM
        | SendOps::BIND_MW
        | SendOps::LOCAL_INV
        | SendOps::SEND_WITH_INV;
    for send_ops in has.iter().chain([has]) {
        let make = || -> Result {
            let made = setup
                .create_qp(end.pd, &init.send_ops(send_ops))
                .rule(RULE)?;
            Ok(setup.destroy_qp(made, setup.wait())?)
        };
        in_case(&format!("{send_ops:?}"), make())?;
    }
    let atomics = [SendOps::ATOMIC_CMP_AND_SWP, SendOps::ATOMIC_FETCH_AND_ADD];
    for send_ops in atomics.into_iter().chain([SendOps::RDMA_READ]) {
        for send_ops in [send_ops, send_ops | SendOps::SEND] {
            let made = setup.create_qp(end.pd, &init.send_ops(send_ops));
            let kinds = [ErrorKind::NotSupported, ErrorKind::Invalid];
            let refused = expect_err_among(made, &kinds, "SQ-18");
            in_case(&format!("{send_ops:?}"), refused.map(drop))?;
        }
    }
    Ok(())
}
