//! Reducing the schedule of a failure to the changes that it needs.

use crate::output::Stop;

/// Leaves out changes as long as the run fails in the same way. `fails` runs the program with some
/// of them, at most `budget` times, and returns the changes that the run had if it fails so.
pub(super) fn shrink(
    mut kept: Vec<String>,
    budget: usize,
    mut fails: impl FnMut(&[String]) -> Result<Option<Vec<String>>, Stop>,
) -> Result<Vec<String>, Stop> {
    let mut left = budget;
    // All at first: a run without changes may fail, too. Then halves of that, and so on.
    let mut part = kept.len();
    while part > 0 {
        let mut from = 0;
        while from < kept.len() && left > 0 {
            let to = (from + part).min(kept.len());
            let fewer = [&kept[..from], &kept[to..]].concat();
            left -= 1;
            match fails(&fewer)? {
                // Some that were asked for may have had no effect.
                Some(had) => kept = if had.len() < fewer.len() { had } else { fewer },
                None => from = to,
            }
        }
        part /= 2;
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_changes_that_a_failure_needs_are_left() {
        let all: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let needs = ["17", "18", "80"];
        let mut runs = 0;
        let kept = shrink(all, 300, |changes| {
            runs += 1;
            let has_all = needs.iter().all(|need| changes.iter().any(|of| of == need));
            Ok(has_all.then(|| changes.to_vec()))
        });
        assert!(kept.is_ok_and(|kept| kept == needs));
        assert!(runs < 60, "{runs}");
    }
}
