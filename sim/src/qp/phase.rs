//! The state of a requester towards its peer.
//!
//! ```text
//!                        progress    a response is lost         no receive there   the timer fires
//!     Sending            Sending     Recovering, again          Waiting            Sending, again
//!     Recovering         Sending     Recovering                 WaitingToRecover   Sending, again
//!     Waiting            Waiting     WaitingToRecover, again    Waiting            Sending
//!     WaitingToRecover   Waiting     WaitingToRecover           WaitingToRecover   Recovering
//! ```
//!
//! *Again*: what may be lost is transmitted once more, which costs a retry (TMR-03).

use Phase::{Recovering, Sending, Waiting, WaitingToRecover};

/// The state of a requester towards its peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It transmits pending sends.
    #[default]
    Sending,
    /// A read is retried, and no response of the new try has arrived. Other missing answers are due
    /// to the same loss.
    Recovering,
    /// The peer had no receive (RNR-01). Nothing is transmitted until the timer fires.
    Waiting,
    /// Like `Waiting`. After that the read is retried.
    WaitingToRecover,
}

impl Phase {
    /// Whether transmission is paused until the peer has a receive.
    pub(super) fn waits(self) -> bool {
        matches!(self, Waiting | WaitingToRecover)
    }

    /// Something was acknowledged.
    pub(super) fn progress(&mut self) {
        *self = match self {
            Sending | Recovering => Sending,
            Waiting | WaitingToRecover => Waiting,
        };
    }

    /// A later answer shows that a response is lost. Returns whether this was not known.
    pub(super) fn response_lost(&mut self) -> bool {
        let is_news = matches!(self, Sending | Waiting);
        *self = match self {
            Sending | Recovering => Recovering,
            Waiting | WaitingToRecover => WaitingToRecover,
        };
        is_news
    }

    /// The peer asks to wait.
    pub(super) fn wait(&mut self) {
        *self = match self {
            Sending | Waiting => Waiting,
            Recovering | WaitingToRecover => WaitingToRecover,
        };
    }

    /// The timer fired. Returns whether something may be lost.
    pub(super) fn timer_fired(&mut self) -> bool {
        let may_be_lost = !self.waits();
        *self = match self {
            Sending | Recovering | Waiting => Sending,
            WaitingToRecover => Recovering,
        };
        may_be_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TMR-03, RNR-01: the table in the module's documentation, with the result of each event.
    #[test]
    fn phases_follow_their_table() {
        let progress = |phase: &mut Phase| {
            phase.progress();
            false
        };
        let wait = |phase: &mut Phase| {
            phase.wait();
            false
        };
        type Event<'a> = &'a dyn Fn(&mut Phase) -> bool;
        let events: [Event<'_>; 4] = [&progress, &Phase::response_lost, &wait, &Phase::timer_fired];
        let again = |phase| (phase, true);
        let only = |phase| (phase, false);
        let waits = only(WaitingToRecover);
        let table = [
            (
                Sending,
                [
                    only(Sending),
                    again(Recovering),
                    only(Waiting),
                    again(Sending),
                ],
            ),
            (
                Recovering,
                [only(Sending), only(Recovering), waits, again(Sending)],
            ),
            (
                Waiting,
                [
                    only(Waiting),
                    again(WaitingToRecover),
                    only(Waiting),
                    only(Sending),
                ],
            ),
            (
                WaitingToRecover,
                [only(Waiting), waits, waits, only(Recovering)],
            ),
        ];
        for (from, row) in table {
            for (number, (event, expected)) in events.iter().zip(row).enumerate() {
                let mut phase = from;
                let says = event(&mut phase);
                assert_eq!((phase, says), expected, "{from:?}, event {number}");
            }
        }
    }
}
