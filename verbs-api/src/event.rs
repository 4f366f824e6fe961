//! Asynchronous events, and what has events.

use core::fmt;

use crate::c_enum::c_enum;
use crate::error::Verb;
use crate::handle::{CmChannel, CompChannel, Context, Cq, Qp, Srq};

/// An asynchronous event (`struct ibv_async_event`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AsyncEvent {
    /// The event.
    pub event_type: AsyncEventType,
    /// The object, port or device that it is about.
    pub element: Element,
}

impl AsyncEvent {
    /// An event, for backends, and to compare one with.
    pub const fn new(event_type: AsyncEventType, element: Element) -> Self {
        Self {
            event_type,
            element,
        }
    }
}

impl fmt::Display for AsyncEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.event_type, self.element)
    }
}

/// A queue of events, which a task can wait for: [`Verbs::wake_on`](crate::Verbs::wake_on).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventSource {
    /// The events of a completion channel.
    CompChannel(CompChannel),
    /// The asynchronous events of a context.
    Async(Context),
    /// The events of a channel of rdma_cm.
    CmChannel(CmChannel),
}

impl EventSource {
    /// The verb that takes an event from it.
    pub const fn verb(self) -> Verb {
        match self {
            Self::CompChannel(_) => Verb::GetCqEvent,
            Self::Async(_) => Verb::GetAsyncEvent,
            Self::CmChannel(_) => Verb::CmGetEvent,
        }
    }
}

/// The subject of an asynchronous event (its union `element`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Element {
    /// The device.
    Device,
    /// A port, from 1.
    Port(u8),
    /// A completion queue.
    Cq(Cq),
    /// A queue pair.
    Qp(Qp),
    /// A shared receive queue.
    Srq(Srq),
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device => f.write_str("device"),
            Self::Port(port) => write!(f, "port {port}"),
            Self::Cq(cq) => cq.fmt(f),
            Self::Qp(qp) => qp.fmt(f),
            Self::Srq(srq) => srq.fmt(f),
        }
    }
}

c_enum! {
    /// Kind of an asynchronous event (`enum ibv_event_type`, ASYNC-22).
    AsyncEventType {
        /// A CQ has overrun.
        CqErr = 0, "CQ_ERR";
        /// A QP failed and could not report that by a completion.
        QpFatal = 1, "QP_FATAL";
        /// A responder found an invalid request.
        QpReqErr = 2, "QP_REQ_ERR";
        /// A responder detected an access violation.
        QpAccessErr = 3, "QP_ACCESS_ERR";
        /// A message arrived on a QP in RTR.
        CommEst = 4, "COMM_EST";
        /// A send queue has drained.
        SqDrained = 5, "SQ_DRAINED";
        /// A path has migrated.
        PathMig = 6, "PATH_MIG";
        /// A path failed to migrate.
        PathMigErr = 7, "PATH_MIG_ERR";
        /// The device is dead.
        DeviceFatal = 8, "DEVICE_FATAL";
        /// A port became usable.
        PortActive = 9, "PORT_ACTIVE";
        /// A port became unusable.
        PortErr = 10, "PORT_ERR";
        /// A LID changed.
        LidChange = 11, "LID_CHANGE";
        /// The P_Key table changed.
        PkeyChange = 12, "PKEY_CHANGE";
        /// The subnet manager changed.
        SmChange = 13, "SM_CHANGE";
        /// A shared receive queue failed.
        SrqErr = 14, "SRQ_ERR";
        /// A shared receive queue fell below its limit.
        SrqLimitReached = 15, "SRQ_LIMIT_REACHED";
        /// A QP took its last receive from a shared receive queue.
        QpLastWqeReached = 16, "QP_LAST_WQE_REACHED";
        /// The subnet manager asks clients to register again.
        ClientReregister = 17, "CLIENT_REREGISTER";
        /// The GID table changed.
        GidChange = 18, "GID_CHANGE";
        /// A work queue failed.
        WqFatal = 19, "WQ_FATAL";
        /// A port's speed changed.
        DeviceSpeedChange = 20, "DEVICE_SPEED_CHANGE";
    }
}
