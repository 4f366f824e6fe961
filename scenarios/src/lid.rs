//! LIDs: they lead on InfiniBand, with a GRH or without. Ethernet has none, and needs the GRH.

use std::collections::BTreeMap;

use verbs_api::{
    AhAttr, Context, ErrorKind, Gid, GlobalRoute, LinkLayer, MULTICAST_QPN, Pd, QpAttrMask,
    QpState, QpType, SendWr, Wc, WcFlags, WcStatus, connect,
};

use crate::failure::{check, check_eq, in_case};
use crate::fresh_qp::FreshQp;
use crate::mcast::{ALL_HOSTS, MLID};
use crate::{End, OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err};

const LEN: u32 = 8;

/// The LIDs of ports.
const UNICAST: std::ops::RangeInclusive<u16> = 1..=0xbfff;
/// The last of them: of no port, unless the subnet is full.
const UNUSED: u16 = 0xbfff;
/// LIDs of no port: the reserved one, two of groups, and the permissive one.
const NO_PORTS: [u16; 4] = [0, 0xc000, 0xfffe, 0xffff];

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    port_has_a_lid_of_its_own,
    datagram_tells_the_lid_of_its_sender,
    datagram_by_lid_has_no_grh,
    receiver_of_a_datagram_by_lid_can_reply,
    connection_by_lid_carries_messages,
    unreliable_connection_by_lid_carries_messages,
    datagram_goes_to_the_port_of_its_lid,
    connection_to_a_lid_of_no_port_gets_no_answer,
    port_drops_what_has_the_gid_of_another,
    lid_that_is_of_no_port_leads_nowhere,
    group_has_a_multicast_lid,
    datagram_for_a_group_has_its_lid_and_its_gid,
];

fn is_infiniband(setup: &Setup<'_>) -> Result<bool> {
    let port = setup.query_port(setup.ctx_a(), setup.port())?;
    Ok(port.link_layer == LinkLayer::InfiniBand)
}

/// The way to the port of a context by its LID alone, from side A, of which `pd` is. Over Ethernet
/// there is none, and an address handle without a GRH is refused.
fn by_lid(setup: &Setup<'_>, pd: Pd, to: Context) -> Result<Option<AhAttr>> {
    let way = AhAttr {
        grh: None,
        ..setup.route_to(to)?
    };
    if is_infiniband(setup)? {
        return Ok(Some(way));
    }
    expect_err(setup.create_ah(pd, &way), ErrorKind::Invalid, "AH-01")?;
    Ok(None)
}

/// LIDs that no port has. On a simulator the only ports are those of its devices: then also the LID
/// after the last.
fn of_no_port(setup: &Setup<'_>) -> Result<Vec<u16>> {
    let mut unused = vec![UNUSED];
    if setup.verbs().lab().is_some() {
        let mut last = 0;
        for context in [setup.ctx_a(), setup.ctx_b()] {
            for port in 1..=setup.query_device(context)?.phys_port_cnt {
                last = last.max(setup.query_port(context, port)?.lid);
            }
        }
        unused.push(last + 1);
    }
    Ok(unused)
}

fn ud_pair<'b>(setup: &'b Setup<'_>) -> Result<Pair<'b>> {
    setup.pair(PairOptions::of(QpType::Ud))
}

/// Sends a message of this tag over this way; the send succeeds.
fn send(
    setup: &Setup<'_>,
    from: &End<'_>,
    way: &AhAttr,
    qpn: u32,
    tag: u8,
    rule: &'static str,
) -> Result {
    let ah = setup.create_ah(from.pd, way).rule(rule)?;
    from.fill(tag, LEN)?;
    let data = [from.sge(0, LEN)];
    setup.post_send(from.qp, &[SendWr::send(1, &data).to(ah, qpn, setup.qkey())])?;
    setup.one_with(from.send_cq, WcStatus::Success, rule)?;
    Ok(setup.destroy_ah(ah)?)
}

/// The message of this tag arrives: how.
fn arrives(setup: &Setup<'_>, at: &End<'_>, tag: u8, rule: &'static str) -> Result<Wc> {
    let wc = setup.one_with(at.recv_cq, WcStatus::Success, rule)?;
    at.expect_data(tag, LEN, rule)?;
    Ok(wc)
}

scenario!(port_has_a_lid_of_its_own: "LID-01"; without RC);
fn port_has_a_lid_of_its_own(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LID-01";
    let mut owners = BTreeMap::new();
    for info in setup.devices()? {
        let context = setup.open_device(&info.name)?;
        for port_num in 1..=setup.query_device(context)?.phys_port_cnt {
            let port = setup.query_port(context, port_num)?;
            if port.link_layer != LinkLayer::InfiniBand {
                let seen = (port.lid, port.sm_lid, port.lmc);
                check_eq!(RULE, seen, (0, 0, 0), "lid, sm_lid, lmc");
                continue;
            }
            let (lid, manager) = (port.lid, port.sm_lid);
            check!(RULE, UNICAST.contains(&lid), "a unicast LID", "{lid:#x}");
            check!(
                RULE,
                UNICAST.contains(&manager),
                "that of a subnet manager",
                "{manager:#x}"
            );
            check!(RULE, port.lmc <= 7, "an LMC up to 7", "{}", port.lmc);
            check_eq!(RULE, lid & ((1 << port.lmc) - 1), 0, "path bits");
            // The first half of the GID identifies the network.
            let Gid(gid) = setup.query_gid(context, port_num, 0)?;
            let name = format!("port {port_num} of {}", info.name);
            let owner = owners.insert((gid[..8].to_vec(), lid), name.clone());
            // A backend may list a device once for each side.
            let owner = owner.unwrap_or(name.clone());
            check_eq!(RULE, owner, name, format!("the port with LID {lid:#x}"));
        }
        setup.close_device(context)?;
    }
    Ok(())
}

scenario!(datagram_tells_the_lid_of_its_sender: "LID-02"; needs UD);
fn datagram_tells_the_lid_of_its_sender(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LID-02";
    let Pair { a, b } = ud_pair(setup)?;
    for (from, to) in [(a, b), (b, a), (a, b)] {
        let of_sender = setup.query_port(from.context, setup.port())?;
        let of_receiver = setup.query_port(to.context, setup.port())?;
        let by_grh = setup.route_to(to.context)?;
        let mut ways = vec![by_grh];
        if is_infiniband(setup)? {
            ways.push(AhAttr {
                grh: None,
                ..by_grh
            });
        }
        for way in ways {
            for src_path_bits in [0, 1, 0x7f] {
                let way = AhAttr {
                    src_path_bits,
                    ..way
                };
                to.recv(1, LEN)?;
                send(setup, &from, &way, to.qp_num, src_path_bits, RULE)?;
                let wc = arrives(setup, &to, src_path_bits, RULE)?;
                let of_path = u16::from(src_path_bits) & ((1 << of_sender.lmc) - 1);
                let case = format!("{way:?}");
                check_eq!(RULE, wc.slid, of_sender.lid | of_path, case);
                // The LID that was named has no path bits.
                check_eq!(RULE, wc.dlid_path_bits, 0, case);
                check_eq!(RULE, way.dlid, of_receiver.lid, "the way");
            }
        }
    }
    Ok(())
}

scenario!(datagram_by_lid_has_no_grh: "LID-03", "AH-01"; needs UD);
fn datagram_by_lid_has_no_grh(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LID-03";
    let Pair { a, b } = ud_pair(setup)?;
    let Some(way) = by_lid(setup, a.pd, b.context)? else {
        return Ok(());
    };
    let by_grh = setup.route_to(b.context)?;
    for (tag, way, has_grh) in [(1, way, false), (2, by_grh, true), (3, way, false)] {
        b.recv(1, LEN)?;
        send(setup, &a, &way, b.qp_num, tag, RULE)?;
        // The data starts where it starts behind a GRH.
        let wc = arrives(setup, &b, tag, RULE)?;
        let flag = wc.wc_flags.contains(WcFlags::GRH);
        check_eq!(RULE, flag, has_grh, "the flag GRH");
        check_eq!(RULE, wc.byte_len, crate::GRH_LEN + LEN);
        check_eq!(RULE, wc.src_qp, a.qp_num);
    }
    Ok(())
}

scenario!(receiver_of_a_datagram_by_lid_can_reply: "LID-04", "AH-01"; needs UD);
fn receiver_of_a_datagram_by_lid_can_reply(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LID-04";
    let Pair { a, b } = ud_pair(setup)?;
    let Some(way) = by_lid(setup, a.pd, b.context)? else {
        return Ok(());
    };
    for sl in [0, 5, 8, 15] {
        b.recv(1, LEN)?;
        let way = AhAttr { sl, ..way };
        send(setup, &a, &way, b.qp_num, 7, RULE)?;
        let wc = arrives(setup, &b, 7, RULE)?;
        // All that B knows of A is in its completion.
        let back = AhAttr {
            grh: None,
            dlid: wc.slid,
            sl: wc.sl,
            src_path_bits: wc.dlid_path_bits,
            port_num: setup.port(),
        };
        check_eq!(RULE, back.sl, sl, "the service level of the way back");
        a.recv(2, LEN)?;
        send(setup, &b, &back, wc.src_qp, 8, RULE)?;
        let reply = arrives(setup, &a, 8, RULE)?;
        let seen = (reply.src_qp, reply.slid);
        let lid = setup.query_port(b.context, setup.port())?.lid;
        check_eq!(RULE, seen, (b.qp_num, lid), "the sender of the reply");
    }
    Ok(())
}

scenario!(connection_by_lid_carries_messages: "LID-05", "QP-STATE-29"; needs MODIFY_CONNECT);
fn connection_by_lid_carries_messages(setup: &Setup<'_>) -> Result {
    connected(setup, QpType::Rc)
}

scenario!(unreliable_connection_by_lid_carries_messages:
    "LID-05", "QP-STATE-29"; needs UC, MODIFY_CONNECT);
fn unreliable_connection_by_lid_carries_messages(setup: &Setup<'_>) -> Result {
    connected(setup, QpType::Uc)
}

/// Each side with a GRH or without: messages go both ways.
fn connected(setup: &Setup<'_>, qp_type: QpType) -> Result {
    const RULE: &str = "LID-05";
    for without in [[true, true], [true, false], [false, true]] {
        let (mut a, mut b) = FreshQp::pair(setup, qp_type)?;
        for (side, without) in [&mut a, &mut b].into_iter().zip(without) {
            let mut way = side.av();
            if without {
                way.grh = None;
            }
            side.attr.ah_attr = Some(way);
            side.reach(QpState::Init)?;
        }
        if !is_infiniband(setup)? {
            let local = if without[0] { &a } else { &b };
            let mask = crate::fresh_qp::required(qp_type, QpState::Init, QpState::Rtr);
            let refused = local.change(QpState::Rtr, mask);
            expect_err(refused, ErrorKind::Invalid, "QP-STATE-29")?;
            continue;
        }
        for side in [&a, &b] {
            side.reach(QpState::Rts).rule(RULE)?;
            let reported = setup.query_qp(side.end.qp, QpAttrMask::AV)?.attr.ah_attr;
            check_eq!(RULE, reported, side.attr.ah_attr, "what a query tells");
        }
        for (from, to, tag) in [(&a, &b, 1), (&b, &a, 2)] {
            to.end.recv(1, LEN)?;
            from.end.fill(tag, LEN)?;
            from.end.send(2, LEN)?;
            let result = arrives(setup, &to.end, tag, RULE);
            in_case(&format!("without a GRH: {without:?}"), result.map(drop))?;
            setup.one_with(from.end.send_cq, WcStatus::Success, RULE)?;
        }
    }
    Ok(())
}

scenario!(datagram_goes_to_the_port_of_its_lid: "LID-06", "AH-01"; needs UD);
fn datagram_goes_to_the_port_of_its_lid(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LID-06";
    let Pair { a, b } = ud_pair(setup)?;
    let (Some(to_a), Some(to_b)) = (
        by_lid(setup, a.pd, a.context)?,
        by_lid(setup, a.pd, b.context)?,
    ) else {
        return Ok(());
    };
    let neighbor = setup.end(a.context, PairOptions::of(QpType::Ud))?;
    connect::ud_to_rts(setup.verbs(), neighbor.qp, setup.port(), setup.qkey())?;
    neighbor.recv(1, LEN)?;
    b.recv(1, LEN)?;
    // The LID of a port leads back to it, too.
    send(setup, &a, &to_a, neighbor.qp_num, 1, RULE)?;
    let wc = arrives(setup, &neighbor, 1, RULE)?;
    check_eq!(RULE, wc.slid, to_a.dlid);
    setup.no_completion(b.recv_cq, RULE)?;
    for dlid in of_no_port(setup)? {
        let unused = AhAttr { dlid, ..to_b };
        send(setup, &a, &unused, b.qp_num, 2, RULE)?;
        let result = setup.no_completion(b.recv_cq, RULE);
        in_case(&format!("to LID {dlid:#x}"), result)?;
    }
    if to_a.dlid != to_b.dlid {
        // There is no such queue pair.
        send(setup, &a, &to_a, b.qp_num, 3, RULE)?;
        setup.no_completion(b.recv_cq, RULE)?;
    }
    send(setup, &a, &to_b, b.qp_num, 4, RULE)?;
    arrives(setup, &b, 4, RULE).map(drop)
}

scenario!(connection_to_a_lid_of_no_port_gets_no_answer:
    "LID-06", "LID-07"; needs MODIFY_CONNECT);
fn connection_to_a_lid_of_no_port_gets_no_answer(setup: &Setup<'_>) -> Result {
    let (mut a, b) = FreshQp::pair(setup, QpType::Rc)?;
    a.attr.ah_attr = Some(AhAttr {
        dlid: UNUSED,
        ..a.av()
    });
    a.gives_up_soon();
    for side in [&a, &b] {
        side.reach(QpState::Rts)?;
    }
    b.end.recv(1, LEN)?;
    a.end.fill(9, LEN)?;
    a.end.send(2, LEN)?;
    if is_infiniband(setup)? {
        setup.one_with(a.end.send_cq, WcStatus::RetryExcErr, "LID-06")?;
        return setup.no_completion(b.end.recv_cq, "LID-06");
    }
    // The GID leads.
    setup.one_with(a.end.send_cq, WcStatus::Success, "LID-07")?;
    arrives(setup, &b.end, 9, "LID-07").map(drop)
}

scenario!(port_drops_what_has_the_gid_of_another: "LID-07"; needs UD);
fn port_drops_what_has_the_gid_of_another(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LID-07";
    let Pair { a, b } = ud_pair(setup)?;
    let way = setup.route_to(b.context)?;
    b.recv(1, LEN)?;
    if !is_infiniband(setup)? {
        for dlid in [0, UNUSED, 0xffff] {
            let way = AhAttr { dlid, ..way };
            send(setup, &a, &way, b.qp_num, 1, RULE)?;
            arrives(setup, &b, 1, RULE)?;
            b.recv(1, LEN)?;
        }
        return Ok(());
    }
    let Some(grh) = way.grh else { return Ok(()) };
    // In the same network, of no port.
    let mut strange = grh.dgid;
    strange.0[8..].fill(0xee);
    let mut wrong = vec![strange];
    if a.context != b.context {
        wrong.push(setup.query_gid(a.context, setup.port(), 0)?);
    }
    for dgid in wrong.into_iter().filter(|dgid| *dgid != grh.dgid) {
        let grh = Some(GlobalRoute { dgid, ..grh });
        send(setup, &a, &AhAttr { grh, ..way }, b.qp_num, 2, RULE)?;
        let result = setup.no_completion(b.recv_cq, RULE);
        in_case(&format!("to {dgid}"), result)?;
    }
    send(setup, &a, &way, b.qp_num, 3, RULE)?;
    arrives(setup, &b, 3, RULE).map(drop)
}

scenario!(lid_that_is_of_no_port_leads_nowhere: "LID-09"; needs UD);
fn lid_that_is_of_no_port_leads_nowhere(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LID-09";
    if !is_infiniband(setup)? {
        return Ok(());
    }
    let Pair { a, b } = ud_pair(setup)?;
    let way = setup.route_to(b.context)?;
    b.recv(1, LEN)?;
    for dlid in NO_PORTS {
        for grh in [None, way.grh] {
            let way = AhAttr { dlid, grh, ..way };
            match setup.create_ah(a.pd, &way) {
                Ok(ah) => {
                    setup.destroy_ah(ah)?;
                    send(setup, &a, &way, b.qp_num, 1, RULE)?;
                }
                refused => drop(expect_err(refused, ErrorKind::Invalid, RULE)?),
            }
            in_case(&format!("{way:?}"), setup.no_completion(b.recv_cq, RULE))?;
        }
    }
    send(setup, &a, &way, b.qp_num, 2, RULE)?;
    arrives(setup, &b, 2, RULE).map(drop)
}

scenario!(group_has_a_multicast_lid: "LID-08"; needs UD, MCAST);
fn group_has_a_multicast_lid(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LID-08";
    let b = ud_pair(setup)?.b;
    let infiniband = is_infiniband(setup)?;
    for lid in [0, 1, 0xbfff, 0xffff] {
        let attached = setup.attach_mcast(b.qp, ALL_HOSTS, lid);
        let result = if infiniband {
            expect_err(attached, ErrorKind::Invalid, RULE).map(drop)
        } else {
            // There groups have none.
            attached
                .and_then(|()| setup.detach_mcast(b.qp, ALL_HOSTS, lid))
                .rule(RULE)
        };
        in_case(&format!("LID {lid:#x}"), result)?;
    }
    for lid in [0xc000, 0xfffe] {
        setup.attach_mcast(b.qp, ALL_HOSTS, lid).rule(RULE)?;
        for wrong in [0, 1, 0xbfff, 0xffff] {
            if infiniband {
                let detached = setup.detach_mcast(b.qp, ALL_HOSTS, wrong);
                expect_err(detached, ErrorKind::Invalid, RULE)?;
            }
        }
        setup.detach_mcast(b.qp, ALL_HOSTS, lid).rule(RULE)?;
    }
    Ok(())
}

scenario!(datagram_for_a_group_has_its_lid_and_its_gid: "LID-08"; needs UD, MCAST);
fn datagram_for_a_group_has_its_lid_and_its_gid(setup: &Setup<'_>) -> Result {
    const RULE: &str = "LID-08";
    if !is_infiniband(setup)? {
        return Ok(());
    }
    let Pair { a, b } = ud_pair(setup)?;
    setup.attach_mcast(b.qp, ALL_HOSTS, MLID)?;
    b.recv(1, LEN)?;
    let to_port = setup.route_to(b.context)?;
    let to_group = AhAttr {
        dlid: MLID,
        ..AhAttr::global(setup.port(), setup.place().sgid_index, ALL_HOSTS)
    };
    for (what, way) in [
        (
            "the LID of a port",
            AhAttr {
                dlid: to_port.dlid,
                ..to_group
            },
        ),
        (
            "no LID",
            AhAttr {
                dlid: 0,
                ..to_group
            },
        ),
        (
            "the permissive LID",
            AhAttr {
                dlid: 0xffff,
                ..to_group
            },
        ),
        (
            "the GID of a port",
            AhAttr {
                dlid: MLID,
                ..to_port
            },
        ),
    ] {
        send(setup, &a, &way, MULTICAST_QPN, 1, RULE)?;
        in_case(what, setup.no_completion(b.recv_cq, RULE))?;
    }
    send(setup, &a, &to_group, MULTICAST_QPN, 2, RULE)?;
    let wc = arrives(setup, &b, 2, RULE)?;
    let lid = setup.query_port(a.context, setup.port())?.lid;
    check_eq!(RULE, wc.slid, lid);
    Ok(setup.detach_mcast(b.qp, ALL_HOSTS, MLID)?)
}
