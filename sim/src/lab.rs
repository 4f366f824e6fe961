//! The simulator as a laboratory.

use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering};

use verbs_api::{
    AsyncEventType, Cause, Context, Error, ErrorKind, Fault, FaultId, Gid, Handle, Lab, Limit,
    Live, Mtu, Object, PacketFilter, Result, Srq, Stall, TappedPacket, TraceRecord, Verb, WcStatus,
    When,
};

use crate::node::{CompletionRule, Node};
use crate::sim::Sim;
use crate::wire::{Harm, Wire};

/// Numbers fault rules over all simulations; nothing a run decides or prints depends on them.
static NEXT_FAULT: AtomicU64 = AtomicU64::new(1);

impl Lab for Sim {
    fn now(&self) -> Duration {
        self.world.with(|fabric| fabric.now().since_start())
    }

    fn advance(&self, by: Duration) -> Result<()> {
        self.world.check_thread(Verb::Lab)?;
        if self.world.clock.is_some() {
            let cause = Cause::Text("the clock is that of the machine: it cannot be moved".into());
            return Err(Error::new(Verb::Lab, ErrorKind::NotSupported, cause));
        }
        self.world
            .with_all(|fabric| fabric.advance(fabric.now().after(by)));
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        self.world.check_thread(Verb::Lab)?;
        if self.world.settle() {
            return Ok(());
        }
        let stall = self.world.with(|fabric| Stall {
            waiting_for: "everything to settle".to_owned(),
            now: fabric.now().since_start(),
            channel: None,
            queued_events: 0,
            cqs: Vec::new(),
            timers: fabric.timers(),
        });
        Err(Error::new(
            Verb::Lab,
            ErrorKind::Stalled,
            Cause::Stall(Box::new(stall)),
        ))
    }

    fn close(&self) {
        self.world.with(|fabric| self.world.close(fabric));
    }

    fn inject(&self, fault: Fault) -> Result<FaultId> {
        check(&fault)?;
        let id = NEXT_FAULT.fetch_add(1, Ordering::Relaxed);
        match fault {
            Fault::DropPacket { packets, when } => self.harm(id, Harm::Loss, packets, when),
            Fault::CorruptPacket { packets, when } => self.harm(id, Harm::Damage, packets, when),
            Fault::DuplicatePacket { packets, when } => {
                self.harm(id, Harm::Duplication, packets, when);
            }
            Fault::FailCall { verb, when, error } => {
                self.rewire(|wire| wire.fail_calls(id, verb, error, when));
            }
            Fault::FailCompletion { qp, when, status } => {
                for node in self.nodes_of(qp.map(Handle::context))? {
                    let rule = CompletionRule::new(id, qp, status, when);
                    self.work(node, |node| node.add_completion_rule(rule));
                }
            }
            _ => {
                return Err(refused(
                    "fault",
                    "is of a kind this laboratory does not have",
                ));
            }
        }
        Ok(FaultId(id))
    }

    fn remove(&self, fault: FaultId) -> Result<u64> {
        if let Some(struck) = self.rewire(|wire| wire.remove(fault.0)) {
            return Ok(struck);
        }
        let take = |node| self.work(node, |node| node.remove_completion_rule(fault.0));
        let struck: Vec<u64> = self.nodes_of(None)?.filter_map(take).collect();
        if struck.is_empty() {
            return Err(refused("fault", "is not in force"));
        }
        Ok(struck.iter().sum())
    }

    fn tap(&self) {
        self.rewire(|wire| wire.start_tap());
    }

    fn tapped(&self) -> Vec<TappedPacket> {
        self.world.with(|fabric| fabric.tapped())
    }

    fn set_port(&self, context: Context, port: u8, up: bool) -> Result<()> {
        let node = self.world.node_of(Verb::Lab, Object::Context, context)?;
        self.work(node, |node| node.set_port(context, port, up))
    }

    fn kill_device(&self, context: Context) -> Result<()> {
        let node = self.world.node_of(Verb::Lab, Object::Context, context)?;
        self.work(node, |node| node.kill(context))?;
        // Polls of its CQs are to fail, the empty ones too.
        self.rewire(|_| ());
        Ok(())
    }

    fn set_mtu(&self, context: Context, port: u8, mtu: Mtu) -> Result<()> {
        let node = self.world.node_of(Verb::Lab, Object::Context, context)?;
        self.work(node, |node| node.set_mtu(context, port, mtu))
    }

    fn set_privileged(&self, context: Context, privileged: bool) -> Result<()> {
        let node = self.world.node_of(Verb::Lab, Object::Context, context)?;
        self.work(node, |node| node.set_privileged(context, privileged))
    }

    fn set_gid(&self, context: Context, port: u8, index: u32, gid: Gid) -> Result<()> {
        let node = self.world.node_of(Verb::Lab, Object::Context, context)?;
        self.world
            .with(|fabric| fabric.set_gid(node, context, port, index, gid))
    }

    fn set_pkey(&self, context: Context, port: u8, index: u16, pkey: u16) -> Result<()> {
        let node = self.world.node_of(Verb::Lab, Object::Context, context)?;
        self.work(node, |node| node.set_pkey(context, port, index, pkey))
    }

    fn announce(&self, context: Context, port: u8, kind: AsyncEventType) -> Result<()> {
        let node = self.world.node_of(Verb::Lab, Object::Context, context)?;
        self.work(node, |node| node.announce(context, port, kind))
    }

    fn fail_srq(&self, srq: Srq) -> Result<()> {
        let node = self.world.node_of(Verb::Lab, Object::Srq, srq.context())?;
        self.work(node, |node| node.fail_srq(srq))
    }

    fn set_limit(&self, context: Context, limit: Limit, value: Option<u64>) -> Result<()> {
        let node = self.world.node_of(Verb::Lab, Object::Context, context)?;
        self.work(node, |node| node.set_limit(context, limit, value))
    }

    fn live(&self, context: Context) -> Result<Live> {
        let node = self.world.node_of(Verb::Lab, Object::Context, context)?;
        self.world.with(|fabric| fabric.node(node).live_of(context))
    }

    fn trace(&self) -> Vec<TraceRecord> {
        self.world.with(|fabric| fabric.trace())
    }
}

impl Sim {
    fn harm(&self, id: u64, harm: Harm, packets: PacketFilter, when: When) {
        self.world
            .with(|fabric| fabric.rewire(|wire| wire.harm_packets(id, harm, packets, when)));
    }

    fn work<R>(&self, index: u32, work: impl FnOnce(&mut Node) -> R) -> R {
        self.world
            .with(|fabric| fabric.work(index, |node, _| work(node)))
    }

    fn rewire<R>(&self, change: impl FnOnce(&mut Wire) -> R) -> R {
        self.world.with(|fabric| fabric.rewire(change))
    }

    fn nodes_of(&self, context: Option<Context>) -> Result<std::ops::Range<u32>> {
        match context {
            Some(context) => {
                let node = self.world.node_of(Verb::Lab, Object::Qp, context)?;
                Ok(node..node + 1)
            }
            None => Ok(0..self.world.config.nodes),
        }
    }
}

fn refused(what: &'static str, problem: &'static str) -> Error {
    Error::new(
        Verb::Lab,
        ErrorKind::Invalid,
        Cause::Argument { what, problem },
    )
}

fn check(fault: &Fault) -> Result<()> {
    let when = match fault {
        Fault::DropPacket { when, .. }
        | Fault::CorruptPacket { when, .. }
        | Fault::DuplicatePacket { when, .. }
        | Fault::FailCall { when, .. } => when,
        Fault::FailCompletion {
            status: WcStatus::Success,
            ..
        } => {
            return Err(refused("status", "must be an error"));
        }
        Fault::FailCompletion { when, .. } => when,
        _ => return Ok(()),
    };
    match when {
        When::Nth(0) => Err(refused("when", "counts from 1")),
        When::PerMillion(rate) if *rate > 1_000_000 => {
            Err(refused("when", "is at most a million in a million"))
        }
        _ => Ok(()),
    }
}
