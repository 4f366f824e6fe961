//! Completion channels, their events, and waiting for completions of several CQs.

use core::fmt;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::event::in_time;
use super::life::{self, Owner, object};
use super::{Completions, Context, Cq, cq};
use crate::error::{Result, Verb};
use crate::handle;
use crate::sync::Mutex;
use crate::verbs::Wait;

/// A completion channel.
///
/// A thread that waits on the channel holds it: it is destroyed after the wait, even if all other
/// handles are dropped during the wait. In verbs only an event wakes such a thread. A program that
/// wants to stop waits with [`Wait::For`] or [`Wait::Poll`].
#[derive(Clone)]
pub struct CompChannel(Arc<Owner<Parts>>);

struct Parts {
    handle: handle::CompChannel,
    context: Context,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// CQs attached.
    cqs: usize,
    /// CQs that may have completions without an event: new ones, those whose event was read, and
    /// those that had some when they were last polled. All others are armed and empty.
    listed: VecDeque<Weak<Owner<cq::Parts>>>,
    /// Threads that have seen the list empty and wait for an event.
    waiters: usize,
}

object!(CompChannel, "ibv_destroy_comp_channel");

impl life::Parts for Parts {
    const VERB: Verb = Verb::DestroyCompChannel;
    type Handle = handle::CompChannel;

    fn handle(&self) -> handle::CompChannel {
        self.handle
    }

    fn context(&self) -> &Context {
        &self.context
    }

    fn destroy(&self) -> Result<()> {
        self.context.verbs().destroy_comp_channel(self.handle)
    }
}

impl CompChannel {
    pub(super) fn create(context: &Context) -> Result<Self> {
        let handle = context.verbs().create_comp_channel(context.handle())?;
        let context = context.clone();
        let state = Mutex::default();
        Ok(Self(Owner::new(Parts {
            handle,
            context,
            state,
        })))
    }

    /// The context it was made from.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Waits for completions of any CQ on the channel. Returns some of one CQ
    /// ([`Completions::cq`]), or `None` if none comes in the time that `wait` gives. CQs take
    /// turns, so a busy one holds up no other.
    ///
    /// ```no_run
    /// # use verbs_api::{Result, Wait, owned::CompChannel};
    /// # fn f(channel: &CompChannel) -> Result<()> {
    /// while let Some(completions) = channel.wait(Wait::Forever)? {
    ///     for wc in completions {
    ///         println!("{wc}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The order matters. For each CQ it is: poll; if there is nothing, arm, and *poll again*,
    /// since a completion that came before the arming makes no event (CQ-ARM-03); only then wait
    /// for an event; acknowledge it; poll the CQ it names.
    ///
    /// With [`Wait::Poll`] anything that watches the channel's descriptor can drive it. When it
    /// gives `None`, every CQ is armed and empty and no event is queued, so the next completion
    /// makes the channel readable, even for an edge-triggered watcher.
    ///
    /// Several threads may wait. Each gets the completions that it polled, and should wait again:
    /// only that returns the rest of the CQ, because no other thread is woken. [`Wait::For`] starts
    /// over after an event whose completions another thread took.
    ///
    /// # Errors
    /// Those of [`get_event`](Self::get_event), of polling and of arming. After the error of one CQ
    /// the next call goes on with the others.
    pub fn wait(&self, wait: Wait) -> Result<Option<Completions>> {
        loop {
            while let Some(cq) = self.next_listed() {
                cq.unlisted();
                let found = cq.look();
                if !matches!(found, Ok(None)) {
                    cq.list();
                }
                if let Some(completions) = found? {
                    return Ok(Some(completions));
                }
            }
            let event = self.get_event(wait);
            self.0.state.lock().waiters -= 1;
            if event?.is_none() {
                return Ok(None);
            }
        }
    }

    /// Takes the oldest event (`ibv_get_cq_event`), for programs that handle events themselves;
    /// `None` if none comes in the time that `wait` gives. It is acknowledged when the guard is
    /// dropped.
    ///
    /// An event of a CQ that was dropped before the event was read is skipped, and the wait starts
    /// over. So is an event of a CQ that was attached by the raw handle.
    ///
    /// # Errors
    /// In the simulator `Stalled` if nothing can bring an event any more.
    pub fn get_event(&self, wait: Wait) -> Result<Option<CqEvent>> {
        let verbs = self.context().verbs();
        loop {
            let Some(event) = in_time(verbs.get_cq_event(self.handle(), wait))? else {
                return Ok(None);
            };
            if let Some(cq) = self.context().find_cq(event.cq) {
                cq.event_was_read();
                return Ok(Some(CqEvent { cq }));
            }
            verbs.ack_cq_events(event.cq, 1)?;
            // It may have been in the way of the CQ's destruction.
            self.context().try_kept_again();
        }
    }

    /// A descriptor that is readable exactly while an event is queued
    /// ([`Verbs::channel_fd`](crate::Verbs::channel_fd)), for `poll`, `epoll` and async runtimes.
    /// Watch it, and call [`wait`](Self::wait) with [`Wait::Poll`] when it is readable.
    ///
    /// # Errors
    /// `NotSupported` on a backend without [`Capabilities::FD`](crate::Capabilities::FD);
    /// `TooManyFiles`.
    #[cfg(unix)]
    pub fn fd(&self) -> Result<std::os::fd::OwnedFd> {
        self.context().verbs().channel_fd(self.handle())
    }

    /// How many CQs are attached.
    pub(super) fn cqs(&self) -> usize {
        self.0.state.lock().cqs
    }

    pub(super) fn attach(&self) {
        self.0.state.lock().cqs += 1;
    }

    pub(super) fn detach(&self) {
        self.0.state.lock().cqs -= 1;
    }

    /// Puts a CQ at the end of the list; whether a thread waits that has seen the list empty.
    pub(super) fn list(&self, cq: &Arc<Owner<cq::Parts>>) -> bool {
        let mut state = self.0.state.lock();
        state.listed.push_back(Arc::downgrade(cq));
        state.waiters > 0
    }

    /// The next CQ of the list. If there is none, this thread counts as one that waits.
    fn next_listed(&self) -> Option<Cq> {
        let mut state = self.0.state.lock();
        while let Some(cq) = state.listed.pop_front() {
            if let Some(cq) = cq.upgrade() {
                return Some(Cq(cq));
            }
        }
        state.waiters += 1;
        None
    }
}

/// An event of a CQ that was read. It is acknowledged when it is dropped, and holds the CQ until
/// then.
///
/// An event that is never dropped ([`core::mem::forget`]) is never acknowledged: its CQ and
/// everything that the CQ was created from stay forever, and nothing waits for them.
///
/// ```compile_fail,E0382
/// # use verbs_api::owned::CqEvent;
/// # fn f(event: CqEvent) {
/// drop(event);
/// let cq = event.cq(); // borrow of moved value: it has been acknowledged
/// # }
/// ```
#[must_use = "dropping it acknowledges the event"]
pub struct CqEvent {
    cq: Cq,
}

impl CqEvent {
    /// The CQ that got the event.
    pub fn cq(&self) -> &Cq {
        &self.cq
    }
}

impl Drop for CqEvent {
    fn drop(&mut self) {
        let verbs = self.cq.context().verbs();
        // It fails only if the CQ was destroyed, or the event acknowledged, by the raw handle.
        let _ = verbs.ack_cq_events(self.cq.handle(), 1);
    }
}

impl fmt::Debug for CqEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event of {}", self.cq)
    }
}
