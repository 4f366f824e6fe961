//! Timers, retries and sequence numbers of reliable connections.

mod again;
mod window;

use std::time::Duration;

use verbs_api::lab::{Fault, PacketClass, PacketFilter, PacketOpcode, When};
use verbs_api::{Mtu, QpType, RcParams, SendWr, Wc, WcFlags, WcStatus};

use crate::end::gives_up_soon;
use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::{OfRule, Pair, PairOptions, Result, Scenario, Setup, wr_ids};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    silent_peer_costs_all_retries_and_their_time,
    seven_retries_are_seven,
    progress_restores_the_retries,
    receiver_asks_for_the_wait_of_its_code,
    loss_of_any_packet_costs_nothing_but_time,
    packets_that_come_twice_are_executed_once,
    damaged_packets_are_as_good_as_lost,
    other_partition_is_not_heard,
    datagram_of_another_partition_is_not_heard,
    without_a_timeout_work_waits_for_the_end_of_the_queue_pair,
    waiting_for_a_receive_uses_up_no_retries,
    sequence_numbers_wrap_around,
    loss_is_noticed_around_the_wrap,
    other_sequence_numbers_are_not_taken,
    again::what_leaves_again_starts_at_the_first_that_is_missing,
    again::read_that_is_tried_again_asks_for_what_is_missing,
    again::acknowledgement_starts_the_timeout_anew,
    again::response_starts_the_timeout_anew,
    again::timeout_of_done_work_is_over,
    again::what_leaves_again_has_all_of_the_timeout,
    again::timeout_counts_from_the_acknowledgement_before,
    again::later_posts_do_not_put_off_the_timeout,
    again::retries_count_from_the_last_progress,
    again::late_acknowledgement_of_what_left_again_is_taken,
    again::sequence_error_is_answered_once,
    again::answers_that_come_again_late_mean_nothing,
    again::peer_is_one_queue_pair_of_one_port,
    again::each_lost_response_is_noticed_by_the_next,
    again::read_that_comes_again_leaves_a_longer_message_as_it_is,
    again::no_more_than_half_of_all_numbers_are_under_way,
    window::answer_counts_the_requests_that_are_completed,
    window::long_message_is_acknowledged_on_its_way,
    numbers_further_back_than_any_are_not_taken,
];

fn with<'b>(setup: &'b Setup<'_>, rc: RcParams) -> Result<Pair<'b>> {
    setup.pair(PairOptions {
        rc,
        ..PairOptions::default()
    })
}

/// The times at which sends of one packet left, since the tap was last read.
fn times_of_sends(setup: &Setup<'_>) -> Vec<Duration> {
    let tapped = setup.lab().tapped();
    let is_send = |opcode| opcode == PacketOpcode::RcSendOnly;
    let sends = tapped.iter().filter(|seen| is_send(seen.packet.opcode));
    sends.map(|seen| seen.at).collect()
}

scenario!(silent_peer_costs_all_retries_and_their_time: "TMR-01", "TMR-02", "TMR-03"; needs LAB);
fn silent_peer_costs_all_retries_and_their_time(setup: &Setup<'_>) -> Result {
    for retry_cnt in [0, 1, 6] {
        for timeout in [1, 8, 14, 18] {
            let rc = RcParams {
                timeout,
                retry_cnt,
                ..RcParams::default()
            };
            let Pair { a, b } = with(setup, rc)?;
            setup.destroy_qp(b.qp, setup.wait())?;
            setup.lab().tap();
            a.send(1, 8)?;
            setup.one_with(a.send_cq, WcStatus::RetryExcErr, "TMR-03")?;
            let end = setup.lab().now();
            let mut times = times_of_sends(setup);
            let case = format!("timeout {timeout}, {retry_cnt} retries");
            let tries = usize::from(retry_cnt) + 1;
            in_case(&case, as_many(&times, tries))?;
            times.push(end);
            let least = Duration::from_nanos(4096 << timeout);
            for pair in times.windows(2) {
                let waited = pair[1] - pair[0];
                check!(
                    ["TMR-01", "TMR-02"],
                    (least..=least * 4).contains(&waited),
                    format!("{least:?} to four times that"),
                    "{waited:?} ({case})"
                );
            }
        }
    }
    Ok(())
}

fn as_many(times: &[Duration], tries: usize) -> Result {
    check_eq!("TMR-03", times.len(), tries, "attempts");
    Ok(())
}

scenario!(seven_retries_are_seven: "TMR-04"; needs MODIFY_CONNECT);
fn seven_retries_are_seven(setup: &Setup<'_>) -> Result {
    let rc = RcParams {
        timeout: 8,
        retry_cnt: 7,
        ..RcParams::default()
    };
    let Pair { a, b } = with(setup, rc)?;
    setup.to_reset(b.qp)?;
    a.send(1, 8)?;
    let expected = "a completion with RETRY_EXC_ERR";
    let wc = match setup.verbs().lab() {
        // The simulator would not come to rest while retries go on.
        Some(lab) => {
            lab.advance(Duration::from_secs(1))?;
            setup.drain(a.send_cq)?.first().copied()
        }
        None => Some(setup.one(a.send_cq).rule("TMR-04")?),
    };
    match wc {
        Some(wc) => check_eq!("TMR-04", wc.status, WcStatus::RetryExcErr),
        None => check!("TMR-04", false, expected, "completions: none"),
    }
    Ok(())
}

scenario!(progress_restores_the_retries: "TMR-05"; needs LAB);
fn progress_restores_the_retries(setup: &Setup<'_>) -> Result {
    let rc = RcParams {
        retry_cnt: 1,
        timeout: 8,
        ..RcParams::default()
    };
    let Pair { a, b } = with(setup, rc)?;
    for wr_id in 0..5 {
        let lost = setup
            .lab()
            .inject(Fault::drop(PacketFilter::EVERY.dest_qpn(b.qp_num)).nth(1))?;
        a.write(wr_id, 8)?;
        let done = setup.one_with(a.send_cq, WcStatus::Success, "TMR-05");
        in_case(&format!("write {wr_id}"), done.map(drop))?;
        let lost = setup.lab().remove(lost)?;
        check_eq!("TMR-05", lost, 1, "packets lost");
    }
    Ok(())
}

/// Waits by their code, in units of 10 us.
const RNR_WAITS: [u64; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

scenario!(receiver_asks_for_the_wait_of_its_code: "TMR-06", "RNR-05"; needs RNR, LAB);
fn receiver_asks_for_the_wait_of_its_code(setup: &Setup<'_>) -> Result {
    for (code, units) in (0..).zip(RNR_WAITS) {
        let rc = RcParams {
            // The time-out must not be in the way of the longest wait.
            timeout: 0,
            rnr_retry: 1,
            min_rnr_timer: code,
            ..RcParams::default()
        };
        let a = with(setup, rc)?.a;
        setup.lab().tap();
        a.send(1, 8)?;
        setup.one_with(a.send_cq, WcStatus::RnrRetryExcErr, "TMR-06")?;
        let times = times_of_sends(setup);
        check_eq!("TMR-06", times.len(), 2, "attempts");
        let (waited, least) = (times[1] - times[0], Duration::from_micros(10 * units));
        // No other code is so near; the way there and back counts too.
        let most = least + least / 5 + Duration::from_micros(4);
        let expected = format!("{least:?} for code {code}");
        check!("RNR-05", waited >= least, expected.as_str(), "{waited:?}");
        check!("TMR-06", waited <= most, expected, "{waited:?}");
    }
    Ok(())
}

/// Bytes of the messages here: three packets each.
const LEN: u32 = 3 * 256 - 5;

/// A send, a write, a write with immediate and a read, and what both sides see of them, under
/// `fault`.
fn program(setup: &Setup<'_>, fault: Option<Fault>) -> Result<(Seen, Packets)> {
    let rc = RcParams {
        path_mtu: Mtu::Mtu256,
        timeout: 8,
        ..RcParams::default()
    };
    let Pair { a, b } = with(setup, rc)?;
    setup.lab().tap();
    let fault = fault.map(|fault| setup.lab().inject(fault)).transpose()?;
    a.fill(1, LEN)?;
    b.fill(2, LEN)?;
    for (wr_id, offset) in (0..).zip([8192, 12288, 16384]) {
        b.recv_at(wr_id, offset, LEN)?;
    }
    let (data, into) = ([a.sge(0, LEN)], [a.sge(a.landing(), LEN)]);
    let to = |offset| b.mem.remote(b.landing() + offset);
    let list = [
        SendWr::send(10, &data),
        SendWr::rdma_write(11, &data, to(0)),
        SendWr::rdma_write_with_imm(12, &data, to(4096), [7; 4]),
        SendWr::rdma_read(13, &into, b.mem.remote(0)),
        SendWr::send(14, &data),
    ];
    setup.post_send(a.qp, &list)?;
    let sent = setup.poll_all(a.send_cq)?;
    let received = setup.poll_all(b.recv_cq)?;
    let packets = Packets {
        sent: setup.lab().tapped().len() as u64,
        fired: fault.map_or(Ok(0), |fault| setup.lab().remove(fault))?,
    };
    let plain = |wcs: Vec<Wc>| -> Vec<Wc> { wcs.into_iter().map(meaningful).collect() };
    let seen = Seen {
        sent: plain(sent),
        received: plain(received),
        read: a.bytes(a.landing(), 2 * LEN as usize)?,
        written: b.bytes(0, b.mem.length as usize)?,
    };
    Ok((seen, packets))
}

/// Without the number of the queue pair, and what means nothing for a connected one.
fn meaningful(wc: Wc) -> Wc {
    let mut meaningful = Wc::default();
    meaningful.wr_id = wc.wr_id;
    meaningful.status = wc.status;
    meaningful.opcode = wc.opcode;
    meaningful.byte_len = wc.byte_len;
    meaningful.wc_flags = wc.wc_flags;
    if wc.wc_flags.contains(WcFlags::WITH_IMM) {
        meaningful.imm_data = wc.imm_data;
    }
    meaningful
}

struct Packets {
    sent: u64,
    fired: u64,
}

#[derive(PartialEq)]
struct Seen {
    sent: Vec<Wc>,
    received: Vec<Wc>,
    read: Vec<u8>,
    written: Vec<u8>,
}

/// Each packet in turn gets this fault, then all of them do, if `all`: what can be seen is the
/// same as without.
fn each_packet(
    setup: &Setup<'_>,
    rule: &'static str,
    fault: impl Fn(When) -> Fault,
    all: bool,
) -> Result {
    let (expected, packets) = program(setup, None)?;
    check_eq!(rule, wr_ids(&expected.sent), [10, 11, 12, 13, 14]);
    let each = (1..=packets.sent).map(When::Nth);
    for when in each.chain(all.then_some(When::Always)) {
        let case = format!("{when:?} of {} packets", packets.sent);
        let (seen, packets) = program(setup, Some(fault(when)))?;
        check!(rule, packets.fired > 0, "a rule fired", "none ({case})");
        in_case(&case, same(&seen, &expected)).rule(rule)?;
    }
    Ok(())
}

scenario!(loss_of_any_packet_costs_nothing_but_time:
    "TMR-08", "TMR-09", "RDMA-23", "RDMA-24"; needs WRITE_WITH_IMM, RDMA_READ, LAB);
fn loss_of_any_packet_costs_nothing_but_time(setup: &Setup<'_>) -> Result {
    let packets = PacketFilter::EVERY;
    each_packet(setup, "TMR-08", |when| Fault::drop(packets).at(when), false)
}

scenario!(packets_that_come_twice_are_executed_once:
    "TMR-09", "RDMA-24", "RDMA-23", "TMR-08"; needs WRITE_WITH_IMM, RDMA_READ, LAB);
fn packets_that_come_twice_are_executed_once(setup: &Setup<'_>) -> Result {
    let packets = PacketFilter::EVERY;
    let twice = |when| Fault::duplicate(packets, Duration::ZERO).at(when);
    each_packet(setup, "TMR-09", twice, true)
}

scenario!(damaged_packets_are_as_good_as_lost:
    "TMR-12", "RDMA-23", "RDMA-24", "TMR-08", "TMR-09"; needs WRITE_WITH_IMM, RDMA_READ, LAB);
fn damaged_packets_are_as_good_as_lost(setup: &Setup<'_>) -> Result {
    let packets = PacketFilter::EVERY;
    let damage = |when| Fault::corrupt(packets).at(when);
    each_packet(setup, "TMR-12", damage, false)?;
    // Nothing of a damaged datagram or message gets through, however often it is sent.
    let rc = RcParams {
        timeout: 8,
        retry_cnt: 2,
        ..RcParams::default()
    };
    let Pair { a, b } = with(setup, rc)?;
    b.recv(1, 8)?;
    setup.lab().inject(damage(When::Always))?;
    a.send(2, 8)?;
    setup.one_with(a.send_cq, WcStatus::RetryExcErr, "TMR-12")?;
    setup.no_completion(b.recv_cq, "TMR-12")
}

/// P_Keys of two partitions, and whether packets pass between them.
const PARTITIONS: [(u16, u16, bool); 6] = [
    (0x8001, 0x8001, true),
    (0x8001, 0x0001, true),
    (0x0001, 0x0001, false),
    (0x8001, 0x8002, false),
    (0x8001, 0xffff, false),
    // No partition at all.
    (0x8000, 0x8000, false),
];

/// Puts these P_Keys at the index of both sides that the setup's queue pairs use.
fn set_pkeys(setup: &Setup<'_>, of_a: u16, of_b: u16) -> Result {
    for (side, pkey) in [(setup.ctx_a(), of_a), (setup.ctx_b(), of_b)] {
        setup.lab().set_pkey(side, setup.port(), 0, pkey)?;
    }
    Ok(())
}

scenario!(other_partition_is_not_heard: "TMR-15"; needs LAB);
fn other_partition_is_not_heard(setup: &Setup<'_>) -> Result {
    const RULE: &str = "TMR-15";
    for (of_a, of_b, pass) in PARTITIONS {
        set_pkeys(setup, of_a, of_b)?;
        let rc = gives_up_soon();
        let Pair { a, b } = with(setup, rc)?;
        b.recv(1, 8)?;
        a.send(2, 8)?;
        let case = format!("P_Keys {of_a:#06x} and {of_b:#06x}");
        let status = if pass {
            WcStatus::Success
        } else {
            WcStatus::RetryExcErr
        };
        in_case(&case, setup.one_with(a.send_cq, status, RULE).map(drop))?;
        let arrived = setup.poll_all(b.recv_cq)?.len();
        check_eq!(RULE, arrived, usize::from(pass), case);
    }
    Ok(())
}

scenario!(datagram_of_another_partition_is_not_heard: "TMR-15"; needs UD, LAB);
fn datagram_of_another_partition_is_not_heard(setup: &Setup<'_>) -> Result {
    const RULE: &str = "TMR-15";
    for (of_a, of_b, pass) in PARTITIONS {
        set_pkeys(setup, of_a, of_b)?;
        let Pair { a, b } = setup.pair(PairOptions::of(QpType::Ud))?;
        let before = setup.query_port(b.context, setup.port())?.bad_pkey_cntr;
        b.recv(1, 8)?;
        a.send(2, 8)?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        let arrived = setup.poll_all(b.recv_cq)?.len();
        let after = setup.query_port(b.context, setup.port())?.bad_pkey_cntr;
        let seen = (arrived == 1, after - before);
        check_eq!(
            RULE,
            seen,
            (pass, u32::from(!pass)),
            "arrived, and violations"
        );
    }
    Ok(())
}

fn same(seen: &Seen, expected: &Seen) -> Result {
    check_eq!("RDMA-24", seen.sent, expected.sent, "completions of sends");
    check_eq!(
        "TMR-09",
        seen.received,
        expected.received,
        "those of receives"
    );
    check!(
        "RDMA-23",
        seen.read == expected.read,
        "the same data read",
        "other data"
    );
    check!("TMR-08", *seen == *expected, "the same data", "other data");
    Ok(())
}

scenario!(without_a_timeout_work_waits_for_the_end_of_the_queue_pair:
    "TMR-10", "TMR-01"; needs MODIFY_CONNECT);
fn without_a_timeout_work_waits_for_the_end_of_the_queue_pair(setup: &Setup<'_>) -> Result {
    const RULE: &str = "TMR-10";
    let rc = RcParams {
        timeout: 0,
        retry_cnt: 1,
        ..RcParams::default()
    };
    let Pair { a, b } = with(setup, rc)?;
    setup.to_reset(b.qp)?;
    a.send(1, 8)?;
    setup.no_completion_meanwhile(a.send_cq, [RULE, "TMR-01"])?;
    setup.to_err(a.qp)?;
    let wc = setup.one_with(a.send_cq, WcStatus::WrFlushErr, RULE)?;
    check_eq!(RULE, wc.wr_id, 1);
    setup.no_completion(a.send_cq, RULE)
}

scenario!(waiting_for_a_receive_uses_up_no_retries: "TMR-11"; needs RNR);
fn waiting_for_a_receive_uses_up_no_retries(setup: &Setup<'_>) -> Result {
    let rc = RcParams {
        retry_cnt: 0,
        rnr_retry: 7,
        min_rnr_timer: 1,
        ..RcParams::default()
    };
    let Pair { a, b } = with(setup, rc)?;
    a.send(1, 8)?;
    setup.no_completion_meanwhile(a.send_cq, "TMR-11")?;
    b.recv(1, 8)?;
    setup
        .one_with(a.send_cq, WcStatus::Success, "TMR-11")
        .map(drop)
}

scenario!(sequence_numbers_wrap_around: "TMR-13"; needs MODIFY_CONNECT, RDMA_READ);
fn sequence_numbers_wrap_around(setup: &Setup<'_>) -> Result {
    const RULE: &str = "TMR-13";
    const LEN: u32 = 20_000;
    for psn in [0x00ff_fffe, 0x00ff_ffff, 0x007f_fffe] {
        let rc = RcParams {
            path_mtu: Mtu::Mtu256,
            psn_a: psn,
            psn_b: psn - 3,
            ..RcParams::default()
        };
        let Pair { a, b } = with(setup, rc)?;
        for (from, to) in [(&a, &b), (&b, &a)] {
            from.fill(3, LEN)?;
            to.fill_at(to.landing(), 0, LEN)?;
            from.write(1, LEN)?;
            to.recv_at(2, 0, 8)?;
            from.send(3, 8)?;
            setup.successes(from.send_cq, 2).rule(RULE)?;
            setup.successes(to.recv_cq, 1).rule(RULE)?;
            to.expect_data(3, LEN, RULE)?;
            to.fill(4, LEN)?;
            from.read(4, LEN)?;
            setup.successes(from.send_cq, 1).rule(RULE)?;
            from.expect_data(4, LEN, RULE)?;
        }
    }
    Ok(())
}

scenario!(loss_is_noticed_around_the_wrap: "TMR-13"; needs MODIFY_CONNECT, LAB);
/// No time-out runs: what comes behind the packet that is lost must be seen to be behind it.
fn loss_is_noticed_around_the_wrap(setup: &Setup<'_>) -> Result {
    const RULE: &str = "TMR-13";
    const PACKETS: u64 = 8;
    const LEN: u32 = 256 * PACKETS as u32;
    for lost in 1..PACKETS {
        let rc = RcParams {
            path_mtu: Mtu::Mtu256,
            timeout: 0,
            psn_a: 0x00ff_fffd,
            ..RcParams::default()
        };
        let Pair { a, b } = with(setup, rc)?;
        a.fill(3, LEN)?;
        let requests = PacketFilter::EVERY.class(PacketClass::Request);
        setup.lab().inject(Fault::drop(requests).nth(lost))?;
        b.recv(1, LEN)?;
        a.send(2, LEN)?;
        let case = format!("packet {lost} of {PACKETS} is lost");
        for cq in [b.recv_cq, a.send_cq] {
            let done = setup.one_with(cq, WcStatus::Success, RULE);
            in_case(&case, done.map(drop))?;
        }
        in_case(&case, b.expect_data(3, LEN, RULE))?;
    }
    Ok(())
}

scenario!(other_sequence_numbers_are_not_taken: "TMR-14"; needs MODIFY_CONNECT);
fn other_sequence_numbers_are_not_taken(setup: &Setup<'_>) -> Result {
    const RULE: &str = "TMR-14";
    for off in [1, 1 << 23, 0x00ff_ffff] {
        let options = PairOptions::default();
        let [a, b] = [setup.ctx_a(), setup.ctx_b()].map(|side| setup.end(side, options));
        let rc = gives_up_soon();
        let off_by = RcParams { psn_b: off, ..rc };
        let Pair { a, b } = setup.connect_each(a?, b?, rc, off_by)?;
        b.recv(1, 8)?;
        a.send(2, 8)?;
        let case = format!("off by {off:#x}");
        value_in_case(
            &case,
            setup.one_with(a.send_cq, WcStatus::RetryExcErr, RULE),
        )?;
        in_case(&case, setup.no_completion(b.recv_cq, RULE))?;
    }
    Ok(())
}

scenario!(numbers_further_back_than_any_are_not_taken:
    "TMR-14"; needs RDMA_READ, MODIFY_CONNECT, LAB);
/// A sender that is reset alone begins further back than its peer has ever counted: what it sends
/// is no message that comes again.
fn numbers_further_back_than_any_are_not_taken(setup: &Setup<'_>) -> Result {
    const RULE: &str = "TMR-14";
    let rc = RcParams {
        timeout: 8,
        retry_cnt: 1,
        psn_a: 1000,
        ..RcParams::default()
    };
    for back in [4, 500] {
        let Pair { a, b } = with(setup, rc)?;
        for wr_id in 0..3 {
            b.recv(wr_id, 8)?;
            a.send(wr_id, 8)?;
        }
        setup.successes(a.send_cq, 3)?;
        setup.successes(b.recv_cq, 3)?;
        setup.to_reset(a.qp)?;
        let behind = RcParams {
            psn_a: 1003 - back,
            ..rc
        };
        setup.climb(&a, &b, behind, verbs_api::QpState::Rts)?;
        // One that comes again is answered with its own numbers.
        a.read(9, 8)?;
        let failed = setup.one_with(a.send_cq, WcStatus::RetryExcErr, RULE);
        value_in_case(&format!("{back} back"), failed)?;
        setup.no_completion(b.recv_cq, RULE)?;
    }
    Ok(())
}
