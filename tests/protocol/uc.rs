//! UC: what is lost is lost whole.

use crate::common::{checked, settle};
use crate::link::{Kind, Link, Work, lose, statuses};
use verbs_api::lab::When;
use verbs_api::{QpType, RcParams, SendWr, Verbs, WcStatus};
use verbs_sim::SimConfig;

/// UC-01, UC-04: whichever packet of a message is lost, the message is lost and its receive takes
/// the next one. The sender knows nothing of it.
#[test]
fn uc_drops_a_message_that_lost_a_packet() {
    for kind in [Kind::Send, Kind::SendImm, Kind::WriteImm] {
        for lost in 1..=3 {
            let sim = checked(SimConfig::new());
            let link = Link::new(&sim, QpType::Uc, &RcParams::default());
            let program = [Work::new(kind, 3000), Work::new(kind, 2500)];
            sim.lab().unwrap().inject(lose(When::Nth(lost))).unwrap();
            link.run(&program);
            let results = link.results();
            let expected = results.expected(&program);
            assert_eq!(results.sent, expected.sent);
            // The second message, in the first receive.
            let mut received = expected.received[1];
            received.wr_id = expected.received[0].wr_id;
            assert_eq!(results.received, [received], "{kind:?}, packet {lost} lost");
            if kind == Kind::WriteImm {
                assert!(results.written[1] == expected.written[1]);
            } else {
                assert!(results.arrived[0][..2500] == expected.arrived[1][..2500]);
            }
        }
    }
}

/// UC-08: what arrives is whole, in order and not twice.
#[test]
fn uc_delivers_in_order_and_at_most_once() {
    const MESSAGES: u64 = 15;
    let (mut arrived, mut lost) = (0, 0);
    for seed in 0..20 {
        let sim = checked(SimConfig::new().seed(seed));
        let link = Link::new(&sim, QpType::Uc, &RcParams::default());
        sim.lab()
            .unwrap()
            .inject(lose(When::PerMillion(100_000)))
            .unwrap();
        for message in 0..MESSAGES {
            let offset = message * 4096;
            link.near.write(offset as usize, &[message as u8; 2500]);
            link.far.recv(link.peer, message, offset, 2500);
            let list = [link.near.mem.sge(offset, 2500)];
            let imm = (message as u32).to_be_bytes();
            link.near
                .post(link.qp, SendWr::send_with_imm(message, &list, imm));
        }
        settle(&sim);
        assert_eq!(
            statuses(&link.near.drain()),
            [WcStatus::Success; MESSAGES as usize]
        );
        let received = link.far.drain();
        let messages: Vec<_> = received
            .iter()
            .map(|wc| u32::from_be_bytes(wc.imm_data))
            .collect();
        assert!(messages.is_sorted_by(|a, b| a < b), "{messages:?}");
        for (wc, message) in received.iter().zip(&messages) {
            let bytes = link.far.read(wc.wr_id as usize * 4096, 2500);
            assert_eq!(bytes, [*message as u8; 2500]);
        }
        arrived += messages.len();
        lost += MESSAGES as usize - messages.len();
    }
    assert!(arrived > 0 && lost > 0);
}
