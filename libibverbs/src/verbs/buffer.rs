//! Buffers that the library allocates for a program (`ibv_alloc_buf`).
//!
//! A driver may allocate them in memory of a special kind. Here they are pages of the process, as
//! with every driver without such memory, and a region of one is a region of the program's memory.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use verbs_abi::{ibv_buf, ibv_pd};
use verbs_api::sync::Mutex;
use verbs_sim::Class;

use super::domain::Pd;
use crate::c::{
    CObject, Found, Held, Refusal, Result, kinds, or_minus_one, pointer, present, silent,
};

kinds! {
    /// Buffers, which the engine does not know. Their handle is that of their domain.
    Buffer: ibv_buf as ibv_buf, Pd, More, named |_buffer| "the buffer".to_owned();
}

/// Values of a buffer that its structure lacks.
pub(crate) struct More {
    pd: Held<Pd>,
    memory: Mutex<Option<Pages>>,
    size: usize,
}

/// Memory of the C library, aligned to a page. Dropping it frees the memory.
struct Pages(*mut c_void);

// SAFETY: nothing here reads the memory, and any thread may free it.
unsafe impl Send for Pages {}

impl Pages {
    fn new(size: usize) -> Result<Self> {
        const PAGE: usize = 4096;
        let mut memory = null_mut();
        // SAFETY: the call writes a pointer. The alignment is a power of two.
        match unsafe { libc::posix_memalign(&mut memory, PAGE, size) } {
            0 => Ok(Self(memory)),
            errno => {
                let what = format!("there is no memory for a buffer of {size} bytes");
                Err(Refusal::new(errno, what))
            }
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated by `posix_memalign`, and freed once.
        unsafe { libc::free(self.0) }
    }
}

/// `ibv_alloc_buf`. Returns the memory, and writes the buffer's handle to `buf`.
pub(crate) extern "C" fn alloc_buf(
    pd: *mut ibv_pd,
    size: usize,
    buf: *mut *mut ibv_buf,
) -> *mut c_void {
    pointer("ibv_alloc_buf", pd, |domain| {
        present(buf)?;
        let memory = Pages::new(size)?;
        let addr = memory.0;
        let raw = || ibv_buf {
            addr,
            size,
            pd,
            dmabuf_fd: -1,
        };
        let more = More {
            pd: domain.hold(),
            memory: Mutex::new(Some(memory)),
            size,
        };
        let made = CObject::<Buffer>::make(domain.handle, more, raw)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { buf.write(made.seen()) };
        Ok(addr)
    })
}

/// `ibv_free_buf`. A region of the buffer does not keep the memory: as after `free`, no work may
/// use it.
pub(crate) extern "C" fn free_buf(buf: *mut ibv_buf) {
    silent("ibv_free_buf", buf, |buffer| {
        buffer.end()?;
        drop(buffer.more.memory.lock().take());
        Ok(())
    });
}

/// Refuses memory that is not a part of this buffer, and a buffer of another domain.
pub(crate) fn check_part(
    pd: &Found<Pd>,
    buf: *mut ibv_buf,
    addr: *mut c_void,
    length: usize,
) -> Result<()> {
    let buffer = CObject::<Buffer>::find(buf)?;
    if !std::ptr::eq(&*buffer.more.pd, &**pd) {
        let what = "the buffer was allocated in another protection domain";
        return Err(Refusal::of(Class::OtherParent, libc::EINVAL, what));
    }
    let start = buffer.more.memory.lock().as_ref().map(|pages| pages.0);
    let start = start.unwrap_or(null_mut()) as u64;
    let size = buffer.more.size as u64;
    let offset = (addr as u64).checked_sub(start);
    // The sum of offset and length could overflow.
    if offset.is_none_or(|offset| offset > size || length as u64 > size - offset) {
        return Err(Refusal::invalid(format!(
            "{length} bytes from {addr:p} on are not in the buffer of {size} bytes"
        )));
    }
    Ok(())
}

/// `ibv_export_buf_dmabuf_fd`. Buffers are not dma-bufs.
pub(crate) extern "C" fn export_buf_dmabuf_fd(buf: *mut ibv_buf) -> c_int {
    or_minus_one("ibv_export_buf_dmabuf_fd", buf, |_| {
        let what = "it is plain memory, which has no descriptor";
        Err(Refusal::new(libc::ENODATA, what))
    })
}
