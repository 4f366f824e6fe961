//! Extended CQs: iterations, the fields of completions, flags.
//!
//! | file | holds |
//! |---|---|
//! | `held` | the places that an open iteration holds, and CQs that are destroyed or die during it
//! |

mod held;

use verbs_api::{
    Arm, Capabilities, CompChannel, Cq, CqFlags, CqInit, CqInitEx, ErrorKind, Handle, QpModify,
    QpState, QpType, Wait, Wc, WcEx, WcFields, WcFlags, WcStatus,
};

use crate::cq_ovr::{Queue, SmallCq};
use crate::failure::{check, check_eq, in_case};
use crate::{
    Failure, OfRule, Pair, PairOptions, Result, Scenario, Setup, expect_err, expect_err_among,
    wr_ids,
};

pub(crate) const SCENARIOS: &[Scenario] = scenarios![
    iteration_gives_each_completion_in_order,
    iteration_may_end_before_the_last_completion,
    no_iteration_starts_over_an_empty_cq,
    iteration_said_wrongly_is_refused,
    nothing_waits_for_an_open_iteration,
    plain_cq_is_not_iterated,
    fields_are_those_of_poll_cq,
    fields_of_immediate_data_are_those_of_poll_cq,
    fields_of_datagrams_are_those_of_poll_cq,
    only_fields_that_were_asked_for_are_given,
    completion_has_the_time_when_it_was_added,
    times_of_completions_are_those_of_the_clock,
    overrun_is_ignored_or_the_flag_refused,
    fields_that_there_are_not_are_refused,
    resize_keeps_completions_and_request,
    is_armed_as_any_cq,
    held::full_cq_overruns_whatever_an_iteration_has_come_to,
    held::iteration_has_places_for_no_more_than_it_has_come_to,
    held::dead_cq_is_iterated_to_its_last_completion,
    held::overwriting_takes_the_places_of_an_iteration_first,
    held::later_completion_frees_the_slots_of_lost_ones,
    held::open_iteration_keeps_its_cq_as_it_is,
    held::cq_of_an_xrc_srq_waits_for_the_end_of_an_iteration,
    held::data_is_there_when_an_iteration_comes_to_its_completion,
    held::extended_cqs_are_there_or_refused,
];

/// A pair of which B's receives complete in an extended CQ with a channel.
fn pair_on<'b>(
    setup: &'b Setup<'b>,
    qp_type: QpType,
    init: &CqInitEx,
) -> Result<(Pair<'b>, CompChannel)> {
    let options = PairOptions::of(qp_type);
    let context = setup.ctx_b();
    let channel = setup.create_comp_channel(context)?;
    let init = CqInitEx {
        cq: init.cq.channel(channel),
        ..*init
    };
    let cq = setup.create_cq_ex(context, &init)?;
    let sends = setup.create_cq(context, &CqInit::new(options.send_cqe))?;
    let a = setup.end(setup.ctx_a(), options)?;
    let b = setup.end_on(sends, cq, options)?;
    Ok((setup.connect(a, b, options)?, channel))
}

fn rc_pair<'b>(setup: &'b Setup<'b>) -> Result<Pair<'b>> {
    Ok(pair_on(setup, QpType::Rc, &CqInitEx::new(CqInit::new(64)))?.0)
}

/// Starts an iteration as soon as there is a completion.
fn start(setup: &Setup<'_>, cq: Cq) -> Result {
    setup.until("a completion to start an iteration with", || {
        match setup.start_poll(cq) {
            Ok(()) => Ok(Some(())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::from(error)),
        }
    })
}

/// Comes to the next completion, or the end.
fn next(setup: &Setup<'_>, cq: Cq) -> Result<bool> {
    match setup.next_poll(cq) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).rule("CQ-CREATE-15"),
    }
}

/// Advances to the next completion. If it comes late, the iteration must be started again.
fn go_on(setup: &Setup<'_>, cq: Cq) -> Result {
    setup.until("the next completion", || {
        if next(setup, cq)? {
            return Ok(Some(()));
        }
        setup.end_poll(cq)?;
        start(setup, cq).map(Some)
    })
}

/// Reads `count` completions, with an iteration for each.
pub(crate) fn read(setup: &Setup<'_>, cq: Cq, count: usize) -> Result<Vec<WcEx>> {
    let one = |_| {
        start(setup, cq)?;
        let wc = setup.read_wc(cq)?;
        setup.end_poll(cq)?;
        Ok(wc)
    };
    (0..count).map(one).collect()
}

/// Reads `count` completions, with as many iterations as it takes, each to its end.
fn iterate(setup: &Setup<'_>, cq: Cq, count: usize) -> Result<Vec<WcEx>> {
    let mut all = Vec::new();
    while all.len() < count {
        start(setup, cq)?;
        all.push(setup.read_wc(cq)?);
        while next(setup, cq)? {
            all.push(setup.read_wc(cq)?);
        }
        setup.end_poll(cq)?;
    }
    Ok(all)
}

fn numbers(completions: &[WcEx]) -> Vec<u64> {
    completions.iter().map(|wc| wc.wr_id).collect()
}

scenario!(iteration_gives_each_completion_in_order: "CQ-CREATE-15"; needs CQ_EX);
fn iteration_gives_each_completion_in_order(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-15";
    let (pair, _) = pair_on(setup, QpType::Rc, &CqInitEx::new(CqInit::new(16)))?;
    let cq = pair.b.recv_cq;
    let mut first = 0;
    // More than the CQ has places in all: they are released.
    for count in [1, 2, 8, 3, 16, 15, 1] {
        let wr_ids = first..first + count;
        pair.deliver(wr_ids.clone())?;
        let got = iterate(setup, cq, count as usize).rule(RULE)?;
        check_eq!(RULE, numbers(&got), wr_ids.collect::<Vec<_>>());
        check!(
            RULE,
            got.iter().all(|wc| wc.status == WcStatus::Success),
            "successes",
            "{got:?}"
        );
        first += count;
        // It can still be polled as any CQ.
        pair.deliver(first..first + 1)?;
        check_eq!(RULE, wr_ids_of(setup, cq, 1)?, [first]);
        setup.no_completion(cq, RULE)?;
        first += 1;
    }
    Ok(())
}

fn wr_ids_of(setup: &Setup<'_>, cq: Cq, count: usize) -> Result<Vec<u64>> {
    Ok(wr_ids(&setup.successes(cq, count).rule("CQ-CREATE-15")?))
}

scenario!(iteration_may_end_before_the_last_completion: "CQ-CREATE-15"; needs CQ_EX);
fn iteration_may_end_before_the_last_completion(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-15";
    let pair = rc_pair(setup)?;
    let cq = pair.b.recv_cq;
    let mut first = 0;
    for seen in 1..=4 {
        pair.deliver(first..first + 6)?;
        setup.settle()?;
        start(setup, cq)?;
        let mut got = vec![setup.read_wc(cq)?.wr_id];
        while got.len() < seen {
            go_on(setup, cq)?;
            got.push(setup.read_wc(cq)?.wr_id);
        }
        setup.end_poll(cq).rule(RULE)?;
        got.extend(wr_ids_of(setup, cq, 6 - seen)?);
        check_eq!(RULE, got, (first..first + 6).collect::<Vec<_>>());
        setup.no_completion(cq, RULE)?;
        first += 6;
    }
    Ok(())
}

scenario!(no_iteration_starts_over_an_empty_cq: "CQ-CREATE-15"; needs CQ_EX);
fn no_iteration_starts_over_an_empty_cq(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-15";
    let pair = rc_pair(setup)?;
    let cq = pair.b.recv_cq;
    for wr_id in 0..3 {
        for _ in 0..2 {
            expect_err(setup.start_poll(cq), ErrorKind::NotFound, RULE)?;
        }
        // No iteration is open that would have to be ended.
        expect_err(setup.end_poll(cq), ErrorKind::Usage, RULE)?;
        pair.deliver(wr_id..wr_id + 1)?;
        let got = read(setup, cq, 1).rule(RULE)?;
        check_eq!(RULE, numbers(&got), [wr_id]);
    }
    pair.deliver(7..8)?;
    check_eq!(RULE, wr_ids_of(setup, cq, 1)?, [7]);
    Ok(())
}

scenario!(iteration_said_wrongly_is_refused: "CQ-CREATE-15"; needs CQ_EX);
fn iteration_said_wrongly_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-15";
    let misuse =
        |result: verbs_api::Result<()>| expect_err(result, ErrorKind::Usage, RULE).map(drop);
    let pair = rc_pair(setup)?;
    let cq = pair.b.recv_cq;
    pair.deliver(0..1)?;
    let not_open = |setup: &Setup<'_>| {
        misuse(setup.next_poll(cq))?;
        misuse(setup.read_wc(cq).map(drop))?;
        misuse(setup.end_poll(cq))
    };
    in_case("before the start", not_open(setup))?;
    start(setup, cq)?;
    in_case("a second start", misuse(setup.start_poll(cq)))?;
    check_eq!(RULE, setup.read_wc(cq)?.wr_id, 0);
    check!(RULE, !next(setup, cq)?, "the end", "another completion");
    in_case("next at the end", misuse(setup.next_poll(cq)))?;
    in_case("read at the end", misuse(setup.read_wc(cq).map(drop)))?;
    setup.end_poll(cq).rule(RULE)?;
    in_case("after the end", not_open(setup))?;
    pair.deliver(1..2)?;
    check_eq!(RULE, numbers(&read(setup, cq, 1)?), [1]);
    Ok(())
}

scenario!(nothing_waits_for_an_open_iteration: "CQ-CREATE-15"; needs CQ_EX);
/// Calls that would wait are refused; all others work as usual.
fn nothing_waits_for_an_open_iteration(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-15";
    let (pair, channel) = pair_on(setup, QpType::Rc, &CqInitEx::new(CqInit::new(64)))?;
    let (b, cq) = (pair.b, pair.b.recv_cq);
    let spare = setup.create_cq_ex(cq.context(), &CqInitEx::new(CqInit::new(4)))?;
    pair.deliver(0..2)?;
    setup.settle()?;
    start(setup, cq)?;
    let QpModify { attr, mask } = QpModify::to(QpState::Err);
    let refusals = [
        ("poll", setup.poll_cq(cq, &mut [Wc::default()]).map(drop)),
        ("modify", setup.modify_qp(b.qp, &attr, mask)),
        ("destroy", setup.destroy_qp(b.qp, Wait::Poll)),
    ];
    for (what, result) in refusals {
        in_case(what, expect_err(result, ErrorKind::Usage, RULE).map(drop))?;
    }
    let refusals = [ErrorKind::Busy, ErrorKind::Usage];
    expect_err_among(setup.destroy_cq(cq, Wait::Poll), &refusals, RULE)?;
    setup.arm(cq, Arm::NEXT).rule(RULE)?;
    b.recv(2, 8)?;
    pair.a.send(2, 8)?;
    setup.successes(pair.a.send_cq, 1)?;
    setup.expect_event(channel, cq, RULE)?;
    setup.destroy_cq(spare, setup.wait()).rule(RULE)?;
    check_eq!(RULE, setup.read_wc(cq)?.wr_id, 0);
    setup.end_poll(cq)?;
    check_eq!(RULE, wr_ids_of(setup, cq, 2)?, [1, 2]);
    setup.to_err(b.qp)
}

scenario!(plain_cq_is_not_iterated: "CQ-CREATE-15");
fn plain_cq_is_not_iterated(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-15";
    let pair = setup.rc_pair()?;
    let cq = pair.b.recv_cq;
    pair.deliver(0..1)?;
    for (what, result) in [
        ("start", setup.start_poll(cq)),
        ("next", setup.next_poll(cq)),
        ("read", setup.read_wc(cq).map(drop)),
        ("end", setup.end_poll(cq)),
    ] {
        in_case(what, expect_err(result, ErrorKind::Invalid, RULE).map(drop))?;
    }
    check_eq!(RULE, wr_ids_of(setup, cq, 1)?, [0]);
    Ok(())
}

/// A completion as `ibv_poll_cq` gives it, with these fields.
pub(crate) fn as_read(wc: &Wc, fields: WcFields) -> WcEx {
    let has = |field| fields.contains(field);
    let mut read = WcEx::default();
    read.wr_id = wc.wr_id;
    read.status = wc.status;
    read.opcode = wc.opcode;
    read.vendor_err = wc.vendor_err;
    read.wc_flags = wc.wc_flags;
    read.byte_len = has(WcFields::BYTE_LEN).then_some(wc.byte_len);
    read.imm_data = has(WcFields::IMM).then_some(wc.imm_data);
    read.qp_num = has(WcFields::QP_NUM).then_some(wc.qp_num);
    read.src_qp = has(WcFields::SRC_QP).then_some(wc.src_qp);
    read.slid = has(WcFields::SLID).then_some(wc.slid.into());
    read.sl = has(WcFields::SL).then_some(wc.sl);
    read.dlid_path_bits = has(WcFields::DLID_PATH_BITS).then_some(wc.dlid_path_bits);
    read
}

/// Without the fields that mean nothing here (WC-01).
fn defined(mut wc: WcEx, qp_type: QpType) -> WcEx {
    let failed = wc.status != WcStatus::Success;
    let immediate = wc
        .wc_flags
        .intersects(WcFlags::WITH_IMM | WcFlags::WITH_INV);
    let datagram = qp_type == QpType::Ud && !failed;
    let only = |is: bool, field: Option<u32>| field.filter(|_| is);
    if failed {
        wc.opcode = verbs_api::WcOpcode::Recv;
        wc.wc_flags = WcFlags::empty();
    }
    wc.byte_len = only(!failed, wc.byte_len);
    wc.imm_data = wc.imm_data.filter(|_| immediate && !failed);
    wc.src_qp = only(datagram, wc.src_qp);
    wc.slid = only(datagram, wc.slid);
    wc.sl = wc.sl.filter(|_| datagram);
    wc.dlid_path_bits = wc.dlid_path_bits.filter(|_| datagram);
    wc
}

/// The same traffic, polled both ways.
fn polled_both_ways(
    setup: &Setup<'_>,
    qp_type: QpType,
    fields: WcFields,
    count: usize,
    traffic: impl Fn(&Pair<'_>) -> Result,
) -> Result {
    const RULE: &str = "CQ-CREATE-16";
    let init = CqInitEx::new(CqInit::new(64)).wc_flags(fields);
    let (pair, _) = pair_on(setup, qp_type, &init)?;
    let cq = pair.b.recv_cq;
    traffic(&pair)?;
    let mut got = read(setup, cq, count).rule(RULE)?;
    if got.iter().any(|wc| wc.status != WcStatus::Success) {
        setup.to_err(pair.a.qp)?;
        let (again, _) = pair_on(setup, qp_type, &init)?;
        traffic(&again)?;
        let mut polled = setup.poll(again.b.recv_cq, count)?;
        polled.iter_mut().for_each(|wc| wc.qp_num = pair.b.qp_num);
        return same(&mut got, &polled, qp_type, fields);
    }
    traffic(&pair)?;
    let polled = setup.poll(cq, count)?;
    same(&mut got, &polled, qp_type, fields)
}

fn same(read: &mut [WcEx], polled: &[Wc], qp_type: QpType, fields: WcFields) -> Result {
    read.iter_mut().for_each(|wc| *wc = defined(*wc, qp_type));
    let polled: Vec<_> = polled
        .iter()
        .map(|wc| defined(as_read(wc, fields), qp_type))
        .collect();
    check_eq!("CQ-CREATE-16", read, polled);
    Ok(())
}

scenario!(fields_are_those_of_poll_cq: "CQ-CREATE-16"; needs CQ_EX);
fn fields_are_those_of_poll_cq(setup: &Setup<'_>) -> Result {
    polled_both_ways(setup, QpType::Rc, WcFields::STANDARD, 3, |pair| {
        for (wr_id, length) in [(1, 8), (2, 0), (3, 1000)] {
            pair.b.recv(wr_id, 1000)?;
            pair.a.send(wr_id, length)?;
        }
        setup.successes(pair.a.send_cq, 3).map(drop)
    })?;
    // A message that is too long, and what is flushed behind it.
    polled_both_ways(setup, QpType::Rc, WcFields::STANDARD, 2, |pair| {
        pair.b.recv(1, 8)?;
        pair.b.recv(2, 8)?;
        pair.a.send(3, 9)
    })
}

scenario!(fields_of_immediate_data_are_those_of_poll_cq:
    "CQ-CREATE-16"; needs SEND_WITH_IMM, WRITE_WITH_IMM, CQ_EX);
fn fields_of_immediate_data_are_those_of_poll_cq(setup: &Setup<'_>) -> Result {
    polled_both_ways(setup, QpType::Rc, WcFields::STANDARD, 3, |pair| {
        for wr_id in 1..4 {
            pair.b.recv(wr_id, 64)?;
        }
        pair.a.send_imm(1, 8, [1, 2, 3, 4])?;
        pair.a.write_imm(2, 16, [0xff, 0, 0, 0xfe])?;
        pair.a.send(3, 24)?;
        setup.successes(pair.a.send_cq, 3).map(drop)
    })
}

scenario!(fields_of_datagrams_are_those_of_poll_cq:
    "CQ-CREATE-16"; needs UD, SEND_WITH_IMM, WRITE_WITH_IMM, CQ_EX);
fn fields_of_datagrams_are_those_of_poll_cq(setup: &Setup<'_>) -> Result {
    polled_both_ways(setup, QpType::Ud, WcFields::STANDARD, 2, |pair| {
        for wr_id in 1..3 {
            pair.b.recv(wr_id, 64)?;
        }
        pair.a.send(1, 8)?;
        pair.a.send_imm(2, 16, [4, 3, 2, 1])?;
        setup.successes(pair.a.send_cq, 2).map(drop)
    })
}

scenario!(only_fields_that_were_asked_for_are_given: "CQ-CREATE-16"; needs CQ_EX);
fn only_fields_that_were_asked_for_are_given(setup: &Setup<'_>) -> Result {
    let each = WcFields::STANDARD
        .iter()
        .filter(|field| field.bits().is_power_of_two());
    for fields in each.chain([WcFields::empty(), WcFields::BYTE_LEN | WcFields::QP_NUM]) {
        let result = polled_both_ways(setup, QpType::Rc, fields, 1, |pair| {
            pair.b.recv(1, 64)?;
            pair.a.send(1, 8)?;
            setup.successes(pair.a.send_cq, 1).map(drop)
        });
        in_case(&format!("{fields:?}"), result)?;
    }
    Ok(())
}

scenario!(completion_has_the_time_when_it_was_added:
    "CQ-CREATE-16"; needs CQ_EX, LAB, WC_TIMESTAMP);
fn completion_has_the_time_when_it_was_added(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-16";
    const GAP: core::time::Duration = core::time::Duration::from_millis(5);
    let lab = setup.lab();
    let init = CqInitEx::new(CqInit::new(8)).wc_flags(WcFields::TIMESTAMPS);
    let (pair, _) = pair_on(setup, QpType::Rc, &init)?;
    let mut bounds = Vec::new();
    for wr_id in 0..3 {
        let before = lab.now();
        pair.deliver(wr_id..wr_id + 1)?;
        setup.settle()?;
        bounds.push(before..=lab.now());
        lab.advance(GAP)?;
    }
    let got = read(setup, pair.b.recv_cq, 3)?;
    let clock = setup.query_device_ex(setup.ctx_b())?;
    for (wc, bounds) in got.iter().zip(&bounds) {
        let (Some(ticks), Some(nanos)) = (wc.completion_ts, wc.completion_wallclock_ns) else {
            let seen = format!("{wc:?}");
            return Err(Failure::assertion("both times", seen)).rule(RULE);
        };
        let at = core::time::Duration::from_nanos(nanos);
        check!(RULE, bounds.contains(&at), "within {bounds:?}", "{at:?}");
        let of_ticks = u128::from(ticks) * 1_000_000 / u128::from(clock.hca_core_clock);
        check_eq!(
            RULE,
            of_ticks,
            u128::from(nanos),
            "the ticks in nanoseconds"
        );
        check_eq!(RULE, ticks & !clock.completion_timestamp_mask, 0);
    }
    Ok(())
}

scenario!(times_of_completions_are_those_of_the_clock:
    "CQ-CREATE-19"; needs CQ_EX, WC_TIMESTAMP, RT_VALUES);
fn times_of_completions_are_those_of_the_clock(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-19";
    let context = setup.ctx_b();
    let init = CqInitEx::new(CqInit::new(16)).wc_flags(WcFields::TIMESTAMPS);
    let (pair, _) = pair_on(setup, QpType::Rc, &init)?;
    let mask = setup.query_device_ex(context)?.completion_timestamp_mask;
    let clock = || Ok::<_, Failure>(setup.query_rt_values(context)?.raw_clock & mask);
    let mut last = clock()?;
    for round in 0..4 {
        pair.deliver(round * 3..round * 3 + 3)?;
        let got = read(setup, pair.b.recv_cq, 3)?;
        let now = clock()?;
        for wc in &got {
            let ticks = wc.completion_ts.unwrap_or_default();
            let expected = format!("from {last} to {now}");
            check!(RULE, (last..=now).contains(&ticks), expected, "{wc:?}");
            last = ticks;
        }
        last = now;
    }
    Ok(())
}

scenario!(overrun_is_ignored_or_the_flag_refused: "CQ-CREATE-14"; needs CQ_EX);
fn overrun_is_ignored_or_the_flag_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-14";
    for queue in Queue::BOTH {
        let context = match queue {
            Queue::Send => setup.ctx_a(),
            Queue::Recv => setup.ctx_b(),
        };
        let init = CqInitEx::new(CqInit::new(4)).flags(CqFlags::IGNORE_OVERRUN);
        let made = setup.create_cq_ex(context, &init);
        match setup.has(context, Capabilities::IGNORE_OVERRUN)? {
            Some(true) => {}
            Some(false) => {
                expect_err_among(made, &[ErrorKind::NotSupported, ErrorKind::Invalid], RULE)?;
                continue;
            }
            None => continue,
        }
        let small = SmallCq::on(setup, queue, made.rule(RULE)?)?;
        let size = small.cqe()?;
        for beyond in [1, 3, size, 2 * size + 1] {
            small.push_all(0..size + beyond)?;
            setup.settle()?;
            setup.no_async_event(context, RULE)?;
            check_eq!(RULE, setup.state(small.end.qp)?, QpState::Rts);
            // The oldest are lost.
            let got = wr_ids(&setup.successes(small.cq, size as usize).rule(RULE)?);
            check_eq!(RULE, got, (beyond..size + beyond).collect::<Vec<_>>());
            setup.no_completion(small.cq, RULE)?;
        }
        let after = setup.behavior()?.poll_after_overrun;
        let left = setup.start_poll(small.cq);
        let what = format!("the empty CQ, with {after:?}: {left:?}");
        in_case(&what, expect_err(left, ErrorKind::NotFound, RULE).map(drop))?;
    }
    Ok(())
}

scenario!(fields_that_there_are_not_are_refused: "CQ-CREATE-14"; needs CQ_EX; without RC);
fn fields_that_there_are_not_are_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-CREATE-14";
    let (context, before) = (setup.ctx_a(), setup.live()?);
    let kinds = [ErrorKind::NotSupported, ErrorKind::Invalid];
    for bit in [12, 31, 40, 63] {
        let fields = WcFields::STANDARD | WcFields::from_bits_retain(1 << bit);
        let init = CqInitEx::new(CqInit::new(4)).wc_flags(fields);
        let refused = expect_err_among(setup.create_cq_ex(context, &init), &kinds, RULE);
        in_case(&format!("{fields:?}"), refused.map(drop))?;
    }
    if setup.has(context, Capabilities::WC_TIMESTAMP)? == Some(false) {
        for field in WcFields::TIMESTAMPS.iter() {
            let init = CqInitEx::new(CqInit::new(4)).wc_flags(field);
            let refused = expect_err_among(setup.create_cq_ex(context, &init), &kinds, RULE);
            in_case(&format!("{field:?}"), refused.map(drop))?;
        }
    }
    setup.expect_live(before, RULE)?;
    Ok(())
}

scenario!(resize_keeps_completions_and_request:
    "CQ-RESIZE-32", "CQ-CREATE-15"; needs RESIZE_CQ, CQ_EX);
fn resize_keeps_completions_and_request(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-RESIZE-32";
    for flags in [CqFlags::empty(), CqFlags::SINGLE_THREADED] {
        let init = CqInitEx::new(CqInit::new(8)).flags(flags);
        let made = setup.create_cq_ex(setup.ctx_b(), &init);
        if matches!(&made, Err(error) if error.kind() == ErrorKind::NotSupported) {
            // The flag is the device's to have.
            check!(RULE, !flags.is_empty(), "a CQ", "{made:?}");
            continue;
        }
        let (pair, channel) = pair_on(setup, QpType::Rc, &init)?;
        let cq = pair.b.recv_cq;
        pair.deliver(0..6)?;
        setup.settle()?;
        // From the middle of the ring.
        check_eq!(RULE, wr_ids_of(setup, cq, 4)?, [0, 1, 2, 3]);
        pair.deliver(6..10)?;
        setup.settle()?;
        for size in [50, 6, 20] {
            match setup.resize_cq(cq, size) {
                Err(error) if error.kind() == ErrorKind::NotSupported => return Ok(()),
                result => result.rule(RULE)?,
            }
        }
        let got = numbers(&read(setup, cq, 6).rule(RULE)?);
        check_eq!(RULE, got, [4, 5, 6, 7, 8, 9]);
        setup.arm(cq, Arm::NEXT)?;
        setup.resize_cq(cq, 50).rule(RULE)?;
        setup.no_event(channel, RULE)?;
        pair.deliver(10..11)?;
        setup.expect_event(channel, cq, RULE)?;
        check_eq!(RULE, numbers(&read(setup, cq, 1)?), [10]);
    }
    Ok(())
}

scenario!(is_armed_as_any_cq: "CQ-ARM-18"; needs CQ_EX);
fn is_armed_as_any_cq(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-ARM-18";
    let (pair, channel) = pair_on(setup, QpType::Rc, &CqInitEx::new(CqInit::new(64)))?;
    let cq = pair.b.recv_cq;
    setup.arm(cq, Arm::NEXT).rule(RULE)?;
    setup.no_event(channel, RULE)?;
    pair.deliver(0..2)?;
    setup.expect_event(channel, cq, RULE)?;
    setup.no_event(channel, RULE)?;
    read(setup, cq, 2)?;
    setup.arm(cq, Arm::SOLICITED).rule(RULE)?;
    pair.deliver(2..3)?;
    setup.no_event(channel, RULE)?;
    check_eq!(RULE, numbers(&read(setup, cq, 1)?), [2]);
    Ok(())
}
