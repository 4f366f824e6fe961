//! Tests that differ from run to run by themselves.

use std::sync::atomic::{AtomicU64, Ordering};

use verbs_api::Result;
use verbs_explore::{Exploration, Found, World};

fn exploration() -> Exploration {
    Exploration::new("twice").seeds(0..20).twice()
}

/// Opens a device, and more of them with each run.
fn grows(world: &World, runs: &AtomicU64) -> Result<()> {
    let contexts = 1 + runs.fetch_add(1, Ordering::Relaxed);
    (0..contexts).try_for_each(|_| world.verbs().open_device("sim0").map(drop))
}

fn failure(found: std::result::Result<verbs_explore::Coverage, Box<Found>>) -> String {
    found.unwrap_err().failure
}

#[test]
fn what_differs_by_itself_is_named_with_the_first_difference() {
    let runs = AtomicU64::new(0);
    let text = failure(exploration().run(|world| grows(world, &runs)));
    assert!(
        text.contains("two runs of the seed differ: record"),
        "{text}"
    );
    assert!(text.contains("ibv_open_device(sim0)"), "{text}");

    let runs = AtomicU64::new(0);
    let text = failure(
        exploration().run(|_| match runs.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => Ok(()),
            _ => Err("odd"),
        }),
    );
    let expected = "two runs of the seed differ, and their traces do not: a pass, and then odd";
    assert_eq!(text, expected);
}

#[test]
fn a_test_that_follows_from_its_seed_passes() {
    let same = |world: &World| grows(world, &AtomicU64::new(world.seed()));
    assert_eq!(exploration().run(same).unwrap().tried, 20);
}
