//! Packets that fault rules hold back.

use std::collections::BTreeMap;

use crate::packet::Packet;
use crate::time::Time;

/// Packets that are held back, in the order in which they arrive: by time, then by when they left.
#[derive(Debug, Default)]
pub(crate) struct Late {
    held: BTreeMap<(Time, u64), Held>,
    /// How many were ever held.
    count: u64,
}

#[derive(Debug)]
struct Held {
    packet: Packet,
    /// How many packets of its link must overtake it before it goes on; 0 for one that waits for its
    /// time alone.
    behind: u32,
}

impl Late {
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// When the next one arrives.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.held.keys().next().map(|(at, _)| *at)
    }

    /// Holds a packet back until its time to arrive, or until `behind` packets have overtaken it.
    pub(crate) fn hold(&mut self, packet: Packet, behind: u32) {
        let key = (packet.arrives, self.count);
        self.count += 1;
        self.held.insert(key, Held { packet, behind });
    }

    /// The next one arrives.
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        self.held.pop_first().map(|(_, held)| held.packet)
    }

    /// A packet leaves on a link: those that it was the last to overtake, oldest first.
    pub(crate) fn overtake(&mut self, link: (u32, Option<u32>)) -> Vec<Packet> {
        let mut free = Vec::new();
        for (key, held) in &mut self.held {
            if held.behind > 0 && held.packet.route.link() == link {
                held.behind -= 1;
                if held.behind == 0 {
                    free.push(*key);
                }
            }
        }
        free.sort_unstable_by_key(|(_, count)| *count);
        let free = free.iter().filter_map(|key| self.held.remove(key));
        free.map(|held| held.packet).collect()
    }
}
