//! The packets that a message becomes.

use verbs_api::lab::{PacketClass, PacketOpcode as Is, PacketView};
use verbs_api::{Mtu, MwType, QpType, RcParams, SendWr};

use crate::failure::check_eq;
use crate::mw::part;
use crate::{Pair, PairOptions, Result, Setup};

/// Bytes of three packets.
const LEN: u32 = 3 * 256;

fn pair<'b>(setup: &'b Setup<'_>, qp_type: QpType) -> Result<Pair<'b>> {
    let rc = RcParams {
        path_mtu: Mtu::Mtu256,
        ..RcParams::default()
    };
    setup.pair(PairOptions {
        rc,
        ..PairOptions::of(qp_type)
    })
}

/// Posts it, and returns the requests that leave.
fn sent(setup: &Setup<'_>, Pair { a, b }: &Pair<'_>, wr: SendWr<'_>) -> Result<Vec<PacketView>> {
    b.recv(1, LEN)?;
    setup.packets();
    a.post(wr)?;
    setup.successes(a.send_cq, 1)?;
    setup.settle()?;
    let mut packets = setup.packets();
    packets.retain(|packet| PacketClass::Request.has(packet.opcode));
    Ok(packets)
}

fn opcodes(packets: &[PacketView]) -> Vec<Is> {
    packets.iter().map(|packet| packet.opcode).collect()
}

/// Which of them ask for a solicited event.
fn solicited(packets: &[PacketView]) -> Vec<bool> {
    packets.iter().map(|packet| packet.solicited).collect()
}

scenario!(last_packet_has_what_the_message_has_once:
    "SQ-31", "CQ-ARM-43"; needs SEND_WITH_IMM, WRITE_WITH_IMM, LAB);
fn last_packet_has_what_the_message_has_once(setup: &Setup<'_>) -> Result {
    let pair = pair(setup, QpType::Rc)?;
    setup.lab().tap();
    let a = pair.a;
    let data = [a.sge(0, LEN)];
    let to = a.remote();
    let imm = [1, 2, 3, 4];
    let sends = [Is::RcSendFirst, Is::RcSendMiddle, Is::RcSendLast];
    let sends_imm = [Is::RcSendFirst, Is::RcSendMiddle, Is::RcSendLastImm];
    let writes = [Is::RcWriteFirst, Is::RcWriteMiddle, Is::RcWriteLast];
    let writes_imm = [Is::RcWriteFirst, Is::RcWriteMiddle, Is::RcWriteLastImm];
    for (wr, expected, tells) in [
        (SendWr::send(1, &data), sends, true),
        (SendWr::send_with_imm(1, &data, imm), sends_imm, true),
        (SendWr::rdma_write(1, &data, to), writes, false),
        (
            SendWr::rdma_write_with_imm(1, &data, to, imm),
            writes_imm,
            true,
        ),
    ] {
        let packets = sent_as(setup, &pair, wr, expected, tells)?;
        let asks: Vec<_> = packets.iter().map(|packet| packet.ack_req).collect();
        check_eq!("SQ-31", asks, [false, false, true], "asks for an answer");
        let lengths: Vec<_> = packets.iter().map(|packet| packet.payload).collect();
        check_eq!("SQ-31", lengths, [256; 3], "bytes of each");
    }
    Ok(())
}

/// The packets of a solicited message: these, of which the last one alone may be solicited.
fn sent_as(
    setup: &Setup<'_>,
    pair: &Pair<'_>,
    wr: SendWr<'_>,
    expected: [Is; 3],
    tells: bool,
) -> Result<Vec<PacketView>> {
    let packets = sent(setup, pair, wr.solicited())?;
    check_eq!("SQ-31", opcodes(&packets), expected);
    let rule = if tells { "SQ-31" } else { "CQ-ARM-43" };
    check_eq!(rule, solicited(&packets), [false, false, tells]);
    Ok(packets)
}

scenario!(last_packet_of_uc_has_what_the_message_has_once:
    "SQ-31", "CQ-ARM-43"; needs UC, SEND_WITH_IMM, WRITE_WITH_IMM, LAB);
fn last_packet_of_uc_has_what_the_message_has_once(setup: &Setup<'_>) -> Result {
    let pair = pair(setup, QpType::Uc)?;
    setup.lab().tap();
    let a = pair.a;
    let data = [a.sge(0, LEN)];
    let to = a.remote();
    let sends_imm = [Is::UcSendFirst, Is::UcSendMiddle, Is::UcSendLastImm];
    let writes = [Is::UcWriteFirst, Is::UcWriteMiddle, Is::UcWriteLast];
    let writes_imm = [Is::UcWriteFirst, Is::UcWriteMiddle, Is::UcWriteLastImm];
    for (wr, expected, tells) in [
        (SendWr::send_with_imm(1, &data, [5; 4]), sends_imm, true),
        (SendWr::rdma_write(1, &data, to), writes, false),
        (
            SendWr::rdma_write_with_imm(1, &data, to, [5; 4]),
            writes_imm,
            true,
        ),
    ] {
        sent_as(setup, &pair, wr, expected, tells)?;
    }
    Ok(())
}

scenario!(reads_and_atomics_are_not_solicited: "CQ-ARM-43"; needs RDMA_READ, LAB);
fn reads_and_atomics_are_not_solicited(setup: &Setup<'_>) -> Result {
    let pair = pair(setup, QpType::Rc)?;
    setup.lab().tap();
    let into = [pair.a.sge(pair.a.landing(), LEN)];
    let read = SendWr::rdma_read(1, &into, pair.a.remote());
    let packets = sent(setup, &pair, read.solicited())?;
    check_eq!("CQ-ARM-43", opcodes(&packets), [Is::RcReadRequest]);
    check_eq!("CQ-ARM-43", solicited(&packets), [false]);
    Ok(())
}

scenario!(last_packet_names_the_key_to_invalidate: "SQ-31"; needs MW_TYPE_2, LAB);
fn last_packet_names_the_key_to_invalidate(setup: &Setup<'_>) -> Result {
    use verbs_api::{Access, inc_rkey};
    let access = Access::ALL_RDMA | Access::MW_BIND;
    let rc = RcParams {
        path_mtu: Mtu::Mtu256,
        ..RcParams::default()
    };
    let pair = setup.pair(PairOptions {
        access,
        rc,
        ..PairOptions::default()
    })?;
    setup.lab().tap();
    let (a, b) = (pair.a, pair.b);
    let mw = setup.alloc_mw(b.pd, MwType::Type2)?;
    let rkey = inc_rkey(setup.query_mw(mw)?.rkey);
    let info = part(&b, 0, 64, Access::REMOTE_WRITE);
    b.post(SendWr::bind_mw(1, mw, rkey, info))?;
    setup.successes(b.send_cq, 1)?;
    let data = [a.sge(0, LEN)];
    let packets = sent(
        setup,
        &pair,
        SendWr::send_with_inv(1, &data, rkey).solicited(),
    )?;
    let expected = [Is::RcSendFirst, Is::RcSendMiddle, Is::RcSendLastInv];
    check_eq!("SQ-31", opcodes(&packets), expected);
    check_eq!("SQ-31", solicited(&packets), [false, false, true]);
    Ok(())
}

scenario!(local_work_waits_for_what_is_not_acknowledged: "SQ-11", "MW-27"; needs MW_TYPE_2, LAB);
/// The write before an invalidation is lost at first: both are done in order, the write with
/// its data.
fn local_work_waits_for_what_is_not_acknowledged(setup: &Setup<'_>) -> Result {
    use verbs_api::{Access, inc_rkey, lab::Fault, lab::PacketFilter};
    let access = Access::ALL_RDMA | Access::MW_BIND;
    let Pair { a, b } = setup.pair(PairOptions {
        access,
        ..PairOptions::default()
    })?;
    let mw = setup.alloc_mw(a.pd, MwType::Type2)?;
    let rkey = inc_rkey(setup.query_mw(mw)?.rkey);
    let info = part(&a, 0, 64, Access::REMOTE_WRITE);
    setup
        .lab()
        .inject(Fault::drop(PacketFilter::EVERY).nth(1))?;
    a.fill(6, 8)?;
    let data = [a.sge(0, 8)];
    let list = [
        SendWr::rdma_write(1, &data, a.remote()),
        SendWr::bind_mw(2, mw, rkey, info),
        SendWr::local_inv(3, rkey),
    ];
    setup.post_send(a.qp, &list)?;
    setup.lab().advance(std::time::Duration::from_micros(100))?;
    let early = setup.drain(a.send_cq)?;
    check_eq!("MW-27", early.len(), 0, "done before the write");
    let done = crate::wr_ids(&setup.successes(a.send_cq, 3)?);
    check_eq!("SQ-11", done, [1, 2, 3], "the order of work");
    b.expect_data(6, 8, "SQ-11")
}
