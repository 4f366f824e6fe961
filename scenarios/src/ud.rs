//! Datagrams: one queue pair for many peers, room for the GRH, and what is dropped without a word.

use verbs_api::behavior::{FaultStatus, RouteFields, ShortDatagram};
use verbs_api::lab::{Fault, PacketFilter};
use verbs_api::{
    Ah, AhAttr, ErrorKind, GidType, GlobalRoute, Grh, Mtu, QpModify, QpState, QpType, RecvWr,
    SendWr, Sge, Wc, WcFlags, WcStatus, connect,
};

use crate::end::gives_up_soon;
use crate::failure::{check, check_eq, in_case};
use crate::{
    End, Failure, GRH_LEN, OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err,
};

const LEN: u32 = 8;

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    queue_pair_talks_to_many_without_a_connection,
    send_names_its_destination,
    data_starts_behind_the_room_for_the_grh,
    grh_names_both_ports,
    grh_has_the_route_of_the_address_handle,
    grh_has_its_length,
    header_of_ipv4_has_its_checksum,
    other_qkey_is_dropped,
    qkey_of_the_queue_pair_can_be_asked_for,
    unknown_destination_is_dropped,
    message_without_a_receive_is_dropped,
    message_longer_than_the_receive_never_arrives,
    receive_without_room_for_the_grh_gets_nothing,
    receiver_can_reply,
    messages_arrive_at_most_once_and_in_order,
    other_transports_do_not_listen,
    connection_to_a_datagram_queue_pair_gets_no_answer,
    local_error_stops_the_send_queue_alone,
    other_qkey_is_counted,
    datagram_is_as_long_as_the_mtu_of_the_port,
    datagram_above_the_mtu_never_arrives,
    receive_that_fails_is_the_last,
];

fn ud_pair<'b>(setup: &'b Setup<'_>) -> Result<Pair<'b>> {
    setup.pair(PairOptions::of(QpType::Ud))
}

/// Sends 8 bytes to a queue pair, with this Q_Key.
fn send_to(setup: &Setup<'_>, from: &End<'_>, ah: Ah, qpn: u32, qkey: u32) -> Result {
    let data = [from.sge(0, LEN)];
    let send = SendWr::send(1, &data).to(ah, qpn, qkey);
    setup.post_send(from.qp, &[send])?;
    Ok(())
}

fn ah_to(setup: &Setup<'_>, from: &End<'_>, to: &End<'_>) -> Result<Ah> {
    Ok(setup.create_ah(from.pd, &setup.route_to(to.context)?)?)
}

/// A send succeeds and nothing arrives; the receive, if there is one, takes the next message.
fn dropped(
    setup: &Setup<'_>,
    Pair { a, b }: Pair<'_>,
    recv: Option<u64>,
    rule: &'static str,
) -> Result {
    setup.one_with(a.send_cq, WcStatus::Success, rule)?;
    setup.no_completion(b.recv_cq, rule)?;
    let wr_id = match recv {
        Some(wr_id) => wr_id,
        None => {
            b.recv(99, LEN)?;
            99
        }
    };
    a.fill(42, LEN)?;
    a.send(2, LEN)?;
    let wc = setup.one_with(b.recv_cq, WcStatus::Success, rule)?;
    check_eq!(rule, wc.wr_id, wr_id, "the receive used");
    b.expect_data(42, LEN, rule)?;
    setup.one_with(a.send_cq, WcStatus::Success, rule)?;
    setup.no_completion(b.recv_cq, rule)
}

scenario!(queue_pair_talks_to_many_without_a_connection: "UD-01", "UD-17"; needs UD);
fn queue_pair_talks_to_many_without_a_connection(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-01";
    let options = PairOptions::of(QpType::Ud);
    let port = setup.port();
    let [from, first, second] =
        [setup.ctx_a(), setup.ctx_b(), setup.ctx_b()].map(|side| setup.end(side, options));
    let (from, first, second) = (from?, first?, second?);
    // Each has a Q_Key of its own.
    for (end, qkey) in [(&from, 1), (&first, 2), (&second, 3)] {
        connect::ud_to_rts(setup.verbs(), end.qp, port, qkey).rule("UD-17")?;
    }
    let ah = ah_to(setup, &from, &first)?;
    for round in 0..3 {
        for (to, qkey) in [(&first, 2), (&second, 3)] {
            let tag = round * 2 + qkey as u8;
            to.recv(10, LEN)?;
            from.fill(tag, LEN)?;
            send_to(setup, &from, ah, to.qp_num, qkey)?;
            setup.one_with(to.recv_cq, WcStatus::Success, RULE)?;
            to.expect_data(tag, LEN, RULE)?;
            setup.one_with(from.send_cq, WcStatus::Success, RULE)?;
        }
    }
    for to in [&first, &second] {
        setup.no_completion(to.recv_cq, RULE)?;
    }
    Ok(())
}

scenario!(data_starts_behind_the_room_for_the_grh: "UD-02", "UD-04"; needs UD);
fn data_starts_behind_the_room_for_the_grh(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-02";
    let Pair { a, b } = ud_pair(setup)?;
    for len in [0, 1, 256] {
        b.fill_at(b.landing(), 11, len + GRH_LEN + 16)?;
        let before = b.bytes(b.landing(), (len + GRH_LEN + 16) as usize)?;
        a.fill(12, len)?;
        // With more room than it takes.
        b.recv(1, len + 8)?;
        a.send(2, len)?;
        let wc = setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
        check_eq!("UD-04", wc.byte_len, len + GRH_LEN);
        b.expect_data(12, len, RULE)?;
        let after = b.bytes(b.landing(), before.len())?;
        let behind = (len + GRH_LEN) as usize;
        check_eq!(RULE, after[behind..], before[behind..], "bytes behind it");
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
    }
    Ok(())
}

/// Sends a message of this length, perhaps with immediate data; its completion, and what came
/// before it.
fn header(
    setup: &Setup<'_>,
    Pair { a, b }: &Pair<'_>,
    way: AhAttr,
    length: u32,
    imm: Option<[u8; 4]>,
    rule: &'static str,
) -> Result<(Wc, [u8; Grh::BYTES])> {
    b.recv(1, LEN)?;
    let ah = setup.create_ah(a.pd, &way).rule(rule)?;
    let data = [a.sge(0, length)];
    let send = match imm {
        Some(imm) => SendWr::send_with_imm(2, &data, imm),
        None => SendWr::send(2, &data),
    };
    setup.post_send(a.qp, &[send.to(ah, b.qp_num, setup.qkey())])?;
    let wc = setup.one_with(b.recv_cq, WcStatus::Success, rule)?;
    setup.one_with(a.send_cq, WcStatus::Success, rule)?;
    setup.destroy_ah(ah)?;
    let flag = wc.wc_flags.contains(WcFlags::GRH);
    check!(rule, flag, "the flag GRH", "{:?}", wc.wc_flags);
    let bytes = b.bytes(b.landing(), Grh::BYTES)?;
    Ok((wc, bytes.try_into().expect("as many as were read")))
}

fn read(bytes: &[u8; Grh::BYTES], rule: &'static str) -> Result<Grh> {
    let none = || Failure::assertion("a GRH, or a header of IPv4", format!("{bytes:x?}"));
    Grh::read(bytes).ok_or_else(none).rule(rule)
}

scenario!(grh_names_both_ports: "UD-03"; needs UD);
fn grh_names_both_ports(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-03";
    let pair = ud_pair(setup)?;
    for way in setup.ways(pair.a.pd)? {
        let to = way.grh.map(|grh| (u32::from(grh.sgid_index), grh.dgid));
        let (index, to) = to.expect("it is global");
        let from = setup.query_gid(pair.a.context, setup.port(), index)?;
        let (_, bytes) = header(setup, &pair, way, LEN, None, RULE)?;
        let (first, version) = if is_over_ipv4(setup, &way)? {
            (bytes[20], 4)
        } else {
            (bytes[0], 6)
        };
        check_eq!(RULE, first >> 4, version, "the version of IP");
        let grh = read(&bytes, RULE)?;
        check_eq!(RULE, (grh.sgid, grh.dgid), (from, to), "from and to");
    }
    Ok(())
}

scenario!(grh_has_the_route_of_the_address_handle: "UD-20"; needs UD);
fn grh_has_the_route_of_the_address_handle(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-20";
    let declared = setup.behavior()?.route_fields;
    let pair = ud_pair(setup)?;
    for way in setup.ways(pair.a.pd)? {
        // Switches may change the last two bits of the class (congestion).
        for (traffic_class, flow_label, hop_limit) in [
            (0, 0, 255),
            (0xb8, 0xa_bcde, 7),
            (0x80, 0x8_0000, 128),
            (0xfc, 0xf_ffff, 1),
        ] {
            let route = way.grh.map(|grh| GlobalRoute {
                traffic_class,
                flow_label,
                hop_limit,
                ..grh
            });
            let v4 = is_over_ipv4(setup, &way)?;
            let way = AhAttr { grh: route, ..way };
            let (_, bytes) = header(setup, &pair, way, LEN, None, RULE)?;
            let grh = read(&bytes, RULE)?;
            check_eq!(RULE, grh.traffic_class, traffic_class, "traffic class");
            let asked = (if v4 { 0 } else { flow_label }, hop_limit);
            let seen = match (grh.flow_label, grh.hop_limit) {
                seen if seen == asked => RouteFields::All,
                (0, limit) if limit != hop_limit => RouteFields::TrafficClass,
                seen => {
                    let expected = format!("flow label and hop limit {asked:x?}, or 0 and another");
                    return Err(Failure::assertion(expected, format!("{seen:x?}"))).rule(RULE);
                }
            };
            setup.as_declared(RULE, declared, seen)?;
        }
    }
    Ok(())
}

/// The type of the GID that packets on this way are from.
pub(crate) fn gid_type(setup: &Setup<'_>, way: &AhAttr) -> Result<GidType> {
    let index = way.grh.map_or(0, |grh| grh.sgid_index);
    let entry = setup.query_gid_ex(setup.ctx_a(), way.port_num, index.into())?;
    Ok(entry.gid_type)
}

/// Whether packets on this way have a header of IPv4, and no GRH.
fn is_over_ipv4(setup: &Setup<'_>, way: &AhAttr) -> Result<bool> {
    let is_mapped = way.grh.is_some_and(|grh| grh.dgid.ipv4().is_some());
    Ok(is_mapped && gid_type(setup, way)? == GidType::RoceV2)
}

scenario!(grh_has_its_length: "UD-21"; needs UD);
fn grh_has_its_length(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-21";
    let pair = ud_pair(setup)?;
    for way in setup.ways(pair.a.pd)? {
        // UDP; BTH, DETH, ICRC.
        let (next_header, around) = match gid_type(setup, &way)? {
            GidType::Ib | GidType::RoceV1 => (Grh::IBA, 24),
            _ => (Grh::UDP, 8 + 24),
        };
        for (length, padded) in [(0, 0), (1, 4), (LEN, LEN)] {
            for (imm, bytes_of_it) in [(None, 0), (Some([1, 2, 3, 4]), 4)] {
                let (_, bytes) = header(setup, &pair, way, length, imm, RULE)?;
                let grh = read(&bytes, RULE)?;
                check_eq!(RULE, grh.next_header, next_header, "the next header");
                let expected = around + padded + bytes_of_it;
                check_eq!(RULE, u32::from(grh.length), expected, "bytes behind it");
            }
        }
    }
    Ok(())
}

scenario!(header_of_ipv4_has_its_checksum: "UD-22"; needs UD);
fn header_of_ipv4_has_its_checksum(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-22";
    let pair = ud_pair(setup)?;
    for way in setup.ways(pair.a.pd)? {
        if !is_over_ipv4(setup, &way)? {
            continue;
        }
        for hop_limit in [1, 64, 255] {
            let grh = way.grh.map(|grh| GlobalRoute { hop_limit, ..grh });
            let way = AhAttr { grh, ..way };
            let (_, bytes) = header(setup, &pair, way, LEN, None, RULE)?;
            let words = bytes[20..].chunks(2);
            let words: Vec<_> = words
                .map(|word| u16::from_be_bytes([word[0], word[1]]))
                .collect();
            let seen = words[5];
            let sum: u32 = words.into_iter().map(u32::from).sum();
            let mut others = sum - u32::from(seen);
            while others > 0xffff {
                others = (others & 0xffff) + (others >> 16);
            }
            let right = !others as u16;
            check!(RULE, seen == right, format!("{right:#06x}"), "{seen:#06x}");
        }
    }
    Ok(())
}

scenario!(other_qkey_is_dropped: "UD-05"; needs UD);
fn other_qkey_is_dropped(setup: &Setup<'_>) -> Result {
    let pair = ud_pair(setup)?;
    let Pair { a, b } = pair;
    let ah = ah_to(setup, &a, &b)?;
    b.recv(10, LEN)?;
    send_to(setup, &a, ah, b.qp_num, setup.qkey() ^ 1)?;
    dropped(setup, pair, Some(10), "UD-05")
}

scenario!(qkey_of_the_queue_pair_can_be_asked_for: "UD-06"; needs UD);
fn qkey_of_the_queue_pair_can_be_asked_for(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-06";
    let Pair { a, b } = ud_pair(setup)?;
    let ah = ah_to(setup, &a, &b)?;
    for qkey in [1 << 31, u32::MAX] {
        b.recv(10, LEN)?;
        send_to(setup, &a, ah, b.qp_num, qkey)?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
    }
    Ok(())
}

scenario!(send_names_its_destination: "UD-01"; needs UD);
fn send_names_its_destination(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-01";
    let Pair { a, b } = ud_pair(setup)?;
    b.recv(10, LEN)?;
    let data = [a.sge(0, LEN)];
    let posted = setup.post_send(a.qp, &[SendWr::send(1, &data)]);
    expect_err(posted, ErrorKind::Invalid, RULE)?;
    setup.no_completion(a.send_cq, RULE)?;
    setup.no_completion(b.recv_cq, RULE)
}

scenario!(unknown_destination_is_dropped: "UD-07"; needs UD);
fn unknown_destination_is_dropped(setup: &Setup<'_>) -> Result {
    let pair = ud_pair(setup)?;
    let Pair { a, b } = pair;
    let ah = ah_to(setup, &a, &b)?;
    b.recv(10, LEN)?;
    for qpn in [b.qp_num ^ 0x00ff_f000, 0x00ff_fffe] {
        send_to(setup, &a, ah, qpn, setup.qkey())?;
        setup.one_with(a.send_cq, WcStatus::Success, "UD-07")?;
    }
    send_to(setup, &a, ah, 0, setup.qkey())?;
    dropped(setup, pair, Some(10), "UD-07")
}

scenario!(message_without_a_receive_is_dropped: "UD-08"; needs UD);
fn message_without_a_receive_is_dropped(setup: &Setup<'_>) -> Result {
    let pair = ud_pair(setup)?;
    pair.a.fill(1, LEN)?;
    pair.a.send(1, LEN)?;
    dropped(setup, pair, None, "UD-08")
}

scenario!(message_longer_than_the_receive_never_arrives: "UD-09", "RQ-13"; needs UD);
fn message_longer_than_the_receive_never_arrives(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-09";
    let pair = ud_pair(setup)?;
    let Pair { a, b } = pair;
    b.recv(10, LEN)?;
    a.send(1, LEN + 1)?;
    match setup.short_message(b.recv_cq, RULE)? {
        ShortDatagram::Drop => dropped(setup, pair, Some(10), RULE),
        _ => {
            setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
            check_eq!("RQ-13", setup.state(b.qp)?, QpState::Err);
            Ok(())
        }
    }
}

scenario!(receive_without_room_for_the_grh_gets_nothing: "UD-18"; needs UD);
fn receive_without_room_for_the_grh_gets_nothing(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-18";
    for room in [0, GRH_LEN - 1] {
        let Pair { a, b } = ud_pair(setup)?;
        let into = [b.sge(b.landing(), room)];
        setup.post_recv(b.qp, &[RecvWr::new(1, &into)])?;
        a.send(2, 0)?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        let result = setup.short_message(b.recv_cq, RULE);
        in_case(&format!("{room} bytes"), result.map(drop))?;
    }
    Ok(())
}

scenario!(receiver_can_reply: "UD-13"; needs UD);
fn receiver_can_reply(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-13";
    let pair = ud_pair(setup)?;
    let Pair { a, b } = &pair;
    for way in setup.ways(pair.a.pd)? {
        let (wc, bytes) = header(setup, &pair, way, LEN, None, RULE)?;
        // All that B knows of A is in what it received.
        let sgid_index = way.grh.map(|grh| grh.sgid_index);
        let back = AhAttr {
            grh: sgid_index
                .zip(Grh::read(&bytes))
                .map(|(index, grh)| grh.back(index)),
            dlid: wc.slid,
            sl: wc.sl,
            src_path_bits: wc.dlid_path_bits,
            port_num: setup.port(),
        };
        let ah = setup.create_ah(b.pd, &back).rule(RULE)?;
        a.recv(3, LEN)?;
        b.fill(55, LEN)?;
        send_to(setup, b, ah, wc.src_qp, setup.qkey())?;
        setup.one_with(b.send_cq, WcStatus::Success, RULE)?;
        let reply = setup.one_with(a.recv_cq, WcStatus::Success, RULE)?;
        check_eq!(RULE, reply.src_qp, b.qp_num, "the sender of the reply");
        a.expect_data(55, LEN, RULE)?;
        setup.destroy_ah(ah)?;
    }
    Ok(())
}

scenario!(messages_arrive_at_most_once_and_in_order: "UD-14"; needs UD, LAB);
fn messages_arrive_at_most_once_and_in_order(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-14";
    for rate in [0, 300_000] {
        let Pair { a, b } = ud_pair(setup)?;
        let fault = setup
            .lab()
            .inject(Fault::drop(PacketFilter::EVERY).per_million(rate))?;
        let mut lengths = Vec::new();
        for number in 0..100 {
            b.recv(1, 200)?;
            a.send(1, number)?;
            setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
            match setup.poll_all(b.recv_cq)?[..] {
                // Its receive would be used by the next: start again.
                [] => {
                    setup.to_reset(b.qp)?;
                    connect::ud_to_rts(setup.verbs(), b.qp, setup.port(), setup.qkey())?;
                }
                [wc] => lengths.push(wc.byte_len - GRH_LEN),
                _ => return Err(Failure::assertion("at most one", "two")).rule(RULE),
            }
        }
        let lost = setup.lab().remove(fault)?;
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

scenario!(other_transports_do_not_listen: "UD-15"; needs RC, UD);
fn other_transports_do_not_listen(setup: &Setup<'_>) -> Result {
    let pair = ud_pair(setup)?;
    let Pair { a, b } = pair;
    let rc = setup.rc_pair()?.b;
    rc.recv(1, LEN + GRH_LEN)?;
    let ah = ah_to(setup, &a, &rc)?;
    send_to(setup, &a, ah, rc.qp_num, setup.qkey())?;
    setup.one_with(a.send_cq, WcStatus::Success, "UD-15")?;
    setup.no_completion(rc.recv_cq, "UD-15")?;
    check_eq!("UD-15", setup.state(rc.qp)?, QpState::Rts);
    b.recv(10, LEN)?;
    send_to(setup, &a, ah, 0, setup.qkey())?;
    dropped(setup, pair, Some(10), "UD-15")
}

scenario!(connection_to_a_datagram_queue_pair_gets_no_answer: "UD-15"; needs RC, UD, MODIFY_CONNECT);
fn connection_to_a_datagram_queue_pair_gets_no_answer(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-15";
    let to = ud_pair(setup)?.b;
    to.recv(1, LEN)?;
    let from = setup.end(setup.ctx_a(), PairOptions::default())?;
    let rc = gives_up_soon();
    setup.climb(&from, &to, rc, QpState::Rts)?;
    let data = [from.sge(0, LEN)];
    setup.post_send(from.qp, &[SendWr::send(1, &data)])?;
    setup.one_with(from.send_cq, WcStatus::RetryExcErr, RULE)?;
    setup.no_completion(to.recv_cq, RULE)
}

scenario!(local_error_stops_the_send_queue_alone: "UD-19"; needs UD);
fn local_error_stops_the_send_queue_alone(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-19";
    let Pair { a, b } = ud_pair(setup)?;
    a.recv(10, LEN)?;
    let outside = [a.sge(a.mem.length, LEN)];
    a.post(SendWr::send(1, &outside))?;
    setup.one_with(a.send_cq, WcStatus::LocProtErr, RULE)?;
    check_eq!(RULE, setup.state(a.qp)?, QpState::Sqe);
    b.send(2, LEN)?;
    setup.one_with(a.recv_cq, WcStatus::Success, RULE)?;
    // From here it can be brought back.
    setup.modify(a.qp, QpModify::to(QpState::Rts)).rule(RULE)?;
    b.recv(11, LEN)?;
    a.send(3, LEN)?;
    setup.one_with(b.recv_cq, WcStatus::Success, RULE).map(drop)
}

scenario!(other_qkey_is_counted: "UD-05"; needs UD, LAB);
fn other_qkey_is_counted(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-05";
    let Pair { a, b } = ud_pair(setup)?;
    let ah = ah_to(setup, &a, &b)?;
    let count = |end: &End<'_>| -> Result<u32> {
        let port = setup.query_port(end.context, setup.port())?;
        Ok(port.qkey_viol_cntr)
    };
    let before = (count(&a)?, count(&b)?);
    for (round, qkey) in (1..).zip([setup.qkey() ^ 1, 0, setup.qkey() + 1]) {
        send_to(setup, &a, ah, b.qp_num, qkey)?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        setup.settle()?;
        let seen = (count(&a)?, count(&b)?);
        check_eq!(RULE, seen, (before.0, before.1 + round), "violations");
    }
    b.recv(1, LEN)?;
    send_to(setup, &a, ah, b.qp_num, setup.qkey())?;
    setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
    check_eq!(RULE, count(&b)?, before.1 + 3, "violations");
    Ok(())
}

scenario!(datagram_is_as_long_as_the_mtu_of_the_port: "UD-10"; needs UD, LAB);
/// Also when that changes, whatever the path MTU of connections.
fn datagram_is_as_long_as_the_mtu_of_the_port(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-10";
    for mtu in [Mtu::Mtu256, Mtu::Mtu1024, Mtu::Mtu2048] {
        for context in [setup.ctx_a(), setup.ctx_b()] {
            setup.lab().set_mtu(context, setup.port(), mtu)?;
        }
        let most = mtu.bytes().unwrap_or_default();
        let Pair { a, b } = ud_pair(setup)?;
        b.recv(1, 4096)?;
        a.fill(3, most)?;
        a.send(1, most)?;
        setup.one_with(a.send_cq, WcStatus::Success, RULE)?;
        setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
        b.expect_data(3, most, RULE)?;
        b.recv(2, 4096)?;
        a.send(2, most + 1)?;
        setup.no_completion(b.recv_cq, RULE)?;
    }
    Ok(())
}

scenario!(datagram_above_the_mtu_never_arrives: "UD-10"; needs UD, THREADS);
/// Where a device may call it done.
fn datagram_above_the_mtu_never_arrives(setup: &Setup<'_>) -> Result {
    const RULE: &str = "UD-10";
    let port = setup.query_port(setup.ctx_a(), setup.port())?;
    let most = port.active_mtu.bytes().unwrap_or_default();
    let Pair { a, b } = ud_pair(setup)?;
    b.recv(1, most + 8)?;
    a.send(2, most + 1)?;
    let wc = setup.one(a.send_cq).rule(RULE)?;
    let good = [WcStatus::LocLenErr, WcStatus::Success].contains(&wc.status);
    check!(RULE, good, "LOC_LEN_ERR, or a success", "{wc}");
    setup.no_completion(b.recv_cq, RULE)
}

scenario!(receive_that_fails_is_the_last: "RQ-07", "RQ-13"; needs UD);
/// Its memory has another key.
fn receive_that_fails_is_the_last(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = ud_pair(setup)?;
    let good = b.sge(b.landing(), LEN + GRH_LEN);
    let bad = Sge {
        lkey: good.lkey ^ 0xa5,
        ..good
    };
    b.post_recv(RecvWr::new(10, &[bad]))?;
    b.recv(11, LEN)?;
    a.send(1, LEN)?;
    setup.one_with(a.send_cq, WcStatus::Success, "RQ-07")?;
    let failed = setup.one(b.recv_cq).rule("RQ-07")?;
    let fault = setup.behavior()?.recv_fault_status;
    let expected = fault.map_or(failed.status, FaultStatus::status);
    check_eq!("RQ-07", (failed.wr_id, failed.status), (10, expected));
    let flushed = setup.one_with(b.recv_cq, WcStatus::WrFlushErr, "RQ-13")?;
    check_eq!("RQ-13", flushed.wr_id, 11);
    check_eq!("RQ-13", setup.state(b.qp)?, QpState::Err);
    Ok(())
}
