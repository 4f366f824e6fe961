//! The loop of an executor: run the tasks that can run; when none can, let the next thing happen.

use core::any::Any;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use verbs_api::Result;

use super::task::{Entry, Joiner, Pause};
use super::{Executor, State};

/// The number of the main task.
const MAIN: u64 = 0;

/// How long a turn of tasks that yield takes.
const TURN: Duration = Duration::from_micros(1);

/// Turns in which nothing happens but that tasks yield, before time passes as if they waited.
const TURNS: u32 = 1000;

/// Turns in which tasks do nothing but yield and sleep, before the run counts as stuck.
const PATIENCE: u32 = 100_000;

impl<'a> Executor<'a> {
    /// Runs the tasks until the main one has ended.
    #[track_caller]
    pub(super) fn run<T>(&self, mut main: Pin<&mut impl Future<Output = Result<T>>>) -> Result<T> {
        let number = self.add("main".to_owned(), None, Joiner::default());
        debug_assert_eq!(number, MAIN);
        loop {
            match self.take_ready() {
                Some(MAIN) => {
                    let waker = self.begin(MAIN).expect("the main task has not ended");
                    let polled = main.as_mut().poll(&mut Context::from_waker(&waker));
                    self.0.ready.stopped();
                    if let Poll::Ready(output) = polled {
                        return output;
                    }
                }
                Some(number) => self.run_task(number),
                None if self.let_happen()? => {}
                None => return Err(self.stalled()),
            }
        }
    }

    /// Adds a task, which can run. Returns its number.
    pub(super) fn add(
        &self,
        name: String,
        future: Option<Pin<Box<dyn Future<Output = ()> + 'a>>>,
        joiner: Joiner,
    ) -> u64 {
        let number = self.0.started.get();
        self.0.started.set(number + 1);
        let waker = self.0.ready.waker(number);
        waker.wake_by_ref();
        let entry = Entry {
            name,
            waker,
            future,
            ran: self.now(),
            pause: Pause::default(),
            joiner,
        };
        self.0.tasks.borrow_mut().insert(number, entry);
        number
    }

    /// Drops all tasks, those too that start while others are dropped.
    pub(super) fn end(&self) {
        loop {
            let first = self.0.tasks.borrow_mut().pop_first();
            if first.is_none() {
                break;
            }
            drop(first);
        }
    }

    fn take_ready(&self) -> Option<u64> {
        let draw = |count| match &mut *self.0.order.borrow_mut() {
            None => 0,
            Some(random) => random.below(count),
        };
        self.0.ready.take(draw)
    }

    /// Notes that a task runs. Returns its waker; `None` if it has ended or is paused.
    fn begin(&self, number: u64) -> Option<Waker> {
        let now = self.now();
        self.0.ran.set(now);
        let mut tasks = self.0.tasks.borrow_mut();
        let task = tasks.get_mut(&number)?;
        if task.pause != Pause::Runs {
            task.pause = Pause::Woken;
            return None;
        }
        task.ran = now;
        Some(task.waker.clone())
    }

    #[track_caller]
    fn run_task(&self, number: u64) {
        let waker = self.begin(number);
        let polled = waker.and_then(|waker| {
            let mut future = self.0.tasks.borrow_mut().get_mut(&number)?.future.take()?;
            let context = &mut Context::from_waker(&waker);
            let poll = AssertUnwindSafe(|| future.as_mut().poll(context));
            Some((catch_unwind(poll), future))
        });
        self.0.ready.stopped();
        let Some((polled, future)) = polled else {
            return;
        };
        match polled {
            Ok(Poll::Pending) => self.keep(number, future),
            Ok(Poll::Ready(())) => self.ended(number),
            Err(panic) => self.pass_on(number, panic),
        }
    }

    /// Keeps a task that waits, unless it was aborted while it ran.
    fn keep(&self, number: u64, future: Pin<Box<dyn Future<Output = ()> + 'a>>) {
        let mut tasks = self.0.tasks.borrow_mut();
        let aborted = match tasks.get_mut(&number) {
            Some(task) => task.future.replace(future),
            None => Some(future),
        };
        drop(tasks);
        drop(aborted);
    }

    fn ended(&self, number: u64) {
        let task = self.0.tasks.borrow_mut().remove(&number);
        let joiner = task.and_then(|task| task.joiner.take());
        joiner.into_iter().for_each(Waker::wake);
    }

    /// Passes on the panic of a task, with its name.
    #[track_caller]
    fn pass_on(&self, number: u64, panic: Box<dyn Any + Send>) -> ! {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        let task = self.0.tasks.borrow_mut().remove(&number);
        if let (Some(text), Some(task)) = (text, task) {
            panic!("task {} panicked at {:?}: {text}", task.name, self.now());
        }
        resume_unwind(panic)
    }

    /// Lets the next thing happen when no task can run. Returns whether there was one.
    ///
    /// Tasks that yield get their next turn after a microsecond, or sooner if something happens.
    fn let_happen(&self) -> Result<bool> {
        let (state, now) = (&*self.0, self.now());
        let turns = state.count_turn();
        if turns >= PATIENCE {
            return Ok(false);
        }
        let is_turn = turns < TURNS && state.ready.has_yielded();
        let sleeper = state.sleepers.next_due();
        let sleeper = sleeper.map(|at| at.saturating_sub(now));
        let next = sleeper.into_iter().chain(is_turn.then_some(TURN)).min();
        let horizon = state.ran.get().saturating_add(state.lab.horizon());
        let limit = next.unwrap_or(horizon.saturating_sub(now));
        let has_stepped = state.lab.step(limit)?;
        if has_stepped {
            state.turns.set(0);
        } else if next.is_none() {
            return Ok(false);
        } else {
            state.lab.advance(limit)?;
        }
        state.activity.set(state.lab.activity());
        state.sleepers.wake_due(self.now());
        state.ready.resume_yielded();
        Ok(true)
    }
}

impl State<'_> {
    /// Counts a turn. Returns in how many in a row, with this one, nothing happened on the fabric.
    fn count_turn(&self) -> u32 {
        let is_idle = self.activity.get() == self.lab.activity();
        self.turns
            .set(if is_idle { self.turns.get() + 1 } else { 0 });
        self.turns.get()
    }

    /// Whether tasks do nothing but yield and sleep.
    pub(super) fn is_busy_waiting(&self) -> bool {
        self.turns.get() >= PATIENCE || self.ready.has_yielded()
    }
}
