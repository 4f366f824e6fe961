//! How long a message takes on a real device, and timeouts that are not over before its answer can
//! come.

use std::time::{Duration, Instant};

use verbs_api::{Capabilities, RcParams};

use crate::PairOptions;
use crate::failure::Result;
use crate::runner::Backend;
use crate::setup::{Bounds, Setup};

/// These bounds for the devices of a backend without a lab: their round trip, and longer waits for
/// what must not come. What cannot be measured is 0.
pub(crate) fn within(bounds: Bounds, backend: &dyn Backend) -> verbs_api::Result<Bounds> {
    let fixture = backend.start(false)?;
    let needs = Capabilities::RC;
    let setup = Setup::new(fixture.verbs(), needs, bounds, backend.place());
    let measured = setup.and_then(|setup| measured(&setup));
    let round_trip = measured.unwrap_or_default();
    Ok(Bounds {
        negative: bounds.negative + round_trip * MARGIN,
        round_trip,
        ..bounds
    })
}

/// The shortest of some: others may have met a busy processor.
fn measured(setup: &Setup<'_>) -> Result<Duration> {
    let patient = RcParams {
        timeout: LONG,
        ..RcParams::default()
    };
    let pair = setup.pair(PairOptions {
        rc: patient,
        ..PairOptions::default()
    })?;
    let mut shortest = Duration::MAX;
    for wr_id in 0..TRIES {
        pair.b.recv(wr_id, 8)?;
        let start = Instant::now();
        pair.a.send(wr_id, 8)?;
        setup.successes(pair.a.send_cq, 1)?;
        shortest = shortest.min(start.elapsed());
        setup.successes(pair.b.recv_cq, 1)?;
    }
    Ok(shortest)
}

/// The code of a timeout (IBTA: 4.096 us times 2 to its power), or the next one that is at least
/// [`MARGIN`] round trips. 0, which never is over, stays, and so do numbers that are not codes.
pub(crate) fn timeout(round_trip: Duration, code: u8) -> u8 {
    let is_enough = |code: &u8| UNIT * (1 << code) >= round_trip * MARGIN;
    if (1..=LONGEST).contains(&code) {
        (code..LONGEST).find(is_enough).unwrap_or(LONGEST)
    } else {
        code
    }
}

/// A message may meet others on the way, and a busy processor at its end.
const MARGIN: u32 = 4;

/// Messages that are measured.
const TRIES: u64 = 3;

/// The code of a second.
const LONG: u8 = 18;

/// The largest code of a timeout.
const LONGEST: u8 = 31;

/// The time of code 0, if it were one.
const UNIT: Duration = Duration::from_nanos(4096);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_as_asked_if_some_round_trips_are_within_it() {
        let at = |milliseconds, code| timeout(Duration::from_millis(milliseconds), code);
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
