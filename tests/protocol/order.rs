//! What waits for what: reads, and sends behind them.

use crate::common::{checked, settle};
use crate::link::{Kind, Link, Work, statuses};
use verbs_api::lab::PacketOpcode;
use verbs_api::{QpType, RcParams, SendWr, Verbs, WcStatus};
use verbs_sim::SimConfig;

/// RDMA-18: never more reads are outstanding than allowed; those beyond wait, and all succeed in
/// order.
#[test]
fn reads_beyond_the_limit_wait() {
    const READS: usize = 10;
    for max_rd_atomic in [1, 2, 4, 16] {
        let sim = checked(SimConfig::new());
        let params = RcParams {
            max_rd_atomic,
            ..RcParams::default()
        };
        let link = Link::new(&sim, QpType::Rc, &params);
        let program = [Work::new(Kind::Read, 100); READS];
        sim.lab().unwrap().tap();
        link.run(&program);
        let (mut outstanding, mut most) = (0, 0);
        for tapped in sim.lab().unwrap().tapped() {
            match tapped.packet.opcode {
                PacketOpcode::RcReadRequest => outstanding += 1,
                PacketOpcode::RcReadResponseOnly => outstanding -= 1,
                other => panic!("{other}"),
            }
            most = most.max(outstanding);
        }
        assert_eq!(most, READS.min(max_rd_atomic.into()));
        link.results().assert_like(&program, "reads");
    }
}

/// SQ-12: a send that is fenced behind a read sends what the read has brought; without the fence
/// it has left before.
#[test]
fn a_fence_waits_for_reads() {
    for (fenced, expected) in [(true, [7; 8]), (false, [0; 8])] {
        let sim = checked(SimConfig::new());
        let link = Link::new(&sim, QpType::Rc, &RcParams::default());
        link.far.write(0, &[7; 8]);
        link.far.recv(link.peer, 0, 64, 8);
        let list = [link.near.mem.sge(0, 8)];
        let read = SendWr::rdma_read(0, &list, link.far.mem.remote(0));
        let send = SendWr::send(1, &list);
        link.near.post(link.qp, read);
        link.near
            .post(link.qp, if fenced { send.fence() } else { send });
        settle(&sim);
        assert_eq!(statuses(&link.near.drain()), [WcStatus::Success; 2]);
        assert_eq!(statuses(&link.far.drain()), [WcStatus::Success]);
        assert_eq!(link.far.read(64, 8), expected, "fenced: {fenced}");
    }
}
