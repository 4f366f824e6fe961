//! Regions of other memory than their own, and with other addresses.

use std::time::Duration;

use verbs_api::lab::{Fault, PacketFilter};
use verbs_api::{
    Access, Capabilities, ErrorKind, MrAttr, MrChange, MrInit, MrMemory, Remote, SendWr, WcStatus,
};

use super::LEN;
use crate::end::gives_up_soon;
use crate::failure::{Failure, check_eq, in_case, value_in_case};
use crate::kind::Kind;
use crate::{End, OfRule, Pair, PairOptions, Result, Setup, expect_err, expect_err_among, pattern};

/// Bytes of the regions made here: a page and a half, so that the end is not that of a page.
const SIZE: usize = 6144;

fn bytes_of(setup: &Setup<'_>, mr: verbs_api::Mr, offset: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; LEN as usize];
    setup.read_mr(mr, offset, &mut bytes)?;
    Ok(bytes)
}

/// Writes 8 bytes of this tag from the end to a place in a peer's memory; they arrive.
fn write(setup: &Setup<'_>, from: &End<'_>, to: Remote, tag: u8, rule: &'static str) -> Result {
    from.fill(tag, LEN)?;
    from.post(SendWr::rdma_write(1, &[from.sge(0, LEN)], to))?;
    setup
        .one_with(from.send_cq, WcStatus::Success, rule)
        .map(drop)
}

/// The region's first byte is named by this address, at home and by peers; and its last.
fn named_by(setup: &Setup<'_>, init: &MrInit, first: u64, rule: &'static str) -> Result {
    let pair = setup.rc_pair()?;
    let Pair { a, b } = pair;
    let mr = setup.alloc_mr_as(b.pd, init).rule(rule)?;
    let attr = setup.query_mr(mr)?;
    for (tag, offset) in [(1, 0), (2, 4090), (3, SIZE - LEN as usize)] {
        // A peer writes to it, and the owner sends it back.
        let addr = first + offset as u64;
        let place = Remote {
            addr,
            rkey: attr.rkey,
        };
        write(setup, &a, place, tag, rule)?;
        check_eq!(
            rule,
            bytes_of(setup, mr, offset)?,
            pattern(tag, LEN),
            "what was written"
        );
        a.recv(2, LEN)?;
        b.post(SendWr::send(
            2,
            &[verbs_api::Sge {
                addr,
                ..attr.sge(0, LEN)
            }],
        ))?;
        setup.one_with(b.send_cq, WcStatus::Success, [rule, "MR-21"])?;
        setup.one_with(a.recv_cq, WcStatus::Success, rule)?;
        a.expect_data(tag, LEN, rule)?;
    }
    check_eq!(rule, attr.addr, first, "the address of its first byte");
    Ok(())
}

/// One byte before the region, and one behind it.
fn borders(setup: &Setup<'_>, init: &MrInit, rule: &'static str) -> Result {
    for (what, offset) in [
        ("before", u64::MAX),
        ("behind", SIZE as u64 - u64::from(LEN) + 1),
    ] {
        let Pair { a, b } = setup.rc_pair()?;
        let attr = setup.query_mr(setup.alloc_mr_as(b.pd, init)?)?;
        a.post(SendWr::rdma_write(1, &[a.sge(0, LEN)], attr.remote(offset)))?;
        value_in_case(
            what,
            setup.one_with(a.send_cq, WcStatus::RemAccessErr, rule),
        )?;
    }
    Ok(())
}

scenario!(zero_based_region_is_named_by_offsets: "RDMA-21", "MR-21");
fn zero_based_region_is_named_by_offsets(setup: &Setup<'_>) -> Result {
    let init = MrInit::new(SIZE, Access::ALL_RDMA | Access::ZERO_BASED);
    named_by(setup, &init, 0, "RDMA-21")?;
    // Another one has the same addresses, and another key.
    named_by(setup, &init, 0, "MR-21")?;
    borders(setup, &init, "RDMA-21")
}

scenario!(addresses_count_from_the_one_that_was_chosen: "RDMA-22", "MR-21"; needs REG_MR_IOVA);
fn addresses_count_from_the_one_that_was_chosen(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RDMA-22";
    for iova in [0, 0x1000, 0x1234_5000, 1 << 46] {
        let init = MrInit::new(SIZE, Access::ALL_RDMA).iova(iova);
        in_case(&format!("{iova:#x}"), named_by(setup, &init, iova, RULE))?;
    }
    borders(
        setup,
        &MrInit::new(SIZE, Access::ALL_RDMA).iova(0x1000),
        RULE,
    )?;
    // Part of other memory, at the same place in its page.
    let b = setup.end(setup.ctx_b(), PairOptions::default())?;
    let part = MrInit::new(SIZE, Access::ALL_RDMA).memory(MrMemory::Of(b.mr, 24));
    let fits = setup.query_mr(setup.alloc_mr_as(b.pd, &part.iova(0x7018))?)?;
    check_eq!(RULE, fits.addr, 0x7018);
    let elsewhere = setup.alloc_mr_as(b.pd, &part.iova(0x7000));
    expect_err(elsewhere, ErrorKind::Invalid, RULE).map(drop)
}

scenario!(null_region_reads_as_zeros_and_discards_what_is_written: "MR-18"; needs NULL_MR);
fn null_region_reads_as_zeros_and_discards_what_is_written(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-18";
    let Pair { a, b } = setup.rc_pair()?;
    let null = setup.query_mr(setup.alloc_null_mr(a.pd).rule(RULE)?)?;
    for addr in [0, 0x1234_5678, 1 << 50] {
        let zeros = |len| verbs_api::Sge {
            addr,
            ..null.sge(0, len)
        };
        b.fill_at(b.landing(), 99, 3 * LEN)?;
        b.recv(1, 3 * LEN)?;
        a.post(SendWr::send(1, &[zeros(3 * LEN)]))?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
        let seen = b.bytes(b.landing(), 3 * LEN as usize)?;
        check_eq!(
            RULE,
            seen,
            vec![0; 3 * LEN as usize],
            "what is read from it"
        );
        // The data is discarded, and the completion is the usual one.
        b.fill(5, LEN)?;
        setup.post_recv(a.qp, &[verbs_api::RecvWr::new(2, &[zeros(LEN)])])?;
        b.send(2, LEN)?;
        let wc = setup.one_with(a.recv_cq, WcStatus::Success, RULE)?;
        check_eq!(RULE, wc.byte_len, LEN);
        setup.one_with(b.send_cq, WcStatus::Success, RULE)?;
    }
    // Peers have no key of it.
    let of_b = setup.query_mr(setup.alloc_null_mr(b.pd)?)?;
    let rkey = of_b.lkey;
    a.post(SendWr::rdma_write(
        3,
        &[a.sge(0, LEN)],
        Remote { addr: 0, rkey },
    ))?;
    setup
        .one_with(a.send_cq, WcStatus::RemAccessErr, RULE)
        .map(drop)
}

scenario!(null_region_is_there_if_the_device_says_so: "MR-18"; without RC);
fn null_region_is_there_if_the_device_says_so(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-18";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let has = setup.has(setup.ctx_a(), Capabilities::NULL_MR)?;
    match setup.alloc_null_mr(pd) {
        Ok(mr) if has != Some(false) => setup.dereg_mr(mr).rule(RULE)?,
        // A simulator that plays a lesser device can do more than it declares.
        Ok(mr) if setup.verbs().lab().is_some() => setup.dereg_mr(mr).rule(RULE)?,
        Err(error) if has != Some(true) && error.kind() == ErrorKind::NotSupported => {}
        result => {
            let seen = format!("{result:?}");
            return Err(Failure::assertion("as the device says", seen)).rule(RULE);
        }
    }
    Ok(setup.dealloc_pd(pd)?)
}

/// What has to be refused with EINVAL.
fn invalid<T: std::fmt::Debug>(
    what: &str,
    result: verbs_api::Result<T>,
    rule: &'static str,
) -> Result {
    in_case(what, expect_err(result, ErrorKind::Invalid, rule).map(drop))
}

scenario!(program_reaches_the_bytes_of_a_region_alone: "MR-25"; without RC);
fn program_reaches_the_bytes_of_a_region_alone(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-25";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let made = |memory| setup.alloc_mr_as(pd, &MrInit::new(SIZE, Access::empty()).memory(memory));
    let whole = made(MrMemory::New)?;
    let read_only = made(MrMemory::ReadOnly)?;
    let end = MrInit::new(64, Access::empty()).memory(MrMemory::Of(whole, SIZE - 64));
    let end = setup.alloc_mr_as(pd, &end).rule(RULE)?;
    for (what, mr, size) in [
        ("all", whole, SIZE),
        ("its end", end, 64),
        ("to read", read_only, SIZE),
    ] {
        let read = |offset, length| setup.read_mr(mr, offset, &mut vec![0; length]);
        let write = |offset, length| setup.write_mr(mr, offset, &vec![1; length]);
        for (offset, length) in [(0, size), (size - 1, 1), (size, 0)] {
            in_case(what, read(offset, length).map_err(Failure::from)).rule(RULE)?;
            if mr == read_only {
                invalid(what, write(offset, length), RULE)?
            } else {
                in_case(what, write(offset, length).map_err(Failure::from)).rule(RULE)?
            }
        }
        for (offset, length) in [(0, size + 1), (1, size), (size, 1), (usize::MAX, 2)] {
            let case = format!("{what}, {length} bytes from {offset} on");
            invalid(&case, read(offset, length), RULE)?;
            invalid(&case, write(offset, length), RULE)?;
        }
    }
    let mut bytes = [7; 2];
    setup.read_mr(read_only, SIZE - 2, &mut bytes)?;
    check_eq!(RULE, bytes, [0; 2], "what is read");
    // No other region gets what is not there, or may not be written.
    for (what, of, offset, length) in [
        ("an additional byte", whole, 0, SIZE + 1),
        ("from its second byte on", whole, 1, SIZE),
        ("from its end on", whole, SIZE, 1),
        ("from the end of a part on", end, 64, 1),
        ("wrapping around", whole, usize::MAX, 2),
        ("to read", read_only, 0, 64),
    ] {
        let init = MrInit::new(length, Access::empty()).memory(MrMemory::Of(of, offset));
        invalid(what, setup.alloc_mr_as(pd, &init), RULE)?;
    }
    Ok(())
}

scenario!(null_region_has_no_bytes_and_is_not_changed: "MR-18", "MR-25"; needs NULL_MR);
fn null_region_has_no_bytes_and_is_not_changed(setup: &Setup<'_>) -> Result {
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let null = setup.alloc_null_mr(pd)?;
    for length in [0, 1, 8] {
        let case = format!("{length} bytes");
        invalid(&case, setup.read_mr(null, 0, &mut vec![0; length]), "MR-25")?;
        invalid(&case, setup.write_mr(null, 0, &vec![0; length]), "MR-25")?;
    }
    let part = MrInit::new(8, Access::empty()).memory(MrMemory::Of(null, 0));
    invalid("a part", setup.alloc_mr_as(pd, &part), "MR-25")?;
    let capabilities = setup.capabilities(setup.ctx_a())?;
    if capabilities.contains(Capabilities::REREG_MR) {
        let before = setup.query_mr(null)?;
        for change in [
            MrChange {
                access: Some(Access::empty()),
                ..MrChange::default()
            },
            MrChange {
                length: Some(64),
                ..MrChange::default()
            },
        ] {
            let changed = setup.rereg_mr(null, &change);
            invalid(
                &format!("{change:?}"),
                changed.map_err(|refused| refused.error),
                "MR-18",
            )?;
            check_eq!("MR-18", setup.query_mr(null)?, before);
        }
    }
    setup.dereg_mr(null).rule("MR-18")
}

scenario!(region_larger_than_all_memory_is_refused: "MR-15"; without RC);
/// By the limit of the device, or since there is no such memory.
fn region_larger_than_all_memory_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-15";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let most = setup.query_device(setup.ctx_a())?.max_mr_size;
    for length in [1 << 62, isize::MAX as usize, usize::MAX] {
        let before = setup.live()?;
        let made = setup.alloc_mr(pd, length, Access::empty());
        let kinds: &[_] = if most < length as u64 {
            &[ErrorKind::Invalid, ErrorKind::NoMemory]
        } else {
            &[ErrorKind::NoMemory]
        };
        in_case(
            &format!("{length:#x} bytes"),
            expect_err_among(made, kinds, RULE).map(drop),
        )?;
        setup.expect_live(before, RULE)?;
    }
    setup.dealloc_pd(pd).rule(RULE)
}

scenario!(memory_that_is_not_mapped_is_refused: "MR-11"; without RC);
fn memory_that_is_not_mapped_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-11";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    for access in [Access::empty(), Access::LOCAL_WRITE, Access::ALL_RDMA] {
        for length in [1, 4096] {
            let before = setup.live()?;
            let init = MrInit::new(length, access).memory(MrMemory::Unmapped);
            let made = setup.alloc_mr_as(pd, &init);
            let refused = expect_err_among(made, &[ErrorKind::Fault, ErrorKind::NoMemory], RULE);
            in_case(&format!("{length} bytes, {access:?}"), refused.map(drop))?;
            setup.expect_live(before, RULE)?;
        }
    }
    setup.dealloc_pd(pd).rule(RULE)
}

scenario!(read_only_memory_can_only_be_read: "MR-12");
fn read_only_memory_can_only_be_read(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-12";
    let Pair { a, b } = setup.rc_pair()?;
    let of = |access| {
        let init = MrInit::new(SIZE, access).memory(MrMemory::ReadOnly);
        setup.alloc_mr_as(a.pd, &init)
    };
    for access in [Access::LOCAL_WRITE, Access::ALL_RDMA] {
        let refused = expect_err_among(of(access), &[ErrorKind::Fault, ErrorKind::Invalid], RULE);
        in_case(&format!("{access:?}"), refused.map(drop))?;
    }
    for access in [Access::empty(), Access::REMOTE_READ] {
        let attr: MrAttr = setup.query_mr(of(access).rule(RULE)?)?;
        b.fill_at(b.landing(), 7, LEN)?;
        b.recv(1, LEN)?;
        a.post(SendWr::send(1, &[attr.sge(4090, LEN)]))?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
        check_eq!(
            RULE,
            b.bytes(b.landing(), LEN as usize)?,
            vec![0; LEN as usize],
            "its bytes"
        );
    }
    Ok(())
}

scenario!(regions_may_cover_the_same_memory: "MR-13");
fn regions_may_cover_the_same_memory(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-13";
    let Pair { a, b } = setup.rc_pair()?;
    let whole = setup.alloc_mr(b.pd, SIZE, Access::ALL_RDMA)?;
    let of = |pd, offset| {
        let init = MrInit::new(4096, Access::ALL_RDMA).memory(MrMemory::Of(whole, offset));
        setup.alloc_mr_as(pd, &init)
    };
    let (same, shifted) = (of(b.pd, 0).rule(RULE)?, of(b.pd, 24).rule(RULE)?);
    let elsewhere = of(setup.alloc_pd(b.context)?, 24).rule(RULE)?;
    // What is written by one is seen by the others, at its place in theirs.
    for (tag, through, at, seen_by) in [
        (1, whole, 100, [(same, 100), (shifted, 76)]),
        (2, same, 200, [(whole, 200), (elsewhere, 176)]),
        (3, shifted, 300, [(whole, 324), (same, 324)]),
    ] {
        write(setup, &a, setup.query_mr(through)?.remote(at), tag, RULE)?;
        for (mr, offset) in seen_by {
            check_eq!(
                RULE,
                bytes_of(setup, mr, offset)?,
                pattern(tag, LEN),
                "what was written"
            );
        }
    }
    // One that goes takes no memory from the others.
    for gone in [whole, same] {
        setup.dereg_mr(gone)?;
    }
    write(setup, &a, setup.query_mr(shifted)?.remote(0), 4, RULE)?;
    check_eq!(
        RULE,
        bytes_of(setup, elsewhere, 0)?,
        pattern(4, LEN),
        "what was written"
    );
    // The last has it for itself.
    setup.dereg_mr(elsewhere)?;
    write(setup, &a, setup.query_mr(shifted)?.remote(8), 5, RULE)?;
    for (tag, offset) in [(4, 0), (5, 8)] {
        let seen = bytes_of(setup, shifted, offset)?;
        check_eq!(RULE, seen, pattern(tag, LEN), "what was written");
    }
    Ok(())
}

// An iWARP device calls a write done when it is sent.
scenario!(regions_over_the_same_memory_have_rights_of_their_own: "MR-13"; needs MODIFY_CONNECT);
fn regions_over_the_same_memory_have_rights_of_their_own(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-13";
    for (access, status) in [
        (Access::ALL_RDMA, WcStatus::Success),
        (Access::LOCAL_WRITE, WcStatus::RemAccessErr),
        (Access::REMOTE_READ, WcStatus::RemAccessErr),
    ] {
        let Pair { a, b } = setup.rc_pair()?;
        let init = MrInit::new(64, access).memory(MrMemory::Of(b.mr, 0));
        let attr = setup.query_mr(setup.alloc_mr_as(b.pd, &init).rule(RULE)?)?;
        let write = |to| a.post(SendWr::rdma_write(1, &[a.sge(0, LEN)], to));
        // The memory can be written by another key.
        write(b.mem.remote(0))?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        write(attr.remote(0))?;
        value_in_case(
            &format!("{access:?}"),
            setup.one_with(a.send_cq, status, RULE),
        )?;
    }
    Ok(())
}

scenario!(bytes_of_a_region_that_is_gone_do_not_arrive: "MR-06"; needs LAB);
/// A message is on its way when its region goes, and another takes its place: what arrives is the
/// message as it was, or nothing.
fn bytes_of_a_region_that_is_gone_do_not_arrive(setup: &Setup<'_>) -> Result {
    for kind in [Kind::Send, Kind::Write] {
        goes_under_way(setup, kind)?;
    }
    Ok(())
}

scenario!(bytes_of_a_region_that_is_gone_do_not_arrive_with_immediate:
    "MR-06"; needs WRITE_WITH_IMM, LAB);
fn bytes_of_a_region_that_is_gone_do_not_arrive_with_immediate(setup: &Setup<'_>) -> Result {
    goes_under_way(setup, Kind::WriteImm)
}

/// At once, and while the message is held up.
fn goes_under_way(setup: &Setup<'_>, kind: Kind) -> Result {
    const RULE: &str = "MR-06";
    const LEN: u32 = 64;
    let is_received = kind.takes_a_receive();
    for is_held_up in [true, false] {
        let rc = gives_up_soon();
        let Pair { a, b } = setup.pair(PairOptions {
            rc,
            ..PairOptions::default()
        })?;
        let mr = setup.alloc_mr(a.pd, 4096, Access::LOCAL_WRITE)?;
        setup.write_mr(mr, 0, &pattern(1, LEN))?;
        let data = [setup.query_mr(mr)?.sge(0, LEN)];
        let late = Fault::delay(PacketFilter::EVERY, Duration::from_micros(100)).nth(1);
        if is_held_up {
            setup.lab().inject(late)?;
        }
        b.fill_at(b.landing(), 7, LEN)?;
        if is_received {
            b.recv(1, LEN)?;
        }
        a.post(kind.work(&a, 2, &data))?;
        setup.dereg_mr(mr).rule(RULE)?;
        let next = setup.alloc_mr(a.pd, 4096, Access::LOCAL_WRITE)?;
        setup.write_mr(next, 0, &pattern(9, LEN))?;
        let arrived = setup.one(a.send_cq)?.status == WcStatus::Success;
        let received = setup.poll_all(b.recv_cq)?;
        let received = received.iter().any(|wc| wc.status == WcStatus::Success);
        check_eq!(RULE, received, arrived && is_received, "received");
        if !is_received || received {
            b.expect_data(if arrived { 1 } else { 7 }, LEN, RULE)?;
        }
    }
    Ok(())
}

scenario!(work_owns_its_bytes_by_whatever_region_they_are_reached: "SQ-17", "MR-13"; needs LAB);
fn work_owns_its_bytes_by_whatever_region_they_are_reached(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-17";
    let Pair { a, b } = setup.rc_pair()?;
    let new = || setup.alloc_mr(b.pd, SIZE, Access::ALL_RDMA);
    let part_of = |whole| {
        let init = MrInit::new(512, Access::ALL_RDMA).memory(MrMemory::Of(whole, 1000));
        setup.alloc_mr_as(b.pd, &init).rule("MR-13")
    };
    let (whole, other) = (new()?, new()?);
    let (part, of_other) = (part_of(whole)?, part_of(other)?);
    // By which region the receive names its bytes, and where they are in each.
    for (posted, at) in [(part, 8), (whole, 1008)] {
        let into = setup.query_mr(posted)?.sge(at, 64);
        setup.post_recv(b.qp, &[verbs_api::RecvWr::new(1, &[into])])?;
        for (mr, offset, taken) in [
            (part, 7, false),
            (part, 8, true),
            (part, 71, true),
            (part, 72, false),
            (whole, 8, false),
            (whole, 1007, false),
            (whole, 1008, true),
            (whole, 1071, true),
            (whole, 1072, false),
            (of_other, 8, false),
            (other, 8, false),
            (other, 1008, false),
        ] {
            let seen = setup.read_mr(mr, offset, &mut [0]);
            let case = format!("{mr}+{offset}, of a receive by {posted}");
            let result = if taken {
                expect_err(seen, ErrorKind::Usage, RULE).map(drop)
            } else {
                seen.map_err(Failure::from).rule(RULE)
            };
            in_case(&case, result)?;
        }
        a.send(1, LEN)?;
        setup.successes(b.recv_cq, 1)?;
        for (mr, offset) in [(part, 8), (whole, 1008)] {
            setup.read_mr(mr, offset, &mut [0]).rule(RULE)?;
        }
    }
    Ok(())
}
