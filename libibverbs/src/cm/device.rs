//! The contexts that ids have: one for each device, which nobody closes.

use std::ffi::c_int;
use std::ptr::null_mut;

use verbs_abi::{ibv_context, ibv_pd, int};
use verbs_api::{Context, Pd as PdHandle};

use super::unobserved_cm;
use crate::context;
use crate::domain::{self, Pd};
use crate::engine::engine;
use crate::import::command_fd;
use crate::object::CObject;
use crate::result::{Refusal, Result, pointer};

/// What the ids of a device have, as programs see it.
pub(super) struct OfIds {
    context: *mut ibv_context,
    pd: *mut ibv_pd,
}

// SAFETY: the pointers are those of objects, which any thread may have.
unsafe impl Send for OfIds {}

/// Null-terminated, in the order of the device list.
pub(crate) extern "C" fn get_devices(count: *mut c_int) -> *mut *mut ibv_context {
    pointer("rdma_get_devices", (), || {
        let handles = unobserved_cm()?.cm_devices()?;
        let contexts: Result<Vec<_>> = handles.into_iter().map(context_of_ids).collect();
        let contexts = contexts?;
        // SAFETY: the size is above zero. Zero bytes are null pointers, the last of which ends the list.
        let list = unsafe { libc::calloc(contexts.len() + 1, size_of::<*mut ibv_context>()) };
        let list: *mut *mut ibv_context = list.cast();
        if list.is_null() {
            return Err(Refusal::by_system("calloc"));
        }
        // SAFETY: there is room for so many and one more.
        unsafe { list.copy_from_nonoverlapping(contexts.as_ptr(), contexts.len()) };
        if !count.is_null() {
            // SAFETY: the program's, to be written (C's contract).
            unsafe { count.write_unaligned(int(contexts.len() as u32)) };
        }
        Ok(list)
    })
}

pub(crate) extern "C" fn free_devices(list: *mut *mut ibv_context) {
    // SAFETY: one of `get_devices`, or null (C's contract).
    unsafe { libc::free(list.cast()) }
}

/// The structure of a context of `cm_devices`.
pub(super) fn context_of_ids(handle: Context) -> Result<*mut ibv_context> {
    let mut devices = engine().cm.devices.lock();
    if let Some(known) = devices.get(&handle) {
        return Ok(known.context);
    }
    let handles = unobserved_cm()?.cm_devices()?;
    let number = handles.iter().position(|of| *of == handle);
    let device = number.and_then(|number| engine().devices().nth(number));
    let device = device.ok_or(Refusal::expected(libc::ENODEV))?;
    let context = context::make(device, handle, command_fd)?;
    let pd = null_mut();
    devices.insert(handle, OfIds { context, pd });
    Ok(context)
}

/// The structure of the protection domain that all ids of a device have.
pub(super) fn pd_of_ids(context: Context, handle: PdHandle) -> Result<*mut ibv_pd> {
    let seen = context_of_ids(context)?;
    let mut devices = engine().cm.devices.lock();
    let known = devices
        .get_mut(&context)
        .ok_or(Refusal::expected(libc::EIO))?;
    if known.pd.is_null() {
        let raw = || ibv_pd {
            context: seen,
            handle: 0,
        };
        known.pd = CObject::<Pd>::make(handle, domain::More::default(), raw)?.seen();
    }
    Ok(known.pd)
}
