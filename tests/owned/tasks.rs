//! Waiting as tasks: each is woken when there is something to see, and dropping a future loses
//! nothing.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Weak};
use std::task::{Poll, Wake, Waker};
use std::thread;

use futures_core::Stream;
use verbs_api::lab::{Fault, Lab, PacketFilter, PacketOpcode};
use verbs_api::owned::{CompletionStream, Completions, Context, Cq, Element, Qp};
use verbs_api::{
    AsyncEventType, ErrorKind, EventSource, QpType, RcParams, Result, Verb, Verbs, Wait,
};
use verbs_explore::Checked;
use verbs_sim::{Mode, Sim, SimConfig};

use crate::executor::{Task, block_on, poll_once, run};
use crate::setup::{End, Setup, pair, recv, send};

fn ids(completions: Completions) -> Vec<u64> {
    completions.map(|wc| wc.wr_id).collect()
}

/// The next receive. Completions after it stay.
async fn received(cq: &Cq) -> u64 {
    loop {
        let mut completions = cq.next().await.unwrap();
        if let Some(wc) = completions.find(|wc| wc.opcode.is_recv()) {
            return wc.wr_id;
        }
    }
}

/// A waker that counts its calls.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Count {
    fn woken(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Two tasks that answer each other, with a receive posted at each end.
fn exchange<'a>(cqs: [&'a Cq; 2], qps: [&'a Qp; 2], rounds: u64) -> [Task<'a>; 2] {
    [0, 1].map(|side| -> Task<'a> {
        let (cq, qp) = (cqs[side], qps[side]);
        recv(qp, 0);
        Box::pin(async move {
            for round in 0..rounds {
                if side == 0 {
                    send(qp, 0);
                }
                assert_eq!(received(cq).await, round, "side {side}");
                recv(qp, round + 1);
                if side == 1 {
                    send(qp, 0);
                }
            }
        })
    })
}

/// A stream gives each completion once, in order, of a CQ and of a channel. What it has not given
/// stays, and an error ends it.
#[test]
fn a_stream_gives_each_completion_once() {
    async fn next(stream: &mut CompletionStream) -> Option<Result<u64>> {
        let next = poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await;
        next.map(|got| got.map(|wc| wc.wr_id))
    }
    let setup = Setup::new(SimConfig::new());
    let (ends, [near, far]) = pair(&setup);
    (0..8).for_each(|number| recv(&far, number));
    (0..8).for_each(|_| send(&near, 0));
    let channel = ends[1].cq.channel().unwrap();
    block_on(async {
        for first in [0, 4] {
            for (place, mut stream) in [(0, ends[1].cq.stream()), (2, channel.stream())] {
                for number in first + place..first + place + 2 {
                    assert_eq!(next(&mut stream).await.unwrap().unwrap(), number);
                }
            }
        }
        let mut in_vain = ends[1].cq.stream();
        let error = next(&mut in_vain).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Stalled, "{error}");
        assert!(next(&mut in_vain).await.is_none());
    });
}

/// CQ-ARM-03, CHAN-29: in every mode tasks that answer each other are woken for every message. In
/// stepped mode no thread but that of the tasks moves the clock.
#[test]
fn tasks_are_woken_for_what_comes() {
    for mode in [Mode::Stepped, Mode::Inline, Mode::RealTime] {
        let setup = Setup::new(SimConfig::new().mode(mode));
        let (ends, qps) = pair(&setup);
        let cqs = ends.each_ref().map(|end| &end.cq);
        run(exchange(cqs, qps.each_ref(), 100));
    }
}

/// Tasks in virtual time are as exact as calls, also under loss and in the layer that checks
/// invariants: the same seed gives the same trace.
#[test]
fn the_same_tasks_give_the_same_trace() {
    let program = |seed| {
        let sim = Arc::new(Sim::new(SimConfig::new().seed(seed).trace(true)));
        let lossy = Fault::drop(PacketFilter::EVERY).per_million(50_000);
        sim.inject(lossy).unwrap();
        let checked = Arc::new(Checked::new(sim.clone() as Arc<dyn Verbs>));
        let ends = ["sim0", "sim1"].map(|device| {
            let context = Context::open(checked.clone(), device).unwrap();
            let channel = context.create_comp_channel().unwrap();
            let cq = context.cq(64).channel(&channel).create().unwrap();
            let pd = context.alloc_pd().unwrap();
            let qp = pd.qp(QpType::Rc, &cq, &cq).create().unwrap();
            (cq, qp)
        });
        let [(cq, qp), (other_cq, other_qp)] = &ends;
        qp.connect_rc(other_qp, &RcParams::default()).unwrap();
        run(exchange([cq, other_cq], [qp, other_qp], 100));
        assert_eq!(checked.broken().map(|broken| broken.to_string()), None);
        let trace = sim.trace();
        Vec::from_iter(trace.iter().map(ToString::to_string))
    };
    let trace = program(7);
    let timeouts = trace.iter().filter(|line| line.contains("ack timeout"));
    assert!(timeouts.count() > 1, "nothing was lost");
    assert_eq!(trace, program(7));
    assert_ne!(trace, program(8));
}

/// A timer that fires in a thread of the simulator wakes a task, too.
#[test]
fn a_task_is_woken_by_a_timer_in_real_time() {
    let setup = Setup::new(SimConfig::new().mode(Mode::RealTime));
    let ends = [End::open(&setup, "sim0"), End::open(&setup, "sim1")];
    let [near, far] = ends.each_ref().map(|end| end.qp(QpType::Rc));
    // 4.096 us * 2^8, about 1 ms
    let params = RcParams {
        timeout: 8,
        ..RcParams::default()
    };
    near.connect_rc(&far, &params).unwrap();
    recv(&near, 7);
    let sends = PacketFilter::EVERY.opcode(PacketOpcode::RcSendOnly);
    let lost = setup.sim.inject(Fault::drop(sends).nth(1)).unwrap();
    send(&far, 0);
    assert_eq!(block_on(received(&ends[0].cq)), 7);
    assert_eq!(setup.sim.fired(lost), Ok(1));
}

/// A future takes nothing before it returns it: one that is dropped, woken or not, leaves what
/// comes to the next.
#[test]
fn a_dropped_future_loses_nothing() {
    let setup = Setup::inline();
    let (ends, [near, far]) = pair(&setup);
    let End { channel, cq, .. } = &ends[0];
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    for round in 0..30 {
        let woken = count.woken();
        {
            let mut one = pin!(cq.next());
            let mut other = pin!(channel.next());
            assert!(poll_once(one.as_mut(), &waker).is_pending());
            assert!(poll_once(other.as_mut(), &waker).is_pending());
            recv(&near, round);
            send(&far, 0);
            assert_eq!(count.woken(), woken + 2, "both are woken");
            if round % 2 == 0 {
                let found = poll_once(one.as_mut(), &waker);
                assert!(
                    matches!(found, Poll::Ready(Ok(_))),
                    "dropped with its result"
                );
            }
        }
        assert_eq!(ids(block_on(cq.next()).unwrap()), [round]);
        ends[1].cq.poll().unwrap().for_each(drop);
    }
}

/// Tasks share a CQ, in pairs that wait for it and for its channel, with a thread that sends: each
/// completion comes to one of them.
#[test]
fn tasks_that_share_a_channel_get_everything() {
    const TOTAL: u64 = 2000;
    let setup = Setup::inline();
    let (ends, [near, far]) = pair(&setup);
    let End { channel, cq, .. } = &ends[0];
    let (count, begun) = (AtomicUsize::new(0), Barrier::new(2));
    let task = |number: usize| -> Task<'_> {
        let (setup, count) = (&setup, &count);
        Box::pin(async move {
            loop {
                let next = match number % 2 {
                    0 => cq.next().await,
                    _ => channel.next().await,
                };
                let Ok(completions) = next else { return };
                let polled = completions.count();
                if count.fetch_add(polled, Ordering::Relaxed) + polled == TOTAL as usize {
                    setup.sim.close();
                }
            }
        })
    };
    setup.watched(|| {
        thread::scope(|scope| {
            scope.spawn(|| {
                begun.wait();
                for wr_id in 0..TOTAL {
                    recv(&near, wr_id);
                    send(&far, 0);
                    ends[1].cq.poll().unwrap().for_each(drop);
                    while count.load(Ordering::Relaxed) + 8 < wr_id as usize && !setup.is_over() {
                        thread::yield_now();
                    }
                }
            });
            begun.wait();
            run((0..4).map(task));
        });
    });
    assert!(!setup.is_over(), "a wake-up was lost");
    assert_eq!(count.into_inner(), TOTAL as usize);
}

/// A CQ that is attached while a task waits for the channel wakes it, and so do completions that
/// another task returns.
#[test]
fn a_task_sees_what_comes_without_an_event() {
    let setup = Setup::inline();
    let (ends, [near, far]) = pair(&setup);
    let End {
        context,
        pd,
        channel,
        cq,
        ..
    } = &ends[0];
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let mut next = pin!(channel.next());
    assert!(poll_once(next.as_mut(), &waker).is_pending());
    let later = context.cq(4).channel(channel).create().unwrap();
    assert_eq!(count.woken(), 1);
    assert!(poll_once(next.as_mut(), &waker).is_pending());
    let qp = pd.qp(QpType::Rc, cq, &later).create().unwrap();
    let peer = ends[1].qp(QpType::Rc);
    qp.connect_rc(&peer, &RcParams::default()).unwrap();
    recv(&qp, 1);
    send(&peer, 0);
    assert_eq!(count.woken(), 2);
    let taken = channel.wait(Wait::Poll).unwrap().unwrap();
    assert!(
        poll_once(next.as_mut(), &waker).is_pending(),
        "another has it"
    );
    drop(taken);
    assert_eq!(count.woken(), 3);
    let Poll::Ready(Ok(completions)) = poll_once(next.as_mut(), &waker) else {
        panic!("it was returned");
    };
    assert_eq!(completions.cq(), &later);
    assert_eq!(ids(completions), [1]);
    let _kept = (near, far);
}

/// Asynchronous events wake tasks, each of them.
#[test]
fn tasks_wait_for_asynchronous_events() {
    for setup in [Setup::stepped(), Setup::inline()] {
        let context = setup.open("sim0");
        let ports = async |up: AsyncEventType| {
            let event = context.next_async_event().await.unwrap();
            assert_eq!(
                (event.event_type(), event.element()),
                (up, &Element::Port(1))
            );
        };
        let set = |up| setup.sim.set_port(context.handle(), 1, up).unwrap();
        let switching: Task<'_> = Box::pin(async {
            set(false);
            set(true);
        });
        let first: Task<'_> = Box::pin(ports(AsyncEventType::PortErr));
        let second: Task<'_> = Box::pin(ports(AsyncEventType::PortActive));
        run([first, second, switching]);
    }
}

/// A source that is destroyed behind the back of a task wakes it, and then the task gets the error
/// of the verb. So does the end of the simulation.
#[test]
fn a_task_hears_that_its_source_is_destroyed() {
    let setup = Setup::inline();
    let count = Arc::new(Count::default());
    let waker = Waker::from(count.clone());
    let context = setup.open("sim0");
    let channel = context.create_comp_channel().unwrap();
    let closed = setup.open("sim1");
    let mut events = pin!(channel.next_event());
    let mut asyncs = pin!(closed.next_async_event());
    assert!(poll_once(events.as_mut(), &waker).is_pending());
    setup.sim.destroy_comp_channel(channel.handle()).unwrap();
    assert_eq!(count.woken(), 1);
    let Poll::Ready(Err(error)) = poll_once(events.as_mut(), &waker) else {
        panic!("the channel is destroyed");
    };
    assert_eq!(
        (error.verb(), error.kind()),
        (Verb::GetCqEvent, ErrorKind::Invalid)
    );
    assert!(poll_once(asyncs.as_mut(), &waker).is_pending());
    setup.sim.close_device(closed.handle()).unwrap();
    assert_eq!(count.woken(), 2);
    let Poll::Ready(Err(error)) = poll_once(asyncs.as_mut(), &waker) else {
        panic!("the context is closed");
    };
    assert_eq!(
        (error.verb(), error.kind()),
        (Verb::GetAsyncEvent, ErrorKind::Invalid)
    );
    let mut last = pin!(context.next_async_event());
    assert!(poll_once(last.as_mut(), &waker).is_pending());
    setup.sim.close();
    assert_eq!(count.woken(), 3);
    let Poll::Ready(Err(error)) = poll_once(last.as_mut(), &waker) else {
        panic!("no event can come");
    };
    assert_eq!(error.kind(), ErrorKind::Stalled);
}

/// However many futures are dropped before anything comes, and however many wakers a source gets,
/// at most one of them is kept.
#[test]
fn wakers_of_dropped_futures_are_not_kept() {
    let setup = Setup::inline();
    let context = setup.open("sim0");
    let channel = context.create_comp_channel().unwrap();
    let cq = context.cq(4).channel(&channel).create().unwrap();
    let count = Arc::new(Count::default());
    for _ in 0..10_000 {
        let waker = Waker::from(count.clone());
        assert!(poll_once(pin!(cq.next()), &waker).is_pending());
        assert!(poll_once(pin!(context.next_async_event()), &waker).is_pending());
    }
    assert_eq!(Arc::strong_count(&count), 1);
    let source = EventSource::CompChannel(channel.handle());
    let wakers: Vec<Weak<Count>> = (0..10_000)
        .map(|_| {
            let own = Arc::new(Count::default());
            let weak = Arc::downgrade(&own);
            setup.sim.wake_on(source, &own.into()).unwrap();
            weak
        })
        .collect();
    let kept = wakers.iter().filter(|waker| waker.strong_count() > 0);
    assert_eq!(kept.count(), 1, "that of the last call");
}

/// A waker may call verbs: it is called without the lock.
#[test]
fn a_waker_may_do_anything() {
    struct Closer(Context, Arc<Sim>);
    impl Wake for Closer {
        fn wake(self: Arc<Self>) {
            self.1.query_device(self.0.handle()).unwrap();
        }
    }
    let setup = Setup::inline();
    let (ends, [near, far]) = pair(&setup);
    let cq = &ends[0].cq;
    let waker = Waker::from(Arc::new(Closer(setup.open("sim0"), setup.sim.clone())));
    let mut next = pin!(cq.next());
    assert!(poll_once(next.as_mut(), &waker).is_pending());
    recv(&near, 1);
    send(&far, 0);
    assert!(poll_once(next.as_mut(), &waker).is_ready());
}

/// Registering is not a call of a verb: no fault rule fires, and no trace shows it.
#[test]
fn registering_a_waker_is_not_observed() -> Result<()> {
    let setup = Setup::new(SimConfig::new().mode(Mode::Inline).trace(true));
    let context = setup.sim.open_device("sim0")?;
    let channel = setup.sim.create_comp_channel(context)?;
    let rule = setup
        .sim
        .inject(Fault::fail(Verb::GetCqEvent, ErrorKind::NoMemory))?;
    let before = setup.sim.trace_len();
    let source = EventSource::CompChannel(channel);
    setup.sim.wake_on(source, Waker::noop())?;
    assert_eq!(
        (setup.sim.trace_len(), setup.sim.fired(rule)),
        (before, Ok(0))
    );
    setup.sim.destroy_comp_channel(channel)?;
    let error = setup.sim.wake_on(source, Waker::noop()).unwrap_err();
    assert_eq!(
        (error.verb(), error.kind()),
        (Verb::GetCqEvent, ErrorKind::Invalid)
    );
    Ok(())
}
