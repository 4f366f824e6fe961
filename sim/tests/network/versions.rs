//! RoCE versions 1 and 2 at the same time.

use verbs_api::profile::Profile;
use verbs_api::{GidType, QpType, RcParams, SendOp, Verbs, WcStatus, connect};

use super::{Process, config, params};

/// DEV-18: the four GIDs of a card reach the same version in another process, and no other.
#[test]
fn each_gid_of_a_card_reaches_its_own_version() {
    let processes = [1, 2].map(|seed| {
        let config = config("versions").profile(Profile::MLX5).scatter(seed);
        Process::start(config, 64)
    });
    let types = |process: &Process| {
        [0, 1, 2, 3].map(|index| {
            let entry = process.sim.query_gid_ex(process.context, 1, index);
            let entry = entry.unwrap();
            (entry.gid_type, entry.gid.ipv4().is_some())
        })
    };
    let (v1, v2) = (GidType::RoceV1, GidType::RoceV2);
    let expected = [(v1, false), (v2, false), (v1, true), (v2, true)];
    for process in &processes {
        assert_eq!(types(process), expected);
    }
    for (of_a, of_b) in [(0, 0), (1, 1), (2, 2), (3, 3), (2, 3), (3, 2), (0, 1)] {
        let [a, b] = &processes;
        let params = [of_a, of_b].map(|sgid_index| RcParams {
            sgid_index,
            timeout: 14,
            retry_cnt: 1,
            ..params()
        });
        let qps = processes.each_ref().map(|process| process.qp(QpType::Rc));
        let there = [
            a.endpoint(qps[0], &params[0]),
            b.endpoint(qps[1], &params[1]),
        ];
        connect::to_endpoint(&a.sim, qps[0], &there[1], &params[0]).unwrap();
        connect::to_endpoint(&b.sim, qps[1], &there[0], &params[1]).unwrap();
        b.receive(qps[1], 1, 0, 8);
        a.post(qps[0], 2, (0, 8), SendOp::Send);
        let status = a.polled(1)[0].status;
        if of_a == of_b {
            assert_eq!(status, WcStatus::Success, "{of_a}");
            assert_eq!(b.polled(1)[0].status, WcStatus::Success, "{of_a}");
        } else {
            assert_eq!(status, WcStatus::RetryExcErr, "{of_a} to {of_b}");
        }
    }
}
