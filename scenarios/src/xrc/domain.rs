//! Which domain is opened, and when it is closed.

use verbs_api::{Capabilities, CqInit, Error, ErrorKind, QpInit, QpType, SrqInit, Xrcd, XrcdInit};

use super::{Named, beside_b};
use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::{Bench, OfRule, PairOptions, Result, expect_err, expect_err_among};

/// A domain that is not there: as `open` says, or as Linux does.
const NONE: [ErrorKind; 3] = [
    ErrorKind::NotFound,
    ErrorKind::WouldBlock,
    ErrorKind::Invalid,
];

scenario!(domain_opens_or_is_refused_as_not_supported: "XRC-07", "QP-CREATE-03");
fn domain_opens_or_is_refused_as_not_supported(bench: &Bench<'_>) -> Result {
    const RULE: &str = "XRC-07";
    let context = bench.ctx_a();
    let has = bench.capabilities(context)?.contains(Capabilities::XRC);
    check_eq!(
        RULE,
        bench.query_device(context)?.xrc,
        has,
        "what the device says of XRC"
    );
    let end = bench.end(context, PairOptions::default())?;
    let sender = QpInit::new(QpType::XrcSend, end.send_cq, end.recv_cq);
    if has {
        let xrcd = bench.open_xrcd(context, &XrcdInit::private()).rule(RULE)?;
        bench.close_xrcd(xrcd).rule(RULE)?;
        let qp = bench.create_qp(end.pd, &sender).rule("QP-CREATE-03")?;
        return Ok(bench.destroy_qp(qp, bench.wait())?);
    }
    let lacking = [ErrorKind::NotSupported, ErrorKind::NotImplemented];
    expect_err_among(
        bench.open_xrcd(context, &XrcdInit::private()),
        &lacking,
        RULE,
    )?;
    let kinds = [lacking[0], lacking[1], ErrorKind::Invalid];
    expect_err_among(bench.create_qp(end.pd, &sender), &kinds, "QP-CREATE-03")?;
    Ok(())
}

/// Whether two handles are of one domain: a queue pair of one is found by the other.
fn share(bench: &Bench<'_>, a: Xrcd, b: Xrcd) -> Result<bool> {
    let qp = bench.create_xrc_recv_qp(a)?;
    let found = match bench.open_qp(b, bench.qp_num(qp)?) {
        Ok(again) => {
            bench.destroy_qp(again, bench.wait())?;
            true
        }
        Err(error) if [ErrorKind::Invalid, ErrorKind::NotFound].contains(&error.kind()) => false,
        Err(error) => return Err(error.into()),
    };
    bench.destroy_qp(qp, bench.wait())?;
    Ok(found)
}

scenario!(private_domains_are_apart: "XRC-01"; needs XRC);
fn private_domains_are_apart(bench: &Bench<'_>) -> Result {
    const RULE: &str = "XRC-01";
    let context = bench.ctx_b();
    // Without a file there is nothing to be found, so it is made in any case.
    let mut found = XrcdInit::private();
    found.create = false;
    let domain = bench.open_xrcd(context, &found).rule(RULE)?;
    bench.close_xrcd(domain).rule(RULE)?;
    let open = || bench.open_xrcd(context, &XrcdInit::private());
    let (one, other) = (open()?, open()?);
    check_eq!(RULE, share(bench, one, one)?, true, "one domain");
    check_eq!(RULE, share(bench, one, other)?, false, "two domains");
    for xrcd in [one, other] {
        bench.close_xrcd(xrcd).rule(RULE)?;
    }
    Ok(())
}

scenario!(file_names_one_domain_in_all_contexts: "XRC-01"; needs XRC);
fn file_names_one_domain_in_all_contexts(bench: &Bench<'_>) -> Result {
    const RULE: &str = "XRC-01";
    let (file, second) = (Named::new("file"), Named::new("file2"));
    let neighbour = beside_b(bench)?;
    let first = bench.open_xrcd(bench.ctx_b(), &file.init().create())?;
    let private = bench.open_xrcd(bench.ctx_b(), &XrcdInit::private())?;
    let of_second = bench.open_xrcd(neighbour, &second.init().create())?;
    for (what, context) in [("same", bench.ctx_b()), ("another", neighbour)] {
        let again = bench.open_xrcd(context, &file.init().create()).rule(RULE)?;
        check!(RULE, again != first, "a handle of its own", "{again}");
        for (xrcd, expected) in [(first, true), (private, false), (of_second, false)] {
            let seen = share(bench, xrcd, again)?;
            check_eq!(
                RULE,
                seen,
                expected,
                format!("{xrcd}, in the {what} context")
            );
        }
        bench.close_xrcd(again).rule(RULE)?;
    }
    Ok(())
}

scenario!(domain_is_made_and_found_as_its_flags_say: "XRC-01", "XRC-02"; needs XRC);
fn domain_is_made_and_found_as_its_flags_say(bench: &Bench<'_>) -> Result {
    let file = Named::new("flags");
    let context = bench.ctx_b();
    let (find, make) = (file.init(), file.init().create());
    let new = make.exclusive();
    let none = |rule| {
        let found = bench.open_xrcd(context, &find);
        expect_err_among(found, &NONE, rule).map(drop)
    };
    none("XRC-01")?;
    for round in 0..2 {
        let opened = bench.open_xrcd(context, &new).rule("XRC-01");
        let first = value_in_case(&format!("round {round}"), opened)?;
        let exists = [ErrorKind::Invalid, ErrorKind::from_errno(17)];
        for _ in 0..2 {
            expect_err_among(bench.open_xrcd(context, &new), &exists, "XRC-01")?;
        }
        let more = [find, make].map(|init| bench.open_xrcd(context, &init).rule("XRC-01"));
        bench.close_xrcd(first).rule("XRC-02")?;
        for xrcd in more {
            expect_err_among(bench.open_xrcd(context, &new), &exists, "XRC-02")?;
            bench.close_xrcd(xrcd?).rule("XRC-02")?;
        }
        none("XRC-02")?;
    }
    Ok(())
}

scenario!(domain_is_busy_while_it_is_used: "XRC-02", "LIFE-01"; needs XRC);
fn domain_is_busy_while_it_is_used(bench: &Bench<'_>) -> Result {
    const RULE: &str = "XRC-02";
    let xrcd = bench.open_xrcd(bench.ctx_b(), &XrcdInit::private())?;
    let busy = |what: &str| {
        let closed = expect_err(bench.close_xrcd(xrcd), ErrorKind::Busy, RULE);
        in_case(what, closed.map(drop))
    };
    let pd = bench.alloc_pd(bench.ctx_b())?;
    let cq = bench.create_cq(bench.ctx_b(), &CqInit::new(16))?;
    let srq = bench.create_srq(pd, &SrqInit::new(4).xrc(xrcd, cq))?;
    busy("an srq")?;
    let target = bench.create_xrc_recv_qp(xrcd)?;
    busy("an srq and a qp")?;
    bench.destroy_srq(srq, bench.wait())?;
    busy("a qp")?;
    let opened = bench.open_qp(xrcd, bench.qp_num(target)?)?;
    bench.destroy_qp(target, bench.wait())?;
    busy("a qp that was opened")?;
    // It has not changed.
    let srq = bench.create_srq(pd, &SrqInit::new(4).xrc(xrcd, cq));
    bench.destroy_srq(srq.rule("LIFE-01")?, bench.wait())?;
    bench.destroy_qp(opened, bench.wait())?;
    bench.close_xrcd(xrcd).rule("LIFE-01")
}

scenario!(domain_lives_until_its_last_close: "XRC-02"; needs XRC);
fn domain_lives_until_its_last_close(bench: &Bench<'_>) -> Result {
    const RULE: &str = "XRC-02";
    let file = Named::new("last");
    let neighbour = beside_b(bench)?;
    let one = bench.open_xrcd(bench.ctx_b(), &file.init().create())?;
    let other = bench.open_xrcd(neighbour, &file.init())?;
    let target = bench.create_xrc_recv_qp(one)?;
    let number = bench.qp_num(target)?;
    let opened = bench.open_qp(other, number)?;
    bench.destroy_qp(target, bench.wait())?;
    bench.close_xrcd(one).rule(RULE)?;
    // The domain is there, with what is open in it.
    let again = bench.open_qp(other, number).rule(RULE)?;
    let third = bench.open_xrcd(bench.ctx_b(), &file.init()).rule(RULE)?;
    check_eq!(RULE, share(bench, third, other)?, true, "one domain");
    for qp in [again, opened] {
        bench.destroy_qp(qp, bench.wait())?;
    }
    for xrcd in [third, other] {
        bench.close_xrcd(xrcd).rule(RULE)?;
    }
    let gone = bench.open_xrcd(neighbour, &file.init());
    expect_err_among(gone, &NONE, RULE).map(drop)
}

scenario!(domain_goes_with_the_context_that_has_it_open: "XRC-02", "LIFE-07"; needs XRC);
fn domain_goes_with_the_context_that_has_it_open(bench: &Bench<'_>) -> Result {
    let file = Named::new("close");
    let neighbour = beside_b(bench)?;
    let xrcd = bench.open_xrcd(neighbour, &file.init().create())?;
    let (pd, cq) = (
        bench.alloc_pd(neighbour)?,
        bench.create_cq(neighbour, &CqInit::new(16))?,
    );
    bench.create_srq(pd, &SrqInit::new(4).xrc(xrcd, cq))?;
    bench.create_xrc_recv_qp(xrcd)?;
    bench.close_device(neighbour).rule("LIFE-07")?;
    let gone: Result<_, Error> = bench.open_xrcd(bench.ctx_b(), &file.init());
    expect_err_among(gone, &NONE, "XRC-02").map(drop)
}

scenario!(srq_keeps_its_cq_and_its_domain_busy: "CQ-DESTROY-06", "LIFE-01", "PD-01"; needs XRC);
fn srq_keeps_its_cq_and_its_domain_busy(bench: &Bench<'_>) -> Result {
    let context = bench.ctx_b();
    let xrcd = bench.open_xrcd(context, &XrcdInit::private())?;
    let pd = bench.alloc_pd(context)?;
    let cq = bench.create_cq(context, &CqInit::new(16))?;
    let srq = bench.create_srq(pd, &SrqInit::new(4).xrc(xrcd, cq))?;
    let destroyed = bench.destroy_cq(cq, bench.wait());
    expect_err(destroyed, ErrorKind::Busy, "CQ-DESTROY-06")?;
    expect_err(bench.dealloc_pd(pd), ErrorKind::Busy, "PD-01")?;
    bench.destroy_srq(srq, bench.wait()).rule("LIFE-01")?;
    bench.destroy_cq(cq, bench.wait()).rule("CQ-DESTROY-06")?;
    bench.dealloc_pd(pd).rule("PD-01")?;
    bench.close_xrcd(xrcd).rule("LIFE-01")
}

scenario!(dead_device_lets_its_domain_be_closed_and_no_more: "ASYNC-10"; needs XRC, LAB);
fn dead_device_lets_its_domain_be_closed_and_no_more(bench: &Bench<'_>) -> Result {
    const RULE: &str = "ASYNC-10";
    let context = bench.ctx_b();
    let xrcd = bench.open_xrcd(context, &XrcdInit::private())?;
    let end = bench.xrc_end(xrcd, None, PairOptions::of(QpType::XrcSend))?;
    bench.lab().kill_device(context)?;
    let dead = |what: &str, call: verbs_api::Result<()>| {
        in_case(what, expect_err(call, ErrorKind::Io, RULE).map(drop))
    };
    let opened = bench.open_xrcd(context, &XrcdInit::private());
    dead("open_xrcd", opened.map(drop))?;
    let made = bench.create_xrc_recv_qp(xrcd);
    dead("create_xrc_recv_qp", made.map(drop))?;
    dead("open_qp", bench.open_qp(xrcd, end.qp_num).map(drop))?;
    let init = SrqInit::new(4).xrc(xrcd, end.recv_cq);
    dead("create_srq", bench.create_srq(end.pd, &init).map(drop))?;
    bench.destroy_qp(end.qp, bench.wait()).rule(RULE)?;
    bench.destroy_srq(end.srq(), bench.wait()).rule(RULE)?;
    bench.close_xrcd(xrcd).rule(RULE)
}
