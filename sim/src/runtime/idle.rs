//! Polls in vain: a thread that finds nothing again and again lets others work.

use std::cell::Cell;
use std::thread::LocalKey;

thread_local! {
    /// How many in a row this thread has made.
    static IN_VAIN: Cell<u32> = const { Cell::new(0) };
}

/// So many in a row are soon over.
const PATIENCE: u32 = 16;
/// After that, every so often a thread looks for what has come from elsewhere.
const PAUSE: u32 = 4;

/// What it is time for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// To poll again.
    Own,
    /// To look for what has come from elsewhere.
    Look,
    /// To look, and if nothing has come, to let other threads run.
    Others,
}

/// A poll found nothing.
#[inline]
pub(crate) fn polled_in_vain() -> Turn {
    let count = change(|count| match count + 1 {
        next if next == 2 * PATIENCE => PATIENCE,
        next => next,
    });
    match count {
        PATIENCE => Turn::Others,
        count if count > PATIENCE && count % PAUSE == 0 => Turn::Look,
        _ => Turn::Own,
    }
}

/// A poll found something.
#[inline]
pub(crate) fn polled() {
    change(|_| 0);
}

#[inline]
fn change(next: impl FnOnce(u32) -> u32) -> u32 {
    // In a thread that ends there is no count any more.
    let changed = LocalKey::try_with(&IN_VAIN, |count| {
        count.set(next(count.get()));
        count.get()
    });
    changed.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_sixteen_polls_in_a_row_others_get_their_turns() {
        polled();
        let turns: Vec<(u32, Turn)> = (1..=34)
            .map(|count| (count, polled_in_vain()))
            .filter(|(_, turn)| *turn != Turn::Own)
            .collect();
        let [look, others] = [Turn::Look, Turn::Others];
        let expected = [
            (16, others),
            (20, look),
            (24, look),
            (28, look),
            (32, others),
        ];
        assert_eq!(turns, expected);
        polled();
        assert!((1..16).all(|_| polled_in_vain() == Turn::Own));
        assert_eq!(polled_in_vain(), Turn::Others);
    }
}
