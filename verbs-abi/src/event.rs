//! Asynchronous events.

use verbs_api::AsyncEventType;

structures! {
    /// `element` is a pointer, or a port number in its lower half.
    ibv_async_event { element: usize, event_type: u32 }
}

/// What an event is of, which its type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementType {
    /// A completion queue.
    Cq,
    /// A queue pair.
    Qp,
    /// A shared receive queue.
    Srq,
    /// A port.
    Port,
    /// The device, or an object that verbsim does not have.
    Device,
}

impl ElementType {
    /// By `enum ibv_event_type`.
    pub fn of(event_type: AsyncEventType) -> Self {
        use AsyncEventType as Type;
        match event_type {
            Type::CqErr => Self::Cq,
            Type::QpFatal
            | Type::QpReqErr
            | Type::QpAccessErr
            | Type::CommEst
            | Type::SqDrained
            | Type::PathMig
            | Type::PathMigErr
            | Type::QpLastWqeReached => Self::Qp,
            Type::SrqErr | Type::SrqLimitReached => Self::Srq,
            Type::PortActive
            | Type::PortErr
            | Type::LidChange
            | Type::PkeyChange
            | Type::SmChange
            | Type::ClientReregister
            | Type::GidChange
            | Type::DeviceSpeedChange => Self::Port,
            _ => Self::Device,
        }
    }
}
