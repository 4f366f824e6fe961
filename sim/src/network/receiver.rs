//! The thread that reads the sockets of a simulation on a network: a passive target needs no call.
//!
//! While threads poll and find nothing, they look themselves, and this one rests: it would only take the packets from
//! them, and on a machine with one core their time.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::thread::set_current_timer_slack;

use super::sockets::Sockets;
use crate::runtime::Runtime;
use crate::sync::Mutex;

/// The thread that reads the sockets. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Receiver {
    runtime: Arc<Runtime>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// How long it rests at first while others look. A thread that has looked may have gone on to spin on its memory.
const FIRST_REST: Duration = Duration::from_micros(20);
/// How long it rests at most: each rest during which others look is twice as long as the one before.
const LONGEST_REST: Duration = Duration::from_micros(320);

/// It looks so often in vain before it sleeps: a peer that reads or writes here often goes on at once.
const LOOKS: u32 = 32;

impl Receiver {
    /// The thread of a simulation that is on a network. It has not started.
    pub(crate) fn of(runtime: &Arc<Runtime>) -> Option<Arc<Self>> {
        runtime.config.network.map(|_| {
            Arc::new(Self {
                runtime: runtime.clone(),
                thread: Mutex::default(),
            })
        })
    }

    /// Starts it, unless it runs. Without a thread, those that poll still look.
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
    // Rests are short: the system should not make them longer, as it does by 50 us else.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    sockets.set_receiver();
    loop {
        sockets.set_waiting(true);
        // From now on a thread that has looked calls this one. What it left undone before that is done here.
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
        sockets.set_waiting(false);
        let (mut in_vain, mut rest) = (0, FIRST_REST);
        while in_vain < LOOKS && !sockets.is_stopped() {
            // Who looks also sends more, but only as often as it looks.
            if !is_behind && sockets.do_others_look() {
                thread::park_timeout(rest);
                rest = LONGEST_REST.min(rest * 2);
                continue;
            }
            rest = FIRST_REST;
            let has_come = runtime.read_sockets(sockets);
            in_vain = if has_come || is_behind {
                0
            } else {
                in_vain + 1
            };
            // A program that was woken may answer at once, and on one core only now.
            thread::yield_now();
            is_behind = runtime.send_more();
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let (Some(sockets), Some(thread)) = (&self.runtime.sockets, self.thread.lock().take()) {
            self.runtime
                .with(|fabric| fabric.manage(|manager, _| manager.take_leave_of_all()));
            sockets.stop();
            // A panic there has been reported where it happened.
            let _ = thread.join();
        }
    }
}
