//! Virtual time: how far empty polls move the clock in `Mode::Stepped`, for one party and for
//! several that take turns on one thread; and its test controls.

use core::time::Duration;
use std::sync::Arc;

use verbs_api::cm::{ConnParam, PortSpace};
use verbs_api::lab::{Fault, Lab, PacketFilter};
use verbs_api::owned::{
    Cm, CmId, Completion, Connection, Context, Cq, Listener, Pd, Qp, RecvWr, SendWr,
};
use verbs_api::{Arm, ErrorKind, QpType, RcParams, Verbs, Wait, WcStatus};
use verbs_sim::{Mode, Sim, SimConfig};

const MESSAGES: usize = 8;

/// The modes of virtual time.
const MODES: [Mode; 2] = [Mode::Stepped, Mode::Inline];

/// How a party looks for a completion without waiting. Returns its status.
type Look = fn(&Cq) -> Option<WcStatus>;

/// Every way to look.
const LOOKS: [(&str, Look); 4] = [
    ("poll", |cq| Some(cq.poll().unwrap().next()?.status)),
    ("iterate", |cq| Some(cq.iterate().next()?.unwrap().status)),
    ("wait", |cq| {
        Some(cq.wait(Wait::Poll).unwrap()?.next()?.status)
    }),
    ("arm before the poll", |cq| {
        cq.req_notify(Arm::NEXT).unwrap();
        Some(cq.poll().unwrap().next()?.status)
    }),
];

/// A simulation in which nothing arrives at the peer of one queue pair, `lost`, and everything at
/// that of the other.
struct Parties {
    sim: Arc<Sim>,
    pd: Pd,
    lost: Qp,
    sender: Qp,
    receiver: Qp,
}

impl Parties {
    fn new() -> Self {
        Self::with(SimConfig::new())
    }

    fn with(config: SimConfig) -> Self {
        let sim = Arc::new(Sim::new(config));
        let pds = ["sim0", "sim1"].map(|name| {
            let context = Context::open(sim.clone(), name).unwrap();
            context.alloc_pd().unwrap()
        });
        let connected = || {
            let qps = pds.each_ref().map(|pd| {
                let channel = pd.context().create_comp_channel().unwrap();
                let cq = pd.context().cq(64).channel(&channel);
                let cq = cq.extended(Default::default(), Default::default());
                let cq = cq.create().unwrap();
                pd.qp(QpType::Rc, &cq, &cq).create().unwrap()
            });
            qps[0].connect_rc(&qps[1], &RcParams::default()).unwrap();
            qps
        };
        let ([lost, peer], [sender, receiver]) = (connected(), connected());
        let to_peer = PacketFilter::EVERY.dest_qpn(peer.num());
        sim.inject(Fault::drop(to_peer)).unwrap();
        let [pd, _] = pds;
        Self {
            sim,
            pd,
            lost,
            sender,
            receiver,
        }
    }

    /// Posts what gets no answer.
    fn post_lost(&self) -> &Cq {
        self.lost.post_send(SendWr::send(0, &[])).unwrap();
        self.lost.send_cq()
    }

    /// Sends messages, which arrive. Returns the CQ in which they are then unread.
    fn receive(&self) -> &Cq {
        for wr_id in 0..MESSAGES as u64 {
            self.receiver.post_recv(RecvWr::new(wr_id, &[])).unwrap();
            self.sender.post_send(SendWr::send(wr_id, &[])).unwrap();
        }
        self.sim.advance(Duration::from_micros(100)).unwrap();
        self.receiver.recv_cq()
    }

    /// Polls until the retries are exhausted. Returns the number of polls.
    fn polls_until_failure(&self, cq: &Cq, look: Look, mut turn: impl FnMut()) -> usize {
        for polls in 1..1_000_000 {
            if let Some(status) = look(cq) {
                assert_eq!(status, WcStatus::RetryExcErr);
                return polls;
            }
            turn();
        }
        panic!("no completion at {:?}", self.sim.now());
    }
}

/// Two parties take turns. One polls an empty CQ, and its timer is next. Time does not pass as long
/// as the other one reads a completion in each turn.
#[test]
fn time_does_not_pass_while_another_party_has_completions_to_read() {
    for (name, look) in LOOKS {
        let parties = Parties::new();
        let (waiting, unread) = (parties.post_lost(), parties.receive());
        let before = parties.sim.now();
        let mut one = [Completion::default()];
        for message in 0..MESSAGES {
            assert_eq!(look(waiting), None);
            assert_eq!(parties.sim.now(), before, "{name}, message {message}");
            assert_eq!(unread.poll_into(&mut one).unwrap(), 1);
        }
        parties.polls_until_failure(waiting, look, || ());
    }
}

/// The same, if the other party does not read but posts.
#[test]
fn time_does_not_pass_while_another_party_posts() {
    let parties = Parties::new();
    let waiting = parties.post_lost();
    let before = parties.sim.now();
    for wr_id in 0..MESSAGES as u64 {
        assert_eq!(waiting.poll().unwrap().len(), 0);
        assert_eq!(parties.sim.now(), before);
        parties.receiver.post_recv(RecvWr::new(wr_id, &[])).unwrap();
    }
}

/// Completions that are never read do not stop time, for one party or two that poll in turn.
#[test]
fn what_stays_unread_does_not_stop_time() {
    for (name, look) in LOOKS {
        for others in 0..3 {
            let parties = Parties::new();
            let waiting = parties.post_lost();
            parties.receive();
            let context = parties.pd.context();
            let empty: Vec<_> = (0..others)
                .map(|_| context.cq(1).create().unwrap())
                .collect();
            let polls = parties.polls_until_failure(waiting, look, || {
                for cq in &empty {
                    assert_eq!(cq.poll().unwrap().len(), 0);
                }
            });
            // Eight time-outs, and between them nothing but lost packets.
            assert!(polls < 50, "{name}, {others} other CQs: {polls} polls");
        }
    }
}

/// Posts that are refused, here by a full queue, change nothing and do not hold time back.
#[test]
fn posts_that_are_refused_do_not_stop_time() {
    let parties = Parties::new();
    let waiting = parties.post_lost();
    let post = || parties.lost.post_send(SendWr::send(0, &[]));
    while post().is_ok() {}
    let [(_, poll), ..] = LOOKS;
    let polls = parties.polls_until_failure(waiting, poll, || drop(post().unwrap_err()));
    assert!(polls < 50, "{polls} polls");
}

/// A party that never rests, and needs no time for what it does, does not stop it either.
#[test]
fn work_that_takes_no_time_does_not_stop_time() {
    let parties = Parties::new();
    let waiting = parties.post_lost();
    let [(_, poll), ..] = LOOKS;
    parties.polls_until_failure(waiting, poll, || {
        drop(parties.pd.context().alloc_pd().unwrap());
    });
}

/// A program that moves the clock itself, in small steps or by waits, gets to timers that way.
#[test]
fn polls_do_not_pass_a_timer_if_the_program_moves_the_clock() {
    const STEP: Duration = Duration::from_micros(10);
    let parties = Parties::new();
    let waiting = parties.post_lost();
    let channel = parties.receiver.recv_cq().channel().unwrap();
    let start = parties.sim.now();
    for round in 1..20_000 {
        assert_eq!(waiting.poll().unwrap().len(), 0);
        if round % 2 == 0 {
            assert!(channel.get_event(Wait::For(STEP)).unwrap().is_none());
        } else {
            parties.sim.advance(STEP).unwrap();
        }
        assert_eq!(parties.sim.now() - start, STEP * round);
    }
}

/// `wait(Wait::Poll)` polls twice, and delivers no more packets than one poll.
#[test]
fn a_wait_that_does_not_wait_is_one_poll() {
    let [(_, poll), _, (_, wait), _] = LOOKS;
    let times = [poll, wait].map(|look| {
        let parties = Parties::new();
        let cq = parties.lost.recv_cq();
        parties.sender.post_send(SendWr::send(0, &[])).unwrap();
        assert_eq!(look(cq), None);
        parties.sim.now()
    });
    assert_eq!(times, [Duration::from_micros(1); 2]);
}

/// A server and a client of rdma_cm take turns until they are connected. The client also looks for
/// what the server may send. `turned` is called after each round with the activity before it.
/// Returns how long it took.
fn connect(parties: &Parties, look: Look, turned: impl Fn(u64)) -> Duration {
    let sim = &parties.sim;
    let cm = Cm::new(sim.clone() as Arc<dyn Verbs>).unwrap();
    let [from, to] = [(0, 0), (1, 7000)].map(|(node, port)| ([10, 0, node, 1], port).into());
    let listener = Listener::bind(&cm, PortSpace::Tcp, to).unwrap();
    let mut resolving = cm.route(PortSpace::Tcp, to).from(from).resolve().unwrap();
    let (mut accepted, mut asked) = (None, None);
    let qp_for = |id: &CmId| {
        let pd = id.context().unwrap().alloc_pd().unwrap();
        let cq = id.context().unwrap().cq(4).create().unwrap();
        pd.qp(QpType::Rc, &cq, &cq).create_for(id).unwrap()
    };
    let is_made = |end: &Option<(Connection, Qp)>| {
        let made = |end: &Connection| end.established(Wait::Poll).unwrap().is_some();
        end.as_ref().is_some_and(|(end, _)| made(end))
    };
    for _ in 0..100 {
        let before = sim.activity();
        if let Some(request) = listener.get_request(Wait::Poll).unwrap() {
            let qp = qp_for(&request);
            accepted = Some((request.accept(&ConnParam::default()).unwrap(), qp));
        }
        if asked.is_none()
            && let Some(route) = resolving.wait(Wait::Poll).unwrap()
        {
            let qp = qp_for(&route);
            asked = Some((route.connect(&ConnParam::default()).unwrap(), qp));
        }
        if is_made(&asked) && is_made(&accepted) {
            return sim.now();
        }
        assert_eq!(look(parties.lost.recv_cq()), None);
        turned(before);
    }
    panic!("not connected at {:?}", sim.now());
}

/// The time at which the client would ask again does not come first.
#[test]
fn parties_that_take_turns_connect_in_microseconds() {
    for (name, look) in LOOKS {
        let took = connect(&Parties::new(), look, |_| ());
        assert!(took < Duration::from_millis(1), "{name}: {took:?}");
    }
}

/// The same, if the test moves the clock when a round has changed nothing.
#[test]
fn a_step_after_a_round_without_activity_leaps_over_no_work() {
    for ((name, look), mode) in LOOKS
        .into_iter()
        .flat_map(|look| MODES.map(|mode| (look, mode)))
    {
        let parties = Parties::with(SimConfig::new().mode(mode));
        let took = connect(&parties, look, |before| {
            if parties.sim.activity() == before {
                parties.sim.step(Duration::MAX).unwrap();
            }
        });
        assert!(
            took < Duration::from_millis(1),
            "{name}, {mode:?}: {took:?}"
        );
    }
}

/// Steps do the same things at the same times as `settle`, one at a time, and each is announced.
#[test]
fn steps_together_are_what_settling_does() {
    for mode in MODES {
        let [settled, stepped] = [(); 2].map(|()| {
            let parties = Parties::with(SimConfig::new().mode(mode).trace(true));
            parties.receiver.post_recv(RecvWr::new(0, &[])).unwrap();
            parties.sender.post_send(SendWr::send(0, &[])).unwrap();
            parties.post_lost();
            parties
        });
        let (settled, stepped) = (&settled.sim, &stepped.sim);
        settled.settle().unwrap();
        let mut steps = 0;
        while let Some(due) = stepped.next_due() {
            assert!(!stepped.is_idle());
            assert!(stepped.step(Duration::MAX).unwrap());
            assert_eq!(stepped.now(), due);
            steps += 1;
        }
        assert!(steps >= 8, "one for each time-out: {steps}");
        assert!(stepped.is_idle() && !stepped.step(Duration::MAX).unwrap());
        assert_eq!(stepped.now(), settled.now());
        let text = |sim: &Sim| {
            sim.trace()
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(text(stepped), text(settled), "{mode:?}");
    }
}

#[test]
fn a_step_goes_no_further_than_its_limit() {
    let parties = Parties::new();
    parties.post_lost();
    let sim = &parties.sim;
    let due = sim.next_due().unwrap();
    assert!(!sim.step(due - Duration::from_nanos(1)).unwrap());
    assert_eq!(sim.now(), Duration::ZERO);
    assert!(sim.step(due).unwrap());
    assert_eq!(sim.now(), due);
}

/// A port that is to change is a step, and no work.
#[test]
fn a_simulation_is_idle_although_a_port_changes_later() {
    const SECOND: Duration = Duration::from_secs(1);
    let sim = Sim::new(SimConfig::new());
    let outage = Fault::port_down(0, 1).down_at(SECOND).up_at(2 * SECOND);
    sim.inject(outage).unwrap();
    for seconds in 1..=2 {
        assert!(sim.is_idle());
        assert_eq!(sim.next_due(), Some(seconds * SECOND));
        assert!(sim.step(Duration::MAX).unwrap());
    }
    assert_eq!(sim.next_due(), None);
}

#[test]
fn the_clock_of_the_machine_takes_no_steps() {
    let sim = Sim::new(SimConfig::new().mode(Mode::RealTime));
    let refused = [
        sim.step(Duration::ZERO).map(drop),
        sim.advance(Duration::ZERO),
    ];
    for result in refused {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::NotSupported);
    }
}
