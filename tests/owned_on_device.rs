//! One program written with `verbs_api::owned`, on the simulator and, unchanged, on a real device.
//!
//! `VERBSIM_DEVICE` names the device; without it that test is skipped, with a message.
//! `./check hardware` runs it on soft-RoCE and soft-iWARP.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use verbs_api::owned::{CompChannel, Completion, Context, Cq, Qp, RecvWr, SendWr};
use verbs_api::{
    Access, AfterRereg, Arm, ErrorKind, MrChange, QpModify, QpState, QpType, RcParams, Result,
    Verbs, Wait, WcOpcode, WcStatus,
};
use verbs_sim::{Mode, Sim, SimConfig};
use verbsim::backend::Kind;

#[test]
fn on_the_simulator() {
    for mode in [Mode::Inline, Mode::Stepped] {
        program(Arc::new(Sim::new(SimConfig::new().mode(mode))), "sim0").unwrap();
    }
    let inline = Arc::new(Sim::new(SimConfig::new().mode(Mode::Inline)));
    objects_go_while_events_are_read(inline.clone(), "sim0").unwrap();
    no_change_makes_a_constant_writable(&*inline, "sim0").unwrap();
}

#[test]
fn on_a_device() {
    let Ok(device) = std::env::var("VERBSIM_DEVICE") else {
        // Not by a macro: those of a test that passes are not shown.
        writeln!(io::stderr(), "skipped: VERBSIM_DEVICE names no device").unwrap();
        return;
    };
    let verbs: Arc<dyn Verbs> = Kind::Hw.verbs().expect("the system is Linux").into();
    program(verbs.clone(), &device).unwrap();
    objects_go_while_events_are_read(verbs.clone(), &device).unwrap();
    no_change_makes_a_constant_writable(&*verbs, &device).unwrap();
}

/// How long a completion may take. Virtual time on the simulator; long on an emulated machine.
const SOON: Wait = Wait::For(Duration::from_secs(30));

/// Messages each way, RDMA both ways, an unsignaled send, a failed queue pair, a channel of two
/// CQs, everything dropped in an order that raw handles would not allow.
fn program(verbs: Arc<dyn Verbs>, device: &str) -> Result<()> {
    let context = Context::open(verbs, device)?;
    let pd = context.alloc_pd()?;
    let channel = context.create_comp_channel()?;
    let cqs = [
        context.cq(32).channel(&channel).create()?,
        context.cq(32).channel(&channel).create()?,
    ];
    let [near, far] = [
        pd.qp(QpType::Rc, &cqs[0], &cqs[0]).create()?,
        pd.qp(QpType::Rc, &cqs[1], &cqs[1]).create()?,
    ];
    near.connect_rc(&far, &RcParams::default())?;

    let mr = pd.alloc_mr(4096, Access::ALL_RDMA)?;
    mr.write(0, b"there and back")?;
    let into = pd.alloc_mr(64, Access::LOCAL_WRITE)?;
    far.post_recv(RecvWr::new(1, &[into.sge(..)]))?;
    near.post_send(SendWr::send(1, &[mr.sge(..14)]))?;
    let [sent, received] = both(&channel, &cqs)?;
    assert_eq!((sent.wr_id, sent.opcode), (1, WcOpcode::Send));
    assert_eq!((received.wr_id, received.byte_len), (1, 14));
    assert_eq!(into.read_vec(0, 14)?, b"there and back");

    // The regions of work that is under way may be dropped, and the numbers be used again.
    near.post_recv(RecvWr::new(1, &[mr.sge(1000..1014)]))?;
    far.post_send(SendWr::send(1, &[into.sge(..14)]))?;
    drop(into);
    both(&channel, &cqs)?;
    assert_eq!(mr.read_vec(1000, 14)?, b"there and back");

    // Done with it: the unsignaled write, when the read behind it is.
    let copy = pd.alloc_mr(14, Access::LOCAL_WRITE)?;
    let part = [mr.sge(..14)];
    let write = SendWr::rdma_write(7, &part, mr.remote(2000)).unsignaled();
    near.post_send(write)?;
    near.post_send(SendWr::rdma_read(8, &[copy.sge(..)], mr.remote(2000)))?;
    let read = next(&channel, &cqs[0])?;
    assert_eq!((read.wr_id, read.status), (8, WcStatus::Success));
    assert_eq!(copy.read_vec(0, 14)?, b"there and back");
    copy.destroy()?;

    // What was posted comes back when the queue pair fails. (Before that: some devices do not flush
    // what is posted later.)
    near.post_recv(RecvWr::new(9, &[mr.sge(..8)]))?;
    near.modify(&QpModify::to(QpState::Err))?;
    let flushed = next(&channel, &cqs[0])?;
    assert_eq!((flushed.wr_id, flushed.status), (9, WcStatus::WrFlushErr));
    assert_eq!(flushed.opcode, WcOpcode::Recv, "known though it failed");

    let refused = mr.clone().destroy().expect_err("there is another handle");
    assert_eq!(refused.error.kind(), ErrorKind::Busy);
    drop(refused);
    far.post_recv(RecvWr::new(10, &[mr.sge(..8)]))?;
    drop((context, pd, channel, cqs));
    mr.destroy().expect_err("the receive holds it");
    drop(near);
    Qp::destroy(far)?;
    Ok(())
}

/// A thread reads the events of a channel while another drops the CQs that they are of: no event is
/// left without an acknowledgement, so that no destruction waits for one, in C or here.
fn objects_go_while_events_are_read(verbs: Arc<dyn Verbs>, device: &str) -> Result<()> {
    const ROUNDS: u32 = 60;
    let context = Context::open(verbs, device)?;
    let pd = context.alloc_pd()?;
    let channel = context.create_comp_channel()?;
    let rest = context.cq(1).create()?;
    let mr = pd.alloc_mr(8, Access::LOCAL_WRITE)?;
    let (done, read) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let event = channel.get_event(Wait::Poll).unwrap();
                read.fetch_add(u32::from(event.is_some()), Ordering::Relaxed);
            }
        });
        let rounds = || {
            for round in 0..ROUNDS {
                let cq = context.cq(4).channel(&channel).create()?;
                cq.req_notify(Arm::NEXT)?;
                let qp = pd.qp(QpType::Rc, &rest, &cq).create()?;
                let peer = pd.qp(QpType::Rc, &rest, &rest).create()?;
                qp.connect_rc(&peer, &RcParams::default())?;
                qp.post_recv(RecvWr::new(0, &[mr.sge(..)]))?;
                qp.modify(&QpModify::to(QpState::Err))?;
                while round == 0 && read.load(Ordering::Relaxed) == 0 {
                    thread::yield_now();
                }
            }
            Ok(())
        };
        let result: Result<()> = rounds();
        done.store(true, Ordering::Relaxed);
        result
    })?;
    // None of them stayed behind.
    drop((rest, mr, pd));
    channel.destroy()?;
    context.close()?;
    Ok(())
}

/// The next completion, which is of this CQ.
fn next(channel: &CompChannel, cq: &Cq) -> Result<Completion> {
    let mut batch = channel.wait(SOON)?.expect("it comes soon");
    assert_eq!(batch.cq(), cq);
    Ok(batch.next().expect("it is not empty"))
}

/// One successful completion of each CQ, in whatever order they come.
fn both(channel: &CompChannel, cqs: &[Cq; 2]) -> Result<[Completion; 2]> {
    let mut got = [None; 2];
    while got.contains(&None) {
        let mut batch = channel.wait(SOON)?.expect("it comes soon");
        let at = usize::from(*batch.cq() == cqs[1]);
        let wc = batch.next().expect("it is not empty");
        assert_eq!(wc.status, WcStatus::Success, "{wc}");
        assert_eq!(got[at].replace(wc), None, "one of each was expected");
    }
    Ok(got.map(|wc| wc.expect("the loop has ended")))
}

/// MR-24: without a promise by the caller that the memory can be written.
fn no_change_makes_a_constant_writable(verbs: &dyn Verbs, device: &str) -> Result<()> {
    static CONSTANT: [u8; 64] = [1; 64];
    let context = verbs.open_device(device)?;
    let pd = verbs.alloc_pd(context)?;
    let addr = CONSTANT.as_ptr().cast_mut();
    #[allow(unsafe_code, reason = "the caller's own memory is registered")]
    // SAFETY: the memory is there forever, and is only read.
    let mr = unsafe { verbs.reg_mr(pd, addr, CONSTANT.len(), Access::empty()) }?;
    for access in [Access::LOCAL_WRITE, Access::ALL_RDMA] {
        let change = MrChange {
            access: Some(access),
            ..MrChange::default()
        };
        let refused = verbs.rereg_mr(mr, &change).unwrap_err();
        assert_eq!(refused.error.kind(), ErrorKind::Access, "{refused}");
        assert_eq!(refused.region, AfterRereg::Old);
    }
    verbs.dereg_mr(mr)?;
    verbs.dealloc_pd(pd)?;
    verbs.close_device(context)
}
