//! Timers of processes, which run by the clock of the program: alarms, interval timers, POSIX
//! timers and descriptors of timers.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use syscalls::Sysno;

use crate::clock::{self, Clock, Nanos, VERY_LONG};
use crate::memory;
use crate::proc;
use crate::sys::{self, Answer, Notification};
use crate::table::{ProcessNumber, Table};

/// What a timer is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    /// `alarm` and `setitimer`.
    Alarm(ProcessNumber),
    /// By the number that it got here: the kernel has none of them.
    Posix(ProcessNumber, i32),
    Descriptor(ProcessNumber, i32),
}

/// What happens when the time of a timer is over.
#[derive(Debug)]
enum Effect {
    Signal(Event),
    Readable(OwnedFd),
}

/// The signal of a timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    signal: i32,
    value: u64,
    /// The thread that gets it, or any of the process.
    tid: Option<i32>,
}

#[derive(Debug)]
struct Timer {
    due: Option<Nanos>,
    interval: Nanos,
    effect: Effect,
}

#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeMap<Key, Timer>);

const SECOND: Nanos = 1_000_000_000;

impl Event {
    const NONE: i32 = 1;
    const THREAD: i32 = 4;
    const ALARM: Self = Self {
        signal: libc::SIGALRM,
        value: 0,
        tid: None,
    };

    /// The `sigevent` of a `timer_create`. Fails with an error.
    pub(crate) fn read(tid: i32, at: u64) -> Result<Self, i32> {
        if at == 0 {
            return Ok(Self::ALARM);
        }
        let bytes = memory::read(tid, at, 20).ok_or(libc::EFAULT)?;
        let number = |at: usize| {
            i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let signal = if number(12) == Self::NONE {
            0
        } else {
            Some(number(8))
                .filter(|signal| (1..=libc::SIGRTMAX()).contains(signal))
                .ok_or(libc::EINVAL)?
        };
        Ok(Self {
            signal,
            value: u64::from(number(0).cast_unsigned())
                | u64::from(number(4).cast_unsigned()) << 32,
            tid: (number(12) & Self::THREAD != 0).then_some(number(16)),
        })
    }
}

impl Timers {
    /// When the first is due.
    pub(crate) fn next(&self) -> Option<Nanos> {
        let due = self.0.values().filter_map(|timer| timer.due);
        due.filter(|due| *due < VERY_LONG).min()
    }

    /// Fires those that are due. Returns whether there were any.
    pub(crate) fn fire(&mut self, clock: &Clock, table: &Table) -> bool {
        self.forget_closed(table);
        let mut has_fired = false;
        for (key, timer) in &mut self.0 {
            let Some(due) = timer.due.filter(|due| *due <= clock.now()) else {
                continue;
            };
            has_fired = true;
            timer.due = (timer.interval > 0)
                .then(|| due.saturating_add(timer.interval).max(clock.now() + 1));
            let (Key::Alarm(process) | Key::Posix(process, _) | Key::Descriptor(process, _)) = *key;
            match &timer.effect {
                Effect::Readable(copy) => {
                    sys::set_timer(copy.as_fd(), 1);
                }
                Effect::Signal(event) => {
                    sys::queue_signal(
                        table.processes[process].pid,
                        event.tid,
                        event.signal,
                        event.value,
                    );
                }
            }
        }
        has_fired
    }

    /// Forgets the descriptors of timers that the program has closed: they live on by the copies
    /// here. One that another number or process still has goes on by that.
    fn forget_closed(&mut self, table: &Table) {
        let is_closed = |(key, timer): (&Key, &Timer)| match (key, &timer.effect) {
            (Key::Descriptor(process, fd), Effect::Readable(copy)) if timer.due.is_some() => {
                let pid = table.processes[*process].pid;
                (!sys::is_same_file(copy.as_fd(), pid, *fd)).then_some(*key)
            }
            _ => None,
        };
        let closed: Vec<_> = self.0.iter().filter_map(is_closed).collect();
        for key in closed {
            if let Some(timer) = self.0.remove(&key)
                && let Effect::Readable(copy) = &timer.effect
                && let Some((process, fd)) = find(copy, table)
            {
                self.0.entry(Key::Descriptor(process, fd)).or_insert(timer);
            }
        }
    }

    /// The timers of a process that has ended end with it.
    pub(crate) fn forget(&mut self, process: ProcessNumber) {
        self.0.retain(|key, _| {
            let (Key::Alarm(of) | Key::Posix(of, _) | Key::Descriptor(of, _)) = *key;
            of != process
        });
    }

    /// Makes a POSIX timer, and returns its number.
    pub(crate) fn create(&mut self, process: ProcessNumber, event: Event) -> i32 {
        let is_free = |id: &i32| !self.0.contains_key(&Key::Posix(process, *id));
        let id = (0..).find(is_free).expect("fewer timers than numbers");
        self.set(Key::Posix(process, id), None, 0, Effect::Signal(event));
        id
    }

    /// Another program has no POSIX timers of the one before.
    pub(crate) fn forget_posix(&mut self, process: ProcessNumber) {
        self.0
            .retain(|key, _| !matches!(key, Key::Posix(of, _) if *of == process));
    }

    fn set(&mut self, key: Key, due: Option<Nanos>, interval: Nanos, effect: Effect) {
        self.0.insert(
            key,
            Timer {
                due,
                interval,
                effect,
            },
        );
    }

    /// Carries out a call that is about timers. `copy` is the descriptor that it names.
    pub(crate) fn call(
        &mut self,
        process: ProcessNumber,
        call: &Notification,
        clock: &Clock,
        copy: impl FnOnce(i32) -> Option<OwnedFd>,
    ) -> Answer {
        let (tid, a) = (call.tid, call.args);
        let first = a[0] as i32;
        match Sysno::new(call.number as usize) {
            #[cfg(target_arch = "x86_64")]
            Some(Sysno::alarm) => {
                let key = Key::Alarm(process);
                let left = self.left(key, clock).time;
                let seconds = Nanos::from(a[0] as u32);
                let due = (seconds > 0).then(|| clock.now().saturating_add(seconds * SECOND));
                self.set(key, due, 0, Effect::Signal(Event::ALARM));
                Answer::Return(left.div_ceil(SECOND) as i64)
            }
            Some(Sysno::setitimer) if first == 0 => {
                let key = Key::Alarm(process);
                let old = self.left(key, clock);
                // Without a time it ends the timer.
                let (due, interval) = match read(tid, a[1], 1000) {
                    _ if a[1] == 0 => (0, 0),
                    Ok(times) => times,
                    Err(error) => return fail(error),
                };
                let due = (due > 0).then(|| clock.now().saturating_add(due));
                self.set(key, due, interval, Effect::Signal(Event::ALARM));
                write_old(old, tid, a[2], 1000)
            }
            Some(Sysno::getitimer) if first == 0 => {
                write(self.left(Key::Alarm(process), clock), tid, a[1], 1000)
            }
            Some(Sysno::timer_settime) => {
                let key = Key::Posix(process, first);
                let old = self.left(key, clock);
                let Some(timer) = self.0.get_mut(&key) else {
                    return Answer::Continue;
                };
                if a[2] == 0 {
                    return fail(libc::EINVAL);
                }
                (timer.due, timer.interval) = match due(tid, a, clock) {
                    Ok(times) => times,
                    Err(error) => return fail(error),
                };
                write_old(old, tid, a[3], 1)
            }
            Some(Sysno::timer_gettime) if self.0.contains_key(&Key::Posix(process, first)) => {
                write(self.left(Key::Posix(process, first), clock), tid, a[1], 1)
            }
            Some(Sysno::timer_delete) => {
                let was_there = self.0.remove(&Key::Posix(process, first)).is_some();
                if was_there {
                    Answer::Return(0)
                } else {
                    Answer::Continue
                }
            }
            Some(Sysno::timer_getoverrun) if self.0.contains_key(&Key::Posix(process, first)) => {
                Answer::Return(0)
            }
            Some(Sysno::timerfd_settime) => {
                let Some(copy) = copy(first) else {
                    return Answer::Continue;
                };
                let key = Key::Descriptor(process, first);
                let old = self.left(key, clock);
                // The kernel fails the call with other times and descriptors.
                let Ok((due, interval)) = due(tid, a, clock) else {
                    return Answer::Continue;
                };
                if !sys::set_timer(copy.as_fd(), 0) {
                    return Answer::Continue;
                }
                self.set(key, due, interval, Effect::Readable(copy));
                write_old(old, tid, a[3], 1)
            }
            Some(Sysno::timerfd_gettime)
                if self.0.contains_key(&Key::Descriptor(process, first)) =>
            {
                write(
                    self.left(Key::Descriptor(process, first), clock),
                    tid,
                    a[1],
                    1,
                )
            }
            _ => Answer::Continue,
        }
    }

    /// What is left of a timer, and its interval.
    fn left(&self, key: Key, clock: &Clock) -> Left {
        let timer = self.0.get(&key);
        let due = timer.and_then(|timer| timer.due);
        let left = due.map_or(0, |due| due.saturating_sub(clock.now()).max(1));
        Left {
            time: left,
            interval: timer.map_or(0, |timer| timer.interval),
        }
    }
}

/// What is left of a timer, and its interval.
#[derive(Clone, Copy)]
struct Left {
    time: Nanos,
    interval: Nanos,
}

fn fail(error: i32) -> Answer {
    Answer::Return(-i64::from(error))
}

/// Writes what was left of a timer that has been set, if the program wants that.
fn write_old(left: Left, tid: i32, at: u64, unit: Nanos) -> Answer {
    if at == 0 {
        Answer::Return(0)
    } else {
        write(left, tid, at, unit)
    }
}

/// Writes what is left of a timer, and its interval, in seconds and `unit`s.
fn write(left: Left, tid: i32, at: u64, unit: Nanos) -> Answer {
    let words = [left.interval, left.time].map(|time| [time / SECOND, time % SECOND / unit]);
    let bytes: Vec<u8> = words
        .as_flattened()
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    if memory::write(tid, at, &bytes) {
        Answer::Return(0)
    } else {
        fail(libc::EFAULT)
    }
}

/// A living process that has the file of a descriptor, and the number of it there.
fn find(copy: &OwnedFd, table: &Table) -> Option<(ProcessNumber, i32)> {
    let living = table.processes.iter().enumerate();
    let mut living = living.filter(|(_, process)| process.handle.is_some());
    living.find_map(|(number, process)| {
        let mut fds = proc::descriptors(process.pid).into_iter();
        let fd = fds.find(|fd| sys::is_same_file(copy.as_fd(), process.pid, *fd))?;
        Some((number, fd))
    })
}

/// When a timer is due that is set now, and its interval. Fails with an error.
fn due(tid: i32, a: [u64; 6], clock: &Clock) -> Result<(Option<Nanos>, Nanos), i32> {
    let (due, interval) = read(tid, a[2], 1)?;
    let is_absolute = a[1] & 1 != 0;
    let due = (due > 0).then(|| {
        if is_absolute {
            due
        } else {
            clock.now().saturating_add(due)
        }
    });
    Ok((due, interval))
}

/// The time of a timer, and its interval, as the program passes them. Fails with an error.
fn read(tid: i32, at: u64, unit: Nanos) -> Result<(Nanos, Nanos), i32> {
    let [interval, interval_rest, due, due_rest] = clock::words_at(tid, at).ok_or(libc::EFAULT)?;
    let interval = clock::nanos(interval, interval_rest, unit)?;
    Ok((clock::nanos(due, due_rest, unit)?, interval))
}
