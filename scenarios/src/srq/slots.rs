//! When the slot of a receive is free again: whatever becomes of its completion.

use verbs_api::behavior::SqRelease;
use verbs_api::{AsyncEventType, Cq, CqFlags, CqInit, CqInitEx, Element, QpCap, QpType, Wait, Wc};

use super::Shared;
use crate::cq_ovr::impatient;
use crate::failure::{check_eq, in_case};
use crate::{OfRule, Pair, PairOptions, Result, Setup, wr_ids};

const SLOT: &str = "SRQ-19";
const LOST: &str = "SRQ-20";

/// A pair on an SRQ with receives, and what is known of their slots.
struct Slots<'b> {
    setup: &'b Setup<'b>,
    shared: Shared<'b>,
    pair: Pair<'b>,
    cq: Cq,
    all: u64,
    /// A slot is free with the completion itself.
    at_completion: bool,
}

impl<'b> Slots<'b> {
    /// With `posted` receives, which complete in `cq`; none where the device does not tell when
    /// slots are free.
    fn new(
        setup: &'b Setup<'_>,
        posted: u64,
        cq: impl Fn(&Shared<'b>) -> Result<Cq>,
    ) -> Result<Option<Self>> {
        let Some(release) = setup.behavior()?.sq_release else {
            return Ok(None);
        };
        let shared = Shared::new(setup, 20)?;
        let cq = cq(&shared)?;
        let options = PairOptions {
            rc: impatient(),
            cap: QpCap {
                max_send_wr: 64,
                ..QpCap::default()
            },
            ..PairOptions::default()
        };
        let pair = shared.pair_on(shared.cq()?, cq, options)?;
        shared.post(0..posted)?;
        Ok(Some(Self {
            setup,
            shared,
            pair,
            cq,
            // Not all devices report the size of an SRQ.
            all: Shared::new(setup, 20)?.room()?,
            at_completion: release == SqRelease::Completion,
        }))
    }

    /// Lets `count` messages take receives, and waits until they have arrived.
    fn pass(&self, count: u64) -> Result {
        for wr_id in 0..count {
            self.pair.a.send(wr_id, 8)?;
        }
        self.setup.successes(self.pair.a.send_cq, count as usize)?;
        self.setup.settle()
    }

    /// Checks that `free` slots are free at this moment, and takes them.
    fn frees(&self, free: u64, rule: &'static str) -> Result {
        check_eq!(rule, self.shared.room()?, free, "the slots that are free");
        Ok(())
    }

    /// The number of slots that are free after `completed` receives, and the number that will be
    /// free later.
    fn now_or_later(&self, completed: u64) -> (u64, u64) {
        if self.at_completion {
            (completed, 0)
        } else {
            (0, completed)
        }
    }
}

scenario!(slot_is_free_when_its_completion_is_polled: "SRQ-19"; needs SRQ);
fn slot_is_free_when_its_completion_is_polled(setup: &Setup<'_>) -> Result {
    let Some(slots) = Slots::new(setup, 12, Shared::cq)? else {
        return Ok(());
    };
    slots.frees(slots.all - 12, SLOT)?;
    slots.pass(5)?;
    let (now, later) = slots.now_or_later(5);
    slots.frees(now, SLOT)?;
    for polled in [2, 3] {
        setup.successes(slots.cq, polled).rule(SLOT)?;
        slots.frees(polled as u64 * later / 5, SLOT)?;
    }
    Ok(())
}

scenario!(slot_is_free_when_an_iteration_comes_to_its_completion: "SRQ-19"; needs SRQ, CQ_EX);
fn slot_is_free_when_an_iteration_comes_to_its_completion(setup: &Setup<'_>) -> Result {
    let extended = |shared: &Shared<'_>| {
        let init = CqInitEx::new(CqInit::new(16));
        Ok(setup.create_cq_ex(shared.context, &init)?)
    };
    let Some(slots) = Slots::new(setup, 12, extended)? else {
        return Ok(());
    };
    slots.pass(3)?;
    let (now, later) = slots.now_or_later(3);
    slots.frees(slots.all - 12 + now, SLOT)?;
    setup.start_poll(slots.cq)?;
    slots.frees(later / 3, SLOT)?;
    setup.next_poll(slots.cq)?;
    slots.frees(later / 3, SLOT)?;
    setup.end_poll(slots.cq)?;
    slots.frees(0, SLOT)?;
    setup.successes(slots.cq, 1)?;
    slots.frees(later / 3, SLOT)
}

scenario!(slots_of_a_qp_that_goes_are_free_with_its_completions: "SRQ-19"; needs SRQ);
fn slots_of_a_qp_that_goes_are_free_with_its_completions(setup: &Setup<'_>) -> Result {
    slots_of_a_qp_that(setup, |slots| {
        Ok(setup.destroy_qp(slots.pair.b.qp, setup.wait())?)
    })
}

scenario!(slots_of_a_qp_that_is_reset_are_free_with_its_completions:
    "SRQ-19"; needs SRQ, MODIFY_CONNECT);
fn slots_of_a_qp_that_is_reset_are_free_with_its_completions(setup: &Setup<'_>) -> Result {
    slots_of_a_qp_that(setup, |slots| setup.to_reset(slots.pair.b.qp))
}

/// The completions are removed with the QP, or polled after it.
fn slots_of_a_qp_that(setup: &Setup<'_>, goes: impl Fn(&Slots<'_>) -> Result) -> Result {
    let Some(slots) = Slots::new(setup, 12, Shared::cq)? else {
        return Ok(());
    };
    slots.pass(5)?;
    let (now, later) = slots.now_or_later(5);
    slots.frees(slots.all - 12 + now, SLOT)?;
    goes(&slots)?;
    let (removed, left) = match setup.behavior()?.cqe_purge {
        Some(true) => (later, 0),
        _ => (0, later),
    };
    in_case("when it goes", slots.frees(removed, SLOT))?;
    setup.poll_all(slots.cq)?;
    in_case("after a poll", slots.frees(left, SLOT))
}

scenario!(slots_are_free_in_whatever_order_receives_complete: "SRQ-19"; needs SRQ);
fn slots_are_free_in_whatever_order_receives_complete(setup: &Setup<'_>) -> Result {
    in_any_order(setup, QpType::Rc)
}

scenario!(slots_are_free_in_whatever_order_datagrams_complete: "SRQ-19"; needs UD, SRQ);
fn slots_are_free_in_whatever_order_datagrams_complete(setup: &Setup<'_>) -> Result {
    in_any_order(setup, QpType::Ud)
}

/// The completion of one receive stays where it is, while the others complete on two QPs, are
/// polled in another order than that of their receives, and are posted again.
fn in_any_order(setup: &Setup<'_>, qp_type: QpType) -> Result {
    let all = Shared::new(setup, 8)?.room()?;
    for late in [0, 1, all - 1] {
        let shared = Shared::new(setup, 8)?;
        let pair = || shared.pair(PairOptions::of(qp_type));
        let (last, both) = (pair()?, [pair()?, pair()?]);
        let pass = |pair: &Pair<'_>| -> Result {
            pair.a.send(1, 8)?;
            setup.successes(pair.a.send_cq, 1).rule(SLOT).map(drop)
        };
        shared.post(0..all)?;
        let rest = all as usize - 1;
        for turn in 0..rest {
            if turn as u64 == late {
                pass(&last)?;
            }
            pass(&both[turn % 2])?;
        }
        if late == all - 1 {
            pass(&last)?;
        }
        let expected: Vec<_> = (0..all).filter(|wr_id| *wr_id != late).collect();
        for round in 0..4 {
            let mut got = Vec::new();
            for (pair, count) in [(&both[1], rest / 2), (&both[0], rest - rest / 2)] {
                let taken = wr_ids(&setup.successes(pair.b.recv_cq, count).rule(SLOT)?);
                let posted = shared.post(taken.iter().copied()).rule(SLOT);
                in_case(
                    &format!("receive {late} of {all} is late, round {round}"),
                    posted,
                )?;
                got.extend(taken);
            }
            got.sort_unstable();
            check_eq!(SLOT, got, expected, "the receives that were taken");
            (0..rest).try_for_each(|turn| pass(&both[turn % 2]))?;
        }
        let got = wr_ids(&setup.successes(last.b.recv_cq, 1).rule(SLOT)?);
        check_eq!(SLOT, got, [late], "the late one");
    }
    Ok(())
}

scenario!(slots_are_free_when_the_cq_is_destroyed: "SRQ-19"; needs SRQ);
fn slots_are_free_when_the_cq_is_destroyed(setup: &Setup<'_>) -> Result {
    let Some(slots) = Slots::new(setup, 12, Shared::cq)? else {
        return Ok(());
    };
    slots.pass(5)?;
    setup.destroy_qp(slots.pair.b.qp, setup.wait())?;
    setup.destroy_cq(slots.cq, Wait::Poll)?;
    slots.frees(slots.all - 12 + 5, SLOT)
}

scenario!(slot_of_a_completion_lost_to_an_overrun: "SRQ-20", "SRQ-19"; needs SRQ);
/// The QP takes no receive after the one whose completion is lost.
fn slot_of_a_completion_lost_to_an_overrun(setup: &Setup<'_>) -> Result {
    let small = |shared: &Shared<'_>| Ok(setup.create_cq(shared.context, &CqInit::new(3))?);
    let Some(slots) = Slots::new(setup, 16, small)? else {
        return Ok(());
    };
    let Some(kept) = lost_slots_kept(setup)? else {
        return Ok(());
    };
    for wr_id in 0..16 {
        slots.pair.a.send(wr_id, 8)?;
    }
    loop {
        let event = setup.async_event(slots.shared.context).rule(LOST)?;
        if event.event_type == AsyncEventType::CqErr && event.element == Element::Cq(slots.cq) {
            break;
        }
    }
    setup.settle()?;
    let before = slots.shared.room()?;
    let mut got = 0;
    while setup.poll_cq(slots.cq, &mut [Wc::default()]) == Ok(1) {
        got += 1;
    }
    let after = slots.shared.room()?;
    let (_, later) = slots.now_or_later(got);
    check_eq!(SLOT, after, later, "the slots that polls free");
    let free = slots.all - 16 + got + (1 - kept);
    check_eq!(LOST, before + after, free, "the slots that are free");
    Ok(())
}

/// Whether the slot of a lost completion stays taken, as a number.
fn lost_slots_kept(setup: &Setup<'_>) -> Result<Option<u64>> {
    let frees = setup.behavior()?.lost_frees_srq_slot;
    Ok(frees.map(|frees| u64::from(!frees)))
}

scenario!(slots_of_completions_that_are_overwritten: "SRQ-20", "SRQ-19"; needs SRQ, CQ_EX, IGNORE_OVERRUN);
fn slots_of_completions_that_are_overwritten(setup: &Setup<'_>) -> Result {
    let overwriting = |shared: &Shared<'_>| {
        let init = CqInitEx::new(CqInit::new(3)).flags(CqFlags::IGNORE_OVERRUN);
        Ok(setup.create_cq_ex(shared.context, &init)?)
    };
    let Some(slots) = Slots::new(setup, 16, overwriting)? else {
        return Ok(());
    };
    let Some(kept) = lost_slots_kept(setup)? else {
        return Ok(());
    };
    let cqe = u64::from(setup.query_cq(slots.cq)?.cqe);
    let lost = 9 - cqe;
    slots.pass(9)?;
    let (now, later) = slots.now_or_later(cqe);
    slots.frees(slots.all - 16 + now + lost * (1 - kept), LOST)?;
    let got = wr_ids(&setup.successes(slots.cq, cqe as usize)?);
    check_eq!(LOST, got, (lost..9).collect::<Vec<_>>());
    slots.frees(later, SLOT)
}
