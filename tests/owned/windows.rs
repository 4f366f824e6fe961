//! Memory windows: what they hold and what holds them.

use verbs_api::owned::{MwBind, Qp, SendWr};
use verbs_api::{
    Access, ErrorKind, MwType, Object, QpType, RcParams, Remote, WcOpcode, WcStatus, inc_rkey,
};

use crate::setup::{End, Setup, drain, pair, recv};

const BINDABLE: Access = Access::LOCAL_WRITE.union(Access::MW_BIND);
const WRITE: Access = Access::REMOTE_WRITE;

/// With what a write of 8 bytes from the near end to a place ends.
fn write(setup: &Setup, near: &Qp, end: &End, remote: Remote) -> WcStatus {
    let data = [end.mr.sge(..8)];
    near.post_send(SendWr::rdma_write(1, &data, remote))
        .unwrap();
    setup.settle();
    drain(&end.cq)[0].status
}

/// MW-02, MW-04, MR-07, MW-19: a window of either type opens what it was bound to; the region that
/// the program drops stays as long as the window is bound, and goes with it.
#[test]
fn a_region_that_is_dropped_stays_as_long_as_a_window_shows_it() {
    for mw_type in [MwType::Type1, MwType::Type2] {
        let setup = Setup::stepped();
        let ([a, b], [near, far]) = pair(&setup);
        let region = b.pd.alloc_mr(64, BINDABLE).unwrap();
        let window = b.pd.alloc_mw(mw_type).unwrap();
        assert_eq!((window.mw_type(), window.pd()), (mw_type, &b.pd));
        let before = window.rkey().unwrap();
        match mw_type {
            MwType::Type1 => {
                let bind = MwBind::new(7, region.sge(..8), WRITE);
                far.bind_mw(&window, &bind).unwrap();
            }
            _ => {
                let rkey = inc_rkey(before);
                let bind = SendWr::bind_mw(7, &window, rkey, region.sge(..8), WRITE);
                far.post_send(bind).unwrap();
            }
        }
        setup.settle();
        let addr = region.addr();
        drop(region);
        let done = drain(&b.cq)[0];
        assert_eq!((done.wr_id, done.opcode), (7, WcOpcode::BindMw));
        assert_eq!(done.status, WcStatus::Success);
        let rkey = window.rkey().unwrap();
        assert_ne!(rkey, before);
        assert_eq!(setup.live(1).mrs, 2, "the window shows it");
        assert_eq!(
            write(&setup, &near, &a, Remote { addr, rkey }),
            WcStatus::Success
        );
        drop(window);
        assert_eq!((setup.live(1).mws, setup.live(1).mrs), (0, 1));
        drop((a, b, near, far));
        setup.assert_nothing_lives();
    }
}

/// SQ-17: a bind that is under way holds window and region.
#[test]
fn a_bind_holds_its_window_and_region_until_its_completion_is_polled() {
    for mw_type in [MwType::Type1, MwType::Type2] {
        let setup = Setup::stepped();
        let (ends, [near, far]) = pair(&setup);
        let region = ends[1].pd.alloc_mr(64, BINDABLE).unwrap();
        let window = ends[1].pd.alloc_mw(mw_type).unwrap();
        match mw_type {
            MwType::Type1 => {
                let bind = MwBind::new(7, region.sge(..), WRITE);
                far.bind_mw(&window, &bind).unwrap();
            }
            _ => {
                let rkey = window.rkey().unwrap();
                let bind = SendWr::bind_mw(7, &window, rkey, region.sge(..), WRITE);
                far.post_send(bind).unwrap();
            }
        }
        drop((region, window));
        setup.settle();
        assert_eq!((setup.live(1).mws, setup.live(1).mrs), (1, 2));
        assert_eq!(drain(&ends[1].cq)[0].status, WcStatus::Success);
        assert_eq!((setup.live(1).mws, setup.live(1).mrs), (0, 1));
        drop((ends, near, far));
        setup.assert_nothing_lives();
    }
}

/// MW-09: what is of another domain is refused before the device is asked, and nothing is held.
#[test]
fn a_bind_of_another_domain_or_of_bytes_that_are_not_there_is_refused() {
    let setup = Setup::stepped();
    let end = End::open(&setup, "sim0");
    let qp = end.qp(QpType::Rc);
    let other = end.context.alloc_pd().unwrap();
    let [own, foreign] = [&end.pd, &other].map(|pd| {
        (
            pd.alloc_mw(MwType::Type2).unwrap(),
            pd.alloc_mr(64, BINDABLE).unwrap(),
        )
    });
    for (window, region, range, names) in [
        (&foreign.0, &own.1, 0..8, Some(Object::Mw)),
        (&own.0, &foreign.1, 0..8, Some(Object::Mr)),
        (&own.0, &own.1, 0..65, None),
    ] {
        let part = region.sge(range);
        let refused = qp
            .post_send(SendWr::bind_mw(1, window, 0, part, WRITE))
            .unwrap_err();
        let bound = qp
            .bind_mw(window, &MwBind::new(1, part, WRITE))
            .unwrap_err();
        for error in [&refused.error, &bound] {
            assert_eq!(error.kind(), ErrorKind::Invalid);
            let text = error.to_string();
            let named = names.is_none_or(|object| text.contains(object.name()));
            assert!(named, "{text}");
        }
    }
    let (_, region) = own;
    region.destroy().unwrap();
    foreign.0.destroy().unwrap();
}

/// MW-15, MW-17: a window that its owner or a peer invalidates lets its region go.
#[test]
fn an_invalidated_window_lets_its_region_go() {
    for by_peer in [false, true] {
        let setup = Setup::stepped();
        let (ends, [near, far]) = pair(&setup);
        let region = ends[1].pd.alloc_mr(64, BINDABLE).unwrap();
        let window = ends[1].pd.alloc_mw(MwType::Type2).unwrap();
        let rkey = window.rkey().unwrap();
        let bind = SendWr::bind_mw(1, &window, rkey, region.sge(..), WRITE);
        far.post_send(bind).unwrap();
        setup.settle();
        drain(&ends[1].cq);
        let region = region.destroy().unwrap_err().object;
        if by_peer {
            recv(&far, 2);
            near.post_send(SendWr::send_with_inv(3, &[], rkey)).unwrap();
        } else {
            far.post_send(SendWr::local_inv(2, rkey)).unwrap();
        }
        setup.settle();
        let wc = drain(&ends[1].cq)[0];
        assert_eq!((wc.wr_id, wc.status), (2, WcStatus::Success));
        assert_eq!(wc.invalidated_rkey(), by_peer.then_some(rkey));
        region.destroy().unwrap();
    }
}

/// ATOM-01, SQ-17: the result of an atomic is written to a region that the program has dropped.
#[test]
fn an_atomic_holds_the_region_of_its_result() {
    let setup = Setup::stepped();
    let ends = [End::open(&setup, "sim0"), End::open(&setup, "sim1")];
    let access = Access::LOCAL_WRITE | Access::REMOTE_ATOMIC;
    let params = RcParams {
        access,
        ..RcParams::default()
    };
    let [near, far] = ends.each_ref().map(|end| end.qp(QpType::Rc));
    near.connect_rc(&far, &params).unwrap();
    let counter = ends[1].pd.alloc_mr(8, access).unwrap();
    let result = ends[0].small_mr();
    let into = [result.sge(..)];
    let add = SendWr::fetch_and_add(1, &into, counter.remote(0), 5);
    near.post_send(add).unwrap();
    drop(result);
    setup.settle();
    assert_eq!(setup.live(0).mrs, 2);
    let wc = drain(&ends[0].cq)[0];
    assert_eq!(
        (wc.status, wc.opcode),
        (WcStatus::Success, WcOpcode::FetchAdd)
    );
    assert_eq!(setup.live(0).mrs, 1);
    assert_eq!(counter.read_vec(0, 8).unwrap(), 5u64.to_ne_bytes());
}
