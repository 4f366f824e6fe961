//! Event loops, right ones and wrong ones: each with the rules it rests on, and the wrong ones with
//! the words by which the checker names the mistake.
//!
//! A group shows one matter. Its right loops hold in every interleaving; its wrong ones, in at
//! least one, lose a completion, hang, or do what verbs do not allow. They are written against the
//! raw verbs, as one would in C; `owned` has those of [`verbs_api::owned`]. The group `device`
//! checks the simulator itself.
//!
//! | group | matter |
//! |---|---|
//! | `re_poll` | polling again after arming |
//! | `drain` | polling until the CQ is empty |
//! | `handler` | arming after every event |
//! | `two_cqs` | send and receive CQ on one channel |
//! | `solicited` | arming for solicited completions |
//! | `ack` | acknowledging events |
//! | `threads` | two threads on one channel |
//! | `channel` | several CQs on one channel |
//! | `destroy` | destroying what another thread waits for |
//! | `resize` | resizing while another thread polls |
//! | `overrun` | a CQ that is too small |
//! | `edge` | edge-triggered readiness of a channel |
//! | `waker` | a future that waits for readiness |
//! | `buffer` | reading what was received |
//! | `owned` | the waits of the owning objects |
//! | `device` | the simulator itself |

mod acks;
mod arming;
mod capacity;
mod channels;
mod destroy;
mod device;
mod memory;
mod owned;
mod readiness;

use verbs_api::{Arm, Cq, CqEvent, Error, ErrorKind, Verbs, Wait, Wc};

use crate::{Harness, Outcome, Search};

/// A model of the library.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Model {
    /// Its group and, behind a dot, what the loop does.
    pub id: &'static str,
    /// The rules it rests on, the main one first.
    pub rules: &'static [&'static str],
    /// Whether it is right.
    pub verdict: Verdict,
    /// Threads, the body not counted.
    pub threads: u32,
    /// Completions.
    pub completions: u32,
    /// How it is searched.
    pub search: Search,
    /// The model.
    pub body: fn(&Harness) -> Outcome,
}

/// Whether a model is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds in every interleaving.
    Holds,
    /// It fails in some; these words are in what the checker says of the failure.
    Fails(&'static str),
}

impl Model {
    const fn holds(
        id: &'static str,
        rules: &'static [&'static str],
        (threads, completions): (u32, u32),
        body: fn(&Harness) -> Outcome,
    ) -> Self {
        Self {
            id,
            rules,
            verdict: Verdict::Holds,
            threads,
            completions,
            search: Search::new(),
            body,
        }
    }

    const fn fails(
        id: &'static str,
        rules: &'static [&'static str],
        says: &'static str,
        (threads, completions): (u32, u32),
        body: fn(&Harness) -> Outcome,
    ) -> Self {
        Self {
            verdict: Verdict::Fails(says),
            ..Self::holds(id, rules, (threads, completions), body)
        }
    }

    const fn search(self, search: Search) -> Self {
        Self { search, ..self }
    }

    /// The part of the id before the dot.
    pub fn group(&self) -> &'static str {
        self.id.split_once('.').map_or(self.id, |(group, _)| group)
    }
}

/// All models, group by group.
pub fn models() -> impl Iterator<Item = &'static Model> {
    let files: [&[Model]; 9] = [
        arming::MODELS,
        acks::MODELS,
        channels::MODELS,
        destroy::MODELS,
        capacity::MODELS,
        readiness::MODELS,
        memory::MODELS,
        owned::MODELS,
        device::MODELS,
    ];
    files.into_iter().flatten()
}

/// Completions of a CQ, at most four. Fewer than four: the CQ was emptied (CQ-POLL-02).
fn poll(harness: &Harness, cq: Cq) -> Result<usize, Error> {
    harness.sim().poll_cq(cq, &mut [Wc::default(); 4])
}

fn arm(harness: &Harness, cq: Cq) -> Result<(), Error> {
    harness.sim().req_notify_cq(cq, Arm::NEXT)
}

/// Waits for an event. `None`: no more can come, the end of a server's loop.
fn next_event(harness: &Harness) -> Result<Option<CqEvent>, Error> {
    match harness.sim().get_cq_event(harness.channel(), Wait::Forever) {
        Err(error) if error.kind() == ErrorKind::Stalled => Ok(None),
        result => result.map(Some),
    }
}

fn wait_event(harness: &Harness) -> Result<CqEvent, Error> {
    harness.sim().get_cq_event(harness.channel(), Wait::Forever)
}

fn ack(harness: &Harness, event: CqEvent) -> Result<(), Error> {
    harness.sim().ack_cq_events(event.cq, 1)
}

/// The right loop, until `left` completions have come.
fn consume(harness: &Harness, cq: Cq, mut left: usize) -> Result<(), Error> {
    loop {
        arm(harness, cq)?;
        left -= poll(harness, cq)?;
        if left == 0 {
            return Ok(());
        }
        let event = wait_event(harness)?;
        ack(harness, event)?;
    }
}
