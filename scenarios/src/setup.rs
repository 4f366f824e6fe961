//! The setup a scenario works at: two open devices, and ways to wait that suit every backend.

use std::ops::Deref;
use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use verbs_api::behavior::{Declared, KnobValue, ShortDatagram};
use verbs_api::lab::{Lab, Live, PacketView};
use verbs_api::{
    Arm, Capabilities, CompChannel, Context, Cq, CqEvent, ErrorKind, Qp, QpAttrMask, QpModify,
    QpState, Verbs, Wait, Wc, WcStatus,
};

use crate::asked::Asked;
use crate::claim::{self, Claim};
use crate::failure::{Failure, OfRule, Result, check, check_eq};
use crate::known::unless_known;
use crate::place::Place;
use crate::port_events::PortEvents;
use crate::refusal::Refusal;

/// The context of a scenario: two open devices, A and B, and the verbs themselves, to which it
/// dereferences.
///
/// Bodies run unchanged in virtual time, with threads, and on real devices. So they assume nothing
/// about what has or has not happened right after a post, never sleep, and wait through the setup:
///
/// - *something happens*: [`poll`](Self::poll), [`one`](Self::one), [`drain`](Self::drain),
///   [`take_event`](Self::take_event), [`expect_event`](Self::expect_event),
///   [`async_event`](Self::async_event), [`until`](Self::until),
///   [`waits_until`](Self::waits_until);
/// - *nothing happens*: [`no_event`](Self::no_event), [`no_completion`](Self::no_completion),
///   [`no_async_event`](Self::no_async_event),
///   [`no_completion_meanwhile`](Self::no_completion_meanwhile). Exact on a simulator, a bounded
///   wait elsewhere;
/// - *set up*: [`rc_pair`](Self::rc_pair), [`pair`](Self::pair), [`end`](Self::end);
/// - *queue pairs*: [`modify`](Self::modify), [`to_err`](Self::to_err), [`state`](Self::state).
pub struct Setup<'v> {
    verbs: &'v dyn Verbs,
    a: Context,
    b: Context,
    needs: Capabilities,
    pub(crate) bounds: Bounds,
    place: Place,
    negative: AtomicU8,
    pub(crate) asked: Option<&'v Asked>,
    pub(crate) refused: Mutex<Option<Refusal>>,
    pub(crate) port_events: PortEvents,
}

/// The times that the setup waits on a device that cannot report when all is quiet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// For an expected event. Default: 10 s.
    pub positive: Duration,
    /// For the absence of events. Default: 100 ms.
    pub negative: Duration,
    /// From a send to its completion, which times of connections follow. Default: 0, which needs
    /// no regard.
    pub round_trip: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            positive: Duration::from_secs(10),
            negative: Duration::from_millis(100),
            round_trip: Duration::ZERO,
        }
    }
}

/// How sure it is that nothing happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Negative {
    /// Certain: nothing was in flight any more.
    Exact,
    /// Nothing happened within [`Bounds::negative`].
    Waited,
}

impl<'v> Setup<'v> {
    /// Opens the first two devices of `verbs` as A and B, or the only one twice. `needs` is what
    /// the scenario declares.
    pub fn new(
        verbs: &'v dyn Verbs,
        needs: Capabilities,
        bounds: Bounds,
        place: Place,
    ) -> Result<Self> {
        let devices = verbs.devices()?;
        let (Some(first), last) = (devices.first(), devices.get(1)) else {
            return Err(Failure::assertion("at least one device", "none"));
        };
        let a = verbs.open_device(&first.name)?;
        let b = verbs.open_device(&last.unwrap_or(first).name)?;
        Ok(Self {
            verbs,
            a,
            b,
            needs,
            bounds,
            place,
            negative: AtomicU8::new(0),
            asked: None,
            refused: Mutex::new(None),
            port_events: PortEvents::default(),
        })
    }

    /// On devices that were asked what they have, and answered this.
    #[must_use]
    pub fn asked(self, asked: &'v Asked) -> Self {
        let asked = Some(asked);
        Self { asked, ..self }
    }

    /// The ports that the setup uses.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The backend.
    pub fn verbs(&self) -> &'v dyn Verbs {
        self.verbs
    }

    /// The open device of side A.
    pub fn ctx_a(&self) -> Context {
        self.a
    }

    /// The open device of side B. May be the same device, but never the same context.
    pub fn ctx_b(&self) -> Context {
        self.b
    }

    /// The devices' choices where the rules leave one, as far as known.
    pub fn behavior(&self) -> Result<Declared> {
        Ok(self.verbs.behavior(self.a)?)
    }

    /// The test controls.
    ///
    /// # Panics
    /// If the scenario does not declare that it needs `LAB`.
    pub fn lab(&self) -> &'v dyn Lab {
        self.require(Capabilities::LAB);
        self.verbs.lab().expect("capability lab comes with a lab")
    }

    /// The number of objects on each side, if it is known.
    pub fn live(&self) -> Result<Option<[Live; 2]>> {
        match self.verbs.lab() {
            Some(lab) => Ok(Some([lab.live(self.a)?, lab.live(self.b)?])),
            None => Ok(None),
        }
    }

    /// The packets since the last call, or since the tap was set.
    pub fn packets(&self) -> Vec<PacketView> {
        let tapped = self.lab().tapped();
        tapped.into_iter().map(|tapped| tapped.packet).collect()
    }

    /// Checks that each side has as many objects as before, if the number is known.
    pub fn expect_live(&self, before: Option<[Live; 2]>, rule: impl Into<Claim>) -> Result {
        check_eq!(rule, self.live()?, before, "the live objects");
        Ok(())
    }

    /// How sure the scenario was that nothing happened, if it checked that.
    pub fn negative(&self) -> Option<Negative> {
        match self.negative.load(Ordering::Relaxed) {
            0 => None,
            EXACT => Some(Negative::Exact),
            _ => Some(Negative::Waited),
        }
    }

    // Something happens

    /// The next `n` completions of a CQ, oldest first, of whatever status.
    pub fn poll(&self, cq: Cq, n: usize) -> Result<Vec<Wc>> {
        let mut got = Vec::new();
        let mut deadline = self.deadline(EMPTY_POLLS);
        while got.len() < n {
            if poll_once(self.verbs, cq, n - got.len(), &mut got)? > 0 {
                deadline = self.deadline(EMPTY_POLLS);
            } else if !deadline.once_more()? {
                let expected = format!("{n} completions on {cq}");
                let seen = format!("completions: {}", list(&got));
                return Err(Failure::hang(expected, seen));
            }
        }
        Ok(got)
    }

    /// The next completion of a CQ, of whatever status.
    pub fn one(&self, cq: Cq) -> Result<Wc> {
        Ok(self.poll(cq, 1)?[0])
    }

    /// The next `n` completions of a CQ, all of which must be successes.
    pub fn successes(&self, cq: Cq, n: usize) -> Result<Vec<Wc>> {
        let got = self.poll(cq, n)?;
        if got.iter().all(|wc| wc.status == WcStatus::Success) {
            return Ok(got);
        }
        let expected = format!("{n} successes on {cq}");
        Err(Failure::assertion(expected, list(&got)))
    }

    /// The next completion of a CQ, which must have this status.
    pub fn one_with(&self, cq: Cq, status: WcStatus, rule: impl Into<Claim>) -> Result<Wc> {
        let rule = rule.into();
        let expected = format!("a completion with {status} on {cq}");
        let wc = self.one(cq).rule(rule)?;
        check!(rule, wc.status == status, expected, "{wc}");
        Ok(wc)
    }

    /// Polls until the CQ is empty, as an event handler does.
    pub fn drain(&self, cq: Cq) -> Result<Vec<Wc>> {
        let mut got = Vec::new();
        while poll_once(self.verbs, cq, 16, &mut got)? > 0 {}
        Ok(got)
    }

    /// All completions of a CQ, present or still to come: on a simulator until all is quiet,
    /// elsewhere until none has come for [`Bounds::negative`].
    pub fn poll_all(&self, cq: Cq) -> Result<Vec<Wc>> {
        self.settle()?;
        let mut got = self.drain(cq)?;
        if self.verbs.lab().is_some() {
            return Ok(got);
        }
        let mut quiet_since = Instant::now();
        while quiet_since.elapsed() < self.bounds.negative {
            if poll_once(self.verbs, cq, 16, &mut got)? > 0 {
                quiet_since = Instant::now();
            }
            thread::yield_now();
        }
        Ok(got)
    }

    /// The first completions of a CQ, present or still to come, if any come: as
    /// [`poll_all`](Self::poll_all).
    pub(crate) fn poll_any(&self, cq: Cq) -> Result<Vec<Wc>> {
        self.settle()?;
        let start = Instant::now();
        let mut got = self.drain(cq)?;
        while got.is_empty() && self.verbs.lab().is_none() && start.elapsed() < self.bounds.negative
        {
            thread::yield_now();
            got = self.drain(cq)?;
        }
        Ok(got)
    }

    /// Takes the next event of a channel and does not acknowledge it.
    pub fn take_event(&self, channel: CompChannel) -> Result<CqEvent> {
        Ok(self.verbs.get_cq_event(channel, self.wait())?)
    }

    /// Takes the next event of a channel, of whatever CQ, and acknowledges it.
    pub fn event_and_ack(&self, channel: CompChannel) -> Result<CqEvent> {
        let event = self.take_event(channel)?;
        self.verbs.ack_cq_events(event.cq, 1)?;
        Ok(event)
    }

    /// Takes the next event of a channel, which must be of `cq`, and acknowledges it.
    pub fn expect_event(&self, channel: CompChannel, cq: Cq, rule: impl Into<Claim>) -> Result {
        let rule = claim::record(rule);
        let expected = format!("an event of {cq} on {channel}");
        match self.event_and_ack(channel) {
            Ok(event) => check!(rule, event.cq == cq, expected, "an event of {}", event.cq),
            Err(failure) => {
                let failure = Failure {
                    expected,
                    ..failure
                };
                unless_known(failure.of_rule(rule))?;
            }
        }
        Ok(())
    }

    /// Takes and acknowledges all events of a channel, present or still to come: on a simulator
    /// until all is quiet, elsewhere until none has come for [`Bounds::negative`].
    pub fn cq_events(&self, channel: CompChannel) -> Result<Vec<CqEvent>> {
        let wait = self.quiet()?;
        let mut got = Vec::new();
        loop {
            match self.verbs.get_cq_event(channel, wait) {
                Ok(event) => {
                    self.verbs.ack_cq_events(event.cq, 1)?;
                    got.push(event);
                }
                Err(error) if is_nothing(&error) => return Ok(got),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Calls `attempt` until it returns a value: on a simulator until all is quiet, elsewhere for
    /// at most [`Bounds::positive`]. `what` names the thing to wait for.
    pub fn until<T>(&self, what: &str, attempt: impl Fn() -> Result<Option<T>>) -> Result<T> {
        let mut deadline = self.deadline(0);
        loop {
            if let Some(value) = attempt()? {
                return Ok(value);
            }
            if !deadline.once_more()? {
                return Err(Failure::hang(what, "it did not happen"));
            }
        }
    }

    /// Waits until a queue pair in SQD has no work under way. Devices refuse any change but that
    /// to ERR or RESET before that.
    pub fn until_sq_drained(&self, qp: Qp) -> Result {
        let drained =
            || Ok((!self.query_qp(qp, QpAttrMask::STATE)?.attr.sq_draining).then_some(()));
        self.until("sq_draining is 0", drained)
    }

    /// Makes a blocking call, in a thread of its own, and lets `release` end the wait.
    /// Returns what the call gives. The call must not return before `release`.
    pub fn waits_until<T: Send>(
        &self,
        rule: impl Into<Claim>,
        call: impl FnOnce() -> T + Send,
        release: impl FnOnce() -> Result,
    ) -> Result<T> {
        self.require(Capabilities::THREADS);
        let rule = rule.into();
        let pause = match self.verbs.lab() {
            Some(_) => IN_MEMORY,
            None => self.bounds.negative,
        };
        self.negative.fetch_max(WAITED, Ordering::Relaxed);
        thread::scope(|scope| {
            let call = scope.spawn(call);
            let end = Instant::now() + pause;
            while Instant::now() < end && !call.is_finished() {
                thread::yield_now();
            }
            check!(rule, !call.is_finished(), "the call waits", "it returned");
            let released = release();
            let woken = Instant::now();
            let value = call.join().unwrap_or_else(|panic| resume_unwind(panic));
            released?;
            // A call that is not woken returns only when its time is over.
            let soon = woken.elapsed() < self.bounds.positive / 2;
            check!(rule, soon, "the call is woken", "its time was over");
            Ok(value)
        })
    }

    /// On a simulator, completes all pending activity; elsewhere does nothing.
    pub fn settle(&self) -> Result {
        match self.verbs.lab() {
            Some(lab) => Ok(lab.settle()?),
            None => Ok(()),
        }
    }

    /// How long a verb may wait for an expected event: forever in virtual time, where the backend
    /// reports a stall, else [`Bounds::positive`].
    pub fn wait(&self) -> Wait {
        if self.stepped() {
            Wait::Forever
        } else {
            Wait::For(self.bounds.positive)
        }
    }

    // Nothing happens

    /// No event is on the channel, and none comes.
    pub fn no_event(&self, channel: CompChannel, rule: impl Into<Claim>) -> Result {
        let wait = self.quiet()?;
        let result = self.verbs.get_cq_event(channel, wait);
        let result = result.map(|event| {
            // Otherwise the CQ could not be destroyed afterwards.
            let _ = self.verbs.ack_cq_events(event.cq, 1);
            format!("an event of {}", event.cq)
        });
        nothing(result, format!("no event on {channel}"), rule)
    }

    /// No completion is in the CQ, and none comes.
    pub fn no_completion(&self, cq: Cq, rule: impl Into<Claim>) -> Result {
        let rule = rule.into();
        let end = match self.quiet()? {
            Wait::For(negative) => Instant::now().checked_add(negative),
            _ => None,
        };
        let mut got = Vec::new();
        loop {
            let expected = format!("no completion on {cq}");
            let none = poll_once(self.verbs, cq, 16, &mut got)? == 0;
            check!(rule, none, expected, "{}", list(&got));
            if end.is_none_or(|end| Instant::now() >= end) {
                return Ok(());
            }
            thread::yield_now();
        }
    }

    /// No completion is in the CQ after a while, though work may be under way that never ends by
    /// itself: retries without a limit.
    pub fn no_completion_meanwhile(&self, cq: Cq, rule: impl Into<Claim>) -> Result {
        let Some(lab) = self.verbs.lab() else {
            return self.no_completion(cq, rule);
        };
        lab.advance(QUIET)?;
        self.negative.fetch_max(EXACT, Ordering::Relaxed);
        let mut got = Vec::new();
        let none = poll_once(self.verbs, cq, 16, &mut got)? == 0;
        let expected = format!("no completion on {cq} within {QUIET:?}");
        check!(rule, none, expected, "{}", list(&got));
        Ok(())
    }

    // Choices, arming, queue pairs

    /// Checks that the device answers as it declares. `seen` is what it did; if it declares
    /// nothing, any answer passes.
    pub fn as_declared<T: KnobValue>(
        &self,
        rule: impl Into<Claim>,
        declared: Option<T>,
        seen: T,
    ) -> Result {
        if let Some(declared) = declared {
            let expected = format!("{}, as declared", declared.text());
            check!(rule, seen == declared, expected, "{}", seen.text());
        }
        Ok(())
    }

    /// Checks that an unreliable message that is too long for the receive has the declared outcome:
    /// it is dropped, or the receive fails.
    pub fn short_message(&self, recv_cq: Cq, rule: impl Into<Claim>) -> Result<ShortDatagram> {
        let rule = rule.into();
        let got = self.poll_all(recv_cq)?;
        let seen = match got[..] {
            [] => ShortDatagram::Drop,
            [wc, ..] if wc.status == WcStatus::LocQpOpErr => ShortDatagram::LocQpOpErr,
            _ => ShortDatagram::LocLenErr,
        };
        let good = got.is_empty() || got.len() == 1 && got[0].status == WcStatus::LocLenErr;
        check!(rule, good, "LOC_LEN_ERR or nothing", "{}", got[0]);
        self.as_declared(rule, self.behavior()?.ud_short_recv, seen)?;
        Ok(seen)
    }

    /// Asks for one notification.
    pub fn arm(&self, cq: Cq, arm: Arm) -> Result {
        Ok(self.verbs.req_notify_cq(cq, arm)?)
    }

    /// Changes a queue pair.
    pub fn modify(&self, qp: Qp, modify: QpModify) -> Result {
        Ok(self.verbs.modify_qp(qp, &modify.attr, modify.mask)?)
    }

    /// Brings a queue pair to the error state: what it holds is flushed.
    pub fn to_err(&self, qp: Qp) -> Result {
        self.modify(qp, QpModify::to(QpState::Err))
    }

    /// Brings a queue pair back to its beginning.
    pub fn to_reset(&self, qp: Qp) -> Result {
        self.modify(qp, QpModify::to(QpState::Reset))
    }

    /// The state of a queue pair.
    pub fn state(&self, qp: Qp) -> Result<QpState> {
        Ok(self.verbs.query_qp(qp, QpAttrMask::STATE)?.attr.qp_state)
    }

    /// Panics unless the scenario declares that it needs this: otherwise it would run on devices
    /// that lack it.
    pub(crate) fn require(&self, what: Capabilities) {
        assert!(
            self.needs.contains(what),
            "the scenario must say that it needs {}",
            what.difference(self.needs)
        );
    }

    /// Virtual time moves only when this thread lets it.
    fn stepped(&self) -> bool {
        self.verbs.lab().is_some() && !self.needs.contains(Capabilities::THREADS)
    }

    /// How long to wait for what must not come; after it the answer is known.
    pub(crate) fn quiet(&self) -> Result<Wait> {
        self.settle()?;
        let (wait, negative) = match self.verbs.lab() {
            Some(_) => (Wait::Poll, EXACT),
            None => (Wait::For(self.bounds.negative), WAITED),
        };
        self.negative.fetch_max(negative, Ordering::Relaxed);
        Ok(wait)
    }

    fn deadline(&self, free_tries: u32) -> Deadline<'_> {
        Deadline {
            lab: self.verbs.lab(),
            stepped: self.stepped(),
            free_tries,
            deadline: Instant::now() + self.bounds.positive,
        }
    }
}

impl<'v> Deref for Setup<'v> {
    type Target = dyn Verbs + 'v;

    fn deref(&self) -> &Self::Target {
        self.verbs
    }
}

/// Decides whether it makes sense to look once more.
struct Deadline<'v> {
    lab: Option<&'v dyn Lab>,
    stepped: bool,
    free_tries: u32,
    deadline: Instant,
}

impl Deadline<'_> {
    fn once_more(&mut self) -> Result<bool> {
        if self.stepped && self.free_tries > 0 {
            self.free_tries -= 1;
            return Ok(true);
        }
        if let Some(lab) = self.lab {
            lab.settle()?;
        }
        if self.stepped {
            // Nothing is under way any more: one last look.
            return Ok(self.lab.take().is_some());
        }
        thread::yield_now();
        Ok(Instant::now() < self.deadline)
    }
}

fn poll_once(verbs: &dyn Verbs, cq: Cq, n: usize, got: &mut Vec<Wc>) -> Result<usize> {
    let mut wc = vec![Wc::default(); n];
    let polled = verbs.poll_cq(cq, &mut wc)?;
    got.extend_from_slice(&wc[..polled]);
    Ok(polled)
}

pub(crate) fn nothing(
    result: Result<String, verbs_api::Error>,
    expected: String,
    rule: impl Into<Claim>,
) -> Result {
    let result = match result {
        Ok(seen) => Err(Failure::assertion(expected, seen)),
        Err(error) if is_nothing(&error) => Ok(()),
        Err(error) => Err(error.into()),
    };
    result.rule(rule).or_else(unless_known)
}

pub(crate) fn is_nothing(error: &verbs_api::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

fn list(completions: &[Wc]) -> String {
    if completions.is_empty() {
        return "none".to_string();
    }
    let each: Vec<_> = completions.iter().map(Wc::to_string).collect();
    format!("{}: {}", completions.len(), each.join("; "))
}

/// Lets other threads do what they do at once.
pub(crate) fn yield_to_others() {
    let end = Instant::now() + IN_MEMORY;
    while Instant::now() < end {
        thread::yield_now();
    }
}

/// In virtual time a poll of an empty CQ is at most one step of the simulation. This many polls are
/// tried before everything may happen, so that an endless retry elsewhere does not get in the way.
const EMPTY_POLLS: u32 = 1000;

/// Virtual time in which nothing may happen: much longer than the waits of a scenario.
const QUIET: Duration = Duration::from_millis(50);

/// Within this time a simulated device does what it does, if it does not wait.
const IN_MEMORY: Duration = Duration::from_millis(2);

const EXACT: u8 = 1;
const WAITED: u8 = 2;
