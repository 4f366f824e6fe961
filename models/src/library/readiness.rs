//! Loops that wait for edges: epoll with `EPOLLET`, and futures.

use core::task::{Poll, Waker};
use std::sync::Arc;

use verbs_api::sync::Mutex;
use verbs_api::{CqEvent, Error, ErrorKind, Verbs, Wait};

use super::{Model, ack, arm, poll};
use crate::{Harness, ModelError, Outcome, Search};

pub(super) const MODELS: &[Model] = &[
    Model::holds(
        "edge.reads_until_there_is_none",
        &["CHAN-30", "CHAN-32", "CHAN-29"],
        (2, 2),
        |harness| edges(harness, true),
    ),
    Model::fails(
        "edge.reads_one_event",
        &["CHAN-30", "CHAN-32"],
        "an edge comes once",
        (2, 2),
        |harness| edges(harness, false),
    ),
    Model::holds(
        "waker.registers_before_it_looks",
        &["CHAN-30", "CHAN-29"],
        (3, 1),
        |harness| task(harness, true),
    )
    .search(Search::new().preemptions(3)),
    Model::fails(
        "waker.looks_before_it_registers",
        &["CHAN-30", "CHAN-29"],
        "the task sleeps while an event is queued",
        (3, 1),
        |harness| task(harness, false),
    )
    .search(Search::new().preemptions(3)),
];

/// An event, if there is one now.
fn try_event(harness: &Harness) -> Result<Option<CqEvent>, Error> {
    match harness.sim().get_cq_event(harness.channel(), Wait::Poll) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        result => result.map(Some),
    }
}

/// Events of two CQs may come before the loop looks: that is one edge.
fn edges(harness: &Harness, until_none: bool) -> Outcome {
    let cqs = [harness.cq(4)?, harness.cq(4)?];
    let links = [harness.link(cqs[0], 1)?, harness.link(cqs[1], 1)?];
    for cq in cqs {
        arm(harness, cq)?;
    }
    harness.spawn("loop", move |harness| {
        let (mut seen, mut left) = (0, 2);
        while left > 0 {
            seen = harness.sim().wait_for_edge(harness.channel(), seen)?;
            while let Some(event) = try_event(harness)? {
                ack(harness, event)?;
                arm(harness, event.cq)?;
                left -= poll(harness, event.cq)?;
                if !until_none {
                    break;
                }
            }
        }
        Ok::<_, Error>(())
    });
    harness.spawn("peer", move |harness| {
        links[0].send(harness, 0)?;
        links[1].send(harness, 0)
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
fn task(harness: &Harness, registers_first: bool) -> Outcome {
    let cq = harness.cq(4)?;
    let link = harness.link(cq, 1)?;
    arm(harness, cq)?;
    let readiness = Arc::new(Readiness::default());
    let of_reactor = readiness.clone();
    harness.spawn("reactor", move |harness| {
        let mut seen = 0;
        loop {
            match harness.sim().wait_for_edge(harness.channel(), seen) {
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
    harness.spawn("task", move |harness| -> Outcome {
        let lost = || {
            ModelError::new(
                "the task sleeps while an event is queued: the edge came after it had looked and \
                 before its waker was registered",
            )
        };
        let event = harness.block_on(core::future::poll_fn(|context| {
            if readiness.is_closed() {
                return Poll::Ready(Err(lost()));
            }
            if registers_first {
                readiness.register(context.waker());
            }
            if let Some(event) = try_event(harness).transpose() {
                return Poll::Ready(event.map_err(ModelError::from));
            }
            if !registers_first {
                readiness.register(context.waker());
            }
            Poll::Pending
        }))?;
        ack(harness, event)?;
        assert_eq!(poll(harness, cq)?, 1, "an event comes after its completion");
        Ok(())
    });
    harness.spawn("peer", move |harness| link.send(harness, 0));
    Ok(())
}
