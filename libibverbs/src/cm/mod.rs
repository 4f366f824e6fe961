//! librdmacm: connections by rdma_cm. It names `verbs` and what `verbs` names.
//!
//! The engine does the work of the kernel, and the changes that librdmacm makes to queue pairs.
//! This folder has the view of programs: structures, pointers, ids that wait by themselves,
//! endpoints.
//!
//! | file | holds |
//! |---|---|
//! | `channel`, `unacknowledged` | event channels; events until they are acknowledged |
//! | `device`, `cqs` | contexts and CQs that are made for ids |
//! | `id`, `event` | ids and their structures; reading events |
//! | `address` | binding and resolving, options, ports |
//! | `connect`, `ece`, `group` | connections; the options that they carry; multicast |
//! | `qp` | queue pairs of ids, with their CQs and SRQs |
//! | `sync` | endpoints |
//! | `addrinfo`, `resolved` | names of hosts; those that an id resolves with an event |
//! | `rsocket` | sockets over RDMA, which are not supported |

pub(crate) mod address;
pub(crate) mod addrinfo;
pub(crate) mod channel;
pub(crate) mod connect;
mod cqs;
pub(crate) mod device;
pub(crate) mod ece;
pub(crate) mod event;
pub(crate) mod group;
pub(crate) mod id;
pub(crate) mod qp;
pub(crate) mod resolved;
pub(crate) mod rsocket;
pub(crate) mod sync;
mod unacknowledged;
