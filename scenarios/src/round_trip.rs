//! How long a message takes on a real device.

use std::time::{Duration, Instant};

use verbs_api::{Capabilities, QpType, RcParams};

use crate::PairOptions;
use crate::failure::Result;
use crate::runner::Backend;
use crate::setup::{Bounds, Setup};
use crate::timeout::MARGIN;

/// These bounds for the devices of a backend without a lab: their round trip, and longer waits for
/// what must not come. What cannot be measured is 0.
pub(crate) fn within(
    bounds: Bounds,
    backend: &dyn Backend,
    has: Capabilities,
) -> verbs_api::Result<Bounds> {
    let mut types = [QpType::Rc, QpType::Ud].into_iter();
    let has = |of: &QpType| has.contains(Capabilities::of_qp_type(*of));
    let Some(qp_type) = types.find(has) else {
        return Ok(bounds);
    };
    let fixture = backend.start(false)?;
    let needs = Capabilities::of_qp_type(qp_type);
    let setup = Setup::new(fixture.verbs(), needs, bounds, backend.place());
    let measured = setup.and_then(|setup| measured(&setup, qp_type));
    let round_trip = measured.unwrap_or_default();
    Ok(Bounds {
        negative: bounds.negative + round_trip * MARGIN,
        round_trip,
        ..bounds
    })
}

/// The shortest of some: others may have met a busy processor.
fn measured(setup: &Setup<'_>, qp_type: QpType) -> Result<Duration> {
    let patient = RcParams {
        timeout: LONG,
        ..RcParams::default()
    };
    let pair = setup.pair(PairOptions {
        rc: patient,
        ..PairOptions::of(qp_type)
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

/// Messages that are measured.
const TRIES: u64 = 3;

/// The code of a second.
const LONG: u8 = 18;
