//! The timer thread: it fires timers, if time is that of the machine.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use verbs_api::{Cause, Error, ErrorKind, Result, Verb};

use super::shared::Runtime;
use crate::sync::Mutex;

/// The timer thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct TimerThread {
    runtime: Arc<Runtime>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl TimerThread {
    /// The timer thread of a simulation in real time. It has not started.
    pub(crate) fn of(runtime: &Arc<Runtime>) -> Option<Arc<Self>> {
        runtime.clock.as_ref().map(|_| {
            Arc::new(Self {
                runtime: runtime.clone(),
                thread: Mutex::default(),
            })
        })
    }

    /// Starts the thread for a verb, unless it runs.
    ///
    /// # Errors
    /// If the system cannot start a thread.
    pub(crate) fn start(&self, verb: Verb) -> Result<()> {
        let mut started = self.thread.lock();
        if started.is_none() {
            let runtime = self.runtime.clone();
            let run = move || {
                if let Some(clock) = &runtime.clock {
                    clock.run(|| {
                        runtime.catch_up();
                        runtime.with(|fabric| fabric.expected())
                    });
                }
            };
            let named = thread::Builder::new().name("verbs-sim timers".to_owned());
            *started = Some(named.spawn(run).map_err(|error| no_thread(verb, &error))?);
        }
        Ok(())
    }
}

impl Drop for TimerThread {
    fn drop(&mut self) {
        if let Some(clock) = &self.runtime.clock {
            clock.end();
        }
        // A waker that this thread has called may drop the last owner of the simulation.
        let is_other = |of: &JoinHandle<()>| of.thread().id() != thread::current().id();
        if let Some(thread) = self.thread.lock().take().filter(is_other) {
            // The thread has already reported its panic.
            let _ = thread.join();
        }
    }
}

fn no_thread(verb: Verb, error: &io::Error) -> Error {
    let kind = match error.raw_os_error() {
        Some(raw) => Error::from_raw(verb, raw).kind(),
        None => ErrorKind::Io,
    };
    let text = format!("no thread for timers can start: {error}");
    Error::new(verb, kind, Cause::Text(text.into()))
}
