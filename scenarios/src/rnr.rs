//! A receiver that is not ready: no receive is posted for what arrives.

use std::time::Duration;

use verbs_api::lab::PacketOpcode;
use verbs_api::{QpState, RcParams, SendWr, WcOpcode, WcStatus};

use crate::failure::{check, check_eq, in_case};
use crate::{Bench, OfRule, Pair, PairOptions, Result, Scenario, wr_ids};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    send_without_a_receive_waits_for_one,
    write_with_immediate_without_a_receive_waits_for_one,
    retries_are_as_many_as_told,
    no_retry_fails_at_once,
    progress_restores_the_retries,
    work_behind_waits_too,
];

fn with<'b>(bench: &'b Bench<'_>, rc: RcParams) -> Result<Pair<'b>> {
    bench.pair(PairOptions {
        rc,
        ..PairOptions::default()
    })
}

/// Retries without a limit, one every 10 us.
fn endless<'b>(bench: &'b Bench<'_>) -> Result<Pair<'b>> {
    let rc = RcParams {
        rnr_retry: 7,
        min_rnr_timer: 1,
        ..RcParams::default()
    };
    with(bench, rc)
}

scenario!(send_without_a_receive_waits_for_one: "RNR-01", "RNR-02", "RNR-06"; needs RNR);
fn send_without_a_receive_waits_for_one(bench: &Bench<'_>) -> Result {
    let Pair { a, b } = endless(bench)?;
    a.fill(3, 5000)?;
    a.send(1, 5000)?;
    bench.no_completion_meanwhile(a.send_cq, "RNR-02")?;
    bench.no_completion_meanwhile(b.recv_cq, "RNR-06")?;
    b.recv(2, 5000)?;
    let wc = bench.one_with(b.recv_cq, WcStatus::Success, "RNR-01")?;
    check_eq!("RNR-01", (wc.wr_id, wc.byte_len), (2, 5000));
    b.expect_data(3, 5000, "RNR-01")?;
    bench.one_with(a.send_cq, WcStatus::Success, "RNR-01")?;
    bench.no_completion(b.recv_cq, "RNR-06")?;
    bench.no_async_event(b.context, "RNR-06")
}

scenario!(write_with_immediate_without_a_receive_waits_for_one:
    "RNR-07", "RNR-01"; needs WRITE_WITH_IMM, RNR);
fn write_with_immediate_without_a_receive_waits_for_one(bench: &Bench<'_>) -> Result {
    let Pair { a, b } = endless(bench)?;
    a.fill(3, 5000)?;
    a.write_imm(1, 5000, [9; 4])?;
    bench.no_completion_meanwhile(a.send_cq, "RNR-01")?;
    b.recv(2, 0)?;
    let wc = bench.one_with(b.recv_cq, WcStatus::Success, "RNR-07")?;
    check_eq!("RNR-07", wc.opcode, WcOpcode::RecvRdmaWithImm);
    b.expect_data(3, 5000, "RNR-07")?;
    bench
        .one_with(a.send_cq, WcStatus::Success, "RNR-07")
        .map(drop)
}

scenario!(retries_are_as_many_as_told: "RNR-03", "RNR-05"; needs RNR, LAB);
fn retries_are_as_many_as_told(bench: &Bench<'_>) -> Result {
    // The code, and the wait it asks for.
    let (min_rnr_timer, wait) = (16, Duration::from_micros(2560));
    for rnr_retry in [0, 1, 3, 6] {
        let rc = RcParams {
            rnr_retry,
            min_rnr_timer,
            ..RcParams::default()
        };
        let a = with(bench, rc)?.a;
        bench.lab().tap();
        a.send(1, 8)?;
        bench.one_with(a.send_cq, WcStatus::RnrRetryExcErr, "RNR-03")?;
        let tapped = bench.lab().tapped();
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
fn no_retry_fails_at_once(bench: &Bench<'_>) -> Result {
    let rc = RcParams {
        rnr_retry: 0,
        // Ten retries would not be over in the time that the bench waits.
        min_rnr_timer: 0,
        ..RcParams::default()
    };
    let Pair { a, .. } = with(bench, rc)?;
    a.send(1, 8)?;
    bench.one_with(a.send_cq, WcStatus::RnrRetryExcErr, "RNR-03")?;
    bench
        .until("the requester is in error", || {
            Ok((bench.state(a.qp)? == QpState::Err).then_some(()))
        })
        .rule("RNR-03")
}

scenario!(progress_restores_the_retries: "RNR-04"; needs RNR, LAB);
fn progress_restores_the_retries(bench: &Bench<'_>) -> Result {
    let rc = RcParams {
        rnr_retry: 2,
        // 10.24 ms
        min_rnr_timer: 20,
        ..RcParams::default()
    };
    let Pair { a, b } = with(bench, rc)?;
    for wr_id in 0..5 {
        a.send(wr_id, 8)?;
        // Past the second try, and before the third, which is the last.
        bench.lab().advance(Duration::from_millis(15))?;
        b.recv(wr_id, 8)?;
        let done = bench.one_with(a.send_cq, WcStatus::Success, "RNR-04");
        in_case(&format!("message {wr_id}"), done.map(drop))?;
        bench.successes(b.recv_cq, 1)?;
    }
    Ok(())
}

scenario!(work_behind_waits_too: "RNR-08"; needs RDMA_READ, RNR);
fn work_behind_waits_too(bench: &Bench<'_>) -> Result {
    const RULE: &str = "RNR-08";
    let Pair { a, b } = endless(bench)?;
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
    bench.post_send(a.qp, &list)?;
    bench.no_completion_meanwhile(a.send_cq, RULE)?;
    b.expect_data_at(b.landing(), 1, 8, RULE)?;
    for wr_id in [0, 1] {
        b.recv_at(wr_id, 0, 8)?;
    }
    let done = bench.successes(a.send_cq, 4).rule(RULE)?;
    check_eq!(RULE, wr_ids(&done), [0, 1, 2, 3], "the order");
    bench.successes(b.recv_cq, 2)?;
    // The read is behind the write.
    a.expect_data(2, 8, RULE)
}
