//! Fault rules for packets and calls.

use std::collections::{BTreeMap, BTreeSet};

use verbs_api::lab::{Effect, Fault, FaultId, PacketView};
use verbs_api::{Cause, Verb};

use super::shaping::Shaping;
use crate::config::SimConfig;
use crate::device::{Refusal, Result};
use crate::packet::{DropReason, Packet};
use crate::time::Time;
use crate::trigger::{Trigger, Triggers};

/// Rules in force, in the order in which they were added. The first that fires decides.
pub(crate) struct Rules {
    /// Rules for packets and links.
    packets: Vec<(Fault, Trigger)>,
    pub(super) calls: Vec<(Fault, Trigger)>,
    planted: Option<Planted>,
    pub(super) shaping: Shaping,
    /// The nodes whose hosts have crashed, with the rules that cut them off.
    pub(super) crashed: BTreeMap<u32, FaultId>,
    pub(crate) triggers: Triggers,
}

/// The packets with immediate data that have left: node, queue pair and sequence number of each.
/// For [`SimConfig::planted_defect`](crate::SimConfig::planted_defect).
type Planted = BTreeSet<(u32, u32, u32)>;

/// The fate of a packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passes,
    Lost(DropReason),
    /// By a rule, with the random number that its effect needs.
    Affected(Effect, FaultId, u64),
}

impl Rules {
    pub(super) fn new(config: &SimConfig) -> Self {
        Self {
            packets: Vec::new(),
            calls: Vec::new(),
            shaping: Shaping::new(config),
            crashed: BTreeMap::new(),
            planted: config.planted_defect.then(Planted::new),
            triggers: Triggers::new(config.seed, config.firings),
        }
    }

    /// Whether a rule sees single packets.
    pub(crate) fn see_packets(&self) -> bool {
        !self.packets.is_empty() || self.planted.is_some() || self.shaping.is_of_links()
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
        for (rule, trigger) in &self.packets {
            // Every rule counts its matches, so its ordinals do not depend on other rules.
            if matches(rule, at, packet, view) && trigger.fires(verdict == Verdict::Passes) {
                verdict = match rule {
                    Fault::Packet {
                        effect: Effect::Drop,
                        ..
                    } => Verdict::Lost(DropReason::FaultRule),
                    Fault::Packet { effect, .. } => {
                        // No other effect has a choice.
                        let random = match effect {
                            Effect::Shape(_) => trigger.draw(),
                            _ => 0,
                        };
                        Verdict::Affected(*effect, trigger.id, random)
                    }
                    _ => Verdict::Lost(DropReason::LinkDown),
                };
            }
        }
        verdict
    }

    /// Returns the error that a rule makes of a call on a node, if any.
    #[cold]
    pub(super) fn fail(&mut self, node: u32, verb: Verb) -> Result<()> {
        let mut result = Ok(());
        for (rule, trigger) in &self.calls {
            if let Fault::Call {
                node: of,
                verb: of_verb,
                error,
                ..
            } = rule
                && *of_verb == verb
                && of.is_none_or(|of| of == node)
                && trigger.fires(result.is_ok())
            {
                result = Err(Refusal::new(*error, Cause::Injected));
            }
        }
        result
    }

    /// Adds a rule for packets, a link or calls.
    pub(crate) fn add(&mut self, fault: Fault, trigger: Trigger) {
        let rules = match fault {
            Fault::Call { .. } => &mut self.calls,
            _ => &mut self.packets,
        };
        rules.push((fault, trigger));
    }

    /// Removes a rule, if it is here.
    pub(crate) fn remove(&mut self, id: FaultId) {
        for rules in [&mut self.packets, &mut self.calls] {
            rules.retain(|(_, trigger)| trigger.id != id);
        }
        self.triggers.remove(id);
    }
}

/// Whether a rule for packets or a link concerns a packet.
fn matches(rule: &Fault, at: Time, packet: &Packet, view: &PacketView) -> bool {
    let from = packet.route.from.node;
    // A packet without a receiver is lost anyway.
    let Some(to) = packet.route.to.map(|to| to.node) else {
        return false;
    };
    match rule {
        Fault::Packet { packets, .. } => {
            packets.from.is_none_or(|node| node == from)
                && packets.to.is_none_or(|node| node == to)
                && packets.src_qpn.is_none_or(|qpn| qpn == packet.src_qpn)
                && packets.dest_qpn.is_none_or(|qpn| qpn == packet.dest_qpn)
                && packets.opcode.is_none_or(|opcode| opcode == view.opcode)
                && packets.class.is_none_or(|class| class.has(view.opcode))
                && packets.psn.is_none_or(|psn| psn == view.psn)
                && packets.cm.is_none_or(|message| view.cm == Some(message))
        }
        Fault::Link {
            node,
            peer,
            down_at,
            up_at,
            ..
        } => {
            let other = match *node {
                node if node == from => to,
                node if node == to => from,
                _ => return false,
            };
            // A node reaches itself without a link.
            let between = from != to && peer.is_none_or(|peer| peer == other);
            let at = at.since_start();
            between && *down_at <= at && up_at.is_none_or(|up_at| at < up_at)
        }
        _ => false,
    }
}
