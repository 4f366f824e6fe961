//! Which SRQ a message goes to, and its completion.

use std::collections::BTreeSet;

use verbs_api::behavior::UnknownSrq;
use verbs_api::lab::{Fault, PacketClass, PacketFilter, PacketOpcode};
use verbs_api::{
    Arm, Mtu, QpState, QpType, RcParams, RecvWr, SendWr, Srq, SrqInit, WcStatus, Xrcd, XrcdInit,
};

use super::{Named, beside_b};
use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::kind::Kind;
use crate::{End, Failure, OfRule, Pair, PairOptions, Result, Setup, wr_ids};

fn options() -> PairOptions {
    PairOptions::of(QpType::XrcSend)
}

/// One connection to a domain, seen as a pair with each of its SRQs: two of one context, and one of
/// another.
fn hub<'b>(setup: &'b Setup<'_>, file: &Named, options: PairOptions) -> Result<[Pair<'b>; 3]> {
    let xrcd = setup.open_xrcd(setup.ctx_b(), &file.init().create())?;
    let sibling = setup.open_xrcd(beside_b(setup)?, &file.init())?;
    let a = setup.end(setup.ctx_a(), options)?;
    let b = setup.xrc_end(xrcd, None, options)?;
    let first = setup.connect(a, b, options)?;
    let opened = setup.open_qp(sibling, b.qp_num)?;
    let second = setup.xrc_end(xrcd, Some(b.qp), options)?;
    let third = setup.xrc_end(sibling, Some(opened), options)?;
    Ok([
        first,
        setup.introduce(a, second)?,
        setup.introduce(a, third)?,
    ])
}

/// In which order the SRQs get messages.
const TURNS: [usize; 12] = [0, 1, 2, 2, 1, 0, 0, 0, 2, 1, 1, 2];

scenario!(message_takes_a_receive_of_the_srq_it_names: "XRC-04"; needs XRC);
fn message_takes_a_receive_of_the_srq_it_names(setup: &Setup<'_>) -> Result {
    const RULE: &str = "XRC-04";
    let file = Named::new("names");
    let pairs = hub(setup, &file, options())?;
    let number = |turn: usize, i: usize| (turn * 100 + i) as u64;
    for (i, turn) in TURNS.into_iter().enumerate() {
        let place = pairs[turn].b.landing() + 64 * i as u64;
        pairs[turn].b.recv_at(number(turn, i), place, 64)?;
    }
    for (i, turn) in TURNS.into_iter().enumerate() {
        let Pair { a, b } = pairs[turn];
        let case = || format!("message {i}, to srq {turn}");
        a.fill(i as u8, 64)?;
        a.send(i as u64, 64).rule(RULE)?;
        setup.successes(a.send_cq, 1).rule(RULE)?;
        let got = value_in_case(&case(), setup.successes(b.recv_cq, 1).rule(RULE))?[0];
        check_eq!(RULE, got.wr_id, number(turn, i), case());
        check_eq!(RULE, got.byte_len, 64, case());
        b.expect_data_at(b.landing() + 64 * i as u64, i as u8, 64, RULE)?;
        for other in &pairs {
            let more = setup.drain(other.b.recv_cq)?;
            check!(RULE, more.is_empty(), "one completion", "{more:?}");
        }
    }
    Ok(())
}

scenario!(message_with_immediate_takes_a_receive_of_the_srq_it_names:
    "XRC-04"; needs SEND_WITH_IMM, WRITE_WITH_IMM, XRC);
fn message_with_immediate_takes_a_receive_of_the_srq_it_names(setup: &Setup<'_>) -> Result {
    const RULE: &str = "XRC-04";
    let file = Named::new("imm");
    let pairs = hub(setup, &file, options())?;
    for (i, turn) in TURNS.into_iter().enumerate() {
        let Pair { a, b } = pairs[turn];
        let kind = [Kind::SendImm, Kind::WriteImm][i % 2];
        b.recv(i as u64, 64)?;
        a.fill(i as u8, 64)?;
        let (data, imm) = ([a.sge(0, 64)], [9, 8, 7, i as u8]);
        a.post(kind.work_with(&a, 1, &data, imm)).rule(RULE)?;
        setup.successes(a.send_cq, 1).rule(RULE)?;
        let got = setup.successes(b.recv_cq, 1).rule(RULE);
        let got = value_in_case(&format!("{kind:?} to srq {turn}"), got)?[0];
        let seen = (got.wr_id, got.imm_data);
        check_eq!(RULE, seen, (i as u64, imm), "receive and data");
        b.expect_data(i as u8, 64, RULE)?;
    }
    Ok(())
}

/// The same SRQ, with one more queue pair of its domain.
fn sibling<'b>(setup: &Setup<'_>, mut end: End<'b>, xrcd: Xrcd) -> Result<End<'b>> {
    end.qp = setup.create_xrc_recv_qp(xrcd)?;
    end.qp_num = setup.qp_num(end.qp)?;
    Ok(end)
}

scenario!(connections_share_an_srq: "XRC-04", "SRQ-03"; needs XRC);
/// Two connections, each with its own target, to one SRQ.
fn connections_share_an_srq(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-03";
    let xrcd = setup.open_xrcd(setup.ctx_b(), &XrcdInit::private())?;
    let b = setup.xrc_end(xrcd, None, options())?;
    let first = setup.connect(setup.end(setup.ctx_a(), options())?, b, options())?;
    let other = sibling(setup, b, xrcd)?;
    let second = setup.end(setup.ctx_a(), options())?;
    let second = setup.connect(second, other, options())?;
    for wr_id in 0..8 {
        b.recv(wr_id, 64)?;
    }
    for (wr_id, pair) in (0..).zip([first, second, second, first, first, second, first]) {
        pair.a.send(1, 8)?;
        setup.successes(pair.a.send_cq, 1)?;
        let got = setup.successes(b.recv_cq, 1).rule("XRC-04")?[0];
        let seen = (got.wr_id, got.qp_num);
        check_eq!(RULE, seen, (wr_id, pair.b.qp_num), "receive and QP");
    }
    Ok(())
}

fn small_packets() -> PairOptions {
    PairOptions {
        rc: RcParams {
            path_mtu: Mtu::Mtu256,
            timeout: 8,
            retry_cnt: 1,
            ..RcParams::default()
        },
        ..options()
    }
}

scenario!(message_of_many_packets_takes_one_receive: "XRC-04"; needs XRC);
fn message_of_many_packets_takes_one_receive(setup: &Setup<'_>) -> Result {
    const RULE: &str = "XRC-04";
    let file = Named::new("many");
    let pairs = hub(setup, &file, small_packets())?;
    for (tag, length) in (1..).zip([0_u32, 1, 256, 257, 1000, 4096]) {
        for (turn, Pair { a, b }) in pairs.iter().enumerate() {
            b.recv(u64::from(length), length)?;
            a.fill(tag, length)?;
            a.send(1, length)?;
            setup.successes(a.send_cq, 1).rule(RULE)?;
            let got = setup.successes(b.recv_cq, 1).rule(RULE);
            let got = value_in_case(&format!("{length} bytes to srq {turn}"), got)?;
            check_eq!(RULE, wr_ids(&got), [u64::from(length)]);
            check_eq!(RULE, got[0].byte_len, length);
            b.expect_data(tag, length, RULE)?;
        }
    }
    Ok(())
}

scenario!(solicited_message_fires_at_the_cq_of_its_srq: "CQ-ARM-46", "XRC-04"; needs XRC);
fn solicited_message_fires_at_the_cq_of_its_srq(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-ARM-46";
    let file = Named::new("solicited");
    let pairs = hub(setup, &file, options())?;
    let Pair { a, b } = pairs[1];
    for pair in &pairs {
        setup.arm(pair.b.recv_cq, Arm::SOLICITED)?;
    }
    for wr_id in 0..2 {
        b.recv(wr_id, 8)?;
    }
    a.send(1, 8)?;
    setup.successes(a.send_cq, 1)?;
    setup.no_event(b.channel, RULE)?;
    a.send_solicited(2, 8)?;
    setup.expect_event(b.channel, b.recv_cq, RULE)?;
    setup.successes(b.recv_cq, 2)?;
    for pair in [pairs[0], pairs[2]] {
        setup.no_event(pair.b.channel, "XRC-04")?;
    }
    Ok(())
}

scenario!(number_of_an_srq_that_is_gone_names_no_other: "XRC-10", "XRC-04"; needs XRC, LAB);
/// Many others take the room of many destroyed ones.
fn number_of_an_srq_that_is_gone_names_no_other(setup: &Setup<'_>) -> Result {
    const RULE: &str = "XRC-10";
    const MANY: usize = 150;
    let xrcd = setup.open_xrcd(setup.ctx_b(), &XrcdInit::private())?;
    let a = setup.end(setup.ctx_a(), options())?;
    let b = setup.xrc_end(xrcd, None, options())?;
    let Pair { a, b } = setup.connect(a, b, options())?;
    let make = || -> Result<Vec<(Srq, u32)>> {
        let one = |_| {
            let srq = setup.create_srq(b.pd, &SrqInit::new(4).xrc(xrcd, b.recv_cq))?;
            Ok((srq, setup.srq_num(srq)?))
        };
        (0..MANY).map(one).collect()
    };
    let gone = make()?;
    for (srq, _) in &gone {
        setup.destroy_srq(*srq, setup.wait())?;
    }
    let present = make()?;
    let numbers = gone.iter().chain(&present).map(|(_, number)| *number);
    let distinct = BTreeSet::from_iter(numbers).len();
    check_eq!(RULE, distinct, 2 * MANY, "numbers");
    let data = [a.sge(0, 8)];
    for (wr_id, (srq, number)) in (0..).zip(&present) {
        let room = [b.sge(b.landing(), 8)];
        setup.post_srq_recv(*srq, &[RecvWr::new(wr_id, &room)])?;
        setup.post_send(a.qp, &[SendWr::send(1, &data).to_srq(*number)])?;
        let case = format!("srq {number:#x}");
        value_in_case(&case, setup.successes(a.send_cq, 1).rule("XRC-04"))?;
        let wc = setup.successes(b.recv_cq, 1).rule("XRC-04")?[0];
        check_eq!("XRC-04", wc.wr_id, wr_id, case);
        setup.post_srq_recv(*srq, &[RecvWr::new(wr_id, &room)])?;
    }
    setup.post_send(a.qp, &[SendWr::send(2, &data).to_srq(gone[0].1)])?;
    setup.one(a.send_cq)?;
    setup.no_completion(b.recv_cq, RULE)
}

scenario!(srq_that_is_none_of_the_domain_is_an_error: "XRC-06"; needs XRC);
fn srq_that_is_none_of_the_domain_is_an_error(setup: &Setup<'_>) -> Result {
    const RULE: &str = "XRC-06";
    let stranger = setup.peer_end(options())?;
    let of_stranger = setup.srq_num(stranger.srq())?;
    let xrcd = setup.open_xrcd(setup.ctx_b(), &XrcdInit::private())?;
    let gone = setup.create_srq(stranger.pd, &SrqInit::new(4).xrc(xrcd, stranger.recv_cq))?;
    let number_of_gone = setup.srq_num(gone)?;
    setup.destroy_srq(gone, setup.wait())?;
    for kind in [Kind::Send, Kind::Write] {
        for what in ["another domain's", "a destroyed one", "0", "of 24 ones"] {
            let a = setup.end(setup.ctx_a(), options())?;
            let b = setup.xrc_end(xrcd, None, options())?;
            let Pair { a, b } = setup.connect(a, b, options())?;
            let number = match what {
                "0" => 0,
                "of 24 ones" => 0x00ff_ffff,
                "a destroyed one" => number_of_gone,
                _ => of_stranger,
            };
            for end in [&stranger, &b] {
                end.recv(1, 8)?;
            }
            let data = [a.sge(0, 8)];
            let wr = kind.work(&a, 1, &data).to_srq(number);
            setup.post_send(a.qp, &[wr]).rule(RULE)?;
            let case = format!("{kind:?} to {what}");
            let wc = value_in_case(&case, setup.one(a.send_cq).rule(RULE))?;
            let seen = match wc.status {
                WcStatus::RemInvReqErr => UnknownSrq::RemInvReqErr,
                WcStatus::RemOpErr => UnknownSrq::RemOpErr,
                _ => {
                    let expected = format!("{case}: REM_INV_REQ_ERR or REM_OP_ERR");
                    let failure = Failure::assertion(expected, wc.to_string());
                    return Err(failure).rule(RULE);
                }
            };
            check_eq!(RULE, setup.state(a.qp)?, QpState::Err, case);
            for end in [&stranger, &b] {
                setup.no_completion(end.recv_cq, RULE)?;
            }
            setup.as_declared(RULE, setup.behavior()?.xrc_unknown_srq, seen)?;
        }
    }
    Ok(())
}

scenario!(empty_srq_is_a_receiver_that_is_not_ready: "SRQ-13", "RNR-01", "RNR-03"; needs RNR, XRC);
fn empty_srq_is_a_receiver_that_is_not_ready(setup: &Setup<'_>) -> Result {
    let file = Named::new("empty");
    // Receives elsewhere do not help.
    let full = hub(setup, &file, options())?;
    let Pair { a, b } = full[0];
    for pair in &full[1..] {
        pair.b.recv(1, 8)?;
    }
    a.send(2, 8)?;
    for _ in 0..4 {
        let early = setup.drain(a.send_cq)?;
        check!("RNR-01", early.is_empty(), "it waits", "{early:?}");
    }
    b.recv(3, 8)?;
    let sent = setup.successes(a.send_cq, 1).rule("RNR-01")?;
    check_eq!("RNR-01", wr_ids(&sent), [2]);
    let got = setup.successes(b.recv_cq, 1).rule("SRQ-13")?;
    check_eq!("SRQ-13", wr_ids(&got), [3]);
    let impatient = PairOptions {
        rc: RcParams {
            rnr_retry: 1,
            min_rnr_timer: 1,
            ..RcParams::default()
        },
        ..options()
    };
    let Pair { a, b } = setup.pair(impatient)?;
    a.send(1, 8)?;
    setup.one_with(a.send_cq, WcStatus::RnrRetryExcErr, "RNR-03")?;
    check_eq!("RNR-03", setup.state(a.qp)?, QpState::Err);
    setup.no_completion(b.recv_cq, "SRQ-13")
}

scenario!(message_above_its_receive_fails_on_both_sides: "RQ-05"; needs XRC);
fn message_above_its_receive_fails_on_both_sides(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RQ-05";
    let Pair { a, b } = setup.pair(options())?;
    b.recv(1, 8)?;
    b.recv(2, 8)?;
    a.send(3, 9)?;
    setup.one_with(a.send_cq, WcStatus::RemInvReqErr, RULE)?;
    let failed = setup.one_with(b.recv_cq, WcStatus::LocLenErr, RULE)?;
    check_eq!(RULE, failed.wr_id, 1);
    for qp in [a.qp, b.qp] {
        check_eq!(RULE, setup.state(qp)?, QpState::Err);
    }
    setup.no_completion(b.recv_cq, RULE)
}

scenario!(receives_stay_when_a_target_fails_or_goes: "QP-FLUSH-04", "SRQ-14"; needs XRC);
fn receives_stay_when_a_target_fails_or_goes(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-FLUSH-04";
    let xrcd = setup.open_xrcd(setup.ctx_b(), &XrcdInit::private())?;
    let b = setup.xrc_end(xrcd, None, options())?;
    let first = setup.connect(setup.end(setup.ctx_a(), options())?, b, options())?;
    for wr_id in 0..4 {
        b.recv(wr_id, 64)?;
    }
    let takes = |pair: &Pair<'_>, wr_id: u64, rule| -> Result {
        pair.a.send(1, 8)?;
        setup.successes(pair.a.send_cq, 1)?;
        let got = setup.successes(b.recv_cq, 1).rule(rule)?;
        check_eq!(rule, wr_ids(&got), [wr_id]);
        Ok(())
    };
    takes(&first, 0, RULE)?;
    setup.to_err(b.qp)?;
    setup.no_completion(b.recv_cq, RULE)?;
    for (wr_id, rule) in [(1, RULE), (2, "SRQ-14"), (3, "SRQ-14")] {
        let end = sibling(setup, b, xrcd)?;
        let pair = setup.connect(setup.end(setup.ctx_a(), options())?, end, options())?;
        takes(&pair, wr_id, rule)?;
        setup.destroy_qp(end.qp, setup.wait())?;
    }
    Ok(())
}

scenario!(receive_under_way_is_flushed_to_the_cq_of_its_srq:
    "QP-FLUSH-01", "XRC-04"; needs XRC, LAB);
fn receive_under_way_is_flushed_to_the_cq_of_its_srq(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-FLUSH-01";
    let pair = setup.pair(small_packets())?;
    let Pair { a, b } = pair;
    b.recv(1, 1024)?;
    b.recv(2, 1024)?;
    let last = PacketFilter::EVERY.opcode(PacketOpcode::XrcSendLast);
    (setup.lab()).inject(Fault::drop(last))?;
    a.send(3, 1024)?;
    setup.one_with(a.send_cq, WcStatus::RetryExcErr, RULE)?;
    setup.no_completion(b.recv_cq, RULE)?;
    setup.to_err(b.qp)?;
    let flushed = setup.one_with(b.recv_cq, WcStatus::WrFlushErr, RULE)?;
    check_eq!("XRC-04", flushed.wr_id, 1);
    setup.no_completion(b.recv_cq, RULE)
}

scenario!(lost_packets_are_sent_again: "TMR-03", "XRC-04"; needs XRC, LAB);
/// The first of every kind of packet is lost.
fn lost_packets_are_sent_again(setup: &Setup<'_>) -> Result {
    const RULE: &str = "TMR-03";
    for opcode in [
        PacketOpcode::XrcSendFirst,
        PacketOpcode::XrcSendMiddle,
        PacketOpcode::XrcSendLast,
        PacketOpcode::XrcAcknowledge,
    ] {
        let Pair { a, b } = setup.pair(small_packets())?;
        let packets = PacketFilter::EVERY.opcode(opcode);
        let lost = (setup.lab()).inject(Fault::drop(packets).nth(1))?;
        b.recv(1, 1024)?;
        a.fill(4, 1024)?;
        a.send(2, 1024)?;
        for cq in [a.send_cq, b.recv_cq] {
            let done = setup.successes(cq, 1).rule(RULE);
            in_case(&opcode.to_string(), done.map(drop))?;
        }
        b.expect_data(4, 1024, RULE)?;
        setup.no_completion(b.recv_cq, "XRC-04")?;
        check_eq!(RULE, setup.lab().remove(lost)?, 1, "packets lost");
    }
    Ok(())
}

scenario!(requests_name_their_srq_and_answers_do_not: "XRC-04"; needs XRC, LAB);
fn requests_name_their_srq_and_answers_do_not(setup: &Setup<'_>) -> Result {
    const RULE: &str = "XRC-04";
    let file = Named::new("packets");
    let pairs = hub(setup, &file, small_packets())?;
    for pair in &pairs {
        let Pair { a, b } = pair;
        let number = setup.srq_num(b.srq())?;
        setup.lab().tap();
        b.recv(1, 600)?;
        a.send(2, 600)?;
        let remote = b.mem.remote(0);
        a.post(SendWr::rdma_write(3, &[a.sge(0, 300)], remote))?;
        setup.successes(a.send_cq, 2)?;
        setup.successes(b.recv_cq, 1)?;
        let packets = setup.lab().tapped();
        for seen in &packets {
            let is_answer = seen.packet.opcode == PacketOpcode::XrcAcknowledge;
            let expected = (!is_answer).then_some(number);
            check_eq!(
                RULE,
                seen.packet.srqn,
                expected,
                format!("of {}", seen.packet)
            );
        }
        let requests = packets.iter().filter(|seen| seen.packet.srqn.is_some());
        check!(RULE, requests.count() >= 2, "requests", "{packets:?}");
    }
    Ok(())
}

scenario!(read_that_comes_again_is_answered_from_its_own_domain:
    "XRC-04", "RDMA-23"; needs RDMA_READ, XRC, LAB);
/// A message for another SRQ, of another domain, has come in between.
fn read_that_comes_again_is_answered_from_its_own_domain(setup: &Setup<'_>) -> Result {
    let file = Named::new("again");
    let [first, second, _] = hub(setup, &file, small_packets())?;
    first.b.fill(4, 600)?;
    second.b.recv(1, 8)?;
    let lost = PacketFilter::EVERY.class(PacketClass::Response);
    setup.lab().inject(Fault::drop(lost).nth(1))?;
    let (a, into) = (first.a, first.a.landing());
    let data = [a.sge(into, 600)];
    a.post(SendWr::rdma_read(2, &data, first.b.mem.remote(0)))?;
    second.a.send(3, 8)?;
    let done = wr_ids(&setup.successes(a.send_cq, 2).rule("RDMA-23")?);
    check_eq!("RDMA-23", done, [2, 3], "the order of work");
    a.expect_data_at(into, 4, 600, "RDMA-23")?;
    let got = wr_ids(&setup.successes(second.b.recv_cq, 1).rule("XRC-04")?);
    check_eq!("XRC-04", got, [1], "the receive");
    Ok(())
}
