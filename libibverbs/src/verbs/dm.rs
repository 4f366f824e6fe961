//! Device memory: a small memory of the device itself. Programs reach it by copies, and as regions
//! whose addresses are offsets.

use std::ffi::{c_int, c_void};
use std::slice::{from_raw_parts, from_raw_parts_mut};

use verbs_abi::{ibv_alloc_dm_attr, ibv_context, ibv_dm};
use verbs_api::{DmInit, Handle, Verbs};

use super::context::is_context;
use crate::c::{CObject, Refusal, kinds, new_object, no_values, passed, silent, status};
use crate::engine::{sim, unobserved};

kinds! {
    /// Device memories.
    Dm: ibv_dm as ibv_dm, Dm, (), numbered;
}

pub(crate) extern "C" fn alloc_dm(
    context: *mut ibv_context,
    attr: *mut ibv_alloc_dm_attr,
) -> *mut ibv_dm {
    new_object("ibv_alloc_dm", context, |of| {
        // SAFETY: the program's, valid for the call (C's contract).
        let attr = unsafe { passed(attr) }?;
        if attr.comp_mask != 0 {
            let what = format!("comp_mask is {:#x}, allowed is 0", attr.comp_mask);
            return Err(Refusal::invalid(what));
        }
        let init = DmInit::new(attr.length).log_align(attr.log_align_req);
        let handle = sim().alloc_dm(of.handle, &init)?;
        CObject::<Dm>::make(handle, (), || raw(context))
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
        sim().free_dm(dm.handle)?;
        dm.first().retire();
        dm.retire();
        Ok(())
    })
}

/// No memory is longer.
const LONGEST: usize = isize::MAX as usize;

fn too_long(length: usize) -> Refusal {
    Refusal::new(libc::EFAULT, format!("no memory has {length} bytes"))
}

extern "C" fn memcpy_to_dm(
    dm: *mut ibv_dm,
    offset: u64,
    from: *const c_void,
    length: usize,
) -> c_int {
    status("ibv_memcpy_to_dm", dm, |dm| {
        let bytes = match length {
            // A copy of no bytes needs no memory.
            0 => &[],
            _ if from.is_null() => return Err(no_values(from, length)),
            _ if length > LONGEST => return Err(too_long(length)),
            // SAFETY: the source is the program's, `length` bytes (C's contract).
            _ => unsafe { from_raw_parts(from.cast(), length) },
        };
        Ok(sim().copy_to_dm(dm.handle, offset, bytes)?)
    })
}

extern "C" fn memcpy_from_dm(
    to: *mut c_void,
    dm: *mut ibv_dm,
    offset: u64,
    length: usize,
) -> c_int {
    status("ibv_memcpy_from_dm", dm, |dm| {
        let bytes: &mut [u8] = match length {
            0 => &mut [],
            _ if to.is_null() => return Err(no_values(to, length)),
            _ if length > LONGEST => return Err(too_long(length)),
            // SAFETY: the target is the program's, `length` bytes (C's contract).
            _ => unsafe { from_raw_parts_mut(to.cast(), length) },
        };
        Ok(sim().copy_from_dm(dm.handle, offset, bytes)?)
    })
}

pub(crate) extern "C" fn import_dm(context: *mut ibv_context, handle: u32) -> *mut ibv_dm {
    new_object("ibv_import_dm", context, |of| {
        // A copy of no bytes shows whether the memory is still there.
        let is_there = |dm| unobserved().copy_from_dm(dm, 0, &mut []).is_ok();
        let first = CObject::<Dm>::with_handle(handle, |dm| {
            dm.handle.context() == of.handle && is_there(dm.handle)
        })?;
        CObject::<Dm>::make_as(first.hold(), (), || raw(context))
    })
}

/// `ibv_unimport_dm`. A device memory that was not imported stays.
pub(crate) extern "C" fn unimport_dm(dm: *mut ibv_dm) {
    silent("ibv_unimport_dm", dm, |dm| dm.end_import());
}
