//! What happens when every known thread waits: time passes, and if nothing is left to happen, each
//! wait fails.

use verbs_api::Cq;
use verbs_api::lab::WaitReport;
use verbs_api::table::Id;

use super::Runtime;
use super::roster::{Number, State};
use crate::config::Mode;
use crate::device::{Wakeup, waited_for_and_queued};
use crate::diagnosis::is_own;
use crate::fabric::{Fabric, Waiting};
use crate::sync::MutexGuard;

impl Runtime {
    /// The calling thread, if it is known and the clock depends on that.
    pub(crate) fn known_thread(&self) -> Option<Number> {
        if self.config.mode != Mode::Inline {
            return None;
        }
        self.roster.present()
    }

    /// A known thread sleeps from now on. Returns whether it does not go on at once.
    pub(super) fn known_sleeps(
        &self,
        fabric: &mut MutexGuard<'_, Fabric>,
        thread: Number,
        wait: Id,
    ) -> bool {
        self.roster.set(thread, State::Asleep(wait));
        self.pass_time(fabric);
        // Tasks that it woke run before this thread sleeps. Those of a stale waker do nothing.
        while self.wake_before_sleep(fabric) {
            self.pass_time(fabric);
        }
        fabric.waits.is_asleep(wait)
    }

    /// A known thread polls a CQ and finds nothing.
    pub(crate) fn known_polls(&self, fabric: &mut Fabric, thread: Number, node: u32, cq: Cq) {
        let now = fabric.moment();
        let look = fabric.node_mut(node).device.cqs.look_mut(cq);
        // A poll after arming is part of the one before: the thread is about to wait.
        if look.begin(now).is_some() {
            self.roster.polled(thread, cq, now);
            self.pass_time(fabric);
        }
    }

    /// A known thread waits for the end of another one.
    pub(crate) fn known_joins(&self, thread: Number, other: Number) {
        self.roster.join(thread, other);
        self.known_stops();
    }

    /// A known thread waits for something else, or has ended.
    pub(crate) fn known_stops(&self) {
        // A model checker sees the lock as a step.
        while self.roster.all_may_wait() {
            let any_woken = self.with(|fabric| {
                self.pass_time(fabric);
                fabric.are_tasks_woken()
            });
            if !any_woken {
                return;
            }
        }
    }

    /// If every known thread waits, does what is due next until one of them can go on. Bounded
    /// waits end by this clock.
    pub(super) fn pass_time(&self, fabric: &mut Fabric) {
        let (horizon, end) = (fabric.horizon(), fabric.waits.first_end());
        while self.roster.all_wait(fabric.moment()) && !fabric.are_tasks_woken() {
            if fabric.step(end.unwrap_or(horizon)) {
                self.wake(fabric);
            } else if let Some(end) = end {
                fabric.schedule.set_now(end);
                self.roster.woken(fabric.waits.wake_late(end));
            } else if self.roster.any_polls(fabric.moment()) {
                // It decides itself how long it polls.
                return;
            } else if fabric.closed {
                // A thread that is suspended is not woken by that.
                return;
            } else {
                self.close_idle(fabric);
            }
        }
    }

    /// Closes a simulation in which every known thread waits, and nothing is left to happen before
    /// the horizon.
    ///
    /// # Panics
    /// If one of the threads should have been woken. Closing would hide this defect of the
    /// simulator.
    fn close_idle(&self, fabric: &mut Fabric) {
        if !fabric.waits.has_unknown() {
            self.check_wakeups(fabric);
        }
        let threads = self.describe_threads(fabric);
        self.roster.keep_stall(threads);
        self.close(fabric);
    }

    fn check_wakeups(&self, fabric: &Fabric) {
        for node in 0..self.config.nodes {
            let missed = waited_for_and_queued(&fabric.node(node).device.cqs.channels);
            assert!(
                missed.is_none(),
                "no thread was woken for an event on {missed:?}"
            );
        }
        let missed = waited_for_and_queued(&fabric.cm_bridge.manager.channels.table);
        assert!(
            missed.is_none(),
            "no thread was woken for an event on {missed:?}"
        );
    }

    /// How each known thread waits, a line each, and a finding of the diagnosis for each wait.
    fn describe_threads(&self, fabric: &mut Fabric) -> Vec<String> {
        let threads = self.roster.named().into_iter();
        let described = threads.map(|(name, state)| {
            let waits = match state {
                State::Asleep(wait) => {
                    let waiting = *fabric.waits.waiting(wait);
                    fabric.note_endless(&waiting);
                    let since = waiting.since.since_start();
                    format!(", since {since:?}: {}", self.report(fabric, &waiting))
                }
                State::Joins(other) => format!(": the end of {}", self.roster.name(other)),
                State::Runs | State::Suspended => {
                    ": something outside of the simulation".to_owned()
                }
            };
            name + &waits
        });
        let mut described: Vec<_> = described.collect();
        if !described.is_empty() && fabric.next_step_at().is_some() {
            described.push("the horizon is reached while timers still run".to_owned());
        }
        described
    }

    /// The state of a wait that nothing ends.
    pub(crate) fn report(&self, fabric: &Fabric, waiting: &Waiting) -> WaitReport {
        let stall = Self::stall(fabric, waiting.place, waiting.wait_for);
        let node = Some(waiting.place).filter(|node| *node < self.config.nodes);
        let site = waiting.site.filter(|site| !is_own(site));
        WaitReport::new(stall, node, site)
    }

    /// Closes the simulation: no more work will come, and every wait returns.
    pub(crate) fn close(&self, fabric: &mut Fabric) {
        fabric.closed = true;
        fabric.wakeups.push(Wakeup::Anything);
        self.pass_on_wakeups(fabric);
    }
}
