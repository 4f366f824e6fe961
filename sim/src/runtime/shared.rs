//! The runtime: the lock around the fabric, and waits.
//!
//! There is one lock, taken once per verb. All effects of a verb on other nodes happen under it. So
//! each verb is one step, and no other thread can see half of it. There is also no second lock that
//! could be taken in the wrong order.

use std::sync::OnceLock;
use std::task::Waker;
use std::{fmt, mem};

use verbs_api::lab::{LostWakeup, Stall};
use verbs_api::site::Site;
use verbs_api::{BadHandle, Cause, Context, Cq, Error, ErrorKind, Object, Result, Verb, Wait};

use super::clock::{Deadline, RealClock};
use super::idle::{self, Turn};
use super::roster::{Number, Roster};
use super::turns::Turns;
use super::watch::Watch;
use crate::config::{Mode, SimConfig};
use crate::device::{
    Answer, EmptyCqs, Refusal, Refused, Wakeup, bad_handle, count_waiter, node_of,
};
use crate::fabric::{Fabric, WaitFor, Waiting};
use crate::hosts::Lost;
use crate::network::Sockets;
use crate::sync::{CHECKED, Mutex, MutexGuard, ThreadId, this_thread};

/// A fabric that threads share.
pub(crate) struct Runtime {
    pub(crate) config: SimConfig,
    pub(crate) fabric: Mutex<Fabric>,
    /// The CQs that polling finds empty, if polls need not be observed.
    empty: Option<EmptyCqs>,
    /// The threads that are known, if the program names them.
    pub(crate) roster: Roster,
    /// The turns of threads, if they are traced.
    pub(crate) turns: Option<Turns>,
    /// The only thread of stepped mode.
    owner: OnceLock<ThreadId>,
    /// The callback for new mistakes.
    pub(crate) watch: OnceLock<Watch>,
    /// The contexts of hosts that have crashed, once one has.
    pub(crate) lost: OnceLock<Mutex<Lost>>,
    /// The clock of the machine, in real time.
    pub(crate) clock: Option<RealClock>,
    /// The sockets to other processes, on a network.
    pub(crate) sockets: Option<Sockets>,
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

impl Runtime {
    pub(crate) fn new(mut config: SimConfig) -> Self {
        assert!(
            !(CHECKED && config.mode == Mode::RealTime),
            "Mode::RealTime is by the clock of the machine, which a model checker does not have: use Mode::Inline"
        );
        config.trace |= config.trace_threads;
        let sockets = Sockets::of(&config);
        let fabric = Fabric::new(config.clone());
        Self {
            empty: fabric.empty.clone(),
            fabric: Mutex::new(fabric),
            roster: Roster::default(),
            turns: config.trace_threads.then(Turns::default),
            owner: OnceLock::new(),
            watch: OnceLock::new(),
            lost: OnceLock::new(),
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
                    choose Mode::Inline for a program with threads, whose clock Sim::threads moves, or Mode::RealTime \
                    (SimConfig::mode)";
        Err(Refusal::usage(text.to_owned()).by(verb))
    }

    /// Whether a poll of the CQ would only find that it is empty. Takes no lock.
    #[inline]
    pub(crate) fn is_empty(&self, cq: Cq) -> bool {
        let empty = self.empty.as_ref();
        empty.is_some_and(|empty| empty.contains(cq))
    }

    /// The number of a context's node.
    pub(crate) fn node_of(&self, verb: Verb, object: Object, context: Context) -> Result<u32> {
        let node = node_of(context);
        let problem = if node >= self.config.nodes {
            BadHandle::Foreign
        } else if self.is_lost(context) {
            BadHandle::Crashed
        } else {
            return Ok(node);
        };
        Err(bad_handle(object, problem).by(verb))
    }

    /// Whether a context was lost when its host crashed.
    fn is_lost(&self, context: Context) -> bool {
        let lost = self.lost.get();
        lost.is_some_and(|lost| lost.lock().has(context))
    }

    pub(crate) fn tell_time(&self, fabric: &mut Fabric) {
        if let Some(clock) = &self.clock {
            fabric.schedule.set_now(clock.now());
        }
    }

    #[inline(always)]
    pub(super) fn wake(&self, fabric: &mut Fabric) {
        if let Some(clock) = &self.clock
            && fabric.schedule.deadlines.is_sooner
            && let Some(time) = fabric.expected()
        {
            clock.expect(time);
        }
        if !fabric.wakeups.is_empty() {
            self.pass_on_wakeups(fabric);
        }
    }

    #[cold]
    pub(super) fn pass_on_wakeups(&self, fabric: &mut Fabric) {
        let mut wakeups = mem::take(&mut fabric.wakeups);
        for wakeup in wakeups.drain(..) {
            self.roster.woken(fabric.waits.wake(wakeup));
            fabric.wake_tasks(wakeup);
        }
        // It keeps its room.
        fabric.wakeups = wakeups;
    }

    /// Wakes what waits for the effects of a call that goes on, before it sleeps. Returns whether
    /// the lock was released for that.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(super) fn wake_before_sleep(&self, fabric: &mut MutexGuard<'_, Fabric>) -> bool {
        self.wake(fabric);
        let (site, woken) = (fabric.site, fabric.take_woken_tasks());
        let are_woken = !woken.is_empty();
        if are_woken {
            MutexGuard::unlocked(fabric, || woken.into_iter().for_each(Waker::wake));
            self.tell_time(fabric);
            fabric.site = site;
        }
        are_woken
    }

    /// Repeats `attempt` until it succeeds, fails, or the wait is over. `place` is the node of the
    /// object that the thread waits for, or the number of nodes for the connection manager.
    pub(crate) fn wait<R>(
        &self,
        fabric: &mut MutexGuard<'_, Fabric>,
        place: u32,
        verb: Verb,
        wait: Wait,
        wait_for: WaitFor,
        mut attempt: impl FnMut(&mut Fabric) -> Result<R, Refusal>,
    ) -> Result<R> {
        if fabric.is_held && wait != Wait::Poll && !wait_for.needs_other_thread() {
            let text = format!(
                "this thread runs several tasks or parties, and a call that may wait for {wait_for} would hold up them \
                 all: await {}, or pass Wait::Poll",
                wait_for.futures()
            );
            return Err(Refusal::usage(text).by(verb));
        }
        let start = fabric.now();
        let waiting = Waiting {
            call: verb.name(),
            wait_for,
            place,
            since: start,
            site: fabric.site,
            is_main: false,
        };
        let known = self.known_thread();
        let mut deadline = None;
        let mut polls = 0;
        loop {
            let result = attempt(fabric).by(verb);
            let Err(error) = result else { return result };
            if wait == Wait::Poll {
                return Err(error);
            }
            if error.kind() != ErrorKind::WouldBlock {
                // Another thread can read the event that this one was woken for.
                fabric.wakeups.push(wait_for.ended_by());
                return Err(error);
            }
            let timed_out = || Error::new(verb, ErrorKind::TimedOut, error.cause().clone());
            match self.config.mode {
                Mode::Stepped => {
                    let limit = Deadline::of(wait, true, start).virtual_end();
                    let horizon = limit.unwrap_or_else(|| start.after(self.config.horizon));
                    // Only another thread could acknowledge, and stepped mode has none.
                    if !wait_for.needs_other_thread() && fabric.step(horizon) {
                        // A step has happened, perhaps the one that the wait is for.
                        continue;
                    }
                    if let Some(limit) = limit {
                        fabric.schedule.set_now(limit);
                        return Err(timed_out());
                    }
                    fabric.note_endless(&waiting);
                    return Err(self.stalled(fabric, place, verb, wait_for));
                }
                Mode::Inline | Mode::RealTime => {
                    let deadline =
                        *deadline.get_or_insert_with(|| Deadline::of(wait, known.is_some(), start));
                    if deadline.is_over(fabric.now()) {
                        return Err(timed_out());
                    }
                    if fabric.closed {
                        return Err(self.stalled(fabric, place, verb, wait_for));
                    }
                    // The lock was released, so the condition may hold by now.
                    if self.exchange_packets(fabric, &mut polls) || self.wake_before_sleep(fabric) {
                        continue;
                    }
                    self.sleep(fabric, waiting, deadline, known);
                }
            }
        }
    }

    /// Sleeps until a wakeup of the wait, or its end.
    fn sleep(
        &self,
        fabric: &mut MutexGuard<'_, Fabric>,
        waiting: Waiting,
        deadline: Deadline,
        known: Option<Number>,
    ) {
        let index = waiting.place;
        let count = |fabric: &mut Fabric, starts| {
            fabric.count_waiting(index, starts);
            match waiting.wait_for {
                WaitFor::Event(channel) => {
                    fabric.work_quietly(index, |node| {
                        count_waiter(&mut node.device.cqs.channels, channel, starts);
                    });
                }
                WaitFor::CmEvent(channel) => {
                    let channels = &mut fabric.cm_bridge.manager.channels;
                    count_waiter(&mut channels.table, channel, starts);
                }
                _ => {}
            }
        };
        count(fabric, true);
        // Wakeups come with the lock held: none is missed between the check and the sleep.
        let (wait, wakeup) = fabric
            .waits
            .sleep(waiting, deadline.virtual_end(), known.is_some());
        if known.is_none_or(|thread| self.known_sleeps(fabric, thread, wait)) {
            deadline.wait(&wakeup, fabric);
        }
        self.tell_time(fabric);
        self.note_turn(fabric);
        fabric.site = waiting.site;
        let was_asleep = fabric.waits.remove(wait);
        if let Some(thread) = known {
            self.roster.awake(thread, !was_asleep);
        }
        count(fabric, false);
    }

    /// The state of what a wait at this place ([`Waiting::place`]) is for.
    pub(crate) fn stall(fabric: &Fabric, place: u32, wait_for: WaitFor) -> Stall {
        let mut stall = Stall::default();
        stall.waiting_for = wait_for.to_string();
        stall.now = fabric.now().since_start();
        if let WaitFor::Event(channel) | WaitFor::Edge(channel) = wait_for {
            let cqs = &fabric.node(place).device.cqs;
            stall.channel = Some(channel);
            (stall.queued_events, stall.cqs) = cqs.channel_report(channel);
        }
        stall
    }

    /// The error of a wait that nothing will end.
    pub(crate) fn stalled(
        &self,
        fabric: &Fabric,
        place: u32,
        verb: Verb,
        wait_for: WaitFor,
    ) -> Error {
        let mut stall = Self::stall(fabric, place, wait_for);
        stall.threads = self.roster.stall();
        let cause = match stall.channel {
            Some(channel) if fabric.closed => {
                let mut lost = LostWakeup::new(channel, stall.cqs);
                lost.threads = stall.threads;
                Cause::LostWakeup(Box::new(lost))
            }
            _ => {
                if !fabric.closed && !wait_for.needs_other_thread() {
                    stall.timers = fabric.timers();
                }
                Cause::Stall(Box::new(stall))
            }
        };
        Error::new(verb, ErrorKind::Stalled, cause)
    }
}

#[cfg_attr(any(), mutants::skip)] // the suite does not reach it
impl Runtime {
    /// Works on the fabric, and wakes the threads that wait for its effects. With the guard, `run`
    /// may [`wait`](Self::wait).
    #[track_caller]
    pub(crate) fn with<R>(&self, run: impl FnOnce(&mut MutexGuard<'_, Fabric>) -> R) -> R {
        self.with_time(true, run)
    }

    /// Works on the fabric for a verb, and wakes the threads that wait for its effects. It does not
    /// read the clock if only the trace depends on the time.
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
        // Finding the call site may take long, so it happens without the lock.
        let site = Site::of_program();
        let mut fabric = self.fabric.lock();
        if needs_time || fabric.recorder.is_traced() {
            self.tell_time(&mut fabric);
        }
        self.note_turn(&fabric);
        fabric.site = Some(site);
        let result = run(&mut fabric);
        self.wake(&mut fabric);
        // The callback may use the simulator, so it runs without the lock.
        if let Some(watch) = self.watch.get() {
            let fresh = watch.take(&mut fabric);
            self.release(fabric);
            watch.tell(&fresh);
            return result;
        }
        self.release(fabric);
        result
    }

    /// Releases the lock, and does what must be done without it.
    #[inline(always)]
    fn release(&self, mut fabric: MutexGuard<'_, Fabric>) {
        let has_tasks = fabric.has_tasks();
        let woken = has_tasks.then(|| fabric.take_woken_tasks());
        self.unlock(fabric);
        woken.into_iter().flatten().for_each(Waker::wake);
    }

    fn note_turn(&self, fabric: &Fabric) {
        if let Some(turns) = &self.turns {
            turns.push(fabric.recorder.trace_len(), None);
        }
    }

    /// Counts an empty poll. Other threads get a turn from time to time, if any can end the polls.
    pub(crate) fn count_empty_poll(&self) {
        if self.clock.is_some() || self.roster.knows_any() {
            match idle::count_empty_poll() {
                Turn::Own => {}
                turn => self.yield_or_poll(turn),
            }
        }
    }

    /// Reads the packets of other processes, if any can arrive. Otherwise it may yield to other
    /// threads.
    #[cold]
    pub(crate) fn yield_or_poll(&self, turn: Turn) {
        if !self.poll_sockets() && turn == Turn::Others {
            std::thread::yield_now();
        }
    }

    /// Works on the fabric and wakes every waiting thread: see [`with`](Self::with). While an
    /// executor holds the clock there is none, and its tasks wait for nothing but events.
    pub(crate) fn with_all<R>(&self, run: impl FnOnce(&mut Fabric) -> R) -> R {
        self.with(|fabric| {
            let result = run(fabric);
            if !fabric.is_held {
                fabric.wakeups.push(Wakeup::Anything);
            }
            result
        })
    }

    /// Does everything that is due by now, in real time.
    pub(crate) fn catch_up(&self) {
        self.with(|fabric| fabric.catch_up());
        self.settle_doubts();
    }

    /// Runs until nothing is in flight and no timer runs. Returns false at the horizon.
    pub(crate) fn settle(&self) -> bool {
        let Some(clock) = &self.clock else {
            return self.with_all(Fabric::settle);
        };
        let limit = clock.now().after(self.config.horizon);
        loop {
            self.catch_up();
            match self.with(|fabric| fabric.next_work()) {
                None => return true,
                Some(due) if due > limit => return false,
                Some(due) => clock.wait_until(due),
            }
        }
    }
}
