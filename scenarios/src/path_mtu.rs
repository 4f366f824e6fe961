//! Connected queue pairs with different path MTUs.
//!
//! A message that fits into one packet of either is unaffected. A longer one is cut in a way that
//! the other end does not expect.

use verbs_api::{Mtu, QpState, QpType, RcParams, WcStatus};

use crate::failure::{check, check_eq, in_case};
use crate::kind::Kind;
use crate::{Bench, End, OfRule, Pair, PairOptions, Result, Scenario};

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

/// Those of A and B.
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
fn pair<'b>(bench: &'b Bench<'_>, qp_type: QpType, mtus: Mtus) -> Result<Pair<'b>> {
    let options = PairOptions::of(qp_type);
    let (a, b) = (bench.end(bench.ctx_a(), options)?, bench.peer_end(options)?);
    let [of_a, of_b] = mtus.map(|path_mtu| RcParams {
        path_mtu,
        timeout: 8,
        retry_cnt: 1,
        ..RcParams::default()
    });
    bench.connect_each(a, b, of_a, of_b)
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
    bench: &Bench<'_>,
    qp_type: QpType,
    kinds: &[Kind],
    run: impl Fn(&Pair<'_>, Kind, (u32, bool)) -> Result,
) -> Result {
    for mtus in MTUS {
        for kind in kinds {
            for (length, fits) in lengths(mtus) {
                let pair = pair(bench, qp_type, mtus)?;
                let [of_a, of_b] = mtus.map(|mtu| mtu.bytes().unwrap_or(0));
                let case = format!("{kind:?} of {length} bytes, {of_a} to {of_b}");
                in_case(&case, run(&pair, *kind, (length, fits)))?;
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
fn send_cut_for_another_is_an_invalid_request(bench: &Bench<'_>) -> Result {
    each(bench, QpType::Rc, &[Kind::Send], |pair, kind, length| {
        is_invalid(bench, pair, kind, length)
    })
}

scenario!(send_of_xrc_cut_for_another_is_an_invalid_request:
    "RQ-14", "WC-27", "QP-FLUSH-09"; needs MODIFY_CONNECT, XRC);
fn send_of_xrc_cut_for_another_is_an_invalid_request(bench: &Bench<'_>) -> Result {
    each(
        bench,
        QpType::XrcSend,
        &[Kind::Send],
        |pair, kind, length| is_invalid(bench, pair, kind, length),
    )
}

scenario!(write_cut_for_another_is_an_invalid_request:
    "RQ-14", "WC-27", "QP-FLUSH-09"; needs MODIFY_CONNECT, SEND_WITH_IMM, WRITE_WITH_IMM);
fn write_cut_for_another_is_an_invalid_request(bench: &Bench<'_>) -> Result {
    let kinds = [Kind::Write, Kind::WriteImm];
    each(bench, QpType::Rc, &kinds, |pair, kind, length| {
        is_invalid(bench, pair, kind, length)
    })
}

fn is_invalid(
    bench: &Bench<'_>,
    pair: &Pair<'_>,
    kind: Kind,
    (length, fits): (u32, bool),
) -> Result {
    const RULE: &str = "RQ-14";
    let Pair { a, b } = pair;
    post(pair, kind, length)?;
    if fits {
        bench.successes(a.send_cq, 1).rule(RULE)?;
        if kind.takes_a_receive() {
            bench.successes(b.recv_cq, 1).rule(RULE)?;
        }
        return expect(b, kind, length, DATA, RULE);
    }
    bench.one_with(a.send_cq, WcStatus::RemInvReqErr, [RULE, "WC-27"])?;
    check_eq!([RULE, "QP-FLUSH-09"], bench.state(a.qp)?, QpState::Err);
    // The responder has answered, and may have yet to go there.
    let in_error = || Ok((bench.state(b.qp)? == QpState::Err).then_some(()));
    bench
        .until("the responder is in ERR", in_error)
        .rule([RULE, "QP-FLUSH-09"])?;
    if b.qp_type == QpType::XrcRecv {
        // Its receive is the SRQ's still.
        return bench.no_completion(b.recv_cq, RULE);
    }
    let receive = bench.one(b.recv_cq)?.status;
    check!(
        RULE,
        receive != WcStatus::Success,
        "a failed receive",
        "{receive}"
    );
    expect(b, kind, length, BEFORE, RULE)
}

scenario!(send_of_uc_cut_for_another_is_dropped: "UC-10"; needs UC, MODIFY_CONNECT);
fn send_of_uc_cut_for_another_is_dropped(bench: &Bench<'_>) -> Result {
    each(bench, QpType::Uc, &[Kind::Send], |pair, kind, length| {
        is_dropped(bench, pair, kind, length)
    })
}

scenario!(write_of_uc_cut_for_another_is_dropped:
    "UC-10"; needs UC, MODIFY_CONNECT, SEND_WITH_IMM, WRITE_WITH_IMM);
fn write_of_uc_cut_for_another_is_dropped(bench: &Bench<'_>) -> Result {
    let kinds = [Kind::Write, Kind::WriteImm];
    each(bench, QpType::Uc, &kinds, |pair, kind, length| {
        is_dropped(bench, pair, kind, length)
    })
}

/// The message that comes next, and fits, takes the receive.
fn is_dropped(
    bench: &Bench<'_>,
    pair: &Pair<'_>,
    kind: Kind,
    (length, fits): (u32, bool),
) -> Result {
    const RULE: &str = "UC-10";
    let Pair { a, b } = pair;
    post(pair, kind, length)?;
    bench.successes(a.send_cq, 1).rule(RULE)?;
    if !(fits && kind.takes_a_receive()) {
        a.send(3, 8)?;
        bench.successes(a.send_cq, 1).rule(RULE)?;
    }
    let arrived = bench.one_with(b.recv_cq, WcStatus::Success, RULE)?;
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
fn read_answered_in_smaller_packets_fails(bench: &Bench<'_>) -> Result {
    read_fails(bench, [Mtu::Mtu1024, Mtu::Mtu256])
}

scenario!(read_answered_in_larger_packets_fails: "RDMA-28"; needs MODIFY_CONNECT, RDMA_READ);
fn read_answered_in_larger_packets_fails(bench: &Bench<'_>) -> Result {
    read_fails(bench, [Mtu::Mtu256, Mtu::Mtu1024])
}

fn read_fails(bench: &Bench<'_>, mtus: Mtus) -> Result {
    const RULE: &str = "RDMA-28";
    for (length, fits) in lengths(mtus) {
        let Pair { a, b } = pair(bench, QpType::Rc, mtus)?;
        b.fill(DATA, length)?;
        a.read(1, length)?;
        let case = format!("{length} bytes");
        let status = bench.one(a.send_cq)?.status;
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
        let states = (bench.state(a.qp)?, bench.state(b.qp)?);
        check_eq!(RULE, states, (QpState::Err, QpState::Rts), case);
    }
    Ok(())
}
