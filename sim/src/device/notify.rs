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

use verbs_api::Arm;
use verbs_api::behavior::{Behavior, ErrorFires};
use verbs_api::lab::ArmState;

/// The properties of an added completion that matter to arming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Added {
    /// Whether it is of a receive, not of a send.
    pub(crate) recv: bool,
    /// Whether its status is success.
    pub(crate) success: bool,
    /// Whether its status is that of flushed work.
    pub(crate) flushed: bool,
    /// Whether the sender set the solicited bit, or for a send, the work request did.
    pub(crate) solicited: bool,
}

impl Added {
    /// Whether it satisfies a solicited-only request.
    pub(crate) fn is_solicited(self, behavior: &Behavior) -> bool {
        // Drivers differ in whether a send can be solicited.
        let marked = self.solicited
            && if self.recv {
                behavior.recv_se_fires
            } else {
                behavior.send_se_fires_local
            };
        let failed = !self.success
            && match behavior.error_fires_solicited {
                ErrorFires::Receives => self.recv,
                ErrorFires::FlushedReceives => self.recv && self.flushed,
                ErrorFires::None => false,
                ErrorFires::All | _ => true,
            };
        failed || marked
    }
}

/// The arm state of one CQ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notify {
    state: ArmState,
}

impl Notify {
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(crate) fn state(self) -> ArmState {
        self.state
    }

    /// `ibv_req_notify_cq`.
    pub(crate) fn arm(&mut self, arm: Arm, behavior: &Behavior) {
        self.state = match (self.state, arm.solicited_only()) {
            (_, false) => ArmState::Next,
            // A solicited-only request does not weaken a request for the next completion.
            (ArmState::Next, true) if !behavior.arm_downgrade => ArmState::Next,
            (_, true) => ArmState::Solicited,
        };
    }

    /// Whether an event was requested for this completion.
    pub(crate) fn is_asked(self, added: Added, behavior: &Behavior) -> bool {
        match self.state {
            ArmState::Off => false,
            ArmState::Next => true,
            ArmState::Solicited => added.is_solicited(behavior),
        }
    }

    /// Handles an added completion. Returns whether it makes an event, which unarms the CQ.
    pub(crate) fn added(&mut self, added: Added, behavior: &Behavior) -> bool {
        let fires = self.is_asked(added, behavior);
        if fires {
            self.state = ArmState::Off;
        }
        fires
    }
}
