//! Completion channels, and which of their CQs may have completions.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::life::{self, Owner, object};
use super::tasks::Tasks;
use super::{Context, Cq, cq};
use crate::error::{Result, Verb};
use crate::event::EventSource;
use crate::handle;
use crate::site::{Site, Standing};
use crate::sync::Mutex;

/// A completion channel.
///
/// A thread that waits on the channel holds it: it is destroyed after the wait, even if all other
/// handles are dropped during the wait. In verbs only an event wakes such a thread. A program that
/// wants to stop waits with [`Wait::For`](crate::Wait::For) or [`Wait::Poll`](crate::Wait::Poll).
#[derive(Clone)]
pub struct CompChannel(Arc<Owner<Parts>>);

struct Parts {
    handle: handle::CompChannel,
    context: Context,
    state: Mutex<State>,
    tasks: Tasks,
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

impl Context {
    /// Creates a completion channel
    /// ([`Verbs::create_comp_channel`](crate::Verbs::create_comp_channel)).
    ///
    /// # Errors
    /// `TooManyFiles`, `NoMemory`.
    #[track_caller]
    pub fn create_comp_channel(&self) -> Result<CompChannel> {
        let _standing = Standing::at(Site::here());
        let handle = self.verbs().create_comp_channel(self.handle())?;
        let context = self.clone();
        let state = Mutex::default();
        let tasks = Tasks::new(EventSource::CompChannel(handle));
        Ok(CompChannel(Owner::new(Parts {
            handle,
            context,
            state,
            tasks,
        })))
    }
}

impl CompChannel {
    /// The context it was made from.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// A descriptor that is readable exactly while an event is queued
    /// ([`Verbs::channel_fd`](crate::Verbs::channel_fd)), for `poll`, `epoll` and async runtimes.
    /// Watch it, and call [`wait`](Self::wait) with [`Wait::Poll`](crate::Wait::Poll) when it is
    /// readable.
    ///
    /// # Errors
    /// `NotSupported` on a backend without [`Capabilities::FD`](crate::Capabilities::FD);
    /// `TooManyFiles`.
    #[cfg(unix)]
    pub fn fd(&self) -> Result<std::os::fd::OwnedFd> {
        self.context().verbs().channel_fd(self.handle())
    }

    /// The tasks that wait. None of them sleeps while a CQ may have completions without an event.
    pub(super) fn tasks(&self) -> &Tasks {
        &self.0.tasks
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
    pub(super) fn next_listed(&self) -> Option<Cq> {
        let mut state = self.0.state.lock();
        while let Some(cq) = state.listed.pop_front() {
            if let Some(cq) = cq.upgrade() {
                return Some(Cq(cq));
            }
        }
        state.waiters += 1;
        None
    }

    /// A thread that counted as one that waits has stopped.
    pub(super) fn stop_waiting(&self) {
        self.0.state.lock().waiters -= 1;
    }
}
