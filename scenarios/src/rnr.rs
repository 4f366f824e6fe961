//! A receiver that is not ready: no receive is posted for what arrives.

use std::time::Duration;

use verbs_api::lab::{Fault, PacketClass, PacketFilter, PacketOpcode};
use verbs_api::{Mtu, QpState, RcParams, SendWr, WcOpcode, WcStatus};

use crate::failure::{check, check_eq, in_case};
use crate::{OfRule, Pair, PairOptions, Result, Scenario, Setup, wr_ids};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    send_without_a_receive_waits_for_one,
    write_with_immediate_without_a_receive_waits_for_one,
    retries_are_as_many_as_told,
    no_retry_fails_at_once,
    progress_restores_the_retries,
    work_behind_waits_too,
    waiting_requester_sends_nothing,
    wait_is_not_cut_short_by_the_timeout,
    answer_that_comes_in_the_wait_counts,
    lost_response_and_missing_receive_are_made_up_for,
    what_arrives_in_the_wait_does_not_leave_behind_it,
];

fn with<'b>(setup: &'b Setup<'_>, rc: RcParams) -> Result<Pair<'b>> {
    setup.pair(PairOptions {
        rc,
        ..PairOptions::default()
    })
}

/// Retries without a limit, one every 10 us.
fn endless<'b>(setup: &'b Setup<'_>) -> Result<Pair<'b>> {
    let rc = RcParams {
        rnr_retry: 7,
        min_rnr_timer: 1,
        ..RcParams::default()
    };
    with(setup, rc)
}

scenario!(send_without_a_receive_waits_for_one: "RNR-01", "RNR-02", "RNR-06"; needs RNR);
fn send_without_a_receive_waits_for_one(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = endless(setup)?;
    a.fill(3, 5000)?;
    a.send(1, 5000)?;
    setup.no_completion_meanwhile(a.send_cq, "RNR-02")?;
    setup.no_completion_meanwhile(b.recv_cq, "RNR-06")?;
    b.recv(2, 5000)?;
    let wc = setup.one_with(b.recv_cq, WcStatus::Success, "RNR-01")?;
    check_eq!("RNR-01", (wc.wr_id, wc.byte_len), (2, 5000));
    b.expect_data(3, 5000, "RNR-01")?;
    setup.one_with(a.send_cq, WcStatus::Success, "RNR-01")?;
    setup.no_completion(b.recv_cq, "RNR-06")?;
    setup.no_async_event(b.context, "RNR-06")
}

scenario!(write_with_immediate_without_a_receive_waits_for_one:
    "RNR-07", "RNR-01"; needs WRITE_WITH_IMM, RNR);
fn write_with_immediate_without_a_receive_waits_for_one(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = endless(setup)?;
    a.fill(3, 5000)?;
    a.write_imm(1, 5000, [9; 4])?;
    setup.no_completion_meanwhile(a.send_cq, "RNR-01")?;
    b.recv(2, 0)?;
    let wc = setup.one_with(b.recv_cq, WcStatus::Success, "RNR-07")?;
    check_eq!("RNR-07", wc.opcode, WcOpcode::RecvRdmaWithImm);
    b.expect_data(3, 5000, "RNR-07")?;
    setup
        .one_with(a.send_cq, WcStatus::Success, "RNR-07")
        .map(drop)
}

scenario!(retries_are_as_many_as_told: "RNR-03", "RNR-05"; needs RNR, LAB);
fn retries_are_as_many_as_told(setup: &Setup<'_>) -> Result {
    // The code, and the wait it asks for.
    let (min_rnr_timer, wait) = (16, Duration::from_micros(2560));
    for rnr_retry in [0, 1, 3, 6] {
        let rc = RcParams {
            rnr_retry,
            min_rnr_timer,
            ..RcParams::default()
        };
        let a = with(setup, rc)?.a;
        setup.lab().tap();
        a.send(1, 8)?;
        setup.one_with(a.send_cq, WcStatus::RnrRetryExcErr, "RNR-03")?;
        let tapped = setup.lab().tapped();
        let sent = tapped
            .iter()
            .filter(|seen| seen.packet.opcode == PacketOpcode::RcSendOnly);
        let times: Vec<_> = sent.map(|seen| seen.at).collect();
        check_eq!(
            "RNR-03",
            times.len(),
            usize::from(rnr_retry) + 1,
            "attempts"
        );
        for pair in times.windows(2) {
            let waited = pair[1] - pair[0];
            check!(
                "RNR-05",
                waited >= wait,
                format!("at least {wait:?}"),
                "{waited:?}"
            );
        }
    }
    Ok(())
}

scenario!(no_retry_fails_at_once: "RNR-03"; needs RNR);
fn no_retry_fails_at_once(setup: &Setup<'_>) -> Result {
    let rc = RcParams {
        rnr_retry: 0,
        // Ten retries would not be over in the time that the setup waits.
        min_rnr_timer: 0,
        ..RcParams::default()
    };
    let Pair { a, .. } = with(setup, rc)?;
    a.send(1, 8)?;
    setup.one_with(a.send_cq, WcStatus::RnrRetryExcErr, "RNR-03")?;
    setup
        .until("the requester is in error", || {
            Ok((setup.state(a.qp)? == QpState::Err).then_some(()))
        })
        .rule("RNR-03")
}

scenario!(progress_restores_the_retries: "RNR-04"; needs RNR, LAB);
fn progress_restores_the_retries(setup: &Setup<'_>) -> Result {
    let rc = RcParams {
        rnr_retry: 2,
        // 10.24 ms
        min_rnr_timer: 20,
        ..RcParams::default()
    };
    let Pair { a, b } = with(setup, rc)?;
    for wr_id in 0..5 {
        a.send(wr_id, 8)?;
        // Past the second try, and before the third, which is the last.
        setup.lab().advance(Duration::from_millis(15))?;
        b.recv(wr_id, 8)?;
        let done = setup.one_with(a.send_cq, WcStatus::Success, "RNR-04");
        in_case(&format!("message {wr_id}"), done.map(drop))?;
        setup.successes(b.recv_cq, 1)?;
    }
    Ok(())
}

scenario!(work_behind_waits_too: "RNR-08"; needs RDMA_READ, RNR);
fn work_behind_waits_too(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RNR-08";
    let Pair { a, b } = endless(setup)?;
    b.fill_at(b.landing(), 1, 8)?;
    a.fill(2, 8)?;
    let data = [a.sge(0, 8)];
    let into = [a.sge(a.landing(), 8)];
    let list = [
        SendWr::send(0, &data),
        SendWr::rdma_write(1, &data, a.remote()),
        SendWr::rdma_read(2, &into, a.remote()),
        SendWr::send(3, &data),
    ];
    setup.post_send(a.qp, &list)?;
    setup.no_completion_meanwhile(a.send_cq, RULE)?;
    b.expect_data_at(b.landing(), 1, 8, RULE)?;
    for wr_id in [0, 1] {
        b.recv_at(wr_id, 0, 8)?;
    }
    let done = setup.successes(a.send_cq, 4).rule(RULE)?;
    check_eq!(RULE, wr_ids(&done), [0, 1, 2, 3], "the order");
    setup.successes(b.recv_cq, 2)?;
    // The read is behind the write.
    a.expect_data(2, 8, RULE)
}

/// A wait of 10.24 ms, and a time-out of 1.05 ms.
fn long_wait<'b>(setup: &'b Setup<'_>, retry_cnt: u8) -> Result<Pair<'b>> {
    let rc = RcParams {
        rnr_retry: 7,
        min_rnr_timer: 20,
        timeout: 8,
        retry_cnt,
        ..RcParams::default()
    };
    with(setup, rc)
}

/// Requests since the tap was last read: how far their sequence numbers are from `first`.
fn requests(setup: &Setup<'_>, first: u32) -> Vec<u32> {
    let mut packets = setup.packets();
    packets.retain(|packet| PacketClass::Request.has(packet.opcode));
    let place = |psn: u32| psn.wrapping_sub(first) & 0x00ff_ffff;
    packets.iter().map(|packet| place(packet.psn)).collect()
}

/// The sequence number of the first request since the tap was last read.
fn first_request(setup: &Setup<'_>) -> u32 {
    let packets = setup.packets();
    packets.first().map_or(0, |packet| packet.psn)
}

scenario!(waiting_requester_sends_nothing: "RNR-09"; needs RNR, RDMA_READ, LAB);
/// This includes work that is posted during the wait. After the wait it begins with the refused
/// message.
fn waiting_requester_sends_nothing(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RNR-09";
    let Pair { a, b } = long_wait(setup, 0)?;
    setup.lab().tap();
    a.write(1, 8)?;
    a.send(2, 3000)?;
    setup.lab().advance(Duration::from_millis(1))?;
    let first = first_request(setup);
    a.send(3, 8)?;
    a.write(4, 8)?;
    a.read(5, 8)?;
    setup.lab().advance(Duration::from_millis(9))?;
    check_eq!(RULE, requests(setup, first).len(), 0, "sent in the wait");
    for wr_id in [1, 2] {
        b.recv(wr_id, 3000)?;
    }
    let done = wr_ids(&setup.successes(a.send_cq, 5).rule(RULE)?);
    check_eq!(RULE, done, [1, 2, 3, 4, 5], "the order of work");
    let sent = requests(setup, first);
    check_eq!(RULE, sent, [1, 2, 3, 4, 5, 6], "what left behind the wait");
    Ok(())
}

scenario!(wait_is_not_cut_short_by_the_timeout: "RNR-09", "TMR-11"; needs RNR, LAB);
/// The wait is ten times the time-out, and there are no retries.
fn wait_is_not_cut_short_by_the_timeout(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = long_wait(setup, 0)?;
    setup.lab().tap();
    a.write(1, 8)?;
    a.send(2, 8)?;
    setup.lab().advance(Duration::from_millis(25))?;
    let first = first_request(setup);
    check_eq!("RNR-09", setup.state(a.qp)?, QpState::Rts);
    b.recv(1, 8)?;
    let done = setup.successes(a.send_cq, 2).rule("TMR-11")?;
    check_eq!("TMR-11", wr_ids(&done), [1, 2]);
    check_eq!("RNR-09", requests(setup, first), [1], "the last try");
    Ok(())
}

scenario!(answer_that_comes_in_the_wait_counts: "RNR-09"; needs RNR, LAB);
/// A second copy of the refused send comes when there is a receive for it: it is done, does not
/// leave again, and what is behind it goes on.
fn answer_that_comes_in_the_wait_counts(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RNR-09";
    for behind in [false, true] {
        let Pair { a, b } = long_wait(setup, 0)?;
        setup.lab().tap();
        let requests_of_a = PacketFilter::EVERY.class(PacketClass::Request);
        let copy = Fault::duplicate(requests_of_a, Duration::from_millis(3)).nth(1);
        setup.lab().inject(copy)?;
        a.send(1, 8)?;
        if behind {
            a.send(2, 8)?;
        }
        setup.lab().advance(Duration::from_millis(1))?;
        let first = first_request(setup);
        for wr_id in [1, 2] {
            b.recv(wr_id, 8)?;
        }
        setup.lab().advance(Duration::from_millis(4))?;
        requests(setup, first);
        let done = wr_ids(&setup.drain(a.send_cq)?);
        check_eq!(RULE, done, [1], "what is done in the wait");
        if !behind {
            a.send(2, 8)?;
        }
        let done = wr_ids(&setup.successes(a.send_cq, 1).rule(RULE)?);
        check_eq!(RULE, done, [2], "what was behind it");
        check_eq!(RULE, requests(setup, first), [1], "what left later");
        let came = wr_ids(&setup.successes(b.recv_cq, 2).rule(RULE)?);
        check_eq!(RULE, came, [1, 2]);
        setup.no_completion(b.recv_cq, RULE)?;
    }
    Ok(())
}

scenario!(lost_response_and_missing_receive_are_made_up_for:
    "RNR-01", "RDMA-23"; needs RNR, RDMA_READ, LAB);
/// Each response of a read in turn is lost, and the send behind it finds no receive.
fn lost_response_and_missing_receive_are_made_up_for(setup: &Setup<'_>) -> Result {
    for lost in 1..=4 {
        let Pair { a, b } = long_wait(setup, 2)?;
        let answers = PacketFilter::EVERY.class(PacketClass::Response);
        setup.lab().inject(Fault::drop(answers).nth(lost))?;
        b.fill(lost as u8, 3000)?;
        a.fill(9, 8)?;
        let into = [a.sge(a.landing(), 3000)];
        let data = [a.sge(0, 8)];
        let read = SendWr::rdma_read(1, &into, b.mem.remote(0));
        setup.post_send(
            a.qp,
            &[read, SendWr::send(2, &data), SendWr::send(3, &data)],
        )?;
        setup.lab().advance(Duration::from_millis(30))?;
        let case = format!("answer {lost} is lost");
        let done = wr_ids(&setup.drain(a.send_cq)?);
        check_eq!("RDMA-23", done, [1], case);
        for wr_id in [2, 3] {
            b.recv(wr_id, 8)?;
        }
        let done = wr_ids(&setup.successes(a.send_cq, 2).rule("RNR-01")?);
        check_eq!("RNR-01", done, [2, 3], case);
        let read = a.expect_data(lost as u8, 3000, "RDMA-23");
        in_case(&case, read)?;
        setup.successes(b.recv_cq, 2).rule("RNR-01")?;
        in_case(&case, b.expect_data(9, 8, "RNR-01"))?;
    }
    Ok(())
}

scenario!(what_arrives_in_the_wait_does_not_leave_behind_it: "RNR-09"; needs RNR, LAB);
/// Copies of the first two packets of a refused send find a receive. The response to the write
/// before it acknowledges them: only its last packet is left.
fn what_arrives_in_the_wait_does_not_leave_behind_it(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RNR-09";
    const LATE: Duration = Duration::from_millis(1);
    let requests = PacketFilter::EVERY.class(PacketClass::Request);
    let rc = RcParams {
        path_mtu: Mtu::Mtu256,
        // 10.24 ms.
        min_rnr_timer: 20,
        // Nothing but the end of the wait makes it send again.
        timeout: 0,
        ..RcParams::default()
    };
    let Pair { a, b } = with(setup, rc)?;
    let of_send = Fault::duplicate(requests, LATE).these([2, 3]);
    let of_write = Fault::duplicate(requests, LATE * 2).nth(1);
    for copies in [of_send, of_write] {
        setup.lab().inject(copies)?;
    }
    setup.lab().tap();
    a.fill(4, 700)?;
    a.write(1, 8)?;
    a.send(2, 700)?;
    setup.lab().advance(LATE / 2)?;
    b.recv(3, 700)?;
    setup.lab().advance(LATE * 4)?;
    let first = setup.packets()[0].psn;
    setup.successes(a.send_cq, 2).rule(RULE)?;
    let mut left = setup.packets();
    left.retain(|packet| PacketClass::Request.has(packet.opcode));
    let left: Vec<_> = left.iter().map(|packet| packet.psn - first).collect();
    check_eq!(RULE, left, [3], "what leaves behind the wait");
    setup.successes(b.recv_cq, 1).rule(RULE)?;
    b.expect_data(4, 700, RULE)
}
