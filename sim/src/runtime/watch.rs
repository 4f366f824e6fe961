//! The callback for new mistakes, which is called without the lock.

use core::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::diagnosis::Finding;
use crate::fabric::Fabric;

/// A callback for each new mistake.
pub struct Watch {
    /// A node has a new mistake.
    pub(crate) is_any: Arc<AtomicBool>,
    pub(crate) tell: Box<dyn Fn(&Finding) + Send + Sync>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
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
