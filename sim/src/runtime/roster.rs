//! The threads that a simulation knows: which of them run, and which wait for what.
//!
//! The clock moves only while all of them wait, and if it cannot move, they wait forever.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use verbs_api::Cq;
use verbs_api::table::Id;

use crate::device::Moment;
use crate::sync::{ThreadId, this_thread};

/// The number of a known thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number(u32);

/// The threads that a simulation knows.
///
/// Its lock and its atomic variable are not of the facade, so that a model checker does not see
/// them as steps. Where the lock of the fabric is taken too, that is taken first.
#[derive(Default)]
pub(crate) struct Roster {
    knows_any: AtomicBool,
    /// A scope of threads is open.
    is_open: AtomicBool,
    threads: Mutex<Threads>,
}

#[derive(Default)]
struct Threads {
    by_number: BTreeMap<Number, Thread>,
    by_id: HashMap<ThreadId, Number>,
    /// Threads that were ever added.
    added: u32,
    /// Threads that do not wait. One that has been woken runs from that moment.
    running: u32,
    polls: EmptyPolls,
    /// How every thread waited when nothing was left to happen.
    stall: Option<Vec<String>>,
}

struct Thread {
    name: Option<String>,
    state: State,
}

/// The state of a known thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Runs,
    /// It sleeps in a verb, or has been woken and does not know it yet.
    Asleep(Id),
    /// It waits for the end of another thread.
    Joins(Number),
    /// It waits for something else, and another thread will say when it is over.
    Suspended,
}

/// What threads have polled at one moment, without a completion.
#[derive(Default)]
struct EmptyPolls {
    at: Moment,
    cqs: BTreeMap<Number, Vec<Cq>>,
    /// Threads that have polled a CQ twice. What they wait for has not happened.
    still: Vec<Number>,
}

impl Roster {
    #[inline]
    pub(crate) fn knows_any(&self) -> bool {
        self.knows_any.load(Ordering::Relaxed)
    }

    /// Opens a scope. Returns whether none was open, and no thread was known.
    pub(crate) fn open(&self) -> bool {
        !self.knows_any() && !self.is_open.swap(true, Ordering::Relaxed)
    }

    /// Closes the scope. Returns whether nothing was left to happen in it.
    pub(crate) fn close(&self) -> bool {
        let was_stalled = self.threads.lock().stall.take().is_some();
        self.is_open.store(false, Ordering::Relaxed);
        was_stalled
    }

    /// The calling thread, if it is known.
    pub(crate) fn present(&self) -> Option<Number> {
        if !self.knows_any() {
            return None;
        }
        self.threads.lock().by_id.get(&this_thread()).copied()
    }

    /// Adds a thread, which runs from now on.
    pub(crate) fn add(&self, name: Option<String>) -> Number {
        let mut threads = self.threads.lock();
        threads.added += 1;
        let number = Number(threads.added);
        let state = State::Runs;
        threads.by_number.insert(number, Thread { name, state });
        threads.running += 1;
        self.knows_any.store(true, Ordering::Relaxed);
        number
    }

    /// Notes that the calling thread is this one.
    pub(crate) fn begin(&self, number: Number) {
        self.threads.lock().by_id.insert(this_thread(), number);
    }

    /// Removes a thread. Those that wait for its end run again.
    pub(crate) fn end(&self, number: Number) {
        let mut threads = self.threads.lock();
        // It does not poll any more either.
        threads.set(number, State::Suspended);
        threads.by_number.remove(&number);
        threads.by_id.retain(|_, other| *other != number);
        let others = threads.by_number.iter();
        let joins = others.filter(|(_, other)| other.state == State::Joins(number));
        let joins: Vec<Number> = joins.map(|(number, _)| *number).collect();
        for number in joins {
            threads.set(number, State::Runs);
        }
        let knows_any = !threads.by_number.is_empty();
        self.knows_any.store(knows_any, Ordering::Relaxed);
    }

    /// Changes the state of a thread.
    pub(crate) fn set(&self, number: Number, state: State) {
        self.threads.lock().set(number, state);
    }

    /// Lets a thread wait for the end of another one, unless that has ended.
    pub(crate) fn join(&self, number: Number, other: Number) {
        let mut threads = self.threads.lock();
        if threads.by_number.contains_key(&other) {
            threads.set(number, State::Joins(other));
        }
    }

    /// Notes that threads that sleep in verbs are woken.
    pub(crate) fn woken(&self, threads: u32) {
        if threads > 0 {
            self.threads.lock().running += threads;
        }
    }

    /// Notes that a thread that slept goes on. `was_woken` is whether that is counted already.
    pub(crate) fn awake(&self, number: Number, was_woken: bool) {
        let mut threads = self.threads.lock();
        threads.running += u32::from(!was_woken);
        if let Some(thread) = threads.by_number.get_mut(&number) {
            thread.state = State::Runs;
        }
    }

    /// Notes that a thread has polled a CQ and has found nothing.
    pub(crate) fn polled(&self, thread: Number, cq: Cq, at: Moment) {
        let mut threads = self.threads.lock();
        let EmptyPolls {
            at: last,
            cqs,
            still,
        } = &mut threads.polls;
        if mem::replace(last, at) != at {
            cqs.clear();
            still.clear();
        }
        let polled = cqs.entry(thread).or_default();
        if !polled.contains(&cq) {
            polled.push(cq);
        } else if !still.contains(&thread) {
            still.push(thread);
        }
    }

    /// Whether no thread can go on before something happens: each waits, or has polled a CQ twice
    /// since anything happened.
    pub(crate) fn all_wait(&self, now: Moment) -> bool {
        let threads = self.threads.lock();
        threads.all_wait(threads.polls.count(now))
    }

    /// Whether all threads may wait: what has happened since they polled is not known here.
    pub(crate) fn all_may_wait(&self) -> bool {
        let threads = self.threads.lock();
        threads.all_wait(threads.polls.still.len() as u32)
    }

    /// Whether threads poll and find nothing.
    pub(crate) fn any_polls(&self, now: Moment) -> bool {
        self.threads.lock().polls.count(now) > 0
    }

    /// The threads with their names and states. Empty if no thread has a name.
    pub(crate) fn named(&self) -> Vec<(String, State)> {
        let threads = self.threads.lock();
        let named = threads.by_number.values();
        let named = named.filter_map(|thread| Some((thread.name.clone()?, thread.state)));
        named.collect()
    }

    /// The name of a thread that has not ended.
    pub(crate) fn name(&self, number: Number) -> String {
        let threads = self.threads.lock();
        let thread = threads.by_number.get(&number);
        let name = thread.and_then(|thread| thread.name.clone());
        name.unwrap_or_default()
    }

    /// Keeps how every thread waits, now that nothing is left to happen.
    pub(crate) fn keep_stall(&self, threads: Vec<String>) {
        self.threads.lock().stall = Some(threads);
    }

    /// How every thread waited when nothing was left to happen.
    pub(crate) fn stall(&self) -> Vec<String> {
        self.threads.lock().stall.clone().unwrap_or_default()
    }
}

impl Threads {
    /// Whether all wait, if this number of them polls.
    fn all_wait(&self, polling: u32) -> bool {
        let mut threads = self.by_number.values();
        let mut any_sleeps =
            || threads.any(|thread| matches!(thread.state, State::Asleep(_) | State::Suspended));
        self.running == polling && (polling > 0 || any_sleeps())
    }

    fn set(&mut self, number: Number, state: State) {
        let Some(thread) = self.by_number.get_mut(&number) else {
            return;
        };
        let ran = mem::replace(&mut thread.state, state) == State::Runs;
        let runs = state == State::Runs;
        self.running = self.running + u32::from(runs) - u32::from(ran);
        if !runs {
            self.polls.still.retain(|other| *other != number);
        }
    }
}

impl EmptyPolls {
    /// How many threads have polled a CQ twice at this moment.
    fn count(&self, now: Moment) -> u32 {
        if self.at == now {
            self.still.len() as u32
        } else {
            0
        }
    }
}
