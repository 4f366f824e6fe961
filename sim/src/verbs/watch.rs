//! Sets the callback for new mistakes.

use std::sync::Arc;

use super::sim::Sim;
use crate::diagnosis::Finding;
use crate::runtime::Watch;

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
        let is_any = Arc::default();
        let first = sim.runtime.watch.set(Self {
            is_any: Arc::clone(&is_any),
            tell: Box::new(tell),
        });
        assert!(first.is_ok(), "a watcher is set already");
        sim.runtime.with(|fabric| fabric.keep_fresh(&is_any));
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
