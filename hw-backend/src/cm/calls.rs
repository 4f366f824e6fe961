//! The calls of rdma_cm: the trait [`Cm`] over librdmacm.

use std::ffi::c_int;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use libc::sockaddr_storage;
use verbs_abi::{
    RDMA_OPTION_ID, address_to_c, ibv_ece, library, option_to_c, rdma_cm_id, rdma_conn_param, token,
};
use verbs_api::cm::{Cm, CmEvent, CmEventType, CmIdAttr, CmOption, ConnParam, PortSpace};
use verbs_api::{
    AsyncEventType, Cause, CmChannel, CmId, Context, Ece, Error, ErrorKind, Object, Pd as PdHandle,
    Qp as QpHandle, QpAttr, QpAttrMask, QpInit, QpState, Result, Verb, Wait,
};

use super::manager::Manager;
use super::objects::{EventChannel, Id, Unacked};
use crate::errno::{check, invalid, missing, misuse};
use crate::hw::{Hw, destroy};

impl Cm for Hw {
    fn cm_devices(&self) -> Result<Vec<Context>> {
        self.manager().contexts(Verb::CmGetDevices)
    }

    fn create_event_channel(&self) -> Result<CmChannel> {
        let channel = EventChannel::new(Verb::CmCreateEventChannel)?;
        let at = self.cm.lock().channels.insert(|_| Arc::new(channel));
        Ok(CmChannel::from_parts(at.index, at.generation))
    }

    fn destroy_event_channel(&self, channel: CmChannel) -> Result<()> {
        let verb = Verb::CmDestroyEventChannel;
        let found = self.manager().event_channel(verb, channel)?;
        let idle = || {
            let waiters = found.waiters.load(Ordering::Relaxed);
            if waiters != 0 {
                return Err(misuse(verb, format!("{waiters} threads wait on {channel}")));
            }
            let on_it = |id: &Arc<Id>| id.channel.lock().0 == channel;
            let count = self.cm.lock().ids.indices(on_it).len() as u32;
            let (object, by) = (Object::CmChannel, Object::CmId);
            let cause = Cause::InUse { object, by, count };
            match count {
                0 => Ok(()),
                _ => Err(Error::new(verb, ErrorKind::Busy, cause)),
            }
        };
        found.raw.destroy(verb, idle)?;
        self.manager().take_channel(channel);
        Ok(())
    }

    fn create_id(&self, channel: CmChannel, context: u64, ps: PortSpace) -> Result<CmId> {
        let verb = Verb::CmCreateId;
        let found = self.manager().event_channel(verb, channel)?;
        // Held until the id is in the table. Otherwise the channel could be destroyed in between.
        let held = found.raw.hold(verb)?;
        let mut id = null_mut();
        // SAFETY: the channel is live. The call writes the id.
        let create =
            unsafe { library::rdma_create_id(held.get(), &mut id, token(context), ps.into()) };
        check(verb, create)?;
        // SAFETY: the id is new.
        Ok(self
            .manager()
            .insert_id(unsafe { Id::new(id, ps, channel, found.clone()) }))
    }

    fn query_id(&self, id: CmId) -> Result<CmIdAttr> {
        let verb = Verb::CmQueryId;
        let found = self.manager().cm_id(verb, id)?;
        let _reading = self.reading.lock();
        // SAFETY: the id is live, and nothing changes it (`Id`).
        let read = |id: *mut rdma_cm_id| rdma_cm_id::from_c(unsafe { &*id });
        let mut attr = found.raw.with(verb, read)?;
        attr.channel = found.channel.lock().0;
        attr.qp = *found.qp.lock();
        if let Some((context, pd)) = self.manager().bound_or_not(verb, &found)? {
            (attr.verbs, attr.pd) = (Some(context), Some(pd));
        }
        Ok(attr)
    }

    fn destroy_id(&self, id: CmId, wait: Wait) -> Result<()> {
        let verb = Verb::CmDestroyId;
        let found = self.manager().cm_id(verb, id)?;
        let idle = || match *found.qp.lock() {
            None => Ok(()),
            Some(_) => {
                let (object, by, count) = (Object::CmId, Object::Qp, 1);
                let cause = Cause::InUse { object, by, count };
                Err(Error::new(verb, ErrorKind::Busy, cause))
            }
        };
        idle()?;
        let unacked = || found.unacked();
        self.when_acknowledged(verb, Object::CmId, wait, unacked, || {
            idle()?;
            destroy(verb, &found.raw)?;
            self.manager().take_id(id);
            Ok(())
        })
    }

    fn migrate_id(&self, id: CmId, channel: CmChannel, wait: Wait) -> Result<()> {
        let verb = Verb::CmMigrateId;
        let (found, to) = (
            self.manager().cm_id(verb, id)?,
            self.manager().event_channel(verb, channel)?,
        );
        let unacked = || found.unacked();
        self.when_acknowledged(verb, Object::CmId, wait, unacked, || {
            let held = to.raw.hold(verb)?;
            // SAFETY: id and channel are live.
            let migrate = |id| unsafe { library::rdma_migrate_id(id, held.get()) };
            found.raw.call(verb, migrate)?;
            *found.channel.lock() = (channel, to.clone());
            Ok(())
        })
    }

    fn set_option(&self, id: CmId, option: CmOption) -> Result<()> {
        let verb = Verb::CmSetOption;
        let Some((name, mut value)) = option_to_c(option) else {
            return Err(invalid(verb, "option", "is not known"));
        };
        let (start, length) = (value.as_mut_ptr().cast(), value.len());
        // SAFETY: the id is live, and the bytes have this length.
        self.manager().on_id(verb, id, |id| unsafe {
            library::rdma_set_option(id, RDMA_OPTION_ID, name, start, length)
        })
    }

    fn bind_addr(&self, id: CmId, addr: SocketAddr) -> Result<()> {
        let mut addr = address_to_c(addr);
        // SAFETY: the id is live; the address is a whole one.
        let bind = |id| unsafe { library::rdma_bind_addr(id, (&raw mut addr).cast()) };
        self.manager().on_id(Verb::CmBindAddr, id, bind)
    }

    fn resolve_addr(
        &self,
        id: CmId,
        src: Option<SocketAddr>,
        dst: SocketAddr,
        timeout: Duration,
    ) -> Result<()> {
        let (mut src, mut dst) = (src.map(address_to_c), address_to_c(dst));
        let src = src
            .as_mut()
            .map_or(null_mut(), std::ptr::from_mut::<sockaddr_storage>);
        // SAFETY: the id is live; the addresses are whole ones, or the source is null.
        self.manager().on_id(Verb::CmResolveAddr, id, |id| unsafe {
            library::rdma_resolve_addr(id, src.cast(), (&raw mut dst).cast(), millis(timeout))
        })
    }

    fn resolve_route(&self, id: CmId, timeout: Duration) -> Result<()> {
        // SAFETY: the id is live.
        let resolve = |id| unsafe { library::rdma_resolve_route(id, millis(timeout)) };
        self.manager().on_bound(Verb::CmResolveRoute, id, resolve)
    }

    fn create_cm_qp(&self, id: CmId, pd: Option<PdHandle>, init: &QpInit) -> Result<QpHandle> {
        self.manager().make_qp_of(id, pd, init)
    }

    fn destroy_cm_qp(&self, id: CmId, wait: Wait) -> Result<()> {
        self.manager().remove_qp_of(id, wait)
    }

    fn init_qp_attr(&self, id: CmId, state: QpState) -> Result<(QpAttr, QpAttrMask)> {
        self.manager().qp_attr_of(id, state)
    }

    fn set_local_ece(&self, id: CmId, ece: &Ece) -> Result<()> {
        let verb = Verb::CmSetLocalEce;
        let set = library::rdma_set_local_ece().map_err(missing(verb))?;
        let mut ece = ibv_ece::to_c(ece);
        // SAFETY: the id is live.
        self.manager()
            .on_id(verb, id, |id| unsafe { set(id, &mut ece) })
    }

    fn get_remote_ece(&self, id: CmId) -> Result<Ece> {
        let verb = Verb::CmGetRemoteEce;
        let get = library::rdma_get_remote_ece().map_err(missing(verb))?;
        let mut ece = ibv_ece::default();
        // SAFETY: the id is live.
        let get = |id| unsafe { get(id, &mut ece) };
        self.manager().on_id(verb, id, get)?;
        Ok(ibv_ece::from_c(&ece))
    }

    fn listen(&self, id: CmId, backlog: i32) -> Result<()> {
        // SAFETY: the id is live.
        let listen = |id| unsafe { library::rdma_listen(id, backlog) };
        self.manager().on_id(Verb::CmListen, id, listen)
    }

    fn connect(&self, id: CmId, param: &ConnParam<'_>) -> Result<()> {
        self.manager()
            .with_param(Verb::CmConnect, library::rdma_connect, id, param)
    }

    fn accept(&self, id: CmId, param: &ConnParam<'_>) -> Result<()> {
        self.manager()
            .with_param(Verb::CmAccept, library::rdma_accept, id, param)
    }

    fn reject(&self, id: CmId, private_data: &[u8]) -> Result<()> {
        let verb = Verb::CmReject;
        let length = length(verb, private_data)?;
        let start = private_data.as_ptr().cast();
        // SAFETY: the id is live, and the bytes have this length.
        let reject = |id| unsafe { library::rdma_reject(id, start, length) };
        self.manager().on_id(verb, id, reject)
    }

    fn reject_ece(&self, id: CmId, private_data: &[u8]) -> Result<()> {
        let verb = Verb::CmRejectEce;
        let reject = library::rdma_reject_ece().map_err(missing(verb))?;
        let length = length(verb, private_data)?;
        let start = private_data.as_ptr().cast();
        // SAFETY: the id is live, and the bytes have this length.
        let reject = |id| unsafe { reject(id, start, length) };
        self.manager().on_id(verb, id, reject)
    }

    fn establish(&self, id: CmId) -> Result<()> {
        let verb = Verb::CmEstablish;
        let establish = library::rdma_establish().map_err(missing(verb))?;
        // SAFETY: the id is live.
        self.manager()
            .on_id(verb, id, |id| unsafe { establish(id) })
    }

    fn write_event(&self, id: CmId, event: CmEventType, status: i32, arg: u64) -> Result<()> {
        let verb = Verb::CmWriteEvent;
        let write = library::rdma_write_cm_event().map_err(missing(verb))?;
        // SAFETY: the id is live.
        let write = |id| unsafe { write(id, event.into(), status, arg) };
        self.manager().on_id(verb, id, write)
    }

    fn notify(&self, id: CmId, event: AsyncEventType) -> Result<()> {
        // SAFETY: the id is live.
        let notify = |id| unsafe { library::rdma_notify(id, event.into()) };
        self.manager().on_id(Verb::CmNotify, id, notify)
    }

    fn disconnect(&self, id: CmId) -> Result<()> {
        // SAFETY: the id is live.
        let disconnect = |id| unsafe { library::rdma_disconnect(id) };
        self.manager().on_id(Verb::CmDisconnect, id, disconnect)
    }

    fn join_multicast(&self, id: CmId, group: SocketAddr, context: u64) -> Result<()> {
        let (mut group, context) = (address_to_c(group), token(context));
        // SAFETY: the id is live; the address is a whole one.
        self.manager()
            .on_id(Verb::CmJoinMulticast, id, |id| unsafe {
                library::rdma_join_multicast(id, (&raw mut group).cast(), context)
            })
    }

    fn leave_multicast(&self, id: CmId, group: SocketAddr) -> Result<()> {
        let verb = Verb::CmLeaveMulticast;
        let found = self.manager().cm_id(verb, id)?;
        let mut group = address_to_c(group);
        let _reading = self.reading.lock();
        let of_groups = |unacked: &&Unacked| unacked.is_group;
        let events = found.unacked.lock().values().filter(of_groups).count() as u32;
        if events != 0 {
            let object = Object::CmId;
            let cause = Cause::Unacknowledged { object, events };
            return Err(Error::new(verb, ErrorKind::WouldBlock, cause));
        }
        // SAFETY: the id is live; the address is a whole one.
        let leave = |id| unsafe { library::rdma_leave_multicast(id, (&raw mut group).cast()) };
        found.raw.call(verb, leave)
    }

    fn get_cm_event(&self, channel: CmChannel, wait: Wait) -> Result<CmEvent> {
        self.manager().next_cm_event(channel, wait)
    }

    fn ack_cm_event(&self, event: &CmEvent) -> Result<()> {
        self.manager().acknowledge_cm_event(event)
    }

    fn event_channel_fd(&self, channel: CmChannel) -> Result<OwnedFd> {
        let verb = Verb::CmChannelFd;
        self.event_channel(verb, channel)?.fd(verb)
    }
}

impl Manager<'_> {
    /// Calls C for an id that has to be bound: the library asks its device, and does not check that
    /// it has one.
    fn on_bound(
        &self,
        verb: Verb,
        id: CmId,
        call: impl FnOnce(*mut rdma_cm_id) -> c_int,
    ) -> Result<()> {
        let found = self.cm_id(verb, id)?;
        let _reading = self.reading.lock();
        self.bound(verb, &found)?;
        found.raw.call(verb, call)
    }

    fn with_param(
        &self,
        verb: Verb,
        call: unsafe extern "C" fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int,
        id: CmId,
        param: &ConnParam<'_>,
    ) -> Result<()> {
        length(verb, param.private_data)?;
        let mut param = rdma_conn_param::from(param);
        // SAFETY: the id is live, and the private data is there.
        self.on_bound(verb, id, |id| unsafe { call(id, &mut param) })
    }
}

/// The length of private data, which is a byte in C.
fn length(verb: Verb, private_data: &[u8]) -> Result<u8> {
    let length = u8::try_from(private_data.len());
    length.map_err(|_| invalid(verb, "private_data", "is longer than 255 bytes"))
}

fn millis(time: Duration) -> c_int {
    c_int::try_from(time.as_millis()).unwrap_or(c_int::MAX)
}
