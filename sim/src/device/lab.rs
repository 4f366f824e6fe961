//! The test controls of a device (`Lab`).

use std::sync::Arc;

use verbs_api::{AsyncEventType, Element, Gid, Mtu, Srq as SrqHandle};

use super::check::{find, in_range, invalid};
use super::egress::Egress;
use super::ports::PORT_MTU;
use super::refusal::Result;
use super::{Device, Gids};

impl Device {
    /// Brings a port up or down, which every context is notified of (ASYNC-09, ASYNC-13).
    pub(crate) fn set_port(&mut self, port: u8, up: bool) -> Result<()> {
        self.ports.check(port)?;
        self.switch_port(port, up);
        Ok(())
    }

    /// Brings an existing port up or down.
    pub(crate) fn switch_port(&mut self, port: u8, up: bool) {
        let own = self.ports.at_mut(port);
        let was_up = std::mem::replace(&mut own.up, up);
        // A failure may be due to a port that is up again by the time it is reported.
        own.was_down |= !up;
        if was_up != up {
            let event_type = if up {
                AsyncEventType::PortActive
            } else {
                AsyncEventType::PortErr
            };
            self.base.raise(event_type, Element::Port(port));
        }
    }

    /// Sets the active MTU of a port. QPs that are connected keep theirs.
    pub(crate) fn set_mtu(&mut self, port: u8, mtu: Mtu) -> Result<()> {
        self.ports.check(port)?;
        let bytes = mtu.bytes();
        if bytes.is_none_or(|bytes| Some(bytes) > PORT_MTU.bytes()) {
            return Err(invalid("mtu", "is not one that a port can have"));
        }
        self.ports.at_mut(port).mtu = mtu;
        Ok(())
    }

    /// Puts a GID into the table of a port (ASYNC-20). Returns the new table of all GIDs of the
    /// fabric.
    pub(crate) fn set_gid(&mut self, port: u8, index: u32, gid: Gid) -> Result<Arc<Gids>> {
        let gids = self.ports.set_gid(port, index, gid)?;
        self.base
            .raise(AsyncEventType::GidChange, Element::Port(port));
        Ok(gids)
    }

    /// Adopts the new table of all GIDs of the fabric.
    pub(crate) fn adopt_gids(&mut self, gids: Arc<Gids>) {
        self.ports.gids = gids;
        // Address handles hold a route, which may lead to another port now.
        for index in self.domains.ahs.indices(|_| true) {
            let ah = self.domains.ahs.at_mut(index);
            ah.route.to = self.ports.destination(&ah.attr);
        }
    }

    /// Puts a P_Key into the table of a port (ASYNC-20). Queue pairs that refer to the entry use
    /// the new P_Key from now on.
    pub(crate) fn set_pkey(&mut self, port: u8, index: u16, pkey: u16) -> Result<()> {
        self.ports.check(port)?;
        let pkeys = &mut self.ports.at_mut(port).pkeys;
        in_range("index", index.into(), 0, pkeys.len() as i64 - 1)?;
        pkeys[usize::from(index)] = pkey;
        self.base
            .raise(AsyncEventType::PkeyChange, Element::Port(port));
        Ok(())
    }

    /// Raises an event of a port that reports a change around it.
    pub(crate) fn announce(&mut self, port: u8, kind: AsyncEventType) -> Result<()> {
        // The event is that of a port that exists.
        self.ports.check(port)?;
        match kind {
            AsyncEventType::LidChange
            | AsyncEventType::SmChange
            | AsyncEventType::ClientReregister
            | AsyncEventType::DeviceSpeedChange => {
                self.base.raise(kind, Element::Port(port));
                Ok(())
            }
            // These events follow from other calls, which also change the port.
            _ => Err(invalid("kind", "has a cause of its own")),
        }
    }

    /// Makes an SRQ fail, and raises `SRQ_ERR` (SRQ-17).
    pub(crate) fn fail_srq(&mut self, srq: SrqHandle) -> Result<()> {
        let index = find(&self.srqs, srq)?;
        if !std::mem::replace(&mut self.srqs.at_mut(index).failed, true) {
            self.base.raise(AsyncEventType::SrqErr, Element::Srq(srq));
        }
        Ok(())
    }

    /// Drops what has not left yet.
    pub(crate) fn forget_egress(&mut self) {
        self.egress = Egress::default();
    }

    /// Makes the device fail for good (ASYNC-10). Work in progress ends without completions.
    /// Returns whether it was alive.
    pub(crate) fn kill(&mut self) -> bool {
        if std::mem::replace(&mut self.base.dead, true) {
            return false;
        }
        // A dead device sends nothing more.
        self.forget_egress();
        self.flush_deferred_writes();
        for cq in self.cqs.table.indices(|_| true) {
            self.cqs.forget_moderation(cq);
        }
        // Polls must fail, and not report an empty CQ.
        self.cqs.hide_empty();
        self.base
            .raise(AsyncEventType::DeviceFatal, Element::Device);
        true
    }
}
