//! The receiver thread: it reads the sockets of a simulation on a network, so a passive target
//! makes no call.
//!
//! It rests while other threads poll and read the sockets. It would only compete with them for the
//! packets, and for the time of a machine with one core.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::thread::set_current_timer_slack;

use super::sockets::Sockets;
use crate::runtime::Runtime;
use crate::sync::Mutex;

/// The receiver thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Receiver {
    runtime: Arc<Runtime>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The first rest while other threads read. A thread that has read may now spin on its memory.
const FIRST_REST: Duration = Duration::from_micros(20);
/// The longest rest. A rest during which other threads read doubles the next.
const LONGEST_REST: Duration = Duration::from_micros(320);

/// Reads without a packet before the thread sleeps. A peer that reads or writes here often
/// continues at once.
const LOOKS: u32 = 32;

impl Receiver {
    /// The receiver of a simulation that is on a network. Its thread has not started.
    pub(crate) fn of(runtime: &Arc<Runtime>) -> Option<Arc<Self>> {
        runtime.config.network.map(|_| {
            Arc::new(Self {
                runtime: runtime.clone(),
                thread: Mutex::default(),
            })
        })
    }

    /// Starts the thread, unless it runs. If the system has no thread, polling threads still read.
    pub(crate) fn start(&self) {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let runtime = self.runtime.clone();
            let run = move || {
                if let Some(sockets) = &runtime.sockets {
                    run(&runtime, sockets);
                }
            };
            let named = thread::Builder::new().name("verbs-sim network".to_owned());
            *thread = named.spawn(run).ok();
        }
    }
}

fn run(runtime: &Runtime, sockets: &Sockets) {
    // The rests are short, and the system would extend them by 50 us.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = sockets.receiver.set(thread::current());
    loop {
        sockets.is_waiting.store(true, Ordering::SeqCst);
        // From now on a thread that has read wakes this one. Work that it left before that is done
        // here.
        let mut is_behind = runtime.send_more();
        let is_over = if is_behind {
            sockets.is_stopped()
        } else {
            !sockets.wait_readable()
        };
        if is_over {
            runtime.send_more();
            return;
        }
        sockets.is_waiting.store(false, Ordering::SeqCst);
        let (mut empty_reads, mut rest) = (0, FIRST_REST);
        let looks = if sockets.network.spins { LOOKS } else { 1 };
        while empty_reads < looks && !sockets.is_stopped() {
            // Other threads also give turns, but only as often as they read.
            if !is_behind && sockets.do_others_look() {
                thread::park_timeout(rest);
                rest = LONGEST_REST.min(rest * 2);
                continue;
            }
            rest = FIRST_REST;
            let has_arrived = runtime.read_sockets(sockets);
            empty_reads = if has_arrived || is_behind {
                0
            } else {
                empty_reads + 1
            };
            // A program that was woken may answer at once. On one core it needs the processor for
            // that.
            if sockets.network.spins {
                thread::yield_now();
            }
            is_behind = runtime.send_more();
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let (Some(sockets), Some(thread)) = (&self.runtime.sockets, self.thread.lock().take()) {
            self.runtime
                .with(|fabric| fabric.manage(|manager, _| manager.end_all()));
            sockets.stop();
            // A waker that this thread has called may drop the last owner of the simulation.
            if thread.thread().id() != thread::current().id() {
                // The thread has already reported its panic.
                let _ = thread.join();
            }
        }
    }
}
