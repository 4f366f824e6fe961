//! The threads of a program, all known to the simulation, in virtual time.

use std::fmt;
use std::sync::Arc;
use std::thread::{self, Builder, Scope, ScopedJoinHandle};

use verbs_api::{Cause, Error, ErrorKind, Result, Verb};

use super::sim::Sim;
use crate::config::Mode;
use crate::runtime::Runtime;
use crate::runtime::roster::{Number, State};
use crate::sync::CHECKED;

impl Sim {
    /// Runs `body` and the threads that it starts in virtual time, and returns when all have ended,
    /// as [`std::thread::scope`] does. The thread that calls is the first of them.
    ///
    /// The clock moves when every thread waits: in a verb, for the end of another thread
    /// ([`JoinHandle::join`]), or in a loop that polls a CQ and finds nothing. Then the next packet
    /// arrives, the next timer fires, or the first bounded wait ends. So a lost packet is sent
    /// again, and [`Wait::For`](verbs_api::Wait::For) is in virtual time.
    ///
    /// If nothing is left to happen within [`SimConfig::horizon`](crate::SimConfig::horizon), each
    /// wait returns an error of kind `Stalled`, which names every thread, the line at which it
    /// waits, and the state of its CQs. [`diagnose`](Self::diagnose) reports these waits too. The
    /// threads go on with their errors, and every further wait fails at once, with the same lines;
    /// after the scope calls wait again.
    ///
    /// The simulation is in [`Mode::Inline`](crate::Mode::Inline). The order in which the threads
    /// run is the system's. In [`Mode::RealTime`](crate::Mode::RealTime) the threads run too, but
    /// the clock is the machine's, and no stall is found.
    ///
    /// # Limits
    /// A thread that waits for something else, such as a lock, a channel of std or a future, counts
    /// as one that runs: the clock stands still then. A loop that looks for events with
    /// [`Wait::Poll`](verbs_api::Wait::Poll) counts as running too. A thread that polls an empty CQ
    /// forever keeps the others from an error. One that has polled a CQ twice since anything
    /// happened counts as waiting, also while it does something else. Threads outside of the scope
    /// must not use the simulation: what they do may come after an error.
    ///
    /// ```
    /// use core::time::Duration;
    /// use verbs_api::{CqInit, ErrorKind, Verbs, Wait};
    /// use verbs_sim::{Mode, Sim, SimConfig};
    ///
    /// let sim = Sim::new(SimConfig::new().mode(Mode::Inline));
    /// let context = sim.open_device("sim0")?;
    /// let channel = sim.create_comp_channel(context)?;
    /// let cq = sim.create_cq(context, &CqInit::new(1).channel(channel))?;
    /// sim.threads(|threads| {
    ///     let sim = &sim;
    ///     threads.spawn("an hour", move || {
    ///         let hour = Wait::For(Duration::from_secs(3_600));
    ///         let error = sim.get_cq_event(channel, hour).unwrap_err();
    ///         assert_eq!(error.kind(), ErrorKind::TimedOut); // after no time at all
    ///     });
    ///     threads.spawn("forever", move || {
    ///         let error = sim.get_cq_event(channel, Wait::Forever).unwrap_err();
    ///         assert_eq!(error.kind(), ErrorKind::Stalled);
    ///         assert!(error.to_string().contains("forever, since 0ns: an event on channel#0"));
    ///     });
    /// })?;
    /// # Ok::<(), verbs_api::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Usage` within another such scope of the simulation, and in
    /// [`Mode::Stepped`](crate::Mode::Stepped), which is for one thread.
    /// `NotSupported` under a model checker, which cannot see threads of a scope.
    ///
    /// # Panics
    /// If a thread panics that is not joined.
    pub fn threads<'env, R>(
        &self,
        body: impl for<'scope> FnOnce(&Threads<'scope, 'env>) -> R,
    ) -> Result<R> {
        let _scope = self.open_scope()?;
        let runtime = &self.runtime;
        Ok(thread::scope(|scope| {
            let own = thread::current().name().unwrap_or("main").to_owned();
            let own = KnownThread::new(runtime, Some(own));
            own.begin();
            body(&Threads {
                scope,
                runtime: runtime.clone(),
            })
        }))
    }

    fn open_scope(&self) -> Result<OpenScope<'_>> {
        let (kind, text) = match self.runtime.config.mode {
            _ if CHECKED => (
                ErrorKind::NotSupported,
                "a model checker cannot see the threads of a scope: use those of verbs-models",
            ),
            Mode::Stepped => (
                ErrorKind::Usage,
                "Mode::Stepped, the default, is for one thread: choose Mode::Inline (SimConfig::mode)",
            ),
            _ if !self.runtime.roster.open() => (
                ErrorKind::Usage,
                "the threads of this simulation are in such a scope already",
            ),
            Mode::Inline | Mode::RealTime => return Ok(OpenScope(&self.runtime)),
        };
        Err(Error::new(Verb::Lab, kind, Cause::Text(text.into())))
    }

    /// Makes a thread known to the simulation until the value is dropped: for libraries that start
    /// threads themselves, such as a model checker. Programs use [`threads`](Self::threads), which
    /// has the rules. Call it before the thread starts, and while another known thread runs:
    /// otherwise those that wait may seem to be all.
    pub fn known_thread(&self) -> KnownThread {
        KnownThread::new(&self.runtime, None)
    }
}

/// A scope that is open. After it, also after a panic, calls wait again.
struct OpenScope<'s>(&'s Runtime);

impl Drop for OpenScope<'_> {
    fn drop(&mut self) {
        if self.0.roster.close() {
            self.0.with(|fabric| fabric.closed = false);
        }
    }
}

/// The scope of [`Sim::threads`].
pub struct Threads<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    runtime: Arc<Runtime>,
}

impl fmt::Debug for Threads<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").finish_non_exhaustive()
    }
}

impl Clone for Threads<'_, '_> {
    fn clone(&self) -> Self {
        let (scope, runtime) = (self.scope, self.runtime.clone());
        Self { scope, runtime }
    }
}

impl<'scope> Threads<'scope, '_> {
    /// Starts a thread, which may start more with a clone of the scope. Errors and panics have its
    /// name.
    ///
    /// # Panics
    /// If the system cannot start a thread.
    pub fn spawn<T: Send + 'scope>(
        &self,
        name: &str,
        run: impl FnOnce() -> T + Send + 'scope,
    ) -> JoinHandle<'scope, T> {
        let known = KnownThread::new(&self.runtime, Some(name.to_owned()));
        let number = known.number;
        let job = move || {
            known.begin();
            run()
        };
        let builder = Builder::new().name(name.to_owned());
        let started = builder.spawn_scoped(self.scope, job);
        JoinHandle {
            handle: started.expect("a thread can be started"),
            number,
            runtime: self.runtime.clone(),
        }
    }
}

/// A thread of [`Sim::threads`]. The scope waits for one that is not joined.
pub struct JoinHandle<'scope, T> {
    handle: ScopedJoinHandle<'scope, T>,
    number: Number,
    runtime: Arc<Runtime>,
}

impl<T> fmt::Debug for JoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}

impl<T> JoinHandle<'_, T> {
    /// Waits for the end of the thread, and returns its output. The clock can move until then.
    ///
    /// # Errors
    /// The payload of the thread's panic.
    pub fn join(self) -> thread::Result<T> {
        if let Some(own) = self.runtime.known_thread() {
            self.runtime.known_joins(own, self.number);
        }
        // The end of the thread makes this one run again.
        self.handle.join()
    }
}

/// A thread that a simulation knows: [`Sim::known_thread`].
#[derive(Debug)]
#[must_use = "dropping it says that the thread has ended"]
pub struct KnownThread {
    runtime: Arc<Runtime>,
    number: Number,
}

impl KnownThread {
    fn new(runtime: &Arc<Runtime>, name: Option<String>) -> Self {
        let number = runtime.roster.add(name);
        let runtime = runtime.clone();
        Self { runtime, number }
    }

    /// The calling thread is this one.
    pub fn begin(&self) {
        self.runtime.roster.begin(self.number);
    }

    /// The thread, which calls this itself, has ended, though the value may live on.
    pub fn end(&self) {
        self.runtime.roster.end(self.number);
        self.runtime.known_stops();
    }

    /// The thread waits for the end of another one.
    pub fn join(&self, other: &Self) {
        self.runtime.known_joins(self.number, other.number);
    }

    /// The thread waits for something outside of the simulation, which only another known thread
    /// can end. Returns whether all known threads wait now. If so, call
    /// [`pass_time`](Self::pass_time), which may wake tasks, without locks that these need.
    #[must_use]
    pub fn suspend(&self) -> bool {
        self.runtime.roster.set(self.number, State::Suspended);
        self.runtime.roster.all_may_wait()
    }

    /// Lets time pass if all known threads wait.
    pub fn pass_time(&self) {
        self.runtime.known_stops();
    }

    /// The wait after [`suspend`](Self::suspend) is over. The thread that ends it calls this, before
    /// it waits itself.
    pub fn resume(&self) {
        self.runtime.roster.set(self.number, State::Runs);
    }
}

impl Drop for KnownThread {
    fn drop(&mut self) {
        self.end();
    }
}
