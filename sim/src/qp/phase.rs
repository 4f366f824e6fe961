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

use std::mem;

/// The state of a requester towards its peer. In `Sending` of the table it neither waits nor
/// recovers, in `WaitingToRecover` both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Phase {
    /// The peer had no receive (RNR-01). Nothing is transmitted until the timer fires.
    pub(super) waits: bool,
    /// A read is retried, and no response of the new try has arrived. Other missing answers are due
    /// to the same loss.
    recovers: bool,
}

impl Phase {
    /// Something was acknowledged.
    pub(super) fn progress(&mut self) {
        self.recovers = false;
    }

    /// A later answer shows that a response is lost. Returns whether this was not known.
    pub(super) fn response_lost(&mut self) -> bool {
        !mem::replace(&mut self.recovers, true)
    }

    /// The peer asks to wait.
    pub(super) fn wait(&mut self) {
        self.waits = true;
    }

    /// The timer fired. Returns whether something may be lost.
    pub(super) fn timer_fired(&mut self) -> bool {
        let waited = mem::take(&mut self.waits);
        // After a wait the read is still to be recovered.
        self.recovers &= waited;
        !waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn phase(waits: bool, recovers: bool) -> Phase {
        Phase { waits, recovers }
    }

    const SENDING: Phase = phase(false, false);
    const RECOVERING: Phase = phase(false, true);
    const WAITING: Phase = phase(true, false);
    const WAITING_TO_RECOVER: Phase = phase(true, true);

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
        let waits = only(WAITING_TO_RECOVER);
        let table = [
            (
                SENDING,
                [
                    only(SENDING),
                    again(RECOVERING),
                    only(WAITING),
                    again(SENDING),
                ],
            ),
            (
                RECOVERING,
                [only(SENDING), only(RECOVERING), waits, again(SENDING)],
            ),
            (
                WAITING,
                [
                    only(WAITING),
                    again(WAITING_TO_RECOVER),
                    only(WAITING),
                    only(SENDING),
                ],
            ),
            (
                WAITING_TO_RECOVER,
                [only(WAITING), waits, waits, only(RECOVERING)],
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
