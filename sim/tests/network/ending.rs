//! The end of a connection, where errors end connections.

use verbs_api::behavior::{Behavior, RemoteFaults};

use super::*;

/// RDMA-30: an error, a destruction and a refusal reach the peer in another process, with
/// nothing under way.
#[test]
fn the_end_of_a_connection_reaches_another_process() {
    let mut behavior = Behavior::SPEC;
    behavior.remote_faults = RemoteFaults::EndsConnection;
    let [a, b] = [1, 2].map(|seed| {
        let config = config("ending").behavior(behavior);
        Process::start(config.scatter(seed), 4096)
    });
    let by_error = |qp| {
        let to_err = QpModify::to(QpState::Err);
        a.sim.modify_qp(qp, &to_err.attr, to_err.mask).unwrap();
    };
    let by_destruction = |qp| a.sim.destroy_qp(qp, Wait::Poll).unwrap();
    let by_refusal = |qp| {
        let remote = Remote {
            rkey: b.mem.rkey ^ 0xa5,
            ..b.mem.remote(0)
        };
        a.post(qp, 1, (0, 8), SendOp::RdmaWrite { remote });
        assert_done(&a.polled(1));
    };
    let ways: [&dyn Fn(Qp); 3] = [&by_error, &by_destruction, &by_refusal];
    for end in ways {
        let [own, peer] = connected([&a, &b], QpType::Rc, &params());
        b.receive(peer, 7, 0, 8);
        end(own);
        let flushed = b.awaited();
        assert_eq!((flushed.wr_id, flushed.status), (7, WcStatus::WrFlushErr));
        assert_eq!(b.state(peer), QpState::Err);
    }
}
