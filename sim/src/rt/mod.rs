//! An executor of async tasks on the clock of a simulation: several parties on one thread, in
//! virtual time, the same at every run.
//!
//! [`block_on`] runs tasks until the main one has ended. Tasks wait by the futures of
//! [`verbs_api::owned`], such as [`Cq::next`](verbs_api::owned::Cq::next), and sleep by the clock
//! of the simulation. When no task can run, the next thing on the fabric happens: a packet arrives,
//! a timer fires, or a task wakes that sleeps. Nothing else moves the clock, neither polls nor
//! waits, so no timer fires while a task has work.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use verbs_api::owned::{Context, Qp, RecvWr, SendWr};
//! use verbs_api::{Access, QpType, RcParams, Result, Verbs};
//! use verbs_sim::rt::{self, Order};
//! use verbs_sim::{Sim, SimConfig};
//!
//! fn end(verbs: Arc<dyn Verbs>, device: &str) -> Result<Qp> {
//!     let pd = Context::open(verbs, device)?.alloc_pd()?;
//!     let channel = pd.context().create_comp_channel()?;
//!     let cq = pd.context().cq(16).channel(&channel).create()?;
//!     pd.qp(QpType::Rc, &cq, &cq).create()
//! }
//!
//! let sim = Arc::new(Sim::new(SimConfig::new()));
//! let (client, server) = (end(sim.clone(), "sim0")?, end(sim.clone(), "sim1")?);
//! client.connect_rc(&server, &RcParams::default())?;
//! let order = Order::Seed(7);
//! let took = rt::block_on(&*sim, order, async |rt| {
//!     let serving = rt.spawn("server", async move {
//!         let mr = server.pd().alloc_mr(64, Access::LOCAL_WRITE)?;
//!         server.post_recv(&[RecvWr::new(0, &[mr.sge(..)])])?;
//!         server.recv_cq().next().await.map(drop)
//!     });
//!     rt.sleep(Duration::from_micros(10)).await;
//!     client.post_send(&[SendWr::send(0, &[])])?;
//!     client.send_cq().next().await?;
//!     serving.await?;
//!     Ok(rt.now())
//! })?;
//! // The message and its acknowledgement take a microsecond each.
//! assert_eq!(took, Duration::from_micros(12));
//! # Ok::<(), verbs_api::Error>(())
//! ```
//!
//! If no task can go on, the run ends with an error that names them all: what each waits for, since
//! when and where, and the state of the CQs. A program whose tasks do nothing but sleep and yield
//! is stuck after 100,000 turns. One that does more, and never ends, runs forever: bound it by
//! [`Executor::timeout`].
//!
//! A call that may wait, such as [`Cq::wait`](verbs_api::owned::Cq::wait) with
//! [`Wait::Forever`](verbs_api::Wait::Forever), is an error in a task, because it would hold up all
//! others. A task that spins on a CQ calls [`Executor::yield_now`] between its polls.
//!
//! A task stands still while it is [paused](Task::pause), and its device goes on.
//!
//! Everything is on one thread. A task may also wait for something of another crate, such as a
//! channel or a lock, as long as a task of this run wakes it.

mod ready;
mod run;
mod sleep;
mod stall;
mod task;

use core::fmt;
use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use verbs_api::lab::Lab;
use verbs_api::{Cause, Error, ErrorKind, Result, Verb, Verbs};

pub use self::sleep::Sleep;
pub use self::task::Task;

#[cfg(feature = "tokio")]
pub(crate) use self::stall::stalled_text;

use self::ready::Ready;
use self::sleep::Sleepers;
use self::task::Entry;
use crate::rng::{Purpose, Random};

/// The order in which tasks run that can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As they were woken.
    Fifo,
    /// Drawn from a seed.
    Seed(u64),
}

/// Runs `main` and the tasks that it [starts](Executor::spawn), until `main` has ended, and returns
/// its output. Tasks that have not ended are dropped. A program with errors of its own returns them
/// in the output: `async |rt| Ok(program(rt).await)`.
///
/// `verbs` is a simulation in [`Mode::Stepped`](crate::Mode::Stepped), the default, or something
/// around one. Calls before and after the run may wait and poll as usual.
///
/// # Errors
/// The errors that `main` returns. `Stalled` if no task can go on, as the [module](self)
/// says; `NotSupported` for a device without a clock of its own; `Usage` within another run on the
/// simulation.
///
/// # Panics
/// If a task panics: with its name.
#[track_caller]
pub fn block_on<'a, T>(
    verbs: &'a dyn Verbs,
    order: Order,
    main: impl AsyncFnOnce(Executor<'a>) -> Result<T>,
) -> Result<T> {
    let hold = Hold::of(verbs)?;
    let run = Run(Executor::new(hold.0, order));
    let main = pin!(main(run.0.clone()));
    run.0.run(main)
}

/// The executor of a run, for its tasks.
#[derive(Clone)]
pub struct Executor<'a>(Rc<State<'a>>);

struct State<'a> {
    lab: &'a dyn Lab,
    /// Draws the task that runs next, unless the first one does.
    order: RefCell<Option<Random>>,
    tasks: RefCell<BTreeMap<u64, Entry<'a>>>,
    /// How many tasks have started.
    started: Cell<u64>,
    ready: Arc<Ready>,
    sleepers: Sleepers,
    /// When a task ran last.
    ran: Cell<Duration>,
    /// Turns since anything happened but that tasks yielded and slept.
    turns: Cell<u32>,
    /// The activity of the simulation at the end of the last turn.
    activity: Cell<u64>,
}

impl<'a> Executor<'a> {
    fn new(lab: &'a dyn Lab, order: Order) -> Self {
        let order = match order {
            Order::Fifo => None,
            Order::Seed(seed) => Some(Random::new(seed, Purpose::Tasks, 0)),
        };
        Self(Rc::new(State {
            lab,
            order: RefCell::new(order),
            tasks: RefCell::default(),
            started: Cell::default(),
            ready: Arc::default(),
            sleepers: Sleepers::default(),
            ran: Cell::new(lab.now()),
            turns: Cell::default(),
            activity: Cell::new(lab.activity()),
        }))
    }

    /// The time since the start of the simulation.
    pub fn now(&self) -> Duration {
        self.0.lab.now()
    }

    /// Lets all other tasks run that can, for a task that polls again and again.
    ///
    /// If all of them yield, a microsecond passes, or less if something happens sooner. After a
    /// thousand such turns in which nothing happens, the clock moves to what is next.
    pub async fn yield_now(&self) {
        let mut has_yielded = false;
        poll_fn(|context| {
            if has_yielded {
                return Poll::Ready(());
            }
            has_yielded = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

impl fmt::Debug for Executor<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").finish_non_exhaustive()
    }
}

/// A run, which drops its tasks at the end.
struct Run<'a>(Executor<'a>);

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The clock of a simulation, held until this is dropped.
pub(crate) struct Hold<'a>(&'a dyn Lab);

impl<'a> Hold<'a> {
    pub(crate) fn of(verbs: &'a dyn Verbs) -> Result<Self> {
        let lab = verbs.lab().ok_or_else(|| {
            let cause = Cause::Text("the clock of the device is not that of a simulation".into());
            Error::new(Verb::Lab, ErrorKind::NotSupported, cause)
        })?;
        lab.hold_clock(true)?;
        Ok(Self(lab))
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        // Only a second hold is refused.
        let _ = self.0.hold_clock(false);
    }
}
