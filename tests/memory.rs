//! Regions, windows, shared queues and handles, where devices differ or no device is asked: what
//! the simulator does.

mod common;

use common::{End, drain, pair, settle};
use verbs_api::behavior::{Behavior, Check, DeregBound, LimitReadback, ZeroLength};
use verbs_api::lab::Limit;
use verbs_api::profile::DeviceLimits;
use verbs_api::{
    Access, AfterRereg, AsyncEventType, Capabilities, Context, Cq, CqInit, DriverObject, ErrorKind,
    Handle, Mr, MrChange, Mw, MwBind, MwBindInfo, MwType, Pd, Qp, QpCap, QpInit, QpType, RcParams,
    RecvWr, Remote, SendWr, Sge, Srq, SrqAttr, SrqAttrMask, SrqInit, Verbs, Wait, WcStatus, Xrcd,
    XrcdInit, connect,
};
use verbs_sim::{Sim, SimConfig};

const ALL: Access = Access::ALL_RDMA.union(Access::MW_BIND);

/// A device whose behavior is changed.
fn with(change: impl FnOnce(&mut Behavior)) -> Sim {
    let mut behavior = Behavior::SPEC;
    change(&mut behavior);
    Sim::new(SimConfig::new().behavior(behavior))
}

fn params() -> RcParams {
    RcParams {
        access: ALL,
        ..RcParams::default()
    }
}

fn ends(sim: &Sim) -> [End<'_>; 2] {
    ["sim0", "sim1"].map(|name| End::open(sim, name, 64, 64))
}

/// The one completion in a CQ.
fn status(verbs: &dyn Verbs, cq: Cq) -> WcStatus {
    settle(verbs);
    let done = drain(verbs, cq);
    assert_eq!(done.len(), 1);
    done[0].status
}

/// Posts a bind of 8 bytes at the start of a region, in the way of the window's type: the new key,
/// or why not.
fn post_bind(end: &End<'_>, qp: Qp, mw: Mw, mr: Mr) -> Result<u32, ErrorKind> {
    let verbs = end.verbs;
    let info = MwBindInfo {
        mr,
        addr: verbs.query_mr(mr).unwrap().addr,
        length: 8,
        access: Access::REMOTE_WRITE,
    };
    let attr = verbs.query_mw(mw).unwrap();
    let posted = match attr.mw_type {
        MwType::Type1 => verbs.bind_mw(qp, mw, &MwBind::new(1, info)),
        _ => {
            let bind = SendWr::bind_mw(1, mw, verbs_api::inc_rkey(attr.rkey), info);
            verbs.post_send(qp, &[bind]).map_err(|error| error.error)
        }
    };
    posted.map_err(|error| error.kind())?;
    Ok(verbs.query_mw(mw).unwrap().rkey)
}

fn bind(end: &End<'_>, qp: Qp, mw: Mw, mr: Mr) -> u32 {
    let rkey = post_bind(end, qp, mw, mr).unwrap();
    assert_eq!(status(end.verbs, end.cq), WcStatus::Success);
    rkey
}

/// With what a write from one end to the start of a region ends.
fn written(from: &End<'_>, qp: Qp, to: &End<'_>, mr: Mr, rkey: u32) -> WcStatus {
    let addr = to.verbs.query_mr(mr).unwrap().addr;
    let data = [from.mem.sge(0, 8)];
    from.post(qp, SendWr::rdma_write(2, &data, Remote { addr, rkey }));
    status(from.verbs, from.cq)
}

/// MW-09: a device that does not compare domains binds what is of several.
#[test]
fn windows_are_bound_over_domains_where_the_device_does_not_look() {
    for mw_type in [MwType::Type1, MwType::Type2] {
        let sim = with(|behavior| behavior.bind_domain = Check::Accepted);
        let [near, far] = ends(&sim);
        let (qp, peer) = pair((&near, &far), QpType::Rc, 4, &params());
        let other = sim.alloc_pd(far.context).unwrap();
        let mr = sim.alloc_mr(other, 64, ALL).unwrap();
        let of_window = match mw_type {
            MwType::Type1 => other,
            _ => far.pd,
        };
        let mw = sim.alloc_mw(of_window, mw_type).unwrap();
        let rkey = bind(&far, peer, mw, mr);
        // It opens for queue pairs of its own domain.
        let expected = match mw_type {
            MwType::Type1 => WcStatus::RemAccessErr,
            _ => WcStatus::Success,
        };
        assert_eq!(written(&near, qp, &far, mr, rkey), expected);
    }
}

/// DEV-13: windows and regions of another context are refused at once, whatever the device looks
/// at.
#[test]
fn windows_and_regions_of_another_context_are_not_bound() {
    for looks in [Check::Refused, Check::Accepted] {
        let sim = with(|behavior| behavior.bind_domain = looks);
        let [near, far] = ends(&sim);
        let (_, peer) = pair((&near, &far), QpType::Rc, 4, &params());
        let stranger = End::open(&sim, "sim1", 4, 64);
        let region = |pd| sim.alloc_mr(pd, 64, ALL).unwrap();
        for mw_type in [MwType::Type1, MwType::Type2] {
            let window = |pd| sim.alloc_mw(pd, mw_type).unwrap();
            for (mw, mr) in [
                (window(far.pd), region(stranger.pd)),
                (window(stranger.pd), region(far.pd)),
                (window(stranger.pd), region(stranger.pd)),
            ] {
                assert_eq!(post_bind(&far, peer, mw, mr), Err(ErrorKind::Invalid));
            }
        }
    }
}

/// QP-DESTROY-04: windows of type 2 are free when their queue pair is destroyed, and no others.
#[test]
fn windows_are_free_when_their_queue_pair_is_gone() {
    let sim = Sim::new(SimConfig::new());
    let [near, far] = ends(&sim);
    let pairs = [(); 2].map(|()| pair((&near, &far), QpType::Rc, 16, &params()));
    let [(_, peer), (qp, second)] = pairs;
    let region = || sim.alloc_mr(far.pd, 64, ALL).unwrap();
    let regions = [region(), region(), region()];
    let windows = regions.map(|mr| {
        let mw = sim.alloc_mw(far.pd, MwType::Type2).unwrap();
        (mw, bind(&far, peer, mw, mr))
    });
    // The last is bound on the other queue pair by now.
    let (moved, rkey) = windows[2];
    far.post(peer, SendWr::local_inv(3, rkey));
    assert_eq!(status(&sim, far.cq), WcStatus::Success);
    let rkey = bind(&far, second, moved, regions[2]);
    for mr in regions {
        assert_eq!(sim.dereg_mr(mr).unwrap_err().kind(), ErrorKind::Busy);
    }
    sim.destroy_qp(peer, Wait::Poll).unwrap();
    assert_eq!(
        written(&near, qp, &far, regions[2], rkey),
        WcStatus::Success
    );
    assert_eq!(
        sim.dereg_mr(regions[2]).unwrap_err().kind(),
        ErrorKind::Busy
    );
    sim.dereg_mr(regions[0]).unwrap();
    for (mw, _) in &windows[..2] {
        bind(&far, second, *mw, regions[1]);
    }
}

/// MR-07: a change of a region to which a window is bound is refused as its end is.
#[test]
fn bound_region_is_changed_where_it_can_be_deregistered() {
    for (declared, expected) in [
        (DeregBound::Ebusy, Some(ErrorKind::Busy)),
        (DeregBound::Einval, Some(ErrorKind::Invalid)),
        (DeregBound::Orphan, None),
    ] {
        let sim = with(|behavior| behavior.dereg_bound = declared);
        let [near, far] = ends(&sim);
        let (_, peer) = pair((&near, &far), QpType::Rc, 4, &params());
        let mr = sim.alloc_mr(far.pd, 64, ALL).unwrap();
        let mw = sim.alloc_mw(far.pd, MwType::Type1).unwrap();
        bind(&far, peer, mw, mr);
        let change = MrChange {
            access: Some(Access::LOCAL_WRITE),
            ..MrChange::default()
        };
        let refused = sim.rereg_mr(mr, &change).err();
        let left = refused.as_ref().map(|refused| refused.region);
        assert_eq!(left, expected.map(|_| AfterRereg::Old));
        assert_eq!(refused.map(|refused| refused.error.kind()), expected);
        assert_eq!(sim.dereg_mr(mr).err().map(|error| error.kind()), expected);
    }
}

/// SQ-17: work that can only fail, since it names a region of another domain, owns none of its
/// bytes.
#[test]
fn work_of_another_domain_owns_no_bytes() {
    let sim = Sim::new(SimConfig::new());
    let [near, far] = ends(&sim);
    let other = End {
        pd: sim.alloc_pd(far.context).unwrap(),
        ..far
    };
    let (_, stranger) = pair((&near, &other), QpType::Rc, 4, &params());
    let (_, own) = pair((&near, &far), QpType::Rc, 4, &params());
    far.recv(stranger, 1, 0, 8);
    far.write(0, &[1; 8]);
    far.recv(own, 2, 8, 8);
    far.write(0, &[2; 8]);
    let refused = sim.write_mr(far.mr, 8, &[3; 8]).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Usage);
}

/// An SRQ of `far` with a queue pair, and `near` connected to it.
fn shared(near: &End<'_>, far: &End<'_>, init: &SrqInit) -> (Srq, Qp) {
    let verbs = far.verbs;
    let srq = verbs.create_srq(far.pd, init).unwrap();
    let init = QpInit::new(QpType::Rc, far.cq, far.cq).srq(srq);
    let peer = verbs.create_qp(far.pd, &init).unwrap();
    let qp = near.qp(QpType::Rc, 4);
    connect::by_attributes(verbs, qp, peer, &params()).unwrap();
    (srq, qp)
}

fn post(far: &End<'_>, srq: Srq) {
    let list = [far.mem.sge(0, 8)];
    let receive = [RecvWr::new(1, &list)];
    far.verbs.post_srq_recv(srq, &receive).unwrap();
}

/// A message takes a receive: whether the event of the limit comes.
fn event_of_limit(near: &End<'_>, qp: Qp, far: &End<'_>) -> bool {
    near.send(qp, 1, 0, 8);
    settle(near.verbs);
    let Ok(event) = far.verbs.get_async_event(far.context, Wait::Poll) else {
        return false;
    };
    far.verbs.ack_async_event(far.context, &event).unwrap();
    assert_eq!(event.event_type, AsyncEventType::SrqLimitReached);
    true
}

/// SRQ-01: where the limit at creation counts, that of one receive does, too.
#[test]
fn limit_at_creation_is_told_where_the_device_takes_it() {
    for takes in [true, false] {
        for limit in [0, 1, 2] {
            let sim = with(|behavior| behavior.srq_limit_at_creation = takes);
            let [near, far] = ends(&sim);
            let mut init = SrqInit::new(8);
            init.attr.srq_limit = limit;
            let (srq, qp) = shared(&near, &far, &init);
            (0..2).for_each(|_| post(&far, srq));
            let seen = [(); 2].map(|()| event_of_limit(&near, qp, &far));
            let expected = [1, 0].map(|left| takes && left + 1 == limit);
            assert_eq!(seen, expected, "limit {limit}");
        }
    }
}

fn modify(
    sim: &Sim,
    srq: Srq,
    (max_wr, srq_limit): (u32, u32),
    mask: SrqAttrMask,
) -> Result<(), ErrorKind> {
    let attr = SrqAttr {
        max_wr,
        srq_limit,
        ..SrqAttr::default()
    };
    let modified = sim.modify_srq(srq, &attr, mask);
    modified.map_err(|error| error.kind())
}

/// SRQ-06: where a limit can still be seen after its event, another size does not arm it again.
#[test]
fn another_size_arms_no_limit() {
    for readback in [LimitReadback::Kept, LimitReadback::Zero] {
        let sim = with(|behavior| behavior.srq_limit_readback = readback);
        let [near, far] = ends(&sim);
        let (srq, qp) = shared(&near, &far, &SrqInit::new(8));
        (0..4).for_each(|_| post(&far, srq));
        modify(&sim, srq, (0, 4), SrqAttrMask::LIMIT).unwrap();
        assert!(event_of_limit(&near, qp, &far));
        modify(&sim, srq, (16, 0), SrqAttrMask::MAX_WR).unwrap();
        assert!(!event_of_limit(&near, qp, &far));
        // A limit whose event is still to come stays.
        modify(&sim, srq, (0, 2), SrqAttrMask::LIMIT).unwrap();
        modify(&sim, srq, (32, 0), SrqAttrMask::MAX_WR).unwrap();
        assert!(event_of_limit(&near, qp, &far));
    }
}

/// SRQ-10: a mask names attributes that there are.
#[test]
fn attribute_that_an_srq_does_not_have_is_refused() {
    let sim = Sim::new(SimConfig::new());
    let [_, far] = ends(&sim);
    let srq = sim.create_srq(far.pd, &SrqInit::new(8)).unwrap();
    let before = sim.query_srq(srq).unwrap();
    for bit in [1 << 2, 1 << 31] {
        let mask = SrqAttrMask::LIMIT | SrqAttrMask::from_bits_retain(bit);
        assert_eq!(modify(&sim, srq, (8, 1), mask), Err(ErrorKind::Invalid));
        assert_eq!(sim.query_srq(srq).unwrap(), before);
    }
}

/// XRC-07: a device without XRC refuses the call before it checks the handles.
#[test]
fn srq_of_xrc_is_refused_as_not_supported_where_there_is_none() {
    let sim = Sim::new(SimConfig::new().lacks(Capabilities::XRC));
    let [_, far] = ends(&sim);
    for cq in [far.cq, Cq::default()] {
        let init = SrqInit::new(4).xrc(Xrcd::default(), cq);
        let refused = sim.create_srq(far.pd, &init).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NotSupported);
    }
}

/// CQ-DESTROY-08: with a queue pair go its own completions, and not those of one before that had
/// its number.
#[test]
fn completions_go_with_the_queue_pair_that_made_them() {
    let sim = with(|behavior| (behavior.cqe_purge, behavior.number_reuse) = (true, true));
    let [near, far] = ends(&sim);
    let xrcd = sim.open_xrcd(far.context, &XrcdInit::private()).unwrap();
    let srq = SrqInit::new(4).xrc(xrcd, far.cq);
    let srq = sim.create_srq(far.pd, &srq).unwrap();
    let target = sim.create_xrc_recv_qp(xrcd).unwrap();
    let sender = near.qp(QpType::XrcSend, 4);
    connect::by_attributes(&sim, sender, target, &params()).unwrap();
    post(&far, srq);
    let data = [near.mem.sge(0, 8)];
    let number = sim.srq_num(srq).unwrap();
    near.post(sender, SendWr::send(1, &data).to_srq(number));
    settle(&sim);
    let of_target = sim.qp_num(target).unwrap();
    sim.destroy_qp(target, Wait::Poll).unwrap();
    let (qp, next) = pair((&near, &far), QpType::Rc, 4, &params());
    assert_eq!(sim.qp_num(next).unwrap(), of_target);
    far.recv(next, 2, 8, 8);
    near.send(qp, 2, 0, 8);
    settle(&sim);
    sim.destroy_qp(next, Wait::Poll).unwrap();
    let left: Vec<_> = far.drain().iter().map(|wc| wc.wr_id).collect();
    assert_eq!(left, [1]);
}

/// DEV-13: a corrupt window is still one of its context alone.
#[test]
fn corrupt_window_is_none_of_another_context() {
    let sim = with(|behavior| behavior.bind_bad_handle = Check::Accepted);
    let [_, far] = ends(&sim);
    let stranger = End::open(&sim, "sim1", 4, 64);
    let mw = sim.alloc_mw(far.pd, MwType::Type1).unwrap();
    let moved = Mw::from_parts(stranger.context, mw.index(), mw.generation());
    sim.corrupt_handle(DriverObject::Mw(mw), true).unwrap();
    sim.query_mw(mw).unwrap();
    sim.query_mw(moved).unwrap_err();
}

/// DEV-02: as many contexts as their handles can tell apart, and no more.
#[test]
fn contexts_are_as_many_as_there_are_handles() {
    let sim = Sim::new(SimConfig::new());
    let open = || sim.open_device("sim1");
    let mut all: Vec<Context> = Vec::new();
    let refused = loop {
        match open() {
            Ok(context) => all.push(context),
            Err(error) => break error,
        }
        assert!(all.len() < 1 << 16, "more than there are handles");
    };
    assert_eq!(refused.kind(), ErrorKind::NoMemory);
    let other = sim.open_device("sim0").unwrap();
    assert!(!all.contains(&other));
    sim.close_device(all[0]).unwrap();
    open().unwrap();
}

/// Registers the caller's memory: with which error that fails.
#[expect(unsafe_code, reason = "the caller's memory")]
fn registered(
    sim: &Sim,
    pd: Pd,
    (addr, length): (*mut u8, usize),
    iova: Option<u64>,
    access: Access,
) -> Option<ErrorKind> {
    // SAFETY: the region is removed at once, and no work names it; what is not valid is refused.
    let made = unsafe { sim.reg_mr_as(pd, addr, length, iova, access) };
    let removed = made.and_then(|mr| sim.dereg_mr(mr));
    removed.err().map(|error| error.kind())
}

/// MR-01, MR-04, MR-10, MR-11, MR-15: the caller's memory is refused as any other is.
#[test]
fn memory_of_the_caller_is_refused_as_other_memory_is() {
    const INVALID: Option<ErrorKind> = Some(ErrorKind::Invalid);
    let mut limits = DeviceLimits::SPEC;
    limits.lower("max_mr_size", 8192).unwrap();
    let mut behavior = Behavior::SPEC;
    behavior.zero_len_mr = ZeroLength::Refused;
    let sim = Sim::new(SimConfig::new().limits(limits).behavior(behavior));
    let context = sim.open_device("sim0").unwrap();
    let [pd, gone] = [(); 2].map(|()| sim.alloc_pd(context).unwrap());
    sim.dealloc_pd(gone).unwrap();
    let mut memory = vec![0; 64];
    let addr = memory.as_mut_ptr();
    let local = Access::LOCAL_WRITE;
    let of = |range, iova, access| registered(&sim, pd, range, iova, access);
    assert_eq!(of((addr, 64), None, local), None);
    assert_eq!(of((addr, 64), None, Access::REMOTE_WRITE), INVALID);
    assert_eq!(
        of((addr, 64), None, Access::from_bits_retain(1 << 19)),
        INVALID
    );
    assert_eq!(of((addr, 0), None, local), INVALID);
    assert_eq!(of((addr, 8193), None, local), INVALID);
    assert_eq!(
        of((std::ptr::null_mut(), 64), None, local),
        Some(ErrorKind::Fault)
    );
    let last = std::ptr::without_provenance_mut(usize::MAX - 7);
    assert_eq!(of((last, 64), None, local), INVALID);
    let in_page = addr as u64 % 4096;
    assert_eq!(of((addr, 64), Some(0x7000 + in_page), local), None);
    assert_eq!(of((addr, 64), Some(0x7000 + (in_page ^ 1)), local), INVALID);
    assert_eq!(
        of((addr, 64), Some(u64::MAX - 4095 + in_page), local),
        (in_page >= 4096 - 64).then_some(ErrorKind::Invalid)
    );
    assert_eq!(registered(&sim, gone, (addr, 64), None, local), INVALID);
}

/// ODP-06: all memory of the process, by its own addresses, as far as it is mapped.
#[test]
fn all_memory_is_one_region_where_devices_have_that() {
    if !SimConfig::can_check_mapping() {
        println!("skipped: the system does not say what is mapped");
        return;
    }
    let bytes: &[u8] = Box::leak(Box::new([7; 64]));
    let mapped = bytes.as_ptr() as u64;
    for (addr, expected) in [
        (mapped, WcStatus::Success),
        (mapped + 56, WcStatus::Success),
        (64, WcStatus::LocProtErr),
        (u64::MAX - 8, WcStatus::LocProtErr),
    ] {
        let sim = Sim::new(SimConfig::new());
        let [a, b] = ends(&sim);
        let (qp, _) = pair((&a, &b), QpType::Rc, 8, &params());
        let lkey = all_memory(&a).unwrap();
        let list = [Sge {
            addr,
            length: 8,
            lkey,
        }];
        a.post(qp, SendWr::rdma_write(1, &list, b.mem.remote(0)));
        assert_eq!(status(&sim, a.cq), expected, "{addr:#x}");
        let written = b.read(0, 8) == [7; 8];
        assert_eq!(written, expected == WcStatus::Success);
    }
    let lacks = Capabilities::ODP_IMPLICIT;
    let sim = Sim::new(SimConfig::new().lacks(lacks));
    assert_eq!(all_memory(&ends(&sim)[0]), Err(ErrorKind::Invalid));
}

/// ODP-06, PD-05: parent domains have such regions too.
#[test]
fn all_memory_is_one_region_in_a_parent_domain() {
    if !SimConfig::can_check_mapping() {
        println!("skipped: the system does not say what is mapped");
        return;
    }
    let bytes: &[u8] = Box::leak(Box::new([7; 8]));
    let sim = Sim::new(SimConfig::new());
    let [a, b] = ends(&sim);
    let (qp, _) = pair((&a, &b), QpType::Rc, 8, &params());
    let parent = sim.alloc_parent_domain(a.pd, None).unwrap();
    let mr = all_memory_in(&sim, parent).unwrap();
    let list = [Sge {
        addr: bytes.as_ptr() as u64,
        length: 8,
        lkey: sim.query_mr(mr).unwrap().lkey,
    }];
    a.post(qp, SendWr::rdma_write(1, &list, b.mem.remote(0)));
    assert_eq!(status(&sim, a.cq), WcStatus::Success);
    assert_eq!(b.read(0, 8), bytes);
}

/// ODP-06: a change of it to a part is held to the limit of bytes.
#[test]
fn change_of_a_region_of_all_memory_counts_its_new_bytes() {
    if !SimConfig::can_check_mapping() {
        println!("skipped: the system does not say what is mapped");
        return;
    }
    const PART: usize = 4096;
    for (room, expected) in [(PART, None), (PART - 1, Some(ErrorKind::NoMemory))] {
        let sim = Sim::new(SimConfig::new());
        let [a, _] = ends(&sim);
        let present = a.mem.length;
        let mr = all_memory_in(&sim, a.pd).unwrap();
        let lab = sim.lab().unwrap();
        let limit = present + room as u64;
        lab.set_limit(a.context, Limit::Bytes, Some(limit)).unwrap();
        let change = MrChange {
            length: Some(PART),
            ..MrChange::default()
        };
        let refused = sim.rereg_mr(mr, &change).err();
        assert_eq!(refused.map(|refused| refused.error.kind()), expected);
    }
}

/// SQ-08: inline data is found in the region that has it, although one of all memory covers its
/// addresses, which are not the program's.
#[test]
fn inline_data_is_found_where_it_is() {
    for all in [false, true] {
        if all && !SimConfig::can_check_mapping() {
            println!("skipped: the system does not say what is mapped");
            return;
        }
        let sim = Sim::new(SimConfig::new());
        let context = sim.open_device("sim0").unwrap();
        let pd = sim.alloc_pd(context).unwrap();
        if all {
            all_memory_in(&sim, pd).unwrap();
        }
        let [a, b] = ends(&sim);
        let mr = sim.alloc_mr(pd, 64, Access::empty()).unwrap();
        sim.write_mr(mr, 0, &[7; 8]).unwrap();
        let cap = QpCap {
            max_inline_data: 8,
            ..QpCap::default()
        };
        let cq = sim.create_cq(context, &CqInit::new(8)).unwrap();
        let init = QpInit::new(QpType::Rc, cq, cq).cap(cap);
        let (qp, peer) = (sim.create_qp(pd, &init).unwrap(), b.qp(QpType::Rc, 8));
        connect::by_attributes(&sim, qp, peer, &params()).unwrap();
        let list = [Sge {
            lkey: 0x1234_5678,
            ..sim.query_mr(mr).unwrap().sge(0, 8)
        }];
        let write = SendWr::rdma_write(1, &list, b.mem.remote(0)).inline();
        a.post(qp, write);
        assert_eq!(status(&sim, cq), WcStatus::Success);
        assert_eq!(b.read(0, 8), [7; 8]);
    }
}

fn all_memory(end: &End<'_>) -> Result<u32, ErrorKind> {
    let mr = all_memory_in(end.verbs, end.pd)?;
    Ok(end.verbs.query_mr(mr).unwrap().lkey)
}

#[expect(unsafe_code, reason = "the caller's memory")]
fn all_memory_in(verbs: &dyn Verbs, pd: Pd) -> Result<Mr, ErrorKind> {
    let access = Access::ON_DEMAND;
    // SAFETY: without `LOCAL_WRITE` nothing is written, and the test writes to no byte that the
    // device reads.
    let made = unsafe { verbs.reg_mr(pd, std::ptr::null_mut(), usize::MAX, access) };
    made.map_err(|error| error.kind())
}
