//! Hosts: what the program on one machine sees of a simulation.

use core::time::Duration;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use verbs_api::cm::{Cm, CmChannel, CmEvent, CmEventType, CmId, ConnParam, PortSpace};
use verbs_api::lab::{Fault, Lab, Limit, PacketFilter, Partition, Shape};
use verbs_api::owned::{self, Listener};
use verbs_api::{Cq, CqInit, ErrorKind, QpInit, QpType, RecvWr, SendWr, Verbs, Wait, Wc, WcStatus};
use verbs_sim::rt::{self, Order};
use verbs_sim::{Sim, SimConfig};

const SECOND: Duration = Duration::from_secs(1);

/// Port 7471 of a node.
const fn service(node: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, node, 1)), 7471)
}

struct Host {
    sim: Arc<dyn Verbs>,
    channel: CmChannel,
}

impl Host {
    fn new(sim: &Sim, name: &str) -> Self {
        let sim = sim.host(name).unwrap();
        let channel = sim.cm().unwrap().create_event_channel().unwrap();
        Self { sim, channel }
    }

    fn cm(&self) -> &dyn Cm {
        self.sim.cm().unwrap()
    }

    fn id(&self) -> CmId {
        let id = self.cm().create_id(self.channel, 0, PortSpace::Tcp);
        id.unwrap()
    }

    fn next(&self) -> CmEvent {
        let event = self.cm().get_cm_event(self.channel, Wait::Forever).unwrap();
        self.cm().ack_cm_event(&event).unwrap();
        event
    }

    /// Listens at port 7471 of all its addresses.
    fn listen(&self) {
        let (id, all) = (self.id(), IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        self.cm().bind_addr(id, (all, 7471).into()).unwrap();
        self.cm().listen(id, 0).unwrap();
    }

    /// Gives an id a queue pair. Returns its CQ.
    fn create_qp(&self, id: CmId) -> Cq {
        let context = self.cm().query_id(id).unwrap().verbs.unwrap();
        let cq = self.sim.create_cq(context, &CqInit::new(4)).unwrap();
        let init = QpInit::new(QpType::Rc, cq, cq);
        self.cm().create_cm_qp(id, None, &init).unwrap();
        cq
    }

    /// Accepts the next request. Returns its id and the CQ.
    fn accept(&self) -> (CmId, Cq) {
        let request = self.next();
        assert_eq!(request.event, CmEventType::ConnectRequest);
        let cq = self.create_qp(request.id);
        let accepted = self.cm().accept(request.id, &ConnParam::default());
        accepted.unwrap();
        (request.id, cq)
    }

    fn post_send(&self, id: CmId) {
        let qp = self.cm().query_id(id).unwrap().qp.unwrap();
        self.sim.post_send(qp, &[SendWr::send(1, &[])]).unwrap();
    }

    /// The status of the next completion.
    fn status(&self, cq: Cq) -> WcStatus {
        let mut found = [Wc::default()];
        // An empty poll lets the next thing happen.
        while self.sim.poll_cq(cq, &mut found).unwrap() == 0 {}
        found[0].status
    }

    /// Asks for a connection to a service, from whichever address the host has.
    fn connect(&self, to: SocketAddr) -> (CmId, Cq) {
        let id = self.id();
        self.cm().resolve_addr(id, None, to, SECOND).unwrap();
        assert_eq!(self.next().event, CmEventType::AddrResolved);
        self.cm().resolve_route(id, SECOND).unwrap();
        assert_eq!(self.next().event, CmEventType::RouteResolved);
        let cq = self.create_qp(id);
        self.cm().connect(id, &ConnParam::default()).unwrap();
        (id, cq)
    }

    fn device_of(&self, id: CmId) -> u32 {
        let context = self.cm().query_id(id).unwrap().verbs.unwrap();
        self.sim.lab().unwrap().node(context).unwrap()
    }
}

fn three() -> (Sim, [Host; 3]) {
    let sim = Sim::new(SimConfig::new().nodes(3));
    let hosts = ["sim0", "sim1", "sim2"].map(|name| Host::new(&sim, name));
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
    assert_eq!(host.cm().cm_devices().unwrap().len(), 1);
    let error = host.cm().bind_addr(host.id(), service(0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddressNotAvailable);
    host.cm().bind_addr(host.id(), service(1)).unwrap();
    let error = sim.host("sim3").map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.to_string().contains("there are sim0, sim1, sim2"),
        "{error}"
    );
}

/// Hosts with names, one of which has two devices.
const NAMED: &[(&str, u32)] = &[("client", 1), ("server", 2)];

#[test]
fn a_host_with_two_devices_has_the_addresses_of_both_and_crashes_with_both() {
    let sim = Sim::new(SimConfig::new().hosts(NAMED));
    assert_eq!(sim.nodes_of("server").unwrap(), 1..3);
    let [client, server] = ["client", "server"].map(|name| Host::new(&sim, name));
    assert_eq!(server.sim.devices().unwrap().len(), 2);
    assert!(sim.host("sim0").is_err(), "that is not its name");
    server.listen();
    for node in [1, 2] {
        client.connect(service(node));
        let request = server.next();
        assert_eq!(request.event, CmEventType::ConnectRequest);
        assert_eq!(server.device_of(request.id), u32::from(node));
    }
    sim.crash("server").unwrap();
    for device in ["sim1", "sim2"] {
        let refused = sim.open_device(device).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NoDevice);
    }
    sim.restart("server").unwrap();
    let server = Host::new(&sim, "server");
    server.listen();
    client.connect(service(2));
    assert_eq!(server.next().event, CmEventType::ConnectRequest);
}

#[test]
fn a_partition_of_hosts_has_all_their_links_and_loses_packets_or_keeps_them() {
    for keeps in [false, true] {
        let sim = Sim::new(SimConfig::new().hosts(NAMED));
        let [client, server] = ["client", "server"].map(|name| Host::new(&sim, name));
        server.listen();
        let partition = if keeps {
            Partition::holding(&sim, &["client"], &["server"]).unwrap()
        } else {
            Partition::new(&sim, &["server"], &["client"]).unwrap()
        };
        let [(first, _), (second, _)] = [1, 2].map(|node| client.connect(service(node)));
        sim.advance(SECOND).unwrap();
        let event = server.cm().get_cm_event(server.channel, Wait::Poll);
        assert!(event.is_err(), "nothing arrives");
        let repaired = sim.now();
        drop(partition);
        for id in [first, second] {
            assert_eq!(server.next().event, CmEventType::ConnectRequest, "{id}");
        }
        // What was lost is sent again after a while, and what was kept is there at once.
        let took = sim.now() - repaired;
        assert_eq!(took < SECOND, keeps, "{took:?}");
    }
}

#[test]
fn each_host_has_all_ports_and_gets_its_own_requests() {
    let (_sim, [client, first, second]) = three();
    first.listen();
    second.listen();
    for (node, server, other) in [(1, &first, &second), (2, &second, &first)] {
        let (id, _) = client.connect(service(node));
        assert_eq!(client.device_of(id), 0);
        let request = server.next();
        assert_eq!(request.event, CmEventType::ConnectRequest);
        assert_eq!(server.device_of(request.id), u32::from(node));
        assert!(other.cm().get_cm_event(other.channel, Wait::Poll).is_err());
    }
}

#[test]
fn a_port_is_taken_on_its_own_host() {
    let (_sim, [_, host, _]) = three();
    host.listen();
    let again = host.cm().bind_addr(host.id(), service(1)).unwrap_err();
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
        let is_read = server
            .cm()
            .get_cm_event(server.channel, Wait::Poll)
            .is_err();
        assert!(is_read, "{partition:?}");
        sim.remove(cut).unwrap();
        client.connect(service(1));
        assert_eq!(server.next().event, CmEventType::ConnectRequest);
    }
}

/// How far a connection is when its server crashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum Step {
    Nothing,
    Requested,
    Accepted,
    Idle,
    Sending,
}

#[test]
fn peers_of_a_crashed_host_see_silence_at_each_step_of_a_connection() {
    for step in [
        Step::Nothing,
        Step::Requested,
        Step::Accepted,
        Step::Idle,
        Step::Sending,
    ] {
        let (sim, [client, server, _]) = three();
        server.listen();
        if step == Step::Nothing {
            sim.crash("sim1").unwrap();
        }
        let (id, cq) = client.connect(service(1));
        if step == Step::Requested {
            // The request is on its way.
            sim.crash("sim1").unwrap();
        }
        if step < Step::Accepted {
            assert_eq!(client.next().event, CmEventType::Unreachable, "{step:?}");
            continue;
        }
        let (_, served) = server.accept();
        if step == Step::Accepted {
            // The answer is on its way, and the client's confirmation is lost.
            sim.crash("sim1").unwrap();
        }
        assert_eq!(client.next().event, CmEventType::Established, "{step:?}");
        if step == Step::Idle {
            assert_eq!(server.next().event, CmEventType::Established);
            sim.crash("sim1").unwrap();
        }
        client.post_send(id);
        if step == Step::Sending {
            sim.crash("sim1").unwrap();
        }
        assert_eq!(client.status(cq), WcStatus::RetryExcErr, "{step:?}");
        // Its handles are refused, and so is all that is new.
        let refused = server.sim.poll_cq(served, &mut []).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid);
        let event = server.cm().get_cm_event(server.channel, Wait::Poll);
        assert_eq!(event.unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(
            server.sim.open_device("sim1").unwrap_err().kind(),
            ErrorKind::NoDevice
        );
        let channel = server.cm().create_event_channel();
        assert_eq!(channel.unwrap_err().kind(), ErrorKind::NoDevice);
    }
}

#[test]
fn a_host_that_starts_again_serves_at_its_address_and_knows_nothing_of_before() {
    let (sim, [client, server, _]) = three();
    server.listen();
    let (old, old_cq) = client.connect(service(1));
    server.accept();
    assert_eq!(client.next().event, CmEventType::Established);
    sim.crash("sim1").unwrap();
    assert_eq!(sim.crash("sim1").unwrap_err().kind(), ErrorKind::Invalid);
    sim.restart("sim1").unwrap();
    assert_eq!(sim.restart("sim1").unwrap_err().kind(), ErrorKind::Invalid);
    // A program that did not start its service yet refuses.
    client.connect(service(1));
    assert_eq!(client.next().event, CmEventType::Rejected);
    let server = Host::new(&sim, "sim1");
    assert_eq!(
        sim.live(server.sim.open_device("sim1").unwrap())
            .unwrap()
            .qps,
        0
    );
    server.listen();
    let (id, cq) = client.connect(service(1));
    let (served, _) = server.accept();
    assert_eq!(client.next().event, CmEventType::Established);
    let qp = server.cm().query_id(served).unwrap().qp.unwrap();
    server.sim.post_recv(qp, &[RecvWr::new(1, &[])]).unwrap();
    client.post_send(id);
    assert_eq!(client.status(cq), WcStatus::Success);
    // The new queue pair is not the peer of the old one.
    client.post_send(old);
    assert_eq!(client.status(old_cq), WcStatus::RetryExcErr);
}

#[test]
fn a_task_that_waits_on_a_host_that_crashes_learns_of_it() {
    let sim = Arc::new(Sim::new(SimConfig::new()));
    let host = sim.host("sim1").unwrap();
    let cm = owned::Cm::new(host).unwrap();
    let listener = Listener::bind(&cm, PortSpace::Tcp, service(1)).unwrap();
    let error = rt::block_on(&*sim, Order::Fifo, async |rt| {
        let waiting = rt.spawn(
            "server",
            async move { listener.next_request().await.map(drop) },
        );
        rt.sleep(SECOND).await;
        sim.crash("sim1")?;
        Ok(waiting.await)
    });
    assert_eq!(error.unwrap().unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn what_the_tasks_of_a_crashed_host_still_do_is_not_a_mistake() {
    let sim = Sim::new(SimConfig::new().hosts(NAMED));
    let [client, server] = ["client", "server"].map(|name| Host::new(&sim, name));
    server.listen();
    let (id, _) = client.connect(service(1));
    let (served, cq) = server.accept();
    assert_eq!(client.next().event, CmEventType::Established);
    sim.crash("server").unwrap();
    assert!(server.sim.poll_cq(cq, &mut [Wc::default()]).is_err());
    assert!(server.cm().query_id(served).is_err());
    assert!(server.sim.destroy_cq(cq, Wait::Poll).is_err());
    assert!(server.cm().destroy_id(served, Wait::Poll).is_err());
    client.post_send(id);
    sim.restart("server").unwrap();
    let again = Host::new(&sim, "server");
    let refused = server.sim.poll_cq(cq, &mut [Wc::default()]).unwrap_err();
    assert!(
        refused.to_string().contains("lost when its host crashed"),
        "{refused}"
    );
    assert_eq!(sim.diagnose().mistakes, []);
    // A mistake of the program that runs there now.
    let context = again.sim.open_device("sim1").unwrap();
    let cq = again.sim.create_cq(context, &CqInit::new(1)).unwrap();
    again.sim.destroy_cq(cq, Wait::Poll).unwrap();
    assert!(again.sim.poll_cq(cq, &mut [Wc::default()]).is_err());
    assert_eq!(sim.diagnose().mistakes.len(), 1);
}

/// A request that is on its way, at once or late, and an event that is not acknowledged.
#[test]
fn nothing_of_before_a_crash_reaches_the_next_life_of_a_host() {
    let slow = Shape::new().delay(Duration::from_millis(50));
    for config in [SimConfig::new(), SimConfig::new().link(slow)] {
        let sim = Sim::new(config);
        let [client, server] = ["sim0", "sim1"].map(|name| Host::new(&sim, name));
        server.listen();
        client.connect(service(1));
        let held = Partition::holding(&sim, &["sim0"], &["sim1"]).unwrap();
        client.connect(service(1));
        sim.crash("sim1").unwrap();
        sim.restart("sim1").unwrap();
        drop(held);
        let server = Host::new(&sim, "sim1");
        server.listen();
        sim.advance(SECOND).unwrap();
        let event = server.cm().get_cm_event(server.channel, Wait::Poll);
        assert!(event.is_err(), "{event:?}");
        // It is sent again, and that arrives.
        assert_eq!(server.next().event, CmEventType::ConnectRequest);
    }
}

#[test]
fn an_event_that_was_read_before_a_crash_cannot_be_acknowledged_after_it() {
    let (sim, [client, server, _]) = three();
    server.listen();
    client.connect(service(1));
    let event = server
        .cm()
        .get_cm_event(server.channel, Wait::Forever)
        .unwrap();
    sim.crash("sim1").unwrap();
    let refused = server.cm().ack_cm_event(&event).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert_eq!(sim.diagnose().mistakes, []);
}

/// The client destroys an id twice; the crash is of another host.
#[test]
fn a_crash_excuses_no_mistake_of_another_host() {
    let (sim, [client, server, _]) = three();
    let id = client.id();
    client.cm().destroy_id(id, Wait::Poll).unwrap();
    server.listen();
    sim.crash("sim1").unwrap();
    assert!(client.cm().destroy_id(id, Wait::Poll).is_err());
    assert_eq!(sim.diagnose().mistakes.len(), 1);
}

#[test]
fn a_host_crashes_whatever_the_limits_are() {
    for limit in [Limit::Files, Limit::Objects] {
        let (sim, [client, server, _]) = three();
        server.listen();
        let scarce = sim.inject(Fault::limit(limit, 0)).unwrap();
        sim.crash("sim1").unwrap();
        sim.remove(scarce).unwrap();
        sim.restart("sim1").unwrap();
        let server = Host::new(&sim, "sim1");
        server.listen();
        client.connect(service(1));
        server.accept();
        assert_eq!(client.next().event, CmEventType::Established);
    }
}

#[test]
fn what_a_partition_holds_does_not_pass_another_one() {
    let (sim, [client, server, _]) = three();
    server.listen();
    let first = Partition::holding(&sim, &["sim0"], &["sim1"]).unwrap();
    client.connect(service(1));
    let second = Partition::holding(&sim, &["sim0"], &["sim1"]).unwrap();
    drop(first);
    sim.advance(SECOND).unwrap();
    let event = server.cm().get_cm_event(server.channel, Wait::Poll);
    assert!(event.is_err(), "{event:?}");
    drop(second);
    assert_eq!(server.next().event, CmEventType::ConnectRequest);
}

#[test]
fn hosts_and_partitions_that_make_no_sense_are_refused() {
    for hosts in [&[("", 1)][..], &[("a", 1), ("a", 1)]] {
        let new = || Sim::new(SimConfig::new().hosts(hosts));
        assert!(catch_unwind(AssertUnwindSafe(new)).is_err(), "{hosts:?}");
    }
    let sim = Sim::new(SimConfig::new().nodes(300));
    let both = Partition::new(&sim, &["sim0"], &["sim1", "sim0"]).unwrap_err();
    assert!(both.to_string().contains("both groups"), "{both}");
    let unknown = Partition::holding(&sim, &["sim0"], &["bob"]).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Invalid);
    assert!(unknown.to_string().len() < 200, "{unknown}");
}
