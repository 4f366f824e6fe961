//! The locks of the simulator: those of [`verbs_api::sync`], which a model checker can exchange.

pub(crate) use verbs_api::sync::thread::{self, ThreadId};
pub(crate) use verbs_api::sync::{CHECKED, Condvar, Mutex, MutexGuard};
