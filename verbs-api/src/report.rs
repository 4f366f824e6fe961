//! What a backend reports about a wait that cannot end.

use core::fmt;
use core::task::Waker;
use core::time::Duration;

use crate::event::Element;
use crate::handle::{CompChannel, Cq};
use crate::site::Site;

/// The pending request for a notification on a CQ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArmState {
    /// No request.
    #[default]
    Off,
    /// The next solicited or unsuccessful completion.
    Solicited,
    /// Any next completion.
    Next,
}

impl fmt::Display for ArmState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "not armed",
            Self::Solicited => "armed solicited",
            Self::Next => "armed next",
        })
    }
}

/// The state of a CQ. The default, for backends to fill in, is an empty one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CqReport {
    /// Which.
    pub cq: Cq,
    /// The pending request.
    pub armed: ArmState,
    /// Completions not polled yet.
    pub unpolled: u32,
    /// Entries.
    pub cqe: u32,
    /// It has overrun, and makes no completions or events any more.
    pub overrun: bool,
}

impl fmt::Display for CqReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is {}, holds {} of {}",
            self.cq, self.armed, self.unpolled, self.cqe
        )?;
        if self.overrun {
            f.write_str(", has overrun")?;
        }
        Ok(())
    }
}

/// A timer that still runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimerReport {
    /// The owner: a QP, or a CQ.
    pub of: Element,
    /// The purpose, such as `ack timeout`.
    pub what: &'static str,
    /// When it fires.
    pub at: Duration,
}

impl TimerReport {
    /// A timer, for backends.
    pub const fn new(of: Element, what: &'static str, at: Duration) -> Self {
        Self { of, what, at }
    }
}

/// A wait in virtual time that nothing in flight can end, or that ran into the horizon. The default
/// is there for backends to fill in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stall {
    /// The object of the wait, such as `an event on channel#0`.
    pub waiting_for: String,
    /// The virtual time.
    pub now: Duration,
    /// The channel that was waited on, if one was.
    pub channel: Option<CompChannel>,
    /// Events queued on that channel.
    pub queued_events: u32,
    /// The CQs concerned: those attached to the channel.
    pub cqs: Vec<CqReport>,
    /// Timers that still run: not empty if the horizon was the end.
    pub timers: Vec<TimerReport>,
    /// How each thread of the program waits, a line each, if the simulator knows them all.
    pub threads: Vec<String>,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "waiting for {} at {:?}: ", self.waiting_for, self.now)?;
        if self.timers.is_empty() {
            f.write_str("nothing is in flight that could end the wait")?;
        } else {
            f.write_str("the horizon is reached and timers still run")?;
        }
        if let Some(channel) = self.channel {
            write!(f, "; {channel} has {} events queued", self.queued_events)?;
            if self.cqs.is_empty() {
                f.write_str(" and no cq attached")?;
            }
        }
        for cq in &self.cqs {
            write!(f, "; {cq}")?;
        }
        for timer in &self.timers {
            write!(
                f,
                "; {} of {} fires at {:?}",
                timer.what, timer.of, timer.at
            )?;
        }
        write_lines(f, &self.threads)
    }
}

/// Each on a line of its own.
fn write_lines(f: &mut fmt::Formatter<'_>, lines: &[String]) -> fmt::Result {
    lines.iter().try_for_each(|line| write!(f, "\n  {line}"))
}

/// A wait that nothing ends: what it is for, where, and how its CQs are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitReport {
    /// What it is for, and the state of that.
    pub stall: Stall,
    /// The number of the node that has the object. `None` for events of rdma_cm.
    pub node: Option<u32>,
    /// Where the program waits, if it is known.
    pub site: Option<Site>,
}

impl WaitReport {
    /// A wait, for backends.
    pub const fn new(stall: Stall, node: Option<u32>, site: Option<Site>) -> Self {
        Self { stall, node, site }
    }
}

impl fmt::Display for WaitReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.stall.waiting_for)?;
        if let Some(node) = self.node {
            write!(f, " of sim{node}")?;
        }
        if let Some(site) = self.site {
            write!(f, " ({site})")?;
        }
        if self.stall.channel.is_some() {
            write!(f, ", {} queued", self.stall.queued_events)?;
        }
        self.stall.cqs.iter().try_for_each(|cq| write!(f, "; {cq}"))
    }
}

/// A wait of tasks for one source of events ([`Verbs::wake_on`](crate::Verbs::wake_on)).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskWait {
    /// What they wait for. The place is that of the last of them.
    pub wait: WaitReport,
    /// Wakes them.
    pub waker: Waker,
}

impl TaskWait {
    /// A wait, for backends.
    pub const fn new(wait: WaitReport, waker: Waker) -> Self {
        Self { wait, waker }
    }
}

/// A thread still waited on a channel when the test declared that no more work would come
/// ([`Lab::close`](crate::lab::Lab::close)), or when every thread of the program waited.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostWakeup {
    /// The channel.
    pub channel: CompChannel,
    /// The CQs attached to it. One that holds unpolled completions and is not armed is the usual
    /// culprit: it was armed too late, or not polled after arming.
    pub cqs: Vec<CqReport>,
    /// How each thread of the program waits, a line each, if the simulator knows them all.
    pub threads: Vec<String>,
}

impl LostWakeup {
    /// A thread that waits on `channel`, for backends.
    pub const fn new(channel: CompChannel, cqs: Vec<CqReport>) -> Self {
        let threads = Vec::new();
        Self {
            channel,
            cqs,
            threads,
        }
    }
}

impl fmt::Display for LostWakeup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without a completion to wake it for, the thread waits for work that is missing.
        let what = if self.cqs.iter().any(|cq| cq.unpolled > 0) {
            "lost wake-up"
        } else {
            "deadlock"
        };
        write!(
            f,
            "{what}: a thread waits on {} and no more work will come",
            self.channel
        )?;
        for cq in &self.cqs {
            write!(f, "; {cq}")?;
        }
        write_lines(f, &self.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_on_empty_queues_is_a_deadlock_not_a_lost_wake_up() {
        let said = |unpolled| {
            let cq = CqReport {
                unpolled,
                ..CqReport::default()
            };
            LostWakeup::new(CompChannel::default(), vec![cq]).to_string()
        };
        assert!(
            said(0).starts_with("deadlock: a thread waits on "),
            "{}",
            said(0)
        );
        assert!(
            said(1).starts_with("lost wake-up: a thread waits on "),
            "{}",
            said(1)
        );
    }
}
