//! A completion that a fault rule turns into an error has the effects of a real one: its queue
//! stops, and later work is flushed.

use verbs_api::lab::Fault;
use verbs_api::{Cq, QpState, QpType, SendWr, WcStatus};

use crate::failure::{check_eq, in_case};
use crate::{End, GRH_LEN, OfRule, Pair, PairOptions, Result, Setup};

const FLUSHED: &str = "QP-FLUSH-01";
const STATUS: WcStatus = WcStatus::GeneralErr;

scenario!(failed_completion_of_a_send_stops_the_queue_pair: "QP-FLUSH-01", "QP-STATE-17"; needs LAB);
fn failed_completion_of_a_send_stops_the_queue_pair(setup: &Setup<'_>) -> Result {
    let Pair { a, .. } = failing(setup, QpType::Rc, true)?;
    check_eq!("QP-STATE-17", setup.state(a.qp)?, QpState::Err);
    end_with(setup, a.recv_cq, &[WcStatus::WrFlushErr; 4])
}

scenario!(failed_completion_of_an_unreliable_send_stops_sends:
    "QP-FLUSH-01", "QP-STATE-15"; needs LAB, UC, UD);
/// Receives go on where there is a state for that.
fn failed_completion_of_an_unreliable_send_stops_sends(setup: &Setup<'_>) -> Result {
    for qp_type in [QpType::Uc, QpType::Ud] {
        let Pair { a, .. } = failing(setup, qp_type, true)?;
        let (state, receives) = match setup.behavior()?.sqe {
            Some(true) => (QpState::Sqe, &[][..]),
            _ => (QpState::Err, &[WcStatus::WrFlushErr; 4][..]),
        };
        check_eq!("QP-STATE-15", setup.state(a.qp)?, state);
        in_case(&format!("{qp_type}"), end_with(setup, a.recv_cq, receives))?;
    }
    Ok(())
}

scenario!(failed_completion_of_a_receive_stops_the_queue_pair: "QP-FLUSH-01"; needs LAB);
fn failed_completion_of_a_receive_stops_the_queue_pair(setup: &Setup<'_>) -> Result {
    let Pair { b, .. } = failing(setup, QpType::Rc, false)?;
    check_eq!(FLUSHED, setup.state(b.qp)?, QpState::Err);
    Ok(())
}

scenario!(failed_completion_of_an_unreliable_receive_stops_the_queue_pair:
    "QP-FLUSH-01"; needs LAB, UC, UD);
fn failed_completion_of_an_unreliable_receive_stops_the_queue_pair(setup: &Setup<'_>) -> Result {
    for qp_type in [QpType::Uc, QpType::Ud] {
        let Pair { b, .. } = failing(setup, qp_type, false)?;
        check_eq!(FLUSHED, setup.state(b.qp)?, QpState::Err);
    }
    Ok(())
}

/// Four messages go from A to B, where there are as many receives, as at A: the second completion
/// at one end is an error.
fn failing<'b>(setup: &'b Setup<'_>, qp_type: QpType, of_send: bool) -> Result<Pair<'b>> {
    let pair = setup.pair(PairOptions::of(qp_type))?;
    let Pair { a, b } = pair;
    let (end, cq): (End<'_>, _) = if of_send {
        (a, a.send_cq)
    } else {
        (b, b.recv_cq)
    };
    let lab = setup.lab();
    let second = Fault::complete(STATUS).node(lab.node(end.context)?);
    lab.inject(second.qpn(end.qp_num).nth(2))?;
    for wr_id in 0..4 {
        a.recv(wr_id, 8 + GRH_LEN)?;
        b.recv(wr_id, 8 + GRH_LEN)?;
    }
    let data = [a.sge(0, 8)];
    let list: Vec<_> = (0..4)
        .map(|wr_id| a.to_peer(SendWr::send(wr_id, &data)))
        .collect();
    setup.post_send(a.qp, &list)?;
    let flushed = WcStatus::WrFlushErr;
    let seen = setup.poll_all(cq).rule(FLUSHED)?;
    let seen: Vec<_> = seen.iter().map(|wc| (wc.wr_id, wc.status)).collect();
    let expected: Vec<_> = (0..)
        .zip([WcStatus::Success, STATUS, flushed, flushed])
        .collect();
    check_eq!(FLUSHED, seen, expected, "what completes");
    Ok(pair)
}

fn end_with(setup: &Setup<'_>, cq: Cq, expected: &[WcStatus]) -> Result {
    let seen: Vec<_> = setup.poll_all(cq)?.iter().map(|wc| wc.status).collect();
    check_eq!(FLUSHED, seen, expected, "the receives of the same end");
    Ok(())
}
