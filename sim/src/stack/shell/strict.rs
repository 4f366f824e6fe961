//! A simulation that does not let mistakes pass.

use std::fmt::Write;
use std::sync::Arc;
use std::thread;

use super::sim::Sim;
use super::world::World;
use crate::class::Certainty;

/// Looks for mistakes when it is dropped.
#[derive(Debug)]
pub(super) struct Strict(Arc<World>);

impl Sim {
    /// The same, but that it panics when it is dropped if the program has made mistakes that are certain: a guard for
    /// tests. Hints and leftovers pass; [`diagnose`](Self::diagnose) has them.
    ///
    /// A thread that panics already is left alone.
    ///
    /// ```should_panic
    /// use verbs_api::{Arm, CqInit, Verbs};
    /// use verbs_sim::{Sim, SimConfig};
    ///
    /// let sim = Sim::new(SimConfig::new()).strict();
    /// let context = sim.open_device("sim0").unwrap();
    /// let cq = sim.create_cq(context, &CqInit::new(16)).unwrap();
    /// // Nobody looks at what that returns.
    /// let _ = sim.ack_cq_events(cq, 1);
    /// ```
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = Some(Strict(self.world.clone()));
        self
    }
}

impl Drop for Strict {
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        let diagnosis = self.0.with(|fabric| fabric.diagnose());
        let is_certain = |class: crate::Class| class.certainty() == Certainty::Certain;
        let mut text = String::new();
        for finding in diagnosis
            .mistakes
            .iter()
            .filter(|finding| is_certain(finding.class()))
        {
            let _ = write!(text, "\n{finding}\nhelp: {}", finding.class().remedy());
        }
        assert!(text.is_empty(), "the program made mistakes:{text}");
    }
}
