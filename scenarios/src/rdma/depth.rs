//! Reads that are outstanding at a time, and what is behind them.

use verbs_api::lab::PacketOpcode;
use verbs_api::{QpState, RcParams, SendWr, WcStatus};

use crate::end::gives_up_soon;
use crate::failure::{check, check_eq, in_case};
use crate::{OfRule, Pair, PairOptions, Result, Setup, wr_ids};

/// Reads posted at once.
const READS: u64 = 10;

fn with_depth<'b>(setup: &'b Setup<'_>, max_rd_atomic: u8) -> Result<Pair<'b>> {
    let rc = RcParams {
        max_rd_atomic,
        ..RcParams::default()
    };
    setup.pair(PairOptions {
        rc,
        ..PairOptions::default()
    })
}

scenario!(reads_beyond_the_depth_wait: "RDMA-18"; needs MODIFY_CONNECT, RDMA_READ);
fn reads_beyond_the_depth_wait(setup: &Setup<'_>) -> Result {
    for depth in [1, 2, 4] {
        let Pair { a, b } = with_depth(setup, depth)?;
        b.fill(6, 3000)?;
        for wr_id in 0..READS {
            a.read(wr_id, 3000)?;
        }
        let done = setup.successes(a.send_cq, READS as usize).rule("RDMA-18")?;
        let in_order: Vec<_> = (0..READS).collect();
        in_case(
            &format!("depth {depth}"),
            same("RDMA-18", &wr_ids(&done), &in_order),
        )?;
        a.expect_data(6, 3000, "RDMA-18")?;
    }
    Ok(())
}

fn same(rule: &'static str, seen: &[u64], expected: &[u64]) -> Result {
    check_eq!(rule, seen, expected, "the order");
    Ok(())
}

scenario!(no_more_reads_are_outstanding_than_allowed: "RDMA-18"; needs RDMA_READ, LAB);
fn no_more_reads_are_outstanding_than_allowed(setup: &Setup<'_>) -> Result {
    for depth in [1, 2, 4] {
        let a = with_depth(setup, depth)?.a;
        setup.lab().tap();
        for wr_id in 0..READS {
            a.read(wr_id, 3000)?;
        }
        setup.successes(a.send_cq, READS as usize)?;
        let (mut now, mut most) = (0, 0);
        for packet in setup.packets() {
            match packet.opcode {
                PacketOpcode::RcReadRequest => now += 1,
                PacketOpcode::RcReadResponseLast | PacketOpcode::RcReadResponseOnly => now -= 1,
                _ => {}
            }
            most = most.max(now);
        }
        // All of the depth is used, too.
        check_eq!("RDMA-18", most, i32::from(depth), "reads outstanding");
    }
    Ok(())
}

scenario!(responder_without_depth_refuses_reads: "RDMA-19"; needs MODIFY_CONNECT, RDMA_READ);
fn responder_without_depth_refuses_reads(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RDMA-19";
    let options = PairOptions::default();
    let [a, b] = [setup.ctx_a(), setup.ctx_b()].map(|side| setup.end(side, options));
    let of_a = gives_up_soon();
    let of_b = RcParams {
        max_rd_atomic: 0,
        ..of_a
    };
    let Pair { a, .. } = setup.connect_each(a?, b?, of_a, of_b)?;
    a.read(1, 8)?;
    let wc = setup.one(a.send_cq).rule(RULE)?;
    // The simulator's device answers; another may let the requester wait without result.
    let silent = setup.verbs().lab().is_none() && wc.status == WcStatus::RetryExcErr;
    check!(
        RULE,
        wc.status == WcStatus::RemInvReqErr || silent,
        "REM_INV_REQ_ERR or RETRY_EXC_ERR",
        "{wc}"
    );
    let state = setup.state(a.qp)?;
    check_eq!(RULE, state, QpState::Err);
    Ok(())
}

scenario!(send_may_leave_before_the_response_of_a_read: "RDMA-27"; needs RDMA_READ, LAB);
/// Unless it is fenced.
fn send_may_leave_before_the_response_of_a_read(setup: &Setup<'_>) -> Result {
    for fenced in [false, true] {
        let Pair { a, b } = setup.rc_pair()?;
        setup.lab().tap();
        b.recv(1, 8)?;
        let into = [a.sge(a.landing(), 3000)];
        let data = [a.sge(0, 8)];
        let send = SendWr::send(3, &data);
        let send = if fenced { send.fence() } else { send };
        let read = SendWr::rdma_read(2, &into, b.mem.remote(0));
        setup.post_send(a.qp, &[read, send])?;
        setup.successes(a.send_cq, 2)?;
        let seen = setup.packets();
        let at = |opcode| seen.iter().position(|packet| packet.opcode == opcode);
        let early = at(PacketOpcode::RcSendOnly) < at(PacketOpcode::RcReadResponseLast);
        check_eq!("RDMA-27", early, !fenced, "the send leaves first");
    }
    Ok(())
}
