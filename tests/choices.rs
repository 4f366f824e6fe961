//! Choices that no profile makes: what a device with such a value does, beyond what scenarios ask
//! of it.

mod common;

use common::{End, pair, settle};
use verbs_api::behavior::{Behavior, ErrorFires, SendDone, ShortDatagram};
use verbs_api::lab::{Fault, Lab, PacketClass, PacketFilter};
use verbs_api::{Arm, QpState, QpType, RcParams, SendWr, Verbs, Wait, Wc, WcStatus, connect};
use verbs_sim::{Sim, SimConfig};

const REQUESTS: PacketFilter = PacketFilter::EVERY.class(PacketClass::Request);
const ANSWERS: PacketFilter = PacketFilter::EVERY.class(PacketClass::Response);

fn sim(choose: impl FnOnce(&mut Behavior)) -> Sim {
    let mut behavior = Behavior::SPEC;
    choose(&mut behavior);
    Sim::new(SimConfig::new().behavior(behavior))
}

fn ends(sim: &Sim) -> [End<'_>; 2] {
    ["sim0", "sim1"].map(|name| End::open(sim, name, 16, 4096))
}

/// What completed, in order.
fn seen(completions: &[Wc]) -> Vec<(u64, WcStatus)> {
    completions.iter().map(|wc| (wc.wr_id, wc.status)).collect()
}

/// SQ-15: with `send_done = sent` the bytes of a send that is done are the program's, and what they
/// were arrives.
#[test]
fn bytes_of_a_send_that_is_done_when_it_left_arrive_as_they_were() {
    let sim = sim(|behavior| behavior.send_done = SendDone::Sent);
    let [a, b] = ends(&sim);
    let (from, to) = pair((&a, &b), QpType::Rc, 4, &RcParams::default());
    b.recv(to, 1, 0, 8);
    a.write(0, &[1; 8]);
    a.send(from, 2, 0, 8);
    // A poll that finds nothing would let it arrive.
    let mut done = [Wc::default()];
    assert_eq!(sim.poll_cq(a.cq, &mut done).unwrap(), 1);
    assert_eq!(seen(&done), [(2, WcStatus::Success)]);
    a.write(0, &[9; 8]);
    settle(&sim);
    assert_eq!(seen(&b.drain()), [(1, WcStatus::Success)]);
    assert_eq!(b.read(0, 8), [1; 8]);
}

/// SQ-11, SQ-15: with `send_done = sent` a send behind a read is done behind it.
#[test]
fn send_behind_a_read_is_done_behind_it_though_it_has_left() {
    let sim = sim(|behavior| behavior.send_done = SendDone::Sent);
    let [a, b] = ends(&sim);
    let (from, to) = pair((&a, &b), QpType::Rc, 4, &RcParams::default());
    b.recv(to, 1, 64, 8);
    b.write(0, &[5; 8]);
    let into = [a.mem.sge(64, 8)];
    a.post(from, SendWr::rdma_read(2, &into, b.mem.remote(0)));
    a.send(from, 3, 0, 8);
    assert_eq!(seen(&a.drain()), [], "no response has come");
    settle(&sim);
    let done = [(2, WcStatus::Success), (3, WcStatus::Success)];
    assert_eq!(seen(&a.drain()), done);
    assert_eq!(a.read(64, 8), [5; 8]);
}

/// SQ-15: with `send_done = sent` nothing is tried again. A loss ends the connection: of what is
/// done nothing completes a second time, and a read that is under way fails.
#[test]
fn loss_of_what_is_done_when_it_left_ends_the_connection() {
    for is_read in [false, true] {
        let sim = sim(|behavior| behavior.send_done = SendDone::Sent);
        let [a, b] = ends(&sim);
        let (from, to) = pair((&a, &b), QpType::Rc, 4, &RcParams::default());
        for wr_id in 0..2 {
            b.recv(to, wr_id, 64, 8);
        }
        sim.inject(Fault::drop(REQUESTS).nth(1)).unwrap();
        sim.tap();
        let into = [a.mem.sge(64, 8)];
        let expected = if is_read {
            a.post(from, SendWr::rdma_read(2, &into, b.mem.remote(0)));
            [(2, WcStatus::RetryExcErr), (3, WcStatus::WrFlushErr)]
        } else {
            a.send(from, 2, 0, 8);
            [(2, WcStatus::Success), (3, WcStatus::Success)]
        };
        a.send(from, 3, 0, 8);
        settle(&sim);
        assert_eq!(seen(&a.drain()), expected);
        assert_eq!(a.state(from), QpState::Err);
        let left = sim.tapped();
        let requests = left
            .iter()
            .filter(|seen| PacketClass::Request.has(seen.packet.opcode));
        assert_eq!(requests.count(), 2, "nothing leaves again");
        assert_eq!(b.drain(), []);
    }
}

/// SQ-15: with `send_done = sent` a send behind a read is not tried again either, when the read is
/// done.
#[test]
fn send_behind_a_read_is_not_tried_again() {
    let sim = sim(|behavior| behavior.send_done = SendDone::Sent);
    let [a, b] = ends(&sim);
    let params = RcParams {
        timeout: 8,
        ..RcParams::default()
    };
    let (from, to) = pair((&a, &b), QpType::Rc, 4, &params);
    b.recv(to, 1, 64, 8);
    sim.inject(Fault::drop(ANSWERS).nth(2)).unwrap();
    let into = [a.mem.sge(64, 8)];
    a.post(from, SendWr::rdma_read(2, &into, b.mem.remote(0)));
    a.send(from, 3, 0, 8);
    settle(&sim);
    let done = [(2, WcStatus::Success), (3, WcStatus::WrFlushErr)];
    assert_eq!(seen(&a.drain()), done);
    assert_eq!(a.state(from), QpState::Err);
}

/// RNR-01: with `rnr = no` a message without a receive fails on both sides.
#[test]
fn message_without_a_receive_fails_where_nobody_is_asked_to_wait() {
    let sim = sim(|behavior| behavior.rnr = false);
    let [a, b] = ends(&sim);
    let (from, to) = pair((&a, &b), QpType::Rc, 4, &RcParams::default());
    a.send(from, 1, 0, 8);
    settle(&sim);
    assert_eq!(seen(&a.drain()), [(1, WcStatus::RemOpErr)]);
    assert_eq!([a.state(from), b.state(to)], [QpState::Err; 2]);
}

/// QP-STATE-23: with `buffer_when_not_ready` messages of RC are kept in INIT, and those of UC are
/// dropped.
#[test]
fn messages_of_uc_in_init_are_dropped_for_good() {
    for (qp_type, arrives) in [(QpType::Rc, true), (QpType::Uc, false)] {
        let sim = sim(|behavior| behavior.buffer_when_not_ready = true);
        let [a, b] = ends(&sim);
        let (from, to) = (a.qp(qp_type, 4), b.qp(qp_type, 4));
        let params = RcParams::default();
        let [of_a, of_b] = [from, to].map(|qp| connect::endpoint(&sim, qp, &params).unwrap());
        connect::to_endpoint(&sim, from, &of_b, &params).unwrap();
        connect::to_state(&sim, to, &of_a, &params, QpState::Init).unwrap();
        b.recv(to, 1, 0, 8);
        a.send(from, 2, 0, 8);
        sim.advance(std::time::Duration::from_micros(100)).unwrap();
        // INIT to INIT, and on.
        connect::to_state(&sim, to, &of_a, &params, QpState::Rtr).unwrap();
        sim.advance(std::time::Duration::from_micros(100)).unwrap();
        assert_eq!(b.drain().len(), usize::from(arrives), "{qp_type}");
    }
}

/// UC-06: with `ud_short_recv` other than `recv_short_status` a receive of UC that is too small
/// fails as that of UD.
#[test]
fn short_receive_of_uc_fails_as_declared_for_it() {
    for (choice, expected) in [
        (ShortDatagram::LocQpOpErr, Some(WcStatus::LocQpOpErr)),
        (ShortDatagram::LocLenErr, Some(WcStatus::LocLenErr)),
        (ShortDatagram::Drop, None),
    ] {
        let sim = sim(|behavior| behavior.ud_short_recv = choice);
        let [a, b] = ends(&sim);
        let (from, to) = pair((&a, &b), QpType::Uc, 4, &RcParams::default());
        b.recv(to, 1, 0, 8);
        a.send(from, 2, 0, 9);
        settle(&sim);
        let expected: Vec<_> = expected.map(|status| (1, status)).into_iter().collect();
        assert_eq!(seen(&b.drain()), expected);
    }
}

/// CQ-ARM-42: with `error_fires_solicited = none` a flushed receive is not a solicited completion.
#[test]
fn flushed_receive_fires_no_solicited_request_where_errors_do_not() {
    let sim = sim(|behavior| behavior.error_fires_solicited = ErrorFires::None);
    let [a, b] = ends(&sim);
    let (_, to) = pair((&a, &b), QpType::Rc, 4, &RcParams::default());
    b.recv(to, 1, 0, 8);
    sim.req_notify_cq(b.cq, Arm::SOLICITED).unwrap();
    b.fail(to);
    settle(&sim);
    assert_eq!(seen(&b.drain()), [(1, WcStatus::WrFlushErr)]);
    assert!(sim.get_cq_event(b.channel, Wait::Poll).is_err());
}
