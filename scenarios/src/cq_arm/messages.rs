//! What matters in a message: its solicited bit, whether it makes a completion, its length.

use verbs_api::lab::{Fault, PacketFilter, PacketOpcode};
use verbs_api::{Arm, Dest, QpType, SendFlags, SendWr, WcStatus};

use super::{BOTH, PLAIN, deliver};
use crate::failure::check_eq;
use crate::{Bench, End, OfRule, Pair, PairOptions, Result};

const SOLICITED: SendFlags = SendFlags::SOLICITED;

scenario!(sender_chooses_the_solicited_bit_for_each_message: "CQ-ARM-08", "CQ-ARM-06");
fn sender_chooses_the_solicited_bit_for_each_message(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let b = pair.b;
    for flags in [PLAIN, SOLICITED, PLAIN, PLAIN, SOLICITED, SOLICITED] {
        bench.arm(b.recv_cq, Arm::SOLICITED)?;
        deliver(bench, &pair, flags)?;
        if flags == SOLICITED {
            bench.expect_event(b.channel, b.recv_cq, ["CQ-ARM-08", "CQ-ARM-06"])?;
        } else {
            bench.no_event(b.channel, "CQ-ARM-08")?;
        }
    }
    bench.no_event(b.channel, "CQ-ARM-08")
}

scenario!(solicited_request_on_a_send_cq_waits_for_an_error: "CQ-ARM-24", "CQ-ARM-09");
fn solicited_request_on_a_send_cq_waits_for_an_error(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let a = pair.a;
    bench.arm(a.send_cq, Arm::SOLICITED)?;
    for flags in [PLAIN, SOLICITED, SOLICITED, PLAIN] {
        deliver(bench, &pair, flags)?;
    }
    bench.no_event(a.channel, "CQ-ARM-24")?;
    a.post(SendWr::rdma_write(1, &[a.sge(0, 8)], a.bad_remote()))?;
    bench.one_with(a.send_cq, WcStatus::RemAccessErr, "CQ-ARM-09")?;
    bench.expect_event(a.channel, a.send_cq, "CQ-ARM-09")?;
    bench.no_event(a.channel, "CQ-ARM-24")
}

scenario!(unsignaled_send_fires_only_if_it_fails: "CQ-ARM-41");
fn unsignaled_send_fires_only_if_it_fails(bench: &Bench<'_>) -> Result {
    for arm in BOTH {
        let pair = bench.rc_pair()?;
        let (a, b) = (pair.a, pair.b);
        bench.arm(a.send_cq, arm)?;
        b.recv(1, 8)?;
        a.post(SendWr::send(1, &[a.sge(0, 8)]).unsignaled())?;
        bench.successes(b.recv_cq, 1)?;
        bench.no_event(a.channel, "CQ-ARM-41")?;
        bench.no_completion(a.send_cq, "CQ-ARM-41")?;

        a.post(SendWr::rdma_write(2, &[a.sge(0, 8)], a.bad_remote()).unsignaled())?;
        let wc = bench.one_with(a.send_cq, WcStatus::RemAccessErr, "CQ-ARM-41")?;
        check_eq!("CQ-ARM-41", wc.wr_id, 2);
        bench.expect_event(a.channel, a.send_cq, "CQ-ARM-41")?;
    }
    Ok(())
}

scenario!(solicited_bit_of_a_write_means_nothing: "CQ-ARM-43");
fn solicited_bit_of_a_write_means_nothing(bench: &Bench<'_>) -> Result {
    solicited_bit_means_nothing(bench, |a| {
        a.post(SendWr::rdma_write(1, &[a.sge(0, 8)], a.remote()).solicited())
    })
}

scenario!(solicited_bit_of_a_read_means_nothing: "CQ-ARM-43"; needs RDMA_READ);
fn solicited_bit_of_a_read_means_nothing(bench: &Bench<'_>) -> Result {
    solicited_bit_means_nothing(bench, |a| {
        let into = [a.sge(a.landing(), 8)];
        a.post(SendWr::rdma_read(1, &into, a.remote()).solicited())
    })
}

/// On neither side: a receive stays posted, and both requests stay pending.
fn solicited_bit_means_nothing(bench: &Bench<'_>, post: fn(&End<'_>) -> Result) -> Result {
    let pair = bench.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    b.recv(7, 8)?;
    bench.arm(a.send_cq, Arm::SOLICITED)?;
    bench.arm(b.recv_cq, Arm::NEXT)?;
    post(&a)?;
    bench.successes(a.send_cq, 1)?;
    bench.no_event(a.channel, "CQ-ARM-43")?;
    bench.no_event(b.channel, "CQ-ARM-43")?;
    bench.no_completion(b.recv_cq, "CQ-ARM-43")?;
    a.send(2, 8)?;
    check_eq!("CQ-ARM-43", bench.successes(b.recv_cq, 1)?[0].wr_id, 7);
    bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-43")?;
    Ok(())
}

scenario!(message_of_many_packets_makes_one_event: "CQ-ARM-45", "CQ-ARM-02");
fn message_of_many_packets_makes_one_event(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    for arm in BOTH {
        for len in [1024, 1025, 8 * 1024, 8 * 1024 + 1] {
            bench.arm(b.recv_cq, arm)?;
            a.fill(len as u8 + 1, len)?;
            b.recv(1, len)?;
            a.send_solicited(1, len)?;
            bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-45")?;
            let present = bench.drain(b.recv_cq)?;
            check_eq!("CQ-ARM-02", present.len(), 1, "completions at the event");
            check_eq!("CQ-ARM-45", present[0].byte_len, len);
            b.expect_data(len as u8 + 1, len, "CQ-ARM-45")?;
            bench.successes(a.send_cq, 1)?;
            bench.no_event(b.channel, "CQ-ARM-45")?;
        }
    }
    Ok(())
}

scenario!(message_sent_again_fires_once: "CQ-ARM-45"; needs LAB);
fn message_sent_again_fires_once(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    let lost = bench
        .lab()
        .inject(Fault::drop(PacketFilter::EVERY.opcode(PacketOpcode::RcAcknowledge)).nth(1))?;
    bench.arm(b.recv_cq, Arm::NEXT)?;
    b.recv(1, 3000)?;
    a.send(1, 3000)?;
    bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-45")?;
    bench.successes(b.recv_cq, 1)?;
    bench.arm(b.recv_cq, Arm::NEXT)?;
    bench.successes(a.send_cq, 1)?;
    check_eq!("CQ-ARM-45", bench.lab().remove(lost)?, 1, "lost packets");
    bench.no_event(b.channel, "CQ-ARM-45")?;
    bench.no_completion(b.recv_cq, "CQ-ARM-45")
}

scenario!(dropped_datagram_fires_nothing: "CQ-ARM-47"; needs UD);
fn dropped_datagram_fires_nothing(bench: &Bench<'_>) -> Result {
    let pair = bench.pair(PairOptions::of(QpType::Ud))?;
    let (a, b) = (pair.a, pair.b);
    bench.arm(b.recv_cq, Arm::NEXT)?;
    a.send_solicited(1, 8)?;
    bench.successes(a.send_cq, 1)?;
    nothing_came(bench, &b)?;

    b.recv(7, 8)?;
    let sges = [a.sge(0, 8)];
    let mut bad_qkey = a.to_peer(SendWr::send(2, &sges).solicited());
    if let Dest::Ud { remote_qkey, .. } = &mut bad_qkey.dest {
        *remote_qkey ^= 1;
    }
    bench.post_send(a.qp, &[bad_qkey])?;
    bench.successes(a.send_cq, 1)?;
    nothing_came(bench, &b)?;
    fires_for_the_next(bench, &pair)
}

scenario!(message_without_a_receive_fires_nothing_on_uc: "CQ-ARM-47"; needs UC);
fn message_without_a_receive_fires_nothing_on_uc(bench: &Bench<'_>) -> Result {
    let pair = bench.pair(PairOptions::of(QpType::Uc))?;
    let (a, b) = (pair.a, pair.b);
    bench.arm(b.recv_cq, Arm::NEXT)?;
    a.send_solicited(1, 8)?;
    bench.successes(a.send_cq, 1)?;
    nothing_came(bench, &b)?;
    b.recv(7, 8)?;
    fires_for_the_next(bench, &pair)
}

scenario!(message_with_a_gap_fires_nothing_on_uc: "CQ-ARM-47"; needs UC, LAB);
fn message_with_a_gap_fires_nothing_on_uc(bench: &Bench<'_>) -> Result {
    for lost in 1..=3 {
        let pair = bench.pair(PairOptions::of(QpType::Uc))?;
        let (a, b) = (pair.a, pair.b);
        let fault = bench
            .lab()
            .inject(Fault::drop(PacketFilter::EVERY.dest_qpn(b.qp_num)).nth(lost))?;
        bench.arm(b.recv_cq, Arm::NEXT)?;
        b.recv(7, 3 * 1024)?;
        a.send_solicited(1, 3 * 1024)?;
        bench.successes(a.send_cq, 1)?;
        nothing_came(bench, &b)?;
        check_eq!("CQ-ARM-47", bench.lab().remove(fault)?, 1, "lost packets");
        fires_for_the_next(bench, &pair)?;
    }
    Ok(())
}

fn nothing_came(bench: &Bench<'_>, b: &End<'_>) -> Result {
    bench.no_event(b.channel, "CQ-ARM-47")?;
    bench.no_completion(b.recv_cq, "CQ-ARM-47")
}

/// The request is still pending: the next message, to the receive with wr_id 7, satisfies it.
fn fires_for_the_next(bench: &Bench<'_>, pair: &Pair<'_>) -> Result {
    let (a, b) = (pair.a, pair.b);
    a.send_solicited(3, 8)?;
    let wc = bench.successes(b.recv_cq, 1).rule("CQ-ARM-47")?[0];
    check_eq!("CQ-ARM-47", wc.wr_id, 7);
    bench.successes(a.send_cq, 1)?;
    bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-47")?;
    bench.no_event(b.channel, "CQ-ARM-47")
}
