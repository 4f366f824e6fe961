//! Device memory: a small memory of the device itself. Programs reach it by copies, and as regions
//! whose addresses are offsets.
//!
//! Here it is memory of this library, and for the engine such a region is one of the caller's
//! memory. A device whose regions cannot have offsets for addresses has no such memory.

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};

use verbs_abi::{ibv_alloc_dm_attr, ibv_context, ibv_dm};
use verbs_api::Context;
use verbs_api::sync::Mutex;
use verbs_sim::Class;

use super::context::is_context;
use super::device::number_of;
use super::domain::Users;
use crate::base::per_process::PerProcess;
use crate::c::{
    CObject, Held, Refusal, Result, kinds, new_object, no_values, passed, silent, status,
};
use crate::engine::engine;

kinds! {
    /// Device memories, which the engine does not know. Their handle is that of their context.
    Dm: ibv_dm as ibv_dm, Context, More, numbered,
        named |_dm| "the device memory".to_owned();
}

/// Device memories that are not freed, by their contexts and numbers.
static ALL: PerProcess<Mutex<ByContext>> = PerProcess::new();

type ByContext = BTreeMap<Context, BTreeMap<u64, Held<Dm>>>;

/// Bytes that are allocated, by device.
static ALLOCATED: PerProcess<Mutex<Vec<usize>>> = PerProcess::new();

/// Values of a device memory that its structure lacks. One that was imported uses those of the
/// first.
#[derive(Default)]
pub(crate) struct More {
    /// Its bytes, until it is freed.
    memory: Mutex<Option<Memory>>,
    /// Its regions.
    pub(super) users: Users,
}

/// Bytes that the engine, and copies of the program, read and write.
struct Memory {
    pages: Box<[Page]>,
    length: usize,
    /// The number of the device.
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
        let mut taken = ALLOCATED.get_or_default().lock();
        // Devices are counted from their first use on.
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
}

fn freed() -> Refusal {
    Refusal::of(
        Class::Destroyed,
        libc::EINVAL,
        "the device memory was freed",
    )
}

impl Drop for Memory {
    fn drop(&mut self) {
        ALLOCATED.get_or_default().lock()[self.device] -= self.length;
    }
}

impl CObject<Dm> {
    /// Calls `register` with the start of a part. The region that it makes is then a user of the
    /// memory.
    pub(super) fn register<T>(
        &self,
        offset: u64,
        length: usize,
        register: impl FnOnce(*mut u8) -> Result<T>,
    ) -> Result<T> {
        self.with_part(offset, length, libc::EINVAL, |part| {
            // Under the lock of the memory, so that `free_dm` sees the new user.
            register(part).inspect(|_| self.more.users.add())
        })
    }

    /// Calls `work` with the start of a part, which stays for the call. `errno` is the error for a
    /// part that is not within the memory.
    fn with_part<T>(
        &self,
        offset: u64,
        length: usize,
        errno: c_int,
        work: impl FnOnce(*mut u8) -> Result<T>,
    ) -> Result<T> {
        let memory = self.more.memory.lock();
        let memory = memory.as_ref().ok_or_else(freed)?;
        let own = memory.length;
        let end = offset.checked_add(length as u64);
        if end.is_none_or(|end| end > own as u64) {
            let what = format!(
                "{length} bytes from {offset} on are not in the device memory, which has {own}"
            );
            return Err(Refusal::new(errno, what));
        }
        let start = memory.pages.as_ptr().cast_mut().cast::<u8>();
        work(start.wrapping_add(offset as usize))
    }

    /// Copies between a part and the program's memory, in units of 4 bytes as NICs do.
    fn copy(
        &self,
        offset: u64,
        length: usize,
        own: *const c_void,
        copy: impl FnOnce(*mut u8),
    ) -> Result<()> {
        self.first()
            .with_part(offset, length, libc::EFAULT, |part| {
                if !offset.is_multiple_of(4) || !length.is_multiple_of(4) {
                    return Err(Refusal::invalid(format!(
                        "offset {offset} or length {length} is not a multiple of 4"
                    )));
                }
                // A copy of no bytes needs no memory.
                if own.is_null() && length > 0 {
                    return Err(no_values(own, length));
                }
                copy(part);
                Ok(())
            })
    }
}

/// The size of the device memory: 0 for devices whose regions cannot have offsets for addresses.
pub(super) fn max_size() -> usize {
    if engine().config.profile().behavior.zero_based_mr {
        SIZE
    } else {
        0
    }
}

pub(crate) extern "C" fn alloc_dm(
    context: *mut ibv_context,
    attr: *mut ibv_alloc_dm_attr,
) -> *mut ibv_dm {
    new_object("ibv_alloc_dm", context, |of| {
        if max_size() == 0 {
            return Err(Refusal::unsupported("the device has no memory of its own"));
        }
        // SAFETY: the program's, valid for the call (C's contract).
        let attr = unsafe { passed(attr) }?;
        // The memory starts on a page, which is the largest alignment here.
        let is_aligned = attr.log_align_req <= PAGE.ilog2();
        if attr.comp_mask != 0 || attr.length == 0 || !is_aligned {
            let what = format!(
                "length is {}, log_align_req {}, comp_mask {:#x}: allowed are 1 byte or more, up to {}, and 0",
                attr.length,
                attr.log_align_req,
                attr.comp_mask,
                PAGE.ilog2()
            );
            return Err(Refusal::invalid(what));
        }
        // SAFETY: one of ours, which stays for the call.
        let device = number_of(unsafe { (*of.seen()).device })?;
        let memory = Memory::new(device, attr.length)?;
        let more = More {
            memory: Mutex::new(Some(memory)),
            users: Users::default(),
        };
        let dm = CObject::<Dm>::make(of.handle, more, || raw(context))?;
        let mut all = ALL.get_or_default().lock();
        all.entry(of.handle)
            .or_default()
            .insert(dm.number, dm.hold());
        Ok(dm)
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
    status("ibv_free_dm", dm, |dm| {
        let first = dm.first();
        let mut memory = first.more.memory.lock();
        first.more.users.check_none()?;
        drop(memory.take().ok_or_else(freed)?);
        drop(memory);
        if let Some(all) = ALL.get_or_default().lock().get_mut(&first.handle) {
            all.remove(&first.number);
        }
        first.retire();
        dm.retire();
        Ok(())
    })
}

/// Frees the device memories that a context has left when it is closed.
pub(super) fn free_all(context: Context) {
    let left = ALL.get_or_default().lock().remove(&context);
    for dm in left.into_iter().flat_map(BTreeMap::into_values) {
        drop(dm.more.memory.lock().take());
        dm.retire();
    }
}

extern "C" fn memcpy_to_dm(
    dm: *mut ibv_dm,
    offset: u64,
    from: *const c_void,
    length: usize,
) -> c_int {
    status("ibv_memcpy_to_dm", dm, |dm| {
        dm.copy(offset, length, from, |part| {
            // SAFETY: the source is the program's, `length` bytes (C's contract).
            unsafe { part.copy_from(from.cast(), length) }
        })
    })
}

extern "C" fn memcpy_from_dm(
    to: *mut c_void,
    dm: *mut ibv_dm,
    offset: u64,
    length: usize,
) -> c_int {
    status("ibv_memcpy_from_dm", dm, |dm| {
        dm.copy(offset, length, to, |part| {
            // SAFETY: the target is the program's, `length` bytes (C's contract).
            unsafe { part.copy_to(to.cast(), length) }
        })
    })
}

pub(crate) extern "C" fn import_dm(context: *mut ibv_context, handle: u32) -> *mut ibv_dm {
    new_object("ibv_import_dm", context, |of| {
        let first = CObject::<Dm>::with_handle(handle, |dm| {
            dm.handle == of.handle && dm.more.memory.lock().is_some()
        })?;
        CObject::<Dm>::make_as(first.hold(), More::default(), || raw(context))
    })
}

/// `ibv_unimport_dm`. A device memory that was not imported stays.
pub(crate) extern "C" fn unimport_dm(dm: *mut ibv_dm) {
    silent("ibv_unimport_dm", dm, |dm| dm.end_import());
}
