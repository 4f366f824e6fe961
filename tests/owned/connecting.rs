//! Connecting: by endpoints that peers exchange, and datagrams.

use proptest::prelude::*;
use verbs_api::connect::Endpoint;
use verbs_api::owned::{RecvWr, SendWr};
use verbs_api::{Cause, Gid, QpAttrMask, QpState, QpType, RcParams, WcStatus};

use crate::setup::{End, Setup, drain, wr_ids};

proptest! {
    #[test]
    fn an_endpoint_is_its_bytes(bytes in prop::collection::vec(any::<u8>(), Endpoint::BYTES)) {
        let bytes = <[u8; Endpoint::BYTES]>::try_from(bytes).unwrap();
        prop_assert_eq!(Endpoint::from_bytes(bytes).to_bytes(), bytes);
    }
}

#[test]
fn the_bytes_of_an_endpoint_are_in_network_order() {
    let endpoint = Endpoint {
        gid: Gid([7; 16]),
        lid: 0x0102,
        qp_num: 0x0003_0405,
        psn: 0x0006_0708,
    };
    let mut bytes = [7; Endpoint::BYTES];
    bytes[16..].copy_from_slice(&[1, 2, 0, 3, 4, 5, 0, 6, 7, 8]);
    assert_eq!(endpoint.to_bytes(), bytes);
    assert_eq!(Endpoint::from_bytes(bytes), endpoint);
}

/// Two ends that know of each other only what 26 bytes say, each with a first PSN of its own.
#[test]
fn peers_that_exchange_endpoints_are_connected() {
    for qp_type in [QpType::Rc, QpType::Uc] {
        let setup = Setup::stepped();
        let ends = [End::open(&setup, "sim0"), End::open(&setup, "sim1")];
        let qps = ends.each_ref().map(|end| end.qp(qp_type));
        let params = [0xff_ffff, 77].map(|psn_a| RcParams {
            psn_a,
            ..RcParams::default()
        });
        let sent = [0, 1].map(|i| qps[i].endpoint(&params[i]).unwrap().to_bytes());
        for (i, qp) in qps.iter().enumerate() {
            let peer = Endpoint::from_bytes(sent[1 - i]);
            qp.connect(&peer, &params[i]).unwrap();
        }
        for (i, qp) in qps.iter().enumerate() {
            let attr = qp.query(QpAttrMask::STANDARD).unwrap().attr;
            assert_eq!(attr.qp_state, QpState::Rts);
            assert_eq!(attr.dest_qp_num, qps[1 - i].num());
            assert_eq!(
                (attr.sq_psn, attr.rq_psn),
                (params[i].psn_a, params[1 - i].psn_a)
            );
            let list = [ends[i].mr.sge(..64)];
            qp.post_recv(RecvWr::new(1, &list)).unwrap();
        }
        for (i, qp) in qps.iter().enumerate() {
            ends[i].mr.write(100, b"hello").unwrap();
            let list = [ends[i].mr.sge(100..105)];
            qp.post_send(SendWr::send(2, &list)).unwrap();
        }
        setup.settle();
        for end in &ends {
            let wcs = drain(&end.cq);
            assert_eq!(wcs.len(), 2);
            assert!(wcs.iter().all(|wc| wc.status == WcStatus::Success));
            assert_eq!(end.mr.read_vec(0, 5).unwrap(), b"hello");
        }
    }
}

/// RDMA within what the peer allows: an address and an rkey are all that it takes, and they hold
/// nothing.
#[test]
fn a_place_in_a_peers_region_ends_with_the_region() {
    let setup = Setup::stepped();
    let (ends, [near, _far]) = crate::setup::pair(&setup);
    let target = ends[1]
        .pd
        .alloc_mr(16, verbs_api::Access::ALL_RDMA)
        .unwrap();
    let remote = target.remote(8);
    ends[0].mr.write(0, b"written!").unwrap();
    let list = [ends[0].mr.sge(..8)];
    near.post_send(SendWr::rdma_write(1, &list, remote))
        .unwrap();
    setup.settle();
    assert_eq!(wr_ids(&ends[0].cq), [1]);
    assert_eq!(target.read_vec(8, 8).unwrap(), b"written!");
    target.destroy().unwrap();
    near.post_send(SendWr::rdma_read(2, &list, remote).fence())
        .unwrap();
    setup.settle();
    let failed = drain(&ends[0].cq)[0];
    assert_eq!((failed.wr_id, failed.status), (2, WcStatus::RemAccessErr));
}

/// QP-STATE-01: connecting twice says from where to where there is no way.
#[test]
fn connecting_a_connected_qp_is_refused() {
    let setup = Setup::stepped();
    let (_ends, [near, far]) = crate::setup::pair(&setup);
    let params = RcParams::default();
    let (from, to) = (QpState::Rts, QpState::Init);
    for error in [
        near.connect(&far.endpoint(&params).unwrap(), &params)
            .unwrap_err(),
        near.connect_rc(&far, &params).unwrap_err(),
        near.activate(1, 5).unwrap_err(),
    ] {
        assert_eq!(error.cause(), &Cause::InvalidTransition { from, to });
    }
    assert_eq!(near.state().unwrap(), QpState::Rts);
}
