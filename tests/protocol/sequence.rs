//! Sequence numbers: wrapping, and not matching.

use crate::common::{checked, settle};
use crate::link::{Link, statuses};
use verbs_api::profile::Profile;
use verbs_api::{Access, Mtu, QpState, QpType, RcParams, SendWr, Verbs, WcStatus};
use verbs_sim::SimConfig;

/// TMR-13: sequence numbers go from 0xffffff to 0 within a message and between messages.
#[test]
fn sequence_numbers_wrap() {
    let sim = checked(SimConfig::new());
    let params = RcParams {
        path_mtu: Mtu::Mtu256,
        psn_a: 0xff_fffe,
        ..RcParams::default()
    };
    let link = Link::new(&sim, QpType::Rc, &params);
    sim.lab().unwrap().tap();
    for length in [1024, 256] {
        link.far.recv(link.peer, 0, 0, 4096);
        link.near.send(link.qp, 0, 0, length);
    }
    settle(&sim);
    assert_eq!(statuses(&link.near.drain()), [WcStatus::Success; 2]);
    let tapped = sim.lab().unwrap().tapped();
    let sent = link.requests(&tapped).map(|tapped| tapped.packet.psn);
    assert!(sent.eq([0xff_fffe, 0xff_ffff, 0, 1, 2]));
}

/// TMR-14: where the first sequence numbers do not match nothing is delivered, and the sender ends
/// with RETRY_EXC_ERR, whichever way and however far they are apart.
#[test]
fn mismatched_sequence_numbers_deliver_nothing() {
    for apart in [
        1,
        2,
        1 << 22,
        (1 << 23) - 1,
        1 << 23,
        (1 << 23) + 1,
        -(1 << 22),
        -3,
        -2,
        -1,
    ] {
        for packets in 1..=3 {
            if (-2..0).contains(&apart) && packets > -apart {
                // A later packet of the message has the number that is expected: another error.
                continue;
            }
            let sim = checked(SimConfig::new());
            let link = Link::new(&sim, QpType::Rc, &RcParams::default());
            link.change(link.peer, |attr| {
                attr.rq_psn = attr.rq_psn.wrapping_sub_signed(apart) & 0xff_ffff;
            });
            link.far.recv(link.peer, 0, 0, 4096);
            link.near.send(link.qp, 0, 0, packets as u32 * 1024);
            settle(&sim);
            assert_eq!(
                (statuses(&link.near.drain()), link.far.drain()),
                (vec![WcStatus::RetryExcErr], vec![]),
                "{apart:#x} apart, {packets} packets"
            );
            assert_eq!(link.near.state(link.qp), QpState::Err);
        }
    }
}

/// WC-36: a request of before a reset is taken for one of the new connection, which has the same
/// sequence number. Its answer ends the other one with BAD_RESP_ERR, if it is of another kind or
/// length.
#[test]
fn answer_to_another_request_is_a_bad_response() {
    let access = Access::ALL_RDMA | Access::REMOTE_ATOMIC;
    let params = RcParams {
        access,
        ..RcParams::default()
    };
    for old in 0..3 {
        for new in (0..3).filter(|new| *new != old) {
            let sim = checked(SimConfig::new());
            let link = Link::new(&sim, QpType::Rc, &params);
            let mr = sim.alloc_mr(link.far.pd, 4096, access).unwrap();
            let remote = sim.query_mr(mr).unwrap().remote(0);
            let post = |work| {
                let list = [link.near.mem.sge(0, [8, 8, 3000][work])];
                let wr = match work {
                    0 => SendWr::fetch_and_add(work as u64, &list, remote, 1),
                    _ => SendWr::rdma_read(work as u64, &list, remote),
                };
                link.near.post(link.qp, wr);
            };
            post(old);
            link.change(link.qp, |_| ());
            link.change(link.peer, |_| ());
            post(new);
            settle(&sim);
            let statuses = statuses(&link.near.drain());
            assert_eq!(statuses, [WcStatus::BadRespErr], "{old}, then {new}");
            assert_eq!(link.near.state(link.qp), QpState::Err);
        }
    }
}

/// TMR-03: where short answers are accepted, a read that got one of another connection and an RNR
/// NAK ends with its retries, although nothing of it is left to retransmit.
#[test]
fn read_with_a_short_answer_ends_with_its_retries() {
    let sim = checked(SimConfig::new().profile(Profile::RXE));
    let params = RcParams {
        retry_cnt: 2,
        ..RcParams::default()
    };
    let link = Link::new(&sim, QpType::Rc, &params);
    let remote = link.far.mem.remote(0);
    let read = |length| {
        let list = [link.near.mem.sge(0, length)];
        link.near.post(link.qp, SendWr::rdma_read(1, &list, remote));
    };
    read(8);
    // No receive is posted for this.
    link.near.send(link.qp, 2, 0, 8);
    link.change(link.qp, |_| ());
    link.change(link.peer, |_| ());
    read(2000);
    settle(&sim);
    assert_eq!(statuses(&link.near.drain()), [WcStatus::RetryExcErr]);
}
