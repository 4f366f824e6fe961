//! Loops that are told of edges: epoll with `EPOLLET`, and futures.

use core::task::{Poll, Waker};
use std::sync::Arc;

use verbs_api::sync::Mutex;
use verbs_api::{CqEvent, Error, ErrorKind, Verbs, Wait};

use super::{Model, ack, arm, poll};
use crate::{Bench, Failure, Outcome, Search};

pub(super) const MODELS: &[Model] = &[
    Model::holds(
        "edge.reads_until_there_is_none",
        &["CHAN-30", "CHAN-32", "CHAN-29"],
        (2, 2),
        |bench| edges(bench, true),
    ),
    Model::fails(
        "edge.reads_one_event",
        &["CHAN-30", "CHAN-32"],
        "an edge comes once",
        (2, 2),
        |bench| edges(bench, false),
    ),
    Model::holds(
        "waker.registers_before_it_looks",
        &["CHAN-30", "CHAN-29"],
        (3, 1),
        |bench| task(bench, true),
    )
    .search(Search::new().preemptions(3)),
    Model::fails(
        "waker.looks_before_it_registers",
        &["CHAN-30", "CHAN-29"],
        "the task sleeps while an event is queued",
        (3, 1),
        |bench| task(bench, false),
    )
    .search(Search::new().preemptions(3)),
];

/// An event, if there is one now.
fn try_event(bench: &Bench) -> Result<Option<CqEvent>, Error> {
    match bench.sim().get_cq_event(bench.channel(), Wait::Poll) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        result => result.map(Some),
    }
}

/// Events of two CQs may come before the loop looks: that is one edge.
fn edges(bench: &Bench, until_none: bool) -> Outcome {
    let cqs = [bench.cq(4)?, bench.cq(4)?];
    let links = [bench.link(cqs[0], 1)?, bench.link(cqs[1], 1)?];
    for cq in cqs {
        arm(bench, cq)?;
    }
    bench.spawn("loop", move |bench| {
        let (mut seen, mut left) = (0, 2);
        while left > 0 {
            seen = bench.sim().wait_for_edge(bench.channel(), seen)?;
            while let Some(event) = try_event(bench)? {
                ack(bench, event)?;
                arm(bench, event.cq)?;
                left -= poll(bench, event.cq)?;
                if !until_none {
                    break;
                }
            }
        }
        Ok::<_, Error>(())
    });
    bench.spawn("peer", move |bench| {
        links[0].send(bench, 0)?;
        links[1].send(bench, 0)
    });
    Ok(())
}

/// Where a task leaves its waker for the thread that watches the channel.
#[derive(Default)]
struct Readiness(Mutex<Registered>);

#[derive(Default)]
struct Registered {
    waker: Option<Waker>,
    /// Nothing can come any more.
    closed: bool,
}

impl Readiness {
    fn register(&self, waker: &Waker) {
        self.0.lock().waker = Some(waker.clone());
    }

    fn is_closed(&self) -> bool {
        self.0.lock().closed
    }

    fn wake(&self, closed: bool) {
        let waker = {
            let mut registered = self.0.lock();
            registered.closed = closed;
            registered.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A task that waits for events, and a thread that watches the channel for it, as the reactor of an
/// async runtime does.
fn task(bench: &Bench, registers_first: bool) -> Outcome {
    let cq = bench.cq(4)?;
    let link = bench.link(cq, 1)?;
    arm(bench, cq)?;
    let readiness = Arc::new(Readiness::default());
    let of_reactor = readiness.clone();
    bench.spawn("reactor", move |bench| {
        let mut seen = 0;
        loop {
            match bench.sim().wait_for_edge(bench.channel(), seen) {
                Ok(count) => seen = count,
                Err(error) if error.kind() == ErrorKind::Stalled => {
                    of_reactor.wake(true);
                    return Ok::<_, Error>(());
                }
                Err(error) => return Err(error),
            }
            of_reactor.wake(false);
        }
    });
    bench.spawn("task", move |bench| -> Outcome {
        let lost = || {
            Failure::new(
                "the task sleeps while an event is queued: the edge came after it had looked and \
                 before its waker was registered",
            )
        };
        let event = bench.block_on(core::future::poll_fn(|context| {
            if readiness.is_closed() {
                return Poll::Ready(Err(lost()));
            }
            if registers_first {
                readiness.register(context.waker());
            }
            if let Some(event) = try_event(bench).transpose() {
                return Poll::Ready(event.map_err(Failure::from));
            }
            if !registers_first {
                readiness.register(context.waker());
            }
            Poll::Pending
        }))?;
        ack(bench, event)?;
        assert_eq!(poll(bench, cq)?, 1, "an event comes after its completion");
        Ok(())
    });
    bench.spawn("peer", move |bench| link.send(bench, 0));
    Ok(())
}
