//! What models of concurrent programs ask of a simulation, beyond verbs.

use std::sync::Arc;

use verbs_api::lab::{Lab, TraceRecord};
use verbs_api::{Cause, CompChannel, Error, ErrorKind, Result, Verb, Wait};

use super::sim::Sim;
use crate::fabric::WaitFor;
use crate::runtime::Runtime;

impl Sim {
    /// One more thread takes part in the simulation, until the value is dropped. To be called before
    /// the thread starts, and the value moved into it.
    ///
    /// As soon as every thread that takes part waits for an event or an acknowledgement, none can
    /// come any more: the simulation is closed as by [`Lab::close`], and each wait returns
    /// `LostWakeup` or `Stalled`. So a program that hangs is told where, whatever the order of its
    /// threads. A wait for a time ends by itself, and counts only under a model checker. A thread that
    /// waits for something else, such as another thread's end, should not count meanwhile. [`Mode::Inline`](crate::Mode::Inline) only; no effect in other modes.
    pub fn participate(&self) -> Participant {
        self.runtime.roster.enter();
        Participant {
            runtime: self.runtime.clone(),
        }
    }

    /// What each thread did, in order. It must have been asked for with
    /// [`SimConfig::trace_threads`](crate::SimConfig::trace_threads).
    pub fn thread_trace(&self) -> Vec<Step> {
        let Some(turns) = &self.runtime.turns else {
            return Vec::new();
        };
        let mut records = self.trace().into_iter();
        let turns = turns.lock();
        let mut steps = Vec::new();
        for (turn, entry) in turns.iter().enumerate() {
            if let Some(note) = &entry.note {
                let (thread, what) = (entry.thread.clone(), What::Note(note.clone()));
                steps.push(Step { thread, what });
                continue;
            }
            let next = turns[turn + 1..].iter().find(|next| next.note.is_none());
            let count = next.map_or(usize::MAX, |next| next.start - entry.start);
            steps.extend(records.by_ref().take(count).map(|record| Step {
                thread: entry.thread.clone(),
                what: What::Record(record),
            }));
        }
        steps
    }

    /// Adds a note to what this thread did, where that is traced.
    pub fn note(&self, note: impl Into<String>) {
        if let Some(turns) = &self.runtime.turns {
            turns.push(0, Some(note.into()));
        }
    }

    /// Waits until more than `seen` events have been queued on a channel, and says how many: what
    /// one who watches the channel's descriptor for edges (`EPOLLET`) waits for. The first call has
    /// `seen` 0, each later one what the last gave.
    ///
    /// # Errors
    /// `Invalid` for a stale handle; `Stalled` if nothing can bring an event any more.
    pub fn wait_for_edge(&self, channel: CompChannel, seen: u64) -> Result<u64> {
        let verb = Verb::ChannelFd;
        let args = || format!("{channel}, edge after {seen} events");
        let wait = (Wait::Forever, WaitFor::Edge(channel));
        self.wait(verb, channel, wait, args, |node| {
            let queued = node.device.cqs.events_queued(verb, channel)?;
            if queued > seen {
                return Ok(queued);
            }
            Err(Error::new(verb, ErrorKind::WouldBlock, Cause::Unspecified))
        })
    }
}

/// A thread that takes part in a simulation: [`Sim::participate`].
#[derive(Debug)]
#[must_use = "dropping it says that the thread takes no part any more"]
pub struct Participant {
    runtime: Arc<Runtime>,
}

impl Drop for Participant {
    fn drop(&mut self) {
        if self.runtime.roster.leave() {
            self.runtime.with(|fabric| self.runtime.close_idle(fabric));
        }
    }
}

/// One thing that a thread did: [`Sim::thread_trace`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Step {
    /// The thread's name; empty if it has none.
    pub thread: String,
    /// What it did, or caused.
    pub what: What,
}

/// What a thread did.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Something that happened at a device.
    Record(TraceRecord),
    /// Something it said itself: [`Sim::note`].
    Note(String),
}
