//! A socket, and what leaves and comes through it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::{fs, io};

use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};

use crate::PORT;
use crate::sys::{Control, interface_with, receive, send, set};
use crate::tenant::{of_datagram, steer_by_tenant};

/// A UDP socket of RoCEv2. It is closed when it is dropped.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    address: IpAddr,
    segments: bool,
}

/// A datagram, or several to one place, which the kernel separates.
#[derive(Clone, Copy, Debug)]
pub struct Train<'a> {
    /// Where it goes, to port [`PORT`].
    pub to: IpAddr,
    /// All datagrams behind each other, at most [`Train::MOST_BYTES`].
    pub bytes: &'a [u8],
    /// Bytes of each datagram but the last, which may be shorter. At most [`Train::MOST`] of them.
    pub segment: usize,
    /// Type of service, or traffic class.
    pub traffic_class: u8,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
}

/// Datagrams that arrived at once from one place.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The address it came from.
    pub from: IpAddr,
    /// The port it came from.
    pub port: u16,
    /// Type of service, or traffic class.
    pub traffic_class: u8,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
    pub(crate) bytes: &'a [u8],
    /// Bytes of each datagram but the last.
    pub(crate) segment: usize,
}

/// The datagrams that came at once, in order.
#[derive(Clone, Debug)]
pub struct Datagrams<'a>(std::slice::Chunks<'a, u8>);

/// The hop limit of datagrams by default.
const HOP_LIMIT: u8 = 64;
/// The receive buffer that is asked for, in bytes. Systems may give less.
const BUFFER: i32 = 4 << 20;

impl Socket {
    /// Bytes that a buffer for [`receive`](Self::receive) must have so that nothing is cut off.
    pub const MOST: usize = 1 << 16;

    /// A socket on an address of this machine.
    ///
    /// # Errors
    /// `AddrInUse` if somebody else has the port there ([`holder`](crate::holder) says who);
    /// `AddrNotAvailable` if the address is none of this machine's; whatever forbids sockets.
    pub fn bind(address: IpAddr) -> io::Result<Self> {
        let fd = open(address)?;
        bind(&fd, &SocketAddr::new(address, PORT))?;
        Self::of(fd, address)
    }

    /// A socket on an address that other processes of this user may share: each is a
    /// [`Tenant`](crate::Tenant).
    ///
    /// # Errors
    /// The errors of [`bind`](Self::bind): `AddrInUse` if who has the port does not share it with
    /// this user.
    pub fn share(address: IpAddr) -> io::Result<Self> {
        let fd = open(address)?;
        sockopt::set_socket_reuseport(&fd, true)?;
        bind(&fd, &SocketAddr::new(address, PORT))?;
        steer_by_tenant(fd.as_fd());
        Self::of(fd, address)
    }

    /// A socket that gets what is sent to a group, as every other on this machine does, through the
    /// interface of this address.
    ///
    /// # Errors
    /// If the addresses are not of one family, the group is not a group address, or the system
    /// refuses.
    pub fn join(group: IpAddr, interface: IpAddr) -> io::Result<Self> {
        let fd = open(group)?;
        sockopt::set_socket_reuseaddr(&fd, true)?;
        match group {
            IpAddr::V4(_) => bind(&fd, &SocketAddr::new(group, PORT))?,
            // A group may be one of its interface alone.
            IpAddr::V6(group) => {
                let scope = index_of_interface(&fd, interface);
                bind(&fd, &SocketAddrV6::new(group, PORT, 0, scope))?;
            }
        }
        let socket = Self::of(fd, group)?;
        socket.join_through(interface)?;
        Ok(socket)
    }

    /// Gets what is sent to its group through the interface of this address too.
    ///
    /// # Errors
    /// As those of [`join`](Self::join).
    pub fn join_through(&self, interface: IpAddr) -> io::Result<()> {
        let joined = match (self.address, interface) {
            (IpAddr::V4(group), IpAddr::V4(interface)) => {
                sockopt::set_ip_add_membership(&self.fd, &group, &interface)
            }
            (IpAddr::V6(group), IpAddr::V6(_)) => {
                let index = index_of_interface(&self.fd, interface);
                sockopt::set_ipv6_add_membership(&self.fd, &group, index)
            }
            (group, _) => {
                let text = format!("{group} and {interface} are of different families");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
        };
        match joined {
            // Two addresses of one interface.
            Err(Errno::ADDRINUSE) => Ok(()),
            joined => Ok(joined?),
        }
    }

    /// A socket that one was made of.
    fn of(fd: OwnedFd, address: IpAddr) -> io::Result<Self> {
        let options: &[(i32, i32, i32)] = match address {
            IpAddr::V4(_) => &[
                (
                    libc::IPPROTO_IP,
                    libc::IP_MTU_DISCOVER,
                    libc::IP_PMTUDISC_DO,
                ),
                (libc::IPPROTO_IP, libc::IP_RECVTOS, 1),
                (libc::IPPROTO_IP, libc::IP_RECVTTL, 1),
                // What others have joined is not for this socket.
                (libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0),
            ],
            IpAddr::V6(_) => &[
                (
                    libc::IPPROTO_IPV6,
                    libc::IPV6_MTU_DISCOVER,
                    libc::IPV6_PMTUDISC_DO,
                ),
                (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1),
                (libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, 1),
                // Soft-RoCE sends none.
                (libc::SOL_UDP, libc::UDP_NO_CHECK6_RX, 1),
            ],
        };
        for (level, option, value) in options {
            set(fd.as_fd(), *level, *option, *value)?;
        }
        // Beyond the system's limit only with a privilege.
        set(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER)
            .or_else(|_| set(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER))?;
        match address {
            group if group.is_multicast() => {}
            IpAddr::V4(own) => sockopt::set_ip_multicast_if(&fd, &interface_of(own))?,
            IpAddr::V6(_) => {
                sockopt::set_ipv6_multicast_if(&fd, index_of_interface(&fd, address))?;
            }
        }
        // Kernels before 4.18 and 5.0 have neither.
        let segments = set(fd.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, 0).is_ok();
        let _ = set(fd.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1);
        Ok(Self {
            fd,
            address,
            segments,
        })
    }

    /// The address it is bound to.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Replaces the descriptor.
    pub fn with_descriptor(self, other: impl FnOnce(OwnedFd) -> OwnedFd) -> Self {
        Self {
            fd: other(self.fd),
            ..self
        }
    }

    /// The descriptor, which the caller now owns.
    pub fn into_descriptor(self) -> OwnedFd {
        self.fd
    }

    /// The largest IP packet on the interface of this address, in bytes: the system's maximum, if
    /// the interface is unknown.
    pub fn mtu(&self) -> usize {
        let name = interface_with(self.address);
        let reported =
            name.and_then(|name| fs::read_to_string(format!("/sys/class/net/{name}/mtu")).ok());
        reported
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(Self::MOST)
    }

    /// Whether the kernel splits trains. If not, a train must have one datagram.
    pub fn segments(&self) -> bool {
        self.segments
    }

    /// Sends a train.
    ///
    /// # Errors
    /// The errors of sendmsg(2). Nothing was sent then.
    pub fn send(&self, train: &Train<'_>) -> io::Result<()> {
        let mut controls = [(0, 0, 0); 3];
        let mut count = 0;
        let mut tell = |control: Control| {
            controls[count] = control;
            count += 1;
        };
        if train.has_several() {
            tell((libc::SOL_UDP, libc::UDP_SEGMENT, train.segment as i32));
        }
        let (level, class, hops) = match train.to {
            IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS, libc::IP_TTL),
            IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, libc::IPV6_HOPLIMIT),
        };
        if train.traffic_class != 0 {
            tell((level, class, train.traffic_class.into()));
        }
        // A header must have one, and groups have another default.
        if train.hop_limit != HOP_LIMIT || train.to.is_multicast() {
            tell((level, hops, train.hop_limit.max(1).into()));
        }
        send(self.fd.as_fd(), train.to, train.bytes, &controls[..count])
    }

    /// Receives the oldest datagrams into `buffer`; `None` if there are none.
    ///
    /// # Errors
    /// The errors of recvmsg(2).
    pub fn receive<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Option<Received<'b>>> {
        use io::ErrorKind::{Interrupted, WouldBlock};
        let came = match receive(self.fd.as_fd(), buffer) {
            Ok(came) => came,
            Err(error) if matches!(error.kind(), Interrupted | WouldBlock) => return Ok(None),
            Err(error) => return Err(error),
        };
        let reported = |level, kind| {
            let mut found = came.controls.iter().flatten();
            found
                .find(|of| (of.0, of.1) == (level, kind))
                .map(|of| of.2)
        };
        let (class, hops) = match self.address {
            IpAddr::V4(_) => (
                reported(libc::IPPROTO_IP, libc::IP_TOS),
                reported(libc::IPPROTO_IP, libc::IP_TTL),
            ),
            IpAddr::V6(_) => {
                let level = libc::IPPROTO_IPV6;
                (
                    reported(level, libc::IPV6_TCLASS),
                    reported(level, libc::IPV6_HOPLIMIT),
                )
            }
        };
        let segment = reported(libc::SOL_UDP, libc::UDP_GRO).unwrap_or_default() as usize;
        Ok(Some(Received {
            from: came.from.0,
            port: came.from.1,
            traffic_class: class.unwrap_or_default() as u8,
            hop_limit: hops.unwrap_or(HOP_LIMIT.into()) as u8,
            bytes: &buffer[..came.length],
            segment: if segment == 0 {
                came.length.max(1)
            } else {
                segment
            },
        }))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl<'a> Train<'a> {
    /// Datagrams of a train, at most.
    pub const MOST: usize = 64;
    /// Bytes of a train, at most: what one packet of IP holds behind its header and that of UDP.
    pub const MOST_BYTES: usize = 65_535 - 40 - 8;

    /// Whether it has more than one datagram.
    pub const fn has_several(&self) -> bool {
        self.bytes.len() > self.segment
    }

    /// A train of one datagram, without a type of service, and with 64 hops.
    pub const fn new(to: IpAddr, bytes: &'a [u8]) -> Self {
        Self {
            to,
            bytes,
            segment: bytes.len(),
            traffic_class: 0,
            hop_limit: HOP_LIMIT,
        }
    }
}

impl<'a> Received<'a> {
    /// The datagrams. Empty ones are left out.
    pub fn datagrams(&self) -> Datagrams<'a> {
        Datagrams(self.bytes.chunks(self.segment))
    }

    /// The datagrams by tenant, in order: consecutive ones for one tenant stay together. `None` is
    /// for datagrams whose tenant neither the QP number nor `of_others` decides.
    pub(crate) fn by_tenant(
        self,
        of_others: impl Fn(&[u8]) -> Option<u8>,
    ) -> impl Iterator<Item = (Option<u8>, Self)> {
        let mut rest = self.bytes;
        let of = move |datagram: &[u8]| of_datagram(datagram).or_else(|| of_others(datagram));
        std::iter::from_fn(move || {
            let mut datagrams = rest.chunks(self.segment);
            let tenant = of(datagrams.next()?);
            let others = datagrams.take_while(|datagram| of(datagram) == tenant);
            let end = rest.len().min((1 + others.count()) * self.segment);
            let bytes = rest.split_off(..end)?;
            Some((tenant, Self { bytes, ..self }))
        })
    }
}

impl<'a> Iterator for Datagrams<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.0.next()
    }
}

fn open(address: IpAddr) -> io::Result<OwnedFd> {
    let family = match address {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    Ok(socket_with(
        family,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// The number of the interface that has an address; 0, by which the routes decide, if none has.
fn index_of_interface(fd: &OwnedFd, address: IpAddr) -> u32 {
    let name = interface_with(address);
    let index = name.and_then(|name| name_to_index(fd, &name).ok());
    index.unwrap_or_default()
}

/// The interface through which groups are reached from an address.
fn interface_of(address: Ipv4Addr) -> Ipv4Addr {
    // All of 127.0.0.0/8 is of the loopback interface, but one address alone is configured.
    if address.is_loopback() {
        Ipv4Addr::LOCALHOST
    } else {
        address
    }
}
