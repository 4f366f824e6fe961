//! The report about threads that cannot go on.

use std::time::Duration;

use syscalls::Sysno;

use super::Supervisor;
use crate::calls::{Call, Child};
use crate::clock::Nanos;
use crate::proc;
use crate::report::Stuck;
use crate::table::{Parked, State, ThreadNumber};

/// A thread that has waited for this time, while only devices worked, waits for nothing.
const LONG: Nanos = 60_000_000_000;

impl Supervisor {
    /// All living threads.
    pub(super) fn stuck(&self) -> Vec<Stuck> {
        let mut living: Vec<_> = self.table.living().collect();
        living.sort_unstable();
        living
            .into_iter()
            .map(|number| self.describe(number))
            .collect()
    }

    /// Whether only threads that are not the program's have gone on for a long time, and no wait of
    /// the others has an end.
    pub(super) fn does_background_alone_go_on(&self) -> bool {
        let Some(prefix) = &self.limits.background else {
            return false;
        };
        let is_background =
            |number: &ThreadNumber| proc::name(self.table.threads[*number].tid).starts_with(prefix);
        let waits_long = |number: &ThreadNumber| {
            let went_on = self.table.threads[*number].went_on;
            let parked = self.table.parked(*number);
            parked.is_some_and(|parked| parked.deadline.is_none())
                && self.clock.now() >= went_on + LONG
        };
        let (long, others): (Vec<_>, Vec<_>) = self.table.living().partition(waits_long);
        !long.is_empty()
            && self.timers.next().is_none()
            && others.iter().all(is_background)
            && !long.iter().all(is_background)
    }

    pub(super) fn describe(&self, number: ThreadNumber) -> Stuck {
        let thread = &self.table.threads[number];
        let parked = self.table.parked(number);
        let call = parked.and_then(|parked| Sysno::new(parked.notification.number as usize));
        let other = match thread.state {
            State::InVfork(_) => "vfork",
            State::Stopped => "(no call: it is stopped)",
            State::Spins => "(no call: it runs)",
            _ => "(a call that is not trapped)",
        };
        Stuck {
            thread: number,
            pid: self.table.processes[thread.process].pid,
            tid: thread.tid,
            name: proc::name(thread.tid),
            call: call.map_or(other, |call| call.name()),
            args: parked.map_or([0; 6], |parked| parked.notification.args),
            waits_for: parked.map_or_else(String::new, |parked| self.waits_for(number, parked)),
            since: parked.map_or(Duration::ZERO, |parked| self.clock.elapsed_at(parked.since)),
        }
    }

    fn waits_for(&self, number: ThreadNumber, parked: &Parked) -> String {
        const SOME: usize = 6;
        let tid = parked.notification.tid;
        let file = |fd: i32| {
            let file = proc::file(tid, fd).unwrap_or_else(|| "closed".to_owned());
            // The numbers of sockets and pipes differ from run to run.
            let mut kinds = ["socket", "pipe"].into_iter();
            let kind = kinds.find(|kind| file.starts_with(&format!("{kind}:[")));
            let file = kind.map_or(file.as_str(), |kind| kind);
            format!("descriptor {fd} ({file})")
        };
        let what = match &parked.call {
            Call::Futex(_) => match self.table.holder(number) {
                Some(holder) if holder == number => "a mutex that it holds itself".to_owned(),
                Some(holder) => format!("a mutex that thread {holder} holds"),
                None => String::new(),
            },
            Call::Descriptors(wait) => {
                let mut all: Vec<_> = wait.wanted.iter().map(|wanted| wanted.fd).collect();
                let in_epoll = all.iter().flat_map(|fd| proc::of_epoll(tid, *fd));
                let in_epoll: Vec<_> = in_epoll.collect();
                all.extend(in_epoll);
                let mut files: Vec<_> = all.iter().take(SOME).map(|fd| file(*fd)).collect();
                if all.len() > SOME {
                    files.push(format!("{} more", all.len() - SOME));
                }
                files.join(", ")
            }
            Call::Lock { fd, .. } => format!("the lock of {}", file(*fd)),
            Call::Child(Child { pid: Some(pid), .. }) => format!("the end of process {pid}"),
            Call::Child(_) => "the end of a child".to_owned(),
            Call::Signal(_) => "a signal".to_owned(),
            _ => String::new(),
        };
        match parked.deadline.map(|end| self.clock.elapsed_at(end)) {
            Some(end) if what.is_empty() => format!("time to pass until {end:?}"),
            Some(end) => format!("{what}, or until {end:?}"),
            None => what,
        }
    }

    /// The threads that wait for mutexes of each other, if the wait of this one closes a circle.
    pub(super) fn circle(&self, number: ThreadNumber) -> Option<Vec<ThreadNumber>> {
        let mut circle = vec![number];
        loop {
            let last = *circle.last()?;
            let holder = self.table.holder(last)?;
            // A wait that has an end opens it.
            if self.table.parked(last)?.deadline.is_some() {
                return None;
            }
            match circle.iter().position(|other| *other == holder) {
                Some(0) => return Some(circle),
                // Found when that one was closed.
                Some(_) => return None,
                None => circle.push(holder),
            }
        }
    }
}
