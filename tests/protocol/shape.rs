//! Slow links, and packets that are held.

use core::time::Duration;

use crate::common::{End, pair, settle};
use crate::link::{Link, wr_ids};
use verbs_api::lab::{Fault, Lab, PacketFilter, Shape, TraceEvent};
use verbs_api::{QpType, RcParams};
use verbs_sim::{Mode, Sim, SimConfig};

const US: Duration = Duration::from_micros(1);
const MS: Duration = Duration::from_millis(1);

/// Bytes of a packet in addition to its payload.
const HEADERS: u64 = 62;

/// Where a link gets its shape.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Rule,
    Config,
}

/// When packets of messages of this length arrive that all leave at once.
fn arrivals(from: Source, shape: Shape, seed: u64, count: u64, length: u32) -> Vec<Duration> {
    let mut config = SimConfig::new().seed(seed).trace(true);
    if from == Source::Config {
        config = config.link(shape.delay(shape.delay + US));
    }
    let sim = Sim::new(config);
    let link = Link::new(&sim, QpType::Uc, &RcParams::default());
    if from == Source::Rule {
        sim.inject(Fault::shape(PacketFilter::EVERY.to(1), shape))
            .unwrap();
    }
    for number in 0..count {
        link.far.recv(link.peer, number, 0, length);
        link.near.send(link.qp, number, 0, length);
    }
    settle(&sim);
    let expected: Vec<_> = (0..count).collect();
    assert_eq!(wr_ids(&link.far.drain()), expected, "packets stay in order");
    let trace = sim.trace().into_iter();
    let received = trace.filter(|record| matches!(record.event, TraceEvent::Received(_)));
    received.map(|record| record.at).collect()
}

#[test]
fn packets_of_a_slow_link_stay_in_order_within_its_bounds_and_as_the_seed_says() {
    for from in [Source::Rule, Source::Config] {
        let shape = Shape::new().delay(5 * MS).jitter(MS);
        let first = arrivals(from, shape, 1, 16, 8);
        assert!(first.is_sorted());
        let bounds = 5 * MS + US..=6 * MS + US;
        assert!(first.iter().all(|at| bounds.contains(at)), "{first:?}");
        assert!(first[0] < first[15], "{first:?}");
        assert_eq!(arrivals(from, shape, 1, 16, 8), first);
        assert_ne!(arrivals(from, shape, 2, 16, 8), first);
    }
}

#[test]
fn packets_wait_for_those_before_them_where_the_rate_is_limited() {
    // A packet of 938 bytes takes a millisecond.
    let shape = Shape::new().rate(1_000_000);
    let length = 1000 - HEADERS as u32;
    let expected: Vec<_> = (1..=8).map(|number| number * MS + US).collect();
    for from in [Source::Rule, Source::Config] {
        assert_eq!(arrivals(from, shape, 0, 8, length), expected);
    }
}

/// A packet takes its time on the link, whatever a rule makes of it.
#[test]
fn packets_stay_on_a_slow_link_whatever_rules_make_of_them() {
    // A packet of 938 bytes takes a millisecond.
    let length = 1000 - HEADERS as u32;
    let arrivals = |fault: Fault| {
        let shape = Shape::new().delay(US).rate(1_000_000);
        let sim = Sim::new(SimConfig::new().link(shape).trace(true));
        let link = Link::new(&sim, QpType::Uc, &RcParams::default());
        sim.inject(fault).unwrap();
        for number in 0..6 {
            link.far.recv(link.peer, number, 0, length);
            link.near.send(link.qp, number, 0, length);
        }
        settle(&sim);
        let trace = sim.trace().into_iter();
        let received = trace.filter(|record| matches!(record.event, TraceEvent::Received(_)));
        received.map(|record| record.at - US).collect::<Vec<_>>()
    };
    let all = PacketFilter::EVERY.to(1);
    let ms = |times: &[u32]| -> Vec<_> { times.iter().map(|time| *time * MS).collect() };
    for (fault, expected) in [
        (
            Fault::duplicate(all, Duration::ZERO).nth(4),
            ms(&[1, 2, 3, 4, 4, 5, 6]),
        ),
        (
            Fault::duplicate(all, 2 * MS).nth(4),
            ms(&[1, 2, 3, 4, 5, 6, 6]),
        ),
        (Fault::delay(all, 2 * MS).nth(3), ms(&[1, 2, 4, 5, 5, 6])),
        (Fault::drop(all).nth(2), ms(&[1, 3, 4, 5, 6])),
        (
            Fault::shape(all, Shape::new().delay(MS)),
            ms(&[2, 3, 4, 5, 6, 7]),
        ),
    ] {
        assert_eq!(arrivals(fault.clone()), expected, "{fault:?}");
    }
}

/// Links of different nodes do not wait for each other.
#[test]
fn a_large_message_takes_its_bytes_by_the_rate_on_each_link() {
    const LENGTH: u32 = 1 << 20;
    let sim = Sim::new(SimConfig::new().nodes(3));
    let ends = ["sim0", "sim1", "sim2"].map(|name| End::open(&sim, name, 64, LENGTH as usize));
    let [near, others @ ..] = &ends;
    let rate = 1_000_000_000;
    sim.inject(Fault::shape(
        PacketFilter::EVERY.from(0),
        Shape::new().rate(rate),
    ))
    .unwrap();
    let params = RcParams::default();
    let mtu = u64::from(params.path_mtu.bytes().unwrap());
    for other in others {
        let (qp, peer) = pair((near, other), QpType::Uc, 16, &params);
        other.recv(peer, 1, 0, LENGTH);
        near.send(qp, 1, 0, LENGTH);
    }
    settle(&sim);
    let bytes = u64::from(LENGTH) + u64::from(LENGTH).div_ceil(mtu) * HEADERS;
    let takes = Duration::from_nanos(bytes * 1_000_000_000 / rate);
    let last = sim.now();
    assert!(
        last >= takes && last <= takes + 2 * US,
        "{last:?}, not {takes:?}"
    );
}

#[test]
fn held_packets_arrive_in_order_once_the_rule_is_removed() {
    for mode in [Mode::Stepped, Mode::Inline] {
        let sim = Sim::new(SimConfig::new().mode(mode));
        let link = Link::new(&sim, QpType::Uc, &RcParams::default());
        let held = sim.inject(Fault::hold(PacketFilter::EVERY.to(1))).unwrap();
        for number in 0..4_u8 {
            link.far
                .recv(link.peer, number.into(), u64::from(number) * 8, 8);
            // A packet has the bytes that it left with.
            link.near.write(0, &[number; 8]);
            link.near.send(link.qp, number.into(), 0, 8);
            settle(&sim);
            assert_eq!(wr_ids(&link.near.drain()), [u64::from(number)]);
        }
        sim.advance(1000 * MS).unwrap();
        assert_eq!(link.far.drain(), [], "{mode:?}");
        assert_eq!(sim.remove(held).unwrap(), 4);
        settle(&sim);
        assert_eq!(wr_ids(&link.far.drain()), [0, 1, 2, 3], "{mode:?}");
        let seen: Vec<_> = (0..4).map(|slot| link.far.read(slot * 8, 1)[0]).collect();
        assert_eq!(seen, [0, 1, 2, 3], "{mode:?}");
    }
}

/// TMR-01: a connection whose packets are held for longer than its retries take fails; one that is
/// released in time does not notice.
#[test]
fn connection_survives_a_hold_that_ends_before_its_retries() {
    for (time, status) in [(10 * MS, "SUCCESS"), (600_000 * MS, "RETRY_EXC_ERR")] {
        let sim = Sim::new(SimConfig::new());
        let link = Link::new(&sim, QpType::Rc, &RcParams::default());
        let held = sim
            .inject(Fault::hold(PacketFilter::EVERY.from(0)))
            .unwrap();
        link.far.recv(link.peer, 1, 0, 8);
        link.near.send(link.qp, 1, 0, 8);
        sim.advance(time).unwrap();
        sim.remove(held).unwrap();
        settle(&sim);
        let completions = link.near.drain();
        assert_eq!(completions.len(), 1);
        assert_eq!(completions[0].status.name(), status, "{time:?}");
    }
}
