//! What a program did wrong: asking for it, letting it panic, and adding what a layer over the verbs sees.

use std::sync::Arc;
use std::thread;

use verbs_api::site::Site;
use verbs_api::table::Id;
use verbs_api::{CmChannel, CompChannel, Cq, Handle, Qp, Verb};

use super::sim::Sim;
use crate::device::node_of;
use crate::diagnosis::Suppressions;
use crate::diagnosis::diagnose;
use crate::diagnosis::{Diagnosis, Unposted};
use crate::fabric::{WaitFor, Waiting};
use crate::runtime::Runtime;

impl Sim {
    /// What the program did wrong or left undone so far: at its end, all of it.
    pub fn diagnose(&self) -> Diagnosis {
        self.runtime.with(|fabric| diagnose(fabric, None))
    }

    /// The simulation panics when it is dropped if the program has made mistakes that are certain:
    /// a guard for tests. Hints and leftovers pass; [`diagnose`](Self::diagnose) has them. So tests of failure can be strict: work that a
    /// fault rule or the laboratory let fail is a hint, and so is work whose failure the program has handled
    /// ([`Problem::Failed`](crate::Problem::Failed)). [`allow`](Self::allow) lets more pass.
    ///
    /// A thread that panics already is left alone.
    ///
    /// ```should_panic
    /// use verbs_api::{Arm, CqInit, Verbs};
    /// use verbs_sim::{Sim, SimConfig};
    ///
    /// let sim = Sim::new(SimConfig::new()).strict();
    /// let context = sim.open_device("sim0").unwrap();
    /// let cq = sim.create_cq(context, &CqInit::new(16)).unwrap();
    /// // Nobody looks at what that returns.
    /// let _ = sim.ack_cq_events(cq, 1);
    /// ```
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = Some(Strict {
            runtime: self.runtime.clone(),
            allowed: Suppressions::default(),
        });
        self
    }

    /// Lets mistakes of a class pass that a [`strict`](Self::strict) simulation would panic for, or only those at some
    /// places, as an entry of [`Suppressions`] says. It need not match any. [`diagnose`](Self::diagnose) still has them.
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
    /// If the entry names no class, or the simulation is not strict.
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
    /// What a program that goes on did wrong so far. The judgment is that of a program that is
    /// stopped here: what it has not done yet is a hint, and what it still has is not a leftover.
    pub fn so_far(sim: &Sim) -> Self {
        sim.runtime.with(|fabric| diagnose(fabric, Some(&[])))
    }
}

/// Looks for mistakes when it is dropped.
#[derive(Debug)]
pub(crate) struct Strict {
    runtime: Arc<Runtime>,
    allowed: Suppressions,
}

impl Drop for Strict {
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        let diagnosis = self.runtime.with(|fabric| diagnose(fabric, None));
        if let Err(text) = diagnosis.check(&self.allowed) {
            panic!("{text}");
        }
    }
}

/// What a thread does that the simulator does not see, or keeps no count of, when its program is stopped.
#[derive(Clone, Debug)]
pub struct Stuck(pub(crate) Kind);

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

impl Stuck {
    /// [`Sim::diagnose`] of a program that ends: also what has come from other processes that nobody has read. If it was
    /// stopped in the middle, as by a signal, also what its threads do, and why that has no end. Batches that are not posted
    /// only a layer over the verbs knows ([`Unposted`]).
    pub fn diagnose(sim: &Sim, unposted: Vec<Unposted>, stopped: Option<&[Self]>) -> Diagnosis {
        crate::network::note_unread(&sim.runtime);
        sim.runtime.with(|fabric| {
            fabric.unposted = unposted;
            diagnose(fabric, stopped)
        })
    }

    /// It sleeps in a call of the system, such as `poll`, until the descriptor of a channel can be read; `or` for something
    /// else, such as "until its time is over": then all is a hint.
    pub fn asleep(call: &'static str, channel: CompChannel, or: Option<&'static str>) -> Self {
        let wait_for = WaitFor::Event(channel);
        Self(Kind::Asleep { call, wait_for, or })
    }

    /// The same of a channel of rdma_cm.
    pub fn asleep_cm(call: &'static str, channel: CmChannel, or: Option<&'static str>) -> Self {
        let wait_for = WaitFor::CmEvent(channel);
        Self(Kind::Asleep { call, wait_for, or })
    }

    /// It has polled a CQ there so many times since the last completion.
    pub fn polls(cq: Cq, times: u64, site: Option<Site>) -> Self {
        Self(Kind::Polls { cq, times, site })
    }
}

/// A thread that sleeps in a layer over the verbs, such as on a descriptor, until there is an event on a channel. While the
/// value lives, a diagnosis says so.
#[derive(Debug)]
pub struct Sleeping<'s> {
    sim: &'s Sim,
    wait: Id,
}

impl<'s> Sleeping<'s> {
    /// From now on this thread sleeps.
    #[track_caller]
    pub fn on(sim: &'s Sim, channel: CompChannel) -> Self {
        let (call, wait_for) = (Verb::GetCqEvent.name(), WaitFor::Event(channel));
        Self::for_what(sim, call, wait_for, node_of(channel.context()))
    }

    /// The same of an event of rdma_cm, in a call that waits for one.
    #[track_caller]
    pub fn on_cm(sim: &'s Sim, call: &'static str, channel: CmChannel) -> Self {
        Self::for_what(
            sim,
            call,
            WaitFor::CmEvent(channel),
            sim.runtime.config.nodes,
        )
    }

    /// The same until another thread has ended the batch that it began there on a queue pair of this number.
    #[track_caller]
    pub fn for_batch(
        sim: &'s Sim,
        call: &'static str,
        (qp, qp_num): (Qp, u32),
        begun_at: Option<Site>,
    ) -> Self {
        let wait_for = WaitFor::Batch { qp_num, begun_at };
        Self::for_what(sim, call, wait_for, node_of(qp.context()))
    }

    /// The same until another thread has ended its iteration over a CQ.
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
            };
            fabric.waits.begin(waiting)
        });
        Self { sim, wait }
    }
}

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        self.sim.runtime.with(|fabric| fabric.waits.end(self.wait));
    }
}
