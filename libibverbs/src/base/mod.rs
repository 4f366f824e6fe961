//! What every other part stands on: memory for objects, the words of a thread, values of a process,
//! and what the library writes. It knows neither the simulator nor a kind of object, and names no
//! other folder.
//!
//! | file | holds |
//! |---|---|
//! | `thread` | what a call from C notes about its thread; the jumps that note it |
//! | `pin`, `arena` | memory of objects, and which threads use it now |
//! | `per_process` | values that a child after `fork` has of its own |
//! | `output` | messages and files |
//! | `record` | facts for `verbsim exec` |

pub(crate) mod arena;
pub(crate) mod output;
pub(crate) mod per_process;
pub(crate) mod pin;
pub(crate) mod record;
pub(crate) mod thread;
