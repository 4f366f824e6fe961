//! Flushes and atomic writes between processes.

use verbs_api::lab::{Fault, Lab, PacketFilter, When};
use verbs_api::{
    Access, BatchEnd, PlacementType, QpCap, QpInit, QpType, RcParams, SelectivityLevel, SendOps,
    SendWr, Verbs, WcOpcode,
};

use crate::{assert_done, connect, params, two};

/// MPE-01, MPE-07, MPE-12: packets are lost in both directions. Each write is placed when the flush
/// behind it is done, and each atomic write is carried out once.
#[test]
fn flushes_and_atomic_writes_reach_another_process_whatever_is_lost() {
    const ROUNDS: usize = 100;
    const LENGTH: usize = 5000;
    let [a, b] = two("extensions", 1 << 16);
    let ops = SendOps::RDMA_WRITE | SendOps::FLUSH | SendOps::ATOMIC_WRITE;
    let cap = QpCap::default();
    let init = QpInit::new(QpType::Rc, a.cq, a.cq).cap(cap).send_ops(ops);
    let from = a.sim.create_qp(a.pd, &init).unwrap();
    let to = b.qp(QpType::Rc);
    let access = Access::ALL_RDMA | Access::FLUSH_GLOBAL;
    let params = RcParams { access, ..params() };
    let ends = [a.endpoint(from, &params), b.endpoint(to, &params)];
    connect::to_endpoint(&a.sim, from, &ends[1], &params).unwrap();
    connect::to_endpoint(&b.sim, to, &ends[0], &params).unwrap();
    let target = b.sim.alloc_mr(b.pd, 1 << 14, access).unwrap();
    let mem = b.sim.query_mr(target).unwrap();
    for process in [&a, &b] {
        let lost = Fault::drop(PacketFilter::default()).at(When::PerMillion(30_000));
        process.sim.inject(lost).unwrap();
    }
    for round in 0..ROUNDS {
        let bytes: Vec<_> = (0..LENGTH).map(|at| (at * 7 + round) as u8).collect();
        a.fill(0, &bytes);
        let data = [a.mem.sge(0, LENGTH as u32)];
        let value = [round as u8 ^ 0xff; 8];
        let (level, place) = (SelectivityLevel::Range, mem.remote(64));
        let (length, global) = (LENGTH as u32, PlacementType::GLOBAL);
        let list = [
            SendWr::rdma_write(1, &data, place),
            SendWr::flush(2, place, length, global, level),
            SendWr::atomic_write(3, mem.remote(1024), value),
        ];
        a.sim.post_batch(from, &list, BatchEnd::Complete).unwrap();
        let done = a.polled(3);
        assert_done(&done);
        let opcodes: Vec<_> = done.iter().map(|wc| wc.opcode).collect();
        let expected = [WcOpcode::RdmaWrite, WcOpcode::Flush, WcOpcode::AtomicWrite];
        assert_eq!(opcodes, expected);
        let mut seen = vec![0; 64 + LENGTH + 64];
        b.sim.read_mr(target, 0, &mut seen).unwrap();
        let mut expected = vec![0; seen.len()];
        expected[64..64 + LENGTH].copy_from_slice(&bytes);
        expected[1024..1032].copy_from_slice(&value);
        assert!(seen == expected, "round {round}");
    }
}
