//! What the attribute [`test`](macro@crate::test) makes of a function.

use core::fmt;

use verbs_sim::rt::{self, Executor, Order};

use crate::exploration::{Exploration, World};

/// An exploration named after a test, by its path.
pub fn exploration(path: &str) -> Exploration {
    Exploration::new(&path.replace("::", "/"))
}

/// Runs the exploration. Prints the hints of one that passes.
///
/// # Panics
/// With the report of a failure.
#[track_caller]
pub fn explore(exploration: Exploration, test: impl Fn(&World) -> Result<(), String> + Sync) {
    match exploration.run(test) {
        Ok(coverage) => {
            let hints = coverage.hints();
            hints.iter().for_each(|hint| println!("hint: {hint}"));
        }
        Err(found) => panic!("{found}"),
    }
}

/// Runs an async test, with tasks in an order that is drawn from the seed.
///
/// # Errors
/// The run stalled; in words.
pub fn block_on<'a, T>(
    world: &'a World,
    test: impl AsyncFnOnce(Executor<'a>) -> T,
) -> Result<T, String> {
    let order = Order::Seed(world.seed());
    let ended = rt::block_on(world.device(), order, async |rt| Ok(test(rt).await));
    ended.map_err(|error| error.to_string())
}

/// How a test ended, whatever it returns.
///
/// # Errors
/// The error of the test, in words.
pub fn ended(returned: impl Returned) -> Result<(), String> {
    returned.into_result()
}

/// What a test may return.
#[diagnostic::on_unimplemented(
    message = "an explored test returns nothing, or a `Result<(), E>`",
    label = "this returns something else"
)]
pub trait Returned {
    /// The error in words.
    fn into_result(self) -> Result<(), String>;
}

impl Returned for () {
    fn into_result(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: fmt::Display> Returned for Result<(), E> {
    fn into_result(self) -> Result<(), String> {
        self.map_err(|error| error.to_string())
    }
}
