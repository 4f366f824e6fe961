//! What a bind does, and its order among others.

use verbs_api::behavior::IllegalOpcode;
use verbs_api::{
    Access, ErrorKind, MwBind, MwType, PostError, QpType, Remote, SendWr, WcOpcode, WcStatus,
    inc_rkey,
};

use super::{
    ALL, BOTH, LEN, WRITE, bind, bound, is_shut, opens, options, pair, part, part_of, post_bind,
    sibling,
};
use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::{OfRule, Pair, PairOptions, Result, Setup, expect_err, wr_ids};

scenario!(unbound_window_opens_nothing: "MW-01"; needs MW);
fn unbound_window_opens_nothing(setup: &Setup<'_>) -> Result {
    for mw_type in BOTH {
        let pair = pair(setup)?;
        let mw = setup.alloc_mw(pair.b.pd, mw_type)?;
        let attr = setup.query_mw(mw)?;
        check_eq!("MW-01", attr.mw_type, mw_type);
        let shut = is_shut(setup, &pair, attr.rkey, "MW-01");
        in_case(&mw_type.to_string(), shut)?;
    }
    Ok(())
}

scenario!(bind_gives_a_new_key_and_the_old_one_dies: "MW-02", "MW-14", "WC-04"; needs MW);
fn bind_gives_a_new_key_and_the_old_one_dies(setup: &Setup<'_>) -> Result {
    let pair = pair(setup)?;
    let b = pair.b;
    let mw = setup.alloc_mw(b.pd, MwType::Type1)?;
    let mut keys = vec![setup.query_mw(mw)?.rkey];
    for round in 0..3 {
        let rkey = post_bind(setup, &b, 1, mw, part(&b, b.landing(), LEN.into(), WRITE))?;
        let bound = setup.one_with(b.send_cq, WcStatus::Success, "MW-02")?;
        check_eq!("WC-04", bound.opcode, WcOpcode::BindMw);
        check!(
            "MW-02",
            !keys.contains(&rkey),
            "a new key",
            "{rkey:#x} of {keys:x?}"
        );
        in_case(&format!("bind {round}"), opens(setup, &pair, rkey, "MW-14"))?;
        keys.push(rkey);
    }
    for old in &keys[..3] {
        let pair = sibling(setup, &pair)?;
        is_shut(setup, &pair, *old, "MW-02").rule("MW-14")?;
    }
    Ok(())
}

scenario!(bind_of_no_bytes_unbinds_type_1: "MW-03"; needs MW);
fn bind_of_no_bytes_unbinds_type_1(setup: &Setup<'_>) -> Result {
    let pair = pair(setup)?;
    let b = pair.b;
    let (mw, before) = bound(setup, &b, MwType::Type1)?;
    opens(setup, &pair, before, "MW-03")?;
    let after = bind(setup, &b, mw, part(&b, b.landing(), 0, WRITE)).rule("MW-03")?;
    for rkey in [before, after] {
        let pair = sibling(setup, &pair)?;
        is_shut(setup, &pair, rkey, "MW-03")?;
    }
    // Nothing is bound to the region any more.
    setup.dereg_mr(b.mr).rule("MW-03")?;
    // The region that is named is not looked at.
    let Pair { b, .. } = super::pair(setup)?;
    let shy = setup.alloc_mr(b.pd, 64, Access::LOCAL_WRITE)?;
    let outside = b.mem.addr.wrapping_sub(64);
    for (what, mr, addr) in [
        ("which may not be bound", shy, setup.query_mr(shy)?.addr),
        ("outside of it", b.mr, outside),
    ] {
        let (mw, _) = bound(setup, &b, MwType::Type1)?;
        let unbound = bind(setup, &b, mw, part_of(mr, addr, 0, WRITE)).rule("MW-03");
        value_in_case(what, unbound)?;
    }
    setup.dereg_mr(b.mr).rule("MW-03")
}

scenario!(work_request_binds_with_the_key_of_the_caller: "MW-04", "WC-04"; needs MW);
fn work_request_binds_with_the_key_of_the_caller(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-04";
    for own in [0, 0x42, 0xff] {
        let pair = pair(setup)?;
        let b = pair.b;
        let mw = setup.alloc_mw(b.pd, MwType::Type2)?;
        let rkey = setup.query_mw(mw)?.rkey & !0xff | own;
        let info = part(&b, b.landing(), LEN.into(), WRITE);
        setup
            .post_send(b.qp, &[SendWr::bind_mw(1, mw, rkey, info)])
            .rule(RULE)?;
        let bound = setup.one_with(b.send_cq, WcStatus::Success, RULE)?;
        check_eq!("WC-04", bound.opcode, WcOpcode::BindMw);
        check_eq!(
            RULE,
            setup.query_mw(mw)?.rkey,
            rkey,
            "the key of the window"
        );
        in_case(&format!("{own:#x}"), opens(setup, &pair, rkey, RULE))?;
        is_shut(setup, &pair, inc_rkey(rkey), RULE)?;
    }
    Ok(())
}

scenario!(bind_mw_is_for_type_1: "MW-05"; needs MW);
fn bind_mw_is_for_type_1(setup: &Setup<'_>) -> Result {
    let Pair { b, .. } = pair(setup)?;
    let mw = setup.alloc_mw(b.pd, MwType::Type2)?;
    let before = setup.query_mw(mw)?;
    let info = part(&b, 0, LEN.into(), WRITE);
    let refused = setup.bind_mw(b.qp, mw, &MwBind::new(1, info));
    expect_err(refused, ErrorKind::Invalid, "MW-05")?;
    check_eq!("MW-05", setup.query_mw(mw)?, before);
    setup.no_completion(b.send_cq, "MW-05")
}

scenario!(bind_by_work_request_is_for_type_2: "MW-05"; needs MW);
fn bind_by_work_request_is_for_type_2(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-05";
    let Pair { b, .. } = pair(setup)?;
    let mw = setup.alloc_mw(b.pd, MwType::Type1)?;
    let rkey = inc_rkey(setup.query_mw(mw)?.rkey);
    let info = part(&b, 0, LEN.into(), WRITE);
    let posted = setup.post_send(b.qp, &[SendWr::bind_mw(1, mw, rkey, info)]);
    if posted.is_err() {
        expect_err(posted, ErrorKind::Invalid, RULE)?;
        return Ok(());
    }
    setup
        .one_with(b.send_cq, WcStatus::MwBindErr, RULE)
        .map(drop)
}

scenario!(binds_complete_in_order_and_before_what_is_behind_starts: "MW-27", "MW-02"; needs MW);
/// What is behind a bind may tell the peer of the key.
fn binds_complete_in_order_and_before_what_is_behind_starts(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-27";
    for mw_type in BOTH {
        let Pair { a, b } = pair(setup)?;
        let mw = setup.alloc_mw(b.pd, mw_type)?;
        for wr_id in [1, 2] {
            a.recv(wr_id, 64)?;
        }
        // At the end of the region, where nothing lands.
        let place = b.mem.length - 64;
        b.fill_at(0, 1, 3000)?;
        a.recv_at(3, 8, LEN)?;
        b.send(1, 64)?;
        let info = part(&b, place, LEN.into(), WRITE);
        let rkey = post_bind(setup, &b, 2, mw, info)?;
        b.send(3, 64)?;
        setup.successes(a.recv_cq, 2).rule(RULE)?;
        let addr = b.mem.addr + place;
        a.fill(9, LEN)?;
        a.post(SendWr::rdma_write(
            4,
            &[a.sge(0, LEN)],
            Remote { addr, rkey },
        ))?;
        let written = setup.one_with(a.send_cq, WcStatus::Success, [RULE, "MW-02"]);
        in_case(&mw_type.to_string(), written.map(drop))?;
        b.expect_data_at(place, 9, LEN, RULE)?;
        let done = setup.successes(b.send_cq, 3).rule(RULE)?;
        check_eq!(RULE, wr_ids(&done), [1, 2, 3], "the order of completions");
    }
    Ok(())
}

scenario!(uc_queue_pair_binds: "MW-22"; needs MW, UC);
fn uc_queue_pair_binds(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-22";
    for mw_type in BOTH {
        let Pair { a, b } = setup.pair(PairOptions {
            qp_type: QpType::Uc,
            ..options()
        })?;
        let mw = setup.alloc_mw(b.pd, mw_type)?;
        let info = part(&b, b.landing(), LEN.into(), WRITE);
        let rkey = bind(setup, &b, mw, info).rule(RULE)?;
        a.fill(3, LEN)?;
        // The send comes behind the write.
        b.recv_at(1, 0, LEN)?;
        let addr = b.mem.addr + b.landing();
        a.post(SendWr::rdma_write(
            1,
            &[a.sge(0, LEN)],
            Remote { addr, rkey },
        ))?;
        a.send(2, LEN)?;
        setup.successes(b.recv_cq, 1)?;
        in_case(&mw_type.to_string(), b.expect_data(3, LEN, RULE))?;
    }
    Ok(())
}

scenario!(ud_queue_pair_does_not_bind: "MW-22", "SQ-20"; needs MW, UD);
fn ud_queue_pair_does_not_bind(setup: &Setup<'_>) -> Result {
    for mw_type in BOTH {
        let Pair { b, .. } = setup.pair(PairOptions {
            access: ALL,
            ..PairOptions::of(QpType::Ud)
        })?;
        let mw = setup.alloc_mw(b.pd, mw_type)?;
        let info = part(&b, 0, LEN.into(), WRITE);
        let rkey = inc_rkey(setup.query_mw(mw)?.rkey);
        let posted = match mw_type {
            MwType::Type1 => setup
                .bind_mw(b.qp, mw, &MwBind::new(1, info))
                .map_err(PostError::from),
            _ => {
                let work = b.to_peer(SendWr::bind_mw(1, mw, rkey, info));
                setup.post_send(b.qp, &[work])
            }
        };
        let seen = if posted.is_ok() {
            setup.one_with(b.send_cq, WcStatus::LocQpOpErr, "MW-22")?;
            IllegalOpcode::LocQpOpErr
        } else {
            expect_err(posted, ErrorKind::Invalid, "MW-22")?;
            IllegalOpcode::Einval
        };
        // A library that looks at the transport does so for binds alone.
        if seen == IllegalOpcode::LocQpOpErr {
            setup.as_declared("SQ-20", setup.behavior()?.illegal_opcode, seen)?;
        }
    }
    Ok(())
}
