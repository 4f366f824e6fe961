//! Socket addresses.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use libc::{in_addr, in6_addr, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage};

use crate::border::Border;

/// The address that a pointer of C names; none if it is null, or of another family than those of
/// IP.
///
/// # Safety
/// It is null, or there are as many bytes as its family asks for.
pub unsafe fn address_from_c(raw: *const sockaddr) -> Option<SocketAddr> {
    if raw.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    match i32::from(unsafe { (&raw const (*raw).sa_family).read_unaligned() }) {
        libc::AF_INET => {
            // SAFETY: the caller's promise; it may stand anywhere.
            let raw = unsafe { raw.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(raw.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let raw = unsafe { raw.cast::<sockaddr_in6>().read_unaligned() };
            let (ip, port) = (
                Ipv6Addr::from(raw.sin6_addr.s6_addr),
                u16::from_be(raw.sin6_port),
            );
            Some(SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id).into())
        }
        _ => None,
    }
}

/// An address in C, with room for those of all families.
pub fn address_to_c(addr: SocketAddr) -> sockaddr_storage {
    // SAFETY: the structure is plain numbers, for which zero is a value.
    let mut raw: sockaddr_storage = unsafe { std::mem::zeroed() };
    match addr {
        SocketAddr::V4(addr) => {
            let of_family = sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: addr.port().to_be(),
                sin_addr: in_addr {
                    s_addr: u32::from_ne_bytes(addr.ip().octets()),
                },
                sin_zero: [0; 8],
            };
            // SAFETY: there is room for the address of any family.
            unsafe { (&raw mut raw).cast::<sockaddr_in>().write(of_family) };
        }
        SocketAddr::V6(addr) => {
            let of_family = sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: addr.port().to_be(),
                sin6_flowinfo: addr.flowinfo(),
                sin6_addr: in6_addr {
                    s6_addr: addr.ip().octets(),
                },
                sin6_scope_id: addr.scope_id(),
            };
            // SAFETY: as above.
            unsafe { (&raw mut raw).cast::<sockaddr_in6>().write(of_family) };
        }
    }
    raw
}

/// No address is of family 0.
impl Border<Option<SocketAddr>> for sockaddr_storage {
    fn from_c(raw: &Self) -> Option<SocketAddr> {
        // SAFETY: there is room for the address of any family.
        unsafe { address_from_c(std::ptr::from_ref(raw).cast()) }
    }

    fn to_c(addr: &Option<SocketAddr>) -> Self {
        // SAFETY: the structure is plain numbers, for which zero is a value.
        addr.map_or_else(|| unsafe { std::mem::zeroed() }, address_to_c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_families_survive_with_port_and_scope() {
        for text in ["0.0.0.0:0", "192.168.71.1:7174", "[::]:1", "[fe80::1%3]:9"] {
            let addr: Option<SocketAddr> = Some(text.parse().unwrap());
            let raw = <sockaddr_storage as Border<Option<SocketAddr>>>::to_c(&addr);
            assert_eq!(Border::from_c(&raw), addr);
        }
        let none = <sockaddr_storage as Border<Option<SocketAddr>>>::to_c(&None);
        assert_eq!(Border::<Option<SocketAddr>>::from_c(&none), None);
    }

    #[test]
    fn an_address_of_ipv4_is_in_wire_order() {
        let raw = address_to_c("192.168.71.1:7174".parse().unwrap());
        // SAFETY: eight bytes are there.
        let bytes: [u8; 8] = unsafe { std::ptr::from_ref(&raw).cast::<[u8; 8]>().read() };
        assert_eq!(bytes, [2, 0, 0x1c, 0x06, 192, 168, 71, 1]);
    }

    #[test]
    fn what_is_no_address_of_ip_is_none() {
        let other = sockaddr {
            sa_family: libc::AF_UNIX as libc::sa_family_t,
            sa_data: [0; 14],
        };
        // SAFETY: a pointer to an address, and none.
        let found = unsafe { [address_from_c(&other), address_from_c(std::ptr::null())] };
        assert_eq!(found, [None, None]);
    }
}
