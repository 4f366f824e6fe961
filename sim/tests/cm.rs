//! rdma_cm on the simulator: in virtual time, with losses, and as bytes.

use core::time::Duration;
use std::net::{IpAddr, SocketAddr};

use verbs_api::cm::{Cm, CmChannel, CmEvent, CmEventType, CmId, CmParam, ConnParam, PortSpace};
use verbs_api::lab::{CmMessage, Fault, FaultGuard, Lab, PacketFilter};
use verbs_api::profile::Profile;
use verbs_api::{
    CqInit, Ece, ErrorKind, Handle, Qp, QpAttrMask, QpInit, QpState, QpType, SrqInit, Verbs, Wait,
};
use verbs_sim::{Sim, SimConfig};

/// A port of node 1.
const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 1)), 7471);
const SECOND: Duration = Duration::from_secs(1);

struct Ends {
    sim: Sim,
    channel: CmChannel,
}

impl Ends {
    fn new(config: SimConfig) -> Self {
        let sim = Sim::new(config);
        let channel = sim.create_event_channel().unwrap();
        Self { sim, channel }
    }

    fn id(&self, context: u64) -> CmId {
        let id = self.sim.create_id(self.channel, context, PortSpace::Tcp);
        id.unwrap()
    }

    fn next(&self) -> CmEvent {
        let event = self.sim.get_cm_event(self.channel, Wait::Forever).unwrap();
        self.sim.ack_cm_event(&event).unwrap();
        event
    }

    fn expect(&self, kind: CmEventType) -> CmEvent {
        let event = self.next();
        assert_eq!(event.event, kind, "{event}");
        event
    }

    fn listener(&self) -> CmId {
        let listener = self.id(1);
        self.sim.bind_addr(listener, SERVER).unwrap();
        self.sim.listen(listener, 0).unwrap();
        listener
    }

    fn qp(&self, id: CmId) -> Qp {
        let context = self.sim.query_id(id).unwrap().verbs.unwrap();
        let cq = self.sim.create_cq(context, &CqInit::new(16)).unwrap();
        let init = QpInit::new(QpType::Rc, cq, cq);
        self.sim.create_cm_qp(id, None, &init).unwrap()
    }

    fn client(&self) -> CmId {
        let client = self.id(2);
        let src = SocketAddr::from(([10, 0, 0, 1], 0));
        self.sim
            .resolve_addr(client, Some(src), SERVER, SECOND)
            .unwrap();
        self.expect(CmEventType::AddrResolved);
        self.sim.resolve_route(client, SECOND).unwrap();
        self.expect(CmEventType::RouteResolved);
        client
    }

    /// The client of a new connection to a new listener.
    fn connected(&self) -> CmId {
        self.listener();
        let client = self.client();
        self.qp(client);
        self.sim.connect(client, &ConnParam::new()).unwrap();
        let server = self.expect(CmEventType::ConnectRequest).id;
        self.qp(server);
        self.sim.accept(server, &ConnParam::new()).unwrap();
        self.expect(CmEventType::Established);
        self.expect(CmEventType::Established);
        client
    }

    fn state(&self, qp: Qp) -> QpState {
        self.sim
            .query_qp(qp, QpAttrMask::STATE)
            .unwrap()
            .attr
            .qp_state
    }
}

#[test]
fn a_client_and_a_server_meet_and_part() {
    for config in [SimConfig::new(), SimConfig::new().wire(true)] {
        let ends = Ends::new(config);
        let listener = ends.listener();
        let client = ends.client();
        let client_qp = ends.qp(client);
        assert_eq!(ends.state(client_qp), QpState::Init);
        let param = ConnParam::new().private_data(b"hello");
        ends.sim.connect(client, &param).unwrap();
        let request = ends.expect(CmEventType::ConnectRequest);
        assert_eq!(request.listen_id, Some(listener));
        assert_eq!(request.private_data().len(), 56);
        assert!(request.private_data().starts_with(b"hello\0"));
        let server = request.id;
        let server_qp = ends.qp(server);
        ends.sim.accept(server, &ConnParam::new()).unwrap();
        assert_eq!(ends.state(server_qp), QpState::Rts);
        let established = ends.expect(CmEventType::Established);
        assert_eq!(
            (established.id, established.private_data().len()),
            (client, 196)
        );
        assert_eq!(ends.state(client_qp), QpState::Rts);
        assert_eq!(ends.expect(CmEventType::Established).id, server);
        ends.sim.disconnect(client).unwrap();
        assert_eq!(ends.state(client_qp), QpState::Err);
        assert_eq!(ends.expect(CmEventType::Disconnected).id, server);
        assert_eq!(ends.state(server_qp), QpState::Rts);
        ends.sim.disconnect(server).unwrap();
        assert_eq!(ends.expect(CmEventType::Disconnected).id, client);
        for _ in 0..2 {
            ends.expect(CmEventType::TimewaitExit);
        }
        for id in [client, server] {
            ends.sim.destroy_cm_qp(id, Wait::Poll).unwrap();
            ends.sim.destroy_id(id, Wait::Poll).unwrap();
        }
        ends.sim.destroy_id(listener, Wait::Poll).unwrap();
        ends.sim.destroy_event_channel(ends.channel).unwrap();
        ends.sim.settle().unwrap();
    }
}

/// CM-45: TCP waits for late packets without the program.
#[test]
fn the_end_of_an_iwarp_connection_is_one_event() {
    let ends = Ends::new(SimConfig::new().profile(Profile::SIW));
    let client = ends.connected();
    ends.sim.disconnect(client).unwrap();
    ends.expect(CmEventType::Disconnected);
    ends.expect(CmEventType::Disconnected);
    let more = ends.sim.get_cm_event(ends.channel, Wait::For(10 * SECOND));
    assert_eq!(more.unwrap_err().kind(), ErrorKind::TimedOut);
}

/// CM-84: the queue pair of another id is used, and so is one that no id has had.
#[test]
fn an_id_uses_the_queue_pair_that_it_was_given() {
    let ends = Ends::new(SimConfig::new());
    ends.listener();
    let own = ends.id(3);
    let src = SocketAddr::new(SERVER.ip(), 0);
    ends.sim.bind_addr(own, src).unwrap();
    let moved = ends.qp(own);
    let attr = ends.sim.query_id(own).unwrap();
    let context = attr.verbs.unwrap();
    let srq = ends.sim.create_srq(attr.pd.unwrap(), &SrqInit::new(1));
    let cq = ends.sim.create_cq(context, &CqInit::new(1)).unwrap();
    let init = QpInit::new(QpType::Rc, cq, cq).srq(srq.unwrap());
    let plain = ends.sim.create_qp(attr.pd.unwrap(), &init).unwrap();
    for (qp, has_srq) in [(moved, 0), (plain, 1)] {
        let client = ends.client();
        let client_qp = ends.qp(client);
        ends.sim.connect(client, &ConnParam::new()).unwrap();
        let server = ends.expect(CmEventType::ConnectRequest).id;
        ends.sim.set_cm_qp(server, Some(qp)).unwrap();
        assert_eq!(ends.sim.query_id(server).unwrap().qp, Some(qp));
        ends.sim.accept(server, &ConnParam::new()).unwrap();
        assert_eq!(ends.state(qp), QpState::Rts);
        let established = ends.expect(CmEventType::Established);
        let CmParam::Conn(conn) = established.param else {
            panic!("{established}");
        };
        assert_eq!(conn.qp_num, ends.sim.qp_num(qp).unwrap());
        assert_eq!(conn.srq, has_srq);
        assert_eq!(ends.state(client_qp), QpState::Rts);
        ends.expect(CmEventType::Established);
        // Without a queue pair the connection ends, and the queue pair stays as it is.
        ends.sim.set_cm_qp(client, None).unwrap();
        ends.sim.disconnect(client).unwrap();
        assert_eq!(ends.state(client_qp), QpState::Rts);
        ends.expect(CmEventType::Disconnected);
        ends.sim.disconnect(server).unwrap();
        assert_eq!(ends.state(qp), QpState::Err);
        ends.expect(CmEventType::Disconnected);
        ends.expect(CmEventType::TimewaitExit);
        ends.expect(CmEventType::TimewaitExit);
        ends.sim.destroy_cm_qp(server, Wait::Poll).unwrap();
        assert!(ends.sim.qp_num(qp).is_err());
        assert!(ends.sim.set_cm_qp(server, Some(qp)).is_err());
        assert!(ends.sim.destroy_cm_qp(client, Wait::Poll).is_err());
    }
}

#[test]
fn nobody_listens() {
    let ends = Ends::new(SimConfig::new());
    let client = ends.client();
    ends.sim.connect(client, &ConnParam::new()).unwrap();
    let rejected = ends.expect(CmEventType::Rejected);
    assert_eq!((rejected.status, rejected.private_data().len()), (8, 148));
}

#[test]
fn a_rule_fires_one_kind_of_message() {
    for config in [SimConfig::new(), SimConfig::new().wire(true)] {
        let ends = Ends::new(config);
        let filter = PacketFilter::EVERY.dest_qpn(1);
        let rule = |message| FaultGuard::new(&ends.sim, Fault::drop(filter.cm(message)).nth(1));
        let kinds = [CmMessage::Req, CmMessage::Rep, CmMessage::Mra];
        let rules = kinds.map(|message| rule(message).unwrap());
        ends.connected();
        assert_eq!(rules.each_ref().map(FaultGuard::fired), [1, 1, 0]);
    }
}

/// CM-86
#[test]
fn a_program_writes_events_of_its_own() {
    let ends = Ends::new(SimConfig::new());
    let listener = ends.listener();
    let write = |id, status, arg| ends.sim.write_event(id, CmEventType::User, status, arg);
    let fresh = ends.id(7);
    for (id, status, arg) in [(fresh, -3, 41), (listener, 0, u64::MAX)] {
        write(id, status, arg).unwrap();
        let event = ends.expect(CmEventType::User);
        assert_eq!((event.id, event.status), (id, status));
        assert_eq!(event.param, CmParam::Arg(arg));
    }
    let refused = ends.sim.write_event(fresh, CmEventType::Established, 0, 0);
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
    // What was not read goes with the id.
    write(fresh, 0, 1).unwrap();
    ends.sim.destroy_id(fresh, Wait::Poll).unwrap();
    let none = ends.sim.get_cm_event(ends.channel, Wait::Poll);
    assert_eq!(none.unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(write(fresh, 0, 1).unwrap_err().kind(), ErrorKind::Invalid);
}

/// ECE-09: as librdmacm does with the answer of a peer that does not keep to the protocol. Here the
/// client changes its mind after its request.
#[test]
fn a_client_takes_only_options_that_it_can_have() {
    let own = Profile::SPEC.ece;
    for (asked, later, expected) in [
        // No vendor, as from a peer that knows no options.
        (None, own, Ok(0)),
        (Some(own), own, Ok(1)),
        (Some(Ece::new(1, 3)), own, Err(-1)),
        // The device refuses it.
        (Some(Ece::new(1, 3)), Ece::new(1, 3), Err(-1)),
    ] {
        let ends = Ends::new(SimConfig::new());
        let sim = &ends.sim;
        ends.listener();
        let client = ends.client();
        if let Some(asked) = asked {
            sim.set_local_ece(client, &asked).unwrap();
        }
        sim.connect(client, &ConnParam::new()).unwrap();
        let server = ends.expect(CmEventType::ConnectRequest).id;
        sim.set_local_ece(server, &Ece::new(7, 1)).unwrap();
        sim.accept(server, &ConnParam::new()).unwrap();
        sim.set_local_ece(client, &later).unwrap();
        let pd = sim.query_id(client).unwrap().pd.unwrap();
        let cq = sim.create_cq(pd.context(), &CqInit::new(16)).unwrap();
        let qp = sim.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq)).unwrap();
        sim.set_cm_qp(client, Some(qp)).unwrap();
        let event = ends.next();
        let seen = match event.event {
            CmEventType::Established => Ok(sim.query_ece(qp).unwrap().options),
            _ => Err(event.status),
        };
        assert_eq!(seen, expected, "{event}");
    }
}
