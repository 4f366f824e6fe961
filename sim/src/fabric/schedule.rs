//! What happens next in a fabric: packets that arrive, turns of queue pairs, timers, and ports that go down or come up.

use std::collections::VecDeque;

use super::deadlines::Deadlines;
use super::delay_queue::DelayQueue;
use super::outage::Outages;
use crate::packet::Packet;
use crate::storage::Ring;
use crate::time::{Time, sooner};
use verbs_api::table::Id;

/// The time, and what waits for a later one.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    pub(super) now: Time,
    /// Packets in flight, in the order in which they arrive. In inline mode there are none between two verbs.
    pub(super) flight: Box<Ring<Packet>>,
    /// Packets in flight that fault rules hold back.
    pub(super) delayed: DelayQueue,
    /// Queue pairs that have asked for a turn, with their nodes. They get it after the packets that arrive by now.
    pub(super) turns: VecDeque<(u32, Id)>,
    pub(super) outages: Outages,
    pub(super) deadlines: Deadlines,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A queue pair has its turn.
    Turn,
    /// A port goes down or comes up.
    Outage,
    /// The first packet in flight arrives.
    Packet,
    /// The first packet that was held back arrives.
    DelayedPacket,
    /// A timer of a node, or of the connection manager, fires.
    Timer(u32),
}

impl Schedule {
    /// Moves the clock, never back.
    pub(crate) fn set_now(&mut self, to: Time) {
        self.now = self.now.max(to);
    }

    /// Whether something may be due sooner than was expected.
    pub(crate) fn is_sooner(&self) -> bool {
        self.deadlines.is_sooner
    }

    /// What is due first, until `limit`. `timer` is the first timer.
    pub(super) fn first_due(&self, timer: Option<(Time, u32)>, limit: Time) -> Option<(Time, Due)> {
        let packet = self.next_packet();
        if !self.turns.is_empty() && packet.is_none_or(|at| at > self.now) {
            return Some((self.now, Due::Turn));
        }
        let is_before_timer = |at: Time| timer.is_none_or(|(first, _)| at <= first);
        // A port changes before a packet arrives at it.
        if let Some(at) = self.outages.next()
            && at <= packet.unwrap_or(limit).min(limit)
            && is_before_timer(at)
        {
            return Some((at, Due::Outage));
        }
        // A packet arrives before a timer fires, so that an acknowledgement that comes in time is in time.
        if let Some(at) = packet.filter(|at| *at <= limit && is_before_timer(*at)) {
            // Of two packets that arrive at one time, the late one left first.
            let is_late = self.delayed.next_at() == Some(at);
            return Some((
                at,
                if is_late {
                    Due::DelayedPacket
                } else {
                    Due::Packet
                },
            ));
        }
        let (at, index) = timer.filter(|(at, _)| *at <= limit)?;
        Some((at, Due::Timer(index)))
    }

    /// When the next packet arrives.
    pub(super) fn next_packet(&self) -> Option<Time> {
        let packet = self.flight.front().map(|packet| packet.arrives);
        sooner(packet, self.delayed.next_at())
    }

    /// When a queue pair has its turn: now, if one waits for it.
    pub(super) fn next_turn(&self) -> Option<Time> {
        (!self.turns.is_empty()).then_some(self.now)
    }

    /// A packet goes on its way, followed by those that it was the last to overtake.
    pub(crate) fn fly(&mut self, packet: Packet) {
        let (link, arrives) = (packet.route.link(), packet.arrives);
        *self.flight.push() = packet;
        if self.delayed.is_empty() {
            return;
        }
        for overtaken in self.delayed.overtake(link) {
            *self.flight.push() = Packet {
                arrives,
                ..overtaken
            };
        }
    }

    /// Holds a packet back until it arrives, or until `behind` packets have overtaken it, if that is not 0.
    pub(super) fn hold(&mut self, packet: Packet, behind: u32) {
        self.delayed.hold(packet, behind);
        self.deadlines.is_sooner = true;
    }
}
