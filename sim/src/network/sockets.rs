//! The sockets of a simulation on a network.
//!
//! They are read by a thread ([`receiver`](crate::network::receiver)), and by threads that poll and find nothing: one at a
//! time, which also delivers what it has read, so that packets stay in their order. No system call is made with the
//! fabric's lock held.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
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
use super::service::Service;
use crate::address::group_of;
use crate::cm::numbers;
use crate::config::{Mode, SimConfig};
use crate::descriptor::Flag;
use crate::descriptor::{Guarded, raised};
use crate::packet::PortId;
use crate::sync::Mutex;

type Shared<T> = Arc<Guarded<T>>;

/// The sockets of a simulation.
#[derive(Debug)]
pub(crate) struct Sockets {
    network: Network,
    /// Ports of a node.
    ports: u8,
    /// Those of ports: where they are sent from. A port has none before its device is opened.
    senders: Vec<OnceLock<Shared<Socket>>>,
    reader: Mutex<Reader>,
    /// Says which of the other sources can be read.
    epoll: Guarded<OwnedFd>,
    /// Wakes the thread that waits until something can be read.
    waker: Flag,
    is_stopped: AtomicBool,
    /// Whether there is someone whom packets of other processes may be for.
    has_remote_qps: AtomicBool,
    /// How often threads that poll have looked.
    looks: AtomicU32,
    /// How often they had when the thread that reads last asked, or when one of them went to sleep.
    seen: AtomicU32,
    /// The names of ids of rdma_cm that other processes may look for.
    /// Ids that share a port share its names.
    pub(crate) services: Mutex<BTreeMap<CmId, Vec<Arc<Service>>>>,
    /// The thread that reads, if it has started.
    receiver: OnceLock<Thread>,
    /// It waits until something can be read. Else it soon reads, and sends what was kept, unless others look.
    is_waiting: AtomicBool,
}

#[derive(Debug)]
struct Reader {
    /// Sockets of ports. None is in `epoll`: a socket that is there costs each packet that it sends and gets 0.3 us.
    ports: Vec<Source>,
    /// Those of groups, and what other tenants hand on. By their places here they are in `epoll`.
    others: Vec<Source>,
    buffer: Vec<u8>,
    /// What this process is, if it shares its addresses: by port, once a device was opened.
    tenants: Vec<Shared<Tenant>>,
}

/// A socket to be read.
#[derive(Debug)]
struct Source {
    socket: Readable,
    source: RxSource,
}

#[derive(Debug)]
enum Readable {
    /// What is for other tenants of its address is handed on, if there are any.
    Udp(Shared<Socket>, Option<Shared<Tenant>>),
    /// What others have handed on.
    Tenant(Shared<Tenant>),
}

impl Sockets {
    /// The sockets of a simulation that is on a network. No port has one yet.
    ///
    /// # Panics
    /// If the simulation cannot be on a network, or the system has no descriptors.
    pub(crate) fn of(config: &SimConfig) -> Option<Self> {
        let network = config.network?;
        assert!(
            config.mode == Mode::RealTime && config.is_roce() && !config.wire,
            "on a network devices are of RoCE, in Mode::RealTime, and without SimConfig::wire"
        );
        network.check_ports(config.nodes as usize * usize::from(config.ports));
        let sockets = Self::new(network, config.nodes, config.ports);
        Some(sockets.expect("the system has descriptors"))
    }

    fn new(network: Network, nodes: u32, ports: u8) -> io::Result<Self> {
        let epoll = raised(epoll::create(epoll::CreateFlags::CLOEXEC)?);
        Ok(Self {
            network,
            ports,
            senders: (0..nodes as usize * usize::from(ports))
                .map(|_| OnceLock::new())
                .collect(),
            reader: Mutex::new(Reader {
                ports: Vec::new(),
                others: Vec::new(),
                buffer: vec![0; Socket::MOST],
                tenants: Vec::new(),
            }),
            epoll: Guarded::new(epoll)?,
            waker: Flag::new()?,
            is_stopped: AtomicBool::new(false),
            has_remote_qps: AtomicBool::new(false),
            looks: AtomicU32::new(0),
            seen: AtomicU32::new(0),
            services: Mutex::default(),
            receiver: OnceLock::new(),
            is_waiting: AtomicBool::new(false),
        })
    }

    /// Gives each port of a node its socket, if it has none; `tell` learns of each, and of the number of this process if
    /// it shares its addresses. No other node is opened meanwhile.
    pub(crate) fn open(
        &self,
        node: u32,
        mut tell: impl FnMut(PortId, &Socket, Option<u8>),
    ) -> io::Result<()> {
        let mut reader = self.reader.lock();
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
            let source = RxSource::Port(id);
            if let Some(tenant) = tenant.clone() {
                let socket = Readable::Tenant(tenant);
                reader.add(&self.epoll, Source { socket, source })?;
            }
            let socket = sender.get_or_init(|| socket).clone();
            let socket = Readable::Udp(socket, tenant);
            reader.ports.push(Source { socket, source });
        }
        self.waker.raise();
        Ok(())
    }

    fn place(&self, PortId { node, port }: PortId) -> usize {
        node as usize * usize::from(self.ports) + usize::from(port) - 1
    }

    /// Packets for a group come in from now on, through each port of this node.
    pub(crate) fn join(&self, group: Gid, node: u32) -> io::Result<()> {
        let mut reader = self.reader.lock();
        for port in 1..=self.ports {
            let Some(interface) = self.address_of(PortId { node, port }) else {
                continue;
            };
            let address = group_of(group, interface);
            let joined = reader.others.iter().find_map(|source| {
                let socket = source.group_socket(group)?.own()?;
                (socket.address() == address).then_some(socket)
            });
            if let Some(socket) = joined {
                socket.join_through(interface)?;
                continue;
            }
            let socket = shared(Socket::join(address, interface)?)?;
            let source = Source {
                socket: Readable::Udp(socket, None),
                source: RxSource::Group(group),
            };
            reader.add(&self.epoll, source)?;
        }
        Ok(())
    }

    /// Only for these groups packets are still to come in. None is joined meanwhile.
    pub(crate) fn leave_all_but(&self, groups: impl FnOnce() -> BTreeSet<Gid>) {
        let mut reader = self.reader.lock();
        if reader.others.iter().all(|source| source.group().is_none()) {
            return;
        }
        let groups = groups();
        reader.others.retain(|source| {
            let stays = source.group().is_none_or(|group| groups.contains(&group));
            if !stays && let (Some(epoll), Some(fd)) = (self.epoll.own(), source.fd()) {
                // A child after `fork` may have it too: then it would be waited for until that ends.
                let _ = epoll::delete(epoll, fd);
            }
            stays
        });
        // The rest have new places.
        for (number, source) in (0..).zip(&reader.others) {
            if let (Some(epoll), Some(fd)) = (self.epoll.own(), source.fd()) {
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

    pub(crate) fn network(&self) -> Network {
        self.network
    }

    fn sender(&self, port: PortId) -> Option<&Socket> {
        self.senders.get(self.place(port))?.get()?.own()
    }

    fn address_of(&self, port: PortId) -> Option<IpAddr> {
        self.sender(port).map(Socket::address)
    }

    /// Sends what has left. What the system does not take is lost, as on a network. False if that was a train which the
    /// way to its receiver does not cut apart.
    pub(crate) fn send(&self, outgoing: &Outgoing) -> bool {
        let mut cuts = true;
        for (port, train) in outgoing.trains() {
            if let Some(socket) = self.sender(port)
                && let Err(error) = socket.send(&train)
            {
                let refused = [Errno::IO, Errno::INVAL].map(|errno| Some(errno.raw_os_error()));
                cuts &= !(train.has_several() && refused.contains(&error.raw_os_error()));
            }
        }
        cuts
    }

    /// Reads once from each socket that can be read, unless another thread does; `take` gets what has come, and the
    /// address where it came in.
    pub(crate) fn read(&self, mut take: impl FnMut(RxSource, IpAddr, &Received<'_>)) {
        let Some(mut reader) = self.reader.try_lock() else {
            return;
        };
        let Reader {
            ports,
            others,
            buffer,
            ..
        } = &mut *reader;
        let mut read = |source: &Source| {
            let _ = source.read(self.network, buffer, |to, came| {
                take(source.source, to, came)
            });
        };
        match &ports[..] {
            [only] => read(only),
            all => {
                // The program may have closed some.
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
    }

    /// Which of the other sources can be read: their places.
    fn ready_others(&self, most: usize) -> Vec<usize> {
        let Some(epoll) = self.epoll.own() else {
            return Vec::new();
        };
        let mut events: Vec<epoll::Event> = Vec::with_capacity(most);
        // What fails now is asked again soon.
        let _ = epoll::wait(
            epoll,
            spare_capacity(&mut events),
            Some(&Timespec::default()),
        );
        let place = |event: &epoll::Event| event.data.u64() as usize;
        events.iter().map(place).collect()
    }

    /// Waits until something can be read. False if no more is to be, or the program has closed what would tell.
    pub(crate) fn wait_readable(&self) -> bool {
        /// A program may have closed what would wake it.
        const LONGEST: Duration = Duration::from_secs(1);
        loop {
            let sockets = self.reader.lock().sockets_of_ports();
            let (Some(waker), Some(epoll)) = (self.waker.own(), self.epoll.own()) else {
                return false;
            };
            let own = sockets.iter().filter_map(|socket| socket.own());
            let fds = [waker.as_fd(), epoll.as_fd()].into_iter();
            let ready = readable(fds.chain(own.map(Socket::as_fd)), LONGEST);
            if self.is_stopped() {
                return false;
            }
            if ready.first() == Some(&true) {
                self.waker.lower();
            }
            if ready.contains(&true) {
                return true;
            }
        }
    }

    /// Every descriptor that holds an address or a group, as far as no thread has the lock.
    pub(crate) fn each_descriptor(&self, mut visit: impl FnMut(BorrowedFd<'_>)) {
        let senders = self.senders.iter().filter_map(|sender| sender.get()?.own());
        senders.for_each(|socket| visit(socket.as_fd()));
        if let Some(reader) = self.reader.try_lock() {
            let others = reader.others.iter().filter_map(Source::fd);
            others.for_each(&mut visit);
        }
        if let Some(services) = self.services.try_lock() {
            let services = services.values().flatten();
            services.filter_map(|service| service.fd()).for_each(visit);
        }
    }

    /// The calling thread is the one that reads.
    pub(crate) fn set_receiver(&self) {
        let _ = self.receiver.set(thread::current());
    }

    /// Whether threads that poll look by themselves: since this was last asked, and none has gone to sleep since.
    pub(crate) fn do_others_look(&self) -> bool {
        let looks = self.looks.load(Ordering::SeqCst);
        self.seen.swap(looks, Ordering::SeqCst) != looks
    }

    /// A thread that has looked goes to sleep: the one that reads is not to rely on it.
    pub(crate) fn stop_looking(&self) {
        let looks = self.looks.load(Ordering::SeqCst);
        self.seen.store(looks, Ordering::SeqCst);
        self.wake_receiver();
    }

    /// The thread that reads waits from now on, or no longer.
    pub(crate) fn set_waiting(&self, is_waiting: bool) {
        self.is_waiting.store(is_waiting, Ordering::SeqCst);
    }

    /// A thread that has looked may leave something undone: the one that reads is to see to it when it no longer looks.
    pub(crate) fn call_receiver(&self) {
        if self.is_waiting.load(Ordering::SeqCst) {
            self.waker.raise();
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

    /// Nothing more is to be read.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        self.waker.raise();
        self.wake_receiver();
    }

    pub(crate) fn has_remote_qps(&self) -> bool {
        self.has_remote_qps.load(Ordering::Relaxed)
    }

    pub(crate) fn set_remote_qps(&self, has: bool) {
        self.has_remote_qps.store(has, Ordering::Relaxed);
    }

    /// A thread that polls looks by itself.
    pub(crate) fn count_look(&self) {
        self.looks.fetch_add(1, Ordering::SeqCst);
    }
}

impl Reader {
    /// Adds one of the other sources.
    fn add(&mut self, epoll: &Guarded<OwnedFd>, source: Source) -> io::Result<()> {
        let place = self.others.len() as u64;
        if let (Some(epoll), Some(fd)) = (epoll.own(), source.fd()) {
            let data = epoll::EventData::new_u64(place);
            epoll::add(epoll, fd, data, epoll::EventFlags::IN)?;
        }
        self.others.push(source);
        Ok(())
    }

    fn sockets_of_ports(&self) -> Vec<Shared<Socket>> {
        let socket = |source: &Source| match &source.socket {
            Readable::Udp(socket, _) => Some(socket.clone()),
            Readable::Tenant(_) => None,
        };
        self.ports.iter().filter_map(socket).collect()
    }
}

impl Source {
    fn group(&self) -> Option<Gid> {
        match self.source {
            RxSource::Group(group) => Some(group),
            RxSource::Port(_) => None,
        }
    }

    /// Its socket, if it is that of the group.
    fn group_socket(&self, group: Gid) -> Option<&Shared<Socket>> {
        match &self.socket {
            Readable::Udp(socket, _) if self.group() == Some(group) => Some(socket),
            _ => None,
        }
    }

    /// Its descriptor, unless the program has closed it.
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        match &self.socket {
            Readable::Udp(socket, _) => Some(socket.own()?.as_fd()),
            Readable::Tenant(tenant) => Some(tenant.own()?.as_fd()),
        }
    }

    /// Reads once; `take` gets the address where something came in, and what has come.
    fn read(
        &self,
        network: Network,
        buffer: &mut [u8],
        mut take: impl FnMut(IpAddr, &Received<'_>),
    ) -> Option<()> {
        match &self.socket {
            Readable::Udp(socket, tenant) => {
                let socket = socket.own()?;
                let came = socket.receive(buffer).ok()??;
                match tenant.as_ref().and_then(|tenant| tenant.own()) {
                    None => take(socket.address(), &came),
                    Some(tenant) => {
                        let of_message =
                            |datagram: &[u8]| tenant_of(network, socket.address(), datagram);
                        for own in tenant.keep_own(came, of_message) {
                            take(socket.address(), &own);
                        }
                    }
                }
            }
            Readable::Tenant(tenant) => {
                let tenant = tenant.own()?;
                take(tenant.address(), &tenant.receive(buffer).ok()??);
            }
        }
        Some(())
    }
}

/// Whose a message to QP 1 is, of those that share the address: of who has called the connection so, or listens at the
/// port that is asked for.
fn tenant_of(network: Network, address: IpAddr, datagram: &[u8]) -> Option<u8> {
    const BTH_AND_DETH: usize = 20;
    const GSI: [u8; 3] = [0, 0, 1];
    if datagram.get(5..8) != Some(&GSI) {
        return None;
    }
    let mad = datagram.get(BTH_AND_DETH..BTH_AND_DETH + MAD)?;
    match numbers::address_of(&CmMad::read(mad).ok()?.message)? {
        numbers::Address::Connection(number) => numbers::tenant_of(number),
        numbers::Address::Service(service_id) => {
            let (ps, port) = service_port(service_id)?;
            let names = network.services(address, ps.into(), port);
            let answer = Service::ask(names.first()?)?;
            let mut words = str::from_utf8(&answer).ok()?.split_whitespace();
            words.nth(1)?.parse().ok()
        }
    }
}

fn shared(socket: Socket) -> io::Result<Shared<Socket>> {
    Ok(Arc::new(Guarded::new(socket.with_descriptor(raised))?))
}

/// Waits until some of them can be read, so long at most: whether each can.
fn readable<'a>(fds: impl Iterator<Item = BorrowedFd<'a>>, time: Duration) -> Vec<bool> {
    let mut fds: Vec<_> = fds
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let time = Timespec::try_from(time).ok();
    // Interrupted, it has waited long enough.
    let _ = poll(&mut fds, time.as_ref());
    fds.iter().map(|fd| !fd.revents().is_empty()).collect()
}
