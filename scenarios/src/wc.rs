//! What stands in a work completion.

use verbs_api::WcStatus;

use crate::failure::check_eq;
use crate::{Bench, Result, Scenario};

pub(crate) const SCENARIOS: &[Scenario] = &[Scenario::new(
    "wc.receive_too_small_is_a_length_error",
    &["WC-22", "WC-27"],
    receive_too_small_is_a_length_error,
)];

fn receive_too_small_is_a_length_error(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    b.recv(7, 63)?;
    a.send(8, 64)?;
    let wc = bench.one_with(b.recv_cq, WcStatus::LocLenErr, "WC-22")?;
    check_eq!("WC-22", wc.wr_id, 7);
    let wc = bench.one_with(a.send_cq, WcStatus::RemInvReqErr, "WC-27")?;
    check_eq!("WC-27", wc.wr_id, 8);
    Ok(())
}
