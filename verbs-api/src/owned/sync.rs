//! The locks of this layer, named in one place so that they can be exchanged as one.

pub(super) use parking_lot::{Mutex, MutexGuard};
