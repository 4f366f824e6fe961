//! What a device places late is there before the program may use the memory for something else.

mod common;

use common::{End, pair, settle};
use verbs_api::profile::Profile;
use verbs_api::{
    Access, Mr, MrChange, MrInit, MrMemory, MwBind, MwBindInfo, MwType, Qp, QpAttrMask, QpInit,
    QpModify, QpState, QpType, RcParams, RecvWr, Remote, SendOp, SendWr, Srq, SrqInit, Verbs, Wait,
    XrcdInit, connect,
};
use verbs_sim::{Sim, SimConfig};

const MESSAGE: &[u8] = b"all of it or not";
const LENGTH: u32 = MESSAGE.len() as u32;

/// Two ends, connected. The near one writes into the memory of the far one, which does not poll.
struct Link<'v> {
    near: End<'v>,
    far: End<'v>,
    qp: Qp,
    peer: Qp,
}

impl<'v> Link<'v> {
    fn new(sim: &'v Sim) -> Self {
        Self::with(sim, Access::ALL_RDMA)
    }

    /// With this access to the memory of the far end.
    fn with(sim: &'v Sim, access: Access) -> Self {
        let [near, far] = ["sim0", "sim1"].map(|name| End::open(sim, name, 16, 64));
        let change = MrChange {
            access: Some(access),
            ..MrChange::default()
        };
        sim.rereg_mr(far.mr, &change).unwrap();
        let (qp, peer) = pair((&near, &far), QpType::Rc, 4, &RcParams::default());
        near.write(0, MESSAGE);
        Self {
            near,
            far,
            qp,
            peer,
        }
    }

    fn post(&self, qp: Qp, op: SendOp, srqn: u32) {
        let data = [self.near.mem.sge(0, LENGTH)];
        self.near.post(qp, SendWr::new(1, op, &data).to_srq(srqn));
        settle(self.near.verbs);
    }

    fn write(&self, remote: Remote) {
        self.post(self.qp, SendOp::RdmaWrite { remote }, 0);
    }

    /// An additional XRC connection: a sender at the near end, its target at the far end, and an
    /// SRQ of the domain with its number.
    fn xrc(&self) -> (Qp, Qp, Srq, u32) {
        let Self { near, far, .. } = self;
        let verbs = far.verbs;
        let xrcd = XrcdInit::private();
        let xrcd = verbs.open_xrcd(far.context, &xrcd).unwrap();
        let init = SrqInit::new(1).xrc(xrcd, far.cq);
        let srq = verbs.create_srq(far.pd, &init).unwrap();
        let target = verbs.create_xrc_recv_qp(xrcd).unwrap();
        let init = QpInit::new(QpType::XrcSend, near.cq, near.cq);
        let qp = verbs.create_qp(near.pd, &init).unwrap();
        connect::by_attributes(verbs, qp, target, &RcParams::default()).unwrap();
        (qp, target, srq, verbs.srq_num(srq).unwrap())
    }

    fn modify(&self, QpModify { attr, mask }: QpModify) {
        self.far.verbs.modify_qp(self.peer, &attr, mask).unwrap();
    }
}

/// Writes, and brings about that nothing more is written; into which region it wrote.
type Way = fn(&Link<'_>) -> Mr;

const WAYS: [(&str, Way); 11] = [
    ("the QP is destroyed", |link| {
        link.write(link.far.mem.remote(0));
        link.far.verbs.destroy_qp(link.peer, Wait::Poll).unwrap();
        link.far.mr
    }),
    ("the QP is destroyed with its receive", |link| {
        link.far.recv(link.peer, 1, 0, LENGTH);
        link.post(link.qp, SendOp::Send, 0);
        link.far.verbs.destroy_qp(link.peer, Wait::Poll).unwrap();
        link.far.mr
    }),
    ("the QP goes to RESET", |link| {
        link.write(link.far.mem.remote(0));
        link.modify(QpModify::to(QpState::Reset));
        link.far.mr
    }),
    ("the QP goes to ERR", |link| {
        link.write(link.far.mem.remote(0));
        link.modify(QpModify::to(QpState::Err));
        link.far.mr
    }),
    ("the QP fails", |link| {
        link.write(link.far.mem.remote(0));
        let bad_key = Remote {
            rkey: 0,
            ..link.far.mem.remote(0)
        };
        link.write(bad_key);
        assert_eq!(link.far.state(link.peer), QpState::Err);
        link.far.mr
    }),
    ("the QP allows it no more", |link| {
        link.write(link.far.mem.remote(0));
        let to = QpModify::to(QpState::Rts);
        link.modify(to.set(QpAttrMask::ACCESS_FLAGS, |attr| {
            attr.qp_access_flags = Access::empty();
        }));
        link.far.mr
    }),
    ("the region allows it no more", |link| {
        link.write(link.far.mem.remote(0));
        let change = MrChange {
            access: Some(Access::LOCAL_WRITE),
            ..MrChange::default()
        };
        link.far.verbs.rereg_mr(link.far.mr, &change).unwrap();
        link.far.mr
    }),
    ("the region goes, and another has its memory", |link| {
        let verbs = link.far.verbs;
        let init = MrInit::new(64, Access::ALL_RDMA).memory(MrMemory::Of(link.far.mr, 0));
        let mr = verbs.alloc_mr_as(link.far.pd, &init).unwrap();
        link.write(verbs.query_mr(mr).unwrap().remote(0));
        verbs.dereg_mr(mr).unwrap();
        link.far.mr
    }),
    ("the window is deallocated", |link| {
        let verbs = link.far.verbs;
        let access = Access::LOCAL_WRITE | Access::MW_BIND;
        let mr = verbs.alloc_mr(link.far.pd, 64, access).unwrap();
        let mw = verbs.alloc_mw(link.far.pd, MwType::Type1).unwrap();
        let addr = verbs.query_mr(mr).unwrap().addr;
        let info = MwBindInfo {
            mr,
            addr,
            length: 64,
            access: Access::REMOTE_WRITE,
        };
        verbs.bind_mw(link.peer, mw, &MwBind::new(1, info)).unwrap();
        settle(verbs);
        let rkey = verbs.query_mw(mw).unwrap().rkey;
        link.write(Remote { addr, rkey });
        verbs.dealloc_mw(mw).unwrap();
        mr
    }),
    ("the SRQ is destroyed", |link| {
        let verbs = link.far.verbs;
        let (qp, _, srq, number) = link.xrc();
        let room = [link.far.mem.sge(0, LENGTH)];
        verbs.post_srq_recv(srq, &[RecvWr::new(1, &room)]).unwrap();
        link.post(qp, SendOp::Send, number);
        verbs.destroy_srq(srq, Wait::Poll).unwrap();
        link.far.mr
    }),
    ("the target is closed where it was open last", |link| {
        let (qp, target, _, number) = link.xrc();
        let remote = link.far.mem.remote(0);
        link.post(qp, SendOp::RdmaWrite { remote }, number);
        link.far.verbs.destroy_qp(target, Wait::Poll).unwrap();
        link.far.mr
    }),
];

/// RDMA-26, RO-03, QP-FLUSH-11, MR-05: when the verb that ends what a device may do with memory has
/// returned, or the QP has gone to ERR by itself, the device writes there no more.
#[test]
fn nothing_is_placed_later_than_the_memory_is_the_programs_again() {
    let accesses = [
        Access::ALL_RDMA,
        Access::ALL_RDMA | Access::RELAXED_ORDERING,
    ];
    for ((what, way), access) in WAYS
        .iter()
        .flat_map(|way| accesses.map(|access| (way, access)))
    {
        let sim = Sim::new(SimConfig::new().profile(Profile::ADVERSARIAL));
        let mr = way(&Link::with(&sim, access));
        let mut seen = [0; MESSAGE.len()];
        sim.read_mr(mr, 0, &mut seen).unwrap();
        assert_eq!(seen, MESSAGE, "{what}, {access:?}");
    }
}

/// Memory of the program's own, which is never freed; its region at the far end, into which the
/// near end has written.
#[expect(unsafe_code, reason = "the caller's memory")]
fn written_to_the_programs_own(sim: &Sim) -> (Link<'_>, Mr, *mut u8) {
    let link = Link::new(sim);
    let memory = Box::leak(Box::new([0; MESSAGE.len()])).as_mut_ptr();
    // SAFETY: the memory is never freed, and a test uses it when no work or region names it any
    // more.
    let mr = unsafe { sim.reg_mr(link.far.pd, memory, MESSAGE.len(), Access::ALL_RDMA) }.unwrap();
    link.write(sim.query_mr(mr).unwrap().remote(0));
    (link, mr, memory)
}

/// Late data also reaches memory of the program, which it may write to after the QP is destroyed.
#[test]
#[expect(unsafe_code, reason = "the caller's memory")]
fn memory_of_the_program_is_its_own_when_the_qp_is_destroyed() {
    let sim = Sim::new(SimConfig::new().profile(Profile::ADVERSARIAL));
    let (link, mr, memory) = written_to_the_programs_own(&sim);
    sim.destroy_qp(link.peer, Wait::Poll).unwrap();
    let own = [0x55; MESSAGE.len()];
    // SAFETY: the memory is valid, and no QP can reach it any more.
    unsafe { memory.copy_from(own.as_ptr(), own.len()) };
    link.near.drain();
    sim.dereg_mr(mr).unwrap();
    // SAFETY: the memory is valid, and no QP can reach it any more.
    let seen = unsafe { memory.cast::<[u8; MESSAGE.len()]>().read() };
    assert_eq!(seen, own);
}

/// MR-05: the same when its region is deregistered, and the QP is as it was. What was written is
/// there.
#[test]
#[expect(unsafe_code, reason = "the caller's memory")]
fn memory_of_the_program_is_its_own_when_its_region_is_deregistered() {
    let sim = Sim::new(SimConfig::new().profile(Profile::ADVERSARIAL));
    let (_, mr, memory) = written_to_the_programs_own(&sim);
    sim.dereg_mr(mr).unwrap();
    // SAFETY: the memory is valid, and no device has it any more.
    let seen = unsafe { memory.cast::<[u8; MESSAGE.len()]>().read() };
    assert_eq!(seen, MESSAGE);
}
