//! What is sent again: when, and from where on.

use std::time::Duration;

use verbs_api::lab::{Fault, PacketClass, PacketFilter, PacketOpcode, PacketView, Syndrome};
use verbs_api::{Mtu, QpState, RcParams, SendWr, WcStatus};

use super::with;
use crate::failure::{check, check_eq, in_case};
use crate::kind::Kind;
use crate::{OfRule, Pair, PairOptions, Result, Setup, wr_ids};

/// The least time-out here, 1.05 ms, and its code.
const TIMEOUT: Duration = Duration::from_nanos(4096 << CODE);
const CODE: u8 = 8;

const HALF: Duration = TIMEOUT.checked_div(2).unwrap();

/// More than half of the time-out, and less than all of it.
const MOST: Duration = Duration::from_micros(700);

/// Packets of 256 bytes, and this time-out.
fn small<'b>(setup: &'b Setup<'_>, retry_cnt: u8) -> Result<Pair<'b>> {
    let rc = RcParams {
        path_mtu: Mtu::Mtu256,
        timeout: CODE,
        retry_cnt,
        max_rd_atomic: 4,
        ..RcParams::default()
    };
    with(setup, rc)
}

/// Every request, or every answer.
const REQUESTS: PacketFilter = PacketFilter::EVERY.class(PacketClass::Request);
const ANSWERS: PacketFilter = PacketFilter::EVERY.class(PacketClass::Response);

/// The packets of this class: how far their sequence numbers are from the first, and when they
/// left.
fn packets_of(setup: &Setup<'_>, class: PacketClass) -> Vec<(u32, Duration)> {
    let mut tapped = setup.lab().tapped();
    tapped.retain(|seen| class.has(seen.packet.opcode));
    let first = tapped.first().map_or(0, |seen| seen.packet.psn);
    let place = |psn: u32| psn.wrapping_sub(first) & 0x00ff_ffff;
    let seen = tapped.iter().map(|seen| (place(seen.packet.psn), seen.at));
    seen.collect()
}

/// The requests, as [`packets_of`] returns them, without their times.
fn requests(setup: &Setup<'_>) -> Vec<u32> {
    let packets = packets_of(setup, PacketClass::Request);
    packets.into_iter().map(|(place, _)| place).collect()
}

/// Drops the packet that comes as this one, from now on.
fn lose(setup: &Setup<'_>, packets: PacketFilter, nth: u64) -> Result {
    setup.lab().inject(Fault::drop(packets).nth(nth))?;
    Ok(())
}

/// Each answer comes as much later.
fn delay_answers(setup: &Setup<'_>, by: Duration) -> Result {
    setup.lab().inject(Fault::delay(ANSWERS, by))?;
    Ok(())
}

/// Whether a time-out has passed since then.
fn timed_out(setup: &Setup<'_>, start: Duration, expected: bool) -> Result {
    let seen = setup.lab().now() - start >= TIMEOUT;
    check_eq!("TMR-19", seen, expected, "it took a time-out");
    Ok(())
}

scenario!(what_leaves_again_starts_at_the_first_that_is_missing: "TMR-16", "TMR-19", "TMR-08"; needs LAB);
/// A send of one packet, a write and a send of four each. A loss is noticed by the next packet,
/// that of the last by the time-out, which starts at the last message that was not acknowledged.
fn what_leaves_again_starts_at_the_first_that_is_missing(setup: &Setup<'_>) -> Result {
    const LEN: u32 = 4 * 256 - 3;
    for lost in 0..9 {
        let Pair { a, b } = small(setup, 1)?;
        let start = setup.lab().now();
        b.recv_at(1, b.landing() + 4096, LEN)?;
        b.recv_at(2, b.landing() + 8192, LEN)?;
        let data: [_; 3] = [(0, 5), (4096, LEN), (8192, LEN)].map(|(at, len)| [a.sge(at, len)]);
        for (tag, part) in (1..).zip(&data) {
            a.fill_at(4096 * u64::from(tag - 1), tag, part[0].length)?;
        }
        setup.lab().tap();
        lose(setup, REQUESTS, lost + 1)?;
        let list = [
            SendWr::send(1, &data[0]),
            SendWr::rdma_write(2, &data[1], a.remote()),
            SendWr::send(3, &data[2]),
        ];
        setup.post_send(a.qp, &list)?;
        let done = wr_ids(&setup.successes(a.send_cq, 3).rule("TMR-08")?);
        check_eq!("TMR-08", done, [1, 2, 3], "the order of work");
        timed_out(setup, start, lost == 8)?;
        let from = if lost == 8 { 5 } else { lost as u32 };
        let expected: Vec<_> = (0..9).chain(from..9).collect();
        let case = format!("packet {lost} of 9 lost");
        check_eq!("TMR-16", requests(setup), expected, case);
        let came = setup.successes(b.recv_cq, 2).rule("TMR-08")?;
        let lengths: Vec<_> = came.iter().map(|wc| wc.byte_len).collect();
        check_eq!("TMR-08", lengths, [5, LEN], case);
        for (tag, at, len) in [(1, 4096, 5), (2, 0, LEN), (3, 8192, LEN)] {
            let landed = b.expect_data_at(b.landing() + at, tag, len, "TMR-08");
            in_case(&case, landed)?;
        }
    }
    Ok(())
}

scenario!(read_that_is_tried_again_asks_for_what_is_missing:
    "TMR-16", "TMR-19", "RDMA-23"; needs RDMA_READ, LAB);
/// Two reads of three packets each: the second is asked for again if something of the first is
/// missing.
fn read_that_is_tried_again_asks_for_what_is_missing(setup: &Setup<'_>) -> Result {
    const LEN: u32 = 3 * 256 - 3;
    for lost in 0..6 {
        // All that shows one loss costs one retry.
        let Pair { a, b } = small(setup, 1)?;
        let start = setup.lab().now();
        setup.lab().tap();
        lose(setup, ANSWERS, u64::from(lost) + 1)?;
        let into = [0, 4096].map(|at| [a.sge(a.landing() + at, LEN)]);
        for (tag, at) in [(1, 0), (2, 4096)] {
            b.fill_at(at, tag, LEN)?;
        }
        let list = [
            SendWr::rdma_read(1, &into[0], b.mem.remote(0)),
            SendWr::rdma_read(2, &into[1], b.mem.remote(4096)),
        ];
        setup.post_send(a.qp, &list)?;
        let done = wr_ids(&setup.successes(a.send_cq, 2).rule("RDMA-23")?);
        check_eq!("RDMA-23", done, [1, 2], "the order of reads");
        let case = format!("response {lost} of 6 lost");
        in_case(&case, timed_out(setup, start, lost == 5))?;
        let (requests, responses): (Vec<_>, Vec<_>) = setup
            .packets()
            .into_iter()
            .partition(|packet| packet.opcode == PacketOpcode::RcReadRequest);
        let first = requests[0].psn;
        let places = |packets: &[PacketView]| -> Vec<u32> {
            let place = |packet: &PacketView| packet.psn.wrapping_sub(first) & 0x00ff_ffff;
            packets.iter().map(place).collect()
        };
        let again = if lost < 3 { vec![lost, 3] } else { vec![lost] };
        let expected = [&[0, 3][..], &again].concat();
        check_eq!("TMR-16", places(&requests), expected, case);
        let expected: Vec<_> = (0..6).chain(lost..6).collect();
        check_eq!("TMR-16", places(&responses), expected, case);
        for (tag, at) in [(1, 0), (2, 4096)] {
            let landed = a.expect_data_at(a.landing() + at, tag, LEN, "RDMA-23");
            in_case(&case, landed)?;
        }
    }
    Ok(())
}

scenario!(read_that_comes_again_leaves_a_longer_message_as_it_is:
    "TMR-09", "RDMA-23"; needs RDMA_READ, SEND_WITH_IMM, WRITE_WITH_IMM, LAB);
/// A read and a long message behind it. A response is lost, or the request comes once more, between
/// packets of the message.
fn read_that_comes_again_leaves_a_longer_message_as_it_is(setup: &Setup<'_>) -> Result {
    let request = PacketFilter::EVERY.opcode(PacketOpcode::RcReadRequest);
    let again = |micros| Fault::duplicate(request, Duration::from_micros(micros)).nth(1);
    let lost = |nth| Fault::drop(ANSWERS).nth(nth);
    let faults = [lost(1), lost(2), lost(3)];
    let faults = faults.into_iter().chain([0, 1, 2, 4, 8].map(again));
    for (nth, fault) in faults.enumerate() {
        for kind in [Kind::Write, Kind::Send, Kind::WriteImm, Kind::SendImm] {
            let pair = small(setup, 7)?;
            let fault = setup.lab().inject(fault.clone())?;
            in_case(
                &format!("{kind:?}, fault {nth}"),
                read_then(setup, &pair, kind),
            )?;
            setup.lab().remove(fault)?;
        }
    }
    Ok(())
}

/// A read of two packets and a message of this kind, of a hundred.
fn read_then(setup: &Setup<'_>, Pair { a, b }: &Pair<'_>, kind: Kind) -> Result {
    const READ: u32 = 2 * 256;
    const LEN: u32 = 100 * 256;
    a.fill(1, LEN)?;
    b.fill(2, READ)?;
    let (into, data) = ([a.sge(a.landing(), READ)], [a.sge(0, LEN)]);
    if kind.takes_a_receive() {
        b.recv(3, LEN)?;
    }
    let read = SendWr::rdma_read(1, &into, b.mem.remote(0));
    setup.post_send(a.qp, &[read, kind.work(a, 2, &data)])?;
    let done = wr_ids(&setup.successes(a.send_cq, 2).rule("TMR-09")?);
    check_eq!("TMR-09", done, [1, 2], "the order of work");
    if kind.takes_a_receive() {
        let wc = setup.successes(b.recv_cq, 1).rule("TMR-09")?[0];
        check_eq!("TMR-09", (wc.wr_id, wc.byte_len), (3, LEN));
    }
    setup.no_completion(b.recv_cq, "TMR-09")?;
    a.expect_data(2, READ, "RDMA-23")?;
    b.expect_data(1, LEN, "TMR-09")
}

scenario!(each_lost_response_is_noticed_by_the_next: "TMR-19", "RDMA-23"; needs RDMA_READ, LAB);
/// The second of five responses is lost, and the fourth when they come again.
fn each_lost_response_is_noticed_by_the_next(setup: &Setup<'_>) -> Result {
    const LEN: u32 = 5 * 256;
    let Pair { a, b } = small(setup, 7)?;
    let start = setup.lab().now();
    setup.lab().inject(Fault::drop(ANSWERS).these([2, 8]))?;
    b.fill(1, LEN)?;
    a.read(1, LEN)?;
    setup.successes(a.send_cq, 1).rule("TMR-19")?;
    timed_out(setup, start, false)?;
    a.expect_data(1, LEN, "RDMA-23")
}

scenario!(no_more_than_half_of_all_numbers_are_under_way: "TMR-21"; needs RDMA_READ, LAB);
/// Two unanswered reads, of one packet, and of as many as there is room for, or one more.
fn no_more_than_half_of_all_numbers_are_under_way(setup: &Setup<'_>) -> Result {
    const MOST: u32 = 1 << 31;
    for (length, leaves) in [(MOST, false), (MOST - 256, true)] {
        let a = small(setup, 7)?.a;
        setup.lab().tap();
        setup.packets();
        let lost = setup.lab().inject(Fault::drop(REQUESTS))?;
        a.read(1, 8)?;
        a.read(2, length)?;
        setup.lab().advance(Duration::from_micros(100))?;
        let expected: &[u32] = if leaves { &[0, 1] } else { &[0] };
        check_eq!(
            "TMR-21",
            requests(setup),
            expected,
            format!("{length} bytes")
        );
        setup.to_err(a.qp)?;
        setup.lab().remove(lost)?;
    }
    Ok(())
}

scenario!(acknowledgement_starts_the_timeout_anew: "TMR-17"; needs LAB);
/// There is always something under way, for several times the time-out, and nothing for as long as
/// it.
fn acknowledgement_starts_the_timeout_anew(setup: &Setup<'_>) -> Result {
    const COUNT: u64 = 8;
    let a = small(setup, 7)?.a;
    setup.lab().tap();
    delay_answers(setup, MOST)?;
    for wr_id in 0..COUNT {
        a.write(wr_id, 8)?;
        setup.lab().advance(HALF)?;
    }
    setup.successes(a.send_cq, COUNT as usize).rule("TMR-17")?;
    let each: Vec<_> = (0..COUNT as u32).collect();
    check_eq!("TMR-17", requests(setup), each, "what left");
    Ok(())
}

scenario!(response_starts_the_timeout_anew: "TMR-17"; needs RDMA_READ, LAB);
/// The responses of one read come one by one, and take several times the time-out.
fn response_starts_the_timeout_anew(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = small(setup, 7)?;
    setup.lab().tap();
    for nth in 1..=4 {
        let late = Fault::delay(ANSWERS, MOST * nth).nth(nth.into());
        setup.lab().inject(late)?;
    }
    b.fill(5, 1024)?;
    a.read(1, 1024)?;
    setup.successes(a.send_cq, 1).rule("TMR-17")?;
    check_eq!("TMR-17", requests(setup), [0], "requests");
    a.expect_data(5, 1024, "TMR-17")
}

scenario!(timeout_of_done_work_is_over: "TMR-17", "TMR-01"; needs LAB);
/// A write is acknowledged in time. One that is posted then is lost, and has all of its own time.
fn timeout_of_done_work_is_over(setup: &Setup<'_>) -> Result {
    let a = small(setup, 7)?.a;
    setup.lab().tap();
    delay_answers(setup, MOST)?;
    lose(setup, REQUESTS, 2)?;
    a.write(1, 8)?;
    setup.lab().advance(MOST + Duration::from_micros(100))?;
    a.write(2, 8)?;
    setup.successes(a.send_cq, 2).rule("TMR-17")?;
    let packets = packets_of(setup, PacketClass::Request);
    let places: Vec<_> = packets.iter().map(|(place, _)| *place).collect();
    check_eq!("TMR-17", places, [0, 1, 1], "what left");
    waited("TMR-01", packets[2].1 - packets[1].1)
}

scenario!(what_leaves_again_has_all_of_the_timeout: "TMR-17"; needs LAB);
/// The NAK for the first of two writes comes late, and the answers to what leaves again do, too.
fn what_leaves_again_has_all_of_the_timeout(setup: &Setup<'_>) -> Result {
    let a = small(setup, 1)?.a;
    setup.lab().tap();
    delay_answers(setup, MOST)?;
    lose(setup, REQUESTS, 1)?;
    let data = [a.sge(0, 8)];
    let list = [1, 2].map(|wr_id| SendWr::rdma_write(wr_id, &data, a.remote()));
    setup.post_send(a.qp, &list)?;
    setup.successes(a.send_cq, 2).rule("TMR-17")?;
    check_eq!("TMR-17", requests(setup), [0, 1, 0, 1], "what left");
    Ok(())
}

scenario!(timeout_counts_from_the_acknowledgement_before: "TMR-17"; needs LAB);
/// Two writes are under way. The second is lost; the first is acknowledged later.
fn timeout_counts_from_the_acknowledgement_before(setup: &Setup<'_>) -> Result {
    let a = small(setup, 7)?.a;
    setup.lab().tap();
    delay_answers(setup, MOST)?;
    lose(setup, REQUESTS, 2)?;
    a.write(1, 8)?;
    setup.lab().advance(Duration::from_micros(100))?;
    a.write(2, 8)?;
    setup.successes(a.send_cq, 2).rule("TMR-17")?;
    let packets = packets_of(setup, PacketClass::Request);
    let places: Vec<_> = packets.iter().map(|(place, _)| *place).collect();
    check_eq!("TMR-17", places, [0, 1, 1], "what left");
    waited("TMR-17", packets[2].1 - (packets[0].1 + MOST))
}

/// As long as the time-out, or up to four times that (TMR-02).
fn waited(rule: &'static str, waited: Duration) -> Result {
    let expected = format!("{TIMEOUT:?} to four times that");
    let good = (TIMEOUT..=TIMEOUT * 4).contains(&waited);
    check!(rule, good, expected, "{waited:?}");
    Ok(())
}

scenario!(later_posts_do_not_put_off_the_timeout: "TMR-17", "TMR-03"; needs LAB);
/// No answer ever comes, and there is more work in each half of the time-out.
fn later_posts_do_not_put_off_the_timeout(setup: &Setup<'_>) -> Result {
    let a = small(setup, 1)?.a;
    setup.lab().inject(Fault::drop(REQUESTS))?;
    let mut halves = 0;
    while setup.state(a.qp)? == QpState::Rts && halves < 40 {
        a.write(halves, 8)?;
        setup.lab().advance(HALF)?;
        halves += 1;
    }
    // Two waits, each of up to four times as long.
    let expected = "a failure after 4 to 16 halves";
    check!("TMR-17", (4..=16).contains(&halves), expected, "{halves}");
    let wc = setup.one_with(a.send_cq, WcStatus::RetryExcErr, "TMR-03")?;
    check_eq!("TMR-03", wc.wr_id, 0, "the oldest fails");
    Ok(())
}

scenario!(retries_count_from_the_last_progress: "TMR-05", "TMR-03"; needs LAB);
/// Each write is lost twice, as often as it can be; the last one always.
fn retries_count_from_the_last_progress(setup: &Setup<'_>) -> Result {
    let a = small(setup, 2)?.a;
    setup.lab().tap();
    let data = [a.sge(0, 8)];
    for wr_id in 0..4 {
        let lost = Fault::drop(REQUESTS).first(2);
        let lost = setup.lab().inject(lost)?;
        a.post(SendWr::rdma_write(wr_id, &data, a.remote()))?;
        let done = setup.one_with(a.send_cq, WcStatus::Success, "TMR-05");
        in_case(&format!("write {wr_id}"), done.map(drop))?;
        check_eq!("TMR-05", setup.lab().remove(lost)?, 2, "packets lost");
    }
    requests(setup);
    setup.lab().inject(Fault::drop(REQUESTS))?;
    a.write(9, 8)?;
    setup.one_with(a.send_cq, WcStatus::RetryExcErr, "TMR-03")?;
    let tries = requests(setup);
    check_eq!("TMR-03", tries, [0, 0, 0], "attempts of the last");
    Ok(())
}

scenario!(late_acknowledgement_of_what_left_again_is_taken: "TMR-16", "TMR-09"; needs LAB);
/// Answers take longer than the time-out: the first to come acknowledges; what it acknowledges is
/// done.
fn late_acknowledgement_of_what_left_again_is_taken(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = small(setup, 7)?;
    delay_answers(setup, TIMEOUT + MOST)?;
    for wr_id in 0..3 {
        b.recv(wr_id, 700)?;
        a.fill(wr_id as u8, 700)?;
        a.send(wr_id, 700)?;
        let done = wr_ids(&setup.successes(a.send_cq, 1).rule("TMR-16")?);
        check_eq!("TMR-16", done, [wr_id]);
        let came = wr_ids(&setup.successes(b.recv_cq, 1).rule("TMR-09")?);
        check_eq!("TMR-09", came, [wr_id]);
        b.expect_data(wr_id as u8, 700, "TMR-09")?;
    }
    for cq in [a.send_cq, b.recv_cq] {
        setup.no_completion(cq, "TMR-09")?;
    }
    Ok(())
}

scenario!(sequence_error_is_answered_once: "TMR-18"; needs LAB);
/// The first of six is lost: five come too early.
fn sequence_error_is_answered_once(setup: &Setup<'_>) -> Result {
    const RULE: &str = "TMR-18";
    let a = small(setup, 7)?.a;
    for round in 0..2 {
        setup.lab().tap();
        lose(setup, REQUESTS, 1)?;
        let data = [a.sge(0, 8)];
        let list = [0, 1, 2, 3, 4, 5].map(|wr_id| SendWr::rdma_write(wr_id, &data, a.remote()));
        setup.post_send(a.qp, &list)?;
        setup.successes(a.send_cq, 6).rule(RULE)?;
        let packets = setup.packets();
        let first = packets.first().map_or(0, |packet| packet.psn);
        let is_nak = |packet: &&PacketView| packet.syndrome == Some(Syndrome::NakPsnSequence);
        let naks: Vec<_> = packets.iter().filter(is_nak).map(|nak| nak.psn).collect();
        check_eq!(RULE, naks, [first], format!("the NAKs of loss {round}"));
        let is_answer = |packet: &&PacketView| packet.opcode == PacketOpcode::RcAcknowledge;
        let answers = packets.iter().filter(is_answer).count();
        check_eq!(RULE, answers, 7, "the NAK, and an acknowledgement of each");
    }
    Ok(())
}

scenario!(answers_that_come_again_late_mean_nothing: "TMR-09", "RDMA-23"; needs RDMA_READ, LAB);
/// Those to a write and a read come a second time while the next write and read are under way,
/// which are lost at first.
fn answers_that_come_again_late_mean_nothing(setup: &Setup<'_>) -> Result {
    const RULE: &str = "TMR-09";
    const LATE: Duration = Duration::from_micros(100);
    for (first, second) in [(false, false), (true, true), (true, false), (false, true)] {
        let Pair { a, b } = small(setup, 7)?;
        let work = |wr_id, is_read| {
            if is_read {
                a.read(wr_id, 600)
            } else {
                a.write(wr_id, 600)
            }
        };
        let ends = |is_read| if is_read { (b, a) } else { (a, b) };
        let again = setup.lab().inject(Fault::duplicate(ANSWERS, LATE))?;
        ends(first).0.fill(1, 600)?;
        work(1, first)?;
        setup.successes(a.send_cq, 1)?;
        setup.lab().remove(again)?;
        setup.lab().inject(Fault::drop(REQUESTS).first(3))?;
        let (from, to) = ends(second);
        from.fill(2, 600)?;
        work(2, second)?;
        setup.lab().advance(LATE * 2)?;
        let early = setup.drain(a.send_cq)?;
        check!(RULE, early.is_empty(), "no completion yet", "{early:?}");
        let done = wr_ids(&setup.successes(a.send_cq, 1).rule(RULE)?);
        check_eq!(RULE, done, [2]);
        to.expect_data(2, 600, "RDMA-23")?;
        setup.no_completion(a.send_cq, RULE)?;
    }
    Ok(())
}

scenario!(peer_is_one_queue_pair_of_one_port: "TMR-20"; needs MODIFY_CONNECT, LAB);
/// Another of its own device sends to a queue pair that is connected with side A.
fn peer_is_one_queue_pair_of_one_port(setup: &Setup<'_>) -> Result {
    const RULE: &str = "TMR-20";
    let pair = small(setup, 7)?;
    let b = pair.b;
    let stranger = setup.end(b.context, PairOptions::default())?;
    let rc = RcParams {
        timeout: CODE,
        retry_cnt: 1,
        ..RcParams::default()
    };
    setup.climb(&stranger, &b, rc, QpState::Rts)?;
    b.recv(1, 8)?;
    let data = [stranger.sge(0, 8)];
    setup.post_send(stranger.qp, &[SendWr::send(2, &data)])?;
    setup.one_with(stranger.send_cq, WcStatus::RetryExcErr, RULE)?;
    setup.no_completion(b.recv_cq, RULE)?;
    pair.a.send(3, 8)?;
    let came = wr_ids(&setup.successes(b.recv_cq, 1).rule(RULE)?);
    check_eq!(RULE, came, [1], "the receive, for the peer");
    Ok(())
}
