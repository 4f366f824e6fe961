//! The system calls that no safe interface has, and the only unsafe code of this crate.

use std::ffi::CStr;
use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{from_mut, from_ref, null_mut};

use libc::{c_int, c_long, c_void, msghdr};

use crate::PORT;

/// Sets an option that is a number.
pub(crate) fn set(fd: BorrowedFd<'_>, level: c_int, option: c_int, value: c_int) -> io::Result<()> {
    // SAFETY: the option's value is a number.
    unsafe { set_to(fd, level, option, &value) }
}

/// Lets a program choose among the sockets that share an address: its instructions, each with its
/// operand. They get what is behind the header of UDP, and answer with a place.
pub(crate) fn steer<const N: usize>(
    fd: BorrowedFd<'_>,
    program: [(u32, u32); N],
) -> io::Result<()> {
    let instruction = |(code, k)| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let mut instructions = program.map(instruction);
    let program = libc::sock_fprog {
        len: N as u16,
        filter: instructions.as_mut_ptr(),
    };
    let (level, option) = (libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF);
    // SAFETY: the option's value is a program, whose instructions are there.
    unsafe { set_to(fd, level, option, &program) }
}

/// Sets an option.
///
/// # Safety
/// The value is of the option's type, and what it points to is there.
unsafe fn set_to<T>(fd: BorrowedFd<'_>, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    let (at, size) = (from_ref(value).cast(), size_of_val(value) as u32);
    // SAFETY: the value is valid for the call, with this length; the rest is the caller's promise.
    let done = unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, at, size) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// A control message that is a number, with its level and kind. All have four bytes, except for the
/// size of segments, which has two.
pub(crate) type Control = (c_int, c_int, c_int);

/// Room for four control messages, aligned as their headers are.
#[repr(C, align(8))]
struct ControlRoom([u8; 128]);

/// Sends a datagram, or several of one piece, to [`PORT`]. Waits while the socket's buffer is full.
pub(crate) fn send(
    fd: BorrowedFd<'_>,
    address: IpAddr,
    bytes: &[u8],
    controls: &[Control],
) -> io::Result<()> {
    let mut name = Name::of(address, PORT);
    let mut piece = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let mut room = ControlRoom([0; 128]);
    // SAFETY: all its fields are numbers and pointers, which may be 0.
    let mut message: msghdr = unsafe { zeroed() };
    (message.msg_name, message.msg_namelen) = name.parts();
    (message.msg_iov, message.msg_iovlen) = (from_mut(&mut piece), 1);
    if !controls.is_empty() {
        message.msg_control = from_mut(&mut room).cast();
        message.msg_controllen = size_of::<ControlRoom>();
        let mut length = 0;
        // SAFETY: the room is as long as said, and aligned.
        let mut header = unsafe { libc::CMSG_FIRSTHDR(&message) };
        for (level, kind, value) in controls {
            let size = match (*level, *kind) {
                (libc::SOL_UDP, _) => size_of::<u16>(),
                _ => size_of::<c_int>(),
            };
            assert!(!header.is_null(), "there is room for four");
            // SAFETY: the header is within the room, with room for a number behind it.
            unsafe {
                (*header).cmsg_level = *level;
                (*header).cmsg_type = *kind;
                (*header).cmsg_len = libc::CMSG_LEN(size as u32) as _;
                let data = libc::CMSG_DATA(header);
                match size {
                    2 => data.cast::<u16>().write_unaligned(*value as u16),
                    _ => data.cast::<c_int>().write_unaligned(*value),
                }
                length += libc::CMSG_SPACE(size as u32) as usize;
                header = libc::CMSG_NXTHDR(&message, header);
            }
        }
        message.msg_controllen = length as _;
    }
    loop {
        // SAFETY: what the message points to is there for the call, which only reads it.
        let sent = unsafe { call(libc::SYS_sendmsg, fd, &raw mut message, libc::MSG_NOSIGNAL) };
        match sent {
            0.. => return Ok(()),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

/// sendmsg(2) or recvmsg(2). Those of the C library may end the thread (`pthread_cancel`), which
/// verbs never do.
///
/// # Safety
/// What the message points to is there, and may be written by recvmsg.
unsafe fn call(number: c_long, fd: BorrowedFd<'_>, message: *mut msghdr, flags: c_int) -> c_long {
    // SAFETY: the caller's promise; the arguments are those of both calls.
    unsafe { libc::syscall(number, fd.as_raw_fd(), message, flags) }
}

/// What came: how many bytes, from where, and what the control messages said.
pub(crate) struct Came {
    pub(crate) length: usize,
    pub(crate) from: (IpAddr, u16),
    pub(crate) controls: [Option<Control>; 4],
}

/// Receives what is there. Never waits: then it is an error, "would block".
pub(crate) fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Came> {
    let mut name = Name::nothing();
    let mut piece = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    let mut room = ControlRoom([0; 128]);
    // SAFETY: as in `send`.
    let mut message: msghdr = unsafe { zeroed() };
    (message.msg_name, message.msg_namelen) = name.parts();
    (message.msg_iov, message.msg_iovlen) = (from_mut(&mut piece), 1);
    message.msg_control = from_mut(&mut room).cast();
    message.msg_controllen = size_of::<ControlRoom>();
    // SAFETY: what the message points to is there for the call, and may be written.
    let length = unsafe { call(libc::SYS_recvmsg, fd, &raw mut message, libc::MSG_DONTWAIT) };
    if length < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut controls = [None; 4];
    // SAFETY: the kernel has written the headers that lie in the room.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&message) };
    for control in &mut controls {
        if header.is_null() {
            break;
        }
        // SAFETY: a header that the kernel has written, with as many bytes behind it as it says.
        unsafe {
            let data = libc::CMSG_DATA(header);
            let size = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
            let value = match size {
                0 => 0,
                1..4 => c_int::from(data.read()),
                _ => data.cast::<c_int>().read_unaligned(),
            };
            *control = Some(((*header).cmsg_level, (*header).cmsg_type, value));
            header = libc::CMSG_NXTHDR(&message, header);
        }
    }
    Ok(Came {
        length: length as usize,
        from: name.address(),
        controls,
    })
}

/// The name of the interface that an address is configured on.
pub(crate) fn interface_with(address: IpAddr) -> Option<String> {
    let address = match address {
        // One address stands for the others of its network.
        IpAddr::V4(own) if own.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        other => other,
    };
    let mut first = null_mut();
    // SAFETY: the call fills the pointer with a list of its own, which is freed below.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return None;
    }
    let mut found = None;
    let mut next = first;
    // SAFETY: an element of the list, which ends with null.
    while let Some(entry) = unsafe { next.as_ref() } {
        // SAFETY: an address of the list is null or valid.
        let own = unsafe { entry.ifa_addr.as_ref() };
        let is_it = own.is_some_and(|own| match (c_int::from(own.sa_family), address) {
            (libc::AF_INET, IpAddr::V4(address)) => {
                // SAFETY: the address is of this family.
                let own = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned() };
                own.sin_addr.s_addr.to_ne_bytes() == address.octets()
            }
            (libc::AF_INET6, IpAddr::V6(address)) => {
                // SAFETY: the address is of this family.
                let own = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
                own.sin6_addr.s6_addr == address.octets()
            }
            _ => false,
        });
        if is_it {
            // SAFETY: a name of the list ends with 0.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) };
            found = name.to_str().ok().map(str::to_owned);
            break;
        }
        next = entry.ifa_next;
    }
    // SAFETY: the list of the call.
    unsafe { libc::freeifaddrs(first) };
    found
}

/// The address of a socket, of either family.
#[repr(C)]
union Name {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl Name {
    fn nothing() -> Self {
        // SAFETY: all their fields are numbers.
        unsafe { zeroed() }
    }

    fn of(address: IpAddr, port: u16) -> Self {
        let mut name = Self::nothing();
        match address {
            IpAddr::V4(address) => {
                name.v4 = libc::sockaddr_in {
                    sin_family: libc::AF_INET as _,
                    sin_port: port.to_be(),
                    sin_addr: libc::in_addr {
                        s_addr: u32::from_ne_bytes(address.octets()),
                    },
                    sin_zero: [0; 8],
                }
            }
            IpAddr::V6(address) => {
                name.v6 = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as _,
                    sin6_port: port.to_be(),
                    sin6_flowinfo: 0,
                    sin6_addr: libc::in6_addr {
                        s6_addr: address.octets(),
                    },
                    sin6_scope_id: 0,
                }
            }
        }
        name
    }

    fn parts(&mut self) -> (*mut c_void, u32) {
        (from_mut(self).cast(), size_of::<Self>() as u32)
    }

    fn address(&self) -> (IpAddr, u16) {
        // SAFETY: both are numbers alone, all of them were set, and the family is in one place.
        unsafe {
            match c_int::from(self.v4.sin_family) {
                libc::AF_INET6 => {
                    let address = Ipv6Addr::from(self.v6.sin6_addr.s6_addr);
                    (address.into(), u16::from_be(self.v6.sin6_port))
                }
                _ => {
                    let address = Ipv4Addr::from(self.v4.sin_addr.s_addr.to_ne_bytes());
                    (address.into(), u16::from_be(self.v4.sin_port))
                }
            }
        }
    }
}
