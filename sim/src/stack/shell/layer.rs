//! Mistakes that only a layer over the verbs sees: it adds them to the diagnosis when they happen.

use verbs_api::site::Site;
use verbs_api::{Context, Handle};

use super::sim::Sim;
use crate::class::Class;
use crate::device::node_of;
use crate::diagnosis::{Problem, Unposted};

/// As [`Sim::note_misuse`], of an object.
#[derive(Clone, Debug)]
pub struct Misuse {
    /// The context of the object.
    pub context: Context,
    /// Of which class it is.
    pub class: Class,
    /// In words.
    pub text: String,
    /// Where what the text speaks of began, behind words that say which; if it is known.
    pub place: Option<(&'static str, Site)>,
}

impl Misuse {
    /// Adds it to the diagnosis, in the present verb.
    #[track_caller]
    pub fn note(self, sim: &Sim) {
        let Self {
            context,
            class,
            text,
            place,
        } = self;
        let problem = Problem::Misused { class, text, place };
        sim.world
            .with(|fabric| fabric.note_mistake(node_of(context), problem));
    }
}

impl Unposted {
    /// Adds it to the diagnosis: its queue pair goes.
    pub fn note(&self, sim: &Sim) {
        let (problem, node) = (self.problem(), node_of(self.qp.context()));
        sim.world.with(|fabric| {
            let history = &mut fabric.node_mut(node).device.base.history;
            history.note(problem, self.begun_at);
        });
    }
}
