//! Addresses that no process has.

use verbs_api::connect::{self, Endpoint};
use verbs_api::{AhAttr, Cause, ErrorKind, Gid, QpAttrMask, QpState, QpType, Verbs};
use verbs_sim::SimConfig;

use super::{Process, at, config, params};

/// Two processes, the second of which ends: its GIDs lead to it until then.
fn has_an_owner_until_it_ends([of_a, of_b]: [SimConfig; 2]) {
    let [a, b] = [of_a, of_b].map(|config| Process::start(config, 64));
    let gids = [0, 1].map(|index| b.sim.query_gid(b.context, 1, index).unwrap());
    let endpoint = b.endpoint(b.qp(QpType::Rc), &params());
    let create_ah = |gid| a.sim.create_ah(a.pd, &AhAttr::global(1, 0, gid));
    let connect = |qp, gid| {
        let endpoint = Endpoint { gid, ..endpoint };
        connect::to_endpoint(&a.sim, qp, &endpoint, &params())
    };
    for gid in gids {
        create_ah(gid).unwrap();
        connect(a.qp(QpType::Rc), gid).unwrap();
    }
    drop(b);
    for gid in gids {
        let qp = a.qp(QpType::Rc);
        for error in [create_ah(gid).unwrap_err(), connect(qp, gid).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            assert_eq!(*error.cause(), Cause::UnownedGid { gid });
        }
        let query = a.sim.query_qp(qp, QpAttrMask::STATE).unwrap();
        assert_eq!(query.attr.qp_state, QpState::Init);
        connect(qp, a.gid()).unwrap();
    }
}

/// AH-07
#[test]
fn a_loopback_address_has_an_owner_until_its_process_ends() {
    has_an_owner_until_it_ends([1, 2].map(|seed| config("resolution").scatter(seed)));
}

/// AH-07
#[test]
fn a_given_address_has_an_owner_until_its_process_ends() {
    has_an_owner_until_it_ends([at([127, 78, 1, 7], 1), at([127, 78, 1, 8], 2)]);
}

/// AH-07: a shared address has an owner as long as one of its processes lives.
#[test]
fn a_shared_address_has_an_owner_until_the_last_process_ends() {
    let shared = |seed| Process::start(at([127, 78, 1, 9], seed), 64);
    let other = Process::start(at([127, 78, 1, 10], 3), 64);
    let [first, second] = [1, 2].map(shared);
    let gid = first.gid();
    let create_ah = |gid: Gid| other.sim.create_ah(other.pd, &AhAttr::global(1, 0, gid));
    create_ah(gid).unwrap();
    drop(first);
    create_ah(gid).unwrap();
    drop(second);
    assert_eq!(create_ah(gid).unwrap_err().kind(), ErrorKind::TimedOut);
}
