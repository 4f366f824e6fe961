//! The sockets of a simulation on a network.
//!
//! A thread ([`receiver`](crate::network::receiver)) reads them, and so do threads that poll and
//! find nothing. One thread reads at a time and also delivers what it has read, so packets stay in
//! order. No system call is made with the fabric's lock held.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use verbs_api::{CmId, Gid};
use verbs_roce::mad::{CmMad, MAD, service_port};
use verbs_udp::{Received, Socket, Tenant};

use super::Network;
use super::gateway::RxSource;
use super::outgoing::Outgoing;
use super::service::{Reply, Service};
use crate::address::group_of;
use crate::cm::numbers;
use crate::config::{Mode, SimConfig};
use crate::descriptor::{Flag, Guarded, raised};
use crate::packet::PortId;
use crate::sync::Mutex;

type Shared<T> = Arc<Guarded<T>>;

/// The sockets of a simulation.
pub(crate) struct Sockets {
    pub(super) network: Network,
    /// Ports of a node.
    ports: u8,
    /// Sockets of ports, from which they send. A port has none before its device is opened.
    senders: Vec<OnceLock<Shared<Socket>>>,
    reader: Mutex<Reader>,
    /// Present once a device is opened.
    wakers: OnceLock<Wakers>,
    is_stopped: AtomicBool,
    /// Whether packets of other processes may be addressed to an object here.
    pub(super) has_remote_qps: AtomicBool,
    /// The number of times that polling threads have read the sockets.
    pub(super) looks: AtomicU32,
    /// The value of `looks` when the receiver thread last asked, or when a polling thread went to
    /// sleep.
    seen: AtomicU32,
    /// The names of ids of rdma_cm that other processes may look for. Ids that share a port share
    /// its names.
    pub(crate) services: Mutex<BTreeMap<CmId, Vec<Arc<Service>>>>,
    /// The receiver thread, if it has started.
    pub(super) receiver: OnceLock<Thread>,
    /// Whether the receiver thread waits for a readable source. Otherwise it soon reads, and sends
    /// delayed acknowledgements, unless other threads read.
    pub(super) is_waiting: AtomicBool,
}

/// The descriptors that wake the thread that waits for readable sources, besides those of ports.
struct Wakers {
    /// Reports which of the other sources are readable.
    epoll: Guarded<OwnedFd>,
    /// For other threads of the process.
    flag: Flag,
}

struct Reader {
    /// Sockets of ports. None is in `epoll`, which would cost each packet sent or received 0.3 us.
    ports: Vec<Source>,
    /// Sockets of groups, and packets passed on by other tenants. `epoll` knows them by their index
    /// here.
    others: Vec<Source>,
    buffer: Vec<u8>,
    /// The tenants of this process, by port, if it shares its addresses and a device was opened.
    tenants: Vec<Shared<Tenant>>,
}

/// A readable source of packets.
enum Source {
    /// The socket of a port. Packets for other tenants of its address are passed on to them.
    Port(PortId, Shared<Socket>, Option<Shared<Tenant>>),
    /// What other tenants of a port's address have passed on.
    Tenant(PortId, Shared<Tenant>),
    /// The socket of a multicast group.
    Group(Gid, Shared<Socket>),
}

impl Sockets {
    /// The sockets of a simulation that is on a network. No port has one yet.
    ///
    /// # Panics
    /// If the simulation cannot be on a network.
    pub(crate) fn of(config: &SimConfig) -> Option<Self> {
        let network = config.network?;
        assert!(
            config.mode == Mode::RealTime && !config.is_iwarp() && !config.wire,
            "on a network devices are not iWARP, in Mode::RealTime, and without SimConfig::wire"
        );
        let ports = config.nodes as usize * usize::from(config.ports);
        network.check_ports(ports);
        Some(Self {
            network,
            ports: config.ports,
            senders: (0..ports).map(|_| OnceLock::new()).collect(),
            reader: Mutex::new(Reader {
                ports: Vec::new(),
                others: Vec::new(),
                buffer: vec![0; Socket::MOST],
                tenants: Vec::new(),
            }),
            wakers: OnceLock::new(),
            is_stopped: AtomicBool::new(false),
            has_remote_qps: AtomicBool::new(false),
            looks: AtomicU32::new(0),
            seen: AtomicU32::new(0),
            services: Mutex::default(),
            receiver: OnceLock::new(),
            is_waiting: AtomicBool::new(false),
        })
    }

    /// Gives each port of a node its socket, if it has none. `tell` gets each port, its socket, and
    /// the tenant number of this process if it shares its addresses. The lock of the reader keeps
    /// other nodes from being opened at the same time.
    pub(crate) fn open(
        &self,
        node: u32,
        mut tell: impl FnMut(PortId, &Socket, Option<u8>),
    ) -> io::Result<()> {
        let mut reader = self.reader.lock();
        let wakers = match self.wakers.get() {
            Some(wakers) => wakers,
            None => {
                let wakers = Wakers::new()?;
                self.wakers.get_or_init(|| wakers)
            }
        };
        if reader.tenants.is_empty() {
            let shared =
                |tenant: Tenant| Guarded::new(tenant.with_descriptor(raised)).map(Arc::new);
            let tenants = self.network.tenants()?.into_iter().map(shared);
            reader.tenants = tenants.collect::<Result<_, _>>()?;
        }
        for port in 1..=self.ports {
            let id = PortId { node, port };
            let sender = &self.senders[self.place(id)];
            if sender.get().is_some() {
                continue;
            }
            let place = self.place(id);
            let socket = shared(self.network.bind(place)?)?;
            let tenant = reader.tenants.get(place).cloned();
            if let Some(own) = socket.own() {
                let number = tenant.as_ref().and_then(|tenant| tenant.own());
                tell(id, own, number.map(Tenant::number));
            }
            if let Some(tenant) = tenant.clone() {
                reader.add(self.epoll(), Source::Tenant(id, tenant))?;
            }
            let socket = sender.get_or_init(|| socket).clone();
            reader.ports.push(Source::Port(id, socket, tenant));
        }
        wakers.flag.raise();
        Ok(())
    }

    /// What reports the other sources, unless the program has closed it.
    fn epoll(&self) -> Option<&OwnedFd> {
        self.wakers.get()?.epoll.own()
    }

    fn place(&self, PortId { node, port }: PortId) -> usize {
        node as usize * usize::from(self.ports) + usize::from(port) - 1
    }

    /// Joins a group: packets for it are received through each port of this node.
    pub(crate) fn join(&self, group: Gid, node: u32) -> io::Result<()> {
        let mut reader = self.reader.lock();
        for port in 1..=self.ports {
            let Some(interface) = self.address_of(PortId { node, port }) else {
                continue;
            };
            let address = group_of(group, interface);
            let joined = reader.others.iter().find_map(|source| match source {
                Source::Group(of, socket) if *of == group => {
                    socket.own().filter(|socket| socket.address() == address)
                }
                _ => None,
            });
            // One socket receives the group's packets of all interfaces.
            if let Some(socket) = joined {
                socket.join_through(interface)?;
                continue;
            }
            let socket = shared(Socket::join(address, interface)?)?;
            reader.add(self.epoll(), Source::Group(group, socket))?;
        }
        Ok(())
    }

    /// Leaves all groups except those that `groups` returns. No group is joined at the same time.
    pub(crate) fn leave_all_but(&self, groups: impl FnOnce() -> BTreeSet<Gid>) {
        let mut reader = self.reader.lock();
        if reader.others.iter().all(|source| source.group().is_none()) {
            return;
        }
        let groups = groups();
        reader.others.retain(|source| {
            let stays = source.group().is_none_or(|group| groups.contains(&group));
            if !stays && let (Some(epoll), Some(fd)) = (self.epoll(), source.fd()) {
                // A child after `fork` may have the socket too, and epoll would report it until the
                // child ends.
                let _ = epoll::delete(epoll, fd);
            }
            stays
        });
        // The index of each remaining source may have changed.
        for (number, source) in (0..).zip(&reader.others) {
            if let (Some(epoll), Some(fd)) = (self.epoll(), source.fd()) {
                let data = epoll::EventData::new_u64(number);
                let _ = epoll::modify(epoll, fd, data, epoll::EventFlags::IN);
            }
        }
    }

    /// The number of this process among those that share its addresses.
    pub(crate) fn tenant(&self) -> Option<u8> {
        let tenants = &self.reader.lock().tenants;
        tenants.first()?.own().map(Tenant::number)
    }

    /// The sockets of ports, except those that the program has closed.
    fn senders(&self) -> impl Iterator<Item = &Socket> {
        self.senders.iter().filter_map(|sender| sender.get()?.own())
    }

    fn sender(&self, port: PortId) -> Option<&Socket> {
        self.senders.get(self.place(port))?.get()?.own()
    }

    fn address_of(&self, port: PortId) -> Option<IpAddr> {
        self.sender(port).map(Socket::address)
    }

    /// Sends packets. Packets that the system does not accept are lost, as on a network. Returns
    /// false if one of them was a train that the path to its receiver cannot cut apart.
    pub(crate) fn send(&self, outgoing: &Outgoing) -> bool {
        let mut cuts = true;
        for (port, train) in outgoing.trains() {
            if let Some(socket) = self.sender(port)
                && let Err(error) = socket.send(&train)
            {
                let refused = [Errno::IO, Errno::INVAL].map(|errno| Some(errno.raw_os_error()));
                // These errors mean that the interface cannot segment, so single packets may still
                // work.
                cuts &= !(train.has_several() && refused.contains(&error.raw_os_error()));
            }
        }
        cuts
    }

    /// Reads once from each readable socket, unless another thread is reading. `take` gets the
    /// received packets, and the address on which they arrived. Returns whether it has read.
    pub(crate) fn read(&self, mut take: impl FnMut(RxSource, IpAddr, &Received<'_>)) -> bool {
        let Some(mut reader) = self.reader.try_lock() else {
            return false;
        };
        let Reader {
            ports,
            others,
            buffer,
            ..
        } = &mut *reader;
        let mut read = |source: &Source| {
            let _ = source.read(self.network, buffer, &mut take);
        };
        // With one port, a read finds out more cheaply than a poll whether it is readable.
        match &ports[..] {
            [only] => read(only),
            all => {
                // The program may have closed some descriptors.
                let open = || all.iter().filter_map(|source| Some((source, source.fd()?)));
                let (sources, fds): (Vec<_>, Vec<_>) = open().unzip();
                let ready = readable(fds.into_iter(), Duration::ZERO);
                let ready = sources.into_iter().zip(ready).filter(|(_, ready)| *ready);
                ready.for_each(|(source, _)| read(source));
            }
        }
        if !others.is_empty() {
            for place in self.ready_others(others.len()) {
                if let Some(source) = others.get(place) {
                    read(source);
                }
            }
        }
        true
    }

    /// The indices of the other sources that are readable.
    fn ready_others(&self, most: usize) -> Vec<usize> {
        let Some(epoll) = self.epoll() else {
            return Vec::new();
        };
        let mut events: Vec<epoll::Event> = Vec::with_capacity(most);
        // A failed wait is repeated soon.
        let _ = epoll::wait(
            epoll,
            spare_capacity(&mut events),
            Some(&Timespec::default()),
        );
        let place = |event: &epoll::Event| event.data.u64() as usize;
        events.iter().map(place).collect()
    }

    /// Waits for the thread that reads, if there is one.
    pub(crate) fn await_reader(&self) {
        drop(self.reader.lock());
    }

    /// Waits until a source is readable. Returns false if reading has stopped, or the program has
    /// closed the descriptors that would wake it.
    pub(crate) fn wait_readable(&self) -> bool {
        /// The wait is bounded, because a program may close the descriptor that would wake it.
        const LONGEST: Duration = Duration::from_secs(1);
        loop {
            // A thread that reads now leaves nothing to read, and may open sockets.
            self.await_reader();
            let Some(wakers) = self.wakers.get() else {
                return false;
            };
            let (Some(flag), Some(epoll)) = (wakers.flag.fd.own(), wakers.epoll.own()) else {
                return false;
            };
            let fds = [flag.as_fd(), epoll.as_fd()].into_iter();
            let ready = readable(fds.chain(self.senders().map(Socket::as_fd)), LONGEST);
            if self.is_stopped() {
                return false;
            }
            if ready.first() == Some(&true) {
                wakers.flag.lower();
            }
            if ready.contains(&true) {
                return true;
            }
        }
    }

    /// Visits every descriptor that holds an address or a group, except those behind a lock that a
    /// thread holds.
    pub(crate) fn each_descriptor(&self, mut visit: impl FnMut(BorrowedFd<'_>)) {
        self.senders().for_each(|socket| visit(socket.as_fd()));
        if let Some(reader) = self.reader.try_lock() {
            let others = reader.others.iter().filter_map(Source::fd);
            others.for_each(&mut visit);
        }
        if let Some(services) = self.services.try_lock() {
            let services = services.values().flatten();
            services.filter_map(|service| service.fd()).for_each(visit);
        }
    }

    /// Whether polling threads have read the sockets at least twice since this was last asked, and
    /// none has gone to sleep since. A thread that polls seldom reads once at most, and packets
    /// would wait for it.
    pub(crate) fn do_others_look(&self) -> bool {
        let looks = self.looks.load(Ordering::SeqCst);
        looks.wrapping_sub(self.seen.swap(looks, Ordering::SeqCst)) >= 2
    }

    /// A polling thread goes to sleep: the receiver must not rely on it.
    pub(crate) fn stop_looking(&self) {
        let looks = self.looks.load(Ordering::SeqCst);
        self.seen.store(looks, Ordering::SeqCst);
        self.wake_receiver();
    }

    /// Wakes the receiver, because a polling thread may leave work that the receiver is to do once
    /// that thread no longer polls.
    pub(crate) fn call_receiver(&self) {
        if self.is_waiting.load(Ordering::SeqCst) {
            self.wake_waiting();
        }
    }

    /// Wakes the thread that waits for readable sources.
    fn wake_waiting(&self) {
        if let Some(wakers) = self.wakers.get() {
            wakers.flag.raise();
        }
    }

    fn wake_receiver(&self) {
        if let Some(receiver) = self.receiver.get() {
            receiver.unpark();
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Stops reading.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.wake_waiting();
        self.wake_receiver();
    }

    /// Whether threads read that poll, or are about to sleep.
    pub(super) fn do_callers_read(&self) -> bool {
        self.network.spins && self.has_remote_qps()
    }

    pub(crate) fn has_remote_qps(&self) -> bool {
        self.has_remote_qps.load(Ordering::Relaxed)
    }
}

impl Wakers {
    fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let (epoll, flag) = (Guarded::new(raised(epoll))?, Flag::new()?);
        Ok(Self { epoll, flag })
    }
}

impl Reader {
    /// Adds a source to the others.
    fn add(&mut self, epoll: Option<&OwnedFd>, source: Source) -> io::Result<()> {
        let place = self.others.len() as u64;
        if let (Some(epoll), Some(fd)) = (epoll, source.fd()) {
            let data = epoll::EventData::new_u64(place);
            epoll::add(epoll, fd, data, epoll::EventFlags::IN)?;
        }
        self.others.push(source);
        Ok(())
    }
}

impl Source {
    fn group(&self) -> Option<Gid> {
        match self {
            Self::Group(group, _) => Some(*group),
            Self::Port(..) | Self::Tenant(..) => None,
        }
    }

    /// The source's descriptor, unless the program has closed it.
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Port(_, socket, _) | Self::Group(_, socket) => Some(socket.own()?.as_fd()),
            Self::Tenant(_, tenant) => Some(tenant.own()?.as_fd()),
        }
    }

    /// Reads once. `take` gets the address on which packets arrived, and the packets.
    fn read(
        &self,
        network: Network,
        buffer: &mut [u8],
        mut take: impl FnMut(RxSource, IpAddr, &Received<'_>),
    ) -> Option<()> {
        match self {
            Self::Port(port, socket, tenant) => {
                let (source, socket) = (RxSource::Port(*port), socket.own()?);
                let (address, received) = (socket.address(), socket.receive(buffer).ok()??);
                let Some(tenant) = tenant.as_ref().and_then(|tenant| tenant.own()) else {
                    take(source, address, &received);
                    return Some(());
                };
                let of_message = |datagram: &[u8]| tenant_of(network, address, datagram);
                for own in tenant.keep_own(received, of_message) {
                    take(source, address, &own);
                }
            }
            Self::Tenant(port, tenant) => {
                let tenant = tenant.own()?;
                let received = tenant.receive(buffer).ok()??;
                take(RxSource::Port(*port), tenant.address(), &received);
            }
            Self::Group(group, socket) => {
                let socket = socket.own()?;
                let received = socket.receive(buffer).ok()??;
                take(RxSource::Group(*group), socket.address(), &received);
            }
        }
        Some(())
    }
}

/// The tenant that a message to QP 1 is for: the one that chose the connection's number, or that
/// listens at the requested port.
fn tenant_of(network: Network, address: IpAddr, datagram: &[u8]) -> Option<u8> {
    const BTH_AND_DETH: usize = 20;
    const GSI: [u8; 3] = [0, 0, 1];
    // QP numbers already contain the tenant, except that of QP 1, which all share.
    if datagram.get(5..8) != Some(&GSI) {
        return None;
    }
    let mad = datagram.get(BTH_AND_DETH..BTH_AND_DETH + MAD)?;
    match numbers::address_of(&CmMad::read(mad).ok()?.message)? {
        numbers::Address::Connection(number) => Some(numbers::tenant_of(number)),
        numbers::Address::Service(service_id) => {
            let (ps, port) = service_port(service_id)?;
            let names = network.services(address, ps.into(), port);
            let trusts = |user| network.trusts(user);
            let Reply::Answer(answer) = Service::ask(names.first()?, trusts) else {
                return None;
            };
            answer.split_whitespace().nth(1)?.parse().ok()
        }
    }
}

fn shared(socket: Socket) -> io::Result<Shared<Socket>> {
    Ok(Arc::new(Guarded::new(socket.with_descriptor(raised))?))
}

/// Waits for `time` at most until a descriptor is readable. Returns for each whether it is.
fn readable<'a>(fds: impl Iterator<Item = BorrowedFd<'a>>, time: Duration) -> Vec<bool> {
    let mut fds: Vec<_> = fds
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let time = Timespec::try_from(time).ok();
    // An interrupted wait counts as over: callers ask again.
    let _ = poll(&mut fds, time.as_ref());
    fds.iter().map(|fd| !fd.revents().is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_look_only_if_they_do_so_more_than_once_in_a_rest() {
        let config = SimConfig::new().mode(Mode::RealTime).nodes(1);
        let sockets = Sockets::of(&config.network(Network::loopback("looks"))).unwrap();
        for (looks, expected) in [(0, false), (1, false), (2, true), (1, false), (3, true)] {
            sockets.looks.fetch_add(looks, Ordering::SeqCst);
            assert_eq!(sockets.do_others_look(), expected, "{looks} looks");
        }
        sockets.looks.fetch_add(5, Ordering::SeqCst);
        sockets.stop_looking();
        assert!(!sockets.do_others_look(), "the thread has gone to sleep");
    }
}
