//! More objects for what the process has already: `ibv_import_device` and its like.
//!
//! A context is named by a duplicate of its command descriptor, protection domains and regions by the
//! field `handle`. All contexts of a descriptor are one for the engine, and so are their objects. What
//! another process has is in another engine, and cannot be imported.

use std::ffi::c_int;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::null_mut;

use verbs_abi::{ibv_context, ibv_mr, ibv_pd};
use verbs_api::{Handle, Verbs};

use crate::context::{self, OpenDevice};
use crate::domain::{self, Pd};
use crate::engine::{engine, unobserved};
use crate::object::{CObject, Kind, context_of};
use crate::region::{self, Mr, Of};
use crate::result::{Errno, Result, UNSUPPORTED, last_errno, pointer, silent};

/// What command descriptors are called, which another process can see.
const NAME: &std::ffi::CStr = c"verbsim-context";

/// A command descriptor. There is no file of a kernel to send commands to; only which one it is counts.
pub(crate) fn command_fd() -> Result<OwnedFd> {
    // SAFETY: the name is a text with an end.
    let fd = unsafe { libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: just made, and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Which file a descriptor is of.
fn file_of(fd: c_int) -> Option<(u64, u64)> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: there is room for it; the number may be of no descriptor, and then is refused.
    if unsafe { libc::fstat(fd, stat.as_mut_ptr()) } < 0 {
        return None;
    }
    // SAFETY: the call has filled it.
    let stat = unsafe { stat.assume_init() };
    Some((stat.st_dev, stat.st_ino))
}

/// The descriptor belongs to the context that is returned, which closes it.
pub(crate) extern "C" fn import_device(cmd_fd: c_int) -> *mut ibv_context {
    pointer(|| {
        let _alone = engine().contexts_change.lock();
        let file = file_of(cmd_fd).ok_or(Errno(libc::EINVAL))?;
        for context in OpenDevice::arena().iter() {
            let Some(own) = context.cmd_fd() else {
                continue;
            };
            if own == cmd_fd {
                // Not a duplicate: both would close it.
                return Err(Errno(libc::EINVAL));
            }
            if file_of(own) == Some(file) {
                // SAFETY: one of ours, which are never freed.
                let device = unsafe { (*context.seen()).device };
                return context::make(device, context.handle, || {
                    // SAFETY: the program gives it away (C's contract).
                    Ok(unsafe { OwnedFd::from_raw_fd(cmd_fd) })
                });
            }
        }
        let name = fs::read_link(format!("/proc/self/fd/{cmd_fd}")).unwrap_or_default();
        let of_other_process = name.to_string_lossy().contains(&*NAME.to_string_lossy());
        Err(match of_other_process {
            true => UNSUPPORTED,
            false => Errno(libc::EINVAL),
        })
    })
}

pub(crate) extern "C" fn import_pd(context: *mut ibv_context, handle: u32) -> *mut ibv_pd {
    pointer(|| {
        let of = context_of(context)?;
        let first = CObject::<Pd>::numbered(handle).ok_or(Errno(libc::EINVAL))?;
        if first.handle.context() != of || first.is_deallocated() {
            return Err(Errno(libc::EINVAL));
        }
        let raw = || ibv_pd { context, handle: 0 };
        Ok(CObject::<Pd>::make_as(first, domain::More::default(), raw)?.seen())
    })
}

/// Its address is not said.
pub(crate) extern "C" fn import_mr(pd: *mut ibv_pd, handle: u32) -> *mut ibv_mr {
    pointer(|| {
        let pd = CObject::<Pd>::find(pd)?;
        let first = CObject::<Mr>::numbered(handle).ok_or(Errno(libc::EINVAL))?;
        if first.handle.context() != pd.handle.context() {
            return Err(Errno(libc::EINVAL));
        }
        let length = unobserved().query_mr(first.handle)?.length as usize;
        region::make(pd, first.handle, Of::Imported(first), null_mut(), length)
    })
}

/// What was not imported stays as it is.
pub(crate) extern "C" fn unimport_pd(pd: *mut ibv_pd) {
    silent(|| {
        let pd = CObject::<Pd>::find(pd)?;
        if pd.is_first() || pd.is_parent() {
            return Err(Errno(libc::EINVAL));
        }
        pd.end()
    });
}

/// As above.
pub(crate) extern "C" fn unimport_mr(mr: *mut ibv_mr) {
    silent(|| {
        let mr = CObject::<Mr>::find(mr)?;
        if mr.is_first() {
            return Err(Errno(libc::EINVAL));
        }
        mr.end()?;
        mr.more.pd.lock().left();
        Ok(())
    });
}
