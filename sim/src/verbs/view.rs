//! Views of a simulation: all of it, or what the program on one host sees; observed or not.

use core::ops::Range;
use std::sync::Arc;

use verbs_api::{Cause, Error, ErrorKind, Result, Verb};

use super::sim::Sim;
use crate::config::SimConfig;
use crate::hosts::HostNodes;
use crate::network::Receiver;
use crate::runtime::Runtime;
use crate::runtime::timer_thread::TimerThread;

impl Sim {
    /// Starts a simulation.
    ///
    /// It takes nothing from the system but memory. What else it needs, such as a thread in
    /// [`Mode::RealTime`](crate::Mode::RealTime),
    /// [`open_device`](verbs_api::Verbs::open_device) takes, and fails without it.
    pub fn new(mut config: SimConfig) -> Self {
        config.hosts.check_names();
        config.nodes = config.hosts.nodes().unwrap_or(config.nodes);
        let runtime = Arc::new(Runtime::new(config));
        let timers = TimerThread::of(&runtime);
        let receiver = Receiver::of(&runtime);
        Self::view(runtime, timers, receiver, None)
    }

    /// A simulation as the program on one host sees it, or all of it.
    pub(super) fn view(
        runtime: Arc<Runtime>,
        timers: Option<Arc<TimerThread>>,
        receiver: Option<Arc<Receiver>>,
        home: Option<HostNodes>,
    ) -> Self {
        // Layers over the verbs make calls that the program did not make.
        let unobserved = Self {
            strict: None,
            runtime: runtime.clone(),
            unobserved: None,
            home,
            timers: timers.clone(),
            receiver: receiver.clone(),
        };
        Self {
            strict: None,
            runtime,
            timers,
            receiver,
            home,
            unobserved: Some(Box::new(unobserved)),
        }
    }

    /// The same simulation, unobserved by fault rules and the trace: see
    /// [`Lab::unobserved`](verbs_api::lab::Lab::unobserved).
    pub fn unobserved(&self) -> &Self {
        self.unobserved.as_deref().unwrap_or(self)
    }

    /// Refuses a call on the host of a node that has crashed.
    #[cfg_attr(any(), mutants::skip)] // controls of tests
    pub(super) fn check_power(&self, verb: Verb, node: u32) -> Result<()> {
        if self.runtime.with(|fabric| fabric.has_power(node)) {
            return Ok(());
        }
        let cause = Cause::Text(format!("the host of sim{node} has crashed").into());
        Err(Error::new(verb, ErrorKind::NoDevice, cause))
    }

    /// The numbers of the nodes that this view has.
    pub(super) fn nodes(&self) -> Range<u32> {
        match self.home {
            Some(host) => host.range(),
            None => 0..self.runtime.config.nodes,
        }
    }

    pub(crate) fn is_observed(&self) -> bool {
        self.unobserved.is_some()
    }
}
