//! A simulator that loses a retransmission now and then: exploration finds it, and what it says brings it
//! back.

mod explored;

use explored::{explore, replay, verbsim};

/// TMR-03.
#[test]
fn lost_retransmission_is_found_within_1000_seeds_and_comes_back() {
    let found = explore(&["--seeds", "0..1000"]);
    assert_eq!(found.status, 1, "{}", found.output);
    assert!(found.output.contains("invariant"), "{}", found.output);
    let replayed = replay(&found);
    assert_eq!(replayed.status, 1, "{}", replayed.output);
    assert!(!found.trace.is_empty());
    assert_eq!(found.trace, replayed.trace);
    // As one finds it, two do.
    let by_two = explore(&["--seeds", "0..1000", "--jobs", "2"]);
    assert_eq!(by_two.trace, found.trace);
    let version = verbsim(&["--version"]).output;
    assert!(version.starts_with("verbsim "), "{version}");
}
