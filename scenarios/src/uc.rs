//! Unreliable connections: what is wrong or incomplete is dropped without a word.

use std::time::Duration;

use verbs_api::behavior::{IllegalOpcode, ShortDatagram};
use verbs_api::lab::{Fault, PacketFilter};
use verbs_api::{
    Access, ErrorKind, Mtu, QpModify, QpState, QpType, RcParams, Remote, SendWr, WcOpcode, WcStatus,
};

use crate::failure::{check, check_eq, in_case};
use crate::{OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err, wr_ids};

const LEN: u32 = 8;

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    work_succeeds_without_an_answer,
    there_are_no_reads,
    message_without_a_receive_is_dropped,
    message_with_a_lost_packet_is_dropped_as_a_whole,
    denied_write_is_dropped,
    message_that_is_too_long_never_arrives,
    rest_of_a_message_that_is_too_long_is_dropped,
    denied_write_with_immediate_is_dropped,
    message_that_is_broken_off_is_dropped,
    copy_of_a_message_without_a_receive_is_not_taken,
    failed_invalidation_is_not_answered,
    write_with_immediate_consumes_a_receive,
    messages_arrive_in_order_and_once,
    messages_that_survive_losses_are_in_order,
    local_error_stops_the_send_queue_alone,
    packets_that_come_twice_are_taken_once,
];

fn uc_pair<'b>(setup: &'b Setup<'_>) -> Result<Pair<'b>> {
    setup.pair(PairOptions::of(QpType::Uc))
}

/// Packets of 256 bytes.
fn small() -> PairOptions {
    PairOptions {
        rc: RcParams {
            path_mtu: Mtu::Mtu256,
            ..RcParams::default()
        },
        ..PairOptions::of(QpType::Uc)
    }
}

/// A message of 8 bytes from A is the next thing that B receives, with this receive.
fn next_is(setup: &Setup<'_>, Pair { a, b }: Pair<'_>, recv: u64, rule: &'static str) -> Result {
    a.fill(77, LEN)?;
    a.send(1000, LEN)?;
    let wc = setup.one_with(b.recv_cq, WcStatus::Success, rule)?;
    check_eq!(rule, (wc.wr_id, wc.byte_len), (recv, LEN));
    b.expect_data(77, LEN, rule)
}

scenario!(work_succeeds_without_an_answer: "UC-01"; needs UC);
fn work_succeeds_without_an_answer(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = uc_pair(setup)?;
    setup.to_reset(b.qp)?;
    for len in [0, LEN, 5000] {
        a.send(1, len)?;
        a.write(2, len)?;
    }
    setup.successes(a.send_cq, 6).rule("UC-01")?;
    check_eq!("UC-01", setup.state(a.qp)?, QpState::Rts);
    Ok(())
}

scenario!(there_are_no_reads: "UC-02"; needs UC);
fn there_are_no_reads(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UC-02";
    let Pair { a, .. } = uc_pair(setup)?;
    let into = [a.sge(a.landing(), LEN)];
    let seen = match setup.post_send(a.qp, &[SendWr::rdma_read(1, &into, a.remote())]) {
        Ok(()) => {
            setup.one_with(a.send_cq, WcStatus::LocQpOpErr, RULE)?;
            if setup.state(a.qp)? == QpState::Sqe {
                // It counts for no fence.
                setup.modify(a.qp, QpModify::to(QpState::Rts))?;
                a.post(SendWr::send(2, &[a.sge(0, LEN)]).fence())?;
                setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
            }
            IllegalOpcode::LocQpOpErr
        }
        refused => {
            expect_err(refused, ErrorKind::Invalid, RULE)?;
            IllegalOpcode::Einval
        }
    };
    setup.as_declared(RULE, setup.behavior()?.illegal_opcode, seen)
}

scenario!(message_without_a_receive_is_dropped: "UC-03"; needs UC);
fn message_without_a_receive_is_dropped(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = uc_pair(setup)?;
    for len in [LEN + 1, 5000] {
        a.send(1, len)?;
        setup.one_with(a.send_cq, WcStatus::Success, "UC-03")?;
        setup.no_completion(b.recv_cq, "UC-03")?;
    }
    b.recv(2, 5000)?;
    next_is(setup, Pair { a, b }, 2, "UC-03")?;
    setup.no_completion(b.recv_cq, "UC-03")
}

scenario!(message_with_a_lost_packet_is_dropped_as_a_whole: "UC-04"; needs UC, LAB);
fn message_with_a_lost_packet_is_dropped_as_a_whole(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UC-04";
    for lost in 1..=4 {
        let Pair { a, b } = setup.pair(small())?;
        b.recv(10, 1024)?;
        setup
            .lab()
            .inject(Fault::drop(PacketFilter::EVERY).nth(lost))?;
        a.send(1, 1024)?;
        let case = format!("packet {lost} of 4");
        in_case(&case, setup.no_completion(b.recv_cq, RULE))?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        in_case(&case, next_is(setup, Pair { a, b }, 10, RULE))?;
    }
    Ok(())
}

scenario!(denied_write_is_dropped: "UC-05"; needs UC);
fn denied_write_is_dropped(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UC-05";
    for case in ["key", "range", "right", "domain"] {
        let Pair { a, b } = uc_pair(setup)?;
        let other_pd = setup.alloc_pd(b.context)?;
        let place = |pd, access| -> Result<Remote> {
            let mr = setup.alloc_mr(pd, 64, access)?;
            Ok(setup.query_mr(mr)?.remote(0))
        };
        let remote = match case {
            "key" => a.bad_remote(),
            "range" => b.mem.remote(b.mem.length - 7),
            "right" => place(b.pd, Access::LOCAL_WRITE | Access::REMOTE_READ)?,
            _ => place(other_pd, Access::ALL_RDMA)?,
        };
        b.fill_at(0, 5, b.mem.length as u32)?;
        b.recv(10, LEN)?;
        a.fill(6, LEN)?;
        let data = [a.sge(0, LEN)];
        a.post(SendWr::rdma_write(1, &data, remote))?;
        in_case(
            case,
            setup.one_with(a.send_cq, WcStatus::Success, RULE).map(drop),
        )?;
        in_case(case, setup.no_completion(b.recv_cq, RULE))?;
        let untouched = crate::pattern(5, b.mem.length as u32);
        // The receive owns its memory until it is polled.
        in_case(case, next_is(setup, Pair { a, b }, 10, RULE))?;
        let (end, seen) = (b.landing() as usize, b.bytes(0, b.mem.length as usize)?);
        let behind = end + LEN as usize;
        let same = seen[..end] == untouched[..end] && seen[behind..] == untouched[behind..];
        check!(RULE, same, "the memory as it was", "other bytes ({case})");
    }
    Ok(())
}

scenario!(message_that_is_too_long_never_arrives: "UC-06", "RQ-13"; needs UC);
fn message_that_is_too_long_never_arrives(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UC-06";
    let Pair { a, b } = uc_pair(setup)?;
    b.recv(10, LEN)?;
    a.send(1, LEN + 1)?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    match setup.short_message(b.recv_cq, RULE)? {
        // The receive is used for the next message.
        ShortDatagram::Drop => next_is(setup, Pair { a, b }, 10, RULE),
        _ => {
            check_eq!("RQ-13", setup.state(b.qp)?, QpState::Err);
            Ok(())
        }
    }
}

scenario!(rest_of_a_message_that_is_too_long_is_dropped: "UC-06"; needs UC);
/// The receive ends in the second of three packets; the last would have room.
fn rest_of_a_message_that_is_too_long_is_dropped(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UC-06";
    let Pair { a, b } = setup.pair(small())?;
    b.recv(10, 300)?;
    a.send(1, 2 * 256 + LEN)?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    // Some devices fail the receive.
    let got = setup.poll_all(b.recv_cq)?;
    let failed = got.iter().all(|wc| wc.status != WcStatus::Success);
    check!(RULE, failed, "no success", "{got:?}");
    match got[..] {
        [] => next_is(setup, Pair { a, b }, 10, RULE),
        _ => Ok(()),
    }
}

scenario!(write_with_immediate_consumes_a_receive: "UC-07"; needs UC, WRITE_WITH_IMM);
fn write_with_immediate_consumes_a_receive(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UC-07";
    let Pair { a, b } = uc_pair(setup)?;
    for wr_id in [10, 11] {
        b.recv_at(wr_id, 0, LEN)?;
    }
    a.fill(8, 5000)?;
    a.write_imm(1, 5000, [1, 2, 3, 4])?;
    let wc = setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
    let seen = (wc.wr_id, wc.opcode, wc.byte_len, wc.imm_data);
    let expected = (10, WcOpcode::RecvRdmaWithImm, 5000, [1, 2, 3, 4]);
    check_eq!(RULE, seen, expected);
    b.expect_data(8, 5000, RULE)?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    setup.no_completion(b.recv_cq, RULE)
}

scenario!(messages_arrive_in_order_and_once: "UC-08"; needs UC);
fn messages_arrive_in_order_and_once(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = uc_pair(setup)?;
    for wr_id in 0..16 {
        b.recv(wr_id, 5000)?;
    }
    let lengths: Vec<_> = (0..15).map(|n| 1 + n * 300).collect();
    for len in &lengths {
        a.send(1, *len)?;
    }
    setup.successes(a.send_cq, 15).rule("UC-08")?;
    let seen = setup.successes(b.recv_cq, 15).rule("UC-08")?;
    let arrived: Vec<_> = seen.iter().map(|wc| wc.byte_len).collect();
    check_eq!("UC-08", arrived, lengths, "lengths of what arrived");
    setup.no_completion(b.recv_cq, "UC-08")
}

scenario!(messages_that_survive_losses_are_in_order: "UC-08"; needs UC, LAB);
/// Gaps are allowed; nothing else.
fn messages_that_survive_losses_are_in_order(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UC-08";
    let Pair { a, b } = uc_pair(setup)?;
    let lost = setup
        .lab()
        .inject(Fault::drop(PacketFilter::EVERY).per_million(150_000))?;
    let (mut arrived, mut posted) = (Vec::new(), 0);
    for number in 0..100 {
        // What did not arrive has not used the receive.
        if posted == arrived.len() {
            b.recv(posted as u64, 3000)?;
            posted += 1;
        }
        // Each has three packets.
        a.send(number, 2500 + number as u32)?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        arrived.extend(setup.poll_all(b.recv_cq)?);
    }
    let lost = setup.lab().remove(lost)?;
    check!(RULE, lost > 0, "some packets lost", "none");
    let lengths: Vec<_> = arrived.iter().map(|wc| wc.byte_len).collect();
    let ascend = lengths.windows(2).all(|pair| pair[0] < pair[1]);
    check!(RULE, ascend, "each once, in order", "lengths {lengths:?}");
    let ids = wr_ids(&arrived);
    let in_order: Vec<_> = (0..ids.len() as u64).collect();
    check_eq!(RULE, ids, in_order, "the receives used");
    Ok(())
}

scenario!(local_error_stops_the_send_queue_alone: "UC-09"; needs UC);
fn local_error_stops_the_send_queue_alone(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UC-09";
    let Pair { a, b } = uc_pair(setup)?;
    a.recv(10, LEN)?;
    let outside = [a.sge(a.mem.length, LEN)];
    a.post(SendWr::send(1, &outside))?;
    setup.one_with(a.send_cq, WcStatus::LocProtErr, RULE)?;
    let state = setup.state(a.qp)?;
    check_eq!(RULE, state, QpState::Sqe);
    b.send(2, LEN)?;
    setup.one_with(a.recv_cq, WcStatus::Success, RULE).map(drop)
}

scenario!(packets_that_come_twice_are_taken_once: "UC-08"; needs UC, LAB);
/// At once, and behind the next messages.
fn packets_that_come_twice_are_taken_once(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UC-08";
    for late in [0, 10] {
        let Pair { a, b } = uc_pair(setup)?;
        let late = Duration::from_micros(late);
        let again = Fault::duplicate(PacketFilter::EVERY, late);
        setup.lab().inject(again)?;
        for wr_id in 0..8 {
            b.recv_at(wr_id, b.landing() + 4096 * wr_id, 3000)?;
        }
        for number in 0..6 {
            a.fill_at(4096 * number, number as u8, 3000)?;
            a.post(SendWr::send(number, &[a.sge(4096 * number, 3000)]))?;
        }
        let came = setup.poll_all(b.recv_cq)?;
        check_eq!(RULE, wr_ids(&came), [0, 1, 2, 3, 4, 5], "what arrived");
        for number in 0..6 {
            let at = b.landing() + 4096 * number;
            b.expect_data_at(at, number as u8, 3000, RULE)?;
        }
        setup.successes(a.send_cq, 6).rule(RULE)?;
    }
    Ok(())
}

scenario!(denied_write_with_immediate_is_dropped: "UC-05"; needs UC, WRITE_WITH_IMM);
fn denied_write_with_immediate_is_dropped(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UC-05";
    let Pair { a, b } = uc_pair(setup)?;
    b.recv(10, LEN)?;
    let data = [a.sge(0, LEN)];
    let denied = SendWr::rdma_write_with_imm(1, &data, a.bad_remote(), [1, 2, 3, 4]);
    a.post(denied)?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    setup.no_completion(b.recv_cq, RULE)?;
    check_eq!(RULE, setup.state(b.qp)?, QpState::Rts);
    next_is(setup, Pair { a, b }, 10, RULE)
}

scenario!(message_that_is_broken_off_is_dropped: "UC-04"; needs UC, MODIFY_CONNECT, LAB);
/// Its sender is reset behind the first packet, and goes on with the number that is expected.
fn message_that_is_broken_off_is_dropped(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UC-04";
    let options = small();
    let Pair { a, b } = setup.pair(options)?;
    b.recv(10, 1024)?;
    let rest = Fault::drop(PacketFilter::EVERY).these([2, 3]);
    setup.lab().inject(rest)?;
    a.send(1, 768)?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    setup.no_completion(b.recv_cq, RULE)?;
    setup.to_reset(a.qp)?;
    let next = RcParams {
        psn_a: options.rc.psn_a + 1,
        ..options.rc
    };
    setup.climb(&a, &b, next, QpState::Rts)?;
    next_is(setup, Pair { a, b }, 10, RULE)
}

scenario!(copy_of_a_message_without_a_receive_is_not_taken: "UC-08"; needs UC, LAB);
/// It comes when there is one.
fn copy_of_a_message_without_a_receive_is_not_taken(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UC-08";
    for len in [LEN, 3000] {
        let Pair { a, b } = uc_pair(setup)?;
        let late = Duration::from_millis(1);
        let again = Fault::duplicate(PacketFilter::EVERY, late);
        let again = setup.lab().inject(again)?;
        a.send(1, len)?;
        setup.lab().advance(late / 2)?;
        setup.lab().remove(again)?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        b.recv(10, len)?;
        setup.lab().advance(late)?;
        setup.no_completion(b.recv_cq, RULE)?;
        next_is(setup, Pair { a, b }, 10, RULE)?;
    }
    Ok(())
}

scenario!(failed_invalidation_is_not_answered: "UC-01"; needs UC, MW_TYPE_2);
/// An answer would be taken for a message, and the next one for its copy.
fn failed_invalidation_is_not_answered(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UC-01";
    let Pair { a, b } = uc_pair(setup)?;
    b.recv(10, LEN)?;
    let data = [a.sge(0, LEN)];
    a.post(SendWr::send_with_inv(1, &data, a.bad_remote().rkey))?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    setup.poll_all(b.recv_cq)?;
    if setup.state(b.qp)? != QpState::Rts {
        return Ok(());
    }
    a.recv(11, LEN)?;
    b.send(2, LEN)?;
    setup.one_with(a.recv_cq, WcStatus::Success, RULE).map(drop)
}
