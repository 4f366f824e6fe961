//! Correct programs that look wrong, and the findings.

use verbs_api::cm::{Cm, PortSpace};
use verbs_api::{Arm, RecvWr, SrqInit, Verbs, Wait};

use super::cases::Case;
use super::common::{settle, take_events};
use super::{connected, ends};

pub(super) const CASES: &[Case] = &[
    (
        "reads the event of a CQ, and destroys it unpolled: the program may have ended first",
        |sim| {
            let (a, b, qp_a, qp_b) = connected(sim);
            sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
            b.recv(qp_b, 2, 0, 64);
            a.send(qp_a, 2, 0, 64);
            settle(sim);
            assert_eq!(take_events(sim, b.channel), [b.cq]);
            a.drain();
            sim.destroy_qp(qp_b, Wait::Poll).unwrap();
            sim.destroy_cq(b.cq, Wait::Poll).unwrap();
        },
        &[
            "sim1: VS-EVT-03: hint: an event of cq#0 was read, and cq#0 was not polled since: 1 completion waits in it",
        ],
    ),
    (
        "fills an SRQ until it is full, and asks which addresses have a device: no mistake",
        |sim| {
            let (_, b) = ends(sim);
            let srq = sim.create_srq(b.pd, &SrqInit::new(4)).unwrap();
            let posts = (0..8).map(|wr_id| sim.post_srq_recv(srq, &[RecvWr::new(wr_id, &[])]));
            assert_eq!(posts.filter(Result::is_err).count(), 4);
            let channel = sim.create_event_channel().unwrap();
            let id = sim.create_id(channel, 0, PortSpace::Tcp).unwrap();
            let link_local = "[fe80::1]:7471".parse().unwrap();
            assert!(sim.bind_addr(id, link_local).is_err());
        },
        &[],
    ),
    (
        "binds to an address that no device has (CM-07)",
        |sim| {
            let channel = sim.create_event_channel().unwrap();
            let id = sim.create_id(channel, 0, PortSpace::Tcp).unwrap();
            let unowned = "[2001:db8::1]:7471".parse().unwrap();
            assert!(sim.bind_addr(id, unowned).is_err());
        },
        &["sim0: VS-CALL-01: hint: rdma_bind_addr: EADDRNOTAVAIL: no device here has 2001:db8::1"],
    ),
];
