//! Empty polls: a thread that keeps finding nothing lets other threads run.

use std::cell::Cell;
use std::thread::LocalKey;

thread_local! {
    /// Consecutive empty polls of this thread.
    static EMPTY_POLLS: Cell<u32> = const { Cell::new(0) };
}

/// Empty polls before other threads get a turn.
const PATIENCE: u32 = 16;
/// Empty polls between reads of the sockets, after `PATIENCE` of them.
const PAUSE: u32 = 4;

/// What a thread does after an empty poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Poll again.
    Own,
    /// Read the sockets.
    Look,
    /// Read the sockets, and yield to other threads if no packet arrived.
    Others,
}

/// Counts an empty poll.
#[inline]
pub(crate) fn count_empty_poll() -> Turn {
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

/// Ends a row of empty polls.
#[inline]
pub(crate) fn polled() {
    change(|_| 0);
}

#[inline]
fn change(next: impl FnOnce(u32) -> u32) -> u32 {
    // The count of a thread that is ending may be destroyed already.
    let changed = LocalKey::try_with(&EMPTY_POLLS, |count| {
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
            .map(|count| (count, count_empty_poll()))
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
        assert!((1..16).all(|_| count_empty_poll() == Turn::Own));
        assert_eq!(count_empty_poll(), Turn::Others);
    }
}
