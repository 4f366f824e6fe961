//! How a requester stands with its peer.
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

/// How a requester stands with its peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It transmits what there is.
    #[default]
    Sending,
    /// A read is tried again, and no response of the new try has come: what else is missing is
    /// missing for the same loss.
    Recovering,
    /// The peer had no receive (RNR-01): nothing is transmitted until the timer fires.
    Waiting,
    /// As above, and then the read is tried again.
    WaitingToRecover,
}

impl Phase {
    /// Whether nothing is transmitted for want of a receive.
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

    /// A later answer shows that a response is lost. Whether that is news.
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

    /// The timer fired. Whether something may be lost.
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

    /// TMR-03, RNR-01: the table above, with what each event says.
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
