//! Hosts: what the program on one machine sees of a simulation.

use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use verbs_api::cm::{Cm, CmChannel, CmEvent, CmEventType, CmId, ConnParam, PortSpace};
use verbs_api::lab::{Fault, Lab, PacketFilter};
use verbs_api::{CqInit, ErrorKind, QpInit, QpType, Verbs, Wait};
use verbs_sim::{Sim, SimConfig};

const SECOND: Duration = Duration::from_secs(1);

/// Port 7471 of a node.
const fn service(node: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, node, 1)), 7471)
}

struct Host {
    sim: Sim,
    channel: CmChannel,
}

impl Host {
    fn new(sim: &Sim, node: u32) -> Self {
        let sim = sim.host(node).unwrap();
        let channel = sim.create_event_channel().unwrap();
        Self { sim, channel }
    }

    fn id(&self) -> CmId {
        let id = self.sim.create_id(self.channel, 0, PortSpace::Tcp);
        id.unwrap()
    }

    fn next(&self) -> CmEvent {
        let event = self.sim.get_cm_event(self.channel, Wait::Forever).unwrap();
        self.sim.ack_cm_event(&event).unwrap();
        event
    }

    /// Listens at port 7471 of all its addresses.
    fn listen(&self) {
        let (id, all) = (self.id(), IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        self.sim.bind_addr(id, (all, 7471).into()).unwrap();
        self.sim.listen(id, 0).unwrap();
    }

    /// Asks for a connection to a service, from whichever address the host has.
    fn connect(&self, to: SocketAddr) -> CmId {
        let id = self.id();
        self.sim.resolve_addr(id, None, to, SECOND).unwrap();
        assert_eq!(self.next().event, CmEventType::AddrResolved);
        self.sim.resolve_route(id, SECOND).unwrap();
        assert_eq!(self.next().event, CmEventType::RouteResolved);
        let context = self.sim.query_id(id).unwrap().verbs.unwrap();
        let cq = self.sim.create_cq(context, &CqInit::new(1)).unwrap();
        let init = QpInit::new(QpType::Rc, cq, cq);
        self.sim.create_cm_qp(id, None, &init).unwrap();
        self.sim.connect(id, &ConnParam::default()).unwrap();
        id
    }

    fn device_of(&self, id: CmId) -> u32 {
        let context = self.sim.query_id(id).unwrap().verbs.unwrap();
        self.sim.node(context).unwrap()
    }
}

fn three() -> (Sim, [Host; 3]) {
    let sim = Sim::new(SimConfig::new().nodes(3));
    let hosts = [0, 1, 2].map(|node| Host::new(&sim, node));
    (sim, hosts)
}

#[test]
fn a_host_has_its_own_device_and_addresses_only() {
    let (sim, [_, host, _]) = three();
    let names: Vec<_> = host.sim.devices().unwrap();
    assert_eq!(names.len(), 1);
    assert_eq!(names[0].name, "sim1");
    let error = host.sim.open_device("sim0").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoDevice);
    assert_eq!(host.sim.cm_devices().unwrap().len(), 1);
    let error = host.sim.bind_addr(host.id(), service(0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddressNotAvailable);
    host.sim.bind_addr(host.id(), service(1)).unwrap();
    assert!(sim.host(3).is_err());
}

#[test]
fn each_host_has_all_ports_and_gets_its_own_requests() {
    let (_sim, [client, first, second]) = three();
    first.listen();
    second.listen();
    for (node, server, other) in [(1, &first, &second), (2, &second, &first)] {
        let id = client.connect(service(node));
        assert_eq!(client.device_of(id), 0);
        let request = server.next();
        assert_eq!(request.event, CmEventType::ConnectRequest);
        assert_eq!(server.device_of(request.id), u32::from(node));
        assert!(other.sim.get_cm_event(other.channel, Wait::Poll).is_err());
    }
}

#[test]
fn a_port_is_taken_on_its_own_host() {
    let (_sim, [_, host, _]) = three();
    host.listen();
    let again = host.sim.bind_addr(host.id(), service(1)).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AddressNotAvailable);
}

#[test]
fn a_partition_separates_hosts_both_ways_or_one_way_until_it_is_repaired() {
    let to_server = PacketFilter::EVERY.to(1);
    let from_server = PacketFilter::EVERY.from(1);
    let partitions = [
        (Fault::link_down(0).peer(1), false),
        (Fault::drop(to_server), false),
        (Fault::drop(from_server), true),
    ];
    for (partition, hears) in partitions {
        let (sim, [client, server, _]) = three();
        server.listen();
        let cut = sim.inject(partition.clone()).unwrap();
        client.connect(service(1));
        if hears {
            assert_eq!(server.next().event, CmEventType::ConnectRequest);
        }
        assert_eq!(
            client.next().event,
            CmEventType::Unreachable,
            "{partition:?}"
        );
        let is_read = server.sim.get_cm_event(server.channel, Wait::Poll).is_err();
        assert!(is_read, "{partition:?}");
        sim.remove(cut).unwrap();
        client.connect(service(1));
        assert_eq!(server.next().event, CmEventType::ConnectRequest);
    }
}
