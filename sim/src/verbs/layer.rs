//! What only a layer over the verbs knows: it adds mistakes to the diagnosis when they happen, and
//! lines to the trace.

use verbs_api::lab::TraceEvent;
use verbs_api::site::Site;
use verbs_api::{Context, Handle};

use super::sim::Sim;
use crate::device::node_of;

use crate::diagnosis::problem::Misused;
use crate::diagnosis::{Class, Unposted, note_mistake};

/// A misuse of a layer over the verbs that the simulator does not see, such as a pointer to no
/// object.
#[derive(Clone, Debug)]
pub struct Misuse {
    /// The context of the object that it is about. `None` if it is about no object: then it is of
    /// the first device.
    pub context: Option<Context>,
    /// Of which class it is.
    pub class: Class,
    /// What tells it from others of its class at the same place, such as the call and `EFAULT`.
    /// Those that are alike are one finding.
    pub fact: [&'static str; 2],
    /// In words.
    pub text: String,
    /// Where what the text speaks of began, behind words that say which; if it is known.
    pub place: Option<(&'static str, Site)>,
}

/// A line for the trace about something that a layer over the verbs does. It is recorded as a call.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// The node that it is about, by its number.
    pub node: u32,
    /// In words.
    pub text: String,
}

impl Annotation {
    /// Adds it to the trace, if one is kept.
    pub fn note(self, sim: &Sim) {
        let Self { node, text: call } = self;
        sim.runtime
            .with(|fabric| fabric.record(node, TraceEvent::Call { call }));
    }
}

impl Misuse {
    /// Adds it to the diagnosis, in the present verb.
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
            .with(|fabric| note_mistake(fabric, node, problem));
    }
}

impl Unposted {
    /// Adds it to the diagnosis: its queue pair goes.
    pub fn note(&self, sim: &Sim) {
        let node = node_of(self.qp.context());
        sim.runtime.with(|fabric| {
            let journal = &mut fabric.node_mut(node).device.base.journal;
            journal.unposted(self);
        });
    }
}
