//! The fields of completions on connections.

use verbs_api::behavior::{SendByteLen, UndefinedFields};
use verbs_api::{Mtu, QpCap, RcParams, RecvWr, SendWr, Sge, WcFlags, WcOpcode, WcStatus};

use super::Kind;
use crate::failure::{check, check_eq, in_case};
use crate::{End, Pair, PairOptions, Result, Setup, pattern, wr_ids};

scenario!(wr_id_comes_back_in_all_its_bits: "WC-02");
fn wr_id_comes_back_in_all_its_bits(setup: &Setup<'_>) -> Result {
    const WR_IDS: [u64; 5] = [0, 1, 1 << 32, 1 << 63, u64::MAX];
    let pair = setup.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    for wr_id in WR_IDS {
        b.recv(wr_id, 8)?;
        a.send(wr_id, 8)?;
    }
    for cq in [a.send_cq, b.recv_cq] {
        let seen = wr_ids(&setup.successes(cq, WR_IDS.len())?);
        check_eq!("WC-02", seen, WR_IDS, "wr_id of successes");
    }
    setup.to_err(a.qp)?;
    for wr_id in WR_IDS {
        a.recv(wr_id, 8)?;
        a.send(wr_id, 8)?;
    }
    for (what, cq) in [("sends", a.send_cq), ("receives", a.recv_cq)] {
        let seen = wr_ids(&setup.poll_all(cq)?);
        check_eq!("WC-02", seen, WR_IDS, format!("wr_id of flushed {what}"));
    }
    Ok(())
}

scenario!(qp_num_tells_queue_pairs_on_one_cq_apart: "WC-03");
fn qp_num_tells_queue_pairs_on_one_cq_apart(setup: &Setup<'_>) -> Result {
    let options = PairOptions {
        one_cq: true,
        ..PairOptions::default()
    };
    let first = setup.pair(options)?;
    let second = setup.second_pair(&first, options)?;
    for (one, other) in [(first.a, second.a), (first.b, second.b)] {
        check!(
            "WC-03",
            one.qp_num != other.qp_num,
            "two QP numbers",
            "{} twice",
            one.qp_num
        );
    }
    // Each wr_id is the number of the QP it was posted on.
    let receive = |end: &End<'_>| end.recv(end.qp_num.into(), 8);
    let expect_own_numbers = || {
        for cq in [first.a.send_cq, first.b.send_cq] {
            let mut seen = setup.poll(cq, 2)?;
            for wc in &seen {
                check_eq!("WC-03", u64::from(wc.qp_num), wc.wr_id, "qp_num");
            }
            seen.dedup_by_key(|wc| wc.qp_num);
            check_eq!("WC-03", seen.len(), 2, "QPs with a completion");
        }
        Ok(())
    };
    for pair in [second, first] {
        receive(&pair.b)?;
        pair.a.send(pair.a.qp_num.into(), 8)?;
    }
    expect_own_numbers()?;
    // All are posted first: on some transports the error of one end is that of the other.
    let ends = [first.a, second.a, second.b, first.b];
    ends.iter().try_for_each(receive)?;
    ends.iter().try_for_each(|end| setup.to_err(end.qp))?;
    expect_own_numbers()
}

scenario!(opcode_names_what_was_posted: "WC-04", "WC-05"; needs RDMA_READ);
fn opcode_names_what_was_posted(setup: &Setup<'_>) -> Result {
    opcodes(
        setup,
        &[
            (Kind::Send, WcOpcode::Send, Some(WcOpcode::Recv)),
            (Kind::Write, WcOpcode::RdmaWrite, None),
            (Kind::Read, WcOpcode::RdmaRead, None),
        ],
    )
}

scenario!(opcode_names_what_was_posted_with_immediate:
    "WC-04", "WC-05"; needs SEND_WITH_IMM, WRITE_WITH_IMM);
fn opcode_names_what_was_posted_with_immediate(setup: &Setup<'_>) -> Result {
    let to_write = Some(WcOpcode::RecvRdmaWithImm);
    opcodes(
        setup,
        &[
            (Kind::SendImm, WcOpcode::Send, Some(WcOpcode::Recv)),
            (Kind::WriteImm, WcOpcode::RdmaWrite, to_write),
        ],
    )
}

/// Each kind completes with its opcode at the sender, and with the other at the receiver, if it
/// takes a receive.
fn opcodes(setup: &Setup<'_>, kinds: &[(Kind, WcOpcode, Option<WcOpcode>)]) -> Result {
    let pair = setup.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    for (kind, of_send, of_receive) in kinds {
        for len in [0, 64] {
            b.recv(1, 64)?;
            a.post(kind.work(&a, 2, &[a.sge(a.landing(), len)]))?;
            let wc = setup.successes(a.send_cq, 1)?[0];
            check_eq!("WC-04", wc.opcode, *of_send, format!("opcode of {kind:?}"));
            check!(
                "WC-05",
                !wc.opcode.is_recv(),
                "no receive bit in a send",
                "{wc}"
            );
            if let Some(opcode) = of_receive {
                let wc = setup.successes(b.recv_cq, 1)?[0];
                check_eq!(
                    "WC-05",
                    wc.opcode,
                    *opcode,
                    format!("opcode behind {kind:?}")
                );
                check!(
                    "WC-05",
                    wc.opcode.is_recv(),
                    "the receive bit in a receive",
                    "{wc}"
                );
            }
        }
    }
    setup.no_completion(b.recv_cq, "WC-05")
}

scenario!(byte_len_of_a_receive_is_that_of_the_message: "WC-06");
fn byte_len_of_a_receive_is_that_of_the_message(setup: &Setup<'_>) -> Result {
    let mtu = PairOptions::default().rc.path_mtu.bytes().unwrap_or(1024);
    byte_lens(
        setup,
        PairOptions::default(),
        &[0, 1, mtu - 1, mtu, mtu + 1, 3 * mtu],
    )
}

/// Messages of these lengths, the last of which fills its receive, complete receives with them.
pub(super) fn byte_lens(setup: &Setup<'_>, options: PairOptions, lengths: &[u32]) -> Result {
    let pair = setup.pair(options)?;
    let (a, b) = (pair.a, pair.b);
    let room = lengths.last().copied().unwrap_or(0);
    for (wr_id, len) in (0..).zip(lengths) {
        b.recv(wr_id, room)?;
        a.send(wr_id, *len)?;
        let wc = setup.successes(b.recv_cq, 1)?[0];
        check_eq!("WC-06", (wc.wr_id, wc.byte_len), (wr_id, *len));
    }
    Ok(())
}

scenario!(byte_len_of_a_write_with_immediate_is_that_of_the_write:
    "WC-08"; needs SEND_WITH_IMM, WRITE_WITH_IMM);
fn byte_len_of_a_write_with_immediate_is_that_of_the_write(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    for len in [0, 1, 1023, 1024, 1025, 4096] {
        // Its own room does not matter.
        b.recv(1, 8)?;
        a.write_imm(2, len, [0; 4])?;
        let wc = setup.successes(b.recv_cq, 1)?[0];
        check_eq!("WC-08", wc.byte_len, len);
    }
    Ok(())
}

scenario!(byte_len_of_a_read_is_that_of_the_read: "WC-09"; needs RDMA_READ);
fn byte_len_of_a_read_is_that_of_the_read(setup: &Setup<'_>) -> Result {
    let a = setup.rc_pair()?.a;
    for len in [0, 1, 1023, 1024, 1025, 4096] {
        a.read(1, len)?;
        let wc = setup.successes(a.send_cq, 1)?[0];
        check_eq!("WC-09", wc.byte_len, len);
    }
    Ok(())
}

scenario!(byte_len_of_other_sends_is_as_declared: "WC-09");
fn byte_len_of_other_sends_is_as_declared(setup: &Setup<'_>) -> Result {
    let declared = setup.behavior()?.send_byte_len;
    let pair = setup.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    for len in [1, 1025] {
        for kind in [Kind::Send, Kind::Write] {
            if kind.takes_a_receive() {
                b.recv(1, len)?;
            }
            a.post(kind.work(&a, 2, &[a.sge(0, len)]))?;
            let wc = setup.successes(a.send_cq, 1)?[0];
            let seen = if wc.byte_len == len {
                SendByteLen::All
            } else {
                SendByteLen::Reads
            };
            setup.as_declared("WC-09", declared, seen)?;
        }
    }
    Ok(())
}

scenario!(immediate_data_is_delivered_bit_for_bit:
    "WC-10", "WC-11", "SQ-19"; needs SEND_WITH_IMM, WRITE_WITH_IMM);
fn immediate_data_is_delivered_bit_for_bit(setup: &Setup<'_>) -> Result {
    let kinds = [Kind::Send, Kind::SendImm, Kind::Write, Kind::WriteImm];
    immediates(setup, PairOptions::default(), &kinds)
}

/// Immediate data comes with the receives of messages that have it and of no others.
pub(super) fn immediates(setup: &Setup<'_>, options: PairOptions, kinds: &[Kind]) -> Result {
    const IMMS: [[u8; 4]; 4] = [[1, 2, 3, 4], [0; 4], [0xff; 4], [0x80, 0, 0, 1]];
    let pair = setup.pair(options)?;
    let (a, b) = (pair.a, pair.b);
    for kind in kinds {
        for (imm, len) in IMMS.into_iter().flat_map(|imm| [(imm, 0), (imm, 16)]) {
            if kind.takes_a_receive() {
                b.recv(1, 16)?;
            }
            a.post(kind.work_with(&a, 2, &[a.sge(0, len)], imm))?;
            setup.successes(a.send_cq, 1)?;
            if !kind.takes_a_receive() {
                continue;
            }
            let wc = setup.successes(b.recv_cq, 1)?[0];
            let flagged = wc.wc_flags.contains(WcFlags::WITH_IMM);
            let what = format!("WITH_IMM of {kind:?}, {len} bytes");
            check_eq!("WC-11", flagged, kind.has_imm(), what);
            if flagged {
                check_eq!(["WC-10", "SQ-19"], wc.imm_data, imm);
            }
        }
    }
    setup.no_completion(b.recv_cq, "WC-11")
}

scenario!(grh_flag_of_a_connected_receive_is_as_declared: "WC-14");
fn grh_flag_of_a_connected_receive_is_as_declared(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    pair.b.recv(1, 8)?;
    pair.a.send(2, 8)?;
    let wc = setup.successes(pair.b.recv_cq, 1)?[0];
    let seen = wc.wc_flags.contains(WcFlags::GRH);
    setup.as_declared("WC-14", setup.behavior()?.grh_flag_rc, seen)
}

scenario!(vendor_err_of_a_simulated_success_is_zero: "WC-16"; needs LAB);
/// The number has no portable meaning on a device.
fn vendor_err_of_a_simulated_success_is_zero(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    pair.b.recv(1, 8)?;
    pair.a.send(2, 8)?;
    for cq in [pair.a.send_cq, pair.b.recv_cq] {
        check_eq!("WC-16", setup.successes(cq, 1)?[0].vendor_err, 0);
    }
    Ok(())
}

scenario!(failure_names_its_work_request_and_qp: "WC-01", "WC-03");
fn failure_names_its_work_request_and_qp(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let (a, b) = (pair.a, pair.b);
    for wr_id in [1 << 40, 2 << 40] {
        b.recv(wr_id, 8)?;
    }
    for wr_id in [1 << 40, 2 << 40] {
        a.send_solicited(wr_id, 9)?;
    }
    let mut undefined = UndefinedFields::Zero;
    for (end, cq, status) in [
        (a, a.send_cq, WcStatus::RemInvReqErr),
        (b, b.recv_cq, WcStatus::LocLenErr),
    ] {
        let seen = setup.poll(cq, 2)?;
        let facts: Vec<_> = seen
            .iter()
            .map(|wc| (wc.wr_id, wc.status, wc.qp_num))
            .collect();
        let expected = [
            (1 << 40, status, end.qp_num),
            (2 << 40, WcStatus::WrFlushErr, end.qp_num),
        ];
        check_eq!(
            ["WC-01", "WC-03"],
            facts,
            expected,
            "wr_id, status and qp_num"
        );
        if seen.iter().any(|wc| {
            wc.byte_len != 0 || wc.imm_data != [0; 4] || wc.src_qp != 0 || !wc.wc_flags.is_empty()
        }) {
            undefined = UndefinedFields::Garbage;
        }
    }
    setup.as_declared("WC-01", setup.behavior()?.undefined_wc_fields, undefined)
}

/// Pieces of a region: offset and length, in the order of a list. One is empty, and the order is
/// not that of the addresses.
const FROM: [(u64, u32); 4] = [(3000, 7), (0, 600), (900, 0), (700, 1400)];
const INTO: [(u64, u32); 4] = [(5000, 1), (2000, 1023), (0, 500), (1000, 483)];

scenario!(scatter_gather_lists_are_used_in_their_order: "WC-35"; hazards MAY_HANG, MAY_CRASH);
fn scatter_gather_lists_are_used_in_their_order(setup: &Setup<'_>) -> Result {
    for mtu in MTUS {
        let Pair { a, b } = setup.pair(many_sges(mtu))?;
        a.fill(1, 4096)?;
        let into = pieces(&b, b.landing(), &INTO);
        setup.post_recv(b.qp, &[RecvWr::new(1, &into)])?;
        a.post(SendWr::send(2, &pieces(&a, 0, &FROM)))?;
        let wc = setup.successes(b.recv_cq, 1)?[0];
        check_eq!("WC-35", wc.byte_len, total(&FROM));
        let scattered = expect_scattered(setup, &b, &gathered(&pattern(1, 4096)));
        in_case(&format!("{mtu}"), scattered)?;
    }
    Ok(())
}

scenario!(read_scatters_in_the_order_of_its_list: "WC-35"; needs RDMA_READ);
fn read_scatters_in_the_order_of_its_list(setup: &Setup<'_>) -> Result {
    for mtu in MTUS {
        let Pair { a, b } = setup.pair(many_sges(mtu))?;
        b.fill(2, total(&INTO))?;
        let into = pieces(&a, a.landing(), &INTO);
        a.post(SendWr::rdma_read(1, &into, b.mem.remote(0)))?;
        let wc = setup.successes(a.send_cq, 1)?[0];
        let whole = total(&INTO);
        let expected = format!("a read of {whole} bytes");
        check!("WC-35", wc.byte_len == whole, expected, "{wc}");
        in_case(
            &format!("{mtu}"),
            expect_scattered(setup, &a, &pattern(2, whole)),
        )?;
    }
    Ok(())
}

/// With the smaller there are packets that begin within an entry and end in the next.
const MTUS: [Mtu; 2] = [Mtu::Mtu1024, Mtu::Mtu256];

fn many_sges(path_mtu: Mtu) -> PairOptions {
    PairOptions {
        rc: RcParams {
            path_mtu,
            ..RcParams::default()
        },
        cap: QpCap {
            max_send_sge: 4,
            max_recv_sge: 4,
            ..QpCap::default()
        },
        ..PairOptions::default()
    }
}

fn pieces(end: &End<'_>, base: u64, list: &[(u64, u32); 4]) -> [Sge; 4] {
    list.map(|(offset, len)| end.sge(base + offset, len))
}

fn total(list: &[(u64, u32)]) -> u32 {
    list.iter().map(|(_, len)| len).sum()
}

/// The bytes that the list `FROM` collects.
fn gathered(memory: &[u8]) -> Vec<u8> {
    let piece = |(offset, len): &(u64, u32)| &memory[*offset as usize..][..*len as usize];
    FROM.iter().flat_map(piece).copied().collect()
}

/// The bytes lie in the pieces of the list `INTO`.
fn expect_scattered(setup: &Setup<'_>, end: &End<'_>, bytes: &[u8]) -> Result {
    let mut rest = bytes;
    for (offset, len) in INTO {
        let (expected, later) = rest.split_at(len as usize);
        let mut seen = vec![0; expected.len()];
        let offset = end.landing() + offset;
        setup.read_mr(end.mr, offset as usize, &mut seen)?;
        check!(
            "WC-35",
            seen == expected,
            format!("the next {len} bytes at offset {offset:#x}"),
            "other bytes"
        );
        rest = later;
    }
    Ok(())
}
