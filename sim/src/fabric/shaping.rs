//! Packets that fault rules keep: for a time that depends on those before them, or for good.

use core::time::Duration;
use std::collections::BTreeMap;

use verbs_api::lab::{FaultId, Shape};

use crate::packet::Packet;
use crate::time::Time;

/// What the rules in force keep.
#[derive(Default)]
pub(super) struct Shaping {
    links: BTreeMap<(FaultId, Link), Queue>,
    held: BTreeMap<FaultId, Vec<Packet>>,
}

/// The nodes at the ends of a link.
type Link = (u32, Option<u32>);

/// The packets of a rule on a link.
#[derive(Default)]
struct Queue {
    /// When the last packet has left.
    left: Time,
    /// When the last packet is through, which later ones do not overtake.
    through: Time,
}

/// Bytes of a packet in addition to its payload: Ethernet, IPv4, UDP, BTH and both checksums.
const HEADERS: u64 = 14 + 20 + 8 + 12 + 4 + 4;

impl Shaping {
    /// How much later a packet that leaves now arrives. `random` is any number.
    pub(super) fn delay(
        &mut self,
        rule: FaultId,
        shape: Shape,
        packet: &Packet,
        now: Time,
        random: u64,
    ) -> Duration {
        let queue = self.links.entry((rule, packet.route.link())).or_default();
        let bytes = u64::from(packet.payload.len()) + HEADERS;
        let takes = shape.rate.map_or(Duration::ZERO, |rate| {
            let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        });
        queue.left = queue.left.max(now).after(takes);
        let choices = shape.jitter.as_nanos() + 1;
        let jitter = (u128::from(random) * choices) >> 64;
        let jitter = Duration::from_nanos(u64::try_from(jitter).unwrap_or(u64::MAX));
        let through = queue.left.after(shape.delay).after(jitter);
        queue.through = queue.through.max(through);
        queue.through.since_start() - now.since_start()
    }

    /// Keeps a packet until the rule is removed.
    pub(super) fn hold(&mut self, rule: FaultId, packet: Packet) {
        self.held.entry(rule).or_default().push(packet);
    }

    /// Forgets a rule. Returns the packets that it has kept, oldest first.
    pub(super) fn remove(&mut self, rule: FaultId) -> Vec<Packet> {
        self.links.retain(|(of, _), _| *of != rule);
        self.held.remove(&rule).unwrap_or_default()
    }
}
