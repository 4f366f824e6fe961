//! The memory that a window opens, and the queue pairs that may use it.

use verbs_api::{Access, MwType, Remote, SendOp, SendWr, WcStatus};

use super::{
    BOTH, LEN, WRITE, bind, bound, denies, is_shut, opens, options, pair, part, part_of, sibling,
    write,
};
use crate::failure::{check_eq, in_case};
use crate::{Claim, OfRule, Pair, Result, Setup};

/// What a peer can ask for, by the right it needs.
fn operation(need: Access, remote: Remote) -> SendOp {
    match need {
        Access::REMOTE_READ => SendOp::RdmaRead { remote },
        Access::REMOTE_ATOMIC => SendOp::FetchAndAdd { remote, add: 1 },
        _ => SendOp::RdmaWrite { remote },
    }
}

const RIGHTS: [Access; 3] = [WRITE, Access::REMOTE_READ, Access::REMOTE_ATOMIC];

scenario!(window_gives_rights_that_its_region_does_not:
    "MW-10", "ATOM-05"; needs MW, RDMA_READ, ATOMICS);
fn window_gives_rights_that_its_region_does_not(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-10";
    let cases = BOTH.iter().flat_map(|mw_type| {
        let of_type = |given| RIGHTS.map(|need| (*mw_type, given, need));
        RIGHTS.into_iter().flat_map(of_type)
    });
    for (mw_type, given, need) in cases {
        let Pair { a, b } = pair(setup)?;
        let mr = setup.alloc_mr(b.pd, 64, Access::LOCAL_WRITE | Access::MW_BIND)?;
        let addr = setup.query_mr(mr)?.addr;
        let mw = setup.alloc_mw(b.pd, mw_type)?;
        let rkey = bind(setup, &b, mw, part_of(mr, addr, 64, given))?;
        let local = [a.sge(a.landing(), LEN)];
        a.fill_at(a.landing(), 3, LEN)?;
        a.post(SendWr::new(
            1,
            operation(need, Remote { addr, rkey }),
            &local,
        ))?;
        let status = if given == need {
            WcStatus::Success
        } else {
            WcStatus::RemAccessErr
        };
        let case = format!("{need:?} through a window of {mw_type} for {given:?}");
        let rule = if need == Access::REMOTE_ATOMIC {
            Claim::two(RULE, "ATOM-05")
        } else {
            Claim::one(RULE)
        };
        in_case(&case, setup.one_with(a.send_cq, status, rule).map(drop))?;
        let mut after = [0; LEN as usize];
        setup.read_mr(mr, 0, &mut after)?;
        let touched = given == need && need != Access::REMOTE_READ;
        check_eq!(
            RULE,
            after != [0; LEN as usize],
            touched,
            format!("changed ({case})")
        );
    }
    Ok(())
}

/// From where to where the window goes, in the region of B.
const WINDOW: (u64, u64) = (1024, 1088);

scenario!(window_ends_where_it_was_bound: "MW-11"; needs MW);
fn window_ends_where_it_was_bound(setup: &Setup<'_>) -> Result {
    let (start, end) = WINDOW;
    let bytes = u64::from(LEN);
    for mw_type in BOTH {
        for (offset, inside) in [
            (start, true),
            (end - bytes, true),
            (start - 1, false),
            (start - bytes, false),
            (end - bytes + 1, false),
            (end, false),
        ] {
            let pair = pair(setup)?;
            let b = pair.b;
            let mw = setup.alloc_mw(b.pd, mw_type)?;
            let rkey = bind(setup, &b, mw, part(&b, start, end - start, WRITE))?;
            let addr = b.mem.addr + offset;
            let case = format!("{mw_type}, at {offset}");
            let result = if inside {
                write(setup, &pair.a, Remote { addr, rkey }).and_then(|status| {
                    check_eq!("MW-11", status, WcStatus::Success);
                    Ok(())
                })
            } else {
                denies(setup, &pair, Remote { addr, rkey }, "MW-11")
            };
            in_case(&case, result)?;
        }
    }
    Ok(())
}

scenario!(window_of_one_byte_opens_that_byte: "MW-11"; needs MW);
fn window_of_one_byte_opens_that_byte(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-11";
    let (start, _) = WINDOW;
    for mw_type in BOTH {
        let Pair { a, b } = pair(setup)?;
        let mw = setup.alloc_mw(b.pd, mw_type)?;
        let rkey = bind(setup, &b, mw, part(&b, start, 1, WRITE))?;
        let addr = b.mem.addr + start;
        a.fill(5, 1)?;
        let one = [a.sge(0, 1)];
        a.post(SendWr::rdma_write(1, &one, Remote { addr, rkey }))?;
        let written = setup.one_with(a.send_cq, WcStatus::Success, RULE);
        in_case(&mw_type.to_string(), written.map(drop))?;
        b.expect_data_at(start, 5, 1, RULE)?;
    }
    Ok(())
}

scenario!(nothing_opens_outside_the_region: "MW-11"; needs MW);
fn nothing_opens_outside_the_region(setup: &Setup<'_>) -> Result {
    for mw_type in BOTH {
        let length = options().mem as u64;
        for offset in [length, length - 7, u64::MAX - 7] {
            let pair = pair(setup)?;
            let b = pair.b;
            let mw = setup.alloc_mw(b.pd, mw_type)?;
            let rkey = bind(setup, &b, mw, part(&b, 0, length, WRITE))?;
            let addr = b.mem.addr.wrapping_add(offset);
            let denied = denies(setup, &pair, Remote { addr, rkey }, "MW-11");
            in_case(&format!("{mw_type}, at {offset:#x}"), denied)?;
        }
    }
    Ok(())
}

scenario!(window_of_type_1_opens_for_every_queue_pair_of_its_domain: "MW-12"; needs MW);
fn window_of_type_1_opens_for_every_queue_pair_of_its_domain(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-12";
    let first = pair(setup)?;
    let (_, rkey) = bound(setup, &first.b, MwType::Type1)?;
    for pair in [first, sibling(setup, &first)?] {
        opens(setup, &pair, rkey, RULE)?;
    }
    // The queue pair of another domain, which has the memory of the first before its eyes.
    let stranger = pair(setup)?;
    let addr = first.b.mem.addr + first.b.landing();
    let status = write(setup, &stranger.a, Remote { addr, rkey })?;
    check_eq!(RULE, status, WcStatus::RemAccessErr, "from another domain");
    Ok(())
}

scenario!(window_of_type_2_opens_for_the_queue_pair_of_its_bind: "MW-12"; needs MW);
fn window_of_type_2_opens_for_the_queue_pair_of_its_bind(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-12";
    let first = pair(setup)?;
    let (_, rkey) = bound(setup, &first.b, MwType::Type2)?;
    let second = sibling(setup, &first)?;
    is_shut(setup, &second, rkey, RULE)?;
    opens(setup, &first, rkey, RULE)
}

scenario!(zero_based_window_has_offsets: "MW-20"; needs MW);
fn zero_based_window_has_offsets(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-20";
    let (start, end) = WINDOW;
    for offset in [0, 1, end - start - u64::from(LEN)] {
        let pair = pair(setup)?;
        let Pair { a, b } = pair;
        let mw = setup.alloc_mw(b.pd, MwType::Type2)?;
        let info = part(&b, start, end - start, WRITE | Access::ZERO_BASED);
        let rkey = bind(setup, &b, mw, info).rule(RULE)?;
        a.fill(8, LEN)?;
        let status = write(setup, &a, Remote { addr: offset, rkey })?;
        check_eq!(
            RULE,
            status,
            WcStatus::Success,
            format!("a write at {offset}")
        );
        b.expect_data_at(start + offset, 8, LEN, RULE)?;
        let addr = b.mem.addr + start;
        denies(setup, &pair, Remote { addr, rkey }, RULE)?;
    }
    Ok(())
}

scenario!(access_of_no_bytes_is_not_checked: "MW-29", "RDMA-10"; needs MW, RDMA_READ);
fn access_of_no_bytes_is_not_checked(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-29";
    let Pair { a, b } = pair(setup)?;
    let (mw, bound_key) = bound(setup, &b, MwType::Type1)?;
    let unbound = setup.query_mw(setup.alloc_mw(b.pd, MwType::Type2)?)?.rkey;
    let outside = b.mem.addr.wrapping_sub(64);
    for rkey in [bound_key, bound_key ^ 1, unbound] {
        let remote = Remote {
            addr: outside,
            rkey,
        };
        for op in [SendOp::RdmaWrite { remote }, SendOp::RdmaRead { remote }] {
            a.post(SendWr::new(1, op, &[])).rule(RULE)?;
            let done = setup.one_with(a.send_cq, WcStatus::Success, [RULE, "RDMA-10"]);
            in_case(&format!("{} with {rkey:#x}", op.name()), done.map(drop))?;
        }
    }
    setup.dealloc_mw(mw).rule(RULE)
}
