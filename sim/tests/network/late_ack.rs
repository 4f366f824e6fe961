//! Acknowledgements of another process that count later than they arrive.

use verbs_api::profile::Profile;

use super::*;

/// CQ-POLL-07, CQ-POLL-13: messages of several windows arrive whole, and each send completes, also
/// where only the timer of an acknowledgement lets the next packet leave.
#[test]
fn late_acknowledgements_keep_a_message_going() {
    const LONG: u32 = 100_000;
    let [a, b] = [1, 2].map(|seed| {
        let config = config("late_ack").profile(Profile::ADVERSARIAL);
        Process::start(config.seed(seed).scatter(seed), 1 << 20)
    });
    let params = RcParams {
        path_mtu: Mtu::Mtu256,
        ..params()
    };
    let [from, to] = connected([&a, &b], QpType::Rc, &params);
    a.fill(0, &pattern(LONG as usize));
    for round in 0..16 {
        b.receive(to, round, 0, LONG);
        a.post(from, round, (0, LONG), SendOp::Send);
        for end in [&a, &b] {
            let done = end.polled(1);
            assert_done(&done);
            assert_eq!(done[0].wr_id, round);
        }
    }
    assert_eq!(b.bytes(0, LONG as usize), pattern(LONG as usize));
}
