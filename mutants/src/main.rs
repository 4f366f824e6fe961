//! Judges the tests by mutants: small changes of the code, one at a time, which tests should notice.
//!
//! All mutants are woven into one copy of the sources, behind a switch that the environment sets, since a build for each
//! would take days. Each check (a scenario on a profile, a client, a test) runs once to see which mutants it
//! reaches; a mutant is judged by those that reach it, until one fails. docs/mutants.md says how to read the result.
//!
//! | module | holds |
//! |---|---|
//! | `operators`, `mistakes` | where a source can be mutated, and into what |
//! | `mutant` | a mutant, and what it is known by |
//! | `weave`, `tree` | a source with its mutants; a copy of the workspace with them, and what does not compile |
//! | `area` | which code, and what judges it |
//! | `programs`, `judge` | running checks; a mutant's verdict |
//! | `reasons`, `verdicts` | why mutants survive; the verdicts, and their table |

mod area;
mod judge;
mod mistakes;
mod mutant;
mod operators;
mod programs;
mod reasons;
mod tree;
mod verdicts;
mod weave;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;

use area::{Area, Judges};
use judge::{Verdict, judge};
use mutant::{Key, Mutant, mutants, read, sample};
use programs::measure;
use reasons::{Class, Reason};
use tree::Tree;
use verdicts::{Verdicts, table};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Judges the tests by mutants of what they test
#[derive(Parser)]
struct Args {
    /// Which code
    #[arg(long, value_enum, default_value = "core")]
    area: Area,
    /// Only mutants of sources whose path contains this; given several times: any of them
    #[arg(long, value_name = "TEXT")]
    file: Vec<String>,
    /// Also those that only change texts or the laboratory: they are listed apart
    #[arg(long)]
    apart: bool,
    /// So many of them, at random; all otherwise
    #[arg(long, value_name = "COUNT")]
    sample: Option<usize>,
    /// Decides which the sample has
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Of all of them each Nth, from the Kth on: several runs together judge all
    #[arg(long, value_name = "K/N", value_parser = shard)]
    shard: Option<[usize; 2]>,
    /// Ask all other tests too what the scenarios miss
    #[arg(long)]
    tests: bool,
    /// Keep the verdicts of earlier runs, and judge only what was not noticed
    #[arg(long)]
    again: bool,
    /// Add survivors without a reason to the files, as holes
    #[arg(long)]
    write: bool,
    /// So many at the same time [default: twice the processors, since some wait]
    #[arg(long, value_name = "COUNT")]
    jobs: Option<usize>,
    /// Where the copy is built, and the verdicts are
    #[arg(long, value_name = "FOLDER", default_value = "target/mutants")]
    dir: PathBuf,
}

fn shard(text: &str) -> Result<[usize; 2], String> {
    let numbers = text
        .split_once('/')
        .and_then(|(k, n)| Some([k.parse().ok()?, n.parse().ok()?]));
    let is_good = |[k, n]: &[usize; 2]| (1..=*n).contains(k);
    numbers
        .filter(is_good)
        .ok_or_else(|| "K/N, of which K is 1 to N".to_owned())
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(problems) if problems.is_empty() => ExitCode::SUCCESS,
        Ok(problems) => {
            for problem in &problems {
                eprintln!("{problem}");
            }
            eprintln!("{} problems", problems.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace");
    let dir = args.dir.join(args.area.name());
    fs::create_dir_all(&dir)?;
    let dir = dir.canonicalize()?;
    let sources = read(root, &area::sources(root, args.area)?)?;
    let all = mutants(&sources);
    let known: BTreeMap<&Key, &Mutant> = all.iter().map(|mutant| (&mutant.key, mutant)).collect();
    let folder = root.join("mutants/survivors");
    let mut reasons = reasons::read(&folder)?;
    let mut problems = unknown(args.area, &reasons, &known);

    let mut verdicts = Verdicts::open(&dir.join("verdicts.tsv"), !args.again)?;
    let wanted = chosen(args, &all, &verdicts);
    eprintln!("{} mutants, {} to judge", all.len(), wanted.len());
    let tree = Tree::new(root, &dir);
    let left = tree.weave(&sources, &all, &wanted, args.area.packages())?;
    let jobs = args
        .jobs
        .unwrap_or_else(|| 2 * thread::available_parallelism().map_or(1, usize::from));
    let ask = |judges: Judges, numbers: &[u32], of_tests: bool, verdicts: &mut Verdicts| {
        let (programs, names) = judges;
        let longest = if of_tests { LONGEST_TEST } else { LONGEST };
        let checks = measure(&programs, names, longest, &dir, jobs)?;
        eprintln!("{} mutants, {} checks", numbers.len(), checks.len());
        let (mut done, mut failed, start) = (0, Ok(()), Instant::now());
        judge(
            &programs,
            &checks,
            numbers,
            &dir,
            jobs,
            |number, verdict| {
                done += 1;
                if done % 100 == 0 {
                    eprintln!(
                        "{done} of {} in {} s",
                        numbers.len(),
                        start.elapsed().as_secs()
                    );
                }
                let noted = verdicts.note(&all[number as usize - 1].key, of_tests, verdict);
                if let Err(error) = noted {
                    failed = Err(error.to_string());
                }
            },
        )?;
        Ok::<(), Box<dyn std::error::Error>>(failed?)
    };
    let numbers: Vec<u32> = left.into_iter().collect();
    ask(args.area.judges(&tree)?, &numbers, false, &mut verdicts)?;
    if args.tests {
        let is_missed = |number: &u32| {
            let key = &all[*number as usize - 1].key;
            verdicts
                .all
                .get(key)
                .is_some_and(|judged| !judged.is_caught_at_first())
        };
        let missed: Vec<u32> = numbers.iter().copied().filter(is_missed).collect();
        ask(args.area.tests(&tree)?, &missed, true, &mut verdicts)?;
    }

    let judged: Vec<&Key> = numbers
        .iter()
        .map(|number| &all[*number as usize - 1].key)
        .collect();
    let is_whole = args.sample.is_none();
    for key in judged {
        problems.extend(problem(&verdicts, &reasons, known[key], is_whole));
    }
    if args.write {
        for (key, judged) in &verdicts.all {
            let is_new = known
                .get(key)
                .is_some_and(|mutant| Class::of_place(mutant).is_none())
                && !reasons.contains_key(key);
            if is_new && !judged.is_caught_at_first() {
                let (class, because) = match &judged.tests {
                    Some(Verdict::Caught(by)) => (Class::Tests, by.clone()),
                    _ => (Class::Hole, "not looked at yet".to_owned()),
                };
                reasons.insert(key.clone(), Reason { class, because });
            }
        }
        reasons::write(&folder, &reasons)?;
    }
    println!("{}", table(&verdicts, &known, &reasons));
    Ok(problems)
}

/// A check that takes longer is not asked: it would be asked for each survivor.
const LONGEST: Duration = Duration::from_secs(60);
const LONGEST_TEST: Duration = Duration::from_secs(5);

/// Reasons for mutants that there are not.
fn unknown(
    area: Area,
    reasons: &BTreeMap<Key, Reason>,
    known: &BTreeMap<&Key, &Mutant>,
) -> Vec<String> {
    let is_of_area = |key: &&Key| {
        area.sources()
            .iter()
            .any(|source| key.file.starts_with(source))
    };
    let keys = reasons
        .keys()
        .filter(is_of_area)
        .filter(|key| !known.contains_key(key));
    keys.map(|key| format!("a reason for a mutant that there is not: {key}"))
        .collect()
}

/// The numbers of those to judge.
fn chosen(args: &Args, all: &[Mutant], verdicts: &Verdicts) -> BTreeSet<u32> {
    let is_wanted = |mutant: &&usize| {
        let key = &all[**mutant].key;
        let is_done = verdicts
            .all
            .get(key)
            .is_some_and(verdicts::Judged::is_caught_at_first);
        let is_named = args.file.is_empty() || args.file.iter().any(|part| key.file.contains(part));
        let is_meant = args.apart || Class::of_place(&all[**mutant]).is_none();
        is_named && is_meant && !is_done
    };
    let mut chosen: Vec<usize> = (0..all.len()).collect();
    if let Some([k, n]) = args.shard {
        chosen.retain(|mutant| mutant % n == k - 1);
    }
    let mut chosen: Vec<usize> = chosen.iter().filter(is_wanted).copied().collect();
    if let Some(most) = args.sample {
        let places = sample(chosen.len(), most, args.seed);
        chosen = places.into_iter().map(|place| chosen[place]).collect();
    }
    chosen.into_iter().map(|mutant| mutant as u32 + 1).collect()
}

/// What is wrong about a mutant that was judged: it survives without a reason, or has a reason and does not.
fn problem(
    verdicts: &Verdicts,
    reasons: &BTreeMap<Key, Reason>,
    mutant: &Mutant,
    is_whole: bool,
) -> Option<String> {
    let judged = verdicts.all.get(&mutant.key)?;
    let by_place = Class::of_place(mutant).is_some();
    let Mutant { key, line, .. } = mutant;
    match (&judged.first, reasons.get(key)) {
        (Verdict::Caught(by), Some(reason)) if is_whole => Some(format!(
            "it is said to be {}, but {by} notices it: {key}",
            reason.class
        )),
        (Verdict::Caught(_), _) | (_, Some(_)) => None,
        (_, None) if by_place => None,
        (_, None) => Some(format!(
            "it survives without a reason: line {line} of {key}"
        )),
    }
}
