//! InfiniBand between processes: the LID leads, with or without a GID.

use verbs_api::{
    AhAttr, Gid, GidType, LinkLayer, Mtu, Qp, QpAttrMask as M, QpModify, QpState, QpType, RcParams,
    SendOp, SendWr, Verbs, WcFlags, WcStatus, connect,
};
use verbs_sim::SimConfig;

use super::{Process, QKEY, assert_done, config, params, pattern};

fn infiniband(network: &str, seed: u64) -> SimConfig {
    let config = config(network).link_layer(LinkLayer::InfiniBand);
    config.scatter(seed)
}

/// Two processes of one network.
fn two_of(network: &str) -> [Process; 2] {
    [1, 2].map(|seed| Process::start(infiniband(network, seed), 4096))
}

fn lid(process: &Process) -> u16 {
    let port = process.sim.query_port(process.context, 1).unwrap();
    assert_eq!(port.link_layer, LinkLayer::InfiniBand);
    port.lid
}

/// The way to a port by its LID alone, and by its GID too.
fn ways(to: &Process) -> [AhAttr; 2] {
    let by_gid = AhAttr {
        dlid: lid(to),
        ..AhAttr::global(1, 0, to.gid())
    };
    [
        AhAttr {
            grh: None,
            ..by_gid
        },
        by_gid,
    ]
}

/// Connects a queue pair with a peer at the end of this path.
fn connect_by(process: &Process, qp: Qp, path: AhAttr, peer: u32) {
    let own = RcParams {
        timeout: 14,
        retry_cnt: 1,
        ..params()
    };
    let there = process.endpoint(qp, &own);
    let init = connect::to_state(&process.sim, qp, &there, &own, QpState::Init);
    init.unwrap();
    let to_rtr = QpModify::to(QpState::Rtr)
        .set(M::AV, |attr| attr.ah_attr = Some(path))
        .set(M::PATH_MTU, |attr| attr.path_mtu = Mtu::Mtu1024)
        .set(M::DEST_QPN, |attr| attr.dest_qp_num = peer)
        .set(M::RQ_PSN, |attr| attr.rq_psn = 0)
        .set(M::MAX_DEST_RD_ATOMIC, |attr| attr.max_dest_rd_atomic = 4)
        .set(M::MIN_RNR_TIMER, |attr| attr.min_rnr_timer = 1);
    let to_rts = QpModify::to(QpState::Rts)
        .set(M::SQ_PSN, |attr| attr.sq_psn = 0)
        .set(M::TIMEOUT, |attr| attr.timeout = own.timeout)
        .set(M::RETRY_CNT, |attr| attr.retry_cnt = own.retry_cnt)
        .set(M::RNR_RETRY, |attr| attr.rnr_retry = 7)
        .set(M::MAX_QP_RD_ATOMIC, |attr| attr.max_rd_atomic = 4);
    for step in [to_rtr, to_rts] {
        process.sim.modify_qp(qp, &step.attr, step.mask).unwrap();
    }
}

/// LID-01, DEV-14: each port of all processes has a LID of its own, and one GID.
#[test]
fn ports_of_all_processes_have_lids_of_their_own() {
    let processes = [1, 2, 3].map(|seed| {
        let config = infiniband("lids", seed).nodes(2).ports(2);
        Process::start(config, 64)
    });
    let mut lids = Vec::new();
    for process in &processes {
        let other = process.sim.open_device("sim1").unwrap();
        for context in [process.context, other] {
            for port in [1, 2] {
                lids.push(process.sim.query_port(context, port).unwrap().lid);
                let entry = process.sim.query_gid_ex(context, port, 0).unwrap();
                assert_eq!(entry.gid_type, GidType::Ib);
                assert!(entry.gid.is_link_local());
            }
        }
    }
    assert!(lids.iter().all(|lid| (1..=0xbfff).contains(lid)));
    lids.sort_unstable();
    lids.dedup();
    assert_eq!(lids.len(), 12);
}

/// LID-05: a LID leads to a queue pair of another process, with a GID on both sides, one, or none.
#[test]
fn connections_need_no_gid() {
    let [a, b] = &two_of("lid_connections");
    for (to_b, to_a) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let [from, to] = [a.qp(QpType::Rc), b.qp(QpType::Rc)];
        let number = |process: &Process, qp| process.sim.qp_num(qp).unwrap();
        connect_by(a, from, ways(b)[to_b], number(b, to));
        connect_by(b, to, ways(a)[to_a], number(a, from));
        a.fill(0, &pattern(3000));
        b.fill(0, &[0; 3000]);
        let write = SendOp::RdmaWrite {
            remote: b.mem.remote(0),
        };
        a.post(from, 1, (0, 3000), write);
        b.receive(to, 2, 3000, 100);
        a.post(from, 3, (0, 100), SendOp::Send);
        assert_done(&a.polled(2));
        assert_done(&b.polled(1));
        assert_eq!(b.bytes(0, 3000), pattern(3000));
        assert_eq!(b.bytes(3000, 100), pattern(100));
    }
}

/// LID-06, LID-07: a LID that no port has leads nowhere, as does one with another port's GID.
#[test]
fn a_wrong_lid_or_gid_leads_nowhere() {
    let [a, b] = &two_of("lid_nowhere");
    let [_, right] = ways(b);
    let foreign = AhAttr {
        dlid: lid(b),
        ..AhAttr::global(1, 0, a.gid())
    };
    let unowned = |dlid| AhAttr { dlid, ..right };
    for path in [unowned(0xffe), unowned(0xfff), unowned(0), foreign] {
        let [from, to] = [a.qp(QpType::Rc), b.qp(QpType::Rc)];
        connect_by(a, from, path, b.sim.qp_num(to).unwrap());
        connect_by(b, to, ways(a)[1], a.sim.qp_num(from).unwrap());
        a.post(from, 1, (0, 8), SendOp::Send);
        assert_eq!(a.polled(1)[0].status, WcStatus::RetryExcErr, "{path:?}");
    }
}

/// LID-02, LID-03, LID-04, WC-15: the completion of a datagram has the way back, and the service
/// level.
#[test]
fn a_datagram_is_answered_by_its_lid() {
    let processes = two_of("lid_datagrams");
    let [a, b] = &processes;
    let [from, to] = processes.each_ref().map(|process| {
        let qp = process.qp(QpType::Ud);
        connect::ud_to_rts(&process.sim, qp, 1, QKEY).unwrap();
        qp
    });
    for path in ways(b) {
        let path = AhAttr { sl: 5, ..path };
        b.fill(512, &[0xee; 40]);
        b.receive(to, 1, 512, 140);
        let ah = a.sim.create_ah(a.pd, &path).unwrap();
        let list = [a.mem.sge(0, 100)];
        a.fill(0, &pattern(100));
        let wr = SendWr::send(1, &list).to(ah, b.sim.qp_num(to).unwrap(), QKEY);
        a.sim.post_send(from, &[wr]).unwrap();
        assert_done(&a.polled(1));
        let came = b.polled(1)[0];
        assert_eq!((came.slid, came.sl, came.byte_len), (lid(a), 5, 140));
        assert_eq!(came.wc_flags.contains(WcFlags::GRH), path.grh.is_some());
        assert_eq!(b.bytes(552, 100), pattern(100));
        if path.grh.is_some() {
            let header = b.bytes(512, 40);
            assert_eq!(header[8..24], a.gid().0);
            assert_eq!(header[24..40], b.gid().0);
        }
        let back = AhAttr {
            dlid: came.slid,
            grh: None,
            ..path
        };
        let ah = b.sim.create_ah(b.pd, &back).unwrap();
        a.receive(from, 2, 512, 140);
        let list = [b.mem.sge(552, 100)];
        let wr = SendWr::send(2, &list).to(ah, came.src_qp, QKEY);
        b.sim.post_send(to, &[wr]).unwrap();
        assert_done(&b.polled(1));
        assert_done(&a.polled(1));
        assert_eq!(a.bytes(552, 100), pattern(100));
    }
}

/// MCAST-04, LID-08: a group has members in several processes.
#[test]
fn a_group_has_members_in_other_processes() {
    let mgid = Gid([0xff, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
    let mlid = 0xc009;
    let processes = two_of("lid_groups");
    let [a, b] = &processes;
    let [from, _] = processes.each_ref().map(|process| {
        let qp = process.qp(QpType::Ud);
        connect::ud_to_rts(&process.sim, qp, 1, QKEY).unwrap();
        process.sim.attach_mcast(qp, mgid, mlid).unwrap();
        process.receive(qp, 1, 512, 140);
        qp
    });
    let path = AhAttr {
        dlid: mlid,
        ..AhAttr::global(1, 0, mgid)
    };
    let ah = a.sim.create_ah(a.pd, &path).unwrap();
    let list = [a.mem.sge(0, 100)];
    let wr = SendWr::send(2, &list).to(ah, verbs_api::MULTICAST_QPN, QKEY);
    a.sim.post_send(from, &[wr]).unwrap();
    assert_done(&a.polled(2));
    let came = b.polled(1)[0];
    assert_eq!((came.slid, came.status), (lid(a), WcStatus::Success));
    assert_eq!(b.bytes(512 + 24, 16), mgid.0);
}

/// Processes of two link layers do not meet, even if a network has both.
#[test]
fn ethernet_and_infiniband_do_not_meet() {
    let a = Process::start(infiniband("two_link_layers", 1), 64);
    let [b, c] = [2, 3].map(|seed| Process::start(config("two_link_layers").scatter(seed), 64));
    let [from, to, then] = [&a, &b, &c].map(|process| {
        let qp = process.qp(QpType::Ud);
        connect::ud_to_rts(&process.sim, qp, 1, QKEY).unwrap();
        process.receive(qp, 1, 0, 64);
        qp
    });
    let number = b.sim.qp_num(to).unwrap();
    let [high, low] = b.address().octets()[2..].try_into().unwrap();
    let by_lid = AhAttr {
        grh: None,
        dlid: u16::from_be_bytes([high, low]) & 0xfff,
        ..AhAttr::global(1, 0, Gid::default())
    };
    let by_gid = AhAttr::global(1, 0, b.gid());
    // What comes after it shows that it was dropped.
    for (process, qp, path) in [(&a, from, by_lid), (&c, then, by_gid)] {
        let ah = process.sim.create_ah(process.pd, &path).unwrap();
        let list = [process.mem.sge(0, 8)];
        let wr = SendWr::send(2, &list).to(ah, number, QKEY);
        process.sim.post_send(qp, &[wr]).unwrap();
        assert_done(&process.polled(1));
    }
    assert_eq!(b.polled(1)[0].src_qp, c.sim.qp_num(then).unwrap());
    let found = b.sim.diagnose();
    assert!(found.to_string().contains("from another fabric"), "{found}");
}
