//! XRC domains.
use std::ffi::c_int;
use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use verbs_abi::{
    IBV_XRCD_INIT_ATTR_FD, IBV_XRCD_INIT_ATTR_OFLAGS, ibv_context, ibv_xrcd, ibv_xrcd_init_attr,
};
use verbs_api::sync::Mutex;
use verbs_api::{ErrorKind, Verbs, XrcdInit};

use crate::c::{CObject, Refusal, Result, kinds, known_bits, new_object, passed, status};
use crate::engine::sim;

kinds! {
    /// XRC domains, each with the file that names it. While the file is open, its inode is not
    /// used again.
    Xrcd: ibv_xrcd as ibv_xrcd, Xrcd, Mutex<Option<File>>;
}

const FD_AND_OFLAGS: u32 = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;

/// `ibv_open_xrcd`. All descriptors of one file name one domain.
pub(crate) extern "C" fn open_xrcd(
    context: *mut ibv_context,
    attr: *mut ibv_xrcd_init_attr,
) -> *mut ibv_xrcd {
    new_object("ibv_open_xrcd", context, |of| {
        // SAFETY: the program's, valid for the call (C's contract).
        let attr = unsafe { passed(attr) }?;
        known_bits("comp_mask", attr.comp_mask, FD_AND_OFLAGS)?;
        if attr.comp_mask != FD_AND_OFLAGS {
            return Err(Refusal::invalid(
                "comp_mask does not name both fd and oflags",
            ));
        }
        let file = match attr.fd {
            // A private domain has no file.
            -1 => None,
            fd => Some(duplicate(fd)?),
        };
        let name = file.as_ref().map(name).transpose()?;
        let mut init = match &name {
            None => XrcdInit::private(),
            Some(name) => XrcdInit::of(Path::new(name)),
        };
        init.create = attr.oflags & libc::O_CREAT != 0;
        init.exclusive = attr.oflags & libc::O_EXCL != 0;
        let handle = sim().open_xrcd(of.handle, &init);
        let handle = handle.map_err(|error| match error.kind() {
            // The kernel returns this for a domain that it does not know.
            ErrorKind::NotFound => Refusal::expected(libc::EAGAIN),
            _ => error.into(),
        })?;
        CObject::<Xrcd>::make(handle, Mutex::new(file), || ibv_xrcd { context })
    })
}

fn duplicate(fd: c_int) -> Result<File> {
    // SAFETY: the call fails if no descriptor has the number.
    let fd = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
    if fd < 0 {
        return Err(Refusal::by_system("duplicating the descriptor"));
    }
    // SAFETY: just made, and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

/// The name of a file for the engine.
fn name(file: &File) -> Result<String> {
    let of = file
        .metadata()
        .map_err(|_| Refusal::by_system("fstat of the descriptor"))?;
    Ok(format!("device {} inode {}", of.dev(), of.ino()))
}

pub(crate) extern "C" fn close_xrcd(xrcd: *mut ibv_xrcd) -> c_int {
    status("ibv_close_xrcd", xrcd, |xrcd| {
        sim().close_xrcd(xrcd.handle)?;
        drop(xrcd.more.lock().take());
        xrcd.retire();
        Ok(())
    })
}
