//! What [`Checked`] finds on devices with a defect, and that it finds nothing on those without.

mod alarms;
mod busy_port;
#[path = "../common/mod.rs"]
mod common;
mod defective;
mod dm;
#[path = "../common/interpose.rs"]
mod interpose;
mod right;
mod shared;

use std::sync::Arc;

use defective::{Defect, Defective};
use verbs_api::{
    Access, Arm, Cq, CqInit, Mr, MrAttr, Qp, QpCap, QpInit, QpModify, QpState, QpType, RcParams,
    RecvWr, SendWr, Sge, Verbs, Wait, Wc, connect,
};
use verbs_explore::{Broken, Checked, Invariant, Summary};
use verbs_sim::{Sim, SimConfig};

/// Each planted defect is found by the invariant that it breaks, in words that say what was seen.
#[test]
fn every_planted_defect_is_found_and_described() {
    use Defect as D;
    use Invariant as I;
    let expected = |defect: Defect| match defect {
        D::None | D::BusyPort => unreachable!("it is not a defect"),
        D::CompletionTwice => (I::Completion, "wr_id 0x1 SUCCESS"),
        D::CompletionLost => (I::Lost, "on cq#0, though nothing is under way"),
        D::LastCompletionLost => (I::Lost, "has not completed on"),
        D::CompletionsSwapped => (I::Completion, "next are receive wr_id 0x11"),
        D::WrongWrId => (I::Completion, "wr_id 0x10000000001 SUCCESS"),
        D::WrongQpNum => (
            I::Completion,
            "no queue pair of that number completes on it",
        ),
        D::WrongOpcode => (I::Completion, "RDMA_READ"),
        D::UnsignaledCompletes => (I::Completion, "next are unsignaled SEND wr_id 0x2"),
        D::CqsSwapped => (I::Lost, "on cq#0, though nothing is under way"),
        D::SuccessBehindFailure => (I::Completion, "to be flushed"),
        D::SecondFailure => (I::Completion, "RETRY_EXC_ERR"),
        D::InventedOverrun => (I::Lost, "reports an overrun; it has 16 entries"),
        D::MessageTwice => (I::Delivery, "the next is a send of 10 B"),
        D::MessagesSwapped => (I::Delivery, "the next is a send of 10 B"),
        D::MessageCut => (I::Delivery, "the next is a send of 8 B"),
        D::WrongImmediate => (I::Delivery, "with immediate [00, 00, 00, 07]"),
        D::ByteOutside => (I::Memory, "the byte at mr#0+0xfa0 is 0xff; it was 0x00"),
        D::ByteLate => (I::Memory, "and no work that was posted may write it"),
        D::AddTwice => (I::Atomic, "the counter at offset 0x800 is 0x6"),
        D::EventWithoutArm => (I::Event, "whose arms allow 1"),
        D::WrongCqContext => (I::Event, "has context 0x1, not 0x0"),
        D::GoneUnacknowledged => (I::Acknowledgement, "was destroyed while 1 of its events"),
        D::AcknowledgedTooMany => (
            I::Acknowledgement,
            "5 events of cq#1 were acknowledged; 1 were read",
        ),
        D::GoneInUse => (I::Resource, "was destroyed while"),
        D::InUseByNobody => (I::Resource, "is said to be in use, and nothing uses it"),
        D::Leak => (
            I::Resource,
            "has 1 objects of kind channel, and 0 were made and not destroyed",
        ),
        D::IterationTwice => (I::Completion, "next are SEND wr_id 0x11"),
        D::IterationSkips => (
            I::Completion,
            "wr_id 0x12 SUCCESS SEND, but next are SEND wr_id 0x11",
        ),
        D::IterationWrongWrId => (I::Completion, "wr_id 0x10000000010 SUCCESS SEND"),
        D::OverrunNotIgnored => (I::Lost, "it was created to ignore overruns"),
        D::WrongCqOfSrq => (I::Completion, "and no SRQ of it has such a receive"),
        D::WrongTarget => (I::Completion, "no queue pair of that number"),
        D::XrcdGoneInUse => (I::Resource, "was destroyed while"),
        D::XrcdInUseByNobody => (I::Resource, "is said to be in use, and nothing uses it"),
        D::XrcdLeak => (I::Resource, "has 1 objects of kind xrcd"),
        D::DmByte => (I::Memory, "the byte at dm#0+0x7 is 0x04; it was 0x05"),
    };
    let mut wrong = Vec::new();
    let others = Defect::SHARED.into_iter().chain([Defect::DmByte]);
    for defect in Defect::ALL.into_iter().chain(others) {
        let (invariant, words) = expected(defect);
        match run(defect) {
            Err(broken) if broken.invariant == invariant && broken.facts.contains(words) => {}
            Err(broken) => wrong.push(format!("{defect:?}: {broken}")),
            Ok(summary) => wrong.push(format!("{defect:?}: {summary}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nothing_is_found_on_a_device_without_a_defect() {
    let summary = run(Defect::None).unwrap();
    assert!(
        (summary.polled, summary.events) == (9, 1) && summary.bytes > 8192,
        "{summary}"
    );
}

/// The first four completions of each kind, then those that the CQ of the sender has kept.
#[test]
fn nothing_is_found_in_extended_queues_and_xrc_without_a_defect() {
    let checked = Checked::new(Arc::new(Sim::new(SimConfig::new())) as Arc<dyn Verbs>);
    shared::program(&checked);
    let summary = checked.finish().unwrap();
    assert_eq!(summary.polled, 22, "{summary}");
    assert_eq!(summary.posted, 28, "{summary}");
}

#[test]
fn nothing_is_found_in_device_memory_without_a_defect() {
    let checked = Checked::new(Arc::new(Sim::new(SimConfig::new())) as Arc<dyn Verbs>);
    dm::program(&checked);
    let summary = checked.finish().unwrap();
    assert_eq!(summary.bytes, 160, "{summary}");
}

#[test]
#[should_panic(expected = "invariant completion: ibv_poll_cq")]
fn what_is_broken_and_not_asked_for_is_a_panic() {
    let sim = Sim::new(SimConfig::new());
    let device: Arc<dyn Verbs> = Arc::new(Defective::new(sim, Defect::WrongWrId));
    program(&Checked::new(device), true);
}

fn run(defect: Defect) -> Result<Summary, Broken> {
    let sim = Sim::new(SimConfig::new());
    let device: Arc<dyn Verbs> = Arc::new(Defective::new(sim, defect));
    let checked = Checked::new(device);
    if Defect::SHARED.contains(&defect) {
        shared::program(&checked);
        return checked.finish();
    }
    if defect == Defect::DmByte {
        dm::program(&checked);
        return checked.finish();
    }
    // Completions that are removed with their queue pair cannot be missed.
    program(&checked, defect != Defect::LastCompletionLost);
    checked.finish()
}

/// A call of the end of the program.
type DestroyStep = Box<dyn FnOnce(&dyn Verbs)>;

/// One end of the program's connection.
struct Side {
    mr: Mr,
    mem: MrAttr,
    qp: Qp,
    destroy: Vec<DestroyStep>,
}

/// Uses a bit of everything, and goes on whatever the device says.
fn program(verbs: &dyn Verbs, destroys: bool) {
    let side = |name| {
        let context = verbs.open_device(name).unwrap();
        let pd = verbs.alloc_pd(context).unwrap();
        let access = Access::ALL_RDMA | Access::REMOTE_ATOMIC;
        let mr = verbs.alloc_mr(pd, 4096, access).unwrap();
        let channel = verbs.create_comp_channel(context).unwrap();
        let send_cq = verbs.create_cq(context, &CqInit::new(16)).unwrap();
        let init = CqInit::new(16).channel(channel);
        let recv_cq = verbs.create_cq(context, &init).unwrap();
        let init = QpInit::new(QpType::Rc, send_cq, recv_cq).cap(QpCap::default());
        let qp = verbs.create_qp(pd, &init).unwrap();
        let mem = verbs.query_mr(mr).unwrap();
        let destroy: Vec<DestroyStep> = vec![
            Box::new(move |v| drop(v.dealloc_pd(pd))),
            Box::new(move |v| drop(v.destroy_qp(qp, Wait::Poll))),
            Box::new(move |v| drop(v.destroy_cq(send_cq, Wait::Poll))),
            Box::new(move |v| drop(v.destroy_cq(recv_cq, Wait::Poll))),
            Box::new(move |v| drop(v.ack_cq_events(recv_cq, 5))),
            Box::new(move |v| drop(v.ack_cq_events(recv_cq, 1))),
            Box::new(move |v| drop(v.destroy_cq(recv_cq, Wait::Poll))),
            Box::new(move |v| drop(v.destroy_comp_channel(channel))),
            Box::new(move |v| drop(v.dereg_mr(mr))),
            Box::new(move |v| drop(v.dealloc_pd(pd))),
        ];
        (
            Side {
                mr,
                mem,
                qp,
                destroy,
            },
            ([send_cq, recv_cq], channel),
        )
    };
    let (a, (a_cqs, _)) = side("sim0");
    let (b, (b_cqs, channel)) = side("sim1");
    let params = RcParams {
        access: Access::ALL_RDMA | Access::REMOTE_ATOMIC,
        ..RcParams::default()
    };
    connect::by_attributes(verbs, a.qp, b.qp, &params).unwrap();
    let settle = || drop(verbs.lab().unwrap().settle());
    let poll = |[send_cq, recv_cq]: [Cq; 2]| {
        let mut wc = [Wc::default(); 4];
        for cq in [send_cq, recv_cq].repeat(4) {
            let _ = verbs.poll_cq(cq, &mut wc);
        }
    };
    for (wr_id, offset) in [(0x11, 0), (0x12, 64), (0x13, 128), (0x14, 192)] {
        let list = [b.mem.sge(offset, 64)];
        verbs.post_recv(b.qp, &[RecvWr::new(wr_id, &list)]).unwrap();
    }
    verbs.write_mr(a.mr, 0, &[7; 64]).unwrap();
    verbs.req_notify_cq(b_cqs[1], Arm::NEXT).unwrap();
    // Messages of different lengths, one without a completion, one with immediate data.
    let [short, long, longer] = [8, 10, 12].map(|length| [a.mem.sge(0, length)]);
    let _ = verbs.post_send(a.qp, &[SendWr::send(1, &short)]);
    settle();
    poll(a_cqs);
    let unsignaled = SendWr::send(2, &long).unsignaled();
    let signaled = SendWr::send_with_imm(3, &longer, [0, 0, 0, 7]);
    let _ = verbs.post_send(a.qp, &[unsignaled, signaled]);
    settle();
    let _ = verbs.get_cq_event(channel, Wait::Poll);
    let _ = verbs.get_cq_event(channel, Wait::Poll);
    poll(b_cqs);
    poll(a_cqs);
    let mut bytes = [0; 8];
    for _ in 0..2 {
        let _ = verbs.read_mr(b.mr, 0, &mut bytes);
    }
    // A counter.
    let list = [a.mem.sge(1024, 8)];
    let add = SendWr::fetch_and_add(4, &list, b.mem.remote(2048), 3);
    let _ = verbs.post_send(a.qp, &[add]);
    settle();
    poll(a_cqs);
    let _ = verbs.read_mr(b.mr, 2048, &mut bytes);
    // A failure, and what is behind it.
    let bad = [Sge {
        lkey: !a.mem.lkey,
        ..a.mem.sge(0, 8)
    }];
    let _ = verbs.post_send(a.qp, &[SendWr::send(5, &bad), SendWr::send(6, &short)]);
    settle();
    poll(a_cqs);
    // What is flushed.
    let to_err = QpModify::to(QpState::Err);
    let _ = verbs.modify_qp(b.qp, &to_err.attr, to_err.mask);
    settle();
    poll(b_cqs);
    let _ = verbs.read_mr(b.mr, 0, &mut bytes);
    if !destroys {
        return;
    }
    for side in [b, a] {
        for step in side.destroy {
            step(verbs);
        }
    }
}
