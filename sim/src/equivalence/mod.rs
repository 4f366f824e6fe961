//! The fast path leaves everything as packets do. Two simulations get the same random calls and
//! faults, one of them without the fast path, and their whole states are compared.

mod state;
mod twin;

use core::time::Duration;
use std::collections::BTreeMap;

use verbs_api::lab::{Fault, Lab, PacketFilter};
use verbs_api::profile::Profile;
use verbs_api::site::{Site, Standing};
use verbs_api::{ErrorKind, SendWr, Verb, Verbs, WcStatus};

use twin::{Choices, Twin};

use crate::direct::conditions::SlowPath;
use crate::direct::tally::Tally;
use crate::rng::{Purpose, Random};
use crate::{Mode, Pcap, SimConfig};

impl SlowPath {
    /// Every reason. Each must have been seen often.
    const ALL: &[Self] = &[
        Self::LocalDevice,
        Self::LocalTransport,
        Self::LocalState,
        Self::LocalPort,
        Self::LocalBusy,
        Self::Elsewhere,
        Self::RemoteDevice,
        Self::RemoteQp,
        Self::RemoteState,
        Self::RemotePort,
        Self::RemotePkey,
        Self::RemoteQkey,
        Self::RemoteMtu,
        Self::RemotePeer,
        Self::RemoteBusy,
        Self::Operation,
        Self::Kind,
        Self::SendQueue,
        Self::ForItself,
        Self::SendCq,
        Self::LocalMemory,
        Self::Sequence,
        Self::NoReceive,
        Self::ReceiveCq,
        Self::ReceiveLength,
        Self::ReceiveMemory,
        Self::Alignment,
        Self::RemoteMemory,
    ];
}

/// Shows where two texts differ.
fn assert_same(texts: [&str; 2], when: &str) {
    let [a, b] = texts;
    if a != b {
        let at = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
        let around = |text: &str| {
            let bytes = &text.as_bytes()[at.saturating_sub(400)..(at + 200).min(text.len())];
            String::from_utf8_lossy(bytes).into_owned()
        };
        if let Ok(path) = std::env::var("EQUIVALENCE") {
            std::fs::write(format!("{path}.a"), a).unwrap();
            std::fs::write(format!("{path}.b"), b).unwrap();
        }
        panic!(
            "{when}\nat once: {}\n---\npackets: {}",
            around(a),
            around(b)
        );
    }
}

/// Compares for these seeds. Returns the number of posts, and the tally.
fn compare(profile: Profile, seeds: core::ops::Range<u64>, steps: u64) -> (u64, Tally) {
    let _standing = Standing::at(Site::Address(1));
    let mut all = Tally::default();
    let mut posts = 0;
    for seed in seeds {
        let mut sides = [false, true].map(|only_packets| Twin::new(profile, only_packets));
        for step in 0..steps {
            let said = sides.each_mut().map(|twin| {
                let mut draw = Choices(Random::new(seed << 20 | step, Purpose::Node, 0));
                twin.act(&mut draw)
            });
            let when = format!("{}, seed {seed}, step {step}", profile.name);
            assert_same([&said[0], &said[1]], &when);
            posts += u64::from(said[0].starts_with("post") || said[0].starts_with("batch"));
            if step % 8 == 7 {
                let snapshot = sides.each_ref().map(Twin::snapshot);
                assert_same(
                    [&snapshot[0], &snapshot[1]],
                    &format!("{when}: {}", said[0]),
                );
            }
            if step % 64 == 63 || std::env::var("EQUIVALENCE").is_ok() {
                let [at_once, packets] = sides.each_ref().map(Twin::bytes);
                assert!(at_once == packets, "bytes differ: {when}: {}", said[0]);
            }
        }
        let [at_once, packets] = &sides;
        let of = |twin: &Twin| {
            twin.sim
                .runtime
                .with(|fabric| std::mem::take(&mut fabric.direct.tally))
        };
        let Tally {
            on_fast_path,
            slow_paths,
            ..
        } = of(at_once);
        all.on_fast_path += on_fast_path;
        for (slow_path, count) in slow_paths {
            *all.slow_paths.entry(slow_path).or_default() += count;
        }
        assert_eq!(of(packets).on_fast_path, 0);
    }
    (posts, all)
}

/// Seeds of each profile.
fn seeds() -> u64 {
    if cfg!(debug_assertions) { 2 } else { 120 }
}

#[test]
fn messages_that_are_carried_out_at_once_leave_all_as_packets_do() {
    let (mut posts, mut on_fast_path) = (0, 0);
    let mut slow_paths = BTreeMap::new();
    for profile in Profile::ALL {
        let (more, tally) = compare(*profile, 0..seeds(), 1000);
        println!("{}: {more} posts, {tally:?}", profile.name);
        // This profile places data late, so nothing takes the fast path.
        if *profile != Profile::ADVERSARIAL {
            posts += more;
            on_fast_path += tally.on_fast_path;
        }
        for (slow_path, count) in tally.slow_paths {
            *slow_paths.entry(slow_path).or_insert(0) += count;
        }
    }
    println!("{posts} posts, {on_fast_path} messages at once, {slow_paths:?}");
    if cfg!(debug_assertions) {
        return;
    }
    assert!(2 * on_fast_path >= posts, "{on_fast_path} of {posts} posts");
    let rare: Vec<_> = SlowPath::ALL
        .iter()
        .filter(|slow_path| slow_paths.get(slow_path).is_none_or(|count| *count < 100))
        .collect();
    assert!(rare.is_empty(), "taken too rarely to be trusted: {rare:?}");
}

/// An observer of packets or calls sees each of them: nothing takes the fast path in the meantime.
#[test]
fn an_observer_sees_each_packet() {
    let on_fast_path = |twin: &Twin| {
        let count = || {
            twin.sim
                .runtime
                .with(|fabric| fabric.direct.tally.on_fast_path)
        };
        let before = count();
        let [(end, qp), (far, _)] = twin.pairs[0];
        let list = [twin.ends[end].mrs[0].1.sge(0, 64)];
        let wr = SendWr::rdma_write(1, &list, twin.ends[far].mrs[0].1.remote(0));
        twin.sim.post_send(qp, &[wr]).unwrap();
        twin.poll(twin.ends[end].cqs[0], 4);
        count() - before
    };
    let plain = Twin::new(Profile::SPEC, false);
    assert_eq!(on_fast_path(&plain), 1);

    // Rules, as long as they are in force, though they fire on nothing here.
    let far_away = PacketFilter::EVERY.src_qpn(0x00ff_0000);
    let later = Duration::from_secs(3600);
    let rules = [
        Fault::drop(far_away),
        Fault::delay(far_away, later),
        Fault::reorder(far_away, 3),
        Fault::duplicate(far_away, later),
        Fault::corrupt(far_away),
        Fault::link_down(0).down_at(later),
        Fault::fail(Verb::AllocPd, ErrorKind::NoMemory),
        Fault::complete(WcStatus::LocProtErr).qpn(0x00ff_0000),
        Fault::complete(WcStatus::LocProtErr)
            .node(1)
            .qpn(0x00ff_0000),
    ];
    for rule in rules {
        let fault = plain.sim.inject(rule.clone()).unwrap();
        assert_eq!(on_fast_path(&plain), 0, "{rule:?}");
        plain.sim.remove(fault).unwrap();
        assert_eq!(on_fast_path(&plain), 1, "{rule:?} is removed");
    }

    // A port that is to go down lets messages pass until then. None in flight arrives later.
    let outage = Fault::port_down(1, 1).down_at(later);
    let outage = plain.sim.inject(outage).unwrap();
    assert_eq!(on_fast_path(&plain), 1);
    plain.sim.advance(2 * later).unwrap();
    assert_eq!(on_fast_path(&plain), 0);
    plain.sim.remove(outage).unwrap();

    // Observers in the configuration.
    let config = || SimConfig::new().mode(Mode::Inline);
    let pcap = Pcap::new(std::io::sink()).unwrap();
    let watched = [
        ("a trace", config().trace(true)),
        ("packets as bytes", config().wire(true)),
        ("a file of packets", config().pcap(pcap)),
        ("a planted defect", config().planted_defect(true)),
        ("virtual time for one thread", SimConfig::new()),
        (
            "data that is placed late",
            config().profile(Profile::ADVERSARIAL),
        ),
    ];
    for (who, config) in watched {
        assert_eq!(
            on_fast_path(&Twin::with(config, Profile::SPEC, false)),
            0,
            "{who}"
        );
    }

    // A tap, which cannot be removed.
    plain.sim.set_port(plain.ends[1].context, 1, true).unwrap();
    let tapped = Twin::new(Profile::SPEC, false);
    assert_eq!(on_fast_path(&tapped), 1);
    tapped.sim.tap();
    assert_eq!(on_fast_path(&tapped), 0);
    let opcodes = tapped.sim.tapped().len();
    assert_eq!(opcodes, 2, "the write and its acknowledgement");
}
