//! Destroying CQs: what keeps them busy, what they wait for.

use verbs_api::{ErrorKind, Wait};

use crate::{Bench, OfRule, PairOptions, Result, Scenario, expect_err};

pub(crate) const SCENARIOS: &[Scenario] = &[Scenario::new(
    "cq_destroy.cq_of_a_qp_is_busy",
    &["CQ-DESTROY-01"],
    cq_of_a_qp_is_busy,
)];

fn cq_of_a_qp_is_busy(bench: &Bench<'_>) -> Result {
    let end = bench.end(bench.ctx_a(), PairOptions::default())?;
    for cq in [end.send_cq, end.recv_cq] {
        let busy = bench.destroy_cq(cq, Wait::Poll);
        expect_err(busy, ErrorKind::Busy, "CQ-DESTROY-01")?;
    }
    bench.destroy_qp(end.qp, bench.wait())?;
    for cq in [end.send_cq, end.recv_cq] {
        bench.destroy_cq(cq, Wait::Poll).rule("CQ-DESTROY-01")?;
    }
    Ok(())
}
