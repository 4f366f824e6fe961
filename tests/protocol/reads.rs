//! Reads of many packets: they are answered in turns, and may be asked for again as long as the
//! responder keeps them.

use core::time::Duration;

use proptest::prelude::*;
use verbs_api::behavior::SendDone;
use verbs_api::lab::{Effect, Fault, PacketFilter, PacketOpcode, When};
use verbs_api::profile::Profile;
use verbs_api::{
    Access, Mtu, QpAttrMask, QpModify, QpState, QpType, RcParams, SendWr, Verbs, Wait, Wc, WcStatus,
};
use verbs_sim::{Mode, Sim, SimConfig};

use crate::common::{End, checked, pair, property_config, settle};
use crate::link::{Kind, Layout, Link, Work, run_on, statuses, wr_ids};

/// Packets of a read that leave in one turn, at most.
const BURST: usize = 64;
/// Packets of a long read.
const LONG: usize = 1000;
const MTU: usize = 256;
const ACCESS: Access = Access::ALL_RDMA.union(Access::REMOTE_ATOMIC);

fn params() -> RcParams {
    RcParams {
        path_mtu: Mtu::Mtu256,
        access: ACCESS,
        ..RcParams::default()
    }
}

fn is_response(opcode: PacketOpcode) -> bool {
    use PacketOpcode as Op;
    matches!(
        opcode,
        Op::RcReadResponseFirst
            | Op::RcReadResponseMiddle
            | Op::RcReadResponseLast
            | Op::RcReadResponseOnly
    )
}

/// What has been tapped since the last call.
fn opcodes(sim: &dyn Verbs) -> Vec<PacketOpcode> {
    let tapped = sim.lab().unwrap().tapped();
    tapped.iter().map(|tapped| tapped.packet.opcode).collect()
}

fn responses(sim: &dyn Verbs) -> usize {
    let all = opcodes(sim).into_iter();
    all.filter(|opcode| is_response(*opcode)).count()
}

/// One long read, in a simulation of its own.
fn long_read(verbs: &dyn Verbs) -> (Link<'_>, [Work; 1]) {
    let program = [Work::new(Kind::Read, (LONG * MTU) as u32)];
    let link = Link::with(Layout::of(&program), verbs, QpType::Rc, &params());
    verbs.lab().unwrap().tap();
    (link, program)
}

/// The first request arrives, and nothing else happens: a poll that finds nothing is a step.
fn let_request_arrive(link: &Link<'_>) {
    let mut none = [Wc::default()];
    assert_eq!(link.far.verbs.poll_cq(link.far.cq, &mut none).unwrap(), 0);
}

/// A long read leaves in turns: a message of another queue pair that comes at the same time is
/// acknowledged behind the first. Virtual time does not pass by it.
#[test]
fn a_long_read_holds_up_no_other_queue_pair() {
    for Profile { name, behavior, .. } in Profile::ALL {
        let sim = checked(SimConfig::new().behavior(*behavior));
        let (link, program) = long_read(&sim);
        let other = Link::new(&sim, QpType::Rc, &params());
        other.far.recv(other.peer, 0, 0, 8);
        link.fill(&program);
        link.post(&program);
        other.near.send(other.qp, 0, 0, 8);
        settle(&sim);
        let tapped = sim.lab().unwrap().tapped();
        let all: Vec<_> = tapped.iter().map(|tapped| tapped.packet.opcode).collect();
        let mut before = all.split(|opcode| *opcode == PacketOpcode::RcAcknowledge);
        let responses = |part: &[PacketOpcode]| part.iter().filter(|op| is_response(**op)).count();
        assert_eq!(responses(before.next().unwrap()), BURST, "{name}");
        assert_eq!(responses(&all), LONG, "{name}");
        // All requests arrive at this time.
        let last = tapped.last().unwrap().at;
        assert_eq!(last, Duration::from_micros(1), "{name}");
        assert_eq!(statuses(&other.far.drain()), [WcStatus::Success], "{name}");
        let results = link.results();
        assert_eq!(statuses(&results.sent), [WcStatus::Success], "{name}");
        assert!(results.read == results.expected(&program).read, "{name}");
    }
}

/// RDMA-23: if a packet of a long read is lost, the answer goes back to it, and what is left of it
/// does not leave first.
#[test]
fn a_read_that_is_asked_for_again_goes_back() {
    let lost = 10;
    let sim = checked(SimConfig::new().mode(Mode::Inline));
    let (link, program) = long_read(&sim);
    let of_read = PacketFilter::EVERY.opcode(PacketOpcode::RcReadResponseMiddle);
    let rule = Fault::drop(of_read).at(When::Nth(lost as u64));
    sim.lab().unwrap().inject(rule).unwrap();
    link.run(&program);
    assert_eq!(responses(&sim), BURST + LONG - lost);
    link.results().assert_like(&program, "a packet lost");
}

/// RDMA-19, RDMA-23, ATOM-13: a request that comes again is answered while it is one of the last
/// reads and atomics, as many as the responder has resources for. Later it is dropped, and the
/// connection goes on.
#[test]
fn a_duplicate_is_answered_while_the_responder_keeps_the_read() {
    let late = Duration::from_micros(50);
    for Profile { name, behavior, .. } in Profile::ALL {
        for (depth, newer, with_atomics) in [(1, 0, false), (1, 1, false), (1, 1, true)]
            .into_iter()
            .chain([(4, 3, false), (4, 4, false), (4, 3, true), (4, 4, true)])
        {
            let case = format!("{name}: {newer} behind it, {depth} kept, {with_atomics}");
            let sim = checked(SimConfig::new().behavior(*behavior));
            let params = RcParams {
                max_rd_atomic: depth,
                ..params()
            };
            let near = End::open(&sim, "sim0", 64, 4096);
            let far = End::open(&sim, "sim1", 64, 4096);
            let (qp, peer) = pair((&near, &far), QpType::Rc, 16, &params);
            let memory = sim.alloc_mr(far.pd, 4096, ACCESS).unwrap();
            let remote = sim.query_mr(memory).unwrap().remote(0);
            sim.lab().unwrap().tap();
            let first = PacketFilter::EVERY.opcode(PacketOpcode::RcReadRequest);
            let rule = Fault::duplicate(first, late).at(When::Nth(1));
            sim.lab().unwrap().inject(rule).unwrap();
            let list = [near.mem.sge(0, 8)];
            for wr_id in 0..=newer {
                let wr = if with_atomics && wr_id > 0 {
                    SendWr::fetch_and_add(wr_id, &list, remote, 1)
                } else {
                    SendWr::rdma_read(wr_id, &list, remote)
                };
                near.post(qp, wr);
            }
            settle(&sim);
            assert!(sim.lab().unwrap().now() >= late, "{case}");
            let reads = if with_atomics { 1 } else { newer + 1 };
            let again = u64::from(newer < depth.into());
            assert_eq!(responses(&sim) as u64, reads + again, "{case}");
            far.recv(peer, 0, 0, 8);
            near.send(qp, newer + 1, 0, 8);
            settle(&sim);
            let done = near.drain();
            assert_eq!(wr_ids(&done), (0..newer + 2).collect::<Vec<_>>(), "{case}");
            assert!(
                done.iter().all(|wc| wc.status == WcStatus::Success),
                "{case}"
            );
        }
    }
}

/// RDMA-04: a right that goes while a read is being answered ends the answer there. What has left
/// has come.
#[test]
fn a_right_that_goes_ends_a_long_read() {
    let sim = Sim::new(SimConfig::new());
    let (link, program) = long_read(&sim);
    link.fill(&program);
    link.post(&program);
    let_request_arrive(&link);
    let none = QpModify::to(QpState::Rts).set(QpAttrMask::ACCESS_FLAGS, |attr| {
        attr.qp_access_flags = Access::empty();
    });
    sim.modify_qp(link.peer, &none.attr, none.mask).unwrap();
    settle(&sim);
    assert_eq!(responses(&sim), BURST);
    assert_eq!(statuses(&link.near.drain()), [WcStatus::RemAccessErr]);
    assert_eq!(link.far.state(link.peer), QpState::Err);
    let come = link.near.read(link.layout.coming(0), LONG * MTU);
    let sent = link.far.read(link.layout.leaving(0), LONG * MTU);
    let (come, rest) = come.split_at(BURST * MTU);
    assert!(come == &sent[..BURST * MTU] && rest.iter().all(|byte| *byte == 0));
}

/// QP-STATE-15: no further packet of a read leaves a queue pair that is in the error state, or is
/// destroyed.
#[test]
fn a_long_read_ends_with_its_queue_pair() {
    let ends: [fn(&Link<'_>, &Sim); 3] = [
        |link, _| link.far.fail(link.peer),
        |link, sim| {
            let reset = QpModify::to(QpState::Reset);
            sim.modify_qp(link.peer, &reset.attr, reset.mask).unwrap();
        },
        |link, sim| sim.destroy_qp(link.peer, Wait::Poll).unwrap(),
    ];
    for end in ends {
        let sim = Sim::new(SimConfig::new());
        let (link, program) = long_read(&sim);
        link.post(&program);
        let_request_arrive(&link);
        end(&link, &sim);
        settle(&sim);
        assert_eq!(responses(&sim), BURST);
        assert_eq!(statuses(&link.near.drain()), [WcStatus::RetryExcErr]);
    }
}

fn work() -> impl Strategy<Value = Work> {
    let kind = prop_oneof![Just(Kind::Read), prop::sample::select(&Kind::ALL[..])];
    let length = prop_oneof![0..1500_u32, 0..60_000_u32];
    (kind, length, any::<bool>(), any::<bool>()).prop_map(|(kind, length, signaled, fenced)| Work {
        kind,
        length,
        signaled,
        fenced,
    })
}

fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let by = (1..50_u64).prop_map(Duration::from_micros);
    let effect = prop_oneof![
        2 => Just(Effect::Drop),
        1 => by.clone().prop_map(Effect::Duplicate),
        1 => by.prop_map(Effect::Delay),
        2 => (1..8_u32).prop_map(Effect::Reorder),
    ];
    let rule = (effect, 0..10_000_u32).prop_map(|(effect, rate)| {
        Fault::packet(PacketFilter::EVERY, effect).at(When::PerMillion(rate))
    });
    prop::collection::vec(rule, 1..4)
}

proptest! {
    #![proptest_config(property_config())]

    /// TMR-08, TMR-09, RDMA-23, SQ-12: long reads among sends and writes, with packets lost, late,
    /// out of order and coming twice: every message arrives once, in order, with its bytes, on
    /// every profile and in every mode of virtual time; or up to some work request, which fails
    /// with RETRY_EXC_ERR.
    #[test]
    fn long_reads_among_other_messages_survive_loss_and_reordering(
        program in prop::collection::vec(work(), 1..10),
        faults in faults(),
        profile in prop::sample::select(Profile::ALL),
        mode in prop::sample::select(&[Mode::Stepped, Mode::Inline][..]),
        max_rd_atomic in 1..4_u8,
        psn_a in prop_oneof![Just(0), 0xff_ff00..0x100_0000_u32],
        seed: u64,
    ) {
        let Profile { name, behavior, .. } = profile;
        prop_assume!(behavior.send_done == SendDone::Acknowledged);
        let params = RcParams { max_rd_atomic, psn_a, ..params() };
        let config = SimConfig::new().seed(seed).behavior(behavior).mode(mode);
        let ran = run_on(config, &program, &params, &faults, |link| link.run(&program));
        let expected = ran.expected(&program);
        let failed = ran.sent.iter().position(|wc| wc.status != WcStatus::Success);
        let received = ran.received.iter().take_while(|wc| wc.status == WcStatus::Success).count();
        if let Some(failed) = failed {
            prop_assert_eq!(ran.sent[failed].status, WcStatus::RetryExcErr, "{}", name);
        } else {
            prop_assert_eq!(wr_ids(&ran.sent), wr_ids(&expected.sent), "{}", name);
            prop_assert_eq!(received, expected.received.len(), "{}", name);
            prop_assert!(ran.written == expected.written && ran.read == expected.read, "{}", name);
        }
        let order: Vec<_> = (0..received as u64).collect();
        prop_assert_eq!(wr_ids(&ran.received[..received]), order, "{}", name);
        prop_assert!(ran.arrived[..received] == expected.arrived[..received], "{}", name);
    }
}
