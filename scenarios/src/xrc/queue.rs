//! The queues that queue pairs of XRC do not have, and the attributes of these.

use verbs_api::{
    Cq, ErrorKind, QpAttr, QpAttrMask, QpCap, QpInit, QpState, QpType, RecvWr, SendWr, transition,
};

use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::fresh_qp::{FreshQp, required};
use crate::{OfRule, Pair, PairOptions, Result, Setup, expect_err_among};

const RULE: &str = "XRC-03";

/// How posting to a queue that is not there fails: there is none, or it has no room.
const NO_QUEUE: [ErrorKind; 2] = [ErrorKind::Invalid, ErrorKind::NoMemory];

const STATES: [QpState; 6] = [
    QpState::Reset,
    QpState::Init,
    QpState::Rtr,
    QpState::Rts,
    QpState::Sqd,
    QpState::Err,
];

scenario!(sender_takes_no_receives: "XRC-03"; needs XRC);
fn sender_takes_no_receives(setup: &Setup<'_>) -> Result {
    for state in STATES {
        let (a, _) = FreshQp::pair(setup, QpType::XrcSend)?;
        a.reach(state)?;
        let room = [a.end.sge(0, 8)];
        for list in [&room[..], &[]] {
            let posted = setup.post_recv(a.end.qp, &[RecvWr::new(1, list)]);
            let refused = expect_err_among(posted, &NO_QUEUE, RULE);
            let error = value_in_case(&state.to_string(), refused)?;
            check_eq!(RULE, error.bad_wr, 0);
        }
        setup.no_completion(a.end.recv_cq, RULE)?;
    }
    Ok(())
}

scenario!(target_takes_no_work: "XRC-03"; needs XRC);
fn target_takes_no_work(setup: &Setup<'_>) -> Result {
    for state in STATES {
        let (_, b) = FreshQp::pair(setup, QpType::XrcSend)?;
        b.reach(state)?;
        let data = [b.end.sge(0, 8)];
        let number = setup.srq_num(b.end.srq())?;
        for wr in [
            SendWr::send(1, &data),
            SendWr::send(1, &[]).to_srq(number),
            SendWr::rdma_write(1, &data, b.end.mem.remote(0)).to_srq(number),
        ] {
            let posted = setup.post_send(b.end.qp, &[wr]);
            let refused = expect_err_among(posted, &NO_QUEUE, RULE).map(drop);
            in_case(&format!("a send in {state}"), refused)?;
        }
        let posted = setup.post_recv(b.end.qp, &[RecvWr::new(1, &data)]);
        let refused = expect_err_among(posted, &NO_QUEUE, RULE).map(drop);
        in_case(&format!("a receive in {state}"), refused)?;
        setup.no_completion(b.end.recv_cq, RULE)?;
    }
    let pair = setup.pair(PairOptions::of(QpType::XrcSend))?;
    let _ = setup.post_send(pair.b.qp, &[SendWr::send(1, &[])]);
    pair.still_works(RULE)
}

scenario!(queues_that_are_not_there_have_no_sizes: "XRC-09"; needs XRC);
fn queues_that_are_not_there_have_no_sizes(setup: &Setup<'_>) -> Result {
    const RULE: &str = "XRC-09";
    let Pair { a, b } = setup.pair(PairOptions::of(QpType::XrcSend))?;
    let asked = QpCap {
        max_recv_wr: 7,
        max_recv_sge: 2,
        ..QpCap::default()
    };
    for recv_cq in [a.recv_cq, Cq::default()] {
        let init = QpInit::new(QpType::XrcSend, a.send_cq, recv_cq).cap(asked);
        let sender = setup.create_qp(a.pd, &init).rule(RULE)?;
        let cap = setup.query_qp(sender, QpAttrMask::CAP)?.init.cap;
        let seen = (cap.max_recv_wr, cap.max_recv_sge);
        check_eq!(RULE, seen, (0, 0), "receives and their entries");
        check!(RULE, cap.max_send_wr > 0, "room for sends", "none");
        setup.destroy_qp(sender, setup.wait()).rule(RULE)?;
    }
    let cap = setup.query_qp(b.qp, QpAttrMask::CAP)?.init.cap;
    let none = QpCap {
        max_send_wr: 0,
        max_recv_wr: 0,
        max_send_sge: 0,
        max_recv_sge: 0,
        max_inline_data: 0,
    };
    check_eq!(RULE, cap, none, "the sizes of the target");
    Ok(())
}

scenario!(srq_of_a_domain_is_for_no_qp_of_rc: "QP-CREATE-04"; needs XRC);
fn srq_of_a_domain_is_for_no_qp_of_rc(setup: &Setup<'_>) -> Result {
    const RULE: &str = "QP-CREATE-04";
    let pair = setup.pair(PairOptions::of(QpType::XrcSend))?;
    let Pair { b, .. } = pair;
    let init = QpInit::new(QpType::Rc, b.send_cq, b.recv_cq).srq(b.srq());
    expect_err_among(setup.create_qp(b.pd, &init), &[ErrorKind::Invalid], RULE)?;
    pair.still_works(RULE)
}

scenario!(attributes_of_the_other_half_are_ignored: "XRC-08"; needs MODIFY_CONNECT, XRC);
/// With values that nothing could have.
fn attributes_of_the_other_half_are_ignored(setup: &Setup<'_>) -> Result {
    const RULE: &str = "XRC-08";
    let (mut a, mut b) = FreshQp::pair(setup, QpType::XrcSend)?;
    a.attr = QpAttr {
        max_dest_rd_atomic: 255,
        min_rnr_timer: 255,
        ..a.attr
    };
    b.attr = QpAttr {
        max_rd_atomic: 255,
        retry_cnt: 255,
        rnr_retry: 255,
        ..b.attr
    };
    for qp in [&mut b, &mut a] {
        let qp_type = qp.end.qp_type;
        let ignored = transition::ignored(qp_type);
        let mut from = QpState::Reset;
        for to in [QpState::Init, QpState::Rtr, QpState::Rts, QpState::Rts] {
            let changed = qp.change(to, required(qp_type, from, to) | ignored);
            in_case(&format!("{qp_type} to {to}"), changed.rule(RULE))?;
            check_eq!(RULE, setup.state(qp.end.qp)?, to);
            from = to;
        }
    }
    b.end.recv(1, 8)?;
    a.end.send(2, 8)?;
    for cq in [a.end.send_cq, b.end.recv_cq] {
        setup.successes(cq, 1).rule(RULE)?;
    }
    Ok(())
}
