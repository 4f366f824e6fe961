//! Reads of many packets, and what comes behind them.

use verbs_api::lab::{Fault, PacketFilter, PacketOpcode};
use verbs_api::{Mtu, RcParams, SendWr};

use crate::failure::{check_eq, in_case};
use crate::{OfRule, Pair, PairOptions, Result, Setup, wr_ids};

const MTU: u32 = 256;
/// Bytes of the reads, each of more packets than the simulator sends in one turn.
const READS: [u32; 3] = [100 * MTU, 71 * MTU + 1, 66 * MTU];
/// Bytes of the write and of the message behind them.
const BEHIND: u32 = 5 * MTU;

fn pair<'b>(setup: &'b Setup<'_>) -> Result<Pair<'b>> {
    setup.pair(PairOptions {
        rc: RcParams {
            path_mtu: Mtu::Mtu256,
            max_rd_atomic: 2,
            ..RcParams::default()
        },
        mem: 256 << 10,
        ..PairOptions::default()
    })
}

/// Posts the reads, a write and a message at once. All of them complete in order, and each byte
/// comes to its place.
fn all_is_done(setup: &Setup<'_>, Pair { a, b }: &Pair<'_>, rule: &'static str) -> Result {
    let total: u32 = READS.iter().sum();
    b.fill(3, total)?;
    a.fill_at(0, 0, total)?;
    a.fill_at(a.landing(), 5, BEHIND)?;
    b.recv_at(0, b.landing() + u64::from(BEHIND), BEHIND)?;
    let mut start = 0;
    let parts = READS.map(|len| {
        let part = ([a.sge(start, len)], b.mem.remote(start));
        start += u64::from(len);
        part
    });
    let reads = (1..).zip(&parts);
    let reads = reads.map(|(wr_id, (into, from))| SendWr::rdma_read(wr_id, into, *from));
    let data = [a.sge(a.landing(), BEHIND)];
    let behind = [
        SendWr::rdma_write(4, &data, b.mem.remote(b.landing())),
        SendWr::send(5, &data),
    ];
    let list: Vec<_> = reads.chain(behind).collect();
    setup.post_send(a.qp, &list)?;
    let done = setup.successes(a.send_cq, list.len()).rule(rule)?;
    check_eq!(rule, wr_ids(&done), [1, 2, 3, 4, 5], "the order");
    setup.successes(b.recv_cq, 1).rule(rule)?;
    a.expect_data_at(0, 3, total, rule)?;
    b.expect_data_at(b.landing(), 5, BEHIND, rule)?;
    b.expect_data_at(b.landing() + u64::from(BEHIND), 5, BEHIND, rule)
}

scenario!(work_behind_long_reads_is_done_in_order: "SQ-11"; needs MODIFY_CONNECT, RDMA_READ);
fn work_behind_long_reads_is_done_in_order(setup: &Setup<'_>) -> Result {
    let pair = pair(setup)?;
    all_is_done(setup, &pair, "SQ-11")?;
    all_is_done(setup, &pair, "SQ-11")
}

scenario!(long_read_goes_on_from_a_packet_that_was_lost: "RDMA-23"; needs RDMA_READ, LAB);
fn long_read_goes_on_from_a_packet_that_was_lost(setup: &Setup<'_>) -> Result {
    use PacketOpcode as Op;
    let first = [
        Op::RcReadRequest,
        Op::RcReadResponseFirst,
        Op::RcReadResponseLast,
    ];
    let in_first = first.into_iter().flat_map(|op| [1, 2].map(|nth| (op, nth)));
    let in_middle = [1, 62, 63, 64, 65, 150].map(|nth| (Op::RcReadResponseMiddle, nth));
    for (opcode, nth) in in_first.chain(in_middle) {
        let pair = pair(setup)?;
        let packets = PacketFilter::EVERY.opcode(opcode);
        let fault = setup.lab().inject(Fault::drop(packets).nth(nth))?;
        let case = format!("{opcode} {nth} lost");
        in_case(&case, all_is_done(setup, &pair, "RDMA-23"))?;
        check_eq!(
            "RDMA-23",
            setup.lab().remove(fault)?,
            1,
            format!("packets lost ({case})")
        );
        in_case(&case, all_is_done(setup, &pair, "RDMA-23"))?;
    }
    Ok(())
}
