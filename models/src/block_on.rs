//! Running a future in a model.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::task::Wake;

use verbs_api::sync::{Condvar, Mutex, MutexGuard};
use verbs_sim::KnownThread;

use crate::Harness;

impl Harness {
    /// Runs a future to its end, in the calling thread. Between two polls the thread sleeps until
    /// its waker is called. If every other thread waits too, none can call it; then the simulation
    /// is closed (see [`Sim::threads`](verbs_sim::Sim::threads)), which wakes the threads that
    /// watch the channel.
    ///
    /// The waker is not loom's: it counts references with std's `Arc`, so that a model that fails
    /// does not end the process.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let bell = Arc::new(Bell {
            thread: self.own(),
            state: Mutex::new(State::default()),
            rung: Condvar::new(),
        });
        let waker = Waker::from(bell.clone());
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return output;
            }
            bell.wait();
        }
    }
}

/// Wakes the thread of a future.
struct Bell {
    thread: Arc<KnownThread>,
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Default)]
struct State {
    is_rung: bool,
    sleeps: bool,
}

impl Bell {
    fn wait(&self) {
        let mut state = self.state.lock();
        if !state.is_rung {
            state.sleeps = true;
            if self.thread.suspend() {
                MutexGuard::unlocked(&mut state, || self.thread.pass_time());
            }
            while !state.is_rung {
                self.rung.wait(&mut state);
            }
        }
        *state = State::default();
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let mut state = self.state.lock();
        state.is_rung = true;
        if state.sleeps {
            // From now on it counts as one that runs.
            self.thread.resume();
            self.rung.notify_all();
        }
    }
}
