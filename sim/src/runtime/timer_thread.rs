//! The thread that lets timers fire, where the time is that of the machine.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::shared::Runtime;

/// The thread that lets timers fire. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct TimerThread {
    runtime: Arc<Runtime>,
    thread: Option<JoinHandle<()>>,
}

impl TimerThread {
    /// Starts it, where the time is that of the machine.
    ///
    /// # Panics
    /// If the system can start no thread.
    pub(crate) fn start(runtime: &Arc<Runtime>) -> Option<Self> {
        runtime.clock.as_ref()?;
        let of_thread = runtime.clone();
        let run = move || {
            if let Some(clock) = &of_thread.clock {
                clock.run(|| {
                    of_thread.with(|fabric| {
                        fabric.catch_up();
                        fabric.expected()
                    })
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
            // A panic there has been reported where it happened.
            let _ = thread.join();
        }
    }
}
