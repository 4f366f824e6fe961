//! Invalidation, by the owner and by the peer.

use verbs_api::behavior::SendInvalAnswer;
use verbs_api::{ErrorKind, MwType, QpState, SendWr, WcFlags, WcOpcode, WcStatus, inc_rkey};

use super::{LEN, WRITE, bind, bound, is_shut, opens, pair, part, sibling};
use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::{End, Failure, OfRule, Pair, Result, Setup, expect_err};

/// Invalidates a key on a queue pair, with success.
fn invalidate(setup: &Setup<'_>, end: &End<'_>, rkey: u32, rule: &'static str) -> Result {
    setup
        .post_send(end.qp, &[SendWr::local_inv(70, rkey)])
        .rule(rule)?;
    let wc = setup.one_with(end.send_cq, WcStatus::Success, rule)?;
    check_eq!("WC-04", (wc.wr_id, wc.opcode), (70, WcOpcode::LocalInv));
    Ok(())
}

/// It is refused at once, or fails and the queue pair is in error.
fn is_not_invalidated(setup: &Setup<'_>, end: &End<'_>, rkey: u32, rule: &'static str) -> Result {
    let posted = setup.post_send(end.qp, &[SendWr::local_inv(70, rkey)]);
    if posted.is_err() {
        expect_err(posted, ErrorKind::Invalid, rule)?;
        return Ok(());
    }
    let wc = setup.one(end.send_cq).rule(rule)?;
    let failed = matches!(wc.status, WcStatus::MwBindErr | WcStatus::LocQpOpErr);
    check!(rule, failed, "MW_BIND_ERR or LOC_QP_OP_ERR", "{wc}");
    check_eq!(rule, setup.state(end.qp)?, QpState::Err);
    Ok(())
}

scenario!(invalidated_window_opens_nothing_and_is_free: "MW-15", "WC-04"; needs MW);
fn invalidated_window_opens_nothing_and_is_free(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-15";
    let pair = pair(setup)?;
    let b = pair.b;
    let (mw, mut rkey) = bound(setup, &b, MwType::Type2)?;
    for _ in 0..3 {
        opens(setup, &pair, rkey, RULE)?;
        invalidate(setup, &b, rkey, RULE)?;
        let info = part(&b, b.landing(), LEN.into(), WRITE);
        let next = bind(setup, &b, mw, info).rule(RULE)?;
        check!(RULE, next != rkey, "another key", "{next:#x} again");
        rkey = next;
    }
    opens(setup, &pair, rkey, RULE)?;
    invalidate(setup, &b, rkey, RULE)?;
    is_shut(setup, &pair, rkey, RULE)
}

scenario!(window_of_type_1_is_not_invalidated_by_its_owner: "MW-16"; needs MW);
fn window_of_type_1_is_not_invalidated_by_its_owner(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-16";
    let first = pair(setup)?;
    let (_, rkey) = bound(setup, &first.b, MwType::Type1)?;
    let second = sibling(setup, &first)?;
    is_not_invalidated(setup, &second.b, rkey, RULE)?;
    opens(setup, &first, rkey, RULE)
}

scenario!(window_of_type_1_is_not_invalidated_by_a_peer: "MW-16", "MW-18"; needs MW);
fn window_of_type_1_is_not_invalidated_by_a_peer(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-16";
    let first = pair(setup)?;
    let (_, rkey) = bound(setup, &first.b, MwType::Type1)?;
    let second = sibling(setup, &first)?;
    message_fails(setup, &second, rkey, RULE)?;
    opens(setup, &first, rkey, RULE)
}

/// A Send that invalidates what it must not: the receive fails, and the send is not done.
fn message_fails(
    setup: &Setup<'_>,
    Pair { a, b }: &Pair<'_>,
    rkey: u32,
    rule: &'static str,
) -> Result {
    b.recv(1, 64)?;
    a.post(SendWr::send_with_inv(2, &[a.sge(0, LEN)], rkey))?;
    let received = setup.one(b.recv_cq).rule(rule)?;
    let failed = received.status != WcStatus::Success && received.wr_id == 1;
    check!(rule, failed, "a receive that failed", "{received}");
    let sent = setup.one(a.send_cq).rule(rule)?;
    let seen = match sent.status {
        WcStatus::RemAccessErr | WcStatus::RemOpErr => SendInvalAnswer::Nak,
        WcStatus::RetryExcErr => SendInvalAnswer::Nothing,
        WcStatus::Success => SendInvalAnswer::Ack,
        _ => {
            let expected = "SUCCESS, REM_ACCESS_ERR, REM_OP_ERR or RETRY_EXC_ERR";
            return Err(Failure::assertion(expected, sent.to_string())).rule(rule);
        }
    };
    setup.as_declared("MW-18", setup.behavior()?.nak_send_inval, seen)?;
    let state = setup.state(b.qp)?;
    check_eq!(rule, state, QpState::Err, "the receiver");
    Ok(())
}

scenario!(send_invalidates_before_its_receive_completes: "MW-17", "WC-04"; needs MW);
/// However long the message is.
fn send_invalidates_before_its_receive_completes(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-17";
    let pair = pair(setup)?;
    let Pair { a, b } = pair;
    let (mw, mut rkey) = bound(setup, &b, MwType::Type2)?;
    for length in [0, 64, 3000] {
        opens(setup, &pair, rkey, RULE)?;
        a.fill_at(64, 4, length)?;
        b.recv_at(1, 64, length)?;
        a.post(SendWr::send_with_inv(2, &[a.sge(64, length)], rkey))
            .rule(RULE)?;
        let received = setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
        check_eq!(
            RULE,
            (received.opcode, received.byte_len),
            (WcOpcode::Recv, length)
        );
        b.expect_data_at(64, 4, length, RULE)?;
        let sent = setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        check_eq!("WC-04", sent.opcode, WcOpcode::Send);
        // It is free: otherwise it could not be bound.
        let info = part(&b, b.landing(), LEN.into(), WRITE);
        let next = bind(setup, &b, mw, info);
        rkey = value_in_case(&format!("{length} bytes"), next.rule(RULE))?;
    }
    b.recv_at(1, 64, LEN)?;
    a.post(SendWr::send_with_inv(2, &[], rkey))?;
    setup.successes(b.recv_cq, 1)?;
    setup.successes(a.send_cq, 1)?;
    is_shut(setup, &pair, rkey, RULE)
}

scenario!(completion_names_the_key_that_was_invalidated: "WC-12"; needs MW);
fn completion_names_the_key_that_was_invalidated(setup: &Setup<'_>) -> Result {
    const RULE: &str = "WC-12";
    let Pair { a, b } = pair(setup)?;
    let (_, rkey) = bound(setup, &b, MwType::Type2)?;
    for wr_id in [1, 2] {
        b.recv(wr_id, LEN)?;
    }
    a.post(SendWr::send_with_inv(3, &[a.sge(0, LEN)], rkey))?;
    a.send(4, LEN)?;
    let received = setup.successes(b.recv_cq, 2)?;
    let both = WcFlags::WITH_INV | WcFlags::WITH_IMM;
    let flags = [received[0].wc_flags & both, received[1].wc_flags & both];
    check_eq!(
        RULE,
        flags,
        [WcFlags::WITH_INV, WcFlags::empty()],
        "the flags"
    );
    check_eq!(RULE, received[0].invalidated_rkey(), Some(rkey), "the key");
    Ok(())
}

scenario!(send_that_invalidates_what_is_no_window_fails: "MW-18"; needs MW);
fn send_that_invalidates_what_is_no_window_fails(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-18";
    for case in ["another key of the window", "a region", "nothing"] {
        let pair = pair(setup)?;
        let (_, rkey) = bound(setup, &pair.b, MwType::Type2)?;
        let bad = match case {
            "a region" => pair.b.mem.rkey,
            "nothing" => rkey ^ 0x000f_ff00,
            _ => inc_rkey(rkey),
        };
        in_case(case, message_fails(setup, &pair, bad, RULE))?;
    }
    Ok(())
}

scenario!(send_does_not_invalidate_the_window_of_another_queue_pair: "MW-18"; needs MW);
fn send_does_not_invalidate_the_window_of_another_queue_pair(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-18";
    let first = pair(setup)?;
    let (_, rkey) = bound(setup, &first.b, MwType::Type2)?;
    let second = sibling(setup, &first)?;
    message_fails(setup, &second, rkey, RULE)?;
    opens(setup, &first, rkey, RULE)
}

scenario!(window_is_invalidated_on_the_queue_pair_of_its_bind: "MW-25"; needs MW);
fn window_is_invalidated_on_the_queue_pair_of_its_bind(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MW-25";
    let first = pair(setup)?;
    let (_, rkey) = bound(setup, &first.b, MwType::Type2)?;
    let second = sibling(setup, &first)?;
    is_not_invalidated(setup, &second.b, rkey, RULE)?;
    opens(setup, &first, rkey, RULE)
}
