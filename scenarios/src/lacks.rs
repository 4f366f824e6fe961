//! What a device lacks it refuses, says that it has not, and works on.

use verbs_api::{
    Access, Advice, AdviseFlags, AtomicCap, CqFlags, CqInit, CqInitEx, CqModeration, DmInit, Ece,
    ErrorKind, MrChange, MwType, QpInit, QpType, SendOps, SendWr, SrqAttr, SrqAttrMask, SrqInit,
    WcFields, WcStatus, XrcdInit,
};

use crate::bad_input::refused;
use crate::failure::{check_eq, in_case};
use crate::mcast::{ALL_HOSTS, MLID};
use crate::sq::opcode::illegal;
use crate::{OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err_among};

/// How libraries say that the driver has no such verb.
const NO_VERB: [ErrorKind; 2] = [ErrorKind::NotSupported, ErrorKind::NotImplemented];
/// How drivers say that it has no such kind of object.
const NO_KIND: [ErrorKind; 2] = [ErrorKind::NotSupported, ErrorKind::Invalid];

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    unreliable_connections_are_refused,
    datagrams_are_refused,
    groups_are_refused,
    xrc_is_refused,
    srqs_are_refused,
    resize_of_an_srq_is_refused,
    resize_of_a_cq_is_refused,
    moderation_is_refused,
    options_of_queue_pairs_are_refused,
    extended_cqs_are_refused,
    extended_cqs_that_may_overrun_are_refused,
    timestamps_are_refused,
    clock_is_refused,
    second_completion_vector_is_refused,
    #[cfg(unix)]
    descriptors_are_refused,
    null_regions_are_refused,
    #[cfg(unix)]
    regions_of_a_dmabuf_are_refused,
    on_demand_regions_are_refused,
    parent_domains_are_refused,
    device_memory_is_refused,
    change_of_a_region_is_refused,
    windows_of_type_1_are_refused,
    windows_of_type_2_are_refused,
    work_on_windows_is_refused,
    atomics_are_refused,
    immediate_data_is_refused,
    sends_with_immediate_are_refused,
    reads_are_refused,
    batches_are_refused,
    batches_of_what_is_not_there_are_refused,
    flushes_are_refused,
    atomic_writes_are_refused,
];

/// A message from A to B still arrives.
fn works(setup: &Setup<'_>, rule: &'static str) -> Result {
    works_on(setup, &setup.rc_pair()?, rule)
}

fn works_on(setup: &Setup<'_>, Pair { a, b }: &Pair<'_>, rule: &'static str) -> Result {
    b.recv(91, 8)?;
    a.fill(92, 8)?;
    a.send(93, 8)?;
    setup.one_with(a.send_cq, WcStatus::Success, rule)?;
    setup.one_with(b.recv_cq, WcStatus::Success, rule)?;
    b.expect_data(92, 8, rule)
}

fn no_queue_pairs_of(setup: &Setup<'_>, qp_type: QpType) -> Result {
    const RULE: &str = "QP-CREATE-03";
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let init = QpInit::new(qp_type, end.send_cq, end.recv_cq);
    refused(setup, &NO_KIND, RULE, || setup.create_qp(end.pd, &init))?;
    works(setup, RULE)
}

scenario!(unreliable_connections_are_refused: "QP-CREATE-03"; lacks UC);
fn unreliable_connections_are_refused(setup: &Setup<'_>) -> Result {
    no_queue_pairs_of(setup, QpType::Uc)
}

scenario!(datagrams_are_refused: "QP-CREATE-03"; lacks UD);
fn datagrams_are_refused(setup: &Setup<'_>) -> Result {
    no_queue_pairs_of(setup, QpType::Ud)
}

scenario!(groups_are_refused: "LACK-01", "LACK-02"; needs UD; lacks MCAST);
fn groups_are_refused(setup: &Setup<'_>) -> Result {
    let device = setup.query_device(setup.ctx_a())?;
    let reported = (device.max_mcast_grp, device.max_mcast_qp_attach);
    check_eq!(
        "LACK-02",
        reported,
        (0, 0),
        "groups, and queue pairs in one"
    );
    let pair = setup.pair(PairOptions::of(QpType::Ud))?;
    let attached = setup.attach_mcast(pair.b.qp, ALL_HOSTS, MLID);
    expect_err_among(attached, &NO_VERB, "LACK-01")?;
    works_on(setup, &pair, "LACK-01")?;
    // Nothing holds it.
    setup.destroy_qp(pair.b.qp, setup.wait()).rule("LACK-01")
}

scenario!(xrc_is_refused: "XRC-07", "QP-CREATE-03", "LACK-02"; lacks XRC);
fn xrc_is_refused(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_a();
    check_eq!("LACK-02", setup.query_device(context)?.xrc, false, "XRC");
    let init = XrcdInit::private();
    refused(setup, &NO_VERB, "XRC-07", || {
        setup.open_xrcd(context, &init)
    })?;
    no_queue_pairs_of(setup, QpType::XrcSend)
}

scenario!(srqs_are_refused: "LACK-01", "LACK-02"; lacks SRQ);
fn srqs_are_refused(setup: &Setup<'_>) -> Result {
    let device = setup.query_device(setup.ctx_a())?;
    let reported = (device.max_srq, device.max_srq_wr, device.max_srq_sge);
    check_eq!("LACK-02", reported, (0, 0, 0), "SRQs, receives, entries");
    let pd = setup.alloc_pd(setup.ctx_a())?;
    for max_wr in [1, 8] {
        let init = SrqInit::new(max_wr);
        refused(setup, &NO_VERB, "LACK-01", || setup.create_srq(pd, &init))?;
    }
    setup.dealloc_pd(pd).rule("LACK-01")?;
    works(setup, "LACK-01")
}

scenario!(resize_of_an_srq_is_refused: "SRQ-09"; needs SRQ; lacks SRQ_RESIZE);
fn resize_of_an_srq_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-09";
    let kinds = [NO_KIND[0], NO_KIND[1], ErrorKind::NotImplemented];
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let srq = setup.create_srq(pd, &SrqInit::new(8))?;
    // Some devices cannot tell.
    let reported = || setup.query_srq(srq).ok();
    let before = reported();
    for max_wr in [4, 8, 16] {
        let attr = SrqAttr {
            max_wr,
            ..SrqAttr::default()
        };
        let modified = setup.modify_srq(srq, &attr, SrqAttrMask::MAX_WR);
        let result = expect_err_among(modified, &kinds, RULE);
        in_case(&format!("to {max_wr}"), result.map(drop))?;
        check_eq!(RULE, reported(), before, "what a query tells");
    }
    setup.destroy_srq(srq, setup.wait()).rule(RULE)
}

scenario!(resize_of_a_cq_is_refused: "CQ-RESIZE-16"; lacks RESIZE_CQ);
/// Its completions stay, too.
fn resize_of_a_cq_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-RESIZE-16";
    let pair = setup.rc_pair()?;
    let cq = pair.a.send_cq;
    let before = setup.query_cq(cq)?;
    pair.b.recv(1, 8)?;
    pair.a.send(2, 8)?;
    setup.successes(pair.b.recv_cq, 1)?;
    for cqe in [1, 64, 1000] {
        let resized = setup.resize_cq(cq, cqe);
        in_case(
            &format!("to {cqe}"),
            expect_err_among(resized, &NO_VERB, RULE).map(drop),
        )?;
        check_eq!(RULE, setup.query_cq(cq)?, before);
    }
    setup.one_with(cq, WcStatus::Success, RULE)?;
    works_on(setup, &pair, RULE)
}

scenario!(moderation_is_refused: "LACK-01", "LACK-02"; lacks CQ_MODERATION);
fn moderation_is_refused(setup: &Setup<'_>) -> Result {
    let most = setup.query_device_ex(setup.ctx_a())?.cq_moderation;
    let reported = (most.cq_count, most.cq_period);
    check_eq!(
        "LACK-02",
        reported,
        (0, 0),
        "the most of completions and time"
    );
    let pair = setup.rc_pair()?;
    for (cq_count, cq_period) in [(0, 0), (2, 10)] {
        let moderation = CqModeration {
            cq_count,
            cq_period,
        };
        let modified = setup.modify_cq(pair.b.recv_cq, &moderation);
        expect_err_among(modified, &NO_VERB, "LACK-01")?;
    }
    // An event comes with the first completion.
    setup.arm(pair.b.recv_cq, verbs_api::Arm::NEXT)?;
    works_on(setup, &pair, "LACK-01")?;
    let cq = pair.b.recv_cq;
    setup.expect_event(pair.b.channel, cq, "LACK-01").map(drop)
}

scenario!(options_of_queue_pairs_are_refused: "LACK-01"; lacks ECE);
fn options_of_queue_pairs_are_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LACK-01";
    let pair = setup.rc_pair()?;
    let qp = pair.a.qp;
    expect_err_among(setup.query_ece(qp), &NO_VERB, RULE)?;
    for ece in [Ece::default(), Ece::new(0x15b3, 1)] {
        expect_err_among(setup.set_ece(qp, &ece), &NO_VERB, RULE)?;
    }
    works_on(setup, &pair, RULE)
}

scenario!(extended_cqs_are_refused: "LACK-01"; lacks CQ_EX);
fn extended_cqs_are_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LACK-01";
    let context = setup.ctx_a();
    for fields in [WcFields::empty(), WcFields::STANDARD] {
        let init = CqInitEx::new(CqInit::new(4)).wc_flags(fields);
        refused(setup, &NO_VERB, RULE, || setup.create_cq_ex(context, &init))?;
    }
    works(setup, RULE)
}

scenario!(extended_cqs_that_may_overrun_are_refused:
    "CQ-CREATE-14"; needs CQ_EX; without RC; lacks IGNORE_OVERRUN);
fn extended_cqs_that_may_overrun_are_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-14";
    let context = setup.ctx_a();
    let init = CqInitEx::new(CqInit::new(4));
    let overruns = init.flags(CqFlags::IGNORE_OVERRUN);
    refused(setup, &NO_KIND, RULE, || {
        setup.create_cq_ex(context, &overruns)
    })?;
    let cq = setup.create_cq_ex(context, &init).rule(RULE)?;
    Ok(setup.destroy_cq(cq, setup.wait())?)
}

scenario!(timestamps_are_refused:
    "CQ-CREATE-14", "LACK-02"; needs CQ_EX; without RC; lacks WC_TIMESTAMP);
fn timestamps_are_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-14";
    let context = setup.ctx_a();
    let mask = setup.query_device_ex(context)?.completion_timestamp_mask;
    check_eq!("LACK-02", mask, 0, "bits of a timestamp");
    for field in WcFields::TIMESTAMPS.iter() {
        let init = CqInitEx::new(CqInit::new(4)).wc_flags(WcFields::STANDARD | field);
        let result = refused(setup, &NO_KIND, RULE, || setup.create_cq_ex(context, &init));
        in_case(&format!("{field:?}"), result.map(drop))?;
    }
    let without = CqInitEx::new(CqInit::new(4)).wc_flags(WcFields::STANDARD);
    let cq = setup.create_cq_ex(context, &without).rule(RULE)?;
    Ok(setup.destroy_cq(cq, setup.wait())?)
}

scenario!(clock_is_refused: "LACK-01"; without RC; lacks RT_VALUES);
fn clock_is_refused(setup: &Setup<'_>) -> Result {
    let read = setup.query_rt_values(setup.ctx_a());
    expect_err_among(read, &NO_VERB, "LACK-01").map(drop)
}

scenario!(second_completion_vector_is_refused: "CHAN-18", "CQ-CREATE-07"; lacks COMP_VECTORS);
fn second_completion_vector_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-07";
    let context = setup.ctx_a();
    let vectors = setup.query_device(context)?.num_comp_vectors;
    check_eq!("CHAN-18", vectors, 1, "vectors");
    let channel = setup.create_comp_channel(context)?;
    let init = CqInit::new(4).channel(channel);
    refused(setup, &[ErrorKind::Invalid], RULE, || {
        setup.create_cq(context, &init.comp_vector(1))
    })?;
    let cq = setup.create_cq(context, &init.comp_vector(0)).rule(RULE)?;
    Ok(setup.destroy_cq(cq, setup.wait())?)
}

#[cfg(unix)]
scenario!(descriptors_are_refused: "LACK-01"; lacks FD);
#[cfg(unix)]
fn descriptors_are_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LACK-01";
    let pair = setup.rc_pair()?;
    let b = pair.b;
    expect_err_among(setup.channel_fd(b.channel), &NO_VERB, RULE)?;
    expect_err_among(setup.async_fd(b.context), &NO_VERB, RULE)?;
    // Events come all the same.
    setup.arm(b.recv_cq, verbs_api::Arm::NEXT)?;
    works_on(setup, &pair, RULE)?;
    setup.expect_event(b.channel, b.recv_cq, RULE).map(drop)
}

scenario!(null_regions_are_refused: "MR-18"; without RC; lacks NULL_MR);
fn null_regions_are_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MR-18";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    refused(setup, &NO_VERB, RULE, || setup.alloc_null_mr(pd))?;
    setup.dealloc_pd(pd).rule(RULE)
}

#[cfg(unix)]
scenario!(regions_of_a_dmabuf_are_refused: "LACK-01"; lacks DMABUF);
#[cfg(unix)]
fn regions_of_a_dmabuf_are_refused(setup: &Setup<'_>) -> Result {
    use std::os::fd::AsFd;
    const RULE: &str = "LACK-01";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    // The device is asked first, so any descriptor will do.
    let fd = std::io::stdin();
    refused(setup, &NO_VERB, RULE, || {
        setup.reg_dmabuf_mr(pd, 0, 4096, 0, fd.as_fd(), Access::LOCAL_WRITE)
    })?;
    setup.dealloc_pd(pd).rule(RULE)?;
    works(setup, RULE)
}

scenario!(on_demand_regions_are_refused: "ODP-02", "ODP-07"; lacks ODP);
fn on_demand_regions_are_refused(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = &pair.b;
    for access in [Access::ON_DEMAND, Access::ON_DEMAND | Access::ALL_RDMA] {
        refused(setup, &NO_KIND, "ODP-02", || {
            setup.alloc_mr(b.pd, 64, access)
        })?;
    }
    let list = [b.sge(0, 8)];
    let advised = setup.advise_mr(b.pd, Advice::Prefetch, AdviseFlags::empty(), &list);
    expect_err_among(advised, &NO_VERB, "ODP-07")?;
    works_on(setup, &pair, "ODP-02")
}

scenario!(parent_domains_are_refused: "LACK-01"; lacks PARENT_DOMAIN);
fn parent_domains_are_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LACK-01";
    let context = setup.ctx_a();
    let pd = setup.alloc_pd(context)?;
    refused(setup, &NO_VERB, RULE, || setup.alloc_td(context))?;
    refused(setup, &NO_VERB, RULE, || {
        setup.alloc_parent_domain(pd, None)
    })?;
    setup.dealloc_pd(pd).rule(RULE)
}

scenario!(device_memory_is_refused: "LACK-01", "LACK-02"; lacks DEVICE_MEMORY);
fn device_memory_is_refused(setup: &Setup<'_>) -> Result {
    let context = setup.ctx_a();
    let size = setup.query_device_ex(context)?.max_dm_size;
    check_eq!("LACK-02", size, 0, "bytes of device memory");
    refused(setup, &NO_VERB, "LACK-01", || {
        setup.alloc_dm(context, &DmInit::new(64))
    })?;
    works(setup, "LACK-01")
}

scenario!(change_of_a_region_is_refused: "LACK-01"; lacks REREG_MR);
fn change_of_a_region_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LACK-01";
    let pair = setup.rc_pair()?;
    let (mr, before) = (pair.b.mr, pair.b.mem);
    let pd = setup.alloc_pd(pair.b.context)?;
    let nothing = MrChange::default();
    for change in [
        MrChange {
            pd: Some(pd),
            ..nothing
        },
        MrChange {
            length: Some(8),
            ..nothing
        },
    ] {
        let changed = setup.rereg_mr(mr, &change);
        let result = changed.map_err(|refused| refused.error);
        in_case(
            &format!("{change:?}"),
            expect_err_among(result, &NO_VERB, RULE).map(drop),
        )?;
        check_eq!(RULE, setup.query_mr(mr)?, before, "its attributes");
    }
    works_on(setup, &pair, RULE)?;
    setup.dealloc_pd(pd).rule(RULE)
}

fn no_windows_of(setup: &Setup<'_>, mw_type: MwType) -> Result {
    const RULE: &str = "MW-26";
    let device = setup.query_device(setup.ctx_a())?;
    let reported = match mw_type {
        MwType::Type1 => device.mem_window,
        _ => device.mem_window_type_2b,
    };
    check_eq!("LACK-02", reported, false, "windows of this type");
    let pd = setup.alloc_pd(setup.ctx_a())?;
    refused(setup, &NO_KIND, RULE, || setup.alloc_mw(pd, mw_type))?;
    setup.dealloc_pd(pd).rule(RULE)?;
    works(setup, RULE)
}

scenario!(windows_of_type_1_are_refused: "MW-26", "LACK-02"; lacks MW_TYPE_1);
fn windows_of_type_1_are_refused(setup: &Setup<'_>) -> Result {
    no_windows_of(setup, MwType::Type1)
}

scenario!(windows_of_type_2_are_refused: "MW-26", "LACK-02"; lacks MW_TYPE_2);
fn windows_of_type_2_are_refused(setup: &Setup<'_>) -> Result {
    no_windows_of(setup, MwType::Type2)
}

scenario!(work_on_windows_is_refused: "SQ-18", "SQ-20", "LACK-02"; lacks MW);
fn work_on_windows_is_refused(setup: &Setup<'_>) -> Result {
    let windows = setup.query_device(setup.ctx_a())?.max_mw;
    check_eq!("LACK-02", windows, 0, "windows");
    for local in [true, false] {
        let Pair { a, b } = setup.rc_pair()?;
        b.recv(1, 8)?;
        let data = [a.sge(0, 8)];
        let work = if local {
            SendWr::local_inv(2, b.mem.rkey)
        } else {
            SendWr::send_with_inv(2, &data, b.mem.rkey)
        };
        in_case(&format!("{:?}", work.op), illegal(setup, &a, work))?;
        setup.no_completion(b.recv_cq, "SQ-18")?;
    }
    works(setup, "SQ-18")
}

scenario!(atomics_are_refused: "ATOM-10", "SQ-20", "SQ-18", "LACK-02"; lacks ATOMICS);
fn atomics_are_refused(setup: &Setup<'_>) -> Result {
    let cap = setup.query_device(setup.ctx_a())?.atomic_cap;
    check_eq!("LACK-02", cap, AtomicCap::None, "atomics");
    for swaps in [true, false] {
        let Pair { a, b } = setup.rc_pair()?;
        b.fill_at(0, 7, 8)?;
        let (into, target) = ([a.sge(a.landing(), 8)], b.mem.remote(0));
        let work = if swaps {
            SendWr::compare_and_swap(1, &into, target, 0, 1)
        } else {
            SendWr::fetch_and_add(1, &into, target, 1)
        };
        in_case(&format!("{:?}", work.op), illegal(setup, &a, work))?;
        b.expect_data_at(0, 7, 8, "ATOM-10")?;
    }
    works(setup, "ATOM-10")
}

scenario!(immediate_data_is_refused: "SQ-18", "SQ-20"; lacks SEND_WITH_IMM, WRITE_WITH_IMM);
fn immediate_data_is_refused(setup: &Setup<'_>) -> Result {
    for writes in [false, true] {
        let Pair { a, b } = setup.rc_pair()?;
        b.recv(1, 8)?;
        b.fill(8, 8)?;
        a.fill(9, 8)?;
        let (data, target) = ([a.sge(0, 8)], b.mem.remote(0));
        let work = if writes {
            SendWr::rdma_write_with_imm(2, &data, target, [1, 2, 3, 4])
        } else {
            SendWr::send_with_imm(2, &data, [1, 2, 3, 4])
        };
        in_case(&format!("{:?}", work.op), illegal(setup, &a, work))?;
        setup.no_completion(b.recv_cq, "SQ-18")?;
        b.expect_data_at(0, 8, 8, "SQ-18")?;
    }
    works(setup, "SQ-18")
}

scenario!(sends_with_immediate_are_refused:
    "SQ-18", "SQ-20"; needs WRITE_WITH_IMM; lacks SEND_WITH_IMM);
/// A device may have the writes alone.
fn sends_with_immediate_are_refused(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    b.recv(1, 8)?;
    illegal(setup, &a, SendWr::send_with_imm(2, &[a.sge(0, 8)], [1; 4]))?;
    setup.no_completion(b.recv_cq, "SQ-18")?;
    let Pair { a, b } = setup.rc_pair()?;
    b.recv(1, 8)?;
    a.write_imm(2, 8, [5, 6, 7, 8])?;
    let wc = setup.one_with(b.recv_cq, WcStatus::Success, "SQ-18")?;
    check_eq!("SQ-18", wc.imm_data, [5, 6, 7, 8], "the immediate data");
    works(setup, "SQ-18")
}

scenario!(reads_are_refused: "SQ-18", "SQ-20"; lacks RDMA_READ);
fn reads_are_refused(setup: &Setup<'_>) -> Result {
    let Pair { a, .. } = setup.rc_pair()?;
    a.fill(8, 8)?;
    let into = [a.sge(0, 8)];
    illegal(setup, &a, SendWr::rdma_read(1, &into, a.remote()))?;
    a.expect_data_at(0, 8, 8, "SQ-18")?;
    works(setup, "SQ-18")
}

fn no_batches(setup: &Setup<'_>, sets: &[SendOps]) -> Result {
    const RULE: &str = "SQ-28";
    let end = setup.end(setup.ctx_a(), PairOptions::default())?;
    let init = QpInit::new(QpType::Rc, end.send_cq, end.recv_cq);
    for send_ops in sets {
        let init = init.send_ops(*send_ops);
        let result = refused(setup, &NO_KIND, RULE, || setup.create_qp(end.pd, &init));
        in_case(&format!("{send_ops:?}"), result.map(drop))?;
    }
    let qp = setup.create_qp(end.pd, &init).rule(RULE)?;
    Ok(setup.destroy_qp(qp, setup.wait())?)
}

scenario!(batches_are_refused: "SQ-28"; lacks BATCHES);
fn batches_are_refused(setup: &Setup<'_>) -> Result {
    no_batches(setup, &[SendOps::SEND, SendOps::SEND | SendOps::RDMA_WRITE])
}

scenario!(batches_of_what_is_not_there_are_refused: "SQ-28"; needs BATCHES; lacks ATOMICS, MW);
fn batches_of_what_is_not_there_are_refused(setup: &Setup<'_>) -> Result {
    let lacking = [
        SendOps::ATOMIC_CMP_AND_SWP,
        SendOps::ATOMIC_FETCH_AND_ADD,
        SendOps::BIND_MW,
        SendOps::LOCAL_INV,
        SendOps::SEND_WITH_INV,
    ];
    let combined = lacking.map(|ops| SendOps::SEND | ops);
    no_batches(setup, &[lacking, combined].concat())
}

scenario!(flushes_are_refused: "SQ-28", "MR-19", "LACK-02"; needs BATCHES; lacks FLUSH);
fn flushes_are_refused(setup: &Setup<'_>) -> Result {
    let attr = setup.query_device_ex(setup.ctx_a())?;
    let reported = (attr.flush_global, attr.flush_persistent);
    check_eq!("LACK-02", reported, (false, false), "flushes");
    let pd = setup.alloc_pd(setup.ctx_a())?;
    for flag in [Access::FLUSH_GLOBAL, Access::FLUSH_PERSISTENT] {
        let access = Access::ALL_RDMA | flag;
        let result = refused(setup, &NO_KIND, "MR-19", || setup.alloc_mr(pd, 64, access));
        in_case(&format!("{flag:?}"), result.map(drop))?;
    }
    setup.dealloc_pd(pd)?;
    no_batches(setup, &[SendOps::FLUSH, SendOps::SEND | SendOps::FLUSH])
}

scenario!(atomic_writes_are_refused: "SQ-28", "LACK-02"; needs BATCHES; lacks ATOMIC_WRITE);
fn atomic_writes_are_refused(setup: &Setup<'_>) -> Result {
    let reported = setup.query_device_ex(setup.ctx_a())?.atomic_write;
    check_eq!("LACK-02", reported, false, "atomic writes");
    let writes = SendOps::ATOMIC_WRITE;
    no_batches(setup, &[writes, SendOps::SEND | writes])
}
