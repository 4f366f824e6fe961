//! Ownership of the bytes of work: the simulator refuses to touch those of the device.

use verbs_api::{
    BatchEnd, ErrorKind, QpCap, QpInit, QpModify, QpState, QpType, SendOps, SendWr, SrqInit,
};

use crate::failure::check_eq;
use crate::failure::in_case;
use crate::{End, OfRule, Pair, PairOptions, Result, Setup, expect_err, wr_ids};

const RULE: &str = "SQ-17";
/// Bytes of a message, each of which has its own.
const LEN: u32 = 64;
const MOST: u64 = 24;

fn place(number: u64) -> u64 {
    u64::from(LEN) * number
}

fn options() -> PairOptions {
    PairOptions {
        cap: QpCap {
            max_send_wr: 32,
            max_recv_wr: 32,
            ..QpCap::default()
        },
        send_ops: SendOps::empty(),
        ..PairOptions::default()
    }
}

/// These places of a region are the device's.
fn are_the_devices(setup: &Setup<'_>, end: &End<'_>, offsets: &[u64], case: &str) -> Result {
    for offset in offsets {
        let written = setup.write_mr(end.mr, *offset as usize, &[1; 4]);
        let refused = expect_err(written, ErrorKind::Usage, RULE);
        in_case(&format!("{case}, at {offset}"), refused.map(drop))?;
    }
    Ok(())
}

/// Work that cannot begin yet: a send of SQD, from the place of its number.
fn send(end: &End<'_>, number: u64) -> Result {
    end.post(SendWr::send(number, &[end.sge(place(number), LEN)]))
}

fn recv(end: &End<'_>, number: u64) -> Result {
    end.recv_at(number, end.landing() + place(number), LEN)
}

scenario!(memory_of_each_receive_and_send_is_the_devices: "SQ-17"; needs LAB);
/// However many of either kind are posted in the domain.
fn memory_of_each_receive_and_send_is_the_devices(setup: &Setup<'_>) -> Result {
    for (what, has_sends) in [("receives", false), ("receives and sends", true)] {
        let a = setup.pair(options())?.a;
        for number in 0..4 {
            recv(&a, number)?;
            let case = format!("{what}, {number}");
            let first_and_last = [0, number].map(|number| a.landing() + place(number));
            are_the_devices(setup, &a, &first_and_last, &case)?;
            if has_sends {
                send(&a, number)?;
                let first_and_last = [0, number].map(place);
                are_the_devices(setup, &a, &first_and_last, &case)?;
            }
        }
    }
    Ok(())
}

scenario!(memory_is_the_devices_whatever_was_done_before: "SQ-17"; needs LAB);
/// Sends and receives are done and polled one by one, then others are posted.
fn memory_is_the_devices_whatever_was_done_before(setup: &Setup<'_>) -> Result {
    for done in 0..5 {
        let Pair { a, b } = setup.pair(options())?;
        for number in 0..done {
            recv(&b, number)?;
            send(&a, number)?;
            setup.successes(a.send_cq, 1)?;
            setup.successes(b.recv_cq, 1)?;
        }
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        let case = format!("{done} done before");
        for number in 0..MOST {
            send(&a, number)?;
            sends.push(place(number));
            are_the_devices(setup, &a, &sends, &case)?;
        }
        setup.to_err(a.qp)?;
        for number in 0..MOST {
            recv(&b, number)?;
            receives.push(b.landing() + place(number));
            are_the_devices(setup, &b, &receives[..1], &case)?;
        }
    }
    Ok(())
}

scenario!(memory_stays_the_devices_when_another_queue_pair_goes: "SQ-17"; needs SRQ, LAB);
/// One of the same domain, with an SRQ, is reset or destroyed.
fn memory_stays_the_devices_when_another_queue_pair_goes(setup: &Setup<'_>) -> Result {
    for is_reset in [true, false] {
        let a = setup.pair(options())?.a;
        let srq = setup.create_srq(a.pd, &SrqInit::new(4))?;
        let init = QpInit::new(QpType::Rc, a.send_cq, a.recv_cq).srq(srq);
        let other = setup.create_qp(a.pd, &init)?;
        recv(&a, 0)?;
        if is_reset {
            setup.modify(other, QpModify::to(QpState::Reset))?;
        } else {
            setup.destroy_qp(other, setup.wait())?;
        }
        let posted = [a.landing()];
        are_the_devices(setup, &a, &posted, &format!("reset: {is_reset}"))?;
    }
    Ok(())
}

scenario!(batch_that_is_refused_leaves_what_was_posted: "SQ-27", "SQ-17"; needs BATCHES, LAB);
/// Some is done and polled, some is outstanding, and more is posted behind the batch.
fn batch_that_is_refused_leaves_what_was_posted(setup: &Setup<'_>) -> Result {
    for done in 0..3 {
        for outstanding in 1..4 {
            let Pair { a, b } = setup.pair(PairOptions {
                send_ops: SendOps::SEND,
                ..options()
            })?;
            for number in 0..done {
                recv(&b, number)?;
                send(&a, number)?;
                setup.successes(a.send_cq, 1)?;
                setup.successes(b.recv_cq, 1)?;
            }
            let mut posted = Vec::new();
            for number in 0..outstanding {
                send(&a, number)?;
                posted.push(place(number));
            }
            let good = [a.sge(place(MOST), LEN)];
            let bad = vec![a.sge(place(MOST), 1); 64];
            let list = [
                SendWr::send(50, &good),
                SendWr::send(51, &good),
                SendWr::send(52, &bad),
            ];
            let refused = setup.post_batch(a.qp, &list, BatchEnd::Complete);
            let case = format!("{done} done, {outstanding} outstanding");
            check_eq!("SQ-27", refused.is_err(), true, case);
            are_the_devices(setup, &a, &posted, &case)?;
            let free = setup.write_mr(a.mr, place(MOST) as usize, &[1; 4]);
            free.rule("SQ-27")?;
            for number in outstanding..outstanding + 4 {
                send(&a, number)?;
                posted.push(place(number));
                are_the_devices(setup, &a, &posted, &case)?;
            }
            let all = outstanding + 4;
            for number in 0..all {
                recv(&b, number)?;
            }
            let sent = wr_ids(&setup.successes(a.send_cq, all as usize).rule("SQ-27")?);
            check_eq!("SQ-27", sent, (0..all).collect::<Vec<_>>(), case);
        }
    }
    Ok(())
}
