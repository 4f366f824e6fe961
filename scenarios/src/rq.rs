//! Receive queues: which message takes which receive, and what it leaves there.

use verbs_api::{QpCap, QpState, QpType, RecvWr, SendWr, Sge, WcOpcode, WcStatus};

use crate::failure::{check_eq, in_case};
use crate::kind::Kind;
use crate::{OfRule, Pair, PairOptions, Result, Scenario, Setup, wr_ids};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    sends_take_receives_in_posting_order,
    sends_and_writes_with_immediate_take_receives_in_posting_order,
    uc_messages_take_receives_in_posting_order,
    datagrams_take_receives_in_posting_order,
    message_of_one_byte_too_many_fails_both_ends,
    message_that_just_fits_is_taken,
    rest_of_a_buffer_stays_untouched,
    rest_of_a_buffer_stays_untouched_on_uc,
    rest_of_a_buffer_stays_untouched_on_ud,
    receive_without_entries_takes_a_message_without_bytes,
    receive_without_entries_takes_a_write_with_immediate,
    write_with_immediate_leaves_the_buffer_alone,
    write_and_read_leave_no_trace_at_the_responder,
    failed_receive_is_consumed_and_the_rest_is_flushed,
];

scenario!(sends_take_receives_in_posting_order: "RQ-04", "RQ-12"; needs RDMA_READ);
fn sends_take_receives_in_posting_order(setup: &Setup<'_>) -> Result {
    let kinds = [Kind::Send, Kind::Write, Kind::Read];
    take_in_order(setup, PairOptions::default(), &kinds)
}

scenario!(sends_and_writes_with_immediate_take_receives_in_posting_order:
    "RQ-04", "RQ-12"; needs SEND_WITH_IMM, WRITE_WITH_IMM, RDMA_READ);
fn sends_and_writes_with_immediate_take_receives_in_posting_order(setup: &Setup<'_>) -> Result {
    take_in_order(setup, PairOptions::default(), &Kind::ALL)
}

scenario!(uc_messages_take_receives_in_posting_order:
    "RQ-04", "RQ-12"; needs UC, SEND_WITH_IMM, WRITE_WITH_IMM);
fn uc_messages_take_receives_in_posting_order(setup: &Setup<'_>) -> Result {
    let kinds = [Kind::Send, Kind::Write, Kind::WriteImm, Kind::SendImm];
    take_in_order(setup, PairOptions::of(QpType::Uc), &kinds)
}

scenario!(datagrams_take_receives_in_posting_order: "RQ-04", "RQ-12"; needs UD, SEND_WITH_IMM);
fn datagrams_take_receives_in_posting_order(setup: &Setup<'_>) -> Result {
    let kinds = [Kind::Send, Kind::SendImm];
    take_in_order(setup, PairOptions::of(QpType::Ud), &kinds)
}

/// All receives are posted first, with numbers in no order of their own; then work of these kinds
/// and of several lengths runs. Each receive is taken by one message, in posting order, into its
/// own buffer.
fn take_in_order(setup: &Setup<'_>, options: PairOptions, kinds: &[Kind]) -> Result {
    const ROOM: u32 = 2048;
    const LENGTHS: [u32; 4] = [1, 0, 700, 8];
    let Pair { a, b } = setup.pair(options)?;
    let work = (0..3 * kinds.len()).map(|i| (kinds[i % kinds.len()], LENGTHS[i % LENGTHS.len()]));
    let work: Vec<_> = work.collect();
    let (taking, _): (Vec<_>, Vec<_>) = work.iter().partition(|(kind, _)| kind.takes_a_receive());
    let id_of = |i: usize| (i as u64 * 7) % 16;
    // Writes land before the first.
    let place_of = |i: usize| b.landing() + (i as u64 + 1) * u64::from(ROOM);
    for i in 0..taking.len() {
        b.recv_at(id_of(i), place_of(i), ROOM - 40)?;
    }
    let mut sent = 0;
    for (wr_id, (kind, length)) in work.iter().enumerate() {
        let local = if *kind == Kind::Read { a.landing() } else { 0 };
        let data = [a.sge(local, *length)];
        if local == 0 {
            a.fill(sent, *length)?;
        }
        a.post(kind.work(&a, wr_id as u64, &data))?;
        setup.successes(a.send_cq, 1).rule("RQ-04")?;
        sent += u8::from(kind.takes_a_receive());
    }
    let got = setup.successes(b.recv_cq, taking.len()).rule("RQ-04")?;
    let expected: Vec<_> = (0..taking.len()).map(id_of).collect();
    check_eq!("RQ-04", wr_ids(&got), expected, "the order of the receives");
    for (i, (kind, length)) in taking.iter().enumerate() {
        if *kind != Kind::WriteImm {
            let grh = if b.qp_type == QpType::Ud { 40 } else { 0 };
            let result = b.expect_data_at(place_of(i) + grh, i as u8, *length, "RQ-04");
            in_case(&format!("receive {i}"), result)?;
        }
    }
    setup.no_completion(b.recv_cq, "RQ-12")
}

scenario!(message_of_one_byte_too_many_fails_both_ends: "RQ-05");
fn message_of_one_byte_too_many_fails_both_ends(setup: &Setup<'_>) -> Result {
    let mtu = PairOptions::default().rc.path_mtu.bytes().unwrap_or(1024);
    for length in [1, 64, mtu, mtu + 1, 3 * mtu] {
        let Pair { a, b } = setup.rc_pair()?;
        b.recv(1, length - 1)?;
        a.send(2, length)?;
        let result = short(setup, &Pair { a, b });
        in_case(&format!("{length} bytes"), result)?;
    }
    // Several entries that are too small together.
    let pair = setup.pair(PairOptions {
        cap: QpCap {
            max_recv_sge: 3,
            ..QpCap::default()
        },
        ..PairOptions::default()
    })?;
    let Pair { a, b } = pair;
    let room: [Sge; 3] = [0, 100, 200].map(|at| b.sge(b.landing() + at, 21));
    setup.post_recv(b.qp, &[RecvWr::new(1, &room)])?;
    a.send(2, 64)?;
    in_case("three entries", short(setup, &pair))
}

fn short(setup: &Setup<'_>, pair: &Pair<'_>) -> Result {
    let Pair { a, b } = pair;
    let got = setup.one_with(b.recv_cq, WcStatus::LocLenErr, "RQ-05")?;
    check_eq!("RQ-05", got.wr_id, 1);
    let sent = setup.one_with(a.send_cq, WcStatus::RemInvReqErr, "RQ-05")?;
    check_eq!("RQ-05", sent.wr_id, 2);
    for (side, end) in [("sender", a), ("receiver", b)] {
        let state = setup.state(end.qp)?;
        check_eq!("RQ-05", state, QpState::Err, format!("the {side}'s state"));
    }
    Ok(())
}

scenario!(message_that_just_fits_is_taken: "RQ-05");
fn message_that_just_fits_is_taken(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let Pair { a, b } = pair;
    let mtu = PairOptions::default().rc.path_mtu.bytes().unwrap_or(1024);
    for (tag, length) in [1, 64, mtu, mtu + 1, 3 * mtu].into_iter().enumerate() {
        a.fill(tag as u8, length)?;
        b.recv(1, length)?;
        a.send(2, length)?;
        for cq in [a.send_cq, b.recv_cq] {
            setup.successes(cq, 1).rule("RQ-05")?;
        }
        b.expect_data(tag as u8, length, "RQ-05")?;
    }
    pair.still_works("RQ-05")
}

scenario!(rest_of_a_buffer_stays_untouched: "RQ-06");
fn rest_of_a_buffer_stays_untouched(setup: &Setup<'_>) -> Result {
    rest_stays(setup, QpType::Rc)
}

scenario!(rest_of_a_buffer_stays_untouched_on_uc: "RQ-06"; needs UC);
fn rest_of_a_buffer_stays_untouched_on_uc(setup: &Setup<'_>) -> Result {
    rest_stays(setup, QpType::Uc)
}

scenario!(rest_of_a_buffer_stays_untouched_on_ud: "RQ-06"; needs UD);
fn rest_of_a_buffer_stays_untouched_on_ud(setup: &Setup<'_>) -> Result {
    rest_stays(setup, QpType::Ud)
}

/// Canary bytes lie in the buffer and around it.
fn rest_stays(setup: &Setup<'_>, qp_type: QpType) -> Result {
    const ROOM: u32 = 2048;
    const CANARY: u8 = 0xc5;
    let Pair { a, b } = setup.pair(PairOptions::of(qp_type))?;
    let grh = if qp_type == QpType::Ud { 40 } else { 0 };
    let around = b.landing() as usize - 64;
    for length in [0, 1, 100, 1000] {
        let canary = vec![CANARY; ROOM as usize + 256];
        setup.write_mr(b.mr, around, &canary)?;
        a.fill(9, length)?;
        b.recv(1, ROOM)?;
        a.send(2, length)?;
        setup.successes(b.recv_cq, 1)?;
        setup.successes(a.send_cq, 1)?;
        b.expect_data(9, length, "RQ-06")?;
        let mut seen = canary;
        setup.read_mr(b.mr, around, &mut seen)?;
        let written = 64..64 + grh + length as usize;
        let changed = seen
            .iter()
            .enumerate()
            .position(|(at, byte)| !written.contains(&at) && *byte != CANARY);
        let what = format!("the first byte changed outside a message of {length}");
        check_eq!("RQ-06", changed, None, what);
    }
    Ok(())
}

scenario!(receive_without_entries_takes_a_message_without_bytes: "RQ-10");
fn receive_without_entries_takes_a_message_without_bytes(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let Pair { a, b } = pair;
    setup
        .post_recv(b.qp, &[RecvWr::new(1, &[])])
        .rule("RQ-10")?;
    a.post(SendWr::send(2, &[]))?;
    let wc = setup.successes(b.recv_cq, 1).rule("RQ-10")?[0];
    check_eq!("RQ-10", (wc.wr_id, wc.byte_len), (1, 0), "the receive");
    setup.successes(a.send_cq, 1).rule("RQ-10")?;
    pair.still_works("RQ-10")
}

scenario!(receive_without_entries_takes_a_write_with_immediate:
    "RQ-10", "RQ-11"; needs SEND_WITH_IMM, WRITE_WITH_IMM);
fn receive_without_entries_takes_a_write_with_immediate(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let Pair { a, b } = pair;
    for (tag, length) in [(1, 0), (2, 500)] {
        a.fill(tag, length)?;
        setup
            .post_recv(b.qp, &[RecvWr::new(1, &[])])
            .rule("RQ-10")?;
        a.write_imm(2, length, [1, 2, 3, tag])?;
        let wc = setup.successes(b.recv_cq, 1).rule("RQ-10")?[0];
        check_eq!("RQ-10", (wc.wr_id, wc.imm_data), (1, [1, 2, 3, tag]), "it");
        setup.successes(a.send_cq, 1).rule("RQ-10")?;
        b.expect_data(tag, length, "RQ-11")?;
    }
    pair.still_works("RQ-10")
}

scenario!(write_with_immediate_leaves_the_buffer_alone:
    "RQ-11"; needs SEND_WITH_IMM, WRITE_WITH_IMM);
fn write_with_immediate_leaves_the_buffer_alone(setup: &Setup<'_>) -> Result {
    const ROOM: u32 = 64;
    let Pair { a, b } = setup.rc_pair()?;
    // The receive has a place of its own, apart from that of the write.
    for length in [0, ROOM, 4 * ROOM] {
        a.fill(3, length)?;
        b.fill_at(0, 8, ROOM)?;
        b.recv_at(1, 0, ROOM)?;
        a.write_imm(2, length, [0; 4])?;
        let wc = setup.successes(b.recv_cq, 1).rule("RQ-11")?[0];
        check_eq!("RQ-11", wc.opcode, WcOpcode::RecvRdmaWithImm);
        setup.successes(a.send_cq, 1)?;
        b.expect_data_at(0, 8, ROOM, "RQ-11")?;
        b.expect_data(3, length, "RQ-11")?;
    }
    Ok(())
}

scenario!(write_and_read_leave_no_trace_at_the_responder: "RQ-12"; needs RDMA_READ);
fn write_and_read_leave_no_trace_at_the_responder(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let Pair { a, b } = pair;
    b.recv(77, 8)?;
    for round in 0..4 {
        a.write(2 * round, 100)?;
        a.read(2 * round + 1, 100)?;
        setup.successes(a.send_cq, 2)?;
    }
    for cq in [b.recv_cq, b.send_cq] {
        setup.no_completion(cq, "RQ-12")?;
    }
    a.send(9, 8)?;
    let wc = setup.successes(b.recv_cq, 1).rule("RQ-12")?[0];
    check_eq!(
        "RQ-12",
        wc.wr_id,
        77,
        "the receive that was there all along"
    );
    Ok(())
}

scenario!(failed_receive_is_consumed_and_the_rest_is_flushed: "RQ-13");
fn failed_receive_is_consumed_and_the_rest_is_flushed(setup: &Setup<'_>) -> Result {
    for bad in 0..3 {
        let Pair { a, b } = setup.rc_pair()?;
        for wr_id in 0..4 {
            let mut room = b.sge(b.landing() + wr_id * 64, 64);
            if wr_id == bad {
                room.lkey ^= 0xa5;
            }
            setup.post_recv(b.qp, &[RecvWr::new(wr_id, &[room])])?;
        }
        for wr_id in 0..=bad {
            a.send(wr_id, 8)?;
        }
        let got = setup.poll(b.recv_cq, 4).rule("RQ-13")?;
        let ids = wr_ids(&got);
        check_eq!("RQ-13", ids, [0, 1, 2, 3], "the order of the receives");
        let bad = bad as usize;
        for (at, wc) in got.iter().enumerate() {
            let expected = match at {
                _ if at < bad => WcStatus::Success,
                _ if at > bad => WcStatus::WrFlushErr,
                // What the failure is called is another rule's.
                _ if wc.status == WcStatus::Success => WcStatus::LocProtErr,
                _ => wc.status,
            };
            check_eq!("RQ-13", wc.status, expected, format!("receive {at}"));
        }
        setup.no_completion(b.recv_cq, "RQ-13")?;
    }
    Ok(())
}
