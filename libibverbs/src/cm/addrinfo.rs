//! Names of hosts and services: `rdma_getaddrinfo`, on top of the system's `getaddrinfo`.
use std::ffi::{c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::null_mut;

use libc::{addrinfo, sockaddr, socklen_t};
use verbs_abi::{
    RAI_FAMILY, RAI_NUMERICHOST, RAI_PASSIVE, RAI_SA, RDMA_PS_IPOIB, RDMA_PS_TCP, RDMA_PS_UDP,
    rdma_addrinfo,
};
use verbs_api::QpType;

use crate::c::{Refusal, Result, or_minus_one, present, silent};

/// `rdma_getaddrinfo`: the first address of a name. Returns the error of `getaddrinfo` if that
/// fails.
pub(crate) extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const rdma_addrinfo,
    found: *mut *mut rdma_addrinfo,
) -> c_int {
    or_minus_one("rdma_getaddrinfo", (), |()| {
        present(found)?;
        Ok(match resolve(node, service, hints)? {
            Ok(info) => {
                // SAFETY: the program's, to be written (C's contract).
                unsafe { found.write(info.into_raw()) };
                0
            }
            Err(failed) => failed,
        })
    })
}

/// A list of `rdma_getaddrinfo`. Dropping it frees the list.
pub(super) struct List(*mut rdma_addrinfo);

// SAFETY: nothing else has the list.
unsafe impl Send for List {}

/// The resolution of names by an id.
#[derive(Default)]
pub(super) enum Resolving {
    /// Nothing was resolved, or the program has the result.
    #[default]
    Nothing,
    Begun,
    Ended(List),
}

impl List {
    /// Gives the list to the program, which frees it.
    pub(super) fn into_raw(self) -> *mut rdma_addrinfo {
        let list = ManuallyDrop::new(self);
        list.0
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: it is a list of this file.
        unsafe { free(self.0) }
    }
}

/// Resolves names. The inner error is that of `getaddrinfo`.
pub(super) fn resolve(
    node: *const c_char,
    service: *const c_char,
    hints: *const rdma_addrinfo,
) -> Result<std::result::Result<List, c_int>> {
    if !hints.is_null() {
        present(hints)?;
    }
    // SAFETY: the program's, valid for the call, or null (C's contract).
    let hints = unsafe { hints.as_ref() };
    if node.is_null() && service.is_null() && hints.is_none() {
        return Err(Refusal::invalid("node, service and hints are all NULL"));
    }
    if hints.is_some_and(|hints| hints.ai_flags & RAI_SA != 0) {
        return Err(Refusal::unsupported(
            "ai_flags has RAI_SA, and no fabric here has services in its subnet administration",
        ));
    }
    let list = begun(hints)?;
    if !node.is_null() || !service.is_null() {
        // SAFETY: the names are the program's (C's contract); the other is ours.
        let failed = unsafe { look_up(node, service, hints, list.0) };
        if failed != 0 {
            return Ok(Err(failed));
        }
    }
    if let Some(hints) = hints {
        // SAFETY: the hints are the program's (C's contract); the other is ours.
        unsafe { copy_hints(hints, &mut *list.0) }?;
    }
    Ok(Ok(list))
}

/// A list without addresses, with the attributes of the hints.
fn begun(hints: Option<&rdma_addrinfo>) -> Result<List> {
    // SAFETY: the size is above zero; zero bytes are a value of it.
    let info: *mut rdma_addrinfo = unsafe { libc::calloc(1, size_of::<rdma_addrinfo>()) }.cast();
    if info.is_null() {
        return Err(Refusal::by_system("calloc"));
    }
    if let Some(hints) = hints {
        // SAFETY: just made.
        let info = unsafe { &mut *info };
        info.ai_flags = hints.ai_flags;
        info.ai_family = hints.ai_family;
        info.ai_qp_type = hints.ai_qp_type;
        info.ai_port_space = hints.ai_port_space;
    }
    Ok(List(info))
}

/// # Safety
/// The names are those of C or null; `info` is one of ours.
unsafe fn look_up(
    node: *const c_char,
    service: *const c_char,
    hints: Option<&rdma_addrinfo>,
    info: *mut rdma_addrinfo,
) -> c_int {
    let asked = asked(hints);
    let mut list: *mut addrinfo = null_mut();
    // SAFETY: the caller's promise.
    let failed = unsafe { libc::getaddrinfo(node, service, &asked, &mut list) };
    if failed != 0 {
        return failed;
    }
    // SAFETY: the list has a first entry, whose address has the length in the entry.
    unsafe {
        let first = &*list;
        let info = &mut *info;
        // Without hints the type of socket decides.
        if info.ai_port_space == 0 {
            let (ps, qp_type) = match first.ai_socktype {
                libc::SOCK_DGRAM => (RDMA_PS_UDP, QpType::Ud),
                _ => (RDMA_PS_TCP, QpType::Rc),
            };
            (info.ai_port_space, info.ai_qp_type) = (ps as c_int, number(qp_type));
        }
        // The hints may name a port space alone.
        if info.ai_qp_type == 0 {
            info.ai_qp_type = number(match info.ai_port_space as u32 {
                RDMA_PS_UDP | RDMA_PS_IPOIB => QpType::Ud,
                _ => QpType::Rc,
            });
        }
        info.ai_family = first.ai_family;
        let (addr, length) = match info.ai_flags & RAI_PASSIVE {
            0 => (&mut info.ai_dst_addr, &mut info.ai_dst_len),
            _ => (&mut info.ai_src_addr, &mut info.ai_src_len),
        };
        let copied = copy(first.ai_addr, first.ai_addrlen);
        (*addr, *length) = (copied.unwrap_or(null_mut()), first.ai_addrlen);
        libc::freeaddrinfo(list);
        if addr.is_null() { libc::EAI_MEMORY } else { 0 }
    }
}

fn number(qp_type: QpType) -> c_int {
    u32::from(qp_type) as c_int
}

/// The hints for the system.
fn asked(hints: Option<&rdma_addrinfo>) -> addrinfo {
    // SAFETY: numbers and pointers, for which zero is a value.
    let mut asked: addrinfo = unsafe { std::mem::zeroed() };
    // Otherwise the system returns each address once for each type of socket.
    asked.ai_socktype = libc::SOCK_STREAM;
    if let Some(hints) = hints {
        if hints.ai_flags & RAI_PASSIVE != 0 {
            asked.ai_flags |= libc::AI_PASSIVE;
        }
        if hints.ai_flags & RAI_NUMERICHOST != 0 {
            asked.ai_flags |= libc::AI_NUMERICHOST;
        }
        if hints.ai_flags & RAI_FAMILY != 0 || hints.ai_family != 0 {
            asked.ai_family = hints.ai_family;
        }
        let of_datagrams = [RDMA_PS_UDP, RDMA_PS_IPOIB].contains(&(hints.ai_port_space as u32))
            || hints.ai_qp_type == number(QpType::Ud);
        if of_datagrams {
            asked.ai_socktype = libc::SOCK_DGRAM;
        }
    }
    asked
}

/// Copies the addresses of the hints where none was found.
///
/// # Safety
/// The hints are the program's; `info` is one of ours.
unsafe fn copy_hints(hints: &rdma_addrinfo, info: &mut rdma_addrinfo) -> Result<()> {
    // SAFETY: the addresses have the lengths in the hints (C's contract).
    unsafe {
        if info.ai_src_len == 0 && hints.ai_src_len > 0 && !hints.ai_src_addr.is_null() {
            info.ai_src_addr = copy(hints.ai_src_addr, hints.ai_src_len)?;
            info.ai_src_len = hints.ai_src_len;
        }
        if info.ai_dst_len == 0 && hints.ai_dst_len > 0 && !hints.ai_dst_addr.is_null() {
            info.ai_dst_addr = copy(hints.ai_dst_addr, hints.ai_dst_len)?;
            info.ai_dst_len = hints.ai_dst_len;
        }
    }
    Ok(())
}

/// # Safety
/// `addr` has `length` bytes.
unsafe fn copy(addr: *const sockaddr, length: socklen_t) -> Result<*mut sockaddr> {
    // SAFETY: the copy has room for them; the caller's promise.
    unsafe {
        let made: *mut u8 = libc::malloc(length as usize).cast();
        if made.is_null() {
            return Err(Refusal::by_system("malloc"));
        }
        made.copy_from_nonoverlapping(addr.cast(), length as usize);
        Ok(made.cast())
    }
}

pub(crate) extern "C" fn freeaddrinfo(info: *mut rdma_addrinfo) {
    silent("rdma_freeaddrinfo", (), |()| {
        // SAFETY: a list of `getaddrinfo` (C's contract).
        unsafe { free(info) };
        Ok(())
    });
}

/// # Safety
/// It is a list of this file, or null. Its parts are each of `malloc` or null.
unsafe fn free(mut info: *mut rdma_addrinfo) {
    while !info.is_null() {
        // SAFETY: the caller's promise.
        unsafe {
            let next = (*info).ai_next;
            for part in [
                (*info).ai_src_addr.cast::<c_void>(),
                (*info).ai_dst_addr.cast(),
                (*info).ai_src_canonname.cast(),
                (*info).ai_dst_canonname.cast(),
                (*info).ai_route,
                (*info).ai_connect,
                info.cast(),
            ] {
                libc::free(part);
            }
            info = next;
        }
    }
}
