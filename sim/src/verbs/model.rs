//! Functions of a simulation for models of concurrent programs, in addition to verbs.

use verbs_api::lab::{Lab, TraceRecord};
use verbs_api::{Cause, CompChannel, ErrorKind, Result, Verb, Wait};

use super::sim::Sim;
use crate::device::{EventQueue, Refusal};
use crate::fabric::WaitFor;

impl Sim {
    /// The actions of each thread, in order. Recorded only if
    /// [`SimConfig::trace_threads`](crate::SimConfig::trace_threads) is on.
    pub fn thread_trace(&self) -> Vec<Step> {
        let Some(turns) = &self.runtime.turns else {
            return Vec::new();
        };
        let mut records = self.trace().into_iter();
        let turns = turns.0.lock();
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

    /// Adds a note to the actions of the calling thread, if they are recorded.
    pub fn note(&self, note: impl Into<String>) {
        if let Some(turns) = &self.runtime.turns {
            turns.push(0, Some(note.into()));
        }
    }

    /// Waits until more than `seen` events have been queued on a channel, and returns how many. A
    /// program that watches the channel's descriptor for edges (`EPOLLET`) waits for this. Pass 0
    /// in the first call, and the last result in each later one.
    ///
    /// # Errors
    /// `Invalid` for a stale handle; `Stalled` if nothing can bring an event any more.
    pub fn wait_for_edge(&self, channel: CompChannel, seen: u64) -> Result<u64> {
        let args = || format!("{channel}, edge after {seen} events");
        let (verb, wait, wait_for) = (Verb::ChannelFd, Wait::Forever, WaitFor::Edge(channel));
        self.wait(verb, channel, wait, wait_for, args, |node| {
            let of = EventQueue::Channel(channel);
            let (_, queued) = node.device.cqs.event_queue(&node.device.base, of)?;
            if queued > seen {
                return Ok(queued);
            }
            Err(Refusal::new(ErrorKind::WouldBlock, Cause::Unspecified))
        })
    }
}

/// An action of a thread: [`Sim::thread_trace`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Step {
    /// The thread's name; empty if it has none.
    pub thread: String,
    /// The action, or an effect of it.
    pub what: What,
}

/// An action of a thread, or an effect of it.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// An event at a device.
    Record(TraceRecord),
    /// A note of the thread: [`Sim::note`].
    Note(String),
}
