//! libibverbs: the functions of `verbs.h` and the operations of contexts, a file for each kind of
//! object. It names `base`, `c` and the engine.
//!
//! | file | holds |
//! |---|---|
//! | `device`, `context`, `open` | the list of devices; contexts, and opening them |
//! | `query`, `sysfs` | attributes of devices and ports, by verbs and as files of Linux |
//! | `domain`, `xrc` | protection, parent, thread and XRC domains |
//! | `exclusive` | objects for one thread at a time |
//! | `region`, `mapped`, `mw`, `buffer`, `dm` | memory: regions, windows, buffers, device memory |
//! | `cq`, `iteration`, `cq_ex` | completion queues; extended ones |
//! | `srq`, `ah` | shared receive queues; address handles |
//! | `qp`, `qp_ex`, `ece` | queue pairs; those for batches and of XRC_RECV; their options |
//! | `list`, `post` | lists of work requests; posting them |
//! | `batch`, `wr` | batches (`ibv_wr_*`) |
//! | `event` | asynchronous events |
//! | `text` | names, rates, files |
//! | `absent` | functions that no device supports |

pub(crate) mod absent;
pub(crate) mod ah;
pub(crate) mod batch;
pub(crate) mod buffer;
pub(crate) mod context;
pub(crate) mod cq;
pub(crate) mod cq_ex;
pub(crate) mod device;
pub(crate) mod dm;
pub(crate) mod domain;
pub(crate) mod ece;
pub(crate) mod event;
pub(crate) mod exclusive;
pub(crate) mod iteration;
pub(crate) mod list;
pub(crate) mod mapped;
pub(crate) mod mw;
pub(crate) mod open;
pub(crate) mod post;
pub(crate) mod qp;
pub(crate) mod qp_ex;
pub(crate) mod query;
pub(crate) mod region;
pub(crate) mod srq;
pub(crate) mod sysfs;
pub(crate) mod text;
pub(crate) mod wr;
pub(crate) mod xrc;
