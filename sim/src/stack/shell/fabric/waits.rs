//! The threads that wait, and what would end that.

use core::fmt;
use core::time::Duration;

use verbs_api::lab::{ArmState, CqReport};
use verbs_api::site::Site;
use verbs_api::table::{Id, Table};
use verbs_api::{CmChannel, CompChannel, Context, Cq, Handle, Object};

use super::Fabric;
use super::findings::finding;
use crate::class::{Certainty, Class};
use crate::cm;
use crate::device::{Device, node_of};
use crate::diagnosis::{Finding, Noted, PlainNames, Problem, counted};
use crate::stack::shell::diagnose::{Kind, Stuck};
use crate::stack::shell::node::Outstanding;
use crate::time::Time;

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::stack::shell) enum WaitFor {
    /// An event on a channel.
    Event(CompChannel),
    /// An edge of a channel's descriptor: another event than those seen.
    Edge(CompChannel),
    /// An asynchronous event.
    AsyncEvent(Context),
    /// An event of rdma_cm.
    CmEvent(CmChannel),
    /// Another thread to acknowledge events.
    Acknowledgement(Object),
    /// Another thread to end a batch on a queue pair of this number, which it began there.
    Batch { qp_num: u32, begun_at: Option<Site> },
    /// Another thread to end an iteration.
    Iteration(Cq),
}

/// A thread that waits.
#[derive(Clone, Copy, Debug)]
pub(in crate::stack::shell) struct Waiting {
    /// What it has called.
    pub(in crate::stack::shell) call: &'static str,
    pub(in crate::stack::shell) wait_for: WaitFor,
    /// The node, or the number behind all nodes for the connection manager.
    pub(in crate::stack::shell) place: u32,
    pub(in crate::stack::shell) since: Time,
    pub(in crate::stack::shell) site: Option<Site>,
}

/// The threads that sleep in a verb.
#[derive(Debug, Default)]
pub(in crate::stack::shell) struct Waits(Table<Waiting>);

impl Waits {
    pub(in crate::stack::shell) fn begin(&mut self, waiting: Waiting) -> Id {
        self.0.insert(|_| waiting)
    }

    pub(in crate::stack::shell) fn end(&mut self, wait: Id) {
        self.0.remove(wait.index);
    }
}

impl fmt::Display for WaitFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(channel) => write!(f, "an event on {channel}"),
            Self::Edge(channel) => write!(f, "an edge of {channel}"),
            Self::AsyncEvent(context) => write!(f, "an asynchronous event of {context}"),
            Self::CmEvent(channel) => write!(f, "an event on {channel}"),
            Self::Acknowledgement(object) => {
                write!(f, "another thread to acknowledge events of the {object}")
            }
            Self::Batch { qp_num, .. } => write!(f, "the end of a batch on qp {qp_num:#x}"),
            Self::Iteration(cq) => write!(f, "the end of an iteration over {cq}"),
        }
    }
}

/// A wait that nothing under way can end.
#[cold]
pub(in crate::stack::shell) fn note_endless(fabric: &mut Fabric, waiting: &Waiting) {
    if let Some(problem) = as_problem(fabric, waiting, true) {
        let node = place_of(fabric, waiting);
        fabric.note_mistake(node, problem);
    }
}

/// The threads that wait now, but for those that wait for what may never happen.
pub(super) fn findings(fabric: &Fabric) -> Vec<Finding> {
    let finding = |(_, waiting): (u32, &Waiting)| {
        let noted = Noted::at(as_problem(fabric, waiting, false)?, waiting.site);
        Some(finding(place_of(fabric, waiting), noted))
    };
    fabric.waits.0.iter().filter_map(finding).collect()
}

/// What threads do that the program is stopped in.
pub(super) fn of_stopped(fabric: &Fabric, stuck: &[Stuck]) -> Vec<Finding> {
    let found = stuck.iter().filter_map(|stuck| match stuck.0 {
        Kind::Asleep { call, wait_for, or } => of_sleeper(fabric, call, wait_for, or),
        Kind::Polls { cq, times, site } => of_poller(fabric, cq, times, site),
    });
    found.chain(for_cm_events(fabric)).collect()
}

fn of_sleeper(
    fabric: &Fabric,
    call: &'static str,
    wait_for: WaitFor,
    or: Option<&'static str>,
) -> Option<Finding> {
    // The call may be that of a verb which sleeps in it.
    let mut waits = fabric.waits.0.iter();
    if waits.any(|(_, waiting)| waiting.wait_for == wait_for) {
        return None;
    }
    let manager = &fabric.managed.manager;
    let (node, silence) = match wait_for {
        WaitFor::Event(channel) => {
            let node = node_of(channel.context());
            fabric.seats.get(node as usize)?;
            (node, no_event(fabric, node, channel, false)?)
        }
        WaitFor::CmEvent(channel) if !cm::is_idle(manager, channel) => {
            let why = cm::no_event(manager, channel)?;
            (0, Silence::new(Class::EndlessWait, why))
        }
        _ => return None,
    };
    let other = or.map(|or| format!(", or {or}")).unwrap_or_default();
    let problem = Problem::Waits {
        call,
        waits_for: format!("{wait_for}{other}"),
        since: None,
        class: silence.class,
        why: silence.why,
        place: None,
    };
    let mut found = finding(node, Noted::at(problem, silence.armed_at));
    // Something else may end it.
    if or.is_some() {
        found.certainty = Certainty::Hint;
    }
    Some(found)
}

fn of_poller(fabric: &Fabric, cq: Cq, times: u64, site: Option<Site>) -> Option<Finding> {
    let node = node_of(cq.context());
    fabric.seats.get(node as usize)?;
    fabric.node(node).device.cqs.query_cq(cq).ok()?;
    let problem = Problem::PolledInVain {
        cq,
        times,
        outstanding: outstanding(fabric, node, cq).to_string(),
    };
    Some(finding(node, Noted::at(problem, site)))
}

/// What may yet complete in a CQ.
fn outstanding(fabric: &Fabric, node: u32, cq: Cq) -> Outstanding {
    let (node, cq) = (fabric.node(node), cq.index());
    Outstanding::of(node, cq).with_unposted(node, cq, &fabric.unposted)
}

/// The threads that wait for events of rdma_cm. A program that ends by itself may have some that did so to the end.
fn for_cm_events(fabric: &Fabric) -> Vec<Finding> {
    let waits = fabric.waits.0.iter();
    let waits = waits.filter_map(|(_, waiting)| match waiting.wait_for {
        WaitFor::CmEvent(channel) if !cm::is_idle(&fabric.managed.manager, channel) => {
            Some((channel.index(), waiting))
        }
        _ => None,
    });
    let mut waits: Vec<_> = waits.collect();
    waits.sort_by_key(|(channel, _)| *channel);
    let found = waits.into_iter().filter_map(|(_, waiting)| {
        let noted = Noted::at(as_problem(fabric, waiting, true)?, waiting.site);
        Some(finding(place_of(fabric, waiting), noted))
    });
    found.collect()
}

fn place_of(fabric: &Fabric, waiting: &Waiting) -> u32 {
    match fabric.seats.get(waiting.place as usize) {
        Some(_) => waiting.place,
        None => 0,
    }
}

/// Threads take turns. So long none of them should take.
const A_TURN: Duration = Duration::from_millis(100);

/// `stalled` if nothing is under way, so that it waits for ever.
fn as_problem(fabric: &Fabric, waiting: &Waiting, stalled: bool) -> Option<Problem> {
    const UNREAD: &str = "an event was read and not acknowledged";
    let [now, then] = [fabric.now(), waiting.since].map(Time::since_start);
    let since = now.saturating_sub(then);
    let silence = match waiting.wait_for {
        WaitFor::Event(channel) | WaitFor::Edge(channel) => {
            no_event(fabric, waiting.place, channel, stalled)?
        }
        // A thread that does nothing else may wait for ever.
        WaitFor::AsyncEvent(_) => return None,
        WaitFor::CmEvent(_) if !stalled => return None,
        WaitFor::CmEvent(channel) => {
            let why = cm::no_event(&fabric.managed.manager, channel)?;
            Silence::new(Class::EndlessWait, why)
        }
        WaitFor::Acknowledgement(Object::CmId) => Silence::new(Class::CmUnacknowledged, UNREAD),
        WaitFor::Acknowledgement(_) => Silence::new(Class::Unacknowledged, UNREAD),
        WaitFor::Batch { .. } | WaitFor::Iteration(_) if since < A_TURN => return None,
        WaitFor::Batch { .. } | WaitFor::Iteration(_) => {
            Silence::new(Class::EndlessWait, "another thread has begun it")
        }
    };
    let begun_at = match waiting.wait_for {
        WaitFor::Batch { begun_at, .. } => begun_at,
        WaitFor::Iteration(cq) => {
            let cqs = &fabric.node(waiting.place).device.cqs;
            cqs.iteration_begun_at(cq)
        }
        _ => None,
    };
    Some(Problem::Waits {
        call: waiting.call,
        waits_for: waiting.wait_for.to_string(),
        since: Some(since),
        class: silence.class,
        why: silence.why,
        place: begun_at.map(|site| ("at", site)),
    })
}

/// Why no event comes.
struct Silence {
    class: Class,
    why: String,
    /// Where the CQ was armed that this speaks of.
    armed_at: Option<Site>,
}

impl Silence {
    fn new(class: Class, why: impl Into<String>) -> Self {
        let (why, armed_at) = (why.into(), None);
        Self {
            class,
            why,
            armed_at,
        }
    }
}

/// Why no event comes on a channel.
fn no_event(fabric: &Fabric, node: u32, channel: CompChannel, stalled: bool) -> Option<Silence> {
    let Device { base, cqs, .. } = &fabric.node(node).device;
    let (queued, reports) = cqs.channel_report(channel);
    // It is about to wake up.
    if queued > 0 {
        return None;
    }
    let wake_up = |report: &CqReport| {
        let found = cqs.left(base, report.cq.index())?.asleep()?;
        let class = match found.problem.class() {
            Class::SolicitedOnly if stalled => Class::SolicitedWait,
            class => class,
        };
        Some(Silence {
            class,
            why: found.problem.in_words(&PlainNames),
            armed_at: found.site,
        })
    };
    if let Some(lost) = reports.iter().find_map(wake_up) {
        return Some(lost);
    }
    let mut armed = reports
        .iter()
        .filter(|report| report.armed != ArmState::Off);
    if let Some(first) = armed.next() {
        let others = match armed.count() {
            0 => String::new(),
            others => format!(
                "; {} armed",
                counted(others as u64, "more CQ is", "more CQs are")
            ),
        };
        let cq = first.cq;
        let outstanding = outstanding(fabric, node, cq);
        return Some(Silence {
            class: Class::EndlessWait,
            why: format!(
                "nothing has completed in {cq} since it was armed, and {outstanding}{others}"
            ),
            armed_at: cqs.left(base, cq.index()).and_then(|left| left.armed_at()),
        });
    }
    Some(match reports.is_empty() {
        true => Silence::new(Class::EndlessWait, "no CQ has this channel"),
        false => {
            let names: Vec<_> = reports.iter().map(|report| report.cq.to_string()).collect();
            Silence::new(
                Class::NotArmed,
                format!("{} is not armed", names.join(", ")),
            )
        }
    })
}
