//! New queue pairs, and the results of their query.

use std::collections::BTreeSet;

use verbs_api::behavior::Rounding;
use verbs_api::lab::Limit;
use verbs_api::{
    Cq, ErrorKind, GlobalRoute, QpAttr, QpAttrMask as M, QpCap, QpInit, QpQuery, QpState, QpType,
    RecvWr, SendWr, Wait,
};

use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::fresh_qp::{FreshQp, required};
use crate::{
    End, OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err, expect_err_among,
};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    new_rc_qp_is_in_reset_and_has_what_was_asked_for,
    new_uc_and_ud_qps_are_in_reset_and_have_what_was_asked_for,
    sizes_of_queues_are_rounded_as_declared,
    queue_without_entries_takes_no_work,
    live_qps_have_different_numbers,
    reserved_numbers_are_given_to_none,
    query_tells_what_was_set_on_an_rc_qp,
    query_tells_what_was_set_on_a_uc_qp,
    query_tells_what_was_set_on_a_ud_qp,
    query_follows_a_connection_into_error,
    query_for_one_attribute_tells_it,
    inline_size_that_was_given_can_be_used_and_asked_for,
    privileged_qkey_needs_the_privilege,
    as_many_exist_as_the_device_says,
];

scenario!(new_rc_qp_is_in_reset_and_has_what_was_asked_for: "QP-CREATE-01", "QP-CREATE-08");
fn new_rc_qp_is_in_reset_and_has_what_was_asked_for(setup: &Setup<'_>) -> Result {
    new_qps(setup, QpType::Rc)
}

scenario!(new_uc_and_ud_qps_are_in_reset_and_have_what_was_asked_for:
    "QP-CREATE-01", "QP-CREATE-08"; needs RC, UC, UD);
fn new_uc_and_ud_qps_are_in_reset_and_have_what_was_asked_for(setup: &Setup<'_>) -> Result {
    new_qps(setup, QpType::Uc)?;
    new_qps(setup, QpType::Ud)
}

fn new_qps(setup: &Setup<'_>, qp_type: QpType) -> Result {
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let caps = [
        (1, 1, 1, 1, 0),
        (16, 2, 3, 1, 0),
        (3, 1, 100, 2, 1),
        (100, 3, 17, 3, 48),
    ];
    let caps = caps.map(
        |(max_send_wr, max_send_sge, max_recv_wr, max_recv_sge, max_inline_data)| QpCap {
            max_send_wr,
            max_send_sge,
            max_recv_wr,
            max_recv_sge,
            max_inline_data,
        },
    );
    for (i, asked) in caps.into_iter().enumerate() {
        // CQs of both kinds, and one for both.
        let cqs = [
            (end.send_cq, end.recv_cq),
            (end.recv_cq, end.send_cq),
            (end.recv_cq, end.recv_cq),
        ];
        let (send_cq, recv_cq) = cqs[i % 3];
        let mut init = QpInit::new(qp_type, send_cq, recv_cq).cap(asked);
        init.sq_sig_all = i % 2 == 1;
        let qp = setup.create_qp(end.pd, &init).rule("QP-CREATE-01")?;
        let seen = setup.query_qp(qp, M::STATE | M::CAP)?;
        check_eq!("QP-CREATE-01", seen.attr.qp_state, QpState::Reset);
        check_eq!("QP-CREATE-01", seen.qp_num, setup.qp_num(qp)?);
        let got = seen.init.cap;
        let enough = got.max_send_wr >= asked.max_send_wr
            && got.max_send_sge >= asked.max_send_sge
            && got.max_recv_wr >= asked.max_recv_wr
            && got.max_recv_sge >= asked.max_recv_sge
            && got.max_inline_data >= asked.max_inline_data;
        check!(
            "QP-CREATE-01",
            enough,
            format!("at least {asked:?}"),
            "{got:?}"
        );
        let asked = init.cap(got);
        check_eq!("QP-CREATE-08", seen.init, asked, "what it was made with");
        setup.destroy_qp(qp, setup.wait())?;
    }
    Ok(())
}

scenario!(sizes_of_queues_are_rounded_as_declared: "QP-CREATE-01");
/// What a query tells, and how many receives there is room for.
fn sizes_of_queues_are_rounded_as_declared(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-CREATE-01";
    let declared = setup.behavior()?.wr_rounding;
    for asked in [1, 2, 3, 4, 5, 7, 8, 9, 16, 100] {
        let Pair { b, .. } = setup.pair(PairOptions {
            cap: QpCap {
                max_send_wr: asked,
                max_recv_wr: asked,
                ..QpCap::default()
            },
            ..PairOptions::default()
        })?;
        let got = setup.query_qp(b.qp, M::CAP)?.init.cap;
        let room = [b.sge(0, 8)];
        let taken = fill(
            |wr_id| Ok(setup.post_recv(b.qp, &[RecvWr::new(wr_id, &room)])?),
            RULE,
        )?;
        check_eq!(RULE, taken, got.max_recv_wr, "the receives that it takes");
        for size in [got.max_send_wr, got.max_recv_wr] {
            expect_room(declared, asked, size, RULE)?;
        }
    }
    Ok(())
}

/// A queue has the size that it should have when room for `asked` work requests was asked for.
pub(crate) fn expect_room(
    declared: Option<Rounding>,
    asked: u32,
    seen: u32,
    rule: &'static str,
) -> Result {
    let good = declared.map_or(seen >= asked, |rounding| seen == rounding.up(asked));
    let expected = match declared {
        Some(rounding) => format!(
            "room for {}, {asked} rounded as declared",
            rounding.up(asked)
        ),
        None => format!("room for {asked}"),
    };
    check!(rule, good, expected, "room for {seen}");
    Ok(())
}

/// How many receives a queue takes before it is full.
pub(crate) fn fill(post: impl Fn(u64) -> verbs_api::Result<()>, rule: &'static str) -> Result<u32> {
    for count in 0.. {
        match post(count) {
            Ok(()) => {}
            full => {
                expect_err(full, ErrorKind::NoMemory, rule)?;
                return Ok(count as u32);
            }
        }
    }
    unreachable!("a queue has an end")
}

scenario!(queue_without_entries_takes_no_work: "QP-CREATE-06");
/// A device may have no such queues.
fn queue_without_entries_takes_no_work(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-CREATE-06";
    let one_way = |max_send_wr, max_recv_wr| PairOptions {
        cap: QpCap {
            max_send_wr,
            max_recv_wr,
            ..QpCap::default()
        },
        ..PairOptions::default()
    };
    let (sends, receives) = (one_way(16, 0), one_way(0, 16));
    let probe = setup.end(setup.ctx_a(), PairOptions::default())?;
    for options in [sends, receives] {
        let init = QpInit::new(QpType::Rc, probe.send_cq, probe.recv_cq).cap(options.cap);
        match setup.create_qp(probe.pd, &init) {
            Ok(qp) => setup.destroy_qp(qp, Wait::Poll)?,
            refused => return expect_err(refused, ErrorKind::Invalid, RULE).map(drop),
        }
    }
    let a = setup.end(setup.ctx_a(), sends)?;
    let b = setup.end(setup.ctx_b(), receives)?;
    let pair = setup.connect(a, b, sends)?;
    pair.still_works(RULE)?;
    let Pair { a, b } = pair;
    let none = [ErrorKind::NoMemory, ErrorKind::Invalid];
    let size = |end: &End<'_>| setup.query_qp(end.qp, M::CAP).map(|query| query.init.cap);
    if size(&a)?.max_recv_wr == 0 {
        let room = [a.sge(0, 8)];
        let posted = setup.post_recv(a.qp, &[RecvWr::new(1, &room)]);
        expect_err_among(posted, &none, RULE)?;
    }
    if size(&b)?.max_send_wr == 0 {
        let data = [b.sge(0, 8)];
        let posted = setup.post_send(b.qp, &[SendWr::send(1, &data)]);
        expect_err_among(posted, &none, RULE)?;
    }
    Ok(())
}

scenario!(live_qps_have_different_numbers: "QP-CREATE-07");
/// Others are created and destroyed in between.
fn live_qps_have_different_numbers(setup: &Setup<'_>) -> Result {
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let mut live = BTreeSet::from([end.qp_num]);
    let mut qps = Vec::new();
    for i in 0..48 {
        let init = QpInit::new(QpType::Rc, end.send_cq, end.recv_cq);
        let qp = setup.create_qp(end.pd, &init)?;
        let number = setup.qp_num(qp)?;
        let new = live.insert(number);
        check!("QP-CREATE-07", new, "a number of its own", "{number} again");
        qps.push((qp, number));
        if i % 3 == 2 {
            let (gone, number) = qps.swap_remove(i / 3);
            setup.destroy_qp(gone, setup.wait())?;
            live.remove(&number);
        }
    }
    Ok(())
}

scenario!(reserved_numbers_are_given_to_none: "QP-CREATE-07"; needs MODIFY_CONNECT);
/// 0 and 1 are of the management of an InfiniBand or RoCE port; numbers have 24 bits.
fn reserved_numbers_are_given_to_none(setup: &Setup<'_>) -> Result {
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    for _ in 0..8 {
        let init = QpInit::new(QpType::Rc, end.send_cq, end.recv_cq);
        let qp = setup.create_qp(end.pd, &init)?;
        let number = setup.qp_num(qp)?;
        let fine = (2..1 << 24).contains(&number);
        check!("QP-CREATE-07", fine, "from 2, in 24 bits", "{number}");
    }
    Ok(())
}

scenario!(query_tells_what_was_set_on_an_rc_qp: "QP-CREATE-08"; needs MODIFY_CONNECT);
fn query_tells_what_was_set_on_an_rc_qp(setup: &Setup<'_>) -> Result {
    tells_what_was_set(setup, QpType::Rc)
}

scenario!(query_tells_what_was_set_on_a_uc_qp: "QP-CREATE-08"; needs UC, MODIFY_CONNECT);
fn query_tells_what_was_set_on_a_uc_qp(setup: &Setup<'_>) -> Result {
    tells_what_was_set(setup, QpType::Uc)
}

scenario!(query_tells_what_was_set_on_a_ud_qp: "QP-CREATE-08"; needs UD, MODIFY_CONNECT);
fn query_tells_what_was_set_on_a_ud_qp(setup: &Setup<'_>) -> Result {
    tells_what_was_set(setup, QpType::Ud)
}

/// The least values, others, and the greatest that their fields have room for.
fn tells_what_was_set(setup: &Setup<'_>, qp_type: QpType) -> Result {
    let device = setup.query_device(setup.ctx_a())?;
    for (what, attr) in [
        ("least", QpAttr::default()),
        (
            "other",
            QpAttr {
                qkey: setup.qkey(),
                rq_psn: 0x123456,
                sq_psn: 0x654321,
                dest_qp_num: 0x654321,
                timeout: 13,
                retry_cnt: 5,
                rnr_retry: 3,
                min_rnr_timer: 17,
                max_rd_atomic: 2,
                max_dest_rd_atomic: 4,
                ..QpAttr::default()
            },
        ),
        (
            "greatest",
            QpAttr {
                qkey: 0x7fff_ffff,
                rq_psn: 0xff_ffff,
                sq_psn: 0xff_ffff,
                dest_qp_num: 0xff_ffff,
                timeout: 31,
                retry_cnt: 7,
                rnr_retry: 7,
                min_rnr_timer: 31,
                max_rd_atomic: device.max_qp_init_rd_atom,
                max_dest_rd_atomic: device.max_qp_rd_atom,
                ..QpAttr::default()
            },
        ),
    ] {
        let mut qp = FreshQp::new(setup, qp_type)?;
        let mut way = qp.av();
        if what == "greatest" {
            way.sl = 15;
            way.grh = way.grh.map(|grh| GlobalRoute {
                traffic_class: 0xff,
                flow_label: 0xf_ffff,
                ..grh
            });
        }
        qp.attr = QpAttr {
            path_mtu: qp.attr.path_mtu,
            qp_access_flags: qp.attr.qp_access_flags,
            port_num: qp.attr.port_num,
            ah_attr: Some(way),
            ..attr
        };
        in_case(
            &format!("{what} values"),
            tells_of_each_transition(setup, &qp),
        )?;
    }
    Ok(())
}

/// After each transition, all attributes that were set so far, and the sizes.
fn tells_of_each_transition(setup: &Setup<'_>, qp: &FreshQp<'_>) -> Result {
    const RULE: &str = "QP-CREATE-08";
    let qp_type = qp.end.qp_type;
    let init = qp.query()?.init;
    let mut set = M::empty();
    let up = [QpState::Init, QpState::Rtr, QpState::Rts, QpState::Sqd];
    for state in up {
        let from = setup.state(qp.end.qp)?;
        set |= required(qp_type, from, state) - M::STATE;
        qp.go(state)?;
        let seen = qp.query()?;
        check_eq!(RULE, seen.attr.qp_state, state);
        check_eq!(RULE, seen.init, init, "what it was made with");
        for (name, bit) in set.iter_names() {
            let what = format!("{name} in {state}");
            check_eq!(RULE, of(bit, &seen.attr), of(bit, &qp.attr), what);
        }
    }
    Ok(())
}

/// The attribute of this bit, in words.
fn of(bit: M, attr: &QpAttr) -> String {
    match bit {
        M::STATE => attr.qp_state.to_string(),
        M::ACCESS_FLAGS => format!("{:?}", attr.qp_access_flags),
        M::PKEY_INDEX => attr.pkey_index.to_string(),
        M::PORT => attr.port_num.to_string(),
        M::QKEY => format!("{:#x}", attr.qkey),
        M::AV => {
            // Ethernet has no service levels, and the hop limit may be that of the route.
            let route = attr.ah_attr.and_then(|av| av.grh);
            let fields =
                |grh: GlobalRoute| (grh.dgid, grh.sgid_index, grh.traffic_class, grh.flow_label);
            format!("{:?}", route.map(fields))
        }
        M::PATH_MTU => format!("{:?}", attr.path_mtu),
        M::TIMEOUT => attr.timeout.to_string(),
        M::RETRY_CNT => attr.retry_cnt.to_string(),
        M::RNR_RETRY => attr.rnr_retry.to_string(),
        M::RQ_PSN => format!("{:#x}", attr.rq_psn),
        M::SQ_PSN => format!("{:#x}", attr.sq_psn),
        M::MAX_QP_RD_ATOMIC => attr.max_rd_atomic.to_string(),
        M::MIN_RNR_TIMER => attr.min_rnr_timer.to_string(),
        M::MAX_DEST_RD_ATOMIC => attr.max_dest_rd_atomic.to_string(),
        M::DEST_QPN => format!("{:#x}", attr.dest_qp_num),
        M::CAP => format!("{:?}", attr.cap),
        _ => String::new(),
    }
}

scenario!(query_follows_a_connection_into_error: "QP-CREATE-08");
fn query_follows_a_connection_into_error(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-CREATE-08";
    let Pair { a, b } = setup.rc_pair()?;
    for end in [a, b] {
        let query = |state| -> Result<QpQuery> {
            let seen = setup.query_qp(end.qp, M::STATE)?;
            check_eq!(RULE, seen.attr.qp_state, state);
            let cqs: [Cq; 2] = [seen.init.send_cq, seen.init.recv_cq];
            check_eq!(RULE, cqs, [end.send_cq, end.recv_cq], "the CQs");
            check_eq!(RULE, seen.init.qp_type, QpType::Rc);
            Ok(seen)
        };
        let connected = query(QpState::Rts)?;
        check_eq!(RULE, connected.qp_num, end.qp_num);
    }
    setup.to_err(a.qp)?;
    check_eq!(RULE, setup.state(a.qp)?, QpState::Err);
    Ok(())
}

scenario!(query_for_one_attribute_tells_it: "QP-CREATE-09");
/// A query for one attribute gives the same value as a query for all.
fn query_for_one_attribute_tells_it(setup: &Setup<'_>) -> Result {
    let Pair { a, .. } = setup.rc_pair()?;
    let all = setup.query_qp(a.qp, M::STANDARD)?.attr;
    for (name, bit) in M::STANDARD.iter_names() {
        let one = setup.query_qp(a.qp, bit).rule("QP-CREATE-09");
        let one = value_in_case(name, one)?.attr;
        check_eq!("QP-CREATE-09", of(bit, &one), of(bit, &all), name);
    }
    Ok(())
}

scenario!(inline_size_that_was_given_can_be_used_and_asked_for: "QP-CREATE-10");
fn inline_size_that_was_given_can_be_used_and_asked_for(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-CREATE-10";
    for asked in [0, 1, 20, 64] {
        let with = |max_inline_data| PairOptions {
            cap: QpCap {
                max_inline_data,
                ..QpCap::default()
            },
            ..PairOptions::default()
        };
        let size = |end: &End<'_>| -> Result<u32> {
            Ok(setup.query_qp(end.qp, M::CAP)?.init.cap.max_inline_data)
        };
        let given = size(&setup.pair(with(asked))?.a)?;
        let Pair { a, b } = setup.pair(with(given)).rule(RULE)?;
        check!(
            RULE,
            size(&a)? >= given,
            format!("at least {given}"),
            "less"
        );
        a.fill(3, given)?;
        b.recv(1, given)?;
        let wr = [a.sge(0, given)];
        a.post(SendWr::send(2, &wr).inline()).rule(RULE)?;
        setup.successes(a.send_cq, 1).rule(RULE)?;
        setup.successes(b.recv_cq, 1).rule(RULE)?;
        b.expect_data(3, given, RULE)?;
    }
    Ok(())
}

scenario!(privileged_qkey_needs_the_privilege: "QP-CREATE-11"; needs UD, MODIFY_CONNECT, LAB);
/// Where a Q_Key is set first, and where it is changed.
fn privileged_qkey_needs_the_privilege(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-CREATE-11";
    // Programs are privileged until the test controls change that.
    let (mut a, _) = FreshQp::pair(setup, QpType::Ud)?;
    a.attr.qkey = 1 << 31;
    a.reach(QpState::Rts).rule(RULE)?;
    for state in [QpState::Init, QpState::Rts] {
        for qkey in [1 << 31, u32::MAX, (1 << 31) - 1, 0] {
            let (mut a, _) = FreshQp::pair(setup, QpType::Ud)?;
            if state == QpState::Rts {
                a.reach(QpState::Rts)?;
            }
            a.attr.qkey = qkey;
            let (qp, attr) = (a.end.qp, a.attr);
            let (attr, mask) = match state {
                QpState::Init => (
                    QpAttr {
                        qp_state: QpState::Init,
                        ..attr
                    },
                    required(QpType::Ud, QpState::Reset, QpState::Init) | M::STATE,
                ),
                _ => (attr, M::QKEY),
            };
            let set = || setup.modify_qp(qp, &attr, mask);
            let what = format!("Q_Key {qkey:#x} in {state}");
            setup.lab().set_privileged(a.end.context, false)?;
            if qkey >> 31 == 1 {
                let before = setup.query_qp(qp, M::all())?.attr;
                in_case(
                    &what,
                    expect_err(set(), ErrorKind::Permission, RULE).map(drop),
                )?;
                check_eq!(RULE, setup.query_qp(qp, M::all())?.attr, before, &what);
                setup.lab().set_privileged(a.end.context, true)?;
            }
            set().rule(RULE)?;
            check_eq!(RULE, setup.query_qp(qp, M::QKEY)?.attr.qkey, qkey, &what);
        }
    }
    Ok(())
}

scenario!(as_many_exist_as_the_device_says: "QP-CREATE-12"; needs LAB);
fn as_many_exist_as_the_device_says(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-CREATE-12";
    let context = setup.ctx_a();
    setup.lab().set_limit(context, Limit::QueuePairs, Some(6))?;
    check_eq!(RULE, setup.query_device(context)?.max_qp, 6);
    let pair = setup.rc_pair()?;
    let a = pair.a;
    let init = QpInit::new(QpType::Rc, a.send_cq, a.recv_cq);
    let create = || setup.create_qp(a.pd, &init);
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push(create().rule(RULE)?);
    }
    for _ in 0..2 {
        let before = setup.live()?;
        expect_err_among(create(), &[ErrorKind::NoMemory, ErrorKind::Invalid], RULE)?;
        setup.expect_live(before, RULE)?;
        pair.still_works(RULE)?;
        if let Some(gone) = others.pop() {
            setup.destroy_qp(gone, setup.wait())?;
            create().rule(RULE)?;
        }
    }
    Ok(())
}
