//! Device memory.

use verbs_api::{Access, Dm, DmInit, ErrorKind, MrAttr, MrChange, Pd, RecvWr, SendWr, WcStatus};

use crate::bad_input::refused;
use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::{End, OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err, pattern};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    copies_reach_the_memory_and_no_other_bytes,
    memories_share_what_the_device_has,
    alignment_that_the_device_lacks_is_refused,
    copy_of_other_bytes_is_refused,
    copy_is_of_whole_words,
    region_is_zero_based_and_lies_in_its_memory,
    region_of_it_is_for_work_alone,
    addresses_in_a_region_are_offsets,
    addresses_outside_a_region_are_refused,
    work_uses_it_as_other_memory,
    atomics_change_it,
    work_and_copies_find_what_was_done_before,
    memory_is_busy_while_it_has_a_region,
    region_of_it_is_not_changed,
    regions_of_one_memory_share_its_bytes,
    program_reaches_a_region_of_it_by_its_copies_alone,
    memory_goes_with_its_context,
    dead_device_lets_its_memory_be_freed_and_no_more,
];

/// Bytes of a memory.
const SIZE: usize = 256;
/// Where the regions start in it, and how long they are.
const START: u64 = 64;
const LENGTH: usize = 128;
/// Bytes of a message.
const LEN: u32 = 16;
/// What the regions allow.
const ALL: Access = Access::ALL_RDMA.union(Access::ZERO_BASED);

fn bytes_of(setup: &Setup<'_>, dm: Dm, offset: u64, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    setup.copy_from_dm(dm, offset, &mut bytes)?;
    Ok(bytes)
}

/// A memory with the pattern of this tag.
fn filled(setup: &Setup<'_>, end: &End<'_>, tag: u8) -> Result<Dm> {
    let dm = setup.alloc_dm(end.context, &DmInit::new(SIZE).log_align(3))?;
    setup.copy_to_dm(dm, 0, &pattern(tag, SIZE as u32))?;
    Ok(dm)
}

/// A region of its middle.
fn middle(setup: &Setup<'_>, pd: Pd, dm: Dm, access: Access) -> Result<MrAttr> {
    Ok(setup.query_mr(setup.reg_dm_mr(pd, dm, START, LENGTH, access)?)?)
}

/// A pair, and a memory of the second end with a region of its middle.
fn pair_with_memory<'s>(setup: &'s Setup<'_>) -> Result<(Pair<'s>, Dm, MrAttr)> {
    let mut options = PairOptions::default();
    (options.cap.max_send_sge, options.cap.max_recv_sge) = (2, 2);
    let pair = setup.pair(options)?;
    let dm = filled(setup, &pair.b, 0)?;
    let region = middle(setup, pair.b.pd, dm, ALL)?;
    Ok((pair, dm, region))
}

scenario!(copies_reach_the_memory_and_no_other_bytes: "DM-01"; needs DEVICE_MEMORY);
fn copies_reach_the_memory_and_no_other_bytes(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DM-01";
    let init = DmInit::new(SIZE);
    let alloc = || setup.alloc_dm(setup.ctx_a(), &init).rule(RULE);
    let (dm, other) = (alloc()?, alloc()?);
    let mut expected = pattern(1, SIZE as u32);
    setup.copy_to_dm(dm, 0, &expected).rule(RULE)?;
    setup.copy_to_dm(other, 0, &[0; SIZE]).rule(RULE)?;
    for (offset, length) in [(0, 4), (100, 8), (SIZE - 4, 4), (SIZE, 0)] {
        let new = pattern(2, length as u32);
        setup.copy_to_dm(dm, offset as u64, &new).rule(RULE)?;
        expected[offset..offset + length].copy_from_slice(&new);
        check_eq!(RULE, bytes_of(setup, dm, 0, SIZE)?, expected, "all bytes");
        let part = bytes_of(setup, dm, offset as u64, length)?;
        check_eq!(RULE, part, new, "what was copied");
    }
    let seen = bytes_of(setup, other, 0, SIZE)?;
    check_eq!(RULE, seen, [0; SIZE], "another memory");
    for dm in [dm, other] {
        setup.free_dm(dm).rule(RULE)?;
    }
    Ok(())
}

scenario!(memories_share_what_the_device_has:
    "DM-02"; needs DEVICE_MEMORY; alone "it takes all there is");
fn memories_share_what_the_device_has(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DM-02";
    let context = setup.ctx_a();
    let most = setup.query_device_ex(context)?.max_dm_size as usize;
    check!(RULE, most > 0, "a size", "{most}");
    let alloc = |length| setup.alloc_dm(context, &DmInit::new(length));
    let too_much = [ErrorKind::Invalid, ErrorKind::NoMemory];
    refused(setup, &[ErrorKind::Invalid], RULE, || alloc(0))?;
    for length in [most + 1, usize::MAX] {
        refused(setup, &too_much, RULE, || alloc(length))?;
    }
    for _ in 0..2 {
        let whole = alloc(most).rule(RULE)?;
        refused(setup, &[ErrorKind::NoMemory], RULE, || alloc(4))?;
        setup.free_dm(whole).rule(RULE)?;
    }
    Ok(())
}

scenario!(alignment_that_the_device_lacks_is_refused: "DM-03"; needs DEVICE_MEMORY);
fn alignment_that_the_device_lacks_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DM-03";
    let alloc = |log_align| setup.alloc_dm(setup.ctx_a(), &DmInit::new(64).log_align(log_align));
    for log_align in [0, 3, 6] {
        let made = value_in_case(&log_align.to_string(), alloc(log_align).rule(RULE))?;
        setup.free_dm(made)?;
    }
    for log_align in [64, u32::MAX] {
        refused(setup, &[ErrorKind::Invalid], RULE, || alloc(log_align))?;
    }
    Ok(())
}

/// Copies in both directions that are refused with this error, and change nothing.
fn no_copy(
    setup: &Setup<'_>,
    cases: &[(u64, usize)],
    kind: ErrorKind,
    rule: &'static str,
) -> Result {
    let dm = setup.alloc_dm(setup.ctx_a(), &DmInit::new(SIZE))?;
    let before = pattern(1, SIZE as u32);
    setup.copy_to_dm(dm, 0, &before)?;
    for (offset, length) in cases {
        let case = format!("{length} bytes at {offset}");
        let copied = setup.copy_to_dm(dm, *offset, &vec![0; *length]);
        in_case(&case, expect_err(copied, kind, rule).map(drop))?;
        let mut bytes = vec![0; *length];
        let copied = setup.copy_from_dm(dm, *offset, &mut bytes);
        in_case(&case, expect_err(copied, kind, rule).map(drop))?;
        check_eq!(rule, bytes, vec![0; *length], "what was copied");
    }
    check_eq!(rule, bytes_of(setup, dm, 0, SIZE)?, before, "the memory");
    Ok(())
}

scenario!(copy_of_other_bytes_is_refused: "DM-04"; needs DEVICE_MEMORY);
fn copy_of_other_bytes_is_refused(setup: &Setup<'_>) -> Result {
    let size = SIZE as u64;
    let cases = [
        (0, SIZE + 4),
        (size - 4, 8),
        (size, 4),
        (size + 4, 0),
        (u64::MAX - 3, 4),
        // The end comes first, so this is not for the next rule.
        (size - 2, 4),
    ];
    no_copy(setup, &cases, ErrorKind::Fault, "DM-04")
}

scenario!(copy_is_of_whole_words: "DM-05"; needs DEVICE_MEMORY);
fn copy_is_of_whole_words(setup: &Setup<'_>) -> Result {
    let cases = [(0, 1), (0, 6), (1, 4), (2, 8), (3, 0), (SIZE as u64 - 1, 1)];
    no_copy(setup, &cases, ErrorKind::Invalid, "DM-05")
}

scenario!(region_is_zero_based_and_lies_in_its_memory: "DM-06"; needs DEVICE_MEMORY);
fn region_is_zero_based_and_lies_in_its_memory(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DM-06";
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let dm = filled(setup, &end, 1)?;
    let size = SIZE as u64;
    for (offset, length, access) in [
        (0, SIZE, Access::ALL_RDMA),
        (0, SIZE, Access::empty()),
        (0, SIZE + 1, ALL),
        (1, SIZE, ALL),
        (size, 1, ALL),
        (size + 1, 0, ALL),
        (u64::MAX, 2, ALL),
        // As of any region.
        (0, SIZE, Access::ZERO_BASED | Access::REMOTE_WRITE),
    ] {
        let case = format!("{length} bytes at {offset}, {access:?}");
        let result = refused(setup, &[ErrorKind::Invalid], RULE, || {
            setup.reg_dm_mr(end.pd, dm, offset, length, access)
        });
        in_case(&case, result.map(drop))?;
    }
    for (offset, length) in [(0, SIZE), (size - 1, 1), (3, 7)] {
        let made = setup.reg_dm_mr(end.pd, dm, offset, length, ALL);
        let mr = made.rule(RULE)?;
        check_eq!(RULE, setup.query_mr(mr)?.length, length as u64);
        setup.dereg_mr(mr)?;
    }
    Ok(())
}

scenario!(region_of_it_is_for_work_alone: "DM-12"; needs DEVICE_MEMORY);
fn region_of_it_is_for_work_alone(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DM-12";
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let dm = filled(setup, &end, 1)?;
    let register = |access| setup.reg_dm_mr(end.pd, dm, 0, SIZE, access);
    for access in [Access::MW_BIND, Access::HUGETLB, Access::ON_DEMAND] {
        refused(setup, &[ErrorKind::Invalid], RULE, || {
            register(ALL | access)
        })?;
    }
    register(ALL).rule(RULE).map(drop)
}

scenario!(addresses_in_a_region_are_offsets: "DM-07"; needs DEVICE_MEMORY);
fn addresses_in_a_region_are_offsets(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DM-07";
    let (Pair { a, b }, dm, region) = pair_with_memory(setup)?;
    check_eq!(RULE, region.addr, 0, "the address of its first byte");
    for (tag, offset) in [(1, 0), (2, 20), (3, LENGTH as u64 - u64::from(LEN))] {
        // A peer writes to it, and the owner sends it back.
        a.fill(tag, LEN)?;
        let place = region.remote(offset);
        a.post(SendWr::rdma_write(1, &[a.sge(0, LEN)], place))?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        let seen = bytes_of(setup, dm, START + offset, LEN as usize)?;
        check_eq!(RULE, seen, pattern(tag, LEN), "what was written");
        a.recv(2, LEN)?;
        b.post(SendWr::send(2, &[region.sge(offset, LEN)]))?;
        setup.one_with(b.send_cq, WcStatus::Success, RULE)?;
        setup.one_with(a.recv_cq, WcStatus::Success, RULE)?;
        a.expect_data(tag, LEN, RULE)?;
    }
    let before = bytes_of(setup, dm, 0, START as usize)?;
    check_eq!(RULE, before, pattern(0, SIZE as u32)[..START as usize]);
    Ok(())
}

scenario!(addresses_outside_a_region_are_refused: "DM-07"; needs DEVICE_MEMORY);
fn addresses_outside_a_region_are_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DM-07";
    let beyond = LENGTH as u64 - u64::from(LEN) + 1;
    for (what, offset) in [
        ("before", u64::MAX),
        ("behind", beyond),
        ("far", START << 8),
    ] {
        let (Pair { a, .. }, dm, region) = pair_with_memory(setup)?;
        a.fill(5, LEN)?;
        let place = region.remote(offset);
        a.post(SendWr::rdma_write(1, &[a.sge(0, LEN)], place))?;
        let failed = setup.one_with(a.send_cq, WcStatus::RemAccessErr, RULE);
        value_in_case(what, failed)?;
        let seen = bytes_of(setup, dm, 0, SIZE)?;
        check_eq!(RULE, seen, pattern(0, SIZE as u32), "the memory");
        // Each connection is broken, so the next one has a memory of its own.
        let (Pair { b, .. }, _, region) = pair_with_memory(setup)?;
        b.post(SendWr::send(1, &[region.sge(offset, LEN)]))?;
        let failed = setup.one_with(b.send_cq, WcStatus::LocProtErr, RULE);
        value_in_case(what, failed)?;
    }
    Ok(())
}

scenario!(work_uses_it_as_other_memory: "DM-08"; needs DEVICE_MEMORY, RDMA_READ);
fn work_uses_it_as_other_memory(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DM-08";
    let (Pair { a, b }, dm, region) = pair_with_memory(setup)?;
    let at = |offset| bytes_of(setup, dm, START + offset, LEN as usize);
    // A receive scatters to it.
    a.fill(1, LEN)?;
    b.post_recv(RecvWr::new(1, &[region.sge(0, 4), region.sge(8, LEN - 4)]))?;
    a.send(1, LEN)?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
    let mut expected = pattern(0, SIZE as u32)[START as usize..][..LEN as usize].to_vec();
    expected[..4].copy_from_slice(&pattern(1, LEN)[..4]);
    expected[8..].copy_from_slice(&pattern(1, LEN)[4..12]);
    check_eq!(RULE, at(0)?, expected, "what was received");
    // A write gathers from it, together with other memory.
    b.fill(2, LEN)?;
    let list = [region.sge(0, LEN), b.sge(0, LEN)];
    b.post(SendWr::rdma_write(2, &list, b.remote()))?;
    setup.one_with(b.send_cq, WcStatus::Success, RULE)?;
    let seen = a.bytes(a.landing(), 2 * LEN as usize)?;
    expected.extend(pattern(2, LEN));
    check_eq!(RULE, seen, expected, "what was gathered");
    // A read of a peer, and one that lands in it.
    setup.copy_to_dm(dm, START + 32, &pattern(3, LEN))?;
    let into = [a.sge(a.landing(), LEN)];
    a.post(SendWr::rdma_read(3, &into, region.remote(32)))?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    a.expect_data(3, LEN, RULE)?;
    let into = [region.sge(64, LEN)];
    b.post(SendWr::rdma_read(4, &into, b.remote()))?;
    setup.one_with(b.send_cq, WcStatus::Success, RULE)?;
    check_eq!(RULE, at(64)?, pattern(3, LEN), "what was read");
    Ok(())
}

scenario!(atomics_change_it: "DM-08"; needs DEVICE_MEMORY, ATOMICS);
fn atomics_change_it(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DM-08";
    let access = Access::ALL_RDMA | Access::REMOTE_ATOMIC;
    let options = PairOptions {
        access,
        rc: verbs_api::RcParams {
            access,
            ..setup.rc_params()
        },
        ..PairOptions::default()
    };
    let Pair { a, b } = setup.pair(options)?;
    let dm = filled(setup, &b, 0)?;
    setup.copy_to_dm(dm, START, &40_u64.to_ne_bytes())?;
    let region = middle(setup, b.pd, dm, access | Access::ZERO_BASED)?;
    let into = [a.sge(a.landing(), 8)];
    for (work, before) in [
        (SendWr::fetch_and_add(1, &into, region.remote(0), 2), 40),
        (
            SendWr::compare_and_swap(2, &into, region.remote(0), 42, 7),
            42,
        ),
    ] {
        a.post(work)?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        let seen = a.bytes(a.landing(), 8)?;
        check_eq!(RULE, seen, u64::to_ne_bytes(before), "the value before");
    }
    let seen = bytes_of(setup, dm, START, 8)?;
    check_eq!(RULE, seen, 7_u64.to_ne_bytes(), "the value");
    Ok(())
}

scenario!(work_and_copies_find_what_was_done_before: "DM-09"; needs DEVICE_MEMORY, RDMA_READ);
fn work_and_copies_find_what_was_done_before(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DM-09";
    let (Pair { a, b }, dm, region) = pair_with_memory(setup)?;
    let here = bytes_of;
    for tag in 1..9 {
        // Work that is posted after a copy sends its bytes.
        setup.copy_to_dm(dm, START, &pattern(tag, LEN))?;
        a.recv(1, LEN)?;
        b.post(SendWr::send(1, &[region.sge(0, LEN)]))?;
        setup.one_with(b.send_cq, WcStatus::Success, RULE)?;
        setup.one_with(a.recv_cq, WcStatus::Success, RULE)?;
        a.expect_data(tag, LEN, RULE)?;
        // A copy after a completion finds what was received, and what was read.
        b.post_recv(RecvWr::new(2, &[region.sge(32, LEN)]))?;
        a.fill(tag + 100, LEN)?;
        a.send(2, LEN)?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
        let seen = here(setup, dm, START + 32, LEN as usize)?;
        check_eq!(RULE, seen, pattern(tag + 100, LEN), "what was received");
        b.post(SendWr::rdma_read(3, &[region.sge(64, LEN)], b.remote()))?;
        setup.one_with(b.send_cq, WcStatus::Success, RULE)?;
        let seen = here(setup, dm, START + 64, LEN as usize)?;
        check_eq!(RULE, seen, pattern(tag, LEN), "what was read");
    }
    Ok(())
}

scenario!(memory_is_busy_while_it_has_a_region: "DM-10"; needs DEVICE_MEMORY);
fn memory_is_busy_while_it_has_a_region(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DM-10";
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let dm = filled(setup, &end, 1)?;
    let one = setup.reg_dm_mr(end.pd, dm, 0, 8, ALL)?;
    let other = setup.reg_dm_mr(end.pd, dm, 8, 8, ALL)?;
    for mr in [one, other] {
        refused(setup, &[ErrorKind::Busy], RULE, || setup.free_dm(dm))?;
        setup.dereg_mr(mr).rule(RULE)?;
    }
    // It has not changed.
    let seen = bytes_of(setup, dm, 0, SIZE)?;
    check_eq!(RULE, seen, pattern(1, SIZE as u32));
    setup.free_dm(dm).rule(RULE)?;
    expect_err(setup.free_dm(dm), ErrorKind::Invalid, RULE).map(drop)
}

scenario!(region_of_it_is_not_changed: "DM-11"; needs DEVICE_MEMORY, REREG_MR);
fn region_of_it_is_not_changed(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DM-11";
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let dm = filled(setup, &end, 1)?;
    let mr = setup.reg_dm_mr(end.pd, dm, 0, SIZE, ALL)?;
    let before = setup.query_mr(mr)?;
    let (nothing, pd) = (MrChange::default(), setup.alloc_pd(end.context)?);
    for change in [
        MrChange {
            access: Some(Access::ZERO_BASED),
            ..nothing
        },
        MrChange {
            pd: Some(pd),
            ..nothing
        },
        MrChange {
            length: Some(64),
            ..nothing
        },
    ] {
        let case = format!("{change:?}");
        let changed = setup.rereg_mr(mr, &change).map_err(|failed| failed.error);
        in_case(
            &case,
            expect_err(changed, ErrorKind::Invalid, RULE).map(drop),
        )?;
    }
    check_eq!(RULE, setup.query_mr(mr)?, before, "the region");
    Ok(())
}

scenario!(regions_of_one_memory_share_its_bytes: "DM-13"; needs DEVICE_MEMORY, RDMA_READ);
fn regions_of_one_memory_share_its_bytes(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DM-13";
    let (Pair { a, b }, dm, region) = pair_with_memory(setup)?;
    // It begins 16 bytes later, and can be read only.
    let access = Access::ZERO_BASED | Access::REMOTE_READ;
    let part = setup
        .reg_dm_mr(b.pd, dm, START + 16, 64, access)
        .rule(RULE)?;
    let part = setup.query_mr(part)?;
    check!(
        RULE,
        part.rkey != region.rkey,
        "a key of its own",
        "{part:?}"
    );
    a.fill(1, LEN)?;
    a.post(SendWr::rdma_write(1, &[a.sge(0, LEN)], region.remote(24)))?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    let into = [a.sge(a.landing(), LEN)];
    a.post(SendWr::rdma_read(2, &into, part.remote(8)))?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    a.expect_data(1, LEN, RULE)?;
    a.post(SendWr::rdma_write(3, &[a.sge(0, LEN)], part.remote(8)))?;
    setup
        .one_with(a.send_cq, WcStatus::RemAccessErr, RULE)
        .map(drop)
}

scenario!(program_reaches_a_region_of_it_by_its_copies_alone: "MR-25"; needs DEVICE_MEMORY);
fn program_reaches_a_region_of_it_by_its_copies_alone(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-25";
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let dm = filled(setup, &end, 1)?;
    let mr = setup.reg_dm_mr(end.pd, dm, 0, SIZE, ALL)?;
    expect_err(setup.read_mr(mr, 0, &mut [0; 4]), ErrorKind::Invalid, RULE)?;
    expect_err(setup.write_mr(mr, 0, &[0; 4]), ErrorKind::Invalid, RULE)?;
    let part = verbs_api::MrInit::new(8, Access::empty());
    let part = part.memory(verbs_api::MrMemory::Of(mr, 0));
    expect_err(setup.alloc_mr_as(end.pd, &part), ErrorKind::Invalid, RULE).map(drop)
}

scenario!(memory_goes_with_its_context: "LIFE-07"; needs DEVICE_MEMORY);
fn memory_goes_with_its_context(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LIFE-07";
    let before = setup.live()?;
    let all = setup.query_device_ex(setup.ctx_a())?.max_dm_size as usize;
    for _ in 0..2 {
        let context = crate::bad_input::open_again(setup)?;
        // What has been freed has gone.
        let freed = setup.alloc_dm(context, &DmInit::new(8)).rule(RULE)?;
        setup.free_dm(freed)?;
        let dm = setup.alloc_dm(context, &DmInit::new(all)).rule(RULE)?;
        let pd = setup.alloc_pd(context)?;
        setup.reg_dm_mr(pd, dm, 0, 8, ALL)?;
        setup.close_device(context).rule(RULE)?;
        let copied = setup.copy_from_dm(dm, 0, &mut [0; 4]);
        expect_err(copied, ErrorKind::Invalid, RULE)?;
    }
    setup.expect_live(before, RULE)
}

scenario!(dead_device_lets_its_memory_be_freed_and_no_more: "ASYNC-10"; needs DEVICE_MEMORY, LAB);
fn dead_device_lets_its_memory_be_freed_and_no_more(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ASYNC-10";
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let dm = filled(setup, &end, 1)?;
    let mr = setup.reg_dm_mr(end.pd, dm, 0, SIZE, ALL)?;
    setup.lab().kill_device(end.context)?;
    let dead = |what: &str, call: verbs_api::Result<()>| {
        in_case(what, expect_err(call, ErrorKind::Io, RULE).map(drop))
    };
    let alloc = setup.alloc_dm(end.context, &DmInit::new(8));
    dead("alloc_dm", alloc.map(drop))?;
    let register = setup.reg_dm_mr(end.pd, dm, 0, 8, ALL);
    dead("reg_dm_mr", register.map(drop))?;
    dead("copy_to_dm", setup.copy_to_dm(dm, 0, &[0; 4]))?;
    dead("copy_from_dm", setup.copy_from_dm(dm, 0, &mut [0; 4]))?;
    setup.dereg_mr(mr).rule(RULE)?;
    setup.free_dm(dm).rule(RULE)
}
