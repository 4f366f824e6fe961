//! Programs that keep to the contract of `reg_mr`, with threads that access their memory while the
//! device works on it. Miri judges them, too.
#![allow(unsafe_code, reason = "the caller's own memory is registered")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::hint::spin_loop;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::thread;

use verbs_api::owned::{self, RecvWr};
use verbs_api::profile::Profile;
use verbs_api::{
    Access, AfterRereg, CqInit, ErrorKind, Handle, Mr, MrChange, Pd, Qp, QpInit, QpType, RcParams,
    SendWr, Verbs, Wc, WcStatus,
};
use verbs_sim::{Mode, Sim, SimConfig};

/// Bytes on a page boundary that are accessed by pointers only.
struct Pages {
    start: *mut u8,
    layout: Layout,
}

// SAFETY: threads share bytes by atomic access, or take turns.
unsafe impl Sync for Pages {}

impl Pages {
    fn new(length: usize) -> Self {
        let layout = Layout::from_size_align(length, 4096).unwrap();
        // SAFETY: the length is above zero.
        let start = unsafe { alloc_zeroed(layout) };
        assert!(!start.is_null());
        Self { start, layout }
    }

    fn register(&self, sim: &Sim, pd: Pd) -> Mr {
        // SAFETY: the region is deregistered before the memory is freed, and no reference to bytes
        // of work lives while the work can be executed.
        unsafe { sim.reg_mr(pd, self.start, self.layout.size(), Access::ALL_RDMA) }.unwrap()
    }

    fn byte(&self, at: usize) -> &AtomicU8 {
        assert!(at < self.layout.size());
        // SAFETY: within the memory; while it is shared, this byte is only accessed like this.
        unsafe { AtomicU8::from_ptr(self.start.add(at)) }
    }

    /// # Safety
    /// No thread writes to it during the call.
    unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: as promised.
        unsafe { slice::from_raw_parts(self.start, self.layout.size()) }
    }

    /// # Safety
    /// No thread uses these bytes during the call.
    unsafe fn fill(&self, from: usize, byte: u8) {
        // SAFETY: as promised.
        unsafe {
            self.start
                .add(from)
                .write_bytes(byte, self.layout.size() - from);
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.start, self.layout) };
    }
}

/// A queue pair of a device, connected with another one of the same device.
struct Loop {
    sim: Sim,
    pd: Pd,
    qp: Qp,
    cq: verbs_api::Cq,
}

impl Loop {
    fn new(profile: Profile) -> Self {
        let sim = Sim::new(SimConfig::new().profile(profile).mode(Mode::Inline));
        let context = sim.open_device("sim0").unwrap();
        let pd = sim.alloc_pd(context).unwrap();
        let cq = sim.create_cq(context, &CqInit::new(16)).unwrap();
        let [qp, peer] =
            [(); 2].map(|()| sim.create_qp(pd, &QpInit::new(QpType::Rc, cq, cq)).unwrap());
        sim.connect_rc(qp, peer, &RcParams::default()).unwrap();
        Self { sim, pd, qp, cq }
    }

    /// An RDMA Write of `length` bytes. Returns the status of its completion.
    fn write(&self, from: Mr, into: Mr, length: usize) -> verbs_api::Result<WcStatus> {
        let [from, into] = [self.sim.query_mr(from)?, self.sim.query_mr(into)?];
        let list = [from.sge(0, length as u32)];
        let wr = SendWr::rdma_write(1, &list, into.remote(0));
        self.sim
            .post_send(self.qp, &[wr])
            .map_err(|failed| failed.error)?;
        let mut wc = [Wc::default()];
        assert_eq!(self.sim.poll_cq(self.cq, &mut wc)?, 1);
        Ok(wc[0].status)
    }
}

/// The last byte of a write arrives after all others, for every length and every end (RDMA-26
/// promises less, but programs that poll rely on it, and common devices do it).
#[test]
fn the_last_byte_of_a_write_is_seen_last() {
    const MIB: usize = 1 << 20;
    let (profiles, lengths): (&[Profile], &[(usize, u32)]) = if cfg!(miri) {
        (&[Profile::SPEC], &[(64, 2), (61, 1), (3, 1)])
    } else {
        (
            &[Profile::SPEC, Profile::MLX5],
            &[(512, 2_000), (4093, 500), (MIB, 20)],
        )
    };
    for profile in profiles.iter().copied() {
        let link = Loop::new(profile);
        for (length, rounds) in lengths.iter().copied() {
            let mut pages = [(); 2].map(|()| Pages::new(length));
            // If the target is whole pages after the source, `memcpy` copies backwards.
            pages.sort_by_key(|pages| pages.start.addr());
            let [from, into] = pages;
            let [source, target] = [&from, &into].map(|pages| pages.register(&link.sim, link.pd));
            let (is_over, turn) = (AtomicBool::new(false), AtomicU32::new(0));
            let byte_of = |round: u32| (round % 255) as u8 + 1;
            let write = || -> verbs_api::Result<()> {
                for round in 1..=rounds {
                    // SAFETY: no work is posted, and no other thread uses the source.
                    unsafe { from.fill(0, byte_of(round)) };
                    assert_eq!(link.write(source, target, length)?, WcStatus::Success);
                    while turn.load(Ordering::Acquire) != round {
                        thread::yield_now();
                    }
                }
                Ok(())
            };
            // The rounds in which some bytes were still old.
            let read = || {
                let (mut old, mut expected) = (Vec::new(), vec![0; length]);
                for round in 1..=rounds {
                    expected.fill(byte_of(round));
                    while into.byte(length - 1).load(Ordering::Acquire) != byte_of(round) {
                        if is_over.load(Ordering::Relaxed) {
                            return old;
                        }
                        spin_loop();
                    }
                    // SAFETY: the next write is not posted before this round is over.
                    let is_new = unsafe { into.bytes() } == expected;
                    old.extend((!is_new).then_some(round));
                    turn.store(round, Ordering::Release);
                }
                old
            };
            let (written, old) = thread::scope(|scope| {
                let reader = scope.spawn(read);
                let written = write();
                is_over.store(true, Ordering::Relaxed);
                (written, reader.join().unwrap())
            });
            written.unwrap();
            assert_eq!(old, [], "writes of {length} bytes on {}", profile.name);
            for mr in [source, target] {
                link.sim.dereg_mr(mr).unwrap();
            }
        }
    }
}

/// Work owns the bytes that it names, and not the whole region.
#[test]
fn bytes_that_no_work_names_are_the_programs() {
    const HALF: usize = 128;
    let link = Loop::new(Profile::SPEC);
    let [from, into] = [(); 2].map(|()| Pages::new(2 * HALF));
    let [source, target] = [&from, &into].map(|pages| pages.register(&link.sim, link.pd));
    // SAFETY: no work is posted.
    unsafe { from.fill(0, 9) };
    thread::scope(|scope| {
        scope.spawn(|| {
            for byte in 0..8 {
                for pages in [&from, &into] {
                    // SAFETY: no work names the second half, and no other thread uses it.
                    unsafe { pages.fill(HALF, byte) };
                }
            }
        });
        for (source, target) in [(source, target), (target, source), (target, target)].repeat(2) {
            let status = link.write(source, target, HALF).unwrap();
            assert_eq!(status, WcStatus::Success);
        }
    });
    for pages in [&from, &into] {
        // SAFETY: all work is done.
        let (written, own) = unsafe { pages.bytes() }.split_at(HALF);
        assert_eq!((written, own), (&[9; HALF][..], &[7; HALF][..]));
    }
}

/// MR-24: a program that registers memory for reading need not promise that it can be written.
#[test]
fn safe_code_cannot_make_a_device_write_to_memory_that_was_registered_for_reading() {
    static CONSTANT: [u8; 64] = [1; 64];
    let link = Loop::new(Profile::SPEC);
    let source = link.sim.alloc_mr(link.pd, 64, Access::empty()).unwrap();
    let addr = CONSTANT.as_ptr().cast_mut();
    // SAFETY: the memory is static, and is only read.
    let mr = unsafe { link.sim.reg_mr(link.pd, addr, 64, Access::empty()) }.unwrap();
    let to = |access, length| MrChange {
        access: Some(access),
        length,
        ..MrChange::default()
    };
    for access in [Access::LOCAL_WRITE, Access::ALL_RDMA] {
        let refused = link.sim.rereg_mr(mr, &to(access, None)).unwrap_err();
        assert_eq!(refused.error.kind(), ErrorKind::Access);
        assert_eq!(refused.region, AfterRereg::Old);
    }
    let read = to(Access::REMOTE_READ, None);
    link.sim.rereg_mr(mr, &read).unwrap();
    let new = to(Access::ALL_RDMA, Some(64));
    link.sim.rereg_mr(mr, &new).unwrap();
    let status = link.write(source, mr, 64).unwrap();
    assert_eq!(status, WcStatus::Success, "memory of the simulator");
    assert_eq!(CONSTANT, [1; 64]);
    assert_eq!(mr.context(), link.pd.context());
}

/// Queue pairs of a device that are connected with each other, as owning objects.
struct OwnedLoop {
    pd: owned::Pd,
    cq: owned::Cq,
    near: owned::Qp,
    far: owned::Qp,
}

impl OwnedLoop {
    fn new() -> verbs_api::Result<Self> {
        let sim = Arc::new(Sim::new(SimConfig::new().mode(Mode::Inline)));
        let context = owned::Context::open(sim, "sim0")?;
        let (pd, cq) = (context.alloc_pd()?, context.cq(16).create()?);
        let [near, far] = [(); 2].map(|()| pd.qp(QpType::Rc, &cq, &cq).create());
        let (near, far) = (near?, far?);
        near.connect_rc(&far, &RcParams::default())?;
        Ok(Self { pd, cq, near, far })
    }

    fn register(&self, pages: &Pages) -> owned::Mr {
        let length = pages.layout.size();
        // SAFETY: as for `Pages::register`.
        let mr = unsafe { self.pd.reg_mr(pages.start, length, Access::ALL_RDMA) };
        mr.unwrap()
    }

    /// The number of successful completions of the work that is done.
    fn succeeded(&self) -> verbs_api::Result<usize> {
        let is_success = |wc: &owned::Completion| wc.status == WcStatus::Success;
        Ok(self.cq.poll()?.filter(is_success).count())
    }
}

/// A program with owning objects uses bytes next to those that a device reads and writes, in its
/// own memory and in the backend's.
#[test]
fn bytes_beside_the_work_of_owning_objects_are_the_programs() {
    const HALF: usize = 64;
    let link = OwnedLoop::new().unwrap();
    let [from, into] = [(); 2].map(|()| Pages::new(2 * HALF));
    let [source, target] = [&from, &into].map(|pages| link.register(pages));
    let backend = link.pd.alloc_mr(2 * HALF, Access::ALL_RDMA).unwrap();
    // SAFETY: no work is posted.
    unsafe { from.fill(0, 9) };
    thread::scope(|scope| {
        scope.spawn(|| {
            for byte in 0..8 {
                for pages in [&from, &into] {
                    // SAFETY: no work names the second half, and no other thread uses it.
                    unsafe { pages.fill(HALF, byte) };
                }
                backend.write(HALF, &[byte; HALF]).unwrap();
                assert_eq!(backend.read_vec(HALF, HALF).unwrap(), [byte; HALF]);
            }
        });
        let ways = [(&source, &target), (&source, &backend), (&backend, &target)];
        for (from, into) in ways.repeat(2) {
            let list = [from.sge(..HALF)];
            let write = owned::SendWr::rdma_write(1, &list, into.remote(0));
            link.near.post_send(write).unwrap();
            assert_eq!(link.succeeded().unwrap(), 1);
        }
    });
    assert_eq!(backend.read_vec(0, HALF).unwrap(), [9; HALF]);
    for mr in [source, target] {
        mr.destroy().unwrap();
    }
    for pages in [&from, &into] {
        // SAFETY: all work is done, and both regions are deregistered.
        let (written, own) = unsafe { pages.bytes() }.split_at(HALF);
        assert_eq!((written, own), (&[9; HALF][..], &[7; HALF][..]));
    }
}

/// A program drops the last handle of memory. The memory lives as long as posted work uses it,
/// while another thread takes the completions that end this work.
#[test]
fn memory_of_owning_objects_outlives_their_handles_while_work_uses_it() {
    const ROUNDS: usize = 4;
    let link = OwnedLoop::new().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut left = 2 * ROUNDS;
            while left > 0 {
                left -= link.succeeded().unwrap();
                thread::yield_now();
            }
        });
        for _ in 0..ROUNDS {
            let [from, into] = [(); 2].map(|()| link.pd.alloc_mr(16, Access::LOCAL_WRITE));
            let (from, into) = (from.unwrap(), into.unwrap());
            let recv = link.far.post_recv(RecvWr::new(1, &[into.sge(..)]));
            recv.unwrap();
            drop(into);
            let send = link.near.post_send(owned::SendWr::send(2, &[from.sge(..)]));
            send.unwrap();
        }
    });
}
