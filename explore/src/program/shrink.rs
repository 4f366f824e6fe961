//! Making a program short that shows something.

use super::Program;
use super::call::Call;

/// The shortest program found that `fails`, in at most `attempts` attempts: it leaves out calls,
/// and items of posted lists, as [`crate::shrink`] does. The program itself is assumed to fail.
pub fn shrink(
    program: Program,
    attempts: usize,
    mut fails: impl FnMut(&Program) -> bool,
) -> Program {
    let Program { pace, mut calls } = program;
    let mut left = attempts;
    let mut fails = |calls: Vec<Call>| {
        let may_try = left > 0;
        left = left.saturating_sub(1);
        may_try && fails(&Program { pace, calls })
    };
    loop {
        calls = crate::shrink(calls, usize::MAX, |calls| fails(calls.to_vec()));
        let items = items(&calls);
        let needed = crate::shrink(items.clone(), usize::MAX, |items| {
            only(&calls, items).is_some_and(&mut fails)
        });
        if needed.len() == items.len() {
            return Program { pace, calls };
        }
        calls = only(&calls, &needed).expect("a program that failed");
    }
}

/// An item of a list that is posted: of which call, and its place there.
type Item = (usize, usize);

/// The items of the lists that have more than one, in order.
fn items(calls: &[Call]) -> Vec<Item> {
    let items_of = |(at, call): (usize, &Call)| {
        let length = match call {
            Call::PostSend { list, .. } | Call::PostBatch { list, .. } => list.len(),
            Call::PostRecv { list, .. } | Call::PostSrqRecv { list, .. } => list.len(),
            _ => 0,
        };
        let length = if length > 1 { length } else { 0 };
        (0..length).map(move |place| (at, place))
    };
    calls.iter().enumerate().flat_map(items_of).collect()
}

/// The calls with these of their items, and without the others; `None` if a list would have none.
fn only(calls: &[Call], kept: &[Item]) -> Option<Vec<Call>> {
    fn keep<T>(list: &mut Vec<T>, at: usize, kept: &[Item]) -> Option<()> {
        if list.len() < 2 {
            return Some(());
        }
        let mut place = 0..;
        list.retain(|_| {
            kept.binary_search(&(at, place.next().expect("no end")))
                .is_ok()
        });
        (!list.is_empty()).then_some(())
    }
    let mut calls = calls.to_vec();
    for (at, call) in calls.iter_mut().enumerate() {
        match call {
            Call::PostSend { list, .. } | Call::PostBatch { list, .. } => keep(list, at, kept)?,
            Call::PostRecv { list, .. } | Call::PostSrqRecv { list, .. } => keep(list, at, kept)?,
            _ => {}
        }
    }
    Some(calls)
}

#[cfg(test)]
mod tests {
    use super::super::Pace;
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
