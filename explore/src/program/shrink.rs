//! Making a program short that shows something.

use proptest::arbitrary::any;
use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::call::Call;
use super::{Pace, Program};

/// Random programs, for property tests. One that fails is shrunk by [`Shrink`].
///
/// ```
/// use proptest::prelude::*;
/// use verbs_explore::program::{Pace, programs, run};
/// use verbs_sim::{Sim, SimConfig};
///
/// proptest!(ProptestConfig::with_cases(10), |(program in programs(Pace::Free))| {
///     let outcome = run(&program, &Sim::new(SimConfig::new()));
///     prop_assert!(outcome.faults.is_empty());
/// });
/// ```
pub fn programs(pace: Pace) -> impl Strategy<Value = Program> {
    Programs(pace)
}

#[derive(Clone, Copy, Debug)]
struct Programs(Pace);

impl Strategy for Programs {
    type Tree = Shrink;
    type Value = Program;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let seed = any::<u64>().new_tree(runner)?.current();
        Ok(Shrink::new(Program::of_seed(seed, self.0)))
    }
}

/// A program that becomes shorter as long as it still fails: calls go, many at first and then one
/// by one, and then items of the lists that are posted.
#[derive(Clone, Debug)]
pub struct Shrink {
    program: Program,
    /// The program before the last step.
    before: Option<Program>,
    stage: Stage,
    /// Where the next step is tried.
    at: usize,
    /// Something has gone since the first stage began.
    progress: bool,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// So many calls go at once.
    Calls(usize),
    /// One item of a list goes.
    Items,
}

impl Shrink {
    /// Of a program that fails.
    pub fn new(program: Program) -> Self {
        let half = program.calls.len().div_ceil(2);
        Self {
            program,
            before: None,
            stage: Stage::Calls(half),
            at: 0,
            progress: false,
        }
    }

    /// Tries the next step, if there is one.
    fn step(&mut self) -> bool {
        loop {
            match self.stage {
                Stage::Calls(chunk) if self.at < self.program.calls.len() => {
                    self.before = Some(self.program.clone());
                    let end = (self.at + chunk).min(self.program.calls.len());
                    self.program.calls.drain(self.at..end);
                    return true;
                }
                Stage::Calls(chunk) => {
                    self.at = 0;
                    self.stage = if chunk > 1 {
                        Stage::Calls(chunk / 2)
                    } else {
                        Stage::Items
                    };
                }
                Stage::Items => {
                    let mut shorter = self.program.clone();
                    if remove_item(&mut shorter.calls, self.at) {
                        self.before = Some(std::mem::replace(&mut self.program, shorter));
                        return true;
                    }
                    if !self.progress {
                        return false;
                    }
                    self.progress = false;
                    self.at = 0;
                    self.stage = Stage::Calls(1);
                }
            }
        }
    }
}

impl ValueTree for Shrink {
    type Value = Program;

    fn current(&self) -> Program {
        self.program.clone()
    }

    fn simplify(&mut self) -> bool {
        self.progress |= self.before.take().is_some();
        self.step()
    }

    fn complicate(&mut self) -> bool {
        let Some(before) = self.before.take() else {
            return false;
        };
        self.program = before;
        self.at += match self.stage {
            Stage::Calls(chunk) => chunk,
            Stage::Items => 1,
        };
        self.step()
    }
}

/// Removes the nth item of the lists with more than one.
fn remove_item(calls: &mut [Call], mut nth: usize) -> bool {
    for call in calls {
        let length = match call {
            Call::PostSend { list, .. } => list.len(),
            Call::PostRecv { list, .. } | Call::PostSrqRecv { list, .. } => list.len(),
            _ => 0,
        };
        if length < 2 {
            continue;
        }
        if nth >= length {
            nth -= length;
            continue;
        }
        match call {
            Call::PostSend { list, .. } => drop(list.remove(nth)),
            Call::PostRecv { list, .. } | Call::PostSrqRecv { list, .. } => {
                drop(list.remove(nth));
            }
            _ => {}
        }
        return true;
    }
    false
}

/// The shortest found of a program that `fails`, in at most so many tries.
pub fn shrink(program: Program, tries: u32, mut fails: impl FnMut(&Program) -> bool) -> Program {
    let mut tree = Shrink::new(program);
    let mut best = tree.current();
    let mut goes_on = tree.simplify();
    for _ in 0..tries {
        if !goes_on {
            break;
        }
        goes_on = if fails(&tree.program) {
            best = tree.current();
            tree.simplify()
        } else {
            tree.complicate()
        };
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What matters is left, and nothing else.
    #[test]
    fn a_program_shrinks_to_the_calls_that_matter() {
        let polls = |program: &Program| {
            let is_poll = |call: &&Call| matches!(call, Call::Poll { .. });
            program.calls.iter().filter(is_poll).count()
        };
        let items = |program: &Program| {
            let list = |call: &Call| match call {
                Call::PostSend { list, .. } => list.len(),
                _ => 0,
            };
            program.calls.iter().map(list).max().unwrap_or(0)
        };
        let fails = |program: &Program| polls(program) >= 2 && items(program) >= 2;
        let mut found = 0;
        for seed in 0..100 {
            let program = Program::of_seed(seed, Pace::Free);
            if fails(&program) {
                found += 1;
                let short = shrink(program, 1000, fails);
                assert_eq!((short.calls.len(), items(&short)), (3, 2), "{short:?}");
            }
        }
        assert!(found > 10);
    }
}
