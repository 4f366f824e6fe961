//! tokio on the clock of a simulation: its tasks, timers and channels in virtual time, the same at
//! every run.
//!
//! [`block_on`] runs a future, and the tasks that it starts, on a current-thread runtime of tokio
//! whose clock is that of the simulation. Tasks wait by the futures of [`verbs_api::owned`] and by
//! those of tokio. When no task can run, the next thing happens: a packet arrives, a timer of the
//! fabric fires, or a timer of tokio does. Nothing else moves the clock.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use tokio::time::{Instant, sleep};
//! use verbs_api::owned::{Context, Qp, RecvWr, SendWr};
//! use verbs_api::{Access, QpType, RcParams, Result, Verbs};
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
//! let took = verbs_sim::tokio::block_on(sim, async {
//!     let start = Instant::now();
//!     let serving = tokio::spawn(async move {
//!         let mr = server.pd().alloc_mr(64, Access::LOCAL_WRITE)?;
//!         server.post_recv(RecvWr::new(0, &[mr.sge(..)]))?;
//!         server.recv_cq().next().await.map(drop)
//!     });
//!     sleep(Duration::from_millis(1)).await;
//!     client.post_send(SendWr::send(0, &[]))?;
//!     client.send_cq().next().await?;
//!     serving.await.expect("the task has not panicked")?;
//!     Ok(start.elapsed())
//! })?;
//! // The message and its acknowledgement take a microsecond each.
//! assert_eq!(took, Duration::from_micros(1002));
//! # Ok::<(), verbs_api::Error>(())
//! ```
//!
//! # What is not the simulation's
//! - tokio's timers count whole milliseconds: a sleep ends at the first one that is not too early.
//!   What happens on the fabric between two of them happens at its own time.
//! - The order of tasks is tokio's: first come, first served. [`rt`](crate::rt) draws the order
//!   from a seed, and names its tasks in errors.
//! - `tokio::select!` draws the branch that it polls first. With `biased;` two runs are the same.
//! - `tokio::net`, `spawn_blocking` and other threads take real time, during which the clock
//!   stops or leaps. Verbs refuse a second thread.
//! - `tokio::time::pause`, `resume` and `advance` are for clocks without a simulation: do not call
//!   them.
//!
//! A task that spins on a CQ sleeps between its polls: while it only yields, no time passes, and
//! the run does not end.

use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::panic::resume_unwind;
use std::sync::{Arc, OnceLock};

use ::tokio::runtime::{Builder, Handle};
use ::tokio::time::{Instant, Sleep, advance, sleep_until};
use parking_lot::Mutex;
use verbs_api::lab::Lab;
use verbs_api::{Cause, Error, ErrorKind, Result, Verb, Verbs};

use crate::rt;

/// Runs `main` and the tasks that it starts until `main` has ended, and returns its output. Tasks
/// that have not ended are dropped. A program with errors of its own returns them in the output:
/// `async { Ok(program().await) }`.
///
/// `verbs` is a simulation in [`Mode::Stepped`](crate::Mode::Stepped), the default, or something
/// around one. Calls before and after the run may wait and poll as usual.
///
/// # Errors
/// The errors that `main` returns. `Stalled` if no task can go on: nothing is in flight, and no
/// timer fires within a year; or 200,000 things have happened on the clock, and no task has changed
/// anything. It names the channels that tasks wait for, each with the line of the last wait, and
/// the state of their CQs. `NotSupported` for a device without a clock of its own; `Usage` within
/// another runtime of tokio, or another run on the simulation.
///
/// # Panics
/// If `main` panics. The panic of another task is in its `JoinHandle`.
pub fn block_on<T>(verbs: Arc<dyn Verbs>, main: impl Future<Output = Result<T>>) -> Result<T> {
    if Handle::try_current().is_ok() {
        let text = "this is within a runtime of tokio, which has another clock: call it outside";
        return Err(error(ErrorKind::Usage, text.to_owned()));
    }
    // The runtime ends before that, and its tasks with it.
    let _hold = rt::Hold::of(&*verbs)?;
    let clock = Arc::new(Clock::new(verbs.clone()));
    // A handle of a task that the program keeps also keeps the hooks.
    let [parked, unparked] = [(); 2].map(|()| Arc::downgrade(&clock));
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .on_thread_park(move || parked.upgrade().iter().for_each(|clock| clock.idle()))
        .on_thread_unpark(move || unparked.upgrade().iter().for_each(|clock| clock.follow()))
        .build()
        .map_err(|no| error(ErrorKind::NoMemory, format!("tokio's runtime: {no}")))?;
    runtime.block_on(async {
        clock.origin.get_or_init(Instant::now);
        let mut driver = pin!(::tokio::spawn(drive(clock.clone())));
        let mut main = pin!(main);
        poll_fn(|context| {
            if let Poll::Ready(output) = main.as_mut().poll(context) {
                return Poll::Ready(output);
            }
            driver.as_mut().poll(context).map(|ended| match ended {
                Ok(error) => Err(error),
                Err(ended) => resume_unwind(ended.into_panic()),
            })
        })
        .await
    })
}

/// What tokio's timers count.
const TICK: Duration = Duration::from_millis(1);

/// How long the driver sleeps at most when nothing is in flight.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The clocks of a simulation and of the runtime, which are one whenever a task runs. A task that
/// moves one of them by itself separates them, until no task can run.
struct Clock {
    verbs: Arc<dyn Verbs>,
    /// The time of the simulation at the start of the run.
    start: Duration,
    /// The time of the runtime at the start of the run.
    origin: OnceLock<Instant>,
    driver: Mutex<Driver>,
}

#[derive(Default)]
struct Driver {
    /// Whether no task can run, so that the driver lets the next thing happen.
    is_on: bool,
    waker: Option<Waker>,
    /// The time at which the driver fell asleep, and when the next thing is due on the fabric. It
    /// sleeps on while both stay as they are.
    asleep: Option<(Duration, Option<Duration>)>,
    quiet: Option<Quiet>,
    /// The activity of the simulation after the last turn, and how many turns in a row have passed
    /// in which no task changed it.
    activity: u64,
    turns: u32,
}

/// Turns of the driver during which no task changes anything, after which the run counts as stuck:
/// retries without an end, or a task that does nothing but sleep.
const PATIENCE: u32 = 200_000;

/// A time during which nothing is in flight, and only timers of the runtime can end that.
#[derive(Clone, Copy)]
struct Quiet {
    activity: u64,
    since: Duration,
    /// When it is too long for there to be such a timer.
    until: Duration,
}

/// What the driver does next.
enum Next {
    /// It moves the runtime's clock to that of the simulation.
    Advance(Duration),
    /// It sleeps: until then nothing but timers of the runtime can happen.
    Sleep(Instant),
}

impl Clock {
    fn new(verbs: Arc<dyn Verbs>) -> Self {
        let start = verbs.lab().map_or(Duration::ZERO, |lab| lab.now());
        Self {
            verbs,
            start,
            origin: OnceLock::new(),
            driver: Mutex::default(),
        }
    }

    fn lab(&self) -> &dyn Lab {
        self.verbs.lab().expect("it had one")
    }

    /// The time of the runtime since the start of the run.
    fn now(&self) -> Duration {
        self.origin.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// How much a time of the simulation is later than the start of the run.
    fn since_start(&self, time: Duration) -> Duration {
        time.saturating_sub(self.start)
    }

    /// Moves the simulation to the time of the runtime, before tasks run whose timers have fired.
    fn follow(&self) {
        let now = self.now();
        let by = now.saturating_sub(self.since_start(self.lab().now()));
        if !by.is_zero() {
            let advanced = self.lab().advance(by);
            advanced.expect("the clock is that of a simulation");
        }
    }

    /// No task can run. Wakes the driver, unless it has nothing to do but sleep.
    fn idle(&self) {
        self.follow();
        let state = (self.now(), self.lab().next_due());
        let mut driver = self.driver.lock();
        if driver.asleep != Some(state) {
            driver.is_on = true;
            let waker = driver.waker.take();
            drop(driver);
            waker.into_iter().for_each(Waker::wake);
        }
    }

    /// Waits until no task can run.
    fn poll_idle(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut driver = self.driver.lock();
        if driver.is_on {
            driver.is_on = false;
            return Poll::Ready(());
        }
        driver.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Lets the next thing happen, now that no task can run.
    fn next(&self) -> Result<Next> {
        let mut driver = self.driver.lock();
        let is_still = driver.activity == self.lab().activity();
        driver.turns = if is_still { driver.turns + 1 } else { 0 };
        driver.asleep = None;
        let next = if driver.turns < PATIENCE {
            self.let_happen(&mut driver)?
        } else {
            None
        };
        driver.activity = self.lab().activity();
        next.ok_or_else(|| {
            let since = driver.quiet.map_or(self.now(), |quiet| quiet.since);
            let text = rt::stalled_text(self.lab(), self.start + since);
            error(ErrorKind::Stalled, text)
        })
    }

    /// Lets the next thing happen, if it is on the fabric. `None` if there is none.
    ///
    /// The runtime leaps by whole ticks from timer to timer, so the driver takes it from a time
    /// between two ticks to the next one, and sleeps no longer than to the last tick before the
    /// next thing on the fabric.
    fn let_happen(&self, driver: &mut Driver) -> Result<Option<Next>> {
        let now = self.now();
        let of_fabric = self.since_start(self.lab().now());
        if of_fabric > now {
            // A task has moved the clock of the simulation.
            return Ok(Some(Next::Advance(of_fabric - now)));
        }
        let due = self.lab().next_due();
        let past = Duration::from_nanos((now.as_nanos() % TICK.as_nanos()) as u64);
        let wait = due.map(|due| self.since_start(due).saturating_sub(now));
        if let Some(wait) = wait.filter(|wait| *wait < TICK - past) {
            self.lab().step(wait)?;
            return Ok(Some(Next::Advance(wait)));
        }
        if !past.is_zero() {
            self.lab().advance(TICK - past)?;
            return Ok(Some(Next::Advance(TICK - past)));
        }
        driver.asleep = Some((now, due));
        if let Some(wait) = wait {
            driver.quiet = None;
            let ticks = Duration::from_millis(wait.as_millis() as u64);
            return Ok(Some(Next::Sleep(Instant::now() + ticks)));
        }
        // On its way to a late timer the runtime stops again and again.
        let activity = self.lab().activity();
        let before = driver.quiet.filter(|quiet| quiet.activity == activity);
        let quiet = before.unwrap_or(Quiet {
            activity,
            since: now,
            until: now + FOREVER,
        });
        driver.quiet = Some(quiet);
        let is_over = quiet.until <= now;
        Ok((!is_over).then(|| Next::Sleep(Instant::now() + (quiet.until - now))))
    }
}

/// Lets one thing after the other happen, each when no task can run, until there is none.
async fn drive(clock: Arc<Clock>) -> Error {
    let mut sleep: Option<Pin<Box<Sleep>>> = None;
    loop {
        poll_fn(|context| {
            // It only makes the runtime stop at its time.
            if let Some(sleep) = &mut sleep {
                let _ = sleep.as_mut().poll(context);
            }
            clock.poll_idle(context)
        })
        .await;
        sleep = None;
        match clock.next() {
            Ok(Next::Advance(by)) if by.is_zero() => {}
            Ok(Next::Advance(by)) => advance(by).await,
            Ok(Next::Sleep(until)) => sleep = Some(Box::pin(sleep_until(until))),
            Err(error) => return error,
        }
    }
}

fn error(kind: ErrorKind, text: String) -> Error {
    Error::new(Verb::Lab, kind, Cause::Text(text.into()))
}
