//! The names of `network` without the feature: no simulation is on a network.
//!
//! The types have no values, so every `Option` of one is `None`.

use core::convert::Infallible;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use verbs_api::table::Id;
use verbs_api::{AhAttr, CmId, Context, Gid, Qp, Result, Verb};

use crate::config::SimConfig;
use crate::device::Outside;
use crate::fabric::Fabric;
use crate::memory::SharedMemory;
use crate::packet::Packet;
use crate::runtime::Runtime;
use crate::sync::MutexGuard;
use crate::verbs::Sim;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Network(Infallible);

impl Network {
    pub(crate) fn has(self, _: IpAddr) -> bool {
        match self.0 {}
    }

    pub(crate) fn first(self) -> Option<Ipv4Addr> {
        match self.0 {}
    }

    pub(crate) fn is_within_machine(self) -> bool {
        match self.0 {}
    }
}

pub(crate) struct Sockets(Infallible);

impl Sockets {
    pub(crate) fn of(_: &SimConfig) -> Option<Self> {
        None
    }
}

#[derive(Debug)]
pub(crate) struct Receiver(Infallible);

impl Receiver {
    pub(crate) fn of(_: &Arc<Runtime>) -> Option<Arc<Self>> {
        None
    }
}

pub(crate) struct Gateway(Infallible);

impl Gateway {
    pub(crate) fn of(_: &SimConfig) -> Option<Box<Self>> {
        None
    }

    pub(crate) fn leave(&mut self, _: &Packet, _: &SharedMemory) {
        match self.0 {}
    }

    pub(crate) fn wants_turn(&mut self, _: u32, _: Id) {
        match self.0 {}
    }
}

impl Runtime {
    pub(crate) fn note_unread(&self) {}

    pub(crate) fn settle_doubts(&self) {}

    pub(crate) fn outside(&self, _: &AhAttr) -> Outside {
        None
    }

    #[inline(always)]
    pub(crate) fn unlock(&self, _: MutexGuard<'_, Fabric>) {}

    pub(crate) fn poll_sockets(&self) -> bool {
        false
    }

    pub(crate) fn exchange_packets(&self, _: &mut MutexGuard<'_, Fabric>, _: &mut u32) -> bool {
        false
    }
}

impl Sim {
    pub(crate) fn take_addresses(&self, _: Verb, _: u32) -> Result<()> {
        Ok(())
    }

    pub(crate) fn update_receiver(&self, _: Context, _: bool) {}

    pub(crate) fn update_managed(&self) {}

    pub(crate) fn join_group(&self, _: Qp, _: Gid, _: u16) -> Result<()> {
        Ok(())
    }

    pub(crate) fn is_of_machine(&self, _: IpAddr) -> bool {
        false
    }

    pub(crate) fn leads_to(&self, _: CmId, _: SocketAddr) -> Option<IpAddr> {
        None
    }

    pub(crate) fn follow_name(&self, _: CmId) -> bool {
        false
    }

    pub(crate) fn await_listener(&self, _: CmId) {}

    pub(crate) fn with_name(
        &self,
        _: Verb,
        _: CmId,
        _: u16,
        mut bind: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        bind()
    }

    pub(crate) fn open_names(&self, _: CmId) {}

    pub(crate) fn drop_names(&self, _: CmId) {}
}
