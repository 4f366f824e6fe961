//! Regions of a dma-buf, as far as no scenario of the suite sees them: the file behind them, what
//! its owner takes away, and the end of its mapping.
#![cfg(target_os = "linux")]

mod common;

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use common::{End, pair, settle};
use verbs_api::lab::{Fault, Limit};
use verbs_api::{
    Access, ErrorKind, Mr, MrAttr, QpType, RcParams, RecvWr, SendWr, Sge, Verb, Verbs, WcStatus,
    owned,
};
use verbs_sim::{Class, Mode, Sim, SimConfig};

const SIZE: usize = 3 * 4096;
const BYTES: u32 = 5000;
/// Not on a page, and at the same place of it.
const OFFSET: u64 = 4096 + 64;
const IOVA: u64 = 0x7000_0040;
const ALL: Access = Access::ALL_RDMA.union(Access::REMOTE_ATOMIC);

/// A file that stands for a dma-buf, with a name of its own.
struct Exported {
    file: File,
    path: PathBuf,
}

impl Exported {
    fn new(name: &str) -> Self {
        let name = format!("verbsim-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true);
        let file = file.open(&path).unwrap();
        file.set_len(SIZE as u64).unwrap();
        Self { file, path }
    }

    fn register(&self, end: &End<'_>) -> (Mr, MrAttr) {
        let (verbs, fd) = (end.verbs, self.file.as_fd());
        let mr = verbs.reg_dmabuf_mr(end.pd, OFFSET, BYTES as usize, IOVA, fd, ALL);
        let mr = mr.unwrap();
        (mr, verbs.query_mr(mr).unwrap())
    }

    /// Whether some region has it.
    fn is_mapped(&self) -> bool {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        maps.contains(self.path.to_str().unwrap())
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; BYTES as usize];
        self.file.read_exact_at(&mut bytes, OFFSET).unwrap();
        bytes
    }
}

impl Drop for Exported {
    fn drop(&mut self) {
        fs::remove_file(&self.path).unwrap();
    }
}

fn ends(sim: &dyn Verbs) -> [End<'_>; 2] {
    ["sim0", "sim1"].map(|name| End::open(sim, name, 16, BYTES as usize))
}

fn params() -> RcParams {
    let access = ALL;
    RcParams {
        access,
        ..RcParams::default()
    }
}

/// DMABUF-01, DMABUF-06: what a peer writes is in the file, and what is in the file it reads.
#[test]
fn the_owner_of_the_file_sees_the_bytes_of_peers() {
    for mode in [Mode::Stepped, Mode::Inline, Mode::RealTime] {
        let sim = Sim::new(SimConfig::new().mode(mode));
        let [a, b] = ends(&sim);
        let (qp, _) = pair((&a, &b), QpType::Rc, 4, &params());
        let exported = Exported::new(&format!("seen-{mode:?}"));
        let (_, attr) = exported.register(&b);
        let pattern: Vec<u8> = (0..BYTES).map(|at| (at * 7 + at / 251) as u8).collect();
        a.write(0, &pattern);
        let list = [a.mem.sge(0, BYTES)];
        a.post(qp, SendWr::rdma_write(1, &list, attr.remote(0)));
        settle(&sim);
        assert_eq!(a.drain()[0].status, WcStatus::Success);
        assert_eq!(exported.bytes(), pattern, "{mode:?}");
        let other: Vec<u8> = pattern.iter().map(|byte| !byte).collect();
        exported.file.write_all_at(&other, OFFSET).unwrap();
        a.post(qp, SendWr::rdma_read(2, &list, attr.remote(0)));
        settle(&sim);
        assert_eq!(a.drain()[0].status, WcStatus::Success);
        assert_eq!(a.read(0, BYTES as usize), other, "{mode:?}");
    }
}

/// How work uses a region of B, and the statuses of the two ends.
type Use = (
    &'static str,
    fn([&End<'_>; 2], [verbs_api::Qp; 2], MrAttr),
    [Option<WcStatus>; 2],
);

fn local(end: &End<'_>) -> [Sge; 1] {
    [end.mem.sge(0, 8)]
}

const USES: &[Use] = &[
    (
        "write",
        |[a, _], [qp, _], at| a.post(qp, SendWr::rdma_write(1, &local(a), at.remote(0))),
        [Some(WcStatus::RemAccessErr), None],
    ),
    (
        "read",
        |[a, _], [qp, _], at| a.post(qp, SendWr::rdma_read(1, &local(a), at.remote(0))),
        [Some(WcStatus::RemAccessErr), None],
    ),
    (
        "atomic",
        |[a, _], [qp, _], at| a.post(qp, SendWr::fetch_and_add(1, &local(a), at.remote(0), 1)),
        [Some(WcStatus::RemAccessErr), None],
    ),
    (
        "send",
        |[_, b], [_, qp], at| b.post(qp, SendWr::send(1, &[at.sge(0, 8)])),
        [None, Some(WcStatus::LocProtErr)],
    ),
    (
        "receive",
        |[a, b], [qp, to], at| {
            let list = [at.sge(0, 8)];
            let receive = RecvWr::new(1, &list);
            b.verbs.post_recv(to, &[receive]).unwrap();
            a.send(qp, 1, 0, 8);
        },
        [Some(WcStatus::RemOpErr), Some(WcStatus::LocProtErr)],
    ),
    (
        "answer",
        |[a, b], [_, qp], at| b.post(qp, SendWr::rdma_read(1, &[at.sge(0, 8)], a.mem.remote(0))),
        [None, Some(WcStatus::LocProtErr)],
    ),
];

/// DMABUF-08: whether the owner shortens the file or a test control withdraws the memory, work
/// fails and the process lives. A finding says who did it.
#[test]
fn work_on_memory_that_is_withdrawn_fails_with_its_cause() {
    for mode in [Mode::Stepped, Mode::Inline] {
        for ((what, name, expected), by_lab) in USES.iter().flat_map(|of| [(of, false), (of, true)])
        {
            let sim = Sim::new(SimConfig::new().mode(mode));
            let [a, b] = ends(&sim);
            let (qp_a, qp_b) = pair((&a, &b), QpType::Rc, 4, &params());
            let exported = Exported::new(&format!("gone-{mode:?}-{what}-{by_lab}"));
            let (mr, attr) = exported.register(&b);
            if by_lab {
                sim.lab().unwrap().revoke_dmabuf(mr).unwrap();
            } else {
                exported.file.set_len(0).unwrap();
            }
            name([&a, &b], [qp_a, qp_b], attr);
            settle(&sim);
            let case = format!("{what}, {mode:?}, {by_lab}");
            let seen = [&a, &b].map(|end| end.drain().first().map(|wc| wc.status));
            assert_eq!(seen, *expected, "{case}");
            let (class, words) = if by_lab {
                (Class::Injected, "let the exporter of its dma-buf withdraw")
            } else {
                (Class::Unmapped, "has withdrawn 8 bytes from 0x0 on")
            };
            let found = sim.diagnose().mistakes;
            let named = found
                .iter()
                .any(|found| found.class() == class && found.to_string().contains(words));
            assert!(named, "{case}: {found:?}");
            let error = sim.read_mr(mr, 0, &mut [0; 8]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Fault, "{case}");
            sim.dereg_mr(mr).unwrap();
        }
    }
}

/// LIFE-07: the file is mapped as long as the region lives.
#[test]
fn the_mapping_goes_with_the_region() {
    let sim = Arc::new(Sim::new(SimConfig::new()));
    let exported = Exported::new("mapped");
    let [a, _] = ends(&*sim);
    let (mr, _) = exported.register(&a);
    assert!(exported.is_mapped());
    sim.dereg_mr(mr).unwrap();
    assert!(!exported.is_mapped());
    exported.register(&a);
    sim.close_device(a.context).unwrap();
    assert!(!exported.is_mapped());
    let context = owned::Context::open(sim.clone(), "sim0").unwrap();
    let pd = context.alloc_pd().unwrap();
    let fd = exported.file.as_fd();
    let mr = pd.reg_dmabuf_mr(OFFSET, 64, IOVA, fd, ALL).unwrap();
    assert_eq!((mr.addr(), mr.length()), (IOVA, 64));
    mr.write(8, b"owned").unwrap();
    assert_eq!(&exported.bytes()[8..13], b"owned");
    drop(mr);
    assert!(!exported.is_mapped());
}

/// A call that is refused leaves no region and no mapping; limits and rules of faults count it.
#[test]
fn a_refused_region_leaves_nothing() {
    let sim = Sim::new(SimConfig::new().trace(true));
    let lab = sim.lab().unwrap();
    let exported = Exported::new("refused");
    let [a, _] = ends(&sim);
    let live = lab.live(a.context).unwrap();
    let register = || {
        let fd = exported.file.as_fd();
        let made = sim.reg_dmabuf_mr(a.pd, OFFSET, 64, IOVA, fd, ALL);
        made.map_err(|error| error.kind())
    };
    let failing = Fault::fail(Verb::RegDmabufMr, ErrorKind::NoMemory);
    let fault = lab.inject(failing).unwrap();
    assert_eq!(register(), Err(ErrorKind::NoMemory));
    assert_eq!(lab.remove(fault).unwrap(), 1);
    lab.set_limit(a.context, Limit::Bytes, Some(u64::from(BYTES) + 63))
        .unwrap();
    assert_eq!(register(), Err(ErrorKind::NoMemory));
    lab.set_limit(a.context, Limit::Bytes, Some(u64::from(BYTES) + 64))
        .unwrap();
    assert_eq!(lab.live(a.context).unwrap(), live);
    assert!(!exported.is_mapped());
    let mr = register().unwrap();
    let calls = lab
        .trace()
        .iter()
        .map(ToString::to_string)
        .collect::<String>();
    let call = "ibv_reg_dmabuf_mr(pd#0, 64 B from 0x1040 on at 0x70000040, 0xf)";
    assert!(calls.contains(call), "{calls}");
    sim.dereg_mr(mr).unwrap();
}
