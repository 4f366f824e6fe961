//! The checks of `device`, with the verb that they refuse.

use verbs_api::{BadHandle, Error, Object, Result, Verb};

use crate::device::{self, Answer, Refused};

pub(super) fn bad_handle(verb: Verb, object: Object, problem: BadHandle) -> Error {
    device::bad_handle(object, problem).by(verb)
}

pub(super) fn invalid(verb: Verb, what: &'static str, problem: &'static str) -> Error {
    device::invalid(what, problem).by(verb)
}

pub(super) fn in_use(verb: Verb, object: Object, by: Object, count: u32) -> Error {
    device::in_use(object, by, count).by(verb)
}

pub(super) fn check_acknowledged(verb: Verb, object: Object, events: u32) -> Result<()> {
    device::check_acknowledged(object, events).by(verb)
}

pub(super) fn in_range(
    verb: Verb,
    what: &'static str,
    value: i64,
    min: i64,
    max: i64,
) -> Result<()> {
    device::in_range(what, value, min, max).by(verb)
}
