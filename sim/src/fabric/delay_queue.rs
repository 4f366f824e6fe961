//! Packets that fault rules delay.

use std::collections::BTreeMap;

use crate::packet::Packet;
use crate::time::Time;

/// Delayed packets in the order in which they arrive: by time, then by when they left.
#[derive(Default)]
pub(super) struct DelayQueue {
    held: BTreeMap<(Time, u64), Held>,
    /// The links with packets that wait to be overtaken.
    lanes: BTreeMap<Link, Lane>,
    /// The number of packets that were ever held.
    count: u64,
}

/// The nodes at the ends of a link.
type Link = (u32, Option<u32>);

struct Held {
    packet: Packet,
    /// The packet continues when this many packets have left in its lane. `None` if it only waits
    /// for its time.
    after: Option<u64>,
}

/// Packets of a link that wait to be overtaken.
#[derive(Default)]
struct Lane {
    /// The number of packets that have left since some began to wait.
    departed: u64,
    /// When each packet arrives by itself, by the count of `departed` that releases it and its
    /// number.
    waiting: BTreeMap<(u64, u64), Time>,
}

impl DelayQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// When the next packet arrives.
    pub(super) fn next_at(&self) -> Option<Time> {
        self.held.keys().next().map(|(at, _)| *at)
    }

    /// Holds a packet until its time to arrive, or until `behind` packets have overtaken it. If
    /// `behind` is 0 it only waits for the time.
    pub(super) fn hold(&mut self, packet: Packet, behind: u32) {
        let (at, number) = (packet.arrives, self.count);
        self.count += 1;
        let after = (behind > 0).then(|| {
            let lane = self.lanes.entry(packet.route.link()).or_default();
            let after = lane.departed + u64::from(behind);
            lane.waiting.insert((after, number), at);
            after
        });
        self.held.insert((at, number), Held { packet, after });
    }

    /// Takes the next packet that arrives.
    pub(super) fn pop(&mut self) -> Option<Packet> {
        let (at, number) = *self.held.first_key_value()?.0;
        self.take(at, number)
    }

    /// Takes the packets that a condition is true of.
    pub(super) fn take_out(&mut self, is_it: impl Fn(&Packet) -> bool) -> Vec<Packet> {
        let all = self.held.iter();
        let keys = all.filter_map(|(key, held)| is_it(&held.packet).then_some(*key));
        let keys: Vec<_> = keys.collect();
        let keys = keys.into_iter();
        keys.filter_map(|(at, number)| self.take(at, number))
            .collect()
    }

    fn take(&mut self, at: Time, number: u64) -> Option<Packet> {
        let Held { packet, after } = self.held.remove(&(at, number))?;
        let link = packet.route.link();
        if let Some(after) = after
            && let Some(lane) = self.lanes.get_mut(&link)
        {
            lane.waiting.remove(&(after, number));
            // A lane counts packets only while some wait.
            if lane.waiting.is_empty() {
                self.lanes.remove(&link);
            }
        }
        Some(packet)
    }

    /// Counts a packet that leaves on a link. Returns the packets that have now been overtaken
    /// often enough, oldest first.
    pub(super) fn overtake(&mut self, link: Link) -> Vec<Packet> {
        let mut free = Vec::new();
        let Some(lane) = self.lanes.get_mut(&link) else {
            return free;
        };
        lane.departed += 1;
        while let Some(first) = lane.waiting.first_entry()
            && first.key().0 <= lane.departed
        {
            let ((_, number), at) = first.remove_entry();
            free.extend(self.held.remove(&(at, number)).map(|held| held.packet));
        }
        if lane.waiting.is_empty() {
            self.lanes.remove(&link);
        }
        free
    }
}
