//! CQ overrun: one completion too many.

use verbs_api::{AsyncEventType, Element};

use crate::failure::check_eq;
use crate::{Bench, OfRule, PairOptions, Result, Scenario};

pub(crate) const SCENARIOS: &[Scenario] = &[Scenario::new(
    "cq_ovr.one_completion_too_many_raises_cq_err",
    &["CQ-OVR-01"],
    one_completion_too_many_raises_cq_err,
)];

fn one_completion_too_many_raises_cq_err(bench: &Bench<'_>) -> Result {
    let pair = bench.pair(PairOptions {
        recv_cqe: 1,
        ..PairOptions::default()
    })?;
    let (a, b) = (pair.a, pair.b);
    let capacity = bench.query_cq(b.recv_cq)?.cqe;
    for wr_id in 0..=u64::from(capacity) {
        b.recv(wr_id, 8)?;
        a.send(wr_id, 8)?;
    }
    let event = bench.async_event(b.context).rule("CQ-OVR-01")?;
    check_eq!("CQ-OVR-01", event.event_type, AsyncEventType::CqErr);
    check_eq!("CQ-OVR-01", event.element, Element::Cq(b.recv_cq));
    Ok(())
}
