//! File descriptors of channels under the event loops that people use. What `poll` and `epoll`
//! themselves see is the suite's: `verbsim list --filter descriptor`.
#![cfg(target_os = "linux")]

mod common;

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use common::{End, drain, pair, take_events};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;
use verbs_api::lab::{Fault, Lab, PacketFilter, PacketOpcode};
use verbs_api::owned::{self, Context};
use verbs_api::{
    Arm, CompChannel, CqEvent, ErrorKind, Qp, QpType, RcParams, Remote, Result, SendWr, Verbs, Wait,
};
use verbs_sim::{Mode, Sim, SimConfig};

/// How long a test waits before it says that something hangs.
const WATCH: Duration = Duration::from_secs(60);
const MESSAGES: u64 = 500;

fn world() -> Arc<Sim> {
    Arc::new(Sim::new(SimConfig::new().mode(Mode::Inline)))
}

/// A connection of which the completions at the first end come with events.
fn connected(sim: &Sim) -> (End<'_>, Qp) {
    let near = End::open(sim, "sim0", 1024, 64);
    let far = End::open(sim, "sim1", 16, 64);
    let (qp, _) = pair((&near, &far), QpType::Rc, 1024, &RcParams::default());
    (near, qp)
}

fn write(near: &End<'_>, qp: Qp, wr_id: u64) {
    near.post(qp, SendWr::rdma_write(wr_id, &[], Remote::default()));
}

/// CHAN-30: mio registers the descriptor edge-triggered. The loop reads events until none is left,
/// arms, and polls until empty.
#[test]
fn mio_wakes_a_loop_until_every_completion_is_polled() {
    let sim = world();
    let (near, qp) = connected(&sim);
    let fd = sim.channel_fd(near.channel).unwrap();
    let mut poll = Poll::new().unwrap();
    poll.registry()
        .register(&mut SourceFd(&fd.as_raw_fd()), Token(7), Interest::READABLE)
        .unwrap();
    sim.req_notify_cq(near.cq, Arm::NEXT).unwrap();
    let mut seen = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| (0..MESSAGES).for_each(|wr_id| write(&near, qp, wr_id)));
        let mut events = Events::with_capacity(4);
        while seen.len() < MESSAGES as usize {
            poll.poll(&mut events, Some(WATCH)).unwrap();
            assert!(
                !events.is_empty(),
                "a wake-up was lost: {} seen",
                seen.len()
            );
            assert!(events.iter().all(|event| event.token() == Token(7)));
            take_events(&*sim, near.channel);
            sim.req_notify_cq(near.cq, Arm::NEXT).unwrap();
            seen.extend(drain(&*sim, near.cq).iter().map(|wc| wc.wr_id));
        }
    });
    assert_eq!(seen, (0..MESSAGES).collect::<Vec<_>>());
}

/// The next event of a channel, for an async program.
async fn next_event(sim: &Sim, channel: CompChannel) -> Result<CqEvent> {
    // SAFETY: an `OwnedFd` is the same open descriptor as long as it lives.
    let fd = unsafe { AsyncFd::register(sim.channel_fd(channel)?) }.unwrap();
    loop {
        let mut ready = fd.readable().await.unwrap();
        match sim.get_cq_event(channel, Wait::Poll) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => ready.clear_ready(),
            done => return done,
        }
    }
}

#[tokio::test]
async fn tokio_wakes_a_task_until_every_completion_is_polled() {
    let sim = world();
    let (near, qp) = connected(&sim);
    let (channel, cq) = (near.channel, near.cq);
    sim.req_notify_cq(cq, Arm::NEXT).unwrap();
    let of_task = sim.clone();
    let reader = tokio::spawn(async move {
        let mut seen = Vec::new();
        while seen.len() < MESSAGES as usize {
            let event = next_event(&of_task, channel).await.unwrap();
            of_task.ack_cq_events(event.cq, 1).unwrap();
            of_task.req_notify_cq(event.cq, Arm::NEXT).unwrap();
            seen.extend(drain(&*of_task, event.cq).iter().map(|wc| wc.wr_id));
        }
        seen
    });
    for wr_id in 0..MESSAGES {
        write(&near, qp, wr_id);
        tokio::task::yield_now().await;
    }
    let seen = timeout(WATCH, reader).await.expect("a wake-up was lost");
    assert_eq!(seen.unwrap(), (0..MESSAGES).collect::<Vec<_>>());
}

/// The futures of `verbs_api::owned` need no descriptor. In the default mode tasks that wait move
/// the clock, to the timer that sends a lost message again, too.
#[tokio::test]
async fn tokio_runs_tasks_in_virtual_time() {
    let sim = Arc::new(Sim::new(SimConfig::new().trace(true)));
    let sends = PacketFilter::EVERY.opcode(PacketOpcode::RcSendOnly);
    let lost = sim.inject(Fault::drop(sends).nth(2)).unwrap();
    let open = |device| -> Result<_> {
        let context = Context::open(sim.clone(), device)?;
        let channel = context.create_comp_channel()?;
        let cq = context.cq(16).channel(&channel).create()?;
        let qp = context.alloc_pd()?.qp(QpType::Rc, &cq, &cq).create()?;
        Ok((cq, qp))
    };
    let (near, far) = (open("sim0").unwrap(), open("sim1").unwrap());
    near.1.connect_rc(&far.1, &RcParams::default()).unwrap();
    let task = async |(cq, qp): &(owned::Cq, owned::Qp), begins: bool| -> Result<()> {
        for wr_id in 0..10 {
            qp.post_recv(owned::RecvWr::new(wr_id, &[]))?;
            if begins {
                qp.post_send(owned::SendWr::send(0, &[]))?;
            }
            while !cq.next().await?.any(|wc| wc.opcode.is_recv()) {}
            if !begins {
                qp.post_send(owned::SendWr::send(0, &[]))?;
            }
        }
        Ok(())
    };
    let both = async { tokio::join!(task(&near, true), task(&far, false)) };
    let start = Instant::now();
    let done = timeout(WATCH, both).await;
    // The poll at the end of the time would let the clock go on.
    assert!(start.elapsed() < WATCH, "time stands still");
    assert_eq!(done, Ok((Ok(()), Ok(()))));
    assert_eq!(sim.fired(lost), Ok(1));
    let trace = sim.trace().into_iter().map(|record| record.to_string());
    let timeouts = trace.filter(|line| line.contains("ack timeout"));
    assert_eq!(
        timeouts.count(),
        1,
        "the clock passes no task that can go on"
    );
}

/// A runtime that goes away takes its wait with it: nothing hangs, no event is lost, and the
/// channel can be destroyed.
#[test]
fn runtime_that_ends_leaves_the_event_of_its_wait() {
    let sim = world();
    let (near, qp) = connected(&sim);
    let channel = near.channel;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let of_task = sim.clone();
    let (started, is_waiting) = tokio::sync::oneshot::channel();
    let waiting = runtime.spawn(async move {
        started.send(()).unwrap();
        next_event(&of_task, channel).await
    });
    runtime.block_on(is_waiting).unwrap();
    drop(runtime);
    sim.req_notify_cq(near.cq, Arm::NEXT).unwrap();
    write(&near, qp, 1);
    assert!(waiting.is_finished(), "its task is cancelled");
    assert_eq!(take_events(&*sim, channel), [near.cq]);
    sim.destroy_qp(qp, Wait::Poll).unwrap();
    sim.destroy_cq(near.cq, Wait::Poll).unwrap();
    sim.destroy_comp_channel(channel).unwrap();
}

/// A descriptor outlives its channel, and that of a later channel in the same place is another.
#[test]
fn descriptor_of_a_destroyed_channel_is_never_readable() {
    let sim = world();
    let context = sim.open_device("sim0").unwrap();
    let old = sim.create_comp_channel(context).unwrap();
    let fd = sim.channel_fd(old).unwrap();
    sim.destroy_comp_channel(old).unwrap();
    assert_eq!(sim.channel_fd(old).unwrap_err().kind(), ErrorKind::Invalid);
    let (near, qp) = connected(&sim);
    sim.req_notify_cq(near.cq, Arm::NEXT).unwrap();
    write(&near, qp, 1);
    let mut poll = Poll::new().unwrap();
    let mut events = Events::with_capacity(4);
    for (fd, token) in [(fd, 0), (sim.channel_fd(near.channel).unwrap(), 1)] {
        let raw = fd.as_raw_fd();
        let registry = poll.registry();
        registry
            .register(&mut SourceFd(&raw), Token(token), Interest::READABLE)
            .unwrap();
        poll.poll(&mut events, Some(Duration::ZERO)).unwrap();
        let tokens: Vec<_> = events.iter().map(mio::event::Event::token).collect();
        assert_eq!(tokens, [Token(1)][..token], "descriptor {token}");
    }
}

/// Descriptors are closed with their objects: a process may have only a limited number open.
#[test]
fn descriptors_are_closed_with_their_channels_and_contexts() {
    const ROUNDS: usize = 400;
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let sim = world();
    let before = open();
    for _ in 0..ROUNDS {
        let context = sim.open_device("sim0").unwrap();
        let channel = sim.create_comp_channel(context).unwrap();
        drop(sim.channel_fd(channel).unwrap());
        drop(sim.async_fd(context).unwrap());
        sim.destroy_comp_channel(channel).unwrap();
        sim.close_device(context).unwrap();
    }
    // Tests that run at the same time have some.
    let more = open().saturating_sub(before);
    assert!(more < ROUNDS / 4, "{more} descriptors are left");
}

/// A descriptor outlives its context, and what was unread then is no more.
#[test]
fn descriptor_of_a_closed_context_is_never_readable() {
    let sim = world();
    let context = sim.open_device("sim0").unwrap();
    let fd = sim.async_fd(context).unwrap();
    let is_readable = || {
        let (mut poll, mut events) = (Poll::new().unwrap(), Events::with_capacity(1));
        let mut source = SourceFd(&fd.as_raw_fd());
        let registered = poll.registry();
        registered
            .register(&mut source, Token(0), Interest::READABLE)
            .unwrap();
        poll.poll(&mut events, Some(Duration::ZERO)).unwrap();
        !events.is_empty()
    };
    assert!(!is_readable());
    sim.lab().unwrap().set_port(context, 1, false).unwrap();
    assert!(is_readable());
    sim.close_device(context).unwrap();
    assert!(!is_readable());
    // The next context has a descriptor of its own.
    let next = sim.open_device("sim0").unwrap();
    sim.async_fd(next).unwrap();
    sim.lab().unwrap().set_port(next, 1, true).unwrap();
    assert!(!is_readable());
}
