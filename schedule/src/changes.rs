//! The changes of a schedule, and schedules that follow given ones.
//!
//! A schedule without changes lets each thread go on as long as it can, and then the next one. Any
//! other schedule is a list of changes to that. With fewer of them a schedule is easier to read.

use core::fmt;
use core::str::FromStr;
use std::collections::{BTreeMap, VecDeque};

use crate::clock::Nanos;
use crate::strategy::{Choice, Choices, Strategy, TOO_MANY};
use crate::table::ThreadNumber;

/// What happens after a step of a thread, instead of what a schedule without changes has there.
///
/// As text it is `THREAD.STEP>THREAD`, or `THREAD.STEP+NANOSECONDS` if time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The thread that went on last.
    pub thread: usize,
    /// How often it had gone on by then.
    pub step: u64,
    /// What happens.
    pub then: Then,
}

/// What a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// This thread goes on.
    Thread(usize),
    /// This time passes, in nanoseconds.
    Time(u64),
}

/// Most changes that a run records: a longer list cannot be read.
const MOST: usize = 100_000;

/// Chooses what happens next, and records the changes.
pub(crate) struct Chooser {
    by: By,
    last: Option<ThreadNumber>,
    /// Steps in a row of the last thread.
    in_a_row: u32,
    /// Steps of each thread.
    steps: BTreeMap<ThreadNumber, u64>,
    changes: Vec<Change>,
}

enum By {
    Strategy(Strategy),
    Changes(BTreeMap<(ThreadNumber, u64), VecDeque<Then>>),
}

impl Chooser {
    /// By the strategy of a seed.
    pub(crate) fn of_seed(seed: u64) -> Self {
        Self::new(By::Strategy(Strategy::new(seed)))
    }

    /// By a list of changes.
    pub(crate) fn of_changes(changes: &[Change]) -> Self {
        let mut by = BTreeMap::<_, VecDeque<_>>::new();
        for Change { thread, step, then } in changes {
            by.entry((*thread, *step)).or_default().push_back(*then);
        }
        Self::new(By::Changes(by))
    }

    fn new(by: By) -> Self {
        Self {
            by,
            last: None,
            in_a_row: 0,
            steps: BTreeMap::new(),
            changes: Vec::new(),
        }
    }

    pub(crate) fn changes(self) -> Vec<Change> {
        self.changes
    }

    /// What happens next. `None` if no thread can go on.
    pub(crate) fn choose(&mut self, choices: &Choices) -> Option<Choice> {
        let usual = self.usual(choices)?;
        let at = self.at();
        let choice = match &mut self.by {
            By::Strategy(strategy) => strategy.choose(choices)?,
            By::Changes(changes) => {
                let change = changes.get_mut(&at).and_then(VecDeque::pop_front);
                match change {
                    Some(Then::Time(time)) => Choice::Time(choices.now + time),
                    Some(Then::Thread(thread)) if choices.has(thread) => Choice::Thread(thread),
                    _ => Choice::Thread(usual),
                }
            }
        };
        let then = match choice {
            Choice::Thread(thread) => Then::Thread(thread),
            Choice::Time(end) => Then::Time(end.saturating_sub(choices.now)),
        };
        if then != Then::Thread(usual) && self.changes.len() < MOST {
            let (thread, step) = at;
            self.changes.push(Change { thread, step, then });
        }
        if let Choice::Thread(thread) = choice {
            self.in_a_row = if self.last == Some(thread) {
                self.in_a_row + 1
            } else {
                0
            };
            self.last = Some(thread);
            *self.steps.entry(thread).or_default() += 1;
        }
        Some(choice)
    }

    /// The last thread, and how often it has gone on.
    fn at(&self) -> (ThreadNumber, u64) {
        let last = self.last.unwrap_or_default();
        (last, self.steps.get(&last).copied().unwrap_or_default())
    }

    /// The thread that goes on without a change.
    fn usual(&self, choices: &Choices) -> Option<ThreadNumber> {
        let list = if choices.works.is_empty() {
            &choices.looks
        } else {
            &choices.works
        };
        let is_spent = self.in_a_row >= TOO_MANY;
        let last = self.last.filter(|last| !is_spent && list.contains(last));
        let after = |last| list.iter().copied().find(|thread| *thread > last);
        last.or_else(|| self.last.and_then(after))
            .or_else(|| list.first().copied())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { thread, step, then } = self;
        match then {
            Then::Thread(to) => write!(f, "{thread}.{step}>{to}"),
            Then::Time(time) => write!(f, "{thread}.{step}+{time}"),
        }
    }
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (thread, rest) = text.split_once('.')?;
            let at = rest.find(['>', '+'])?;
            let (step, to) = (&rest[..at], &rest[at + 1..]);
            let then = if rest.as_bytes()[at] == b'>' {
                Then::Thread(to.parse().ok()?)
            } else {
                Then::Time(to.parse::<Nanos>().ok()?)
            };
            Some(Self {
                thread: thread.parse().ok()?,
                step: step.parse().ok()?,
                then,
            })
        };
        parse().ok_or_else(|| format!("{text:?} is not a change, such as 2.57>0 or 2.57+1000000"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_read_as_it_is_written() {
        for text in ["2.57>0", "0.1+1000000"] {
            assert_eq!(text.parse::<Change>().unwrap().to_string(), text);
        }
        for text in ["", "2", "2.57", "2.57>", "a.1>2", "1.2>-3"] {
            assert!(text.parse::<Change>().is_err(), "{text}");
        }
    }

    /// Runs three threads that can always go on. Returns what happened.
    fn run(chooser: &mut Chooser) -> Vec<Choice> {
        let mut choices = Choices {
            works: vec![0, 1, 2],
            looks: Vec::new(),
            is_point: true,
            now: 0,
            due: Some(2_000_000),
        };
        let next = |_| {
            let choice = chooser.choose(&choices).expect("a thread can go on");
            choices.now += 1000;
            if let Choice::Time(end) = choice {
                choices.now = end;
                choices.due = Some(end + 2_000_000);
            }
            choice
        };
        (0..500).map(next).collect()
    }

    #[test]
    fn the_changes_of_a_run_make_the_same_run() {
        for seed in 0..64 {
            let mut first = Chooser::of_seed(seed);
            let all = run(&mut first);
            let mut again = Chooser::of_changes(&first.changes());
            assert_eq!(run(&mut again), all, "seed {seed}");
        }
    }
}
