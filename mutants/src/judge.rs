//! Whether checks notice a mutant.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::Result;
use crate::programs::{Check, End, Program, in_parallel};

/// The outcome of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Which program noticed it, and by what.
    Caught(String),
    Survived,
    /// No check comes there.
    Unreached,
}

/// Judges the mutants with these numbers, and says each verdict as soon as it is there.
pub(crate) fn judge(
    programs: &[Program],
    checks: &[Check],
    mutants: &[u32],
    dir: &Path,
    jobs: usize,
    say: impl FnMut(u32, Verdict) + Send,
) -> Result<()> {
    let mut reached: BTreeMap<u32, Vec<&Check>> = BTreeMap::new();
    for check in checks {
        for mutant in &check.reaches {
            reached.entry(*mutant).or_default().push(check);
        }
    }
    let (next, say) = (AtomicUsize::new(0), Mutex::new(say));
    let worker = |worker: usize| -> Result<(), String> {
        let out = dir.join(format!("{worker}.out"));
        while let Some(mutant) = mutants.get(next.fetch_add(1, Ordering::Relaxed)) {
            let verdict = match reached.get(mutant) {
                None => Verdict::Unreached,
                Some(checks) => {
                    one(programs, checks, *mutant, &out).map_err(|error| error.to_string())?
                }
            };
            say.lock().expect("no thread panics")(*mutant, verdict);
        }
        Ok(())
    };
    for done in in_parallel(jobs, worker) {
        done?;
    }
    Ok(())
}

/// The quick checks first, and a few at first: most mutants are noticed at once.
fn one(programs: &[Program], checks: &[&Check], mutant: u32, out: &Path) -> Result<Verdict> {
    const FIRST: usize = 8;
    for of_program in checks.chunk_by(|a, b| a.program == b.program) {
        let program = &programs[of_program[0].program];
        let (mut rest, mut size) = (of_program, if program.takes_names { FIRST } else { 1 });
        while !rest.is_empty() {
            let (now, later) = rest.split_at(size.min(rest.len()));
            (rest, size) = (later, size * 8);
            let names: Vec<&str> = now.iter().map(|check| &check.name[..]).collect();
            let takes: Duration = now.iter().map(|check| check.takes).sum();
            let live = (mutant_switch::MUTANT, &mutant.to_string()[..]);
            if let End::Bad(what) = program.run(&names, live, takes, out)? {
                return Ok(Verdict::Caught(format!("{} {what}", program.name)));
            }
        }
    }
    Ok(Verdict::Survived)
}
