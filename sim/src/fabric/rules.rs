//! The fault rules of a laboratory, for packets and calls.

use std::collections::BTreeSet;

use verbs_api::lab::{FaultId, Harm, PacketFilter, PacketView};
use verbs_api::{ErrorKind, Verb};

use crate::config::SimConfig;
use crate::packet::{DropReason, Packet};
use crate::time::Time;
use crate::trigger::{Trigger, Triggers};

/// Rules in force, in the order in which they were made; the first that strikes decides.
#[derive(Debug)]
pub(crate) struct Rules {
    packets: Vec<(PacketRule, Trigger)>,
    calls: Vec<(CallRule, Trigger)>,
    planted: Option<Planted>,
    pub(super) triggers: Triggers,
}

/// A defect ([`SimConfig::planted_defect`](crate::SimConfig::planted_defect)): node, queue pair and
/// number of each packet with immediate data that has left.
type Planted = BTreeSet<(u32, u32, u32)>;

/// A rule for what is between nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PacketRule {
    Harm(PacketFilter, Harm),
    /// Between a node and another, or all others, nothing gets through from the first moment until
    /// the second.
    Down {
        node: u32,
        peer: Option<u32>,
        from: Time,
        until: Time,
    },
}

/// A rule for calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallRule {
    pub(crate) node: Option<u32>,
    pub(crate) verb: Verb,
    pub(crate) error: ErrorKind,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passes,
    Lost(DropReason),
    Harmed(Harm),
}

impl Rules {
    pub(super) fn new(config: &SimConfig) -> Self {
        Self {
            packets: Vec::new(),
            calls: Vec::new(),
            planted: config.planted_defect.then(Planted::new),
            triggers: Triggers::new(config.seed, config.strikes),
        }
    }

    /// Whether a rule sees single packets.
    pub(super) fn see_packets(&self) -> bool {
        !self.packets.is_empty() || self.planted.is_some()
    }

    /// Whether a rule may make an error of a call.
    pub(crate) fn fails_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// A packet leaves: the defect does its part, where there is one.
    pub(crate) fn spoil(&mut self, packet: &mut Packet) {
        let Some(left) = &mut self.planted else {
            return;
        };
        if packet.imm.is_some() {
            let (from, _) = packet.route.link();
            let is_first = left.insert((from, packet.src_qpn, packet.psn.value()));
            packet.imm = packet.imm.filter(|_| is_first);
        }
    }

    /// A packet leaves: what becomes of it on its way.
    pub(super) fn judge(&mut self, at: Time, packet: &Packet, view: &PacketView) -> Verdict {
        let mut verdict = Verdict::Passes;
        for (rule, trigger) in &mut self.packets {
            if rule.matches(at, packet, view) && trigger.strikes(verdict == Verdict::Passes) {
                verdict = rule.verdict();
            }
        }
        verdict
    }

    /// A verb is called on a node: the error that a rule makes of it.
    pub(crate) fn fail(&mut self, node: u32, verb: Verb) -> Option<ErrorKind> {
        let mut error = None;
        for (rule, trigger) in &mut self.calls {
            let matches = rule.verb == verb && rule.node.is_none_or(|of| of == node);
            if matches && trigger.strikes(error.is_none()) {
                error = Some(rule.error);
            }
        }
        error
    }

    pub(crate) fn harm_packets(&mut self, rule: PacketRule, trigger: Trigger) {
        self.packets.push((rule, trigger));
    }

    pub(crate) fn fail_calls(&mut self, rule: CallRule, trigger: Trigger) {
        self.calls.push((rule, trigger));
    }

    fn triggers(&self) -> impl Iterator<Item = &Trigger> {
        let packets = self.packets.iter().map(|(_, trigger)| trigger);
        packets.chain(self.calls.iter().map(|(_, trigger)| trigger))
    }

    /// How often a rule has struck, if it is here.
    pub(crate) fn struck(&self, id: FaultId) -> Option<u64> {
        let mut triggers = self.triggers().filter(|trigger| trigger.id() == id);
        triggers.next().map(Trigger::struck)
    }

    /// Takes a rule out, if it is here.
    pub(crate) fn remove(&mut self, id: FaultId) {
        self.packets.retain(|(_, trigger)| trigger.id() != id);
        self.calls.retain(|(_, trigger)| trigger.id() != id);
    }
}

impl PacketRule {
    fn matches(&self, at: Time, packet: &Packet, view: &PacketView) -> bool {
        let from = packet.route.from.node;
        // What goes to no node is lost anyway.
        let Some(to) = packet.route.to.map(|to| to.node) else {
            return false;
        };
        match self {
            Self::Harm(filter, _) => {
                filter.from.is_none_or(|node| node == from)
                    && filter.to.is_none_or(|node| node == to)
                    && filter.src_qpn.is_none_or(|qpn| qpn == packet.src_qpn)
                    && filter.dest_qpn.is_none_or(|qpn| qpn == packet.dest_qpn)
                    && filter.opcode.is_none_or(|opcode| opcode == view.opcode)
                    && filter.class.is_none_or(|class| class.has(view.opcode))
                    && filter.psn.is_none_or(|psn| psn == view.psn)
                    && filter.cm.is_none_or(|message| view.cm == Some(message))
            }
            Self::Down {
                node,
                peer,
                from: start,
                until,
            } => {
                let other = match *node {
                    node if node == from => to,
                    node if node == to => from,
                    _ => return false,
                };
                // A node reaches itself without a link.
                let between = from != to && peer.is_none_or(|peer| peer == other);
                between && (*start..*until).contains(&at)
            }
        }
    }

    fn verdict(&self) -> Verdict {
        match self {
            Self::Harm(_, Harm::Drop) => Verdict::Lost(DropReason::FaultRule),
            Self::Harm(_, harm) => Verdict::Harmed(*harm),
            Self::Down { .. } => Verdict::Lost(DropReason::LinkDown),
        }
    }
}
