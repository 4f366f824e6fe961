//! Whether a program goes on after work that failed: a diagnosis takes a failure that it has handled for no mistake.

use super::history::{FailedWork, History};

/// How a program has dealt with work that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    #[default]
    Open,
    /// It has polled the failure, and then given its queue pair up, as the one of this number.
    GivenUp(u32),
    /// Work that it has posted since then has succeeded.
    Handled,
}

/// How many queue pairs with failed work a program has given up, and for which of them no work has succeeded yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery {
    given_up: u32,
    is_awaited: bool,
}

impl Recovery {
    /// How many queue pairs with failed work have been given up.
    pub(crate) fn given_up(&self) -> u32 {
        self.given_up
    }

    /// Whether work that succeeds tells that the program goes on.
    #[inline(always)]
    pub(crate) fn is_awaited(&self) -> bool {
        self.is_awaited
    }
}

impl History {
    /// The program gives a queue pair up whose failure it has polled: it destroys it, or takes it to RESET or ERR.
    #[cold]
    pub(crate) fn give_up(&mut self, qp_num: u32) {
        let is_of_it = |failure: &&mut FailedWork| {
            failure.qp_num == qp_num && failure.standing == Standing::Open
        };
        let number = self.recovery.given_up + 1;
        for failure in self.failures.iter_mut().filter(is_of_it) {
            failure.standing = Standing::GivenUp(number);
            self.recovery.is_awaited = true;
        }
        self.recovery.given_up = number;
    }

    /// Work has succeeded that was posted after so many queue pairs were given up.
    #[cold]
    pub(crate) fn go_on(&mut self, given_up: u32) {
        self.recovery.is_awaited = false;
        for failure in &mut self.failures {
            match failure.standing {
                Standing::GivenUp(number) if number <= given_up => {
                    failure.standing = Standing::Handled;
                }
                Standing::GivenUp(_) => self.recovery.is_awaited = true,
                Standing::Open | Standing::Handled => {}
            }
        }
    }
}
