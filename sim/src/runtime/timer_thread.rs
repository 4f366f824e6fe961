//! The timer thread: it fires timers, if time is that of the machine.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::shared::Runtime;

/// The timer thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct TimerThread {
    runtime: Arc<Runtime>,
    thread: Option<JoinHandle<()>>,
}

impl TimerThread {
    /// Starts the thread, in real time.
    ///
    /// # Panics
    /// If the system cannot start a thread.
    pub(crate) fn start(runtime: &Arc<Runtime>) -> Option<Self> {
        runtime.clock.as_ref()?;
        let of_thread = runtime.clone();
        let run = move || {
            if let Some(clock) = &of_thread.clock {
                clock.run(|| {
                    of_thread.catch_up();
                    of_thread.with(|fabric| fabric.expected())
                });
            }
        };
        let thread = thread::Builder::new().name("verbs-sim timers".to_owned());
        let thread = thread.spawn(run).expect("the system can start a thread");
        Some(Self {
            runtime: runtime.clone(),
            thread: Some(thread),
        })
    }
}

impl Drop for TimerThread {
    fn drop(&mut self) {
        if let Some(clock) = &self.runtime.clock {
            clock.end();
        }
        if let Some(thread) = self.thread.take() {
            // The thread has already reported its panic.
            let _ = thread.join();
        }
    }
}
