//! The arming truth table: which completion makes an event under which request.
//!
//! One row a kind of completion, one column a request (CQ-ARM-01 to -17, -35 to -47). The first
//! five columns are the specification; the others are what soft drivers do, with the knobs turned
//! that describe them.

mod common;

use common::{End, pair, settle, take_events};
use verbs_api::behavior::{Behavior, ErrorFires};
use verbs_api::{
    Arm, AsyncEventType, CqInit, Qp, QpType, RcParams, Remote, SendOp, SendWr, Sge, Verbs, Wait,
    WcOpcode, WcStatus,
};
use verbs_sim::{Sim, SimConfig};

use WcStatus::{LocLenErr, LocProtErr, RemAccessErr, WrFlushErr};

const NEXT: Arm = Arm::NEXT;
const SOLICITED: Arm = Arm::SOLICITED;

/// `1`: one event, after which the CQ is unarmed. `-`: no event, and the request stays. `.`: the
/// device has no such thing. The requests stand above: off, next, solicited.
const TABLE: &str = "
                          | specification                      | rxe 6.1 | 6.12 | siw
                          | off  next  sol  next+sol  sol+next | sol     | sol  | sol  next+sol
    send                  |  -    1     -      1         1     |  -      |  -   |  -      -
    send marked           |  -    1     -      1         1     |  -      |  -   |  1      1
    write                 |  -    1     -      1         1     |  -      |  -   |  -      -
    write marked          |  -    1     -      1         1     |  -      |  -   |  1      1
    read                  |  -    1     -      1         1     |  -      |  -   |  -      -
    send error            |  -    1     1      1         1     |  -      |  -   |  -      -
    send error marked     |  -    1     1      1         1     |  -      |  -   |  1      1
    send error unsignaled |  -    1     1      1         1     |  -      |  -   |  -      -
    send error of peer    |  -    1     1      1         1     |  -      |  -   |  -      -
    send flush            |  -    1     1      1         1     |  -      |  -   |  -      -
    recv                  |  -    1     -      1         1     |  -      |  -   |  -      -
    recv SE               |  -    1     1      1         1     |  1      |  1   |  -      -
    recv SE of 3 packets  |  -    1     1      1         1     |  1      |  1   |  -      -
    recv imm              |  -    1     -      1         1     |  -      |  -   |  .      .
    recv imm SE           |  -    1     1      1         1     |  1      |  1   |  .      .
    recv too small        |  -    1     1      1         1     |  -      |  -   |  -      -
    recv too small SE     |  -    1     1      1         1     |  1      |  1   |  -      -
    recv bad lkey         |  -    1     1      1         1     |  -      |  -   |  -      -
    recv flush            |  -    1     1      1         1     |  1      |  -   |  -      -
    send unsignaled       |  -    -     -      -         -     |  -      |  -   |  -      -
    write arrives SE      |  -    -     -      -         -     |  -      |  -   |  -      -
    message dropped SE    |  -    -     -      -         -     |  -      |  -   |  -      -
    recv SE before        |  -    -     -      -         -     |  -      |  -   |  -      -
";

const COLUMNS: [(Device, &[Arm]); 9] = [
    (Device::Spec, &[]),
    (Device::Spec, &[NEXT]),
    (Device::Spec, &[SOLICITED]),
    (Device::Spec, &[NEXT, SOLICITED]),
    (Device::Spec, &[SOLICITED, NEXT]),
    (Device::Rxe, &[SOLICITED]),
    (Device::Rxe612, &[SOLICITED]),
    (Device::Siw, &[SOLICITED]),
    (Device::Siw, &[NEXT, SOLICITED]),
];

/// What leads to the completion of a row. "Marked" and "SE" are the bit SOLICITED of the work
/// request, at this end and at the peer.
fn situation(row: &str) -> Situation {
    use WcOpcode as O;
    match row {
        "send" => sent(O::Send, |c| c.send(plain)),
        "send marked" => sent(O::Send, |c| c.send(marked)),
        "write" => sent(O::RdmaWrite, |c| c.write(plain)),
        "write marked" => sent(O::RdmaWrite, |c| c.write(marked)),
        "read" => sent(O::RdmaRead, |c| c.read()),
        "send error" => failed(LocProtErr, |c| c.send_bad_lkey(plain)),
        "send error marked" => failed(LocProtErr, |c| c.send_bad_lkey(marked)),
        "send error unsignaled" => failed(LocProtErr, |c| c.send_bad_lkey(unsignaled)),
        "send error of peer" => failed(RemAccessErr, |c| c.write_bad_rkey()),
        "send flush" => failed(WrFlushErr, |c| c.send(plain)).before(|c| c.fail()),
        "recv" => received(O::Recv, |c| c.arrive(plain)),
        "recv SE" => received(O::Recv, |c| c.arrive(marked)),
        "recv SE of 3 packets" => received(O::Recv, |c| c.arrive_long(marked)),
        "recv imm" => received(O::RecvRdmaWithImm, |c| c.arrive_imm(plain)),
        "recv imm SE" => received(O::RecvRdmaWithImm, |c| c.arrive_imm(marked)),
        "recv too small" => failed(LocLenErr, |c| c.arrive(plain)).before(|c| c.recv(7)),
        "recv too small SE" => failed(LocLenErr, |c| c.arrive(marked)).before(|c| c.recv(7)),
        "recv bad lkey" => failed(LocProtErr, |c| c.arrive(plain)).before(|c| c.recv_bad_lkey()),
        "recv flush" => failed(WrFlushErr, |c| c.fail()).before(|c| c.recv(8)),
        "send unsignaled" => nothing(|c| c.send(unsignaled)),
        "write arrives SE" => nothing(|c| c.arrive_write(marked)),
        "message dropped SE" => nothing(|c| c.arrive(marked)).on(QpType::Uc),
        "recv SE before" => received(O::Recv, |_| ()).before(|c| {
            c.recv(8);
            c.arrive(marked);
        }),
        other => panic!("no situation is called {other}"),
    }
}

/// Every cell of the table, each in a simulation of its own.
#[test]
fn every_kind_of_completion_under_every_request() {
    let mut wrong = Vec::new();
    for (row, cells) in rows() {
        for ((device, requests), expected) in COLUMNS.into_iter().zip(cells) {
            let expected = match expected {
                "1" => 1,
                "-" => 0,
                _ => continue,
            };
            let cell = format!("{row} | {device:?} {requests:?}");
            let events = try_cell(&situation(row), device, requests, &cell);
            if events != expected {
                wrong.push(format!("{cell}: {events} events and not {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "wrong cells:\n{}", wrong.join("\n"));
}

/// Name and cells of each row.
fn rows() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let rows = TABLE.trim_start_matches('\n').lines().skip(2);
    rows.map(|line| {
        let (row, cells) = line.split_once('|').unwrap();
        let cells: Vec<_> = cells
            .split([' ', '|'])
            .filter(|cell| !cell.is_empty())
            .collect();
        assert_eq!(cells.len(), COLUMNS.len(), "{row}");
        (row.trim(), cells)
    })
}

/// How many events there are. Also checks that the completion was added that the row is about, and
/// which request is left.
fn try_cell(situation: &Situation, device: Device, requests: &[Arm], cell: &str) -> usize {
    let sim = Sim::new(SimConfig::new().behavior(device.behavior()));
    let link = Link::new(&sim, situation.transport);
    (situation.before)(&link);
    settle(&sim);
    for arm in requests {
        sim.req_notify_cq(link.near.cq, *arm).unwrap();
    }
    (situation.then)(&link);
    settle(&sim);
    let events = take_events(&sim, link.near.channel).len();
    let seen = link.near.drain();
    let seen: Vec<_> = seen.iter().map(|wc| (wc.status, wc.opcode)).collect();
    match situation.added {
        Added::Nothing => assert_eq!(seen, [], "{cell}"),
        Added::Success(opcode) => assert_eq!(seen, [(WcStatus::Success, opcode)], "{cell}"),
        Added::Failure(status) => {
            // The opcode of an error means nothing (WC-01).
            assert_eq!((seen.len(), seen[0].0), (1, status), "{cell}");
        }
    }
    if device == Device::Spec {
        let left = if events == 0 { requests } else { &[] };
        assert_eq!(
            link.probe(),
            pending(left),
            "{cell}: the request that is left"
        );
    }
    events
}

/// CQ-ARM-19: any value but 0 asks for a solicited completion.
#[test]
fn every_value_but_zero_is_solicited() {
    for value in [1, 2, -1, i32::MAX, i32::MIN] {
        let sim = Sim::new(SimConfig::new());
        let link = Link::new(&sim, QpType::Rc);
        sim.req_notify_cq(link.near.cq, Arm(value)).unwrap();
        assert_eq!(link.probe(), pending(&[SOLICITED]), "{value}");
    }
}

/// CQ-ARM-12, CQ-ARM-17: a request made many times gives one event; then the CQ is unarmed.
#[test]
fn a_repeated_request_gives_one_event() {
    for arm in [NEXT, SOLICITED] {
        let sim = Sim::new(SimConfig::new());
        let link = Link::new(&sim, QpType::Rc);
        for _ in 0..3 {
            sim.req_notify_cq(link.near.cq, arm).unwrap();
        }
        for _ in 0..3 {
            link.recv(8);
            link.arrive(marked);
        }
        settle(&sim);
        assert_eq!(take_events(&sim, link.near.channel).len(), 1, "{arm}");
        assert_eq!(link.probe(), pending(&[]), "{arm}");
    }
}

/// CQ-ARM-51, CQ-OVR-01: whether a completion that is lost to an overrun makes an event is open;
/// the asynchronous event is the sign that counts.
#[test]
fn a_completion_lost_to_overrun_gives_at_most_one_event_and_always_cq_err() {
    for (device, requests) in COLUMNS {
        let sim = Sim::new(SimConfig::new().behavior(device.behavior()));
        let mut near = End::open(&sim, "sim0", 1, 4096);
        let far = End::open(&sim, "sim1", 16, 4096);
        near.cq = sim
            .create_cq(near.context, &CqInit::new(1).channel(near.channel))
            .unwrap();
        let (qp, peer) = pair((&near, &far), QpType::Rc, 16, &RcParams::default());
        for wr_id in 0..2 {
            far.recv(peer, wr_id, 0, 8);
        }
        near.send(qp, 0, 0, 8);
        settle(&sim);
        for arm in requests {
            sim.req_notify_cq(near.cq, *arm).unwrap();
        }
        near.send(qp, 1, 0, 8);
        settle(&sim);
        assert!(take_events(&sim, near.channel).len() <= requests.len().min(1));
        let event = sim.get_async_event(near.context, Wait::Poll).unwrap();
        assert_eq!(event.event_type, AsyncEventType::CqErr);
    }
}

/// How a completion comes about.
struct Situation {
    transport: QpType,
    /// What happens before the CQ is armed.
    before: fn(&Link<'_>),
    /// What adds the completion.
    then: fn(&Link<'_>),
    added: Added,
}

#[derive(Clone, Copy)]
enum Added {
    Nothing,
    Success(WcOpcode),
    Failure(WcStatus),
}

fn after(added: Added, then: fn(&Link<'_>)) -> Situation {
    Situation {
        transport: QpType::Rc,
        before: |_| (),
        then,
        added,
    }
}

fn sent(opcode: WcOpcode, then: fn(&Link<'_>)) -> Situation {
    after(Added::Success(opcode), then)
}

/// With a receive that is large enough.
fn received(opcode: WcOpcode, then: fn(&Link<'_>)) -> Situation {
    after(Added::Success(opcode), then).before(|c| c.recv(4096))
}

fn failed(status: WcStatus, then: fn(&Link<'_>)) -> Situation {
    after(Added::Failure(status), then)
}

fn nothing(then: fn(&Link<'_>)) -> Situation {
    after(Added::Nothing, then)
}

impl Situation {
    fn before(self, before: fn(&Link<'_>)) -> Self {
        Self { before, ..self }
    }

    fn on(self, transport: QpType) -> Self {
        Self { transport, ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Device {
    Spec,
    Rxe,
    Rxe612,
    Siw,
}

impl Device {
    /// The specification with the arming knobs turned that make it this device.
    fn behavior(self) -> Behavior {
        let mut behavior = Behavior::SPEC;
        match self {
            Self::Spec => {}
            Self::Rxe => behavior.error_fires_solicited = ErrorFires::FlushedReceives,
            Self::Rxe612 => behavior.error_fires_solicited = ErrorFires::None,
            Self::Siw => {
                behavior.error_fires_solicited = ErrorFires::None;
                behavior.arm_downgrade = true;
                behavior.recv_se_fires = false;
                behavior.send_se_fires_local = true;
            }
        }
        behavior
    }
}

/// A connection: the CQ in question is that of `near`.
struct Link<'v> {
    near: End<'v>,
    far: End<'v>,
    qp: Qp,
    peer: Qp,
    /// Another pair on the same CQ, to see which request is pending.
    probe: (Qp, Qp),
}

/// Changes a work request.
type Mark = fn(SendWr<'_>) -> SendWr<'_>;

fn plain(wr: SendWr<'_>) -> SendWr<'_> {
    wr
}

fn marked(wr: SendWr<'_>) -> SendWr<'_> {
    wr.solicited()
}

fn unsignaled(wr: SendWr<'_>) -> SendWr<'_> {
    wr.unsignaled()
}

impl<'v> Link<'v> {
    fn new(verbs: &'v dyn Verbs, transport: QpType) -> Self {
        let near = End::open(verbs, "sim0", 16, 4096);
        let far = End::open(verbs, "sim1", 16, 4096);
        let params = RcParams::default();
        let (qp, peer) = pair((&near, &far), transport, 16, &params);
        let probe = pair((&near, &far), QpType::Rc, 16, &params);
        far.recv(peer, 0, 0, 4096);
        Self {
            near,
            far,
            qp,
            peer,
            probe,
        }
    }

    fn send(&self, mark: Mark) {
        let list = [self.near.mem.sge(0, 8)];
        self.near.post(self.qp, mark(SendWr::send(1, &list)));
    }

    fn write(&self, mark: Mark) {
        let list = [self.near.mem.sge(0, 8)];
        let wr = SendWr::rdma_write(1, &list, self.far.mem.remote(0));
        self.near.post(self.qp, mark(wr));
    }

    fn read(&self) {
        let list = [self.near.mem.sge(0, 8)];
        let wr = SendWr::rdma_read(1, &list, self.far.mem.remote(0));
        self.near.post(self.qp, wr);
    }

    fn send_bad_lkey(&self, mark: Mark) {
        let list = [self.bad_sge()];
        self.near.post(self.qp, mark(SendWr::send(1, &list)));
    }

    fn write_bad_rkey(&self) {
        let list = [self.near.mem.sge(0, 8)];
        let remote = Remote {
            rkey: !self.far.mem.rkey,
            ..self.far.mem.remote(0)
        };
        self.near
            .post(self.qp, SendWr::rdma_write(1, &list, remote));
    }

    fn fail(&self) {
        self.near.fail(self.qp);
    }

    fn recv(&self, length: u32) {
        self.near.recv(self.qp, 1, 0, length);
    }

    fn recv_bad_lkey(&self) {
        let list = [self.bad_sge()];
        let wr = verbs_api::RecvWr::new(1, &list);
        self.near.verbs.post_recv(self.qp, &[wr]).unwrap();
    }

    fn bad_sge(&self) -> Sge {
        Sge {
            lkey: !self.near.mem.lkey,
            ..self.near.mem.sge(0, 8)
        }
    }

    /// A send of the peer.
    fn arrive(&self, mark: Mark) {
        self.arrive_with(SendOp::Send, 8, mark);
    }

    fn arrive_long(&self, mark: Mark) {
        self.arrive_with(SendOp::Send, 3000, mark);
    }

    fn arrive_imm(&self, mark: Mark) {
        let remote = self.near.mem.remote(0);
        let imm_data = [0; 4];
        self.arrive_with(SendOp::RdmaWriteWithImm { remote, imm_data }, 8, mark);
    }

    fn arrive_write(&self, mark: Mark) {
        let remote = self.near.mem.remote(0);
        self.arrive_with(SendOp::RdmaWrite { remote }, 8, mark);
    }

    fn arrive_with(&self, op: SendOp, length: u32, mark: Mark) {
        let list = [self.far.mem.sge(0, length)];
        self.far.post(self.peer, mark(SendWr::new(2, op, &list)));
    }

    /// How many events a plain receive, then a flushed send gives.
    fn probe(&self) -> [usize; 2] {
        let (qp, peer) = self.probe;
        let events = || {
            settle(self.near.verbs);
            take_events(self.near.verbs, self.near.channel).len()
        };
        self.near.recv(qp, 3, 0, 8);
        self.far.send(peer, 3, 0, 8);
        let plain_receive = events();
        self.near.fail(qp);
        self.near.send(qp, 3, 0, 8);
        [plain_receive, events()]
    }
}

/// What [`Link::probe`] gives while the request that comes of these is pending (CQ-ARM-14, -15).
fn pending(requests: &[Arm]) -> [usize; 2] {
    if requests.contains(&NEXT) {
        [1, 0]
    } else {
        [0, requests.len().min(1)]
    }
}
