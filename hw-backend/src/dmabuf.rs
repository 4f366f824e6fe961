//! Regions of a dma-buf, and an exporter to test with.

use std::ffi::{c_int, c_ulong};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use verbs_abi::library;
use verbs_api::{
    Access, Cause, Context, ErrorKind, Mr as MrHandle, Pd as PdHandle, Result, Verb, Verbs,
};

use crate::errno::missing;
use crate::hw::Hw;
use crate::objects::Memory;

/// Bytes of a dma-buf, from `offset` on, and the address of the first.
pub(crate) struct Part {
    pub(crate) offset: u64,
    pub(crate) length: usize,
    pub(crate) iova: u64,
}

impl Hw {
    /// A region of a part of a dma-buf.
    pub(crate) fn register_dmabuf(
        &self,
        pd: PdHandle,
        part: &Part,
        fd: BorrowedFd<'_>,
        access: Access,
    ) -> Result<MrHandle> {
        let verb = Verb::RegDmabufMr;
        let Part {
            offset,
            length,
            iova,
        } = *part;
        self.pd(verb, pd)?;
        let register = library::ibv_reg_dmabuf_mr().map_err(missing(verb))?;
        // The library judges what is not there.
        let memory = Memory::mapped(fd, offset, length).unwrap_or(Memory::None);
        let (fd, access) = (fd.as_raw_fd(), access.bits() as c_int);
        self.keep_mr(verb, pd, memory, Some(iova), |pd| {
            // SAFETY: the domain is live. The kernel checks the rest.
            unsafe { register(pd, offset, length, iova, fd, access) }
        })
    }

    /// Whether a device has such regions. One that has none refuses them for any descriptor.
    pub(crate) fn has_dmabufs(&self, context: Context) -> Result<bool> {
        let pd = self.alloc_pd(context)?;
        let file = File::open("/dev/null");
        let made = file
            .map(|other| self.reg_dmabuf_mr(pd, 0, 4096, 0, other.as_fd(), Access::LOCAL_WRITE));
        if let Ok(Ok(mr)) = made {
            self.dereg_mr(mr)?;
        }
        self.dealloc_pd(pd)?;
        let lacking = [ErrorKind::NotSupported, ErrorKind::NotImplemented];
        Ok(!matches!(made, Ok(Err(error)) if lacking.contains(&error.kind())))
    }
}

/// A multiple of the machine's page.
const PAGE: u64 = 64 << 10;

/// `struct udmabuf_create`
#[repr(C)]
struct Create {
    memfd: u32,
    flags: u32,
    offset: u64,
    size: u64,
}

/// Exports zero bytes: a `memfd` to a simulated device, a `udmabuf` to a real one, if the device
/// has regions of dma-bufs.
pub(crate) fn export(length: usize, is_simulated: bool, has_regions: bool) -> Result<OwnedFd> {
    let verb = Verb::ExportDmabuf;
    let failed = |error: std::io::Error| {
        verbs_api::Error::from_raw(verb, error.raw_os_error().unwrap_or(libc::EIO))
    };
    let lacks = || {
        let cause = Cause::Text("there is no exporter (/dev/udmabuf), or nothing to import".into());
        verbs_api::Error::new(verb, ErrorKind::NotSupported, cause)
    };
    if !has_regions {
        return Err(lacks());
    }
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("verbsim-dmabuf", flags).map_err(|errno| failed(errno.into()))?;
    let size = if is_simulated {
        length as u64
    } else {
        // The kernel exports whole pages.
        (length as u64).next_multiple_of(PAGE)
    };
    ftruncate(&file, size).map_err(|errno| failed(errno.into()))?;
    // Its regions are read and written through a mapping.
    fcntl_add_seals(&file, SealFlags::SHRINK).map_err(|errno| failed(errno.into()))?;
    if is_simulated {
        return Ok(file);
    }
    let exporter = File::open("/dev/udmabuf").map_err(|_| lacks())?;
    /// `UDMABUF_CREATE`
    const CREATE: c_ulong = 0x4018_7542;
    /// `UDMABUF_FLAGS_CLOEXEC`
    const CLOEXEC: u32 = 1;
    let create = Create {
        memfd: file.as_raw_fd() as u32,
        flags: CLOEXEC,
        offset: 0,
        size,
    };
    // SAFETY: the call reads the structure, which is that of the kernel's header.
    let made = unsafe { libc::ioctl(exporter.as_raw_fd(), CREATE, &raw const create) };
    if made < 0 {
        return Err(failed(std::io::Error::last_os_error()));
    }
    // SAFETY: the call returned a new descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}
