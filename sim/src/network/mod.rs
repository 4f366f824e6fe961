//! The network of a simulation, and the addresses of its ports.

mod gateway;
mod names;
mod outgoing;
mod polling;
mod receiver;
mod service;
mod slow;
mod sockets;
#[cfg(test)]
mod turns;
mod verbs;

pub(crate) use gateway::Gateway;
pub(crate) use receiver::Receiver;
pub(crate) use sockets::Sockets;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use rustix::process::{Uid, geteuid};
use verbs_api::ErrorKind;
use verbs_udp::{PORT, Socket, Tenant, holder};

use crate::address::fnv;
use crate::device::QP_INDEX_BITS;
use crate::subnet::HOST_BITS;

const _: () = assert!(QP_INDEX_BITS == Tenant::QP_BITS);

/// A network whose other devices are in other processes, containers or machines. Packets travel as
/// RoCEv2 over UDP. For [`SimConfig::network`](crate::SimConfig::network).
///
/// ```no_run
/// use verbs_api::Verbs;
/// use verbs_sim::{Mode, Network, Sim, SimConfig};
///
/// let config = SimConfig::new().nodes(1).mode(Mode::RealTime);
/// let sim = Sim::new(config.network(Network::loopback("tests")));
/// let context = sim.open_device("sim0")?;
/// // An address of 127.0.0.0/8, as a GID. Another process that opens its device by the same name
/// // gets a different one.
/// println!("{}", sim.query_gid(context, 1, 0)?);
/// # Ok::<(), verbs_api::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    places: Places,
    spins: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Places {
    /// Subnet number of 127.0.0.0/8. Each subnet has 4094 addresses.
    Loopback(u16),
    /// An address for each port.
    Given(&'static [IpAddr]),
}

impl Network {
    /// A network within this machine. Each port takes a free loopback address when its device is
    /// first opened. Processes that give the same name are on one network. There are 4095 networks
    /// with room for 4094 ports each; names with the same hash share a network.
    pub fn loopback(name: &str) -> Self {
        // Subnet 0 has addresses that other programs use, such as 127.0.0.1.
        Self::new(Places::Loopback((fnv(name.as_bytes()) % 0xfff + 1) as u16))
    }

    /// A network with these addresses of this machine: one for each port, in the order of devices
    /// and ports. The addresses stay in use until the process ends. Up to 127 processes of one user
    /// may share an address.
    ///
    /// # Panics
    /// [`Sim::new`](crate::Sim::new) panics if the number of addresses is not the number of ports,
    /// or an address occurs twice.
    pub fn addresses(addresses: &[IpAddr]) -> Self {
        Self::new(Places::Given(addresses.to_vec().leak()))
    }

    const fn new(places: Places) -> Self {
        Self {
            places,
            spins: true,
        }
    }

    /// Whether threads look for packets several times before they sleep, and polling threads read
    /// them. The default is `true`, which makes answers fast. With `false` only the receiver thread
    /// of the simulation reads, after it has slept: for a scheduler that runs one thread at a time,
    /// from which looking would hide the orders in which a thread does not look in time.
    pub fn spins(mut self, spins: bool) -> Self {
        self.spins = spins;
        self
    }

    /// Checks whether the addresses are available now: takes each, and releases it.
    ///
    /// # Errors
    /// An address that is unavailable, and the reason: it does not belong to this machine, or a
    /// process has the port there. Also any error of the system in making sockets.
    pub fn check(self) -> io::Result<()> {
        match self.places {
            Places::Loopback(_) => self.bind(0).map(drop),
            Places::Given(addresses) => addresses.iter().try_for_each(check),
        }
    }

    /// Checks that each of `ports` ports has an address of its own.
    ///
    /// # Panics
    /// If the number of addresses is another, or an address occurs twice.
    pub(crate) fn check_ports(self, ports: usize) {
        if let Some(given) = self.given() {
            assert_eq!(given.len(), ports, "a network has an address for each port");
            let all: BTreeSet<_> = given.iter().collect();
            assert_eq!(all.len(), ports, "each port has an address of its own");
        }
    }

    pub(crate) fn given(self) -> Option<&'static [IpAddr]> {
        match self.places {
            Places::Given(addresses) => Some(addresses),
            Places::Loopback(_) => None,
        }
    }

    /// A socket for a port, with the first free address or the one given for it.
    pub(crate) fn bind(self, port: usize) -> io::Result<Socket> {
        let subnet = match self.places {
            Places::Given(addresses) => {
                let address = addresses[port];
                return Socket::share(address).map_err(|error| named(address, &error));
            }
            Places::Loopback(subnet) => subnet,
        };
        let mut hosts = (1..(1 << HOST_BITS) - 1).map(|host| address(subnet, host));
        let free = |address: IpAddr| match Socket::bind(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => None,
            other => Some(other),
        };
        match hosts.find_map(free) {
            Some(socket) => socket,
            // Every address is taken: the error names who has the last.
            None => {
                let last = address(subnet, (1 << HOST_BITS) - 2);
                Socket::bind(last).map_err(|error| named(last, &error))
            }
        }
    }

    /// A tenant of each given address, all with one number. Empty if the network has loopback
    /// addresses.
    pub(crate) fn tenants(self) -> io::Result<Vec<Tenant>> {
        let Some(addresses) = self.given() else {
            return Ok(Vec::new());
        };
        for number in 0..Tenant::MOST {
            let take = |address: &IpAddr| Tenant::take(*address, number);
            match addresses.iter().map(take).collect() {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                tenants => return tenants,
            }
        }
        let all = Tenant::MOST;
        let text = format!("{} has {all} processes already", addresses[0]);
        Err(io::Error::new(io::ErrorKind::AddrInUse, text))
    }

    /// The reason why no process or machine of this network has an address, as far as an
    /// unprivileged process can know. `None` if one may have it. An address of this machine is
    /// tried: if it can be taken, it has no owner.
    pub(crate) fn unreachable(self, address: IpAddr) -> Option<ErrorKind> {
        match self.places {
            Places::Loopback(_) => {
                let is_free = !self.has(address) || Socket::bind(address).is_ok();
                is_free.then_some(ErrorKind::TimedOut)
            }
            Places::Given(_) if is_of_machine(address) => {
                let is_free = !has_tenant(address) && Socket::share(address).is_ok();
                is_free.then_some(ErrorKind::TimedOut)
            }
            Places::Given(own) => {
                let is_of_family = |own: &&IpAddr| own.is_ipv4() == address.is_ipv4();
                let Some(own) = own.iter().find(is_of_family) else {
                    return Some(ErrorKind::NetworkUnreachable);
                };
                // Connecting a UDP socket makes the kernel look up a route, and sends nothing.
                let tried = UdpSocket::bind((*own, 0)).map(|own| own.connect((address, PORT)));
                match tried.ok()?.err()?.kind() {
                    io::ErrorKind::NetworkUnreachable => Some(ErrorKind::NetworkUnreachable),
                    io::ErrorKind::HostUnreachable => Some(ErrorKind::HostUnreachable),
                    // Any other error says nothing about the address.
                    _ => None,
                }
            }
        }
    }

    /// Names under which processes of this network publish a port of a port space: one name for all
    /// addresses of the machine, or one for each given address.
    pub(crate) fn services(self, address: IpAddr, port_space: u32, port: u16) -> Vec<String> {
        let name = |of: &dyn fmt::Display| format!("verbsim {of} {port_space:#x} {port}");
        match self.places {
            Places::Loopback(subnet) => vec![name(&format_args!("loopback {subnet}"))],
            Places::Given(addresses) if addresses.contains(&address) => vec![name(&address)],
            Places::Given(addresses) => addresses.iter().map(|of| name(of)).collect(),
        }
    }

    /// Whether the answers of a user's processes are believed. Given addresses belong to one user:
    /// the kernel lets no other share them. A loopback network is for all users. Root may do
    /// everything anyway.
    pub(crate) fn trusts(self, user: Uid) -> bool {
        self.given().is_none() || user.is_root() || user == geteuid()
    }

    /// The address before those of its ports, if it is a loopback network.
    pub(crate) fn first(self) -> Option<Ipv4Addr> {
        match self.places {
            Places::Loopback(subnet) => Some(first(subnet)),
            Places::Given(_) => None,
        }
    }

    /// Whether all its processes are on this machine, each with addresses of its own.
    pub(crate) fn is_within_machine(self) -> bool {
        self.given().is_none()
    }

    /// Whether an address belongs to this machine but not to a loopback network's own addresses.
    pub(crate) fn is_of_machine(self, address: IpAddr) -> bool {
        let is_in_particular = self.given().is_none() && self.has(address);
        !is_in_particular && is_of_machine(address)
    }

    /// Whether packets from an address belong to this network.
    pub(crate) fn has(self, from: IpAddr) -> bool {
        match (self.places, from) {
            (Places::Given(_), _) => true,
            (Places::Loopback(subnet), IpAddr::V4(from)) => {
                let part = u32::from(from) >> HOST_BITS;
                part == u32::from(first(subnet)) >> HOST_BITS
            }
            (Places::Loopback(_), IpAddr::V6(_)) => false,
        }
    }
}

/// Whether an address is of this machine.
pub(crate) fn is_of_machine(address: IpAddr) -> bool {
    // A bind that succeeds shows that the kernel regards the address as local.
    let has = || address.is_loopback() || UdpSocket::bind((address, 0)).is_ok();
    !address.is_unspecified() && has()
}

/// Tries whether an address can be taken, or shared with those that have it.
fn check(address: &IpAddr) -> io::Result<()> {
    // Another socket would receive some of the packets for the tenants.
    if has_tenant(*address) {
        return Ok(());
    }
    let bound = Socket::share(*address);
    bound.map(drop).map_err(|error| named(*address, &error))
}

/// Whether processes share an address.
fn has_tenant(address: IpAddr) -> bool {
    let is_taken = |number| match Tenant::take(address, number) {
        Err(error) => error.kind() == io::ErrorKind::AddrInUse,
        Ok(_) => false,
    };
    (0..Tenant::MOST).any(is_taken)
}

/// An error that names the address that could not be taken, and the process that has it.
fn named(address: IpAddr, error: &io::Error) -> io::Error {
    let text = match error.kind() {
        io::ErrorKind::AddrInUse => format!("{address} is taken by {}", holder(address)),
        _ => format!("{address}: {error}"),
    };
    io::Error::new(error.kind(), text)
}

fn first(subnet: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 0, 0, 0)) | u32::from(subnet) << HOST_BITS)
}

fn address(subnet: u16, host: u32) -> IpAddr {
    Ipv4Addr::from(u32::from(first(subnet)) | host).into()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn networks_of_two_names_do_not_meet() {
        let networks = ["default", "job1", "job2"].map(Network::loopback);
        for one in networks {
            let Places::Loopback(subnet) = one.places else {
                unreachable!("a loopback network")
            };
            let own = [1, 77, (1 << HOST_BITS) - 2].map(|host| address(subnet, host));
            assert!(own.iter().all(|address| address.is_loopback()));
            for other in networks {
                assert_eq!(own.iter().all(|address| other.has(*address)), one == other);
            }
            assert!(!one.has(Ipv4Addr::LOCALHOST.into()));
        }
    }

    #[test]
    fn an_address_has_no_owner_before_and_after_it_is_taken() {
        let network = Network::loopback("an_address_has_no_owner");
        let socket = network.bind(0).unwrap();
        let address = socket.address();
        let given = Network::addresses(&[address]);
        for of in [network, given] {
            assert_eq!(of.unreachable(address), None);
        }
        let foreign = IpAddr::from([10, 0, 0, 1]);
        assert_eq!(network.unreachable(foreign), Some(ErrorKind::TimedOut));
        drop(socket);
        for of in [network, given] {
            assert_eq!(of.unreachable(address), Some(ErrorKind::TimedOut));
        }
        let tenant = Tenant::take(address, 3).unwrap();
        assert_eq!(given.unreachable(address), None);
        drop(tenant);
        let of_ipv6 = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x0bad, 0, 0, 77).into();
        let unreachable = Some(ErrorKind::NetworkUnreachable);
        assert_eq!(given.unreachable(of_ipv6), unreachable);
    }

    #[test]
    fn only_a_loopback_network_has_several_users() {
        let another = Uid::from_raw(geteuid().as_raw() ^ 0x4000);
        let loopback = Network::loopback("only_a_loopback_network");
        let given = Network::addresses(&[Ipv4Addr::LOCALHOST.into()]);
        for (network, trusts) in [(loopback, true), (given, false)] {
            assert_eq!(network.trusts(another), trusts);
            assert!(network.trusts(geteuid()) && network.trusts(Uid::ROOT));
        }
    }

    #[test]
    fn an_address_that_cannot_be_taken_is_named() {
        let foreign = IpAddr::from([192, 0, 2, 1]);
        let error = Network::addresses(&[foreign]).check().unwrap_err();
        assert!(error.to_string().contains("192.0.2.1"), "{error}");
        let network = Network::loopback("an_address_that_cannot_be_taken_is_named");
        let taken = network.bind(0).unwrap();
        let error = Network::addresses(&[taken.address()]).check().unwrap_err();
        let own = format!("is taken by process {}", std::process::id());
        assert!(error.to_string().contains(&own), "{error}");
        assert!(network.check().is_ok());
    }
}
