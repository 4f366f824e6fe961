//! The test controls of the simulator.

use core::time::Duration;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use verbs_api::lab::{
    Fault, FaultId, Firing, Lab, Limit, Live, Stall, TappedPacket, TaskWait, TraceRecord,
};
use verbs_api::{
    AsyncEventType, Cause, Context, Error, ErrorKind, Gid, Handle, Mr, Mtu, Result, Srq, Verb,
    Verbs,
};

use super::sim::Sim;
use crate::config::Mode;
use crate::device::{Answer, Refusal, Refused, in_range, invalid};
use crate::fabric::Fabric;
use crate::hosts::{HostNodes, Lost};
use crate::node::Node;
use crate::sync::Mutex;
use crate::time::Time;

/// Numbers the fault rules of all simulations. No decision and no output of a run depends on it.
static NEXT_FAULT: AtomicU64 = AtomicU64::new(1);

fn new_fault() -> FaultId {
    FaultId(NEXT_FAULT.fetch_add(1, Ordering::Relaxed))
}

impl Lab for Sim {
    fn now(&self) -> Duration {
        self.runtime.with(|fabric| fabric.now().since_start())
    }

    fn advance(&self, by: Duration) -> Result<()> {
        self.move_clock(|fabric| fabric.advance(fabric.now().after(by)))
    }

    fn step(&self, limit: Duration) -> Result<bool> {
        self.move_clock(|fabric| fabric.step(fabric.now().after(limit)))
    }

    fn next_due(&self) -> Option<Duration> {
        let due = self.runtime.with(|fabric| fabric.next_step_at());
        due.map(Time::since_start)
    }

    fn activity(&self) -> u64 {
        self.runtime.with(|fabric| fabric.activity)
    }

    fn is_idle(&self) -> bool {
        self.runtime.with(|fabric| fabric.next_work().is_none())
    }

    fn settle(&self) -> Result<()> {
        self.runtime.check_thread(Verb::Lab)?;
        if self.runtime.settle() {
            return Ok(());
        }
        let mut stall = Stall::default();
        stall.waiting_for = "everything to settle".to_owned();
        (stall.now, stall.timers) = self
            .runtime
            .with(|fabric| (fabric.now().since_start(), fabric.timers()));
        let cause = Cause::Stall(Box::new(stall));
        Err(Error::new(Verb::Lab, ErrorKind::Stalled, cause))
    }

    fn hold_clock(&self, held: bool) -> Result<()> {
        self.runtime.check_thread(Verb::Lab)?;
        if self.runtime.config.mode != Mode::Stepped {
            let text =
                "only in Mode::Stepped, the default, can tasks have the clock for themselves";
            let cause = Cause::Text(text.into());
            return Err(Error::new(Verb::Lab, ErrorKind::NotSupported, cause));
        }
        self.runtime.with(|fabric| {
            if held && fabric.is_held {
                let text =
                    "the clock of this simulation is held already, by an executor or by drive";
                return Err(Refusal::usage(text.to_owned()).by(Verb::Lab));
            }
            fabric.is_held = held;
            Ok(())
        })
    }

    fn horizon(&self) -> Duration {
        self.runtime.config.horizon
    }

    fn stalled_tasks(&self) -> Vec<TaskWait> {
        self.runtime.with(|fabric| {
            let waits = fabric.waiting_tasks().into_iter();
            let stalled = waits.map(|(waker, waiting)| {
                fabric.note_endless(&waiting);
                TaskWait::new(self.runtime.report(fabric, &waiting), waker)
            });
            stalled.collect()
        })
    }

    fn close(&self) {
        self.runtime.with(|fabric| self.runtime.close(fabric));
    }

    fn inject(&self, fault: Fault) -> Result<FaultId> {
        fault.check()?;
        match fault {
            Fault::Packet { packets, .. } => {
                self.check_node("from", packets.from)?;
                self.check_node("to", packets.to)?;
            }
            Fault::Link { node, peer, .. } => {
                self.check_node("node", Some(node))?;
                self.check_node("peer", peer)?;
            }
            Fault::Port { node, port, .. } => {
                self.check_node("node", Some(node))?;
                let last = self.runtime.config.ports.into();
                in_range("port", port.into(), 1, last).by(Verb::Lab)?;
            }
            Fault::Call { node, .. }
            | Fault::Completion { node, .. }
            | Fault::Limit { node, .. } => self.check_node("node", node)?,
            _ => {
                let problem = "is of a kind that the simulator does not have";
                return Err(invalid("fault", problem).by(Verb::Lab));
            }
        }
        let id = new_fault();
        self.runtime.with(|fabric| fabric.add_rule(id, fault));
        Ok(id)
    }

    fn remove(&self, fault: FaultId) -> Result<u64> {
        // The count goes with the rule.
        let fired = self.fired(fault)?;
        self.runtime.with(|fabric| fabric.remove_rule(fault));
        Ok(fired)
    }

    fn fired(&self, fault: FaultId) -> Result<u64> {
        let fired = self.runtime.with(|fabric| fabric.fired(fault));
        fired.ok_or_else(|| invalid("fault", "is not in force").by(Verb::Lab))
    }

    fn firings(&self) -> Vec<Firing> {
        self.runtime.with(|fabric| fabric.rules.triggers.firings())
    }

    fn unobserved(&self) -> &dyn Verbs {
        self.unobserved()
    }

    fn node(&self, context: Context) -> Result<u32> {
        self.lab_node(context)
    }

    fn tap(&self) {
        self.runtime.with(|fabric| fabric.start_tap());
    }

    fn tapped(&self) -> Vec<TappedPacket> {
        self.runtime.with(|fabric| fabric.recorder.tapped())
    }

    fn set_port(&self, context: Context, port: u8, up: bool) -> Result<()> {
        self.work(context, |node| node.device.set_port(port, up))
    }

    fn host(&self, name: &str) -> Result<Arc<dyn Verbs>> {
        let host = self.find_host(name)?;
        let (timers, receiver) = (self.timers.clone(), self.receiver.clone());
        let host = Self::view(self.runtime.clone(), timers, receiver, Some(host));
        Ok(Arc::new(host))
    }

    fn nodes_of(&self, host: &str) -> Result<Range<u32>> {
        Ok(self.find_host(host)?.range())
    }

    fn crash(&self, host: &str) -> Result<()> {
        let host = self.find_host(host)?;
        let crashed = self.runtime.with(|fabric| {
            let contexts = host
                .range()
                .map(|node| fabric.node(node).device.base.contexts());
            let contexts: Vec<_> = contexts.flatten().collect();
            fabric.crash(host, new_fault)?;
            let lost = self
                .runtime
                .lost
                .get_or_init(|| Mutex::new(Lost::default()));
            let mut lost = lost.lock();
            contexts.into_iter().for_each(|context| lost.add(context));
            Ok::<_, Refusal>(())
        });
        crashed.by(Verb::Lab)
    }

    fn restart(&self, host: &str) -> Result<()> {
        let host = self.find_host(host)?;
        let restarted = self.runtime.with(|fabric| fabric.restart(host));
        restarted.by(Verb::Lab)
    }

    fn kill_device(&self, context: Context) -> Result<()> {
        self.on_node(context, |fabric, node| {
            fabric.work(node, Node::kill);
            fabric.manage(|manager, _| manager.device_gone(node));
            Ok(())
        })
    }

    fn set_mtu(&self, context: Context, port: u8, mtu: Mtu) -> Result<()> {
        self.work(context, |node| node.device.set_mtu(port, mtu))
    }

    fn set_privileged(&self, context: Context, privileged: bool) -> Result<()> {
        self.work(context, |node| {
            node.device.base.privileged = privileged;
            Ok(())
        })
    }

    fn set_gid(&self, context: Context, port: u8, index: u32, gid: Gid) -> Result<()> {
        self.on_node(context, |fabric, node| {
            let gids = fabric.work(node, |node| node.device.set_gid(port, index, gid))?;
            // All nodes need to know where the GID is.
            fabric.adopt_gids(&gids);
            Ok(())
        })
    }

    fn set_pkey(&self, context: Context, port: u8, index: u16, pkey: u16) -> Result<()> {
        self.work(context, |node| {
            node.device.set_pkey(port, index, pkey)?;
            node.note_pkeys_changed(port);
            Ok(())
        })
    }

    fn announce(&self, context: Context, port: u8, kind: AsyncEventType) -> Result<()> {
        self.work(context, |node| node.device.announce(port, kind))
    }

    fn fail_srq(&self, srq: Srq) -> Result<()> {
        self.work(srq, |node| node.device.fail_srq(srq))
    }

    fn revoke_dmabuf(&self, mr: Mr) -> Result<()> {
        self.work(mr, |node| node.device.revoke_dmabuf(mr))
    }

    fn set_limit(&self, context: Context, limit: Limit, value: Option<u64>) -> Result<()> {
        self.work(context, |node| {
            node.device.base.rules.set_limit(limit, value);
            Ok(())
        })
    }

    fn live(&self, context: Context) -> Result<Live> {
        self.on_node(context, |fabric, node| Ok(fabric.node(node).device.live()))
    }

    fn trace(&self) -> Vec<TraceRecord> {
        let trace = self.runtime.with(|fabric| fabric.recorder.trace.clone());
        trace.unwrap_or_default()
    }
}

/// The largest number of hosts that an error names.
const NAMES: usize = 8;

impl Sim {
    /// Runs a test control that moves the clock.
    fn move_clock<R>(&self, run: impl FnOnce(&mut Fabric) -> R) -> Result<R> {
        self.runtime.check_thread(Verb::Lab)?;
        if self.runtime.clock.is_some() {
            let cause = Cause::Text("the clock is that of the machine: it cannot be moved".into());
            return Err(Error::new(Verb::Lab, ErrorKind::NotSupported, cause));
        }
        Ok(self.runtime.with_all(run))
    }

    /// The number of records in the trace so far.
    pub fn trace_len(&self) -> usize {
        self.runtime.with(|fabric| fabric.recorder.trace_len())
    }

    fn find_host(&self, name: &str) -> Result<HostNodes> {
        let config = &self.runtime.config;
        if config.network.is_some() {
            let cause = Cause::Text("on a network each process is a host".into());
            return Err(Error::new(Verb::Lab, ErrorKind::NotSupported, cause));
        }
        config.hosts.find(name, config.nodes).ok_or_else(|| {
            let names = config.hosts.all(config.nodes).map(|(name, _)| name);
            let mut names: Vec<_> = names.take(NAMES + 1).collect();
            if names.len() > NAMES {
                names[NAMES] = "others".to_owned();
            }
            let text = format!("host {name} does not exist; there are {}", names.join(", "));
            Error::new(Verb::Lab, ErrorKind::Invalid, Cause::Text(text.into()))
        })
    }

    fn check_node(&self, what: &'static str, node: Option<u32>) -> Result<()> {
        let last = self.runtime.config.nodes - 1;
        in_range(what, node.unwrap_or(0).into(), 0, last.into()).by(Verb::Lab)
    }

    fn lab_node<H: Handle>(&self, handle: H) -> Result<u32> {
        let context = handle.context();
        self.runtime.node_of(Verb::Lab, H::OBJECT, context)
    }

    /// Runs a test control on the node of a handle.
    fn on_node<R>(
        &self,
        handle: impl Handle,
        run: impl FnOnce(&mut Fabric, u32) -> Result<R, Refusal>,
    ) -> Result<R> {
        let node = self.lab_node(handle)?;
        let done = self.runtime.with(|fabric| {
            fabric.node(node).device.base.check_context(handle)?;
            run(fabric, node)
        });
        done.by(Verb::Lab)
    }

    fn work(
        &self,
        handle: impl Handle,
        work: impl FnOnce(&mut Node) -> Result<(), Refusal>,
    ) -> Result<()> {
        self.on_node(handle, |fabric, node| fabric.work(node, work))
    }
}
