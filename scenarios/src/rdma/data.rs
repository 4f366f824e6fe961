//! Which bytes are moved.

use verbs_api::behavior::Placement;
use verbs_api::{
    ErrorKind, InOrderQuery, QpCap, SendOp, SendWr, Sge, WcFlags, WcOpcode, WcStatus, WrOpcode,
};

use crate::failure::{check, check_eq, in_case};
use crate::{End, OfRule, Pair, PairOptions, Result, Setup, expect_err};

/// Untouched bytes that are looked at on both sides of a message.
const CANARY: u32 = 32;
const BEFORE: u8 = 0xc3;
const DATA: u8 = 0x5a;

fn with_three_entries<'b>(setup: &'b Setup<'_>) -> Result<(Pair<'b>, Vec<u32>)> {
    let options = PairOptions {
        cap: QpCap {
            max_send_sge: 3,
            ..QpCap::default()
        },
        ..PairOptions::default()
    };
    let mtu = options.rc.path_mtu.bytes().unwrap_or(1024);
    let lengths = vec![0, 1, mtu - 1, mtu, mtu + 1, 3 * mtu, 25_001];
    Ok((setup.pair(options)?, lengths))
}

/// `len` bytes from `offset` on, in three unequal parts if there are enough: none is empty.
fn in_three(end: &End<'_>, offset: u64, len: u32) -> Vec<Sge> {
    let (first, second) = (len / 7, len / 3);
    if first == 0 {
        return vec![end.sge(offset, len)];
    }
    let third = len - first - second;
    vec![
        end.sge(offset, first),
        end.sge(offset + u64::from(first), second),
        end.sge(offset + u64::from(first + second), third),
    ]
}

/// `len` bytes at the landing place are those of `DATA`, and what is around them is untouched.
fn landed(end: &End<'_>, canvas: &[u8], len: u32, rule: &'static str) -> Result {
    let mut expected = canvas.to_vec();
    let data = crate::pattern(DATA, len);
    expected[CANARY as usize..][..len as usize].copy_from_slice(&data);
    let seen = end.bytes(end.landing(), canvas.len())?;
    let wrong = seen.iter().zip(&expected).position(|(a, b)| a != b);
    check!(
        rule,
        wrong.is_none(),
        "the data, and nothing else changed",
        "byte {} of {len} differs",
        wrong.unwrap_or(0) as i64 - i64::from(CANARY)
    );
    Ok(())
}

scenario!(write_changes_the_named_bytes_only: "RDMA-01"; needs RDMA_READ);
fn write_changes_the_named_bytes_only(setup: &Setup<'_>) -> Result {
    let (Pair { a, b }, lengths) = with_three_entries(setup)?;
    for len in lengths {
        let canvas = crate::pattern(BEFORE, len + 2 * CANARY);
        b.fill_at(b.landing(), BEFORE, len + 2 * CANARY)?;
        a.fill(DATA, len)?;
        let data = in_three(&a, 0, len);
        let target = b.mem.remote(b.landing() + u64::from(CANARY));
        let write = SendWr::rdma_write(1, &data, target);
        a.post(write).rule("RDMA-01")?;
        // The answer to a read tells that the write is done, also where its completion does not.
        a.read(2, 1)?;
        setup.successes(a.send_cq, 2).rule("RDMA-01")?;
        in_case(&format!("{len} bytes"), landed(&b, &canvas, len, "RDMA-01"))?;
        a.expect_data_at(0, DATA, len, "RDMA-01")?;
    }
    Ok(())
}

scenario!(read_brings_the_named_bytes_only: "RDMA-02"; needs RDMA_READ);
fn read_brings_the_named_bytes_only(setup: &Setup<'_>) -> Result {
    let (Pair { a, b }, lengths) = with_three_entries(setup)?;
    for len in lengths {
        let canvas = crate::pattern(BEFORE, len + 2 * CANARY);
        a.fill_at(a.landing(), BEFORE, len + 2 * CANARY)?;
        b.fill(DATA, len)?;
        let into = a.sge(a.landing() + u64::from(CANARY), len);
        let read = SendWr::rdma_read(1, std::slice::from_ref(&into), b.mem.remote(0));
        a.post(read).rule("RDMA-02")?;
        setup.successes(a.send_cq, 1).rule("RDMA-02")?;
        in_case(&format!("{len} bytes"), landed(&a, &canvas, len, "RDMA-02"))?;
        b.expect_data_at(0, DATA, len, "RDMA-02")?;
    }
    Ok(())
}

scenario!(write_is_not_seen_by_the_responder: "RDMA-11");
fn write_is_not_seen_by_the_responder(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    b.recv(1, 8)?;
    for len in [0, 1, 5000] {
        a.write(2, len)?;
    }
    // Takes the receive if the writes did not.
    a.send(3, 7)?;
    setup.successes(a.send_cq, 4).rule("RDMA-11")?;
    let wc = setup.successes(b.recv_cq, 1).rule("RDMA-11")?[0];
    check_eq!("RDMA-11", (wc.opcode, wc.byte_len), (WcOpcode::Recv, 7));
    setup.no_completion(b.recv_cq, "RDMA-11")
}

scenario!(write_with_immediate_completes_one_receive_behind_its_data:
    "RDMA-12"; needs WRITE_WITH_IMM);
fn write_with_immediate_completes_one_receive_behind_its_data(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RDMA-12";
    let Pair { a, b } = setup.rc_pair()?;
    // The receives name other memory than the writes, and one is left over.
    for wr_id in 0..5 {
        b.recv_at(wr_id, 0, 16)?;
    }
    for (wr_id, len) in (0..).zip([0, 1, 1025, 20_000]) {
        let imm = [1, 2, 3, wr_id as u8];
        a.fill(DATA + wr_id as u8, len)?;
        a.write_imm(wr_id, len, imm)?;
        let wc = setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
        let seen = (wc.wr_id, wc.opcode, wc.byte_len, wc.imm_data);
        check_eq!(RULE, seen, (wr_id, WcOpcode::RecvRdmaWithImm, len, imm));
        let flag = wc.wc_flags.contains(WcFlags::WITH_IMM);
        check!(RULE, flag, "the flag WITH_IMM", "{:?}", wc.wc_flags);
        b.expect_data(DATA + wr_id as u8, len, RULE)?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    }
    setup.no_completion(b.recv_cq, RULE)
}

scenario!(message_has_at_most_max_msg_sz_bytes: "RDMA-25", "DEV-10"; needs RDMA_READ);
/// There is not enough memory for such a message: an allowed one fails for lack of memory, a longer
/// one because of its length.
fn message_has_at_most_max_msg_sz_bytes(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RDMA-25";
    let longest = setup.query_port(setup.ctx_a(), setup.port())?.max_msg_sz;
    check!("DEV-10", longest > 0, "a greatest length", "0");
    for is_read in [false, true] {
        for (len, status) in [
            (longest, WcStatus::LocProtErr),
            (longest.saturating_add(1), WcStatus::LocLenErr),
        ] {
            let a = setup.rc_pair()?.a;
            let remote = a.remote();
            let op = if is_read {
                SendOp::RdmaRead { remote }
            } else {
                SendOp::RdmaWrite { remote }
            };
            let local = [a.sge(a.mem.length, len)];
            let result = match setup.post_send(a.qp, &[SendWr::new(1, op, &local)]) {
                // A read is answered, or not, by a peer who has no memory for it either.
                Ok(()) if is_read && len == longest => setup
                    .one_with(a.send_cq, WcStatus::RemAccessErr, RULE)
                    .map(drop),
                Ok(()) => setup.one_with(a.send_cq, status, RULE).map(drop),
                refused if len > longest => expect_err(refused, ErrorKind::Invalid, RULE).map(drop),
                refused => Ok(refused.rule(RULE)?),
            };
            in_case(&format!("{} of {len} bytes", op.name()), result)?;
        }
    }
    Ok(())
}

scenario!(all_of_a_write_is_there_only_when_a_completion_says_so: "RDMA-26"; needs LAB);
/// That the last byte is there says nothing of the first, before a completion says that all is.
fn all_of_a_write_is_there_only_when_a_completion_says_so(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RDMA-26";
    let Pair { a, b } = setup.rc_pair()?;
    let ask = (WrOpcode::RdmaWrite, InOrderQuery::empty());
    let is_promised = !setup.query_qp_data_in_order(b.qp, ask.0, ask.1)?.is_empty();
    for len in [2, 8, 5000] {
        a.fill(1, len)?;
        b.fill_at(b.landing(), 0, len)?;
        let place = |end: &End<'_>, at: u32| end.bytes(end.landing() + u64::from(at), 1);
        let (before, last) = (place(&b, 0)?, place(&b, len - 1)?);
        a.write(1, len)?;
        setup.lab().advance(std::time::Duration::from_millis(1))?;
        let arrived = place(&b, len - 1)?;
        check!(RULE, arrived != last, "the last byte", "{arrived:?}");
        let seen = if place(&b, 0)? == before {
            Placement::Late
        } else if is_promised {
            Placement::Arrival
        } else {
            Placement::Unpromised
        };
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        b.expect_data(1, len, RULE)?;
        setup.as_declared(RULE, setup.behavior()?.placement, seen)?;
    }
    Ok(())
}
