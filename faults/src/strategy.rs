//! Strategies of [proptest](::proptest) for rules and plans (feature `proptest`).
//!
//! ```
//! use proptest::prelude::*;
//! use verbs_faults::strategy;
//! use verbs_sim::{Sim, SimConfig};
//!
//! proptest! {
//!     fn my_program_reports_what_fails(plan in strategy::plan(2, 0..4)) {
//!         let sim = Sim::new(SimConfig::new());
//!         let in_force = plan.inject(&sim).unwrap();
//!         // The program runs.
//!         drop(in_force);
//!     }
//! }
//! my_program_reports_what_fails();
//! ```

use core::time::Duration;

use proptest::collection::{SizeRange, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use verbs_api::lab::{
    CmMessage, Distribution, Effect, Fault, Limit, PacketClass, PacketFilter, PacketOpcode, Shape,
    When,
};
use verbs_api::{ErrorKind, Verb, WcStatus};

use crate::Plan;

/// Plans of `rules` rules for a simulation with this many nodes, of one port each.
///
/// # Panics
/// If there are fewer than two nodes.
pub fn plan(nodes: u32, rules: impl Into<SizeRange>) -> impl Strategy<Value = Plan> {
    let plan = |rules| Plan::new(rules).expect("each rule is checked");
    vec(fault(nodes), rules).prop_map(plan)
}

/// Rules of every kind for a simulation with this many nodes, of one port each. Most have small
/// numbers and concern much, so that they fire in short programs.
///
/// # Panics
/// If there are fewer than two nodes.
pub fn fault(nodes: u32) -> impl Strategy<Value = Fault> {
    assert!(nodes > 1, "a link has two ends");
    let node = option::of(0..nodes);
    let verbs = Verb::ALL.iter().copied().filter(|verb| *verb != Verb::Lab);
    let verb = select(verbs.collect::<Vec<_>>());
    let error = (1..4096_i32).prop_map(ErrorKind::from_errno);
    let status = (1..40_u32).prop_map(WcStatus::from);
    prop_oneof![
        (packets(nodes), when(), effect())
            .prop_map(|(packets, when, effect)| Fault::packet(packets, effect).at(when)),
        link(nodes),
        (0..nodes, times()).prop_map(|(node, (down_at, up_at))| {
            let fault = Fault::port_down(node, 1).down_at(down_at);
            given(fault, up_at, Fault::up_at)
        }),
        (node.clone(), verb, when(), error).prop_map(|(node, verb, when, error)| {
            given(Fault::fail(verb, error).at(when), node, Fault::node)
        }),
        (node.clone(), qp_number(), when(), status).prop_map(|(node, qpn, when, status)| {
            let fault = given(Fault::complete(status).at(when), node, Fault::node);
            given(fault, qpn, Fault::qpn)
        }),
        (node, select(Limit::ALL), mostly_below(64, u64::MAX))
            .prop_map(|(node, limit, value)| given(Fault::limit(limit, value), node, Fault::node)),
    ]
}

fn effect() -> impl Strategy<Value = Effect> {
    let some = || duration().prop_map(|by| by + Duration::from_nanos(1));
    let rate = option::of(1..u64::MAX);
    let jitter = (duration(), select(Distribution::ALL));
    let shape = (duration(), jitter, rate).prop_map(|(delay, (jitter, distribution), rate)| {
        let shape = Shape::new().delay(delay).jitter(jitter);
        let shape = shape.distribution(distribution);
        rate.map_or(shape, |rate| shape.rate(rate))
    });
    prop_oneof![
        Just(Effect::Drop),
        Just(Effect::Corrupt),
        duration().prop_map(Effect::Duplicate),
        some().prop_map(Effect::Delay),
        mostly_below(8, u64::from(u32::MAX)).prop_map(|behind| Effect::Reorder(behind as u32 + 1)),
        shape.prop_map(Effect::Shape),
        Just(Effect::Hold),
    ]
}

fn packets(nodes: u32) -> impl Strategy<Value = PacketFilter> {
    let node = option::of(0..nodes);
    let opcode = option::weighted(0.2, (0..256_u32).prop_map(PacketOpcode::from));
    let class = option::weighted(0.2, select(PacketClass::ALL));
    let psn = option::weighted(0.1, 0..1_u32 << 24);
    let cm = option::weighted(0.1, (0..1_u32 << 16).prop_map(CmMessage::from));
    let parts = (
        node.clone(),
        node,
        qp_number(),
        qp_number(),
        opcode,
        class,
        psn,
        cm,
    );
    parts.prop_map(|(from, to, src_qpn, dest_qpn, opcode, class, psn, cm)| {
        let mut packets = PacketFilter::EVERY;
        (packets.from, packets.to) = (from, to);
        (packets.src_qpn, packets.dest_qpn) = (src_qpn, dest_qpn);
        (packets.opcode, packets.class) = (opcode, class);
        (packets.psn, packets.cm) = (psn, cm);
        packets
    })
}

fn link(nodes: u32) -> impl Strategy<Value = Fault> {
    // The other ends, counted from the first one on.
    let ends = (0..nodes, option::of(1..nodes));
    (ends, times()).prop_map(move |((node, peer), (down_at, up_at))| {
        let fault = Fault::link_down(node).down_at(down_at);
        let peer = peer.map(|behind| (u64::from(node) + u64::from(behind)) % u64::from(nodes));
        let fault = given(fault, peer.map(|peer| peer as u32), Fault::peer);
        given(fault, up_at, Fault::up_at)
    })
}

fn when() -> impl Strategy<Value = When> {
    let ordinal = || mostly_below(32, u64::MAX - 1).prop_map(|ordinal| ordinal + 1);
    prop_oneof![
        Just(When::Always),
        ordinal().prop_map(When::Nth),
        mostly_below(32, u64::MAX).prop_map(When::First),
        btree_set(ordinal(), 0..5).prop_map(When::These),
        (0..=1_000_000_u32).prop_map(When::PerMillion),
    ]
}

/// When a link or port goes down and comes up.
fn times() -> impl Strategy<Value = (Duration, Option<Duration>)> {
    (duration(), option::of(duration())).prop_map(|(down_at, up)| {
        let up_at = up.map(|up| down_at + up + Duration::from_nanos(1));
        (down_at, up_at)
    })
}

fn duration() -> impl Strategy<Value = Duration> {
    let unit = select(vec![1_u64, 1_000, 1_000_000, 1_000_000_000]);
    (0..5_000_u64, unit).prop_map(|(count, unit)| Duration::from_nanos(count * unit))
}

fn qp_number() -> impl Strategy<Value = Option<u32>> {
    option::weighted(
        0.2,
        mostly_below(16, 1 << 24).prop_map(|number| number as u32),
    )
}

/// Small numbers, and a few that are not.
fn mostly_below(few: u64, all: u64) -> impl Strategy<Value = u64> {
    prop_oneof![7 => 0..few, 1 => 0..all]
}

fn given<T>(fault: Fault, value: Option<T>, with: fn(Fault, T) -> Fault) -> Fault {
    match value {
        Some(value) => with(fault, value),
        None => fault,
    }
}
