//! The shell around the fabric: its lock, and waiting.
//!
//! There is one lock, taken once a verb. What a verb causes on other nodes happens under it, so
//! that each verb is one step that no other thread can see half of, whatever the number of threads;
//! and there is no second lock to take in the wrong order.

use std::sync::{Arc, OnceLock};

use verbs_api::lab::{LostWakeup, Stall};
use verbs_api::site::Site;
use verbs_api::{BadHandle, Cause, Context, Cq, Error, ErrorKind, Object, Result, Verb, Wait};

use super::clock::{Deadline, RealClock};
use super::idle::{self, Turn};
use super::roster::{Roster, Turns};
use crate::config::{Mode, SimConfig};
use crate::device::EmptyCqs;
use crate::device::{bad_handle, node_of};
use crate::diagnosis::note_endless;
use crate::direct::keeps_paths;
use crate::fabric::{Fabric, WaitFor, Waiting};
use crate::network::Sockets;
use crate::node::Node;
use crate::sync::{CHECKED, Condvar, Mutex, MutexGuard, ThreadId, this_thread};
use crate::time::Time;
use crate::verbs::watch::Watch;

/// A fabric that threads share.
#[derive(Debug)]
pub(crate) struct Runtime {
    pub(crate) config: SimConfig,
    pub(crate) fabric: Mutex<Fabric>,
    /// One a node, and one for the connection manager, for threads that wait for something to happen there. Notified with the lock
    /// held, so that no thread is between its look and its wait.
    news: Vec<Condvar>,
    /// The CQs that polling finds nothing in, if nobody has to know that they were polled.
    empty: Option<Arc<EmptyCqs>>,
    /// The threads that take part, where somebody says who they are.
    pub(crate) roster: Roster,
    /// Whose turn it was, where that is traced.
    pub(crate) turns: Option<Turns>,
    /// The one thread of stepped mode.
    owner: OnceLock<ThreadId>,
    /// Who is told of each mistake.
    pub(crate) watch: OnceLock<Watch>,
    /// The clock of the machine, where that counts.
    pub(crate) clock: Option<RealClock>,
    /// Where other processes are reached, on a network.
    pub(crate) sockets: Option<Sockets>,
}

impl Runtime {
    pub(crate) fn new(config: SimConfig) -> Self {
        assert!(
            !(CHECKED && config.mode == Mode::RealTime),
            "Mode::RealTime is by the clock of the machine, which a model checker does not have: use Mode::Inline"
        );
        let sockets = Sockets::of(&config);
        let fabric = Fabric::new(config.clone());
        Self {
            empty: fabric.empty_cqs().clone(),
            fabric: Mutex::new(fabric),
            news: (0..=config.nodes).map(|_| Condvar::new()).collect(),
            roster: Roster::new(config.nodes + 1),
            turns: config.trace_threads.then(Turns::default),
            owner: OnceLock::new(),
            watch: OnceLock::new(),
            sockets,
            clock: (config.mode == Mode::RealTime).then(RealClock::start),
            config,
        }
    }

    /// Refuses a second thread in stepped mode.
    #[inline]
    pub(crate) fn check_thread(&self, verb: Verb) -> Result<()> {
        match self.config.mode {
            Mode::Inline | Mode::RealTime => Ok(()),
            Mode::Stepped => self.check_owner(verb),
        }
    }

    #[inline(never)]
    fn check_owner(&self, verb: Verb) -> Result<()> {
        let this = this_thread();
        if *self.owner.get_or_init(|| this) == this {
            return Ok(());
        }
        let text = "this is a second thread, and Mode::Stepped, the default, is for one, whose waits move the clock: \
                    choose Mode::Inline for a program with threads, or Mode::RealTime if it also relies on timers \
                    (SimConfig::mode)";
        Err(Error::new(
            verb,
            ErrorKind::Usage,
            Cause::Usage(text.into()),
        ))
    }

    /// Whether polling a CQ does nothing but to find nothing: seen without the lock.
    #[inline]
    pub(crate) fn is_empty(&self, cq: Cq) -> bool {
        let empty = self.empty.as_ref();
        empty.is_some_and(|empty| empty.contains(cq))
    }

    /// The number of the node that a context is of.
    pub(crate) fn node_of(&self, verb: Verb, object: Object, context: Context) -> Result<u32> {
        let node = node_of(context);
        if node < self.config.nodes {
            return Ok(node);
        }
        Err(bad_handle(verb, object, BadHandle::Foreign))
    }

    /// Does something with the fabric, and wakes those who wait for what came of it. With the guard
    /// in hand it may [`wait`](Self::wait).
    #[track_caller]
    pub(crate) fn with<R>(&self, run: impl FnOnce(&mut MutexGuard<'_, Fabric>) -> R) -> R {
        self.with_time(true, run)
    }

    /// The same for a verb. The clock is not read where nothing depends on it but the trace.
    #[inline(always)]
    #[track_caller]
    pub(crate) fn call<R>(
        &self,
        verb: Verb,
        run: impl FnOnce(&mut MutexGuard<'_, Fabric>) -> R,
    ) -> R {
        let is_timeless = matches!(
            verb,
            Verb::PollCq | Verb::ReqNotifyCq | Verb::GetCqEvent | Verb::AckCqEvents
        );
        self.with_time(!is_timeless, run)
    }

    #[inline(always)]
    #[track_caller]
    fn with_time<R>(
        &self,
        needs_time: bool,
        run: impl FnOnce(&mut MutexGuard<'_, Fabric>) -> R,
    ) -> R {
        // It may take long.
        let site = Site::of_program();
        let mut fabric = self.fabric.lock();
        if needs_time || fabric.recorder.is_traced() {
            self.tell_time(&mut fabric);
        }
        self.note_turn(&fabric);
        fabric.site = Some(site);
        let result = run(&mut fabric);
        self.wake(&mut fabric);
        if let Some(watch) = self.watch.get() {
            let fresh = watch.take(&mut fabric);
            self.unlock(fabric);
            watch.tell(&fresh);
            return result;
        }
        self.unlock(fabric);
        result
    }

    pub(crate) fn tell_time(&self, fabric: &mut Fabric) {
        if let Some(clock) = &self.clock {
            fabric.set_now(clock.now());
        }
    }

    fn note_turn(&self, fabric: &Fabric) {
        if let Some(turns) = &self.turns {
            turns.begin(fabric.recorder.trace_len());
        }
    }

    #[inline(always)]
    fn wake(&self, fabric: &mut Fabric) {
        if let Some(clock) = &self.clock
            && fabric.schedule.is_sooner()
            && let Some(time) = fabric.expected()
        {
            clock.expect(time);
        }
        if !fabric.news.is_empty() {
            self.spread_news(fabric);
        }
    }

    #[cold]
    fn spread_news(&self, fabric: &mut Fabric) {
        for node in fabric.take_news() {
            self.notify(node as usize);
        }
    }

    /// A poll found nothing. From time to time, where time is real, others get a turn.
    pub(crate) fn polled_in_vain(&self) {
        if self.clock.is_some() {
            match idle::polled_in_vain() {
                Turn::Own => {}
                turn => self.yield_or_poll(turn),
            }
        }
    }

    /// Takes what has come from other processes, if something can; else it is perhaps others' turn.
    #[cold]
    pub(crate) fn yield_or_poll(&self, turn: Turn) {
        if self.poll_sockets() {
            return;
        }
        if turn == Turn::Others {
            std::thread::yield_now();
        }
    }

    /// As [`with`](Self::with), for what every waiting thread wants to know of.
    pub(crate) fn with_all<R>(&self, run: impl FnOnce(&mut Fabric) -> R) -> R {
        self.with(|fabric| {
            let result = run(fabric);
            for node in 0..self.news.len() {
                self.notify(node);
            }
            result
        })
    }

    /// Closes a simulation in which every thread sleeps.
    ///
    /// # Panics
    /// If one of them should have been woken: a mistake of the simulator that closing would hide.
    pub(crate) fn close_idle(&self, fabric: &mut Fabric) {
        for node in 0..self.config.nodes {
            let missed = fabric.node(node).device.cqs.waited_for_and_queued();
            assert!(
                missed.is_none(),
                "no thread was woken for an event on {missed:?}"
            );
        }
        let missed = fabric.manage(|manager, _| manager.channels.waited_for_and_queued());
        assert!(
            missed.is_none(),
            "no thread was woken for an event on {missed:?}"
        );
        self.close(fabric);
    }

    /// No more work will come: whoever waits is told so.
    pub(crate) fn close(&self, fabric: &mut Fabric) {
        fabric.close();
        for node in 0..self.news.len() {
            self.notify(node);
        }
    }

    fn notify(&self, node: usize) {
        // The one thread there is does not sleep, and to wake others is a call of the system.
        if self.config.mode == Mode::Stepped {
            return;
        }
        self.roster.woken(node);
        self.news[node].notify_all();
    }

    /// Runs until nothing is under way and no timer runs; false if the horizon came first.
    pub(crate) fn settle(&self) -> bool {
        let Some(clock) = &self.clock else {
            return self.with_all(Fabric::settle);
        };
        let limit = clock.now().after(self.config.horizon);
        loop {
            let due = self.with(|fabric| {
                fabric.catch_up();
                fabric.next_work()
            });
            match due {
                None => return true,
                Some(due) if due > limit => return false,
                Some(due) => clock.wait_until(due),
            }
        }
    }

    /// Tries until it is done, an error comes, or the wait is over.
    pub(crate) fn wait<R>(
        &self,
        fabric: &mut MutexGuard<'_, Fabric>,
        node: u32,
        verb: Verb,
        wait: Wait,
        wait_for: WaitFor,
        mut attempt: impl FnMut(&mut Node) -> Result<R>,
    ) -> Result<R> {
        self.wait_for(
            fabric,
            node,
            verb,
            wait,
            wait_for,
            |fabric| match keeps_paths(verb) {
                true => fabric.work_quietly(node, &mut attempt),
                false => fabric.work(node, &mut attempt),
            },
        )
    }

    /// As above, for news of a node, or of the connection manager behind all nodes.
    pub(crate) fn wait_for<R>(
        &self,
        fabric: &mut MutexGuard<'_, Fabric>,
        place: u32,
        verb: Verb,
        wait: Wait,
        wait_for: WaitFor,
        mut attempt: impl FnMut(&mut Fabric) -> Result<R>,
    ) -> Result<R> {
        let start = fabric.now();
        let waiting = Waiting {
            call: verb.name(),
            wait_for,
            place,
            since: start,
            site: fabric.site,
        };
        let mut deadline = None;
        let mut polls = 0;
        loop {
            let result = attempt(fabric);
            let Err(error) = result else { return result };
            if error.kind() != ErrorKind::WouldBlock || wait == Wait::Poll {
                return Err(error);
            }
            let timed_out = || Error::new(verb, ErrorKind::TimedOut, error.cause().clone());
            match self.config.mode {
                Mode::Stepped => {
                    let limit = end_of(wait, start);
                    let horizon = limit.unwrap_or_else(|| start.after(self.config.horizon));
                    // There is no other thread that could acknowledge.
                    let hopeless = wait_for.needs_other_thread();
                    if !hopeless && fabric.step(horizon) {
                        continue;
                    }
                    if let Some(limit) = limit {
                        fabric.set_now(limit);
                        return Err(timed_out());
                    }
                    note_endless(fabric, &waiting);
                    return Err(self.stalled(fabric, place, verb, wait_for));
                }
                Mode::Inline | Mode::RealTime => {
                    let deadline = *deadline.get_or_insert_with(|| match wait {
                        Wait::For(time) => Deadline::after(time, start),
                        Wait::Forever | Wait::Poll => Deadline::Never,
                    });
                    if deadline.is_over(fabric.now()) {
                        return Err(timed_out());
                    }
                    if fabric.is_closed() {
                        return Err(self.stalled(fabric, place, verb, wait_for));
                    }
                    // While the lock was released, what the wait is for may have come.
                    if self.exchange_packets(fabric, &mut polls) {
                        continue;
                    }
                    self.sleep(fabric, waiting, deadline);
                }
            }
        }
    }

    /// Lets other threads go on until something happens at the node, or the wait is over.
    fn sleep(&self, fabric: &mut MutexGuard<'_, Fabric>, waiting: Waiting, deadline: Deadline) {
        let Waiting {
            place: index,
            wait_for,
            ..
        } = waiting;
        let count = |fabric: &mut Fabric, starts| {
            fabric.count_waiting(index, starts);
            match wait_for {
                WaitFor::Event(channel) => {
                    fabric.work_quietly(index, |node| {
                        node.device.cqs.count_waiter(channel, starts);
                    });
                }
                WaitFor::CmEvent(channel) => {
                    fabric.manage(|manager, _| manager.channels.count_waiter(channel, starts));
                }
                _ => {}
            }
        };
        count(fabric, true);
        let wait = fabric.waits.begin(waiting);
        self.wake(fabric);
        let news = &self.news[index as usize];
        let needs_others = self.config.mode == Mode::Inline && !deadline.comes_alone();
        if needs_others && self.roster.sleeps(index as usize) {
            // This was the last thread that could have gone on.
            self.close_idle(fabric);
        } else {
            deadline.wait(news, fabric);
        }
        self.tell_time(fabric);
        self.note_turn(fabric);
        fabric.site = waiting.site;
        fabric.waits.end(wait);
        count(fabric, false);
    }

    fn stalled(&self, fabric: &Fabric, place: u32, verb: Verb, wait_for: WaitFor) -> Error {
        if fabric.is_closed() {
            return lost_wakeup(fabric, place, verb, wait_for);
        }
        let mut stall = stall(fabric, place, wait_for);
        if !wait_for.needs_other_thread() {
            stall.timers = fabric.timers();
        }
        Error::new(verb, ErrorKind::Stalled, Cause::Stall(Box::new(stall)))
    }
}

/// When a wait is over. Out of line: else it is computed ahead, from a time that other waits have not,
/// and checkers of a program's memory take offence at that.
#[inline(never)]
fn end_of(wait: Wait, start: Time) -> Option<Time> {
    match wait {
        Wait::For(time) => Some(start.after(time)),
        Wait::Forever | Wait::Poll => None,
    }
}

/// How things stand for a wait, but for the timers.
fn stall(fabric: &Fabric, place: u32, wait_for: WaitFor) -> Stall {
    let channel = match wait_for {
        WaitFor::Event(channel) | WaitFor::Edge(channel) => Some(channel),
        _ => None,
    };
    let mut stall = Stall::default();
    stall.waiting_for = wait_for.to_string();
    stall.now = fabric.now().since_start();
    stall.channel = channel;
    if let Some(channel) = channel {
        let cqs = &fabric.node(place).device.cqs;
        (stall.queued_events, stall.cqs) = cqs.channel_report(channel);
    }
    stall
}

fn lost_wakeup(fabric: &Fabric, place: u32, verb: Verb, wait_for: WaitFor) -> Error {
    let cause = match wait_for {
        WaitFor::Event(channel) | WaitFor::Edge(channel) => {
            let (_, cqs) = fabric.node(place).device.cqs.channel_report(channel);
            Cause::LostWakeup(Box::new(LostWakeup::new(channel, cqs)))
        }
        _ => Cause::Stall(Box::new(stall(fabric, place, wait_for))),
    };
    Error::new(verb, ErrorKind::Stalled, cause)
}
