//! Programs that connect by `verbs_api::owned`: on the simulator and, unchanged, on a real device.
//!
//! `VERBSIM_ADDRESS` is an address of a device of this machine; without it that test is skipped,
//! with a message. `./check hardware` runs it on soft-RoCE and soft-iWARP.

#[path = "common/tasks.rs"]
mod executor;

use std::future::poll_fn;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use verbs_api::cm::{CmEventType, CmParam, ConnParam, PortSpace, RDMA_UDP_QKEY};
use verbs_api::lab::{Lab, Live};
use verbs_api::owned::{
    Cm, CmId, Completion, Connection, Context, Cq, Listener, Mr, Qp, RecvWr, Request, Route, SendWr,
};
use verbs_api::{
    Access, AhAttr, Capabilities, Cause, Error, ErrorKind, MULTICAST_QPN, Object, QpModify,
    QpState, QpType, Result, Verb, Verbs, Wait, WcOpcode, WcStatus,
};
use verbs_sim::{Mode, Sim, SimConfig};
use verbsim::backend::Kind;

use executor::{Task, run};

/// The first device of the simulator, and an unused address.
const SIM0: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const UNUSED: Ipv4Addr = Ipv4Addr::new(10, 99, 99, 99);
/// How long an event may take. Virtual time on the simulator; long on an emulated machine.
const SOON: Wait = Wait::For(Duration::from_secs(30));

#[test]
fn on_the_simulator() {
    for mode in [Mode::Inline, Mode::Stepped, Mode::RealTime] {
        let sim = Arc::new(Sim::new(SimConfig::new().mode(mode)));
        let looks = ["sim0", "sim1"].map(|name| sim.open_device(name).unwrap());
        all(sim.clone(), SocketAddr::new(SIM0.into(), 0)).unwrap();
        for context in looks {
            let mut live = sim.live(context).unwrap();
            // The domain that comes with the ids of a device stays.
            (live.contexts, live.pds) = (0, 0);
            assert_eq!(live, Live::default());
        }
    }
}

#[test]
fn on_a_device() {
    let Ok(address) = std::env::var("VERBSIM_ADDRESS") else {
        // Not by a macro: those of a test that passes are not shown.
        writeln!(io::stderr(), "skipped: VERBSIM_ADDRESS is of no device").unwrap();
        return;
    };
    let verbs: Arc<dyn Verbs> = Kind::Hw.verbs().expect("the system is Linux").into();
    all(verbs, SocketAddr::new(address.parse().unwrap(), 0)).unwrap();
}

fn all(verbs: Arc<dyn Verbs>, at: SocketAddr) -> Result<()> {
    let cm = Cm::new(verbs)?;
    programs_meet_talk_and_part(&cm, at)?;
    tasks_meet_talk_and_part(&cm, at)?;
    dropping_everything_in_any_order_ends_the_connection(&cm, at)?;
    refusal_tells_the_client_why(&cm, at)?;
    waits_are_over_in_time(&cm, at)?;
    bad_use_is_an_error(&cm, at)?;
    datagrams_find_their_way(&cm, at)
}

/// What one side needs besides its id.
struct Side {
    qp: Qp,
    cq: Cq,
    mr: Mr,
}

impl Side {
    fn new(id: &CmId, qp_type: QpType) -> Result<Self> {
        let context = id.context()?;
        let pd = context.alloc_pd()?;
        let channel = context.create_comp_channel()?;
        let cq = context.cq(16).channel(&channel).create()?;
        let mr = pd.alloc_mr(256, Access::LOCAL_WRITE)?;
        let qp = pd.qp(qp_type, &cq, &cq).create_for(id)?;
        qp.post_recv(RecvWr::new(1, &[mr.sge(128..)]))?;
        Ok(Self { qp, cq, mr })
    }

    /// The next completion, which must be a success.
    fn next(&self, opcode: WcOpcode) -> Result<Completion> {
        let mut completions = self.cq.wait(SOON)?.into_iter().flatten();
        let wc = completions.next().expect("a completion");
        assert_eq!((wc.opcode, wc.status), (opcode, WcStatus::Success), "{wc}");
        drop(completions);
        Ok(wc)
    }

    /// The next completion, which must be a success, for a task.
    async fn completed(&self, opcode: WcOpcode) -> Result<Completion> {
        let wc = self.cq.next().await?.next().expect("a completion");
        assert_eq!((wc.opcode, wc.status), (opcode, WcStatus::Success), "{wc}");
        Ok(wc)
    }

    fn send(&self, text: &[u8]) -> Result<()> {
        self.mr.write(0, text)?;
        let list = [self.mr.sge(..text.len())];
        self.qp.post_send(SendWr::send(2, &list))?;
        self.next(WcOpcode::Send)?;
        Ok(())
    }

    fn received(&self, length: usize) -> Result<Vec<u8>> {
        self.next(WcOpcode::Recv)?;
        self.mr.read_vec(128, length)
    }
}

fn route(cm: &Cm, ps: PortSpace, to: SocketAddr) -> Result<Route> {
    let route = cm.route(ps, to).resolve()?.wait(SOON)?;
    Ok(route.expect("a route in time"))
}

fn request(listener: &Listener) -> Result<Request> {
    Ok(listener.get_request(SOON)?.expect("a request in time"))
}

/// Both ends of a connection, the client's first.
fn connected(cm: &Cm, listener: &Listener) -> Result<[(Side, Connection); 2]> {
    let route = route(cm, PortSpace::Tcp, listener.local_addr()?)?;
    let near = Side::new(&route, QpType::Rc)?;
    let client = route.connect(&ConnParam::new().private_data(b"hello"))?;
    let request = request(listener)?;
    assert!(request.private_data().starts_with(b"hello"));
    assert_eq!(request.peer_addr()?.ip(), client.local_addr()?.ip());
    let far = Side::new(&request, QpType::Rc)?;
    let server = request.accept(&ConnParam::new().private_data(b"welcome"))?;
    let answer = client.established(SOON)?.expect("an answer in time");
    assert!(answer.private_data().starts_with(b"welcome"));
    assert!(server.established(SOON)?.is_some());
    assert_eq!(
        client.established(Wait::Poll)?,
        Some(answer),
        "it is returned again"
    );
    Ok([(near, client), (far, server)])
}

/// CM-31, CM-40: the queue pairs of ids are connected when the events arrive, and both sides are
/// notified of the end.
fn programs_meet_talk_and_part(cm: &Cm, at: SocketAddr) -> Result<()> {
    let listener = Listener::bind(cm, PortSpace::Tcp, at)?;
    let [(near, client), (far, server)] = connected(cm, &listener)?;
    assert_eq!(client.peer_addr()?, listener.local_addr()?);
    assert_eq!(
        client.context()?,
        server.context()?,
        "one value for one device"
    );
    near.send(b"there")?;
    assert_eq!(far.received(5)?, b"there");
    far.send(b"and back")?;
    assert_eq!(near.received(8)?, b"and back");
    assert_eq!(server.disconnected(Wait::Poll)?, None);
    client.disconnect()?;
    let end = server.disconnected(SOON)?.expect("an end in time");
    assert_eq!(end.event, CmEventType::Disconnected);
    assert_eq!(
        server.disconnected(Wait::Poll)?,
        Some(end),
        "it is returned again"
    );
    server.disconnect()?;
    assert!(client.disconnected(SOON)?.is_some());
    Ok(())
}

/// A client and a server are tasks on one thread, each polled only when it is woken. Three of them
/// wait for one end.
fn tasks_meet_talk_and_part(cm: &Cm, at: SocketAddr) -> Result<()> {
    let listener = Listener::bind(cm, PortSpace::Tcp, at)?;
    let to = listener.local_addr()?;
    let server = async {
        let request = listener.next_request().await?;
        let side = Side::new(&request, QpType::Rc)?;
        let connection = request.accept(&ConnParam::new())?;
        connection.until_established().await?;
        assert_eq!(side.completed(WcOpcode::Recv).await?.byte_len, 5);
        side.qp.post_send(SendWr::send(3, &[]))?;
        side.completed(WcOpcode::Send).await?;
        let ends = || async {
            let end = connection.until_disconnected().await;
            assert_eq!(end.map(|end| end.event), Ok(CmEventType::Disconnected));
        };
        let mut ends: Vec<Task<'_>> = vec![Box::pin(ends()), Box::pin(ends()), Box::pin(ends())];
        poll_fn(|context| {
            ends.retain_mut(|end| end.as_mut().poll(context).is_pending());
            if ends.is_empty() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        connection.disconnect()
    };
    let client = async {
        let mut resolving = cm.route(PortSpace::Tcp, to).resolve()?;
        let route = resolving.until_resolved().await?;
        let side = Side::new(&route, QpType::Rc)?;
        let connection = route.connect(&ConnParam::new())?;
        connection.until_established().await?;
        side.mr.write(0, b"there")?;
        side.qp.post_send(SendWr::send(2, &[side.mr.sge(..5)]))?;
        side.completed(WcOpcode::Send).await?;
        assert_eq!(side.completed(WcOpcode::Recv).await?.byte_len, 0);
        connection.disconnect()?;
        connection.until_disconnected().await.map(drop)
    };
    let (mut served, mut called) = (Ok(()), Ok(()));
    let server: Task<'_> = Box::pin(async { served = server.await });
    let client: Task<'_> = Box::pin(async { called = client.await });
    run([server, client]);
    served.and(called)
}

/// In virtual time no timer fires while a task can go on: the client does not ask again before the
/// server has had its turn.
#[test]
fn tasks_connect_before_any_timeout() {
    let sim = Arc::new(Sim::new(SimConfig::new()));
    let cm = Cm::new(sim.clone()).unwrap();
    tasks_meet_talk_and_part(&cm, SocketAddr::new(SIM0.into(), 0)).unwrap();
    let time = sim.now();
    assert!(time < Duration::from_millis(1), "{time:?}");
}

/// The id is destroyed after its queue pair, whichever the program drops first; then the peer is
/// notified of the end.
fn dropping_everything_in_any_order_ends_the_connection(cm: &Cm, at: SocketAddr) -> Result<()> {
    let listener = Listener::bind(cm, PortSpace::Tcp, at)?;
    for first in 0..3 {
        let [(near, client), (_far, server)] = connected(cm, &listener)?;
        match first {
            0 => drop((client, near)),
            1 => drop((near, client)),
            _ => {
                let Side { qp, cq, mr } = near;
                let (kept, id) = (qp.clone(), client.handle());
                drop((cq, mr, qp, client));
                assert_eq!(
                    cm.verbs().cm().unwrap().query_id(id)?.qp,
                    Some(kept.handle())
                );
                kept.destroy()?;
                let gone = cm.verbs().cm().unwrap().query_id(id).unwrap_err();
                assert_eq!(gone.kind(), ErrorKind::Invalid);
            }
        }
        let end = server.disconnected(SOON)?.expect("an end in time");
        assert_eq!(end.event, CmEventType::Disconnected);
    }
    Ok(())
}

/// CM-63: the error of a client has the reason and the server's words; a request that is dropped is
/// refused, and so is an unread one when its listener is dropped.
fn refusal_tells_the_client_why(cm: &Cm, at: SocketAddr) -> Result<()> {
    let listener = Listener::bind(cm, PortSpace::Tcp, at)?;
    let ask = |listener: &Listener| {
        let route = route(cm, PortSpace::Tcp, listener.local_addr()?)?;
        let side = Side::new(&route, QpType::Rc)?;
        Ok::<_, Error>((side, route.connect(&ConnParam::new())?))
    };
    let refused = |client: &Connection| {
        let error = client.established(SOON).unwrap_err();
        assert_eq!(
            (error.kind(), error.verb()),
            (ErrorKind::ConnectionRefused, Verb::CmConnect)
        );
        let Cause::CmEvent(event) = error.cause() else {
            panic!("{error}")
        };
        assert_eq!(event.event, CmEventType::Rejected);
        assert_eq!(
            client.established(Wait::Poll).unwrap_err(),
            error,
            "it is returned again"
        );
        event.private_data().to_vec()
    };
    let (_side, client) = ask(&listener)?;
    request(&listener)?.reject(b"not today")?;
    assert!(refused(&client).starts_with(b"not today"));
    let (_side, client) = ask(&listener)?;
    drop(request(&listener)?);
    refused(&client);
    let (_side, client) = ask(&listener)?;
    drop(listener);
    // If a listener of siw is dropped just before the request comes, the client gets no answer, and
    // gives up.
    let error = client.established(SOON).unwrap_err();
    let kinds = [ErrorKind::ConnectionRefused, ErrorKind::TimedOut];
    assert!(kinds.contains(&error.kind()), "{error}");
    Ok(())
}

/// Waits for a time, or for none, are over when nothing comes, and nothing is lost by it.
fn waits_are_over_in_time(cm: &Cm, at: SocketAddr) -> Result<()> {
    let listener = Listener::bind(cm, PortSpace::Tcp, at)?;
    for wait in [Wait::Poll, Wait::For(Duration::from_millis(5))] {
        assert!(listener.get_request(wait)?.is_none());
        assert!(listener.get_event(wait)?.is_none());
    }
    let [(near, client), (far, server)] = connected(cm, &listener)?;
    for wait in [Wait::Poll, Wait::For(Duration::from_millis(5))] {
        assert!(client.disconnected(wait)?.is_none());
    }
    drop((far, server));
    assert!(client.disconnected(SOON)?.is_some());
    drop(near);
    Ok(())
}

/// CM-10, CM-30: errors name the problem, and change nothing.
fn bad_use_is_an_error(cm: &Cm, at: SocketAddr) -> Result<()> {
    let all = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    let listener = Listener::bind(cm, PortSpace::Tcp, all)?;
    let lacking = [
        listener.context().unwrap_err(),
        listener.peer_addr().unwrap_err(),
    ];
    assert!(
        lacking
            .iter()
            .all(|error| error.kind() == ErrorKind::NotConnected),
        "{lacking:?}"
    );
    let to = SocketAddr::new(at.ip(), listener.local_addr()?.port());
    let taken = Listener::bind(cm, PortSpace::Tcp, to).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AddressNotAvailable, "CM-06");

    let mut resolving = cm.route(PortSpace::Tcp, to).resolve()?;
    let found = resolving.wait(SOON)?.expect("a route in time");
    assert_eq!(
        resolving.wait(SOON).unwrap_err().kind(),
        ErrorKind::Invalid,
        "it comes once"
    );
    let side = Side::new(&found, QpType::Rc)?;
    let second = side
        .qp
        .pd()
        .qp(QpType::Rc, &side.cq, &side.cq)
        .create_for(&found);
    assert_eq!(second.unwrap_err().kind(), ErrorKind::Invalid, "it has one");
    let other = Context::open(cm.verbs().clone(), &cm.verbs().devices()?[0].name)?;
    let (pd, cq) = (other.alloc_pd()?, other.cq(1).create()?);
    let third = route(cm, PortSpace::Tcp, to)?;
    let foreign = pd.qp(QpType::Rc, &cq, &cq).create_for(&third).unwrap_err();
    let must_share = "context";
    assert_eq!(
        foreign.cause(),
        &Cause::Mismatch {
            object: Object::Pd,
            must_share
        }
    );
    let context = found.context()?.clone();
    assert_eq!(context.close().unwrap_err().error.kind(), ErrorKind::Busy);
    let much = [0; 256];
    let too_much = third
        .connect(&ConnParam::new().private_data(&much))
        .unwrap_err();
    assert_eq!(too_much.kind(), ErrorKind::Invalid, "CM-62");
    Ok(())
}

/// CM-70: a client learns the address of its datagrams, and one queue pair of a server answers all;
/// a member of a group learns the address of the group's datagrams.
fn datagrams_find_their_way(cm: &Cm, at: SocketAddr) -> Result<()> {
    let listener = Listener::bind(cm, PortSpace::Udp, at)?;
    let context = listener.context()?;
    if !context.capabilities()?.contains(Capabilities::UD) {
        return Ok(());
    }
    let pd = context.alloc_pd()?;
    let cq = context
        .cq(16)
        .channel(&context.create_comp_channel()?)
        .create()?;
    let mr = pd.alloc_mr(256, Access::LOCAL_WRITE)?;
    let qp = pd.qp(QpType::Ud, &cq, &cq).create()?;
    qp.activate(listener.attr()?.port_num, RDMA_UDP_QKEY)?;
    qp.post_recv(RecvWr::new(1, &[mr.sge(128..)]))?;
    let server = Side { qp, cq, mr };

    let route = route(cm, PortSpace::Udp, listener.local_addr()?)?;
    let client = Side::new(&route, QpType::Ud)?;
    let asked = route.connect(&ConnParam::new().private_data(b"who?"))?;
    let request = request(&listener)?;
    assert!(request.private_data().starts_with(b"who?"));
    let qp_num = server.qp.num();
    let answer = request.accept(&ConnParam {
        qp_num,
        ..ConnParam::new().private_data(b"me")
    })?;
    assert_eq!(
        answer.established(Wait::Poll)?,
        Some(CmParam::None),
        "nothing more comes"
    );
    let found = asked.established(SOON)?.expect("an answer in time");
    assert!(found.private_data().starts_with(b"me"));
    let CmParam::Ud(there) = found else {
        panic!("{found:?}")
    };
    assert_eq!((there.qp_num, there.qkey), (qp_num, RDMA_UDP_QKEY));
    let send = |to: &AhAttr, qp_num, qkey, text: &[u8]| {
        let ah = client.qp.pd().create_ah(to)?;
        client.mr.write(0, text)?;
        let list = [client.mr.sge(..text.len())];
        client
            .qp
            .post_send(SendWr::send(2, &list).to(&ah, qp_num, qkey))?;
        client.next(WcOpcode::Send).map(drop)
    };
    send(&there.ah_attr, there.qp_num, there.qkey, b"datagram")?;
    assert_eq!(server.received(40 + 8)?[40..], *b"datagram");

    let group = SocketAddr::new(Ipv4Addr::new(239, 7, 7, 7).into(), 0);
    let member = CmId::bind(cm, PortSpace::Udp, at)?;
    let hears = Side::new(&member, QpType::Ud)?;
    member.join_multicast(group)?;
    let all = member.joined(SOON)?.expect("the group in time");
    assert_eq!(all.qp_num, MULTICAST_QPN);
    send(&all.ah_attr, all.qp_num, all.qkey, b"to all")?;
    assert_eq!(hears.received(40 + 6)?[40..], *b"to all");
    member.leave_multicast(group)?;
    let gone = member.leave_multicast(group).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::AddressNotAvailable);
    Ok(())
}

/// CM-14: an address that leads nowhere gives an error when its time is over, or at once if no
/// network leads there.
#[test]
fn who_cannot_be_reached_is_an_error() {
    let sim = Arc::new(Sim::new(SimConfig::new()));
    let cm = Cm::new(sim).unwrap();
    let unused = SocketAddr::new(UNUSED.into(), 7471);
    let timeout = Duration::from_millis(100);
    let resolved = cm.route(PortSpace::Tcp, unused).timeout(timeout).resolve();
    let error = resolved.unwrap().wait(SOON).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert_eq!(error.verb(), Verb::CmResolveAddr);
    let no_listener = SocketAddr::new(SIM0.into(), 7471);
    let route = route(&cm, PortSpace::Tcp, no_listener).unwrap();
    let _side = Side::new(&route, QpType::Rc).unwrap();
    let client = route.connect(&ConnParam::new()).unwrap();
    let error = client.established(SOON).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

/// CM-17: waiting calls report that the device is dead.
#[test]
fn whoever_waits_hears_that_the_device_is_gone() {
    let sim = Arc::new(Sim::new(SimConfig::new()));
    let cm = Cm::new(sim.clone()).unwrap();
    let at = SocketAddr::new(SIM0.into(), 0);
    let listener = Listener::bind(&cm, PortSpace::Tcp, at).unwrap();
    let [(near, client), (far, server)] = connected(&cm, &listener).unwrap();
    near.qp.modify(&QpModify::to(QpState::Err)).unwrap();
    let context = listener.context().unwrap().handle();
    sim.kill_device(context).unwrap();
    let gone = listener.get_request(SOON).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NoDevice);
    for end in [client, server] {
        let event = end.disconnected(SOON).unwrap().unwrap();
        assert_eq!(event.event, CmEventType::DeviceRemoval);
    }
    drop((near, far));
}
