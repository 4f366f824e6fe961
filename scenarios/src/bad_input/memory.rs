//! Work on memory that is not valid for it.

use verbs_api::behavior::Check;
use verbs_api::{Access, ErrorKind, MrAttr, QpCap, QpState, RecvWr, Remote, SendWr, Sge, WcStatus};

use crate::failure::{check, check_eq, in_case};
use crate::{Claim, End, Failure, OfRule, Pair, PairOptions, Result, Setup, expect_err};

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
    region: fn(&Setup<'_>, &End<'_>) -> Result<MrAttr>,
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
        region: |setup, end| {
            let pd = setup.alloc_pd(end.context)?;
            let mr = setup.alloc_mr(pd, 64, Access::ALL_RDMA)?;
            Ok(setup.query_mr(mr)?)
        },
        local: Claim::two("PD-02", "MR-14"),
        receive: Claim::two("PD-02", "MR-14"),
        remote: Claim::two("RDMA-07", "MR-14"),
        ..outside("is of another domain", 0)
    },
    BadMemory {
        region: |setup, end| {
            let mr = setup.alloc_mr(end.pd, 64, Access::ALL_RDMA)?;
            let attr = setup.query_mr(mr)?;
            setup.dereg_mr(mr)?;
            Ok(attr)
        },
        local: Claim::one("MR-05"),
        receive: Claim::one("MR-05"),
        remote: Claim::one("MR-05"),
        ..outside("is deregistered", 0)
    },
];

/// Valid memory that only a local source may be in.
const READ_ONLY: BadMemory = BadMemory {
    region: |setup, end| {
        let mr = setup.alloc_mr(end.pd, 64, Access::empty())?;
        Ok(setup.query_mr(mr)?)
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
    setup: &Setup<'_>,
    memories: impl Iterator<Item = &'static BadMemory>,
    attempt: impl Fn(Pair<'_>, &'static BadMemory) -> Result,
) -> Result {
    for memory in memories {
        in_case(memory.what, attempt(small_pair(setup)?, memory))?;
    }
    Ok(())
}

fn small_pair<'b>(setup: &'b Setup<'_>) -> Result<Pair<'b>> {
    setup.pair(PairOptions {
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
fn send_from_outside_its_memory_fails(setup: &Setup<'_>) -> Result {
    each(setup, unreadable(), |Pair { a, b }, memory| {
        let bad = [(memory.region)(setup, &a)?.sge(memory.offset, 8)];
        b.recv(1, 8)?;
        a.post(SendWr::send(2, &bad)).rule(memory.local)?;
        setup.one_with(a.send_cq, WcStatus::LocProtErr, memory.local)?;
        setup.no_completion(b.recv_cq, memory.local)
    })
}

scenario!(write_from_outside_its_memory_fails: "SQ-22", "PD-02", "MR-14", "MR-05");
fn write_from_outside_its_memory_fails(setup: &Setup<'_>) -> Result {
    each(setup, unreadable(), |Pair { a, b }, memory| {
        b.fill_at(b.landing(), 5, 8)?;
        let bad = [(memory.region)(setup, &a)?.sge(memory.offset, 8)];
        let write = SendWr::rdma_write(1, &bad, a.remote());
        a.post(write).rule(memory.local)?;
        setup.one_with(a.send_cq, WcStatus::LocProtErr, memory.local)?;
        b.expect_data(5, 8, memory.local)
    })
}

scenario!(read_to_outside_its_memory_fails: "SQ-22", "PD-02", "MR-14", "MR-05"; needs RDMA_READ);
fn read_to_outside_its_memory_fails(setup: &Setup<'_>) -> Result {
    each(setup, unwritable(), |Pair { a, .. }, memory| {
        let bad = [(memory.region)(setup, &a)?.sge(memory.offset, 8)];
        a.post(SendWr::rdma_read(1, &bad, a.remote()))
            .rule(memory.local)?;
        setup.one_with(a.send_cq, WcStatus::LocProtErr, memory.local)?;
        setup.no_completion(a.send_cq, memory.local)
    })
}

scenario!(receive_to_outside_its_memory_fails: "RQ-07", "PD-02", "MR-14", "MR-05");
/// It is found out when the message arrives, not at the post.
fn receive_to_outside_its_memory_fails(setup: &Setup<'_>) -> Result {
    each(setup, unwritable(), |Pair { a, b }, memory| {
        let bad = [(memory.region)(setup, &b)?.sge(memory.offset, 8)];
        setup
            .post_recv(b.qp, &[RecvWr::new(1, &bad)])
            .rule(memory.receive)?;
        setup.no_completion(b.recv_cq, memory.receive)?;
        a.send(2, 8)?;
        setup.one_with(b.recv_cq, WcStatus::LocProtErr, memory.receive)?;
        setup
            .one_with(a.send_cq, WcStatus::RemOpErr, memory.receive)
            .map(drop)
    })
}

scenario!(receive_larger_than_its_memory_may_take_what_fits: "RQ-08");
fn receive_larger_than_its_memory_may_take_what_fits(setup: &Setup<'_>) -> Result {
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
            setup
                .post_recv(b.qp, &[RecvWr::new(1, &room)])
                .rule("RQ-08")
        };
        let Pair { a, b } = small_pair(setup)?;
        post(&b)?;
        a.fill(3, 8)?;
        a.send(2, 8)?;
        let wc = setup.one(b.recv_cq)?;
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
        setup.as_declared("RQ-08", setup.behavior()?.recv_sgl_overhang, seen)?;
        let Pair { a, b } = small_pair(setup)?;
        post(&b)?;
        a.post(SendWr::send(2, &[a.sge(0, MEM), a.sge(0, 1)]))?;
        setup.one_with(b.recv_cq, WcStatus::LocProtErr, "RQ-08")?;
    }
    Ok(())
}

scenario!(write_to_outside_remote_memory_fails:
    "RDMA-05", "RDMA-06", "RDMA-07", "MR-14", "MR-05", "RDMA-08", "RDMA-03");
fn write_to_outside_remote_memory_fails(setup: &Setup<'_>) -> Result {
    each(setup, unwritable(), |Pair { a, b }, memory| {
        b.fill_at(0, 5, MEM)?;
        let remote = (memory.region)(setup, &b)?.remote(memory.offset);
        a.post(SendWr::rdma_write(1, &[a.sge(0, 8)], remote))?;
        denied(setup, &a, &b, memory)?;
        b.expect_data_at(0, 5, MEM, memory.remote)
    })
}

scenario!(read_from_outside_remote_memory_fails:
    "RDMA-05", "RDMA-06", "RDMA-07", "MR-14", "MR-05", "RDMA-08", "RDMA-03"; needs RDMA_READ);
fn read_from_outside_remote_memory_fails(setup: &Setup<'_>) -> Result {
    each(setup, unwritable(), |Pair { a, b }, memory| {
        a.fill_at(a.landing(), 5, 8)?;
        let remote = (memory.region)(setup, &b)?.remote(memory.offset);
        a.post(SendWr::rdma_read(1, &[a.sge(a.landing(), 8)], remote))?;
        denied(setup, &a, &b, memory)?;
        a.expect_data(5, 8, memory.remote)
    })
}

/// The work of A on memory of B fails, and both are in error.
fn denied(setup: &Setup<'_>, a: &End<'_>, b: &End<'_>, memory: &BadMemory) -> Result {
    setup.one_with(a.send_cq, WcStatus::RemAccessErr, memory.remote)?;
    setup.no_completion(b.recv_cq, memory.remote)?;
    for end in [a, b] {
        setup
            .until("the QP is in error", || {
                let state = setup.state(end.qp)?;
                Ok((state == QpState::Err).then_some(()))
            })
            .rule("RDMA-08")?;
    }
    Ok(())
}

scenario!(key_in_the_place_of_the_other_is_none: "MR-03");
/// The two keys of a region may have the same value; then there is nothing to see.
fn key_in_the_place_of_the_other_is_none(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = small_pair(setup)?;
    if b.mem.lkey != b.mem.rkey {
        let remote = Remote {
            rkey: b.mem.lkey,
            ..a.remote()
        };
        a.post(SendWr::rdma_write(1, &[a.sge(0, 8)], remote))?;
        setup.one_with(a.send_cq, WcStatus::RemAccessErr, "MR-03")?;
    }
    let Pair { a, .. } = small_pair(setup)?;
    if a.mem.lkey != a.mem.rkey {
        let data = Sge {
            lkey: a.mem.rkey,
            ..a.sge(0, 8)
        };
        a.post(SendWr::rdma_write(1, &[data], a.remote()))?;
        // With which status is a matter of SQ-22.
        let wc = setup.one(a.send_cq)?;
        check!("MR-03", wc.status != WcStatus::Success, "a failure", "{wc}");
    }
    Ok(())
}

scenario!(very_ends_of_a_region_can_be_used: "MR-20");
fn very_ends_of_a_region_can_be_used(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = small_pair(setup)?;
    for (tag, (offset, len)) in (1..).zip([(0, 1), (END - 1, 1), (0, MEM)]) {
        a.fill_at(offset, tag, len)?;
        let data = [a.sge(offset, len)];
        a.post(SendWr::rdma_write(1, &data, b.mem.remote(offset)))?;
        setup.one_with(a.send_cq, WcStatus::Success, "MR-20")?;
        b.expect_data_at(offset, tag, len, "MR-20")?;
        a.fill_at(offset, !tag, len)?;
        b.recv_at(1, offset, len)?;
        a.post(SendWr::send(2, &data))?;
        setup.one_with(b.recv_cq, WcStatus::Success, "MR-20")?;
        setup.one_with(a.send_cq, WcStatus::Success, "MR-20")?;
        b.expect_data_at(offset, !tag, len, "MR-20")?;
    }
    Ok(())
}

scenario!(write_of_no_bytes_may_name_any_memory: "RDMA-10");
fn write_of_no_bytes_may_name_any_memory(setup: &Setup<'_>) -> Result {
    each(setup, unwritable(), |Pair { a, b }, memory| {
        let remote = (memory.region)(setup, &b)?.remote(memory.offset);
        a.post(SendWr::rdma_write(1, &[a.sge(0, 0)], remote))?;
        setup
            .one_with(a.send_cq, WcStatus::Success, "RDMA-10")
            .map(drop)
    })
}

scenario!(read_of_no_bytes_may_name_any_memory: "RDMA-10"; needs RDMA_READ);
fn read_of_no_bytes_may_name_any_memory(setup: &Setup<'_>) -> Result {
    each(setup, unwritable(), |Pair { a, b }, memory| {
        let remote = (memory.region)(setup, &b)?.remote(memory.offset);
        a.post(SendWr::rdma_read(1, &[a.sge(0, 0)], remote))?;
        setup
            .one_with(a.send_cq, WcStatus::Success, "RDMA-10")
            .map(drop)
    })
}

scenario!(entry_of_no_bytes_may_name_any_address: "SQ-23"; hazards MAY_HANG, MAY_CRASH);
fn entry_of_no_bytes_may_name_any_address(setup: &Setup<'_>) -> Result {
    let empty = |end: &End<'_>, memory: &BadMemory| -> Result<Sge> {
        Ok((memory.region)(setup, end)?.sge(memory.offset, 0))
    };
    each(setup, RANGES.iter(), |Pair { a, b }, memory| {
        let into = [empty(&b, memory)?, b.sge(b.landing(), 8)];
        let data = [empty(&a, memory)?, a.sge(0, 8)];
        let send = SendWr::send(2, &data);
        for (tag, send) in [(4, send), (5, send.inline())] {
            a.fill(tag, 8)?;
            setup
                .post_recv(b.qp, &[RecvWr::new(1, &into)])
                .rule("SQ-23")?;
            a.post(send).rule("SQ-23")?;
            let wc = setup.one_with(b.recv_cq, WcStatus::Success, "SQ-23")?;
            check_eq!("SQ-23", wc.byte_len, 8);
            setup.one_with(a.send_cq, WcStatus::Success, "SQ-23")?;
            b.expect_data(tag, 8, "SQ-23")?;
        }
        Ok(())
    })?;
    // Whether the key of an empty entry is looked at depends on the device.
    each(setup, KEYS.iter(), |Pair { a, b }, memory| {
        b.recv(1, 8)?;
        a.post(SendWr::send(2, &[empty(&a, memory)?]))
            .rule("SQ-23")?;
        let wc = setup.one(a.send_cq)?;
        let seen = match wc.status {
            WcStatus::Success => Check::Accepted,
            WcStatus::LocProtErr => Check::Refused,
            _ => {
                let expected = "SUCCESS or LOC_PROT_ERR";
                return Err(Failure::assertion(expected, wc.to_string())).rule("SQ-23");
            }
        };
        setup.as_declared("SQ-23", setup.behavior()?.zero_len_sge_check, seen)
    })
}

scenario!(message_above_the_longest_fails: "SQ-21", "SQ-22");
fn message_above_the_longest_fails(setup: &Setup<'_>) -> Result {
    let longest = setup.query_port(setup.ctx_a(), setup.port())?.max_msg_sz;
    // One of the greatest length is allowed, but there is no memory for it: not for its beginning
    // either, which a device may send, and then wait for a receive, before it gets to the rest.
    let Pair { a, .. } = small_pair(setup)?;
    a.post(SendWr::send(1, &[a.sge(END, longest)]))
        .rule("SQ-21")?;
    setup.one_with(a.send_cq, WcStatus::LocProtErr, "SQ-22")?;
    for lengths in [
        [longest, 1],
        [1, longest],
        [u32::MAX, 0],
        [u32::MAX, u32::MAX],
        // Their sum has 33 bits, the lower 32 of which are 0.
        [1 << 31, 1 << 31],
    ] {
        let Pair { a, b } = small_pair(setup)?;
        b.recv(1, 8)?;
        let data = lengths.map(|length| a.sge(0, length));
        let result = match setup.post_send(a.qp, &[SendWr::send(2, &data)]) {
            Ok(()) => setup
                .one_with(a.send_cq, WcStatus::LocLenErr, "SQ-21")
                .map(drop),
            error => expect_err(error, ErrorKind::Invalid, "SQ-21").map(drop),
        };
        in_case(&format!("{lengths:?} bytes"), result)?;
        setup.no_completion(b.recv_cq, "SQ-21")?;
    }
    Ok(())
}
