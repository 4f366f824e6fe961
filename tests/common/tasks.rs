//! An executor for tasks: it polls a task only after it was woken, so a lost wake-up is a failure.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// A task without a result.
pub(crate) type Task<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// How long all tasks may sleep.
const WATCH: Duration = Duration::from_secs(60);

/// Runs tasks in this thread, which sleeps while none was woken.
pub(crate) fn run<'a>(tasks: impl IntoIterator<Item = Task<'a>>) {
    let mut tasks: Vec<_> = tasks.into_iter().map(Some).collect();
    let woken = Arc::new(Woken {
        tasks: Mutex::new((0..tasks.len()).collect()),
        thread: thread::current(),
    });
    let mut polled_at = Instant::now();
    while tasks.iter().any(Option::is_some) {
        let next = woken.tasks.lock().unwrap().pop_front();
        let Some(index) = next else {
            assert!(polled_at.elapsed() < WATCH, "a wake-up was lost");
            thread::park_timeout(WATCH);
            continue;
        };
        polled_at = Instant::now();
        let woken = woken.clone();
        let waker = Waker::from(Arc::new(WakeTask { woken, index }));
        let polled = tasks[index].as_mut().map(|task| {
            let task = task.as_mut();
            task.poll(&mut Context::from_waker(&waker))
        });
        if polled.is_some_and(|polled| polled.is_ready()) {
            tasks[index] = None;
        }
    }
}

/// Runs a future in this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut output = None;
    run([Box::pin(async { output = Some(future.await) }) as Task<'_>]);
    output.expect("the task has ended")
}

/// Polls a future once.
pub(crate) fn poll_once<T>(future: Pin<&mut impl Future<Output = T>>, waker: &Waker) -> Poll<T> {
    future.poll(&mut Context::from_waker(waker))
}

/// The tasks that were woken, each once.
struct Woken {
    tasks: Mutex<VecDeque<usize>>,
    thread: Thread,
}

struct WakeTask {
    woken: Arc<Woken>,
    index: usize,
}

impl Wake for WakeTask {
    fn wake(self: Arc<Self>) {
        let mut tasks = self.woken.tasks.lock().unwrap();
        if !tasks.contains(&self.index) {
            tasks.push_back(self.index);
        }
        drop(tasks);
        self.woken.thread.unpark();
    }
}
