//! Multicast groups.
//!
//! A datagram for a group leaves as one packet for each port of the fabric, its own among them, as a
//! switch makes them that knows of no groups; every port is told of every group, and no subnet
//! administrator has to be asked. The node that gets one gives it to the queue pairs on that port
//! that are attached.

use std::collections::{BTreeMap, BTreeSet};

use verbs_api::lab::TraceEvent;
use verbs_api::{
    Capabilities, Cause, Error, ErrorKind, Gid, MULTICAST_QPN, Qp as QpHandle, QpType, Result, Verb,
};

use super::{Node, invalid};
use crate::packet::{Packet, PortId};
use crate::time::Time;

/// The queue pairs that are attached to each group, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups(BTreeMap<Gid, Vec<u32>>);

impl Node {
    /// `ibv_attach_mcast`
    pub fn attach_mcast(&mut self, qp: QpHandle, group: Gid) -> Result<()> {
        let verb = Verb::AttachMcast;
        let index = self.find_qp(verb, qp)?;
        self.check_has(verb, Capabilities::MCAST, "has no multicast")?;
        if self.qps.at(index).init.qp_type != QpType::Ud {
            return Err(invalid(verb, "qp", "is not of the transport UD"));
        }
        if !group.is_multicast() {
            return Err(invalid(verb, "gid", "names no multicast group"));
        }
        let groups = &mut self.groups.0;
        let (what, count, limit) = match groups.get_mut(&group) {
            Some(members) if members.contains(&index) => return Ok(()),
            Some(members) => (
                "queue pairs of one group",
                members.len(),
                self.attr.max_mcast_qp_attach,
            ),
            None => ("multicast groups", groups.len(), self.attr.max_mcast_grp),
        };
        if count >= limit as usize {
            let limit = limit.into();
            let cause = Cause::Limit { what, limit };
            return Err(Error::new(verb, ErrorKind::NoMemory, cause));
        }
        groups.entry(group).or_default().push(index);
        Ok(())
    }

    /// `ibv_detach_mcast`
    pub fn detach_mcast(&mut self, qp: QpHandle, group: Gid) -> Result<()> {
        let verb = Verb::DetachMcast;
        let index = self.find_qp(verb, qp)?;
        let members = self.groups.0.get(&group);
        if !members.is_some_and(|members| members.contains(&index)) {
            return Err(invalid(verb, "qp", "is not attached to the group"));
        }
        self.groups.remove(index, |of| *of == group);
        Ok(())
    }

    /// A QP that is attached to a group cannot be destroyed (QP-DESTROY-02).
    pub(super) fn check_detached(&self, verb: Verb, index: u32) -> Result<()> {
        let mut groups = self.groups.0.iter();
        let Some((group, _)) = groups.find(|(_, members)| members.contains(&index)) else {
            return Ok(());
        };
        let qp = self.qps.at(index).handle;
        let text = format!("{qp} is attached to the group {group}");
        Err(Error::new(verb, ErrorKind::Busy, Cause::Text(text.into())))
    }

    pub(super) fn leave_groups(&mut self, index: u32) {
        self.groups.remove(index, |_| true);
    }

    /// Hands the newest packet, which is for a group, to the fabric: one for each port there.
    pub(super) fn sent_to_group(&mut self, up: bool) {
        let Some(packet) = self.outbox.pop_back().cloned() else {
            return;
        };
        let ports: BTreeSet<PortId> = self.gids.values().copied().collect();
        for port in ports {
            let mut copy = packet.clone();
            copy.route.to = Some(port);
            *self.outbox.push() = copy;
            self.sent(up);
        }
    }

    /// A packet came for a group (MCAST-04, MCAST-09): each member takes it or not, whatever
    /// becomes of it at the others (MCAST-07).
    pub(super) fn accept_for_group(
        &mut self,
        now: Time,
        to: PortId,
        packet: &Packet,
    ) -> Result<(), &'static str> {
        if packet.dest_qpn != MULTICAST_QPN {
            return Err("a group has another QP number");
        }
        let members = self.groups.0.get(&packet.route.dgid);
        let members = members.cloned().ok_or("no qp is attached to the group")?;
        for index in members {
            if let Err(why) = self.accept_for(now, to, index, packet) {
                self.note(TraceEvent::Dropped { why });
            }
        }
        Ok(())
    }
}

impl Groups {
    /// Takes a QP out of the groups that are asked for.
    fn remove(&mut self, index: u32, from: impl Fn(&Gid) -> bool) {
        self.0.retain(|group, members| {
            if from(group) {
                members.retain(|member| *member != index);
            }
            !members.is_empty()
        });
    }
}
