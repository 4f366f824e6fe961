//! Hosts: a simulation as the program on one machine sees it.

use verbs_api::{Cause, Error, ErrorKind, Result, Verb};

use super::lab::new_fault;
use super::sim::Sim;
use crate::device::Answer;

impl Sim {
    /// The same simulation, as a program on the machine of one node sees it.
    ///
    /// [`devices`](verbs_api::Verbs::devices) and [`open_device`](verbs_api::Verbs::open_device)
    /// have the device of the node only. Ids of rdma_cm that it creates, and those of their
    /// requests, have the addresses of the node only, as on separate machines: the address of
    /// another node is not local, so a client without a source address starts from its own device,
    /// and two hosts may listen at the same port. Test controls are those of the whole simulation,
    /// and so is every handle: a call with a handle of another host is not refused.
    ///
    /// [`Lab::crash`](verbs_api::lab::Lab::crash) and [`Lab::restart`](verbs_api::lab::Lab::restart) take the power of the machine away and give it back.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] if there is no such node, counted from 0;
    /// [`ErrorKind::NotSupported`] on a network, where each process is a machine already.
    ///
    /// ```
    /// use verbs_api::Verbs;
    /// use verbs_sim::{Sim, SimConfig};
    ///
    /// let sim = Sim::new(SimConfig::new());
    /// let host = sim.host(1)?;
    /// assert_eq!(host.devices()?.len(), 1);
    /// assert!(host.open_device("sim0").is_err());
    /// # Ok::<(), verbs_api::Error>(())
    /// ```
    pub fn host(&self, node: u32) -> Result<Self> {
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
