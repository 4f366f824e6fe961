//! The life of a request: where it is recorded, what changes it, when it ends.

use verbs_api::behavior::Check;
use verbs_api::{
    Arm, AsyncEventType, Context, Cq, CqInit, CqModeration, Element, ErrorKind, Handle, SendFlags,
    Wait,
};

use super::{BOTH, PLAIN, deliver, leave, reversed};
use crate::cq_ovr::impatient;
use crate::failure::{check, check_eq};
use crate::{OfRule, PairOptions, Result, Setup, expect_err};

scenario!(any_cq_can_be_armed: "CQ-ARM-23", "CQ-ARM-28");
fn any_cq_can_be_armed(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let shared = setup.end(
        setup.ctx_a(),
        PairOptions {
            one_cq: true,
            ..PairOptions::default()
        },
    )?;
    let without_qp = CqInit::new(1).channel(pair.b.channel);
    let without_qp = setup.create_cq(setup.ctx_b(), &without_qp)?;
    let in_use = [pair.a.send_cq, pair.b.recv_cq, shared.recv_cq];
    for arm in BOTH {
        for cq in in_use.into_iter().chain([without_qp]) {
            setup.arm(cq, arm).rule("CQ-ARM-23")?;
        }
        setup.no_event(pair.a.channel, "CQ-ARM-28")?;
        setup.no_event(pair.b.channel, "CQ-ARM-28")?;
        setup.no_event(shared.channel, "CQ-ARM-28")?;
    }

    let other = setup.rc_pair()?;
    leave(setup, &other, 0, PLAIN)?;
    for arm in BOTH {
        setup.arm(other.b.recv_cq, arm).rule("CQ-ARM-23")?;
    }
    Ok(())
}

scenario!(fresh_cq_takes_both_kinds_of_request: "CQ-ARM-20", "CQ-ARM-18", "CQ-ARM-28"; without RC);
fn fresh_cq_takes_both_kinds_of_request(setup: &Setup<'_>) -> Result {
    let channel = setup.create_comp_channel(setup.ctx_a())?;
    for arm in BOTH {
        let cq = setup.create_cq(setup.ctx_a(), &CqInit::new(1).channel(channel))?;
        setup.arm(cq, arm).rule(["CQ-ARM-20", "CQ-ARM-18"])?;
        setup.no_event(channel, "CQ-ARM-28")?;
    }
    Ok(())
}

scenario!(request_is_of_one_cq_only: "CQ-ARM-01");
fn request_is_of_one_cq_only(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    let flows = [(b.recv_cq, pair), (b.send_cq, reversed(&pair))];
    for (armed, other) in [(0, 1), (1, 0)] {
        let cq = flows[armed].0;
        setup.arm(cq, Arm::NEXT)?;
        deliver(setup, &flows[other].1, PLAIN)?;
        setup.no_event(b.channel, "CQ-ARM-01")?;
        deliver(setup, &flows[armed].1, PLAIN)?;
        setup.expect_event(b.channel, cq, "CQ-ARM-01")?;
        deliver(setup, &flows[other].1, PLAIN)?;
        setup.no_event(b.channel, "CQ-ARM-01")?;
    }
    Ok(())
}

scenario!(request_is_of_the_cq_and_not_of_its_qps: "CQ-ARM-52");
fn request_is_of_the_cq_and_not_of_its_qps(setup: &Setup<'_>) -> Result {
    let first = setup.rc_pair()?;
    let b = first.b;
    setup.arm(b.recv_cq, Arm::NEXT)?;
    let second = setup.second_pair(&first, PairOptions::default())?;
    deliver(setup, &second, PLAIN)?;
    setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-52")?;
    deliver(setup, &first, PLAIN)?;
    setup.no_event(b.channel, "CQ-ARM-52")?;

    setup.arm(b.recv_cq, Arm::NEXT)?;
    setup.destroy_qp(first.b.qp, setup.wait())?;
    setup.no_event(b.channel, "CQ-ARM-52")?;
    deliver(setup, &second, PLAIN)?;
    setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-52")?;
    Ok(())
}

scenario!(new_cq_is_unarmed: "CQ-ARM-35");
fn new_cq_is_unarmed(setup: &Setup<'_>) -> Result {
    let options = PairOptions::default();
    let a = setup.end(setup.ctx_a(), options)?;
    let channel = setup.create_comp_channel(setup.ctx_b())?;
    let on_channel = CqInit::new(16).channel(channel);
    let armed = setup.create_cq(setup.ctx_b(), &on_channel)?;
    setup.arm(armed, Arm::NEXT)?;
    let new = setup.create_cq(setup.ctx_b(), &on_channel)?;
    let b = setup.end_on(new, new, options)?;
    let pair = setup.connect(a, b, options)?;
    deliver(setup, &pair, PLAIN)?;
    deliver(setup, &pair, SendFlags::SOLICITED)?;
    b.recv(1, 8)?;
    setup.to_err(b.qp)?;
    setup.one(new)?;
    setup.no_event(channel, "CQ-ARM-35")
}

scenario!(request_is_one_shot: "CQ-ARM-17", "CQ-ARM-02", "CQ-ARM-27");
fn request_is_one_shot(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    for arm in BOTH {
        for _ in 0..2 {
            setup.arm(b.recv_cq, arm)?;
            setup.no_event(b.channel, "CQ-ARM-02")?;
            deliver(setup, &pair, SendFlags::SOLICITED)?;
            setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-17")?;
            for _ in 0..4 {
                deliver(setup, &pair, SendFlags::SOLICITED)?;
            }
            setup.no_event(b.channel, "CQ-ARM-27")?;
        }
    }
    Ok(())
}

scenario!(repeated_request_is_one_request: "CQ-ARM-12", "CQ-ARM-13");
fn repeated_request_is_one_request(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    for arm in BOTH {
        for n in 1..=5 {
            for _ in 0..n {
                setup.arm(b.recv_cq, arm)?;
            }
            deliver(setup, &pair, SendFlags::SOLICITED)?;
            setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-13")?;
            deliver(setup, &pair, SendFlags::SOLICITED)?;
            setup.no_event(b.channel, "CQ-ARM-12")?;
        }
    }
    Ok(())
}

scenario!(next_among_requests_takes_precedence_in_any_order:
    "CQ-ARM-16", "CQ-ARM-12", "CQ-ARM-14", "CQ-ARM-15");
fn next_among_requests_takes_precedence_in_any_order(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    for len in 1..=4 {
        for bits in 0..1 << len {
            let requests: Vec<_> = (0..len).map(|i| BOTH[bits >> i & 1]).collect();
            for arm in &requests {
                setup.arm(b.recv_cq, *arm)?;
            }
            deliver(setup, &pair, PLAIN)?;
            if requests.contains(&Arm::NEXT) {
                let other = match requests[0] {
                    Arm::SOLICITED => "CQ-ARM-14",
                    _ => "CQ-ARM-15",
                };
                setup.expect_event(b.channel, b.recv_cq, ["CQ-ARM-16", other])?;
            } else {
                setup.no_event(b.channel, "CQ-ARM-12")?;
                deliver(setup, &pair, SendFlags::SOLICITED)?;
                setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-12")?;
            }
            deliver(setup, &pair, SendFlags::SOLICITED)?;
            setup.no_event(b.channel, "CQ-ARM-16")?;
        }
    }
    Ok(())
}

scenario!(requests_and_receives_follow_the_table_in_any_order:
    "CQ-ARM-16", "CQ-ARM-17", "CQ-ARM-36", "CQ-ARM-06");
fn requests_and_receives_follow_the_table_in_any_order(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    let mut pending = None;
    for word in 0..4_usize.pow(3) {
        for letter in [word / 16, word / 4 % 4, word % 4] {
            if let Some(arm) = BOTH.get(letter) {
                setup.arm(b.recv_cq, *arm)?;
                if pending != Some(Arm::NEXT) {
                    pending = Some(*arm);
                }
                continue;
            }
            let flags = [PLAIN, SendFlags::SOLICITED][letter - 2];
            deliver(setup, &pair, flags)?;
            match pending {
                Some(Arm::NEXT) => {
                    setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-16")?;
                    pending = None;
                }
                Some(_) if flags == SendFlags::SOLICITED => {
                    setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-06")?;
                    pending = None;
                }
                Some(_) => setup.no_event(b.channel, "CQ-ARM-36")?,
                None => setup.no_event(b.channel, "CQ-ARM-17")?,
            }
        }
    }
    Ok(())
}

scenario!(firing_clears_the_kind_of_request: "CQ-ARM-36");
fn firing_clears_the_kind_of_request(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    setup.arm(b.recv_cq, Arm::NEXT)?;
    deliver(setup, &pair, PLAIN)?;
    setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-36")?;

    setup.arm(b.recv_cq, Arm::SOLICITED)?;
    deliver(setup, &pair, PLAIN)?;
    setup.no_event(b.channel, "CQ-ARM-36")?;
    deliver(setup, &pair, SendFlags::SOLICITED)?;
    setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-36")?;
    Ok(())
}

scenario!(every_argument_but_zero_means_solicited: "CQ-ARM-19", "CQ-ARM-05", "CQ-ARM-26");
fn every_argument_but_zero_means_solicited(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    for value in [1, 2, 3, 5, 0x100, 0x1_0000, -1, i32::MIN, i32::MAX] {
        setup.arm(b.recv_cq, Arm(value))?;
        deliver(setup, &pair, PLAIN)?;
        setup.no_event(b.channel, "CQ-ARM-19")?;
        deliver(setup, &pair, SendFlags::SOLICITED)?;
        setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-26")?;

        setup.arm(b.recv_cq, Arm(value))?;
        setup.arm(b.recv_cq, Arm(0))?;
        deliver(setup, &pair, PLAIN)?;
        setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-05")?;
    }
    Ok(())
}

scenario!(present_completions_satisfy_no_request: "CQ-ARM-03");
fn present_completions_satisfy_no_request(setup: &Setup<'_>) -> Result {
    for arm in BOTH {
        for present in [1, 3] {
            let pair = setup.rc_pair()?;
            let b = pair.b;
            for _ in 0..present {
                leave(setup, &pair, 0, SendFlags::SOLICITED)?;
            }
            setup.arm(b.recv_cq, arm)?;
            setup.no_event(b.channel, "CQ-ARM-03")?;
            setup.successes(b.recv_cq, present)?;
            setup.no_event(b.channel, "CQ-ARM-03")?;
            deliver(setup, &pair, SendFlags::SOLICITED)?;
            setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-03")?;
            setup.no_event(b.channel, "CQ-ARM-03")?;
        }
    }
    Ok(())
}

scenario!(present_solicited_receive_does_not_satisfy_a_new_request: "CQ-ARM-25", "CQ-ARM-03");
fn present_solicited_receive_does_not_satisfy_a_new_request(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    leave(setup, &pair, 0, SendFlags::SOLICITED)?;
    setup.arm(b.recv_cq, Arm::SOLICITED)?;
    setup.no_event(b.channel, ["CQ-ARM-25", "CQ-ARM-03"])?;
    b.recv(1, 8)?;
    pair.a.send(1, 8)?;
    setup.no_event(b.channel, "CQ-ARM-25")?;
    b.recv(2, 8)?;
    pair.a.send_solicited(2, 8)?;
    setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-25")?;
    setup.successes(b.recv_cq, 3)?;
    setup.no_event(b.channel, "CQ-ARM-25")
}

scenario!(request_beside_what_a_destroyed_qp_left_is_as_declared: "CQ-ARM-25");
/// A device that sees present completions sees those that are still there, and no others.
fn request_beside_what_a_destroyed_qp_left_is_as_declared(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-ARM-25";
    let declared = setup.behavior()?;
    let (Some(sees), Some(purges)) = (declared.arm_sees_unpolled, declared.cqe_purge) else {
        return Ok(());
    };
    let options = PairOptions::default();
    for (going, staying) in [(SendFlags::SOLICITED, PLAIN), (PLAIN, SendFlags::SOLICITED)] {
        let stays = setup.pair(options)?;
        let goes = setup.second_pair(&stays, options)?;
        leave(setup, &goes, 0, going)?;
        leave(setup, &stays, 0, staying)?;
        setup.destroy_qp(goes.b.qp, setup.wait())?;
        let b = stays.b;
        setup.arm(b.recv_cq, Arm::SOLICITED)?;
        if sees && (staying == SendFlags::SOLICITED || !purges) {
            setup.expect_event(b.channel, b.recv_cq, RULE)?;
        }
        setup.no_event(b.channel, RULE)?;
    }
    Ok(())
}

scenario!(destroying_an_armed_cq_cancels_its_request: "CQ-ARM-50", "CQ-ARM-35");
fn destroying_an_armed_cq_cancels_its_request(setup: &Setup<'_>) -> Result {
    let options = PairOptions::default();
    let channel = setup.create_comp_channel(setup.ctx_b())?;
    let on_channel = CqInit::new(16).channel(channel);
    for arm in BOTH {
        let armed = setup.create_cq(setup.ctx_b(), &on_channel)?;
        let idle = setup.end_on(armed, armed, options)?;
        setup.arm(armed, arm)?;
        setup.destroy_qp(idle.qp, setup.wait())?;
        setup.destroy_cq(armed, Wait::Poll).rule("CQ-ARM-50")?;

        let new = setup.create_cq(setup.ctx_b(), &on_channel)?;
        let a = setup.end(setup.ctx_a(), options)?;
        let b = setup.end_on(new, new, options)?;
        let pair = setup.connect(a, b, options)?;
        deliver(setup, &pair, SendFlags::SOLICITED)?;
        setup.no_event(channel, ["CQ-ARM-50", "CQ-ARM-35"])?;
        setup.arm(new, Arm::NEXT)?;
        deliver(setup, &pair, PLAIN)?;
        setup.expect_event(channel, new, "CQ-ARM-50")?;
    }
    setup.no_event(channel, "CQ-ARM-50")
}

scenario!(arming_without_a_channel_is_as_declared: "CQ-ARM-48");
fn arming_without_a_channel_is_as_declared(setup: &Setup<'_>) -> Result {
    let elsewhere = setup.create_comp_channel(setup.ctx_b())?;
    for arm in BOTH {
        let pair = setup.pair(PairOptions {
            channel: false,
            ..PairOptions::default()
        })?;
        let seen = match setup.req_notify_cq(pair.b.recv_cq, arm) {
            Ok(()) => Check::Accepted,
            Err(_) => Check::Refused,
        };
        setup.as_declared("CQ-ARM-48", setup.behavior()?.arm_no_channel, seen)?;
        for _ in 0..2 {
            deliver(setup, &pair, SendFlags::SOLICITED).rule("CQ-ARM-48")?;
        }
        setup.no_event(elsewhere, "CQ-ARM-48")?;
    }
    Ok(())
}

scenario!(unread_events_are_kept_apart_or_merged_as_declared: "CQ-ARM-49");
fn unread_events_are_kept_apart_or_merged_as_declared(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    let (x, y) = ((b.recv_cq, pair), (b.send_cq, reversed(&pair)));
    for (cq, flow) in [x, y, x] {
        setup.arm(cq, Arm::NEXT)?;
        deliver(setup, &flow, PLAIN)?;
    }
    let events = setup.cq_events(b.channel)?;
    let of: Vec<_> = events.iter().map(|event| event.cq).collect();
    let (apart, merged) = ([x.0, y.0, x.0], [x.0, y.0]);
    let good = of == apart || of == merged;
    check!(
        "CQ-ARM-49",
        good,
        format!("{apart:?} or {merged:?}"),
        "{of:?}"
    );
    let declared = setup.behavior()?.merge_unread_events;
    setup.as_declared("CQ-ARM-49", declared, of == merged)
}

scenario!(lost_completion_is_known_by_its_cq_error: "CQ-ARM-51", "CQ-OVR-01");
fn lost_completion_is_known_by_its_cq_error(setup: &Setup<'_>) -> Result {
    let pair = setup.pair(PairOptions {
        recv_cqe: 1,
        rc: impatient(),
        ..PairOptions::default()
    })?;
    let b = pair.b;
    for _ in 0..setup.query_cq(b.recv_cq)?.cqe {
        leave(setup, &pair, 0, PLAIN)?;
    }
    setup.arm(b.recv_cq, Arm::NEXT)?;
    // A device may report a completion that is already there.
    setup.cq_events(b.channel)?;
    b.recv(1, 8)?;
    pair.a.send(1, 8)?;
    const LOST: [&str; 2] = ["CQ-ARM-51", "CQ-OVR-01"];
    let error = setup.async_event(b.context).rule(LOST)?;
    check_eq!(LOST, error.event_type, AsyncEventType::CqErr);
    check_eq!(LOST, error.element, Element::Cq(b.recv_cq));
    let events = setup.cq_events(b.channel)?.len();
    check!("CQ-ARM-51", events <= 1, "at most one event", "{events}");
    setup.as_declared("CQ-ARM-51", setup.behavior()?.spurious_events, events == 1)
}

scenario!(arming_what_is_no_cq_is_refused: "CQ-ARM-21", "CQ-ARM-20"; hazards MAY_CRASH);
fn arming_what_is_no_cq_is_refused(setup: &Setup<'_>) -> Result {
    let init = CqInit::new(16);
    let stale = setup.create_cq(setup.ctx_b(), &init)?;
    setup.destroy_cq(stale, Wait::Poll)?;
    let pair = setup.rc_pair()?;
    let b = pair.b;
    let live = b.recv_cq;
    let name = &setup.devices()?[0].name;
    let forged = |context: Context| Cq::from_parts(context, live.index(), live.generation());
    let bad = [
        Cq::default(),
        stale,
        Cq::from_parts(live.context(), live.index(), live.generation() + 1),
        Cq::from_parts(live.context(), u32::MAX, 1),
        forged(setup.open_device(name)?),
        forged(Context::from_parts(u32::MAX, 1)),
        forged(Context::default()),
    ];
    for cq in bad {
        for arm in BOTH {
            let refused = setup.req_notify_cq(cq, arm);
            let error = expect_err(refused, ErrorKind::Invalid, "CQ-ARM-21")?;
            let raw = error.raw().unwrap_or(error.errno());
            check!("CQ-ARM-20", raw > 0, "a positive errno", "{raw}");
        }
    }
    deliver(setup, &pair, SendFlags::SOLICITED)?;
    setup.no_event(b.channel, "CQ-ARM-21")
}

scenario!(arming_works_or_says_that_it_is_not_supported: "CQ-ARM-54");
fn arming_works_or_says_that_it_is_not_supported(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let b = pair.b;
    for arm in BOTH {
        let armed = setup.req_notify_cq(b.recv_cq, arm);
        let works = armed.is_ok();
        if !works {
            expect_err(armed, ErrorKind::NotSupported, "CQ-ARM-54")?;
        }
        deliver(setup, &pair, SendFlags::SOLICITED)?;
        if works {
            setup.expect_event(b.channel, b.recv_cq, "CQ-ARM-54")?;
        }
    }
    Ok(())
}

scenario!(event_names_its_cq_and_context: "CQ-ARM-04");
fn event_names_its_cq_and_context(setup: &Setup<'_>) -> Result {
    let options = PairOptions::default();
    let channel = setup.create_comp_channel(setup.ctx_b())?;
    for cq_context in [0, 7, u64::MAX] {
        let init = CqInit::new(16).channel(channel).context(cq_context);
        let cq = setup.create_cq(setup.ctx_b(), &init)?;
        let a = setup.end(setup.ctx_a(), options)?;
        let b = setup.end_on(cq, cq, options)?;
        let pair = setup.connect(a, b, options)?;
        setup.arm(cq, Arm::NEXT)?;
        deliver(setup, &pair, PLAIN)?;
        let event = setup.event_and_ack(channel).rule("CQ-ARM-04")?;
        check_eq!("CQ-ARM-04", event.cq, cq);
        check_eq!("CQ-ARM-04", event.cq_context, cq_context);
    }
    Ok(())
}

scenario!(first_completion_makes_the_event_unless_moderation_says_otherwise:
    "CQ-ARM-26"; needs CQ_MODERATION);
/// Counting is up to `ibv_modify_cq` alone, and off until that is called.
fn first_completion_makes_the_event_unless_moderation_says_otherwise(setup: &Setup<'_>) -> Result {
    const RULE: &str = "CQ-ARM-26";
    let pair = setup.rc_pair()?;
    let b = pair.b;
    let max = setup.query_device_ex(b.context)?.cq_moderation;
    check!(
        RULE,
        max.cq_count >= 4 && max.cq_period > 0,
        "limits",
        "{max:?}"
    );
    let on = CqModeration { cq_count: 4, ..max };
    for (moderation, count) in [(None, 1), (Some(on), 4), (Some(CqModeration::default()), 1)] {
        if let Some(moderation) = moderation {
            setup.modify_cq(b.recv_cq, &moderation).rule(RULE)?;
        }
        setup.arm(b.recv_cq, Arm::NEXT)?;
        // All but the last, then the last: a period passes in some round trips.
        for wr_ids in [1..count, count..count + 1] {
            // Looked at without a wait.
            let event = setup.get_cq_event(b.channel, Wait::Poll);
            expect_err(event, ErrorKind::WouldBlock, RULE)?;
            pair.deliver(wr_ids)?;
        }
        setup.expect_event(b.channel, b.recv_cq, RULE)?;
        setup.successes(b.recv_cq, count as usize)?;
    }
    Ok(())
}
