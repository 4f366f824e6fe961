//! rdma_cm: calls on the connection manager, and the work of librdmacm on queue pairs.

mod ece;
mod librdmacm;

use core::net::SocketAddr;
use core::time::Duration;
#[cfg(unix)]
use std::os::fd::OwnedFd;

use verbs_api::cm::{
    Cm, CmChannel, CmEvent, CmEventType, CmId, CmIdAttr, CmOption, ConnParam, PortSpace,
};
use verbs_api::{
    AsyncEventType, Capabilities, Cause, Context, Ece, Error, ErrorKind, Pd, Qp, QpAttr,
    QpAttrMask, QpInit, QpState, Result, Verb, Wait,
};

use super::sim::Sim;
use super::trace_args::{self, TraceArgs};
use crate::cm::{Destination, Host, Manager};
use crate::descriptor::Descriptor;
use crate::device::{Answer, Refusal};
use crate::fabric::WaitFor;

impl Sim {
    /// Gives an id a queue pair, or removes the one that it has. A C program does this when it
    /// writes the field `qp` of its `struct rdma_cm_id`. The queue pair may belong to another id,
    /// or be made by [`create_qp`](verbs_api::Verbs::create_qp). From then on `rdma_accept`,
    /// `rdma_connect`, `rdma_disconnect` and `rdma_destroy_qp` use it (CM-84).
    ///
    /// # Errors
    /// Those of any verb for a handle of an id or a queue pair that does not exist.
    pub fn set_cm_qp(&self, id: CmId, qp: Option<Qp>) -> Result<()> {
        let verb = Verb::CmCreateQp;
        self.runtime.check_thread(verb)?;
        self.assign_qp(verb, id, qp)
    }

    /// Runs a call on the connection manager.
    #[track_caller]
    fn managed<R: TraceArgs>(
        &self,
        verb: Verb,
        id: Option<CmId>,
        args: impl FnOnce() -> String,
        work: impl FnOnce(&mut Manager, Host<'_>) -> Result<R, Refusal>,
    ) -> Result<R> {
        self.runtime.check_thread(verb)?;
        let result = self.runtime.with(|fabric| {
            let node = fabric.node_of_id(id);
            self.traced(fabric, node, verb, args, |fabric| {
                self.check_faults(fabric, node, verb)?;
                fabric.manage(work)
            })
        });
        // The call may have opened or closed a port for other processes.
        self.update_managed();
        result
    }

    /// Runs a call that changes nothing, or a part of another call.
    pub(crate) fn look_at<R>(&self, work: impl FnOnce(&mut Manager, Host<'_>) -> R) -> R {
        self.runtime.with(|fabric| fabric.manage(work))
    }

    /// Runs a call of several steps, as librdmacm does. The trace shows one call.
    #[track_caller]
    #[cfg_attr(any(), mutants::skip)] // texts
    fn in_steps<R: TraceArgs>(
        &self,
        verb: Verb,
        id: CmId,
        arguments: impl FnOnce() -> String,
        run: impl FnOnce(&Self) -> Result<R>,
    ) -> Result<R> {
        self.runtime.check_thread(verb)?;
        let (node, fired) = self.runtime.with(|fabric| {
            let node = fabric.node_of_id(Some(id));
            if self.is_traced(fabric) {
                fabric.record_call(node, verb, arguments);
            }
            (node, self.check_faults(fabric, node, verb))
        });
        // The steps take the lock themselves, so it is not held here.
        let result = fired.by(verb).and_then(|()| run(self));
        self.runtime.with(|fabric| {
            let result = self.answer(fabric, node, verb, result);
            if self.is_traced(fabric) {
                fabric.record_return(node, &result);
            }
            result
        })
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
        mut attempt: impl FnMut(&mut Manager) -> Result<R, Refusal>,
    ) -> Result<R> {
        self.runtime.check_thread(verb)?;
        self.runtime.with(|fabric| {
            let node = fabric.node_of_id(id);
            self.traced(fabric, node, verb, args, |fabric| {
                self.check_faults(fabric, node, verb).by(verb)?;
                let place = self.runtime.config.nodes;
                self.runtime
                    .wait(fabric, place, verb, wait, wait_for, |fabric| {
                        fabric.manage(|manager, _| attempt(manager))
                    })
            })
        })
    }
}

/// Writes calls that do no more than their work. A row has the verb, the id whose node runs it, the
/// arguments in the trace, and the work: on the connection manager, or in the steps of librdmacm.
macro_rules! calls {
    ($run:ident $( fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty
        = $verb:ident of $id:expr, ($($text:tt)*) $work:expr; )*) => { $(
        #[track_caller]
        fn $name(&self, $($arg: $type),*) -> Result<$result> {
            self.$run(Verb::$verb, $id, || format!($($text)*), $work)
        }
    )* };
}

impl Cm for Sim {
    calls! { managed
        fn destroy_event_channel(channel: CmChannel) -> () = CmDestroyEventChannel of None,
            ("{channel}") |manager, _| manager.channels.destroy(channel);
        fn create_id(channel: CmChannel, context: u64, ps: PortSpace) -> CmId = CmCreateId of None,
            ("{channel}, {ps}") |manager, _| manager.create_id(channel, context, ps);
        fn set_option(id: CmId, option: CmOption) -> () = CmSetOption of Some(id),
            ("{id}, {option:?}") |manager, _| manager.ids.set_option(id, option);
        fn resolve_route(id: CmId, timeout: Duration) -> () = CmResolveRoute of Some(id),
            ("{id}, {timeout:?}") |manager, _| manager.resolve_route(id);
        fn reject(id: CmId, private_data: &[u8]) -> () = CmReject of Some(id),
            ("{id}, {} B", private_data.len()) |manager, _| manager.reject(id, private_data);
        fn reject_ece(id: CmId, private_data: &[u8]) -> () = CmRejectEce of Some(id),
            ("{id}, {} B", private_data.len()) |manager, _| manager.reject_ece(id, private_data);
        fn set_local_ece(id: CmId, ece: &Ece) -> () = CmSetLocalEce of Some(id),
            ("{id}, {:#x}, {:#x}", ece.vendor_id, ece.options)
            |manager, _| manager.set_local_ece(id, ece);
        fn establish(id: CmId) -> () = CmEstablish of Some(id),
            ("{id}") |manager, _| manager.establish(id);
        fn notify(id: CmId, event: AsyncEventType) -> () = CmNotify of Some(id),
            ("{id}, {event}") |manager, _| manager.notify(id, event);
        fn join_multicast(id: CmId, group: SocketAddr, context: u64) -> () = CmJoinMulticast
            of Some(id), ("{id}, {}", group.ip())
            |manager, host| manager.join_multicast(host, id, group, context);
        fn write_event(id: CmId, event: CmEventType, status: i32, arg: u64) -> () = CmWriteEvent
            of Some(id), ("{id}, {event}, {status}, {arg:#x}")
            |manager, _| manager.write_event(id, event, status, arg);
        fn ack_cm_event(event: &CmEvent) -> () = CmAckEvent of Some(event.id),
            ("{event}") |manager, _| manager.ack_cm_event(event);
    }

    calls! { in_steps
        fn create_cm_qp(id: CmId, pd: Option<Pd>, init: &QpInit) -> Qp = CmCreateQp of id,
            ("{id}, {}{}", init.qp_type, trace_args::also(pd)) |sim| sim.make_qp(id, pd, init);
        fn destroy_cm_qp(id: CmId, wait: Wait) -> () = CmDestroyQp of id,
            ("{id}, {wait:?}") |sim| sim.remove_qp(id, wait);
        fn accept(id: CmId, param: &ConnParam<'_>) -> () = CmAccept of id,
            ("{id}, {} B", param.private_data.len()) |sim| sim.accept_request(id, param);
        fn disconnect(id: CmId) -> () = CmDisconnect of id,
            ("{id}") |sim| sim.end_connection(id);
        fn leave_multicast(id: CmId, group: SocketAddr) -> () = CmLeaveMulticast of id,
            ("{id}, {}", group.ip()) |sim| sim.leave_group(id, group);
    }

    fn cm_devices(&self) -> Result<Vec<Context>> {
        let contexts = self.cm_contexts(Verb::CmGetDevices)?;
        let own = self.nodes().map(|node| contexts[node as usize].0);
        Ok(own.collect())
    }

    #[track_caller]
    fn create_event_channel(&self) -> Result<CmChannel> {
        let verb = Verb::CmCreateEventChannel;
        if let Some(host) = self.home {
            self.check_power(verb, host.first())?;
        }
        // librdmacm opens the devices before its first channel.
        self.cm_contexts(verb)?;
        self.managed(verb, None, String::new, |manager, _| {
            Ok(manager.channels.create(self.home))
        })
    }

    fn query_id(&self, id: CmId) -> Result<CmIdAttr> {
        self.runtime.check_thread(Verb::CmQueryId)?;
        self.look_at(|manager, _| manager.query_id(id))
            .by(Verb::CmQueryId)
    }

    #[track_caller]
    fn destroy_id(&self, id: CmId, wait: Wait) -> Result<()> {
        let args = || format!("{id}, {wait:?}");
        let (verb, wait_for) = (Verb::CmDestroyId, WaitFor::CmAcknowledgement(id));
        self.runtime.with(|fabric| fabric.note_unread_end(id));
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
    fn bind_addr(&self, id: CmId, addr: SocketAddr) -> Result<()> {
        let args = || format!("{id}, {addr}");
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

    fn init_qp_attr(&self, id: CmId, state: QpState) -> Result<(QpAttr, QpAttrMask)> {
        self.runtime.check_thread(Verb::CmInitQpAttr)?;
        self.look_at(|manager, host| manager.ids.init_qp_attr(host, id, state))
            .by(Verb::CmInitQpAttr)
    }

    fn get_remote_ece(&self, id: CmId) -> Result<Ece> {
        self.runtime.check_thread(Verb::CmGetRemoteEce)?;
        self.look_at(|manager, _| manager.get_remote_ece(id))
            .by(Verb::CmGetRemoteEce)
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
        let is_silent = self.follow_name(id);
        self.managed(Verb::CmConnect, Some(id), args, |manager, host| {
            manager.connect(host, id, param, is_silent)
        })?;
        if is_silent {
            self.await_listener(id);
        }
        Ok(())
    }

    #[track_caller]
    fn get_cm_event(&self, channel: CmChannel, wait: Wait) -> Result<CmEvent> {
        let args = || format!("{channel}, {wait:?}");
        let (verb, wait_for) = (Verb::CmGetEvent, WaitFor::CmEvent(channel));
        let event = self.wait_managed(verb, None, wait, wait_for, args, |manager| {
            manager.get_cm_event(channel)
        })?;
        // librdmacm moves the queue pair when the event is read, not when it is queued.
        Ok(self.process_event(event))
    }

    #[cfg(unix)]
    fn event_channel_fd(&self, channel: CmChannel) -> Result<OwnedFd> {
        let verb = Verb::CmChannelFd;
        self.runtime.check_thread(verb)?;
        // The manager's channels belong to no device, so the set-up decides.
        if self.runtime.config.lacks.contains(Capabilities::FD) {
            let cause = Cause::Text("the devices have no file descriptors".into());
            return Err(Error::new(verb, ErrorKind::NotSupported, cause));
        }
        self.runtime.with(|fabric| {
            let queue = fabric
                .manage(|manager, _| manager.channels.queue(channel))
                .by(verb)?;
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
