//! Packets that take their time: on the links of the configuration, or kept by fault rules, for a
//! time that depends on those before them, or for good.

use core::time::Duration;
use std::collections::BTreeMap;

use verbs_api::lab::{Distribution, FaultId, Shape};

use crate::config::{Mode, SimConfig};
use crate::packet::Packet;
use crate::rng::{Purpose, Random};
use crate::time::Time;

/// What the rules in force keep, and the links of the configuration.
#[derive(Default)]
pub(super) struct Shaping {
    of_rules: BTreeMap<(FaultId, Link), Queue>,
    held: BTreeMap<FaultId, Vec<Packet>>,
    /// `None` if no link shapes packets, except by a delay, which all packets have.
    links: Option<Box<Links>>,
}

/// The links of the configuration.
struct Links {
    /// Without the delay.
    shape: Shape,
    seed: u64,
    queues: BTreeMap<Link, (Queue, Random)>,
}

/// The nodes at the ends of a link.
type Link = (u32, Option<u32>);

/// The packets on a link, or those of a rule on it.
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
    pub(super) fn new(config: &SimConfig) -> Self {
        let shape = config.link.delay(Duration::ZERO);
        let is_shaped = config.mode == Mode::Stepped && shape != Shape::new();
        let links = || {
            Box::new(Links {
                shape,
                seed: config.seed,
                queues: BTreeMap::new(),
            })
        };
        Self {
            links: is_shaped.then(links),
            ..Self::default()
        }
    }

    /// Whether the links themselves shape packets.
    pub(super) fn is_of_links(&self) -> bool {
        self.links.is_some()
    }

    /// How much later than usual a packet that leaves now arrives, without rules. `None` if no
    /// packet is ever late.
    pub(super) fn delay_of_link(&mut self, packet: &Packet, now: Time) -> Option<Duration> {
        let Links {
            shape,
            seed,
            queues,
        } = &mut **self.links.as_mut()?;
        let link = packet.route.link();
        // A stream for each link, so packets of one do not change the times of another.
        let random = || {
            let (from, to) = (u64::from(link.0), u64::from(link.1.unwrap_or(u32::MAX)));
            let seed = seed.wrapping_add(from << 32 | to);
            (Queue::default(), Random::new(seed, Purpose::Jitter, LINKS))
        };
        let (queue, random) = queues.entry(link).or_insert_with(random);
        Some(queue.delay(*shape, packet, now, random.any()))
    }

    /// How much later a packet that leaves now arrives, by a rule. `random` is any number.
    pub(super) fn delay(
        &mut self,
        rule: FaultId,
        shape: Shape,
        packet: &Packet,
        now: Time,
        random: u64,
    ) -> Duration {
        let queue = self.of_rules.entry((rule, packet.route.link()));
        queue.or_default().delay(shape, packet, now, random)
    }

    /// Keeps a packet until the rule is removed.
    pub(super) fn hold(&mut self, rule: FaultId, packet: Packet) {
        self.held.entry(rule).or_default().push(packet);
    }

    /// Forgets a rule. Returns the packets that it has kept, oldest first.
    pub(super) fn remove(&mut self, rule: FaultId) -> Vec<Packet> {
        self.of_rules.retain(|(of, _), _| *of != rule);
        self.held.remove(&rule).unwrap_or_default()
    }

    /// Takes the packets that rules hold and that a condition is true of.
    pub(super) fn take_out(&mut self, is_it: impl Fn(&Packet) -> bool) -> Vec<Packet> {
        let held = self.held.values_mut();
        held.flat_map(|packets| packets.extract_if(.., |packet| is_it(packet)))
            .collect()
    }
}

/// The stream of random numbers of links. Rules have the numbers from 0 on.
const LINKS: u32 = (1 << 26) - 1;

impl Queue {
    fn delay(&mut self, shape: Shape, packet: &Packet, now: Time, random: u64) -> Duration {
        let bytes = u64::from(packet.payload.len()) + HEADERS;
        let takes = shape.rate.map_or(Duration::ZERO, |rate| {
            let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        });
        self.left = self.left.max(now).after(takes);
        let through = self.left.after(shape.delay).after(jitter(shape, random));
        self.through = self.through.max(through);
        self.through.since_start() - now.since_start()
    }
}

/// By how much a packet is late at random. `random` is any number.
fn jitter(shape: Shape, random: u64) -> Duration {
    let scale = shape.jitter.as_nanos().min(u64::MAX.into());
    let nanos = match shape.distribution {
        Distribution::Normal => {
            let parts = [0, 16, 32, 48].map(|shift| u128::from(random >> shift & 0xffff));
            (parts.iter().sum::<u128>() * (scale + 1)) >> 18
        }
        // The inverse of the root of a uniform number below 1 is above 10 once in 100 times.
        Distribution::Pareto => {
            let root = u128::from(random.isqrt() + 1);
            scale * ((1 << 32) - root) / root
        }
        _ => (u128::from(random) * (scale + 1)) >> 64,
    };
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_distributed_as_their_names_promise() {
        const DRAWS: u64 = 100_000;
        // How many thousandths are below some times.
        for (distribution, below) in [
            (Distribution::Uniform, [(250, 250), (500, 500), (1000, 999)]),
            (Distribution::Normal, [(250, 42), (500, 500), (1000, 1000)]),
            (
                Distribution::Pareto,
                [(1000, 750), (9000, 990), (99_000, 999)],
            ),
        ] {
            let shape = Shape::new().jitter(Duration::from_nanos(1000));
            let shape = shape.distribution(distribution);
            let mut random = Random::new(1, Purpose::Jitter, 0);
            let draws: Vec<_> = (0..DRAWS).map(|_| jitter(shape, random.any())).collect();
            for (nanos, thousandths) in below {
                let limit = Duration::from_nanos(nanos);
                let fewer = draws.iter().filter(|draw| **draw < limit).count() as u64;
                let found = fewer * 1000 / DRAWS;
                let text = format!("{distribution:?}: {found} below {limit:?}");
                assert!(found.abs_diff(thousandths) <= 6, "{text}");
            }
            let most = draws.iter().max().unwrap();
            let has_tail = distribution == Distribution::Pareto;
            assert_eq!(*most > shape.jitter, has_tail, "{distribution:?}: {most:?}");
        }
    }

    #[test]
    fn no_random_number_and_no_scale_is_too_large() {
        for distribution in Distribution::ALL {
            for random in [0, 1, u64::MAX] {
                let shape = Shape::new().distribution(*distribution);
                let _ = jitter(shape.jitter(Duration::MAX), random);
                assert_eq!(jitter(shape, random), Duration::ZERO);
            }
        }
    }
}
