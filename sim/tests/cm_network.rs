//! rdma_cm between simulations that reach each other by UDP, like processes of one machine. Each
//! test has its own network.
#![cfg(feature = "network")]

use std::io::Write;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self, UnixListener, UnixStream};
use std::time::Duration;
use std::{fs, io, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use verbs_api::cm::{Cm, CmChannel, CmEvent, CmEventType, CmId, CmOption, ConnParam, PortSpace};
use verbs_api::profile::Profile;
use verbs_api::{
    Access, CqInit, ErrorKind, LinkLayer, Qp, QpInit, QpType, RecvWr, SendOp, SendWr, Verbs, Wait,
    Wc, WcStatus,
};
use verbs_sim::{Mode, Network, Sim, SimConfig};
use verbs_udp::Socket;

/// The time after which a test reports a hang.
const WATCH: Wait = Wait::For(Duration::from_secs(60));
const SECOND: Duration = Duration::from_secs(1);

/// A simulation, as a process has it.
struct Process {
    sim: Sim,
    channel: CmChannel,
}

impl Process {
    fn start(network: Network, seed: u64) -> Self {
        let config = SimConfig::new().nodes(1).mode(Mode::RealTime).scatter(seed);
        Self::of(config.network(network))
    }

    fn of(config: SimConfig) -> Self {
        let sim = Sim::new(config);
        let channel = sim.create_event_channel().unwrap();
        Self { sim, channel }
    }

    fn id(&self) -> CmId {
        let id = self.sim.create_id(self.channel, 0, PortSpace::Tcp);
        id.unwrap()
    }

    fn expect(&self, kind: CmEventType) -> CmEvent {
        let event = self.sim.get_cm_event(self.channel, WATCH).unwrap();
        assert_eq!(event.event, kind, "{event}");
        self.sim.ack_cm_event(&event).unwrap();
        event
    }

    fn listen(&self, addr: SocketAddr) -> CmId {
        let id = self.id();
        self.sim.bind_addr(id, addr).unwrap();
        self.sim.listen(id, 8).unwrap();
        id
    }

    fn resolve(&self, dst: SocketAddr) -> CmId {
        let id = self.id();
        self.sim.resolve_addr(id, None, dst, SECOND).unwrap();
        self.expect(CmEventType::AddrResolved);
        self.sim.resolve_route(id, SECOND).unwrap();
        self.expect(CmEventType::RouteResolved);
        id
    }

    fn qp(&self, id: CmId) -> Qp {
        let context = self.sim.query_id(id).unwrap().verbs.unwrap();
        let cq = self.sim.create_cq(context, &CqInit::new(16)).unwrap();
        let init = QpInit::new(QpType::Rc, cq, cq);
        self.sim.create_cm_qp(id, None, &init).unwrap()
    }
}

/// Connects both, sends a message each way, and ends the connection.
fn meet(server: &Process, client: &Process, dst: SocketAddr) {
    let from = client.resolve(dst);
    let client_qp = client.qp(from);
    let param = ConnParam::new().private_data(b"client");
    client.sim.connect(from, &param).unwrap();
    let request = server.expect(CmEventType::ConnectRequest);
    assert!(request.private_data().starts_with(b"client\0"));
    let server_qp = server.qp(request.id);
    let param = ConnParam::new().private_data(b"server");
    server.sim.accept(request.id, &param).unwrap();
    let established = client.expect(CmEventType::Established);
    assert!(established.private_data().starts_with(b"server\0"));
    assert_eq!(server.expect(CmEventType::Established).id, request.id);
    let client_end = (client, from, client_qp);
    let server_end = (server, request.id, server_qp);
    send(client_end, server_end);
    send(server_end, client_end);
    client.sim.disconnect(from).unwrap();
    server.expect(CmEventType::Disconnected);
    server.sim.disconnect(request.id).unwrap();
    client.expect(CmEventType::Disconnected);
    for (process, id) in [(client, from), (server, request.id)] {
        process.sim.destroy_cm_qp(id, WATCH).unwrap();
        process.sim.destroy_id(id, WATCH).unwrap();
    }
}

type End<'a> = (&'a Process, CmId, Qp);

fn send((from, id, from_qp): End<'_>, (to, to_id, to_qp): End<'_>) {
    let buffer = |process: &Process, id, bytes: &[u8]| {
        let pd = process.sim.query_id(id).unwrap().pd.unwrap();
        let mr = process.sim.alloc_mr(pd, 16, Access::LOCAL_WRITE).unwrap();
        process.sim.write_mr(mr, 0, bytes).unwrap();
        let attr = process.sim.query_mr(mr).unwrap();
        (mr, attr.sge(0, 16))
    };
    let (received, to_sge) = buffer(to, to_id, &[0; 16]);
    to.sim
        .post_recv(to_qp, &[RecvWr::new(1, &[to_sge])])
        .unwrap();
    let (_, sge) = buffer(from, id, b"sixteen bytes...");
    let list = [sge];
    let wr = SendWr::new(2, SendOp::Send, &list);
    from.sim.post_send(from_qp, &[wr]).unwrap();
    for (process, qp) in [(from, from_qp), (to, to_qp)] {
        let cq = process
            .sim
            .query_qp(qp, verbs_api::QpAttrMask::STATE)
            .unwrap()
            .init
            .send_cq;
        let mut wc = [Wc::default()];
        while process.sim.poll_cq(cq, &mut wc).unwrap() == 0 {}
        assert_eq!(wc[0].status, WcStatus::Success);
    }
    let mut bytes = [0; 16];
    to.sim.read_mr(received, 0, &mut bytes).unwrap();
    assert_eq!(&bytes, b"sixteen bytes...");
}

fn two(network: Network) -> [Process; 2] {
    [1, 2].map(|seed| Process::start(network, seed))
}

fn any(port: u16) -> SocketAddr {
    SocketAddr::from(([0, 0, 0, 0], port))
}

#[test]
fn any_address_of_the_machine_leads_to_the_process_that_listens() {
    let [server, client] = two(Network::loopback("cm_any_address_leads"));
    let listener = server.listen(any(0));
    let port = server
        .sim
        .query_id(listener)
        .unwrap()
        .local_addr
        .unwrap()
        .port();
    meet(&server, &client, ([127, 0, 0, 1], port).into());
    let own = server
        .sim
        .query_gid(server.sim.cm_devices().unwrap()[0], 1, 0)
        .unwrap();
    meet(&server, &client, (own.ipv4().unwrap(), port).into());
    // The process itself finds it, too.
    let dst = SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port);
    let id = server.resolve(dst);
    server.sim.connect(id, &ConnParam::new()).unwrap();
    server.expect(CmEventType::ConnectRequest);
}

#[test]
fn a_port_of_the_machine_is_of_one_process() {
    let [first, second] = two(Network::loopback("cm_a_port_is_of_one"));
    let listener = first.listen(any(7471));
    let id = second.id();
    let taken = second.sim.bind_addr(id, any(7471)).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AddressInUse, "{taken}");
    first.sim.destroy_id(listener, WATCH).unwrap();
    second.sim.bind_addr(id, any(7471)).unwrap();
}

/// CM-85: all ids of a process share the name by which other processes find a port.
#[test]
fn a_port_belongs_to_its_process_until_the_last_id_is_gone() {
    let [first, second] = two(Network::loopback("cm_two_families"));
    let v6 = SocketAddr::from(([0; 8], 7473));
    let of_v4 = first.listen(any(7473));
    let of_v6 = first.id();
    let only = CmOption::AfOnly(true);
    first.sim.set_option(of_v6, only).unwrap();
    first.sim.bind_addr(of_v6, v6).unwrap();
    first.sim.listen(of_v6, 8).unwrap();
    meet(&first, &second, ([127, 0, 0, 1], 7473).into());
    meet(&first, &second, ([0, 0, 0, 0, 0, 0, 0, 1], 7473).into());
    let id = second.id();
    for gone in [of_v4, of_v6] {
        let taken = second.sim.bind_addr(id, any(7473)).unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AddressInUse, "{taken}");
        first.sim.destroy_id(gone, WATCH).unwrap();
    }
    second.sim.bind_addr(id, any(7473)).unwrap();
}

/// CM-02, LID-01: on InfiniBand too, any address of the machine leads to the process that listens.
/// The path has the LIDs of both ports.
#[test]
fn processes_on_infiniband_meet() {
    let network = Network::loopback("cm_infiniband");
    let [server, client] = [1, 2].map(|seed| {
        let config = SimConfig::new().nodes(1).mode(Mode::RealTime).scatter(seed);
        Process::of(config.link_layer(LinkLayer::InfiniBand).network(network))
    });
    server.listen(any(7474));
    meet(&server, &client, ([127, 0, 0, 1], 7474).into());
    let own = server.listen(any(7475));
    let context = server.sim.open_device("sim0").unwrap();
    let lid = server.sim.query_port(context, 1).unwrap().lid;
    let id = client.resolve(([127, 0, 0, 1], 7475).into());
    client.qp(id);
    client.sim.connect(id, &ConnParam::new()).unwrap();
    let request = server.expect(CmEventType::ConnectRequest);
    assert_ne!(request.id, own);
    let server_qp = server.qp(request.id);
    server.sim.accept(request.id, &ConnParam::new()).unwrap();
    client.expect(CmEventType::Established);
    let path = |process: &Process, qp| {
        let query = process.sim.query_qp(qp, verbs_api::QpAttrMask::AV);
        query.unwrap().attr.ah_attr.unwrap()
    };
    let of_client = client.sim.query_id(id).unwrap().qp.unwrap();
    assert_eq!(path(&client, of_client).dlid, lid);
    assert_ne!(path(&server, server_qp).dlid, lid);
}

/// CM-02, CM-11: a program on a private fabric may use the addresses of its machine.
#[test]
fn a_private_fabric_has_the_addresses_of_the_machine() {
    // The address by which the machine reaches others. Nothing is sent.
    let route = UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = route.connect("192.0.2.1:9").and(route.local_addr());
    let own = own.map_or(IpAddr::from([127, 0, 0, 1]), |own| own.ip());
    let config = SimConfig::new().mode(Mode::RealTime);
    for config in [
        config.clone(),
        config.clone().profile(Profile::SIW),
        config.link_layer(LinkLayer::InfiniBand),
    ] {
        let process = Process::of(config);
        process.listen(SocketAddr::new(own, 7471));
        let client = process.resolve(SocketAddr::new(own, 7471));
        process.sim.connect(client, &ConnParam::new()).unwrap();
        let asked = process.expect(CmEventType::ConnectRequest);
        let asked = process.sim.query_id(asked.id).unwrap();
        assert_eq!(asked.local_addr.unwrap().ip(), own);
        let unassigned = SocketAddr::from(([192, 0, 2, 1], 0));
        let refused = process.sim.bind_addr(process.id(), unassigned).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AddressNotAvailable, "{refused}");
    }
}

#[test]
fn nobody_listens_in_any_process() {
    let [_server, client] = two(Network::loopback("cm_nobody_listens"));
    let id = client.resolve(([127, 0, 0, 1], 7471).into());
    client.sim.connect(id, &ConnParam::new()).unwrap();
    assert_eq!(client.expect(CmEventType::Rejected).status, 8);
}

/// A client that is faster than the server's next call would be refused, so it looks again.
#[test]
fn a_port_that_is_only_bound_leads_nobody_to_it() {
    let [server, _client] = two(Network::loopback("cm_only_bound"));
    let id = server.id();
    server.sim.bind_addr(id, any(7479)).unwrap();
    assert_eq!(answer_of(7479), "");
    server.sim.listen(id, 8).unwrap();
    let address: IpAddr = answer_of(7479).parse().unwrap();
    assert!(address.is_loopback());
}

/// A listener that exists and does not answer, as one that a debugger has stopped, is waited for.
/// The request is refused when its process ends, and leaves when it answers.
#[test]
fn a_listener_that_does_not_answer_is_waited_for() {
    let network = Network::loopback("cm_waited_for");
    let [other, client] = two(network);
    let device = other.sim.cm_devices().unwrap()[0];
    let own = other.sim.query_gid(device, 1, 0).unwrap().ipv4().unwrap();
    let named = other.listen(any(7482));
    let name = name_of(7482).replace("7482", "7481");
    other.sim.destroy_id(named, WATCH).unwrap();
    drop(other);
    let connect = || {
        let address = net::SocketAddr::from_abstract_name(&name).unwrap();
        let silent = UnixListener::bind_addr(&address).unwrap();
        let id = client.resolve(([127, 0, 0, 1], 7481).into());
        client.sim.connect(id, &ConnParam::new()).unwrap();
        let early = client.sim.get_cm_event(client.channel, Wait::Poll);
        assert_eq!(early.unwrap_err().kind(), ErrorKind::WouldBlock);
        silent
    };
    drop(connect());
    assert_eq!(client.expect(CmEventType::Rejected).status, 8);
    let (slow, port) = (connect(), Socket::bind(own.into()).unwrap());
    // The thread ends with the process.
    thread::spawn(move || {
        for mut asking in slow.incoming().flatten() {
            // The first questions were given up.
            let _ = asking.write_all(own.to_string().as_bytes());
        }
    });
    let limit = Timespec::try_from(Duration::from_secs(60)).unwrap();
    let requests = poll(&mut [PollFd::new(&port, PollFlags::IN)], Some(&limit));
    assert_eq!(requests, Ok(1), "no request comes");
}

/// The output of a process that asks for a port of the machine.
fn answer_of(port: u16) -> String {
    let address = net::SocketAddr::from_abstract_name(name_of(port)).unwrap();
    io::read_to_string(UnixStream::connect_addr(&address).unwrap()).unwrap()
}

/// The name by which a process with a port of the machine is found.
fn name_of(port: u16) -> String {
    let names = fs::read_to_string("/proc/net/unix").unwrap();
    let is_of_port = |name: &&str| name.ends_with(&format!(" {port}"));
    let mut names = names
        .lines()
        .filter_map(|line| Some(line.split_once('@')?.1));
    names.find(is_of_port).unwrap().to_owned()
}

/// Messages to QP 1 do not name a queue pair that would identify their process.
#[test]
fn processes_that_share_an_address_meet() {
    let network = Network::addresses(&[IpAddr::from([127, 61, 7, 1])]);
    let [server, client] = two(network);
    let [_other, late] = two(network);
    let listener = server.listen(any(7471));
    let dst = SocketAddr::from(([127, 61, 7, 1], 7471));
    meet(&server, &client, dst);
    meet(&server, &late, ([127, 0, 0, 1], 7471).into());
    // The process's own port leads to itself.
    let own = client.listen(dst_port(dst, 7472));
    meet(&client, &server, dst_port(dst, 7472));
    client.sim.destroy_id(own, WATCH).unwrap();
    server.sim.destroy_id(listener, WATCH).unwrap();
    let id = client.resolve(dst);
    client.sim.connect(id, &ConnParam::new()).unwrap();
    assert_eq!(client.expect(CmEventType::Rejected).status, 8);
}

fn dst_port(dst: SocketAddr, port: u16) -> SocketAddr {
    (dst.ip(), port).into()
}
