//! Memory windows against a model of a few lines.

use proptest::prelude::*;
use verbs_api::{
    Access, Mw, MwBind, MwBindInfo, MwType, Qp, QpModify, QpState, QpType, RcParams, RecvWr,
    Remote, SendWr, Verbs, WcStatus, connect, inc_rkey,
};
use verbs_sim::SimConfig;

use crate::common::{End, checked, pair, property_config, settle};

/// What is done with one of a few windows of one region.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Binds a range of bytes with rights.
    Bind(usize, u64, u64, Access),
    Invalidate(usize),
    /// The peer does it.
    InvalidateFromAfar(usize),
    /// Eight bytes at an offset of the region, with the window's key of now or of before.
    Write(usize, u64, bool),
    /// A new one takes its place.
    Dealloc(usize),
}

const TYPES: [MwType; 4] = [MwType::Type1, MwType::Type1, MwType::Type2, MwType::Type2];
const REGION: u64 = 64;
const BYTES: u64 = 8;
const WRITE: Access = Access::REMOTE_WRITE;

fn step() -> impl Strategy<Value = Step> {
    let window = 0..TYPES.len();
    let rights = prop::sample::select(vec![WRITE, Access::REMOTE_READ]);
    let start = (0..=9_u64).prop_map(|n| n * 8);
    let length = prop::sample::select(vec![0, 8, 16, REGION]);
    prop_oneof![
        4 => (window.clone(), start, length, rights)
            .prop_map(|(window, start, length, rights)| Step::Bind(window, start, length, rights)),
        1 => window.clone().prop_map(Step::Invalidate),
        1 => window.clone().prop_map(Step::InvalidateFromAfar),
        4 => (window.clone(), 0..=REGION, prop::bool::weighted(0.9))
            .prop_map(|(window, offset, now)| Step::Write(window, offset, now)),
        1 => window.prop_map(Step::Dealloc),
    ]
}

/// A window as it should be.
#[derive(Clone, Copy)]
struct Window {
    mw: Mw,
    mw_type: MwType,
    key: u32,
    before: u32,
    bound: Option<(u64, u64, Access)>,
}

/// Two ends, of which the far one has the windows, and the queue pairs between them.
struct Ends<'v> {
    sim: &'v dyn Verbs,
    near: End<'v>,
    far: End<'v>,
    qps: [Qp; 2],
}

impl Ends<'_> {
    fn window(&self, mw_type: MwType) -> Window {
        let mw = self.sim.alloc_mw(self.far.pd, mw_type).unwrap();
        let key = self.sim.query_mw(mw).unwrap().rkey;
        let (before, bound) = (key, None);
        Window {
            mw,
            mw_type,
            key,
            before,
            bound,
        }
    }

    /// With what the work that was posted at an end completes; after an error both are connected
    /// again.
    fn status(&self, end: &End<'_>) -> WcStatus {
        settle(self.sim);
        let status = end.drain()[0].status;
        self.near.drain();
        self.far.drain();
        if status != WcStatus::Success || self.far.state(self.qps[1]) == QpState::Err {
            let QpModify { attr, mask } = QpModify::to(QpState::Reset);
            for qp in self.qps {
                self.sim.modify_qp(qp, &attr, mask).unwrap();
            }
            let [near, far] = self.qps;
            connect::by_attributes(self.sim, near, far, &params()).unwrap();
        }
        status
    }
}

/// What is not answered is given up at once.
fn params() -> RcParams {
    RcParams {
        timeout: 1,
        retry_cnt: 0,
        ..RcParams::default()
    }
}

proptest! {
    #![proptest_config(property_config())]

    /// MW-01..-03, MW-08, MW-10, MW-11, MW-13..-17, MW-19, MW-21, MW-23, MR-07: a window opens what
    /// it was last bound to, with its last key alone, until it is unbound; and its region is busy
    /// exactly as long as one is bound.
    #[test]
    fn windows_open_what_they_are_bound_to_and_nothing_else(
        program in prop::collection::vec(step(), 1..40),
    ) {
        let sim = checked(SimConfig::new());
        let [near, far] = ["sim0", "sim1"].map(|name| End::open(&sim, name, 64, 4096));
        let (qp, peer) = pair((&near, &far), QpType::Rc, 8, &params());
        let access = Access::LOCAL_WRITE | Access::MW_BIND;
        let mr = sim.alloc_mr(far.pd, REGION as usize, access).unwrap();
        let addr = sim.query_mr(mr).unwrap().addr;
        let ends = Ends { sim: &sim, near, far, qps: [qp, peer] };
        let mut windows = TYPES.map(|mw_type| ends.window(mw_type));
        for step in program {
            match step {
                Step::Bind(n, start, length, access) => {
                    let window = &mut windows[n];
                    let info = MwBindInfo { mr, addr: addr + start, length, access };
                    let second = window.mw_type == MwType::Type2;
                    let key = inc_rkey(sim.query_mw(window.mw).unwrap().rkey);
                    if second {
                        far.post(peer, SendWr::bind_mw(1, window.mw, key, info));
                    } else {
                        sim.bind_mw(peer, window.mw, &MwBind::new(1, info)).unwrap();
                    }
                    let fits = length == 0 || start + length <= REGION;
                    let good = fits && (!second || length > 0 && window.bound.is_none());
                    let expected = if good { WcStatus::Success } else { WcStatus::MwBindErr };
                    prop_assert_eq!(ends.status(&far), expected, "{:?}", step);
                    if good {
                        (window.before, window.key) = (window.key, key);
                        window.bound = (length > 0).then_some((start, length, access));
                    }
                }
                Step::Invalidate(n) => {
                    let window = &mut windows[n];
                    far.post(peer, SendWr::local_inv(1, window.key));
                    let good = window.mw_type == MwType::Type2 && window.bound.is_some();
                    let done = ends.status(&far) == WcStatus::Success;
                    prop_assert_eq!(done, good, "{:?}", step);
                    if good {
                        window.bound = None;
                    }
                }
                Step::InvalidateFromAfar(n) => {
                    let window = &mut windows[n];
                    sim.post_recv(peer, &[RecvWr::new(1, &[])]).unwrap();
                    near.post(qp, SendWr::send_with_inv(2, &[], window.key));
                    let good = window.mw_type == MwType::Type2 && window.bound.is_some();
                    let done = ends.status(&far) == WcStatus::Success;
                    prop_assert_eq!(done, good, "{:?}", step);
                    if good {
                        window.bound = None;
                    }
                }
                Step::Write(n, offset, now) => {
                    let window = windows[n];
                    let rkey = if now { window.key } else { window.before };
                    let remote = Remote { addr: addr + offset, rkey };
                    near.post(qp, SendWr::rdma_write(1, &[near.mem.sge(0, BYTES as u32)], remote));
                    let opens = rkey == window.key && window.bound.is_some_and(|bound| {
                        let (start, length, access) = bound;
                        let within = start <= offset && offset + BYTES <= start + length;
                        within && access == WRITE
                    });
                    let expected = if opens { WcStatus::Success } else { WcStatus::RemAccessErr };
                    prop_assert_eq!(ends.status(&near), expected, "{:?}", step);
                }
                Step::Dealloc(n) => {
                    sim.dealloc_mw(windows[n].mw).unwrap();
                    windows[n] = ends.window(TYPES[n]);
                }
            }
        }
        let bound = windows.iter().any(|window| window.bound.is_some());
        prop_assert_eq!(sim.dereg_mr(mr).is_err(), bound);
        for window in windows {
            sim.dealloc_mw(window.mw).unwrap();
        }
        prop_assert_eq!(sim.dereg_mr(mr).is_ok(), bound);
    }
}
