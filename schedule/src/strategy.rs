//! Who goes on: strategies that find different races. The seed decides which one a run has.
//!
//! A step is *contended* if there is more than one thing that can happen. Changes are drawn among
//! contended steps alone: most others are the loading of a single thread.

use core::time::Duration;
use std::collections::BTreeMap;

use crate::clock::Nanos;
use crate::draw::Draw;
use crate::table::ThreadNumber;

/// What can happen next.
pub(crate) struct Choices {
    /// Threads that can get something done, by number.
    pub(crate) works: Vec<ThreadNumber>,
    /// Threads that only look, by number.
    pub(crate) looks: Vec<ThreadNumber>,
    /// The thread that went on last is at a point of the program.
    pub(crate) is_point: bool,
    pub(crate) now: Nanos,
    /// When the next wait is over.
    pub(crate) due: Option<Nanos>,
}

impl Choices {
    /// Whether a thread can go on.
    pub(crate) fn has(&self, thread: ThreadNumber) -> bool {
        self.works.contains(&thread) || self.looks.contains(&thread)
    }
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Thread(ThreadNumber),
    /// Nothing, until this time.
    Time(Nanos),
}

/// A wait that is over sooner may race with what threads do.
const SOON: Nanos = Duration::from_millis(60).as_nanos() as Nanos;

/// Steps in a row of one thread after which others go first.
pub(crate) const TOO_MANY: u32 = 100;

/// Looks in a row after which time passes, while the threads that work stop.
const MANY_LOOKS: u32 = 4;

pub(crate) struct Strategy {
    kind: Kind,
    draw: Draw,
    /// Contended steps so far.
    contended: u64,
    /// Those at points of the program.
    points: u64,
    /// Before one in this many contended steps time passes, if a wait is over soon.
    jump_in: Option<usize>,
    last: Option<ThreadNumber>,
    /// Steps in a row of the last thread.
    in_a_row: u32,
}

enum Kind {
    /// Each thread is as likely as the others. At a point the last one goes on, except once in
    /// `once_in` times.
    Uniform { once_in: usize },
    /// PCT: the thread with the highest priority goes on. Before some contended steps the one that
    /// would go on becomes the last.
    Priorities {
        of: BTreeMap<ThreadNumber, i64>,
        lowest: i64,
        changes: Vec<u64>,
        /// Whether changes are drawn among the points of the program alone.
        is_by_points: bool,
    },
    /// The same thread goes on as long as it can. Once in `once_in` contended steps it has to wait
    /// until no other can go on.
    Delays {
        once_in: usize,
        delayed: Vec<ThreadNumber>,
        /// How often it also has to wait until the waits of others are over.
        jumps: u32,
    },
    /// Some threads are slow: once in `once_in` contended steps one that would go on stops for
    /// a while, in which time passes for others.
    Slow(Slow),
}

struct Slow {
    once_in: usize,
    /// One thread in this many is slow.
    one_in: usize,
    is_slow: BTreeMap<ThreadNumber, bool>,
    /// Whether the others go on one after the other.
    is_mixed: bool,
    /// Until when threads stop.
    until: BTreeMap<ThreadNumber, Nanos>,
    /// How often a thread will stop yet.
    left: u32,
    /// Looks in a row.
    looks: u32,
}

impl Strategy {
    pub(crate) fn new(seed: u64) -> Self {
        let mut draw = Draw::new(seed ^ 0x5c4e_d01e);
        let kind = match seed % 8 {
            0 => Kind::Uniform {
                once_in: [2, 4, 8, 32][draw.below(4)],
            },
            1 | 6 => {
                // Runs have different lengths, which are not known before.
                let is_by_points = draw.below(2) == 0;
                let length = [50, 100, 200, 400][draw.below(4)];
                let count = [2, 4, 8, 16][draw.below(4)];
                Kind::Priorities {
                    of: BTreeMap::new(),
                    lowest: 0,
                    changes: (0..count).map(|_| draw.next() % length).collect(),
                    is_by_points,
                }
            }
            2 | 4 => Kind::Delays {
                once_in: [4, 8, 16, 32][draw.below(4)],
                delayed: Vec::new(),
                jumps: [0, 2, 8][draw.below(3)],
            },
            _ => Kind::Slow(Slow {
                once_in: [4, 8, 16, 32][draw.below(4)],
                one_in: [1, 1, 1, 4][draw.below(4)],
                is_slow: BTreeMap::new(),
                is_mixed: draw.below(2) == 0,
                until: BTreeMap::new(),
                left: 60,
                looks: 0,
            }),
        };
        let jump_in = [None, None, Some(16), Some(64)][draw.below(4)];
        Self {
            kind,
            draw,
            contended: 0,
            points: 0,
            jump_in,
            last: None,
            in_a_row: 0,
        }
    }

    /// What happens next. `None` if no thread can go on.
    pub(crate) fn choose(&mut self, choices: &Choices) -> Option<Choice> {
        let soon = choices.due.filter(|due| *due < choices.now + SOON);
        let count = choices.works.len() + choices.looks.len();
        let is_contended = count + usize::from(soon.is_some()) > 1;
        self.contended += u64::from(is_contended);
        self.points += u64::from(is_contended && choices.is_point);
        if let (Some(due), Some(jump_in), false) = (soon, self.jump_in, choices.works.is_empty())
            && self.draw.below(jump_in) == 0
        {
            return Some(Choice::Time(due));
        }
        let is_spent = self.in_a_row >= TOO_MANY;
        let last = self.last.filter(|_| !is_spent);
        let choice = match &mut self.kind {
            Kind::Slow(slow) => slow.choose(&mut self.draw, choices, last, is_contended),
            Kind::Delays { delayed, jumps, .. }
                if *jumps > 0
                    && !delayed.is_empty()
                    && without(&choices.works, delayed).is_empty()
                    && soon.is_some() =>
            {
                *jumps -= 1;
                soon.map(Choice::Time)
            }
            _ => self.among(choices, last).map(Choice::Thread),
        };
        if let Some(Choice::Thread(thread)) = choice {
            if self.last == Some(thread) {
                self.in_a_row += 1;
            } else {
                (self.last, self.in_a_row) = (Some(thread), 0);
            }
        }
        choice
    }

    /// The thread that goes on. `last` is the one that may go on again.
    fn among(&mut self, choices: &Choices, last: Option<ThreadNumber>) -> Option<ThreadNumber> {
        let list = if choices.works.is_empty() {
            &choices.looks
        } else {
            &choices.works
        };
        let last = last.filter(|last| list.contains(last));
        let is_spent = last.is_none();
        match &mut self.kind {
            Kind::Uniform { once_in } => {
                if let Some(last) = last.filter(|_| choices.is_point)
                    && self.draw.below(*once_in) != 0
                {
                    return Some(last);
                }
                // One that only looks gets a turn among those that work, too.
                let is_look = !choices.looks.is_empty() && self.draw.below(8) == 0;
                pick(&mut self.draw, if is_look { &choices.looks } else { list })
            }
            Kind::Priorities {
                of,
                lowest,
                changes,
                is_by_points,
            } => {
                for thread in list {
                    of.entry(*thread)
                        .or_insert_with(|| (self.draw.next() >> 2) as i64);
                }
                let best = |of: &BTreeMap<ThreadNumber, i64>| {
                    list.iter().copied().max_by_key(|thread| of[thread])
                };
                let count = if *is_by_points {
                    self.points
                } else {
                    self.contended
                };
                let first = best(of)?;
                let is_late = is_spent && self.last == Some(first);
                if is_late || choices.works.is_empty() || (list.len() > 1 && take(changes, count)) {
                    *lowest -= 1;
                    of.insert(first, *lowest);
                }
                best(of)
            }
            Kind::Delays {
                once_in, delayed, ..
            } => {
                let mut ready = without(list, delayed);
                if ready.is_empty() {
                    delayed.clear();
                    ready.clone_from(list);
                }
                let next = last.filter(|last| ready.contains(last));
                let next = next.or_else(|| pick(&mut self.draw, &ready))?;
                let is_point = choices.is_point && last == Some(next);
                let once_in = if is_point { *once_in } else { 4 * *once_in };
                if list.len() > 1 && self.draw.below(once_in) == 0 {
                    delayed.push(next);
                    let others = without(&ready, delayed);
                    return pick(&mut self.draw, &others).or(Some(next));
                }
                Some(next)
            }
            Kind::Slow(_) => None,
        }
    }
}

impl Slow {
    fn choose(
        &mut self,
        draw: &mut Draw,
        choices: &Choices,
        last: Option<ThreadNumber>,
        is_contended: bool,
    ) -> Option<Choice> {
        self.until.retain(|_, until| *until > choices.now);
        loop {
            let stops = |thread: &ThreadNumber| self.until.contains_key(thread);
            let works = choices.works.iter().copied();
            let works: Vec<_> = works.filter(|thread| !stops(thread)).collect();
            let looks = choices.looks.iter().copied();
            let looks: Vec<_> = looks.filter(|thread| !stops(thread)).collect();
            if works.is_empty() {
                let end = self.until.values().chain(&choices.due).min();
                self.looks += 1;
                if let Some(end) = end
                    && !self.until.is_empty()
                    && (looks.is_empty() || self.looks > MANY_LOOKS)
                {
                    self.looks = 0;
                    return Some(Choice::Time(*end));
                }
                return pick(draw, &looks).map(Choice::Thread);
            }
            self.looks = 0;
            let next =
                last.filter(|last| works.contains(last) && (!self.is_mixed || choices.is_point));
            let next = next.or_else(|| pick(draw, &works))?;
            let is_slow = self.is_slow.entry(next);
            let is_slow = *is_slow.or_insert_with(|| draw.below(self.one_in) == 0);
            // Other calls, such as those of a program that loads, are less likely.
            let is_point = choices.is_point && last == Some(next);
            let once_in = if is_point {
                self.once_in
            } else {
                4 * self.once_in
            };
            if !is_contended || !is_slow || self.left == 0 || draw.below(once_in) != 0 {
                return Some(Choice::Thread(next));
            }
            self.left -= 1;
            let while_ms = 1 << draw.below(7);
            let time = Duration::from_millis(while_ms).as_nanos() as Nanos;
            self.until.insert(next, choices.now + time);
        }
    }
}

fn without(list: &[ThreadNumber], others: &[ThreadNumber]) -> Vec<ThreadNumber> {
    let is_left = |thread: &ThreadNumber| !others.contains(thread);
    list.iter().copied().filter(is_left).collect()
}

fn pick(draw: &mut Draw, list: &[ThreadNumber]) -> Option<ThreadNumber> {
    (!list.is_empty()).then(|| list[draw.below(list.len())])
}

/// Takes a number out of a list. Returns whether it was there.
fn take(list: &mut Vec<u64>, number: u64) -> bool {
    let before = list.len();
    list.retain(|other| *other != number);
    list.len() < before
}
