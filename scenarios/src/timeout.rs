//! Timeouts of connections that are not over before an answer can come.

use std::time::Duration;

/// The code of a timeout (IBTA: 4.096 us times 2 to its power), or the next one that is at least
/// [`MARGIN`] round trips. 0, which never is over, stays, and so do numbers that are not codes.
pub(crate) fn at_least(round_trip: Duration, code: u8) -> u8 {
    let is_enough = |code: &u8| UNIT * (1 << code) >= round_trip * MARGIN;
    if (1..=LONGEST).contains(&code) {
        (code..LONGEST).find(is_enough).unwrap_or(LONGEST)
    } else {
        code
    }
}

/// A message may meet others on the way, and a busy processor at its end.
pub(crate) const MARGIN: u32 = 4;

/// The largest code of a timeout.
const LONGEST: u8 = 31;

/// The time of code 0, if it were one.
const UNIT: Duration = Duration::from_nanos(4096);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_as_asked_if_some_round_trips_are_within_it() {
        let at = |milliseconds, code| at_least(Duration::from_millis(milliseconds), code);
        assert_eq!(
            [0, 1, 8, 31, 255].map(|code| at(0, code)),
            [0, 1, 8, 31, 255]
        );
        // 4.096 us * 2^14 is 67 ms, and 2^15 is 134 ms.
        assert_eq!([8, 14, 15, 18].map(|code| at(20, code)), [15, 15, 15, 18]);
        assert_eq!([0, 200].map(|code| at(20, code)), [0, 200]);
        assert_eq!(at(u64::from(u32::MAX), 8), LONGEST);
    }
}
