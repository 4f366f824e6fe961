//! Runs a test under many seeds and injected faults, and repeats a failure exactly.
//!
//! An [`Exploration`] runs a test in many simulations, each with a seed of its own, under a
//! [`Plan`](verbs_faults::Plan) of faults. If a run fails, the exploration looks for the smallest
//! set of faults that makes it fail, and returns a [`Replay`] that repeats the failure. [`Checked`]
//! is a device around another one, and checks invariants on each call. Module `program` (feature
//! `programs`) generates random programs, which explore the device itself.
//!
//! ```
//! use verbs_explore::Exploration;
//!
//! let explored = Exploration::new("opens").seeds(0..100).run(|world| {
//!     let context = world.verbs().open_device("sim0").map_err(|error| error.to_string())?;
//!     world.verbs().close_device(context).map_err(|error| error.to_string())
//! });
//! assert_eq!(explored.unwrap().tried, 100);
//! ```
//!
//! `docs/exploration.md` is the guide.
#![deny(unsafe_code)]

mod attribute;
mod checked;
mod coverage;
mod exploration;
mod idle;
mod panics;
#[cfg(feature = "programs")]
pub mod program;
mod replay;
mod seeds;
mod shrink;

pub use checked::{Broken, Checked, Invariant, Summary};
pub use coverage::Coverage;
pub use exploration::{Exploration, Explored, Found, REPLAY, Trial, World};
pub use replay::{Replay, ReplayError};
pub use seeds::{NoShard, Searched, Seeds, Shard};
pub use shrink::shrink;
pub use verbs_sim::rt::Executor;

/// Makes a test of a function: an [`Exploration`] with the name of the test.
///
/// A function takes a [`World`]. An async function also takes an [`Executor`], on which it runs, in
/// an order of tasks that is drawn from the seed. Both return nothing or a `Result<(), E>`, where
/// `E` is [`Display`](core::fmt::Display).
///
/// ```
/// use std::time::Duration;
/// use verbs_explore::{Executor, World};
///
/// #[verbs_explore::test]
/// fn a_device_opens(world: &World) -> verbs_api::Result<()> {
///     world.verbs().open_device("sim0").map(drop)
/// }
///
/// #[verbs_explore::test(seeds = 0..200, profiles = [spec, adversarial], faults = harsh)]
/// async fn time_passes(world: &World, rt: Executor<'_>) {
///     rt.sleep(Duration::from_secs(1)).await;
///     assert_eq!(rt.now(), world.lab().now());
/// }
/// ```
///
/// | argument | default | |
/// |---|---|---|
/// | `seeds = 0..200` | `0..1000` | the [range of seeds](Exploration::seeds) |
/// | `profiles = [spec, rxe]` | `spec` alone | the names of the [profiles](Exploration::profiles) |
/// | `faults = harsh` | `standard` | the [plan](Exploration::faults): `standard`, `harsh` or `none` |
/// | `config = SimConfig::new().nodes(3)` | `SimConfig::new()` | the configuration of the simulations |
/// | `strict` | | definite mistakes are [failures](Exploration::strict) |
///
/// A failure is a panic with the report ([`Found`]). The command in it runs that failure again, and
/// all other tests as usual. A test that passes prints the [hints](Coverage::hints) of the
/// exploration. `#[ignore]`, `#[should_panic]`, `#[cfg]` and other attributes may follow.
///
/// For tasks that borrow the world, give both arguments one lifetime:
/// `async fn test<'a>(world: &'a World, rt: Executor<'a>)`.
#[doc(inline)]
pub use verbs_explore_macros::test;

/// For the code that [`test`](macro@test) makes.
#[doc(hidden)]
pub mod __private {
    pub use verbs_api::profile::Profile;
    pub use verbs_faults::Plan;
    pub use verbs_sim::Suppressions;

    pub use crate::attribute::{block_on, ended, exploration, explore};
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
