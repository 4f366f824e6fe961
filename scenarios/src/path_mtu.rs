//! Connected queue pairs with different path MTUs.
//!
//! A message that fits into one packet of either is unaffected. A longer one is cut in a way that
//! the other end does not expect.

use verbs_api::{Mtu, QpState, QpType, RcParams, WcStatus};

use crate::failure::{check, check_eq, in_case};
use crate::kind::Kind;
use crate::{End, OfRule, Pair, PairOptions, Result, Scenario, Setup};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    send_cut_for_another_is_an_invalid_request,
    send_of_xrc_cut_for_another_is_an_invalid_request,
    write_cut_for_another_is_an_invalid_request,
    send_of_uc_cut_for_another_is_dropped,
    write_of_uc_cut_for_another_is_dropped,
    read_answered_in_smaller_packets_fails,
    read_answered_in_larger_packets_fails,
];

type Mtus = [Mtu; 2];

/// The path MTUs of A and B.
const MTUS: [Mtus; 3] = [
    [Mtu::Mtu1024, Mtu::Mtu256],
    [Mtu::Mtu256, Mtu::Mtu1024],
    [Mtu::Mtu512, Mtu::Mtu1024],
];
/// Where B receives, and what is there before.
const RECEIVE: u64 = 0;
const ROOM: u32 = 8192;
const BEFORE: u8 = 0xc3;
const DATA: u8 = 0x5a;

/// A pair whose ends have these path MTUs.
fn pair<'b>(setup: &'b Setup<'_>, qp_type: QpType, mtus: Mtus) -> Result<Pair<'b>> {
    let options = PairOptions::of(qp_type);
    let (a, b) = (setup.end(setup.ctx_a(), options)?, setup.peer_end(options)?);
    let [of_a, of_b] = mtus.map(|path_mtu| RcParams {
        path_mtu,
        timeout: 8,
        retry_cnt: 1,
        ..RcParams::default()
    });
    setup.connect_each(a, b, of_a, of_b)
}

/// Lengths of messages, and whether they fit into one packet of either end.
fn lengths(mtus: Mtus) -> impl Iterator<Item = (u32, bool)> {
    let bytes = mtus.map(|mtu| mtu.bytes().unwrap_or(0));
    let (least, most) = (bytes[0].min(bytes[1]), bytes[0].max(bytes[1]));
    let all = [0, 1, least, least + 1, most, most + 1, 3 * most];
    all.into_iter().map(move |length| (length, length <= least))
}

/// Work of each kind and of each length on a pair of its own.
fn each(
    setup: &Setup<'_>,
    qp_type: QpType,
    kinds: &[Kind],
    run: impl Fn(&Setup<'_>, &Pair<'_>, Kind, u32, bool) -> Result,
) -> Result {
    for mtus in MTUS {
        for kind in kinds {
            for (length, fits) in lengths(mtus) {
                let pair = pair(setup, qp_type, mtus)?;
                let [of_a, of_b] = mtus.map(|mtu| mtu.bytes().unwrap_or(0));
                let case = format!("{kind:?} of {length} bytes, {of_a} to {of_b}");
                in_case(&case, run(setup, &pair, *kind, length, fits))?;
            }
        }
    }
    Ok(())
}

/// Posts work with a pattern of its own, and a receive at B.
fn post(Pair { a, b }: &Pair<'_>, kind: Kind, length: u32) -> Result {
    for place in [RECEIVE, b.landing()] {
        b.fill_at(place, BEFORE, ROOM)?;
    }
    b.recv_at(1, RECEIVE, ROOM)?;
    a.fill(DATA, length)?;
    a.post(kind.work(a, 2, &[a.sge(0, length)]))
}

/// The work has arrived, or B's memory is as it was.
fn expect(b: &End<'_>, kind: Kind, length: u32, tag: u8, rule: &'static str) -> Result {
    let place = match kind {
        Kind::Send | Kind::SendImm => RECEIVE,
        _ => b.landing(),
    };
    b.expect_data_at(place, tag, length, rule)
}

scenario!(send_cut_for_another_is_an_invalid_request:
    "RQ-14", "WC-27", "QP-FLUSH-09"; needs MODIFY_CONNECT);
fn send_cut_for_another_is_an_invalid_request(setup: &Setup<'_>) -> Result {
    each(setup, QpType::Rc, &[Kind::Send], is_invalid)
}

scenario!(send_of_xrc_cut_for_another_is_an_invalid_request:
    "RQ-14", "WC-27", "QP-FLUSH-09"; needs MODIFY_CONNECT, XRC);
fn send_of_xrc_cut_for_another_is_an_invalid_request(setup: &Setup<'_>) -> Result {
    each(setup, QpType::XrcSend, &[Kind::Send], is_invalid)
}

scenario!(write_cut_for_another_is_an_invalid_request:
    "RQ-14", "WC-27", "QP-FLUSH-09"; needs MODIFY_CONNECT, SEND_WITH_IMM, WRITE_WITH_IMM);
fn write_cut_for_another_is_an_invalid_request(setup: &Setup<'_>) -> Result {
    let kinds = [Kind::Write, Kind::WriteImm];
    each(setup, QpType::Rc, &kinds, is_invalid)
}

fn is_invalid(setup: &Setup<'_>, pair: &Pair<'_>, kind: Kind, length: u32, fits: bool) -> Result {
    const RULE: &str = "RQ-14";
    let Pair { a, b } = pair;
    post(pair, kind, length)?;
    if fits {
        setup.successes(a.send_cq, 1).rule(RULE)?;
        if kind.takes_a_receive() {
            setup.successes(b.recv_cq, 1).rule(RULE)?;
        }
        return expect(b, kind, length, DATA, RULE);
    }
    setup.one_with(a.send_cq, WcStatus::RemInvReqErr, [RULE, "WC-27"])?;
    check_eq!([RULE, "QP-FLUSH-09"], setup.state(a.qp)?, QpState::Err);
    // The responder has answered, and may have yet to go there.
    let in_error = || Ok((setup.state(b.qp)? == QpState::Err).then_some(()));
    setup
        .until("the responder is in ERR", in_error)
        .rule([RULE, "QP-FLUSH-09"])?;
    if b.qp_type == QpType::XrcRecv {
        // Its receive is the SRQ's still.
        return setup.no_completion(b.recv_cq, RULE);
    }
    let receive = setup.one(b.recv_cq)?.status;
    check!(
        RULE,
        receive != WcStatus::Success,
        "a failed receive",
        "{receive}"
    );
    expect(b, kind, length, BEFORE, RULE)
}

scenario!(send_of_uc_cut_for_another_is_dropped: "UC-10"; needs UC, MODIFY_CONNECT);
fn send_of_uc_cut_for_another_is_dropped(setup: &Setup<'_>) -> Result {
    each(setup, QpType::Uc, &[Kind::Send], is_dropped)
}

scenario!(write_of_uc_cut_for_another_is_dropped:
    "UC-10"; needs UC, MODIFY_CONNECT, SEND_WITH_IMM, WRITE_WITH_IMM);
fn write_of_uc_cut_for_another_is_dropped(setup: &Setup<'_>) -> Result {
    let kinds = [Kind::Write, Kind::WriteImm];
    each(setup, QpType::Uc, &kinds, is_dropped)
}

/// The message that comes next, and fits, takes the receive.
fn is_dropped(setup: &Setup<'_>, pair: &Pair<'_>, kind: Kind, length: u32, fits: bool) -> Result {
    const RULE: &str = "UC-10";
    let Pair { a, b } = pair;
    post(pair, kind, length)?;
    setup.successes(a.send_cq, 1).rule(RULE)?;
    if !(fits && kind.takes_a_receive()) {
        a.send(3, 8)?;
        setup.successes(a.send_cq, 1).rule(RULE)?;
    }
    let arrived = setup.one_with(b.recv_cq, WcStatus::Success, RULE)?;
    let expected = if fits && kind.takes_a_receive() {
        length
    } else {
        8
    };
    check_eq!(RULE, (arrived.wr_id, arrived.byte_len), (1, expected));
    match (fits, kind) {
        (true, _) => expect(b, kind, length, DATA, RULE),
        (false, Kind::Send | Kind::SendImm) => Ok(()),
        (false, _) => expect(b, kind, length, BEFORE, RULE),
    }
}

scenario!(read_answered_in_smaller_packets_fails: "RDMA-28"; needs MODIFY_CONNECT, RDMA_READ);
fn read_answered_in_smaller_packets_fails(setup: &Setup<'_>) -> Result {
    read_fails(setup, [Mtu::Mtu1024, Mtu::Mtu256])
}

scenario!(read_answered_in_larger_packets_fails: "RDMA-28"; needs MODIFY_CONNECT, RDMA_READ);
fn read_answered_in_larger_packets_fails(setup: &Setup<'_>) -> Result {
    read_fails(setup, [Mtu::Mtu256, Mtu::Mtu1024])
}

fn read_fails(setup: &Setup<'_>, mtus: Mtus) -> Result {
    const RULE: &str = "RDMA-28";
    for (length, fits) in lengths(mtus) {
        let Pair { a, b } = pair(setup, QpType::Rc, mtus)?;
        b.fill(DATA, length)?;
        a.read(1, length)?;
        let case = format!("{length} bytes");
        let status = setup.one(a.send_cq)?.status;
        if fits {
            check_eq!(RULE, status, WcStatus::Success, case);
            in_case(&case, a.expect_data(DATA, length, RULE))?;
            continue;
        }
        let fails = matches!(status, WcStatus::LocLenErr | WcStatus::BadRespErr);
        check!(
            RULE,
            fails,
            "LOC_LEN_ERR or BAD_RESP_ERR",
            "{status}, of {case}"
        );
        let states = (setup.state(a.qp)?, setup.state(b.qp)?);
        check_eq!(RULE, states, (QpState::Err, QpState::Rts), case);
    }
    Ok(())
}
