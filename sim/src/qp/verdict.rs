//! What one side of a queue pair says of the whole.

use verbs_api::lab::Syndrome;
use verbs_api::{AsyncEventType, WcStatus};

use crate::device::Delivery;

/// The queue pair has to stop: what its sides return in place of stopping it themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A send failed (QP-STATE-15, -17).
    Sends,
    /// Neither side can go on.
    All,
    /// As above, for want of a completion, which `QP_FATAL` stands for (CQ-OVR-04).
    Fatal,
}

impl Stop {
    /// What the completion of a receive does to its queue pair.
    pub(super) fn after_receive(delivery: Delivery) -> Result<(), Self> {
        match delivery {
            Delivery::Made => Ok(()),
            Delivery::Failed | Delivery::Dropped => Err(Self::All),
            Delivery::Fatal => Err(Self::Fatal),
        }
    }

    /// What the completion of a send does to its queue pair.
    pub(super) fn after_send(delivery: Delivery, status: WcStatus) -> Result<(), Self> {
        match delivery {
            Delivery::Fatal => Err(Self::Fatal),
            Delivery::Failed => Err(Self::Sends),
            Delivery::Made | Delivery::Dropped if status == WcStatus::Success => Ok(()),
            Delivery::Made | Delivery::Dropped => Err(Self::Sends),
        }
    }
}

/// Why a request was not carried out.
#[derive(Clone, Copy, Debug)]
pub(super) enum Refusal {
    /// No receive is posted.
    NotReady,
    /// Its memory went away on the way: as if the packet were lost.
    Lost,
    /// It cannot be done. The receive it would have consumed completes with this status, if there
    /// is one.
    Fault {
        /// How the requester learns of it, if it does.
        syndrome: Option<Syndrome>,
        recv: Option<WcStatus>,
        event: Option<AsyncEventType>,
    },
}

impl Refusal {
    /// The requester learns nothing.
    pub(super) const SILENT: Self = Self::Fault {
        syndrome: None,
        recv: None,
        event: None,
    };
    /// A fault on the responder's side.
    pub(super) const CANNOT: Self = Self::answered(Syndrome::NakRemoteOperation);
    /// The request makes no sense here.
    pub(super) const INVALID: Self = Self::answered(Syndrome::NakInvalidRequest);

    const fn answered(syndrome: Syndrome) -> Self {
        Self::Fault {
            syndrome: Some(syndrome),
            recv: None,
            event: None,
        }
    }

    /// The requester learns this, and the receive fails.
    pub(super) const fn with_receive(syndrome: Syndrome, status: WcStatus) -> Self {
        Self::Fault {
            syndrome: Some(syndrome),
            recv: Some(status),
            event: None,
        }
    }
}
