//! Which completion satisfies which request: the table of `ibv_req_notify_cq`, cell by cell.

use verbs_api::behavior::ErrorFires;
use verbs_api::lab::Fault;
use verbs_api::{
    Access, Arm, CompChannel, Cq, Handle, MwType, QpAttrMask, QpModify, QpState, QpType, RcParams,
    RecvWr, SendFlags, SendWr, Sge, WcStatus, inc_rkey,
};

use super::{PLAIN, post};
use crate::failure::{check, in_case};
use crate::mw::part_of;
use crate::{Claim, End, OfRule, Pair, PairOptions, Result, Setup};

/// A way to make one completion.
struct Kind {
    name: &'static str,
    /// Says whether it satisfies a solicited request.
    rule: &'static str,
    /// It is of a send of A; otherwise of a receive of B.
    of_send: bool,
    status: WcStatus,
    /// The flags of the work request of A.
    flags: SendFlags,
    make: Make,
}

type Make = fn(&Setup<'_>, &Pair<'_>, SendFlags) -> Result;

impl Kind {
    const fn sent(name: &'static str, rule: &'static str, make: Make) -> Self {
        Self {
            name,
            rule,
            of_send: true,
            status: WcStatus::Success,
            flags: PLAIN,
            make,
        }
    }

    const fn received(name: &'static str, rule: &'static str, make: Make) -> Self {
        Self {
            of_send: false,
            ..Self::sent(name, rule, make)
        }
    }

    const fn solicited(self) -> Self {
        Self {
            flags: SendFlags::SOLICITED,
            ..self
        }
    }

    const fn fails(self, status: WcStatus) -> Self {
        Self { status, ..self }
    }

    /// Whether it satisfies a solicited request.
    fn is_solicited(&self) -> bool {
        // The flag is for the receive of the message. A failure needs none.
        let asked = !self.of_send && self.flags.contains(SendFlags::SOLICITED);
        asked || self.status != WcStatus::Success
    }

    /// What says whether it satisfies a solicited request.
    fn rule_on(&self, qp_type: QpType) -> Claim {
        match (qp_type, self.status, self.of_send) {
            (QpType::Rc, WcStatus::WrFlushErr, true) => Claim::two(self.rule, "CQ-ARM-09"),
            (QpType::Rc, WcStatus::WrFlushErr, false) => Claim::two(self.rule, "CQ-ARM-10"),
            (QpType::Rc, ..) => Claim::one(self.rule),
            _ => Claim::two(self.rule, "CQ-ARM-46"),
        }
    }

    fn watched(&self, pair: &Pair<'_>) -> (Cq, CompChannel) {
        if self.of_send {
            (pair.a.send_cq, pair.a.send_channel)
        } else {
            (pair.b.recv_cq, pair.b.channel)
        }
    }
}

/// What every transport has.
const MESSAGES: &[Kind] = &[
    Kind::sent("send", "CQ-ARM-24", send),
    Kind::sent("solicited send", "CQ-ARM-44", send).solicited(),
    Kind::received("receive", "CQ-ARM-08", send),
    Kind::received("solicited receive", "CQ-ARM-06", send).solicited(),
];

const WRITES: &[Kind] = &[
    Kind::sent("write", "CQ-ARM-24", write),
    Kind::sent("solicited write", "CQ-ARM-43", write).solicited(),
];

const READS: &[Kind] = &[
    Kind::sent("read", "CQ-ARM-24", read),
    Kind::sent("solicited read", "CQ-ARM-43", read).solicited(),
];

const ATOMICS: &[Kind] = &[
    Kind::sent("atomic", "CQ-ARM-24", atomic),
    Kind::sent("solicited atomic", "CQ-ARM-43", atomic).solicited(),
];

const OF_WINDOWS: &[Kind] = &[
    Kind::sent("solicited bind", "CQ-ARM-43", |setup, pair, flags| {
        bind(setup, &pair.a, flags, true).map(drop)
    })
    .solicited(),
    Kind::sent("solicited local invalidate", "CQ-ARM-24", local_inv).solicited(),
    Kind::received(
        "receive of send with invalidate",
        "CQ-ARM-08",
        send_with_inv,
    ),
    Kind::received(
        "receive of solicited send with invalidate",
        "CQ-ARM-06",
        send_with_inv,
    )
    .solicited(),
];

const SENDS_WITH_IMM: &[Kind] = &[
    Kind::sent("solicited send with immediate", "CQ-ARM-44", send_with_imm).solicited(),
    Kind::received("receive of send with immediate", "CQ-ARM-08", send_with_imm),
    Kind::received(
        "solicited receive of send with immediate",
        "CQ-ARM-06",
        send_with_imm,
    )
    .solicited(),
];

const WRITES_WITH_IMM: &[Kind] = &[
    Kind::sent(
        "solicited write with immediate",
        "CQ-ARM-44",
        write_with_imm,
    )
    .solicited(),
    Kind::received(
        "receive of write with immediate",
        "CQ-ARM-08",
        write_with_imm,
    ),
    Kind::received(
        "solicited receive of write with immediate",
        "CQ-ARM-07",
        write_with_imm,
    )
    .solicited(),
];

const SEND_ERRORS: &[Kind] = &[
    Kind::sent("send with a bad lkey", "CQ-ARM-09", |_, pair, _| {
        let a = pair.a;
        a.post(SendWr::send(1, &[bad_sge(&a)]))
    })
    .fails(WcStatus::LocProtErr),
    Kind::sent("write with a bad rkey", "CQ-ARM-09", |_, pair, _| {
        let a = pair.a;
        a.post(SendWr::rdma_write(1, &[a.sge(0, 8)], a.bad_remote()))
    })
    .fails(WcStatus::RemAccessErr),
    Kind::sent("send to a receive too small", "CQ-ARM-09", too_long).fails(WcStatus::RemInvReqErr),
    Kind::sent(
        "send to a receive with a bad lkey",
        "CQ-ARM-09",
        to_bad_receive,
    )
    .fails(WcStatus::RemOpErr),
    Kind::sent(
        "send to a dead queue pair",
        "CQ-ARM-09",
        |setup, pair, _| {
            setup.to_err(pair.b.qp)?;
            // On iWARP the sender is notified.
            setup.settle()?;
            pair.a.send(1, 8)
        },
    )
    .fails(WcStatus::RetryExcErr),
];

const RECEIVER_NOT_READY: &[Kind] =
    &[
        Kind::sent("send without a receive", "CQ-ARM-09", |_, pair, _| {
            pair.a.send(1, 8)
        })
        .fails(WcStatus::RnrRetryExcErr),
    ];

const RECEIVE_ERRORS: &[Kind] = &[
    Kind::received("receive too small", "CQ-ARM-10", too_long).fails(WcStatus::LocLenErr),
    Kind::received(
        "receive too small for a solicited send",
        "CQ-ARM-10",
        too_long,
    )
    .solicited()
    .fails(WcStatus::LocLenErr),
    Kind::received("receive with a bad lkey", "CQ-ARM-10", to_bad_receive)
        .fails(WcStatus::LocProtErr),
];

const FLUSHES: &[Kind] = &[
    Kind::sent("flushed send", "CQ-ARM-42", |setup, pair, _| {
        setup.to_err(pair.a.qp)?;
        pair.a.send(1, 8)
    })
    .fails(WcStatus::WrFlushErr),
    Kind::received("flushed receive", "CQ-ARM-42", |setup, pair, _| {
        pair.b.recv(1, 8)?;
        setup.to_err(pair.b.qp)
    })
    .fails(WcStatus::WrFlushErr),
];

fn send(_: &Setup<'_>, pair: &Pair<'_>, flags: SendFlags) -> Result {
    post(pair, 1, flags)
}

fn write(_: &Setup<'_>, Pair { a, .. }: &Pair<'_>, flags: SendFlags) -> Result {
    a.post(SendWr::rdma_write(1, &[a.sge(0, 8)], a.remote()).flags(flags))
}

fn read(_: &Setup<'_>, Pair { a, .. }: &Pair<'_>, flags: SendFlags) -> Result {
    a.post(SendWr::rdma_read(1, &[a.sge(a.landing(), 8)], a.remote()).flags(flags))
}

fn send_with_imm(_: &Setup<'_>, Pair { a, b }: &Pair<'_>, flags: SendFlags) -> Result {
    b.recv(1, 8)?;
    a.post(SendWr::send_with_imm(1, &[a.sge(0, 8)], [1; 4]).flags(flags))
}

fn write_with_imm(_: &Setup<'_>, Pair { a, b }: &Pair<'_>, flags: SendFlags) -> Result {
    b.recv(1, 8)?;
    a.post(SendWr::rdma_write_with_imm(1, &[a.sge(0, 8)], a.remote(), [1; 4]).flags(flags))
}

/// A message one byte longer than the receive.
fn too_long(_: &Setup<'_>, Pair { a, b }: &Pair<'_>, flags: SendFlags) -> Result {
    b.recv(1, 8)?;
    a.post(SendWr::send(1, &[a.sge(0, 9)]).flags(flags))
}

fn to_bad_receive(_: &Setup<'_>, Pair { a, b }: &Pair<'_>, _: SendFlags) -> Result {
    b.post_recv(RecvWr::new(1, &[bad_sge(b)]))?;
    a.send(1, 8)
}

fn bad_sge(end: &End<'_>) -> Sge {
    Sge {
        lkey: end.mem.lkey ^ 0xa5,
        ..end.sge(0, 8)
    }
}

/// An atomic on memory of B.
fn atomic(setup: &Setup<'_>, Pair { a, b }: &Pair<'_>, flags: SendFlags) -> Result {
    let access = Access::LOCAL_WRITE | Access::REMOTE_ATOMIC;
    let allow = QpModify::to(QpState::Rts).set(QpAttrMask::ACCESS_FLAGS, |attr| {
        attr.qp_access_flags = access;
    });
    setup.modify(b.qp, allow)?;
    let there = setup.query_mr(setup.alloc_mr(b.pd, 8, access)?)?;
    let into = [a.sge(a.landing(), 8)];
    a.post(SendWr::fetch_and_add(1, &into, there.remote(0), 1).flags(flags))
}

/// A bind of a window of an end; its key.
fn bind(setup: &Setup<'_>, end: &End<'_>, flags: SendFlags, signaled: bool) -> Result<u32> {
    let mr = setup.alloc_mr(end.pd, 8, Access::MW_BIND)?;
    let mw = setup.alloc_mw(end.pd, MwType::Type2)?;
    let rkey = inc_rkey(setup.query_mw(mw)?.rkey);
    let info = part_of(mr, setup.query_mr(mr)?.addr, 8, Access::REMOTE_READ);
    let bind = SendWr::bind_mw(1, mw, rkey, info);
    let bind = if signaled { bind } else { bind.unsignaled() };
    setup.post_send(end.qp, &[bind.flags(flags)])?;
    Ok(rkey)
}

/// A invalidates its own window.
fn local_inv(setup: &Setup<'_>, Pair { a, .. }: &Pair<'_>, flags: SendFlags) -> Result {
    let rkey = bind(setup, a, PLAIN, false)?;
    Ok(setup.post_send(a.qp, &[SendWr::local_inv(1, rkey).flags(flags)])?)
}

/// A invalidates a window of B.
fn send_with_inv(setup: &Setup<'_>, Pair { a, b }: &Pair<'_>, flags: SendFlags) -> Result {
    let rkey = bind(setup, b, PLAIN, true)?;
    setup.successes(b.send_cq, 1)?;
    b.recv(1, 8)?;
    a.post(SendWr::send_with_inv(1, &[a.sge(0, 8)], rkey).flags(flags))
}

const NOT: &[&[Arm]] = &[&[]];
const NEXT: &[&[Arm]] = &[&[Arm::NEXT]];
const SOLICITED: &[&[Arm]] = &[&[Arm::SOLICITED]];
const UPGRADE: &[&[Arm]] = &[&[Arm::SOLICITED, Arm::NEXT]];
const DOWNGRADE: &[&[Arm]] = &[&[Arm::NEXT, Arm::SOLICITED]];
const EITHER: &[&[Arm]] = &[NEXT[0], SOLICITED[0]];
const EVERY: &[&[Arm]] = &[NOT[0], NEXT[0], SOLICITED[0], UPGRADE[0], DOWNGRADE[0]];

/// Each kind of completion, after each sequence of requests, makes an event as the table says: one
/// for any request with a next among them, one for a solicited request if the kind satisfies it.
fn follow_the_table<'k>(
    setup: &Setup<'_>,
    qp_type: QpType,
    kinds: impl IntoIterator<Item = &'k Kind>,
    columns: &[&[Arm]],
) -> Result {
    for kind in kinds {
        for requests in columns {
            let case = format!("{} after {requests:?}", kind.name);
            in_case(&case, cell(setup, qp_type, kind, requests))?;
        }
    }
    Ok(())
}

fn cell(setup: &Setup<'_>, qp_type: QpType, kind: &Kind, requests: &[Arm]) -> Result {
    let pair = setup.pair(impatient(qp_type))?;
    let (cq, channel) = kind.watched(&pair);
    for arm in requests {
        setup.arm(cq, *arm)?;
    }
    (kind.make)(setup, &pair, kind.flags)?;
    let flushed = kind.status == WcStatus::WrFlushErr;
    let (rule, fires) = match requests {
        [] => (Claim::one("CQ-ARM-40"), false),
        [Arm::SOLICITED] => (kind.rule_on(qp_type), kind.is_solicited()),
        [Arm::NEXT] if flushed => (Claim::two("CQ-ARM-11", "CQ-ARM-42"), true),
        [Arm::NEXT] => (Claim::one("CQ-ARM-11"), true),
        [Arm::SOLICITED, ..] => (Claim::one("CQ-ARM-14"), true),
        _ => (Claim::one("CQ-ARM-15"), true),
    };
    let wc = setup.one(cq).rule(rule)?;
    // Which failure it is is asserted elsewhere, and devices differ.
    let is_failure = |status| !matches!(status, WcStatus::Success | WcStatus::WrFlushErr);
    let as_made = wc.status == kind.status || is_failure(wc.status) && is_failure(kind.status);
    check!(rule, as_made, kind.name, "{wc}");
    if fires {
        setup.expect_event(channel, cq, rule)?;
    }
    setup.no_event(channel, rule)
}

/// Sends that cannot be done fail soon. The regions of all cases together are small, because
/// locked memory is scarce.
fn impatient(qp_type: QpType) -> PairOptions {
    PairOptions {
        rc: RcParams {
            timeout: 12,
            retry_cnt: 2,
            rnr_retry: 1,
            ..RcParams::default()
        },
        mem: 4096,
        ..PairOptions::of(qp_type)
    }
}

/// Every kind that needs no more than RC.
fn basic() -> impl Iterator<Item = &'static Kind> {
    [MESSAGES, WRITES, SEND_ERRORS, RECEIVE_ERRORS, FLUSHES]
        .into_iter()
        .flatten()
}

scenario!(unarmed_cq_makes_no_event: "CQ-ARM-40");
fn unarmed_cq_makes_no_event(setup: &Setup<'_>) -> Result {
    follow_the_table(setup, QpType::Rc, basic(), NOT)
}

scenario!(next_fires_for_any_completion: "CQ-ARM-11", "CQ-ARM-42");
fn next_fires_for_any_completion(setup: &Setup<'_>) -> Result {
    follow_the_table(setup, QpType::Rc, basic(), NEXT)
}

scenario!(solicited_is_upgraded_by_next: "CQ-ARM-14");
fn solicited_is_upgraded_by_next(setup: &Setup<'_>) -> Result {
    follow_the_table(setup, QpType::Rc, basic(), UPGRADE)
}

scenario!(next_is_not_downgraded_by_solicited: "CQ-ARM-15");
fn next_is_not_downgraded_by_solicited(setup: &Setup<'_>) -> Result {
    follow_the_table(setup, QpType::Rc, basic(), DOWNGRADE)
}

scenario!(receive_fires_solicited_if_its_message_asked_for_it: "CQ-ARM-06", "CQ-ARM-08");
fn receive_fires_solicited_if_its_message_asked_for_it(setup: &Setup<'_>) -> Result {
    let receives = MESSAGES.iter().filter(|kind| !kind.of_send);
    follow_the_table(setup, QpType::Rc, receives, SOLICITED)
}

scenario!(successful_sends_do_not_fire_solicited: "CQ-ARM-24", "CQ-ARM-44", "CQ-ARM-43");
fn successful_sends_do_not_fire_solicited(setup: &Setup<'_>) -> Result {
    let sends = MESSAGES.iter().filter(|kind| kind.of_send);
    follow_the_table(setup, QpType::Rc, sends.chain(WRITES), SOLICITED)
}

scenario!(send_errors_fire_solicited: "CQ-ARM-09");
fn send_errors_fire_solicited(setup: &Setup<'_>) -> Result {
    follow_the_table(setup, QpType::Rc, SEND_ERRORS, SOLICITED)
}

scenario!(receive_errors_fire_solicited: "CQ-ARM-10");
fn receive_errors_fire_solicited(setup: &Setup<'_>) -> Result {
    follow_the_table(setup, QpType::Rc, RECEIVE_ERRORS, SOLICITED)
}

scenario!(flushes_fire_solicited: "CQ-ARM-42", "CQ-ARM-09", "CQ-ARM-10");
fn flushes_fire_solicited(setup: &Setup<'_>) -> Result {
    follow_the_table(setup, QpType::Rc, FLUSHES, SOLICITED)
}

scenario!(receiver_not_ready_fires_as_any_error:
    "CQ-ARM-09", "CQ-ARM-11", "CQ-ARM-14", "CQ-ARM-15", "CQ-ARM-40"; needs RNR);
fn receiver_not_ready_fires_as_any_error(setup: &Setup<'_>) -> Result {
    follow_the_table(setup, QpType::Rc, RECEIVER_NOT_READY, EVERY)
}

scenario!(read_fires_next_only:
    "CQ-ARM-11", "CQ-ARM-24", "CQ-ARM-43", "CQ-ARM-14", "CQ-ARM-15", "CQ-ARM-40"; needs RDMA_READ);
fn read_fires_next_only(setup: &Setup<'_>) -> Result {
    follow_the_table(setup, QpType::Rc, READS, EVERY)
}

scenario!(atomic_fires_next_only: "CQ-ARM-11", "CQ-ARM-24", "CQ-ARM-43"; needs ATOMICS);
fn atomic_fires_next_only(setup: &Setup<'_>) -> Result {
    follow_the_table(setup, QpType::Rc, ATOMICS, EITHER)
}

scenario!(binds_fire_next_only_and_send_with_invalidate_as_a_send:
    "CQ-ARM-11", "CQ-ARM-06", "CQ-ARM-08", "CQ-ARM-43", "CQ-ARM-24"; needs MW_TYPE_2);
fn binds_fire_next_only_and_send_with_invalidate_as_a_send(setup: &Setup<'_>) -> Result {
    follow_the_table(setup, QpType::Rc, OF_WINDOWS, EITHER)
}

scenario!(send_with_immediate_fires_as_a_send:
    "CQ-ARM-06", "CQ-ARM-08", "CQ-ARM-11", "CQ-ARM-44", "CQ-ARM-14", "CQ-ARM-15", "CQ-ARM-40";
    needs SEND_WITH_IMM);
fn send_with_immediate_fires_as_a_send(setup: &Setup<'_>) -> Result {
    follow_the_table(setup, QpType::Rc, SENDS_WITH_IMM, EVERY)
}

scenario!(write_with_immediate_fires_as_a_send:
    "CQ-ARM-07", "CQ-ARM-08", "CQ-ARM-11", "CQ-ARM-44", "CQ-ARM-14", "CQ-ARM-15", "CQ-ARM-40";
    needs WRITE_WITH_IMM);
fn write_with_immediate_fires_as_a_send(setup: &Setup<'_>) -> Result {
    follow_the_table(setup, QpType::Rc, WRITES_WITH_IMM, EVERY)
}

scenario!(uc_follows_the_same_table:
    "CQ-ARM-46", "CQ-ARM-06", "CQ-ARM-11", "CQ-ARM-42", "CQ-ARM-08", "CQ-ARM-14", "CQ-ARM-15",
    "CQ-ARM-24", "CQ-ARM-40", "CQ-ARM-43", "CQ-ARM-44";
    needs UC);
fn uc_follows_the_same_table(setup: &Setup<'_>) -> Result {
    let kinds = [MESSAGES, WRITES, FLUSHES].into_iter().flatten();
    follow_the_table(setup, QpType::Uc, kinds, EVERY)
}

scenario!(uc_with_immediate_follows_the_same_table:
    "CQ-ARM-46", "CQ-ARM-06", "CQ-ARM-07", "CQ-ARM-08", "CQ-ARM-11", "CQ-ARM-14", "CQ-ARM-15",
    "CQ-ARM-40", "CQ-ARM-44";
    needs UC, SEND_WITH_IMM, WRITE_WITH_IMM);
fn uc_with_immediate_follows_the_same_table(setup: &Setup<'_>) -> Result {
    let kinds = SENDS_WITH_IMM.iter().chain(WRITES_WITH_IMM);
    follow_the_table(setup, QpType::Uc, kinds, EVERY)
}

scenario!(ud_follows_the_same_table:
    "CQ-ARM-46", "CQ-ARM-06", "CQ-ARM-11", "CQ-ARM-42", "CQ-ARM-08", "CQ-ARM-14", "CQ-ARM-15",
    "CQ-ARM-24", "CQ-ARM-40", "CQ-ARM-44";
    needs UD);
fn ud_follows_the_same_table(setup: &Setup<'_>) -> Result {
    let kinds = MESSAGES.iter().chain(FLUSHES);
    follow_the_table(setup, QpType::Ud, kinds, EVERY)
}

scenario!(ud_with_immediate_follows_the_same_table:
    "CQ-ARM-46", "CQ-ARM-06", "CQ-ARM-08", "CQ-ARM-11", "CQ-ARM-14", "CQ-ARM-15", "CQ-ARM-40",
    "CQ-ARM-44";
    needs UD, SEND_WITH_IMM);
fn ud_with_immediate_follows_the_same_table(setup: &Setup<'_>) -> Result {
    follow_the_table(setup, QpType::Ud, SENDS_WITH_IMM, EVERY)
}

scenario!(xrc_follows_the_same_table:
    "CQ-ARM-46", "CQ-ARM-06", "CQ-ARM-11", "CQ-ARM-07", "CQ-ARM-08", "CQ-ARM-09", "CQ-ARM-14",
    "CQ-ARM-15", "CQ-ARM-24", "CQ-ARM-40", "CQ-ARM-43", "CQ-ARM-44";
    needs SEND_WITH_IMM, WRITE_WITH_IMM, RNR, XRC);
/// Receives are those of an SRQ, at its CQ.
fn xrc_follows_the_same_table(setup: &Setup<'_>) -> Result {
    let kinds = [MESSAGES, WRITES, SENDS_WITH_IMM, WRITES_WITH_IMM];
    let kinds = kinds.into_iter().chain([SEND_ERRORS, RECEIVER_NOT_READY]);
    follow_the_table(setup, QpType::XrcSend, kinds.flatten(), EVERY)
}

scenario!(every_error_status_fires_solicited: "CQ-ARM-09", "CQ-ARM-10"; needs LAB);
fn every_error_status_fires_solicited(setup: &Setup<'_>) -> Result {
    let errors = WcStatus::ALL
        .iter()
        .filter(|status| **status != WcStatus::Success);
    for status in errors {
        let case = format!("{status}");
        for (of_send, rule) in [(true, "CQ-ARM-09"), (false, "CQ-ARM-10")] {
            in_case(&case, fails_by_fault(setup, *status, of_send, rule))?;
        }
    }
    Ok(())
}

/// The end whose sends or receives complete, and the CQ they complete in.
fn side<'b>(pair: &Pair<'b>, of_send: bool) -> (End<'b>, Cq) {
    if of_send {
        (pair.a, pair.a.send_cq)
    } else {
        (pair.b, pair.b.recv_cq)
    }
}

/// A fault rule makes one end of a message fail.
fn fails_by_fault(
    setup: &Setup<'_>,
    status: WcStatus,
    of_send: bool,
    rule: &'static str,
) -> Result {
    let pair = setup.pair(impatient(QpType::Rc))?;
    let (end, cq) = side(&pair, of_send);
    let lab = setup.lab();
    lab.inject(
        Fault::complete(status)
            .node(lab.node(end.qp.context())?)
            .qpn(setup.verbs().qp_num(end.qp)?)
            .nth(1),
    )?;
    setup.arm(cq, Arm::SOLICITED)?;
    post(&pair, 1, PLAIN)?;
    setup.one_with(cq, status, rule)?;
    setup.expect_event(end.channel, cq, rule)?;
    setup.no_event(end.channel, rule)
}

scenario!(failures_fire_solicited_as_declared:
    "CQ-ARM-09", "CQ-ARM-10", "CQ-ARM-42"; needs LAB);
fn failures_fire_solicited_as_declared(setup: &Setup<'_>) -> Result {
    let Some(declared) = setup.behavior()?.error_fires_solicited else {
        return Ok(());
    };
    for (of_send, is_flushed) in [(true, false), (true, true), (false, false), (false, true)] {
        let fires = match declared {
            ErrorFires::Receives => !of_send,
            ErrorFires::FlushedReceives => !of_send && is_flushed,
            ErrorFires::None => false,
            ErrorFires::All | _ => true,
        };
        let rule = match (of_send, is_flushed) {
            (_, true) => "CQ-ARM-42",
            (true, _) => "CQ-ARM-09",
            (false, _) => "CQ-ARM-10",
        };
        let fails = fails_alone(setup, of_send, is_flushed, fires, rule);
        in_case(
            &format!("{declared:?}, send {of_send}, flushed {is_flushed}"),
            fails,
        )?;
    }
    Ok(())
}

/// The only work of an end fails by a fault rule, or is flushed: whether that fires.
fn fails_alone(
    setup: &Setup<'_>,
    of_send: bool,
    is_flushed: bool,
    fires: bool,
    rule: &'static str,
) -> Result {
    let pair = setup.pair(impatient(QpType::Rc))?;
    let (end, cq) = side(&pair, of_send);
    let lab = setup.lab();
    let failed = Fault::complete(WcStatus::GeneralErr).node(lab.node(end.context)?);
    lab.inject(failed.qpn(end.qp_num))?;
    setup.arm(cq, Arm::SOLICITED)?;
    pair.b.recv(1, 8)?;
    if of_send || !is_flushed {
        pair.a.send(1, 8)?;
    }
    if is_flushed {
        setup.to_err(end.qp)?;
    }
    let status = if is_flushed {
        WcStatus::WrFlushErr
    } else {
        WcStatus::GeneralErr
    };
    setup.one_with(cq, status, Claim::NONE)?;
    if fires {
        setup.expect_event(end.channel, cq, rule).map(drop)
    } else {
        setup.no_event(end.channel, rule)
    }
}
