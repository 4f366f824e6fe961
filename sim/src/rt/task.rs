//! Tasks, and how one waits for the end of another.

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::cell::{Cell, RefCell};
use std::mem;
use std::rc::Rc;

use super::Executor;

/// A task that the executor runs.
pub(super) struct Entry<'a> {
    pub(super) name: String,
    pub(super) waker: Waker,
    /// `None` while it runs, and of the main task, which is not kept here.
    pub(super) future: Option<Pin<Box<dyn Future<Output = ()> + 'a>>>,
    /// When it ran last.
    pub(super) ran: Duration,
    pub(super) pause: Pause,
    /// The waker of the task that waits for its end.
    pub(super) joiner: Joiner,
}

pub(super) type Joiner = Rc<RefCell<Option<Waker>>>;

/// Whether a task is [paused](Task::pause).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pause {
    #[default]
    Runs,
    Paused,
    /// It was woken since, and runs when it is resumed.
    Woken,
}

/// A task: a future that is ready when the task has ended, with what it returned.
///
/// A task goes on if this is dropped, until the run ends. What it then returns is lost, an error
/// too.
#[must_use = "an error that the task returns is lost unless it is awaited"]
pub struct Task<'a, T> {
    executor: Executor<'a>,
    number: u64,
    output: Rc<Cell<Option<T>>>,
    joiner: Joiner,
}

impl<'a> Executor<'a> {
    /// Starts a task. It runs for the first time when the calling task waits. The name is for
    /// errors, and need not be unique.
    ///
    /// The future may borrow what lives longer than the run, but nothing of the task that starts
    /// it.
    pub fn spawn<T: 'a>(
        &self,
        name: impl Into<String>,
        future: impl Future<Output = T> + 'a,
    ) -> Task<'a, T> {
        let output = Rc::new(Cell::new(None));
        let (joiner, to_set) = (Joiner::default(), output.clone());
        let future = async move { to_set.set(Some(future.await)) };
        let number = self.add(name.into(), Some(Box::pin(future)), joiner.clone());
        Task {
            executor: self.clone(),
            number,
            output,
            joiner,
        }
    }
}

impl<T> Task<'_, T> {
    /// Ends the task: its future is dropped, with all that it has. If it runs, because it ends
    /// itself, this happens when it next waits.
    pub fn abort(self) {
        let ended = self.executor.0.tasks.borrow_mut().remove(&self.number);
        // Its objects are destroyed, and may wake tasks.
        drop(ended);
    }

    /// Lets the task run no more until [`resume`](Self::resume), as if the system had stopped its
    /// program (SIGSTOP), or its memory were being swapped. Time goes on, its device too: it
    /// answers RDMA Reads, receives messages while it has posted receives, and its retries end. A
    /// task that pauses itself stops when it next waits.
    ///
    /// A machine that stops with its device also keeps its packets: see
    /// [`Partition::holding`](verbs_api::lab::Partition::holding).
    pub fn pause(&self) {
        self.with(|task| {
            if task.pause == Pause::Runs {
                task.pause = Pause::Paused;
            }
        });
    }

    /// Lets a [paused](Self::pause) task run again. What it has missed comes at once: a timeout
    /// that ended in between is over.
    pub fn resume(&self) {
        self.with(|task| {
            if mem::take(&mut task.pause) == Pause::Woken {
                task.waker.wake_by_ref();
            }
        });
    }

    /// Changes the task, unless it has ended.
    fn with(&self, change: impl FnOnce(&mut Entry<'_>)) {
        let mut tasks = self.executor.0.tasks.borrow_mut();
        if let Some(task) = tasks.get_mut(&self.number) {
            change(task);
        }
    }
}

impl<T> Future for Task<'_, T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if let Some(output) = self.output.take() {
            return Poll::Ready(output);
        }
        let waker = context.waker().clone();
        let replaced = self.joiner.borrow_mut().replace(waker);
        drop(replaced);
        Poll::Pending
    }
}
