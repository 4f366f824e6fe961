//! The error state: what is outstanding is flushed, in order, once; and who gets there.

mod fault;

use std::thread;

use verbs_api::lab::{Fault, PacketFilter};
use verbs_api::{Cq, QpCap, QpState, QpType, RcParams, RecvWr, Remote, SendWr, Sge, Wc, WcStatus};

use crate::end::gives_up_soon;
use crate::failure::{check, check_eq, in_case};
use crate::fresh_qp::FreshQp;
use crate::{End, Failure, OfRule, Pair, PairOptions, Result, Scenario, Setup, pattern, wr_ids};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    everything_outstanding_is_flushed_in_order,
    receives_are_flushed_in_order,
    receives_are_flushed_in_order_on_uc,
    receives_are_flushed_in_order_on_ud,
    local_failure_stands_between_successes_and_flushes,
    refused_work_stands_between_successes_and_flushes,
    flushed_write_leaves_each_byte_old_or_new,
    sends_of_another_thread_complete_once,
    receives_of_another_thread_complete_once,
    last_send_stands_for_all_before_it,
    last_receive_stands_for_all_before_it,
    refusal_for_want_of_rights_puts_both_ends_in_error,
    refusal_of_an_invalid_request_puts_both_ends_in_error,
    fault_of_the_responder_puts_both_ends_in_error,
    receiver_that_is_never_ready_stays_as_it_is,
    peer_that_never_answers_stays_as_it_is,
    peer_whose_answers_are_lost_stays_as_it_is,
    nothing_completes_after_the_queue_pair_is_gone,
    waiting_sends_do_not_complete_after_the_queue_pair_is_gone,
    fault::failed_completion_of_a_send_stops_the_queue_pair,
    fault::failed_completion_of_an_unreliable_send_stops_sends,
    fault::failed_completion_of_a_receive_stops_the_queue_pair,
    fault::failed_completion_of_an_unreliable_receive_stops_the_queue_pair,
];

scenario!(everything_outstanding_is_flushed_in_order: "QP-FLUSH-01", "QP-FLUSH-02"; needs RNR);
/// Signaled sends and others, and receives.
fn everything_outstanding_is_flushed_in_order(setup: &Setup<'_>) -> Result {
    for (sends, receives) in [(1, 0), (0, 1), (16, 16), (7, 3)] {
        for one_cq in [false, true] {
            let Pair { a, .. } = setup.pair(PairOptions {
                one_cq,
                ..PairOptions::default()
            })?;
            for wr_id in 0..sends {
                let data = [a.sge(0, 8)];
                let send = SendWr::send(wr_id, &data);
                a.post(if wr_id % 3 == 0 {
                    send
                } else {
                    send.unsignaled()
                })?;
            }
            for wr_id in 0..receives {
                a.recv(100 + wr_id, 8)?;
            }
            setup.to_err(a.qp)?;
            let result = flushed(setup, &a, 0..sends, 100..100 + receives, "QP-FLUSH-01");
            in_case(&format!("{sends} sends, {receives} receives"), result)?;
        }
    }
    Ok(())
}

/// Exactly these sends and receives are flushed, each queue in order.
fn flushed(
    setup: &Setup<'_>,
    end: &End<'_>,
    sends: std::ops::Range<u64>,
    receives: std::ops::Range<u64>,
    rule: &'static str,
) -> Result {
    let (sends, receives): (Vec<_>, Vec<_>) = (sends.collect(), receives.collect());
    let completions = if end.send_cq == end.recv_cq {
        setup
            .poll(end.recv_cq, sends.len() + receives.len())
            .rule(rule)?
    } else {
        let mut all = setup.poll(end.send_cq, sends.len()).rule(rule)?;
        all.extend(setup.poll(end.recv_cq, receives.len()).rule(rule)?);
        all
    };
    for wc in &completions {
        check_eq!(rule, wc.status, WcStatus::WrFlushErr, format!("{wc}"));
    }
    let of = |of_receive: bool| -> Vec<u64> {
        let ids = completions.iter().map(|wc| wc.wr_id);
        ids.filter(|id| receives.contains(id) == of_receive)
            .collect()
    };
    check_eq!("QP-FLUSH-02", of(false), sends, "the flushed sends");
    check_eq!("QP-FLUSH-02", of(true), receives, "the flushed receives");
    for cq in [end.send_cq, end.recv_cq] {
        setup.no_completion(cq, rule)?;
    }
    Ok(())
}

scenario!(receives_are_flushed_in_order: "QP-FLUSH-01", "QP-FLUSH-02");
fn receives_are_flushed_in_order(setup: &Setup<'_>) -> Result {
    receives_are_flushed(setup, QpType::Rc)
}

scenario!(receives_are_flushed_in_order_on_uc: "QP-FLUSH-01", "QP-FLUSH-02"; needs UC);
fn receives_are_flushed_in_order_on_uc(setup: &Setup<'_>) -> Result {
    receives_are_flushed(setup, QpType::Uc)
}

scenario!(receives_are_flushed_in_order_on_ud: "QP-FLUSH-01", "QP-FLUSH-02"; needs UD);
fn receives_are_flushed_in_order_on_ud(setup: &Setup<'_>) -> Result {
    receives_are_flushed(setup, QpType::Ud)
}

/// What was delivered before stays a success.
fn receives_are_flushed(setup: &Setup<'_>, qp_type: QpType) -> Result {
    for taken in [0, 1, 5] {
        let Pair { a, b } = setup.pair(PairOptions::of(qp_type))?;
        for wr_id in 0..12 {
            b.recv(wr_id, 8)?;
        }
        for wr_id in 0..taken {
            a.send(wr_id, 8)?;
        }
        let got = setup.successes(b.recv_cq, taken as usize)?;
        check_eq!("QP-FLUSH-02", wr_ids(&got), (0..taken).collect::<Vec<_>>());
        setup.successes(a.send_cq, taken as usize)?;
        setup.to_err(b.qp)?;
        let result = flushed(setup, &b, 0..0, taken..12, "QP-FLUSH-01");
        in_case(&format!("{taken} taken before"), result)?;
    }
    Ok(())
}

scenario!(local_failure_stands_between_successes_and_flushes: "QP-FLUSH-03");
fn local_failure_stands_between_successes_and_flushes(setup: &Setup<'_>) -> Result {
    between(setup, |a| {
        let good = a.sge(0, 8);
        let lkey = good.lkey ^ 0xa5;
        (Sge { lkey, ..good }, a.remote())
    })
}

scenario!(refused_work_stands_between_successes_and_flushes: "QP-FLUSH-03");
fn refused_work_stands_between_successes_and_flushes(setup: &Setup<'_>) -> Result {
    between(setup, |a| (a.sge(0, 8), a.bad_remote()))
}

scenario!(flushed_write_leaves_each_byte_old_or_new: "QP-FLUSH-06");
/// Writes that are in progress or wait when the queue pair enters the error state. No byte outside
/// their target changes.
fn flushed_write_leaves_each_byte_old_or_new(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-FLUSH-06";
    const LENGTH: u32 = 1500;
    const COUNT: u64 = 6;
    let Pair { a, b } = setup.rc_pair()?;
    // Twice the length for each: what lies between must stay.
    let room = 2 * LENGTH * COUNT as u32;
    let (old, new) = (pattern(0x11, room), pattern(0x22, LENGTH));
    b.fill_at(b.landing(), 0x11, room)?;
    a.fill(0x22, LENGTH)?;
    let place = |i: u64| 2 * u64::from(LENGTH) * i;
    let data = [a.sge(0, LENGTH)];
    for i in 0..COUNT {
        let mut remote = b.mem.remote(b.landing());
        remote.addr += place(i);
        a.post(SendWr::rdma_write(i, &data, remote))?;
    }
    setup.to_err(a.qp)?;
    let done = setup.poll(a.send_cq, COUNT as usize)?;
    setup.no_completion(a.send_cq, RULE)?;
    let seen = b.bytes(b.landing(), room as usize)?;
    for wc in &done {
        let start = place(wc.wr_id) as usize;
        for i in 0..2 * LENGTH as usize {
            let (byte, at) = (seen[start + i], start + i);
            let written = i < LENGTH as usize && byte == new[i];
            let known = match wc.status {
                WcStatus::Success if i < LENGTH as usize => written,
                _ => written || byte == old[at],
            };
            check!(
                RULE,
                known,
                "the old byte or the new one",
                "{byte:#x} at {at} after {wc}"
            );
        }
    }
    let flushed = done.iter().any(|wc| wc.status == WcStatus::WrFlushErr);
    // A device may be done with all of them; the simulator is not.
    let may_be_done = setup.verbs().lab().is_none();
    check!(RULE, flushed || may_be_done, "a flushed write", "{done:?}");
    Ok(())
}

/// Lists of writes, one of them from or to bad memory.
fn between(setup: &Setup<'_>, bad: impl Fn(&End<'_>) -> (Sge, Remote)) -> Result {
    const RULE: &str = "QP-FLUSH-03";
    for (before, behind) in [(0, 0), (0, 4), (3, 0), (3, 4)] {
        let Pair { a, .. } = setup.rc_pair()?;
        let (from, to) = bad(&a);
        let (good, from) = ([a.sge(0, 8)], [from]);
        let work = |wr_id| match wr_id {
            _ if wr_id == before => SendWr::rdma_write(wr_id, &from, to),
            _ => SendWr::rdma_write(wr_id, &good, a.remote()),
        };
        let list: Vec<_> = (0..=before + behind).map(work).collect();
        setup.post_send(a.qp, &list)?;
        let got = setup.poll(a.send_cq, list.len()).rule(RULE)?;
        let kind = |wc: &Wc| match wc.status {
            WcStatus::Success => "success",
            WcStatus::WrFlushErr => "flush",
            _ => "failure",
        };
        let seen: Vec<_> = got.iter().map(|wc| (wc.wr_id, kind(wc))).collect();
        let expected = |wr_id| match wr_id {
            _ if wr_id < before => (wr_id, "success"),
            _ if wr_id == before => (wr_id, "failure"),
            _ => (wr_id, "flush"),
        };
        let expected: Vec<_> = (0..=before + behind).map(expected).collect();
        check_eq!(RULE, seen, expected, "the completions");
        setup.no_completion(a.send_cq, RULE)?;
    }
    Ok(())
}

scenario!(sends_of_another_thread_complete_once: "QP-FLUSH-07"; needs THREADS);
fn sends_of_another_thread_complete_once(setup: &Setup<'_>) -> Result {
    race(setup, |end, wr_id| {
        let data = [end.sge(0, 8)];
        setup.post_send(end.qp, &[SendWr::rdma_write(wr_id, &data, end.remote())])
    })
}

scenario!(receives_of_another_thread_complete_once: "QP-FLUSH-07"; needs THREADS);
fn receives_of_another_thread_complete_once(setup: &Setup<'_>) -> Result {
    race(setup, |end, wr_id| {
        let room = [end.sge(end.landing(), 8)];
        setup.post_recv(end.qp, &[RecvWr::new(wr_id, &room)])
    })
}

/// One thread posts as long as there is room while another brings the queue pair to ERR: accepted
/// work completes, once, in order.
fn race(
    setup: &Setup<'_>,
    post: impl Fn(&End<'_>, u64) -> Result<(), verbs_api::PostError> + Sync,
) -> Result {
    const RULE: &str = "QP-FLUSH-07";
    for _ in 0..4 {
        let Pair { a, .. } = setup.pair(PairOptions {
            one_cq: true,
            recv_cqe: 256,
            cap: QpCap {
                max_send_wr: 64,
                max_recv_wr: 64,
                ..QpCap::default()
            },
            ..PairOptions::default()
        })?;
        let accepted = thread::scope(|scope| {
            let poster = scope.spawn(|| (0..64).take_while(|id| post(&a, *id).is_ok()).count());
            setup.to_err(a.qp)?;
            Ok::<_, Failure>(poster.join().expect("no panic"))
        })?;
        let got = wr_ids(&setup.poll_all(a.recv_cq)?);
        check_eq!(RULE, got, (0..got.len() as u64).collect::<Vec<_>>());
        let expected = format!("{accepted} completions");
        check!(
            RULE,
            got.len() == accepted,
            expected,
            "{} completions",
            got.len()
        );
    }
    Ok(())
}

scenario!(last_send_stands_for_all_before_it: "QP-FLUSH-08", "QP-FLUSH-02"; needs RNR);
fn last_send_stands_for_all_before_it(setup: &Setup<'_>) -> Result {
    let Pair { a, .. } = setup.rc_pair()?;
    for wr_id in 0..6 {
        let data = [a.sge(0, 8)];
        a.post(SendWr::send(wr_id, &data).unsignaled())?;
    }
    setup.to_err(a.qp)?;
    a.send(6, 8).rule("QP-FLUSH-08")?;
    until_sentinel(setup, a.send_cq)
}

scenario!(last_receive_stands_for_all_before_it: "QP-FLUSH-08", "QP-FLUSH-02");
fn last_receive_stands_for_all_before_it(setup: &Setup<'_>) -> Result {
    let Pair { b, .. } = setup.rc_pair()?;
    for wr_id in 0..6 {
        b.recv(wr_id, 8)?;
    }
    setup.to_err(b.qp)?;
    b.recv(6, 8).rule("QP-FLUSH-08")?;
    until_sentinel(setup, b.recv_cq)
}

/// Number 6 comes, and all before it have come then.
fn until_sentinel(setup: &Setup<'_>, cq: Cq) -> Result {
    let got = setup.poll_all(cq)?;
    check_eq!(
        ["QP-FLUSH-08", "QP-FLUSH-02"],
        wr_ids(&got),
        (0..7).collect::<Vec<_>>()
    );
    for wc in got {
        check_eq!("QP-FLUSH-08", wc.status, WcStatus::WrFlushErr);
    }
    Ok(())
}

scenario!(refusal_for_want_of_rights_puts_both_ends_in_error: "QP-FLUSH-09");
fn refusal_for_want_of_rights_puts_both_ends_in_error(setup: &Setup<'_>) -> Result {
    both_fail(setup, |a, _| {
        a.post(SendWr::rdma_write(1, &[a.sge(0, 8)], a.bad_remote()))
    })
}

scenario!(refusal_of_an_invalid_request_puts_both_ends_in_error: "QP-FLUSH-09");
fn refusal_of_an_invalid_request_puts_both_ends_in_error(setup: &Setup<'_>) -> Result {
    both_fail(setup, |a, b| {
        b.recv(1, 8)?;
        a.send(1, 9)
    })
}

scenario!(fault_of_the_responder_puts_both_ends_in_error: "QP-FLUSH-09");
fn fault_of_the_responder_puts_both_ends_in_error(setup: &Setup<'_>) -> Result {
    both_fail(setup, |a, b| {
        let mut room = b.sge(b.landing(), 8);
        room.lkey ^= 0xa5;
        setup.post_recv(b.qp, &[RecvWr::new(1, &[room])])?;
        a.send(1, 8)
    })
}

fn both_fail(setup: &Setup<'_>, fail: impl Fn(&End<'_>, &End<'_>) -> Result) -> Result {
    const RULE: &str = "QP-FLUSH-09";
    let Pair { a, b } = setup.rc_pair()?;
    check_eq!(RULE, setup.state(a.qp)?, QpState::Rts);
    fail(&a, &b)?;
    for (side, end) in [("requester", a), ("responder", b)] {
        let in_error = || Ok((setup.state(end.qp)? == QpState::Err).then_some(()));
        setup
            .until(&format!("the {side} in ERR"), in_error)
            .rule(RULE)?;
    }
    Ok(())
}

/// It gives up soon.
fn impatient() -> PairOptions {
    PairOptions {
        rc: RcParams {
            rnr_retry: 1,
            min_rnr_timer: 1,
            ..gives_up_soon()
        },
        ..PairOptions::default()
    }
}

scenario!(receiver_that_is_never_ready_stays_as_it_is: "QP-FLUSH-10"; needs RNR);
fn receiver_that_is_never_ready_stays_as_it_is(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.pair(impatient())?;
    a.send(1, 8)?;
    setup.one_with(a.send_cq, WcStatus::RnrRetryExcErr, "QP-FLUSH-10")?;
    one_fails(setup, &a, &b, QpState::Rts)
}

scenario!(peer_that_never_answers_stays_as_it_is: "QP-FLUSH-10"; needs MODIFY_CONNECT);
/// The peer is in INIT.
fn peer_that_never_answers_stays_as_it_is(setup: &Setup<'_>) -> Result {
    let (mut a, b) = FreshQp::pair(setup, QpType::Rc)?;
    a.gives_up_soon();
    a.reach(QpState::Rts)?;
    b.reach(QpState::Init)?;
    a.end.send(1, 8)?;
    setup.one_with(a.end.send_cq, WcStatus::RetryExcErr, "QP-FLUSH-10")?;
    one_fails(setup, &a.end, &b.end, QpState::Init)
}

scenario!(peer_whose_answers_are_lost_stays_as_it_is: "QP-FLUSH-10"; needs LAB);
fn peer_whose_answers_are_lost_stays_as_it_is(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.pair(impatient())?;
    setup
        .lab()
        .inject(Fault::drop(PacketFilter::EVERY.dest_qpn(a.qp_num)))?;
    a.write(1, 8)?;
    setup.one_with(a.send_cq, WcStatus::RetryExcErr, "QP-FLUSH-10")?;
    one_fails(setup, &a, &b, QpState::Rts)
}

/// The requester is in ERR, the responder where it was, and none of its receives is used.
fn one_fails(setup: &Setup<'_>, a: &End<'_>, b: &End<'_>, was: QpState) -> Result {
    const RULE: &str = "QP-FLUSH-10";
    let state = setup.state(a.qp)?;
    check_eq!(RULE, state, QpState::Err, "the requester's state");
    b.recv(5, 8).rule(RULE)?;
    setup.no_completion(b.recv_cq, RULE)?;
    check_eq!(RULE, setup.state(b.qp)?, was, "the responder's state");
    Ok(())
}

scenario!(nothing_completes_after_the_queue_pair_is_gone: "QP-FLUSH-11");
fn nothing_completes_after_the_queue_pair_is_gone(setup: &Setup<'_>) -> Result {
    gone_under_load(setup, |_| Ok(()))
}

scenario!(waiting_sends_do_not_complete_after_the_queue_pair_is_gone: "QP-FLUSH-11"; needs RNR);
fn waiting_sends_do_not_complete_after_the_queue_pair_is_gone(setup: &Setup<'_>) -> Result {
    gone_under_load(setup, |b| {
        for wr_id in 0..8 {
            b.send(wr_id, 8)?;
        }
        Ok(())
    })
}

fn gone_under_load(setup: &Setup<'_>, load: impl Fn(&End<'_>) -> Result) -> Result {
    const RULE: &str = "QP-FLUSH-11";
    for state in [QpState::Rts, QpState::Err] {
        let Pair { b, .. } = setup.rc_pair()?;
        for wr_id in 100..108 {
            b.recv(wr_id, 8)?;
        }
        load(&b)?;
        if state == QpState::Err {
            setup.to_err(b.qp)?;
        }
        setup.destroy_qp(b.qp, setup.wait()).rule(RULE)?;
        for cq in [b.send_cq, b.recv_cq] {
            // What was in there already may be.
            setup.drain(cq)?;
            setup.no_completion(cq, RULE)?;
        }
    }
    Ok(())
}
