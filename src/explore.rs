//! `verbsim explore`: random programs or scenarios under many seeds and faults.

use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use verbs_explore::{Exploration, Found, Plan, Searched, Shard};

use crate::output::{Stop, print, save};
use crate::seeds;
use crate::subject::Subject;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenarios, as `verbsim run --filter` takes them [default: random programs]
    #[arg(long, value_name = "PATTERN")]
    scenario: Option<String>,
    /// Which seeds: one, or from A to below B
    #[arg(long, value_name = "A..B", default_value = "0..1000", value_parser = seeds::parse)]
    seeds: Range<u64>,
    #[command(flatten)]
    faults: Faults,
    /// Which set of behavior values the devices have
    #[arg(long, value_name = "NAME", default_value = "spec")]
    profile: String,
    /// How many runs at the same time
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: NonZero<usize>,
    /// Only every Nth seed, from the Kth on: N machines, or jobs of a batch system, share the seeds
    #[arg(long, value_name = "K/N", default_value_t = Shard::WHOLE)]
    shard: Shard,
    /// Write the whole trace of a failure to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Which faults, as the command line says it.
#[derive(clap::Args)]
pub(crate) struct Faults {
    /// A file of fault rules, `standard` for the plan of the program, or `none`; docs/faults.md
    /// describes the format [default: `standard` for random programs, `none` for scenarios]
    #[arg(long, value_name = "FILE")]
    faults: Option<String>,
}

impl Faults {
    /// The plan that is meant.
    pub(crate) fn plan(&self, otherwise: &str) -> Result<Plan, Stop> {
        match self.faults.as_deref().unwrap_or(otherwise) {
            STANDARD => Ok(Plan::standard()),
            NONE => Ok(Plan::default()),
            file => Plan::read(Path::new(file)).map_err(|error| Stop::usage(error.to_string())),
        }
    }
}

impl Faults {
    /// What brings the same plan to another command.
    fn argument(&self) -> String {
        let name = self.faults.as_deref();
        name.map_or_else(String::new, |name| format!(" --faults {name}"))
    }
}

pub(crate) const STANDARD: &str = "standard";
pub(crate) const NONE: &str = "none";

pub(crate) fn execute(args: &Args) -> Result<(), Stop> {
    for subject in Subject::chosen(args.scenario.as_deref(), &args.profile)? {
        let exploration = subject
            .exploration()
            .faults(args.faults.plan(subject.usual_faults())?)
            .seeds(args.seeds.clone())
            .shard(args.shard)
            .jobs(args.jobs);
        if exploration.all_seeds().count() == 0 {
            return Err(Stop::usage(format!(
                "shard {} of seeds {}..{} has none",
                args.shard, args.seeds.start, args.seeds.end
            )));
        }
        explore(&subject, &exploration, args)?;
    }
    Ok(())
}

fn explore(subject: &Subject, exploration: &Exploration, args: &Args) -> Result<(), Stop> {
    let bar = ProgressBar::new(exploration.all_seeds().count());
    let template = ProgressStyle::with_template("{pos}/{len} {per_sec} {wide_bar} {eta} {msg}");
    bar.set_style(template.expect("the template is good"));
    bar.set_message(subject.to_string());
    let start = Instant::now();
    let searched = exploration.search(|world| subject.test(world), || bar.inc(1));
    let seconds = start.elapsed().as_secs_f64();
    bar.finish_and_clear();
    let Searched { tried, failure } = searched;
    let per_second = tried as f64 / seconds.max(f64::EPSILON);
    let Some((_, found)) = failure else {
        return print(&format!(
            "{subject}: {tried} seeds, no failure, {per_second:.0} seeds/s\n"
        ));
    };
    let mut text = format!("{subject} failed: {found}");
    if let Some(code) = subject.code(exploration, &found) {
        text += &format!("\nthe program, as short as it fails:\n{code}");
    }
    let faults = args.faults.argument();
    text += &format!("\n  verbsim replay {}{faults}\n", found.replay);
    print(&text)?;
    if let Some(path) = &args.out {
        save(path, &trace(&found))?;
    }
    Err(Stop::NotGood)
}

/// The trace of a failure, a line each record.
pub(crate) fn trace(found: &Found) -> String {
    found
        .trace
        .iter()
        .map(|record| format!("{record}\n"))
        .collect()
}
