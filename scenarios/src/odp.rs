//! On-demand regions: memory that comes and goes.

use verbs_api::{
    Access, Advice, AdviseFlags, Capabilities, ErrorKind, Mr, MrAttr, MrChange, MrInit, MrMemory,
    MwType, OdpCaps, OdpGeneral, OdpOps, Pd, QpType, RecvWr, SendOp, SendWr, Sge, WcStatus,
};

use crate::failure::{Failure, check, check_eq, in_case};
use crate::{
    End, OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err, expect_err_among, pattern,
};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    device_says_what_it_has,
    on_demand_region_is_like_any_other,
    change_of_memory_decides_on_the_kind,
    pages_that_were_unmapped_come_back_with_new_bytes,
    unmapped_pages_fail_the_work_that_needs_them,
    unmapped_pages_fail_where_a_change_made_the_region_on_demand,
    relaxed_order_hides_no_unmapped_page,
    connections_use_on_demand_regions_as_the_device_says,
    unreliable_connections_use_on_demand_regions_as_the_device_says,
    datagrams_use_on_demand_regions_as_the_device_says,
    advice_is_checked,
    program_unmaps_its_on_demand_regions_alone,
];

const LEN: u32 = 8;
/// Two pages and a half.
const SIZE: usize = 10_240;
const RIGHTS: Access = Access::ALL_RDMA
    .union(Access::ON_DEMAND)
    .union(Access::REMOTE_ATOMIC);

/// The rights of an on-demand region on a device that may lack atomics.
fn rights(setup: &Setup<'_>) -> Result<Access> {
    let can = setup.capabilities(setup.ctx_a())?;
    Ok(if can.contains(Capabilities::ATOMICS) {
        RIGHTS
    } else {
        RIGHTS - Access::REMOTE_ATOMIC
    })
}

/// Connected ends whose queue pairs allow all that exists.
fn connected<'s>(setup: &'s Setup<'_>, qp_type: QpType) -> Result<Pair<'s>> {
    let mut options = PairOptions::of(qp_type);
    options.rc.access = rights(setup)? - Access::ON_DEMAND;
    setup.pair(options)
}

fn caps(setup: &Setup<'_>) -> Result<OdpCaps> {
    Ok(setup.query_device_ex(setup.ctx_a())?.odp)
}

/// A new on-demand region, which begins with the bytes of a tag.
fn region(setup: &Setup<'_>, pd: Pd, tag: u8) -> Result<(Mr, MrAttr)> {
    let mr = setup.alloc_mr(pd, SIZE, rights(setup)?)?;
    setup.write_mr(mr, 0, &pattern(tag, LEN))?;
    Ok((mr, setup.query_mr(mr)?))
}

/// A new region that was pinned until its memory changed, which begins with the bytes of a tag.
fn changed_region(setup: &Setup<'_>, pd: Pd, tag: u8) -> Result<(Mr, MrAttr)> {
    let rights = rights(setup)?;
    let mr = setup.alloc_mr(pd, SIZE, rights - Access::ON_DEMAND)?;
    let change = MrChange {
        access: Some(rights),
        length: Some(SIZE),
        ..MrChange::default()
    };
    let changed = setup.rereg_mr(mr, &change);
    changed.map_err(|refused| refused.error)?;
    setup.write_mr(mr, 0, &pattern(tag, LEN))?;
    Ok((mr, setup.query_mr(mr)?))
}

fn first_bytes(setup: &Setup<'_>, mr: Mr) -> Result<Vec<u8>> {
    let mut bytes = vec![0; LEN as usize];
    setup.read_mr(mr, 0, &mut bytes)?;
    Ok(bytes)
}

/// Work of one end in an on-demand region, or of its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    SendFrom,
    WriteFrom,
    ReadInto,
    ReceiveInto,
    WriteInto,
    ReadFrom,
    AtomicIn,
}

impl Use {
    const ALL: [Self; 7] = [
        Self::SendFrom,
        Self::WriteFrom,
        Self::ReadInto,
        Self::ReceiveInto,
        Self::WriteInto,
        Self::ReadFrom,
        Self::AtomicIn,
    ];

    fn needs(self) -> OdpOps {
        match self {
            Self::SendFrom => OdpOps::SEND,
            Self::ReceiveInto => OdpOps::RECV,
            Self::WriteFrom | Self::WriteInto => OdpOps::WRITE,
            Self::ReadInto | Self::ReadFrom => OdpOps::READ,
            Self::AtomicIn => OdpOps::ATOMIC,
        }
    }

    /// Whether a device without the other capabilities has it on a transport.
    fn exists(self, qp_type: QpType, can: Capabilities) -> bool {
        let is_rc = qp_type == QpType::Rc;
        match self.needs() {
            OdpOps::READ => is_rc && can.contains(Capabilities::RDMA_READ),
            OdpOps::ATOMIC => is_rc && can.contains(Capabilities::ATOMICS),
            OdpOps::WRITE => qp_type != QpType::Ud,
            _ => true,
        }
    }

    /// Whether the peer names the region.
    fn is_remote(self) -> bool {
        matches!(self, Self::WriteInto | Self::ReadFrom | Self::AtomicIn)
    }

    /// Posts it: A works, and the region is A's for local use and for that of a receive B's.
    fn post(self, Pair { a, b }: &Pair<'_>, region: &MrAttr) -> Result {
        let (own, there) = (a.sge(0, LEN), region.sge(0, LEN));
        let remote = match self {
            Self::WriteFrom | Self::ReadInto => b.mem.remote(0),
            _ => region.remote(0),
        };
        let op = match self {
            Self::SendFrom | Self::ReceiveInto => SendOp::Send,
            Self::WriteFrom | Self::WriteInto => SendOp::RdmaWrite { remote },
            Self::ReadInto | Self::ReadFrom => SendOp::RdmaRead { remote },
            Self::AtomicIn => SendOp::FetchAndAdd { remote, add: 0 },
        };
        match self {
            Self::SendFrom => b.recv(1, 64)?,
            // A datagram comes with room for a header.
            Self::ReceiveInto => b.post_recv(RecvWr::new(1, &[region.sge(0, 64)]))?,
            _ => {}
        }
        let is_local = matches!(self, Self::SendFrom | Self::WriteFrom | Self::ReadInto);
        let list = [if is_local { there } else { own }];
        a.post(a.to_peer(SendWr::new(1, op, &list)))
    }

    /// The domain of the region that [`post`](Self::post) takes.
    fn pd(self, Pair { a, b }: &Pair<'_>) -> Pd {
        if self == Self::ReceiveInto || self.is_remote() {
            b.pd
        } else {
            a.pd
        }
    }
}

scenario!(device_says_what_it_has: "ODP-01"; without RC);
fn device_says_what_it_has(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ODP-01";
    let can = setup.capabilities(setup.ctx_a())?;
    let caps = caps(setup)?;
    if !can.contains(Capabilities::ODP) {
        check_eq!(RULE, caps, OdpCaps::default());
        return Ok(());
    }
    check_eq!(RULE, caps.general.contains(OdpGeneral::SUPPORT), true);
    let implicit = caps.general.contains(OdpGeneral::IMPLICIT);
    check_eq!(RULE, implicit, can.contains(Capabilities::ODP_IMPLICIT));
    // A transport that is not there has no operations.
    for (transport, ops) in [
        (Capabilities::UC, caps.uc),
        (Capabilities::UD, caps.ud),
        (Capabilities::XRC, caps.xrc),
    ] {
        let good = can.contains(transport) || ops.is_empty();
        let none = format!("no operations of {transport}");
        check!(RULE, good, none, "{ops:?}");
    }
    Ok(())
}

scenario!(on_demand_region_is_like_any_other: "ODP-02"; needs ODP);
fn on_demand_region_is_like_any_other(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ODP-02";
    let (can, caps) = (setup.capabilities(setup.ctx_a())?, caps(setup)?);
    let is_there = |of: &Use| of.exists(QpType::Rc, can) && caps.rc.contains(of.needs());
    for of in Use::ALL.into_iter().filter(is_there) {
        let pair = connected(setup, QpType::Rc)?;
        let Pair { a, b } = &pair;
        let (mr, attr) = region(setup, of.pd(&pair), 5).rule(RULE)?;
        check_eq!(RULE, attr.length, SIZE as u64);
        a.fill(6, LEN)?;
        b.fill(7, LEN)?;
        of.post(&pair, &attr)?;
        let done = setup.one_with(a.send_cq, WcStatus::Success, RULE);
        in_case(&format!("{of:?}"), done.map(drop))?;
        if of.needs().intersects(OdpOps::SEND | OdpOps::RECV) {
            setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
        }
        let (seen, tag) = match of {
            Use::SendFrom => (b.bytes(b.landing(), LEN as usize)?, 5),
            Use::WriteFrom => (b.bytes(0, LEN as usize)?, 5),
            Use::ReadInto => (first_bytes(setup, mr)?, 7),
            Use::ReceiveInto | Use::WriteInto => (first_bytes(setup, mr)?, 6),
            Use::ReadFrom | Use::AtomicIn => (a.bytes(0, LEN as usize)?, 5),
        };
        check_eq!(
            RULE,
            seen,
            pattern(tag, LEN),
            format!("the bytes of {of:?}")
        );
    }
    windows(setup, can)
}

/// A window opens it.
fn windows(setup: &Setup<'_>, can: Capabilities) -> Result {
    const RULE: &str = "ODP-02";
    if !can.contains(Capabilities::MW_TYPE_2) {
        return Ok(());
    }
    let Pair { a, b } = setup.rc_pair()?;
    let access = Access::ALL_RDMA | Access::MW_BIND | Access::ON_DEMAND;
    let mr = setup.alloc_mr(b.pd, SIZE, access).rule(RULE)?;
    let mw = setup.alloc_mw(b.pd, MwType::Type2)?;
    let rkey = verbs_api::inc_rkey(setup.query_mw(mw)?.rkey);
    let addr = setup.query_mr(mr)?.addr;
    let info = verbs_api::MwBindInfo {
        mr,
        addr,
        length: SIZE as u64,
        access: Access::REMOTE_WRITE,
    };
    b.post(SendWr::new(1, SendOp::BindMw { mw, rkey, info }, &[]))?;
    setup.one_with(b.send_cq, WcStatus::Success, RULE)?;
    a.fill(8, LEN)?;
    let remote = verbs_api::Remote { addr, rkey };
    a.post(SendWr::rdma_write(2, &[a.sge(0, LEN)], remote))?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    check_eq!(RULE, first_bytes(setup, mr)?, pattern(8, LEN));
    Ok(())
}

scenario!(change_of_memory_decides_on_the_kind: "ODP-02"; needs ODP, REREG_MR);
fn change_of_memory_decides_on_the_kind(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ODP-02";
    let Pair { a, b } = setup.rc_pair()?;
    let (pinned, on_demand) = (Access::ALL_RDMA, Access::ALL_RDMA | Access::ON_DEMAND);
    let mr = setup.alloc_mr(b.pd, SIZE, pinned)?;
    let change = |access, length| {
        let change = MrChange {
            access: Some(access),
            length,
            ..MrChange::default()
        };
        setup.rereg_mr(mr, &change).map_err(|refused| refused.error)
    };
    for (tag, access, length) in [
        (1, on_demand, None),
        (2, pinned, None),
        (3, on_demand, Some(SIZE)),
        (4, on_demand, None),
        (5, pinned, Some(SIZE)),
        (6, on_demand, Some(SIZE)),
    ] {
        change(access, length).rule(RULE)?;
        let place = setup.query_mr(mr)?.remote(0);
        a.fill(tag, LEN)?;
        a.post(SendWr::rdma_write(1, &[a.sge(0, LEN)], place))?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        check_eq!(
            RULE,
            first_bytes(setup, mr)?,
            pattern(tag, LEN),
            format!("{access:?}")
        );
    }
    // Older kernels pin it.
    let kept = change(pinned, None);
    if kept.is_err() || setup.verbs().lab().is_some() {
        expect_err(kept, ErrorKind::NotSupported, RULE)?;
    }
    Ok(())
}

scenario!(pages_that_were_unmapped_come_back_with_new_bytes: "ODP-03"; needs ODP);
fn pages_that_were_unmapped_come_back_with_new_bytes(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ODP-03";
    let Pair { a, b } = setup.rc_pair()?;
    let (mr, attr) = region(setup, a.pd, 1)?;
    let (other, target) = region(setup, b.pd, 2)?;
    for round in 0..3 {
        let written = pattern(10 + round, LEN);
        setup.write_mr(mr, 0, &written)?;
        for expected in [written, vec![0; LEN as usize]] {
            b.fill_at(b.landing(), 99, LEN)?;
            b.recv(1, LEN)?;
            a.post(SendWr::send(1, &[attr.sge(0, LEN)]))?;
            setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
            setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
            let seen = b.bytes(b.landing(), LEN as usize)?;
            check_eq!(
                RULE,
                seen,
                expected,
                format!("what is sent in round {round}")
            );
            // Nothing uses the memory while it is unmapped.
            setup.map_mr(mr, false)?;
            let to = target.remote(u64::from(round) * 4096);
            a.post(SendWr::rdma_write(2, &[a.sge(0, LEN)], to))?;
            setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
            setup.map_mr(mr, true)?;
        }
    }
    // Where peers write.
    setup.map_mr(other, false)?;
    setup.map_mr(other, true)?;
    check_eq!(RULE, first_bytes(setup, other)?, vec![0; LEN as usize]);
    a.fill(3, LEN)?;
    a.post(SendWr::rdma_write(3, &[a.sge(0, LEN)], target.remote(0)))?;
    setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    check_eq!(RULE, first_bytes(setup, other)?, pattern(3, LEN));
    Ok(())
}

scenario!(unmapped_pages_fail_the_work_that_needs_them: "ODP-03", "ODP-04"; needs ODP);
fn unmapped_pages_fail_the_work_that_needs_them(setup: &Setup<'_>) -> Result {
    unmapped_pages_fail(setup, region)
}

scenario!(unmapped_pages_fail_where_a_change_made_the_region_on_demand:
    "ODP-03", "ODP-04"; needs ODP, REREG_MR);
fn unmapped_pages_fail_where_a_change_made_the_region_on_demand(setup: &Setup<'_>) -> Result {
    unmapped_pages_fail(setup, changed_region)
}

type Make = fn(&Setup<'_>, Pd, u8) -> Result<(Mr, MrAttr)>;

fn unmapped_pages_fail(setup: &Setup<'_>, make: Make) -> Result {
    const RULE: &str = "ODP-04";
    let (can, caps) = (setup.capabilities(setup.ctx_a())?, caps(setup)?);
    let is_there = |of: &Use| of.exists(QpType::Rc, can) && caps.rc.contains(of.needs());
    for of in Use::ALL.into_iter().filter(is_there) {
        for mapped in [false, true] {
            let pair = connected(setup, QpType::Rc)?;
            let Pair { a, b } = &pair;
            let (mr, attr) = make(setup, of.pd(&pair), 5)?;
            setup.map_mr(mr, false)?;
            if mapped {
                setup.map_mr(mr, true)?;
            }
            of.post(&pair, &attr)?;
            let (status, rule) = match of {
                _ if mapped => (WcStatus::Success, "ODP-03"),
                Use::ReceiveInto => (WcStatus::RemOpErr, RULE),
                _ if of.is_remote() => (WcStatus::RemAccessErr, RULE),
                _ => (WcStatus::LocProtErr, RULE),
            };
            let case = format!("{of:?}, mapped: {mapped}");
            let done = setup.one_with(a.send_cq, status, rule);
            in_case(&case, done.map(drop))?;
            if of == Use::ReceiveInto {
                let status = if mapped {
                    WcStatus::Success
                } else {
                    WcStatus::LocProtErr
                };
                let done = setup.one_with(b.recv_cq, status, rule);
                in_case(&case, done.map(drop))?;
            }
        }
    }
    Ok(())
}

scenario!(relaxed_order_hides_no_unmapped_page: "ODP-04"; needs ODP);
/// Data may be placed after its acknowledgement there, so each of many writes is tried.
fn relaxed_order_hides_no_unmapped_page(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ODP-04";
    for len in [1, 64] {
        for _ in 0..16 {
            let Pair { a, b } = setup.rc_pair()?;
            let access = Access::ALL_RDMA | Access::ON_DEMAND | Access::RELAXED_ORDERING;
            let mr = setup.alloc_mr(b.pd, SIZE, access)?;
            let place = setup.query_mr(mr)?.remote(0);
            setup.map_mr(mr, false)?;
            a.post(SendWr::rdma_write(1, &[a.sge(0, len)], place))?;
            let done = setup.one_with(a.send_cq, WcStatus::RemAccessErr, RULE);
            in_case(&format!("{len} bytes"), done.map(drop))?;
        }
    }
    Ok(())
}

scenario!(connections_use_on_demand_regions_as_the_device_says: "ODP-05"; needs ODP);
fn connections_use_on_demand_regions_as_the_device_says(setup: &Setup<'_>) -> Result {
    each_use(setup, QpType::Rc)
}

scenario!(unreliable_connections_use_on_demand_regions_as_the_device_says:
    "ODP-05"; needs ODP, UC);
fn unreliable_connections_use_on_demand_regions_as_the_device_says(setup: &Setup<'_>) -> Result {
    each_use(setup, QpType::Uc)
}

scenario!(datagrams_use_on_demand_regions_as_the_device_says: "ODP-05"; needs ODP, UD);
fn datagrams_use_on_demand_regions_as_the_device_says(setup: &Setup<'_>) -> Result {
    each_use(setup, QpType::Ud)
}

fn each_use(setup: &Setup<'_>, qp_type: QpType) -> Result {
    let (can, caps) = (setup.capabilities(setup.ctx_a())?, caps(setup)?);
    for of in Use::ALL.into_iter().filter(|of| of.exists(qp_type, can)) {
        let works = caps.of(qp_type).contains(of.needs());
        // What other devices do then is not said.
        if works || setup.verbs().lab().is_some() {
            in_case(&format!("{of:?}"), one_use(setup, of, qp_type, works))?;
        }
    }
    Ok(())
}

fn one_use(setup: &Setup<'_>, of: Use, qp_type: QpType, works: bool) -> Result {
    const RULE: &str = "ODP-05";
    let pair = connected(setup, qp_type)?;
    let Pair { a, b } = &pair;
    let (mr, attr) = region(setup, of.pd(&pair), 5)?;
    a.fill(6, LEN)?;
    of.post(&pair, &attr)?;
    let is_reliable = qp_type == QpType::Rc;
    let status = match of {
        _ if works => WcStatus::Success,
        Use::ReceiveInto if is_reliable => WcStatus::RemOpErr,
        Use::ReceiveInto | Use::WriteInto if !is_reliable => WcStatus::Success,
        _ if of.is_remote() => WcStatus::RemAccessErr,
        _ => WcStatus::LocProtErr,
    };
    setup.one_with(a.send_cq, status, RULE)?;
    match of {
        Use::ReceiveInto | Use::SendFrom if works => {
            setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
        }
        // Only a transport that is not connected completes what it cannot receive.
        Use::ReceiveInto if qp_type != QpType::Uc => {
            setup.one_with(b.recv_cq, WcStatus::LocProtErr, RULE)?;
        }
        Use::WriteInto if !works => {
            setup.settle()?;
            check_eq!(RULE, first_bytes(setup, mr)?, pattern(5, LEN));
        }
        _ => {}
    }
    Ok(())
}

scenario!(advice_is_checked: "ODP-07"; needs ODP);
fn advice_is_checked(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ODP-07";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let (mr, attr) = region(setup, pd, 1)?;
    let read_only = setup.alloc_mr(pd, SIZE, Access::ON_DEMAND)?;
    let plain = setup.query_mr(setup.alloc_mr(pd, SIZE, Access::LOCAL_WRITE)?)?;
    let elsewhere = setup.alloc_pd(setup.ctx_a())?;
    let (flush, later) = (AdviseFlags::FLUSH, AdviseFlags::empty());
    let (all, last) = (attr.sge(0, SIZE as u32), attr.sge(SIZE as u64 - 1, 1));
    let advise = |advice, flags, list: &[Sge]| setup.advise_mr(pd, advice, flags, list);
    for advice in Advice::ALL {
        for flags in [flush, later] {
            let taken = advise(*advice, flags, &[all, last]);
            let taken = taken.map_err(Failure::from).rule(RULE);
            in_case(&format!("{advice} {flags:?}"), taken)?;
        }
    }
    let fetch = Advice::Prefetch;
    let behind = attr.sge(SIZE as u64, 1);
    let of_reading = [setup.query_mr(read_only)?.sge(0, LEN)];
    let other = setup.advise_mr(elsewhere, fetch, later, &[all]);
    let unknown = AdviseFlags::from_bits_retain(1 << 1);
    for (what, refused, kind) in [
        ("another domain", other, ErrorKind::Permission),
        ("no entry", advise(fetch, later, &[]), ErrorKind::Invalid),
        ("flags", advise(fetch, unknown, &[all]), ErrorKind::Invalid),
        (
            "a pinned region",
            advise(fetch, later, &[plain.sge(0, LEN)]),
            ErrorKind::NotFound,
        ),
        (
            "behind it",
            advise(fetch, flush, &[all, behind]),
            ErrorKind::Fault,
        ),
        (
            "memory to read only",
            advise(Advice::PrefetchWrite, later, &of_reading),
            ErrorKind::Permission,
        ),
        (
            "an advice without a name",
            advise(Advice::Unknown(9), later, &[all]),
            ErrorKind::NotSupported,
        ),
    ] {
        in_case(what, expect_err(refused, kind, RULE).map(drop))?;
    }
    advise(fetch, flush, &of_reading).rule(RULE)?;
    // Only a device that has to look finds that it is unmapped.
    setup.map_mr(mr, false)?;
    expect_err(advise(fetch, flush, &[all]), ErrorKind::Fault, RULE)?;
    advise(fetch, later, &[all]).rule(RULE)?;
    advise(Advice::PrefetchNoFault, flush, &[all]).rule(RULE)?;
    setup.map_mr(mr, true)?;
    advise(fetch, flush, &[all]).rule(RULE)
}

scenario!(program_unmaps_its_on_demand_regions_alone: "ODP-08"; needs ODP);
fn program_unmaps_its_on_demand_regions_alone(setup: &Setup<'_>) -> Result {
    const RULE: &str = "ODP-08";
    let End { pd, mr: plain, .. } = setup.end(setup.ctx_a(), PairOptions::default())?;
    let (mr, _) = region(setup, pd, 1)?;
    let made = |memory| setup.alloc_mr_as(pd, &MrInit::new(64, Access::ON_DEMAND).memory(memory));
    let part = made(MrMemory::Of(plain, 0))?;
    for (what, other) in [
        ("pinned", plain),
        ("shared", part),
        ("to read", made(MrMemory::ReadOnly)?),
    ] {
        for mapped in [false, true] {
            let refused = setup.map_mr(other, mapped);
            in_case(
                what,
                expect_err(refused, ErrorKind::Invalid, RULE).map(drop),
            )?;
        }
    }
    // Other regions would lose their bytes with it.
    expect_err(made(MrMemory::Of(mr, 0)), ErrorKind::Invalid, RULE)?;
    setup.map_mr(mr, false).rule(RULE)?;
    let kinds = [ErrorKind::Fault];
    expect_err_among(setup.read_mr(mr, 0, &mut [0]), &kinds, RULE)?;
    expect_err_among(setup.write_mr(mr, 0, &[1]), &kinds, RULE)?;
    setup.map_mr(mr, true).rule(RULE)?;
    check_eq!(RULE, first_bytes(setup, mr)?, vec![0; LEN as usize]);
    setup.map_mr(mr, false).rule(RULE)?;
    setup.dereg_mr(mr).rule(RULE)
}
