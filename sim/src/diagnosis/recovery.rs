//! Whether a program continues after work that failed. A handled failure is not a mistake.

use super::fact::Standing;
use super::journal::Journal;

/// The queue pairs with failed work that a program has given up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery {
    /// Their number.
    pub(crate) given_up: u32,
    /// The first one after which no work has succeeded yet.
    first_awaited: Option<u32>,
}

impl Recovery {
    /// Whether a success would show that the program continues.
    #[inline(always)]
    pub(crate) fn is_awaited(&self) -> bool {
        self.first_awaited.is_some()
    }
}

impl Journal {
    /// The program polls a completion with an error. Completions of one queue come in order, so it
    /// has seen all recorded failures of that queue.
    #[cold]
    pub(crate) fn see_failure(&mut self, qp_num: u32, receive: bool) {
        for failure in &mut self.failures {
            if (failure.qp_num, failure.receive) == (qp_num, receive)
                && failure.standing == Standing::Open
            {
                failure.standing = Standing::Polled;
            }
        }
    }

    /// The program gives a queue pair up: it destroys it, or moves it to RESET or ERR.
    #[cold]
    pub(crate) fn give_up(&mut self, qp_num: u32) {
        let number = self.recovery.given_up + 1;
        self.recovery.given_up = number;
        for failure in &mut self.failures {
            if failure.qp_num == qp_num && failure.standing == Standing::Polled {
                failure.standing = Standing::GivenUp(number);
                self.recovery.first_awaited.get_or_insert(number);
            }
        }
    }

    /// Work has succeeded that was posted after this number of queue pairs were given up.
    #[cold]
    pub(crate) fn go_on(&mut self, given_up: u32) {
        let awaited = self.recovery.first_awaited;
        if awaited.is_none_or(|first| first > given_up) {
            return;
        }
        // Later failures may still wait for a success.
        self.recovery.first_awaited = None;
        for failure in &mut self.failures {
            if let Standing::GivenUp(number) = failure.standing {
                if number <= given_up {
                    failure.standing = Standing::Handled;
                } else {
                    let first = self.recovery.first_awaited.get_or_insert(number);
                    *first = number.min(*first);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use verbs_api::WcStatus;

    use super::super::fact::FailedWork;
    use super::*;
    use crate::time::Time;

    fn failed(qp_num: u32, receive: bool) -> FailedWork {
        FailedWork {
            qp_num,
            receive,
            label: 0,
            status: WcStatus::RetryExcErr,
            why: None,
            asked: None,
            at: Time::default(),
            site: None,
            standing: Standing::default(),
        }
    }

    #[test]
    fn a_failure_is_handled_only_if_its_own_queue_was_polled() {
        let mut journal = Journal::default();
        journal.failures = vec![failed(1, false), failed(1, true), failed(2, false)];
        journal.see_failure(1, true);
        journal.give_up(1);
        journal.give_up(2);
        assert!(journal.recovery.is_awaited());
        journal.go_on(0);
        assert!(journal.recovery.is_awaited(), "that was posted before");
        journal.go_on(1);
        let standing = journal.failures.iter().map(|failure| failure.standing);
        let expected = [Standing::Open, Standing::Handled, Standing::Open];
        assert_eq!(standing.collect::<Vec<_>>(), expected);
        assert!(!journal.recovery.is_awaited());
    }
}
