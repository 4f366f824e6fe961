//! The parts of a model: one simulated device, queue pairs that lead back to it, threads.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use verbs_api::sync::thread;
use verbs_api::{
    Access, CompChannel, Context, Cq, CqInit, Mr, Pd, Qp, QpInit, QpType, RcParams, RecvWr, SendWr,
    Verbs, Wait, Wc,
};
use verbs_sim::{KnownThread, Sim, SimConfig, Step};

use crate::error::{ModelError, Outcome};

/// The parts of one execution of a model: a device with a context, a PD and a channel, and
/// threads.
///
/// Handles are `Copy`: take them out, and move them into the threads.
#[derive(Clone)]
pub struct Harness(Arc<Inner>);

struct Inner {
    sim: Arc<Sim>,
    context: Context,
    pd: Pd,
    channel: CompChannel,
    threads: Mutex<Threads>,
}

#[derive(Default)]
struct Threads {
    /// The threads, in the order of their start.
    names: Vec<String>,
    running: Vec<(String, thread::JoinHandle<()>)>,
    /// The threads that have not ended, as the simulation knows them.
    known: BTreeMap<String, Arc<KnownThread>>,
    failures: Vec<(String, ModelError)>,
}

/// The name of the thread that runs the body.
pub(crate) const BODY: &str = "main";

/// The note before the first thread: earlier steps are the set-up.
pub(crate) const START: &str = "start";

/// How the note of a failure begins.
pub(crate) const FAILED: &str = "failed: ";

/// One execution of a model.
pub(crate) struct Execution {
    /// The threads, in the order of their start.
    pub(crate) threads: Vec<String>,
    /// The first error, and the thread that it was in.
    pub(crate) failures: Vec<(String, ModelError)>,
    /// The steps, if they were asked for.
    pub(crate) steps: Vec<Step>,
}

impl Harness {
    /// Runs a model once, and waits for all its threads.
    pub(crate) fn execute(config: SimConfig, body: impl FnOnce(&Self) -> Outcome) -> Execution {
        let harness = Self::new(config).expect("a fresh simulation has all that a harness takes");
        harness.know(BODY).begin();
        harness.run(BODY, || body(&harness));
        harness.forget(BODY);
        while let Some((_, thread)) = harness.next_running() {
            // What happened in it has been noted.
            let _ = thread.join();
        }
        let mut threads = harness.threads();
        Execution {
            threads: std::mem::take(&mut threads.names),
            failures: std::mem::take(&mut threads.failures),
            steps: harness.sim().thread_trace(),
        }
    }

    fn new(config: SimConfig) -> verbs_api::Result<Self> {
        let sim = Arc::new(Sim::new(config));
        let context = sim.open_device("sim0")?;
        Ok(Self(Arc::new(Inner {
            context,
            pd: sim.alloc_pd(context)?,
            channel: sim.create_comp_channel(context)?,
            threads: Mutex::default(),
            sim,
        })))
    }

    /// The simulation: all verbs, and the test controls.
    pub fn sim(&self) -> &Arc<Sim> {
        &self.0.sim
    }

    /// The context of the device, `sim0`.
    pub fn context(&self) -> Context {
        self.0.context
    }

    /// A protection domain.
    pub fn pd(&self) -> Pd {
        self.0.pd
    }

    /// The channel of the CQs that [`cq`](Self::cq) makes.
    pub fn channel(&self) -> CompChannel {
        self.0.channel
    }

    /// A CQ of at least `cqe` entries on the channel.
    pub fn cq(&self, cqe: i32) -> verbs_api::Result<Cq> {
        let init = CqInit::new(cqe).channel(self.channel());
        self.sim().create_cq(self.context(), &init)
    }

    /// A connection of the device with itself: what is sent on it completes in `recv_cq`, for which
    /// `receives` empty receives are posted, `wr_id` from 0. Its sends complete only if they fail
    /// or are signaled, in a CQ of their own.
    pub fn link(&self, recv_cq: Cq, receives: u64) -> Outcome<Link> {
        let send_cq = self.sim().create_cq(self.context(), &CqInit::new(16))?;
        self.link_between(send_cq, recv_cq, receives)
    }

    /// A connection as from [`link`](Self::link), whose sends complete in `send_cq`, which may be
    /// `recv_cq`.
    pub fn link_between(&self, send_cq: Cq, recv_cq: Cq, receives: u64) -> Outcome<Link> {
        let sim = self.sim();
        let near = sim.create_qp(self.pd(), &QpInit::new(QpType::Rc, send_cq, send_cq))?;
        let far = sim.create_qp(self.pd(), &QpInit::new(QpType::Rc, send_cq, recv_cq))?;
        sim.connect_rc(near, far, &RcParams::default())?;
        for wr_id in 0..receives {
            sim.post_recv(far, &[RecvWr::new(wr_id, &[])])?;
        }
        Ok(Link { near, far })
    }

    /// A region of the device's own memory that it may write to.
    pub fn mr(&self, length: usize) -> verbs_api::Result<Mr> {
        self.sim().alloc_mr(self.pd(), length, Access::LOCAL_WRITE)
    }

    /// Starts a thread of the model. Its failure is the model's; all threads are waited for.
    ///
    /// A wait for an event or an acknowledgement that cannot come returns an error
    /// ([`Sim::threads`]), so no thread has to be stopped.
    pub fn spawn<T, E>(
        &self,
        name: &str,
        run: impl FnOnce(&Self) -> Result<T, E> + Send + 'static,
    ) -> Thread<T>
    where
        T: Send + 'static,
        E: Into<ModelError>,
    {
        if self.threads().names.is_empty() {
            self.note(START);
        }
        let value = Arc::new(Mutex::new(None));
        {
            let mut threads = self.threads();
            assert!(
                name != BODY && !threads.names.iter().any(|other| other == name),
                "threads of a model have names of their own, and {name} is taken"
            );
            threads.names.push(name.to_owned());
        }
        let known = self.know(name);
        let (harness, into, own_name) = (self.clone(), value.clone(), name.to_owned());
        let job = move || {
            known.begin();
            drop(known);
            *lock(&into) = harness.run(&own_name, || run(&harness));
            harness.forget(&own_name);
        };
        let builder = thread::Builder::new().name(name.to_owned());
        #[cfg(loom)]
        let builder = builder.stack_size(STACK);
        let handle = builder.spawn(job).expect("a thread can be started");
        self.threads().running.push((name.to_owned(), handle));
        Thread {
            name: name.to_owned(),
            harness: self.clone(),
            value,
        }
    }

    /// Adds a line to the steps of this thread, for a counterexample.
    pub fn note(&self, note: impl Into<String>) {
        self.sim().note(note);
    }

    /// Fails if completions are left in a CQ: for the end of a model.
    pub fn expect_empty(&self, cq: Cq) -> Outcome {
        let mut wcs = [Wc::default(); 16];
        match self.sim().poll_cq(cq, &mut wcs)? {
            0 => Ok(()),
            left => Err(ModelError::new(format!(
                "{left} completions are left in {cq}: no thread polled them"
            ))),
        }
    }

    /// Runs a part of the model, and notes its failure.
    fn run<T, E: Into<ModelError>>(
        &self,
        thread: &str,
        part: impl FnOnce() -> Result<T, E>,
    ) -> Option<T> {
        let result = match catch_unwind(AssertUnwindSafe(part)) {
            Ok(result) => result.map_err(Into::into),
            Err(panic) => Err(ModelError::new(panic_message(panic))),
        };
        let failure = match result {
            Ok(value) => return Some(value),
            Err(failure) => failure,
        };
        if !failure.follows {
            self.note(format!("{FAILED}{}", failure.message()));
        }
        self.threads().failures.push((thread.to_owned(), failure));
        None
    }

    /// Makes a thread known to the simulation.
    fn know(&self, name: &str) -> Arc<KnownThread> {
        let known = Arc::new(self.sim().known_thread());
        self.threads().known.insert(name.to_owned(), known.clone());
        known
    }

    /// A thread has ended.
    fn forget(&self, name: &str) {
        let known = self.threads().known.remove(name);
        // A waker may keep it.
        known.iter().for_each(|known| known.end());
    }

    /// The calling thread, as the simulation knows it.
    pub(crate) fn own(&self) -> Arc<KnownThread> {
        let name = self.own_name();
        self.threads().known[&name].clone()
    }

    fn own_name(&self) -> String {
        let thread = thread::current();
        let threads = self.threads();
        let known = |name: &&str| threads.names.iter().any(|other| other == name);
        thread.name().filter(known).unwrap_or(BODY).to_owned()
    }

    fn take_running(&self, name: &str) -> Option<thread::JoinHandle<()>> {
        let mut threads = self.threads();
        let at = threads
            .running
            .iter()
            .position(|(other, _)| other == name)?;
        Some(threads.running.remove(at).1)
    }

    fn next_running(&self) -> Option<(String, thread::JoinHandle<()>)> {
        self.threads().running.pop()
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        lock(&self.0.threads)
    }
}

/// Words of stack a thread has: the simulator's calls are deep in a build without optimization.
#[cfg(loom)]
const STACK: usize = 0x8000;

/// A thread of a model: [`Harness::spawn`]. The end of the model waits for a thread that is not
/// joined.
pub struct Thread<T> {
    name: String,
    harness: Harness,
    value: Arc<Mutex<Option<T>>>,
}

impl<T> Thread<T> {
    /// Waits until it has ended.
    ///
    /// # Errors
    /// It failed.
    pub fn join(self) -> Outcome<T> {
        let harness = &self.harness;
        let other = harness.threads().known.get(&self.name).cloned();
        if let Some(other) = other {
            harness.own().join(&other);
        }
        if let Some(handle) = harness.take_running(&self.name) {
            // What happened in it has been noted.
            let _ = handle.join();
        }
        let value = lock(&self.value).take();
        value.ok_or_else(|| ModelError::following(format!("thread {} failed", self.name)))
    }
}

/// A connection of the device with itself: [`Harness::link`].
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// The side that sends.
    pub near: Qp,
    /// The side that receives.
    pub far: Qp,
}

impl Link {
    /// Destroys both queue pairs, so that their CQs can be destroyed.
    pub fn destroy(&self, harness: &Harness) -> Outcome {
        for qp in [self.near, self.far] {
            harness.sim().destroy_qp(qp, Wait::Forever)?;
        }
        Ok(())
    }

    /// Sends an empty message: one completion in the CQ of the receiving side.
    pub fn send(&self, harness: &Harness, wr_id: u64) -> Outcome {
        self.post(harness, SendWr::send(wr_id, &[]).unsignaled())
    }

    /// Sends a message as [`send`](Self::send) does, with a completion on the sending side too.
    pub fn send_signaled(&self, harness: &Harness, wr_id: u64) -> Outcome {
        self.post(harness, SendWr::send(wr_id, &[]))
    }

    /// Sends a message as [`send`](Self::send) does, with a solicited event at the receiver.
    pub fn send_solicited(&self, harness: &Harness, wr_id: u64) -> Outcome {
        self.post(harness, SendWr::send(wr_id, &[]).unsignaled().solicited())
    }

    fn post(&self, harness: &Harness, wr: SendWr<'_>) -> Outcome {
        Ok(harness.sim().post_send(self.near, &[wr])?)
    }
}

fn panic_message(panic: Box<dyn Any + Send>) -> String {
    let text = match (panic.downcast_ref::<String>(), panic.downcast_ref::<&str>()) {
        (Some(text), _) => text.clone(),
        (_, Some(text)) => (*text).to_owned(),
        // Not of a program: how a checker ends a thread.
        _ => resume_unwind(panic),
    };
    // The checker's own words for an execution that cannot go on.
    if text.starts_with("deadlock") || text.starts_with("Model exceeded") {
        resume_unwind(panic);
    }
    format!("panicked: {text}")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
