//! Multicast groups.
//!
//! A datagram for a group leaves as one packet for each port of the fabric, including the sender's,
//! as from a switch that does not track groups. So every port receives the packets of every group,
//! and no subnet administrator is needed. The receiving node delivers the packet to the attached
//! queue pairs of that port.

use std::collections::BTreeMap;

use verbs_api::{Capabilities, Cause, ErrorKind, Gid, Qp as QpHandle, QpType};

use super::Node;
use crate::device::{Refusal, Result, invalid};

/// The queue pairs attached to each group, in the order of attachment.
pub(crate) type Groups = BTreeMap<Gid, Vec<u32>>;

impl Node {
    /// `ibv_attach_mcast`
    pub(crate) fn attach_mcast(&mut self, qp: QpHandle, group: Gid, lid: u16) -> Result<()> {
        let index = self.find_qp(qp)?;
        let base = &self.device.base;
        base.check_has(Capabilities::MCAST, "has no multicast")?;
        if self.qps.at(index).qp_type() != QpType::Ud {
            return Err(invalid("qp", "is not of the transport UD"));
        }
        if !group.is_multicast() {
            return Err(invalid("gid", "names no multicast group"));
        }
        self.device.ports.check_group_lid(lid)?;
        let groups = &mut self.groups;
        let (what, count, limit) = match groups.get_mut(&group) {
            // Attaching twice has no further effect.
            Some(members) if members.contains(&index) => return Ok(()),
            Some(members) => {
                let limit = base.attr.max_mcast_qp_attach;
                ("queue pairs of one group", members.len(), limit)
            }
            None => ("multicast groups", groups.len(), base.attr.max_mcast_grp),
        };
        if count >= limit as usize {
            let limit = limit.into();
            let cause = Cause::Limit { what, limit };
            return Err(Refusal::new(ErrorKind::NoMemory, cause));
        }
        groups.entry(group).or_default().push(index);
        Ok(())
    }

    /// `ibv_detach_mcast`
    pub(crate) fn detach_mcast(&mut self, qp: QpHandle, group: Gid, lid: u16) -> Result<()> {
        let index = self.find_qp(qp)?;
        self.device.ports.check_group_lid(lid)?;
        let members = self.groups.get(&group);
        if !members.is_some_and(|members| members.contains(&index)) {
            return Err(invalid("qp", "is not attached to the group"));
        }
        self.leave_groups(index, |of| *of == group);
        Ok(())
    }

    /// Refuses to destroy a QP that is attached to a group (QP-DESTROY-02).
    pub(super) fn check_detached(&self, index: u32) -> Result<()> {
        let mut groups = self.groups.iter();
        let Some((group, _)) = groups.find(|(_, members)| members.contains(&index)) else {
            return Ok(());
        };
        let qp = self.qps.at(index).common.handle;
        let text = format!("{qp} is attached to the group {group}");
        Err(Refusal::new(ErrorKind::Busy, Cause::Text(text.into())))
    }

    /// Removes a queue pair from the groups that `from` selects.
    pub(super) fn leave_groups(&mut self, index: u32, from: impl Fn(&Gid) -> bool) {
        self.groups.retain(|group, members| {
            if from(group) {
                members.retain(|member| *member != index);
            }
            // An empty group gives its place in the limit to another one.
            !members.is_empty()
        });
    }
}
