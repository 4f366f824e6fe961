//! The same seed and the same calls give the same trace, byte for byte.

mod common;

use std::process::Command;

use common::{End, pair};
use verbs_api::lab::{Fault, PacketFilter};
use verbs_api::{AhAttr, Arm, QpType, RcParams, SendWr, Verbs, Wait, Wc, connect};
use verbs_sim::{Sim, SimConfig};

/// Set for the process that only prints the trace.
const PRINT: &str = "VERBSIM_TEST_PRINT_TRACE";
const BEGIN: &str = "--- trace begins";
const END: &str = "--- trace ends";

#[test]
fn the_same_seed_gives_the_same_trace() {
    let trace = program(7);
    assert!(trace.contains("a fault rule"), "no packet was lost");
    assert!(trace.contains("ack timeout"), "nothing was retried");
    assert!(trace.contains("overrun"), "no cq has overrun");
    assert_eq!(trace, program(7));
}

#[test]
fn another_seed_gives_another_trace_where_faults_have_rates() {
    assert_ne!(program(7), program(8));
}

/// No address, hash seed or thread number of the process is in a trace.
#[test]
fn the_same_seed_gives_the_same_trace_in_another_process() {
    let trace = program(7);
    if std::env::var_os(PRINT).is_some() {
        println!("{BEGIN}\n{trace}{END}");
        return;
    }
    let name = "the_same_seed_gives_the_same_trace_in_another_process";
    let output = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(PRINT, "yes")
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let (_, from_begin) = printed.split_once(&format!("{BEGIN}\n")).unwrap();
    let (theirs, _) = from_begin.split_once(END).unwrap();
    assert_eq!(theirs, trace);
}

/// Four nodes, RC and UD traffic under random loss, a resize, an overrun and errors; the trace.
fn program(seed: u64) -> String {
    let sim = Sim::new(SimConfig::new().nodes(4).seed(seed).trace(true));
    let lab = sim.lab().unwrap();
    let ends: Vec<_> = (0..4)
        .map(|node| End::open(&sim, &format!("sim{node}"), 64, 64 * 1024))
        .collect();
    let params = RcParams {
        rnr_retry: 2,
        retry_cnt: 3,
        ..RcParams::default()
    };
    let connections: Vec<_> = (0..4)
        .map(|i| (i, (i + 1) % 4))
        .map(|(a, b)| (a, b, pair((&ends[a], &ends[b]), QpType::Rc, 32, &params)))
        .collect();
    let loss = Fault::drop(PacketFilter::EVERY).per_million(200_000);
    lab.inject(loss).unwrap();
    for round in 0..8 {
        for (a, b, (qp, peer)) in &connections {
            let (near, far) = (&ends[*a], &ends[*b]);
            if round < 6 {
                far.recv(*peer, round, 32 * 1024, 8 * 1024);
            }
            let list = [near.mem.sge(0, 3000)];
            // A peer without a receive, or a connection in error, is part of the program.
            let send = SendWr::send(round, &list).solicited();
            let write = SendWr::rdma_write(round, &list, far.mem.remote(4096)).unsignaled();
            let read = SendWr::rdma_read(round, &list, far.mem.remote(0));
            sim.post_send(*qp, &[send, write, read]).unwrap();
            let _ = sim.req_notify_cq(near.cq, Arm::NEXT);
        }
        datagrams(&ends);
        for end in &ends {
            let _ = sim.resize_cq(end.cq, 10 + round as i32);
            let _ = sim.get_cq_event(end.channel, Wait::For(core::time::Duration::from_millis(1)));
            let _ = sim.poll_cq(end.cq, &mut [Wc::default(); 4]);
        }
    }
    lab.settle().unwrap();
    lab.trace()
        .iter()
        .map(|record| format!("{record}\n"))
        .collect()
}

/// One datagram from each node to the next.
fn datagrams(ends: &[End<'_>]) {
    const QKEY: u32 = 5;
    for (near, far) in ends.iter().zip(ends.iter().skip(1)) {
        let (qp, peer) = (near.qp(QpType::Ud, 4), far.qp(QpType::Ud, 4));
        for qp in [qp, peer] {
            connect::ud_to_rts(near.verbs, qp, 1, QKEY).unwrap();
        }
        let gid = far.verbs.query_gid(far.context, 1, 1).unwrap();
        let ah = near.verbs.create_ah(near.pd, &AhAttr::global(1, 1, gid));
        far.recv(peer, 9, 60 * 1024, 1024);
        let list = [near.mem.sge(0, 100)];
        let number = far.verbs.qp_num(peer).unwrap();
        near.post(qp, SendWr::send(9, &list).to(ah.unwrap(), number, QKEY));
    }
}
