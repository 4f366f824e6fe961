//! Hosts: a simulation as the program on one machine sees it.

use verbs_api::{Cause, Error, ErrorKind, Result, Verb};

use super::lab::new_fault;
use super::sim::Sim;
use crate::device::Answer;

impl Sim {
    pub(super) fn host_of(&self, node: u32) -> Result<Self> {
        self.check_node("node", Some(node))?;
        self.check_hosts()?;
        let (timers, receiver) = (self.timers.clone(), self.receiver.clone());
        Ok(Self::view(
            self.runtime.clone(),
            timers,
            receiver,
            Some(node),
        ))
    }

    fn check_hosts(&self) -> Result<()> {
        if self.runtime.config.network.is_some() {
            let cause = Cause::Text("on a network each process is a host".into());
            return Err(Error::new(Verb::Lab, ErrorKind::NotSupported, cause));
        }
        Ok(())
    }

    /// Refuses a call on a host that has crashed.
    pub(super) fn check_power(&self, verb: Verb) -> Result<()> {
        let Some(node) = self.home else { return Ok(()) };
        self.check_power_of(node, verb)
    }

    pub(super) fn check_power_of(&self, node: u32, verb: Verb) -> Result<()> {
        if self.runtime.with(|fabric| fabric.has_power(node)) {
            return Ok(());
        }
        let cause = Cause::Text(format!("the host of sim{node} has crashed").into());
        Err(Error::new(verb, ErrorKind::NoDevice, cause))
    }

    pub(super) fn crash_host(&self, node: u32) -> Result<()> {
        self.check_node("node", Some(node))?;
        self.check_hosts()?;
        let cut = new_fault();
        let crashed = self.runtime.with(|fabric| fabric.crash(node, cut));
        crashed.by(Verb::Lab)
    }

    pub(super) fn restart_host(&self, node: u32) -> Result<()> {
        self.check_node("node", Some(node))?;
        let restarted = self.runtime.with(|fabric| fabric.restart(node));
        restarted.by(Verb::Lab)
    }
}
