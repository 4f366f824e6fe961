//! The network that a simulation is on: which addresses its ports have.

mod gateway;
mod names;
mod outgoing;
mod polling;
mod receiver;
mod service;
mod sockets;
#[cfg(test)]
mod turns;
mod verbs;

pub(crate) use gateway::Gateway;
pub(crate) use receiver::Receiver;
pub(crate) use sockets::Sockets;
pub(crate) use verbs::note_unread;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

use verbs_api::ErrorKind;
use verbs_udp::{PORT, Socket, Tenant, holder};

use crate::address::fnv;
use crate::device::QP_INDEX_BITS;

const _: () = assert!(QP_INDEX_BITS == Tenant::QP_BITS);

/// A network whose other devices are in other processes, containers or machines: packets travel there as RoCEv2 over
/// UDP. For [`SimConfig::network`](crate::SimConfig::network).
///
/// ```no_run
/// use verbs_api::Verbs;
/// use verbs_sim::{Mode, Network, Sim, SimConfig};
///
/// let config = SimConfig::new().nodes(1).mode(Mode::RealTime);
/// let sim = Sim::new(config.network(Network::loopback("tests")));
/// let context = sim.open_device("sim0")?;
/// // Of 127.0.0.0/8, as a GID. A process that opens its device by the same name gets another one.
/// println!("{}", sim.query_gid(context, 1, 0)?);
/// # Ok::<(), verbs_api::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network(Places);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Places {
    /// The third part of 127.0.0.0/8 with this number; each has 4094 addresses.
    Loopback(u16),
    /// One for each port.
    Given(&'static [IpAddr]),
}

/// Bits of a loopback address that tell hosts apart.
const HOST: u32 = 12;

impl Network {
    /// One within this machine. Each port takes a free loopback address when its device is first opened; processes
    /// that give the same name are on one network. There are 4095 networks, and names that fall on the same one share
    /// it; each has room for 4094 ports.
    pub fn loopback(name: &str) -> Self {
        // 0 has what others use, such as 127.0.0.1.
        Self(Places::Loopback((fnv(name.as_bytes()) % 0xfff + 1) as u16))
    }

    /// With these addresses of this machine: one for each port, in the order of devices and ports. They are kept until
    /// the process ends. Up to 127 processes of one user may share an address.
    ///
    /// # Panics
    /// [`Sim::new`](crate::Sim::new) if there are not as many as ports, or one is there twice.
    pub fn addresses(addresses: &[IpAddr]) -> Self {
        Self(Places::Given(addresses.to_vec().leak()))
    }

    /// Whether addresses can be taken now: tries it, and lets go of them.
    ///
    /// # Errors
    /// The address, and why it cannot be taken: it is none of this machine's, or who has the port there; what forbids
    /// sockets.
    pub fn check(self) -> io::Result<()> {
        match self.0 {
            Places::Loopback(_) => self.bind(0).map(drop),
            Places::Given(addresses) => addresses.iter().try_for_each(check),
        }
    }

    /// Panics unless each of so many ports has an address of its own.
    pub(crate) fn check_ports(self, ports: usize) {
        if let Some(given) = self.given() {
            assert_eq!(given.len(), ports, "a network has an address for each port");
            let all: BTreeSet<_> = given.iter().collect();
            assert_eq!(all.len(), ports, "each port has an address of its own");
        }
    }

    pub(crate) fn given(self) -> Option<&'static [IpAddr]> {
        match self.0 {
            Places::Given(addresses) => Some(addresses),
            Places::Loopback(_) => None,
        }
    }

    /// A socket for a port: the first address that is free, or its own.
    pub(crate) fn bind(self, port: usize) -> io::Result<Socket> {
        let subnet = match self.0 {
            Places::Given(addresses) => {
                let address = addresses[port];
                return Socket::share(address).map_err(|error| named(address, &error));
            }
            Places::Loopback(subnet) => subnet,
        };
        let mut hosts = (1..(1 << HOST) - 1).map(|host| address(subnet, host));
        let free = |address: IpAddr| match Socket::bind(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => None,
            other => Some(other),
        };
        match hosts.find_map(free) {
            Some(socket) => socket,
            // All are: the last tells by whom.
            None => {
                let last = address(subnet, (1 << HOST) - 2);
                Socket::bind(last).map_err(|error| named(last, &error))
            }
        }
    }

    /// A tenant of each of its addresses, all with one number; none if it shares no address.
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

    /// Why no process or machine of this network has an address, as far as this can be known without privilege; `None` if
    /// one may have it. What is of this machine is tried: an address that can be taken has no owner.
    pub(crate) fn unreachable(self, address: IpAddr) -> Option<ErrorKind> {
        match self.0 {
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
                // Connecting a socket of UDP asks the kernel for a way, and sends nothing.
                let tried = UdpSocket::bind((*own, 0)).map(|own| own.connect((address, PORT)));
                match tried.ok()?.err()?.kind() {
                    io::ErrorKind::NetworkUnreachable => Some(ErrorKind::NetworkUnreachable),
                    io::ErrorKind::HostUnreachable => Some(ErrorKind::HostUnreachable),
                    _ => None,
                }
            }
        }
    }

    /// The names by which processes of this network find who has a port of a port space: for all addresses of the
    /// machine, or for one of those that were given.
    pub(crate) fn services(self, address: IpAddr, port_space: u32, port: u16) -> Vec<String> {
        let name = |of: &dyn fmt::Display| format!("verbsim {of} {port_space:#x} {port}");
        match self.0 {
            Places::Loopback(subnet) => vec![name(&format_args!("loopback {subnet}"))],
            Places::Given(addresses) if addresses.contains(&address) => vec![name(&address)],
            Places::Given(addresses) => addresses.iter().map(|of| name(of)).collect(),
        }
    }

    /// Whether an address is of this machine, and of no network of loopback addresses in particular.
    pub(crate) fn is_of_machine(self, address: IpAddr) -> bool {
        let is_in_particular = self.given().is_none() && self.has(address);
        !is_in_particular && is_of_machine(address)
    }

    /// Whether packets from an address are of this network.
    pub(crate) fn has(self, from: IpAddr) -> bool {
        match (self.0, from) {
            (Places::Given(_), _) => true,
            (Places::Loopback(subnet), IpAddr::V4(from)) => {
                let part = u32::from(from) >> HOST;
                part == u32::from(first(subnet)) >> HOST
            }
            (Places::Loopback(_), IpAddr::V6(_)) => false,
        }
    }
}

/// Whether an address is of this machine.
pub(crate) fn is_of_machine(address: IpAddr) -> bool {
    let has = || address.is_loopback() || UdpSocket::bind((address, 0)).is_ok();
    !address.is_unspecified() && has()
}

/// Tries whether an address can be taken, or shared with those that have it.
fn check(address: &IpAddr) -> io::Result<()> {
    // A socket more would get some of what is for the tenants.
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

/// An error that says which address could not be taken, and who has it.
fn named(address: IpAddr, error: &io::Error) -> io::Error {
    let text = match error.kind() {
        io::ErrorKind::AddrInUse => format!("{address} is taken by {}", holder(address)),
        _ => format!("{address}: {error}"),
    };
    io::Error::new(error.kind(), text)
}

fn first(subnet: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 0, 0, 0)) | u32::from(subnet) << HOST)
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
            let Places::Loopback(subnet) = one.0 else {
                unreachable!("a loopback network")
            };
            let own = [1, 77, (1 << HOST) - 2].map(|host| address(subnet, host));
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
