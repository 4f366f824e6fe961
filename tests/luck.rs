//! Programs that lean on luck: each is right on a device that does what most do, and wrong on one
//! that does no more than it must, which is what profile `adversarial` is for.

mod common;

use common::{End, drain, pair, settle, take_events};
use verbs_api::profile::Profile;
use verbs_api::{Access, Arm, QpType, RcParams, RecvWr, SendWr, Verbs, Wc, WcOpcode, WcStatus};
use verbs_sim::{Sim, SimConfig};

/// A program that is run; whether it got what it expects.
type Program = fn(&dyn Verbs) -> bool;

fn is_right_on(profile: Profile, program: Program) -> bool {
    program(&Sim::new(SimConfig::new().profile(profile)))
}

fn leans_on_luck(program: Program) {
    assert!(
        is_right_on(Profile::SPEC, program),
        "the program is wrong anywhere"
    );
    assert!(
        !is_right_on(Profile::ADVERSARIAL, program),
        "luck was with it"
    );
}

/// RDMA-26: the last byte of a write says nothing of those before it.
#[test]
fn who_waits_for_the_last_byte_of_a_write_may_read_half_of_it() {
    leans_on_luck(|verbs| {
        const MESSAGE: &[u8] = b"all of it or not";
        let [a, b] = ["sim0", "sim1"].map(|name| End::open(verbs, name, 16, 64));
        let (qp, _) = pair((&a, &b), QpType::Rc, 4, &RcParams::default());
        a.write(0, MESSAGE);
        let source = [a.mem.sge(0, MESSAGE.len() as u32)];
        a.post(qp, SendWr::rdma_write(1, &source, b.mem.remote(0)));
        settle(verbs);
        let seen = b.read(0, MESSAGE.len());
        assert_eq!(seen.last(), MESSAGE.last(), "it has arrived");
        seen == MESSAGE
    });
}

/// A program that writes data, and then a flag, into memory with this access. It polls memory for
/// the flag. Whether the data was there whenever the flag was.
fn finds_data_behind_a_flag(verbs: &dyn Verbs, access: Access) -> bool {
    const LENGTH: u32 = 64;
    let [a, b] = ["sim0", "sim1"].map(|name| End::open(verbs, name, 16, 128));
    let (qp, _) = pair((&a, &b), QpType::Rc, 4, &RcParams::default());
    let mr = verbs.alloc_mr(b.pd, 128, access).unwrap();
    let mem = verbs.query_mr(mr).unwrap();
    (1..32).all(|round| {
        a.write(0, &[round; LENGTH as usize]);
        let (data, flag) = ([a.mem.sge(0, LENGTH)], [a.mem.sge(0, 1)]);
        a.post(qp, SendWr::rdma_write(1, &data, mem.remote(0)));
        a.post(qp, SendWr::rdma_write(2, &flag, mem.remote(64)));
        settle(verbs);
        let mut seen = [0; LENGTH as usize + 1];
        verbs.read_mr(mr, 0, &mut seen).unwrap();
        assert_eq!(a.drain().len(), 2);
        let [seen @ .., flag] = seen;
        flag != round || seen == [round; LENGTH as usize]
    })
}

/// RO-01, RO-02: writes of a queue pair are in order, until their memory is relaxed.
#[test]
fn who_polls_relaxed_memory_for_a_flag_may_find_it_before_the_data() {
    let keeps_order = |verbs: &dyn Verbs| finds_data_behind_a_flag(verbs, Access::ALL_RDMA);
    assert!(is_right_on(Profile::ADVERSARIAL, keeps_order));
    leans_on_luck(|verbs| {
        let access = Access::ALL_RDMA | Access::RELAXED_ORDERING;
        finds_data_behind_a_flag(verbs, access)
    });
}

/// WC-01: the opcode of a failed completion means nothing.
#[test]
fn who_tells_failed_receives_by_their_opcode_takes_them_for_something_else() {
    leans_on_luck(|verbs| {
        let [a, b] = ["sim0", "sim1"].map(|name| End::open(verbs, name, 16, 64));
        let (qp, _) = pair((&a, &b), QpType::Rc, 8, &RcParams::default());
        (0..4).for_each(|wr_id| a.recv(qp, wr_id, 0, 8));
        a.fail(qp);
        let all = a.drain();
        assert_eq!(all.len(), 4);
        all.iter().all(|wc| wc.opcode == WcOpcode::Recv)
    });
}

/// MR-17: a key that was given away and is used again opens another region.
#[test]
fn who_expects_to_be_told_of_an_old_key_writes_into_the_memory_of_another() {
    leans_on_luck(|verbs| {
        let [a, b] = ["sim0", "sim1"].map(|name| End::open(verbs, name, 16, 64));
        let (qp, _) = pair((&a, &b), QpType::Rc, 4, &RcParams::default());
        let region = || verbs.alloc_mr(b.pd, 64, Access::ALL_RDMA).unwrap();
        let old = region();
        let mut remote = verbs.query_mr(old).unwrap().remote(0);
        verbs.dereg_mr(old).unwrap();
        remote.addr = verbs.query_mr(region()).unwrap().addr;
        a.post(qp, SendWr::rdma_write(1, &[a.mem.sge(0, 8)], remote));
        settle(verbs);
        a.drain()[0].status == WcStatus::RemAccessErr
    });
}

/// CQ-ARM-49: two events of a CQ may become one before the first is read.
#[test]
fn who_takes_as_many_completions_as_there_are_events_leaves_some_behind() {
    leans_on_luck(|verbs| {
        let [a, b] = ["sim0", "sim1"].map(|name| End::open(verbs, name, 16, 64));
        let (to, from) = pair((&a, &b), QpType::Rc, 4, &RcParams::default());
        let room = [b.mem.sge(0, 8)];
        for wr_id in 0..2 {
            verbs.post_recv(from, &[RecvWr::new(wr_id, &room)]).unwrap();
            verbs.req_notify_cq(b.cq, Arm::NEXT).unwrap();
            a.send(to, wr_id, 0, 8);
            settle(verbs);
        }
        take_events(verbs, b.channel).len() == drain(verbs, b.cq).len()
    });
}

/// CQ-POLL-13: the answer of the peer may complete before the send that it answers.
#[test]
fn who_takes_the_next_completion_for_that_of_the_send_may_have_the_answer() {
    leans_on_luck(|verbs| {
        let [a, b] = ["sim0", "sim1"].map(|name| End::open(verbs, name, 16, 64));
        let (to, from) = pair((&a, &b), QpType::Rc, 4, &RcParams::default());
        (0..16).all(|_| {
            a.recv(to, 2, 0, 8);
            b.recv(from, 3, 0, 8);
            a.send(to, 1, 8, 8);
            next(&b);
            b.send(from, 4, 8, 8);
            let opcodes = [&a, &a, &b].map(|end| next(end).opcode);
            opcodes == [WcOpcode::Send, WcOpcode::Recv, WcOpcode::Send]
        })
    });
}

/// CQ-POLL-13: sends of two queue pairs have no order between them.
#[test]
fn who_expects_two_queue_pairs_to_complete_as_posted_takes_one_for_the_other() {
    leans_on_luck(|verbs| {
        let [a, b] = ["sim0", "sim1"].map(|name| End::open(verbs, name, 16, 64));
        let qps = [1, 2].map(|_| pair((&a, &b), QpType::Rc, 4, &RcParams::default()).0);
        let list = [a.mem.sge(0, 8)];
        (0..16).all(|_| {
            for (wr_id, qp) in (0..).zip(qps) {
                a.post(qp, SendWr::rdma_write(wr_id, &list, b.mem.remote(0)));
            }
            [next(&a), next(&a)].map(|wc| wc.wr_id) == [0, 1]
        })
    });
}

/// The next completion of an end.
fn next(end: &End<'_>) -> Wc {
    let mut one = [Wc::default()];
    while end.verbs.poll_cq(end.cq, &mut one).unwrap() == 0 {}
    one[0]
}
