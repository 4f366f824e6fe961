//! Devices with a defect: the program finds it, and what it says brings it back. A message that is
//! sent again arrives without its immediate data, so that it takes a fault to see it.

mod explored;

use explored::{explore, replay, verbsim};

#[test]
fn planted_defect_is_found_within_1000_seeds_and_comes_back() {
    let found = explore(&["--planted-defect", "--seeds", "0..1000"]);
    assert_eq!(found.status, 1, "{}", found.output);
    for said in ["invariant delivery", "with immediate", "kind = \"packet\""] {
        assert!(found.output.contains(said), "{}", found.output);
    }
    let replayed = replay(&found);
    assert_eq!(replayed.status, 1, "{}", replayed.output);
    assert!(!found.trace.is_empty());
    assert_eq!(found.trace, replayed.trace);
    // As one finds it, two do.
    let by_two = explore(&["--planted-defect", "--seeds", "0..1000", "--jobs", "2"]);
    assert_eq!(by_two.trace, found.trace);
    let version = verbsim(&["--version"]).output;
    assert!(version.starts_with("verbsim "), "{version}");
}
