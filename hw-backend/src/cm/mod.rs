//! rdma_cm, over librdmacm.
//!
//! | module | holds |
//! |---|---|
//! | `objects` | channels and ids, with the events that were read and not acknowledged |
//! | `manager` | the backend as rdma_cm sees it; finding objects by their handles |
//! | `devices` | the contexts that the library opens and keeps |
//! | `events` | events, until they are acknowledged |
//! | `qp` | queue pairs of ids |
//! | `calls` | the trait `Cm` |
//! | `rc` | connecting two queue pairs of this process, for transports that need it |

mod calls;
mod devices;
mod events;
mod manager;
pub(crate) mod objects;
mod qp;
pub(crate) mod rc;
