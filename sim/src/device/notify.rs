//! Arming: which completions make an event when they are added.
//!
//! As `ibv_req_notify_cq` defines it: a notification is requested for the next completion of the
//! requested type that is added to the CQ *after* the call. Solicited-only means a receive whose
//! sender set the solicited bit, or any unsuccessful completion. A request for the next completion
//! takes precedence over one for a solicited completion. After one notification the CQ is unarmed.
//!
//! ```text
//!            arm next              arm next
//!     off ------------> next <-------------- solicited
//!      |                 |  ^                  |    ^
//!      | arm solicited   |  | arm solicited    |    | arm solicited
//!      +-----------------|--+-- (stays) -------|----+
//!                        |                     |
//!        any completion  |                     | solicited or unsuccessful completion
//!                        +------> off <--------+
//! ```

use verbs_api::behavior::{Behavior, ErrorFires};
use verbs_api::lab::ArmState;
use verbs_api::{Arm, WcStatus};

/// Whether a completion satisfies a solicited-only request. `recv` is whether it is of a receive,
/// and `marked` whether the sender set the solicited bit, or for a send, the work request did.
pub(crate) fn is_solicited(
    behavior: &Behavior,
    recv: bool,
    status: WcStatus,
    marked: bool,
) -> bool {
    // Drivers differ in whether a send can be solicited.
    let is_marked = marked
        && if recv {
            behavior.recv_se_fires
        } else {
            behavior.send_se_fires_local
        };
    let has_failed = status != WcStatus::Success
        && match behavior.error_fires_solicited {
            ErrorFires::Receives => recv,
            ErrorFires::FlushedReceives => recv && status == WcStatus::WrFlushErr,
            ErrorFires::None => false,
            ErrorFires::All | _ => true,
        };
    has_failed || is_marked
}

/// The arm state of one CQ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notify {
    pub(super) state: ArmState,
}

impl Notify {
    /// `ibv_req_notify_cq`.
    pub(crate) fn arm(&mut self, arm: Arm, behavior: &Behavior) {
        self.state = match (self.state, arm.solicited_only()) {
            (_, false) => ArmState::Next,
            // A solicited-only request does not weaken a request for the next completion.
            (ArmState::Next, true) if !behavior.arm_downgrade => ArmState::Next,
            (_, true) => ArmState::Solicited,
        };
    }

    /// Whether an event was requested for a completion, which may be solicited.
    pub(crate) fn is_asked(self, solicited: bool) -> bool {
        match self.state {
            ArmState::Off => false,
            ArmState::Next => true,
            ArmState::Solicited => solicited,
        }
    }

    /// Handles an added completion. Returns whether it makes an event, which unarms the CQ.
    pub(crate) fn added(&mut self, solicited: bool) -> bool {
        let fires = self.is_asked(solicited);
        if fires {
            self.state = ArmState::Off;
        }
        fires
    }
}
