//! Objects that own what they need (`verbs_api::owned`), on the simulator: what they hold, when
//! they are destroyed, and the effect of uses that would be errors on raw handles.

mod connecting;
mod events;
#[path = "../common/tasks.rs"]
mod executor;
mod iterating;
mod ledger;
mod life;
mod making;
mod places;
mod raw;
mod setup;
mod shared;
mod tasks;
mod waiting;
mod windows;
mod work;
mod xrc;
