//! The error matrix of a reliable connection: what each cause does to both sides. It is for
//! transports with acknowledged packets; iWARP, which ends the connection on any error, has
//! another.

use verbs_api::behavior::QpAccessStatus;
use verbs_api::{
    Access, AsyncEvent, AsyncEventType, Element, MrAttr, MwType, QpState, RcParams, RecvWr, Remote,
    SendOp, SendWr, Sge, WcStatus, inc_rkey,
};

use crate::failure::{check, check_eq, in_case};
use crate::mw::part;
use crate::{Claim, End, OfRule, Pair, PairOptions, Result, Scenario, Setup, wr_ids};

const LEN: u32 = 8;

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    local_memory_of_a_send_or_write,
    local_memory_of_a_read,
    memory_that_the_peer_denies_to_a_write,
    memory_that_the_peer_denies_to_a_read,
    memory_that_the_peer_denies_to_a_write_with_immediate,
    operation_that_the_queue_pair_of_the_peer_denies,
    local_memory_of_an_atomic,
    atomic_that_is_not_aligned,
    bind_of_a_window,
    receive_that_is_too_small,
    memory_of_a_receive,
    no_receive_at_all,
    no_answer_at_all,
];

/// What a row of the matrix says.
struct Row {
    requester: WcStatus,
    /// What may become of the oldest receive, if there is one: nothing, if this is empty.
    receive: &'static [WcStatus],
    responder: QpState,
    event: Reported,
    rule: &'static str,
    /// What says what the responder tells.
    reported: Claim,
    /// What says in which states both are then.
    states: Claim,
}

/// The event that the responder has.
#[derive(Clone, Copy)]
enum Reported {
    Nothing,
    Of(AsyncEventType),
    /// That or none: the device declares neither.
    Perhaps(AsyncEventType),
}

impl Reported {
    fn as_declared(declared: Option<bool>, event_type: AsyncEventType) -> Self {
        match declared {
            Some(true) => Self::Of(event_type),
            Some(false) => Self::Nothing,
            None => Self::Perhaps(event_type),
        }
    }
}

impl Row {
    /// The requester fails alone.
    const fn alone(requester: WcStatus, rule: &'static str) -> Self {
        Self {
            requester,
            receive: &[],
            responder: QpState::Rts,
            event: Reported::Nothing,
            rule,
            reported: Claim::one(rule),
            states: Claim::one(rule),
        }
    }

    /// Both fail; receives are flushed.
    const fn both(requester: WcStatus, rule: &'static str) -> Self {
        Self {
            requester,
            receive: &[WcStatus::WrFlushErr],
            responder: QpState::Err,
            states: Claim::two(rule, "QP-FLUSH-09"),
            ..Self::alone(requester, rule)
        }
    }

    fn receive(self, receive: &'static [WcStatus]) -> Self {
        Self { receive, ..self }
    }

    /// The responder has `QP_ACCESS_ERR`, if the device reports that.
    fn access(self, setup: &Setup<'_>) -> Result<Self> {
        let declared = setup.behavior()?.qp_access_event;
        let event = Reported::as_declared(declared, AsyncEventType::QpAccessErr);
        Ok(Self { event, ..self })
    }

    /// A posts this, and two sends behind it; B has receives, of work requests 10 and 11, or none.
    /// Then all is as the row says.
    fn follows(
        &self,
        setup: &Setup<'_>,
        Pair { a, b }: Pair<'_>,
        cause: SendWr<'_>,
        receives: usize,
    ) -> Result {
        let data = [a.sge(0, LEN)];
        let behind = [SendWr::send(2, &data), SendWr::send(3, &data).unsignaled()];
        setup.post_send(a.qp, &[cause, behind[0], behind[1]])?;
        let failed = setup.one_with(a.send_cq, self.requester, self.rule)?;
        check_eq!(self.rule, failed.wr_id, cause.wr_id);
        let flushed = setup.poll(a.send_cq, 2).rule(self.rule)?;
        check_eq!(self.rule, wr_ids(&flushed), [2, 3], "what is behind");
        let statuses: Vec<_> = flushed.iter().map(|wc| wc.status).collect();
        check_eq!(self.rule, statuses, [WcStatus::WrFlushErr; 2]);
        self.reaches(setup, &a, QpState::Err)?;
        if self.responder == QpState::Err {
            let seen = setup.poll(b.recv_cq, receives).rule(self.rule)?;
            for (wc, wr_id) in seen.iter().zip(10..) {
                let oldest = wr_id == 10 && self.receive.contains(&wc.status);
                let as_it_should = oldest || wr_id > 10 && wc.status == WcStatus::WrFlushErr;
                check!(
                    self.rule,
                    wc.wr_id == wr_id && as_it_should,
                    format!("{:?}, then WR_FLUSH_ERR", self.receive),
                    "{wc}"
                );
            }
        }
        let of = |event_type| AsyncEvent::new(event_type, Element::Qp(b.qp));
        match self.event {
            Reported::Of(event_type) => {
                let event = setup.async_event(b.context).rule(self.reported)?;
                check_eq!(self.reported, event, of(event_type));
            }
            Reported::Perhaps(event_type) => {
                let events = setup.async_events(b.context)?;
                let others = events.iter().filter(|event| **event != of(event_type));
                check_eq!(self.reported, others.count(), 0, "other events");
            }
            Reported::Nothing => setup.no_async_event(b.context, self.reported)?,
        }
        setup.no_completion(b.recv_cq, self.reported)?;
        self.reaches(setup, &b, self.responder)?;
        setup.no_async_event(a.context, "ASYNC-12")
    }

    fn reaches(&self, setup: &Setup<'_>, end: &End<'_>, state: QpState) -> Result {
        setup
            .until(&format!("{} is in {state}", end.qp), || {
                Ok((setup.state(end.qp)? == state).then_some(()))
            })
            .rule(self.states)
    }
}

/// Two receives, of work requests 10 and 11.
fn with_receives<'b>(setup: &'b Setup<'_>) -> Result<Pair<'b>> {
    let pair = setup.rc_pair()?;
    for wr_id in [10, 11] {
        pair.b.recv(wr_id, LEN)?;
    }
    Ok(pair)
}

scenario!(local_memory_of_a_send_or_write: "WC-24", "ASYNC-12"; needs MODIFY_CONNECT);
fn local_memory_of_a_send_or_write(setup: &Setup<'_>) -> Result {
    let row = Row::alone(WcStatus::LocProtErr, "WC-24");
    for write in [false, true] {
        let pair = with_receives(setup)?;
        let outside = [pair.a.sge(pair.a.mem.length, LEN)];
        let remote = pair.a.remote();
        let op = if write {
            SendOp::RdmaWrite { remote }
        } else {
            SendOp::Send
        };
        let cause = SendWr::new(1, op, &outside);
        in_case(op.name(), row.follows(setup, pair, cause, 2))?;
    }
    Ok(())
}

scenario!(local_memory_of_a_read: "RDMA-16", "ASYNC-12"; needs MODIFY_CONNECT, RDMA_READ);
fn local_memory_of_a_read(setup: &Setup<'_>) -> Result {
    let row = Row::alone(WcStatus::LocProtErr, "RDMA-16");
    let pair = setup.rc_pair()?;
    let outside = [pair.a.sge(pair.a.mem.length, LEN)];
    let cause = SendWr::rdma_read(1, &outside, pair.a.remote());
    // What is behind the read may have arrived before its answer, if there is a receive for it.
    row.follows(setup, pair, cause, 0)
}

fn with_atomics<'b>(setup: &'b Setup<'_>) -> Result<Pair<'b>> {
    let access = Access::ALL_RDMA | Access::REMOTE_ATOMIC;
    let rc = RcParams {
        access,
        ..RcParams::default()
    };
    setup.pair(PairOptions {
        access,
        rc,
        ..PairOptions::default()
    })
}

scenario!(local_memory_of_an_atomic: "ATOM-07", "ASYNC-12"; needs MODIFY_CONNECT, ATOMICS);
fn local_memory_of_an_atomic(setup: &Setup<'_>) -> Result {
    let row = Row::alone(WcStatus::LocProtErr, "ATOM-07");
    let pair = with_atomics(setup)?;
    let outside = [pair.a.sge(pair.a.mem.length, LEN)];
    let cause = SendWr::fetch_and_add(1, &outside, pair.a.remote(), 1);
    // As behind a read.
    row.follows(setup, pair, cause, 0)
}

scenario!(atomic_that_is_not_aligned:
    "ATOM-04", "ASYNC-14", "QP-FLUSH-09", "ASYNC-12"; needs MODIFY_CONNECT, ATOMICS);
fn atomic_that_is_not_aligned(setup: &Setup<'_>) -> Result {
    let declared = setup.behavior()?.qp_req_event;
    let row = Row {
        event: Reported::as_declared(declared, AsyncEventType::QpReqErr),
        reported: Claim::two("ATOM-04", "ASYNC-14"),
        ..Row::both(WcStatus::RemInvReqErr, "ATOM-04")
    };
    let pair = with_atomics(setup)?;
    for wr_id in [10, 11] {
        pair.b.recv(wr_id, LEN)?;
    }
    let into = [pair.a.sge(pair.a.landing(), LEN)];
    let cause = SendWr::fetch_and_add(1, &into, pair.b.mem.remote(4), 1);
    row.follows(setup, pair, cause, 2)
}

scenario!(bind_of_a_window: "WC-26", "MW-23", "ASYNC-12"; needs MODIFY_CONNECT, MW_TYPE_2);
fn bind_of_a_window(setup: &Setup<'_>) -> Result {
    let row = Row {
        states: Claim::two("WC-26", "MW-23"),
        ..Row::alone(WcStatus::MwBindErr, "WC-26")
    };
    let pair = with_receives(setup)?;
    let a = pair.a;
    let mw = setup.alloc_mw(a.pd, MwType::Type2)?;
    // The region does not allow it.
    let info = part(&a, 0, LEN.into(), Access::REMOTE_WRITE);
    let cause = SendWr::bind_mw(1, mw, inc_rkey(setup.query_mw(mw)?.rkey), info);
    row.follows(setup, pair, cause, 2)
}

/// Places in the memory of B that A must not use in a way, and why.
fn denied(setup: &Setup<'_>, b: &End<'_>, need: Access) -> Result<Vec<(&'static str, Remote)>> {
    let good = b.mem;
    let other_pd = setup.alloc_pd(b.context)?;
    let attr =
        |pd, access| -> Result<MrAttr> { Ok(setup.query_mr(setup.alloc_mr(pd, 64, access)?)?) };
    let mut bad_key = good;
    bad_key.rkey ^= 0xa5;
    let allowed = Access::ALL_RDMA.difference(need);
    Ok(vec![
        ("key", bad_key.remote(0)),
        ("range", good.remote(good.length - 7)),
        ("right", attr(b.pd, allowed)?.remote(0)),
        ("domain", attr(other_pd, Access::ALL_RDMA)?.remote(0)),
    ])
}

/// Every place that is denied fails in this way.
fn each_denied(
    setup: &Setup<'_>,
    row: &Row,
    need: Access,
    op: impl Fn(Remote) -> SendOp,
) -> Result {
    let reason = |n: usize| -> Result<(&'static str, Remote, Pair<'_>)> {
        let pair = with_receives(setup)?;
        let (why, remote) = denied(setup, &pair.b, need)?[n];
        Ok((why, remote, pair))
    };
    for n in 0..4 {
        let (why, remote, pair) = reason(n)?;
        let local = [pair.a.sge(pair.a.landing(), LEN)];
        let cause = SendWr::new(1, op(remote), &local);
        in_case(why, row.follows(setup, pair, cause, 2))?;
    }
    Ok(())
}

scenario!(memory_that_the_peer_denies_to_a_write:
    "RDMA-08", "QP-FLUSH-09", "ASYNC-12"; needs MODIFY_CONNECT);
fn memory_that_the_peer_denies_to_a_write(setup: &Setup<'_>) -> Result {
    let row = Row::both(WcStatus::RemAccessErr, "RDMA-08").access(setup)?;
    each_denied(setup, &row, Access::REMOTE_WRITE, |remote| {
        SendOp::RdmaWrite { remote }
    })
}

scenario!(memory_that_the_peer_denies_to_a_read:
    "RDMA-08", "QP-FLUSH-09", "ASYNC-12"; needs MODIFY_CONNECT, RDMA_READ);
fn memory_that_the_peer_denies_to_a_read(setup: &Setup<'_>) -> Result {
    let row = Row::both(WcStatus::RemAccessErr, "RDMA-08").access(setup)?;
    each_denied(setup, &row, Access::REMOTE_READ, |remote| {
        SendOp::RdmaRead { remote }
    })
}

scenario!(memory_that_the_peer_denies_to_a_write_with_immediate:
    "RDMA-13", "QP-FLUSH-09", "ASYNC-12"; needs MODIFY_CONNECT, WRITE_WITH_IMM);
fn memory_that_the_peer_denies_to_a_write_with_immediate(setup: &Setup<'_>) -> Result {
    let row = Row::both(WcStatus::RemAccessErr, "RDMA-13")
        .receive(&[
            WcStatus::LocAccessErr,
            WcStatus::LocProtErr,
            WcStatus::WrFlushErr,
        ])
        .access(setup)?;
    each_denied(setup, &row, Access::REMOTE_WRITE, |remote| {
        SendOp::RdmaWriteWithImm {
            remote,
            imm_data: [1; 4],
        }
    })
}

scenario!(operation_that_the_queue_pair_of_the_peer_denies:
    "RDMA-04", "QP-FLUSH-09", "ASYNC-12"; needs MODIFY_CONNECT, RDMA_READ);
fn operation_that_the_queue_pair_of_the_peer_denies(setup: &Setup<'_>) -> Result {
    let of_b = RcParams {
        access: Access::LOCAL_WRITE,
        ..RcParams::default()
    };
    for is_read in [false, true] {
        let options = PairOptions::default();
        let [a, b] = [setup.ctx_a(), setup.ctx_b()].map(|side| setup.end(side, options));
        let pair = setup.connect_each(a?, b?, RcParams::default(), of_b)?;
        for wr_id in [10, 11] {
            pair.b.recv(wr_id, LEN)?;
        }
        let remote = pair.a.remote();
        let op = if is_read {
            SendOp::RdmaRead { remote }
        } else {
            SendOp::RdmaWrite { remote }
        };
        let row = match setup.behavior()?.qp_access_status {
            Some(QpAccessStatus::RemInvReqErr) => Row::both(WcStatus::RemInvReqErr, "RDMA-04"),
            _ => Row::both(WcStatus::RemAccessErr, "RDMA-04").access(setup)?,
        };
        let local = [pair.a.sge(pair.a.landing(), LEN)];
        in_case(
            op.name(),
            row.follows(setup, pair, SendWr::new(1, op, &local), 2),
        )?;
    }
    Ok(())
}

scenario!(receive_that_is_too_small: "RQ-05", "QP-FLUSH-09", "ASYNC-12"; needs MODIFY_CONNECT);
fn receive_that_is_too_small(setup: &Setup<'_>) -> Result {
    let row = Row::both(WcStatus::RemInvReqErr, "RQ-05").receive(&[WcStatus::LocLenErr]);
    let pair = with_receives(setup)?;
    let data = [pair.a.sge(0, LEN + 1)];
    row.follows(setup, pair, SendWr::send(1, &data), 2)
}

scenario!(memory_of_a_receive: "RQ-07", "QP-FLUSH-09", "ASYNC-12"; needs MODIFY_CONNECT);
fn memory_of_a_receive(setup: &Setup<'_>) -> Result {
    let row = Row::both(WcStatus::RemOpErr, "RQ-07").receive(&[WcStatus::LocProtErr]);
    let Pair { a, b } = setup.rc_pair()?;
    let good = b.sge(0, LEN);
    let bad = Sge {
        addr: b.mem.addr + b.mem.length,
        ..good
    };
    for (wr_id, entry) in [(10, bad), (11, good)] {
        setup.post_recv(b.qp, &[RecvWr::new(wr_id, &[entry])])?;
    }
    let data = [a.sge(0, LEN)];
    row.follows(setup, Pair { a, b }, SendWr::send(1, &data), 2)
}

scenario!(no_receive_at_all:
    "RNR-03", "QP-FLUSH-10", "RNR-06", "ASYNC-12"; needs WRITE_WITH_IMM, RNR);
fn no_receive_at_all(setup: &Setup<'_>) -> Result {
    let row = Row {
        reported: Claim::two("RNR-03", "RNR-06"),
        states: Claim::two("RNR-03", "QP-FLUSH-10"),
        ..Row::alone(WcStatus::RnrRetryExcErr, "RNR-03")
    };
    let rc = |rnr_retry| RcParams {
        rnr_retry,
        min_rnr_timer: 1,
        ..RcParams::default()
    };
    for rnr_retry in [0, 1, 3, 6] {
        for imm in [false, true] {
            let pair = setup.pair(PairOptions {
                rc: rc(rnr_retry),
                ..PairOptions::default()
            })?;
            let remote = pair.a.remote();
            let op = if imm {
                SendOp::RdmaWriteWithImm {
                    remote,
                    imm_data: [1; 4],
                }
            } else {
                SendOp::Send
            };
            let data = [pair.a.sge(0, LEN)];
            let result = row.follows(setup, pair, SendWr::new(1, op, &data), 0);
            in_case(&format!("{} with {rnr_retry} retries", op.name()), result)?;
        }
    }
    Ok(())
}

scenario!(no_answer_at_all: "TMR-03", "QP-FLUSH-10", "ASYNC-12"; needs MODIFY_CONNECT);
/// The peer has been reset.
fn no_answer_at_all(setup: &Setup<'_>) -> Result {
    let row = Row {
        responder: QpState::Reset,
        states: Claim::two("TMR-03", "QP-FLUSH-10"),
        ..Row::alone(WcStatus::RetryExcErr, "TMR-03")
    };
    for retry_cnt in [0, 1, 6] {
        let rc = RcParams {
            timeout: 8,
            retry_cnt,
            ..RcParams::default()
        };
        let pair = setup.pair(PairOptions {
            rc,
            ..PairOptions::default()
        })?;
        setup.to_reset(pair.b.qp)?;
        let data = [pair.a.sge(0, LEN)];
        let result = row.follows(setup, pair, SendWr::send(1, &data), 0);
        in_case(&format!("{retry_cnt} retries"), result)?;
    }
    Ok(())
}
