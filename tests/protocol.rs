//! The transports under loss: what a program sees is what it would see without, or an error that
//! says so.
//!
//! Everything is in virtual time: counts of packets and times are exact.

mod common;

use core::time::Duration;

use common::{End, pair, settle};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, RngSeed};
use verbs_api::{
    AhAttr, Cause, ErrorKind, Fault, Lab, Mtu, PacketFilter, PacketOpcode, Qp, QpAttr, QpAttrMask,
    QpModify, QpState, QpType, RcParams, SendOp, SendWr, Syndrome, TappedPacket, Verbs, Wait, Wc,
    WcFlags, WcOpcode, WcStatus, When, connect, transition,
};
use verbs_sim::{Sim, SimConfig};

// Loss

/// TMR-03, TMR-08, TMR-13, RDMA-23, RDMA-24: whichever single packet of an exchange is lost,
/// completions, their order and all data are as without loss, and one retry is enough. Also with
/// sequence numbers that wrap.
#[test]
fn any_single_lost_packet_costs_nothing_but_time() {
    let mut runs = 0;
    for (mtu, bytes) in [
        (Mtu::Mtu256, 256),
        (Mtu::Mtu1024, 1024),
        (Mtu::Mtu4096, 4096),
    ] {
        let params = RcParams {
            path_mtu: mtu,
            psn_a: 0xff_fffe,
            psn_b: 0x12_3456,
            retry_cnt: 1,
            ..RcParams::default()
        };
        for kind in Kind::ALL {
            for length in [0, 1, bytes, bytes + 1, 3 * bytes] {
                let first = Work::new(kind, length).unsignaled();
                let program = [first, Work::new(kind, length)];
                runs += each_single_loss(&program, &params);
            }
        }
    }
    println!("{runs} packets lost");
    assert!(runs > 300, "{runs}");
}

/// TMR-08: the same with different operations that follow each other, and read credits for one and
/// for two.
#[test]
fn any_single_lost_packet_of_a_mixed_exchange_costs_nothing_but_time() {
    for max_rd_atomic in [1, 2] {
        let params = RcParams {
            path_mtu: Mtu::Mtu256,
            max_rd_atomic,
            retry_cnt: 1,
            ..RcParams::default()
        };
        for rotation in 0..Kind::ALL.len() {
            let mut kinds = Kind::ALL;
            kinds.rotate_left(rotation);
            let program = kinds.map(|kind| Work::new(kind, 600));
            assert!(each_single_loss(&program, &params) > 10);
        }
    }
}

/// TMR-08: whichever two packets are lost, two retries are enough.
#[test]
fn any_two_lost_packets_cost_nothing_but_time() {
    let params = RcParams {
        path_mtu: Mtu::Mtu256,
        retry_cnt: 2,
        ..RcParams::default()
    };
    let program = Kind::ALL.map(|kind| Work::new(kind, 300));
    let packets = run(&program, &params, &[], 0).packets;
    for first in 1..=packets {
        for second in 1..=2 * packets {
            let faults = [lose(When::Nth(first)), lose(When::Nth(second))];
            let ran = run(&program, &params, &faults, 0);
            ran.assert_like(&program, &format!("packets {first} and {second} lost"));
        }
    }
}

/// Loses each packet of a program in turn; how many there were.
fn each_single_loss(program: &[Work], params: &RcParams) -> u64 {
    for n in 0.. {
        // The 0th is none: the run without loss.
        let faults: &[Fault] = &[lose(When::Nth(n))];
        let ran = run(program, params, &faults[..n.min(1) as usize], 0);
        ran.assert_like(program, &format!("packet {n} lost"));
        if n > 0 && ran.lost == 0 {
            return n - 1;
        }
    }
    unreachable!("some packet is the last")
}

fn lose(when: When) -> Fault {
    Fault::DropPacket {
        packets: PacketFilter::default(),
        when,
    }
}

fn config() -> Config {
    let given = Config::default();
    Config {
        rng_seed: match given.rng_seed {
            RngSeed::Random => RngSeed::Fixed(0),
            fixed => fixed,
        },
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..given
    }
}

fn program() -> impl Strategy<Value = (Mtu, Vec<Work>)> {
    let mtu = prop_oneof![
        Just((Mtu::Mtu256, 256_u32)),
        Just((Mtu::Mtu512, 512)),
        Just((Mtu::Mtu1024, 1024))
    ];
    mtu.prop_flat_map(|(mtu, bytes)| {
        let length = (0..5_u32, -1..=1_i32)
            .prop_map(move |(packets, more)| (packets * bytes).saturating_add_signed(more));
        let kind = prop::sample::select(&Kind::ALL[..]);
        let work = (kind, length, any::<bool>(), any::<bool>()).prop_map(
            |(kind, length, signaled, fenced)| Work {
                kind,
                length,
                signaled,
                fenced,
            },
        );
        (Just(mtu), prop::collection::vec(work, 1..16))
    })
}

proptest! {
    #![proptest_config(config())]

    /// TMR-05, TMR-08, TMR-13, SQ-12, RDMA-18: with up to one packet in five lost, a program sees
    /// what it would see without loss; or up to some work request, that one with RETRY_EXC_ERR, and
    /// those behind it flushed.
    #[test]
    fn random_loss_costs_time_or_ends_with_retries_exceeded(
        (path_mtu, program) in program(),
        rate in 0..=200_000_u32,
        seed: u64,
        max_rd_atomic in 1..4_u8,
        (psn_a, psn_b) in (psn(), psn()),
    ) {
        let params = RcParams {
            path_mtu,
            max_rd_atomic,
            psn_a,
            psn_b,
            ..RcParams::default()
        };
        let ran = run(&program, &params, &[lose(When::PerMillion(rate))], seed);
        let failed = ran.sent.iter().position(|wc| wc.status != WcStatus::Success);
        let Some(failed) = failed else {
            ran.assert_like(&program, "random loss");
            return Ok(());
        };
        prop_assert!(ran.lost > params.retry_cnt.into(), "{} lost packets are enough", ran.lost);
        prop_assert_eq!(ran.sent[failed].status, WcStatus::RetryExcErr);
        let behind = &ran.sent[failed + 1..];
        prop_assert!(behind.iter().all(|wc| wc.status == WcStatus::WrFlushErr));
        let expected = ran.expected(&program);
        prop_assert_eq!(&ran.sent[..failed], &expected.sent[..failed]);
        let received = ran.received.len();
        prop_assert_eq!(&ran.received[..], &expected.received[..received]);
        prop_assert!(ran.arrived[..received] == expected.arrived[..received]);
    }
}

/// Any, and often near the wrap.
fn psn() -> impl Strategy<Value = u32> {
    prop_oneof![0..0x100_0000_u32, 0xff_fff0..0x100_0000_u32]
}

/// TMR-08: a gap is found by the packet behind it, and answered once, not only by the time-out; so
/// is the next gap.
#[test]
fn each_gap_is_answered_by_one_nak() {
    let sim = Sim::new(SimConfig::new());
    let link = Link::new(&sim, QpType::Rc, &RcParams::default());
    sim.tap();
    for gap in 0..3 {
        let fault = sim.inject(lose(When::Nth(1))).unwrap();
        for wr_id in 0..3 {
            link.far.recv(link.peer, wr_id, 0, 8);
            link.near.send(link.qp, wr_id, 0, 8);
        }
        settle(&sim);
        sim.remove(fault).unwrap();
        let tapped = sim.tapped();
        let answers = tapped.iter().filter_map(|tapped| tapped.packet.syndrome);
        let naks = answers.filter(|answer| *answer == Syndrome::NakPsnSequence);
        assert_eq!(naks.count(), 1, "gap {gap}");
        assert_eq!(statuses(&link.near.drain()), [WcStatus::Success; 3]);
        assert_eq!(wr_ids(&link.far.drain()), [0, 1, 2]);
    }
    // The time-out is 67 ms.
    assert!(sim.now() < Duration::from_millis(1));
}

/// TMR-05: each message loses its first packet once, and there is one retry for each.
#[test]
fn progress_restores_the_retries() {
    let sim = Sim::new(SimConfig::new());
    let params = RcParams {
        retry_cnt: 1,
        ..RcParams::default()
    };
    let link = Link::new(&sim, QpType::Rc, &params);
    for wr_id in 0..20 {
        let fault = sim.inject(lose(When::Nth(1))).unwrap();
        link.far.recv(link.peer, wr_id, 0, 8);
        link.near.send(link.qp, wr_id, 0, 8);
        settle(&sim);
        assert_eq!(sim.remove(fault).unwrap(), 1);
        assert_eq!(statuses(&link.far.drain()), [WcStatus::Success]);
        assert_eq!(statuses(&link.near.drain()), [WcStatus::Success]);
    }
}

// Sequence numbers

/// TMR-13: sequence numbers go from 0xffffff to 0 within a message and between messages.
#[test]
fn sequence_numbers_wrap() {
    let sim = Sim::new(SimConfig::new());
    let params = RcParams {
        path_mtu: Mtu::Mtu256,
        psn_a: 0xff_fffe,
        ..RcParams::default()
    };
    let link = Link::new(&sim, QpType::Rc, &params);
    sim.tap();
    for length in [1024, 256] {
        link.far.recv(link.peer, 0, 0, 4096);
        link.near.send(link.qp, 0, 0, length);
    }
    settle(&sim);
    assert_eq!(statuses(&link.near.drain()), [WcStatus::Success; 2]);
    let tapped = sim.tapped();
    let sent = link.requests(&tapped).map(|tapped| tapped.packet.psn);
    assert!(sent.eq([0xff_fffe, 0xff_ffff, 0, 1, 2]));
}

/// TMR-14: where the first sequence numbers do not match nothing is delivered, and the sender ends
/// with RETRY_EXC_ERR, whichever way and however far they are apart.
#[test]
fn mismatched_sequence_numbers_deliver_nothing() {
    for apart in [
        1,
        2,
        1 << 22,
        (1 << 23) - 1,
        1 << 23,
        (1 << 23) + 1,
        -(1 << 22),
        -3,
        -2,
        -1,
    ] {
        for packets in 1..=3 {
            if (-2..0).contains(&apart) && packets > -apart {
                // A later packet of the message has the number that is expected: another error.
                continue;
            }
            let sim = Sim::new(SimConfig::new());
            let link = Link::new(&sim, QpType::Rc, &RcParams::default());
            link.change(link.peer, |attr| {
                attr.rq_psn = attr.rq_psn.wrapping_sub_signed(apart) & 0xff_ffff;
            });
            link.far.recv(link.peer, 0, 0, 4096);
            link.near.send(link.qp, 0, 0, packets as u32 * 1024);
            settle(&sim);
            assert_eq!(
                (statuses(&link.near.drain()), link.far.drain()),
                (vec![WcStatus::RetryExcErr], vec![]),
                "{apart:#x} apart, {packets} packets"
            );
            assert_eq!(link.near.state(link.qp), QpState::Err);
        }
    }
}

// Time-outs

/// TMR-01, TMR-03, TMR-04: with a peer that is gone a request is sent n + 1 times, each so long
/// after the one before as the code says, and so long after the last comes RETRY_EXC_ERR.
#[test]
fn a_dead_peer_costs_all_retries_and_their_time() {
    for retry_cnt in 0..=7_u8 {
        for timeout in [1, 8, 14, 18] {
            let wait = Duration::from_nanos(4096 << timeout);
            let sim = Sim::new(SimConfig::new());
            let params = RcParams {
                timeout,
                retry_cnt,
                ..RcParams::default()
            };
            let link = Link::new(&sim, QpType::Rc, &params);
            sim.destroy_qp(link.peer, Wait::Poll).unwrap();
            sim.tap();
            link.near.send(link.qp, 1, 0, 8);
            settle(&sim);
            let tries = u32::from(retry_cnt) + 1;
            let times: Vec<_> = sim.tapped().iter().map(|packet| packet.at).collect();
            let expected: Vec<_> = (0..tries).map(|n| wait * n).collect();
            assert_eq!(times, expected, "retry_cnt {retry_cnt}, timeout {timeout}");
            assert_eq!(sim.now(), wait * tries);
            assert_eq!(statuses(&link.near.drain()), [WcStatus::RetryExcErr]);
            assert_eq!(link.near.state(link.qp), QpState::Err);
        }
    }
}

/// TMR-01, TMR-10: time-out code 0 waits for ever; the error state ends it.
#[test]
fn without_a_time_out_work_stays_outstanding() {
    let sim = Sim::new(SimConfig::new());
    let params = RcParams {
        timeout: 0,
        ..RcParams::default()
    };
    let link = Link::new(&sim, QpType::Rc, &params);
    sim.destroy_qp(link.peer, Wait::Poll).unwrap();
    link.near.send(link.qp, 1, 0, 8);
    settle(&sim);
    sim.advance(Duration::from_secs(1000)).unwrap();
    assert_eq!(link.near.drain(), []);
    link.near.fail(link.qp);
    assert_eq!(statuses(&link.near.drain()), [WcStatus::WrFlushErr]);
}

// Receiver not ready

/// The waits by their code, in units of 10 us (TMR-06).
const RNR_WAITS: [u64; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

/// RNR-01, RNR-03, RNR-05, RNR-06, TMR-06: without a receive a request is sent n + 1 times, each so
/// long after the receiver's answer as its timer code says; then comes RNR_RETRY_EXC_ERR, and
/// nothing at the receiver.
#[test]
fn a_receiver_that_is_not_ready_costs_all_rnr_retries_and_their_waits() {
    let latency = Duration::from_micros(1);
    for (code, units) in (0..).zip(RNR_WAITS) {
        for rnr_retry in [0, 1, 3, 6] {
            let sim = Sim::new(SimConfig::new().latency(latency));
            let params = RcParams {
                // The time-out must not be in the way of the longest wait.
                timeout: 0,
                rnr_retry,
                min_rnr_timer: code,
                ..RcParams::default()
            };
            let link = Link::new(&sim, QpType::Rc, &params);
            sim.tap();
            link.near.send(link.qp, 1, 0, 8);
            settle(&sim);
            let tapped = sim.tapped();
            let times: Vec<_> = link.requests(&tapped).map(|packet| packet.at).collect();
            let period = Duration::from_micros(10 * units) + 2 * latency;
            let expected: Vec<_> = (0..=rnr_retry.into()).map(|n| period * n).collect();
            assert_eq!(times, expected, "code {code}, rnr_retry {rnr_retry}");
            let answers = tapped.iter().filter_map(|packet| packet.packet.syndrome);
            let codes: Vec<_> = answers.map(|syndrome| syndrome.rnr_timer()).collect();
            assert_eq!(codes, vec![Some(code); times.len()]);
            assert_eq!(statuses(&link.near.drain()), [WcStatus::RnrRetryExcErr]);
            assert_eq!(link.near.state(link.qp), QpState::Err);
            assert_eq!(link.far.drain(), []);
            let event = sim.get_async_event(link.far.context, Wait::Poll);
            assert_eq!(event.unwrap_err().kind(), ErrorKind::WouldBlock);
        }
    }
}

/// RNR-02, TMR-04: rnr_retry 7 has no limit. The laboratory says which timer keeps it from
/// settling; with a receive all ends well.
#[test]
fn endless_rnr_retry_is_a_stall_that_names_its_timer() {
    let sim = Sim::new(SimConfig::new().horizon(Duration::from_secs(1)));
    let link = Link::new(&sim, QpType::Rc, &RcParams::default());
    link.near.send(link.qp, 1, 0, 8);
    let error = sim.settle().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Stalled);
    let Cause::Stall(stall) = error.cause() else {
        panic!("{error}");
    };
    let timers: Vec<_> = stall
        .timers
        .iter()
        .map(|timer| (timer.qp, timer.what))
        .collect();
    assert_eq!(timers, [(link.qp, "RNR timer")]);
    assert_eq!(link.near.drain(), []);
    link.far.recv(link.peer, 1, 0, 8);
    settle(&sim);
    assert_eq!(statuses(&link.near.drain()), [WcStatus::Success]);
}

/// TMR-11, RNR-07, RNR-08: a long wait for a receive uses up no other retries, and what is posted
/// behind waits too.
#[test]
fn work_behind_a_wait_for_a_receive_waits_in_order() {
    for kind in [Kind::Send, Kind::WriteImm] {
        let sim = Sim::new(SimConfig::new());
        let params = RcParams {
            retry_cnt: 0,
            ..RcParams::default()
        };
        let link = Link::new(&sim, QpType::Rc, &params);
        let program = [kind, Kind::Write, Kind::Read].map(|kind| Work::new(kind, 3000));
        link.fill(&program);
        link.post(&program);
        sim.advance(Duration::from_secs(10)).unwrap();
        assert_eq!((link.near.drain(), link.far.drain()), (vec![], vec![]));
        assert_eq!(
            link.far.read(link.layout.coming(1), 3000),
            [0; 3000],
            "the write has not begun"
        );
        link.post_receives(&program);
        settle(&sim);
        link.results().assert_like(&program, "after a long wait");
    }
}

/// RNR-04: progress restores the RNR retries.
#[test]
fn progress_restores_the_rnr_retries() {
    let sim = Sim::new(SimConfig::new());
    let params = RcParams {
        rnr_retry: 2,
        min_rnr_timer: 20,
        ..RcParams::default()
    };
    let link = Link::new(&sim, QpType::Rc, &params);
    for wr_id in 0..5 {
        link.near.send(link.qp, wr_id, 0, 8);
        // Past the second try, and before the third, which is the last.
        sim.advance(Duration::from_millis(15)).unwrap();
        link.far.recv(link.peer, wr_id, 0, 8);
        settle(&sim);
        assert_eq!(
            statuses(&link.near.drain()),
            [WcStatus::Success],
            "message {wr_id}"
        );
    }
}

// Reads

/// RDMA-18: never more reads are outstanding than allowed; those beyond wait, and all succeed in
/// order.
#[test]
fn reads_beyond_the_limit_wait() {
    const READS: usize = 10;
    for max_rd_atomic in [1, 2, 4, 16] {
        let sim = Sim::new(SimConfig::new());
        let params = RcParams {
            max_rd_atomic,
            ..RcParams::default()
        };
        let link = Link::new(&sim, QpType::Rc, &params);
        let program = [Work::new(Kind::Read, 100); READS];
        sim.tap();
        link.run(&program);
        let (mut outstanding, mut most) = (0, 0);
        for tapped in sim.tapped() {
            match tapped.packet.opcode {
                PacketOpcode::RcReadRequest => outstanding += 1,
                PacketOpcode::RcReadResponseOnly => outstanding -= 1,
                other => panic!("{other}"),
            }
            most = most.max(outstanding);
        }
        assert_eq!(most, READS.min(max_rd_atomic.into()));
        link.results().assert_like(&program, "reads");
    }
}

/// SQ-12: a send that is fenced behind a read sends what the read has brought; without the fence
/// it has left before.
#[test]
fn a_fence_waits_for_reads() {
    for (fenced, expected) in [(true, [7; 8]), (false, [0; 8])] {
        let sim = Sim::new(SimConfig::new());
        let link = Link::new(&sim, QpType::Rc, &RcParams::default());
        link.far.write(0, &[7; 8]);
        link.far.recv(link.peer, 0, 64, 8);
        let list = [link.near.mem.sge(0, 8)];
        let read = SendWr::rdma_read(0, &list, link.far.mem.remote(0));
        let send = SendWr::send(1, &list);
        link.near.post(link.qp, read);
        link.near
            .post(link.qp, if fenced { send.fence() } else { send });
        settle(&sim);
        assert_eq!(statuses(&link.near.drain()), [WcStatus::Success; 2]);
        assert_eq!(statuses(&link.far.drain()), [WcStatus::Success]);
        assert_eq!(link.far.read(64, 8), expected, "fenced: {fenced}");
    }
}

// UC

/// UC-01, UC-04: whichever packet of a message is lost, the message is gone and its receive takes
/// the next one. The sender knows nothing of it.
#[test]
fn uc_drops_a_message_that_lost_a_packet() {
    for kind in [Kind::Send, Kind::SendImm, Kind::WriteImm] {
        for lost in 1..=3 {
            let sim = Sim::new(SimConfig::new());
            let link = Link::new(&sim, QpType::Uc, &RcParams::default());
            let program = [Work::new(kind, 3000), Work::new(kind, 2500)];
            sim.inject(lose(When::Nth(lost))).unwrap();
            link.run(&program);
            let results = link.results();
            let expected = results.expected(&program);
            assert_eq!(results.sent, expected.sent);
            // The second message, in the first receive.
            let received = Wc {
                wr_id: expected.received[0].wr_id,
                ..expected.received[1]
            };
            assert_eq!(results.received, [received], "{kind:?}, packet {lost} lost");
            if kind == Kind::WriteImm {
                assert!(results.written[1] == expected.written[1]);
            } else {
                assert!(results.arrived[0][..2500] == expected.arrived[1][..2500]);
            }
        }
    }
}

/// UC-08: what arrives is whole, in order and not twice.
#[test]
fn uc_delivers_in_order_and_at_most_once() {
    const MESSAGES: u64 = 15;
    let (mut arrived, mut lost) = (0, 0);
    for seed in 0..20 {
        let sim = Sim::new(SimConfig::new().seed(seed));
        let link = Link::new(&sim, QpType::Uc, &RcParams::default());
        sim.inject(lose(When::PerMillion(100_000))).unwrap();
        for message in 0..MESSAGES {
            let offset = message * 4096;
            link.near.write(offset as usize, &[message as u8; 2500]);
            link.far.recv(link.peer, message, offset, 2500);
            let list = [link.near.mem.sge(offset, 2500)];
            let imm = (message as u32).to_be_bytes();
            link.near
                .post(link.qp, SendWr::send_with_imm(message, &list, imm));
        }
        settle(&sim);
        assert_eq!(
            statuses(&link.near.drain()),
            [WcStatus::Success; MESSAGES as usize]
        );
        let received = link.far.drain();
        let messages: Vec<_> = received
            .iter()
            .map(|wc| u32::from_be_bytes(wc.imm_data))
            .collect();
        assert!(messages.is_sorted_by(|a, b| a < b), "{messages:?}");
        for (wc, message) in received.iter().zip(&messages) {
            let bytes = link.far.read(wc.wr_id as usize * 4096, 2500);
            assert_eq!(bytes, [*message as u8; 2500]);
        }
        arrived += messages.len();
        lost += MESSAGES as usize - messages.len();
    }
    assert!(arrived > 0 && lost > 0);
}

// UD

const QKEY: u32 = 0x1111;
const GRH: u32 = 40;

/// UD-05, UD-07 to -09, UD-15, UD-18: what does not fit is dropped. The sender has success, and the
/// receive that is there takes the next datagram that fits.
#[test]
fn ud_drops_what_does_not_fit() {
    struct Row {
        what: &'static str,
        arrives: bool,
        qkey: u32,
        /// Of the destination, instead of the right one.
        qpn: fn(&Datagrams<'_>) -> u32,
        /// Bytes of the receive; `None` for none at all.
        recv: Option<u32>,
    }
    let right = Row {
        what: "all is right",
        arrives: true,
        qkey: QKEY,
        qpn: |link| link.to,
        recv: Some(GRH + 100),
    };
    let rows = [
        Row {
            what: "another Q_Key",
            arrives: false,
            qkey: QKEY + 1,
            ..right
        },
        Row {
            what: "the sender's own Q_Key (UD-06)",
            qkey: 1 << 31,
            ..right
        },
        Row {
            what: "no such QP",
            arrives: false,
            qpn: |_| 0xff_fffe,
            ..right
        },
        Row {
            what: "an RC queue pair",
            arrives: false,
            qpn: |link| link.rc,
            ..right
        },
        Row {
            what: "no receive",
            arrives: false,
            recv: None,
            ..right
        },
        Row {
            what: "a receive one byte too small",
            arrives: false,
            recv: Some(GRH + 99),
            ..right
        },
        Row {
            what: "a receive without room for data",
            arrives: false,
            recv: Some(GRH),
            ..right
        },
        Row {
            what: "a receive of less than a GRH",
            arrives: false,
            recv: Some(GRH - 1),
            ..right
        },
        right,
    ];
    for row in rows {
        let sim = Sim::new(SimConfig::new());
        let link = Datagrams::new(&sim);
        if let Some(length) = row.recv {
            link.far.recv(link.peer, 1, 0, length);
        }
        link.send(100, row.qkey, (row.qpn)(&link), 0);
        settle(&sim);
        assert_eq!(
            statuses(&link.near.drain()),
            [WcStatus::Success],
            "{}",
            row.what
        );
        let expected = if row.arrives { vec![1] } else { vec![] };
        assert_eq!(wr_ids(&link.far.drain()), expected, "{}", row.what);
        if row.arrives {
            continue;
        }
        link.far.recv(link.peer, 2, 0, GRH + 100);
        let fits = row.recv.unwrap_or(0).saturating_sub(GRH);
        if row.recv.is_none_or(|length| length >= GRH) {
            link.send(fits, QKEY, link.to, 0);
            settle(&sim);
            let taken_by = if row.recv.is_some() { 1 } else { 2 };
            assert_eq!(
                wr_ids(&link.far.drain()),
                [taken_by],
                "{}: the next",
                row.what
            );
        }
        let port = sim.query_port(link.far.context, 1).unwrap();
        assert_eq!(port.qkey_viol_cntr, u32::from(row.what == "another Q_Key"));
    }
}

/// UD-02 to -04, UD-13: the data stand behind 40 bytes with the addresses of the path: a GRH, or for
/// IPv4 its header in the last 20 of them.
#[test]
fn ud_puts_the_header_of_the_path_before_the_data() {
    for sgid_index in [0, 1] {
        let sim = Sim::new(SimConfig::new());
        let link = Datagrams::new(&sim);
        link.near.write(0, &[9; 100]);
        link.far.recv(link.peer, 1, 0, GRH + 100);
        link.send(100, QKEY, link.to, sgid_index);
        settle(&sim);
        let wc = link.far.drain()[0];
        assert_eq!((wc.byte_len, wc.wc_flags), (GRH + 100, WcFlags::GRH));
        assert_eq!(wc.src_qp, sim.qp_num(link.qp).unwrap());
        let bytes = link.far.read(0, 140);
        assert_eq!(bytes[40..], [9; 100]);
        let gid = |end: &End<'_>| sim.query_gid(end.context, 1, sgid_index.into()).unwrap().0;
        let (from, to) = (gid(&link.near), gid(&link.far));
        if sgid_index == 0 {
            assert_eq!(bytes[0] >> 4, 6, "the version of a GRH");
            assert_eq!((&bytes[8..24], &bytes[24..40]), (&from[..], &to[..]));
        } else {
            assert_eq!(bytes[..20], [0; 20]);
            assert_eq!(bytes[20], 0x45, "version and length of an IPv4 header");
            assert_eq!((&bytes[32..36], &bytes[36..40]), (&from[12..], &to[12..]));
        }
    }
}

/// Two UD queue pairs.
struct Datagrams<'v> {
    near: End<'v>,
    far: End<'v>,
    qp: Qp,
    peer: Qp,
    /// The number of `peer`.
    to: u32,
    /// The number of an RC queue pair beside it.
    rc: u32,
}

impl<'v> Datagrams<'v> {
    fn new(verbs: &'v dyn Verbs) -> Self {
        let rc = Link::new(verbs, QpType::Rc, &RcParams::default());
        let (near, far) = (rc.near, rc.far);
        let (qp, peer) = (near.qp(QpType::Ud, 16), far.qp(QpType::Ud, 16));
        for qp in [qp, peer] {
            connect::ud_to_rts(verbs, qp, 1, QKEY).unwrap();
        }
        Self {
            near,
            far,
            qp,
            peer,
            to: verbs.qp_num(peer).unwrap(),
            rc: verbs.qp_num(rc.peer).unwrap(),
        }
    }

    fn send(&self, length: u32, qkey: u32, qpn: u32, gid_index: u8) {
        let verbs = self.near.verbs;
        let gid = verbs.query_gid(self.far.context, 1, gid_index.into());
        let attr = AhAttr::global(1, gid_index, gid.unwrap());
        let ah = verbs.create_ah(self.near.pd, &attr).unwrap();
        let list = [self.near.mem.sge(0, length)];
        self.near
            .post(self.qp, SendWr::send(1, &list).to(ah, qpn, qkey));
    }
}

// Programs

/// An operation of a program.
#[derive(Clone, Copy, Debug)]
struct Work {
    kind: Kind,
    length: u32,
    signaled: bool,
    fenced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Send,
    SendImm,
    Write,
    WriteImm,
    Read,
}

impl Kind {
    const ALL: [Self; 5] = [
        Self::Send,
        Self::Write,
        Self::Read,
        Self::WriteImm,
        Self::SendImm,
    ];

    /// How it completes at the sender, and at the receiver if it consumes a receive.
    fn opcodes(self) -> (WcOpcode, Option<WcOpcode>) {
        match self {
            Self::Send | Self::SendImm => (WcOpcode::Send, Some(WcOpcode::Recv)),
            Self::Write => (WcOpcode::RdmaWrite, None),
            Self::WriteImm => (WcOpcode::RdmaWrite, Some(WcOpcode::RecvRdmaWithImm)),
            Self::Read => (WcOpcode::RdmaRead, None),
        }
    }
}

impl Work {
    fn new(kind: Kind, length: u32) -> Self {
        Self {
            kind,
            length,
            signaled: true,
            fenced: false,
        }
    }

    fn unsignaled(self) -> Self {
        Self {
            signaled: false,
            ..self
        }
    }

    fn has_imm(self) -> bool {
        matches!(self.kind, Kind::SendImm | Kind::WriteImm)
    }
}

/// How the memory of both ends is laid out. There are three areas with a slot for each operation:
/// what leaves (by sends and writes, and as the answer to reads), what comes without a receive (by
/// writes; at the near end by reads), and the receives.
#[derive(Clone, Copy)]
struct Layout {
    /// Bytes.
    slot: usize,
    slots: usize,
}

impl Layout {
    /// With a byte more than needed in each slot, so that one too many would be seen.
    fn of(program: &[Work]) -> Self {
        let longest = program.iter().map(|work| work.length).max();
        Self {
            slot: longest.unwrap_or(0) as usize + 1,
            slots: program.len(),
        }
    }

    fn leaving(self, slot: usize) -> usize {
        slot * self.slot
    }

    fn coming(self, slot: usize) -> usize {
        (self.slots + slot) * self.slot
    }

    fn receive(self, slot: usize) -> usize {
        (2 * self.slots + slot) * self.slot
    }

    fn bytes(self) -> usize {
        3 * self.slots * self.slot
    }
}

/// Immediate data of the operation with this number.
fn imm(number: usize) -> [u8; 4] {
    (0xabcd_0000 | number as u32).to_be_bytes()
}

/// The bytes that leave an end in the operation with this number.
fn leaving(end: u8, number: usize, length: u32) -> Vec<u8> {
    let byte = |i: u32| (i ^ i >> 8) as u8 ^ (number as u8) << 1 ^ end << 7;
    (0..length).map(byte).collect()
}

/// Two connected queue pairs.
struct Link<'v> {
    near: End<'v>,
    far: End<'v>,
    qp: Qp,
    peer: Qp,
    layout: Layout,
}

impl<'v> Link<'v> {
    /// With room for 16 operations of 4095 bytes.
    fn new(verbs: &'v dyn Verbs, qp_type: QpType, params: &RcParams) -> Self {
        let layout = Layout {
            slot: 4096,
            slots: 16,
        };
        Self::with(layout, verbs, qp_type, params)
    }

    fn with(layout: Layout, verbs: &'v dyn Verbs, qp_type: QpType, params: &RcParams) -> Self {
        let near = End::open(verbs, "sim0", 64, layout.bytes());
        let far = End::open(verbs, "sim1", 64, layout.bytes());
        let (qp, peer) = pair((&near, &far), qp_type, 16, params);
        Self {
            near,
            far,
            qp,
            peer,
            layout,
        }
    }

    fn fill(&self, program: &[Work]) {
        for (number, work) in program.iter().enumerate() {
            let at = self.layout.leaving(number);
            self.near.write(at, &leaving(0, number, work.length));
            self.far.write(at, &leaving(1, number, work.length));
        }
    }

    /// A receive for each operation that consumes one.
    fn post_receives(&self, program: &[Work]) {
        let consumers = program
            .iter()
            .filter(|work| work.kind.opcodes().1.is_some());
        for number in 0..consumers.count() {
            let (at, length) = (self.layout.receive(number), self.layout.slot);
            self.far
                .recv(self.peer, number as u64, at as u64, length as u32);
        }
    }

    fn post(&self, program: &[Work]) {
        for (number, work) in program.iter().enumerate() {
            let (leaving, coming) = (self.layout.leaving(number), self.layout.coming(number));
            let (local, remote) = match work.kind {
                Kind::Read => (coming, leaving),
                _ => (leaving, coming),
            };
            let remote = self.far.mem.remote(remote as u64);
            let imm_data = imm(number);
            let op = match work.kind {
                Kind::Send => SendOp::Send,
                Kind::SendImm => SendOp::SendWithImm { imm_data },
                Kind::Write => SendOp::RdmaWrite { remote },
                Kind::WriteImm => SendOp::RdmaWriteWithImm { remote, imm_data },
                Kind::Read => SendOp::RdmaRead { remote },
            };
            let list = [self.near.mem.sge(local as u64, work.length)];
            let mut wr = SendWr::new(number as u64, op, &list);
            if !work.signaled {
                wr = wr.unsignaled();
            }
            if work.fenced {
                wr = wr.fence();
            }
            self.near.post(self.qp, wr);
        }
    }

    fn run(&self, program: &[Work]) {
        self.fill(program);
        self.post_receives(program);
        self.post(program);
        settle(self.near.verbs);
    }

    /// What has come of it; ends the connection, so that all memory can be read.
    fn results(&self) -> Results {
        let verbs = self.near.verbs;
        let (sent, received) = (self.near.drain(), self.far.drain());
        for (end, qp) in [(&self.near, self.qp), (&self.far, self.peer)] {
            end.fail(qp);
            end.drain();
            // Frees what completed without a completion.
            let reset = QpModify::to(QpState::Reset);
            verbs.modify_qp(qp, &reset.attr, reset.mask).unwrap();
        }
        let slots = |end: &End<'_>, at: fn(Layout, usize) -> usize| {
            let slots = 0..self.layout.slots;
            let slots = slots.map(|slot| end.read(at(self.layout, slot), self.layout.slot));
            slots.collect::<Vec<_>>()
        };
        Results {
            layout: self.layout,
            qp_nums: [self.qp, self.peer].map(|qp| verbs.qp_num(qp).unwrap()),
            sent,
            received,
            read: slots(&self.near, Layout::coming),
            written: slots(&self.far, Layout::coming),
            arrived: slots(&self.far, Layout::receive),
        }
    }

    /// Brings a queue pair back to RTS with other attributes.
    fn change(&self, qp: Qp, change: impl Fn(&mut QpAttr)) {
        let verbs = self.near.verbs;
        let mut attr = verbs.query_qp(qp, QpAttrMask::all()).unwrap().attr;
        change(&mut attr);
        let states = [QpState::Reset, QpState::Init, QpState::Rtr, QpState::Rts];
        let reset = QpModify::to(QpState::Reset);
        verbs.modify_qp(qp, &reset.attr, reset.mask).unwrap();
        for step in states.windows(2) {
            attr.qp_state = step[1];
            let row = transition::attributes(QpType::Rc, step[0], step[1]).unwrap();
            let mask = QpAttrMask::STATE | row.required;
            verbs.modify_qp(qp, &attr, mask).unwrap();
        }
    }

    /// The packets of the near end.
    fn requests<'t>(&self, tapped: &'t [TappedPacket]) -> impl Iterator<Item = &'t TappedPacket> {
        let near = self.near.verbs.query_gid(self.near.context, 1, 0).unwrap();
        tapped
            .iter()
            .filter(move |tapped| tapped.packet.sgid == near)
    }
}

/// What a program can see.
struct Results {
    layout: Layout,
    qp_nums: [u32; 2],
    sent: Vec<Wc>,
    received: Vec<Wc>,
    /// By operation: what reads have brought, and what writes have.
    read: Vec<Vec<u8>>,
    written: Vec<Vec<u8>>,
    /// By receive.
    arrived: Vec<Vec<u8>>,
}

impl Results {
    /// What a program must see that gave these results.
    fn expected(&self, program: &[Work]) -> Self {
        let (layout, qp_nums) = (self.layout, self.qp_nums);
        let empty = vec![Vec::new(); layout.slots];
        let mut results = Self {
            layout,
            qp_nums,
            sent: Vec::new(),
            received: Vec::new(),
            read: empty.clone(),
            written: empty.clone(),
            arrived: empty,
        };
        for (number, work) in program.iter().enumerate() {
            let (opcode, at_receiver) = work.kind.opcodes();
            let wc = Wc {
                wr_id: number as u64,
                opcode,
                byte_len: work.length,
                qp_num: qp_nums[0],
                ..Wc::default()
            };
            if work.signaled {
                results.sent.push(wc);
            }
            let data = leaving((work.kind == Kind::Read).into(), number, work.length);
            if let Some(opcode) = at_receiver {
                let (imm_data, wc_flags) = match work.has_imm() {
                    true => (imm(number), WcFlags::WITH_IMM),
                    false => ([0; 4], WcFlags::empty()),
                };
                results.received.push(Wc {
                    wr_id: results.received.len() as u64,
                    opcode,
                    qp_num: qp_nums[1],
                    imm_data,
                    wc_flags,
                    ..wc
                });
                if matches!(work.kind, Kind::Send | Kind::SendImm) {
                    results.arrived[results.received.len() - 1].clone_from(&data);
                }
            }
            match work.kind {
                Kind::Read => results.read[number] = data,
                Kind::Write | Kind::WriteImm => results.written[number] = data,
                _ => {}
            }
        }
        for slots in [
            &mut results.read,
            &mut results.written,
            &mut results.arrived,
        ] {
            slots
                .iter_mut()
                .for_each(|bytes| bytes.resize(layout.slot, 0));
        }
        results
    }

    fn assert_like(&self, program: &[Work], when: &str) {
        let expected = self.expected(program);
        for (what, seen, expected) in [
            ("sent", &self.sent, &expected.sent),
            ("received", &self.received, &expected.received),
        ] {
            let (words, expected_words) = (in_words(seen), in_words(expected));
            assert_eq!(words, expected_words, "{what}, {when}: {program:?}");
            assert_eq!(seen, expected, "{what}, {when}: {program:?}");
        }
        for (what, seen, expected) in [
            ("read", &self.read, &expected.read),
            ("write", &self.written, &expected.written),
            ("receive", &self.arrived, &expected.arrived),
        ] {
            let wrong = seen.iter().zip(expected).position(|(a, b)| a != b);
            assert_eq!(wrong, None, "the data of a {what}, {when}: {program:?}");
        }
    }
}

fn in_words(completions: &[Wc]) -> Vec<String> {
    completions.iter().map(Wc::to_string).collect()
}

/// The results of a run, and what the laboratory saw.
struct Ran {
    results: Results,
    packets: u64,
    lost: u64,
}

impl core::ops::Deref for Ran {
    type Target = Results;

    fn deref(&self) -> &Results {
        &self.results
    }
}

/// Runs a program in a fresh world with these faults.
fn run(program: &[Work], params: &RcParams, faults: &[Fault], seed: u64) -> Ran {
    let sim = Sim::new(SimConfig::new().seed(seed));
    let link = Link::with(Layout::of(program), &sim, QpType::Rc, params);
    sim.tap();
    let faults: Vec<_> = faults
        .iter()
        .map(|fault| sim.inject(*fault).unwrap())
        .collect();
    link.run(program);
    let lost = faults
        .into_iter()
        .map(|fault| sim.remove(fault).unwrap())
        .sum();
    let packets = sim.tapped().len() as u64;
    let results = link.results();
    Ran {
        results,
        packets,
        lost,
    }
}

fn statuses(completions: &[Wc]) -> Vec<WcStatus> {
    completions.iter().map(|wc| wc.status).collect()
}

fn wr_ids(completions: &[Wc]) -> Vec<u64> {
    completions.iter().map(|wc| wc.wr_id).collect()
}
