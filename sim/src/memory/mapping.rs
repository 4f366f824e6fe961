//! Memory of a file, mapped for a region of a dma-buf.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::null_mut;

use rustix::fs::{FileType, MemfdFlags, fstat, ftruncate, memfd_create};
use rustix::io::Errno;
use verbs_api::ErrorKind;

use super::{NoMapping, Span, process};

/// The refusal of a file that is something else.
const OTHER: NoMapping = NoMapping(ErrorKind::Invalid, "fd", "is not a dma-buf");

/// The largest page of any machine: mappings start on a page.
const LARGEST_PAGE: u64 = 64 << 10;

/// Pages of a file, which a region uses alone.
#[derive(Debug)]
pub(crate) struct Mapping {
    first: *mut u8,
    length: usize,
    /// The bytes of the region.
    span: Span,
}

// SAFETY: nothing else has the pointer, and any thread may unmap memory.
unsafe impl Send for Mapping {}

impl Drop for Mapping {
    #[cfg_attr(any(), mutants::skip)] // cost
    fn drop(&mut self) {
        // SAFETY: `new` mapped these pages, and their region was removed.
        unsafe { libc::munmap(self.first.cast(), self.length) };
    }
}

impl Mapping {
    /// Maps `length` bytes from `offset` on. A file that is open for reading only cannot be mapped
    /// to be `written`.
    pub(crate) fn new(
        fd: BorrowedFd<'_>,
        offset: u64,
        length: usize,
        written: bool,
    ) -> Result<Self, NoMapping> {
        let closed = NoMapping(ErrorKind::BadFile, "fd", "is closed");
        let file = fstat(fd).map_err(|_| closed)?;
        let end = offset.checked_add(length as u64);
        match FileType::from_raw_mode(file.st_mode) {
            // The kernel's own dma-bufs have no type.
            FileType::RegularFile | FileType::Unknown => {}
            _ => return Err(OTHER),
        }
        if !end.is_some_and(|end| i64::try_from(end).is_ok_and(|end| end <= file.st_size)) {
            let problem = "is behind the end of the dma-buf";
            return Err(NoMapping(ErrorKind::Invalid, "offset + length", problem));
        }
        let before = (offset % LARGEST_PAGE) as usize;
        // A region of no bytes has a page, too.
        let all = (before + length).max(1);
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let start = (offset - before as u64) as libc::off_t;
        let first = match map(fd, start, all, both) {
            Err(Errno::ACCESS | Errno::PERM) if !written => map(fd, start, all, libc::PROT_READ),
            mapped => mapped,
        };
        let first = first.map_err(|errno| match errno {
            Errno::ACCESS | Errno::PERM => {
                NoMapping(ErrorKind::Access, "fd", "is open for reading only")
            }
            Errno::NOMEM => NoMapping(ErrorKind::NoMemory, "length", "is too much to map"),
            _ => OTHER,
        })?;
        let span = Span {
            start: first.wrapping_add(before),
            length,
        };
        Ok(Self {
            first,
            length: all,
            span,
        })
    }

    pub(super) fn span(&self) -> Span {
        self.span
    }

    /// Whether the kernel copies the memory for a process. That of some devices it does not, and no
    /// process can shorten it.
    pub(super) fn is_checked(&self) -> bool {
        let first = self.span.part(0, self.span.length.min(1));
        process::read(first, &mut vec![0; first.length]).is_ok()
    }
}

fn map(
    fd: BorrowedFd<'_>,
    start: libc::off_t,
    length: usize,
    rights: i32,
) -> Result<*mut u8, Errno> {
    let (shared, fd) = (libc::MAP_SHARED, fd.as_raw_fd());
    // SAFETY: a new mapping at an address that the kernel chooses changes no other memory.
    let first = unsafe { libc::mmap(null_mut(), length, rights, shared, fd, start) };
    if first == libc::MAP_FAILED {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL));
    }
    Ok(first.cast())
}

/// A new file of zeros in memory, which can be mapped.
pub(crate) fn export(length: usize) -> Result<OwnedFd, NoMapping> {
    let failed = |errno: Errno| {
        let kind = ErrorKind::from_errno(errno.raw_os_error());
        NoMapping(
            kind,
            "length",
            "is of memory that the system does not share",
        )
    };
    let file = memfd_create("verbsim-dmabuf", MemfdFlags::CLOEXEC).map_err(failed)?;
    ftruncate(file.as_fd(), length as u64).map_err(failed)?;
    Ok(file)
}
