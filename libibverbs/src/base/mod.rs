//! Memory for objects, words of threads, values of a process, and output. This folder knows neither
//! the simulator nor a kind of object, and names no other folder.
//!
//! | file | holds |
//! |---|---|
//! | `thread` | the words that a call from C leaves for its thread |
//! | `pin`, `arena` | memory of objects, and which threads use it now |
//! | `per_process` | values that a child after `fork` makes again |
//! | `output` | messages and files |
//! | `record` | facts for `verbsim exec` |

pub(crate) mod arena;
pub(crate) mod output;
pub(crate) mod per_process;
pub(crate) mod pin;
pub(crate) mod record;
pub(crate) mod thread;
