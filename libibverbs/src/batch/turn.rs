//! Whose batch it is, and what is out of place there: that is told to a diagnosis.

use verbs_api::site::Site;
use verbs_api::sync::{Condvar, Mutex};
use verbs_api::{Handle, SendOps};
use verbs_sim::{Class, Misuse, Sleeping, Unposted};

use super::Building;
use crate::caller;
use crate::engine::engine;
use crate::object::{CObject, Finding, Kind};
use crate::qp::Qp;
use crate::result::{Refusal, Result};

/// A batch that is being built, or none.
pub(crate) struct Batch {
    /// What the queue pair was made with.
    pub(super) send_ops: SendOps,
    state: Mutex<State>,
    /// It is nobody's any more.
    left: Condvar,
}

#[derive(Default)]
struct State {
    turn: Turn,
    /// Where it was begun, if somebody will read that.
    begun_at: Option<Site>,
    building: Building,
}

/// Whose batch it is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Turn {
    #[default]
    Nobody,
    Thread(libc::pthread_t),
    /// The queue pair is gone.
    Over,
}

/// A call of a program: its name, and the queue pair.
#[derive(Clone, Copy)]
pub(super) struct Call<'q> {
    pub(super) name: &'static str,
    pub(super) qp: &'q CObject<Qp>,
}

impl Batch {
    /// None, of a queue pair that takes these operations.
    pub(crate) fn new(send_ops: SendOps) -> Self {
        Self {
            send_ops,
            state: Mutex::default(),
            left: Condvar::default(),
        }
    }

    pub(super) fn start(&self, call: Call<'_>) -> Result<()> {
        let this = Turn::this_thread();
        let mut state = self.state.lock();
        loop {
            match state.turn {
                Turn::Nobody => {
                    state.turn = this;
                    state.begun_at = caller::is_named().then(Site::of_program);
                    return Ok(());
                }
                turn if turn == this => {
                    state.note_own(call);
                    let noted = || Refusal::noted(libc::EINVAL);
                    state.building.refused.get_or_insert_with(noted);
                    return Ok(());
                }
                Turn::Thread(_) => {
                    let _sleeping = call.sleeps(state.begun_at);
                    self.left.wait(&mut state);
                }
                Turn::Over => return Err(state.misplaced(call)),
            }
        }
    }

    /// Works on the batch that this thread has started.
    pub(super) fn with(
        &self,
        call: Call<'_>,
        work: impl FnOnce(&mut Building) -> Result<()>,
    ) -> Result<()> {
        let state = &mut *self.state.lock();
        state.check(call)?;
        if let Err(mut refusal) = work(&mut state.building) {
            // The program's next calls return nothing, and may be elsewhere.
            refusal.note(call.name, call.qp.seen());
            state.building.refused.get_or_insert(refusal);
        }
        Ok(())
    }

    /// Ends the batch that this thread has started, and lets `post` post what it has built.
    pub(super) fn complete(
        &self,
        call: Call<'_>,
        post: impl FnOnce(&Building) -> Result<()>,
    ) -> Result<()> {
        let state = &mut *self.state.lock();
        state.check(call)?;
        let posted = match state.building.refused.take() {
            Some(refusal) => Err(refusal),
            None => post(&state.building),
        };
        state.building.clear();
        state.turn = Turn::Nobody;
        self.left.notify_all();
        posted
    }

    /// Another call posts to the queue pair: not within a batch of the same thread, where a driver waits for its own lock.
    #[inline]
    pub(crate) fn passed_over(&self, name: &'static str, qp: &CObject<Qp>) {
        if caller::is_named() {
            let state = self.state.lock();
            if state.turn == Turn::this_thread() {
                state.note_own(Call { name, qp });
            }
        }
    }

    /// The queue pair is gone, whoever was building.
    pub(crate) fn end(&self, qp: &CObject<Qp>) {
        let mut state = self.state.lock();
        let unposted = state.unposted(qp);
        state.turn = Turn::Over;
        drop(state);
        self.left.notify_all();
        if let Some(mut unposted) = unposted.filter(|_| caller::is_named()) {
            unposted.is_certain = true;
            unposted.note(&engine().sim);
        }
    }
}

/// What is not posted when the program ends.
pub(crate) fn unposted() -> Vec<Unposted> {
    let of = |qp: Finding<Qp>| {
        // Who has the lock is about to change it.
        let state = qp.more.batch.as_ref()?.state.try_lock()?;
        state.unposted(&qp)
    };
    Qp::arena().iter().filter_map(of).collect()
}

impl State {
    /// Refuses what another thread does than that which builds.
    fn check(&self, call: Call<'_>) -> Result<()> {
        match self.turn == Turn::this_thread() {
            true => Ok(()),
            false => Err(self.misplaced(call)),
        }
    }

    /// A call of this thread, which has no batch.
    #[cold]
    fn misplaced(&self, call: Call<'_>) -> Refusal {
        match self.turn {
            Turn::Nobody => call.note(Class::Batched, "no batch is begun there", None),
            Turn::Thread(_) => {
                let what = "the batch there is another thread's";
                call.note(Class::Batched, what, self.begun_at);
            }
            Turn::Over => call.note(Class::Destroyed, "it was destroyed", None),
        }
        Refusal::noted(libc::EINVAL)
    }

    /// A call that has no place in a batch of its thread.
    #[cold]
    fn note_own(&self, call: Call<'_>) {
        let what = "the batch of this thread there is not ended";
        call.note(Class::Batched, what, self.begun_at);
    }

    fn unposted(&self, qp: &CObject<Qp>) -> Option<Unposted> {
        matches!(self.turn, Turn::Thread(_)).then(|| Unposted {
            qp: qp.handle,
            qp_num: qp.qp_num(),
            requests: self.building.sends.len(),
            begun_at: self.begun_at,
            // Another may be about to complete it.
            is_certain: self.turn == Turn::this_thread(),
        })
    }
}

impl Call<'_> {
    /// It is out of place, if somebody will read that.
    #[cold]
    pub(super) fn note(self, class: Class, what: &str, begun_at: Option<Site>) {
        if caller::is_named() {
            let Self { name, qp } = self;
            let text = format!("{name} of qp {:#x}: {what}", qp.qp_num());
            let misuse = Misuse {
                context: Some(qp.handle.context()),
                class,
                fact: [name, ""],
                text,
                place: begun_at.map(|site| ("begun at", site)),
            };
            misuse.note(&engine().sim);
        }
    }

    /// It waits for a batch that was begun there.
    #[cold]
    fn sleeps(self, begun_at: Option<Site>) -> Option<Sleeping<'static>> {
        let qp = (self.qp.handle, self.qp.qp_num());
        caller::is_named().then(|| Sleeping::for_batch(&engine().sim, self.name, qp, begun_at))
    }
}

impl Turn {
    fn this_thread() -> Self {
        // SAFETY: there is nothing to keep to.
        Self::Thread(unsafe { libc::pthread_self() })
    }
}
