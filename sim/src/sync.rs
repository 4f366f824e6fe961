//! The locks of the simulator, named in one place so that they can be exchanged as one.

pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
