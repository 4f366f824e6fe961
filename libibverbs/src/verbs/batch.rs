//! Batches of sends (`ibv_wr_*`), which are posted as a whole or not at all.
//!
//! From `ibv_wr_start` to its end a batch belongs to the thread that started it. Another thread
//! that starts one waits; its other calls are refused. An invalid request is remembered, and fails
//! the batch at its completion. So does a second start by the same thread, which would have to wait
//! for itself. Destroying the queue pair ends the batch and wakes the threads that wait for it.

use std::ops::Range;

use smallvec::SmallVec;
use verbs_abi::ibv_qp;
use verbs_api::site::Site;
use verbs_api::sync::{Condvar, Mutex};
use verbs_api::{Dest, Handle, SendFlags, SendOp, SendOps, SendWr, Sge};
use verbs_sim::{Class, Misuse, Unposted, WaitGuard};

use super::exclusive::this_thread;
use crate::c::{Refusal, Result, caller};
use crate::engine::sim;

/// The contents of a batch. It is empty between batches.
#[derive(Default)]
pub(super) struct Building {
    pub(super) sends: Vec<Send>,
    pub(super) entries: Vec<Sge>,
    pub(super) bytes: Vec<u8>,
    refused: Option<Refusal>,
}

/// A send of a batch.
pub(super) struct Send {
    pub(super) wr_id: u64,
    pub(super) op: SendOp,
    pub(super) flags: SendFlags,
    pub(super) dest: Dest,
    /// Its places among the entries of the batch.
    pub(super) list: Range<usize>,
    /// Its places among the bytes of the batch, if it has inline data.
    pub(super) inline: Option<Range<usize>>,
}

impl Building {
    /// The requests as the engine takes them.
    pub(super) fn list(&self) -> SmallVec<[SendWr<'_>; 16]> {
        let made = |send: &Send| {
            let list = &self.entries[send.list.clone()];
            let mut made = SendWr::new(send.wr_id, send.op, list);
            (made.flags, made.dest) = (send.flags, send.dest);
            made.inline_data = send.inline.clone().map(|range| &self.bytes[range]);
            made
        };
        self.sends.iter().map(made).collect()
    }

    fn clear(&mut self) {
        self.sends.clear();
        self.entries.clear();
        self.bytes.clear();
        self.refused = None;
    }
}

/// The batch of a queue pair, which may be empty.
pub(super) struct Batch {
    /// The operations that the queue pair was made with.
    pub(super) send_ops: SendOps,
    state: Mutex<State>,
    /// Notified when no thread builds any more.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    turn: Turn,
    /// The call that began it, if places are named.
    begun_at: Option<Site>,
    building: Building,
}

/// The owner of the batch.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    Free,
    Thread(libc::pthread_t),
    /// The queue pair was destroyed.
    Over,
}

/// A call of a program on a queue pair.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) qp: verbs_api::Qp,
    pub(super) qp_num: u32,
    /// The pointer of the program.
    pub(super) seen: *mut ibv_qp,
}

impl Batch {
    /// An empty batch, of a queue pair that takes these operations.
    pub(super) fn new(send_ops: SendOps) -> Self {
        Self {
            send_ops,
            state: Mutex::default(),
            ended: Condvar::default(),
        }
    }

    pub(super) fn start(&self, call: Call) -> Result<()> {
        let this = Turn::this_thread();
        let mut state = self.state.lock();
        loop {
            match state.turn {
                Turn::Free => {
                    state.turn = this;
                    state.begun_at = caller::is_named().then(Site::of_program);
                    return Ok(());
                }
                turn if turn == this => {
                    state.note_own(call);
                    let noted = || Refusal::expected(libc::EINVAL);
                    state.building.refused.get_or_insert_with(noted);
                    return Ok(());
                }
                Turn::Thread(_) => {
                    let _sleeping = call.sleeps(state.begun_at);
                    self.ended.wait(&mut state);
                }
                // The queue pair was destroyed while this thread waited.
                Turn::Over => return Err(state.misplaced(call)),
            }
        }
    }

    /// Calls `work` with the batch that this thread has started.
    pub(super) fn with(
        &self,
        call: Call,
        work: impl FnOnce(&mut Building) -> Result<()>,
    ) -> Result<()> {
        let state = &mut *self.state.lock();
        state.check(call)?;
        if let Err(mut refusal) = work(&mut state.building) {
            // The next calls return nothing and may be in another place of the program, so this
            // call is noted now.
            refusal.note(call.name, call.seen);
            state.building.refused.get_or_insert(refusal);
        }
        Ok(())
    }

    /// Ends the batch that this thread has started. `post` posts its contents.
    pub(super) fn complete(
        &self,
        call: Call,
        post: impl FnOnce(&Building) -> Result<()>,
    ) -> Result<()> {
        let state = &mut *self.state.lock();
        state.check(call)?;
        let posted = match state.building.refused.take() {
            Some(refusal) => Err(refusal),
            None => post(&state.building),
        };
        // The batch ends, whether it was posted or not.
        state.building.clear();
        state.turn = Turn::Free;
        self.ended.notify_all();
        posted
    }

    /// Another call posts to the queue pair. Within a batch of the same thread that is a mistake: a
    /// driver would wait for its own lock.
    #[inline]
    pub(super) fn passed_over(&self, call: Call) {
        if caller::is_named() {
            let state = self.state.lock();
            // Another thread's batch does not matter: drivers let posts of other threads wait.
            if state.turn == Turn::this_thread() {
                state.note_own(call);
            }
        }
    }

    /// The queue pair is destroyed. That ends the batch of any thread.
    pub(super) fn end(&self, call: Call) {
        let mut state = self.state.lock();
        let unposted = state.unposted(call);
        state.turn = Turn::Over;
        drop(state);
        self.ended.notify_all();
        if let Some(mut unposted) = unposted.filter(|_| caller::is_named()) {
            unposted.is_certain = true;
            unposted.note(sim());
        }
    }

    /// The requests that are not posted.
    pub(super) fn unposted(&self, call: Call) -> Option<Unposted> {
        // The thread that has the lock is about to change it.
        self.state.try_lock()?.unposted(call)
    }
}

impl State {
    /// Refuses calls of threads other than the one that builds.
    fn check(&self, call: Call) -> Result<()> {
        if self.turn == Turn::this_thread() {
            return Ok(());
        }
        Err(self.misplaced(call))
    }

    /// Refuses a call of a thread that has no batch.
    #[cold]
    fn misplaced(&self, call: Call) -> Refusal {
        match self.turn {
            Turn::Free => call.note(Class::Batched, "no batch is begun there", None),
            Turn::Thread(_) => {
                let what = "the batch there is another thread's";
                call.note(Class::Batched, what, self.begun_at);
            }
            Turn::Over => call.note(Class::Destroyed, "it was destroyed", None),
        }
        Refusal::expected(libc::EINVAL)
    }

    /// Notes a call that does not belong in a batch of its own thread.
    #[cold]
    fn note_own(&self, call: Call) {
        let what = "the batch of this thread there is not ended";
        call.note(Class::Batched, what, self.begun_at);
    }

    fn unposted(&self, call: Call) -> Option<Unposted> {
        matches!(self.turn, Turn::Thread(_)).then(|| Unposted {
            qp: call.qp,
            qp_num: call.qp_num,
            requests: self.building.sends.len(),
            begun_at: self.begun_at,
            // Another thread may be about to complete it.
            is_certain: self.turn == Turn::this_thread(),
        })
    }
}

impl Call {
    /// Notes that it is out of place.
    #[cold]
    pub(super) fn note(self, class: Class, what: &str, begun_at: Option<Site>) {
        if caller::is_named() {
            let Self {
                name, qp, qp_num, ..
            } = self;
            let text = format!("{name} of qp {qp_num:#x}: {what}");
            let misuse = Misuse {
                context: Some(qp.context()),
                class,
                fact: [name, ""],
                text,
                place: begun_at.map(|site| ("begun at", site)),
            };
            misuse.note(sim());
        }
    }

    /// Shows a diagnosis that it waits for a batch that was begun there.
    #[cold]
    fn sleeps(self, begun_at: Option<Site>) -> Option<WaitGuard<'static>> {
        caller::is_named()
            .then(|| WaitGuard::for_batch(sim(), self.name, self.qp, self.qp_num, begun_at))
    }
}

impl Turn {
    fn this_thread() -> Self {
        Self::Thread(this_thread())
    }
}
