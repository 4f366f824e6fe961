//! Which domain is opened, and when it is closed.

use verbs_api::{Capabilities, CqInit, Error, ErrorKind, QpInit, QpType, SrqInit, Xrcd, XrcdInit};

use super::{Named, beside_b};
use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::{OfRule, PairOptions, Result, Setup, expect_err, expect_err_among};

/// A domain that is not there: as `open` says, or as Linux does.
const NONE: [ErrorKind; 3] = [
    ErrorKind::NotFound,
    ErrorKind::WouldBlock,
    ErrorKind::Invalid,
];

scenario!(domain_opens_or_is_refused_as_not_supported: "XRC-07", "QP-CREATE-03");
fn domain_opens_or_is_refused_as_not_supported(setup: &Setup<'_>) -> Result {
    const RULE: &str = "XRC-07";
    let context = setup.ctx_a();
    let has = setup.capabilities(context)?.contains(Capabilities::XRC);
    check_eq!(
        RULE,
        setup.query_device(context)?.xrc,
        has,
        "what the device says of XRC"
    );
    let end = setup.end(context, PairOptions::default())?;
    let sender = QpInit::new(QpType::XrcSend, end.send_cq, end.recv_cq);
    if has {
        let xrcd = setup.open_xrcd(context, &XrcdInit::private()).rule(RULE)?;
        setup.close_xrcd(xrcd).rule(RULE)?;
        let qp = setup.create_qp(end.pd, &sender).rule("QP-CREATE-03")?;
        return Ok(setup.destroy_qp(qp, setup.wait())?);
    }
    let lacking = [ErrorKind::NotSupported, ErrorKind::NotImplemented];
    expect_err_among(
        setup.open_xrcd(context, &XrcdInit::private()),
        &lacking,
        RULE,
    )?;
    let kinds = [lacking[0], lacking[1], ErrorKind::Invalid];
    expect_err_among(setup.create_qp(end.pd, &sender), &kinds, "QP-CREATE-03")?;
    Ok(())
}

/// Whether two handles are of one domain: a queue pair of one is found by the other.
fn share(setup: &Setup<'_>, a: Xrcd, b: Xrcd) -> Result<bool> {
    let qp = setup.create_xrc_recv_qp(a)?;
    let found = match setup.open_qp(b, setup.qp_num(qp)?) {
        Ok(again) => {
            setup.destroy_qp(again, setup.wait())?;
            true
        }
        Err(error) if [ErrorKind::Invalid, ErrorKind::NotFound].contains(&error.kind()) => false,
        Err(error) => return Err(error.into()),
    };
    setup.destroy_qp(qp, setup.wait())?;
    Ok(found)
}

scenario!(private_domains_are_apart: "XRC-01"; needs XRC);
fn private_domains_are_apart(setup: &Setup<'_>) -> Result {
    const RULE: &str = "XRC-01";
    let context = setup.ctx_b();
    // Without a file there is nothing to be found, so it is made in any case.
    let mut found = XrcdInit::private();
    found.create = false;
    let domain = setup.open_xrcd(context, &found).rule(RULE)?;
    setup.close_xrcd(domain).rule(RULE)?;
    let open = || setup.open_xrcd(context, &XrcdInit::private());
    let (one, other) = (open()?, open()?);
    check_eq!(RULE, share(setup, one, one)?, true, "one domain");
    check_eq!(RULE, share(setup, one, other)?, false, "two domains");
    for xrcd in [one, other] {
        setup.close_xrcd(xrcd).rule(RULE)?;
    }
    Ok(())
}

scenario!(file_names_one_domain_in_all_contexts: "XRC-01"; needs XRC);
fn file_names_one_domain_in_all_contexts(setup: &Setup<'_>) -> Result {
    const RULE: &str = "XRC-01";
    let (file, second) = (Named::new("file"), Named::new("file2"));
    let neighbour = beside_b(setup)?;
    let first = setup.open_xrcd(setup.ctx_b(), &file.init().create())?;
    let private = setup.open_xrcd(setup.ctx_b(), &XrcdInit::private())?;
    let of_second = setup.open_xrcd(neighbour, &second.init().create())?;
    for (what, context) in [("same", setup.ctx_b()), ("another", neighbour)] {
        let again = setup.open_xrcd(context, &file.init().create()).rule(RULE)?;
        check!(RULE, again != first, "a handle of its own", "{again}");
        for (xrcd, expected) in [(first, true), (private, false), (of_second, false)] {
            let seen = share(setup, xrcd, again)?;
            check_eq!(
                RULE,
                seen,
                expected,
                format!("{xrcd}, in the {what} context")
            );
        }
        setup.close_xrcd(again).rule(RULE)?;
    }
    Ok(())
}

scenario!(domain_is_made_and_found_as_its_flags_say: "XRC-01", "XRC-02"; needs XRC);
fn domain_is_made_and_found_as_its_flags_say(setup: &Setup<'_>) -> Result {
    let file = Named::new("flags");
    let context = setup.ctx_b();
    let (find, make) = (file.init(), file.init().create());
    let new = make.exclusive();
    let none = |rule| {
        let found = setup.open_xrcd(context, &find);
        expect_err_among(found, &NONE, rule).map(drop)
    };
    none("XRC-01")?;
    for round in 0..2 {
        let opened = setup.open_xrcd(context, &new).rule("XRC-01");
        let first = value_in_case(&format!("round {round}"), opened)?;
        let exists = [ErrorKind::Invalid, ErrorKind::from_errno(17)];
        for _ in 0..2 {
            expect_err_among(setup.open_xrcd(context, &new), &exists, "XRC-01")?;
        }
        let more = [find, make].map(|init| setup.open_xrcd(context, &init).rule("XRC-01"));
        setup.close_xrcd(first).rule("XRC-02")?;
        for xrcd in more {
            expect_err_among(setup.open_xrcd(context, &new), &exists, "XRC-02")?;
            setup.close_xrcd(xrcd?).rule("XRC-02")?;
        }
        none("XRC-02")?;
    }
    Ok(())
}

scenario!(domain_is_busy_while_it_is_used: "XRC-02", "LIFE-01"; needs XRC);
fn domain_is_busy_while_it_is_used(setup: &Setup<'_>) -> Result {
    const RULE: &str = "XRC-02";
    let xrcd = setup.open_xrcd(setup.ctx_b(), &XrcdInit::private())?;
    let busy = |what: &str| {
        let closed = expect_err(setup.close_xrcd(xrcd), ErrorKind::Busy, RULE);
        in_case(what, closed.map(drop))
    };
    let pd = setup.alloc_pd(setup.ctx_b())?;
    let cq = setup.create_cq(setup.ctx_b(), &CqInit::new(16))?;
    let srq = setup.create_srq(pd, &SrqInit::new(4).xrc(xrcd, cq))?;
    busy("an srq")?;
    let target = setup.create_xrc_recv_qp(xrcd)?;
    busy("an srq and a qp")?;
    setup.destroy_srq(srq, setup.wait())?;
    busy("a qp")?;
    let opened = setup.open_qp(xrcd, setup.qp_num(target)?)?;
    setup.destroy_qp(target, setup.wait())?;
    busy("a qp that was opened")?;
    // It has not changed.
    let srq = setup.create_srq(pd, &SrqInit::new(4).xrc(xrcd, cq));
    setup.destroy_srq(srq.rule("LIFE-01")?, setup.wait())?;
    setup.destroy_qp(opened, setup.wait())?;
    setup.close_xrcd(xrcd).rule("LIFE-01")
}

scenario!(domain_lives_until_its_last_close: "XRC-02"; needs XRC);
fn domain_lives_until_its_last_close(setup: &Setup<'_>) -> Result {
    const RULE: &str = "XRC-02";
    let file = Named::new("last");
    let neighbour = beside_b(setup)?;
    let one = setup.open_xrcd(setup.ctx_b(), &file.init().create())?;
    let other = setup.open_xrcd(neighbour, &file.init())?;
    let target = setup.create_xrc_recv_qp(one)?;
    let number = setup.qp_num(target)?;
    let opened = setup.open_qp(other, number)?;
    setup.destroy_qp(target, setup.wait())?;
    setup.close_xrcd(one).rule(RULE)?;
    // The domain is there, with what is open in it.
    let again = setup.open_qp(other, number).rule(RULE)?;
    let third = setup.open_xrcd(setup.ctx_b(), &file.init()).rule(RULE)?;
    check_eq!(RULE, share(setup, third, other)?, true, "one domain");
    for qp in [again, opened] {
        setup.destroy_qp(qp, setup.wait())?;
    }
    for xrcd in [third, other] {
        setup.close_xrcd(xrcd).rule(RULE)?;
    }
    let gone = setup.open_xrcd(neighbour, &file.init());
    expect_err_among(gone, &NONE, RULE).map(drop)
}

scenario!(domain_goes_with_the_context_that_has_it_open: "XRC-02", "LIFE-07"; needs XRC);
fn domain_goes_with_the_context_that_has_it_open(setup: &Setup<'_>) -> Result {
    let file = Named::new("close");
    let neighbour = beside_b(setup)?;
    let xrcd = setup.open_xrcd(neighbour, &file.init().create())?;
    let (pd, cq) = (
        setup.alloc_pd(neighbour)?,
        setup.create_cq(neighbour, &CqInit::new(16))?,
    );
    setup.create_srq(pd, &SrqInit::new(4).xrc(xrcd, cq))?;
    setup.create_xrc_recv_qp(xrcd)?;
    setup.close_device(neighbour).rule("LIFE-07")?;
    let gone: Result<_, Error> = setup.open_xrcd(setup.ctx_b(), &file.init());
    expect_err_among(gone, &NONE, "XRC-02").map(drop)
}

scenario!(srq_keeps_its_cq_and_its_domain_busy: "CQ-DESTROY-06", "LIFE-01", "PD-01"; needs XRC);
fn srq_keeps_its_cq_and_its_domain_busy(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_b();
    let xrcd = setup.open_xrcd(context, &XrcdInit::private())?;
    let pd = setup.alloc_pd(context)?;
    let cq = setup.create_cq(context, &CqInit::new(16))?;
    let srq = setup.create_srq(pd, &SrqInit::new(4).xrc(xrcd, cq))?;
    let destroyed = setup.destroy_cq(cq, setup.wait());
    expect_err(destroyed, ErrorKind::Busy, "CQ-DESTROY-06")?;
    expect_err(setup.dealloc_pd(pd), ErrorKind::Busy, "PD-01")?;
    setup.destroy_srq(srq, setup.wait()).rule("LIFE-01")?;
    setup.destroy_cq(cq, setup.wait()).rule("CQ-DESTROY-06")?;
    setup.dealloc_pd(pd).rule("PD-01")?;
    setup.close_xrcd(xrcd).rule("LIFE-01")
}

scenario!(dead_device_lets_its_domain_be_closed_and_no_more: "ASYNC-10"; needs XRC, LAB);
fn dead_device_lets_its_domain_be_closed_and_no_more(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ASYNC-10";
    let context = setup.ctx_b();
    let xrcd = setup.open_xrcd(context, &XrcdInit::private())?;
    let end = setup.xrc_end(xrcd, None, PairOptions::of(QpType::XrcSend))?;
    setup.lab().kill_device(context)?;
    let dead = |what: &str, call: verbs_api::Result<()>| {
        in_case(what, expect_err(call, ErrorKind::Io, RULE).map(drop))
    };
    let opened = setup.open_xrcd(context, &XrcdInit::private());
    dead("open_xrcd", opened.map(drop))?;
    let made = setup.create_xrc_recv_qp(xrcd);
    dead("create_xrc_recv_qp", made.map(drop))?;
    dead("open_qp", setup.open_qp(xrcd, end.qp_num).map(drop))?;
    let init = SrqInit::new(4).xrc(xrcd, end.recv_cq);
    dead("create_srq", setup.create_srq(end.pd, &init).map(drop))?;
    setup.destroy_qp(end.qp, setup.wait()).rule(RULE)?;
    setup.destroy_srq(end.srq(), setup.wait()).rule(RULE)?;
    setup.close_xrcd(xrcd).rule(RULE)
}
