//! rdma_cm: calls on the connection manager, and the work of librdmacm on queue pairs.

mod library;

use core::net::SocketAddr;
use core::time::Duration;
use std::fmt::Display;
#[cfg(feature = "fd")]
use std::os::fd::OwnedFd;

use verbs_api::cm::{
    Cm, CmChannel, CmEvent, CmEventType, CmId, CmIdAttr, CmOption, ConnParam, PortSpace,
};
use verbs_api::lab::TraceEvent;
use verbs_api::{
    AsyncEventType, Context, Error, Pd, Qp, QpAttr, QpAttrMask, QpInit, QpState, Result, Verb, Wait,
};

use super::sim::Sim;
use super::trace_args::{self, TraceArgs};
use crate::cm::{Destination, Host, Manager};
#[cfg(feature = "fd")]
use crate::descriptor::Descriptor;
use crate::device::Answer;
use crate::fabric::WaitFor;
use library::Library;

impl Sim {
    /// Gives an id a queue pair, or removes the one that it has. A C program does this when it
    /// writes the field `qp` of its `struct rdma_cm_id`. The queue pair may belong to another id,
    /// or be made by [`create_qp`](verbs_api::Verbs::create_qp). From then on `rdma_accept`,
    /// `rdma_connect`, `rdma_disconnect` and `rdma_destroy_qp` use it (CM-84).
    ///
    /// # Errors
    /// Those of any verb for a handle of an id or a queue pair that does not exist.
    #[track_caller]
    pub fn set_cm_qp(&self, id: CmId, qp: Option<Qp>) -> Result<()> {
        let verb = Verb::CmCreateQp;
        self.runtime.check_thread(verb)?;
        Library(self).set_qp(verb, id, qp)
    }

    /// Runs a call on the connection manager.
    #[track_caller]
    fn managed<R: TraceArgs>(
        &self,
        verb: Verb,
        id: Option<CmId>,
        args: impl FnOnce() -> String,
        work: impl FnOnce(&mut Manager, &dyn Host) -> Result<R>,
    ) -> Result<R> {
        self.runtime.check_thread(verb)?;
        let result = self.runtime.with(|fabric| {
            let node = fabric.node_of_id(id);
            self.traced(fabric, node, verb, args, |fabric| {
                self.check_faults(fabric, node, verb).by(verb)?;
                fabric.manage(work)
            })
        });
        // The call may have opened or closed a port for other processes.
        self.update_managed();
        result
    }

    /// Runs a call that changes nothing, or a part of another call.
    #[track_caller]
    pub(crate) fn look_at<R>(&self, work: impl FnOnce(&mut Manager, &dyn Host) -> R) -> R {
        self.runtime.with(|fabric| fabric.manage(work))
    }

    /// Runs a call of several steps, as librdmacm does. The trace shows one call.
    #[track_caller]
    fn in_steps<R: TraceArgs>(
        &self,
        verb: Verb,
        id: CmId,
        arguments: impl FnOnce() -> String,
        run: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        self.runtime.check_thread(verb)?;
        let (node, struck) = self.runtime.with(|fabric| {
            let node = fabric.node_of_id(Some(id));
            if self.is_traced(fabric) {
                fabric.record_call(node, verb, arguments);
            }
            (node, self.check_faults(fabric, node, verb))
        });
        // The steps take the lock themselves, so it is not held here.
        let result = struck.by(verb).and_then(|()| run());
        let result = result.or_else(|error: Error| {
            self.runtime
                .with(|fabric| self.answer(fabric, node, verb, Err(error)))
        });
        let value = match &result {
            Ok(value) => value.args(),
            Err(error) => error.to_string(),
        };
        if !value.is_empty() {
            self.runtime.with(|fabric| {
                if self.is_traced(fabric) {
                    fabric.record(node, TraceEvent::Return { value });
                }
            });
        }
        result
    }

    /// Runs a call that may wait.
    #[track_caller]
    fn wait_managed<R: TraceArgs>(
        &self,
        verb: Verb,
        id: Option<CmId>,
        wait: Wait,
        wait_for: WaitFor,
        args: impl FnOnce() -> String,
        mut attempt: impl FnMut(&mut Manager) -> Result<R>,
    ) -> Result<R> {
        self.runtime.check_thread(verb)?;
        self.runtime.with(|fabric| {
            let node = fabric.node_of_id(id);
            self.traced(fabric, node, verb, args, |fabric| {
                self.check_faults(fabric, node, verb).by(verb)?;
                let place = self.runtime.config.nodes;
                self.runtime
                    .wait_for(fabric, place, verb, wait, wait_for, |fabric| {
                        fabric.manage(|manager, _| attempt(manager))
                    })
            })
        })
    }
}

fn with_address(id: CmId, addr: impl Display) -> String {
    format!("{id}, {addr}")
}

impl Cm for Sim {
    #[track_caller]
    fn cm_devices(&self) -> Result<Vec<Context>> {
        let contexts = Library(self).contexts(Verb::CmGetDevices)?;
        Ok(contexts.into_iter().map(|(context, _)| context).collect())
    }

    #[track_caller]
    fn create_event_channel(&self) -> Result<CmChannel> {
        let verb = Verb::CmCreateEventChannel;
        // librdmacm opens the devices before its first channel.
        Library(self).contexts(verb)?;
        self.managed(verb, None, String::new, |manager, _| {
            Ok(manager.channels.create())
        })
    }

    #[track_caller]
    fn destroy_event_channel(&self, channel: CmChannel) -> Result<()> {
        let args = || channel.to_string();
        self.managed(Verb::CmDestroyEventChannel, None, args, |manager, _| {
            manager.channels.destroy(channel)
        })
    }

    #[track_caller]
    fn create_id(&self, channel: CmChannel, context: u64, ps: PortSpace) -> Result<CmId> {
        let args = || format!("{channel}, {ps}");
        self.managed(Verb::CmCreateId, None, args, |manager, _| {
            manager.create_id(channel, context, ps)
        })
    }

    #[track_caller]
    fn query_id(&self, id: CmId) -> Result<CmIdAttr> {
        self.runtime.check_thread(Verb::CmQueryId)?;
        self.look_at(|manager, _| manager.query_id(id))
    }

    #[track_caller]
    fn destroy_id(&self, id: CmId, wait: Wait) -> Result<()> {
        let args = || format!("{id}, {wait:?}");
        let (verb, wait_for) = (Verb::CmDestroyId, WaitFor::CmAcknowledgement(id));
        let destroyed = self.wait_managed(verb, Some(id), wait, wait_for, args, |manager| {
            manager.destroy_id(id)
        });
        if destroyed.is_ok() {
            self.drop_names(id);
            self.update_managed();
        }
        destroyed
    }

    #[track_caller]
    fn migrate_id(&self, id: CmId, channel: CmChannel, wait: Wait) -> Result<()> {
        let args = || format!("{id}, {channel}, {wait:?}");
        let (verb, wait_for) = (Verb::CmMigrateId, WaitFor::CmAcknowledgement(id));
        self.wait_managed(verb, Some(id), wait, wait_for, args, |manager| {
            manager.migrate_id(id, channel)
        })
    }

    #[track_caller]
    fn set_option(&self, id: CmId, option: CmOption) -> Result<()> {
        let args = || format!("{id}, {option:?}");
        self.managed(Verb::CmSetOption, Some(id), args, |manager, _| {
            manager.ids.set_option(id, option)
        })
    }

    #[track_caller]
    fn bind_addr(&self, id: CmId, addr: SocketAddr) -> Result<()> {
        let args = || with_address(id, addr);
        let is_of_machine = self.is_of_machine(addr.ip());
        self.with_name(Verb::CmBindAddr, id, addr.port(), || {
            self.managed(Verb::CmBindAddr, Some(id), args, |manager, host| {
                manager.ids.bind_addr(host, id, addr, is_of_machine)
            })
        })
    }

    #[track_caller]
    fn resolve_addr(
        &self,
        id: CmId,
        src: Option<SocketAddr>,
        dst: SocketAddr,
        timeout: Duration,
    ) -> Result<()> {
        let args = || format!("{id}, {dst}{}, {timeout:?}", trace_args::also(src));
        let dst = Destination {
            addr: dst,
            leads_to: self.leads_to(id, dst),
        };
        let is_of_machine = src.is_some_and(|src| self.is_of_machine(src.ip()));
        self.managed(Verb::CmResolveAddr, Some(id), args, |manager, host| {
            manager.resolve_addr(host, id, src, is_of_machine, dst, timeout)
        })
    }

    #[track_caller]
    fn resolve_route(&self, id: CmId, timeout: Duration) -> Result<()> {
        let args = || format!("{id}, {timeout:?}");
        self.managed(Verb::CmResolveRoute, Some(id), args, |manager, _| {
            manager.resolve_route(id)
        })
    }

    #[track_caller]
    fn create_cm_qp(&self, id: CmId, pd: Option<Pd>, init: &QpInit) -> Result<Qp> {
        let verb = Verb::CmCreateQp;
        let args = || format!("{id}, {}{}", init.qp_type, trace_args::also(pd));
        self.in_steps(verb, id, args, || Library(self).make_qp(verb, id, pd, init))
    }

    #[track_caller]
    fn destroy_cm_qp(&self, id: CmId, wait: Wait) -> Result<()> {
        let verb = Verb::CmDestroyQp;
        self.in_steps(
            verb,
            id,
            || format!("{id}, {wait:?}"),
            || Library(self).remove_qp(verb, id, wait),
        )
    }

    #[track_caller]
    fn init_qp_attr(&self, id: CmId, state: QpState) -> Result<(QpAttr, QpAttrMask)> {
        self.runtime.check_thread(Verb::CmInitQpAttr)?;
        self.look_at(|manager, _| manager.ids.init_qp_attr(id, state))
    }

    #[track_caller]
    fn listen(&self, id: CmId, backlog: i32) -> Result<()> {
        let args = || format!("{id}, {backlog}");
        // Listening binds an unbound id to a chosen port.
        self.with_name(Verb::CmListen, id, 0, || {
            self.managed(Verb::CmListen, Some(id), args, |manager, host| {
                manager.listen(host, id, backlog)
            })
        })?;
        self.open_names(id);
        Ok(())
    }

    #[track_caller]
    fn connect(&self, id: CmId, param: &ConnParam<'_>) -> Result<()> {
        let args = || format!("{id}, {} B", param.private_data.len());
        // The listener may have started after the address was resolved.
        self.follow_name(id);
        self.managed(Verb::CmConnect, Some(id), args, |manager, host| {
            manager.connect(host, id, param)
        })
    }

    #[track_caller]
    fn accept(&self, id: CmId, param: &ConnParam<'_>) -> Result<()> {
        let verb = Verb::CmAccept;
        let args = || format!("{id}, {} B", param.private_data.len());
        self.in_steps(verb, id, args, || {
            Library(self).accept_request(verb, id, param)
        })
    }

    #[track_caller]
    fn reject(&self, id: CmId, private_data: &[u8]) -> Result<()> {
        let args = || format!("{id}, {} B", private_data.len());
        self.managed(Verb::CmReject, Some(id), args, |manager, _| {
            manager.reject(id, private_data)
        })
    }

    #[track_caller]
    fn establish(&self, id: CmId) -> Result<()> {
        let args = || id.to_string();
        self.managed(Verb::CmEstablish, Some(id), args, |manager, _| {
            manager.establish(id)
        })
    }

    #[track_caller]
    fn notify(&self, id: CmId, event: AsyncEventType) -> Result<()> {
        let args = || format!("{id}, {event}");
        self.managed(Verb::CmNotify, Some(id), args, |manager, _| {
            manager.notify(id, event)
        })
    }

    #[track_caller]
    fn disconnect(&self, id: CmId) -> Result<()> {
        let verb = Verb::CmDisconnect;
        self.in_steps(
            verb,
            id,
            || id.to_string(),
            || Library(self).end_connection(verb, id),
        )
    }

    #[track_caller]
    fn join_multicast(&self, id: CmId, group: SocketAddr, context: u64) -> Result<()> {
        let args = || with_address(id, group.ip());
        self.managed(Verb::CmJoinMulticast, Some(id), args, |manager, host| {
            manager.join_multicast(host, id, group, context)
        })
    }

    #[track_caller]
    fn leave_multicast(&self, id: CmId, group: SocketAddr) -> Result<()> {
        let verb = Verb::CmLeaveMulticast;
        let args = || with_address(id, group.ip());
        self.in_steps(verb, id, args, || {
            Library(self).leave_group(verb, id, group)
        })
    }

    #[track_caller]
    fn get_cm_event(&self, channel: CmChannel, wait: Wait) -> Result<CmEvent> {
        let args = || format!("{channel}, {wait:?}");
        let (verb, wait_for) = (Verb::CmGetEvent, WaitFor::CmEvent(channel));
        let event = self.wait_managed(verb, None, wait, wait_for, args, |manager| {
            manager.get_cm_event(channel)
        })?;
        // librdmacm moves the queue pair when the event is read, not when it is queued.
        Ok(Library(self).process(event))
    }

    #[track_caller]
    fn write_event(&self, id: CmId, event: CmEventType, status: i32, arg: u64) -> Result<()> {
        let args = || format!("{id}, {event}, {status}, {arg:#x}");
        self.managed(Verb::CmWriteEvent, Some(id), args, |manager, _| {
            manager.write_event(id, event, status, arg)
        })
    }

    #[track_caller]
    fn ack_cm_event(&self, event: &CmEvent) -> Result<()> {
        let args = || event.to_string();
        self.managed(Verb::CmAckEvent, Some(event.id), args, |manager, _| {
            manager.ack_cm_event(event)
        })
    }

    #[cfg(feature = "fd")]
    #[track_caller]
    fn event_channel_fd(&self, channel: CmChannel) -> Result<OwnedFd> {
        let verb = Verb::CmChannelFd;
        self.runtime.check_thread(verb)?;
        // The manager's channels belong to no device, so the set-up decides.
        if self
            .runtime
            .config
            .lacks
            .contains(verbs_api::Capabilities::FD)
        {
            let cause = verbs_api::Cause::Text("the devices have no file descriptors".into());
            let kind = verbs_api::ErrorKind::NotSupported;
            return Err(verbs_api::Error::new(verb, kind, cause));
        }
        self.runtime.with(|fabric| {
            let queue = fabric.manage(|manager, _| manager.channels.queue(verb, channel))?;
            // Programs that never ask for a descriptor should not use one up.
            if !fabric.cm_bridge.descriptors.contains_key(&channel) {
                let mut descriptor = Descriptor::new(verb)?;
                descriptor.update(Some(queue));
                fabric.manage(|manager, _| manager.channels.watch(channel));
                fabric.cm_bridge.descriptors.insert(channel, descriptor);
            }
            fabric.cm_bridge.descriptors[&channel].duplicate(verb)
        })
    }
}
