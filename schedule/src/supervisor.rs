//! The supervisor: lets one thread run at a time.

use std::collections::BTreeSet;
use std::mem;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::WaitStatus;
use syscalls::Sysno;

use crate::calls::{Call, Passing};
use crate::changes::Chooser;
use crate::clock::{Clock, Nanos};
use crate::draw::Draw;
use crate::proc;
use crate::report::{ByTime, End, Run, Steps};
use crate::sys::{self, Answer, Guardian, Listener, Notification, Signals, Started};
use crate::table::{ProcessNumber, State, Table, ThreadNumber};
use crate::timers::Timers;

mod choosing;
mod killing;
mod life;
mod parking;
mod readiness;
mod stuck;

/// How long a program that is asked to end may take, in real time.
const GRACE: Duration = Duration::from_secs(1);

/// How long a thread may sleep in a call that is not trapped before others go on.
const PATIENCE: Duration = Duration::from_millis(10);

/// How long a thread may run without a call before others go on, in nanoseconds.
const PATIENCE_WITH_RUNNING: Nanos = 100_000_000;

/// The time that a step takes, by the clock of the program.
const STEP: Nanos = 1_000;

/// The time that passes for a thread that reads the clock again and again.
const CLOCK_STEP: Nanos = 20_000;

/// When a run ends that does not end by itself.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// By the clock of the program.
    pub(crate) time: Duration,
    /// In real time.
    pub(crate) until: Option<Instant>,
    /// When only threads go on whose names begin so.
    pub(crate) background: Option<String>,
}

pub(crate) struct Supervisor {
    listener: Listener,
    guardian: Guardian,
    clock: Clock,
    table: Table,
    timers: Timers,
    /// Draws what is not a choice of threads.
    draw: Draw,
    chooser: Chooser,
    /// The thread that went on last.
    last: Option<ThreadNumber>,
    root: ProcessNumber,
    status: Option<WaitStatus>,
    steps: Steps,
    /// Whether a signal may wait for a thread.
    has_signals: bool,
    /// Steps in a row in which threads only looked.
    looks: usize,
    /// The files that the program got from outside, by device and inode.
    outside: BTreeSet<(u64, u64)>,
    limits: Limits,
    signals: Signals,
    by_time: BTreeSet<ByTime>,
    /// Threads that wait for mutexes of each other.
    circle: Option<Vec<ThreadNumber>>,
    is_logged: bool,
}

impl Supervisor {
    pub(crate) fn new(
        started: Started,
        clock: Clock,
        seed: u64,
        chooser: Chooser,
        limits: Limits,
    ) -> Self {
        let mut table = Table::default();
        let Started {
            pid,
            handle,
            listener,
            guardian,
        } = started;
        let root = table.add_process(pid, None, handle);
        table.add(pid, root, None);
        // The program has these from its start.
        let outside = (0..3).filter_map(|fd| {
            let file = std::fs::metadata(format!("/proc/self/fd/{fd}")).ok()?;
            Some((file.dev(), file.ino()))
        });
        Self {
            listener,
            guardian,
            clock,
            table,
            timers: Timers::default(),
            draw: Draw::new(seed),
            chooser,
            last: None,
            root,
            status: None,
            steps: Steps::default(),
            has_signals: false,
            looks: 0,
            outside: outside.collect(),
            limits,
            signals: Signals::note(),
            by_time: BTreeSet::new(),
            circle: None,
            is_logged: std::env::var_os("VERBS_SCHEDULE_LOG").is_some(),
        }
    }

    fn is_late(&self) -> bool {
        self.signals.insist()
            || self
                .limits
                .until
                .is_some_and(|until| Instant::now() >= until)
    }

    pub(crate) fn run(mut self) -> Run {
        let end = loop {
            self.settle();
            if self.table.living().next().is_none() {
                break End::Ended;
            }
            if let Some(signal) = self.signals.take() {
                // It may have ended since.
                let _ = sys::send_signal(self.table.processes[self.root].pid, signal);
                self.has_signals = true;
            }
            if self.signals.insist() {
                break End::Interrupted;
            }
            if self.is_late() {
                break End::TimedOut(self.stuck());
            }
            if self.clock.elapsed() > self.limits.time {
                break End::TimeLimit(self.stuck());
            }
            if let Some(circle) = self.circle.take() {
                let threads = circle.into_iter();
                break End::Deadlock(threads.map(|number| self.describe(number)).collect());
            }
            if let Some(end) = self.step() {
                break end;
            }
        };
        let (steps, elapsed) = (self.steps, self.clock.elapsed());
        let by_time = self.by_time.iter().cloned().collect();
        let status = self.status;
        if !matches!(end, End::Ended | End::Interrupted) {
            self.ask_to_end();
        }
        self.kill_all();
        Run {
            status,
            end,
            steps,
            changes: self.chooser.changes(),
            elapsed,
            by_time,
        }
    }

    /// Sends SIGTERM to each process, and lets those that handle it go on for a while: they may say
    /// why they were not at their end.
    fn ask_to_end(&mut self) {
        self.limits.until = Some(Instant::now() + GRACE);
        let count = self.table.processes.len();
        for process in 0..count {
            if self.table.processes[process].handle.is_none() {
                continue;
            }
            // It may be gone since.
            let _ = sys::send_signal(self.table.processes[process].pid, libc::SIGTERM);
        }
        self.has_signals = true;
        while self.table.living().next().is_some() && !self.is_late() {
            self.settle();
            if self.step().is_some() {
                break;
            }
        }
    }

    /// Handles what the running threads do, until each waits.
    fn settle(&mut self) {
        let mut quiet_since = Instant::now();
        while self.has_running() && !self.is_late() {
            if self.poll(PATIENCE) {
                quiet_since = Instant::now();
            } else if quiet_since.elapsed() >= PATIENCE {
                self.look_at_running();
                quiet_since = Instant::now();
            }
        }
    }

    fn has_running(&self) -> bool {
        self.table
            .living()
            .any(|number| self.table.does_run(number))
    }

    /// Handles one thing that has happened, within `timeout`. Returns whether there was one.
    fn poll(&mut self, timeout: Duration) -> bool {
        let handles = self.table.processes.iter().enumerate();
        let handles =
            handles.filter_map(|(number, process)| Some((number, process.handle.as_ref()?)));
        let (numbers, mut fds): (Vec<_>, Vec<_>) = handles
            .map(|(number, handle)| (number, PollFd::new(handle.as_fd(), PollFlags::POLLIN)))
            .unzip();
        fds.push(PollFd::new(self.listener.as_fd(), PollFlags::POLLIN));
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        if poll(&mut fds, timeout).unwrap_or(0) == 0 {
            return false;
        }
        let has = |fd: &PollFd<'_>| {
            fd.revents()
                .is_some_and(|events| events.contains(PollFlags::POLLIN))
        };
        let is_called = fds.last().is_some_and(has);
        let ended: Vec<_> = numbers
            .into_iter()
            .zip(&fds)
            .filter(|(_, fd)| has(fd))
            .map(|(number, _)| number)
            .collect();
        if is_called {
            if let Ok(notification) = self.listener.receive() {
                self.arrive(notification);
            }
            return true;
        }
        for process in &ended {
            self.bury(*process);
        }
        !ended.is_empty()
    }

    /// Looks at threads that run and make no call.
    fn look_at_running(&mut self) {
        let running: Vec<_> = self
            .table
            .living()
            .filter(|number| self.table.does_run(*number))
            .collect();
        for number in running {
            let tid = self.table.threads[number].tid;
            match proc::state(tid) {
                proc::State::Gone | proc::State::Zombie => self.lose(number),
                // In a deep sleep the kernel works: on files, for instance.
                proc::State::Deep => {}
                proc::State::Runs => {
                    if self.has_run_for_long(number) && self.is_waited_for() {
                        self.by_time.insert(ByTime::Ran);
                        let thread = &mut self.table.threads[number];
                        (thread.state, thread.has_spun) = (State::Spins, true);
                    }
                }
                proc::State::Stopped => self.table.threads[number].state = State::Stopped,
                proc::State::Sleeps => {
                    let call = proc::call(tid).and_then(Sysno::new);
                    let before = mem::replace(&mut self.table.threads[number].sleeps, call);
                    let Some(call) = call.filter(|call| before == Some(*call) && may_wait(*call))
                    else {
                        continue;
                    };
                    let call = call.name();
                    if self.is_logged {
                        eprintln!("t{number} is away in {call}");
                    }
                    self.by_time.insert(ByTime::Slept { call });
                    self.table.threads[number].state = State::Away;
                }
            }
        }
    }

    /// Whether a thread has run for long since it was first seen to run without a call.
    fn has_run_for_long(&mut self, number: ThreadNumber) -> bool {
        let thread = &mut self.table.threads[number];
        let Some(now) = proc::ran(thread.tid) else {
            return false;
        };
        let since = *thread.ran.get_or_insert(now);
        thread.has_spun || now - since >= PATIENCE_WITH_RUNNING
    }

    /// Whether a thread can go on, now or later.
    fn is_waited_for(&self) -> bool {
        let can_go_on = |number| self.enabled(number, false).is_some();
        self.next_deadline().is_some() || self.table.living().any(can_go_on)
    }

    /// A thread has called.
    fn arrive(&mut self, notification: Notification) {
        let tid = notification.tid;
        let found = self.table.find(tid).or_else(|| self.birth(tid));
        let Some(number) = found else { return };
        let is_new = mem::take(&mut self.table.threads[number].is_new);
        self.table.threads[number].state = State::Runs;
        let thread = &mut self.table.threads[number];
        (thread.ran, thread.sleeps) = (None, None);
        if let Some(start) = self.table.threads[number].starts.take() {
            self.look_for_birth(number, start);
        }
        let call = Call::of(&notification);
        let is_announced = matches!(call, Call::Passing(Passing::Announce { .. }));
        let number = self.after_exec(number);
        match call {
            Call::Passing(Passing::Announce { clears }) if clears.is_some() => {
                self.table.threads[number].clears = clears;
                self.answer(number, &notification, Answer::Continue);
            }
            Call::Passing(_) if is_new && is_announced => {
                self.park(number, notification, Call::Point)
            }
            Call::Passing(passing) => self.pass(number, &notification, &passing),
            Call::Descriptors(wait)
                if wait.is_write
                    && self.is_any_ready(number, &wait)
                    && self.fits(number, &wait) =>
            {
                self.answer(number, &notification, Answer::Continue);
            }
            call => self.park(number, notification, call),
        }
    }
}

/// Whether a call may wait for other threads. Others may take long, on a busy machine.
fn may_wait(call: Sysno) -> bool {
    match call {
        Sysno::execve | Sysno::execveat | Sysno::clone | Sysno::clone3 => false,
        Sysno::exit | Sysno::exit_group => false,
        #[cfg(target_arch = "x86_64")]
        Sysno::fork | Sysno::vfork => false,
        _ => true,
    }
}
