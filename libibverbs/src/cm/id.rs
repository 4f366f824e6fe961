//! Ids: what a program's structure shows of them.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use verbs_abi::{ibv_sa_path_rec, rdma_cm_id, rdma_event_channel};
use verbs_api::cm::{CmId, CmIdAttr, PortSpace};
use verbs_api::sync::Mutex;
use verbs_api::{Mtu, QpAttrMask, QpType, Verbs, Wait};

use super::channel::{self, EventChannel};
use super::device::{context_of_ids, pd_of_ids};
use super::qp::MadeCqs;
use super::resolved::Resolving;
use super::sync::Endpoint;
use super::{cm, unobserved_cm};
use crate::engine::{engine, unobserved};
use crate::object::{ArenaOf, CObject, Holding, Kind, Objects};
use crate::qp::Qp;
use crate::result::{Refusal, Result, or_minus_one, present};
use crate::srq::Srq;

/// Ids.
pub(crate) struct Id;

/// The structure, and what it points to.
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

/// What was made for an id.
#[derive(Default)]
pub(super) struct Own {
    /// Of one that waits for its events by itself.
    pub(super) channel: Option<Holding<EventChannel>>,
    pub(super) qp: Option<Holding<Qp>>,
    pub(super) cqs: MadeCqs,
    pub(super) srq: Option<Holding<Srq>>,
    pub(super) endpoint: Option<Endpoint>,
}

impl Kind for Id {
    const NAME: &'static str = "struct rdma_cm_id";
    type Raw = WithPath;
    type Seen = rdma_cm_id;
    type Handle = CmId;
    type More = More;

    fn arena_in(objects: &Objects) -> &ArenaOf<Self> {
        &objects.ids
    }
}

/// Without a channel it waits for its events by itself.
pub(crate) extern "C" fn create_id(
    channel: *mut rdma_event_channel,
    id: *mut *mut rdma_cm_id,
    context: *mut c_void,
    ps: u32,
) -> c_int {
    or_minus_one("rdma_create_id", channel, || {
        present(id)?;
        let made = create(channel, context, ps)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { id.write(made.seen()) };
        Ok(0)
    })
}

pub(super) fn create(
    channel: *mut rdma_event_channel,
    context: *mut c_void,
    ps: u32,
) -> Result<Holding<Id>> {
    let own = match channel.is_null() {
        true => Some(channel::create()?.hold()),
        false => None,
    };
    let of = match &own {
        Some(own) => own.clone(),
        None => CObject::<EventChannel>::find(channel)?.hold(),
    };
    let handle =
        cm().and_then(|cm| Ok(cm.create_id(of.handle, context as u64, PortSpace::from(ps))?));
    let handle = handle.inspect_err(|_| {
        let _ = own.as_ref().map(|own| own.close());
    })?;
    let id = keep(handle, (of.seen(), context, ps))?;
    id.more.own.lock().channel = own;
    Ok(id)
}

/// The structure of an id of the engine.
pub(super) fn keep(
    handle: CmId,
    (channel, context, ps): (*mut rdma_event_channel, *mut c_void, u32),
) -> Result<Holding<Id>> {
    let raw = || WithPath {
        id: rdma_cm_id {
            channel,
            context,
            ps,
            qp_type: match PortSpace::from(ps).is_datagram() {
                true => QpType::Ud.into(),
                false => QpType::Rc.into(),
            },
            ..rdma_cm_id::default()
        },
        path: ibv_sa_path_rec::default(),
    };
    let id = CObject::<Id>::make(handle, More::default(), raw)?.hold();
    engine().cm.ids.lock().insert(handle, id.clone());
    Ok(id)
}

/// Waits until the events that were read are acknowledged.
pub(crate) extern "C" fn destroy_id(id: *mut rdma_cm_id) -> c_int {
    or_minus_one("rdma_destroy_id", id, || {
        CObject::<Id>::find(id)?.hold().destroy()?;
        Ok(0)
    })
}

/// Without a channel the id gets one of its own, and waits for its events by itself.
pub(crate) extern "C" fn migrate_id(
    id: *mut rdma_cm_id,
    channel: *mut rdma_event_channel,
) -> c_int {
    or_minus_one("rdma_migrate_id", id, || {
        let id = CObject::<Id>::find(id)?.hold();
        let channel = CObject::<EventChannel>::find_some(channel)?;
        id.migrate(channel.map(|channel| channel.hold()))?;
        Ok(0)
    })
}

impl CObject<Id> {
    /// The id of an event.
    pub(super) fn of(handle: CmId) -> Option<Holding<Id>> {
        engine().cm.ids.lock().get(&handle).cloned()
    }

    pub(super) fn destroy(&self) -> Result<()> {
        self.let_go_of_event()?;
        cm()?.destroy_id(self.handle, Wait::Forever)?;
        engine().cm.ids.lock().remove(&self.handle);
        let own = self.more.own.lock().channel.take();
        drop(std::mem::take(&mut *self.more.resolving.lock()));
        self.retire();
        own.map_or(Ok(()), |channel| channel.close())
    }

    pub(super) fn migrate(&self, channel: Option<Holding<EventChannel>>) -> Result<()> {
        self.let_go_of_event()?;
        let own = match channel {
            None => Some(channel::create()?.hold()),
            Some(_) => None,
        };
        let Some(to) = channel.or(own.clone()) else {
            return Ok(());
        };
        let migrated =
            cm().and_then(|cm| Ok(cm.migrate_id(self.handle, to.handle, Wait::Forever)?));
        migrated.inspect_err(|_| {
            let _ = own.as_ref().map(|own| own.close());
        })?;
        // SAFETY: one of ours, which stays for the call; the call sets the channel.
        unsafe { (*self.seen()).channel = to.seen() };
        let before = std::mem::replace(&mut self.more.own.lock().channel, own);
        before.map_or(Ok(()), |channel| channel.close())
    }

    /// Lets the structures say what the engine knows by now.
    pub(super) fn refresh(&self) -> Result<()> {
        let attr = unobserved_cm()?.query_id(self.handle);
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
            if own.qp.is_none() && own.srq.is_none() {
                (*id).pd = pd.unwrap_or(null_mut());
            }
            (*id).port_num = attr.port_num;
            (*id).route.addr = shown.route.addr;
            (*id).route.num_paths = shown.route.num_paths;
            if attr.num_paths > 0 {
                path.write(path_of(&attr));
                (*id).route.path_rec = path;
            }
        }
        own.qp.as_deref().map_or(Ok(()), refresh_state)
    }
}

/// Lets the structure of a queue pair say which state it is in. One that the program has destroyed stays as it is.
fn refresh_state(qp: &CObject<Qp>) -> Result<()> {
    if let Ok(now) = unobserved().query_qp(qp.handle, QpAttrMask::STATE) {
        // SAFETY: one of ours, which stays for the call.
        unsafe { (*qp.raw()).qp_base.state = now.attr.qp_state.into() };
    }
    Ok(())
}

/// The path that an id has, as the subnet administration would tell it.
fn path_of(attr: &CmIdAttr) -> ibv_sa_path_rec {
    /// Exactly so much, not at least.
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
