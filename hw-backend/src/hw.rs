//! The backend: tables of objects behind handles, and what all verbs need of them.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::{Condvar, Mutex, RwLock};
use verbs_api::table::{Id, Table};
use verbs_api::{
    Access, BadHandle, Cause, CompChannel as ChannelHandle, Context, Cq as CqHandle, Element,
    Error, ErrorKind, Handle, Mr as MrHandle, MrChange, Object, Pd as PdHandle, Qp as QpHandle,
    Result, Srq as SrqHandle, Verb, Wait,
};

use crate::errno::{bad_handle, check, destroyed, invalid, made};
use crate::objects::{Ah, Channel, Cq, Device, InContext, Memory, Mr, Mw, Pd, Qp, Srq, Xrcd};
use crate::owner::Owned;
use crate::wait::Deadline;
use crate::{probe, sys};

/// RDMA devices through libibverbs: implements [`Verbs`].
///
/// Handles are checked before anything reaches C: what would make it touch memory that is gone, or
/// wait for ever, is stopped here. All other mistakes go to the driver. File descriptors are
/// non-blocking, and waits are on them, so that each can be bounded.
#[derive(Debug, Default)]
pub struct Hw {
    pub(crate) only: Option<Vec<String>>,
    pub(crate) tables: Mutex<Tables>,
    acknowledged: Condvar,
    /// Held while an event is read and counted, and while an object that has events is destroyed.
    /// The library's destroy waits until all events that were read are acknowledged, with all other
    /// calls on the object kept out; so none may be read that we do not know of.
    pub(crate) reading: Mutex<()>,
}

/// Dropped in this order: windows before what they are bound to.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    pub(crate) contexts: Table<Arc<Device>>,
    pub(crate) mws: Table<Arc<Mw>>,
    pub(crate) pds: Table<Arc<Pd>>,
    pub(crate) mrs: Table<Arc<Mr>>,
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

    /// Only the devices of these names, in this order; a name may stand there twice.
    pub fn only(names: &[String]) -> Self {
        Self {
            only: Some(names.to_vec()),
            ..Self::default()
        }
    }

    pub(crate) fn device(&self, verb: Verb, context: Context) -> Result<Arc<Device>> {
        let tables = self.tables.lock();
        let found = tables.contexts.get(context.index(), context.generation());
        found
            .cloned()
            .map_err(|problem| bad_handle(verb, Object::Context, problem))
    }

    /// What the device says of itself, and its completion vectors.
    pub(crate) fn device_attr(
        &self,
        verb: Verb,
        context: Context,
    ) -> Result<(sys::ibv_device_attr, c_int)> {
        let device = self.device(verb, context)?;
        let query = |context: *mut sys::ibv_context| {
            // SAFETY: the structure is plain numbers, for which zero is a value; the context is
            // live.
            let mut attr: sys::ibv_device_attr = unsafe { std::mem::zeroed() };
            // SAFETY: as above.
            let result = unsafe { sys::ibv_query_device(context, &mut attr) };
            // SAFETY: the context is live.
            (result, attr, unsafe { (*context).num_comp_vectors })
        };
        let queried = device.raw.with(query);
        let (result, attr, vectors) = queried.map_err(destroyed(verb, Object::Context))?;
        check(verb, result)?;
        Ok((attr, vectors))
    }

    pub(crate) fn find<H: Handle, T: InContext>(
        &self,
        table: impl FnOnce(&Tables) -> &Table<Arc<T>>,
        verb: Verb,
        handle: H,
    ) -> Result<Arc<T>> {
        let tables = self.tables.lock();
        let problem = match table(&tables).get(handle.index(), handle.generation()) {
            Ok(object) if object.context() == handle.context() => return Ok(object.clone()),
            Ok(_) => BadHandle::Foreign,
            Err(problem) => problem,
        };
        Err(bad_handle(verb, H::OBJECT, problem))
    }

    pub(crate) fn pd(&self, verb: Verb, pd: PdHandle) -> Result<Arc<Pd>> {
        self.find(|tables| &tables.pds, verb, pd)
    }

    pub(crate) fn mr(&self, verb: Verb, mr: MrHandle) -> Result<Arc<Mr>> {
        self.find(|tables| &tables.mrs, verb, mr)
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

    pub(crate) fn insert<H: Handle, T>(
        &self,
        table: impl FnOnce(&mut Tables) -> &mut Table<Arc<T>>,
        context: Context,
        object: T,
    ) -> H {
        let Id { index, generation } = table(&mut self.tables.lock()).insert(|_| Arc::new(object));
        H::from_parts(context, index, generation)
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
        let register = |pd| match iova {
            // SAFETY: `pd` is live; C checks the range, which `memory` (or the caller of `reg_mr`)
            // keeps valid.
            None => unsafe { sys::ibv_reg_mr(pd, start, length, access) },
            // SAFETY: as above.
            Some(iova) => unsafe { sys::ibv_reg_mr_iova(pd, start, length, iova, access) },
        };
        self.keep_mr(verb, pd, memory, iova.or(zero_based), register)
    }

    /// Makes a region by `register`, which has its memory.
    pub(crate) fn keep_mr(
        &self,
        verb: Verb,
        pd: PdHandle,
        memory: Memory,
        iova: Option<u64>,
        register: impl FnOnce(*mut sys::ibv_pd) -> *mut sys::ibv_mr,
    ) -> Result<MrHandle> {
        let parent = self.pd(verb, pd)?;
        let raw = parent.raw.with(|pd| made(verb, || register(pd)));
        let raw = raw.map_err(destroyed(verb, Object::Pd))??;
        // SAFETY: just made, and ours.
        let raw = unsafe { Owned::new(raw, sys::ibv_dereg_mr) };
        Ok(self.insert(
            |t| &mut t.mrs,
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

    /// Uses the memory of a region of our own, a range of which has been checked. It stays the
    /// region's meanwhile.
    pub(crate) fn own_bytes(
        &self,
        verb: Verb,
        mr: MrHandle,
        (offset, length): (usize, usize),
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
        let start = memory.start() as u64;
        let addr = start.checked_add(offset as u64);
        if !addr.is_some_and(|addr| memory.holds(addr, length as u64)) {
            return Err(invalid(verb, "offset + length", "is outside the region"));
        }
        copy(&memory);
        Ok(())
    }

    /// Changes a region: the memory it gets, if any, is its own from then on, whatever C says.
    pub(crate) fn change_mr(&self, mr: MrHandle, change: &MrChange) -> Result<c_int> {
        let verb = Verb::ReregMr;
        let found = self.mr(verb, mr)?;
        let pd = change.pd.map(|pd| self.pd(verb, pd)).transpose()?;
        if pd.as_ref().is_some_and(|pd| pd.context != found.context) {
            let cause = Cause::Mismatch {
                object: Object::Pd,
                must_share: "context",
            };
            return Err(Error::new(verb, ErrorKind::Invalid, cause));
        }
        let memory = match change.length.map(Memory::owned) {
            Some(None) => {
                let cause = Cause::Text("the machine has no memory for the region".into());
                return Err(Error::new(verb, ErrorKind::NoMemory, cause));
            }
            memory => memory.flatten(),
        };
        let mut flags = 0;
        for (named, flag) in [
            (memory.is_some(), sys::CHANGE_TRANSLATION),
            (pd.is_some(), sys::CHANGE_PD),
            (change.access.is_some(), sys::CHANGE_ACCESS),
        ] {
            flags |= if named { flag } else { 0 };
        }
        let held = pd.as_ref().map(|pd| pd.raw.hold()).transpose();
        let held = held.map_err(destroyed(verb, Object::Pd))?;
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
        let change = |mr| {
            // SAFETY: region and domain are live; the memory is kept as long as the region.
            unsafe {
                sys::ibv_rereg_mr(
                    mr,
                    flags,
                    raw_pd,
                    start.cast(),
                    length,
                    access.bits() as c_int,
                )
            }
        };
        let result = found.raw.alone(change);
        let result = result.map_err(destroyed(verb, Object::Mr))?;
        if let Some(memory) = memory {
            // As long as the change may have come about the new memory stays, and the old one too.
            let other = match result {
                0 | sys::ERR_DO_FORK_OLD => std::mem::replace(&mut *own, memory),
                _ => memory,
            };
            found.before.lock().push(other);
            *found.iova.lock() = None;
        }
        drop(held);
        found.pds.lock().extend(pd);
        Ok(result)
    }

    /// Destroys an object that has events, when all that were read have been acknowledged. What `rest`
    /// gives is held meanwhile.
    pub(crate) fn destroy_acknowledged<T, R>(
        &self,
        (verb, object): (Verb, Object),
        raw: &Owned<T>,
        wait: Wait,
        unacked: impl Fn() -> u32,
        rest: impl Fn() -> Result<R>,
    ) -> Result<()> {
        let deadline = Deadline::new(wait);
        loop {
            self.wait_acknowledged(verb, object, &deadline, &unacked)?;
            let _reading = self.reading.lock();
            if unacked() == 0 {
                let _rest = rest()?;
                return destroy(verb, object, raw);
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

    /// Counts acknowledgements, once `tell` has passed them to the library: whoever waits for the
    /// count may destroy the object at once.
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
            return Err(Error::new(
                verb,
                ErrorKind::Usage,
                Cause::Usage(text.into()),
            ));
        }
        tell()?;
        unacked.store(left - count, Ordering::Relaxed);
        self.acknowledged.notify_all();
        Ok(())
    }

    pub(crate) fn element(&self, event: &sys::AsyncEvent) -> Option<Element> {
        let tables = self.tables.lock();
        match event.event_type {
            0 => tables
                .cq_handles
                .get(&event.element)
                .copied()
                .map(Element::Cq),
            1..=7 | 16 => tables
                .qp_handles
                .get(&event.element)
                .copied()
                .map(Element::Qp),
            14 | 15 => tables
                .srq_handles
                .get(&event.element)
                .copied()
                .map(Element::Srq),
            9..=13 | 17 | 18 | 20 => Some(Element::Port(event.element as c_int as u8)),
            _ => Some(Element::Device),
        }
    }

    /// Takes all objects of a context out, children first.
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
        // Windows first: some drivers let no queue pair and no region go that one is bound to.
        drain!(mws, qps, srqs, xrcds, ahs, mrs, cqs, channels, pds);
        tables.cq_handles.retain(|_, cq| cq.context() != context);
        tables.qp_handles.retain(|_, qp| qp.context() != context);
        tables.srq_handles.retain(|_, srq| srq.context() != context);
    }
}

/// Destroys an object that nothing has to be waited for.
pub(crate) fn destroy<T>(verb: Verb, object: Object, raw: &Owned<T>) -> Result<()> {
    let result = raw
        .destroy(|| Ok::<(), Error>(()))?
        .map_err(destroyed(verb, object))?;
    check(verb, result)
}
