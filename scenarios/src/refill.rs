//! Queues that are filled again after failures: each failure and each flush gives its place back,
//! however often.

use verbs_api::behavior::SqRelease;
use verbs_api::{ErrorKind, QpAttrMask, QpCap, QpModify, QpState, QpType, RecvWr, Sge, WcStatus};

use crate::failure::{check, check_eq, in_case, value_in_case};
use crate::kind::Kind;
use crate::{End, Failure, OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err, wr_ids};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    send_queue_keeps_its_length_through_failures,
    send_queue_keeps_its_length_through_failures_on_uc,
    send_queue_keeps_its_length_through_failures_on_ud,
    send_queue_keeps_its_length_through_failures_on_xrc,
    receive_queue_keeps_its_length_through_failures,
    receive_queue_keeps_its_length_through_failures_on_uc,
    receive_queue_keeps_its_length_through_failures_on_ud,
    srq_keeps_its_length_through_failures,
    srq_keeps_its_length_through_failures_on_ud,
    srq_keeps_its_length_through_failures_on_xrc,
];

const LEN: u32 = 8;
/// Places that are asked for in each queue.
const PLACES: u32 = 4;
/// More than any queue of that many has: drivers round up, to 64 for example.
const TOO_MANY: u32 = 1024;

fn options(setup: &Setup<'_>, qp_type: QpType) -> Result<PairOptions> {
    let most = setup.query_device(setup.ctx_a())?.max_cqe;
    let cqe = TOO_MANY.min(most) as i32;
    Ok(PairOptions {
        send_cqe: cqe,
        recv_cqe: cqe,
        cap: QpCap {
            max_send_wr: PLACES,
            max_recv_wr: PLACES,
            ..QpCap::default()
        },
        ..PairOptions::of(qp_type)
    })
}

/// What is wrong with the memory of a work request.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    Key,
    Range,
    /// Nothing: the message is longer.
    Length,
}

impl Wrong {
    fn entry(self, end: &End<'_>) -> Sge {
        let good = end.sge(end.landing(), LEN + end.grh());
        match self {
            Self::Key => Sge {
                lkey: good.lkey ^ 0xa5,
                ..good
            },
            Self::Range => Sge {
                addr: end.mem.addr + end.mem.length,
                ..good
            },
            Self::Length => Sge {
                length: LEN - 1,
                ..good
            },
        }
    }
}

/// Brings both ends back to RTS by RESET, which empties their queues, and takes what their CQs
/// have.
fn restart<'b>(setup: &'b Setup<'_>, pair: Pair<'b>, options: PairOptions) -> Result<Pair<'b>> {
    for end in [pair.a, pair.b] {
        setup.to_reset(end.qp)?;
        setup.drain(end.send_cq)?;
        setup.drain(end.recv_cq)?;
    }
    setup.connect(pair.a, pair.b, options)
}

scenario!(send_queue_keeps_its_length_through_failures:
    "SQ-04", "SQ-05"; needs MODIFY_CONNECT, RDMA_READ);
fn send_queue_keeps_its_length_through_failures(setup: &Setup<'_>) -> Result {
    let kinds = [Kind::Send, Kind::Write, Kind::Read];
    sends_fail(setup, QpType::Rc, &kinds)
}

scenario!(send_queue_keeps_its_length_through_failures_on_uc:
    "SQ-04", "SQ-05"; needs UC, MODIFY_CONNECT);
fn send_queue_keeps_its_length_through_failures_on_uc(setup: &Setup<'_>) -> Result {
    sends_fail(setup, QpType::Uc, &[Kind::Send, Kind::Write])
}

scenario!(send_queue_keeps_its_length_through_failures_on_ud:
    "SQ-04", "SQ-05"; needs UD, MODIFY_CONNECT);
fn send_queue_keeps_its_length_through_failures_on_ud(setup: &Setup<'_>) -> Result {
    sends_fail(setup, QpType::Ud, &[Kind::Send])
}

scenario!(send_queue_keeps_its_length_through_failures_on_xrc:
    "SQ-04", "SQ-05"; needs XRC, MODIFY_CONNECT);
fn send_queue_keeps_its_length_through_failures_on_xrc(setup: &Setup<'_>) -> Result {
    sends_fail(setup, QpType::XrcSend, &[Kind::Send, Kind::Write])
}

/// Twice as many sends fail as the queue has places, each with one behind it, which is flushed. The
/// queue pair comes back from SQE as it is, or by RESET.
fn sends_fail(setup: &Setup<'_>, qp_type: QpType, kinds: &[Kind]) -> Result {
    let options = options(setup, qp_type)?;
    // Only unreliable ones come to SQE.
    let ways: &[bool] = match qp_type {
        QpType::Uc | QpType::Ud => &[false, true],
        _ => &[true],
    };
    for by_reset in ways {
        let mut pair = setup.pair(options)?;
        let most = setup
            .query_qp(pair.a.qp, QpAttrMask::CAP)?
            .init
            .cap
            .max_send_wr;
        for n in 0..2 * most as usize {
            let (a, kind) = (pair.a, kinds[n % kinds.len()]);
            let wrong = [Wrong::Key, Wrong::Range][n / kinds.len() % 2];
            let (bad, good) = ([wrong.entry(&a)], [a.sge(0, LEN)]);
            let list =
                [(1, &bad), (2, &good)].map(|(wr_id, data)| a.to_peer(kind.work(&a, wr_id, data)));
            let case = format!("failure {n}: {kind:?}, wrong {wrong:?}");
            value_in_case(&case, setup.post_send(a.qp, &list).rule("SQ-05"))?;
            let done = setup.poll(a.send_cq, 2)?;
            check!(
                "SQ-05",
                done[0].status != WcStatus::Success,
                "a failure",
                "{}",
                done[0]
            );
            if !by_reset && setup.state(a.qp)? == QpState::Sqe {
                setup.modify(a.qp, QpModify::to(QpState::Rts))?;
            } else {
                pair = restart(setup, pair, options)?;
            }
        }
        let case = format!("after {} failures, by RESET: {by_reset}", 2 * most);
        in_case(&case, sends_fit(setup, &pair.a, u64::from(most)))?;
    }
    Ok(())
}

/// Exactly as many sends fit as the queue has places.
fn sends_fit(setup: &Setup<'_>, a: &End<'_>, most: u64) -> Result {
    let data = [a.sge(0, LEN)];
    let kind = match a.qp_type {
        QpType::Ud => Kind::Send,
        _ => Kind::Write,
    };
    let work = |wr_id| a.to_peer(kind.work(a, wr_id, &data));
    let list: Vec<_> = (0..most).map(work).collect();
    setup.post_send(a.qp, &list).rule("SQ-04")?;
    if setup.behavior()?.sq_release == Some(SqRelease::Poll) {
        let more = setup.post_send(a.qp, &[work(most)]);
        expect_err(more, ErrorKind::NoMemory, "SQ-05")?;
    }
    let done = setup.successes(a.send_cq, most as usize).rule("SQ-04")?;
    check_eq!("SQ-04", wr_ids(&done), (0..most).collect::<Vec<_>>());
    Ok(())
}

scenario!(receive_queue_keeps_its_length_through_failures: "RQ-02"; needs MODIFY_CONNECT);
fn receive_queue_keeps_its_length_through_failures(setup: &Setup<'_>) -> Result {
    let wrong = [Wrong::Key, Wrong::Range, Wrong::Length];
    receives_fail(setup, options(setup, QpType::Rc)?, &wrong, "RQ-02")
}

scenario!(receive_queue_keeps_its_length_through_failures_on_uc: "RQ-02"; needs UC, MODIFY_CONNECT);
fn receive_queue_keeps_its_length_through_failures_on_uc(setup: &Setup<'_>) -> Result {
    receives_fail(
        setup,
        options(setup, QpType::Uc)?,
        &[Wrong::Key, Wrong::Range],
        "RQ-02",
    )
}

scenario!(receive_queue_keeps_its_length_through_failures_on_ud: "RQ-02"; needs UD, MODIFY_CONNECT);
fn receive_queue_keeps_its_length_through_failures_on_ud(setup: &Setup<'_>) -> Result {
    receives_fail(
        setup,
        options(setup, QpType::Ud)?,
        &[Wrong::Key, Wrong::Range],
        "RQ-02",
    )
}

scenario!(srq_keeps_its_length_through_failures: "SRQ-04"; needs SRQ, MODIFY_CONNECT);
fn srq_keeps_its_length_through_failures(setup: &Setup<'_>) -> Result {
    let wrong = [Wrong::Key, Wrong::Range, Wrong::Length];
    receives_fail(setup, of_srq(setup, QpType::Rc)?, &wrong, "SRQ-04")
}

scenario!(srq_keeps_its_length_through_failures_on_ud: "SRQ-04"; needs UD, SRQ, MODIFY_CONNECT);
fn srq_keeps_its_length_through_failures_on_ud(setup: &Setup<'_>) -> Result {
    receives_fail(
        setup,
        of_srq(setup, QpType::Ud)?,
        &[Wrong::Key, Wrong::Range],
        "SRQ-04",
    )
}

scenario!(srq_keeps_its_length_through_failures_on_xrc: "SRQ-04"; needs XRC, MODIFY_CONNECT);
fn srq_keeps_its_length_through_failures_on_xrc(setup: &Setup<'_>) -> Result {
    let wrong = [Wrong::Key, Wrong::Range, Wrong::Length];
    receives_fail(setup, options(setup, QpType::XrcSend)?, &wrong, "SRQ-04")
}

fn of_srq(setup: &Setup<'_>, qp_type: QpType) -> Result<PairOptions> {
    Ok(PairOptions {
        srq: true,
        ..options(setup, qp_type)?
    })
}

/// Twice as many receives fail as the queue has places, each with one behind it: the queue pair's
/// own is flushed, that of an SRQ stays and takes the next message.
fn receives_fail(
    setup: &Setup<'_>,
    options: PairOptions,
    wrongs: &[Wrong],
    rule: &'static str,
) -> Result {
    let most = fill(setup, &setup.pair(options)?.b, options, rule)?;
    let mut pair = setup.pair(options)?;
    for n in 0..2 * most as usize {
        let (wrong, Pair { a, b }) = (wrongs[n % wrongs.len()], pair);
        let case = format!("failure {n}: wrong {wrong:?}");
        let bad = [wrong.entry(&b)];
        value_in_case(&case, b.post_recv(RecvWr::new(1, &bad)).rule(rule))?;
        if !has_srq(&b, options) {
            b.recv(2, LEN).rule(rule)?;
        }
        a.send(3, LEN)?;
        let ends = match options.qp_type {
            // A device may drop the message, and the receive waits until RESET.
            QpType::Uc => setup.poll_any(b.recv_cq)?,
            _ => vec![setup.one(b.recv_cq)?],
        };
        for end in ends {
            let failed = end.status != WcStatus::Success;
            check!(rule, failed, "a failure", "{end}");
        }
        setup.one(a.send_cq)?;
        pair = restart(setup, pair, options)?;
    }
    let case = format!("after {} failures", 2 * most);
    let fit = value_in_case(&case, fill(setup, &pair.b, options, rule))?;
    check_eq!(rule, fit, most, format!("the receives that fit {case}"));
    in_case(&case, are_taken(setup, &pair, most, rule))
}

fn has_srq(b: &End<'_>, options: PairOptions) -> bool {
    options.srq || b.qp_type == QpType::XrcRecv
}

/// Posts receives until the queue is full: how many it has taken.
fn fill(setup: &Setup<'_>, b: &End<'_>, options: PairOptions, rule: &'static str) -> Result<u64> {
    let room = [b.sge(b.landing(), LEN + b.grh())];
    for wr_id in 0..TOO_MANY.into() {
        let list = [RecvWr::new(wr_id, &room)];
        let posted = if has_srq(b, options) {
            setup.post_srq_recv(b.srq(), &list)
        } else {
            setup.post_recv(b.qp, &list)
        };
        if posted.is_err() {
            expect_err(posted, ErrorKind::NoMemory, rule)?;
            return Ok(wr_id);
        }
    }
    let failure = Failure::assertion("a queue that is full", format!("{TOO_MANY} receives in it"));
    Err(failure).rule(rule)
}

/// Messages take all receives, of which there are as many, in their order.
fn are_taken(setup: &Setup<'_>, Pair { a, b }: &Pair<'_>, most: u64, rule: &'static str) -> Result {
    for wr_id in 0..most {
        a.send(wr_id, LEN)?;
        setup.successes(a.send_cq, 1).rule(rule)?;
    }
    let taken = setup.successes(b.recv_cq, most as usize).rule(rule)?;
    check_eq!(rule, wr_ids(&taken), (0..most).collect::<Vec<_>>());
    Ok(())
}
