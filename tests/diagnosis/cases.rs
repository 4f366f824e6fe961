//! Programs that make one mistake each, and the findings.

use verbs_api::lab::{Fault, Lab};
use verbs_api::{
    Access, AhAttr, Arm, CqInit, CqInitEx, MwType, QpCap, QpInit, QpModify, QpState, QpType,
    RcParams, Remote, SendWr, Verbs, Wait, WcStatus, connect,
};
use verbs_sim::Sim;

use super::common::{self, End, pair, settle, take_events};
use super::{QKEY, apart, close, connect_for_reads, connected, ends, lonely, received};

/// What a program does wrong, the program, and what is found.
pub(super) type Case = (&'static str, fn(&Sim), &'static [&'static str]);

pub(super) const CASES: &[Case] = &[
    (
        "armed after the completion came (CQ-ARM)",
        |sim| {
            let (a, b, qp_a, qp_b) = connected(sim);
            b.recv(qp_b, 2, 0, 64);
            a.send(qp_a, 2, 0, 64);
            settle(sim);
            sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
            sim.req_notify_cq(a.cq, Arm::SOLICITED).unwrap();
        },
        &[
            "sim0: VS-ARM-04: hint: cq#0 is armed solicited, and 1 completion of a send waits in it, which cannot be solicited: no event reports that (here)",
            "sim1: VS-ARM-01: cq#0 is armed next, and 1 completion waits in it from before: no event reports that (here)",
        ],
    ),
    (
        "an event is there, but is not read",
        |sim| {
            let (a, b, qp_a, qp_b) = connected(sim);
            sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
            b.recv(qp_b, 2, 0, 64);
            a.send(qp_a, 2, 0, 64);
            settle(sim);
            sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
            a.drain();
        },
        &[
            "sim1: VS-EVT-04: hint: 1 event of channel#0 not read",
            "sim1: VS-CQ-04: hint: 1 completion of cq#0 not polled",
        ],
    ),
    (
        "stops at a failure that it polls after arming: no wake-up is lost",
        |sim| {
            let (a, b, qp_a, _) = connected(sim);
            a.fail(qp_a);
            a.send(qp_a, 2, 0, 64);
            a.send(qp_a, 3, 0, 64);
            settle(sim);
            sim.req_notify_cq(a.cq, Arm::NEXT).unwrap();
            let mut wc = [verbs_api::Wc::default()];
            assert_eq!(sim.poll_cq(a.cq, &mut wc).unwrap(), 1);
            b.drain();
        },
        &["sim0: VS-CQ-04: hint: 1 completion of cq#0 not polled"],
    ),
    (
        "does not arm again after an event (CQ-ARM-17)",
        |sim| {
            let (a, b, qp_a, qp_b) = connected(sim);
            sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
            for wr_id in [2, 3] {
                b.recv(qp_b, wr_id, 0, 64);
                a.send(qp_a, wr_id, 0, 64);
                settle(sim);
                if wr_id == 2 {
                    assert_eq!(take_events(sim, b.channel), [b.cq]);
                    assert_eq!(b.drain().len(), 1);
                }
            }
            a.drain();
        },
        &[
            "sim1: VS-ARM-07: hint: cq#0 was not armed again since its last event was read, and 1 completion waits in it: no event reports that",
        ],
    ),
    (
        "posts more entries than the queue pair takes (SQ-06)",
        |sim| {
            let (a, _, qp_a, _) = connected(sim);
            let sge = a.mem.sge(0, 8);
            sim.post_send(qp_a, &[SendWr::send(1, &[sge; 40])])
                .unwrap_err();
        },
        &["sim0: VS-SQ-03: ibv_post_send: EINVAL: num_sge is 40, allowed are 0 to 1 (here)"],
    ),
    (
        "destroys an address handle too early: that the domain is in use follows from it (AH-04)",
        |sim| {
            let (a, b) = ends(sim);
            let (from, to) = (a.qp(QpType::Ud, 4), b.qp(QpType::Ud, 4));
            connect::ud_to_rts(sim, from, 1, QKEY).unwrap();
            connect::ud_to_rts(sim, to, 1, QKEY).unwrap();
            let gid = sim.query_gid(b.context, 1, 0).unwrap();
            let ah = sim.create_ah(a.pd, &AhAttr::global(1, 0, gid)).unwrap();
            b.recv(to, 1, 0, 100);
            let list = [a.mem.sge(0, 8)];
            a.post(
                from,
                SendWr::send(1, &list).to(ah, sim.qp_num(to).unwrap(), QKEY),
            );
            settle(sim);
            sim.destroy_ah(ah).unwrap_err();
            a.drain();
            b.drain();
            sim.destroy_qp(from, Wait::Poll).unwrap();
            sim.dereg_mr(a.mr).unwrap();
            sim.dealloc_pd(a.pd).unwrap_err();
        },
        &[
            "sim0: VS-CALL-01: hint: ibv_destroy_ah: usage error: work request 0x1 of qp#0 needs ah#0 until its completion has been polled (here)",
        ],
    ),
    (
        "no receive is posted (RNR)",
        |sim| {
            let (a, b) = ends(sim);
            let once = RcParams {
                rnr_retry: 1,
                ..RcParams::default()
            };
            let (qp_a, _) = pair((&a, &b), QpType::Rc, 4, &once);
            a.send(qp_a, 7, 0, 64);
            settle(sim);
            a.drain();
        },
        &[
            "sim0: VS-RNR-01: send 0x7 of qp 0x2 failed with RNR_RETRY_EXC_ERR: its peer had no receive posted",
        ],
    ),
    (
        "a datagram with another Q_Key (UD-06)",
        |sim| {
            let (a, b) = ends(sim);
            let (from, to) = (a.qp(QpType::Ud, 4), b.qp(QpType::Ud, 4));
            connect::ud_to_rts(sim, from, 1, QKEY).unwrap();
            connect::ud_to_rts(sim, to, 1, QKEY + 1).unwrap();
            let gid = sim.query_gid(b.context, 1, 0).unwrap();
            let attr = AhAttr::global(1, 0, gid);
            let ah = sim.create_ah(a.pd, &attr).unwrap();
            let list = [a.mem.sge(0, 8)];
            let number = sim.qp_num(to).unwrap();
            a.post(from, SendWr::send(1, &list).to(ah, number, QKEY));
            settle(sim);
            a.drain();
        },
        &[
            "sim1: VS-QP-06: hint: 1 packet from qp 0x2 of sim0 for qp 0x2 not taken: the Q_Key does not match: 0x1111 in the packet, and 0x1112 at the qp",
        ],
    ),
    (
        "a read of too much (RDMA-03)",
        |sim| {
            let (a, b, qp_a, _) = connected(sim);
            let remote = Remote {
                addr: b.mem.addr + 4000,
                rkey: b.mem.rkey,
            };
            let list = [a.mem.sge(0, 128)];
            a.post(qp_a, SendWr::rdma_read(9, &list, remote));
            settle(sim);
            a.drain();
        },
        &[
            "sim0: VS-KEY-01: send 0x9 of qp 0x2 failed with REM_ACCESS_ERR: at sim1, 128 bytes from 0xfa0 on are not in mr#0, which has 4096",
            "sim1: VS-EVT-05: hint: 1 event QP_ACCESS_ERR of qp 0x2 not read",
        ],
    ),
    (
        "a write between path MTUs that differ (RQ-14)",
        |sim| {
            let (a, b) = ends(sim);
            let qp = apart(&a, &b, QpType::Rc);
            let list = [a.mem.sge(0, 1000)];
            a.post(qp, SendWr::rdma_write(4, &list, b.mem.remote(0)));
            settle(sim);
            a.drain();
        },
        &[
            "sim1: VS-QP-04: the path MTUs differ: 256 at qp 0x2, and 1024 at its peer, qp 0x2 of sim0 (here)",
            "sim0: VS-QP-04: send 0x4 of qp 0x2 failed with REM_INV_REQ_ERR: at sim1, the message was cut for another path MTU than 256 bytes",
            "sim1: VS-EVT-05: hint: 1 event QP_REQ_ERR of qp 0x2 not read",
        ],
    ),
    (
        "a read between path MTUs that differ (RDMA-28)",
        |sim| {
            let (a, b) = ends(sim);
            let qp = apart(&a, &b, QpType::Rc);
            let list = [a.mem.sge(0, 1000)];
            a.post(qp, SendWr::rdma_read(4, &list, b.mem.remote(0)));
            settle(sim);
            a.drain();
        },
        &[
            "sim1: VS-QP-04: the path MTUs differ: 256 at qp 0x2, and 1024 at its peer, qp 0x2 of sim0 (here)",
            "sim0: VS-QP-04: send 0x4 of qp 0x2 failed with LOC_LEN_ERR: the data were cut for another path MTU than 1024 bytes",
        ],
    ),
    (
        "a message of UC between path MTUs that differ (UC-10)",
        |sim| {
            let (a, b) = ends(sim);
            let qp = apart(&a, &b, QpType::Uc);
            a.send(qp, 4, 0, 1000);
            settle(sim);
            a.drain();
        },
        &[
            "sim1: VS-QP-04: the path MTUs differ: 256 at qp 0x2, and 1024 at its peer, qp 0x2 of sim0 (here)",
        ],
    ),
    (
        "a key of a window that is bound to nothing (MW-01)",
        |sim| {
            let (a, b, qp_a, _) = connected(sim);
            let mw = sim.alloc_mw(b.pd, MwType::Type1).unwrap();
            let (addr, rkey) = (b.mem.addr, sim.query_mw(mw).unwrap().rkey);
            let list = [a.mem.sge(0, 8)];
            a.post(qp_a, SendWr::rdma_write(3, &list, Remote { addr, rkey }));
            settle(sim);
            a.drain();
            sim.dealloc_mw(mw).unwrap();
        },
        &[
            "sim0: VS-KEY-01: send 0x3 of qp 0x2 failed with REM_ACCESS_ERR: at sim1, no window of rkey 0xc0000101 opens that",
            "sim1: VS-EVT-05: hint: 1 event QP_ACCESS_ERR of qp 0x2 not read",
        ],
    ),
    (
        "a CQ of the receiver overruns (CQ-OVR-04)",
        |sim| {
            let (a, b) = ends(sim);
            let (qp_a, qp_b) = pair((&a, &b), QpType::Rc, 16, &RcParams::default());
            for wr_id in 2..7 {
                b.recv(qp_b, wr_id, 0, 64);
                a.send(qp_a, wr_id, 0, 64);
                settle(sim);
                a.drain();
            }
        },
        &["sim1: VS-CQ-01: cq#0, of 4 entries, has overrun: 1 completion was lost, of qp 0x2"],
    ),
    (
        "a fault rule",
        |sim| {
            let (a, b, qp_a, qp_b) = connected(sim);
            sim.inject(Fault::complete(WcStatus::LocProtErr).node(0))
                .unwrap();
            b.recv(qp_b, 2, 0, 64);
            a.send(qp_a, 2, 0, 64);
            settle(sim);
            a.drain();
            b.drain();
        },
        &[
            "sim0: VS-LAB-01: hint: send 0x2 of qp 0x2 failed with LOC_PROT_ERR: a fault rule wants it",
        ],
    ),
    (
        "a device is closed with what it has (DEV-03)",
        |sim| {
            let context = sim.open_device("sim1").unwrap();
            for _ in 0..11 {
                sim.alloc_pd(context).unwrap();
            }
            sim.close_device(context).unwrap();
        },
        &[
            "sim1: VS-OBJ-03: hint: not destroyed before the context was closed: pd#0 (here), pd#1 (here), pd#2 (here), pd#3 (here), pd#4 (here), pd#5 (here), pd#6 (here), pd#7 (here), and 3 more",
        ],
    ),
    (
        "armed after the completion came, and all is destroyed (CQ-ARM-30)",
        |sim| {
            let (a, b, qp_a, qp_b) = received(sim);
            sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
            close(&a, &[qp_a]);
            close(&b, &[qp_b]);
        },
        &[
            "sim1: VS-ARM-01: cq#0 is armed next, and 1 completion waits in it from before: no event reports that (here)",
        ],
    ),
    (
        "armed after the completion came, and waits (CQ-ARM-30)",
        |sim| {
            let (_, b, ..) = received(sim);
            sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
            sim.get_cq_event(b.channel, Wait::Forever).unwrap_err();
        },
        &[
            "sim1: VS-ARM-01: a thread waits in ibv_get_cq_event for an event on channel#0, for 0.0 s now: cq#0 is armed next, and 1 completion waits in it from before: no event reports that, the wait is at here (here)",
        ],
    ),
    (
        "polls one of two, and arms (CQ-ARM-03)",
        |sim| {
            let (a, b, qp_a, qp_b) = received(sim);
            b.recv(qp_b, 3, 0, 64);
            a.send(qp_a, 3, 0, 64);
            settle(sim);
            a.drain();
            sim.poll_cq(b.cq, &mut [verbs_api::Wc::default()]).unwrap();
            sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
        },
        &[
            "sim1: VS-ARM-02: cq#0 is armed next, and 1 completion waits in it from before, which the poll before had no room for: no event reports that (here)",
        ],
    ),
    (
        "waits, and has not armed (CQ-ARM-17)",
        |sim| {
            let (_, b, ..) = connected(sim);
            sim.get_cq_event(b.channel, Wait::Forever).unwrap_err();
        },
        &[
            "sim1: VS-ARM-03: a thread waits in ibv_get_cq_event for an event on channel#0, for 0.0 s now: cq#0 is not armed (here)",
        ],
    ),
    (
        "waits for solicited completions, but no message is solicited (CQ-ARM-08)",
        |sim| {
            let (a, b, qp_a, qp_b) = connected(sim);
            sim.req_notify_cq(b.cq, Arm::SOLICITED).unwrap();
            b.recv(qp_b, 2, 0, 64);
            a.send(qp_a, 2, 0, 64);
            sim.get_cq_event(b.channel, Wait::Forever).unwrap_err();
            a.drain();
        },
        &[
            "sim1: VS-ARM-06: a thread waits in ibv_get_cq_event for an event on channel#0, for 0.0 s now: cq#0 is armed solicited, and 1 completion waits in it, not solicited: no event reports that, the wait is at here (here)",
        ],
    ),
    (
        "arms a CQ without a channel (CQ-ARM-48)",
        |sim| {
            let (a, _) = ends(sim);
            sim.req_notify_cq(lonely(&a, 4), Arm::NEXT).unwrap();
        },
        &[
            "sim0: VS-ARM-05: cq#1 is armed, but has no completion channel: no event comes of it (here)",
        ],
    ),
    (
        "destroys a CQ with an event that was not acknowledged (CHAN-35)",
        |sim| {
            let (a, b, qp_a, qp_b) = connected(sim);
            sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
            b.recv(qp_b, 2, 0, 64);
            a.send(qp_a, 2, 0, 64);
            settle(sim);
            sim.get_cq_event(b.channel, Wait::Poll).unwrap();
            a.drain();
            b.drain();
            sim.destroy_qp(qp_b, Wait::Poll).unwrap();
            sim.destroy_cq(b.cq, Wait::Forever).unwrap_err();
        },
        &[
            "sim1: VS-EVT-01: a thread waits in ibv_destroy_cq for events to be acknowledged, for 0.0 s now: 1 event of cq#0 not acknowledged, read at here (here)",
        ],
    ),
    (
        "acknowledges what it has not read (CHAN-37)",
        |sim| {
            let (a, _) = ends(sim);
            sim.ack_cq_events(a.cq, 1).unwrap_err();
        },
        &[
            "sim0: VS-EVT-02: ibv_ack_cq_events: usage error: 1 events of cq#0 are acknowledged, but only 0 were read and not acknowledged yet (here)",
        ],
    ),
    (
        "reads the event of one CQ and polls another (CQ-ARM-04)",
        |sim| {
            let (a, b, qp_a, qp_b) = connected(sim);
            sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
            b.recv(qp_b, 2, 0, 64);
            a.send(qp_a, 2, 0, 64);
            settle(sim);
            assert_eq!(take_events(sim, b.channel), [b.cq]);
            a.drain();
            assert!(common::drain(sim, lonely(&b, 4)).is_empty());
        },
        &[
            "sim1: VS-EVT-03: an event of cq#0 was read, and cq#0 was not polled since: 1 completion waits in it",
        ],
    ),
    (
        "a CQ that is too small for what is outstanding (SQ-30)",
        |sim| {
            let (_, b, _, qp_b) = connected(sim);
            let small = sim.create_cq(b.context, &CqInit::new(1)).unwrap();
            let qp = b.qp_on(small, QpType::Rc, 4);
            let peer = connect::endpoint(sim, qp_b, &RcParams::default()).unwrap();
            let init = QpState::Init;
            connect::to_state(sim, qp, &peer, &RcParams::default(), init).unwrap();
            b.recv(qp, 1, 0, 64);
            b.recv(qp, 2, 0, 64);
            b.recv(qp_b, 3, 0, 64);
        },
        &[
            "sim1: VS-CQ-02: hint: cq#1, of 1 entry, holds 0 completions, and 2 work requests may yet complete in it (here)",
        ],
    ),
    (
        "no send is signaled until the queue is full (SQ-03)",
        |sim| {
            let (a, b, qp_a, _) = connected(sim);
            let list = [a.mem.sge(0, 8)];
            for wr_id in 0..4 {
                a.post(
                    qp_a,
                    SendWr::rdma_write(wr_id, &list, b.mem.remote(0)).unsignaled(),
                );
            }
            let more = SendWr::rdma_write(5, &list, b.mem.remote(0));
            sim.post_send(qp_a, &[more]).unwrap_err();
            sim.post_send(qp_a, &[more]).unwrap_err();
        },
        &[
            "sim0: VS-SQ-01: ibv_post_send: ENOMEM: the send queue, in which no send is signaled, is full: 4 work requests: no slot is ever free again (here)",
            "sim0: VS-SQ-01: ibv_post_send: ENOMEM: the send queue, in which no send is signaled, is full: 4 work requests: no slot is ever free again (here)",
        ],
    ),
    (
        "never polls, and destroys all (CQ-POLL-10)",
        |sim| {
            let (a, b) = ends(sim);
            let (qp_a, qp_b) = pair((&a, &b), QpType::Rc, 4, &RcParams::default());
            let list = [a.mem.sge(0, 8)];
            a.post(qp_a, SendWr::rdma_write(1, &list, b.mem.remote(0)));
            settle(sim);
            close(&a, &[qp_a]);
            close(&b, &[qp_b]);
        },
        &["sim0: VS-CQ-03: cq#0 was never polled: 1 completion waits in it"],
    ),
    (
        "sends from an on-demand region that it has unmapped (ODP-04)",
        |sim| {
            let (a, _, qp_a, _) = connected(sim);
            let mr = sim.alloc_mr(a.pd, 64, Access::ON_DEMAND).unwrap();
            sim.map_mr(mr, false).unwrap();
            a.post(
                qp_a,
                SendWr::send(1, &[sim.query_mr(mr).unwrap().sge(16, 8)]),
            );
            settle(sim);
            a.drain();
        },
        &[
            "sim0: VS-MEM-02: work uses mr#1, of which 8 bytes from 0x10 on are not all mapped (here)",
            "sim0: VS-MEM-02: send 0x1 of qp 0x2 failed with LOC_PROT_ERR: 8 bytes from 0x10 on of mr#1 are not all mapped",
        ],
    ),
    (
        "unmaps an on-demand region that its peer writes to (ODP-04)",
        |sim| {
            let (a, b, qp_a, _) = connected(sim);
            let access = Access::ALL_RDMA | Access::ON_DEMAND;
            let mr = sim.alloc_mr(b.pd, 64, access).unwrap();
            sim.map_mr(mr, false).unwrap();
            let target = sim.query_mr(mr).unwrap().remote(8);
            a.post(qp_a, SendWr::rdma_write(1, &[a.mem.sge(0, 8)], target));
            settle(sim);
            a.drain();
        },
        &[
            "sim1: VS-MEM-02: work uses mr#1, of which 8 bytes from 0x8 on are not all mapped (here)",
            "sim0: VS-MEM-02: send 0x1 of qp 0x2 failed with REM_ACCESS_ERR: at sim1, 8 bytes from 0x8 on of mr#1 are not all mapped",
            "sim1: VS-EVT-05: hint: 1 event QP_ACCESS_ERR of qp 0x2 not read",
        ],
    ),
    (
        "deregisters what the peer writes to (MR-05)",
        |sim| {
            let (a, b, qp_a, _) = connected(sim);
            let list = [a.mem.sge(0, 8)];
            let mr = sim.alloc_mr(b.pd, 64, Access::ALL_RDMA).unwrap();
            let target = sim.query_mr(mr).unwrap();
            sim.dereg_mr(mr).unwrap();
            a.post(qp_a, SendWr::rdma_write(1, &list, target.remote(0)));
            settle(sim);
            a.drain();
        },
        &[
            "sim0: VS-MR-02: send 0x1 of qp 0x2 failed with REM_ACCESS_ERR: at sim1, mr#1, of the rkey 0x80000201, was deregistered, at here, and registered at here",
            "sim1: VS-EVT-05: hint: 1 event QP_ACCESS_ERR of qp 0x2 not read",
        ],
    ),
    (
        "registers for remote writes alone (MR-01)",
        |sim| {
            let (a, _) = ends(sim);
            sim.alloc_mr(a.pd, 64, Access::REMOTE_WRITE).unwrap_err();
        },
        &["sim0: VS-MR-01: alloc_mr: EINVAL: access allows remote writes but no local ones (here)"],
    ),
    (
        "resizes a CQ below what is in it (CQ-RESIZE-06)",
        |sim| {
            let (a, b, qp_a, qp_b) = received(sim);
            b.recv(qp_b, 3, 0, 64);
            a.send(qp_a, 3, 0, 64);
            settle(sim);
            a.drain();
            sim.resize_cq(b.cq, 1).unwrap_err();
            b.drain();
        },
        &["sim1: VS-CQ-05: ibv_resize_cq: EINVAL: cqe is 1, allowed are 2 to 4194304 (here)"],
    ),
    (
        "continues an iteration that does not exist (CQ-CREATE-15)",
        |sim| {
            let (a, _) = ends(sim);
            let cq = sim
                .create_cq_ex(a.context, &CqInitEx::new(CqInit::new(4)))
                .unwrap();
            sim.start_poll(cq).unwrap_err();
            sim.next_poll(cq).unwrap_err();
        },
        &["sim0: VS-CQ-06: ibv_next_poll: usage error: no iteration over cq#1 is open (here)"],
    ),
    (
        "sends more inline than the queue pair has room for (SQ-09)",
        |sim| {
            let (a, _, qp_a, _) = connected(sim);
            let bytes = [0; 4096];
            sim.post_send(qp_a, &[SendWr::send(1, &[]).inline_data(&bytes)])
                .unwrap_err();
            let _ = a;
        },
        &["sim0: VS-SQ-02: ibv_post_send: EINVAL: inline data is 4096, allowed are 0 to 0 (here)"],
    ),
    (
        "leaves attributes out (QP-STATE-03)",
        |sim| {
            let (a, _) = ends(sim);
            let qp = a.qp(QpType::Rc, 4);
            let modify = QpModify::to(QpState::Init);
            sim.modify_qp(qp, &modify.attr, modify.mask).unwrap_err();
        },
        &[
            "sim0: VS-QP-01: ibv_modify_qp: EINVAL: RESET to INIT also requires ACCESS_FLAGS | PKEY_INDEX | PORT (here)",
        ],
    ),
    (
        "sends before RTS (QP-STATE-18)",
        |sim| {
            let (a, _) = ends(sim);
            let qp = a.qp(QpType::Rc, 4);
            let list = [a.mem.sge(0, 8)];
            sim.post_send(qp, &[SendWr::send(1, &list)]).unwrap_err();
        },
        &["sim0: VS-QP-02: ibv_post_send: EINVAL: the qp is in RESET (here)"],
    ),
    (
        "posts on after a failure (QP-FLUSH-03)",
        |sim| {
            let (a, _, qp_a, _) = connected(sim);
            let nowhere = Remote {
                addr: 1,
                rkey: 0x1234,
            };
            let list = [a.mem.sge(0, 8)];
            for wr_id in 0..4 {
                a.post(qp_a, SendWr::rdma_write(wr_id, &list, nowhere));
                settle(sim);
                a.drain();
            }
        },
        &[
            "sim0: VS-KEY-01: send 0x0 of qp 0x2 failed with REM_ACCESS_ERR: at sim1, no region has the rkey 0x1234",
            "sim0: VS-QP-05: hint: a send was posted on qp 0x2, after a completion had shown that it is in ERR: it is only flushed, and 1 more time",
            "sim1: VS-EVT-05: hint: 1 event QP_ACCESS_ERR of qp 0x2 not read",
        ],
    ),
    (
        "PSNs do not meet (CM-32)",
        |sim| {
            let (a, b) = ends(sim);
            let (qp_a, qp_b) = (a.qp(QpType::Rc, 4), b.qp(QpType::Rc, 4));
            let params = RcParams::default();
            for (qp, of, psn) in [(qp_a, qp_b, 7), (qp_b, qp_a, 0)] {
                let mut peer = connect::endpoint(sim, of, &params).unwrap();
                peer.psn = psn;
                connect::to_endpoint(sim, qp, &peer, &params).unwrap();
            }
        },
        &[
            "sim1: VS-QP-04: the PSN that comes is not the one that is waited for: 0 at qp 0x2, and 7 at its peer, qp 0x2 of sim0 (here)",
        ],
    ),
    (
        "destroys what is in use (LIFE-01)",
        |sim| {
            let (a, _) = ends(sim);
            sim.dealloc_pd(a.pd).unwrap_err();
        },
        &["sim0: VS-OBJ-01: ibv_dealloc_pd: EBUSY: the pd is still used by 1 mr (here)"],
    ),
    (
        "uses what was destroyed (LIFE-05)",
        |sim| {
            let (a, _, qp_a, _) = connected(sim);
            sim.destroy_qp(qp_a, Wait::Poll).unwrap();
            let list = [a.mem.sge(0, 8)];
            sim.post_send(qp_a, &[SendWr::send(1, &list)]).unwrap_err();
        },
        &[
            "sim0: VS-OBJ-02: ibv_post_send: EINVAL: the qp handle names an object that has been destroyed (here)",
        ],
    ),
    (
        "takes the CQ of another context (DEV-13)",
        |sim| {
            let (a, _) = ends(sim);
            let other = End::open(sim, "sim0", 4, 64);
            let init = QpInit::new(QpType::Rc, other.cq, other.cq).cap(QpCap::default());
            sim.create_qp(a.pd, &init).unwrap_err();
        },
        &["sim0: VS-OBJ-04: ibv_create_qp: EINVAL: the cq is of another context (here)"],
    ),
    (
        "posts the receive when the message has come (RNR-01)",
        |sim| {
            let (a, b, qp_a, qp_b) = connected(sim);
            a.send(qp_a, 2, 0, 64);
            sim.advance(core::time::Duration::from_millis(1)).unwrap();
            b.recv(qp_b, 2, 0, 64);
            settle(sim);
            a.drain();
            b.drain();
        },
        &[
            "sim1: VS-RNR-02: hint: 1 packet from qp 0x2 of sim0 for qp 0x2 not taken, in 2 tries: no receive is posted",
        ],
    ),
    (
        "may have more reads under way than the other end takes, and reads (CM-32)",
        |sim| {
            let (a, b) = ends(sim);
            let (qp_a, qp_b) = (a.qp(QpType::Rc, 4), b.qp(QpType::Rc, 4));
            connect_for_reads(sim, (qp_a, qp_b), 4);
            connect_for_reads(sim, (qp_b, qp_a), 1);
            let list = [a.mem.sge(0, 64)];
            a.post(qp_a, SendWr::rdma_write(1, &list, b.mem.remote(0)));
            settle(sim);
            a.drain();
            assert!(sim.diagnose().mistakes.is_empty());
            a.post(qp_a, SendWr::rdma_read(2, &list, b.mem.remote(0)));
            settle(sim);
            a.drain();
        },
        &[
            "sim0: VS-QP-04: more reads may be under way (max_rd_atomic) than the other end takes (max_dest_rd_atomic): 4 at qp 0x2, and 1 at its peer, qp 0x2 of sim1 (here)",
        ],
    ),
    (
        "reads before the other end is ready, which takes fewer reads (CM-32)",
        |sim| {
            let (a, b) = ends(sim);
            let (qp_a, qp_b) = (a.qp(QpType::Rc, 4), b.qp(QpType::Rc, 4));
            connect_for_reads(sim, (qp_a, qp_b), 4);
            let list = [a.mem.sge(0, 64)];
            a.post(qp_a, SendWr::rdma_read(2, &list, b.mem.remote(0)));
            connect_for_reads(sim, (qp_b, qp_a), 1);
            settle(sim);
            a.drain();
        },
        &[
            "sim0: VS-QP-04: more reads may be under way (max_rd_atomic) than the other end takes (max_dest_rd_atomic): 4 at qp 0x2, and 1 at its peer, qp 0x2 of sim1 (here)",
        ],
    ),
    (
        "sends to a queue pair that was destroyed (WC-30)",
        |sim| {
            let (a, _, qp_a, qp_b) = connected(sim);
            sim.destroy_qp(qp_b, Wait::Poll).unwrap();
            a.send(qp_a, 2, 0, 64);
            settle(sim);
            a.drain();
        },
        &[
            "sim0: VS-QP-03: send 0x2 of qp 0x2 failed with RETRY_EXC_ERR: at sim1, for qp 0x2, the qp was destroyed, at here",
        ],
    ),
    (
        "uses an atomic on an address that is not a multiple of 8 (ATOM-04)",
        |sim| {
            let (a, b, qp_a, _) = connected(sim);
            let list = [a.mem.sge(0, 8)];
            a.post(qp_a, SendWr::fetch_and_add(2, &list, b.mem.remote(4), 1));
            settle(sim);
            a.drain();
        },
        &[
            "sim0: VS-ATOM-01: send 0x2 of qp 0x2 failed with REM_INV_REQ_ERR: at sim1, the address is not a multiple of 8",
            "sim1: VS-EVT-05: hint: 1 event QP_REQ_ERR of qp 0x2 not read",
        ],
    ),
    (
        "gives the rkey of another device (RDMA-05)",
        |sim| {
            let (a, b, qp_a, _) = connected(sim);
            let other = sim.alloc_mr(a.pd, 64, Access::REMOTE_WRITE | Access::LOCAL_WRITE);
            let rkey = sim.query_mr(other.unwrap()).unwrap().rkey;
            let (list, addr) = ([a.mem.sge(0, 8)], b.mem.remote(0).addr);
            a.post(qp_a, SendWr::rdma_write(2, &list, Remote { addr, rkey }));
            settle(sim);
            a.drain();
        },
        &[
            "sim0: VS-KEY-01: send 0x2 of qp 0x2 failed with REM_ACCESS_ERR: at sim1, 0x80000201 is the rkey of mr#1 of another device, sim0, registered at here",
            "sim1: VS-EVT-05: hint: 1 event QP_ACCESS_ERR of qp 0x2 not read",
        ],
    ),
    (
        "polls the success of a queue pair that it has destroyed (CQ-DESTROY-08)",
        |sim| {
            let (a, b, qp_a, qp_b) = connected(sim);
            b.recv(qp_b, 2, 0, 64);
            a.send(qp_a, 2, 0, 64);
            settle(sim);
            sim.destroy_qp(qp_a, Wait::Poll).unwrap();
            a.drain();
            b.drain();
        },
        &[
            "sim0: VS-CQ-07: hint: the success of send 0x2 of qp 0x2 was polled after that qp was destroyed, at here",
        ],
    ),
    (
        "waits for solicited completions of sends, which are never solicited (CQ-ARM-08)",
        |sim| {
            let (a, b, qp_a, qp_b) = connected(sim);
            sim.req_notify_cq(a.cq, Arm::SOLICITED).unwrap();
            b.recv(qp_b, 2, 0, 64);
            a.send(qp_a, 2, 0, 64);
            sim.get_cq_event(a.channel, Wait::Forever).unwrap_err();
            b.drain();
        },
        &[
            "sim0: VS-ARM-06: a thread waits in ibv_get_cq_event for an event on channel#0, for 0.0 s now: cq#0 is armed solicited, and 1 completion of a send waits in it, which cannot be solicited: no event reports that, the wait is at here (here)",
        ],
    ),
    (
        "does not arm again after an event, and waits (CQ-ARM-17)",
        |sim| {
            let (a, b, qp_a, qp_b) = connected(sim);
            sim.req_notify_cq(b.cq, Arm::NEXT).unwrap();
            for number in [2, 3] {
                b.recv(qp_b, number, 0, 64);
                a.send(qp_a, number, 0, 64);
                settle(sim);
                if number == 2 {
                    take_events(sim, b.channel);
                    b.drain();
                }
            }
            sim.get_cq_event(b.channel, Wait::Forever).unwrap_err();
            a.drain();
        },
        &[
            "sim1: VS-ARM-03: a thread waits in ibv_get_cq_event for an event on channel#0, for 0.0 s now: cq#0 was not armed again since its last event was read, and 1 completion waits in it: no event reports that, the wait is at here",
        ],
    ),
    (
        "sends bytes that a read of its queue brings, without a fence or inline (SQ-13)",
        |sim| {
            let (a, b) = ends(sim);
            let params = RcParams {
                access: Access::ALL_RDMA,
                ..RcParams::default()
            };
            let (qp_a, qp_b) = pair((&a, &b), QpType::Rc, 4, &params);
            for wr_id in 1..=4 {
                b.recv(qp_b, wr_id, 1024, 64);
            }
            let list = [a.mem.sge(0, 64)];
            let read = |wr_id| SendWr::rdma_read(wr_id, &list, b.mem.remote(0));
            let part = [a.mem.sge(63, 1)];
            let (before, after) = ([a.mem.sge(64, 8)], SendWr::send(6, &list));
            let post = |wr| sim.post_send(qp_a, &[wr]).unwrap();
            post(read(2));
            settle(sim);
            post(SendWr::send(3, &before).unsignaled());
            post(SendWr::send(5, &part).unsignaled());
            // A fence orders this send and those behind it.
            post(SendWr::send(4, &part).unsignaled().fence());
            settle(sim);
            a.drain();
            post(after);
            settle(sim);
            a.drain();
            b.drain();
        },
        &[
            "sim0: VS-SQ-06: send 0x5 of qp 0x2 is not fenced, and takes bytes that RDMA_READ 0x2 brings, whose completion was not polled, posted at here (here)",
        ],
    ),
    (
        "polls completions from before a RESET after it has posted new work (CQ-DESTROY-08)",
        |sim| {
            let (a, b, qp_a, qp_b) = connected(sim);
            b.recv(qp_b, 2, 0, 64);
            a.send(qp_a, 2, 0, 64);
            settle(sim);
            for qp in [qp_a, qp_b] {
                let reset = QpModify::to(QpState::Reset);
                sim.modify_qp(qp, &reset.attr, reset.mask).unwrap();
            }
            // This end polls in time.
            assert_eq!(b.drain().len(), 1);
            connect::by_attributes(sim, qp_a, qp_b, &RcParams::default()).unwrap();
            b.recv(qp_b, 3, 0, 64);
            a.send(qp_a, 3, 0, 64);
            settle(sim);
            let mut wc = [verbs_api::Wc::default(); 2];
            assert_eq!(sim.poll_cq(a.cq, &mut wc).unwrap(), 2);
            b.drain();
        },
        &[
            "sim0: VS-CQ-07: hint: the completion of send 0x2 (SUCCESS) was polled after new work was posted, and is from before the RESET of qp 0x2, at here (here)",
        ],
    ),
];
