//! Multicast: who gets a copy, and who may be attached.

use verbs_api::{
    Ah, AhAttr, Capabilities, ErrorKind, Gid, LinkLayer, MULTICAST_QPN, QpType, SendWr, Wait,
    WcStatus, connect,
};

use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::{End, OfRule, PairOptions, Result, Scenario, Setup, expect_err};

const LEN: u32 = 8;

/// The group that every machine is in: a device that is made of its network stack gets back what it
/// sends to no other.
pub(crate) const ALL_HOSTS: Gid = Gid([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
/// The all-hosts group of IPv4.
const ALL_HOSTS_V4: Gid = Gid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 224, 0, 0, 1]);

/// A LID for groups, where there are any.
pub(crate) const MLID: u16 = 0xc001;

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    connected_queue_pair_cannot_be_attached,
    gid_of_no_group_is_refused,
    attached_twice_receives_once,
    every_attached_queue_pair_gets_a_copy,
    detached_queue_pair_receives_nothing,
    only_what_is_attached_can_be_detached,
    attached_queue_pair_cannot_be_destroyed,
    end_of_a_context_takes_its_queue_pairs_out_of_their_groups,
    what_one_cannot_take_the_others_get,
    group_has_as_many_as_the_device_says,
    there_are_as_many_groups_as_the_device_says,
    group_is_reached_by_its_queue_pair_number_alone,
    attaching_is_for_one_queue_pair_and_one_group,
];

/// The group of all hosts in the network of the setup.
pub(crate) fn all_hosts(setup: &Setup<'_>) -> Result<Gid> {
    let place = setup.place();
    let own = setup.query_gid(setup.ctx_a(), place.port_num, place.sgid_index.into())?;
    Ok(own.ipv4().map_or(ALL_HOSTS, |_| ALL_HOSTS_V4))
}

/// Another group, by number, which other runs do not use.
fn other(setup: &Setup<'_>, number: u16) -> Gid {
    let mut gid = [0; 16];
    gid[..2].copy_from_slice(&[0xff, 0x12]);
    gid[8..12].copy_from_slice(&setup.qkey().to_be_bytes());
    gid[12..14].copy_from_slice(b"vs");
    gid[14..].copy_from_slice(&number.to_be_bytes());
    Gid(gid)
}

/// A UD end in RTS, with a Q_Key.
fn end_with<'b>(setup: &'b Setup<'_>, on_a: bool, qkey: u32) -> Result<End<'b>> {
    let side = if on_a { setup.ctx_a() } else { setup.ctx_b() };
    let end = setup.end(side, PairOptions::of(QpType::Ud))?;
    connect::ud_to_rts(setup.verbs(), end.qp, setup.port(), qkey)?;
    Ok(end)
}

fn end<'b>(setup: &'b Setup<'_>) -> Result<End<'b>> {
    end_with(setup, false, setup.qkey())
}

/// Who sends to the group, and how.
struct Sender<'b> {
    setup: &'b Setup<'b>,
    end: End<'b>,
    group: Gid,
    ah: Ah,
}

impl<'b> Sender<'b> {
    fn new(setup: &'b Setup<'_>) -> Result<Self> {
        let end = end_with(setup, true, setup.qkey())?;
        let group = all_hosts(setup)?;
        let place = setup.place();
        let port = setup.query_port(setup.ctx_a(), place.port_num)?;
        // On Ethernet the GID alone leads.
        let dlid = match port.link_layer {
            LinkLayer::InfiniBand => MLID,
            _ => 0,
        };
        let way = AhAttr {
            dlid,
            ..AhAttr::global(place.port_num, place.sgid_index, group)
        };
        let ah = setup.create_ah(end.pd, &way)?;
        Ok(Self {
            setup,
            end,
            group,
            ah,
        })
    }

    /// Sends to the group; the send is done.
    fn send(&self, tag: u8) -> Result {
        self.send_to(tag, self.ah, MULTICAST_QPN)
    }

    fn send_to(&self, tag: u8, ah: Ah, qpn: u32) -> Result {
        let Self { setup, end, .. } = self;
        end.fill(tag, LEN)?;
        let data = [end.sge(0, LEN)];
        let send = SendWr::send(tag.into(), &data).to(ah, qpn, setup.qkey());
        setup.post_send(end.qp, &[send])?;
        setup.successes(end.send_cq, 1).map(drop)
    }
}

/// A message of this tag came, in this receive.
fn got(setup: &Setup<'_>, to: &End<'_>, wr_id: u64, tag: u8, rule: &'static str) -> Result {
    used(setup, to, wr_id, rule)?;
    to.expect_data(tag, LEN, rule)
}

/// A message came, in this receive.
fn used(setup: &Setup<'_>, to: &End<'_>, wr_id: u64, rule: &'static str) -> Result {
    let wc = setup.one_with(to.recv_cq, WcStatus::Success, rule)?;
    check_eq!(rule, wc.wr_id, wr_id, "the receive used");
    Ok(())
}

scenario!(connected_queue_pair_cannot_be_attached: "MCAST-01"; needs UD, MCAST);
fn connected_queue_pair_cannot_be_attached(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MCAST-01";
    let has = setup.capabilities(setup.ctx_a())?;
    for qp_type in [QpType::Rc, QpType::Uc] {
        if qp_type == QpType::Uc && !has.contains(Capabilities::UC) {
            continue;
        }
        let on = end(setup)?;
        let init = verbs_api::QpInit::new(qp_type, on.send_cq, on.recv_cq);
        let qp = setup.create_qp(on.pd, &init)?;
        let attached = setup.attach_mcast(qp, ALL_HOSTS, MLID);
        let refused = expect_err(attached, ErrorKind::Invalid, RULE);
        in_case(&qp_type.to_string(), refused.map(drop))?;
        setup.destroy_qp(qp, setup.wait()).rule(RULE)?;
    }
    let ud = end(setup)?;
    setup.attach_mcast(ud.qp, ALL_HOSTS, MLID).rule(RULE)?;
    Ok(setup.detach_mcast(ud.qp, ALL_HOSTS, MLID)?)
}

scenario!(gid_of_no_group_is_refused: "MCAST-02"; needs UD, MCAST);
fn gid_of_no_group_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MCAST-02";
    let ud = end(setup)?;
    let own = setup.query_gid(ud.context, setup.port(), setup.place().sgid_index.into())?;
    let near = |byte: u8| {
        let mut near = ALL_HOSTS;
        near.0[0] = byte;
        near
    };
    for gid in [own, Gid::default(), near(0xfe), near(0x7f)] {
        let attached = setup.attach_mcast(ud.qp, gid, MLID);
        let refused = expect_err(attached, ErrorKind::Invalid, RULE);
        in_case(&gid.to_string(), refused.map(drop))?;
    }
    // It is in no group.
    setup.destroy_qp(ud.qp, setup.wait()).rule(RULE)
}

scenario!(attached_twice_receives_once: "MCAST-03"; needs UD, MCAST);
fn attached_twice_receives_once(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MCAST-03";
    let sender = Sender::new(setup)?;
    let to = end(setup)?;
    for _ in 0..2 {
        setup.attach_mcast(to.qp, sender.group, MLID).rule(RULE)?;
    }
    for (first, tag) in [(10, 1), (20, 2)] {
        to.recv_at(first, 0, LEN)?;
        to.recv(first + 1, LEN)?;
        sender.send(tag)?;
        used(setup, &to, first, RULE)?;
        setup.no_completion(to.recv_cq, RULE)?;
        // The receive that is left takes the next.
        sender.send(tag + 10)?;
        got(setup, &to, first + 1, tag + 10, RULE)?;
    }
    Ok(setup.detach_mcast(to.qp, sender.group, MLID)?)
}

scenario!(every_attached_queue_pair_gets_a_copy: "MCAST-04"; needs UD, MCAST);
fn every_attached_queue_pair_gets_a_copy(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MCAST-04";
    let sender = Sender::new(setup)?;
    // On both sides, and the sender itself.
    let others = [true, false, false].map(|on_a| end_with(setup, on_a, setup.qkey()));
    let mut members = vec![sender.end];
    for other in others {
        members.push(other?);
    }
    for member in &members {
        setup.attach_mcast(member.qp, sender.group, MLID)?;
    }
    for round in 0..3 {
        for member in &members {
            member.recv(round.into(), LEN)?;
        }
        sender.send(round)?;
        for (place, member) in members.iter().enumerate() {
            let result = got(setup, member, round.into(), round, RULE);
            in_case(&format!("member {place}, round {round}"), result)?;
        }
    }
    // A copy is one message, and uses one receive.
    for member in &members {
        member.recv_at(50, 512, LEN)?;
        member.recv(51, LEN)?;
    }
    sender.send(77)?;
    for member in &members {
        used(setup, member, 50, RULE)?;
    }
    for member in &members {
        setup.no_completion(member.recv_cq, RULE)?;
        setup.detach_mcast(member.qp, sender.group, MLID)?;
    }
    Ok(())
}

scenario!(detached_queue_pair_receives_nothing: "MCAST-05"; needs UD, MCAST);
fn detached_queue_pair_receives_nothing(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MCAST-05";
    let sender = Sender::new(setup)?;
    let (leaves, stays) = (end(setup)?, end(setup)?);
    for member in [&leaves, &stays] {
        setup.attach_mcast(member.qp, sender.group, MLID)?;
        member.recv(1, LEN)?;
    }
    sender.send(1)?;
    for member in [&leaves, &stays] {
        got(setup, member, 1, 1, RULE)?;
        member.recv(2, LEN)?;
    }
    setup
        .detach_mcast(leaves.qp, sender.group, MLID)
        .rule(RULE)?;
    sender.send(2)?;
    got(setup, &stays, 2, 2, RULE)?;
    setup.no_completion(leaves.recv_cq, RULE)?;
    // Until it is back.
    setup
        .attach_mcast(leaves.qp, sender.group, MLID)
        .rule(RULE)?;
    sender.send(3)?;
    got(setup, &leaves, 2, 3, RULE)?;
    for member in [&leaves, &stays] {
        setup.detach_mcast(member.qp, sender.group, MLID)?;
    }
    Ok(())
}

scenario!(only_what_is_attached_can_be_detached: "MCAST-05"; needs UD, MCAST);
fn only_what_is_attached_can_be_detached(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MCAST-05";
    let (member, stranger) = (end(setup)?, end(setup)?);
    let refused = |what: &str, qp, group| {
        let detached = setup.detach_mcast(qp, group, MLID);
        value_in_case(what, expect_err(detached, ErrorKind::Invalid, RULE)).map(drop)
    };
    refused("no group is there", member.qp, ALL_HOSTS)?;
    setup.attach_mcast(member.qp, ALL_HOSTS, MLID)?;
    refused("another queue pair", stranger.qp, ALL_HOSTS)?;
    refused("another group", member.qp, other(setup, 0))?;
    setup.detach_mcast(member.qp, ALL_HOSTS, MLID).rule(RULE)?;
    refused("once more", member.qp, ALL_HOSTS)
}

scenario!(attached_queue_pair_cannot_be_destroyed: "MCAST-06"; needs UD, MCAST);
fn attached_queue_pair_cannot_be_destroyed(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MCAST-06";
    let sender = Sender::new(setup)?;
    let member = end(setup)?;
    for group in [sender.group, other(setup, 1)] {
        setup.attach_mcast(member.qp, group, MLID)?;
    }
    let busy = |what: &str| {
        let destroyed = setup.destroy_qp(member.qp, Wait::Poll);
        value_in_case(what, expect_err(destroyed, ErrorKind::Busy, RULE)).map(drop)
    };
    busy("in two groups")?;
    setup.detach_mcast(member.qp, other(setup, 1), MLID)?;
    busy("in one group")?;
    // It is as it was.
    member.recv(1, LEN)?;
    sender.send(5)?;
    got(setup, &member, 1, 5, RULE)?;
    setup.to_err(member.qp)?;
    busy("in the error state")?;
    setup.to_reset(member.qp)?;
    busy("after RESET")?;
    setup.detach_mcast(member.qp, sender.group, MLID)?;
    setup.destroy_qp(member.qp, setup.wait()).rule(RULE)
}

scenario!(end_of_a_context_takes_its_queue_pairs_out_of_their_groups:
    "LIFE-07", "MCAST-04"; needs UD, MCAST; hazards MAY_HANG);
/// They are attached along with others, before them, and alone.
fn end_of_a_context_takes_its_queue_pairs_out_of_their_groups(setup: &Setup<'_>) -> Result {
    let sender = Sender::new(setup)?;
    let stays = end(setup)?;
    let name = setup.devices()?.swap_remove(0).name;
    for goes_first in [true, false] {
        let context = setup.open_device(&name)?;
        let goes = setup.end(context, PairOptions::of(QpType::Ud))?;
        connect::ud_to_rts(setup.verbs(), goes.qp, setup.port(), setup.qkey())?;
        let (first, last) = if goes_first {
            (goes.qp, stays.qp)
        } else {
            (stays.qp, goes.qp)
        };
        setup.attach_mcast(goes.qp, other(setup, 6), MLID)?;
        for qp in [first, last] {
            setup.attach_mcast(qp, sender.group, MLID)?;
        }
        setup.close_device(context).rule("LIFE-07")?;
        stays.recv(1, LEN)?;
        sender.send(7)?;
        got(setup, &stays, 1, 7, "MCAST-04")?;
        setup.detach_mcast(stays.qp, sender.group, MLID)?;
    }
    // The other group is empty again, and can be refilled.
    setup
        .attach_mcast(stays.qp, other(setup, 6), MLID)
        .rule("LIFE-07")?;
    Ok(setup.detach_mcast(stays.qp, other(setup, 6), MLID)?)
}

scenario!(what_one_cannot_take_the_others_get: "MCAST-07"; needs UD, MCAST);
fn what_one_cannot_take_the_others_get(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MCAST-07";
    let sender = Sender::new(setup)?;
    // Those that cannot take it stand first, in the middle and last.
    let (without, small) = (end(setup)?, end(setup)?);
    let (other_key, not_ready) = (
        end_with(setup, false, setup.qkey() ^ 1)?,
        setup.end(setup.ctx_b(), PairOptions::of(QpType::Ud))?,
    );
    let takers = [end(setup)?, end(setup)?, end(setup)?];
    small.recv(1, LEN - 1)?;
    other_key.recv(1, LEN)?;
    let order = [
        &without, &takers[0], &small, &takers[1], &other_key, &takers[2], &not_ready,
    ];
    for member in order {
        setup.attach_mcast(member.qp, sender.group, MLID)?;
    }
    for tag in 0..3 {
        for taker in &takers {
            taker.recv(tag.into(), LEN)?;
        }
        sender.send(tag)?;
        for (place, taker) in takers.iter().enumerate() {
            let result = got(setup, taker, tag.into(), tag, RULE);
            in_case(&format!("taker {place}, message {tag}"), result)?;
        }
    }
    for member in [&without, &other_key, &not_ready] {
        setup.no_completion(member.recv_cq, RULE)?;
    }
    for member in order {
        setup.detach_mcast(member.qp, sender.group, MLID)?;
    }
    Ok(())
}

scenario!(group_has_as_many_as_the_device_says: "MCAST-08"; needs UD, MCAST);
fn group_has_as_many_as_the_device_says(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MCAST-08";
    let limit = setup.query_device(setup.ctx_a())?.max_mcast_qp_attach;
    let first = setup.end(setup.ctx_a(), PairOptions::of(QpType::Ud))?;
    let init = verbs_api::QpInit::new(QpType::Ud, first.send_cq, first.recv_cq);
    check!(RULE, limit > 0, "a limit above 0", "{limit}");
    let mut members = Vec::new();
    for _ in 0..limit.min(MANY) {
        let qp = setup.create_qp(first.pd, &init)?;
        setup.attach_mcast(qp, other(setup, 2), MLID).rule(RULE)?;
        members.push(qp);
    }
    if limit <= MANY {
        let full = setup.attach_mcast(first.qp, other(setup, 2), MLID);
        expect_err(full, ErrorKind::NoMemory, RULE)?;
        // A member may attach again, and another group has room.
        setup
            .attach_mcast(members[0], other(setup, 2), MLID)
            .rule(RULE)?;
        setup
            .attach_mcast(first.qp, other(setup, 3), MLID)
            .rule(RULE)?;
        setup.detach_mcast(first.qp, other(setup, 3), MLID)?;
    }
    for qp in members {
        setup.detach_mcast(qp, other(setup, 2), MLID)?;
    }
    setup
        .attach_mcast(first.qp, other(setup, 2), MLID)
        .rule(RULE)?;
    Ok(setup.detach_mcast(first.qp, other(setup, 2), MLID)?)
}

scenario!(there_are_as_many_groups_as_the_device_says: "MCAST-08"; needs UD, MCAST, LAB);
fn there_are_as_many_groups_as_the_device_says(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MCAST-08";
    let limit = setup.query_device(setup.ctx_a())?.max_mcast_grp as u16;
    let ud = setup.end(setup.ctx_a(), PairOptions::of(QpType::Ud))?;
    for number in 0..limit {
        setup
            .attach_mcast(ud.qp, other(setup, number), MLID)
            .rule(RULE)?;
    }
    let full = setup.attach_mcast(ud.qp, other(setup, limit), MLID);
    expect_err(full, ErrorKind::NoMemory, RULE)?;
    setup.detach_mcast(ud.qp, other(setup, 0), MLID)?;
    setup
        .attach_mcast(ud.qp, other(setup, limit), MLID)
        .rule(RULE)
}

scenario!(group_is_reached_by_its_queue_pair_number_alone: "MCAST-09"; needs UD, MCAST);
fn group_is_reached_by_its_queue_pair_number_alone(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MCAST-09";
    let sender = Sender::new(setup)?;
    let (named, member) = (end(setup)?, end(setup)?);
    let to_named = setup.create_ah(sender.end.pd, &setup.route_to(named.context)?)?;
    for to in [&named, &member] {
        setup.attach_mcast(to.qp, sender.group, MLID)?;
        to.recv(1, LEN)?;
    }
    // The group, with the number of a queue pair.
    sender.send_to(1, sender.ah, named.qp_num)?;
    setup.no_completion(member.recv_cq, RULE)?;
    // A port, with the number of groups.
    sender.send_to(2, to_named, MULTICAST_QPN)?;
    setup.no_completion(member.recv_cq, RULE)?;
    sender.send(3)?;
    got(setup, &member, 1, 3, RULE)?;
    for to in [&named, &member] {
        setup.detach_mcast(to.qp, sender.group, MLID)?;
    }
    Ok(())
}

scenario!(attaching_is_for_one_queue_pair_and_one_group: "MCAST-10"; needs UD, MCAST);
fn attaching_is_for_one_queue_pair_and_one_group(setup: &Setup<'_>) -> Result {
    const RULE: &str = "MCAST-10";
    let sender = Sender::new(setup)?;
    let (member, of_another, of_none) = (end(setup)?, end(setup)?, end(setup)?);
    setup.attach_mcast(member.qp, sender.group, MLID)?;
    setup.attach_mcast(of_another.qp, other(setup, 4), MLID)?;
    for to in [&member, &of_another, &of_none] {
        to.recv(1, LEN)?;
    }
    // The port receives it, and who has not asked for it gets nothing.
    sender.send(9)?;
    got(setup, &member, 1, 9, RULE)?;
    for to in [&of_another, &of_none] {
        setup.no_completion(to.recv_cq, RULE)?;
    }
    setup.detach_mcast(member.qp, sender.group, MLID)?;
    Ok(setup.detach_mcast(of_another.qp, other(setup, 4), MLID)?)
}

/// The largest number of queue pairs to create.
const MANY: u32 = 256;
