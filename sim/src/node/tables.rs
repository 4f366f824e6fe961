//! Changes of the GID and P_Key tables of a port, as a network makes them.

use std::sync::Arc;

use verbs_api::{AsyncEventType, Context, Gid, Result, Verb};

use super::domain::destination;
use super::{Gids, Node, in_range, invalid};
use crate::packet::PortId;

/// The bit of a P_Key that says that its owner is a full member of the partition.
const FULL_MEMBER: u16 = 1 << 15;

/// Whether packets pass between two P_Keys (IBA 10.9.3): the same partition, at least one of them a
/// full member of it. Partition 0 is none: an empty entry of a table matches nothing.
pub(super) fn pkeys_match(a: u16, b: u16) -> bool {
    let (a_partition, b_partition) = (a & !FULL_MEMBER, b & !FULL_MEMBER);
    a_partition != 0 && a_partition == b_partition && (a | b) & FULL_MEMBER != 0
}

impl Node {
    /// Puts a GID into the table of a port (ASYNC-20): where all GIDs of the fabric are then.
    pub(crate) fn set_gid(
        &mut self,
        context: Context,
        port: u8,
        index: u32,
        gid: Gid,
    ) -> Result<Arc<Gids>> {
        self.find_context(Verb::Lab, context)?;
        let table = &self.check_port(Verb::Lab, port)?.gids;
        let last = table.len() as i64 - 1;
        in_range(Verb::Lab, "index", index.into(), 0, last)?;
        let index = index as usize;
        let old = table[index];
        if gid != old && self.gids.contains_key(&gid) {
            return Err(invalid(
                Verb::Lab,
                "gid",
                "is in another entry of the fabric",
            ));
        }
        let mut gids = Gids::clone(&self.gids);
        gids.remove(&old);
        if gid != Gid::default() {
            let node = self.id;
            gids.insert(gid, PortId { node, port });
        }
        self.port_mut(port).gids[index] = gid;
        self.tell_all(port, AsyncEventType::GidChange);
        Ok(Arc::new(gids))
    }

    /// Learns where all GIDs of the fabric are now.
    pub(crate) fn adopt_gids(&mut self, gids: Arc<Gids>) {
        let subnet = self.subnet;
        for index in self.qps.indices(|_| true) {
            let qp = self.qps.at_mut(index);
            if let (Some(route), Some(attr)) = (&mut qp.route, &qp.attr.ah_attr) {
                route.to = destination(subnet, &gids, attr);
            }
        }
        for index in self.ahs.indices(|_| true) {
            let ah = self.ahs.at_mut(index);
            ah.route.to = destination(subnet, &gids, &ah.attr);
        }
        self.gids = gids;
    }

    /// Puts a P_Key into the table of a port (ASYNC-20). Queue pairs that use the entry use the new
    /// one from now on.
    pub(crate) fn set_pkey(
        &mut self,
        context: Context,
        port: u8,
        index: u16,
        pkey: u16,
    ) -> Result<()> {
        self.find_context(Verb::Lab, context)?;
        let last = self.check_port(Verb::Lab, port)?.pkeys.len() as i64 - 1;
        in_range(Verb::Lab, "index", index.into(), 0, last)?;
        self.port_mut(port).pkeys[usize::from(index)] = pkey;
        self.tell_all(port, AsyncEventType::PkeyChange);
        Ok(())
    }

    /// A port tells what happened around it.
    pub(crate) fn announce(
        &mut self,
        context: Context,
        port: u8,
        kind: AsyncEventType,
    ) -> Result<()> {
        self.find_context(Verb::Lab, context)?;
        self.check_port(Verb::Lab, port)?;
        match kind {
            AsyncEventType::LidChange
            | AsyncEventType::SmChange
            | AsyncEventType::ClientReregister
            | AsyncEventType::DeviceSpeedChange => {
                self.tell_all(port, kind);
                Ok(())
            }
            _ => Err(invalid(Verb::Lab, "kind", "has a cause of its own")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pkeys_match;

    /// TMR-15: limited members of a partition reach full ones only.
    #[test]
    fn one_of_two_is_a_full_member() {
        assert!(pkeys_match(0xffff, 0xffff));
        assert!(pkeys_match(0x8001, 0x0001));
        assert!(!pkeys_match(0x0001, 0x0001));
        assert!(!pkeys_match(0x8001, 0x8002));
        assert!(!pkeys_match(0x8000, 0x8000));
    }
}
