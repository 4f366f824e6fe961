//! What a laboratory does to packets and calls: the tap, and the fault rules.

use core::time::Duration;

use verbs_api::{ErrorKind, PacketFilter, PacketView, TappedPacket, Verb, When};

use crate::fault::Striker;
use crate::packet::Packet;
use crate::rng::{Purpose, Random};

/// Rules in force, in the order in which they were made; the first that strikes decides.
#[derive(Debug)]
pub(crate) struct Wire {
    tap: Option<Vec<TappedPacket>>,
    harms: Vec<(u64, Harm, PacketFilter, Striker)>,
    failures: Vec<(u64, Verb, ErrorKind, Striker)>,
    packet_random: Random,
    call_random: Random,
}

/// What can happen to a packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// It never arrives.
    Loss,
    /// It arrives with a checksum that is wrong.
    Damage,
    /// It arrives twice.
    Duplication,
}

impl Wire {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            tap: None,
            harms: Vec::new(),
            failures: Vec::new(),
            packet_random: Random::new(seed, Purpose::PacketFaults, 0),
            call_random: Random::new(seed, Purpose::CallFaults, 0),
        }
    }

    /// Whether single packets can be observed.
    pub(crate) fn sees_packets(&self) -> bool {
        self.tap.is_some() || !self.harms.is_empty()
    }

    /// Whether a rule may make an error of a call.
    pub(crate) fn fails_calls(&self) -> bool {
        !self.failures.is_empty()
    }

    /// A packet leaves: what happens to it on its way, if anything does.
    pub(crate) fn carry(&mut self, at: Duration, packet: &Packet) -> Option<Harm> {
        let view = packet.view();
        let random = &mut self.packet_random;
        let mut matching = self
            .harms
            .iter_mut()
            .filter(|(_, _, filter, _)| matches(filter, &view));
        let harm =
            matching.find_map(|(_, harm, _, striker)| striker.strikes(random).then_some(*harm));
        if let Some(tap) = &mut self.tap {
            tap.push(TappedPacket {
                at,
                packet: view,
                dropped: harm == Some(Harm::Loss),
            });
        }
        harm
    }

    /// A verb is called: the error that a rule makes of it.
    pub(crate) fn fail(&mut self, verb: Verb) -> Option<ErrorKind> {
        let random = &mut self.call_random;
        let mut matching = self.failures.iter_mut().filter(|(_, of, ..)| *of == verb);
        matching.find_map(|(_, _, kind, striker)| striker.strikes(random).then_some(*kind))
    }

    pub(crate) fn start_tap(&mut self) {
        self.tap.get_or_insert_default();
    }

    pub(crate) fn tapped(&mut self) -> Vec<TappedPacket> {
        self.tap.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(crate) fn harm_packets(&mut self, id: u64, harm: Harm, filter: PacketFilter, when: When) {
        self.harms.push((id, harm, filter, Striker::new(when)));
    }

    pub(crate) fn fail_calls(&mut self, id: u64, verb: Verb, kind: ErrorKind, when: When) {
        self.failures.push((id, verb, kind, Striker::new(when)));
    }

    /// Takes a rule out: how often it has struck, if it was there.
    pub(crate) fn remove(&mut self, id: u64) -> Option<u64> {
        if let Some(at) = self.harms.iter().position(|(of, ..)| *of == id) {
            return Some(self.harms.remove(at).3.struck());
        }
        let at = self.failures.iter().position(|(of, ..)| *of == id)?;
        Some(self.failures.remove(at).3.struck())
    }
}

fn matches(filter: &PacketFilter, packet: &PacketView) -> bool {
    filter.dest_qpn.is_none_or(|qpn| qpn == packet.dest_qpn)
        && filter.opcode.is_none_or(|opcode| opcode == packet.opcode)
        && filter.psn.is_none_or(|psn| psn == packet.psn)
}
