//! Order of work, fences, when work is done.

use verbs_api::lab::{Fault, PacketFilter, PacketOpcode};
use verbs_api::{Access, QpCap, QpType, RcParams, SendWr, Sge, WcStatus};

use crate::failure::{check, check_eq, in_case};
use crate::kind::Kind;
use crate::{End, GRH_LEN, OfRule, Pair, PairOptions, Result, Setup, pattern, wr_ids};

scenario!(work_of_all_kinds_and_lengths_keeps_its_order:
    "SQ-11"; needs SEND_WITH_IMM, WRITE_WITH_IMM, RDMA_READ);
fn work_of_all_kinds_and_lengths_keeps_its_order(setup: &Setup<'_>) -> Result {
    in_order(setup, QpType::Rc, &Kind::ALL)
}

scenario!(sends_and_writes_keep_their_order: "SQ-11");
fn sends_and_writes_keep_their_order(setup: &Setup<'_>) -> Result {
    in_order(setup, QpType::Rc, &[Kind::Write, Kind::Send])
}

scenario!(uc_work_keeps_its_order: "SQ-11"; needs UC);
fn uc_work_keeps_its_order(setup: &Setup<'_>) -> Result {
    in_order(setup, QpType::Uc, &[Kind::Send, Kind::Write])
}

scenario!(ud_work_keeps_its_order: "SQ-11"; needs UD);
fn ud_work_keeps_its_order(setup: &Setup<'_>) -> Result {
    in_order(setup, QpType::Ud, &[Kind::Send])
}

/// A list of work, long and short mixed, completes in its order; its messages arrive in it too.
fn in_order(setup: &Setup<'_>, qp_type: QpType, kinds: &[Kind]) -> Result {
    const COUNT: usize = 15;
    let pair = setup.pair(PairOptions {
        cap: QpCap {
            max_send_wr: 32,
            max_recv_wr: 32,
            ..QpCap::default()
        },
        ..PairOptions::of(qp_type)
    })?;
    let Pair { a, b } = pair;
    let lengths: &[u32] = match qp_type {
        QpType::Ud => &[900, 0, 1, 512],
        _ => &[9000, 0, 1, 1024, 1025, 300],
    };
    let work: Vec<_> = (0..COUNT)
        .map(|i| (kinds[i % kinds.len()], lengths[i % lengths.len()]))
        .collect();
    let data = work.iter().map(|(kind, length)| {
        let offset = if *kind == Kind::Read { a.landing() } else { 0 };
        [a.sge(offset, *length)]
    });
    let data: Vec<_> = data.collect();
    let list = work.iter().zip(&data).enumerate();
    let list = list.map(|(i, ((kind, _), data))| a.to_peer(kind.work(&a, i as u64, data)));
    let list: Vec<_> = list.collect();
    let messages: Vec<_> = work
        .iter()
        .filter(|(kind, _)| kind.takes_a_receive())
        .collect();
    for wr_id in 0..messages.len() as u64 {
        b.recv(wr_id, 9000)?;
    }
    setup.post_send(a.qp, &list)?;
    let sent = setup.successes(a.send_cq, COUNT).rule("SQ-11")?;
    let expected: Vec<_> = (0..COUNT as u64).collect();
    check_eq!("SQ-11", wr_ids(&sent), expected, "the order of completions");
    let got = setup.successes(b.recv_cq, messages.len()).rule("SQ-11")?;
    let grh = if qp_type == QpType::Ud { GRH_LEN } else { 0 };
    let seen: Vec<_> = got.iter().map(|wc| wc.byte_len - grh).collect();
    let expected: Vec<_> = messages.iter().map(|(_, length)| *length).collect();
    check_eq!("SQ-11", seen, expected, "the lengths of the messages");
    Ok(())
}

scenario!(fenced_work_waits_for_the_reads_before_it: "SQ-12"; needs RDMA_READ);
/// What was read is sent on: the data of the send is that of the peer.
fn fenced_work_waits_for_the_reads_before_it(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    for (tag, length) in [(1, 8), (2, 1024), (3, 20_000)] {
        relay(&Pair { a, b }, tag, length)?;
        setup.successes(a.send_cq, 2).rule("SQ-12")?;
        setup.successes(b.recv_cq, 1).rule("SQ-12")?;
        b.expect_data(tag, length, "SQ-12")?;
    }
    Ok(())
}

scenario!(unfenced_send_takes_what_was_there_or_what_is_read: "SQ-13"; needs RDMA_READ);
/// Each byte that a send takes from under a read is the one from before or the one that was read,
/// and with a fence always that.
fn unfenced_send_takes_what_was_there_or_what_is_read(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-13";
    let Pair { a, b } = setup.rc_pair()?;
    for (tag, length, fence) in [
        (1, 8, false),
        (2, 3000, false),
        (3, 8, true),
        (4, 3000, true),
    ] {
        b.fill(tag, length)?;
        b.fill_at(b.landing(), 0x77, length)?;
        a.fill_at(a.landing(), 0xee, length)?;
        b.recv(1, length)?;
        a.read(2, length)?;
        let data = [a.sge(a.landing(), length)];
        let send = SendWr::send(3, &data);
        a.post(if fence { send.fence() } else { send })?;
        setup.successes(a.send_cq, 2).rule(RULE)?;
        setup.successes(b.recv_cq, 1).rule(RULE)?;
        let sent = b.bytes(b.landing(), length as usize)?;
        let (old, new) = (pattern(0xee, length), pattern(tag, length));
        for (i, byte) in sent.into_iter().enumerate() {
            let known = byte == new[i] || byte == old[i] && !fence;
            let what = if fence { "what was read" } else { "old or new" };
            check!(RULE, known, format!("{what} at {i}"), "{byte:#x}");
        }
        // What was read is whole, whatever was sent.
        a.expect_data(tag, length, RULE)?;
    }
    Ok(())
}

/// Posts a read, and a fenced send of what is read.
fn relay(pair: &Pair<'_>, tag: u8, length: u32) -> Result {
    let Pair { a, b } = pair;
    b.fill(tag, length)?;
    a.fill_at(a.landing(), 0xee, length)?;
    b.recv(1, length)?;
    a.read(2, length)?;
    let data = [a.sge(a.landing(), length)];
    a.post(SendWr::send(3, &data).fence())
}

scenario!(fenced_work_waits_for_a_read_that_is_tried_again: "SQ-12"; needs RDMA_READ, LAB);
fn fenced_work_waits_for_a_read_that_is_tried_again(setup: &Setup<'_>) -> Result {
    for nth in 1..=3 {
        let Pair { a, b } = setup.rc_pair()?;
        setup.lab().tap();
        let lost = setup
            .lab()
            .inject(Fault::drop(PacketFilter::EVERY.dest_qpn(a.qp_num)).nth(nth))?;
        let length = 3 * 1024;
        relay(&Pair { a, b }, nth as u8, length)?;
        setup.successes(a.send_cq, 2).rule("SQ-12")?;
        setup.successes(b.recv_cq, 1).rule("SQ-12")?;
        check_eq!("SQ-12", setup.lab().remove(lost)?, 1, "packets lost");
        in_case(
            &format!("response {nth} was lost"),
            b.expect_data(nth as u8, length, "SQ-12"),
        )?;
    }
    Ok(())
}

scenario!(written_data_is_there_when_a_later_send_is_received: "SQ-14");
/// The write is not signaled, and longer than the send.
fn written_data_is_there_when_a_later_send_is_received(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    for (tag, length) in [(1, 1), (2, 1024), (3, 5000), (4, 30_000)] {
        a.fill(tag, length)?;
        b.recv_at(1, 0, 8)?;
        let data = [a.sge(0, length)];
        let write = SendWr::rdma_write(2, &data, a.remote()).unsignaled();
        let marker = [a.sge(0, 0)];
        setup.post_send(a.qp, &[write, SendWr::send(3, &marker)])?;
        setup.successes(b.recv_cq, 1)?;
        b.expect_data(tag, length, "SQ-14")?;
        setup.successes(a.send_cq, 1)?;
    }
    Ok(())
}

scenario!(later_write_wins: "SQ-14");
fn later_write_wins(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    const LENGTH: u32 = 3000;
    for tag in 0..8_u8 {
        a.fill_at(u64::from(tag) * 3000, tag, LENGTH)?;
    }
    let data: Vec<_> = (0..8).map(|tag| [a.sge(tag * 3000, LENGTH)]).collect();
    let writes = data.iter().enumerate();
    let list: Vec<_> = writes
        .map(|(i, data)| SendWr::rdma_write(i as u64, data, a.remote()))
        .collect();
    setup.post_send(a.qp, &list)?;
    b.recv_at(1, 0, 0)?;
    a.send(9, 0)?;
    setup.successes(b.recv_cq, 1)?;
    b.expect_data(7, LENGTH, "SQ-14")?;
    setup.successes(a.send_cq, 9).map(drop)
}

/// Writes to memory of its own, which is not asked for: what follows is not alone with it.
fn write_beside<'d>(setup: &Setup<'_>, b: &End<'_>, data: &'d [Sge]) -> Result<SendWr<'d>> {
    let mr = setup.alloc_mr(b.pd, 4096, Access::ALL_RDMA)?;
    let remote = setup.query_mr(mr)?.remote(0);
    Ok(SendWr::rdma_write(7, data, remote).unsignaled())
}

scenario!(later_write_wins_where_it_lies_over_the_earlier: "SQ-14");
/// Each over a part of the other: its beginning, its end, its middle.
fn later_write_wins_where_it_lies_over_the_earlier(setup: &Setup<'_>) -> Result {
    const LENGTH: u32 = 3000;
    for (earlier, later) in [(1500, 0), (0, 1500), (1400, 700), (2999, 0), (0, 2999)] {
        let Pair { a, b } = setup.rc_pair()?;
        a.fill_at(0, 1, LENGTH)?;
        a.fill_at(LENGTH.into(), 2, LENGTH)?;
        let data = [0, LENGTH].map(|at| [a.sge(at.into(), LENGTH)]);
        let at = |offset| b.mem.remote(b.landing() + offset);
        b.recv_at(1, 0, 0)?;
        let list = [
            write_beside(setup, &b, &data[0])?,
            SendWr::rdma_write(2, &data[0], at(earlier)).unsignaled(),
            SendWr::rdma_write(3, &data[1], at(later)).unsignaled(),
            SendWr::send(4, &[]),
        ];
        setup.post_send(a.qp, &list)?;
        setup.successes(b.recv_cq, 1)?;
        let (first, end) = (earlier.min(later), earlier.max(later) + u64::from(LENGTH));
        let mut expected = vec![0; (end - first) as usize];
        for (tag, offset) in [(1, earlier), (2, later)] {
            let place = (offset - first) as usize;
            expected[place..][..LENGTH as usize].copy_from_slice(&pattern(tag, LENGTH));
        }
        let seen = b.bytes(b.landing() + first, expected.len())?;
        let differs = seen.iter().zip(&expected).position(|(a, b)| a != b);
        let what = format!("the first wrong byte, of writes at {earlier} and {later}");
        check_eq!("SQ-14", differs, None, what);
        setup.successes(a.send_cq, 1)?;
    }
    Ok(())
}

scenario!(read_sees_what_was_written_before_it: "SQ-14"; needs RDMA_READ);
fn read_sees_what_was_written_before_it(setup: &Setup<'_>) -> Result {
    for (tag, length) in [(1, 1), (2, 8), (3, 3000)] {
        let Pair { a, b } = setup.rc_pair()?;
        a.fill(tag, length)?;
        let data = [a.sge(0, length)];
        let into = [a.sge(a.landing(), length)];
        let list = [
            write_beside(setup, &b, &data)?,
            SendWr::rdma_write(2, &data, a.remote()).unsignaled(),
            SendWr::rdma_read(3, &into, a.remote()),
        ];
        setup.post_send(a.qp, &list)?;
        setup.one_with(a.send_cq, WcStatus::Success, "SQ-14")?;
        let result = a.expect_data(tag, length, "SQ-14");
        in_case(&format!("{length} bytes"), result)?;
    }
    Ok(())
}

scenario!(rc_success_means_that_the_data_is_there: "SQ-15");
fn rc_success_means_that_the_data_is_there(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    for (tag, length) in [(1, 1), (2, 1024), (3, 5000), (4, 30_000)] {
        a.fill(tag, length)?;
        a.write(1, length)?;
        setup.successes(a.send_cq, 1)?;
        in_case(
            &format!("a write of {length}"),
            b.expect_data(tag, length, "SQ-15"),
        )?;
    }
    Ok(())
}

scenario!(rc_send_without_an_answer_is_no_success: "SQ-15"; needs LAB);
/// The message arrives, and all its acknowledgements are lost.
fn rc_send_without_an_answer_is_no_success(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.pair(PairOptions {
        rc: RcParams {
            timeout: 8,
            retry_cnt: 2,
            ..RcParams::default()
        },
        ..PairOptions::default()
    })?;
    setup.lab().inject(Fault::drop(
        PacketFilter::EVERY.opcode(PacketOpcode::RcAcknowledge),
    ))?;
    b.recv(1, 8)?;
    a.send(2, 8)?;
    setup.successes(b.recv_cq, 1)?;
    let wc = setup.one_with(a.send_cq, WcStatus::RetryExcErr, "SQ-15")?;
    check_eq!("SQ-15", wc.wr_id, 2);
    setup.no_completion(b.recv_cq, "SQ-15")
}

scenario!(uc_success_says_nothing_of_the_receiver: "SQ-16"; needs UC);
/// There is no receive, or no such queue pair any more.
fn uc_success_says_nothing_of_the_receiver(setup: &Setup<'_>) -> Result {
    unheard(setup, QpType::Uc)
}

scenario!(ud_success_says_nothing_of_the_receiver: "SQ-16"; needs UD);
fn ud_success_says_nothing_of_the_receiver(setup: &Setup<'_>) -> Result {
    unheard(setup, QpType::Ud)
}

fn unheard(setup: &Setup<'_>, qp_type: QpType) -> Result {
    let Pair { a, b } = setup.pair(PairOptions::of(qp_type))?;
    for _ in 0..3 {
        a.send(1, 8)?;
        setup.successes(a.send_cq, 1).rule("SQ-16")?;
    }
    setup.no_completion(b.recv_cq, "SQ-16")?;
    setup.destroy_qp(b.qp, setup.wait())?;
    a.send(2, 8)?;
    let wc = setup.successes(a.send_cq, 1).rule("SQ-16")?[0];
    check_eq!("SQ-16", wc.wr_id, 2);
    Ok(())
}

scenario!(memory_of_an_unreliable_send_is_free_when_it_is_done: "SQ-17"; needs UC, UD);
/// The sender reuses its memory as soon as it has polled; each message has what was sent.
fn memory_of_an_unreliable_send_is_free_when_it_is_done(setup: &Setup<'_>) -> Result {
    const LENGTH: u32 = 1000;
    for qp_type in [QpType::Uc, QpType::Ud] {
        let Pair { a, b } = setup.pair(PairOptions::of(qp_type))?;
        let place = |tag: u8| b.landing() + u64::from(tag) * 2048;
        for tag in 0..8 {
            b.recv_at(tag.into(), place(tag), LENGTH)?;
        }
        for tag in 0..8 {
            a.fill(tag, LENGTH).rule("SQ-17")?;
            a.send(tag.into(), LENGTH)?;
            setup.successes(a.send_cq, 1)?;
        }
        a.fill(0xee, LENGTH).rule("SQ-17")?;
        setup.successes(b.recv_cq, 8)?;
        let grh = if qp_type == QpType::Ud { GRH_LEN } else { 0 };
        for tag in 0..8 {
            let result = b.expect_data_at(place(tag) + u64::from(grh), tag, LENGTH, "SQ-17");
            in_case(&format!("message {tag} on {qp_type}"), result)?;
        }
    }
    Ok(())
}
