//! The backend: tables of objects by their handles, and functions that all verbs need.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::{Condvar, Mutex, RwLock};
use verbs_abi::{
    IBV_REREG_MR_CHANGE_ACCESS, IBV_REREG_MR_CHANGE_PD, IBV_REREG_MR_CHANGE_TRANSLATION,
    IBV_REREG_MR_ERR_DO_FORK_OLD, ibv_device_attr, ibv_mr, ibv_pd, library,
};
use verbs_api::table::{Id, Table};
use verbs_api::{
    Access, BadHandle, Cause, CompChannel as ChannelHandle, Context, Cq as CqHandle,
    Dm as DmHandle, Error, ErrorKind, Handle, Mr as MrHandle, MrChange, Object, Pd as PdHandle,
    Qp as QpHandle, Result, Srq as SrqHandle, Td as TdHandle, Verb, Wait, Xrcd as XrcdHandle,
};

use crate::cm::objects::Tables as CmTables;
use crate::errno::{bad_handle, invalid, look_up, missing, misuse, no_memory, of_context};
use crate::objects::{
    Ah, Channel, Cq, Device, Dm, InContext, Memory, Mr, Mw, Pd, Qp, Srq, Td, Xrcd,
};
use crate::owner::{Kind, Owned};
use crate::probe;
use crate::reactor::Reactor;
use crate::wait::Deadline;

/// RDMA devices through libibverbs: implements [`Verbs`](verbs_api::Verbs).
///
/// Handles are checked before C is called. The backend refuses calls that would make C access freed
/// memory or wait forever. All other mistakes go to the driver. File descriptors are non-blocking
/// and waits poll them, so that each wait can be bounded.
#[derive(Debug, Default)]
pub struct Hw {
    pub(crate) only: Option<Vec<String>>,
    pub(crate) tables: Mutex<Tables>,
    /// Dropped after the tables, since queue pairs hold ids.
    pub(crate) cm: Mutex<CmTables>,
    pub(crate) acknowledged: Condvar,
    /// Held while an event is read and counted, and while an object that has events is destroyed.
    /// The library's destroy waits until all events that were read are acknowledged, and excludes
    /// all other calls on the object. So every event that was read must be counted.
    pub(crate) reading: Mutex<()>,
    /// Dropped after the tables, whose objects it watches.
    pub(crate) reactor: Reactor,
}

/// Fields are dropped in this order: windows before the objects that they are bound to.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) contexts: Table<Arc<Device>>,
    pub(crate) mws: Table<Arc<Mw>>,
    pub(crate) pds: Table<Arc<Pd>>,
    pub(crate) tds: Table<Arc<Td>>,
    pub(crate) mrs: Table<Arc<Mr>>,
    pub(crate) dms: Table<Arc<Dm>>,
    pub(crate) channels: Table<Arc<Channel>>,
    pub(crate) cqs: Table<Arc<Cq>>,
    pub(crate) qps: Table<Arc<Qp>>,
    pub(crate) ahs: Table<Arc<Ah>>,
    pub(crate) srqs: Table<Arc<Srq>>,
    pub(crate) xrcds: Table<Arc<Xrcd>>,
    /// Handles by the address of their C object, for events.
    pub(crate) cq_handles: BTreeMap<usize, CqHandle>,
    pub(crate) qp_handles: BTreeMap<usize, QpHandle>,
    pub(crate) srq_handles: BTreeMap<usize, SrqHandle>,
}

impl Hw {
    /// The devices of this machine. Nothing is opened yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only the devices of these names, in this order. Others are neither listed nor opened. A name
    /// may appear twice.
    pub fn only(names: &[String]) -> Self {
        Self {
            only: Some(names.to_vec()),
            ..Self::default()
        }
    }

    pub(crate) fn device(&self, verb: Verb, context: Context) -> Result<Arc<Device>> {
        look_up(&self.tables.lock().contexts, verb, context)
    }

    /// The attributes of a device.
    pub(crate) fn device_attr(&self, verb: Verb, device: &Device) -> Result<ibv_device_attr> {
        let mut attr = ibv_device_attr::default();
        // SAFETY: the context is live.
        let query = |context| unsafe { library::ibv_query_device(context, &mut attr) };
        device.raw.call(verb, query)?;
        Ok(attr)
    }

    pub(crate) fn find<H: Handle, T: InContext>(
        &self,
        table: impl FnOnce(&Tables) -> &Table<Arc<T>>,
        verb: Verb,
        handle: H,
    ) -> Result<Arc<T>> {
        let object = look_up(table(&self.tables.lock()), verb, handle)?;
        if object.context() == handle.context() {
            return Ok(object);
        }
        Err(bad_handle(verb, H::OBJECT, BadHandle::Foreign))
    }

    pub(crate) fn pd(&self, verb: Verb, pd: PdHandle) -> Result<Arc<Pd>> {
        self.find(|tables| &tables.pds, verb, pd)
    }

    pub(crate) fn td(&self, verb: Verb, td: TdHandle) -> Result<Arc<Td>> {
        self.find(|tables| &tables.tds, verb, td)
    }

    pub(crate) fn mr(&self, verb: Verb, mr: MrHandle) -> Result<Arc<Mr>> {
        self.find(|tables| &tables.mrs, verb, mr)
    }

    pub(crate) fn dm(&self, verb: Verb, dm: DmHandle) -> Result<Arc<Dm>> {
        self.find(|tables| &tables.dms, verb, dm)
    }

    pub(crate) fn channel(&self, verb: Verb, channel: ChannelHandle) -> Result<Arc<Channel>> {
        self.find(|tables| &tables.channels, verb, channel)
    }

    pub(crate) fn cq(&self, verb: Verb, cq: CqHandle) -> Result<Arc<Cq>> {
        self.find(|tables| &tables.cqs, verb, cq)
    }

    pub(crate) fn qp(&self, verb: Verb, qp: QpHandle) -> Result<Arc<Qp>> {
        self.find(|tables| &tables.qps, verb, qp)
    }

    pub(crate) fn srq(&self, verb: Verb, srq: SrqHandle) -> Result<Arc<Srq>> {
        self.find(|tables| &tables.srqs, verb, srq)
    }

    pub(crate) fn xrcd(&self, verb: Verb, xrcd: XrcdHandle) -> Result<Arc<Xrcd>> {
        self.find(|tables| &tables.xrcds, verb, xrcd)
    }

    /// Keeps a new object. `handle` makes a handle of its kind.
    pub(crate) fn insert<H, T>(
        &self,
        table: impl FnOnce(&mut Tables) -> &mut Table<Arc<T>>,
        handle: impl FnOnce(Context, u32, u32) -> H,
        context: Context,
        object: T,
    ) -> H {
        let Id { index, generation } = table(&mut self.tables.lock()).insert(|_| Arc::new(object));
        handle(context, index, generation)
    }

    pub(crate) fn insert_mr(
        &self,
        verb: Verb,
        pd: PdHandle,
        memory: Memory,
        length: usize,
        access: Access,
        iova: Option<u64>,
    ) -> Result<MrHandle> {
        let start = memory.start().cast();
        let device = &self.pd(verb, pd)?.device;
        let can = probe::behavior(&device.driver).zero_based_mr != Some(false);
        let zero_based = (can && access.contains(Access::ZERO_BASED)).then_some(0);
        let access = access.bits() as c_int;
        // SAFETY: the domain is live. C checks the range, and `memory` or the caller of `reg_mr`
        // keeps it valid.
        let plain = |pd| unsafe { library::ibv_reg_mr(pd, start, length, access) };
        let Some(iova) = iova else {
            return self.keep_mr(verb, pd, memory, zero_based, plain);
        };
        let register = library::ibv_reg_mr_iova().map_err(missing(verb))?;
        // SAFETY: as above.
        let other = |pd| unsafe { register(pd, start, length, iova, access) };
        self.keep_mr(verb, pd, memory, Some(iova), other)
    }

    /// Makes a region by `register`, which names its memory.
    pub(crate) fn keep_mr(
        &self,
        verb: Verb,
        pd: PdHandle,
        memory: Memory,
        iova: Option<u64>,
        register: impl FnOnce(*mut ibv_pd) -> *mut ibv_mr,
    ) -> Result<MrHandle> {
        let parent = self.pd(verb, pd)?;
        // SAFETY: the region is new.
        let raw = unsafe { parent.raw.make(verb, register) }?;
        Ok(self.insert(
            |t| &mut t.mrs,
            MrHandle::from_parts,
            pd.context(),
            Mr {
                raw,
                memory: RwLock::new(memory),
                iova: Mutex::new(iova),
                before: Mutex::default(),
                pds: Mutex::new(vec![parent]),
                context: pd.context(),
            },
        ))
    }

    /// Calls `copy` with the memory of a region after checking a range of it. The region keeps the
    /// memory until `copy` returns.
    pub(crate) fn own_bytes(
        &self,
        verb: Verb,
        mr: MrHandle,
        offset: usize,
        length: usize,
        copy: impl FnOnce(&Memory),
    ) -> Result<()> {
        let found = self.mr(verb, mr)?;
        let memory = found.memory.read();
        if !memory.is_ours(verb == Verb::WriteMr) {
            return Err(invalid(
                verb,
                "mr",
                "is memory that the backend cannot reach",
            ));
        }
        if memory.is_unmapped() {
            let (what, problem) = ("mr", "is not mapped");
            let cause = Cause::Argument { what, problem };
            return Err(Error::new(verb, ErrorKind::Fault, cause));
        }
        let start = memory.start() as u64;
        let addr = start.checked_add(offset as u64);
        if !addr.is_some_and(|addr| memory.holds(addr, length as u64)) {
            return Err(invalid(verb, "offset + length", "is outside the region"));
        }
        copy(&memory);
        Ok(())
    }

    /// Changes a region. It owns new memory from then on, whatever C returns.
    pub(crate) fn change_mr(&self, mr: MrHandle, change: &MrChange) -> Result<c_int> {
        let verb = Verb::ReregMr;
        let found = self.mr(verb, mr)?;
        let pd = change.pd.map(|pd| self.pd(verb, pd)).transpose()?;
        if let Some(pd) = change.pd {
            of_context(verb, pd, found.context)?;
        }
        let mut rights = change.access.unwrap_or_default();
        if change.access.is_none() && found.memory.read().is_on_demand() {
            rights = Access::ON_DEMAND;
        }
        let memory = match change.length.map(|length| Memory::owned(length, rights)) {
            Some(None) => return Err(no_memory(verb)),
            memory => memory.flatten(),
        };
        let mut flags = 0;
        for (named, flag) in [
            (memory.is_some(), IBV_REREG_MR_CHANGE_TRANSLATION),
            (pd.is_some(), IBV_REREG_MR_CHANGE_PD),
            (change.access.is_some(), IBV_REREG_MR_CHANGE_ACCESS),
        ] {
            flags |= if named { flag } else { 0 };
        }
        let held = pd.as_ref().map(|pd| pd.raw.hold(verb)).transpose()?;
        let raw_pd = held.as_ref().map_or(std::ptr::null_mut(), |pd| pd.get());
        let start = memory.as_ref().map_or(std::ptr::null_mut(), Memory::start);
        let length = change.length.unwrap_or(0);
        let access = change.access.unwrap_or_default();
        let mut own = found.memory.write();
        let writes = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
        if memory.is_none() && access.intersects(writes) && !own.may_be_written() {
            let cause = Cause::Argument {
                what: "access",
                problem: "asks for writes, and the memory was registered for reading",
            };
            return Err(Error::new(verb, ErrorKind::Access, cause));
        }
        let bits = access.bits() as c_int;
        let change = |mr| {
            // SAFETY: region and domain are live; the memory is kept as long as the region.
            unsafe { library::ibv_rereg_mr(mr, flags, raw_pd, start.cast(), length, bits) }
        };
        let result = found.raw.alone(verb, change)?;
        if let Some(memory) = memory {
            // The device may use the new memory or the old one, so both are kept.
            let other = match result {
                0 | IBV_REREG_MR_ERR_DO_FORK_OLD => {
                    *found.iova.lock() = None;
                    std::mem::replace(&mut *own, memory)
                }
                _ => memory,
            };
            found.before.lock().push(other);
        }
        drop(held);
        found.pds.lock().extend(pd);
        Ok(result)
    }

    /// Destroys an object after all its events that were read have been acknowledged. The result of
    /// `rest` is held until then.
    pub(crate) fn destroy_acknowledged<T: Kind, R>(
        &self,
        verb: Verb,
        raw: &Owned<T>,
        wait: Wait,
        unacked: impl Fn() -> u32,
        rest: impl Fn() -> Result<R>,
    ) -> Result<()> {
        self.when_acknowledged(verb, T::OBJECT, wait, unacked, || {
            let _rest = rest()?;
            destroy(verb, raw)
        })
    }

    /// Runs `work` while all events of an object that were read are acknowledged, and none can be
    /// read.
    pub(crate) fn when_acknowledged<R>(
        &self,
        verb: Verb,
        object: Object,
        wait: Wait,
        unacked: impl Fn() -> u32,
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let deadline = Deadline::new(wait);
        loop {
            self.wait_acknowledged(verb, object, &deadline, &unacked)?;
            let _reading = self.reading.lock();
            if unacked() == 0 {
                return work();
            }
        }
    }

    /// Waits until `unacked` is 0, as the library would, but bounded.
    fn wait_acknowledged(
        &self,
        verb: Verb,
        object: Object,
        deadline: &Deadline,
        unacked: impl Fn() -> u32,
    ) -> Result<()> {
        let mut tables = self.tables.lock();
        loop {
            let events = unacked();
            if events == 0 {
                return Ok(());
            }
            let cause = Cause::Unacknowledged { object, events };
            let Some(at) = deadline.instant(verb, &cause)? else {
                self.acknowledged.wait(&mut tables);
                continue;
            };
            self.acknowledged.wait_until(&mut tables, at);
        }
    }

    /// Counts acknowledgements after `tell` has passed them to the library: a thread that waits for
    /// the count may destroy the object at once.
    pub(crate) fn acknowledge(
        &self,
        verb: Verb,
        unacked: &AtomicU32,
        count: u32,
        what: impl std::fmt::Display,
        tell: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let _tables = self.tables.lock();
        let left = unacked.load(Ordering::Relaxed);
        if count > left {
            let text = format!(
                "{count} events of {what} are acknowledged, but only {left} were read and not \
                 acknowledged yet"
            );
            return Err(misuse(verb, text));
        }
        tell()?;
        unacked.store(left - count, Ordering::Relaxed);
        self.acknowledged.notify_all();
        Ok(())
    }

    /// Removes all objects of a context, children first.
    pub(crate) fn remove_objects_of(&self, context: Context) {
        let _reading = self.reading.lock();
        let mut tables = self.tables.lock();
        macro_rules! drain {
            ($($table:ident),*) => { $(
                for index in tables.$table.indices(|object| object.context() == context) {
                    drop(tables.$table.remove(index));
                }
            )* };
        }
        // Windows first: some drivers refuse to destroy a queue pair or a region that a window is
        // bound to.
        drain!(
            mws, qps, srqs, xrcds, ahs, mrs, dms, cqs, channels, pds, tds
        );
        tables.cq_handles.retain(|_, cq| cq.context() != context);
        tables.qp_handles.retain(|_, qp| qp.context() != context);
        tables.srq_handles.retain(|_, srq| srq.context() != context);
    }
}

/// Destroys an object that has no events.
pub(crate) fn destroy<T: Kind>(verb: Verb, raw: &Owned<T>) -> Result<()> {
    raw.destroy(verb, || Ok(()))
}
