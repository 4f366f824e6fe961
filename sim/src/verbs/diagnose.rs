//! Diagnoses: asking for one, panicking on mistakes, and adding what a layer over the verbs knows.

use std::sync::Arc;
use std::thread;

use verbs_api::lab::TraceEvent;
use verbs_api::site::Site;
use verbs_api::table::Id;
use verbs_api::{CmChannel, CompChannel, Context, Cq, Handle, Qp, Verb};

use super::sim::Sim;
use crate::device::node_of;
use crate::diagnosis::problem::Misused;
use crate::diagnosis::{Class, Diagnosis, Suppressions, Unposted};
use crate::fabric::{Fabric, WaitFor, Waiting};
use crate::runtime::Runtime;

impl Sim {
    /// The program's mistakes and omissions so far. At the program's end, all of them.
    pub fn diagnose(&self) -> Diagnosis {
        self.runtime.with(|fabric| fabric.diagnose(None))
    }

    /// Makes the simulation panic when it is dropped if the program has made certain mistakes: a
    /// guard for tests. Hints and leaks pass; [`diagnose`](Self::diagnose) reports them. Tests of
    /// failure can be strict too: work that failed because of a fault rule or another test control
    /// is a hint, and so is work whose failure the program has handled
    /// ([`Problem::Failed`](crate::Problem::Failed)). [`allow`](Self::allow) lets more pass.
    ///
    /// A thread that already panics does not panic again.
    ///
    /// ```should_panic
    /// use verbs_api::{Arm, CqInit, Verbs};
    /// use verbs_sim::{Sim, SimConfig};
    ///
    /// let sim = Sim::new(SimConfig::new()).strict();
    /// let context = sim.open_device("sim0").unwrap();
    /// let cq = sim.create_cq(context, &CqInit::new(16)).unwrap();
    /// // The program ignores the error.
    /// let _ = sim.ack_cq_events(cq, 1);
    /// ```
    #[must_use]
    pub fn strict(mut self) -> Self {
        let (runtime, allowed) = (self.runtime.clone(), Suppressions::default());
        self.strict = Some(Strict { runtime, allowed });
        self
    }

    /// Makes a [`strict`](Self::strict) simulation ignore mistakes of a class, or only those at
    /// some places, as an entry of [`Suppressions`] describes. The entry need not match any
    /// mistake. [`diagnose`](Self::diagnose) still reports them.
    ///
    /// ```
    /// use verbs_api::{CqInit, Verbs};
    /// use verbs_sim::{Sim, SimConfig};
    ///
    /// let sim = Sim::new(SimConfig::new()).strict().allow("VS-EVT-02");
    /// let context = sim.open_device("sim0")?;
    /// let cq = sim.create_cq(context, &CqInit::new(16))?;
    /// sim.ack_cq_events(cq, 1).unwrap_err();
    /// assert_eq!(sim.diagnose().mistakes.len(), 1);
    /// # Ok::<(), verbs_api::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the entry does not name a class, or the simulation is not strict.
    #[must_use]
    #[track_caller]
    pub fn allow(mut self, entry: &str) -> Self {
        let Some(strict) = &mut self.strict else {
            panic!("allow({entry:?}): the simulation is not strict: call `strict` before");
        };
        if let Err(unknown) = strict.allowed.add(entry) {
            panic!("allow({entry:?}): {unknown}; `verbsim classes` lists them");
        }
        self
    }
}

impl Diagnosis {
    /// The mistakes so far of a program that continues. They are judged as if the program were
    /// stopped here: work that it has not done yet is a hint, and objects that it still has are not
    /// leaks.
    pub fn so_far(sim: &Sim) -> Self {
        sim.runtime.with(|fabric| fabric.diagnose(Some(&[])))
    }
}

/// Checks for mistakes when it is dropped.
#[derive(Debug)]
pub(crate) struct Strict {
    runtime: Arc<Runtime>,
    allowed: Suppressions,
}

impl Drop for Strict {
    fn drop(&mut self) {
        // A second panic would abort the process and hide the first.
        if thread::panicking() {
            return;
        }
        let diagnosis = self.runtime.with(|fabric| fabric.diagnose(None));
        if let Err(text) = diagnosis.check(&self.allowed) {
            panic!("{text}");
        }
    }
}

/// The state of a thread of a stopped program that the simulator does not know.
#[derive(Clone, Debug)]
pub struct BlockedThread(pub(crate) Kind);

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Asleep {
        call: &'static str,
        wait_for: WaitFor,
        or: Option<&'static str>,
    },
    Polls {
        cq: Cq,
        times: u64,
        site: Option<Site>,
    },
}

impl BlockedThread {
    /// Like [`Sim::diagnose`], for a program that ends. It includes packets of other processes that
    /// the program never read. `stopped` holds the states of the threads of a program that was
    /// stopped by force, such as by a signal: the diagnosis then explains their waits. Only a layer
    /// over the verbs knows batches that are not posted ([`Unposted`]).
    pub fn diagnose(sim: &Sim, unposted: Vec<Unposted>, stopped: Option<&[Self]>) -> Diagnosis {
        sim.runtime.note_unread();
        sim.runtime.with(|fabric| {
            fabric.unposted = unposted;
            fabric.diagnose(stopped)
        })
    }

    /// A thread that sleeps in a system call, such as `poll`, until the descriptor of a channel is
    /// readable. `or` names another reason to wake, such as "until its time is over". It makes the
    /// finding a hint.
    pub fn asleep(call: &'static str, channel: CompChannel, or: Option<&'static str>) -> Self {
        let wait_for = WaitFor::Event(channel);
        Self(Kind::Asleep { call, wait_for, or })
    }

    /// A thread that sleeps in a system call until the descriptor of a channel of rdma_cm is
    /// readable. `or` names another reason to wake, which makes the finding a hint.
    pub fn asleep_cm(call: &'static str, channel: CmChannel, or: Option<&'static str>) -> Self {
        let wait_for = WaitFor::CmEvent(channel);
        Self(Kind::Asleep { call, wait_for, or })
    }

    /// A thread that has polled a CQ `times` times, at `site`, since the last completion.
    pub fn polls(cq: Cq, times: u64, site: Option<Site>) -> Self {
        Self(Kind::Polls { cq, times, site })
    }
}

/// A thread that sleeps in a layer over the verbs, such as on a descriptor, until there is an event
/// on a channel. While the value lives, a diagnosis reports the wait.
#[derive(Debug)]
pub struct WaitGuard<'s> {
    sim: &'s Sim,
    wait: Id,
}

impl<'s> WaitGuard<'s> {
    /// Registers that the calling thread waits for an event on a channel.
    #[track_caller]
    pub fn on(sim: &'s Sim, channel: CompChannel) -> Self {
        let (call, wait_for) = (Verb::GetCqEvent.name(), WaitFor::Event(channel));
        Self::for_what(sim, call, wait_for, node_of(channel.context()))
    }

    /// Registers that the calling thread waits in `call` for an event of rdma_cm.
    #[track_caller]
    pub fn on_cm(sim: &'s Sim, call: &'static str, channel: CmChannel) -> Self {
        let manager = sim.runtime.config.nodes;
        Self::for_what(sim, call, WaitFor::CmEvent(channel), manager)
    }

    /// Registers that the calling thread waits for an asynchronous event of a context.
    #[track_caller]
    pub fn on_async(sim: &'s Sim, context: Context) -> Self {
        let (call, wait_for) = (Verb::GetAsyncEvent.name(), WaitFor::AsyncEvent(context));
        Self::for_what(sim, call, wait_for, node_of(context))
    }

    /// Registers that it is the main thread of the program. Other threads may wait for events that
    /// need not come, so a diagnosis does not report them.
    #[must_use]
    pub fn in_main_thread(self) -> Self {
        let wait = self.wait;
        let waits = |fabric: &mut Fabric| fabric.waits.waiting_mut(wait).is_main = true;
        self.sim.runtime.with(|fabric| waits(fabric));
        self
    }

    /// Registers that the calling thread waits until another one ends a batch, which it began at
    /// `begun_at` on a queue pair with number `qp_num`.
    #[track_caller]
    pub fn for_batch(
        sim: &'s Sim,
        call: &'static str,
        qp: Qp,
        qp_num: u32,
        begun_at: Option<Site>,
    ) -> Self {
        let wait_for = WaitFor::Batch { qp_num, begun_at };
        Self::for_what(sim, call, wait_for, node_of(qp.context()))
    }

    /// Registers that the calling thread waits until another one ends its iteration over a CQ.
    #[track_caller]
    pub fn for_iteration(sim: &'s Sim, call: &'static str, cq: Cq) -> Self {
        Self::for_what(sim, call, WaitFor::Iteration(cq), node_of(cq.context()))
    }

    #[track_caller]
    fn for_what(sim: &'s Sim, call: &'static str, wait_for: WaitFor, place: u32) -> Self {
        let wait = sim.runtime.with(|fabric| {
            let waiting = Waiting {
                call,
                wait_for,
                place,
                since: fabric.now(),
                site: fabric.site,
                is_main: false,
            };
            fabric.waits.insert(waiting)
        });
        Self { sim, wait }
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let wait = self.wait;
        self.sim.runtime.with(|fabric| fabric.waits.remove(wait));
    }
}

/// A misuse of a layer over the verbs that the simulator cannot see, such as an invalid pointer.
#[derive(Clone, Debug)]
pub struct Misuse {
    /// The context of the object that was misused. `None` if there is no object; the finding then
    /// belongs to the first device.
    pub context: Option<Context>,
    /// The class of the finding.
    pub class: Class,
    /// Distinguishes the finding from others of its class at the same place, such as the call and
    /// `EFAULT`. Misuses with equal facts are one finding.
    pub fact: [&'static str; 2],
    /// The text of the finding.
    pub text: String,
    /// The site where the misuse began, after words that name it, if it is known.
    pub place: Option<(&'static str, Site)>,
}

/// A line for the trace about an action of a layer over the verbs. It is recorded as a call.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// The number of the node that it concerns.
    pub node: u32,
    /// The text of the line.
    pub text: String,
}

impl Annotation {
    /// Adds the line to the trace, if there is one.
    pub fn note(self, sim: &Sim) {
        let Self { node, text: call } = self;
        sim.runtime
            .with(|fabric| fabric.record(node, TraceEvent::Call { call }));
    }
}

impl Misuse {
    /// Adds the misuse to the diagnosis, at the call site of the current verb.
    #[track_caller]
    pub fn note(self, sim: &Sim) {
        let node = self.context.map_or(0, node_of);
        let problem = Misused {
            class: self.class,
            fact: self.fact,
            text: self.text,
            place: self.place,
        };
        sim.runtime
            .with(|fabric| fabric.note_mistake(node, problem));
    }
}

impl Unposted {
    /// Adds the batch to the diagnosis, because its queue pair is being destroyed.
    pub fn note(&self, sim: &Sim) {
        let node = node_of(self.qp.context());
        sim.runtime.with(|fabric| {
            let journal = &mut fabric.node_mut(node).device.base.journal;
            journal.note(self.clone(), self.begun_at);
        });
    }
}
