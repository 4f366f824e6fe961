//! The tasks that can run, and the wakers that put them here.

use std::collections::{BTreeSet, VecDeque};
use std::mem;
use std::sync::Arc;
use std::task::{Wake, Waker};

use parking_lot::Mutex;

/// The numbers of the tasks that can run.
///
/// The lock is not of the facade: a model checker need not see the steps of an executor.
#[derive(Default)]
pub(super) struct Ready(Mutex<Queues>);

#[derive(Default)]
struct Queues {
    /// In the order in which they were woken.
    woken: VecDeque<u64>,
    /// Those that woke themselves while they ran: they run when no other can.
    yielded: Vec<u64>,
    /// All of them: one that is woken twice runs once.
    all: BTreeSet<u64>,
    running: Option<u64>,
}

impl Ready {
    /// The waker of a task.
    pub(super) fn waker(self: &Arc<Self>, task: u64) -> Waker {
        let ready = self.clone();
        Arc::new(TaskWaker { ready, task }).into()
    }

    /// Takes the task that runs next. `draw` returns its index, below the number of tasks that
    /// can run.
    pub(super) fn take(&self, draw: impl FnOnce(usize) -> usize) -> Option<u64> {
        let mut queues = self.0.lock();
        let count = queues.woken.len();
        let task = queues
            .woken
            .remove(if count > 1 { draw(count) } else { 0 })?;
        queues.all.remove(&task);
        queues.running = Some(task);
        Some(task)
    }

    /// Notes that the task that was taken has stopped.
    pub(super) fn stopped(&self) {
        self.0.lock().running = None;
    }

    /// Whether tasks have yielded.
    pub(super) fn has_yielded(&self) -> bool {
        !self.0.lock().yielded.is_empty()
    }

    /// Lets the tasks that have yielded run.
    pub(super) fn resume_yielded(&self) {
        let mut queues = self.0.lock();
        let yielded = mem::take(&mut queues.yielded);
        queues.woken.extend(yielded);
    }

    /// The tasks that a waker wakes.
    pub(super) fn woken_by(&self, waker: &Waker) -> BTreeSet<u64> {
        *self.0.lock() = Queues::default();
        waker.wake_by_ref();
        mem::take(&mut self.0.lock().all)
    }
}

struct TaskWaker {
    ready: Arc<Ready>,
    task: u64,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut queues = self.ready.0.lock();
        if !queues.all.insert(self.task) {
            return;
        }
        if queues.running == Some(self.task) {
            queues.yielded.push(self.task);
        } else {
            queues.woken.push_back(self.task);
        }
    }
}
