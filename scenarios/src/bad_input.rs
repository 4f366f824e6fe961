//! What must not be asked: zero handles, handles of destroyed objects, numbers out of range.

use verbs_api::{Arm, Cq, CqInit, ErrorKind, Wait};

use crate::{Bench, Result, Scenario, expect_err};

pub(crate) const SCENARIOS: &[Scenario] = &[Scenario::new(
    "bad_input.arming_what_is_no_cq_is_refused",
    &["CQ-ARM-21"],
    arming_what_is_no_cq_is_refused,
)];

fn arming_what_is_no_cq_is_refused(bench: &Bench<'_>) -> Result {
    let stale = bench.create_cq(bench.ctx_a(), &CqInit::new(1))?;
    bench.destroy_cq(stale, Wait::Poll)?;
    for cq in [Cq::default(), stale] {
        let refused = bench.req_notify_cq(cq, Arm::NEXT);
        expect_err(refused, ErrorKind::Invalid, "CQ-ARM-21")?;
    }
    Ok(())
}
