//! Iterations over extended CQs: what they return and release, and what waits for them.

use verbs_api::owned::{Cq, Qp};
use verbs_api::{CqFlags, ErrorKind, QpType, RcParams, WcFields, WcStatus};

use crate::setup::{End, Setup, recv, send};

/// A pair of which the receives of the far end complete in an extended CQ.
fn pair(setup: &Setup) -> ([End; 2], Cq, [Qp; 2]) {
    let [a, b] = [End::open(setup, "sim0"), End::open(setup, "sim1")];
    let fields = WcFields::BYTE_LEN | WcFields::TIMESTAMPS;
    let cq = b.context.cq(64).extended(fields, CqFlags::empty());
    let cq = cq.create().unwrap();
    let near = a.qp(QpType::Rc);
    let far = b.pd.qp(QpType::Rc, &b.cq, &cq).create().unwrap();
    near.connect_rc(&far, &RcParams::default()).unwrap();
    ([a, b], cq, [near, far])
}

/// CQ-CREATE-15, CQ-CREATE-16: the program's own numbers, the requested fields, and the memory of
/// the completions.
#[test]
fn an_iteration_gives_what_a_poll_gives() {
    let setup = Setup::stepped();
    let ([a, b], cq, [near, far]) = pair(&setup);
    for first in [0, 5] {
        let wr_ids: Vec<u64> = (first..first + 5).map(|i| i << 40).collect();
        for wr_id in &wr_ids {
            let into = b.small_mr();
            far.post_recv(verbs_api::owned::RecvWr::new(*wr_id, &[into.sge(..)]))
                .unwrap();
            send(&near, 1);
        }
        setup.settle();
        assert_eq!(setup.live(1).mrs, 6);
        let mut times = Vec::new();
        let mut seen = Vec::new();
        for wc in cq.iterate() {
            let wc = wc.unwrap();
            assert_eq!((wc.status, wc.byte_len), (WcStatus::Success, Some(0)));
            assert_eq!(wc.imm_data, None);
            times.extend(wc.completion_ts);
            seen.push(wc.wr_id);
        }
        assert_eq!(seen, wr_ids);
        assert!(times.is_sorted() && times.len() == 5);
        assert_eq!(setup.live(1).mrs, 1, "received memory is released");
    }
    drop((a, b, cq, near, far));
    setup.assert_nothing_lives();
}

/// A program that leaves the loop early has not lost the rest, and other polls work again.
#[test]
fn an_iteration_ends_when_it_is_dropped() {
    let setup = Setup::stepped();
    let (_ends, cq, [near, far]) = pair(&setup);
    for wr_id in 0..4 {
        recv(&far, wr_id);
        send(&near, 9);
    }
    setup.settle();
    let mut iteration = cq.iterate();
    assert_eq!(iteration.next().unwrap().unwrap().wr_id, 0);
    assert_eq!(cq.poll().unwrap_err().kind(), ErrorKind::Usage);
    let other = cq.iterate().next().unwrap();
    assert_eq!(other.unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(iteration.next().unwrap().unwrap().wr_id, 1);
    drop(iteration);
    let rest: Vec<_> = cq.poll().unwrap().map(|wc| wc.wr_id).collect();
    assert_eq!(rest, [2, 3]);
    assert!(cq.iterate().next().is_none());
}

/// A queue pair that is dropped during an iteration is destroyed when it has ended.
#[test]
fn a_queue_pair_waits_for_an_iteration() {
    let setup = Setup::stepped();
    let ([a, b], cq, [near, far]) = pair(&setup);
    recv(&far, 1);
    send(&near, 2);
    setup.settle();
    let mut iteration = cq.iterate();
    assert!(iteration.next().is_some());
    drop(far);
    assert_eq!(setup.live(1).qps, 1);
    drop(iteration);
    assert_eq!(setup.live(1).qps, 0);
    drop((a, b, cq, near));
    setup.assert_nothing_lives();
}

#[test]
fn a_plain_cq_is_not_iterated() {
    let setup = Setup::stepped();
    let end = End::open(&setup, "sim0");
    let mut iteration = end.cq.iterate();
    let error = iteration.next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(iteration.next().is_none());
}
