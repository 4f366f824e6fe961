//! Processes of one user that share an address.
//!
//! All bind the same address and port, and the kernel gives what comes to the socket whose place
//! among them is the number of the tenant. Once a tenant has gone, others may stand at its place;
//! so everyone hands on what is for another, by a socket of the machine itself (unix(7), with an
//! abstract name) that has the address and the number in its name. Binding that name is how a
//! number is taken: no two processes have it, and it is free when its process ends, however it
//! ends.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::cmsg_space;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, recvmsg, sendmsg_addr, socket_with,
    sockopt,
};
use rustix::process::geteuid;

use crate::PORT;
use crate::socket::Received;
use crate::sys::steer;

/// One of the processes that share an address, by a number that is in each of its QP numbers.
/// Dropping it releases the number.
#[derive(Debug)]
pub struct Tenant {
    fd: OwnedFd,
    address: IpAddr,
    number: u8,
}

impl Tenant {
    /// Tenants of an address, at most. The number after the last is that of groups.
    pub const MOST: u8 = 127;
    /// The lower bits of a QP number, which the tenant chooses. Its own number is above them.
    pub const QP_BITS: u32 = 17;

    /// Takes a number below [`MOST`](Self::MOST).
    ///
    /// # Errors
    /// `AddrInUse` if another has it; whatever forbids sockets.
    pub fn take(address: IpAddr, number: u8) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        sockopt::set_socket_passcred(&fd, true)?;
        bind(&fd, &name(address, number)?)?;
        Ok(Self {
            fd,
            address,
            number,
        })
    }

    /// The owner of a QP number. Numbers that mean the same for everyone have no owner.
    pub fn of(qp_num: u32) -> Option<u8> {
        (2..0xff_ffff)
            .contains(&qp_num)
            .then_some((qp_num >> Self::QP_BITS) as u8)
    }

    /// The address that it shares.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Its number.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// This tenant under another descriptor.
    pub fn with_descriptor(self, other: impl FnOnce(OwnedFd) -> OwnedFd) -> Self {
        Self {
            fd: other(self.fd),
            ..self
        }
    }

    /// Forwards the datagrams of other tenants, and returns the remaining ones, in order. For
    /// datagrams whose QP number has no owner, `of_others` decides. If there is no such tenant, or
    /// it does not keep up, the datagram is lost, as on a network.
    pub fn keep_own<'a>(
        &self,
        came: Received<'a>,
        of_others: impl Fn(&[u8]) -> Option<u8>,
    ) -> impl Iterator<Item = Received<'a>> {
        came.by_tenant(of_others).filter_map(|(to, part)| match to {
            Some(to) if to != self.number => {
                self.hand_on(to, &part);
                None
            }
            _ => Some(part),
        })
    }

    fn hand_on(&self, to: u8, came: &Received<'_>) {
        let head = Head::of(came);
        let pieces = [IoSlice::new(&head.0), IoSlice::new(came.bytes)];
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        if let Ok(name) = name(self.address, to) {
            let controls = &mut SendAncillaryBuffer::default();
            let _ = sendmsg_addr(&self.fd, &name, &pieces, controls, flags);
        }
    }

    /// What was handed on first of what was, into `buffer`; `None` if nothing was, or by somebody
    /// else's process.
    ///
    /// # Errors
    /// Those of recvmsg(2).
    pub fn receive<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Option<Received<'b>>> {
        use io::ErrorKind::{Interrupted, WouldBlock};
        let mut head = Head([0; Head::BYTES]);
        let mut pieces = [IoSliceMut::new(&mut head.0), IoSliceMut::new(buffer)];
        let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmCredentials(1))];
        let mut controls = RecvAncillaryBuffer::new(&mut room);
        let came = match recvmsg(&self.fd, &mut pieces, &mut controls, RecvFlags::DONTWAIT) {
            Ok(came) => came,
            Err(error) => {
                let error = io::Error::from(error);
                return match error.kind() {
                    Interrupted | WouldBlock => Ok(None),
                    _ => Err(error),
                };
            }
        };
        let is_ours = |control| match control {
            // Root may do everything as it is.
            RecvAncillaryMessage::ScmCredentials(by) => by.uid.is_root() || by.uid == geteuid(),
            _ => false,
        };
        let is_trusted = controls.drain().any(is_ours);
        let bytes = came.bytes.checked_sub(Head::BYTES).filter(|_| is_trusted);
        Ok(bytes.map(|bytes| head.read(&buffer[..bytes])))
    }
}

impl AsFd for Tenant {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The tenant that a RoCEv2 datagram is for, if its QP number has one.
pub(crate) fn of_datagram(datagram: &[u8]) -> Option<u8> {
    let qp_num = datagram.get(5..8)?;
    let number = |number, byte: &u8| number << 8 | u32::from(*byte);
    Tenant::of(qp_num.iter().fold(0, number))
}

/// Lets the kernel choose among the sockets of an address by the QP number. Kernels before 4.5
/// choose in another way.
pub(crate) fn steer_by_tenant(fd: BorrowedFd<'_>) {
    use libc::{BPF_A, BPF_ABS, BPF_ALU, BPF_AND, BPF_K, BPF_LD, BPF_RET, BPF_RSH, BPF_W};
    let program = [
        (BPF_LD | BPF_W | BPF_ABS, 4),
        (BPF_ALU | BPF_AND | BPF_K, 0xff_ffff),
        (BPF_ALU | BPF_RSH | BPF_K, Tenant::QP_BITS),
        (BPF_RET | BPF_A, 0),
    ];
    let _ = steer(fd, program);
}

fn name(address: IpAddr, number: u8) -> io::Result<SocketAddrUnix> {
    let name = format!("verbs-udp {address}:{PORT} {number}");
    Ok(SocketAddrUnix::new_abstract_name(name.as_bytes())?)
}

/// The header of forwarded datagrams: the facts of their own headers, and the length of each.
struct Head([u8; Head::BYTES]);

impl Head {
    const BYTES: usize = 24;

    fn of(came: &Received<'_>) -> Self {
        let from = match came.from {
            IpAddr::V4(from) => from.to_ipv6_mapped(),
            IpAddr::V6(from) => from,
        };
        let mut head = [0; Self::BYTES];
        head[..16].copy_from_slice(&from.octets());
        head[16..18].copy_from_slice(&came.port.to_be_bytes());
        (head[18], head[19]) = (came.traffic_class, came.hop_limit);
        head[20..].copy_from_slice(&(came.segment as u32).to_be_bytes());
        Self(head)
    }

    fn read(self, bytes: &[u8]) -> Received<'_> {
        let [from @ .., p, q, traffic_class, hop_limit, a, b, c, d] = self.0;
        Received {
            from: Ipv6Addr::from(from).to_canonical(),
            port: u16::from_be_bytes([p, q]),
            traffic_class,
            hop_limit,
            bytes,
            segment: u32::from_be_bytes([a, b, c, d]).max(1) as usize,
        }
    }
}
