//! A call from C: who calls, which object it names, how it waits, and what it returns. The objects
//! are of any kind: this folder knows none of them. It names `base` and the engine.
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
pub(crate) mod symbols;
