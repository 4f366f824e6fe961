//! The order in which data becomes visible: with and without `RELAXED_ORDERING`, and what
//! `ibv_query_qp_data_in_order` promises of it.

use verbs_api::behavior::Placement;
use verbs_api::{
    Access, BatchEnd, InOrder, InOrderQuery, RcParams, Remote, SendOps, SendWr, WcStatus, WrOpcode,
};

use crate::failure::{check, check_eq, in_case};
use crate::{End, OfRule, Pair, PairOptions, Result, Scenario, Setup, pattern, wr_ids};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    later_write_is_visible_behind_an_earlier_one,
    atomic_write_is_visible_behind_the_data_before_it,
    relaxed_writes_are_visible_in_any_order,
    completion_says_that_relaxed_data_is_there,
    result_of_an_atomic_is_visible_behind_the_data_before_it,
    sends_into_relaxed_memory_take_receives_in_order,
    bytes_of_a_write_are_in_order_where_that_is_promised,
    promise_of_order_is_consistent,
];

/// Lengths of messages: of a byte, of less than an aligned block, of several packets.
const LENGTHS: [u32; 3] = [1, 64, 5000];

/// Where the flag of a message is, behind its data.
const FLAG: u64 = 16 * 1024;

const ALL: Access = Access::ALL_RDMA.union(Access::REMOTE_ATOMIC);

fn pair<'b>(setup: &'b Setup<'_>, access: Access) -> Result<Pair<'b>> {
    setup.pair(PairOptions {
        access,
        rc: RcParams {
            access: access & ALL,
            ..RcParams::default()
        },
        ..PairOptions::default()
    })
}

/// Writes data with the pattern of `tag`, and behind it the flag, of one byte.
fn write_with_flag(a: &End<'_>, tag: u8, len: u32) -> Result {
    a.fill(tag, len)?;
    a.fill_at(FLAG, tag, 1)?;
    let landing = a.remote();
    let flag = Remote {
        addr: landing.addr + FLAG,
        ..landing
    };
    a.write(1, len)?;
    a.post(SendWr::rdma_write(2, &[a.sge(FLAG, 1)], flag))
}

/// The byte at an offset of the landing place.
fn byte(end: &End<'_>, offset: u64) -> Result<u8> {
    Ok(end.bytes(end.landing() + offset, 1)?[0])
}

/// Waits until the byte at an offset of the landing place is this one, and polls no completion.
fn await_byte(setup: &Setup<'_>, end: &End<'_>, offset: u64, value: u8) -> Result {
    setup.until("the byte in memory", || {
        Ok((byte(end, offset)? == value).then_some(()))
    })
}

scenario!(later_write_is_visible_behind_an_earlier_one: "RO-01");
/// The program polls memory for the flag.
fn later_write_is_visible_behind_an_earlier_one(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RO-01";
    let Pair { a, b } = setup.rc_pair()?;
    for (tag, len) in (1..).zip(LENGTHS) {
        write_with_flag(&a, tag, len)?;
        await_byte(setup, &b, FLAG, pattern(tag, 1)[0])?;
        b.expect_data(tag, len, RULE)?;
        setup.successes(a.send_cq, 2)?;
    }
    Ok(())
}

scenario!(atomic_write_is_visible_behind_the_data_before_it: "RO-01"; needs ATOMIC_WRITE, BATCHES);
/// The program polls memory for the flag, which is in another region than the data.
fn atomic_write_is_visible_behind_the_data_before_it(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RO-01";
    let Pair { a, b } = setup.pair(PairOptions {
        send_ops: SendOps::RDMA_WRITE | SendOps::ATOMIC_WRITE,
        ..PairOptions::default()
    })?;
    let flag = setup.alloc_mr(b.pd, 8, Access::ALL_RDMA)?;
    let remote = setup.query_mr(flag)?.remote(0);
    for (tag, len) in (1..).zip(LENGTHS) {
        a.fill(tag, len)?;
        let data = [a.sge(0, len)];
        let list = [
            SendWr::rdma_write(1, &data, a.remote()),
            SendWr::atomic_write(2, remote, [tag; 8]),
        ];
        setup.post_batch(a.qp, &list, BatchEnd::Complete)?;
        setup.until("the flag in memory", || {
            let mut seen = [0; 8];
            setup.read_mr(flag, 0, &mut seen)?;
            Ok((seen == [tag; 8]).then_some(()))
        })?;
        b.expect_data(tag, len, RULE)?;
        setup.successes(a.send_cq, 2)?;
    }
    Ok(())
}

scenario!(relaxed_writes_are_visible_in_any_order: "RO-02"; needs LAB);
fn relaxed_writes_are_visible_in_any_order(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RO-02";
    const LEN: u32 = 64;
    let Pair { a, b } = pair(setup, ALL | Access::RELAXED_ORDERING)?;
    let mut seen = None;
    for tag in 1..=32 {
        write_with_flag(&a, tag, LEN)?;
        setup.settle()?;
        let data = b.bytes(b.landing(), LEN as usize)?;
        let expected = pattern(tag, LEN);
        let has_flag = byte(&b, FLAG)? == pattern(tag, 1)[0];
        let has_last = data.last() == expected.last();
        if data != expected && (has_flag || has_last) {
            seen = Some(Placement::Late);
        }
        setup.successes(a.send_cq, 2)?;
    }
    let declared = setup.behavior()?.placement;
    let in_order = declared.filter(|value| *value != Placement::Late);
    let seen = seen.or(in_order).unwrap_or(Placement::Arrival);
    setup.as_declared(RULE, declared, seen)
}

scenario!(completion_says_that_relaxed_data_is_there: "RO-03"; needs RDMA_READ);
fn completion_says_that_relaxed_data_is_there(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RO-03";
    let Pair { a, b } = pair(setup, ALL | Access::RELAXED_ORDERING)?;
    for (tag, len) in (1..).zip(LENGTHS) {
        write_with_flag(&a, tag, len)?;
        let room = b.landing() + FLAG + 64;
        b.recv_at(3, room, len)?;
        a.send(3, len)?;
        setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
        b.expect_data(tag, len, RULE)?;
        b.expect_data_at(b.landing() + FLAG, tag, 1, RULE)?;
        b.expect_data_at(room, tag, len, RULE)?;
        setup.successes(a.send_cq, 3)?;
        b.fill(tag ^ 0x55, len)?;
        a.read(4, len)?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        a.expect_data(tag ^ 0x55, len, RULE)?;
    }
    Ok(())
}

scenario!(result_of_an_atomic_is_visible_behind_the_data_before_it: "RO-04"; needs ATOMICS);
/// The program polls memory for the counter, which is in another region than the data.
fn result_of_an_atomic_is_visible_behind_the_data_before_it(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RO-04";
    for access in [ALL, ALL | Access::RELAXED_ORDERING] {
        let Pair { a, b } = pair(setup, access)?;
        let counter = setup.alloc_mr(b.pd, 8, access)?;
        let remote = setup.query_mr(counter)?.remote(0);
        for (tag, len) in (1..).zip(LENGTHS) {
            a.fill(tag, len)?;
            a.write(1, len)?;
            let old = [a.sge(FLAG, 8)];
            a.post(SendWr::fetch_and_add(2, &old, remote, 1))?;
            setup.until("the count in memory", || {
                let mut count = [0; 8];
                setup.read_mr(counter, 0, &mut count)?;
                Ok((u64::from_ne_bytes(count) == u64::from(tag)).then_some(()))
            })?;
            in_case(&format!("{access:?}"), b.expect_data(tag, len, RULE))?;
            setup.successes(a.send_cq, 2)?;
        }
    }
    Ok(())
}

scenario!(sends_into_relaxed_memory_take_receives_in_order: "RO-05");
fn sends_into_relaxed_memory_take_receives_in_order(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RO-05";
    const LEN: u32 = 100;
    let Pair { a, b } = pair(setup, ALL | Access::RELAXED_ORDERING)?;
    let place = |wr_id: u64| wr_id * u64::from(LEN);
    for wr_id in 0..8 {
        b.recv_at(wr_id, b.landing() + place(wr_id), LEN)?;
        a.fill_at(place(wr_id), wr_id as u8, LEN)?;
    }
    for wr_id in 0..8 {
        a.post(SendWr::send(wr_id, &[a.sge(place(wr_id), LEN)]))?;
    }
    let received = setup.successes(b.recv_cq, 8).rule(RULE)?;
    check_eq!(RULE, wr_ids(&received), (0..8).collect::<Vec<_>>());
    for wr_id in 0..8 {
        b.expect_data_at(b.landing() + place(wr_id), wr_id as u8, LEN, RULE)?;
    }
    Ok(())
}

scenario!(bytes_of_a_write_are_in_order_where_that_is_promised: "RO-06");
/// The program polls memory for the last byte. A device that promises nothing has nothing to keep.
fn bytes_of_a_write_are_in_order_where_that_is_promised(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RO-06";
    let Pair { a, b } = setup.rc_pair()?;
    let (opcode, ask) = (WrOpcode::RdmaWrite, InOrderQuery::empty());
    if setup.query_qp_data_in_order(b.qp, opcode, ask)?.is_empty() {
        return Ok(());
    }
    for (tag, len) in (1..).zip(LENGTHS) {
        a.fill(tag, len)?;
        a.write(1, len)?;
        let last = pattern(tag, len).pop().unwrap_or_default();
        await_byte(setup, &b, u64::from(len) - 1, last)?;
        b.expect_data(tag, len, RULE)?;
        setup.successes(a.send_cq, 1)?;
    }
    Ok(())
}

scenario!(promise_of_order_is_consistent: "RO-07", "RO-08");
fn promise_of_order_is_consistent(setup: &Setup<'_>) -> Result {
    let Pair { a, .. } = setup.rc_pair()?;
    for opcode in WrOpcode::ALL.iter().copied() {
        let ask = |flags| setup.query_qp_data_in_order(a.qp, opcode, flags);
        for device_only in [InOrderQuery::empty(), InOrderQuery::DEVICE_ONLY] {
            let all = ask(device_only | InOrderQuery::RETURN_CAPS)?;
            let is_whole = all.contains(InOrder::WHOLE_MSG);
            let has_blocks = all.contains(InOrder::ALIGNED_128_BYTES) || !is_whole;
            check!("RO-07", has_blocks, "blocks too", "{all:?} ({opcode})");
            let one = ask(device_only)?;
            check_eq!("RO-07", one, all & InOrder::WHOLE_MSG);
        }
        let unknown = InOrderQuery::from_bits_retain(1 << 31) | InOrderQuery::RETURN_CAPS;
        check_eq!("RO-08", ask(unknown)?, InOrder::empty());
    }
    Ok(())
}
