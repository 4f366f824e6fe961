//! Lost packets: a program sees what it would see without loss, or an error.

use core::time::Duration;

use crate::common::{checked, property_config, settle};
use crate::link::{Kind, Link, Work, lose, run, statuses, wr_ids};
use proptest::prelude::*;
use verbs_api::lab::{Fault, Syndrome, When};
use verbs_api::{Mtu, QpType, RcParams, Verbs, WcStatus};
use verbs_sim::SimConfig;

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
        // Packet 0 does not exist: the run without loss.
        let faults: &[Fault] = &[lose(When::Nth(n))];
        let ran = run(program, params, &faults[..n.min(1) as usize], 0);
        ran.assert_like(program, &format!("packet {n} lost"));
        if n > 0 && ran.lost == 0 {
            return n - 1;
        }
    }
    unreachable!("some packet is the last")
}

pub(crate) fn program() -> impl Strategy<Value = (Mtu, Vec<Work>)> {
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
    #![proptest_config(property_config())]

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
        ran.assert_like_or_fails_once(&program, params.retry_cnt, "random loss");
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
    let sim = checked(SimConfig::new());
    let link = Link::new(&sim, QpType::Rc, &RcParams::default());
    sim.lab().unwrap().tap();
    for gap in 0..3 {
        let fault = sim.lab().unwrap().inject(lose(When::Nth(1))).unwrap();
        for wr_id in 0..3 {
            link.far.recv(link.peer, wr_id, 0, 8);
            link.near.send(link.qp, wr_id, 0, 8);
        }
        settle(&sim);
        sim.lab().unwrap().remove(fault).unwrap();
        let tapped = sim.lab().unwrap().tapped();
        let answers = tapped.iter().filter_map(|tapped| tapped.packet.syndrome);
        let naks = answers.filter(|answer| *answer == Syndrome::NakPsnSequence);
        assert_eq!(naks.count(), 1, "gap {gap}");
        assert_eq!(statuses(&link.near.drain()), [WcStatus::Success; 3]);
        assert_eq!(wr_ids(&link.far.drain()), [0, 1, 2]);
    }
    // The time-out is 67 ms.
    assert!(sim.lab().unwrap().now() < Duration::from_millis(1));
}

/// TMR-05: each message loses its first packet once, and there is one retry for each.
#[test]
fn progress_restores_the_retries() {
    let sim = checked(SimConfig::new());
    let params = RcParams {
        retry_cnt: 1,
        ..RcParams::default()
    };
    let link = Link::new(&sim, QpType::Rc, &params);
    for wr_id in 0..20 {
        let fault = sim.lab().unwrap().inject(lose(When::Nth(1))).unwrap();
        link.far.recv(link.peer, wr_id, 0, 8);
        link.near.send(link.qp, wr_id, 0, 8);
        settle(&sim);
        assert_eq!(sim.lab().unwrap().remove(fault).unwrap(), 1);
        assert_eq!(statuses(&link.far.drain()), [WcStatus::Success]);
        assert_eq!(statuses(&link.near.drain()), [WcStatus::Success]);
    }
}
