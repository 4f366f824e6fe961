//! What matters in a message: its solicited bit, whether it makes a completion, its length.

use verbs_api::lab::{Fault, PacketFilter, PacketOpcode};
use verbs_api::{Arm, Dest, QpType, SendFlags, SendWr, WcStatus};

use super::{BOTH, PLAIN, deliver};
use crate::failure::check_eq;
use crate::{End, OfRule, Pair, PairOptions, Result, Setup};

const SOLICITED: SendFlags = SendFlags::SOLICITED;

scenario!(sender_chooses_the_solicited_bit_for_each_message: "CQ-ARM-08", "CQ-ARM-06");
fn sender_chooses_the_solicited_bit_for_each_message(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    for flags in [PLAIN, SOLICITED, PLAIN, PLAIN, SOLICITED, SOLICITED] {
        setup.arm(b.recv_cq, Arm::SOLICITED)?;
        deliver(setup, &pair, flags)?;
        if flags == SOLICITED {
            setup.expect_event(b.channel, b.recv_cq, ["CQ-ARM-08", "CQ-ARM-06"])?;
        } else {
            setup.no_event(b.channel, "CQ-ARM-08")?;
        }
    }
    setup.no_event(b.channel, "CQ-ARM-08")
}

scenario!(solicited_request_on_a_send_cq_waits_for_an_error: "CQ-ARM-24", "CQ-ARM-09");
fn solicited_request_on_a_send_cq_waits_for_an_error(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let a = pair.a;
    setup.arm(a.send_cq, Arm::SOLICITED)?;
    for flags in [PLAIN, SOLICITED, SOLICITED, PLAIN] {
        deliver(setup, &pair, flags)?;
    }
    setup.no_event(a.channel, "CQ-ARM-24")?;
    a.post(SendWr::rdma_write(1, &[a.sge(0, 8)], a.bad_remote()))?;
    setup.one_with(a.send_cq, WcStatus::RemAccessErr, "CQ-ARM-09")?;
    setup.expect_event(a.channel, a.send_cq, "CQ-ARM-09")?;
    setup.no_event(a.channel, "CQ-ARM-24")
}

scenario!(unsignaled_send_fires_only_if_it_fails: "CQ-ARM-41");
fn unsignaled_send_fires_only_if_it_fails(setup: &Setup<'_>) -> Result {
    for arm in BOTH {
        let pair = setup.rc_pair()?;
        let (a, b) = (pair.a, pair.b);
        setup.arm(a.send_cq, arm)?;
        b.recv(1, 8)?;
        a.post(SendWr::send(1, &[a.sge(0, 8)]).unsignaled())?;
        setup.successes(b.recv_cq, 1)?;
        setup.no_event(a.channel, "CQ-ARM-41")?;
        setup.no_completion(a.send_cq, "CQ-ARM-41")?;

        a.post(SendWr::rdma_write(2, &[a.sge(0, 8)], a.bad_remote()).unsignaled())?;
        let wc = setup.one_with(a.send_cq, WcStatus::RemAccessErr, "CQ-ARM-41")?;
        check_eq!("CQ-ARM-41", wc.wr_id, 2);
        setup.expect_event(a.channel, a.send_cq, "CQ-ARM-41")?;
    }
    Ok(())
}

scenario!(solicited_bit_of_a_write_means_nothing: "CQ-ARM-43");
fn solicited_bit_of_a_write_means_nothing(setup: &Setup<'_>) -> Result {
    solicited_bit_means_nothing(setup, |a| {
        a.post(SendWr::rdma_write(1, &[a.sge(0, 8)], a.remote()).solicited())
    })
}

scenario!(solicited_bit_of_a_read_means_nothing: "CQ-ARM-43"; needs RDMA_READ);
fn solicited_bit_of_a_read_means_nothing(setup: &Setup<'_>) -> Result {
    solicited_bit_means_nothing(setup, |a| {
        let into = [a.sge(a.landing(), 8)];
        a.post(SendWr::rdma_read(1, &into, a.remote()).solicited())
    })
}

/// On neither side: a receive stays posted, and both requests stay pending.
fn solicited_bit_means_nothing(setup: &Setup<'_>, post: fn(&End<'_>) -> Result) -> Result {
    let pair = setup.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    b.recv(7, 8)?;
    setup.arm(a.send_cq, Arm::SOLICITED)?;
    setup.arm(b.recv_cq, Arm::NEXT)?;
    post(&a)?;
    setup.successes(a.send_cq, 1)?;
    setup.no_event(a.channel, "CQ-ARM-43")?;
    setup.no_event(b.channel, "CQ-ARM-43")?;
    setup.no_completion(b.recv_cq, "CQ-ARM-43")?;
    a.send(2, 8)?;
    check_eq!("CQ-ARM-43", setup.successes(b.recv_cq, 1)?[0].wr_id, 7);
    setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-43")?;
    Ok(())
}

scenario!(message_of_many_packets_makes_one_event: "CQ-ARM-45", "CQ-ARM-02");
fn message_of_many_packets_makes_one_event(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    for arm in BOTH {
        for len in [1024, 1025, 8 * 1024, 8 * 1024 + 1] {
            setup.arm(b.recv_cq, arm)?;
            a.fill(len as u8 + 1, len)?;
            b.recv(1, len)?;
            a.send_solicited(1, len)?;
            setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-45")?;
            let present = setup.drain(b.recv_cq)?;
            check_eq!("CQ-ARM-02", present.len(), 1, "completions at the event");
            check_eq!("CQ-ARM-45", present[0].byte_len, len);
            b.expect_data(len as u8 + 1, len, "CQ-ARM-45")?;
            setup.successes(a.send_cq, 1)?;
            setup.no_event(b.channel, "CQ-ARM-45")?;
        }
    }
    Ok(())
}

scenario!(message_sent_again_fires_once: "CQ-ARM-45"; needs LAB);
fn message_sent_again_fires_once(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    let lost = setup
        .lab()
        .inject(Fault::drop(PacketFilter::EVERY.opcode(PacketOpcode::RcAcknowledge)).nth(1))?;
    setup.arm(b.recv_cq, Arm::NEXT)?;
    b.recv(1, 3000)?;
    a.send(1, 3000)?;
    setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-45")?;
    setup.successes(b.recv_cq, 1)?;
    setup.arm(b.recv_cq, Arm::NEXT)?;
    setup.successes(a.send_cq, 1)?;
    check_eq!("CQ-ARM-45", setup.lab().remove(lost)?, 1, "lost packets");
    setup.no_event(b.channel, "CQ-ARM-45")?;
    setup.no_completion(b.recv_cq, "CQ-ARM-45")
}

scenario!(dropped_datagram_fires_nothing: "CQ-ARM-47"; needs UD);
fn dropped_datagram_fires_nothing(setup: &Setup<'_>) -> Result {
    let pair = setup.pair(PairOptions::of(QpType::Ud))?;
    let (a, b) = (pair.a, pair.b);
    setup.arm(b.recv_cq, Arm::NEXT)?;
    a.send_solicited(1, 8)?;
    setup.successes(a.send_cq, 1)?;
    nothing_came(setup, &b)?;

    b.recv(7, 8)?;
    let sges = [a.sge(0, 8)];
    let mut bad_qkey = a.to_peer(SendWr::send(2, &sges).solicited());
    if let Dest::Ud { remote_qkey, .. } = &mut bad_qkey.dest {
        *remote_qkey ^= 1;
    }
    setup.post_send(a.qp, &[bad_qkey])?;
    setup.successes(a.send_cq, 1)?;
    nothing_came(setup, &b)?;
    fires_for_the_next(setup, &pair)
}

scenario!(message_without_a_receive_fires_nothing_on_uc: "CQ-ARM-47"; needs UC);
fn message_without_a_receive_fires_nothing_on_uc(setup: &Setup<'_>) -> Result {
    let pair = setup.pair(PairOptions::of(QpType::Uc))?;
    let (a, b) = (pair.a, pair.b);
    setup.arm(b.recv_cq, Arm::NEXT)?;
    a.send_solicited(1, 8)?;
    setup.successes(a.send_cq, 1)?;
    nothing_came(setup, &b)?;
    b.recv(7, 8)?;
    fires_for_the_next(setup, &pair)
}

scenario!(message_with_a_gap_fires_nothing_on_uc: "CQ-ARM-47"; needs UC, LAB);
fn message_with_a_gap_fires_nothing_on_uc(setup: &Setup<'_>) -> Result {
    for lost in 1..=3 {
        let pair = setup.pair(PairOptions::of(QpType::Uc))?;
        let (a, b) = (pair.a, pair.b);
        let fault = setup
            .lab()
            .inject(Fault::drop(PacketFilter::EVERY.dest_qpn(b.qp_num)).nth(lost))?;
        setup.arm(b.recv_cq, Arm::NEXT)?;
        b.recv(7, 3 * 1024)?;
        a.send_solicited(1, 3 * 1024)?;
        setup.successes(a.send_cq, 1)?;
        nothing_came(setup, &b)?;
        check_eq!("CQ-ARM-47", setup.lab().remove(fault)?, 1, "lost packets");
        fires_for_the_next(setup, &pair)?;
    }
    Ok(())
}

fn nothing_came(setup: &Setup<'_>, b: &End<'_>) -> Result {
    setup.no_event(b.channel, "CQ-ARM-47")?;
    setup.no_completion(b.recv_cq, "CQ-ARM-47")
}

/// The request is still pending: the next message, to the receive with wr_id 7, satisfies it.
fn fires_for_the_next(setup: &Setup<'_>, pair: &Pair<'_>) -> Result {
    let (a, b) = (pair.a, pair.b);
    a.send_solicited(3, 8)?;
    let wc = setup.successes(b.recv_cq, 1).rule("CQ-ARM-47")?[0];
    check_eq!("CQ-ARM-47", wc.wr_id, 7);
    setup.successes(a.send_cq, 1)?;
    setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-47")?;
    setup.no_event(b.channel, "CQ-ARM-47")
}
