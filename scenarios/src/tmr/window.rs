//! What acknowledgements say of progress, and how much may be under way without one.

use std::time::Duration;

use verbs_api::lab::{PacketClass, PacketOpcode as Is, PacketView};
use verbs_api::{Mtu, RcParams, SendWr};

use crate::failure::{check, check_eq};
use crate::{OfRule, Pair, PairOptions, Result, Setup};

/// Packets of 256 bytes, whose headers are seen.
fn pair<'b>(setup: &'b Setup<'_>) -> Result<Pair<'b>> {
    let rc = RcParams {
        path_mtu: Mtu::Mtu256,
        ..RcParams::default()
    };
    let pair = setup.pair(PairOptions {
        rc,
        ..PairOptions::default()
    })?;
    setup.lab().tap();
    Ok(pair)
}

/// Requests that are answered in one packet and in several, and one that is not ready to be
/// completed.
fn counted(setup: &Setup<'_>) -> Result<Vec<(Is, Option<u32>)>> {
    const LEN: u32 = 3 * 256;
    let Pair { a, b } = pair(setup)?;
    let [data, into] = [[a.sge(0, LEN)], [a.sge(a.landing(), LEN)]];
    b.recv(1, LEN)?;
    a.post(SendWr::send(1, &data))?;
    a.post(SendWr::rdma_write(2, &data, a.remote()))?;
    a.post(SendWr::rdma_read(3, &into, a.remote()))?;
    setup.successes(a.send_cq, 3)?;
    a.post(SendWr::send(4, &data))?;
    setup.lab().advance(Duration::from_micros(5))?;
    b.recv(2, LEN)?;
    setup.successes(a.send_cq, 1)?;
    setup.settle()?;
    let is_answer = |packet: &PacketView| PacketClass::Response.has(packet.opcode);
    let answers = setup.packets().into_iter().filter(is_answer);
    Ok(answers.map(|packet| (packet.opcode, packet.msn)).collect())
}

scenario!(answer_counts_the_requests_that_are_completed: "TMR-22"; needs RDMA_READ, RNR, LAB);
/// A request counts when its last packet is executed, and a read when its response begins.
fn answer_counts_the_requests_that_are_completed(setup: &Setup<'_>) -> Result {
    let expected = [
        (Is::RcAcknowledge, Some(1)),
        (Is::RcAcknowledge, Some(2)),
        (Is::RcReadResponseFirst, Some(3)),
        (Is::RcReadResponseMiddle, None),
        (Is::RcReadResponseLast, Some(3)),
    ];
    let seen = counted(setup)?;
    let (first, rest) = seen.split_at(expected.len().min(seen.len()));
    check_eq!("TMR-22", first, expected);
    let last = rest.last().copied();
    check_eq!("TMR-22", last, Some((Is::RcAcknowledge, Some(4))));
    let waiting = rest.iter().rev().skip(1);
    let before: Vec<_> = waiting.filter(|answer| answer.1 != Some(3)).collect();
    check!(
        "TMR-22",
        before.is_empty(),
        "3 until it is completed",
        "{before:?}"
    );
    Ok(())
}

scenario!(long_message_is_acknowledged_on_its_way: "TMR-23"; needs LAB);
/// However long it is, a few packets are under way, and none waits for the time-out.
fn long_message_is_acknowledged_on_its_way(setup: &Setup<'_>) -> Result {
    const PACKETS: u32 = 100;
    const MOST: u32 = 32;
    let Pair { a, b } = pair(setup)?;
    a.fill(3, PACKETS * 256)?;
    let start = setup.lab().now();
    a.write(1, PACKETS * 256)?;
    setup.successes(a.send_cq, 1).rule("TMR-23")?;
    check!(
        "TMR-23",
        setup.lab().now() - start < Duration::from_millis(1),
        "no time-out",
        "{:?}",
        setup.lab().now() - start
    );
    setup.settle()?;
    let (mut sent, mut acknowledged, mut most) = (0, 0, 0);
    for packet in setup.packets() {
        match packet.opcode {
            Is::RcAcknowledge => acknowledged = packet.psn + 1,
            _ => sent = packet.psn + 1,
        }
        most = most.max(sent - acknowledged);
    }
    check_eq!("TMR-23", (sent, acknowledged), (PACKETS, PACKETS));
    check!("TMR-23", most <= MOST, "at most {MOST} under way", "{most}");
    b.expect_data(3, PACKETS * 256, "TMR-23")
}
