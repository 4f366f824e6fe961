//! Datagrams: one queue pair for many peers, room for the GRH, and what is dropped without a word.

use verbs_api::{
    Ah, AhAttr, Capabilities, ErrorKind, Fault, Gid, Harm, PacketFilter, QpModify, QpState, QpType,
    RcParams, RecvWr, SendWr, ShortDatagram, WcFlags, WcStatus, When, connect,
};

use crate::failure::{check, check_eq, in_case};
use crate::{
    Bench, End, Failure, GRH_LEN, OfRule, Pair, PairOptions, QKEY, Result, Scenario, expect_err,
};

const LEN: u32 = 8;

const fn ud(
    id: &'static str,
    rules: &'static [&'static str],
    body: fn(&Bench<'_>) -> Result,
) -> Scenario {
    Scenario::new(id, rules, body).needs(Capabilities::UD)
}

pub(crate) const SCENARIOS: &[Scenario] = &[
    ud(
        "ud.queue_pair_talks_to_many_without_a_connection",
        &["UD-01", "UD-17"],
        queue_pair_talks_to_many_without_a_connection,
    ),
    ud(
        "ud.send_names_its_destination",
        &["UD-01"],
        send_names_its_destination,
    ),
    ud(
        "ud.data_starts_behind_the_room_for_the_grh",
        &["UD-02", "UD-04"],
        data_starts_behind_the_room_for_the_grh,
    ),
    ud("ud.grh_names_both_ports", &["UD-03"], grh_names_both_ports),
    ud(
        "ud.other_qkey_is_dropped",
        &["UD-05"],
        other_qkey_is_dropped,
    ),
    ud(
        "ud.qkey_of_the_queue_pair_can_be_asked_for",
        &["UD-06"],
        qkey_of_the_queue_pair_can_be_asked_for,
    ),
    ud(
        "ud.unknown_destination_is_dropped",
        &["UD-07"],
        unknown_destination_is_dropped,
    ),
    ud(
        "ud.message_without_a_receive_is_dropped",
        &["UD-08"],
        message_without_a_receive_is_dropped,
    ),
    ud(
        "ud.message_longer_than_the_receive_never_arrives",
        &["UD-09"],
        message_longer_than_the_receive_never_arrives,
    ),
    ud(
        "ud.receive_without_room_for_the_grh_gets_nothing",
        &["UD-18"],
        receive_without_room_for_the_grh_gets_nothing,
    ),
    ud("ud.receiver_can_reply", &["UD-13"], receiver_can_reply),
    ud(
        "ud.messages_arrive_at_most_once_and_in_order",
        &["UD-14"],
        messages_arrive_at_most_once_and_in_order,
    )
    .needs(Capabilities::LAB),
    ud(
        "ud.other_transports_do_not_listen",
        &["UD-15"],
        other_transports_do_not_listen,
    ),
    ud(
        "ud.connection_to_a_datagram_queue_pair_gets_no_answer",
        &["UD-15"],
        connection_to_a_datagram_queue_pair_gets_no_answer,
    )
    .needs(Capabilities::MODIFY_CONNECT),
    ud(
        "ud.local_error_stops_the_send_queue_alone",
        &["UD-19"],
        local_error_stops_the_send_queue_alone,
    ),
];

fn ud_pair<'b>(bench: &'b Bench<'_>) -> Result<Pair<'b>> {
    bench.pair(PairOptions::of(QpType::Ud))
}

/// Sends 8 bytes to a queue pair, with this Q_Key.
fn send_to(bench: &Bench<'_>, from: &End<'_>, ah: Ah, qpn: u32, qkey: u32) -> Result {
    let data = [from.sge(0, LEN)];
    let send = SendWr::send(1, &data).to(ah, qpn, qkey);
    bench.post_send(from.qp, &[send])?;
    Ok(())
}

fn ah_to(bench: &Bench<'_>, from: &End<'_>, to: &End<'_>) -> Result<Ah> {
    Ok(bench.create_ah(from.pd, &bench.route_to(to.context)?)?)
}

/// A send succeeds and nothing arrives; the receive, if there is one, takes the next message.
fn dropped(
    bench: &Bench<'_>,
    Pair { a, b }: Pair<'_>,
    recv: Option<u64>,
    rule: &'static str,
) -> Result {
    bench.one_with(a.send_cq, WcStatus::Success, rule)?;
    bench.no_completion(b.recv_cq, rule)?;
    let wr_id = match recv {
        Some(wr_id) => wr_id,
        None => {
            b.recv(99, LEN)?;
            99
        }
    };
    a.fill(42, LEN)?;
    a.send(2, LEN)?;
    let wc = bench.one_with(b.recv_cq, WcStatus::Success, rule)?;
    check_eq!(rule, wc.wr_id, wr_id, "the receive used");
    b.expect_data(42, LEN, rule)?;
    bench.one_with(a.send_cq, WcStatus::Success, rule)?;
    bench.no_completion(b.recv_cq, rule)
}

fn queue_pair_talks_to_many_without_a_connection(bench: &Bench<'_>) -> Result {
    const RULE: &str = "UD-01";
    let options = PairOptions::of(QpType::Ud);
    let port = bench.port();
    let [from, first, second] =
        [bench.ctx_a(), bench.ctx_b(), bench.ctx_b()].map(|side| bench.end(side, options));
    let (from, first, second) = (from?, first?, second?);
    // Each has a Q_Key of its own.
    for (end, qkey) in [(&from, 1), (&first, 2), (&second, 3)] {
        connect::ud_to_rts(bench.verbs(), end.qp, port, qkey).rule("UD-17")?;
    }
    let ah = ah_to(bench, &from, &first)?;
    for round in 0..3 {
        for (to, qkey) in [(&first, 2), (&second, 3)] {
            let tag = round * 2 + qkey as u8;
            to.recv(10, LEN)?;
            from.fill(tag, LEN)?;
            send_to(bench, &from, ah, to.qp_num, qkey)?;
            bench.one_with(to.recv_cq, WcStatus::Success, RULE)?;
            to.expect_data(tag, LEN, RULE)?;
            bench.one_with(from.send_cq, WcStatus::Success, RULE)?;
        }
    }
    for to in [&first, &second] {
        bench.no_completion(to.recv_cq, RULE)?;
    }
    Ok(())
}

fn data_starts_behind_the_room_for_the_grh(bench: &Bench<'_>) -> Result {
    const RULE: &str = "UD-02";
    let Pair { a, b } = ud_pair(bench)?;
    for len in [0, 1, 256] {
        b.fill_at(b.landing(), 11, len + GRH_LEN + 16)?;
        let before = b.bytes(b.landing(), (len + GRH_LEN + 16) as usize)?;
        a.fill(12, len)?;
        // With more room than it takes.
        b.recv(1, len + 8)?;
        a.send(2, len)?;
        let wc = bench.one_with(b.recv_cq, WcStatus::Success, RULE)?;
        check_eq!("UD-04", wc.byte_len, len + GRH_LEN);
        b.expect_data(12, len, RULE)?;
        let after = b.bytes(b.landing(), before.len())?;
        let behind = (len + GRH_LEN) as usize;
        check_eq!(RULE, after[behind..], before[behind..], "bytes behind it");
        bench.one_with(a.send_cq, WcStatus::Success, RULE)?;
    }
    Ok(())
}

/// The GIDs of sender and receiver that stand in the room for the GRH.
fn addresses(grh: &[u8]) -> (Gid, Gid) {
    let gid = |from: usize| Gid(grh[from..from + 16].try_into().expect("16 bytes"));
    if grh[0] >> 4 == 6 {
        return (gid(8), gid(24));
    }
    // The header of IPv4 is in the last 20 bytes.
    let mapped = |from: usize| {
        let address: [u8; 4] = grh[from..from + 4].try_into().expect("4 bytes");
        Gid(std::net::Ipv4Addr::from(address).to_ipv6_mapped().octets())
    };
    (mapped(32), mapped(36))
}

fn grh_names_both_ports(bench: &Bench<'_>) -> Result {
    const RULE: &str = "UD-03";
    let Pair { a, b } = ud_pair(bench)?;
    let port = bench.port();
    let table = bench.query_port(a.context, port)?.gid_tbl_len;
    let mut tried = 0;
    for index in 0..table.min(8) {
        let [from, to] = [a.context, b.context].map(|side| bench.query_gid(side, port, index));
        let (from, to) = (from?, to?);
        if [from, to].contains(&Gid::default()) {
            continue;
        }
        let way = AhAttr {
            dlid: bench.query_port(b.context, port)?.lid,
            ..AhAttr::global(port, index as u8, to)
        };
        let Ok(ah) = bench.create_ah(a.pd, &way) else {
            // An entry of the table that has no network behind it now.
            continue;
        };
        b.recv(1, LEN)?;
        send_to(bench, &a, ah, b.qp_num, QKEY)?;
        let wc = bench.one_with(b.recv_cq, WcStatus::Success, RULE)?;
        bench.one_with(a.send_cq, WcStatus::Success, RULE)?;
        let flag = wc.wc_flags.contains(WcFlags::GRH);
        check!(RULE, flag, "the flag GRH", "{:?}", wc.wc_flags);
        let grh = b.bytes(b.landing(), GRH_LEN as usize)?;
        let v4 = std::net::Ipv6Addr::from(to.0).to_ipv4_mapped().is_some();
        let version = if v4 { grh[20] } else { grh[0] } >> 4;
        check_eq!(RULE, version, if v4 { 4 } else { 6 }, "the version of IP");
        check_eq!(RULE, addresses(&grh), (from, to), "from and to");
        tried += 1;
    }
    check!(RULE, tried > 0, "a GID to send from", "none");
    Ok(())
}

fn other_qkey_is_dropped(bench: &Bench<'_>) -> Result {
    let pair = ud_pair(bench)?;
    let Pair { a, b } = pair;
    let ah = ah_to(bench, &a, &b)?;
    b.recv(10, LEN)?;
    send_to(bench, &a, ah, b.qp_num, QKEY ^ 1)?;
    dropped(bench, pair, Some(10), "UD-05")
}

fn qkey_of_the_queue_pair_can_be_asked_for(bench: &Bench<'_>) -> Result {
    const RULE: &str = "UD-06";
    let Pair { a, b } = ud_pair(bench)?;
    let ah = ah_to(bench, &a, &b)?;
    for qkey in [1 << 31, u32::MAX] {
        b.recv(10, LEN)?;
        send_to(bench, &a, ah, b.qp_num, qkey)?;
        bench.one_with(a.send_cq, WcStatus::Success, RULE)?;
        bench.one_with(b.recv_cq, WcStatus::Success, RULE)?;
    }
    Ok(())
}

fn send_names_its_destination(bench: &Bench<'_>) -> Result {
    const RULE: &str = "UD-01";
    let Pair { a, b } = ud_pair(bench)?;
    b.recv(10, LEN)?;
    let data = [a.sge(0, LEN)];
    let posted = bench.post_send(a.qp, &[SendWr::send(1, &data)]);
    expect_err(posted, ErrorKind::Invalid, RULE)?;
    bench.no_completion(a.send_cq, RULE)?;
    bench.no_completion(b.recv_cq, RULE)
}

fn unknown_destination_is_dropped(bench: &Bench<'_>) -> Result {
    let pair = ud_pair(bench)?;
    let Pair { a, b } = pair;
    let ah = ah_to(bench, &a, &b)?;
    b.recv(10, LEN)?;
    for qpn in [b.qp_num ^ 0x00ff_f000, 0x00ff_fffe] {
        send_to(bench, &a, ah, qpn, QKEY)?;
        bench.one_with(a.send_cq, WcStatus::Success, "UD-07")?;
    }
    send_to(bench, &a, ah, 0, QKEY)?;
    dropped(bench, pair, Some(10), "UD-07")
}

fn message_without_a_receive_is_dropped(bench: &Bench<'_>) -> Result {
    let pair = ud_pair(bench)?;
    pair.a.fill(1, LEN)?;
    pair.a.send(1, LEN)?;
    dropped(bench, pair, None, "UD-08")
}

fn message_longer_than_the_receive_never_arrives(bench: &Bench<'_>) -> Result {
    const RULE: &str = "UD-09";
    let pair = ud_pair(bench)?;
    let Pair { a, b } = pair;
    b.recv(10, LEN)?;
    a.send(1, LEN + 1)?;
    match bench.short_message(b.recv_cq, RULE)? {
        ShortDatagram::Drop => dropped(bench, pair, Some(10), RULE),
        _ => bench.one_with(a.send_cq, WcStatus::Success, RULE).map(drop),
    }
}

fn receive_without_room_for_the_grh_gets_nothing(bench: &Bench<'_>) -> Result {
    const RULE: &str = "UD-18";
    for room in [0, GRH_LEN - 1] {
        let Pair { a, b } = ud_pair(bench)?;
        let into = [b.sge(b.landing(), room)];
        bench.post_recv(b.qp, &[RecvWr::new(1, &into)])?;
        a.send(2, 0)?;
        bench.one_with(a.send_cq, WcStatus::Success, RULE)?;
        let result = bench.short_message(b.recv_cq, RULE);
        in_case(&format!("{room} bytes"), result)?;
    }
    Ok(())
}

fn receiver_can_reply(bench: &Bench<'_>) -> Result {
    const RULE: &str = "UD-13";
    let Pair { a, b } = ud_pair(bench)?;
    b.recv(1, LEN)?;
    a.send(2, LEN)?;
    let wc = bench.one_with(b.recv_cq, WcStatus::Success, RULE)?;
    // All that B knows of A is in what it received.
    let (from, _) = addresses(&b.bytes(b.landing(), GRH_LEN as usize)?);
    let place = bench.place();
    let back = AhAttr {
        dlid: wc.slid,
        ..AhAttr::global(place.port_num, place.sgid_index, from)
    };
    let ah = bench.create_ah(b.pd, &back).rule(RULE)?;
    a.recv(3, LEN)?;
    b.fill(55, LEN)?;
    send_to(bench, &b, ah, wc.src_qp, QKEY)?;
    bench.one_with(b.send_cq, WcStatus::Success, RULE)?;
    let reply = bench.one_with(a.recv_cq, WcStatus::Success, RULE)?;
    check_eq!(RULE, reply.src_qp, b.qp_num, "the sender of the reply");
    a.expect_data(55, LEN, RULE)
}

fn messages_arrive_at_most_once_and_in_order(bench: &Bench<'_>) -> Result {
    const RULE: &str = "UD-14";
    for rate in [0, 300_000] {
        let Pair { a, b } = ud_pair(bench)?;
        let fault = bench.lab().inject(Fault::packet(
            PacketFilter::EVERY,
            When::PerMillion(rate),
            Harm::Drop,
        ))?;
        let mut lengths = Vec::new();
        for number in 0..100 {
            b.recv(1, 200)?;
            a.send(1, number)?;
            bench.one_with(a.send_cq, WcStatus::Success, RULE)?;
            match bench.poll_all(b.recv_cq)?[..] {
                // Its receive would be used by the next: start again.
                [] => {
                    bench.to_reset(b.qp)?;
                    connect::ud_to_rts(bench.verbs(), b.qp, bench.port(), QKEY)?;
                }
                [wc] => lengths.push(wc.byte_len - GRH_LEN),
                _ => return Err(Failure::assertion("at most one", "two").of_rule(RULE)),
            }
        }
        let lost = bench.lab().remove(fault)?;
        check!(
            RULE,
            (lost > 0) == (rate > 0),
            "losses if asked for",
            "{lost}"
        );
        check_eq!(RULE, lengths.len() as u64, 100 - lost, "what arrived");
        let ascend = lengths.windows(2).all(|pair| pair[0] < pair[1]);
        check!(RULE, ascend, "each once, in order", "{lengths:?}");
    }
    Ok(())
}

fn other_transports_do_not_listen(bench: &Bench<'_>) -> Result {
    let pair = ud_pair(bench)?;
    let Pair { a, b } = pair;
    let rc = bench.rc_pair()?.b;
    rc.recv(1, LEN + GRH_LEN)?;
    let ah = ah_to(bench, &a, &rc)?;
    send_to(bench, &a, ah, rc.qp_num, QKEY)?;
    bench.one_with(a.send_cq, WcStatus::Success, "UD-15")?;
    bench.no_completion(rc.recv_cq, "UD-15")?;
    check_eq!("UD-15", bench.state(rc.qp)?, QpState::Rts);
    b.recv(10, LEN)?;
    send_to(bench, &a, ah, 0, QKEY)?;
    dropped(bench, pair, Some(10), "UD-15")
}

fn connection_to_a_datagram_queue_pair_gets_no_answer(bench: &Bench<'_>) -> Result {
    const RULE: &str = "UD-15";
    let to = ud_pair(bench)?.b;
    to.recv(1, LEN)?;
    let from = bench.end(bench.ctx_a(), PairOptions::default())?;
    let rc = RcParams {
        timeout: 8,
        retry_cnt: 1,
        ..RcParams::default()
    };
    bench.climb(&from, &to, rc, QpState::Rts)?;
    let data = [from.sge(0, LEN)];
    bench.post_send(from.qp, &[SendWr::send(1, &data)])?;
    bench.one_with(from.send_cq, WcStatus::RetryExcErr, RULE)?;
    bench.no_completion(to.recv_cq, RULE)
}

fn local_error_stops_the_send_queue_alone(bench: &Bench<'_>) -> Result {
    const RULE: &str = "UD-19";
    let Pair { a, b } = ud_pair(bench)?;
    a.recv(10, LEN)?;
    let outside = [a.sge(a.mem.length, LEN)];
    a.post(SendWr::send(1, &outside))?;
    bench.one_with(a.send_cq, WcStatus::LocProtErr, RULE)?;
    check_eq!(RULE, bench.state(a.qp)?, QpState::Sqe);
    b.send(2, LEN)?;
    bench.one_with(a.recv_cq, WcStatus::Success, RULE)?;
    // From here it can be brought back.
    bench.modify(a.qp, QpModify::to(QpState::Rts)).rule(RULE)?;
    b.recv(11, LEN)?;
    a.send(3, LEN)?;
    bench.one_with(b.recv_cq, WcStatus::Success, RULE).map(drop)
}
