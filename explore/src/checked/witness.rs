//! The moment at which a program fails, before it takes apart what it has made.
//!
//! A program that fails returns an error or panics, and on the way out its objects are destroyed,
//! so the state at the failure is lost. So evidence is taken before each series of calls that
//! destroy, and before the first call during a panic. It counts if no other call follows. Mistakes
//! of the device itself are noticed at once.

use core::fmt;
use std::sync::Arc;
use std::thread;

use verbs_api::lab::{Lab, TraceEvent, TraceRecord};
use verbs_api::sync::Mutex;
use verbs_api::{Context, Result, Verbs};
use verbs_sim::{Diagnosis, Sim};

use super::Checked;
use crate::idle::Idle;

/// Looks at a simulation when a program may be failing.
pub(crate) struct Witness {
    sim: Arc<Sim>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    evidence: Option<Evidence>,
    /// The program has ended, or the device has failed.
    is_over: bool,
    /// Polls that found nothing, up to then.
    idle: Idle,
}

/// The state at the failure.
#[derive(Clone, Debug)]
struct Evidence {
    diagnosis: Diagnosis,
    /// How many records the trace had.
    records: usize,
}

impl Witness {
    pub(crate) fn new(sim: Arc<Sim>) -> Self {
        let seen = Mutex::default();
        Self { sim, seen }
    }

    /// The program has ended: what follows is not its own.
    pub(crate) fn ended(&self) {
        self.begins_to_end();
        self.seen.lock().is_over = true;
    }

    /// What the program had done wrong when it failed and what was there then, and the trace up to
    /// then.
    pub(crate) fn failure(&self) -> (Diagnosis, Vec<TraceRecord>) {
        let seen = self.seen.lock();
        let evidence = seen.evidence.clone().unwrap_or_else(|| self.look());
        let mut trace = self.sim.trace();
        trace.truncate(evidence.records);
        (evidence.diagnosis, seen.idle.shown_in(trace))
    }

    /// The device has broken an invariant.
    pub(super) fn broken(&self) {
        let evidence = Some(self.look());
        let mut seen = self.seen.lock();
        (seen.evidence, seen.is_over) = (evidence, true);
    }

    fn look(&self) -> Evidence {
        Evidence {
            diagnosis: self.sim.diagnose(),
            records: self.sim.trace_len(),
        }
    }

    /// The program is about to take something apart: perhaps it has failed.
    fn begins_to_end(&self) {
        let mut seen = self.seen.lock();
        if !seen.is_over {
            seen.evidence.get_or_insert_with(|| self.look());
        }
    }

    /// The program does something else: it had not failed.
    fn goes_on(&self) {
        if thread::panicking() {
            return self.begins_to_end();
        }
        let mut seen = self.seen.lock();
        if !seen.is_over {
            seen.evidence = None;
        }
    }

    /// The program releases an object, which does not mean that it has failed.
    fn lets_go(&self) {
        if thread::panicking() {
            self.begins_to_end();
        }
    }

    fn found_nothing(&self, context: Context, call: String) {
        let mut seen = self.seen.lock();
        if seen.evidence.is_none()
            && let Ok(node) = self.sim.node(context)
        {
            let record = TraceRecord::new(self.sim.now(), node, TraceEvent::Call { call });
            seen.idle.add(self.sim.trace_len(), record);
        }
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.seen.fmt(f)
    }
}

impl Checked {
    /// The program calls something.
    pub(super) fn goes_on(&self) {
        if let Some(witness) = &self.witness {
            witness.goes_on();
        }
    }

    /// The device, for a call that acknowledges or ends something: values do that too when they are
    /// dropped.
    pub(super) fn device_to_let_go(&self) -> &dyn Verbs {
        if let Some(witness) = &self.witness {
            witness.lets_go();
        }
        self.forwarded()
    }

    /// A call that destroys something. One that is refused is a call like others: programs may fail
    /// by it.
    pub(super) fn take_apart<R>(&self, call: impl FnOnce(&dyn Verbs) -> Result<R>) -> Result<R> {
        if let Some(witness) = &self.witness {
            witness.begins_to_end();
        }
        let result = call(self.forwarded());
        if result.is_err() {
            self.goes_on();
        }
        result
    }

    /// A poll found nothing, which the simulator does not trace.
    pub(super) fn found_nothing(&self, context: Context, call: impl FnOnce() -> String) {
        if let Some(witness) = &self.witness {
            witness.found_nothing(context, call());
        }
    }
}
