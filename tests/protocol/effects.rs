//! What fault rules do to packets on their way, and that connections survive it.

use core::time::Duration;

use crate::common::{End, property_config, settle};
use crate::link::{Kind, Link, Work, leaving, run, run_on, statuses, wr_ids};
use proptest::prelude::*;
use verbs_api::behavior::{Placement, SendDone};
use verbs_api::lab::{
    Effect, Fault, FaultGuard, Lab, PacketClass, PacketFilter, PacketOpcode, Shape, When,
};
use verbs_api::profile::Profile;
use verbs_api::{
    AhAttr, Arm, ErrorKind, Mtu, QpState, QpType, RcParams, SendOp, SendWr, Verb, Verbs, Wait, Wc,
    WcStatus, connect,
};
use verbs_sim::{Mode, Sim, SimConfig};

const US: Duration = Duration::from_micros(1);
const MS: Duration = Duration::from_millis(1);

const EFFECTS: [Effect; 9] = [
    Effect::Drop,
    Effect::Corrupt,
    Effect::Duplicate(Duration::ZERO),
    Effect::Duplicate(Duration::from_micros(37)),
    Effect::Delay(Duration::from_micros(37)),
    Effect::Reorder(1),
    Effect::Reorder(3),
    Effect::Shape(SLOW),
    Effect::Hold,
];

const SLOW: Shape = Shape::new()
    .delay(Duration::from_micros(37))
    .jitter(Duration::from_micros(20))
    .rate(1_000_000_000);

fn every(when: When, effect: Effect) -> Fault {
    Fault::packet(PacketFilter::EVERY, effect).at(when)
}

/// TMR-03, TMR-08, TMR-09, TMR-12: whichever packet gets whichever fault, completions, their order
/// and all data are as without.
#[test]
fn any_single_effect_costs_nothing_but_time() {
    let params = RcParams {
        path_mtu: Mtu::Mtu256,
        psn_a: 0xff_fffe,
        retry_cnt: 3,
        ..RcParams::default()
    };
    let program = Kind::ALL.map(|kind| Work::new(kind, 600));
    for effect in EFFECTS {
        let packets = run(&program, &params, &[], 0).packets;
        assert!(packets > 15);
        for n in 1..=packets {
            let ran = run(&program, &params, &[every(When::Nth(n), effect)], 0);
            assert_eq!(ran.lost, 1, "packet {n}: {effect}");
            ran.assert_like(&program, &format!("packet {n}: {effect}"));
        }
        // If all of them are lost, nothing gets through.
        if !matches!(effect, Effect::Drop | Effect::Corrupt | Effect::Hold) {
            let ran = run(&program, &params, &[every(When::Always, effect)], 0);
            ran.assert_like(&program, &format!("every packet: {effect}"));
        }
    }
}

fn work() -> impl Strategy<Value = Work> {
    let kind = prop::sample::select(&Kind::ALL[..]);
    (kind, 0..1500_u32, any::<bool>(), any::<bool>()).prop_map(
        |(kind, length, signaled, fenced)| Work {
            kind,
            length,
            signaled,
            fenced,
        },
    )
}

fn effect() -> impl Strategy<Value = Effect> {
    let by = (1..200_000_u64).prop_map(Duration::from_micros);
    let soon = (1..50_u64).prop_map(Duration::from_micros);
    prop_oneof![
        Just(Effect::Drop),
        Just(Effect::Corrupt),
        Just(Effect::Duplicate(Duration::ZERO)),
        soon.clone().prop_map(Effect::Duplicate),
        by.clone().prop_map(Effect::Duplicate),
        soon.prop_map(Effect::Delay),
        by.prop_map(Effect::Delay),
        (1..8_u32).prop_map(Effect::Reorder),
    ]
}

fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let rule =
        (effect(), 0..80_000_u32).prop_map(|(effect, rate)| every(When::PerMillion(rate), effect));
    prop::collection::vec(rule, 1..5)
}

proptest! {
    #![proptest_config(property_config())]

    /// TMR-08, TMR-09, TMR-12, SQ-12: under loss, damage, duplication, delay and reordering at once
    /// every message arrives once, in order, with its bytes; or up to some work request, that one
    /// with RETRY_EXC_ERR. Receives may be posted late (RNR-01), and delays may be longer than the
    /// wait for an acknowledgement (67 ms).
    #[test]
    fn whatever_happens_to_packets_each_message_arrives_once_and_in_order(
        program in prop::collection::vec(work(), 1..16),
        faults in faults(),
        max_rd_atomic in 1..4_u8,
        psn_a in prop_oneof![Just(0), 0xff_fff0..0x100_0000_u32],
        ready in prop_oneof![Just(Duration::ZERO), (0..3000_u64).prop_map(Duration::from_micros)],
        seed: u64,
    ) {
        let params = RcParams {
            path_mtu: Mtu::Mtu256,
            max_rd_atomic,
            psn_a,
            ..RcParams::default()
        };
        let config = SimConfig::new().seed(seed);
        let ran = run_on(config, &program, &params, &faults, |link| {
            link.run_late(&program, ready);
        });
        ran.assert_like_or_fails_once(&program, params.retry_cnt, "all effects");
    }

    /// Holds on every profile whose sends are done when they are acknowledged, however it reports
    /// them.
    #[test]
    fn whatever_happens_to_packets_the_bytes_are_right_on_every_profile(
        program in prop::collection::vec(work(), 1..16),
        faults in faults(),
        profile in prop::sample::select(Profile::ALL),
        seed: u64,
    ) {
        let Profile { name, behavior, .. } = profile;
        prop_assume!(behavior.send_done == SendDone::Acknowledged);
        let params = RcParams {
            path_mtu: Mtu::Mtu256,
            ..RcParams::default()
        };
        let config = SimConfig::new().seed(seed).behavior(behavior);
        let ran = run_on(config, &program, &params, &faults, |link| link.run(&program));
        let expected = ran.expected(&program);
        let failed = ran.sent.iter().position(|wc| wc.status != WcStatus::Success);
        let received = ran.received.iter().take_while(|wc| wc.status == WcStatus::Success).count();
        if let Some(failed) = failed {
            prop_assert_eq!(ran.sent[failed].status, WcStatus::RetryExcErr, "{}", name);
        } else {
            prop_assert_eq!(wr_ids(&ran.sent), wr_ids(&expected.sent), "{}", name);
            prop_assert_eq!(received, expected.received.len(), "{}", name);
            // Data that no completion reports may be placed late.
            let in_place = behavior.placement != Placement::Late;
            let as_expected = ran.written == expected.written && ran.read == expected.read;
            prop_assert!(as_expected || !in_place, "{}", name);
        }
        let order: Vec<_> = (0..received as u64).collect();
        prop_assert_eq!(wr_ids(&ran.received[..received]), order, "{}", name);
        prop_assert!(ran.arrived[..received] == expected.arrived[..received], "{}", name);
    }

    /// A run with rates, repeated by the ordinals of its firings, is the same byte for byte.
    #[test]
    fn what_fired_can_be_told_again(
        program in prop::collection::vec(work(), 1..12),
        faults in faults(),
        calls in 0..200_000_u32,
        completions in 0..200_000_u32,
        seed: u64,
    ) {
        let mut faults = faults;
        faults.push(Fault::fail(Verb::PollCq, ErrorKind::Io).per_million(calls));
        faults.push(Fault::complete(WcStatus::GeneralErr).per_million(completions));
        let (trace, fired) = traced(&program, &faults, seed);
        let reported = faults.iter().zip(&fired);
        let reported: Vec<_> = reported.map(|(fault, fired)| {
            fault.clone().at(When::These(fired.iter().copied().collect()))
        }).collect();
        // Nothing is drawn any more, so that the seed does not matter.
        let (again, fired_again) = traced(&program, &reported, seed ^ 1);
        prop_assert_eq!(fired, fired_again);
        prop_assert_eq!(trace, again);
    }
}

/// Runs a program; the trace, and on which ordinals each rule has fired.
fn traced(program: &[Work], faults: &[Fault], seed: u64) -> (String, Vec<Vec<u64>>) {
    let sim = Sim::new(SimConfig::new().seed(seed).trace(true));
    let link = Link::new(&sim, QpType::Rc, &RcParams::default());
    let ids: Vec<_> = faults
        .iter()
        .map(|fault| sim.inject(fault.clone()).unwrap())
        .collect();
    link.fill(program);
    link.post_receives(program);
    link.post(program);
    settle(&sim);
    for cq in [link.near.cq, link.far.cq] {
        for _ in 0..10 {
            // Some are made to fail.
            let _ = sim.poll_cq(cq, &mut [Wc::default(); 4]);
        }
    }
    let firings = sim.firings();
    let of = |id| firings.iter().filter(move |firing| firing.fault == id);
    let ordinals = |id| of(id).map(|firing| firing.ordinal).collect();
    let fired = ids.iter().map(|id| ordinals(*id)).collect();
    let lines = sim.trace().into_iter().map(|record| format!("{record}\n"));
    (lines.collect(), fired)
}

/// A delayed packet arrives later by the delay, and the clock advances to that time.
#[test]
fn delayed_packet_arrives_that_much_later() {
    let sim = Sim::new(SimConfig::new());
    let link = Link::new(&sim, QpType::Uc, &RcParams::default());
    sim.inject(every(When::Nth(1), Effect::Delay(5 * MS)))
        .unwrap();
    link.far.recv(link.peer, 1, 0, 8);
    link.near.send(link.qp, 1, 0, 8);
    sim.advance(5 * MS).unwrap();
    assert_eq!(link.far.drain(), []);
    settle(&sim);
    assert_eq!(sim.now(), 5 * MS + US);
    assert_eq!(statuses(&link.far.drain()), [WcStatus::Success]);
}

/// A blocking wait goes on until a delayed packet has come, in every mode.
#[test]
fn waiting_for_a_delayed_packet_ends() {
    for mode in [Mode::Stepped, Mode::RealTime] {
        let sim = Sim::new(SimConfig::new().mode(mode));
        let link = Link::new(&sim, QpType::Rc, &RcParams::default());
        sim.inject(every(When::First(2), Effect::Delay(MS)))
            .unwrap();
        sim.req_notify_cq(link.near.cq, Arm::NEXT).unwrap();
        link.far.recv(link.peer, 1, 0, 8);
        link.near.send(link.qp, 1, 0, 8);
        let event = sim.get_cq_event(link.near.channel, Wait::Forever).unwrap();
        sim.ack_cq_events(event.cq, 1).unwrap();
        assert!(sim.now() >= 2 * MS, "{mode:?}: request and acknowledgement");
        assert_eq!(statuses(&link.near.drain()), [WcStatus::Success]);
        settle(&sim);
    }
}

/// Inline, where the clock stands still, a delayed packet waits for it as timers do.
#[test]
fn inline_a_delayed_packet_waits_for_the_clock() {
    for effect in [Effect::Delay(MS), Effect::Reorder(1)] {
        let sim = Sim::new(SimConfig::new().mode(Mode::Inline));
        let link = Link::new(&sim, QpType::Rc, &RcParams::default());
        let guard = FaultGuard::new(&sim, every(When::Nth(1), effect)).unwrap();
        link.far.recv(link.peer, 1, 0, 8);
        link.near.send(link.qp, 1, 0, 8);
        assert_eq!(guard.fired(), 1);
        drop(guard);
        assert_eq!(link.far.drain(), [], "{effect}");
        sim.advance(MS / 20).unwrap();
        assert_eq!(link.far.drain(), [], "{effect}");
        sim.advance(MS).unwrap();
        assert_eq!(statuses(&link.far.drain()), [WcStatus::Success], "{effect}");
        assert_eq!(
            statuses(&link.near.drain()),
            [WcStatus::Success],
            "{effect}"
        );
    }
}

/// A packet is overtaken by as many as the rule says, and by no more; those of another link do not
/// count.
#[test]
fn reordered_packet_comes_right_behind_those_that_overtake_it() {
    const QKEY: u32 = 7;
    for mode in [Mode::Stepped, Mode::Inline] {
        for behind in 1..6_usize {
            let sim = Sim::new(SimConfig::new().nodes(3).mode(mode));
            let ends = ["sim0", "sim1", "sim2"].map(|name| End::open(&sim, name, 64, 4096));
            let qps = ends.each_ref().map(|end| {
                let qp = end.qp(QpType::Ud, 16);
                connect::ud_to_rts(&sim, qp, 1, QKEY).unwrap();
                qp
            });
            let [to_1, to_2] = [1, 2].map(|node: usize| {
                let gid = sim.query_gid(ends[node].context, 1, 1).unwrap();
                let ah = sim.create_ah(ends[0].pd, &AhAttr::global(1, 1, gid));
                (ah.unwrap(), sim.qp_num(qps[node]).unwrap())
            });
            for number in 0..6 {
                ends[1].recv(qps[1], number, number * 64, 64);
            }
            let to_1_only = PacketFilter::EVERY.to(1);
            let effect = Effect::Reorder(behind as u32);
            let fault = Fault::packet(to_1_only, effect).nth(2);
            sim.inject(fault).unwrap();
            let list = [ends[0].mem.sge(0, 8)];
            for number in 0..6_u32 {
                for (ah, qpn) in [to_1, to_2] {
                    let imm_data = number.to_be_bytes();
                    let wr = SendWr::new(1, SendOp::SendWithImm { imm_data }, &list);
                    ends[0].post(qps[0], wr.to(ah, qpn, QKEY));
                }
            }
            settle(&sim);
            let came = ends[1].drain();
            let came: Vec<_> = came
                .iter()
                .map(|wc| u32::from_be_bytes(wc.imm_data))
                .collect();
            // The first was let through; the second is overtaken by the others.
            let mut expected = vec![0, 1, 2, 3, 4, 5];
            let last = (1 + behind).min(5);
            expected[1..=last].rotate_left(1);
            assert_eq!(came, expected, "{mode:?}, behind {behind}");
        }
    }
}

/// A reordered packet that nothing follows arrives all the same, before a retry.
#[test]
fn reordered_packet_that_is_the_last_arrives_in_time() {
    let sim = Sim::new(SimConfig::new());
    let link = Link::new(&sim, QpType::Rc, &RcParams::default());
    sim.inject(every(When::Nth(1), Effect::Reorder(9))).unwrap();
    sim.tap();
    link.far.recv(link.peer, 1, 0, 8);
    link.near.send(link.qp, 1, 0, 8);
    settle(&sim);
    assert_eq!(sim.now(), Effect::REORDER_WITHIN + 2 * US);
    assert_eq!(sim.tapped().len(), 2, "the send and its acknowledgement");
    assert_eq!(statuses(&link.near.drain()), [WcStatus::Success]);
}

/// Ghosts: packets that are late for a QP that is destroyed, or in error, change nothing, and what
/// they name may be gone too.
#[test]
fn delayed_packets_of_a_destroyed_qp_are_nobodys() {
    let program = Kind::ALL.map(|kind| Work::new(kind, 600));
    for both in [false, true] {
        let sim = Sim::new(SimConfig::new());
        let params = RcParams {
            path_mtu: Mtu::Mtu256,
            ..RcParams::default()
        };
        let link = Link::new(&sim, QpType::Rc, &params);
        sim.inject(every(When::Always, Effect::Delay(MS))).unwrap();
        link.fill(&program);
        link.post_receives(&program);
        link.post(&program);
        sim.advance(MS / 2).unwrap();
        sim.destroy_qp(link.qp, Wait::Poll).unwrap();
        sim.dereg_mr(link.near.mr).unwrap();
        if both {
            sim.destroy_qp(link.peer, Wait::Poll).unwrap();
            sim.dereg_mr(link.far.mr).unwrap();
        }
        settle(&sim);
        assert_eq!(link.near.drain(), []);
        let came = link.far.drain();
        if both {
            assert_eq!(came, []);
        } else {
            // They left before: with the bytes of then.
            assert_eq!(wr_ids(&came), [0, 1, 2]);
            let first = link.layout.receive(0);
            let fail = |qp| link.far.fail(qp);
            fail(link.peer);
            link.far.drain();
            assert_eq!(link.far.read(first, 600), leaving(0, 0, 600));
        }
    }
}

/// A delayed packet has the bytes that it left with, whatever the program does with the memory when
/// it has it back.
#[test]
fn delayed_packet_has_the_bytes_it_left_with() {
    let sim = Sim::new(SimConfig::new());
    let link = Link::new(&sim, QpType::Rc, &RcParams::default());
    sim.inject(every(When::Nth(1), Effect::Delay(MS))).unwrap();
    link.near.write(0, b"before");
    link.far.recv(link.peer, 1, 0, 6);
    link.near.send(link.qp, 1, 0, 6);
    link.near.fail(link.qp);
    assert_eq!(statuses(&link.near.drain()), [WcStatus::WrFlushErr]);
    link.near.write(0, b"behind");
    settle(&sim);
    assert_eq!(statuses(&link.far.drain()), [WcStatus::Success]);
    assert_eq!(link.far.read(0, 6), b"before");
}

/// Filters say which packets: the second read response of a QP, the nth packet of another, those of
/// a node, of a class, with a number.
#[test]
fn filters_pick_packets() {
    let program = [Kind::Send, Kind::Read, Kind::Write].map(|kind| Work::new(kind, 600));
    let params = RcParams {
        path_mtu: Mtu::Mtu256,
        psn_a: 100,
        ..RcParams::default()
    };
    let every = PacketFilter::EVERY;
    let fired = |packets: PacketFilter, when: When| {
        let sim = Sim::new(SimConfig::new());
        // One QP more at node 1, so that the numbers differ.
        let other = End::open(&sim, "sim1", 4, 16);
        other.qp(QpType::Rc, 1);
        let link = Link::new(&sim, QpType::Rc, &params);
        assert_eq!(
            sim.qp_num(link.qp).unwrap() + 1,
            sim.qp_num(link.peer).unwrap()
        );
        sim.tap();
        let loss = FaultGuard::new(&sim, Fault::drop(packets).at(when)).unwrap();
        link.run(&program);
        let tapped = sim.tapped();
        let lost = tapped.iter().filter(|packet| packet.dropped);
        let lost: Vec<_> = lost.map(|tapped| tapped.packet).collect();
        assert_eq!(lost.len() as u64, loss.fired());
        link.results().assert_like(&program, "with a loss");
        lost.iter()
            .map(|packet| (packet.opcode, packet.psn))
            .collect::<Vec<_>>()
    };
    let (near, far) = (2, 3); // QP numbers
    for (packets, when, lost) in [
        (
            every.to(0).dest_qpn(near).class(PacketClass::ReadResponse),
            When::Nth(2),
            (PacketOpcode::RcReadResponseMiddle, 104),
        ),
        (
            every.from(0).src_qpn(near),
            When::Nth(3),
            (PacketOpcode::RcSendLast, 102),
        ),
        (
            every.src_qpn(far),
            When::Nth(1),
            (PacketOpcode::RcAcknowledge, 102),
        ),
        (
            every.dest_qpn(far).class(PacketClass::Write),
            When::First(1),
            (PacketOpcode::RcWriteFirst, 106),
        ),
        (
            every.class(PacketClass::Request).psn(107),
            When::These([1].into()),
            (PacketOpcode::RcWriteMiddle, 107),
        ),
        (
            every.from(1).to(0).opcode(PacketOpcode::RcReadResponseLast),
            When::Nth(1),
            (PacketOpcode::RcReadResponseLast, 105),
        ),
    ] {
        assert_eq!(fired(packets, when), [lost], "{packets:?}");
    }
    for packets in [
        every.from(0).to(0),
        every.from(1).src_qpn(near),
        every.class(PacketClass::Atomic),
    ] {
        assert_eq!(fired(packets, When::Always), [], "{packets:?}");
    }
}

/// UC-03, UD-05: what is late, twice or out of order on transports that promise nothing.
#[test]
fn unreliable_transports_take_what_comes_in_order() {
    let program = [1, 2, 3, 4].map(|_| Work::new(Kind::Send, 8));
    for (effect, came) in [
        (Effect::Drop, &[0, 2, 3][..]),
        (Effect::Corrupt, &[0, 2, 3]),
        // A number that was passed is taken for a repetition.
        (Effect::Delay(MS), &[0, 2, 3]),
        (Effect::Reorder(1), &[0, 2, 3]),
        (Effect::Duplicate(Duration::ZERO), &[0, 1, 2, 3]),
        (Effect::Duplicate(MS), &[0, 1, 2, 3]),
    ] {
        let sim = Sim::new(SimConfig::new());
        let link = Link::new(&sim, QpType::Uc, &RcParams::default());
        sim.inject(every(When::Nth(2), effect)).unwrap();
        link.run(&program);
        assert_eq!(statuses(&link.near.drain()), [WcStatus::Success; 4]);
        let received = link.far.drain();
        assert!(received.iter().all(|wc| wc.status == WcStatus::Success));
        link.far.fail(link.peer);
        link.far.drain();
        let bytes = |n: usize| link.far.read(link.layout.receive(n), 8);
        let got: Vec<_> = (0..received.len()).map(bytes).collect();
        let sent = |n: &usize| leaving(0, *n, 8);
        assert_eq!(got, came.iter().map(sent).collect::<Vec<_>>(), "{effect}");
    }
}

/// Rules that make no sense are refused, with what is allowed.
#[test]
fn rules_that_make_no_sense_are_refused() {
    let sim = Sim::new(SimConfig::new());
    let every_packet = PacketFilter::EVERY;
    let link = Fault::link_down(0).down_at(MS);
    let port = |port| Fault::port_down(0, port).down_at(MS);
    let these = When::These([1, 0].into());
    let rate = When::PerMillion(1_000_001);
    let delay = every(When::Always, Effect::Delay(Duration::ZERO));
    for (fault, problem) in [
        (every(When::Nth(0), Effect::Drop), "when counts from 1"),
        (every(these, Effect::Drop), "when counts from 1"),
        (
            every(rate, Effect::Drop),
            "per_million is 1000001, allowed are 0 to 1000000",
        ),
        (delay, "by is zero: nothing is late"),
        (
            every(When::Always, Effect::Reorder(0)),
            "behind is 0: nothing overtakes the packet",
        ),
        (
            Fault::drop(every_packet.from(2)),
            "from is 2, allowed are 0 to 1",
        ),
        (
            Fault::drop(every_packet.psn(1 << 24)),
            "psn is 16777216, allowed are 0 to 16777215",
        ),
        (link.clone().peer(0), "peer is the node itself"),
        (link.clone().peer(5), "peer is 5, allowed are 0 to 1"),
        (link.up_at(MS), "up_at is not after down_at"),
        (port(0), "port is 0: ports count from 1"),
        (port(2), "port is 2, allowed are 1 to 1"),
        (
            Fault::fail(Verb::PollCq, ErrorKind::Usage),
            "error is not the kind of an errno value",
        ),
        (
            Fault::fail(Verb::Lab, ErrorKind::Io),
            "verb is of the test controls, which do not fail",
        ),
        (
            Fault::complete(WcStatus::Success),
            "status must be an error",
        ),
    ] {
        let error = sim.inject(fault.clone()).unwrap_err();
        let said = format!("lab: EINVAL: {problem}");
        assert_eq!(error.to_string(), said, "{fault:?}");
    }
    assert_eq!(sim.firings(), []);
}

/// The rule goes with its guard; each rule counts for itself, and of two the first decides.
#[test]
fn rules_count_for_themselves_and_the_first_decides() {
    let sim = Sim::new(SimConfig::new());
    let link = Link::new(&sim, QpType::Uc, &RcParams::default());
    let first = FaultGuard::new(&sim, every(When::These([2, 3].into()), Effect::Drop)).unwrap();
    let second = FaultGuard::new(&sim, every(When::First(2), Effect::Corrupt)).unwrap();
    let (first_id, second_id) = (first.id(), second.id());
    let send = |count| {
        for _ in 0..count {
            link.near.send(link.qp, 1, 0, 8);
        }
        settle(&sim);
    };
    send(4);
    assert_eq!((first.fired(), second.fired()), (2, 1));
    drop(first);
    assert!(sim.remove(first_id).is_err(), "it is removed");
    assert_eq!(sim.remove(second_id).unwrap(), 1);
    assert_eq!(second.fired(), 0);
    drop(second);
    send(4);
    let firings: Vec<_> = sim.firings().iter().map(|s| (s.fault, s.ordinal)).collect();
    assert_eq!(firings, [(second_id, 1), (first_id, 2), (first_id, 3)]);
    assert_eq!(link.near.state(link.qp), QpState::Rts);
}

/// Among rules for the completions of one queue pair and of any, too, the first one decides,
/// and each counts what it looks at.
#[test]
fn rules_for_one_queue_pair_and_for_any_keep_their_order() {
    let rule = |status| Fault::complete(status).node(0).nth(2);
    for own_first in [true, false] {
        let sim = Sim::new(SimConfig::new());
        let link = Link::new(&sim, QpType::Rc, &RcParams::default());
        let number = sim.qp_num(link.qp).unwrap();
        let own = rule(WcStatus::LocProtErr).qpn(number);
        let any = rule(WcStatus::LocLenErr);
        let other = rule(WcStatus::GeneralErr).qpn(number + 1);
        let decides = if own_first {
            [own, other, any]
        } else {
            [any, other, own]
        };
        let ids = decides.map(|fault| sim.inject(fault).unwrap());
        for wr_id in 0..2 {
            link.near.post(
                link.qp,
                SendWr::rdma_write(wr_id, &[], link.far.mem.remote(0)),
            );
        }
        settle(&sim);
        let status = if own_first {
            WcStatus::LocProtErr
        } else {
            WcStatus::LocLenErr
        };
        let got = statuses(&link.near.drain());
        assert_eq!(got, [WcStatus::Success, status]);
        assert_eq!(ids.map(|id| sim.fired(id).unwrap()), [1, 0, 0]);
    }
}

/// A simulation that is configured to keep no firings has no list of them; rules fire and count
/// as usual.
#[test]
fn firings_are_kept_only_where_somebody_may_ask() {
    for kept in [true, false] {
        let sim = Sim::new(SimConfig::new().firings(kept));
        let link = Link::new(&sim, QpType::Uc, &RcParams::default());
        let rule = sim.inject(every(When::Always, Effect::Drop)).unwrap();
        (0..3).for_each(|wr_id| link.near.send(link.qp, wr_id, 0, 8));
        settle(&sim);
        assert_eq!(sim.fired(rule).unwrap(), 3);
        assert_eq!(sim.firings().len(), if kept { 3 } else { 0 });
    }
}
