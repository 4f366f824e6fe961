//! A client and a server of rdma_cm in every state that both can be in, compared with a small model
//! of them.
//!
//! The model has two ids, their queue pairs, the messages between them and the unread events:
//! finitely many states. From each of them every call is tried, in a simulator that the shortest
//! way has brought there. The results, the events read, and the states of both queue pairs are
//! compared.

use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use verbs_api::cm::{CmChannel, CmEventType as Kind, CmId, ConnParam, PortSpace};
use verbs_api::lab::Lab;
use verbs_api::{CqInit, QpAttrMask, QpInit, QpState, QpType, Verbs, Wait};
use verbs_sim::{Sim, SimConfig};

/// Calls that lead to a state from which all are tried: in the dev profile not to the last of them.
const DEPTH: usize = if cfg!(debug_assertions) {
    9
} else {
    usize::MAX
};

/// What is tried in each state. Calls name who makes them: the client, or the id of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    ResolveAddr,
    ResolveRoute,
    CreateQp(Who),
    Connect,
    Accept,
    Reject(Who),
    Establish(Who),
    Disconnect(Who),
    Destroy(Who),
    DestroyListener,
    GetEvent(Who),
    /// All messages arrive.
    Deliver,
    /// All that somebody waits for is given up.
    GiveUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Who {
    Client,
    Server,
}

use Action::{
    Accept, Connect, CreateQp, Deliver, Destroy, DestroyListener, Disconnect, Establish, GetEvent,
    GiveUp, Reject, ResolveAddr, ResolveRoute,
};
use Who::{Client, Server};

const ACTIONS: [Action; 19] = [
    ResolveAddr,
    ResolveRoute,
    CreateQp(Client),
    CreateQp(Server),
    Connect,
    Accept,
    Reject(Client),
    Reject(Server),
    Establish(Client),
    Establish(Server),
    Disconnect(Client),
    Disconnect(Server),
    Destroy(Client),
    Destroy(Server),
    DestroyListener,
    GetEvent(Client),
    GetEvent(Server),
    Deliver,
    GiveUp,
];

impl Action {
    /// It names the id of the request.
    fn is_of_server(self) -> bool {
        matches!(
            self,
            CreateQp(Server)
                | Accept
                | Reject(Server)
                | Establish(Server)
                | Disconnect(Server)
                | Destroy(Server)
        )
    }
}

/// What a call came to: what it says or reads, if it did not fail.
type Outcome = Option<Option<Event>>;

/// An event, and its status.
type Event = (Kind, i32);

const TIMED_OUT: i32 = -110;
/// The reasons of a refusal: by a client that goes, by the absence of a listener, by a program.
const TIMEOUT: i32 = 4;
const NO_LISTENER: i32 = 8;
const CONSUMER: i32 = 28;

/// The model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Model {
    listens: bool,
    ends: [End; 2],
}

/// An id, and what is on its way to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct End {
    phase: Phase,
    /// The program has it.
    is_known: bool,
    qp: Option<QpState>,
    /// It has had its `DISCONNECTED`.
    is_over: bool,
    inbox: Vec<Message>,
    events: Vec<Event>,
}

/// How far an id is. (IBA 12.9.5, 12.9.6, with those of an id before it connects.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    /// There is no request yet.
    None,
    New,
    AddrResolved,
    RouteResolved,
    ReqSent,
    ReqReceived,
    RepSent,
    RepReceived,
    Established,
    DreqSent,
    DreqReceived,
    Timewait,
    /// There was something, and nothing more will come.
    Over,
    Destroyed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Message {
    Req,
    Rep,
    Rtu,
    Rej(i32),
    Dreq,
    Drep,
}

impl Model {
    fn new() -> Self {
        let end = |phase| End {
            phase,
            is_known: phase == Phase::New,
            qp: None,
            is_over: false,
            inbox: Vec::new(),
            events: Vec::new(),
        };
        Self {
            listens: true,
            ends: [end(Phase::New), end(Phase::None)],
        }
    }

    fn end(&mut self, who: Who) -> &mut End {
        &mut self.ends[who as usize]
    }

    fn send(&mut self, from: Who, message: Message) {
        let to = match from {
            Client => Server,
            Server => Client,
        };
        self.end(to).inbox.push(message);
    }

    /// Does it; what it comes to.
    fn act(&mut self, action: Action) -> Outcome {
        let done = match action {
            ResolveAddr => self.step(Phase::New, Phase::AddrResolved, Kind::AddrResolved),
            ResolveRoute => self.step(
                Phase::AddrResolved,
                Phase::RouteResolved,
                Kind::RouteResolved,
            ),
            CreateQp(who) => self.create_qp(who),
            Connect => self.connect(),
            Accept => self.accept(),
            Reject(who) => self.reject(who),
            Establish(who) => self.establish(who),
            Disconnect(who) => self.disconnect(who),
            Destroy(who) => self.destroy(who),
            DestroyListener => self.destroy_listener(),
            GetEvent(who) => return self.get_event(who).map(Some),
            Deliver => {
                self.deliver();
                true
            }
            GiveUp => {
                self.deliver();
                self.ends.iter_mut().for_each(End::give_up);
                true
            }
        };
        done.then_some(None)
    }

    /// A step of a client on its way (CM-10, CM-11, CM-15).
    fn step(&mut self, from: Phase, to: Phase, event: Kind) -> bool {
        let client = self.end(Client);
        let may = client.phase == from;
        if may {
            client.phase = to;
            client.events.push((event, 0));
        }
        may
    }

    /// CM-30: for an id that is bound to a device, once.
    fn create_qp(&mut self, who: Who) -> bool {
        let end = self.end(who);
        let has_device = !matches!(end.phase, Phase::New | Phase::Destroyed);
        let may = has_device && end.qp.is_none();
        if may {
            end.qp = Some(QpState::Init);
        }
        may
    }

    fn connect(&mut self) -> bool {
        let may = self.end(Client).phase == Phase::RouteResolved;
        if may {
            self.end(Client).phase = Phase::ReqSent;
            self.send(Client, Message::Req);
        }
        may
    }

    /// CM-31: the queue pair is in RTS first, which is possible from INIT alone.
    fn accept(&mut self) -> bool {
        let server = self.end(Server);
        let may = server.phase == Phase::ReqReceived && server.qp != Some(QpState::Err);
        if may {
            server.phase = Phase::RepSent;
            server.qp = server.qp.map(|_| QpState::Rts);
            self.send(Server, Message::Rep);
        }
        may
    }

    /// While the connection does not stand, each side can refuse it.
    fn reject(&mut self, who: Who) -> bool {
        let may = matches!(
            self.end(who).phase,
            Phase::ReqSent | Phase::ReqReceived | Phase::RepSent | Phase::RepReceived
        );
        if may {
            self.end(who).phase = Phase::Over;
            self.send(who, Message::Rej(CONSUMER));
        }
        may
    }

    fn establish(&mut self, who: Who) -> bool {
        let may = self.end(who).phase == Phase::RepReceived;
        if may {
            self.end(who).phase = Phase::Established;
            self.send(who, Message::Rtu);
        }
        may
    }

    /// CM-40 to CM-43: the local queue pair fails; an established connection is asked to end, and
    /// one whose peer has asked is ended; nothing happens if the connection is over or not yet
    /// established.
    fn disconnect(&mut self, who: Who) -> bool {
        let end = self.end(who);
        if matches!(
            end.phase,
            Phase::New | Phase::AddrResolved | Phase::RouteResolved | Phase::Destroyed
        ) {
            return false;
        }
        end.qp = end.qp.map(|_| QpState::Err);
        match end.phase {
            Phase::Established => {
                end.phase = Phase::DreqSent;
                self.send(who, Message::Dreq);
            }
            Phase::DreqReceived => {
                end.phase = Phase::Timewait;
                self.send(who, Message::Drep);
            }
            _ => {}
        }
        true
    }

    /// CM-46, CM-51: the peer is notified, and unread events vanish. The queue pair stays as it is.
    fn destroy(&mut self, who: Who) -> bool {
        let may = self.end(who).phase != Phase::Destroyed;
        if may {
            self.go(who);
        }
        may
    }

    fn go(&mut self, who: Who) {
        let end = self.end(who);
        end.events.clear();
        let last = match core::mem::replace(&mut end.phase, Phase::Destroyed) {
            Phase::ReqSent => Some(Message::Rej(TIMEOUT)),
            Phase::ReqReceived | Phase::RepSent | Phase::RepReceived => {
                Some(Message::Rej(CONSUMER))
            }
            Phase::Established => Some(Message::Dreq),
            Phase::DreqReceived => Some(Message::Drep),
            _ => None,
        };
        if let Some(last) = last {
            self.send(who, last);
        }
    }

    /// CM-26: unread requests are refused.
    fn destroy_listener(&mut self) -> bool {
        let did = core::mem::replace(&mut self.listens, false);
        let server = self.end(Server);
        if did && server.phase != Phase::None && !server.is_known {
            self.go(Server);
        }
        did
    }

    fn get_event(&mut self, who: Who) -> Option<Event> {
        let end = self.end(who);
        if end.events.is_empty() {
            return None;
        }
        let mut event = end.events.remove(0);
        match event.0 {
            Kind::ConnectRequest => end.is_known = true,
            // CM-33
            Kind::ConnectResponse if end.qp.is_some() => {
                let may = end.phase == Phase::RepReceived && end.qp == Some(QpState::Init);
                if may {
                    (end.qp, event.0) = (Some(QpState::Rts), Kind::Established);
                    self.establish(who);
                } else {
                    (end.qp, event) = (Some(QpState::Err), (Kind::ConnectError, -1));
                    self.reject(who);
                }
            }
            Kind::Rejected => end.qp = end.qp.map(|_| QpState::Err),
            _ => {}
        }
        Some(event)
    }

    /// Until nothing is under way.
    fn deliver(&mut self) {
        while let Some(who) = [Server, Client]
            .into_iter()
            .find(|who| !self.ends[*who as usize].inbox.is_empty())
        {
            let message = self.end(who).inbox.remove(0);
            self.receive(who, message);
        }
    }

    fn receive(&mut self, who: Who, message: Message) {
        let listens = self.listens;
        let end = self.end(who);
        match (message, end.phase) {
            (Message::Req, _) if listens => {
                end.phase = Phase::ReqReceived;
                end.events.push((Kind::ConnectRequest, 0));
            }
            (Message::Req, _) => self.send(who, Message::Rej(NO_LISTENER)),
            (Message::Rep, Phase::ReqSent) => {
                end.phase = Phase::RepReceived;
                end.events.push((Kind::ConnectResponse, 0));
            }
            (Message::Rtu, Phase::RepSent) => {
                end.phase = Phase::Established;
                end.events.push((Kind::Established, 0));
            }
            // The program learns of it when it answers (CM-29).
            (Message::Rej(_), Phase::ReqReceived) => end.phase = Phase::Over,
            (Message::Rej(reason), Phase::ReqSent | Phase::RepSent | Phase::RepReceived) => {
                end.phase = Phase::Over;
                end.events.push((Kind::Rejected, reason));
            }
            (Message::Dreq, Phase::Established | Phase::DreqSent) => {
                end.phase = Phase::DreqReceived;
                end.disconnected(0);
            }
            (Message::Dreq, Phase::Over | Phase::Timewait | Phase::Destroyed) => {
                self.send(who, Message::Drep);
            }
            (Message::Drep, Phase::DreqSent | Phase::DreqReceived) => {
                end.phase = Phase::Timewait;
                end.disconnected(0);
            }
            _ => {}
        }
    }
}

impl End {
    /// CM-43: a connection ends once.
    fn disconnected(&mut self, status: i32) {
        if !core::mem::replace(&mut self.is_over, true) {
            self.events.push((Kind::Disconnected, status));
        }
    }

    /// Nothing comes any more.
    fn give_up(&mut self) {
        match self.phase {
            Phase::ReqSent | Phase::RepSent => {
                self.phase = Phase::Over;
                self.events.push((Kind::Unreachable, TIMED_OUT));
            }
            Phase::DreqSent => {
                self.phase = Phase::Over;
                self.disconnected(TIMED_OUT);
                self.events.push((Kind::TimewaitExit, 0));
            }
            Phase::Timewait => {
                self.phase = Phase::Over;
                self.events.push((Kind::TimewaitExit, 0));
            }
            _ => {}
        }
    }
}

/// A simulator in which the same happens.
struct Real {
    sim: Sim,
    listener: CmId,
    at: SocketAddr,
    channels: [CmChannel; 2],
    ids: [Option<CmId>; 2],
    qps: [Option<verbs_api::Qp>; 2],
}

impl Real {
    fn new() -> Self {
        let sim = Sim::new(SimConfig::new());
        let cm = sim.cm().unwrap();
        let channels = [(); 2].map(|()| cm.create_event_channel().unwrap());
        let [client, listener] = channels.map(|at| cm.create_id(at, 0, PortSpace::Tcp).unwrap());
        let at = SocketAddr::new(Ipv4Addr::new(10, 0, 0, 1).into(), 7471);
        cm.bind_addr(listener, at).unwrap();
        cm.listen(listener, 0).unwrap();
        Self {
            listener,
            at,
            channels,
            ids: [Some(client), None],
            qps: [None; 2],
            sim,
        }
    }

    fn act(&mut self, action: Action) -> Outcome {
        let cm = self.sim.cm().unwrap();
        let id = |who: Who| self.ids[who as usize].expect("the program has it");
        let (second, param) = (Duration::from_secs(1), ConnParam::new());
        let done = match action {
            ResolveAddr => cm.resolve_addr(id(Client), None, self.at, second),
            ResolveRoute => cm.resolve_route(id(Client), second),
            CreateQp(who) => self.create_qp(who),
            Connect => cm.connect(id(Client), &param),
            Accept => cm.accept(id(Server), &param),
            Reject(who) => cm.reject(id(who), &[]),
            Establish(who) => cm.establish(id(who)),
            Disconnect(who) => cm.disconnect(id(who)),
            Destroy(who) => cm.destroy_id(id(who), Wait::Poll),
            DestroyListener => cm.destroy_id(self.listener, Wait::Poll),
            GetEvent(who) => {
                let event = cm
                    .get_cm_event(self.channels[who as usize], Wait::Poll)
                    .ok()?;
                cm.ack_cm_event(&event).unwrap();
                if event.event == Kind::ConnectRequest {
                    self.ids[Server as usize] = Some(event.id);
                }
                return Some(Some((event.event, event.status)));
            }
            Deliver => self.sim.advance(Duration::from_millis(10)),
            GiveUp => self.sim.advance(Duration::from_secs(120)),
        };
        done.ok().map(|()| None)
    }

    fn create_qp(&mut self, who: Who) -> verbs_api::Result<()> {
        let cm = self.sim.cm().unwrap();
        let context = cm.cm_devices()?[0];
        let cq = self.sim.create_cq(context, &CqInit::new(1))?;
        let init = QpInit::new(QpType::Rc, cq, cq);
        let id = self.ids[who as usize].expect("the program has it");
        self.qps[who as usize] = Some(cm.create_cm_qp(id, None, &init)?);
        Ok(())
    }

    fn states(&self) -> [Option<QpState>; 2] {
        let state = |qp| self.sim.query_qp(qp, QpAttrMask::STATE).unwrap();
        self.qps.map(|qp| Some(state(qp?).attr.qp_state))
    }
}

/// Further calls that show the state that a call has led to, in addition to its result.
const AFTERWARDS: [&[Action]; 2] = [
    &[GiveUp, Disconnect(Client), Disconnect(Server), GiveUp],
    &[
        Reject(Server),
        Disconnect(Client),
        Deliver,
        Disconnect(Server),
        GiveUp,
    ],
];

/// The model and the simulator, side by side.
struct Pair {
    model: Model,
    real: Real,
    way: Vec<Action>,
}

impl Pair {
    fn new() -> Self {
        Self {
            model: Model::new(),
            real: Real::new(),
            way: Vec::new(),
        }
    }

    /// Does it on both, which must come to the same. Says what it came to.
    fn act(&mut self, action: Action) -> Outcome {
        let expected = self.model.act(action);
        let got = self.real.act(action);
        let states = self.model.ends.each_ref().map(|end| end.qp);
        self.way.push(action);
        assert_eq!(
            (got, self.real.states()),
            (expected, states),
            "{:?}: {:#?}",
            self.way,
            self.model
        );
        got
    }

    fn can(&self, action: Action) -> bool {
        !action.is_of_server() || self.model.ends[Server as usize].is_known
    }

    fn read_all(&mut self) {
        for who in [Client, Server] {
            while self.act(GetEvent(who)).is_some() {}
        }
    }
}

/// CM-10, CM-15, CM-25 to CM-33, CM-40 to CM-46, CM-51, CM-63 to CM-66
#[test]
fn two_ids_are_what_the_model_is_in_every_state() {
    let mut ways: HashMap<Model, Vec<Action>> = HashMap::new();
    let mut left = VecDeque::from([Model::new()]);
    ways.insert(Model::new(), Vec::new());
    let mut tried = 0;
    while let Some(model) = left.pop_front() {
        let way = ways[&model].clone();
        for action in ACTIONS {
            for afterwards in AFTERWARDS {
                let mut pair = Pair::new();
                for before in &way {
                    pair.act(*before);
                }
                if !pair.can(action) {
                    continue;
                }
                pair.act(action);
                let next = &pair.model;
                if !ways.contains_key(next) && way.len() < DEPTH {
                    ways.insert(next.clone(), pair.way.clone());
                    left.push_back(next.clone());
                }
                pair.read_all();
                for later in afterwards {
                    if pair.can(*later) {
                        pair.act(*later);
                        pair.read_all();
                    }
                }
                tried += 1;
            }
        }
    }
    println!("{} states, {tried} calls", ways.len());
}
