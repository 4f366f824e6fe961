//! What a process does around its calls: loading, forking, exiting, signals, and the diagnosis. It
//! names every other folder; no other folder names it.
//!
//! | file | holds |
//! |---|---|
//! | `load` | the function that the loader calls; reading the configuration |
//! | `fork` | what a child leaves to its parent |
//! | `exit`, `signals`, `stuck` | ends of the process, by itself and by a signal; what its threads do then |
//! | `report` | mistakes at the moment they happen |
//! | `diagnosis`, `json`, `names`, `place` | what is written at the end, and its words |
//! | `control` | the functions behind `verbsim.h` |
//! | `preload` | the library in `LD_PRELOAD` |

pub(crate) mod control;
mod diagnosis;
mod exit;
mod fork;
mod json;
mod load;
mod names;
mod place;
#[cfg(not(test))]
mod preload;
mod report;
mod signals;
mod stuck;
