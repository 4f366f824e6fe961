//! Memory regions.

use std::ffi::{c_int, c_uint, c_void};
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use verbs_abi::{
    IBV_REG_MR_MASK_ADDR, IBV_REG_MR_MASK_BUF, IBV_REG_MR_MASK_FD, IBV_REG_MR_MASK_FD_OFFSET,
    IBV_REG_MR_MASK_IOVA, IBV_REREG_MR_CHANGE_ACCESS, IBV_REREG_MR_CHANGE_PD,
    IBV_REREG_MR_CHANGE_TRANSLATION, IBV_REREG_MR_ERR_CMD, IBV_REREG_MR_ERR_INPUT, ibv_buf, ibv_dm,
    ibv_mr, ibv_mr_init_attr, ibv_pd, ibv_sge,
};
use verbs_api::{Access, AdviseFlags, Capabilities, Handle, MrChange, Verbs};

use super::buffer;
use super::context::is_context;
use super::dm::Dm;
use super::domain::Pd;
use super::mapped::missing;
use crate::c::{CObject, Found, Held, Refusal, Result, kinds, new_object, present, silent, status};
use crate::engine::{sim, unobserved};

kinds! {
    /// Memory regions, each with its rights. A null region and an import have none.
    Mr: ibv_mr as ibv_mr, Mr, Option<AtomicU32>, numbered Mr;
}

pub(crate) extern "C" fn reg_mr(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    access: c_int,
) -> *mut ibv_mr {
    reg_mr_iova2(pd, addr, length, addr as u64, access as c_uint)
}

/// `ibv_reg_mr_iova`, and `ibv_reg_mr_iova2`, whose rights are unsigned. The macro `ibv_reg_mr`
/// calls the latter, with the memory's address as `iova`.
pub(crate) extern "C" fn reg_mr_iova2(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_uint,
) -> *mut ibv_mr {
    new_object("ibv_reg_mr", pd, |pd| {
        register(&pd, addr, length, iova, access)
    })
}

pub(crate) extern "C" fn reg_dmabuf_mr(
    pd: *mut ibv_pd,
    offset: u64,
    length: usize,
    iova: u64,
    fd: c_int,
    access: c_int,
) -> *mut ibv_mr {
    new_object("ibv_reg_dmabuf_mr", pd, |pd| {
        register_dmabuf(&pd, offset, length, iova, fd, access as c_uint)
    })
}

/// `ibv_reg_mr_ex`. DMA handles are not supported.
pub(crate) extern "C" fn reg_mr_ex(pd: *mut ibv_pd, attr: *mut ibv_mr_init_attr) -> *mut ibv_mr {
    const FILE: u64 = IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET;
    const MEMORY: u64 = IBV_REG_MR_MASK_ADDR | IBV_REG_MR_MASK_IOVA | IBV_REG_MR_MASK_BUF;
    new_object("ibv_reg_mr_ex", pd, |pd| {
        present(attr)?;
        // SAFETY: the program's, valid for the call. It knows the fields that the mask names (C's
        // contract).
        let (length, access, mask) = unsafe { ((*attr).length, (*attr).access, (*attr).comp_mask) };
        let has = |bits| mask & bits != 0;
        if mask & !(FILE | MEMORY) != 0 {
            return Err(Refusal::unsupported(format!(
                "comp_mask is {mask:#x}: no device here has more than memory"
            )));
        }
        // Exactly one of them has the memory.
        if has(IBV_REG_MR_MASK_ADDR) == has(FILE) {
            return Err(Refusal::invalid(format!(
                "comp_mask is {mask:#x}: a region is of an address or of a file"
            )));
        }
        if has(FILE) {
            if mask != FILE | IBV_REG_MR_MASK_IOVA {
                return Err(Refusal::invalid(format!(
                    "comp_mask is {mask:#x}: a region of a file has an offset and an iova"
                )));
            }
            // SAFETY: the mask names them.
            let (offset, iova, fd) = unsafe { ((*attr).fd_offset, (*attr).iova, (*attr).fd) };
            return register_dmabuf(&pd, offset, length, iova, fd, access as c_uint);
        }
        // SAFETY: the mask names it.
        let addr = unsafe { (*attr).addr };
        if has(IBV_REG_MR_MASK_BUF) {
            // SAFETY: the mask names it.
            buffer::check_part(&pd, unsafe { (*attr).buf }, addr, length)?;
        }
        // SAFETY: the mask names it.
        let iova = has(IBV_REG_MR_MASK_IOVA).then(|| unsafe { (*attr).iova });
        let iova = iova.unwrap_or(addr as u64);
        register(&pd, addr, length, iova, access as c_uint)
    })
}

fn register(
    pd: &Found<Pd>,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_uint,
) -> Result<Found<Mr>> {
    let access = Access::from_bits_retain(access);
    // A region has the addresses of its memory, unless the program chooses others.
    let iova = Some(iova).filter(|iova| *iova != addr as u64);
    // SAFETY: a program that registers memory keeps it until it deregisters it (C's contract).
    let handle = unsafe { sim().reg_mr_as(pd.handle, addr.cast(), length, iova, access) }?;
    // The kernel checks the arguments before it pins pages, so their errors come first.
    if let Err(refusal) = has_memory(addr, length, access) {
        unobserved().dereg_mr(handle)?;
        return Err(refusal);
    }
    make(pd, handle, None, rights(access), addr, length)
}

fn rights(access: Access) -> Option<AtomicU32> {
    Some(AtomicU32::new(access.bits()))
}

/// A region of a dma-buf. Its structure has the offset for an address, as with libibverbs.
fn register_dmabuf(
    pd: &Found<Pd>,
    offset: u64,
    length: usize,
    iova: u64,
    fd: c_int,
    access: c_uint,
) -> Result<Found<Mr>> {
    let access = Access::from_bits_retain(access);
    // A negative number is not that of a descriptor, and neither is the greatest.
    let fd = if fd < 0 { c_int::MAX } else { fd };
    // SAFETY: the program passes it for this call (C's contract). Only `fstat` and `mmap` get it,
    // which refuse a closed one.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let handle = sim().reg_dmabuf_mr(pd.handle, offset, length, iova, fd, access)?;
    let addr = std::ptr::without_provenance_mut(offset as usize);
    make(pd, handle, None, None, addr, length)
}

/// The structure of a region in this domain. `first` is the region that it imports, if any.
fn make(
    pd: &Found<Pd>,
    handle: verbs_api::Mr,
    first: Option<Held<Mr>>,
    rights: Option<AtomicU32>,
    addr: *mut c_void,
    length: usize,
) -> Result<Found<Mr>> {
    let attr = unobserved().query_mr(handle)?;
    let raw = || ibv_mr {
        context: pd.context(),
        pd: pd.seen(),
        addr,
        length,
        handle: 0,
        lkey: attr.lkey,
        rkey: attr.rkey,
    };
    match first {
        Some(first) => CObject::<Mr>::make_as(first, rights, raw),
        None => CObject::<Mr>::make(handle, rights, raw),
    }
}

/// Refuses memory that the program does not have, or may not use with these rights.
fn has_memory(addr: *mut c_void, length: usize, access: Access) -> Result<()> {
    let start = addr as u64;
    let memory = start..start.saturating_add(length as u64);
    match missing(memory, access.contains(Access::LOCAL_WRITE)) {
        // Work finds out whether the memory of an on-demand region is there.
        _ if access.contains(Access::ON_DEMAND) => Ok(()),
        None => Ok(()),
        Some(missing) => {
            let what = format!("of {length} bytes from {addr:p} on, {missing}");
            Err(Refusal::new(libc::EFAULT, what))
        }
    }
}

pub(crate) extern "C" fn alloc_null_mr(pd: *mut ibv_pd) -> *mut ibv_mr {
    new_object("ibv_alloc_null_mr", pd, |pd| {
        let handle = sim().alloc_null_mr(pd.handle)?;
        make(&pd, handle, None, None, null_mut(), usize::MAX)
    })
}

/// `ibv_rereg_mr`. The result tells the program the state of the region; the reason is in `errno`.
/// Errors that libibverbs finds leave the region as it was. It cannot distinguish other errors from
/// a failure half way, so neither does this function, though here nothing has changed.
pub(crate) extern "C" fn rereg_mr(
    mr: *mut ibv_mr,
    flags: c_int,
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    access: c_int,
) -> c_int {
    let mut left = IBV_REREG_MR_ERR_CMD;
    let result = status("ibv_rereg_mr", mr, |found| {
        // A null region, an import and a region of a dma-buf have no memory that could change.
        let Some(own) = &found.more else {
            left = IBV_REREG_MR_ERR_INPUT;
            let what = "a region that was imported, of a dma-buf, or of no memory, stays as it is";
            return Err(Refusal::invalid(what));
        };
        if !makes_sense(flags, addr, length, access) {
            left = IBV_REREG_MR_ERR_INPUT;
            return Err(Refusal::invalid(format!(
                "flags {flags:#x} do not go with {length} bytes from {addr:p} on and access {access:#x}"
            )));
        }
        let can = sim().capabilities(found.handle.context())?;
        // Drivers of software devices lack the call.
        if !can.contains(Capabilities::REREG_MR) {
            return Err(Refusal::unsupported("the device cannot change a region"));
        }
        let new_pd = match flags & IBV_REREG_MR_CHANGE_PD {
            0 => None,
            _ => Some(CObject::<Pd>::find(pd)?),
        };
        let new_access = match flags & IBV_REREG_MR_CHANGE_ACCESS {
            0 => None,
            _ => Some(Access::from_bits_retain(access as c_uint)),
        };
        let change = MrChange {
            pd: new_pd.as_ref().map(|pd| pd.handle),
            access: new_access,
            length: (flags & IBV_REREG_MR_CHANGE_TRANSLATION != 0).then_some(length),
        };
        let old = Access::from_bits_retain(own.load(Ordering::Relaxed));
        let mut access = new_access.unwrap_or(old);
        // Only other memory is of another kind.
        if change.length.is_none() {
            access.set(Access::ON_DEMAND, old.contains(Access::ON_DEMAND));
        }
        // The kernel checks only memory that the call names.
        if change.length.is_some() {
            has_memory(addr, length, access)?;
        }
        // SAFETY: a program that registers memory keeps it until it deregisters it (C's contract).
        unsafe { sim().rereg_mr_as(found.handle, &change, addr.cast()) }?;
        own.store(access.bits(), Ordering::Relaxed);
        let attr = unobserved().query_mr(found.handle)?;
        let raw = found.raw();
        // SAFETY: one of ours, which stays for the call. The program reads it only after the call.
        unsafe {
            if change.length.is_some() {
                (*raw).addr = addr;
                (*raw).length = length;
            }
            if let Some(pd) = &new_pd {
                (*raw).pd = pd.seen();
            }
            (*raw).lkey = attr.lkey;
            (*raw).rkey = attr.rkey;
        }
        Ok(())
    });
    if result == 0 { 0 } else { left }
}

/// `ibv_advise_mr`
pub(crate) extern "C" fn advise_mr(
    pd: *mut ibv_pd,
    advice: u32,
    flags: u32,
    list: *mut ibv_sge,
    count: u32,
) -> c_int {
    status("ibv_advise_mr", pd, |pd| {
        if count > 0 {
            present(list)?;
        }
        // SAFETY: the program's, of this length, valid for the call (C's contract).
        let list = (0..count as usize).map(|at| unsafe { ibv_sge::from_c(&*list.add(at)) });
        let list: Vec<_> = list.collect();
        let flags = AdviseFlags::from_bits_retain(flags);
        Ok(sim().advise_mr(pd.handle, advice.into(), flags, &list)?)
    })
}

/// Whether libibverbs would pass the call to the device.
fn makes_sense(flags: c_int, addr: *mut c_void, length: usize, access: c_int) -> bool {
    let known =
        IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS;
    let has = |flag| flags & flag != 0;
    let translates_nothing =
        has(IBV_REREG_MR_CHANGE_TRANSLATION) && (length == 0 || addr.is_null());
    let access_is_ignored = access != 0 && !has(IBV_REREG_MR_CHANGE_ACCESS);
    flags & !known == 0 && !translates_nothing && !access_is_ignored
}

pub(crate) extern "C" fn dereg_mr(mr: *mut ibv_mr) -> c_int {
    status("ibv_dereg_mr", mr, |mr| {
        sim().dereg_mr(mr.handle)?;
        let first = mr.first();
        if !mr.is_first() {
            // A second call for the import must fail.
            mr.end()?;
        }
        first.retire();
        Ok(())
    })
}

pub(crate) extern "C" fn reg_dm_mr(
    pd: *mut ibv_pd,
    dm: *mut ibv_dm,
    offset: u64,
    length: usize,
    access: c_uint,
) -> *mut ibv_mr {
    new_object("ibv_reg_dm_mr", pd, |pd| {
        let dm = CObject::<Dm>::find(dm)?.handle;
        let access = Access::from_bits_retain(access);
        let handle = sim().reg_dm_mr(pd.handle, dm, offset, length, access)?;
        make(&pd, handle, None, rights(access), null_mut(), length)
    })
}

pub(crate) extern "C" fn reg_buf_mr(
    pd: *mut ibv_pd,
    buf: *mut ibv_buf,
    addr: *mut c_void,
    length: usize,
    access: c_int,
) -> *mut ibv_mr {
    new_object("ibv_reg_buf_mr", pd, |pd| {
        buffer::check_part(&pd, buf, addr, length)?;
        register(&pd, addr, length, addr as u64, access as c_uint)
    })
}

/// `ibv_import_mr`. The caller does not say the address, so the structure has none.
pub(crate) extern "C" fn import_mr(pd: *mut ibv_pd, handle: u32) -> *mut ibv_mr {
    new_object("ibv_import_mr", pd, |pd| {
        let context = pd.handle.context();
        let first = CObject::<Mr>::with_handle(handle, |mr| mr.handle.context() == context)?;
        let attr = unobserved().query_mr(first.handle);
        let length = attr.map_err(Refusal::unobserved)?.length as usize;
        let (handle, first) = (first.handle, Some(first.hold()));
        make(&pd, handle, first, None, null_mut(), length)
    })
}

/// `ibv_unimport_mr`. A region that was not imported stays.
pub(crate) extern "C" fn unimport_mr(mr: *mut ibv_mr) {
    silent("ibv_unimport_mr", mr, |mr| mr.end_import());
}
