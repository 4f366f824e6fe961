//! Loading, forking, exits, signals, and the diagnosis: everything around the calls. It names every
//! other folder; no other folder names it, except `export`.
//!
//! | file | holds |
//! |---|---|
//! | `load` | the function that the loader calls; reading the configuration |
//! | `fork` | a child after `fork` |
//! | `exit`, `signals`, `stuck` | the end of the process, by itself or by a signal |
//! | `report` | mistakes at the moment they happen |
//! | `diagnosis`, `json`, `names`, `place` | writing at the end, and its words |
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
