//! Acknowledgements that count later than they arrive.

use crate::common::{checked, property_config};
use crate::link::{Kind, Link, Ran, Work, run_on, statuses};
use crate::loss::program;
use proptest::prelude::*;
use proptest::sample::select;
use verbs_api::behavior::{AckEffect, Behavior};
use verbs_api::{QpType, RcParams, WcStatus};
use verbs_sim::{Mode, SimConfig};

fn config(ack_effect: AckEffect) -> SimConfig {
    let mut behavior = Behavior::SPEC;
    behavior.ack_effect = ack_effect;
    SimConfig::new().behavior(behavior)
}

proptest! {
    #![proptest_config(property_config())]

    /// CQ-POLL-07, CQ-POLL-13: each queue keeps its order, all data arrive, and nothing is sent
    /// again, also with the shortest time-out and with none.
    #[test]
    fn acknowledgements_that_count_late_cost_no_packet(
        (path_mtu, program) in program(),
        timeout in select(&[0, 1, 14][..]),
        seed: u64,
    ) {
        let params = RcParams { path_mtu, timeout, ..RcParams::default() };
        let run = |ack_effect| -> Ran {
            let config = config(ack_effect).seed(seed);
            run_on(config, &program, &params, &[], |link| link.run(&program))
        };
        let late = run(AckEffect::Late);
        late.assert_like(&program, "late");
        prop_assert_eq!(late.packets, run(AckEffect::Arrival).packets);
    }
}

/// No timer fires in inline mode, so nothing waits for one.
#[test]
fn acknowledgements_count_at_once_where_time_stands_still() {
    for seed in 0..16 {
        let sim = checked(config(AckEffect::Late).seed(seed).mode(Mode::Inline));
        let link = Link::new(&sim, QpType::Rc, &RcParams::default());
        link.post(&[Work::new(Kind::Write, 8)]);
        assert_eq!(statuses(&link.near.drain()), [WcStatus::Success]);
    }
}
