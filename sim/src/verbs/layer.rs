//! Reports of a layer over the verbs: it adds mistakes to the diagnosis, and lines to the trace.

use verbs_api::lab::TraceEvent;
use verbs_api::site::Site;
use verbs_api::{Context, Handle};

use super::sim::Sim;
use crate::device::node_of;

use crate::diagnosis::problem::Misused;
use crate::diagnosis::{Class, Unposted};

/// A misuse of a layer over the verbs that the simulator cannot see, such as an invalid pointer.
#[derive(Clone, Debug)]
pub struct Misuse {
    /// The context of the object that was misused. `None` if there is no object; the finding then
    /// belongs to the first device.
    pub context: Option<Context>,
    /// The class of the finding.
    pub class: Class,
    /// Distinguishes the finding from others of its class at the same place, such as the call and
    /// `EFAULT`. Misuses with equal facts are one finding.
    pub fact: [&'static str; 2],
    /// The text of the finding.
    pub text: String,
    /// The site where the misuse began, after words that name it, if it is known.
    pub place: Option<(&'static str, Site)>,
}

/// A line for the trace about an action of a layer over the verbs. It is recorded as a call.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// The number of the node that it concerns.
    pub node: u32,
    /// The text of the line.
    pub text: String,
}

impl Annotation {
    /// Adds the line to the trace, if there is one.
    pub fn note(self, sim: &Sim) {
        let Self { node, text: call } = self;
        sim.runtime
            .with(|fabric| fabric.record(node, TraceEvent::Call { call }));
    }
}

impl Misuse {
    /// Adds the misuse to the diagnosis, at the call site of the current verb.
    #[track_caller]
    pub fn note(self, sim: &Sim) {
        let node = self.context.map_or(0, node_of);
        let problem = Misused {
            class: self.class,
            fact: self.fact,
            text: self.text,
            place: self.place,
        };
        sim.runtime
            .with(|fabric| fabric.note_mistake(node, problem));
    }
}

impl Unposted {
    /// Adds the batch to the diagnosis, because its queue pair is being destroyed.
    pub fn note(&self, sim: &Sim) {
        let node = node_of(self.qp.context());
        sim.runtime.with(|fabric| {
            let journal = &mut fabric.node_mut(node).device.base.journal;
            journal.note(self.clone(), self.begun_at);
        });
    }
}
