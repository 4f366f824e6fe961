//! Creating CQs: sizes, channels, completion vectors.

use verbs_api::{CqInit, ErrorKind};

use crate::{Bench, Result, Scenario, expect_err};

pub(crate) const SCENARIOS: &[Scenario] = &[Scenario::new(
    "cq_create.size_below_one_is_refused",
    &["CQ-CREATE-03"],
    size_below_one_is_refused,
)];

fn size_below_one_is_refused(bench: &Bench<'_>) -> Result {
    for cqe in [0, -1, i32::MIN] {
        let refused = bench.create_cq(bench.ctx_a(), &CqInit::new(cqe));
        expect_err(refused, ErrorKind::Invalid, "CQ-CREATE-03")?;
    }
    Ok(())
}
