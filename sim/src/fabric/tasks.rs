//! The tasks that wait for events: their wakers, and in stepped mode how they move the clock.
//!
//! A waker is called without the lock, because it may do anything: drop a task, for example, which
//! then destroys its objects.
//!
//! In stepped mode most executors do not know of the clock. So no task sleeps while anything is to
//! come: a task that finds nothing takes a step, as an empty poll does, and is woken again at once.
//! When no step is left, the other tasks get some turns more, and then the wait fails: a task that
//! slept would hang without a word. An executor that holds the clock takes the steps itself.

use std::collections::BTreeMap;
use std::mem;
use std::task::Waker;

use verbs_api::EventSource;

use super::{Fabric, Waiting};
use crate::config::Mode;
use crate::device::{EventQueue, Moment, Result, Wakeup};

/// The tasks that wait.
#[derive(Default)]
pub(crate) struct Tasks {
    /// For each source of events the waker of the last call, and its wait.
    asleep: BTreeMap<Wakeup, (Waker, Waiting)>,
    /// Those to be called once the lock is free.
    woken: Vec<Waker>,
    round: Round,
}

/// Looks of tasks at one moment. It is over when the first of them looks again: each that can go on
/// has had its turn by then.
#[derive(Default)]
struct Round {
    first: Option<Wakeup>,
    at: Moment,
    looks: u32,
    /// The rounds at this moment that are over.
    over: u32,
}

/// What a task does that found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// It looks again.
    Again,
    /// It sleeps until it is woken.
    Asleep,
    /// Nothing will end its wait.
    Stalled,
}

/// Looks after which a round is over although the first task does not come back.
const PATIENCE: u32 = 10_000;

/// Rounds without a step to take, after which the waits of tasks fail. Executors may let
/// a task that yields run only once in some dozens of rounds.
const ROUNDS: u32 = 10_000;

impl Round {
    /// A task looks. Returns whether the round is over.
    fn is_over(&mut self, task: Wakeup, now: Moment) -> bool {
        if self.at != now {
            (self.first, self.at, self.looks, self.over) = (Some(task), now, 0, 0);
            return false;
        }
        self.looks += 1;
        let is_over = self.first == Some(task) || self.looks > PATIENCE;
        if is_over {
            (self.first, self.looks, self.over) = (Some(task), 0, self.over + 1);
        }
        is_over
    }
}

impl Fabric {
    /// Keeps a waker until the wait is over. Returns the waker that it replaces, which must be
    /// dropped without the lock.
    pub(crate) fn keep_waker(&mut self, waiting: Waiting, waker: Waker) -> Option<Waker> {
        let wakeup = waiting.wait_for.ended_by();
        let replaced = self.tasks.asleep.insert(wakeup, (waker, waiting));
        if replaced.is_none() {
            self.count_waiting(waiting.place, true);
        }
        replaced.map(|(waker, _)| waker)
    }

    /// The waits of tasks, and their wakers.
    pub(crate) fn waiting_tasks(&self) -> Vec<(Waker, Waiting)> {
        self.tasks.asleep.values().cloned().collect()
    }

    /// Whether an event of a source, which is on the node with this index, is queued.
    pub(crate) fn has_unread(&self, source: EventSource, node: u32) -> Result<bool> {
        let on_node = |of| {
            let device = &self.node(node).device;
            device.cqs.event_queue(&device.base, of)
        };
        let (unread, _) = match source {
            EventSource::CompChannel(of) => on_node(EventQueue::Channel(of)),
            EventSource::Async(of) => on_node(EventQueue::Async(of)),
            EventSource::CmChannel(of) => self.cm_bridge.manager.channels.queue(of),
        }?;
        Ok(unread > 0)
    }

    /// Lets a waker be called once the lock is free.
    pub(crate) fn call_waker(&mut self, waker: Waker) {
        self.tasks.woken.push(waker);
    }

    /// Lets the wakers be called that wait for this.
    pub(crate) fn wake_tasks(&mut self, wakeup: Wakeup) {
        if let Wakeup::Anything = wakeup {
            for (waker, waiting) in mem::take(&mut self.tasks.asleep).into_values() {
                self.count_waiting(waiting.place, false);
                self.call_waker(waker);
            }
        } else if let Some((waker, waiting)) = self.tasks.asleep.remove(&wakeup) {
            self.count_waiting(waiting.place, false);
            self.call_waker(waker);
        }
    }

    /// Lets a task that found nothing take a step, if tasks do.
    pub(crate) fn step_for_task(&mut self, task: Wakeup) -> Look {
        if !self.tasks_step() {
            return Look::Asleep;
        }
        let now = self.moment();
        let is_still = self.tasks.round.is_over(task, now);
        if self.has_step() {
            self.step_for_poll(is_still);
        } else if self.closed || self.tasks.round.over >= ROUNDS {
            // The others get as many turns before they fail too.
            self.tasks.round = Round::default();
            return Look::Stalled;
        }
        Look::Again
    }

    /// Whether tasks take the steps, and not an executor.
    fn tasks_step(&self) -> bool {
        self.config.mode == Mode::Stepped && !self.is_held
    }

    fn has_step(&mut self) -> bool {
        let horizon = self.horizon();
        self.schedule.next_turn().is_some() || self.next_due(horizon).is_some()
    }

    /// Whether there are tasks to take care of.
    #[inline(always)]
    pub(crate) fn has_tasks(&self) -> bool {
        !self.tasks.woken.is_empty() || !self.tasks.asleep.is_empty()
    }

    /// Whether wakers are to be called once the lock is free.
    pub(crate) fn are_tasks_woken(&self) -> bool {
        !self.tasks.woken.is_empty()
    }

    /// Takes the wakers that are to be called once the lock is free.
    #[cold]
    pub(crate) fn take_woken_tasks(&mut self) -> Vec<Waker> {
        if !self.tasks.asleep.is_empty() && self.tasks_step() && self.has_step() {
            self.wake_tasks(Wakeup::Anything);
        }
        mem::take(&mut self.tasks.woken)
    }
}
