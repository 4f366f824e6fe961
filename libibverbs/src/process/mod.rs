//! Loading, forking, exits, signals, and the diagnosis: everything around the calls. It names every
//! other folder; no other folder names it, except `export`.
//!
//! | file | holds |
//! |---|---|
//! | `hooks` | the functions for loading, forking and `exit`; reading the configuration |
//! | `signals`, `stuck` | the end of the process by a signal |
//! | `report` | mistakes at the moment they happen |
//! | `diagnosis`, `json`, `names`, `place` | writing at the end, and its words |
//! | `control` | the functions behind `verbsim.h` |
//! | `preload` | the library in `LD_PRELOAD` |

pub(crate) mod control;
mod diagnosis;
mod hooks;
mod json;
mod names;
mod place;
#[cfg(not(test))]
mod preload;
mod report;
mod signals;
mod stuck;
