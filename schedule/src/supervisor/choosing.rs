//! Choosing what happens next.

use std::mem;
use std::time::{Duration, Instant};

use syscalls::Sysno;

use super::readiness::{Class, Way};
use super::{CLOCK_STEP, PATIENCE, STEP, Supervisor};
use crate::calls::{Call, Descriptors, Over};
use crate::clock::{Nanos, Timeout};
use crate::memory;
use crate::proc;
use crate::report::{ByTime, End};
use crate::strategy::{Choice, Choices};
use crate::sys::{Answer, Notification};
use crate::table::{State, ThreadNumber};

/// Steps after which a signal from outside is looked for.
const LOOK_FOR_SIGNALS: u64 = 256;

/// How much faster than real time the clock of the program is while a thread runs without a call.
/// What that thread waits for may need time to pass; and others may wait for it only for a
/// limited time.
const PACE_OF_RUNNING: Nanos = 10;

/// The same, while a thread sleeps in a call that is not trapped, or waits for something from
/// outside.
const PACE_OF_SLEEPING: Nanos = 100;

/// Looks of each thread, in which no other thread works, after which time passes for them.
const PATIENT_LOOKS: usize = 4;

impl Supervisor {
    /// Lets one thread go on, or time pass. Returns the end, if there is nothing else.
    pub(super) fn step(&mut self) -> Option<End> {
        self.has_signals |= self.timers.fire(&self.clock, &self.table);
        // One may come from outside.
        self.has_signals |= self.steps.count.is_multiple_of(LOOK_FOR_SIGNALS);
        let has_looked = mem::take(&mut self.has_signals);
        if has_looked {
            self.bury_killed();
        }
        self.take_locks();
        let (mut works, mut looks, mut risks) = (Vec::new(), Vec::new(), Vec::new());
        let living: Vec<_> = self.table.living().collect();
        for number in living {
            let is_signaled = has_looked && self.is_signaled(number);
            // It may wait for longer.
            self.has_signals |= is_signaled;
            if let Some(way) = self.enabled(number, is_signaled) {
                let list = match way.class {
                    Class::Works => &mut works,
                    Class::Looks => &mut looks,
                    Class::Risks => &mut risks,
                };
                list.push((number, way));
            }
        }
        if works.is_empty() && (looks.is_empty() || self.looks > 4 * looks.len() + 3) {
            works = risks;
        }
        works.sort_unstable_by_key(|(number, _)| *number);
        looks.sort_unstable_by_key(|(number, _)| *number);
        if works.is_empty() {
            self.looks += 1;
            let due = self.next_deadline();
            let later = self.after_looks(looks.len());
            match due.filter(|due| *due <= later) {
                Some(due) => {
                    self.looks = 0;
                    if self.does_background_alone_go_on() {
                        return Some(End::Deadlock(self.stuck()));
                    }
                    if !self.waits_for_network(false) {
                        self.pass_time(due);
                    }
                    return None;
                }
                None if !looks.is_empty() => self.clock.set(later),
                None => {}
            }
            if looks.is_empty() {
                if !has_looked {
                    self.has_signals = true;
                    return None;
                }
                return self.wait_really();
            }
        } else {
            self.looks = 0;
        }
        let numbers =
            |list: &[(ThreadNumber, Way)]| list.iter().map(|(number, _)| *number).collect();
        let choices = Choices {
            works: numbers(&works),
            looks: numbers(&looks),
            is_point: self.last.is_some_and(|last| self.is_at_point(last)),
            now: self.clock.now(),
            due: self.next_deadline(),
        };
        match self.chooser.choose(&choices)? {
            Choice::Time(end) => self.clock.set(end),
            Choice::Thread(chosen) => {
                let mut all = works.into_iter().chain(looks);
                let (number, way) = all.find(|(number, _)| *number == chosen)?;
                self.last = Some(number);
                self.note_look(number, way.is_empty);
                self.go_on(number, way.answer);
            }
        }
        None
    }

    /// To when time passes while nothing but this number of threads goes on, and these only look.
    ///
    /// First it stands still: a piece of work may need several looks. Then it goes faster and
    /// faster. It jumps if no thread looks.
    fn after_looks(&self, looks: usize) -> Nanos {
        if looks == 0 {
            return Nanos::MAX;
        }
        let late = self.looks.saturating_sub(PATIENT_LOOKS * (looks + 1));
        match late / looks {
            0 => self.clock.now(),
            rounds if self.next_deadline().is_none() => self.clock.now() + (STEP << rounds.min(10)),
            rounds => self.clock.now() + (STEP << rounds.min(30)),
        }
    }

    fn is_at_point(&self, number: ThreadNumber) -> bool {
        let parked = self.table.parked(number);
        parked.is_some_and(|parked| parked.call == Call::Point)
    }

    fn go_on(&mut self, number: ThreadNumber, answer: Answer) {
        let Some(parked) = self.table.parked(number) else {
            return;
        };
        let time = if parked.call == Call::Clock {
            CLOCK_STEP
        } else {
            STEP
        };
        self.clock.set(self.clock.now() + time);
        let went_on = self.clock.now();
        let notification = parked.notification;
        let child = match parked.call {
            Call::Child(child) => Some(child),
            _ => None,
        };
        let is_over = parked.deadline.is_some_and(|end| end <= self.clock.now());
        if let (Answer::Return(0), Call::Descriptors(wait), true) = (answer, &parked.call, is_over)
        {
            empty(notification.tid, wait);
        }
        if let (Answer::Return(..0), Call::Sleep(Timeout::After(_)), Some(end)) =
            (answer, &parked.call, parked.deadline)
        {
            write_left(&notification, end.saturating_sub(self.clock.now()));
        }
        if let Some(child) = child {
            self.note_changes(number, child);
        }
        if self.is_logged {
            let name = Sysno::new(notification.number as usize).map_or("?", |call| call.name());
            eprintln!(
                "{} t{number} {name} {answer:?} at {:?}",
                self.steps.count,
                self.clock.elapsed()
            );
        }
        self.steps
            .add(number, notification.number, answer == Answer::Continue);
        self.table.threads[number].went_on = went_on;
        self.answer(number, &notification, answer);
    }

    /// The end of the wait that ends first.
    pub(super) fn next_deadline(&self) -> Option<Nanos> {
        let deadlines = self
            .table
            .living()
            .filter_map(|number| self.table.parked(number)?.deadline);
        let deadlines = deadlines.chain(self.timers.next());
        deadlines.filter(|end| *end > self.clock.now()).min()
    }

    /// Lets time pass until a wait is over. Where a thread runs or sleeps without a call that is
    /// trapped, a real wait for it passes, too.
    fn pass_time(&mut self, due: Nanos) {
        let has = |is: fn(&State) -> bool| {
            self.table
                .living()
                .any(|number| is(&self.table.threads[number].state))
        };
        let pace = if has(|state| matches!(state, State::Spins)) {
            PACE_OF_RUNNING
        } else if has(|state| matches!(state, State::Away)) || self.does_wait_outside(false) {
            PACE_OF_SLEEPING
        } else {
            self.clock.set(due);
            return;
        };
        let start = Instant::now();
        let left = Duration::from_nanos((due - self.clock.now()) / pace + 1);
        self.poll(left.min(PATIENCE));
        let passed = start.elapsed().as_nanos() as Nanos * pace;
        self.clock.set(due.min(self.clock.now() + passed));
    }

    /// No thread can go on by itself. Waits for what comes from outside, if anything can.
    fn wait_really(&mut self) -> Option<End> {
        let living: Vec<_> = self.table.living().collect();
        if self.has_any_continued(&living) {
            return None;
        }
        let is_away = |number: &ThreadNumber| {
            matches!(
                self.table.threads[*number].state,
                State::Away | State::Spins
            )
        };
        let is_any_away = living.iter().any(is_away);
        if self.does_wait_outside(true) || is_any_away {
            self.poll(PATIENCE);
            return None;
        }
        if self.status.is_some() {
            // What the program left behind.
            return Some(End::Ended);
        }
        if self.waits_for_network(true) {
            return None;
        }
        Some(End::Deadlock(self.stuck()))
    }

    /// Whether a thread waits for something from outside.
    fn does_wait_outside(&mut self, is_last: bool) -> bool {
        let mut living = self.table.living();
        let outside = living.find_map(|number| self.waits_outside(number, is_last));
        drop(living);
        if let Some(fd) = outside {
            self.by_time.insert(ByTime::Outside { fd });
        }
        outside.is_some()
    }

    /// Whether a thread that was stopped is not any more: by a terminal, for instance.
    fn has_any_continued(&mut self, living: &[ThreadNumber]) -> bool {
        let mut has_any = false;
        for number in living {
            let thread = &mut self.table.threads[*number];
            if matches!(thread.state, State::Stopped)
                && proc::state(thread.tid) != proc::State::Stopped
            {
                thread.state = State::Runs;
                has_any = true;
            }
        }
        has_any
    }

    /// Takes the locks of `flock` that are free for those that wait for them.
    fn take_locks(&mut self) {
        let is_lock = |number: &ThreadNumber| {
            let parked = self.table.parked(*number);
            parked.is_some_and(|parked| {
                matches!(parked.call, Call::Lock { .. }) && parked.result.is_none()
            })
        };
        let mut waiting: Vec<_> = self.table.living().filter(is_lock).collect();
        waiting.sort_unstable();
        while !waiting.is_empty() {
            let number = waiting.swap_remove(self.draw.below(waiting.len()));
            let result = self.take_lock(number);
            if let Some(parked) = self.table.parked_mut(number) {
                parked.result = result;
            }
        }
    }
}

/// Writes what a call writes when its time is over.
fn empty(tid: i32, wait: &Descriptors) {
    match &wait.over {
        Over::Never | Over::Again | Over::Zero => {}
        Over::Poll { at, count } => {
            for entry in 0..*count {
                memory::write(tid, at + 8 * entry + 6, &[0; 2]);
            }
        }
        Over::Select { sets, length, left } => {
            for set in sets.iter().filter(|set| **set != 0) {
                memory::write(tid, *set, &vec![0; *length]);
            }
            memory::write(tid, *left, &[0; 16]);
        }
    }
}

/// Writes how long a sleep that a signal has ended would have lasted.
fn write_left(call: &Notification, left: Nanos) {
    const SECOND: Nanos = 1_000_000_000;
    let is_nanosleep = Sysno::new(call.number as usize) == Some(Sysno::nanosleep);
    let at = call.args[if is_nanosleep { 1 } else { 3 }];
    let words = [left / SECOND, left % SECOND].map(Nanos::to_ne_bytes);
    if at != 0 {
        memory::write(call.tid, at, words.as_flattened());
    }
}
