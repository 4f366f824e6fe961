//! Running a future in a model.

use core::future::Future;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::task::Wake;

use verbs_api::sync::{Condvar, Mutex};
use verbs_sim::{Participant, Sim};

use crate::Harness;

impl Harness {
    /// Runs a future to its end, in the calling thread. Between two polls the thread sleeps until
    /// its waker is called. If every other thread waits too, none can call it; then the simulation
    /// is closed (see [`Sim::participate`]), which wakes the threads that watch the channel.
    ///
    /// The waker is not loom's: it counts references with std's `Arc`, so that a model that fails
    /// does not end the process.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let bell = Arc::new(Bell {
            sim: self.sim().clone(),
            state: Mutex::new(State::default()),
            rung: Condvar::new(),
        });
        let waker = Waker::from(bell.clone());
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return output;
            }
            bell.wait(self);
        }
    }
}

/// Wakes the thread of a future.
struct Bell {
    sim: Arc<Sim>,
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Default)]
struct State {
    is_rung: bool,
    sleeps: bool,
    /// The sleeper's, put here by who wakes it: from then on it counts again.
    participant: Option<Participant>,
}

impl Bell {
    fn wait(&self, harness: &Harness) {
        let mut state = self.state.lock();
        if !state.is_rung {
            state.sleeps = true;
            harness.suspend();
            while !state.is_rung {
                self.rung.wait(&mut state);
            }
            state.sleeps = false;
            harness.resume(state.participant.take());
        }
        state.is_rung = false;
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        let mut state = self.state.lock();
        state.is_rung = true;
        if state.sleeps && state.participant.is_none() {
            state.participant = Some(self.sim.participate());
            self.rung.notify_all();
        }
    }
}
