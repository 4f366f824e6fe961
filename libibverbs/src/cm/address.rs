//! Addresses, routes, options and ports of ids.

use std::ffi::{c_int, c_void};
use std::net::SocketAddr;
use std::time::Duration;

use libc::sockaddr;
use verbs_abi::{
    RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, address_from_c, option_from_c, rdma_cm_id,
};
use verbs_api::Verb;
use verbs_api::cm::{Cm, CmIdAttr};

use crate::c::{Refusal, Result, or_zero, present, values, zero_or_minus_one};
use crate::engine::{sim, unobserved};

/// An address that a program passes.
pub(super) fn address(raw: *const sockaddr) -> Result<SocketAddr> {
    // SAFETY: the program's, of the length that its family has (C's contract).
    unsafe { address_from_c(raw) }
        .ok_or_else(|| Refusal::invalid("the address is NULL, or neither of IPv4 nor of IPv6"))
}

pub(crate) extern "C" fn bind_addr(id: *mut rdma_cm_id, addr: *mut sockaddr) -> c_int {
    zero_or_minus_one("rdma_bind_addr", id, |id| {
        sim().bind_addr(id.handle, address(addr)?)?;
        id.refresh()
    })
}

pub(crate) extern "C" fn resolve_addr(
    id: *mut rdma_cm_id,
    src: *mut sockaddr,
    dst: *mut sockaddr,
    timeout_ms: c_int,
) -> c_int {
    zero_or_minus_one("rdma_resolve_addr", id, |id| {
        let id = id.held();
        let src = (!src.is_null()).then(|| address(src)).transpose()?;
        sim().resolve_addr(id.handle, src, address(dst)?, time(timeout_ms))?;
        id.complete(Verb::CmResolveAddr)
    })
}

pub(crate) extern "C" fn resolve_route(id: *mut rdma_cm_id, timeout_ms: c_int) -> c_int {
    zero_or_minus_one("rdma_resolve_route", id, |id| {
        let id = id.held();
        sim().resolve_route(id.handle, time(timeout_ms))?;
        id.complete(Verb::CmResolveRoute)
    })
}

fn time(ms: c_int) -> Duration {
    // A negative time counts as 0.
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}

/// `rdma_set_option`. Paths cannot be set.
pub(crate) extern "C" fn set_option(
    id: *mut rdma_cm_id,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    size: usize,
) -> c_int {
    zero_or_minus_one("rdma_set_option", id, |id| {
        if level != RDMA_OPTION_ID || !(0..=RDMA_OPTION_ID_ACK_TIMEOUT).contains(&name) {
            let what = format!("there is no option {name} of level {level}");
            return Err(Refusal::new(libc::ENOSYS, what));
        }
        present(value)?;
        // SAFETY: the program's, valid for the call, of this size (C's contract).
        let value = unsafe { values(value.cast::<u8>(), size.min(LARGEST)) }?;
        let option = option_from_c(level, name, value).ok_or_else(|| {
            Refusal::invalid(format!("the value of option {name} has not {size} bytes"))
        })?;
        Ok(sim().set_option(id.handle, option)?)
    })
}

/// Larger than any option.
const LARGEST: usize = 16;

/// `rdma_get_src_port`, in network order.
pub(crate) extern "C" fn get_src_port(id: *mut rdma_cm_id) -> u16 {
    port("rdma_get_src_port", id, |attr| attr.local_addr)
}

/// `rdma_get_dst_port`, in network order.
pub(crate) extern "C" fn get_dst_port(id: *mut rdma_cm_id) -> u16 {
    port("rdma_get_dst_port", id, |attr| attr.peer_addr)
}

fn port(
    name: &'static str,
    id: *mut rdma_cm_id,
    which: impl FnOnce(&CmIdAttr) -> Option<SocketAddr>,
) -> u16 {
    or_zero(name, id, |id| {
        let attr = unobserved().query_id(id.handle);
        let attr = attr.map_err(Refusal::unobserved)?;
        Ok(which(&attr).map_or(0, |at| at.port().to_be()))
    })
}
