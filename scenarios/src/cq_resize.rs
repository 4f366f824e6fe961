//! Resizing a CQ: what is kept, what is refused.

use verbs_api::Capabilities;

use crate::failure::check;
use crate::{Bench, OfRule, Result, Scenario};

pub(crate) const SCENARIOS: &[Scenario] = &[Scenario::new(
    "cq_resize.completions_survive_in_order",
    &["CQ-RESIZE-22", "CQ-RESIZE-03", "CQ-RESIZE-12"],
    completions_survive_in_order,
)
.needs(Capabilities::RESIZE_CQ)];

fn completions_survive_in_order(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    for wr_id in 0..4 {
        b.recv(wr_id, 8)?;
        a.send(wr_id, 8)?;
    }
    bench.successes(a.send_cq, 4)?;
    bench.resize_cq(b.recv_cq, 200).rule("CQ-RESIZE-03")?;
    let cqe = bench.query_cq(b.recv_cq)?.cqe;
    check!("CQ-RESIZE-12", cqe >= 200, "at least 200 entries", "{cqe}");
    let order: Vec<_> = bench.successes(b.recv_cq, 4).rule("CQ-RESIZE-22")?;
    let order: Vec<_> = order.iter().map(|wc| wc.wr_id).collect();
    check!(
        "CQ-RESIZE-22",
        order == [0, 1, 2, 3],
        "wr_id 0, 1, 2, 3",
        "{order:?}"
    );
    Ok(())
}
