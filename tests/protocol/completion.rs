//! What is left of a queue when a fault rule makes one of its completions an error.

use crate::common::{End, checked, pair, settle};
use verbs_api::lab::{Fault, PacketFilter, PacketOpcode, When};
use verbs_api::profile::Profile;
use verbs_api::{
    AhAttr, Capabilities, QpState, QpType, RcParams, RecvWr, SendWr, Verbs, Wc, WcStatus, connect,
};
use verbs_sim::{Mode, SimConfig};

const QKEY: u32 = 0x1111;
/// Work requests in the queue on whose completion a rule fires.
const COUNT: usize = 4;

/// WC-25, QP-FLUSH-01, -03, QP-STATE-15, -17: work before the completion that a rule fired on is
/// done, and work after it is flushed, including work that was done in the same step: sends that
/// are done when they leave, and several that one acknowledgement covers. The QP is then in the
/// state after a real failure.
#[test]
fn behind_a_completion_that_a_rule_fires_all_is_flushed() {
    for profile in Profile::ALL {
        for mode in [Mode::Stepped, Mode::Inline] {
            for qp_type in [QpType::Rc, QpType::Uc, QpType::Ud] {
                for (node, nth) in (0..2).flat_map(|node| (0..COUNT).map(move |nth| (node, nth))) {
                    let case = format!("{profile}, {mode:?}, {qp_type}: node {node}, {nth}");
                    fire(*profile, mode, qp_type, (node, nth), &case);
                }
            }
        }
    }
}

fn fire(profile: Profile, mode: Mode, qp_type: QpType, (node, nth): (u32, usize), case: &str) {
    let verbs = checked(SimConfig::new().profile(profile).mode(mode));
    let [near, far] = ["sim0", "sim1"].map(|name| End::open(&verbs, name, 64, 4096));
    let has = verbs.capabilities(near.context).unwrap();
    if !has.contains(Capabilities::of_qp_type(qp_type)) {
        return;
    }
    let (qp, peer) = match qp_type {
        QpType::Ud => (near.qp(qp_type, 8), far.qp(qp_type, 8)),
        _ => pair((&near, &far), qp_type, 8, &RcParams::default()),
    };
    if qp_type == QpType::Ud {
        for qp in [qp, peer] {
            connect::ud_to_rts(&verbs, qp, 1, QKEY).unwrap();
        }
    }
    let ah = (qp_type == QpType::Ud).then(|| {
        let gid = verbs.query_gid(far.context, 1, 0).unwrap();
        let attr = AhAttr::global(1, 0, gid);
        verbs.create_ah(near.pd, &attr).unwrap()
    });
    let number = verbs.qp_num(peer).unwrap();
    let lab = verbs.lab().unwrap();
    let failing = [qp, peer][node as usize];
    let rule = Fault::complete(WcStatus::GeneralErr)
        .node(node)
        .qpn(verbs.qp_num(failing).unwrap())
        .nth(nth as u64 + 1);
    lab.inject(rule).unwrap();
    if node == 0 {
        // One acknowledgement for all.
        let acknowledgements = PacketFilter::EVERY.opcode(PacketOpcode::RcAcknowledge);
        let lost = When::First(COUNT as u64 - 1);
        let lost = Fault::drop(acknowledgements).at(lost);
        lab.inject(lost).unwrap();
    }
    let room = [far.mem.sge(1024, 256)];
    let recvs: Vec<_> = (0..COUNT as u64).map(|id| RecvWr::new(id, &room)).collect();
    verbs.post_recv(peer, &recvs).unwrap();
    near.recv(qp, 100, 2048, 256);
    let data = [near.mem.sge(0, 8)];
    let send = |id| match ah {
        Some(ah) => SendWr::send(id, &data).to(ah, number, QKEY),
        None => SendWr::send(id, &data),
    };
    let sends: Vec<_> = (0..COUNT as u64).map(send).collect();
    verbs.post_send(qp, &sends).unwrap();
    settle(&verbs);
    let end = [near, far][node as usize];
    let mut seen = end.drain();
    let own_receive = seen.iter().position(|wc| wc.wr_id == 100);
    let own_receive = own_receive.map(|at| seen.remove(at).status);
    let expected = |id: usize| match id {
        _ if id < nth => WcStatus::Success,
        _ if id == nth => WcStatus::GeneralErr,
        _ => WcStatus::WrFlushErr,
    };
    let expected: Vec<_> = (0..COUNT).map(|id| (id as u64, expected(id))).collect();
    let seen: Vec<_> = seen.iter().map(|wc: &Wc| (wc.wr_id, wc.status)).collect();
    assert_eq!(seen, expected, "{case}");
    let stays = node == 0 && qp_type != QpType::Rc && profile.behavior.sqe;
    let state = if stays { QpState::Sqe } else { QpState::Err };
    assert_eq!(end.state(failing), state, "{case}");
    let flushed = (node == 0 && !stays).then_some(WcStatus::WrFlushErr);
    assert_eq!(own_receive, flushed, "{case}");
}
