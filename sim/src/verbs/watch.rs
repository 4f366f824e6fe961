//! A callback for each new mistake.

use core::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::sim::Sim;
use crate::diagnosis::Finding;
use crate::fabric::Fabric;

/// A callback for each new mistake.
pub struct Watch {
    /// A node has a new mistake.
    is_any: Arc<AtomicBool>,
    tell: Box<dyn Fn(&Finding) + Send + Sync>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// Calls `tell` for each mistake when it is detected, once per place: calls that are refused,
    /// work that fails, CQs that overrun, and some mistakes in arming CQs. A lost wakeup is
    /// detected when its CQ is destroyed. Mistakes that show only at the end are in
    /// [`Sim::diagnose`] alone. A failure that the program handles later is certain when it
    /// happens, and a hint in a later diagnosis. A failure that a test control caused is a hint
    /// from the start.
    ///
    /// The call happens before the verb that made the mistake returns, in its thread. Work may also
    /// fail in a verb of the peer, or in a thread of the simulator. The lock of the simulator is
    /// not held, so `tell` may use the simulator, for example to get a diagnosis.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// use verbs_api::{CqInit, Verbs};
    /// use verbs_sim::{Sim, SimConfig, Watch};
    ///
    /// let reported = Arc::new(AtomicUsize::new(0));
    /// let sim = Sim::new(SimConfig::new());
    /// let count = reported.clone();
    /// Watch::on(&sim, move |_| _ = count.fetch_add(1, Ordering::Relaxed));
    /// let context = sim.open_device("sim0")?;
    /// let cq = sim.create_cq(context, &CqInit::new(16))?;
    /// sim.ack_cq_events(cq, 1).unwrap_err();
    /// assert_eq!(reported.load(Ordering::Relaxed), 1);
    /// # Ok::<(), verbs_api::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the simulation already has a callback.
    pub fn on(sim: &Sim, tell: impl Fn(&Finding) + Send + Sync + 'static) {
        let is_any = Arc::new(AtomicBool::new(false));
        let (fresh, tell) = (is_any.clone(), Box::new(tell));
        let first = sim.runtime.watch.set(Self { is_any, tell });
        assert!(first.is_ok(), "somebody is told already");
        sim.runtime.with(|fabric| fabric.keep_fresh(&fresh));
    }

    /// The new mistakes.
    #[inline]
    pub(crate) fn take(&self, fabric: &mut Fabric) -> Vec<Finding> {
        if self.is_any.load(Ordering::Relaxed) {
            self.take_news(fabric)
        } else {
            Vec::new()
        }
    }

    #[cold]
    fn take_news(&self, fabric: &mut Fabric) -> Vec<Finding> {
        self.is_any.store(false, Ordering::Relaxed);
        fabric.take_fresh()
    }

    pub(crate) fn tell(&self, fresh: &[Finding]) {
        fresh.iter().for_each(&self.tell);
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use verbs_api::{CqInit, Verbs};

    use super::*;
    use crate::config::SimConfig;

    /// The callback may use the simulator.
    #[test]
    fn a_mistake_is_told_once_and_without_the_lock() {
        let sim = Arc::new(Sim::new(SimConfig::new()));
        let reported = Arc::new(Mutex::new(Vec::new()));
        let (asked, noted) = (Arc::downgrade(&sim), reported.clone());
        Watch::on(&sim, move |finding| {
            let sim = asked.upgrade().expect("it calls");
            let found = sim.diagnose().mistakes.len();
            noted.lock().push((finding.to_string(), found));
        });
        let context = sim.open_device("sim1").unwrap();
        let cq = sim.create_cq(context, &CqInit::new(4)).unwrap();
        for _ in 0..2 {
            sim.ack_cq_events(cq, 1).unwrap_err();
        }
        let reported = reported.lock();
        let [(text, found)] = &reported[..] else {
            panic!("{reported:?}");
        };
        assert!(text.starts_with("sim1: VS-EVT-02: "), "{text}");
        assert_eq!(*found, 1);
        sim.unobserved().ack_cq_events(cq, 1).unwrap_err();
    }
}
