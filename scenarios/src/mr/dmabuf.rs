//! Regions of a dma-buf.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use verbs_api::{
    Access, ErrorKind, Handle, Mr, MrAttr, MrChange, Pd, RecvWr, SendWr, Sge, WcStatus,
};

use super::LEN;
use crate::bad_input::refused;
use crate::failure::{check_eq, in_case, value_in_case};
use crate::{End, Failure, OfRule, Pair, Result, Setup, expect_err, pattern};

/// Bytes of a dma-buf: whole pages of any machine.
const SIZE: usize = 64 << 10;
/// Where the regions start, not on a page, and their length.
const OFFSET: u64 = 4096 + 24;
const BYTES: usize = 6144;
/// An address with the same offset in its page.
const IOVA: u64 = 0x1234_5018;

/// Bytes of a dma-buf: the offset of the first, their number, and the address of the first.
struct Part(u64, usize, u64);

/// Memory of a dma-buf, to register.
struct Exported {
    fd: OwnedFd,
}

impl Exported {
    fn new(setup: &Setup<'_>, pd: Pd) -> Result<Self> {
        let fd = setup.export_dmabuf(pd.context(), SIZE)?;
        Ok(Self { fd })
    }

    fn register(
        &self,
        setup: &Setup<'_>,
        pd: Pd,
        part: Part,
        access: Access,
    ) -> verbs_api::Result<Mr> {
        let Part(offset, length, iova) = part;
        setup.reg_dmabuf_mr(pd, offset, length, iova, self.fd.as_fd(), access)
    }
}

/// A region of a dma-buf with all rights, and its attributes.
fn region(setup: &Setup<'_>, pd: Pd) -> Result<(Mr, MrAttr)> {
    let exported = Exported::new(setup, pd)?;
    let mr = exported.register(setup, pd, Part(OFFSET, BYTES, IOVA), Access::ALL_RDMA)?;
    Ok((mr, setup.query_mr(mr)?))
}

fn has_bytes(setup: &Setup<'_>, mr: Mr, offset: usize, tag: u8, rule: &'static str) -> Result {
    let mut seen = vec![0; LEN as usize];
    setup.read_mr(mr, offset, &mut seen)?;
    check_eq!(rule, seen, pattern(tag, LEN), "the bytes of the region");
    Ok(())
}

fn succeeds(setup: &Setup<'_>, end: &End<'_>, wr: SendWr<'_>, rule: &'static str) -> Result {
    end.post(wr)?;
    let done = setup.one_with(end.send_cq, WcStatus::Success, rule);
    done.map(drop)
}

scenario!(work_and_peers_reach_the_bytes_of_a_dmabuf:
    "DMABUF-01", "DMABUF-06"; needs DMABUF, RDMA_READ);
fn work_and_peers_reach_the_bytes_of_a_dmabuf(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DMABUF-01";
    let Pair { a, b } = setup.rc_pair()?;
    let exported = Exported::new(setup, b.pd)?;
    let part = exported.register(setup, b.pd, Part(OFFSET, BYTES, IOVA), Access::ALL_RDMA);
    let part = part.rule(RULE)?;
    let whole = exported.register(setup, b.pd, Part(0, SIZE, 0), Access::empty());
    let whole = whole.rule(RULE)?;
    // The regions keep the memory.
    drop(exported);
    let attr = setup.query_mr(part)?;
    check_eq!(RULE, (attr.addr, attr.length), (IOVA, BYTES as u64));
    let data = [a.sge(0, LEN)];
    for (tag, offset) in [(1, 0), (2, 4090), (3, BYTES - LEN as usize)] {
        let (at, place) = (offset as u64, attr.remote(offset as u64));
        let here = [attr.sge(at, LEN)];
        let both = |tag, rule| {
            has_bytes(setup, part, offset, tag, rule)?;
            has_bytes(setup, whole, OFFSET as usize + offset, tag, rule)
        };
        a.fill(tag, LEN)?;
        succeeds(setup, &a, SendWr::rdma_write(1, &data, place), RULE)?;
        both(tag, RULE)?;
        a.fill(99, LEN)?;
        succeeds(setup, &a, SendWr::rdma_read(2, &data, place), RULE)?;
        has_bytes(setup, a.mr, 0, tag, "DMABUF-06")?;
        a.recv(3, LEN)?;
        succeeds(setup, &b, SendWr::send(3, &here), RULE)?;
        setup.one_with(a.recv_cq, WcStatus::Success, RULE)?;
        a.expect_data(tag, LEN, RULE)?;
        a.fill(tag + 10, LEN)?;
        setup.post_recv(b.qp, &[RecvWr::new(4, &here)])?;
        succeeds(setup, &a, SendWr::send(4, &data), RULE)?;
        setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
        both(tag + 10, RULE)?;
    }
    a.post(SendWr::rdma_write(5, &data, attr.remote(BYTES as u64 - 7)))?;
    setup.one_with(a.send_cq, WcStatus::RemAccessErr, RULE)?;
    setup.dereg_mr(part).rule("DMABUF-06")?;
    setup.dereg_mr(whole).rule("DMABUF-06")
}

/// Each call is refused with `EINVAL`, and makes nothing.
fn invalid<T: std::fmt::Debug>(
    setup: &Setup<'_>,
    what: &str,
    rule: &'static str,
    call: impl FnOnce() -> verbs_api::Result<T>,
) -> Result {
    let result = refused(setup, &[ErrorKind::Invalid], rule, call);
    in_case(what, result.map(drop))
}

scenario!(address_elsewhere_in_its_page_is_refused: "DMABUF-02"; needs DMABUF);
fn address_elsewhere_in_its_page_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DMABUF-02";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let exported = Exported::new(setup, pd)?;
    for (offset, iova) in [(0, 8), (24, 0), (4096, 0x7fff), (OFFSET, IOVA + 1)] {
        invalid(setup, &format!("{offset:#x} at {iova:#x}"), RULE, || {
            exported.register(setup, pd, Part(offset, 64, iova), Access::empty())
        })?;
    }
    for (offset, iova) in [(0, 0x7000), (24, 24), (4096, 0), (8191, 1 << 46 | 4095)] {
        let mr = exported.register(setup, pd, Part(offset, 64, iova), Access::empty());
        setup.dereg_mr(value_in_case(&format!("{iova:#x}"), mr.rule(RULE))?)?;
    }
    Ok(())
}

scenario!(access_that_a_dmabuf_has_not_is_refused: "DMABUF-03", "MR-01"; needs DMABUF);
fn access_that_a_dmabuf_has_not_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DMABUF-03";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let exported = Exported::new(setup, pd)?;
    let register = |access| exported.register(setup, pd, Part(0, SIZE, 0), access);
    let bit = |number: u32| Access::from_bits_retain(1 << number);
    for access in [
        Access::MW_BIND,
        Access::ZERO_BASED,
        Access::HUGETLB,
        Access::ON_DEMAND,
        // An unknown bit, and an unknown one of the optional bits.
        bit(19),
        bit(21),
    ] {
        let what = format!("{access:?}");
        invalid(setup, &what, RULE, || {
            register(access | Access::LOCAL_WRITE)
        })?;
    }
    for access in [Access::REMOTE_WRITE, Access::REMOTE_ATOMIC] {
        invalid(setup, &format!("{access:?}"), "MR-01", || register(access))?;
    }
    for access in [
        Access::empty(),
        Access::REMOTE_READ,
        Access::ALL_RDMA | Access::RELAXED_ORDERING,
    ] {
        let mr = value_in_case(&format!("{access:?}"), register(access).rule(RULE))?;
        setup.dereg_mr(mr)?;
    }
    Ok(())
}

scenario!(bytes_behind_the_end_of_a_dmabuf_are_refused: "DMABUF-04"; needs DMABUF);
fn bytes_behind_the_end_of_a_dmabuf_are_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DMABUF-04";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let exported = Exported::new(setup, pd)?;
    let register = |offset, length| {
        let range = Part(offset, length, offset % 4096);
        exported.register(setup, pd, range, Access::LOCAL_WRITE)
    };
    let end = SIZE as u64;
    for (offset, length) in [
        (0, SIZE + 1),
        (1, SIZE),
        (end, 1),
        (end - 4096, 4097),
        (u64::MAX - 4095, 8192),
        (1 << 63, 1),
    ] {
        let what = format!("{length} bytes from {offset:#x} on");
        invalid(setup, &what, RULE, || register(offset, length))?;
    }
    for (offset, length) in [(0, SIZE), (end - 1, 1), (end - 4096, 4096)] {
        let mr = register(offset, length).rule(RULE);
        setup.dereg_mr(value_in_case(&format!("from {offset:#x} on"), mr)?)?;
    }
    Ok(())
}

scenario!(descriptor_of_something_else_is_refused: "DMABUF-05", "PD-04"; needs DMABUF);
fn descriptor_of_something_else_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DMABUF-05";
    let pd = setup.alloc_pd(setup.ctx_a())?;
    let (socket, _peer) = UnixStream::pair().map_err(broken)?;
    let device = File::open("/dev/null").map_err(broken)?;
    let register =
        |pd, fd: BorrowedFd<'_>| setup.reg_dmabuf_mr(pd, 0, SIZE, 0, fd, Access::empty());
    invalid(setup, "a socket", RULE, || register(pd, socket.as_fd()))?;
    invalid(setup, "a device", RULE, || register(pd, device.as_fd()))?;
    let exported = Exported::new(setup, pd)?;
    setup.dealloc_pd(pd)?;
    invalid(setup, "a domain that was deallocated", "PD-04", || {
        register(pd, exported.fd.as_fd())
    })
}

fn broken(error: std::io::Error) -> Failure {
    Failure::assertion("the system call works", error.to_string())
}

scenario!(region_of_a_dmabuf_is_not_changed: "DMABUF-07"; needs DMABUF, REREG_MR);
fn region_of_a_dmabuf_is_not_changed(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DMABUF-07";
    let Pair { a, b } = setup.rc_pair()?;
    let (mr, before) = region(setup, b.pd)?;
    let (pd, nothing) = (setup.alloc_pd(b.context)?, MrChange::default());
    for change in [
        MrChange {
            pd: Some(pd),
            ..nothing
        },
        MrChange {
            access: Some(Access::empty()),
            ..nothing
        },
        MrChange {
            length: Some(64),
            ..nothing
        },
    ] {
        invalid(setup, &format!("{change:?}"), RULE, || {
            setup.rereg_mr(mr, &change).map_err(|refused| refused.error)
        })?;
        check_eq!(RULE, setup.query_mr(mr)?, before, "its attributes");
    }
    a.fill(7, LEN)?;
    let data = [a.sge(0, LEN)];
    succeeds(
        setup,
        &a,
        SendWr::rdma_write(1, &data, before.remote(0)),
        RULE,
    )?;
    has_bytes(setup, mr, 0, 7, RULE)?;
    setup.dealloc_pd(pd).rule(RULE)
}

scenario!(work_on_withdrawn_memory_fails: "DMABUF-08"; needs DMABUF, LAB, RDMA_READ);
fn work_on_withdrawn_memory_fails(setup: &Setup<'_>) -> Result {
    const RULE: &str = "DMABUF-08";
    /// How work of A or B names the region of B; with the statuses of A and B.
    type Use = fn(&Setup<'_>, &Pair<'_>, MrAttr, Sge) -> Result;
    let uses: [(&str, Use, Option<WcStatus>, Option<WcStatus>); 4] = [
        (
            "a write",
            |_, pair, attr, _| {
                pair.a
                    .post(SendWr::rdma_write(1, &[pair.a.sge(0, LEN)], attr.remote(0)))
            },
            Some(WcStatus::RemAccessErr),
            None,
        ),
        (
            "a read",
            |_, pair, attr, _| {
                pair.a
                    .post(SendWr::rdma_read(1, &[pair.a.sge(0, LEN)], attr.remote(0)))
            },
            Some(WcStatus::RemAccessErr),
            None,
        ),
        (
            "a send",
            |_, pair, _, here| pair.b.post(SendWr::send(1, &[here])),
            None,
            Some(WcStatus::LocProtErr),
        ),
        (
            "a receive",
            |setup, pair, _, here| {
                setup.post_recv(pair.b.qp, &[RecvWr::new(1, &[here])])?;
                pair.a.send(1, LEN)
            },
            Some(WcStatus::RemOpErr),
            None,
        ),
    ];
    for (what, name, of_a, of_b) in uses {
        let pair = setup.rc_pair()?;
        let (mr, attr) = region(setup, pair.b.pd)?;
        setup.lab().revoke_dmabuf(mr)?;
        name(setup, &pair, attr, attr.sge(0, LEN))?;
        for (end, status) in [(pair.a, of_a), (pair.b, of_b)] {
            if let Some(status) = status {
                value_in_case(what, setup.one_with(end.send_cq, status, RULE))?;
            }
        }
        if what == "a receive" {
            setup.one_with(pair.b.recv_cq, WcStatus::LocProtErr, RULE)?;
        }
        let read = setup.read_mr(mr, 0, &mut [0; 8]);
        expect_err(read, ErrorKind::Fault, RULE)?;
        setup.dereg_mr(mr).rule(RULE)?;
    }
    let of_own = setup.lab().revoke_dmabuf(setup.rc_pair()?.a.mr);
    expect_err(of_own, ErrorKind::Invalid, RULE).map(drop)
}
