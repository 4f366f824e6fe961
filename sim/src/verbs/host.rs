//! Hosts: a simulation as the program on one machine sees it.

use verbs_api::{Cause, Error, ErrorKind, Result, Verb};

use super::sim::Sim;

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
        if self.runtime.config.network.is_some() {
            let cause = Cause::Text("on a network each process is a host".into());
            return Err(Error::new(Verb::Lab, ErrorKind::NotSupported, cause));
        }
        let (timers, receiver) = (self.timers.clone(), self.receiver.clone());
        Ok(Self::view(
            self.runtime.clone(),
            timers,
            receiver,
            Some(node),
        ))
    }
}
