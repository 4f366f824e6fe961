//! A call from C: its caller, its object, its waits, and its result. The objects are of any kind:
//! this folder knows none of them. It names `base` and the engine.
//!
//! | file | holds |
//! |---|---|
//! | `caller`, `symbols` | the place in the program that calls; functions and lines of addresses |
//! | `object` | structures that programs point to, with their handles |
//! | `result` | refusals, and what functions return |
//! | `blocking` | calls that wait for an event |

pub(crate) mod blocking;
pub(crate) mod caller;
pub(crate) mod object;
pub(crate) mod result;
pub(crate) mod schedule;
pub(crate) mod symbols;

pub(crate) use object::{CObject, Found, Held, Kind, kinds};
pub(crate) use result::{
    Later, Refusal, Result, count, known_bits, last_errno, new_object, no_values, not_null,
    or_minus_one, or_zero, passed, pointer, present, quick_status, same_context, set_errno, silent,
    status, values, zero_or_minus_one,
};
