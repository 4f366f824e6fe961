//! Device memory: a small memory of the device itself, which programs reach by copies and as regions
//! whose addresses are offsets.
//!
//! Here it is memory of this library, and for the engine such a region is one of the caller's memory.
//! A device whose regions cannot have offsets for addresses has none.

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;

use verbs_abi::{ibv_alloc_dm_attr, ibv_context, ibv_dm, ibv_mr, ibv_pd};
use verbs_api::sync::Mutex;
use verbs_api::{Access, Context};
use verbs_sim::Class;

use crate::context::OpenDevice;
use crate::domain::{Pd, Users};
use crate::engine::engine;
use crate::import;
use crate::object::{ArenaOf, CObject, Kind, Objects, context_of};
use crate::region::{self, Of};
use crate::result::{Refusal, Result, no_values, pointer, present, same_context, silent, status};

/// Device memories.
pub(crate) struct Dm;

impl Kind for Dm {
    const NAME: &'static str = "struct ibv_dm";
    type Raw = ibv_dm;
    type Seen = ibv_dm;
    type Handle = Context;
    type More = More;

    fn arena_in(objects: &Objects) -> &ArenaOf<Self> {
        &objects.dms
    }

    fn number(raw: *mut ibv_dm) -> Option<*mut u32> {
        // SAFETY: within the structure, which is not read.
        Some(unsafe { &raw mut (*raw).handle })
    }
}

/// What a device memory has in addition to its structure; one that was imported has that of the first.
#[derive(Default)]
pub(crate) struct More {
    /// Its bytes, until it is freed.
    memory: Mutex<Option<Memory>>,
    /// Its regions.
    users: Users,
}

/// Bytes that the engine, and copies of the program, read and write.
struct Memory {
    pages: Box<[Page]>,
    length: usize,
    /// Whose they are.
    device: usize,
}

#[repr(C, align(4096))]
struct Page(UnsafeCell<[u8; PAGE]>);

const PAGE: usize = 4096;

// SAFETY: the bytes are used through pointers alone, as those of a program are.
unsafe impl Sync for Page {}

/// Bytes of device memory that a device has.
const SIZE: usize = 128 << 10;

impl Memory {
    fn new(device: usize, length: usize) -> Result<Self> {
        let mut taken = engine().device_memory.lock();
        let devices = taken.len().max(device + 1);
        taken.resize(devices, 0);
        if length > SIZE - taken[device] {
            let left = SIZE - taken[device];
            let what = format!("{length} bytes are asked for, and {left} of {SIZE} are free");
            return Err(Refusal::new(libc::ENOMEM, what));
        }
        taken[device] += length;
        let page = || Page(UnsafeCell::new([0; PAGE]));
        Ok(Self {
            pages: (0..length.div_ceil(PAGE)).map(|_| page()).collect(),
            length,
            device,
        })
    }

    /// Where a part of it begins.
    fn part(&self, offset: u64, length: usize) -> Option<*mut u8> {
        let end = offset.checked_add(length as u64)?;
        let within = end <= self.length as u64;
        let start = self.pages.as_ptr().cast_mut().cast::<u8>();
        within.then(|| start.wrapping_add(offset as usize))
    }
}

impl Memory {
    /// A part that is not there.
    #[cold]
    fn lacks(&self, errno: c_int, offset: u64, length: usize) -> Refusal {
        let own = self.length;
        let what = format!(
            "{length} bytes from {offset} on are not in the device memory, which has {own}"
        );
        Refusal::new(errno, what)
    }
}

#[cold]
fn freed() -> Refusal {
    Refusal::of(
        Class::Destroyed,
        libc::EINVAL,
        "the device memory was freed",
    )
}

impl Drop for Memory {
    fn drop(&mut self) {
        engine().device_memory.lock()[self.device] -= self.length;
    }
}

impl CObject<Dm> {
    /// One more region is of it.
    fn entered(&self) {
        self.more.users.add();
    }

    /// A region of it is gone.
    pub(crate) fn left(&self) {
        self.more.users.remove();
    }
}

/// How much device memory a device has: all or nothing.
pub(crate) fn max_size() -> usize {
    match engine().config.profile().behavior.zero_based_mr {
        true => SIZE,
        false => 0,
    }
}

pub(crate) extern "C" fn alloc_dm(
    context: *mut ibv_context,
    attr: *mut ibv_alloc_dm_attr,
) -> *mut ibv_dm {
    pointer("ibv_alloc_dm", context, || {
        let of = CObject::<OpenDevice>::find(context)?;
        if max_size() == 0 {
            let what = "the device has no memory of its own";
            return Err(Refusal::unsupported(what));
        }
        present(attr)?;
        // SAFETY: the program's, valid for the call (C's contract).
        let attr = unsafe { attr.read() };
        let is_aligned = attr.log_align_req <= PAGE.ilog2();
        if attr.comp_mask != 0 || attr.length == 0 || !is_aligned {
            let what = format!(
                "length is {}, log_align_req {}, comp_mask {:#x}: allowed are 1 byte or more, up to {}, and 0",
                attr.length,
                attr.log_align_req,
                attr.comp_mask,
                PAGE.ilog2()
            );
            return Err(Refusal::new(libc::EINVAL, what));
        }
        let memory = Memory::new(of.device()?, attr.length)?;
        let more = More {
            memory: Mutex::new(Some(memory)),
            users: Users::default(),
        };
        let dm = CObject::<Dm>::make(of.handle, more, || raw(context))?;
        let mut all = engine().dms.lock();
        all.entry(of.handle).or_default().insert(dm.id(), dm.hold());
        Ok(dm.seen())
    })
}

fn raw(context: *mut ibv_context) -> ibv_dm {
    ibv_dm {
        context,
        memcpy_to_dm: Some(memcpy_to_dm),
        memcpy_from_dm: Some(memcpy_from_dm),
        comp_mask: 0,
        handle: 0,
    }
}

pub(crate) extern "C" fn free_dm(dm: *mut ibv_dm) -> c_int {
    status("ibv_free_dm", dm, || {
        let dm = CObject::<Dm>::find(dm)?;
        let first = dm.first();
        let mut memory = first.more.memory.lock();
        first.more.users.check_none()?;
        drop(memory.take().ok_or_else(freed)?);
        drop(memory);
        if let Some(all) = engine().dms.lock().get_mut(&first.handle) {
            all.remove(&first.id());
        }
        first.retire();
        dm.retire();
        Ok(())
    })
}

/// With a context all that it has left goes.
pub(crate) fn free_all(context: Context) {
    let left = engine().dms.lock().remove(&context);
    for dm in left.into_iter().flat_map(BTreeMap::into_values) {
        drop(dm.more.memory.lock().take());
        dm.retire();
    }
}

pub(crate) extern "C" fn reg_dm_mr(
    pd: *mut ibv_pd,
    dm: *mut ibv_dm,
    offset: u64,
    length: usize,
    access: c_uint,
) -> *mut ibv_mr {
    pointer("ibv_reg_dm_mr", pd, || {
        let pd = CObject::<Pd>::find(pd)?;
        let dm = CObject::<Dm>::find_first(dm)?;
        let access = Access::from_bits_retain(access);
        same_context(pd.handle, dm.handle)?;
        if !access.contains(Access::ZERO_BASED) {
            let what = "access lacks IBV_ACCESS_ZERO_BASED, which a region of device memory has";
            return Err(Refusal::new(libc::EINVAL, what));
        }
        let memory = dm.more.memory.lock();
        let memory = memory.as_ref().ok_or_else(freed)?;
        let part = memory.part(offset, length);
        let start = part.ok_or_else(|| memory.lacks(libc::EINVAL, offset, length))?;
        let sim = &engine().sim;
        // SAFETY: the memory stays as long as it has users, which this region is one of, or until
        // the context is closed, and its regions before it.
        let handle = unsafe { sim.reg_mr_as(pd.handle, start, length, None, access) }?;
        let mr = region::make(
            &pd,
            handle,
            Of::DeviceMemory(dm.clone()),
            null_mut(),
            length,
        )?;
        dm.entered();
        Ok(mr)
    })
}

extern "C" fn memcpy_to_dm(
    dm: *mut ibv_dm,
    offset: u64,
    from: *const c_void,
    length: usize,
) -> c_int {
    status("ibv_memcpy_to_dm", dm, || {
        let copy = |part: *mut u8| {
            // SAFETY: what is copied is the program's, so long (C's contract).
            unsafe { part.copy_from(from.cast(), length) }
        };
        with_part(dm, (offset, length), from, copy)
    })
}

extern "C" fn memcpy_from_dm(
    to: *mut c_void,
    dm: *mut ibv_dm,
    offset: u64,
    length: usize,
) -> c_int {
    status("ibv_memcpy_from_dm", dm, || {
        let copy = |part: *mut u8| {
            // SAFETY: where it is copied to is the program's, so long (C's contract).
            unsafe { part.copy_to(to.cast(), length) }
        };
        with_part(dm, (offset, length), to, copy)
    })
}

/// Copies between a part of the memory and the program's. They are of 4 bytes each, as with NICs
/// that have such memory.
fn with_part(
    dm: *mut ibv_dm,
    (offset, length): (u64, usize),
    own: *const c_void,
    copy: impl FnOnce(*mut u8),
) -> Result<()> {
    let dm = CObject::<Dm>::find_first(dm)?;
    let memory = dm.more.memory.lock();
    let memory = memory.as_ref().ok_or_else(freed)?;
    let part = memory.part(offset, length);
    let part = part.ok_or_else(|| memory.lacks(libc::EFAULT, offset, length))?;
    if !offset.is_multiple_of(4) || !length.is_multiple_of(4) {
        let what = format!("offset {offset} or length {length} is not a multiple of 4");
        return Err(Refusal::new(libc::EINVAL, what));
    }
    if own.is_null() && length > 0 {
        return Err(no_values(own, length));
    }
    copy(part);
    Ok(())
}

pub(crate) extern "C" fn import_dm(context: *mut ibv_context, handle: u32) -> *mut ibv_dm {
    pointer("ibv_import_dm", context, || {
        let of = context_of(context)?;
        let first = CObject::<Dm>::with_handle(handle)?;
        if first.handle != of || first.more.memory.lock().is_none() {
            return Err(import::unknown(handle));
        }
        Ok(CObject::<Dm>::make_as(first.hold(), More::default(), || raw(context))?.seen())
    })
}

/// What was not imported stays as it is.
pub(crate) extern "C" fn unimport_dm(dm: *mut ibv_dm) {
    silent("ibv_unimport_dm", dm, || {
        let dm = CObject::<Dm>::find(dm)?;
        match dm.is_first() {
            true => Err(import::not_imported()),
            false => dm.end(),
        }
    });
}
