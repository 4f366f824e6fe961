//! The place of a finding: the line of the program that called a method of an owning object.

use std::panic::Location;

use verbs_api::{
    Access, MrInit, QpModify, QpState, QpType, RcParams, SrqAttr, SrqAttrMask, Verbs, connect,
};
use verbs_sim::Finding;

use crate::setup::{End, Setup};

/// A line of this file.
#[track_caller]
fn line() -> String {
    let place = Location::caller();
    format!("{}:{}", place.file(), place.line())
}

/// Each refused call is a finding, and a finding of a call of an owning object has its line.
#[test]
fn a_refused_call_of_an_owning_object_has_the_line_of_the_program() {
    let setup = Setup::stepped();
    let near = End::open(&setup, "sim0");
    let far = End::open(&setup, "sim1");
    let (qp, peer) = (near.qp(QpType::Rc), far.qp(QpType::Rc));
    qp.connect_rc(&peer, &RcParams::default()).unwrap();
    let (context, pd, cq) = (&near.context, &near.pd, &near.cq);
    let srq = pd.srq(8).create().unwrap();
    let modify = QpModify::to(QpState::Init);
    let endpoint = peer.endpoint(&RcParams::default()).unwrap();
    let limit = SrqAttr {
        srq_limit: 1 << 20,
        ..SrqAttr::default()
    };
    let access = Access::REMOTE_WRITE;
    // A domain with a region that only the backend knows.
    let domain = context.alloc_pd().unwrap();
    let region = setup
        .sim
        .alloc_mr(domain.handle(), 64, Access::empty())
        .unwrap();
    // One call a line, each with its line.
    #[rustfmt::skip]
    let lines = [
        (qp.connect_rc(&peer, &RcParams::default()), line()),
        (qp.connect(&endpoint, &RcParams::default()), line()),
        (qp.activate(1, 0), line()),
        (qp.modify(&modify), line()),
        (pd.alloc_mr(64, access).map(drop), line()),
        (pd.alloc_mr_as(&MrInit::new(64, access)).map(drop), line()),
        (context.cq(1 << 30).create().map(drop), line()),
        (cq.resize(1 << 30), line()),
        (pd.qp(QpType::Rc, cq, cq).max_send_wr(1 << 30).create().map(drop), line()),
        (pd.srq(1 << 30).create().map(drop), line()),
        (srq.modify(&limit, SrqAttrMask::LIMIT), line()),
        (srq.set_limit(1 << 20), line()),
        (domain.destroy().map_err(|refused| refused.error), line()),
    ];
    let mut expected = Vec::new();
    for (result, line) in lines {
        assert!(result.is_err(), "{line}");
        expected.push(line);
    }
    setup.sim.dereg_mr(region).unwrap();
    assert_places(&setup, &expected);
}

/// Also of the simulator's own method, and of functions that connect for the program.
#[test]
fn a_refused_step_of_a_connection_has_the_line_of_the_program() {
    let setup = Setup::stepped();
    let ends = ["sim0", "sim1"].map(|name| End::open(&setup, name));
    let [qp, peer] = [0, 1].map(|end: usize| ends[end].qp(QpType::Rc));
    let params = RcParams::default();
    qp.connect_rc(&peer, &params).unwrap();
    let endpoint = peer.endpoint(&params).unwrap();
    let (qp, peer, sim) = (qp.handle(), peer.handle(), &*setup.sim);
    #[rustfmt::skip]
    let lines = [
        (sim.connect_rc(qp, peer, &params), line()),
        (connect::to_endpoint(sim, qp, &endpoint, &params), line()),
        (connect::ud_to_rts(sim, qp, 1, 0), line()),
    ];
    let expected = lines.map(|(result, line)| {
        assert!(result.is_err(), "{line}");
        line
    });
    assert_places(&setup, &expected);
}

/// Findings have these places.
fn assert_places(setup: &Setup, expected: &[String]) {
    let mistakes = setup.sim.diagnose().mistakes;
    let site = |found: &Finding| found.site.map(|site| site.to_string());
    let places: Vec<_> = mistakes.iter().filter_map(site).collect();
    for line in expected {
        assert!(places.contains(line), "{line} in {mistakes:#?}");
    }
}
