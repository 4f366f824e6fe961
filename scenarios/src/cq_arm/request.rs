//! The life of a request: where it is recorded, what changes it, when it ends.

use verbs_api::behavior::Check;
use verbs_api::{
    Arm, AsyncEventType, Context, Cq, CqInit, CqModeration, Element, ErrorKind, Handle, SendFlags,
    Wait,
};

use super::{BOTH, PLAIN, deliver, leave, reversed};
use crate::cq_ovr::impatient;
use crate::failure::{check, check_eq};
use crate::{Bench, OfRule, PairOptions, Result, expect_err};

scenario!(any_cq_can_be_armed: "CQ-ARM-23", "CQ-ARM-28");
fn any_cq_can_be_armed(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let shared = bench.end(
        bench.ctx_a(),
        PairOptions {
            one_cq: true,
            ..PairOptions::default()
        },
    )?;
    let without_qp = CqInit::new(1).channel(pair.b.channel);
    let without_qp = bench.create_cq(bench.ctx_b(), &without_qp)?;
    let in_use = [pair.a.send_cq, pair.b.recv_cq, shared.recv_cq];
    for arm in BOTH {
        for cq in in_use.into_iter().chain([without_qp]) {
            bench.arm(cq, arm).rule("CQ-ARM-23")?;
        }
        bench.no_event(pair.a.channel, "CQ-ARM-28")?;
        bench.no_event(pair.b.channel, "CQ-ARM-28")?;
        bench.no_event(shared.channel, "CQ-ARM-28")?;
    }

    let other = bench.rc_pair()?;
    leave(bench, &other, 0, PLAIN)?;
    for arm in BOTH {
        bench.arm(other.b.recv_cq, arm).rule("CQ-ARM-23")?;
    }
    Ok(())
}

scenario!(fresh_cq_takes_both_kinds_of_request: "CQ-ARM-20", "CQ-ARM-18", "CQ-ARM-28");
fn fresh_cq_takes_both_kinds_of_request(bench: &Bench<'_>) -> Result {
    let channel = bench.create_comp_channel(bench.ctx_a())?;
    for arm in BOTH {
        let cq = bench.create_cq(bench.ctx_a(), &CqInit::new(1).channel(channel))?;
        bench.arm(cq, arm).rule(["CQ-ARM-20", "CQ-ARM-18"])?;
        bench.no_event(channel, "CQ-ARM-28")?;
    }
    Ok(())
}

scenario!(request_is_of_one_cq_only: "CQ-ARM-01");
fn request_is_of_one_cq_only(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let b = pair.b;
    let flows = [(b.recv_cq, pair), (b.send_cq, reversed(&pair))];
    for (armed, other) in [(0, 1), (1, 0)] {
        let cq = flows[armed].0;
        bench.arm(cq, Arm::NEXT)?;
        deliver(bench, &flows[other].1, PLAIN)?;
        bench.no_event(b.channel, "CQ-ARM-01")?;
        deliver(bench, &flows[armed].1, PLAIN)?;
        bench.expect_event(b.channel, cq, "CQ-ARM-01")?;
        deliver(bench, &flows[other].1, PLAIN)?;
        bench.no_event(b.channel, "CQ-ARM-01")?;
    }
    Ok(())
}

scenario!(request_is_of_the_cq_and_not_of_its_qps: "CQ-ARM-52");
fn request_is_of_the_cq_and_not_of_its_qps(bench: &Bench<'_>) -> Result {
    let first = bench.rc_pair()?;
    let b = first.b;
    bench.arm(b.recv_cq, Arm::NEXT)?;
    let second = bench.second_pair(&first, PairOptions::default())?;
    deliver(bench, &second, PLAIN)?;
    bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-52")?;
    deliver(bench, &first, PLAIN)?;
    bench.no_event(b.channel, "CQ-ARM-52")?;

    bench.arm(b.recv_cq, Arm::NEXT)?;
    bench.destroy_qp(first.b.qp, bench.wait())?;
    bench.no_event(b.channel, "CQ-ARM-52")?;
    deliver(bench, &second, PLAIN)?;
    bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-52")?;
    Ok(())
}

scenario!(new_cq_is_unarmed: "CQ-ARM-35");
fn new_cq_is_unarmed(bench: &Bench<'_>) -> Result {
    let options = PairOptions::default();
    let a = bench.end(bench.ctx_a(), options)?;
    let channel = bench.create_comp_channel(bench.ctx_b())?;
    let on_channel = CqInit::new(16).channel(channel);
    let armed = bench.create_cq(bench.ctx_b(), &on_channel)?;
    bench.arm(armed, Arm::NEXT)?;
    let new = bench.create_cq(bench.ctx_b(), &on_channel)?;
    let b = bench.end_on(new, new, options)?;
    let pair = bench.connect(a, b, options)?;
    deliver(bench, &pair, PLAIN)?;
    deliver(bench, &pair, SendFlags::SOLICITED)?;
    b.recv(1, 8)?;
    bench.to_err(b.qp)?;
    bench.one(new)?;
    bench.no_event(channel, "CQ-ARM-35")
}

scenario!(request_is_one_shot: "CQ-ARM-17", "CQ-ARM-02", "CQ-ARM-27");
fn request_is_one_shot(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let b = pair.b;
    for arm in BOTH {
        for _ in 0..2 {
            bench.arm(b.recv_cq, arm)?;
            bench.no_event(b.channel, "CQ-ARM-02")?;
            deliver(bench, &pair, SendFlags::SOLICITED)?;
            bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-17")?;
            for _ in 0..4 {
                deliver(bench, &pair, SendFlags::SOLICITED)?;
            }
            bench.no_event(b.channel, "CQ-ARM-27")?;
        }
    }
    Ok(())
}

scenario!(repeated_request_is_one_request: "CQ-ARM-12", "CQ-ARM-13");
fn repeated_request_is_one_request(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let b = pair.b;
    for arm in BOTH {
        for n in 1..=5 {
            for _ in 0..n {
                bench.arm(b.recv_cq, arm)?;
            }
            deliver(bench, &pair, SendFlags::SOLICITED)?;
            bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-13")?;
            deliver(bench, &pair, SendFlags::SOLICITED)?;
            bench.no_event(b.channel, "CQ-ARM-12")?;
        }
    }
    Ok(())
}

scenario!(next_among_requests_takes_precedence_in_any_order:
    "CQ-ARM-16", "CQ-ARM-12", "CQ-ARM-14", "CQ-ARM-15");
fn next_among_requests_takes_precedence_in_any_order(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let b = pair.b;
    for len in 1..=4 {
        for bits in 0..1 << len {
            let requests: Vec<_> = (0..len).map(|i| BOTH[bits >> i & 1]).collect();
            for arm in &requests {
                bench.arm(b.recv_cq, *arm)?;
            }
            deliver(bench, &pair, PLAIN)?;
            if requests.contains(&Arm::NEXT) {
                let other = match requests[0] {
                    Arm::SOLICITED => "CQ-ARM-14",
                    _ => "CQ-ARM-15",
                };
                bench.expect_event(b.channel, b.recv_cq, ["CQ-ARM-16", other])?;
            } else {
                bench.no_event(b.channel, "CQ-ARM-12")?;
                deliver(bench, &pair, SendFlags::SOLICITED)?;
                bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-12")?;
            }
            deliver(bench, &pair, SendFlags::SOLICITED)?;
            bench.no_event(b.channel, "CQ-ARM-16")?;
        }
    }
    Ok(())
}

scenario!(requests_and_receives_follow_the_table_in_any_order:
    "CQ-ARM-16", "CQ-ARM-17", "CQ-ARM-36", "CQ-ARM-06");
fn requests_and_receives_follow_the_table_in_any_order(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let b = pair.b;
    let mut pending = None;
    for word in 0..4_usize.pow(3) {
        for letter in [word / 16, word / 4 % 4, word % 4] {
            if let Some(arm) = BOTH.get(letter) {
                bench.arm(b.recv_cq, *arm)?;
                if pending != Some(Arm::NEXT) {
                    pending = Some(*arm);
                }
                continue;
            }
            let flags = [PLAIN, SendFlags::SOLICITED][letter - 2];
            deliver(bench, &pair, flags)?;
            match pending {
                Some(Arm::NEXT) => {
                    bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-16")?;
                    pending = None;
                }
                Some(_) if flags == SendFlags::SOLICITED => {
                    bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-06")?;
                    pending = None;
                }
                Some(_) => bench.no_event(b.channel, "CQ-ARM-36")?,
                None => bench.no_event(b.channel, "CQ-ARM-17")?,
            }
        }
    }
    Ok(())
}

scenario!(firing_clears_the_kind_of_request: "CQ-ARM-36");
fn firing_clears_the_kind_of_request(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let b = pair.b;
    bench.arm(b.recv_cq, Arm::NEXT)?;
    deliver(bench, &pair, PLAIN)?;
    bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-36")?;

    bench.arm(b.recv_cq, Arm::SOLICITED)?;
    deliver(bench, &pair, PLAIN)?;
    bench.no_event(b.channel, "CQ-ARM-36")?;
    deliver(bench, &pair, SendFlags::SOLICITED)?;
    bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-36")?;
    Ok(())
}

scenario!(every_argument_but_zero_means_solicited: "CQ-ARM-19", "CQ-ARM-05", "CQ-ARM-26");
fn every_argument_but_zero_means_solicited(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let b = pair.b;
    for value in [1, 2, 3, 5, 0x100, 0x1_0000, -1, i32::MIN, i32::MAX] {
        bench.arm(b.recv_cq, Arm(value))?;
        deliver(bench, &pair, PLAIN)?;
        bench.no_event(b.channel, "CQ-ARM-19")?;
        deliver(bench, &pair, SendFlags::SOLICITED)?;
        bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-26")?;

        bench.arm(b.recv_cq, Arm(value))?;
        bench.arm(b.recv_cq, Arm(0))?;
        deliver(bench, &pair, PLAIN)?;
        bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-05")?;
    }
    Ok(())
}

scenario!(present_completions_satisfy_no_request: "CQ-ARM-03");
fn present_completions_satisfy_no_request(bench: &Bench<'_>) -> Result {
    for arm in BOTH {
        for present in [1, 3] {
            let pair = bench.rc_pair()?;
            let b = pair.b;
            for _ in 0..present {
                leave(bench, &pair, 0, SendFlags::SOLICITED)?;
            }
            bench.arm(b.recv_cq, arm)?;
            bench.no_event(b.channel, "CQ-ARM-03")?;
            bench.successes(b.recv_cq, present)?;
            bench.no_event(b.channel, "CQ-ARM-03")?;
            deliver(bench, &pair, SendFlags::SOLICITED)?;
            bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-03")?;
            bench.no_event(b.channel, "CQ-ARM-03")?;
        }
    }
    Ok(())
}

scenario!(present_solicited_receive_does_not_satisfy_a_new_request: "CQ-ARM-25", "CQ-ARM-03");
fn present_solicited_receive_does_not_satisfy_a_new_request(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let b = pair.b;
    leave(bench, &pair, 0, SendFlags::SOLICITED)?;
    bench.arm(b.recv_cq, Arm::SOLICITED)?;
    bench.no_event(b.channel, ["CQ-ARM-25", "CQ-ARM-03"])?;
    b.recv(1, 8)?;
    pair.a.send(1, 8)?;
    bench.no_event(b.channel, "CQ-ARM-25")?;
    b.recv(2, 8)?;
    pair.a.send_solicited(2, 8)?;
    bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-25")?;
    bench.successes(b.recv_cq, 3)?;
    bench.no_event(b.channel, "CQ-ARM-25")
}

scenario!(request_beside_what_a_destroyed_qp_left_is_as_declared: "CQ-ARM-25");
/// A device that sees present completions sees those that are still there, and no others.
fn request_beside_what_a_destroyed_qp_left_is_as_declared(bench: &Bench<'_>) -> Result {
    const RULE: &str = "CQ-ARM-25";
    let declared = bench.behavior()?;
    let (Some(sees), Some(purges)) = (declared.arm_sees_unpolled, declared.cqe_purge) else {
        return Ok(());
    };
    let options = PairOptions::default();
    for (going, staying) in [(SendFlags::SOLICITED, PLAIN), (PLAIN, SendFlags::SOLICITED)] {
        let stays = bench.pair(options)?;
        let goes = bench.second_pair(&stays, options)?;
        leave(bench, &goes, 0, going)?;
        leave(bench, &stays, 0, staying)?;
        bench.destroy_qp(goes.b.qp, bench.wait())?;
        let b = stays.b;
        bench.arm(b.recv_cq, Arm::SOLICITED)?;
        if sees && (staying == SendFlags::SOLICITED || !purges) {
            bench.expect_event(b.channel, b.recv_cq, RULE)?;
        }
        bench.no_event(b.channel, RULE)?;
    }
    Ok(())
}

scenario!(destroying_an_armed_cq_cancels_its_request: "CQ-ARM-50", "CQ-ARM-35");
fn destroying_an_armed_cq_cancels_its_request(bench: &Bench<'_>) -> Result {
    let options = PairOptions::default();
    let channel = bench.create_comp_channel(bench.ctx_b())?;
    let on_channel = CqInit::new(16).channel(channel);
    for arm in BOTH {
        let armed = bench.create_cq(bench.ctx_b(), &on_channel)?;
        let idle = bench.end_on(armed, armed, options)?;
        bench.arm(armed, arm)?;
        bench.destroy_qp(idle.qp, bench.wait())?;
        bench.destroy_cq(armed, Wait::Poll).rule("CQ-ARM-50")?;

        let new = bench.create_cq(bench.ctx_b(), &on_channel)?;
        let a = bench.end(bench.ctx_a(), options)?;
        let b = bench.end_on(new, new, options)?;
        let pair = bench.connect(a, b, options)?;
        deliver(bench, &pair, SendFlags::SOLICITED)?;
        bench.no_event(channel, ["CQ-ARM-50", "CQ-ARM-35"])?;
        bench.arm(new, Arm::NEXT)?;
        deliver(bench, &pair, PLAIN)?;
        bench.expect_event(channel, new, "CQ-ARM-50")?;
    }
    bench.no_event(channel, "CQ-ARM-50")
}

scenario!(arming_without_a_channel_is_as_declared: "CQ-ARM-48");
fn arming_without_a_channel_is_as_declared(bench: &Bench<'_>) -> Result {
    let elsewhere = bench.create_comp_channel(bench.ctx_b())?;
    for arm in BOTH {
        let pair = bench.pair(PairOptions {
            channel: false,
            ..PairOptions::default()
        })?;
        let seen = match bench.req_notify_cq(pair.b.recv_cq, arm) {
            Ok(()) => Check::Accepted,
            Err(_) => Check::Refused,
        };
        bench.as_declared("CQ-ARM-48", bench.behavior()?.arm_no_channel, seen)?;
        for _ in 0..2 {
            deliver(bench, &pair, SendFlags::SOLICITED).rule("CQ-ARM-48")?;
        }
        bench.no_event(elsewhere, "CQ-ARM-48")?;
    }
    Ok(())
}

scenario!(unread_events_are_kept_apart_or_merged_as_declared: "CQ-ARM-49");
fn unread_events_are_kept_apart_or_merged_as_declared(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let b = pair.b;
    let (x, y) = ((b.recv_cq, pair), (b.send_cq, reversed(&pair)));
    for (cq, flow) in [x, y, x] {
        bench.arm(cq, Arm::NEXT)?;
        deliver(bench, &flow, PLAIN)?;
    }
    let events = bench.cq_events(b.channel)?;
    let of: Vec<_> = events.iter().map(|event| event.cq).collect();
    let (apart, merged) = ([x.0, y.0, x.0], [x.0, y.0]);
    let good = of == apart || of == merged;
    check!(
        "CQ-ARM-49",
        good,
        format!("{apart:?} or {merged:?}"),
        "{of:?}"
    );
    let declared = bench.behavior()?.merge_unread_events;
    bench.as_declared("CQ-ARM-49", declared, of == merged)
}

scenario!(lost_completion_is_known_by_its_cq_error: "CQ-ARM-51", "CQ-OVR-01");
fn lost_completion_is_known_by_its_cq_error(bench: &Bench<'_>) -> Result {
    let pair = bench.pair(PairOptions {
        recv_cqe: 1,
        rc: impatient(),
        ..PairOptions::default()
    })?;
    let b = pair.b;
    for _ in 0..bench.query_cq(b.recv_cq)?.cqe {
        leave(bench, &pair, 0, PLAIN)?;
    }
    bench.arm(b.recv_cq, Arm::NEXT)?;
    // A device may report a completion that is already there.
    bench.cq_events(b.channel)?;
    b.recv(1, 8)?;
    pair.a.send(1, 8)?;
    const LOST: [&str; 2] = ["CQ-ARM-51", "CQ-OVR-01"];
    let error = bench.async_event(b.context).rule(LOST)?;
    check_eq!(LOST, error.event_type, AsyncEventType::CqErr);
    check_eq!(LOST, error.element, Element::Cq(b.recv_cq));
    let events = bench.cq_events(b.channel)?.len();
    check!("CQ-ARM-51", events <= 1, "at most one event", "{events}");
    bench.as_declared("CQ-ARM-51", bench.behavior()?.spurious_events, events == 1)
}

scenario!(arming_what_is_no_cq_is_refused: "CQ-ARM-21", "CQ-ARM-20"; hazards MAY_CRASH);
fn arming_what_is_no_cq_is_refused(bench: &Bench<'_>) -> Result {
    let init = CqInit::new(16);
    let stale = bench.create_cq(bench.ctx_b(), &init)?;
    bench.destroy_cq(stale, Wait::Poll)?;
    let pair = bench.rc_pair()?;
    let b = pair.b;
    let live = b.recv_cq;
    let name = &bench.devices()?[0].name;
    let forged = |context: Context| Cq::from_parts(context, live.index(), live.generation());
    let bad = [
        Cq::default(),
        stale,
        Cq::from_parts(live.context(), live.index(), live.generation() + 1),
        Cq::from_parts(live.context(), u32::MAX, 1),
        forged(bench.open_device(name)?),
        forged(Context::from_parts(u32::MAX, 1)),
        forged(Context::default()),
    ];
    for cq in bad {
        for arm in BOTH {
            let refused = bench.req_notify_cq(cq, arm);
            let error = expect_err(refused, ErrorKind::Invalid, "CQ-ARM-21")?;
            let raw = error.raw().unwrap_or(error.errno());
            check!("CQ-ARM-20", raw > 0, "a positive errno", "{raw}");
        }
    }
    deliver(bench, &pair, SendFlags::SOLICITED)?;
    bench.no_event(b.channel, "CQ-ARM-21")
}

scenario!(arming_works_or_says_that_it_is_not_supported: "CQ-ARM-54");
fn arming_works_or_says_that_it_is_not_supported(bench: &Bench<'_>) -> Result {
    let pair = bench.rc_pair()?;
    let b = pair.b;
    for arm in BOTH {
        let armed = bench.req_notify_cq(b.recv_cq, arm);
        let works = armed.is_ok();
        if !works {
            expect_err(armed, ErrorKind::NotSupported, "CQ-ARM-54")?;
        }
        deliver(bench, &pair, SendFlags::SOLICITED)?;
        if works {
            bench.expect_event(b.channel, b.recv_cq, "CQ-ARM-54")?;
        }
    }
    Ok(())
}

scenario!(event_names_its_cq_and_context: "CQ-ARM-04");
fn event_names_its_cq_and_context(bench: &Bench<'_>) -> Result {
    let options = PairOptions::default();
    let channel = bench.create_comp_channel(bench.ctx_b())?;
    for cq_context in [0, 7, u64::MAX] {
        let init = CqInit::new(16).channel(channel).context(cq_context);
        let cq = bench.create_cq(bench.ctx_b(), &init)?;
        let a = bench.end(bench.ctx_a(), options)?;
        let b = bench.end_on(cq, cq, options)?;
        let pair = bench.connect(a, b, options)?;
        bench.arm(cq, Arm::NEXT)?;
        deliver(bench, &pair, PLAIN)?;
        let event = bench.event_and_ack(channel).rule("CQ-ARM-04")?;
        check_eq!("CQ-ARM-04", event.cq, cq);
        check_eq!("CQ-ARM-04", event.cq_context, cq_context);
    }
    Ok(())
}

scenario!(first_completion_makes_the_event_unless_moderation_says_otherwise:
    "CQ-ARM-26"; needs CQ_MODERATION);
/// Counting is up to `ibv_modify_cq` alone, and off until that is called.
fn first_completion_makes_the_event_unless_moderation_says_otherwise(bench: &Bench<'_>) -> Result {
    const RULE: &str = "CQ-ARM-26";
    let pair = bench.rc_pair()?;
    let b = pair.b;
    let max = bench.query_device_ex(b.context)?.cq_moderation;
    check!(
        RULE,
        max.cq_count >= 4 && max.cq_period > 0,
        "limits",
        "{max:?}"
    );
    let on = CqModeration { cq_count: 4, ..max };
    for (moderation, count) in [(None, 1), (Some(on), 4), (Some(CqModeration::default()), 1)] {
        if let Some(moderation) = moderation {
            bench.modify_cq(b.recv_cq, &moderation).rule(RULE)?;
        }
        bench.arm(b.recv_cq, Arm::NEXT)?;
        for wr_id in 1..=count {
            // Looked at without a wait, in which the period would pass.
            let event = bench.get_cq_event(b.channel, Wait::Poll);
            expect_err(event, ErrorKind::WouldBlock, RULE)?;
            pair.deliver(wr_id..wr_id + 1)?;
        }
        bench.expect_event(b.channel, b.recv_cq, RULE)?;
        bench.successes(b.recv_cq, count as usize)?;
    }
    Ok(())
}
