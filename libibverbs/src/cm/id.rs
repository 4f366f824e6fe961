//! Ids, and the structures that show them to programs.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use verbs_abi::{ibv_pd, ibv_qp_init_attr, ibv_sa_path_rec, rdma_cm_id, rdma_event_channel};
use verbs_api::cm::{Cm, CmId, CmIdAttr, PortSpace};
use verbs_api::sync::Mutex;
use verbs_api::{Mtu, QpAttrMask, QpType, Verbs, Wait};

use super::addrinfo::Resolving;
use super::channel::{self, EventChannel};
use super::cqs::MadeCqs;
use super::device::{context_of_ids, pd_of_ids};
use super::unacknowledged::acknowledge;
use crate::base::per_process::PerProcess;
use crate::c::{CObject, Held, Later, Refusal, Result, kinds, present, zero_or_minus_one};
use crate::engine::{sim, unobserved};
use crate::verbs::qp::Qp;
use crate::verbs::srq::Srq;

kinds! {
    /// Ids.
    Id: WithPath as rdma_cm_id, CmId, More;
}

/// The structure, and the path that it points to.
#[repr(C)]
pub(crate) struct WithPath {
    id: rdma_cm_id,
    path: ibv_sa_path_rec,
}

/// What an id has in addition to its structure.
#[derive(Default)]
pub(crate) struct More {
    pub(super) own: Mutex<Own>,
    pub(super) resolving: Mutex<Resolving>,
}

/// Objects that were made for an id.
#[derive(Default)]
pub(super) struct Own {
    /// The channel of an id that waits for its events by itself.
    pub(super) channel: Option<Held<EventChannel>>,
    pub(super) qp: Option<Held<Qp>>,
    pub(super) cqs: MadeCqs,
    pub(super) srq: Option<Held<Srq>>,
    pub(super) endpoint: Option<Endpoint>,
}

/// The queue pair that a listening endpoint makes for each request.
#[derive(Clone, Copy)]
pub(super) struct Endpoint {
    pub(super) pd: *mut ibv_pd,
    pub(super) init: Option<ibv_qp_init_attr>,
}

// SAFETY: the pointers are the program's. It promises that they are valid as long as the endpoint.
unsafe impl Send for Endpoint {}

/// Ids by their handles, for events.
static IDS: PerProcess<Mutex<BTreeMap<CmId, Held<Id>>>> = PerProcess::new();

/// `rdma_create_id`. Without a channel the id waits for its events by itself.
pub(crate) extern "C" fn create_id(
    channel: *mut rdma_event_channel,
    id: *mut *mut rdma_cm_id,
    context: *mut c_void,
    ps: u32,
) -> c_int {
    zero_or_minus_one("rdma_create_id", Later(channel), |()| {
        present(id)?;
        let made = create(channel, context, ps)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { id.write(made.seen()) };
        Ok(())
    })
}

pub(super) fn create(
    channel: *mut rdma_event_channel,
    context: *mut c_void,
    ps: u32,
) -> Result<Held<Id>> {
    let (of, own) = if channel.is_null() {
        let own = channel::create()?.hold();
        (own.clone(), Some(own))
    } else {
        (CObject::<EventChannel>::find(channel)?.hold(), None)
    };
    let handle = sim().create_id(of.handle, context as u64, PortSpace::from(ps));
    let handle = handle.inspect_err(|_| {
        let _ = own.as_ref().map(|own| own.close());
    })?;
    let plain = rdma_cm_id {
        channel: of.seen(),
        context,
        ps,
        ..rdma_cm_id::default()
    };
    let id = keep(handle, plain)?;
    id.more.own.lock().channel = own;
    Ok(id)
}

/// Keeps an id of the engine, with a structure.
pub(super) fn keep(handle: CmId, mut plain: rdma_cm_id) -> Result<Held<Id>> {
    let qp_type = if PortSpace::from(plain.ps).is_datagram() {
        QpType::Ud
    } else {
        QpType::Rc
    };
    plain.qp_type = qp_type.into();
    let raw = || WithPath {
        id: plain,
        path: ibv_sa_path_rec::default(),
    };
    let id = CObject::<Id>::make(handle, More::default(), raw)?.hold();
    IDS.get_or_default().lock().insert(handle, id.clone());
    Ok(id)
}

/// `rdma_destroy_id`. Waits until the events that were read are acknowledged.
pub(crate) extern "C" fn destroy_id(id: *mut rdma_cm_id) -> c_int {
    zero_or_minus_one("rdma_destroy_id", id, |id| id.held().destroy())
}

/// `rdma_migrate_id`. Without a channel the id gets one of its own, and waits for its events by
/// itself.
pub(crate) extern "C" fn migrate_id(
    id: *mut rdma_cm_id,
    channel: *mut rdma_event_channel,
) -> c_int {
    zero_or_minus_one("rdma_migrate_id", id, |id| {
        let id = id.held();
        let channel = CObject::<EventChannel>::find_some(channel)?;
        id.migrate(channel.map(|channel| channel.hold()))
    })
}

impl CObject<Id> {
    /// The id of an event. `None` if it was destroyed.
    pub(super) fn of(handle: CmId) -> Option<Held<Id>> {
        IDS.get_or_default().lock().get(&handle).cloned()
    }

    /// Acknowledges the event that an id keeps which waits by itself.
    pub(super) fn acknowledge_own(&self) -> Result<()> {
        // SAFETY: one of ours, which stays for the call; calls set the event.
        let event = unsafe { std::mem::replace(&mut (*self.seen()).event, null_mut()) };
        if event.is_null() {
            return Ok(());
        }
        acknowledge(event)
    }

    pub(super) fn destroy(&self) -> Result<()> {
        self.acknowledge_own()?;
        // This waits until all other events are acknowledged.
        sim().destroy_id(self.handle, Wait::Forever)?;
        IDS.get_or_default().lock().remove(&self.handle);
        let own = self.more.own.lock().channel.take();
        drop(std::mem::take(&mut *self.more.resolving.lock()));
        self.retire();
        own.map_or(Ok(()), |channel| channel.close())
    }

    pub(super) fn migrate(&self, channel: Option<Held<EventChannel>>) -> Result<()> {
        self.acknowledge_own()?;
        let own = match channel {
            None => Some(channel::create()?.hold()),
            Some(_) => None,
        };
        let Some(to) = channel.or(own.clone()) else {
            return Ok(());
        };
        let migrated = sim().migrate_id(self.handle, to.handle, Wait::Forever);
        migrated.inspect_err(|_| {
            let _ = own.as_ref().map(|own| own.close());
        })?;
        // SAFETY: one of ours, which stays for the call; the call sets the channel.
        unsafe { (*self.seen()).channel = to.seen() };
        let before = std::mem::replace(&mut self.more.own.lock().channel, own);
        before.map_or(Ok(()), |channel| channel.close())
    }

    /// Brings the structures up to date with the engine.
    pub(super) fn refresh(&self) -> Result<()> {
        let attr = unobserved().query_id(self.handle);
        let attr = attr.map_err(Refusal::unobserved)?;
        let verbs = attr.verbs.map(context_of_ids).transpose()?;
        let pd = attr.verbs.zip(attr.pd);
        let pd = pd.map(|(context, pd)| pd_of_ids(context, pd)).transpose()?;
        let shown = rdma_cm_id::to_c(&attr);
        let own = self.more.own.lock();
        // SAFETY: one of ours, which stays for the call; calls set the fields of the id.
        unsafe {
            let raw = self.raw();
            let (id, path) = (&raw mut (*raw).id, &raw mut (*raw).path);
            (*id).verbs = verbs.unwrap_or(null_mut());
            // Otherwise the domain is that of the queue pair or of the SRQ, which the program
            // chose.
            if own.qp.is_none() && own.srq.is_none() {
                (*id).pd = pd.unwrap_or(null_mut());
            }
            (*id).port_num = attr.port_num;
            (*id).route.addr = shown.route.addr;
            (*id).route.num_paths = shown.route.num_paths;
            // Before the route is resolved the path has no meaning.
            if attr.num_paths > 0 {
                path.write(path_of(&attr));
                (*id).route.path_rec = path;
            }
        }
        // The program may have destroyed the queue pair.
        if let Some(qp) = &own.qp
            && let Ok(now) = unobserved().query_qp(qp.handle, QpAttrMask::STATE)
        {
            // SAFETY: one of ours, which stays for the call.
            unsafe { (*qp.raw()).qp_base.state = now.attr.qp_state.into() };
        }
        Ok(())
    }
}

/// The path of an id, as the subnet administration would report it.
fn path_of(attr: &CmIdAttr) -> ibv_sa_path_rec {
    /// The value is exact, not a minimum.
    const EXACTLY: u8 = 2;
    /// 100 Gbit/s.
    const RATE: u8 = 16;
    let mtu = attr
        .verbs
        .and_then(|context| unobserved().query_port(context, attr.port_num).ok());
    let mtu = mtu.map_or(Mtu::Mtu1024, |port| port.active_mtu);
    ibv_sa_path_rec {
        dgid: verbs_abi::ibv_gid { raw: attr.dgid.0 },
        sgid: verbs_abi::ibv_gid { raw: attr.sgid.0 },
        hop_limit: 64,
        reversible: 1,
        numb_path: 1,
        pkey: u16::MAX,
        mtu_selector: EXACTLY,
        mtu: u32::from(mtu) as u8,
        rate_selector: EXACTLY,
        rate: RATE,
        packet_life_time_selector: EXACTLY,
        packet_life_time: 18,
        ..ibv_sa_path_rec::default()
    }
}
