//! Judges the tests by mutants: small changes of the code, one at a time, which tests should
//! notice.
//!
//! All mutants are woven into one copy of the sources, behind a switch that the environment sets,
//! since a build for each would take days. Each check (a scenario on a profile, a client, a test)
//! runs once to see which mutants it reaches; a mutant is judged by those that reach it, until one
//! fails. docs/mutants.md says how to read the result.
//!
//! | module | holds |
//! |---|---|
//! | `operators`, `mistakes` | where a source can be mutated, and into what |
//! | `mutant`, `unjudged` | a mutant, and what it is known by; code whose mutants are not judged |
//! | `weave`, `tree` | a source with its mutants; a copy of the workspace with them, and what does not compile |
//! | `survey` | a run: which mutants are judged, their outcome, and the problems |
//! | `area`, `changed` | which code, and what judges it; which lines of it have changed |
//! | `programs`, `judge` | running checks; a mutant's verdict |
//! | `reasons`, `verdicts` | why mutants survive; the verdicts, and their table |

mod area;
mod changed;
mod judge;
mod mistakes;
mod mutant;
mod operators;
mod programs;
mod reasons;
mod survey;
mod tree;
mod unjudged;
mod verdicts;
mod weave;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::Parser;

use area::Area;
use survey::Survey;

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
    /// Only mutants of lines that have changed since this commit
    #[arg(long, value_name = "COMMIT")]
    since: Option<String>,
    /// Judge COUNT of them, at random [default: all]
    #[arg(long, value_name = "COUNT")]
    sample: Option<usize>,
    /// Decides which the sample has
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Judge every Nth of them, starting with the Kth: several runs together judge all
    #[arg(long, value_name = "K/N", value_parser = shard)]
    shard: Option<[usize; 2]>,
    /// Ask all other tests about what the scenarios missed in an earlier run, and what counts
    #[arg(long)]
    tests: bool,
    /// Keep the verdicts of earlier runs, and judge only what was not noticed
    #[arg(long)]
    again: bool,
    /// Add survivors without a reason to the files, as holes, and drop reasons that no longer apply
    #[arg(long)]
    write: bool,
    /// Number of mutants at the same time [default: twice the processors, since some wait]
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

/// What is wrong.
fn run(args: &Args) -> Result<Vec<String>> {
    let mut survey = Survey::new(args)?;
    survey.judge(args)?;
    if args.write {
        survey.write()?;
    }
    println!("{}", survey.table());
    Ok(survey.problems(args.sample.is_none()))
}

impl Args {
    fn jobs(&self) -> usize {
        let twice = || 2 * thread::available_parallelism().map_or(1, usize::from);
        self.jobs.unwrap_or_else(twice)
    }
}
