//! What a scenario runs in.

use std::fmt;
use std::sync::Arc;

use verbs_api::Verbs;

use crate::failure::Result;

/// Devices with nothing on them, and what is to be said about them at the end.
pub struct World {
    verbs: Arc<dyn Verbs>,
    end: Option<End>,
}

/// Says at the end what was wrong.
type End = Box<dyn FnOnce() -> Result>;

impl World {
    /// The devices of `verbs`, which nobody watches.
    pub fn new(verbs: impl Into<Arc<dyn Verbs>>) -> Self {
        Self {
            verbs: verbs.into(),
            end: None,
        }
    }

    /// With `end`, which is called once the scenario has ended, however that was. What it finds is a
    /// failure of the scenario, beside the scenario's own.
    #[must_use]
    pub fn ending_with(self, end: impl FnOnce() -> Result + 'static) -> Self {
        Self {
            end: Some(Box::new(end)),
            ..self
        }
    }

    /// Its verbs.
    pub fn verbs(&self) -> &dyn Verbs {
        &*self.verbs
    }

    pub(crate) fn end(mut self) -> Result {
        self.end.take().map_or(Ok(()), |end| end())
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let watched = self.end.is_some();
        f.debug_struct("World").field("watched", &watched).finish()
    }
}
