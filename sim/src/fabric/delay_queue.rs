//! Packets that fault rules hold back.

use std::collections::BTreeMap;

use crate::packet::Packet;
use crate::time::Time;

/// Packets that are held back, in the order in which they arrive: by time, then by when they left.
#[derive(Debug, Default)]
pub(super) struct DelayQueue {
    held: BTreeMap<(Time, u64), Held>,
    /// The links with packets that wait to be overtaken.
    lanes: BTreeMap<Link, Lane>,
    /// How many were ever held.
    count: u64,
}

/// The nodes at the ends of a link.
type Link = (u32, Option<u32>);

#[derive(Debug)]
struct Held {
    packet: Packet,
    /// It goes on when so many packets have left in its lane; `None` for one that waits for its time alone.
    after: Option<u64>,
}

/// Packets of a link that wait to be overtaken.
#[derive(Debug, Default)]
struct Lane {
    /// How many packets have left since some wait.
    left: u64,
    /// By how many must have left, and when it was held: when it arrives by itself.
    waiting: BTreeMap<(u64, u64), Time>,
}

impl DelayQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// When the next one arrives.
    pub(super) fn next_at(&self) -> Option<Time> {
        self.held.keys().next().map(|(at, _)| *at)
    }

    /// Holds a packet back until its time to arrive, or until `behind` packets have overtaken it, if that
    /// is not 0.
    pub(super) fn hold(&mut self, packet: Packet, behind: u32) {
        let (at, number) = (packet.arrives, self.count);
        self.count += 1;
        let after = (behind > 0).then(|| {
            let lane = self.lanes.entry(packet.route.link()).or_default();
            let after = lane.left + u64::from(behind);
            lane.waiting.insert((after, number), at);
            after
        });
        self.held.insert((at, number), Held { packet, after });
    }

    /// The next one arrives.
    pub(super) fn pop(&mut self) -> Option<Packet> {
        let ((_, number), Held { packet, after }) = self.held.pop_first()?;
        let link = packet.route.link();
        if let Some(after) = after
            && let Some(lane) = self.lanes.get_mut(&link)
        {
            lane.waiting.remove(&(after, number));
            if lane.waiting.is_empty() {
                self.lanes.remove(&link);
            }
        }
        Some(packet)
    }

    /// A packet leaves on a link: those that it was the last to overtake, oldest first.
    pub(super) fn overtake(&mut self, link: Link) -> Vec<Packet> {
        let mut free = Vec::new();
        let Some(lane) = self.lanes.get_mut(&link) else {
            return free;
        };
        lane.left += 1;
        while let Some(first) = lane.waiting.first_entry()
            && first.key().0 <= lane.left
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
