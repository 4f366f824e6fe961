//! Objects that a program has declared for one thread at a time: CQs with
//! `IBV_CREATE_CQ_ATTR_SINGLE_THREADED`, and queue pairs and SRQs of a thread domain. Drivers take
//! no lock for them. Here all threads can use each object; where places are named, overlapping
//! calls are noted.

use std::fmt;
use std::thread;

use verbs_api::Context;
use verbs_api::site::Site;
use verbs_api::sync::Mutex;
use verbs_sim::{Class, Misuse};

use crate::c::caller;
use crate::engine::sim;

/// The number of handovers at which other threads get a chance to run, which takes time.
const WAITS: u32 = 16;

/// The use of such an object.
pub(crate) struct Exclusive {
    /// What declares it.
    declared: &'static str,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The thread that uses it, and the place of its call.
    user: Option<(libc::pthread_t, Option<Site>)>,
    /// The thread that used it last, and the number of times that another one followed.
    last: Option<libc::pthread_t>,
    handovers: u32,
    is_noted: bool,
}

/// A call that uses an object, until it is dropped.
pub(super) struct InUse<'e>(&'e Exclusive);

impl Exclusive {
    /// The use of an object for one thread at a time, as `declared` promises.
    pub(super) fn new(declared: &'static str) -> Self {
        let state = Mutex::default();
        Self { declared, state }
    }

    /// A call on `object` of `context` begins. Notes the first one that begins during a call of
    /// another thread.
    pub(super) fn enter(
        &self,
        call: &'static str,
        context: Context,
        object: impl fmt::Display,
    ) -> Option<InUse<'_>> {
        if !caller::is_named() {
            return None;
        }
        let this = this_thread();
        let mut state = self.state.lock();
        if let Some((user, place)) = state.user {
            // Within an iteration or a batch the user is this thread.
            if user != this && !std::mem::replace(&mut state.is_noted, true) {
                drop(state);
                self.note(call, context, object, place);
            }
            return None;
        }
        state.user = Some((this, caller::returns_to().map(Site::Address)));
        let is_handed_over = state.last.replace(this).is_some_and(|last| last != this);
        state.handovers = state.handovers.saturating_add(is_handed_over.into());
        let waits = is_handed_over && state.handovers <= WAITS;
        drop(state);
        // Calls are short and seldom overlap. Threads that take turns without a lock meet here.
        if waits {
            thread::yield_now();
        }
        Some(InUse(self))
    }

    /// Ends the use of this thread whose guard was forgotten.
    pub(super) fn leave(&self) {
        let mut state = self.state.lock();
        state.user = state.user.filter(|(user, _)| *user != this_thread());
    }

    #[cold]
    fn note(
        &self,
        call: &'static str,
        context: Context,
        object: impl fmt::Display,
        place: Option<Site>,
    ) {
        let declared = self.declared;
        let misuse = Misuse {
            context: Some(context),
            class: Class::Concurrent,
            fact: [call, ""],
            text: format!(
                "{declared} promises one thread at a time, but {call} of {object} began during a call of another thread"
            ),
            place: place.map(|site| ("at", site)),
        };
        misuse.note(sim());
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        self.0.state.lock().user = None;
    }
}

/// The calling thread.
pub(super) fn this_thread() -> libc::pthread_t {
    // SAFETY: the call has no preconditions.
    unsafe { libc::pthread_self() }
}
