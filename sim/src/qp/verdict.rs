//! What one side of a queue pair returns about the whole.

use verbs_api::lab::Syndrome;
use verbs_api::{AsyncEventType, WcStatus};

use crate::device::Delivery;

/// The queue pair has to stop. Its sides return this instead of stopping it themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A send failed (QP-STATE-15, -17).
    Sends,
    /// Neither side can continue.
    All,
    /// Neither side can continue because the peer has ended the connection.
    Over,
    /// Neither side can continue because a completion is missing, which `QP_FATAL` reports
    /// (CQ-OVR-04).
    Fatal,
}

impl Stop {
    /// The effect of a receive's completion on its queue pair.
    pub(super) fn after_receive(delivery: Delivery) -> Result<(), Self> {
        match delivery {
            Delivery::Made => Ok(()),
            Delivery::Failed | Delivery::Dropped => Err(Self::All),
            Delivery::Fatal => Err(Self::Fatal),
        }
    }

    /// The effect of a send's completion on its queue pair.
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
    /// Its memory was deregistered on the way. The packet counts as lost.
    Lost,
    /// It cannot be carried out. The receive it would have consumed completes with `recv`, if there
    /// is one.
    Fault {
        /// The answer to the requester, if it gets one.
        syndrome: Option<Syndrome>,
        recv: Option<WcStatus>,
        event: Option<AsyncEventType>,
    },
}

impl Refusal {
    /// The requester gets no answer.
    pub(super) const SILENT: Self = Self::fault(None, None);
    /// A fault on the responder's side.
    pub(super) const CANNOT: Self = Self::fault(Some(Syndrome::NakRemoteOperation), None);
    /// The request is not valid here.
    pub(super) const INVALID: Self = Self::fault(Some(Syndrome::NakInvalidRequest), None);

    /// A fault without an event of its own.
    pub(super) const fn fault(syndrome: Option<Syndrome>, recv: Option<WcStatus>) -> Self {
        Self::Fault {
            syndrome,
            recv,
            event: None,
        }
    }
}
