//! Errors of the functions behind `verbsim.h`.

use std::ffi::c_int;

use verbs_api::Error;
use verbs_faults::PlanError;

use crate::base::output::say;
use crate::c::result::{self, Refusal, guarded};

/// The reason why a call does nothing.
#[derive(Debug)]
pub(super) struct Wrong {
    errno: c_int,
    what: String,
}

impl Wrong {
    pub(super) fn new(errno: c_int, what: impl Into<String>) -> Self {
        let what = what.into();
        Self { errno, what }
    }

    pub(super) fn invalid(what: impl Into<String>) -> Self {
        Self::new(libc::EINVAL, what)
    }
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Self::new(error.errno(), error.cause().to_string())
    }
}

impl From<PlanError> for Wrong {
    fn from(error: PlanError) -> Self {
        Self::invalid(error.to_string())
    }
}

/// Runs a call. Returns its result, or an errno value below zero and a line on the standard error.
pub(super) fn answer(call: &'static str, work: impl FnOnce() -> Result<i64, Wrong>) -> i64 {
    let answer = guarded(call, (), |()| -> result::Result<i64> {
        work().map_err(|wrong| {
            say(format_args!("{call}: {}", wrong.what));
            Refusal::expected(wrong.errno)
        })
    });
    answer.unwrap_or_else(|errno| -i64::from(errno.abs()))
}
