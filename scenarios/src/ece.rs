//! Enhanced connection establishment: the options of queue pairs. What rdma_cm does with them is in
//! `cm::ece`.

use verbs_api::{Ece, ErrorKind, Qp, QpAttrMask, QpState, QpType, SendWr};

use crate::failure::{check, check_eq, in_case};
use crate::fresh_qp::FreshQp;
use crate::{Claim, OfRule, Result, Scenario, Setup, expect_err};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    new_queue_pair_has_the_options_of_its_device,
    device_takes_the_options_that_it_supports,
    asked_options_wait_for_the_next_modification,
    last_options_that_were_asked_for_count,
    options_of_a_connected_queue_pair_change,
    wrong_options_are_refused,
];

/// The options that a queue pair has now.
fn options(setup: &Setup<'_>, qp: Qp, rule: impl Into<Claim>) -> Result<u32> {
    Ok(setup.query_ece(qp).rule(rule)?.options)
}

/// The lowest of these options.
pub(crate) const fn lowest(options: u32) -> u32 {
    options & options.wrapping_neg()
}

scenario!(new_queue_pair_has_the_options_of_its_device: "ECE-01"; needs ECE, MODIFY_CONNECT);
fn new_queue_pair_has_the_options_of_its_device(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ECE-01";
    let (a, b) = FreshQp::pair(setup, QpType::Rc)?;
    let own = setup.query_ece(a.end.qp).rule(RULE)?;
    check!(RULE, own.vendor_id != 0, "a vendor", "{own:?}");
    check_eq!(RULE, own.comp_mask, 0);
    let other = setup.query_ece(b.end.qp).rule(RULE)?;
    check_eq!(RULE, other, own, "the options of another queue pair");
    for state in [QpState::Init, QpState::Rtr, QpState::Rts] {
        a.reach(state)?;
        let now = setup.query_ece(a.end.qp).rule(RULE)?;
        check_eq!(RULE, now, own, format!("the options in {state}"));
    }
    Ok(())
}

scenario!(device_takes_the_options_that_it_supports: "ECE-02"; needs ECE, MODIFY_CONNECT);
/// Data flows with any of them.
fn device_takes_the_options_that_it_supports(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ECE-02";
    let own = setup.query_ece(FreshQp::new(setup, QpType::Rc)?.end.qp)?;
    let every = [0, lowest(own.options), own.options, !own.options, u32::MAX];
    for asked in every {
        let (a, b) = FreshQp::pair(setup, QpType::Rc)?;
        for qp in [a.end.qp, b.end.qp] {
            let asked = Ece::new(own.vendor_id, asked);
            setup.set_ece(qp, &asked).rule(RULE)?;
        }
        let expected = Ece::new(own.vendor_id, asked & own.options);
        for state in [QpState::Init, QpState::Rtr, QpState::Rts] {
            a.reach(state)?;
            b.reach(state)?;
            let now = setup.query_ece(a.end.qp).rule(RULE)?;
            check_eq!(RULE, now, expected, format!("of {asked:#x} in {state}"));
        }
        let sends = || {
            b.end.recv(1, 8)?;
            a.post(&[SendWr::send(2, &[a.end.sge(0, 8)])])?;
            setup.successes(b.end.recv_cq, 1).rule(RULE).map(drop)
        };
        in_case(&format!("with {asked:#x}"), sends())?;
    }
    Ok(())
}

scenario!(asked_options_wait_for_the_next_modification: "ECE-03"; needs ECE, MODIFY_CONNECT);
fn asked_options_wait_for_the_next_modification(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ECE-03";
    let fresh = FreshQp::new(setup, QpType::Rc)?;
    let qp = fresh.end.qp;
    let own = setup.query_ece(qp)?;
    setup.set_ece(qp, &own)?;
    let none = Ece::new(own.vendor_id, 0);
    let now = setup.query_ece(qp).rule(RULE)?;
    check_eq!(RULE, now, none, "the options that were asked for");
    // A modification that is refused does not count.
    let refused = fresh.change(QpState::Rts, QpAttrMask::STATE);
    expect_err(refused, ErrorKind::Invalid, Claim::NONE)?;
    check_eq!(RULE, options(setup, qp, RULE)?, 0, "after a refusal");
    fresh.reach(QpState::Init)?;
    let now = setup.query_ece(qp).rule(RULE)?;
    check_eq!(RULE, now, own, "the options after a modification");
    Ok(())
}

scenario!(last_options_that_were_asked_for_count: "ECE-04"; needs ECE, MODIFY_CONNECT);
fn last_options_that_were_asked_for_count(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ECE-04";
    let fresh = FreshQp::new(setup, QpType::Rc)?;
    let qp = fresh.end.qp;
    let own = setup.query_ece(qp)?;
    let one = Ece::new(own.vendor_id, lowest(own.options));
    for asked in [own, one] {
        setup.set_ece(qp, &asked).rule(RULE)?;
    }
    fresh.reach(QpState::Init)?;
    let now = options(setup, qp, RULE)?;
    check_eq!(RULE, now, one.options, "the options");
    Ok(())
}

scenario!(options_of_a_connected_queue_pair_change: "ECE-04"; needs ECE, MODIFY_CONNECT);
fn options_of_a_connected_queue_pair_change(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ECE-04";
    let fresh = FreshQp::new(setup, QpType::Rc)?;
    let qp = fresh.end.qp;
    let own = setup.query_ece(qp)?;
    fresh.reach(QpState::Rts)?;
    for asked in [0, own.options] {
        let asked = Ece::new(own.vendor_id, asked);
        setup.set_ece(qp, &asked).rule(RULE)?;
        fresh.change(QpState::Rts, QpAttrMask::MIN_RNR_TIMER)?;
        let now = options(setup, qp, RULE)?;
        check_eq!(RULE, now, asked.options, "the options");
    }
    Ok(())
}

scenario!(wrong_options_are_refused: "ECE-05"; needs ECE, MODIFY_CONNECT);
/// The queue pair keeps what it has, and what it was asked for.
fn wrong_options_are_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ECE-05";
    let fresh = FreshQp::new(setup, QpType::Rc)?;
    let qp = fresh.end.qp;
    let own = setup.query_ece(qp)?;
    let with_vendor = |vendor_id| Ece { vendor_id, ..own };
    let with_mask = |comp_mask| Ece { comp_mask, ..own };
    let each = || {
        for (ece, kind) in [
            (with_vendor(0), ErrorKind::NotSupported),
            (with_vendor(own.vendor_id ^ 1), ErrorKind::Invalid),
            (with_vendor(own.vendor_id | 1 << 31), ErrorKind::Invalid),
            (with_mask(1), ErrorKind::Invalid),
            (with_mask(1 << 31), ErrorKind::Invalid),
        ] {
            let refused = expect_err(setup.set_ece(qp, &ece), kind, RULE);
            in_case(&format!("{ece:x?}"), refused.map(drop))?;
        }
        Ok::<_, crate::Failure>(())
    };
    each()?;
    let now = setup.query_ece(qp).rule(RULE)?;
    check_eq!(RULE, now, own, "the options of a new queue pair");
    let asked = Ece::new(own.vendor_id, lowest(own.options));
    setup.set_ece(qp, &asked)?;
    each()?;
    fresh.reach(QpState::Init)?;
    let now = options(setup, qp, RULE)?;
    check_eq!(RULE, now, asked.options, "the options that were asked for");
    Ok(())
}
