//! Memory regions.

#[cfg(unix)]
mod dmabuf;
mod memory;

use std::collections::BTreeSet;

use verbs_api::behavior::{MrKeys, ZeroLength};
use verbs_api::{
    Access, AfterRereg, Capabilities, ErrorKind, Mr, MrAttr, MrChange, MrInit, MrMemory, RecvWr,
    SendOp, SendWr, WcStatus,
};

use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::{
    Failure, OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err, expect_err_among,
};

const LEN: u32 = 8;

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    region_is_as_it_was_asked_for,
    region_can_go_while_receives_name_it,
    region_can_go_while_it_is_written,
    hint_of_huge_pages_is_taken_for_any_memory,
    region_of_no_bytes_is_as_declared,
    keys_are_apart_or_one_as_declared,
    change_of_access_holds_at_once,
    change_of_domain_moves_the_region,
    change_of_memory_leaves_the_rest,
    refused_change_leaves_the_region_as_it_was,
    memory_registered_for_reading_is_never_written,
    keys_are_used_again_as_declared,
    memory::zero_based_region_is_named_by_offsets,
    memory::addresses_count_from_the_one_that_was_chosen,
    memory::null_region_reads_as_zeros_and_discards_what_is_written,
    memory::null_region_is_there_if_the_device_says_so,
    memory::memory_that_is_not_mapped_is_refused,
    memory::read_only_memory_can_only_be_read,
    memory::regions_may_cover_the_same_memory,
    memory::regions_over_the_same_memory_have_rights_of_their_own,
    access_flags_that_the_device_lacks_are_refused,
    memory::bytes_of_a_region_that_is_gone_do_not_arrive,
    memory::program_reaches_the_bytes_of_a_region_alone,
    memory::null_region_has_no_bytes_and_is_not_changed,
    memory::region_larger_than_all_memory_is_refused,
    memory::work_owns_its_bytes_by_whatever_region_they_are_reached,
    memory::bytes_of_a_region_that_is_gone_do_not_arrive_with_immediate,
    #[cfg(unix)]
    dmabuf::work_and_peers_reach_the_bytes_of_a_dmabuf,
    #[cfg(unix)]
    dmabuf::address_elsewhere_in_its_page_is_refused,
    #[cfg(unix)]
    dmabuf::access_that_a_dmabuf_has_not_is_refused,
    #[cfg(unix)]
    dmabuf::bytes_behind_the_end_of_a_dmabuf_are_refused,
    #[cfg(unix)]
    dmabuf::descriptor_of_something_else_is_refused,
    #[cfg(unix)]
    dmabuf::region_of_a_dmabuf_is_not_changed,
    #[cfg(unix)]
    dmabuf::work_on_withdrawn_memory_fails,
];

scenario!(region_is_as_it_was_asked_for: "MR-16"; without RC);
fn region_is_as_it_was_asked_for(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-16";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let mut all = Vec::new();
    let mut keys = BTreeSet::new();
    for length in [1, 4095, 4096, 4097, 100_000] {
        let attr = setup.query_mr(setup.alloc_mr(pd, length, Access::ALL_RDMA)?)?;
        check_eq!(RULE, attr.length, length as u64);
        check!(
            RULE,
            keys.insert(attr.lkey),
            "a key of its own",
            "{:#x}",
            attr.lkey
        );
        all.push(attr);
    }
    are_apart(all)
}

/// Each region has memory of its own.
fn are_apart(mut regions: Vec<MrAttr>) -> Result {
    regions.sort_by_key(|region| region.addr);
    for pair in regions.windows(2) {
        let end = pair[0].addr + pair[0].length;
        check!(
            "MR-16",
            end <= pair[1].addr,
            "memory of its own",
            "{pair:x?}"
        );
    }
    Ok(())
}

scenario!(region_can_go_while_receives_name_it: "MR-06", "MR-05");
fn region_can_go_while_receives_name_it(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-06";
    let Pair { a, b } = setup.rc_pair()?;
    let mr = setup.alloc_mr(b.pd, 64, Access::LOCAL_WRITE)?;
    let into = setup.query_mr(mr)?;
    for (wr_id, offset) in [(10, 0), (11, 8)] {
        setup.post_recv(b.qp, &[RecvWr::new(wr_id, &[into.sge(offset, LEN)])])?;
    }
    a.send(1, LEN)?;
    let wc = setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
    check_eq!(RULE, wc.wr_id, 10);
    setup.dereg_mr(mr).rule(RULE)?;
    setup.no_completion(b.recv_cq, RULE)?;
    a.send(2, LEN)?;
    let wc = setup.one_with(b.recv_cq, WcStatus::LocProtErr, "MR-05")?;
    check_eq!(RULE, wc.wr_id, 11);
    Ok(())
}

// What iWARP has sent when the connection ends depends on the moment.
scenario!(region_can_go_while_it_is_written: "MR-06"; needs MODIFY_CONNECT);
/// Writes that were executed before are right, the others fail, and nothing else is written.
fn region_can_go_while_it_is_written(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-06";
    let Pair { a, b } = setup.rc_pair()?;
    let guard = setup.alloc_mr(b.pd, 4096, Access::empty())?;
    let mr = setup.alloc_mr(b.pd, 16_000, Access::ALL_RDMA)?;
    let to = setup.query_mr(mr)?.remote(0);
    setup.write_mr(guard, 0, &[3; 4096])?;
    let data = [a.sge(0, 16_000)];
    let list: Vec<_> = (0..10)
        .map(|wr_id| SendWr::rdma_write(wr_id, &data, to))
        .collect();
    setup.post_send(a.qp, &list)?;
    setup.dereg_mr(mr).rule(RULE)?;
    let done = setup.poll(a.send_cq, 10).rule(RULE)?;
    let failed = done.iter().position(|wc| wc.status != WcStatus::Success);
    for (n, wc) in done.iter().enumerate() {
        let expected = match failed {
            Some(first) if n == first => WcStatus::RemAccessErr,
            Some(first) if n > first => WcStatus::WrFlushErr,
            _ => WcStatus::Success,
        };
        check_eq!(RULE, (wc.wr_id, wc.status), (n as u64, expected));
    }
    let mut after = vec![0; 4096];
    setup.read_mr(guard, 0, &mut after)?;
    check!(
        RULE,
        after == [3; 4096],
        "other memory as it was",
        "other bytes"
    );
    Ok(())
}

scenario!(hint_of_huge_pages_is_taken_for_any_memory: "MR-26"; without RC);
fn hint_of_huge_pages_is_taken_for_any_memory(setup: &Setup<'_>) -> Result {
    let pd = setup.alloc_pd(setup.ctx_a())?;
    for access in [Access::empty(), Access::ALL_RDMA] {
        let mr = setup.alloc_mr(pd, 64, access | Access::HUGETLB);
        setup.dereg_mr(mr.rule("MR-26")?)?;
    }
    Ok(())
}

scenario!(region_of_no_bytes_is_as_declared: "MR-10");
fn region_of_no_bytes_is_as_declared(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-10";
    let pair = setup.rc_pair()?;
    let b = pair.b;
    let within = MrInit::new(0, Access::ALL_RDMA).memory(MrMemory::Of(b.mr, 24));
    let made = [
        setup.alloc_mr(b.pd, 0, Access::ALL_RDMA),
        setup.alloc_mr_as(b.pd, &within),
    ];
    let seen = match &made {
        [Ok(_), Ok(_)] => ZeroLength::Accepted,
        [Err(_), Ok(_)] => ZeroLength::WithinPage,
        _ => ZeroLength::Refused,
    };
    for made in made {
        let Ok(mr) = made else {
            expect_err(made, ErrorKind::Invalid, RULE)?;
            continue;
        };
        // It opens nothing.
        let Pair { a, .. } = setup.second_pair(&pair, PairOptions::default())?;
        let remote = setup.query_mr(mr)?.remote(0);
        a.post(SendWr::rdma_write(1, &[a.sge(0, 1)], remote))?;
        setup.one_with(a.send_cq, WcStatus::RemAccessErr, RULE)?;
    }
    setup.as_declared(RULE, setup.behavior()?.zero_len_mr, seen)
}

scenario!(keys_are_apart_or_one_as_declared: "MR-03"; without RC);
fn keys_are_apart_or_one_as_declared(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-03";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let mut seen = Vec::new();
    for access in [Access::empty(), Access::LOCAL_WRITE, Access::ALL_RDMA] {
        let attr = setup.query_mr(setup.alloc_mr(pd, 64, access)?)?;
        seen.push(match attr.rkey {
            0 => MrKeys::SameIfRemote,
            rkey if rkey == attr.lkey => MrKeys::Same,
            _ => MrKeys::Apart,
        });
    }
    let seen = match seen[..] {
        [MrKeys::SameIfRemote, MrKeys::SameIfRemote, MrKeys::Same] => MrKeys::SameIfRemote,
        [first, second, third] if first == second && second == third => first,
        _ => return Err(Failure::assertion("one kind of keys", format!("{seen:?}"))).rule(RULE),
    };
    setup.as_declared(RULE, setup.behavior()?.mr_keys, seen)
}

/// A writes 8 bytes to the start of a region of B, and reads them back: with which statuses.
fn used(setup: &Setup<'_>, mr: Mr) -> Result<[WcStatus; 2]> {
    let mut statuses = [WcStatus::Success; 2];
    for (n, status) in statuses.iter_mut().enumerate() {
        // On a pair of its own, whose domain is that of the region.
        let Pair { a, b } = setup.rc_pair()?;
        let to_its_domain = MrChange {
            pd: Some(b.pd),
            ..MrChange::default()
        };
        setup
            .rereg_mr(mr, &to_its_domain)
            .map_err(|refused| refused.error)?;
        let remote = setup.query_mr(mr)?.remote(0);
        let op = match n {
            0 => SendOp::RdmaWrite { remote },
            _ => SendOp::RdmaRead { remote },
        };
        a.post(SendWr::new(1, op, &[a.sge(0, LEN)]))?;
        *status = setup.one(a.send_cq)?.status;
    }
    Ok(statuses)
}

scenario!(change_of_access_holds_at_once: "MR-08"; needs REREG_MR);
fn change_of_access_holds_at_once(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-08";
    const YES: WcStatus = WcStatus::Success;
    const NO: WcStatus = WcStatus::RemAccessErr;
    let pd = setup.alloc_pd(setup.ctx_b())?;
    let mr = setup.alloc_mr(pd, 64, Access::ALL_RDMA)?;
    let before = setup.query_mr(mr)?;
    let local = Access::LOCAL_WRITE;
    for (access, statuses) in [
        (Access::REMOTE_READ, [NO, YES]),
        (local | Access::REMOTE_WRITE, [YES, NO]),
        (local, [NO, NO]),
        (Access::ALL_RDMA, [YES, YES]),
    ] {
        let change = MrChange {
            access: Some(access),
            ..MrChange::default()
        };
        setup
            .rereg_mr(mr, &change)
            .map_err(|refused| refused.error)
            .rule(RULE)?;
        check_eq!(RULE, used(setup, mr)?, statuses, format!("{access:?}"));
        let after = setup.query_mr(mr)?;
        let (seen, expected) = ((after.addr, after.length), (before.addr, before.length));
        check_eq!(RULE, seen, expected, "the memory");
    }
    Ok(setup.dereg_mr(mr)?)
}

scenario!(change_of_domain_moves_the_region: "MR-08", "PD-01", "MR-14"; needs REREG_MR);
fn change_of_domain_moves_the_region(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-08";
    let [from, to] = [
        setup.alloc_pd(setup.ctx_b())?,
        setup.alloc_pd(setup.ctx_b())?,
    ];
    let mr = setup.alloc_mr(from, 64, Access::ALL_RDMA)?;
    let Pair { a, b } = setup.rc_pair()?;
    let move_to = |pd| -> Result {
        let change = MrChange {
            pd: Some(pd),
            ..MrChange::default()
        };
        Ok(setup
            .rereg_mr(mr, &change)
            .map_err(|refused| refused.error)?)
    };
    move_to(to).rule(RULE)?;
    // The region is one of the new domain alone.
    expect_err(setup.dealloc_pd(to), ErrorKind::Busy, "PD-01")?;
    setup.dealloc_pd(from).rule("PD-01")?;
    move_to(b.pd).rule(RULE)?;
    setup.write_mr(mr, 0, &crate::pattern(3, LEN)).rule(RULE)?;
    let into = [a.sge(a.landing(), LEN)];
    a.post(SendWr::rdma_read(1, &into, setup.query_mr(mr)?.remote(0)))?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    a.expect_data(3, LEN, RULE)?;
    move_to(to).rule(RULE)?;
    a.post(SendWr::rdma_read(2, &into, setup.query_mr(mr)?.remote(0)))?;
    setup.one_with(a.send_cq, WcStatus::RemAccessErr, "MR-14")?;
    // It keeps its last domain busy, and leaves it.
    expect_err(setup.dealloc_pd(to), ErrorKind::Busy, "PD-01")?;
    setup.dereg_mr(mr)?;
    setup.dealloc_pd(to).rule("PD-01")
}

scenario!(change_of_memory_leaves_the_rest: "MR-08", "MR-16"; needs REREG_MR);
fn change_of_memory_leaves_the_rest(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-08";
    for length in [4, 64, 100_000] {
        let Pair { a, b } = setup.rc_pair()?;
        let mr = setup.alloc_mr(b.pd, 64, Access::ALL_RDMA)?;
        let other = setup.alloc_mr(b.pd, 64, Access::ALL_RDMA)?;
        setup.write_mr(mr, 0, &[1; 64])?;
        let change = MrChange {
            length: Some(length),
            ..MrChange::default()
        };
        for changed in [mr, other] {
            setup
                .rereg_mr(changed, &change)
                .map_err(|refused| refused.error)
                .rule(RULE)?;
            check_eq!("MR-16", setup.query_mr(changed)?.length, length as u64);
            let all = [mr, other, b.mr].map(|mr| setup.query_mr(mr));
            are_apart(all.into_iter().collect::<Result<_, _>>()?)?;
        }
        let after = setup.query_mr(mr)?;
        let mut bytes = vec![1; length];
        setup.read_mr(mr, 0, &mut bytes)?;
        check!(
            RULE,
            bytes.iter().all(|byte| *byte == 0),
            "new memory",
            "the old"
        );
        a.fill(9, 4)?;
        let data = [a.sge(0, 4)];
        let last = after.remote(after.length - 4);
        a.post(SendWr::rdma_write(1, &data, last))?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        setup.read_mr(mr, length - 4, &mut bytes[..4])?;
        check_eq!(
            RULE,
            bytes[..4],
            crate::pattern(9, 4)[..],
            "what was written"
        );
        a.post(SendWr::rdma_write(2, &data, after.remote(after.length - 3)))?;
        setup.one_with(a.send_cq, WcStatus::RemAccessErr, RULE)?;
    }
    Ok(())
}

scenario!(refused_change_leaves_the_region_as_it_was: "MR-09", "MR-08"; needs REREG_MR);
fn refused_change_leaves_the_region_as_it_was(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-09";
    let pd = setup.alloc_pd(setup.ctx_b())?;
    let with = |access| MrChange {
        access: Some(access),
        ..MrChange::default()
    };
    for (rule, change) in [
        (RULE, MrChange::default()),
        ("MR-08", with(Access::REMOTE_WRITE)),
        ("MR-08", with(Access::REMOTE_ATOMIC | Access::REMOTE_READ)),
        ("MR-08", with(Access::from_bits_retain(1 << 19))),
    ] {
        let mr = setup.alloc_mr(pd, 64, Access::ALL_RDMA)?;
        let before = setup.query_mr(mr)?;
        setup.write_mr(mr, 0, &[5; 64])?;
        let left = refused(setup, mr, &change, &[ErrorKind::Invalid], rule)?;
        if left == AfterRereg::Old {
            check_eq!(RULE, setup.query_mr(mr)?, before);
            let mut bytes = [0; 64];
            setup.read_mr(mr, 0, &mut bytes)?;
            check_eq!(RULE, bytes, [5; 64], "its bytes");
            check_eq!(RULE, used(setup, mr)?, [WcStatus::Success; 2]);
        }
        setup.dereg_mr(mr).rule(RULE)?;
    }
    Ok(())
}

/// A change fails with one of these errors; what is left of the region.
fn refused(
    setup: &Setup<'_>,
    mr: Mr,
    change: &MrChange,
    kinds: &[ErrorKind],
    rule: &'static str,
) -> Result<AfterRereg> {
    let (result, left) = match setup.rereg_mr(mr, change) {
        Ok(()) => (Ok(()), AfterRereg::New),
        Err(refused) => (Err(refused.error), refused.region),
    };
    value_in_case(
        &format!("{change:?}"),
        expect_err_among(result, kinds, rule),
    )?;
    check!(
        rule,
        left != AfterRereg::New,
        "the old region, or none to use",
        "the new one ({change:?})"
    );
    Ok(left)
}

scenario!(memory_registered_for_reading_is_never_written: "MR-24", "MR-09"; needs REREG_MR);
/// As `reg_mr` took it, it need not be writable. With new memory the region is one for writing.
fn memory_registered_for_reading_is_never_written(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-24";
    const KINDS: [ErrorKind; 3] = [ErrorKind::Access, ErrorKind::Permission, ErrorKind::Fault];
    let pd = setup.alloc_pd(setup.ctx_b())?;
    let writes = MrChange {
        access: Some(Access::ALL_RDMA),
        ..MrChange::default()
    };
    for memory in [MrMemory::New, MrMemory::ReadOnly] {
        let init = MrInit::new(64, Access::REMOTE_READ).memory(memory);
        let mr = setup.alloc_mr_as(pd, &init)?;
        if refused(setup, mr, &writes, &KINDS, RULE)? == AfterRereg::Old {
            let statuses = [WcStatus::RemAccessErr, WcStatus::Success];
            check_eq!("MR-09", used(setup, mr)?, statuses, format!("{memory:?}"));
        }
        setup.dereg_mr(mr).rule("MR-09")?;
        let mr = setup.alloc_mr_as(pd, &init)?;
        let length = Some(100);
        setup
            .rereg_mr(mr, &MrChange { length, ..writes })
            .map_err(|refused| refused.error)
            .rule(RULE)?;
        check_eq!(RULE, used(setup, mr)?, [WcStatus::Success; 2]);
        setup.dereg_mr(mr)?;
    }
    Ok(())
}

scenario!(keys_are_used_again_as_declared: "MR-17"; needs LAB);
fn keys_are_used_again_as_declared(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-17";
    let Pair { a, b } = setup.rc_pair()?;
    let keys_of_one = || -> Result<[u32; 2]> {
        let mr = setup.alloc_mr(b.pd, 64, Access::ALL_RDMA)?;
        let attr = setup.query_mr(mr)?;
        setup.dereg_mr(mr)?;
        Ok([attr.lkey, attr.rkey])
    };
    // What uses keys again does so at once.
    let first = keys_of_one()?;
    let reused = keys_of_one()? == first;
    setup.as_declared(RULE, setup.behavior()?.key_reuse, reused)?;
    if reused {
        return Ok(());
    }
    let mut keys = BTreeSet::from(first);
    for count in 0..300 {
        let next = keys_of_one()?;
        let new = next.map(|key| keys.insert(key)).contains(&true);
        check!(RULE, new, "keys that no region had", "{next:x?} ({count})");
    }
    let mr = setup.alloc_mr(b.pd, 64, Access::ALL_RDMA)?;
    let mut remote = setup.query_mr(mr)?.remote(0);
    remote.rkey = first[1];
    a.post(SendWr::rdma_write(1, &[a.sge(0, LEN)], remote))?;
    setup
        .one_with(a.send_cq, WcStatus::RemAccessErr, RULE)
        .map(drop)
}

scenario!(access_flags_that_the_device_lacks_are_refused: "MR-19");
/// A device that has the feature accepts the flag, and the memory works.
fn access_flags_that_the_device_lacks_are_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-19";
    let Pair { a, b } = setup.rc_pair()?;
    let has = setup.capabilities(b.context)?;
    let flushes = has.contains(Capabilities::FLUSH);
    for (what, bit, has_it) in [
        ("FLUSH_GLOBAL", Access::FLUSH_GLOBAL.bits(), flushes),
        ("FLUSH_PERSISTENT", Access::FLUSH_PERSISTENT.bits(), flushes),
        ("RELAXED_ORDERING", Access::RELAXED_ORDERING.bits(), true),
    ] {
        let access = Access::ALL_RDMA | Access::from_bits_retain(bit);
        let is_known = setup.verbs().lab().is_some();
        let (may_have_it, may_lack_it) = (has_it || !is_known, !has_it || !is_known);
        match setup.alloc_mr(b.pd, 64, access) {
            Ok(mr) if may_have_it => {
                let remote = setup.query_mr(mr)?.remote(0);
                a.post(SendWr::rdma_write(1, &[a.sge(0, LEN)], remote))?;
                in_case(
                    what,
                    setup.one_with(a.send_cq, WcStatus::Success, RULE).map(drop),
                )?;
            }
            Err(error)
                if may_lack_it
                    && matches!(error.kind(), ErrorKind::Invalid | ErrorKind::NotSupported) => {}
            result => {
                let seen = format!("{result:?} ({what})");
                return Err(Failure::assertion("as the device can", seen)).rule(RULE);
            }
        }
    }
    Ok(())
}
