//! rdma_cm: how queue pairs of programs that know nothing of each other are connected.
//!
//! | | |
//! |---|---|
//! | [`Cm`] | the trait ([`Verbs::cm`](crate::Verbs::cm)) |
//! | [`CmChannel`], [`CmId`] | `Copy` names of its objects |
//! | [`CmEvent`], [`CmEventType`], [`CmParam`] | what happens |
//! | [`ConnParam`], [`CmIdAttr`], [`CmOption`], [`PortSpace`] | what calls take and tell |
//! | [`private_data`] | how much of it there is room for |
//!
//! A client resolves an address and a route, makes its queue pair and connects. A server listens,
//! gets a request as an event with an id of its own, makes its queue pair there and accepts. Both
//! get `ESTABLISHED`.

mod event;
mod id;
mod param;

use core::net::SocketAddr;
use core::time::Duration;
#[cfg(unix)]
use std::os::fd::OwnedFd;

use crate::ece::Ece;
use crate::error::Result;
#[cfg(unix)]
use crate::error::Verb;
use crate::event::AsyncEventType;
use crate::handle::{Context, Pd, Qp};
use crate::qp::{QpAttr, QpAttrMask, QpInit, QpState};
use crate::verbs::Wait;
#[cfg(unix)]
use crate::verbs::unsupported;

pub use crate::handle::{CmChannel, CmId};
pub use event::{CmEvent, CmEventType, CmParam, ConnData, UdData};
pub use id::{CmIdAttr, CmOption, PortSpace};
pub use param::{ConnParam, RDMA_MAX_INIT_DEPTH, RDMA_MAX_RESP_RES, RDMA_UDP_QKEY, private_data};

/// The librdmacm of a process: connection management along with [`Verbs`](crate::Verbs), and
/// object-safe like it.
///
/// Ids are asynchronous: what a call starts ends with an event on the id's channel. A call in the
/// wrong state is `Invalid` and changes nothing (CM-10). Calls give
/// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a handle that is zero or stale. That is
/// not repeated below.
///
/// Each device is opened once for all ids. Its context, and the protection domain that comes with
/// it, are those of [`query_id`](Self::query_id); they stay open, and a program does not close
/// them.
pub trait Cm: Send + Sync {
    /// A context of each device, in the order of the device list (`rdma_get_devices`, CM-01). Ids
    /// that are bound to a device have the same.
    fn cm_devices(&self) -> Result<Vec<Context>>;

    /// Creates an event channel (`rdma_create_event_channel`).
    ///
    /// # Errors
    /// `TooManyFiles`; `NoDevice` if the machine has no rdma_cm.
    fn create_event_channel(&self) -> Result<CmChannel>;

    /// Removes an event channel (`rdma_destroy_event_channel`).
    ///
    /// # Errors
    /// `Busy` while an id has it: the C library does not look.
    fn destroy_event_channel(&self, channel: CmChannel) -> Result<()>;

    /// Creates an id whose events go to `channel` (`rdma_create_id`). `context` is the caller's own
    /// value; ids of requests have that of their listener (CM-24).
    fn create_id(&self, channel: CmChannel, context: u64, ps: PortSpace) -> Result<CmId>;

    /// The fields of `struct rdma_cm_id`, with `rdma_get_local_addr`, `rdma_get_peer_addr`,
    /// `rdma_get_src_port` and `rdma_get_dst_port`.
    fn query_id(&self, id: CmId) -> Result<CmIdAttr>;

    /// Removes an id (`rdma_destroy_id`). Waits until its events that were read have been
    /// acknowledged (CM-50); those that were not read vanish (CM-51). A peer that it is connected
    /// to gets `DISCONNECTED`, one that waits for it `REJECTED`. Programs destroy its QP first. In
    /// the simulator a QP that is left stays, as one that
    /// [`Verbs::create_qp`](crate::Verbs::create_qp) has made.
    ///
    /// # Errors
    /// `Busy` on hardware while it has a QP, whatever `wait` is: the C library does not look.
    /// `WouldBlock`, `TimedOut`; in the simulator `Stalled` if no other thread can acknowledge.
    fn destroy_id(&self, id: CmId, wait: Wait) -> Result<()>;

    /// Moves an id with its unread events to another channel (`rdma_migrate_id`, CM-53). Waits as
    /// [`destroy_id`](Self::destroy_id) does.
    fn migrate_id(&self, id: CmId, channel: CmChannel, wait: Wait) -> Result<()>;

    /// Sets an option of an id (`rdma_set_option`).
    ///
    /// # Errors
    /// `Invalid` in a state in which it can no longer take effect.
    fn set_option(&self, id: CmId, option: CmOption) -> Result<()>;

    // Addresses

    /// Binds an id to an address of this machine (`rdma_bind_addr`, CM-02 and the following). With
    /// port 0 one is chosen. An address of a device binds the id to that device; the unspecified
    /// one does not.
    ///
    /// # Errors
    /// `AddressNotAvailable` for an address that no device here has, and where another id has the
    /// port and one of both addresses is the unspecified one; `AddressInUse` if both are the same.
    fn bind_addr(&self, id: CmId, addr: SocketAddr) -> Result<()>;

    /// Finds the device that leads to `dst`, and binds the id to it and, if it is not bound yet, to
    /// `src` (`rdma_resolve_addr`): `ADDR_RESOLVED`, or `ADDR_ERROR` when `timeout` is over.
    ///
    /// # Errors
    /// As for [`bind_addr`](Self::bind_addr); `NetworkUnreachable` if no network leads there.
    fn resolve_addr(
        &self,
        id: CmId,
        src: Option<SocketAddr>,
        dst: SocketAddr,
        timeout: Duration,
    ) -> Result<()>;

    /// Finds the path (`rdma_resolve_route`): `ROUTE_RESOLVED` or `ROUTE_ERROR`.
    fn resolve_route(&self, id: CmId, timeout: Duration) -> Result<()>;

    // Queue pairs

    /// Creates a QP for an id that is bound to a device (`rdma_create_qp`): in INIT, or in RTS if
    /// it is of UD (CM-30). From then on calls on the id change its state. Without `pd` it is of
    /// the protection domain of [`query_id`](Self::query_id).
    ///
    /// # Errors
    /// `Invalid` for an id that is bound to no device or has a QP, and for objects of another
    /// context; and those of [`Verbs::create_qp`](crate::Verbs::create_qp).
    fn create_cm_qp(&self, id: CmId, pd: Option<Pd>, init: &QpInit) -> Result<Qp>;

    /// Removes the QP of an id (`rdma_destroy_qp`), as
    /// [`Verbs::destroy_qp`](crate::Verbs::destroy_qp) does.
    ///
    /// # Errors
    /// `Invalid` if it has none.
    fn destroy_cm_qp(&self, id: CmId, wait: Wait) -> Result<()>;

    /// The attributes to set on a QP for this state (`rdma_init_qp_attr`), for programs that
    /// make their QPs by [`Verbs::create_qp`](crate::Verbs::create_qp) (CM-36).
    ///
    /// # Errors
    /// `Invalid` for a state that the id cannot tell anything of yet.
    fn init_qp_attr(&self, id: CmId, state: QpState) -> Result<(QpAttr, QpAttrMask)>;

    /// Sets the options that [`connect`](Self::connect) or [`accept`](Self::accept) sends, for
    /// programs that make their QPs by [`Verbs::create_qp`](crate::Verbs::create_qp)
    /// (`rdma_set_local_ece`, ECE-06). Those of a QP of the id are sent by themselves (ECE-08).
    ///
    /// # Errors
    /// `Invalid` for an id with a QP, the vendor 0, and a `comp_mask` that is not 0;
    /// `NotSupported` by a librdmacm older than 1.3.
    fn set_local_ece(&self, id: CmId, ece: &Ece) -> Result<()>;

    /// The options that came with the request or the answer of the peer; zeros if there were none
    /// (`rdma_get_remote_ece`).
    ///
    /// # Errors
    /// `Invalid` for an id with a QP; `NotSupported` by a librdmacm older than 1.3.
    fn get_remote_ece(&self, id: CmId) -> Result<Ece>;

    // Connections

    /// Accepts connection requests (`rdma_listen`). An id that is not bound is bound to all
    /// addresses and to a port that is chosen. At most `backlog` requests wait to be read, or 1024
    /// if `backlog` is not above 0; further requests are dropped, and the peer repeats them. On
    /// iWARP they are refused (CM-27).
    ///
    /// # Errors
    /// `AddressInUse` if another id has the same address and port by [`CmOption::ReuseAddr`].
    fn listen(&self, id: CmId, backlog: i32) -> Result<()>;

    /// Asks the peer for a connection, or in [`PortSpace::Udp`] for its QP (`rdma_connect`):
    /// `ESTABLISHED`, or `CONNECT_RESPONSE` if the id has no QP; `REJECTED`, `UNREACHABLE`, or
    /// `CONNECT_ERROR` if the own QP cannot be connected.
    ///
    /// # Errors
    /// `Invalid` before the route is resolved, twice, for too much private data, and for more
    /// resources than the device has.
    fn connect(&self, id: CmId, param: &ConnParam<'_>) -> Result<()>;

    /// Accepts a request (`rdma_accept`): the QP of the id goes to RTS first (CM-31). `ESTABLISHED`
    /// comes when the peer is ready, and never for datagrams.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect).
    fn accept(&self, id: CmId, param: &ConnParam<'_>) -> Result<()>;

    /// Refuses a request (`rdma_reject`): the peer gets `REJECTED` with this private data.
    ///
    /// # Errors
    /// `Invalid` if there is nothing to refuse, or for too much private data.
    fn reject(&self, id: CmId, private_data: &[u8]) -> Result<()>;

    /// Refuses a request because of its options (`rdma_reject_ece`, ECE-11).
    ///
    /// # Errors
    /// As for [`reject`](Self::reject); `NotSupported` by a librdmacm older than 1.3.
    fn reject_ece(&self, id: CmId, private_data: &[u8]) -> Result<()>;

    /// Says that the own QP is connected, after `CONNECT_RESPONSE` (`rdma_establish`).
    fn establish(&self, id: CmId) -> Result<()>;

    /// Reports an asynchronous event of the QP (`rdma_notify`): `COMM_EST` establishes a connection
    /// whose last message is late (CM-35).
    fn notify(&self, id: CmId, event: AsyncEventType) -> Result<()>;

    /// Ends a connection (`rdma_disconnect`): the QP of the id goes to ERR, and `DISCONNECTED`
    /// comes when the peer has answered. The QP of the peer stays as it is until the peer does the
    /// same (CM-40).
    ///
    /// # Errors
    /// `Invalid` if the id was never connected.
    fn disconnect(&self, id: CmId) -> Result<()>;

    // Multicast

    /// Joins a multicast group by its address (`rdma_join_multicast`): `MULTICAST_JOIN` tells where
    /// to send, with `context`. The QP of the id, if there is one, is attached.
    ///
    /// # Errors
    /// `Invalid` for an id that is bound to no device, of connections, or with a route (CM-79).
    fn join_multicast(&self, id: CmId, group: SocketAddr, context: u64) -> Result<()>;

    /// Leaves a group (`rdma_leave_multicast`).
    ///
    /// # Errors
    /// `AddressNotAvailable` if it was not joined.
    fn leave_multicast(&self, id: CmId, group: SocketAddr) -> Result<()>;

    // Events

    /// Takes the oldest event of a channel (`rdma_get_cm_event`). Each must be acknowledged.
    ///
    /// What an event does to the QP of its id happens here: `CONNECT_RESPONSE` brings it to RTS and
    /// becomes `ESTABLISHED`, `REJECTED` brings it to ERR (CM-33).
    ///
    /// # Errors
    /// `WouldBlock`, `TimedOut`; in the simulator `Stalled` if nothing can bring an event any more.
    fn get_cm_event(&self, channel: CmChannel, wait: Wait) -> Result<CmEvent>;

    /// Queues an event on the channel of an id (`rdma_write_cm_event`), in any state: a program
    /// wakes a thread that waits there. The event has this `status`, and `arg` as its
    /// [`CmParam::Arg`].
    ///
    /// # Errors
    /// `Invalid` for other events than [`CmEventType::User`] and, of the C library itself,
    /// [`CmEventType::AddrinfoResolved`]; `NotSupported` by a librdmacm older than 1.4.
    fn write_event(&self, id: CmId, event: CmEventType, status: i32, arg: u64) -> Result<()>;

    /// Acknowledges an event (`rdma_ack_cm_event`).
    ///
    /// # Errors
    /// `Usage` for one that is acknowledged already.
    fn ack_cm_event(&self, event: &CmEvent) -> Result<()>;

    /// The file descriptor of a channel (the field `fd` of `struct rdma_event_channel`), as
    /// [`Verbs::channel_fd`](crate::Verbs::channel_fd).
    ///
    /// # Errors
    /// `NotSupported` without [`Capabilities::FD`](crate::Capabilities::FD); `TooManyFiles`.
    #[cfg(unix)]
    fn event_channel_fd(&self, _channel: CmChannel) -> Result<OwnedFd> {
        Err(unsupported(Verb::CmChannelFd, "has no file descriptors"))
    }
}
