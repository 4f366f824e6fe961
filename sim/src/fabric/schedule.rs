//! The schedule: which packet, turn, timer or change of a port is next in a fabric.

use std::collections::VecDeque;

use super::deadlines::Deadlines;
use super::delay_queue::DelayQueue;
use super::outage::Outages;
use crate::packet::Packet;
use crate::storage::Ring;
use crate::time::Time;
use verbs_api::table::Id;

/// The current time, and what is due later.
#[derive(Default)]
pub(crate) struct Schedule {
    pub(super) now: Time,
    /// Packets in flight, in the order in which they arrive. In inline mode none remains between
    /// verbs.
    pub(super) flight: Box<Ring<Packet>>,
    /// Packets in flight that fault rules delay.
    pub(super) delayed: DelayQueue,
    /// Queue pairs that have asked for a turn, with their nodes. They get it after the packets that
    /// arrive at this time.
    pub(super) turns: VecDeque<(u32, Id)>,
    pub(super) outages: Outages,
    pub(crate) deadlines: Deadlines,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A port goes down or comes up.
    Outage,
    /// The first packet in flight arrives.
    Packet,
    /// The first delayed packet arrives.
    DelayedPacket,
    /// A timer of a node, or of the connection manager, fires.
    Timer(u32),
}

impl Schedule {
    /// Advances the clock. It never goes back.
    pub(crate) fn set_now(&mut self, to: Time) {
        self.now = self.now.max(to);
    }

    /// Whether a queue pair has its turn before anything else happens.
    pub(super) fn is_turn_due(&self) -> bool {
        !self.turns.is_empty() && self.next_packet().is_none_or(|at| at > self.now)
    }

    /// What is due first after the turns, until `limit`. `timer` is the first timer.
    pub(super) fn first_due(&self, timer: Option<(Time, u32)>, limit: Time) -> Option<(Time, Due)> {
        let packet = self.next_packet();
        let is_before_timer = |at: Time| timer.is_none_or(|(first, _)| at <= first);
        // A port changes before a packet arrives at it.
        if let Some(at) = self.outages.next
            && at <= packet.unwrap_or(limit).min(limit)
            && is_before_timer(at)
        {
            return Some((at, Due::Outage));
        }
        // A packet arrives before a timer fires, so an acknowledgement that arrives in time counts.
        if let Some(at) = packet.filter(|at| *at <= limit && is_before_timer(*at)) {
            // If two packets arrive at the same time, the delayed one left first.
            if self.delayed.next_at() == Some(at) {
                return Some((at, Due::DelayedPacket));
            }
            return Some((at, Due::Packet));
        }
        let (at, index) = timer.filter(|(at, _)| *at <= limit)?;
        Some((at, Due::Timer(index)))
    }

    /// When the next packet arrives.
    pub(super) fn next_packet(&self) -> Option<Time> {
        let packet = self.flight.front().map(|packet| packet.arrives);
        packet.into_iter().chain(self.delayed.next_at()).min()
    }

    /// When a queue pair has its turn: now, if one waits for it.
    pub(super) fn next_turn(&self) -> Option<Time> {
        (!self.turns.is_empty()).then_some(self.now)
    }
}
