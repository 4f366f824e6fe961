//! Fault rules for packets and calls.

use std::collections::BTreeSet;

use verbs_api::lab::{FaultId, Harm, PacketFilter, PacketView};
use verbs_api::{ErrorKind, Verb};

use crate::config::SimConfig;
use crate::packet::{DropReason, Packet};
use crate::time::Time;
use crate::trigger::{Trigger, Triggers};

/// Rules in force, in the order in which they were added. The first that strikes decides.
#[derive(Debug)]
pub(crate) struct Rules {
    packets: Vec<(PacketRule, Trigger)>,
    calls: Vec<(CallRule, Trigger)>,
    planted: Option<Planted>,
    pub(super) triggers: Triggers,
}

/// The packets with immediate data that have left: node, queue pair and sequence number of each.
/// For [`SimConfig::planted_defect`](crate::SimConfig::planted_defect).
type Planted = BTreeSet<(u32, u32, u32)>;

/// A rule for packets between nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PacketRule {
    Harm(PacketFilter, Harm),
    /// The link between a node and `peer`, or all other nodes, loses everything from `from` until
    /// `until`.
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

/// The fate of a packet on its way.
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

    /// Whether a rule may let a call fail.
    pub(crate) fn fails_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Applies the planted defect, if there is one, to a packet that leaves.
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

    /// Decides the fate of a packet that leaves.
    pub(super) fn judge(&mut self, at: Time, packet: &Packet, view: &PacketView) -> Verdict {
        let mut verdict = Verdict::Passes;
        for (rule, trigger) in &mut self.packets {
            // Every rule counts its matches, so its ordinals do not depend on other rules.
            if rule.matches(at, packet, view) && trigger.strikes(verdict == Verdict::Passes) {
                verdict = rule.verdict();
            }
        }
        verdict
    }

    /// The error that a rule makes of a call on a node.
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

    /// Removes a rule, if it is here.
    pub(crate) fn remove(&mut self, id: FaultId) {
        self.packets.retain(|(_, trigger)| trigger.id() != id);
        self.calls.retain(|(_, trigger)| trigger.id() != id);
    }
}

impl PacketRule {
    fn matches(&self, at: Time, packet: &Packet, view: &PacketView) -> bool {
        let from = packet.route.from.node;
        // A packet without a receiver is lost anyway.
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
