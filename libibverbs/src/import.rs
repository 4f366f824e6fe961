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

use crate::context;
use crate::domain::{self, Pd};
use crate::engine::{engine, unobserved};
use crate::object::{CObject, context_of};
use crate::region::{self, Mr, Of};
use crate::result::{Refusal, Result, pointer, silent};

/// What command descriptors are called, which another process can see.
const NAME: &std::ffi::CStr = c"verbsim-context";

/// A command descriptor. There is no file of a kernel to send commands to; only which one it is counts.
pub(crate) fn command_fd() -> Result<OwnedFd> {
    // SAFETY: the name is a text with an end.
    let fd = unsafe { libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(Refusal::by_system("memfd_create"));
    }
    // SAFETY: just made, and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Which file a descriptor is of: its device and inode.
pub(crate) type File = (u64, u64);

pub(crate) fn file_of(fd: c_int) -> Option<File> {
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
    pointer("ibv_import_device", (), || {
        let file = file_of(cmd_fd).ok_or_else(|| {
            let what = format!("{cmd_fd} is no descriptor");
            Refusal::new(libc::EINVAL, what)
        })?;
        let open = &mut *engine().contexts.lock();
        let same = open.get(&file).map_or(&[][..], Vec::as_slice);
        if same.iter().any(|of| of.cmd_fd() == Some(cmd_fd)) {
            // Both would close it.
            let what =
                format!("descriptor {cmd_fd} is that of an open context, and no duplicate of it");
            return Err(Refusal::new(libc::EINVAL, what));
        }
        if let Some(context) = same.first().cloned() {
            // SAFETY: one of ours, and held.
            let device = unsafe { (*context.seen()).device };
            return context::make_among(open, device, context.handle, || {
                // SAFETY: the program gives it away (C's contract).
                Ok(unsafe { OwnedFd::from_raw_fd(cmd_fd) })
            });
        }
        let name = fs::read_link(format!("/proc/self/fd/{cmd_fd}")).unwrap_or_default();
        let of_other_process = name.to_string_lossy().contains(&*NAME.to_string_lossy());
        Err(match of_other_process {
            true => Refusal::unsupported("the context is of another process"),
            false => {
                let what = format!("descriptor {cmd_fd} is of no context");
                Refusal::new(libc::EINVAL, what)
            }
        })
    })
}

pub(crate) extern "C" fn import_pd(context: *mut ibv_context, handle: u32) -> *mut ibv_pd {
    pointer("ibv_import_pd", context, || {
        let of = context_of(context)?;
        let first = CObject::<Pd>::with_handle(handle)?;
        if first.handle.context() != of || first.is_deallocated() {
            return Err(unknown(handle));
        }
        let raw = || ibv_pd { context, handle: 0 };
        Ok(CObject::<Pd>::make_as(first.hold(), domain::More::default(), raw)?.seen())
    })
}

/// No object of the context has this number.
#[cold]
pub(crate) fn unknown(handle: u32) -> Refusal {
    let what = format!("the context has no object of this kind with the handle {handle}");
    Refusal::new(libc::EINVAL, what)
}

/// Only what was imported can be given up so.
#[cold]
pub(crate) fn not_imported() -> Refusal {
    Refusal::new(libc::EINVAL, "the object was not imported")
}

/// Its address is not said.
pub(crate) extern "C" fn import_mr(pd: *mut ibv_pd, handle: u32) -> *mut ibv_mr {
    pointer("ibv_import_mr", pd, || {
        let pd = CObject::<Pd>::find(pd)?;
        let first = CObject::<Mr>::with_handle(handle)?;
        if first.handle.context() != pd.handle.context() {
            return Err(unknown(handle));
        }
        let attr = unobserved().query_mr(first.handle);
        let length = attr.map_err(Refusal::unobserved)?.length as usize;
        let of = Of::Imported(first.hold());
        region::make(&pd, first.handle, of, null_mut(), length)
    })
}

/// What was not imported stays as it is.
pub(crate) extern "C" fn unimport_pd(pd: *mut ibv_pd) {
    silent("ibv_unimport_pd", pd, || {
        let pd = CObject::<Pd>::find(pd)?;
        if pd.is_first() || pd.is_parent() {
            return Err(not_imported());
        }
        pd.end()
    });
}

/// As above.
pub(crate) extern "C" fn unimport_mr(mr: *mut ibv_mr) {
    silent("ibv_unimport_mr", mr, || {
        let mr = CObject::<Mr>::find(mr)?;
        if mr.is_first() {
            return Err(not_imported());
        }
        mr.end()?;
        mr.more.pd.lock().left();
        Ok(())
    });
}
