//! Work on memory that is not valid for it.

use verbs_api::behavior::Check;
use verbs_api::{Access, ErrorKind, MrAttr, QpCap, QpState, RecvWr, Remote, SendWr, Sge, WcStatus};

use crate::failure::{check, check_eq, in_case};
use crate::{Bench, Claim, End, Failure, OfRule, Pair, PairOptions, Result, expect_err};

/// Bytes of each region here.
const MEM: u32 = 4096;
const END: u64 = MEM as u64;

/// 8 bytes that are not valid memory, and the rules that forbid them.
struct BadMemory {
    what: &'static str,
    /// As the source or target of a send.
    local: Claim,
    /// As the target of a receive.
    receive: Claim,
    /// As the target or source of a peer.
    remote: Claim,
    /// The region that they claim to be in.
    region: fn(&Bench<'_>, &End<'_>) -> Result<MrAttr>,
    offset: u64,
}

/// The key is right, the range is not.
const RANGES: [BadMemory; 9] = [
    outside("begins one byte before the region", 0_u64.wrapping_sub(1)),
    outside("ends where the region begins", 0_u64.wrapping_sub(8)),
    outside("ends one byte behind the region", END - 7),
    outside("begins where the region ends", END),
    outside("is 4 GiB behind the region", END + (1 << 32)),
    outside("is half of all addresses away", 1 << 63),
    at("begins at address 0", 0),
    at("ends with the last address", u64::MAX - 7),
    at("wraps around the last address", u64::MAX - 3),
];

const KEYS: [BadMemory; 3] = [
    BadMemory {
        region: |_, end| {
            let mut region = end.mem;
            region.lkey ^= 0xa5;
            region.rkey ^= 0xa5;
            Ok(region)
        },
        remote: Claim::one("RDMA-05"),
        ..outside("has no key", 0)
    },
    BadMemory {
        region: |bench, end| {
            let pd = bench.alloc_pd(end.context)?;
            let mr = bench.alloc_mr(pd, 64, Access::ALL_RDMA)?;
            Ok(bench.query_mr(mr)?)
        },
        local: Claim::two("PD-02", "MR-14"),
        receive: Claim::two("PD-02", "MR-14"),
        remote: Claim::two("RDMA-07", "MR-14"),
        ..outside("is of another domain", 0)
    },
    BadMemory {
        region: |bench, end| {
            let mr = bench.alloc_mr(end.pd, 64, Access::ALL_RDMA)?;
            let attr = bench.query_mr(mr)?;
            bench.dereg_mr(mr)?;
            Ok(attr)
        },
        local: Claim::one("MR-05"),
        receive: Claim::one("MR-05"),
        remote: Claim::one("MR-05"),
        ..outside("is gone", 0)
    },
];

/// Valid memory that only a local source may be in.
const READ_ONLY: BadMemory = BadMemory {
    region: |bench, end| {
        let mr = bench.alloc_mr(end.pd, 64, Access::empty())?;
        Ok(bench.query_mr(mr)?)
    },
    remote: Claim::one("RDMA-03"),
    ..outside("allows local reads only", 0)
};

const fn outside(what: &'static str, offset: u64) -> BadMemory {
    BadMemory {
        what,
        local: Claim::one("SQ-22"),
        receive: Claim::one("RQ-07"),
        remote: Claim::one("RDMA-06"),
        region: |_, end| Ok(end.mem),
        offset,
    }
}

const fn at(what: &'static str, address: u64) -> BadMemory {
    BadMemory {
        region: |_, end| {
            let mut region = end.mem;
            region.addr = 0;
            Ok(region)
        },
        ..outside(what, address)
    }
}

fn unreadable() -> impl Iterator<Item = &'static BadMemory> {
    RANGES.iter().chain(&KEYS)
}

fn unwritable() -> impl Iterator<Item = &'static BadMemory> {
    unreadable().chain([&READ_ONLY])
}

/// Tries each on a new pair.
fn each(
    bench: &Bench<'_>,
    memories: impl Iterator<Item = &'static BadMemory>,
    attempt: impl Fn(Pair<'_>, &'static BadMemory) -> Result,
) -> Result {
    for memory in memories {
        in_case(memory.what, attempt(small_pair(bench)?, memory))?;
    }
    Ok(())
}

fn small_pair<'b>(bench: &'b Bench<'_>) -> Result<Pair<'b>> {
    bench.pair(PairOptions {
        mem: MEM as usize,
        cap: QpCap {
            max_send_sge: 2,
            max_recv_sge: 2,
            max_inline_data: 8,
            ..QpCap::default()
        },
        ..PairOptions::default()
    })
}

scenario!(send_from_outside_its_memory_fails: "SQ-22", "PD-02", "MR-14", "MR-05");
fn send_from_outside_its_memory_fails(bench: &Bench<'_>) -> Result {
    each(bench, unreadable(), |Pair { a, b }, memory| {
        let bad = [(memory.region)(bench, &a)?.sge(memory.offset, 8)];
        b.recv(1, 8)?;
        a.post(SendWr::send(2, &bad)).rule(memory.local)?;
        bench.one_with(a.send_cq, WcStatus::LocProtErr, memory.local)?;
        bench.no_completion(b.recv_cq, memory.local)
    })
}

scenario!(write_from_outside_its_memory_fails: "SQ-22", "PD-02", "MR-14", "MR-05");
fn write_from_outside_its_memory_fails(bench: &Bench<'_>) -> Result {
    each(bench, unreadable(), |Pair { a, b }, memory| {
        b.fill_at(b.landing(), 5, 8)?;
        let bad = [(memory.region)(bench, &a)?.sge(memory.offset, 8)];
        let write = SendWr::rdma_write(1, &bad, a.remote());
        a.post(write).rule(memory.local)?;
        bench.one_with(a.send_cq, WcStatus::LocProtErr, memory.local)?;
        b.expect_data(5, 8, memory.local)
    })
}

scenario!(read_to_outside_its_memory_fails: "SQ-22", "PD-02", "MR-14", "MR-05"; needs RDMA_READ);
fn read_to_outside_its_memory_fails(bench: &Bench<'_>) -> Result {
    each(bench, unwritable(), |Pair { a, .. }, memory| {
        let bad = [(memory.region)(bench, &a)?.sge(memory.offset, 8)];
        a.post(SendWr::rdma_read(1, &bad, a.remote()))
            .rule(memory.local)?;
        bench.one_with(a.send_cq, WcStatus::LocProtErr, memory.local)?;
        bench.no_completion(a.send_cq, memory.local)
    })
}

scenario!(receive_to_outside_its_memory_fails: "RQ-07", "PD-02", "MR-14", "MR-05");
/// It is found out when the message arrives, not at the post.
fn receive_to_outside_its_memory_fails(bench: &Bench<'_>) -> Result {
    each(bench, unwritable(), |Pair { a, b }, memory| {
        let bad = [(memory.region)(bench, &b)?.sge(memory.offset, 8)];
        bench
            .post_recv(b.qp, &[RecvWr::new(1, &bad)])
            .rule(memory.receive)?;
        bench.no_completion(b.recv_cq, memory.receive)?;
        a.send(2, 8)?;
        bench.one_with(b.recv_cq, WcStatus::LocProtErr, memory.receive)?;
        bench
            .one_with(a.send_cq, WcStatus::RemOpErr, memory.receive)
            .map(drop)
    })
}

scenario!(receive_larger_than_its_memory_may_take_what_fits: "RQ-08");
fn receive_larger_than_its_memory_may_take_what_fits(bench: &Bench<'_>) -> Result {
    // In the last case it is the key of an entry which the message does not reach.
    for (lengths, flips) in [
        ([MEM + 8, 0], 0),
        ([u32::MAX, 1], 0),
        ([1 << 31, 1 << 31], 0),
        ([MEM, 8], 0xa5),
    ] {
        let post = |b: &End<'_>| {
            let mut room = lengths.map(|length| b.sge(0, length));
            room[1].lkey ^= flips;
            bench
                .post_recv(b.qp, &[RecvWr::new(1, &room)])
                .rule("RQ-08")
        };
        let Pair { a, b } = small_pair(bench)?;
        post(&b)?;
        a.fill(3, 8)?;
        a.send(2, 8)?;
        let wc = bench.one(b.recv_cq)?;
        let seen = match wc.status {
            WcStatus::Success => Check::Accepted,
            WcStatus::LocProtErr => Check::Refused,
            _ => {
                return Err(Failure::assertion(
                    "SUCCESS or LOC_PROT_ERR",
                    wc.to_string(),
                ));
            }
        };
        if seen == Check::Accepted {
            b.expect_data_at(0, 3, 8, "RQ-08")?;
        }
        bench.as_declared("RQ-08", bench.behavior()?.recv_sgl_overhang, seen)?;
        let Pair { a, b } = small_pair(bench)?;
        post(&b)?;
        a.post(SendWr::send(2, &[a.sge(0, MEM), a.sge(0, 1)]))?;
        bench.one_with(b.recv_cq, WcStatus::LocProtErr, "RQ-08")?;
    }
    Ok(())
}

scenario!(write_to_outside_remote_memory_fails:
    "RDMA-05", "RDMA-06", "RDMA-07", "MR-14", "MR-05", "RDMA-08", "RDMA-03");
fn write_to_outside_remote_memory_fails(bench: &Bench<'_>) -> Result {
    each(bench, unwritable(), |Pair { a, b }, memory| {
        b.fill_at(0, 5, MEM)?;
        let remote = (memory.region)(bench, &b)?.remote(memory.offset);
        a.post(SendWr::rdma_write(1, &[a.sge(0, 8)], remote))?;
        denied(bench, &a, &b, memory)?;
        b.expect_data_at(0, 5, MEM, memory.remote)
    })
}

scenario!(read_from_outside_remote_memory_fails:
    "RDMA-05", "RDMA-06", "RDMA-07", "MR-14", "MR-05", "RDMA-08", "RDMA-03"; needs RDMA_READ);
fn read_from_outside_remote_memory_fails(bench: &Bench<'_>) -> Result {
    each(bench, unwritable(), |Pair { a, b }, memory| {
        a.fill_at(a.landing(), 5, 8)?;
        let remote = (memory.region)(bench, &b)?.remote(memory.offset);
        a.post(SendWr::rdma_read(1, &[a.sge(a.landing(), 8)], remote))?;
        denied(bench, &a, &b, memory)?;
        a.expect_data(5, 8, memory.remote)
    })
}

/// The work of A on memory of B fails, and both are in error.
fn denied(bench: &Bench<'_>, a: &End<'_>, b: &End<'_>, memory: &BadMemory) -> Result {
    bench.one_with(a.send_cq, WcStatus::RemAccessErr, memory.remote)?;
    bench.no_completion(b.recv_cq, memory.remote)?;
    for end in [a, b] {
        bench
            .until("the QP is in error", || {
                let state = bench.state(end.qp)?;
                Ok((state == QpState::Err).then_some(()))
            })
            .rule("RDMA-08")?;
    }
    Ok(())
}

scenario!(key_in_the_place_of_the_other_is_none: "MR-03");
/// The two keys of a region may have the same value; then there is nothing to see.
fn key_in_the_place_of_the_other_is_none(bench: &Bench<'_>) -> Result {
    let Pair { a, b } = small_pair(bench)?;
    if b.mem.lkey != b.mem.rkey {
        let remote = Remote {
            rkey: b.mem.lkey,
            ..a.remote()
        };
        a.post(SendWr::rdma_write(1, &[a.sge(0, 8)], remote))?;
        bench.one_with(a.send_cq, WcStatus::RemAccessErr, "MR-03")?;
    }
    let Pair { a, .. } = small_pair(bench)?;
    if a.mem.lkey != a.mem.rkey {
        let data = Sge {
            lkey: a.mem.rkey,
            ..a.sge(0, 8)
        };
        a.post(SendWr::rdma_write(1, &[data], a.remote()))?;
        // With which status is a matter of SQ-22.
        let wc = bench.one(a.send_cq)?;
        check!("MR-03", wc.status != WcStatus::Success, "a failure", "{wc}");
    }
    Ok(())
}

scenario!(very_ends_of_a_region_can_be_used: "MR-20");
fn very_ends_of_a_region_can_be_used(bench: &Bench<'_>) -> Result {
    let Pair { a, b } = small_pair(bench)?;
    for (tag, (offset, len)) in (1..).zip([(0, 1), (END - 1, 1), (0, MEM)]) {
        a.fill_at(offset, tag, len)?;
        let data = [a.sge(offset, len)];
        a.post(SendWr::rdma_write(1, &data, b.mem.remote(offset)))?;
        bench.one_with(a.send_cq, WcStatus::Success, "MR-20")?;
        b.expect_data_at(offset, tag, len, "MR-20")?;
        a.fill_at(offset, !tag, len)?;
        b.recv_at(1, offset, len)?;
        a.post(SendWr::send(2, &data))?;
        bench.one_with(b.recv_cq, WcStatus::Success, "MR-20")?;
        bench.one_with(a.send_cq, WcStatus::Success, "MR-20")?;
        b.expect_data_at(offset, !tag, len, "MR-20")?;
    }
    Ok(())
}

scenario!(write_of_no_bytes_may_name_any_memory: "RDMA-10");
fn write_of_no_bytes_may_name_any_memory(bench: &Bench<'_>) -> Result {
    each(bench, unwritable(), |Pair { a, b }, memory| {
        let remote = (memory.region)(bench, &b)?.remote(memory.offset);
        a.post(SendWr::rdma_write(1, &[a.sge(0, 0)], remote))?;
        bench
            .one_with(a.send_cq, WcStatus::Success, "RDMA-10")
            .map(drop)
    })
}

scenario!(read_of_no_bytes_may_name_any_memory: "RDMA-10"; needs RDMA_READ);
fn read_of_no_bytes_may_name_any_memory(bench: &Bench<'_>) -> Result {
    each(bench, unwritable(), |Pair { a, b }, memory| {
        let remote = (memory.region)(bench, &b)?.remote(memory.offset);
        a.post(SendWr::rdma_read(1, &[a.sge(0, 0)], remote))?;
        bench
            .one_with(a.send_cq, WcStatus::Success, "RDMA-10")
            .map(drop)
    })
}

scenario!(entry_of_no_bytes_may_name_any_address: "SQ-23"; hazards MAY_HANG, MAY_CRASH);
fn entry_of_no_bytes_may_name_any_address(bench: &Bench<'_>) -> Result {
    let empty = |end: &End<'_>, memory: &BadMemory| -> Result<Sge> {
        Ok((memory.region)(bench, end)?.sge(memory.offset, 0))
    };
    each(bench, RANGES.iter(), |Pair { a, b }, memory| {
        let into = [empty(&b, memory)?, b.sge(b.landing(), 8)];
        let data = [empty(&a, memory)?, a.sge(0, 8)];
        let send = SendWr::send(2, &data);
        for (tag, send) in [(4, send), (5, send.inline())] {
            a.fill(tag, 8)?;
            bench
                .post_recv(b.qp, &[RecvWr::new(1, &into)])
                .rule("SQ-23")?;
            a.post(send).rule("SQ-23")?;
            let wc = bench.one_with(b.recv_cq, WcStatus::Success, "SQ-23")?;
            check_eq!("SQ-23", wc.byte_len, 8);
            bench.one_with(a.send_cq, WcStatus::Success, "SQ-23")?;
            b.expect_data(tag, 8, "SQ-23")?;
        }
        Ok(())
    })?;
    // Whether the key of an empty entry is looked at depends on the device.
    each(bench, KEYS.iter(), |Pair { a, b }, memory| {
        b.recv(1, 8)?;
        a.post(SendWr::send(2, &[empty(&a, memory)?]))
            .rule("SQ-23")?;
        let wc = bench.one(a.send_cq)?;
        let seen = match wc.status {
            WcStatus::Success => Check::Accepted,
            WcStatus::LocProtErr => Check::Refused,
            _ => {
                let expected = "SUCCESS or LOC_PROT_ERR";
                return Err(Failure::assertion(expected, wc.to_string())).rule("SQ-23");
            }
        };
        bench.as_declared("SQ-23", bench.behavior()?.zero_len_sge_check, seen)
    })
}

scenario!(message_above_the_longest_fails: "SQ-21", "SQ-22");
fn message_above_the_longest_fails(bench: &Bench<'_>) -> Result {
    let longest = bench.query_port(bench.ctx_a(), bench.port())?.max_msg_sz;
    // One of the greatest length is allowed, but there is no memory for it: not for its beginning
    // either, which a device may send, and then wait for a receive, before it gets to the rest.
    let Pair { a, .. } = small_pair(bench)?;
    a.post(SendWr::send(1, &[a.sge(END, longest)]))
        .rule("SQ-21")?;
    bench.one_with(a.send_cq, WcStatus::LocProtErr, "SQ-22")?;
    for lengths in [
        [longest, 1],
        [1, longest],
        [u32::MAX, 0],
        [u32::MAX, u32::MAX],
        // Their sum has 33 bits, the lower 32 of which are 0.
        [1 << 31, 1 << 31],
    ] {
        let Pair { a, b } = small_pair(bench)?;
        b.recv(1, 8)?;
        let data = lengths.map(|length| a.sge(0, length));
        let result = match bench.post_send(a.qp, &[SendWr::send(2, &data)]) {
            Ok(()) => bench
                .one_with(a.send_cq, WcStatus::LocLenErr, "SQ-21")
                .map(drop),
            error => expect_err(error, ErrorKind::Invalid, "SQ-21").map(drop),
        };
        in_case(&format!("{lengths:?} bytes"), result)?;
        bench.no_completion(b.recv_cq, "SQ-21")?;
    }
    Ok(())
}
