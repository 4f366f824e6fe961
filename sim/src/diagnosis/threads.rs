//! What waiting threads wait for, and why it does not happen.

use core::time::Duration;

use verbs_api::lab::{ArmState, CqReport};
use verbs_api::site::Site;
use verbs_api::{CmChannel, CompChannel, Cq, Handle};

use super::of_node::cq_seen;
use super::outstanding::Outstanding;
use super::problem::{BusyPoll, Noted, Problem, Unacknowledged, Waits};
use super::report::finding;
use super::{Certainty, Class, Finding, counted};
use crate::cm;
use crate::device::node_of;
use crate::fabric::{Fabric, WaitFor, Waiting};
use crate::time::Time;
use crate::verbs::diagnose::{BlockedThread, Kind};

impl Fabric {
    /// Records a wait that nothing in progress can end.
    #[cold]
    pub(crate) fn note_endless(&mut self, waiting: &Waiting) {
        if let Some(Noted { problem, site, .. }) = self.noted_wait(waiting, true) {
            let node = self.node_of_wait(waiting);
            let journal = &mut self.node_mut(node).device.base.journal;
            journal.note(problem, site);
        }
    }

    /// The threads that wait now, except those whose event may never happen in a correct program.
    pub(super) fn waiting_threads(&self) -> Vec<Finding> {
        // Something may still be in progress that ends the wait.
        let found = |waiting| self.waiting_thread(waiting, false);
        self.waiting().filter_map(found).collect()
    }

    /// The waits and polls in which the program was stopped.
    pub(super) fn stopped_threads(&self, stuck: &[BlockedThread]) -> Vec<Finding> {
        let found = stuck.iter().filter_map(|stuck| match stuck.0 {
            Kind::Asleep { call, wait_for, or } => self.sleeping_thread(call, wait_for, or),
            Kind::Polls { cq, times, site } => self.polling_thread(cq, times, site),
        });
        found.chain(self.waits_for_handled_events()).collect()
    }

    fn waiting_thread(&self, waiting: &Waiting, stalled: bool) -> Option<Finding> {
        let noted = self.noted_wait(waiting, stalled)?;
        Some(finding(self.node_of_wait(waiting), noted))
    }

    fn sleeping_thread(
        &self,
        call: &'static str,
        wait_for: WaitFor,
        or: Option<&'static str>,
    ) -> Option<Finding> {
        // The call may be part of a verb that sleeps.
        let mut waits = self.waiting();
        if waits.any(|waiting| waiting.wait_for == wait_for) {
            return None;
        }
        let node = match wait_for {
            WaitFor::Event(channel) => node_of(channel.context()),
            WaitFor::CmEvent(channel) if self.is_idle(channel) => return None,
            _ => 0,
        };
        self.slots.get(node as usize)?;
        let silence = self.silence(wait_for, node, false)?;
        let other = or.map(|or| format!(", or {or}")).unwrap_or_default();
        let problem = Waits {
            call,
            waits_for: format!("{wait_for}{other}"),
            since: None,
            class: silence.class,
            why: silence.why,
            place: None,
            of: silence.of,
        };
        // For rdma_cm the place is that of an event that was read before.
        let site = silence.at.filter(|_| matches!(wait_for, WaitFor::Event(_)));
        let mut found = finding(node, Noted::at(problem, site));
        // Something else may end the wait.
        if or.is_some() {
            found.certainty = Certainty::Hint;
        }
        Some(found)
    }

    fn polling_thread(&self, cq: Cq, times: u64, site: Option<Site>) -> Option<Finding> {
        let node = node_of(cq.context());
        self.slots.get(node as usize)?;
        // The CQ may have been destroyed since it was polled.
        self.node(node).device.query_cq(cq).ok()?;
        let problem = BusyPoll {
            cq,
            times,
            outstanding: self.outstanding_in(node, cq).to_string(),
        };
        Some(finding(node, Noted::at(problem, site)))
    }

    /// The work that may still complete in a CQ.
    fn outstanding_in(&self, node: u32, cq: Cq) -> Outstanding {
        let (node, cq) = (self.node(node), cq.index());
        Outstanding::of(node, cq).with_unposted(node, cq, &self.unposted)
    }

    /// The threads that wait for events of rdma_cm, and the main thread if it waits for events that
    /// other threads may only handle. In a program that ends by itself such threads may be correct.
    fn waits_for_handled_events(&self) -> Vec<Finding> {
        let manager = &self.cm_bridge.manager;
        let waits = self.waiting();
        let waits = waits.filter_map(|waiting| match waiting.wait_for {
            WaitFor::CmEvent(channel) => {
                let is_stuck = waiting.is_main && cm::is_connected(manager, channel);
                (is_stuck || !self.is_idle(channel)).then_some((channel.index(), waiting))
            }
            WaitFor::AsyncEvent(context) if waiting.is_main => Some((context.index(), waiting)),
            _ => None,
        });
        let mut waits: Vec<_> = waits.collect();
        // The order of waiting threads depends on the machine, that of channels does not.
        waits.sort_by_key(|(index, waiting)| (waiting.place, *index));
        let found = |(_, waiting)| self.waiting_thread(waiting, true);
        waits.into_iter().filter_map(found).collect()
    }

    fn is_idle(&self, channel: CmChannel) -> bool {
        cm::is_idle(&self.cm_bridge.manager, channel)
    }

    /// The node of a wait. A wait for the connection manager belongs to the first one.
    fn node_of_wait(&self, waiting: &Waiting) -> u32 {
        let is_node = waiting.place < self.nodes();
        if is_node { waiting.place } else { 0 }
    }

    /// The finding of a waiting thread. `stalled` is whether nothing is in progress, so that it
    /// waits forever.
    fn noted_wait(&self, waiting: &Waiting, stalled: bool) -> Option<Noted> {
        let wait_for = waiting.wait_for;
        let [now, then] = [self.now(), waiting.since].map(Time::since_start);
        let since = now.saturating_sub(then);
        let is_for_a_turn = matches!(wait_for, WaitFor::Batch { .. } | WaitFor::Iteration(_));
        // A server may wait for connections as long as the program runs.
        let is_idle_server = matches!(wait_for, WaitFor::CmEvent(_)) && !stalled;
        if is_idle_server || is_for_a_turn && since < A_TURN {
            return None;
        }
        let silence = self.silence(wait_for, waiting.place, stalled)?;
        // The place is that of the destroy, or else where the CQ was armed.
        let (site, place) = match silence.of.as_deref() {
            None if is_for_a_turn => (waiting.site, silence.at.map(|site| ("at", site))),
            None if matches!(wait_for, WaitFor::CmEvent(_)) => {
                let place = silence.at.map(|site| ("ESTABLISHED was read at", site));
                (waiting.site, place)
            }
            None => (waiting.site, None),
            Some(Problem::Unacknowledged(_)) => {
                (waiting.site, silence.at.map(|site| ("read at", site)))
            }
            Some(_) => {
                let wait = waiting.site.map(|site| ("the wait is at", site));
                (silence.at.or(waiting.site), wait)
            }
        };
        let problem = Waits {
            call: waiting.call,
            waits_for: wait_for.to_string(),
            since: Some(since),
            class: silence.class,
            why: silence.why,
            place,
            of: silence.of,
        };
        Some(Noted::at(problem, site))
    }

    /// Why a wait does not end, unless that may be correct.
    fn silence(&self, wait_for: WaitFor, place: u32, stalled: bool) -> Option<Silence> {
        let begun = |at| Silence {
            at,
            ..Silence::new(Class::EndlessWait, "another thread has begun it")
        };
        Some(match wait_for {
            WaitFor::Event(channel) | WaitFor::Edge(channel) => {
                return self.no_event(place, channel, stalled);
            }
            // A thread that only handles these events may wait forever.
            WaitFor::AsyncEvent(_) if !stalled => return None,
            WaitFor::AsyncEvent(context) => {
                let why = self.node(place).no_async_event(context)?;
                Silence::new(Class::EndlessWait, why)
            }
            WaitFor::CmEvent(channel) => {
                let (why, at) = cm::no_event(&self.cm_bridge.manager, channel)?;
                Silence {
                    at,
                    ..Silence::new(Class::EndlessWait, why)
                }
            }
            WaitFor::CmAcknowledgement(id) => {
                let (events, last) = self.cm_bridge.manager.ids.unacknowledged(id)?;
                let problem = Unacknowledged {
                    of: id.to_string(),
                    last: last.map(|(event, _)| event.to_string()),
                    events,
                };
                let read_at = last.and_then(|(_, site)| site);
                Silence::of(Class::CmUnacknowledged, Noted::at(problem, read_at))
            }
            WaitFor::Acknowledgement(element) => {
                let found = self.node(place).unacknowledged_of(element)?;
                Silence::of(Class::Unacknowledged, found)
            }
            WaitFor::Batch { begun_at, .. } => begun(begun_at),
            WaitFor::Iteration(cq) => begun(self.node(place).device.cqs.iteration_begun_at(cq)),
        })
    }

    /// Why no event comes on a channel.
    fn no_event(&self, node: u32, channel: CompChannel, stalled: bool) -> Option<Silence> {
        let device = &self.node(node).device;
        let (queued, reports) = device.cqs.channel_report(channel);
        // The thread is about to wake up.
        if queued > 0 {
            return None;
        }
        let wake_up = |report: &CqReport| {
            let found = cq_seen(device, report.cq.index())?.asleep()?;
            let ends = || stalled || Outstanding::of(self.node(node), report.cq.index()).is_none();
            let class = match found.problem.class() {
                // No solicited completion can come.
                Class::SolicitedOnly if ends() => Class::SolicitedWait,
                class => class,
            };
            Some(Silence::of(class, found))
        };
        // A lost wake-up explains the wait best.
        if let Some(lost) = reports.iter().find_map(wake_up) {
            return Some(lost);
        }
        let mut armed = reports
            .iter()
            .filter(|report| report.armed != ArmState::Off);
        if let Some(first) = armed.next() {
            let others = match armed.count() {
                0 => String::new(),
                others => format!("; {} armed", counted(others, "more CQ is", "more CQs are")),
            };
            let cq = first.cq;
            let outstanding = self.outstanding_in(node, cq);
            let why = format!(
                "nothing has completed in {cq} since it was armed, and {outstanding}{others}"
            );
            return Some(Silence {
                at: cq_seen(device, cq.index()).and_then(|seen| seen.usage.armed_at),
                ..Silence::new(Class::EndlessWait, why)
            });
        }
        let not_again = |report: &CqReport| cq_seen(device, report.cq.index())?.not_armed_again();
        // The program took an event and did not arm again.
        if let Some(found) = reports.iter().find_map(not_again) {
            return Some(Silence::of(Class::NotArmed, found));
        }
        if reports.is_empty() {
            return Some(Silence::new(Class::EndlessWait, "no CQ has this channel"));
        }
        let names: Vec<_> = reports.iter().map(|report| report.cq.to_string()).collect();
        let why = format!("{} is not armed", names.join(", "));
        Some(Silence::new(Class::NotArmed, why))
    }
}

/// The time after which a wait for another thread's turn is reported.
const A_TURN: Duration = Duration::from_millis(100);

/// Why no event comes.
struct Silence {
    class: Class,
    why: String,
    /// The problem of an object, if that is the reason.
    of: Option<Box<Problem>>,
    /// Where the CQ was armed, the events were read, another thread started, or ESTABLISHED was
    /// read.
    at: Option<Site>,
}

impl Silence {
    fn new(class: Class, why: impl Into<String>) -> Self {
        Self {
            class,
            why: why.into(),
            of: None,
            at: None,
        }
    }

    /// The reason is a problem of an object.
    fn of(class: Class, noted: Noted) -> Self {
        Self {
            of: Some(Box::new(noted.problem)),
            at: noted.site,
            ..Self::new(class, "")
        }
    }
}
