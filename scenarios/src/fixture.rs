//! What a scenario runs on.

use std::fmt;
use std::sync::Arc;

use verbs_api::Verbs;

use crate::failure::Result;

/// Devices with nothing on them, and a check of them at the end.
pub struct Fixture {
    verbs: Arc<dyn Verbs>,
    end: Option<End>,
}

/// Says at the end what is wrong.
type End = Box<dyn FnOnce() -> Result>;

impl Fixture {
    /// The devices of `verbs`, without a check at the end.
    pub fn new(verbs: impl Into<Arc<dyn Verbs>>) -> Self {
        Self {
            verbs: verbs.into(),
            end: None,
        }
    }

    /// With `end`, which is called when the scenario has ended, in whatever way. A problem that it
    /// finds is a failure of the scenario, along with the others.
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

impl fmt::Debug for Fixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let watched = self.end.is_some();
        f.debug_struct("Fixture")
            .field("watched", &watched)
            .finish()
    }
}
