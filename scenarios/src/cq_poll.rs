//! Polling: how many, in which order, once each.

use crate::failure::check_eq;
use crate::{Bench, OfRule, Result, Scenario};

pub(crate) const SCENARIOS: &[Scenario] = &[Scenario::new(
    "cq_poll.completions_come_in_posting_order",
    &["CQ-POLL-07", "CQ-POLL-03"],
    completions_come_in_posting_order,
)];

fn completions_come_in_posting_order(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    bench.no_completion(a.send_cq, "CQ-POLL-03")?;
    for wr_id in 0..8 {
        b.recv(100 + wr_id, 8)?;
        a.send(wr_id, 8)?;
    }
    for (cq, first) in [(a.send_cq, 0), (b.recv_cq, 100)] {
        let got = bench.successes(cq, 8).rule("CQ-POLL-07")?;
        let order: Vec<_> = got.iter().map(|wc| wc.wr_id - first).collect();
        check_eq!("CQ-POLL-07", order, (0..8).collect::<Vec<u64>>());
    }
    Ok(())
}
