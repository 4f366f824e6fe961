//! Parent domains and thread domains.

#[cfg(unix)]
use std::os::fd::AsFd;

use verbs_api::{
    Access, Advice, AdviseFlags, Capabilities, Context, CqInit, CqInitEx, DmInit, ErrorKind, Mr,
    MrChange, MrInit, MrMemory, MwType, Pd, QpInit, QpType, RecvWr, SendWr, SrqInit, Td, WcStatus,
};

use crate::bad_input::{open_again, refused};
use crate::end::EndParts;
use crate::failure::in_case;
use crate::mw::{bind, opens, part};
use crate::{End, OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    objects_of_all_its_domains_work_together,
    regions_of_each_kind_are_made_in_it,
    windows_of_it_open_regions_of_its_domain,
    address_handle_of_it_is_for_queue_pairs_of_its_domain,
    srq_of_it_serves_queue_pairs_of_its_domain,
    objects_of_another_domain_do_not_work_with_it,
    parent_domain_keeps_its_domains_in_use,
    what_is_made_in_it_keeps_it_in_use,
    region_moves_from_one_domain_to_the_other,
    domains_that_do_not_fit_are_refused,
    parent_domain_goes_with_its_context,
    dead_device_lets_its_domains_be_freed_and_no_more,
];

/// A protection domain, and parent domains: with a thread domain, without, and of the first.
struct Family {
    pd: Pd,
    td: Td,
    parent: Pd,
    plain: Pd,
    second: Pd,
}

fn family(setup: &Setup<'_>, context: Context) -> Result<Family> {
    let (pd, td) = (setup.alloc_pd(context)?, setup.alloc_td(context)?);
    let parent = setup.alloc_parent_domain(pd, Some(td))?;
    Ok(Family {
        pd,
        td,
        parent,
        plain: setup.alloc_parent_domain(pd, None)?,
        second: setup.alloc_parent_domain(parent, None)?,
    })
}

/// An end with a queue pair of one domain, and a region of another.
fn end_of<'s>(setup: &'s Setup<'_>, of_qp: Pd, of_mr: Pd) -> Result<End<'s>> {
    let options = PairOptions::default();
    setup.end_of(parts_of(setup, of_qp, of_mr, options)?, options)
}

fn parts_of(setup: &Setup<'_>, of_qp: Pd, of_mr: Pd, options: PairOptions) -> Result<EndParts> {
    let cq = || setup.create_cq(verbs_api::Handle::context(of_qp), &CqInit::new(64));
    Ok(EndParts {
        pd: of_qp,
        mr: setup.alloc_mr(of_mr, options.mem, options.access)?,
        send_cq: cq()?,
        recv_cq: cq()?,
        srq: None,
    })
}

scenario!(objects_of_all_its_domains_work_together: "PD-05"; needs PARENT_DOMAIN);
fn objects_of_all_its_domains_work_together(setup: &Setup<'_>) -> Result {
    const RULE: &str = "PD-05";
    let here = family(setup, setup.ctx_a())?;
    let there = family(setup, setup.ctx_b())?;
    let pairs = |of: &Family| {
        [
            (of.parent, of.pd),
            (of.pd, of.parent),
            (of.parent, of.plain),
            (of.second, of.pd),
            (of.plain, of.second),
        ]
    };
    for ((qp_a, mr_a), (qp_b, mr_b)) in pairs(&here).into_iter().zip(pairs(&there)) {
        let case = format!("a queue pair of {qp_a} and a region of {mr_a}");
        let (a, b) = (end_of(setup, qp_a, mr_a)?, end_of(setup, qp_b, mr_b)?);
        let pair = setup.connect(a, b, PairOptions::default())?;
        in_case(&case, pair.still_works(RULE))?;
        let Pair { a, b } = pair;
        a.fill(3, 64)?;
        a.write(1, 64)?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        in_case(&case, b.expect_data(3, 64, RULE))?;
    }
    Ok(())
}

scenario!(regions_of_each_kind_are_made_in_it: "PD-05"; needs PARENT_DOMAIN);
/// A queue pair of its domain sends their bytes.
fn regions_of_each_kind_are_made_in_it(setup: &Setup<'_>) -> Result {
    const RULE: &str = "PD-05";
    let here = family(setup, setup.ctx_a())?;
    let a = end_of(setup, here.pd, here.pd)?;
    let b = setup.end(setup.ctx_b(), PairOptions::default())?;
    let Pair { a, .. } = setup.connect(a, b, PairOptions::default())?;
    for (what, mr) in regions_in(setup, here.parent).rule(RULE)? {
        let bytes = [setup.query_mr(mr)?.sge(0, 64)];
        a.post(SendWr::rdma_write(1, &bytes, a.remote()))?;
        let done = setup.one_with(a.send_cq, WcStatus::Success, RULE);
        in_case(what, done.map(drop))?;
    }
    Ok(())
}

/// A region of each kind that the device has.
fn regions_in(setup: &Setup<'_>, pd: Pd) -> Result<Vec<(&'static str, Mr)>> {
    const SIZE: usize = 64 << 10;
    let context = verbs_api::Handle::context(pd);
    let can = setup.capabilities(context)?;
    let pinned = setup.alloc_mr(pd, SIZE, Access::empty())?;
    let part = MrInit::new(64, Access::empty()).memory(MrMemory::Of(pinned, 0));
    let mut made = vec![("pinned", pinned), ("part", setup.alloc_mr_as(pd, &part)?)];
    if can.contains(Capabilities::NULL_MR) {
        made.push(("null", setup.alloc_null_mr(pd)?));
    }
    if can.contains(Capabilities::REREG_MR) {
        let mr = setup.alloc_mr(setup.alloc_pd(context)?, SIZE, Access::empty())?;
        let change = MrChange {
            pd: Some(pd),
            ..MrChange::default()
        };
        setup.rereg_mr(mr, &change).map_err(|failed| failed.error)?;
        made.push(("from another domain", mr));
    }
    if can.contains(Capabilities::ODP) {
        let mr = setup.alloc_mr(pd, SIZE, Access::ON_DEMAND)?;
        let all = setup.query_mr(mr)?.sge(0, SIZE as u32);
        setup.advise_mr(pd, Advice::Prefetch, AdviseFlags::FLUSH, &[all])?;
        made.push(("on-demand", mr));
    }
    if can.contains(Capabilities::DEVICE_MEMORY) {
        let dm = setup.alloc_dm(context, &DmInit::new(64))?;
        let mr = setup.reg_dm_mr(pd, dm, 0, 64, Access::ZERO_BASED)?;
        made.push(("device memory", mr));
    }
    #[cfg(unix)]
    if can.contains(Capabilities::DMABUF) {
        let fd = setup.export_dmabuf(context, SIZE)?;
        let mr = setup.reg_dmabuf_mr(pd, 0, SIZE, 0, fd.as_fd(), Access::empty())?;
        made.push(("dma-buf", mr));
    }
    Ok(made)
}

scenario!(windows_of_it_open_regions_of_its_domain: "PD-05"; needs PARENT_DOMAIN);
fn windows_of_it_open_regions_of_its_domain(setup: &Setup<'_>) -> Result {
    const RULE: &str = "PD-05";
    let can = setup.capabilities(setup.ctx_b())?;
    let access = Access::ALL_RDMA | Access::MW_BIND;
    let options = PairOptions {
        access,
        ..PairOptions::default()
    };
    for (mw_type, needed) in [
        (MwType::Type1, Capabilities::MW_TYPE_1),
        (MwType::Type2, Capabilities::MW_TYPE_2),
    ] {
        if !can.contains(needed) {
            continue;
        }
        let there = family(setup, setup.ctx_b())?;
        // The library compares the domains of a window of type 1, before the device is asked.
        let (of_qp, of_mr) = match mw_type {
            MwType::Type1 => (there.parent, there.parent),
            _ => (there.pd, there.plain),
        };
        let b = setup.end_of(parts_of(setup, of_qp, of_mr, options)?, options)?;
        let pair = setup.connect(setup.end(setup.ctx_a(), options)?, b, options)?;
        let mw = setup.alloc_mw(there.parent, mw_type).rule(RULE)?;
        let all = part(&pair.b, 0, pair.b.mem.length, Access::REMOTE_WRITE);
        let rkey = bind(setup, &pair.b, mw, all).rule(RULE)?;
        in_case(&mw_type.to_string(), opens(setup, &pair, rkey, RULE))?;
    }
    Ok(())
}

scenario!(address_handle_of_it_is_for_queue_pairs_of_its_domain:
    "PD-05"; needs PARENT_DOMAIN, UD);
fn address_handle_of_it_is_for_queue_pairs_of_its_domain(setup: &Setup<'_>) -> Result {
    const RULE: &str = "PD-05";
    let Pair { a, b } = setup.pair(PairOptions::of(QpType::Ud))?;
    let parent = setup.alloc_parent_domain(a.pd, None)?;
    let ah = setup.create_ah(parent, &setup.route_to(setup.ctx_b())?);
    let ah = ah.rule(RULE)?;
    a.fill(3, 64)?;
    b.recv(1, 64)?;
    let data = [a.sge(0, 64)];
    let send = SendWr::send(1, &data).to(ah, b.qp_num, setup.qkey());
    setup.post_send(a.qp, &[send]).rule(RULE)?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
    b.expect_data(3, 64, RULE)
}

scenario!(srq_of_it_serves_queue_pairs_of_its_domain: "PD-05"; needs PARENT_DOMAIN, SRQ);
fn srq_of_it_serves_queue_pairs_of_its_domain(setup: &Setup<'_>) -> Result {
    const RULE: &str = "PD-05";
    let options = PairOptions::default();
    let there = family(setup, setup.ctx_b())?;
    let srq = setup
        .create_srq(there.parent, &SrqInit::new(4))
        .rule(RULE)?;
    let parts = EndParts {
        srq: Some(srq),
        ..parts_of(setup, there.pd, there.second, options)?
    };
    let b = setup.end_of(parts, options).rule(RULE)?;
    let a = setup.end(setup.ctx_a(), options)?;
    let Pair { a, b } = setup.connect(a, b, options)?;
    let room = [b.sge(b.landing(), 64)];
    setup.post_srq_recv(srq, &[RecvWr::new(1, &room)])?;
    a.fill(3, 64)?;
    a.send(1, 64)?;
    setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
    b.expect_data(3, 64, RULE)
}

scenario!(objects_of_another_domain_do_not_work_with_it: "PD-02"; needs PARENT_DOMAIN);
fn objects_of_another_domain_do_not_work_with_it(setup: &Setup<'_>) -> Result {
    let here = family(setup, setup.ctx_a())?;
    let other = family(setup, setup.ctx_a())?;
    let b = setup.end(setup.ctx_b(), PairOptions::default())?;
    let a = end_of(setup, here.parent, other.parent)?;
    let Pair { a, .. } = setup.connect(a, b, PairOptions::default())?;
    a.send(1, 64)?;
    setup
        .one_with(a.send_cq, WcStatus::LocProtErr, "PD-02")
        .map(drop)
}

scenario!(parent_domain_keeps_its_domains_in_use: "PD-06"; needs PARENT_DOMAIN; without RC);
fn parent_domain_keeps_its_domains_in_use(setup: &Setup<'_>) -> Result {
    const RULE: &str = "PD-06";
    let Family {
        pd,
        td,
        parent,
        plain,
        second,
    } = family(setup, setup.ctx_a())?;
    let busy = [ErrorKind::Busy];
    refused(setup, &busy, RULE, || setup.dealloc_td(td))?;
    refused(setup, &busy, RULE, || setup.dealloc_pd(parent))?;
    for last in [second, parent, plain] {
        refused(setup, &busy, RULE, || setup.dealloc_pd(pd))?;
        setup.dealloc_pd(last).rule(RULE)?;
        expect_err(setup.dealloc_pd(last), ErrorKind::Invalid, RULE)?;
    }
    setup.dealloc_td(td).rule(RULE)?;
    setup.dealloc_pd(pd).rule(RULE)
}

scenario!(what_is_made_in_it_keeps_it_in_use: "PD-06"; needs PARENT_DOMAIN);
fn what_is_made_in_it_keeps_it_in_use(setup: &Setup<'_>) -> Result {
    const RULE: &str = "PD-06";
    let context = setup.ctx_a();
    let Family {
        pd, parent, second, ..
    } = family(setup, context)?;
    setup.dealloc_pd(second)?;
    let has = |needed| Ok::<_, crate::Failure>(setup.capabilities(context)?.contains(needed));
    let busy = |what: &str| {
        for pd in [parent, pd] {
            let refused = refused(setup, &[ErrorKind::Busy], RULE, || setup.dealloc_pd(pd));
            in_case(what, refused.map(drop))?;
        }
        Ok::<_, crate::Failure>(())
    };
    let mr = setup.alloc_mr(parent, 64, Access::empty())?;
    busy("a region")?;
    setup.dereg_mr(mr)?;
    let cq = setup.create_cq(context, &CqInit::new(8))?;
    let qp = setup.create_qp(parent, &QpInit::new(QpType::Rc, cq, cq))?;
    busy("a queue pair")?;
    setup.destroy_qp(qp, setup.wait())?;
    if has(Capabilities::SRQ)? {
        let srq = setup.create_srq(parent, &SrqInit::new(4))?;
        busy("an SRQ")?;
        setup.destroy_srq(srq, setup.wait())?;
    }
    if has(Capabilities::MW_TYPE_1)? {
        let mw = setup.alloc_mw(parent, MwType::Type1)?;
        busy("a window")?;
        setup.dealloc_mw(mw)?;
    }
    if has(Capabilities::UD)? {
        let ah = setup.create_ah(parent, &setup.route_to(setup.ctx_b())?)?;
        busy("an address handle")?;
        setup.destroy_ah(ah)?;
    }
    if has(Capabilities::CQ_EX)? {
        let init = CqInitEx::new(CqInit::new(8)).parent_domain(parent);
        let cq = setup.create_cq_ex(context, &init)?;
        busy("a CQ")?;
        setup.destroy_cq(cq, setup.wait())?;
    }
    // What was refused does not count.
    let region = setup.alloc_mr(parent, 64, Access::REMOTE_WRITE);
    expect_err(region, ErrorKind::Invalid, RULE)?;
    setup.dealloc_pd(parent).rule(RULE)
}

scenario!(region_moves_from_one_domain_to_the_other: "PD-06"; needs PARENT_DOMAIN, REREG_MR);
fn region_moves_from_one_domain_to_the_other(setup: &Setup<'_>) -> Result {
    const RULE: &str = "PD-06";
    let Family {
        parent,
        plain,
        second,
        ..
    } = family(setup, setup.ctx_a())?;
    setup.dealloc_pd(second)?;
    let mr = setup.alloc_mr(parent, 64, Access::empty())?;
    for (to, free) in [(plain, parent), (parent, plain)] {
        let change = MrChange {
            pd: Some(to),
            ..MrChange::default()
        };
        setup.rereg_mr(mr, &change).map_err(|failed| failed.error)?;
        refused(setup, &[ErrorKind::Busy], RULE, || setup.dealloc_pd(to))?;
        if to == parent {
            setup.dealloc_pd(free).rule(RULE)?;
        }
    }
    setup.dereg_mr(mr)?;
    setup.dealloc_pd(parent).rule(RULE)
}

scenario!(domains_that_do_not_fit_are_refused: "PD-07"; needs PARENT_DOMAIN; without RC);
fn domains_that_do_not_fit_are_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "PD-07";
    let invalid = [ErrorKind::Invalid];
    let here = family(setup, setup.ctx_a())?;
    let other = family(setup, open_again(setup)?)?;
    for (what, pd, td) in [
        ("thread domain of another context", here.pd, other.td),
        (
            "thread domain of another context, again",
            here.parent,
            other.td,
        ),
        ("no thread domain", here.pd, Td::default()),
    ] {
        let alloc = || setup.alloc_parent_domain(pd, Some(td));
        in_case(what, refused(setup, &invalid, RULE, alloc).map(drop))?;
    }
    if setup
        .capabilities(setup.ctx_a())?
        .contains(Capabilities::CQ_EX)
    {
        let init = CqInitEx::new(CqInit::new(8));
        for pd in [here.pd, other.parent, Pd::default()] {
            refused(setup, &invalid, RULE, || {
                setup.create_cq_ex(setup.ctx_a(), &init.parent_domain(pd))
            })?;
        }
    }
    Ok(())
}

scenario!(parent_domain_goes_with_its_context: "LIFE-07"; needs PARENT_DOMAIN; without RC);
fn parent_domain_goes_with_its_context(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LIFE-07";
    let before = setup.live()?;
    let context = open_again(setup)?;
    let Family { td, second, .. } = family(setup, context)?;
    setup.alloc_mr(second, 64, Access::empty())?;
    // What has been freed has gone.
    let freed = setup.alloc_td(context)?;
    setup.dealloc_td(freed)?;
    setup.close_device(context).rule(RULE)?;
    expect_err(setup.dealloc_pd(second), ErrorKind::Invalid, RULE)?;
    expect_err(setup.dealloc_td(td), ErrorKind::Invalid, RULE)?;
    setup.expect_live(before, RULE)
}

scenario!(dead_device_lets_its_domains_be_freed_and_no_more: "ASYNC-10"; needs PARENT_DOMAIN, LAB);
fn dead_device_lets_its_domains_be_freed_and_no_more(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ASYNC-10";
    let context = setup.ctx_a();
    let all = family(setup, context)?;
    setup.lab().kill_device(context)?;
    expect_err(setup.alloc_td(context), ErrorKind::Io, RULE)?;
    let made = setup.alloc_parent_domain(all.pd, None);
    expect_err(made, ErrorKind::Io, RULE)?;
    for pd in [all.second, all.parent, all.plain, all.pd] {
        setup.dealloc_pd(pd).rule(RULE)?;
    }
    setup.dealloc_td(all.td).rule(RULE)
}
