//! `verbsim explore`: random programs or scenarios under many seeds and faults.

use std::iter;
use std::num::NonZero;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;
use verbs_explore::{Exploration, Found, Shard};
use verbs_faults::Plan;

use crate::output::{Stop, json, note, print, save};
use crate::progress::Progress;
use crate::results::{self, Case, Format, Suite, Verdict, github, junit};
use crate::style::{Look, Style};
use crate::subject::Subject;
use crate::table::Plain;
use crate::words::count;
use crate::{capture, interrupt, seeds};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenarios to run, selected as by `verbsim run --filter` [default: random programs]
    #[arg(long, value_name = "PATTERN")]
    scenario: Option<String>,
    /// One seed (7), or a range from A to below B (0..2000)
    #[arg(long, value_name = "A..B", default_value = "0..1000", value_parser = seeds::parse)]
    seeds: Range<u64>,
    #[command(flatten)]
    faults: Faults,
    /// Profile of the devices, such as spec or rxe
    #[arg(long, value_name = "NAME", default_value = "spec")]
    profile: String,
    /// Number of runs at the same time
    #[arg(long, value_name = "N", default_value = "1", value_parser = jobs)]
    jobs: NonZero<usize>,
    /// Run every Nth seed, starting with the Kth, so that N machines can share the seeds
    #[arg(long, value_name = "K/N", default_value_t = Shard::WHOLE)]
    shard: Shard,
    /// How to show the result
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Write every packet of the run that failed to this file, for Wireshark
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write the full trace of a failure to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The fault plan that the command line selects.
#[derive(clap::Args)]
pub(crate) struct Faults {
    /// File of fault rules, `standard` or `harsh` for a built-in plan, or `none`; see `verbsim help
    /// faults`
    /// [default: `standard` for random programs, `none` for scenarios]
    #[arg(long, value_name = "FILE")]
    faults: Option<String>,
    /// With a defect in the devices: for the test that it is found
    #[arg(long, hide = true)]
    pub(crate) planted_defect: bool,
}

impl Faults {
    /// The selected plan.
    pub(crate) fn plan(&self, otherwise: &str) -> Result<Plan, Stop> {
        Plan::named(self.name(otherwise)).map_err(|error| {
            let unread = error.line.is_none();
            let names = if unread {
                "; a plan is a file, `standard`, `harsh` or `none`"
            } else {
                ""
            };
            Stop::usage(format!("--faults {error}{names}"))
        })
    }

    /// The name of the plan.
    pub(crate) fn name<'a>(&'a self, otherwise: &'a str) -> &'a str {
        self.faults.as_deref().unwrap_or(otherwise)
    }

    /// The option that selects the same plan in another command.
    fn argument(&self) -> String {
        let name = self.faults.as_deref();
        let named = name.map_or_else(String::new, |name| format!(" --faults {name}"));
        let planted = if self.planted_defect {
            " --planted-defect"
        } else {
            ""
        };
        named + planted
    }
}

/// The results of all explorations, as JSON.
#[derive(Serialize)]
struct Report {
    schema: u32,
    version: &'static str,
    explorations: Vec<Entry>,
}

/// The result of one exploration.
#[derive(Serialize)]
struct Entry {
    subject: String,
    from: u64,
    to: u64,
    shard: String,
    tried: u64,
    seeds_per_second: f64,
    rules: Vec<Fired>,
    /// The seeds in which a queue pair failed, and in which one was connected after that.
    failed: u64,
    reconnected: u64,
    hints: Vec<String>,
    failure: Option<Failed>,
    /// The seeds that remain, if the run was interrupted.
    rest: Option<String>,
}

/// In how many seeds a rule of the plan triggered.
#[derive(Serialize)]
struct Fired {
    rule: String,
    seeds: u64,
    rare: bool,
}

/// One failure.
#[derive(Serialize)]
struct Failed {
    seed: u64,
    seen: String,
    faults: String,
    program: Option<String>,
    /// The program's mistakes before the failure, and the objects alive at that point.
    mistakes: Vec<String>,
    leftovers: Vec<String>,
    trace: Vec<String>,
    replay: String,
    /// The report for people.
    #[serde(skip)]
    shown: String,
}

impl Failed {
    /// The failure, the program, and the command that repeats it.
    fn in_full(&self) -> String {
        let program = self.program.as_ref().map_or_else(String::new, |code| {
            format!("\nthe program, as short as it fails:\n{code}")
        });
        format!("{}{program}\n  {}\n", self.shown, self.replay)
    }
}

fn jobs(text: &str) -> Result<NonZero<usize>, String> {
    let jobs = text.parse().ok().and_then(NonZero::new);
    jobs.ok_or_else(|| "the number of jobs is 1 or more".to_owned())
}

pub(crate) fn execute(args: &Args) -> Result<(), Stop> {
    interrupt::listen(|| {}, || {});
    let mut explorations = Vec::new();
    let (mut failed, mut rest) = (false, None);
    let subjects = Subject::chosen(args.scenario.as_deref(), &args.profile)?;
    let profile = subjects[0].profile();
    let pcap = capture::of_profile(args.pcap.as_deref(), profile)?;
    for subject in subjects {
        let plan = args.faults.plan(subject.usual_faults())?;
        let exploration = subject
            .exploration(args.faults.planted_defect, pcap)
            .faults(plan.clone())
            .seeds(args.seeds.clone())
            .shard(args.shard)
            .jobs(args.jobs);
        exploration
            .check(args.faults.name(subject.usual_faults()))
            .map_err(|error| Stop::usage(error.to_string()))?;
        if exploration.all_seeds().count() == 0 {
            return Err(Stop::usage(format!(
                "shard {} of seeds {}..{} has none",
                args.shard, args.seeds.start, args.seeds.end
            )));
        }
        let entry = explore(&subject, &exploration, &plan, args)?;
        if args.format == Format::Table {
            print(&table(&entry))?;
        }
        failed = entry.failure.is_some();
        rest = entry
            .rest
            .as_ref()
            .map(|rest| (entry.subject.clone(), rest.clone()));
        explorations.push(entry);
        if failed || rest.is_some() {
            break;
        }
    }
    capture::end(args.pcap.as_deref(), pcap)?;
    match args.format {
        Format::Table => {}
        Format::Json => print(&json(&Report {
            schema: 1,
            version: env!("CARGO_PKG_VERSION"),
            explorations,
        }))?,
        Format::Junit => {
            print(&junit::document(&[suite(&explorations)]))?;
            // A log is to say why the command failed, even if the document goes to a file.
            let failures = explorations
                .iter()
                .filter_map(|entry| entry.failure.as_ref());
            failures.for_each(|failure| note(failure.in_full()));
        }
        Format::Github => {
            let annotations = github::annotations(&[suite(&explorations)]);
            print(&(annotations + &explorations.iter().map(conclusion).collect::<String>()))?;
        }
    }
    match (failed, rest) {
        (true, _) => Err(Stop::NotGood),
        (false, Some((subject, rest))) => Err(Stop::Interrupted(format!(
            "interrupted in {subject}; resume with --seeds {rest}"
        ))),
        (false, None) => Ok(()),
    }
}

fn explore(
    subject: &Subject,
    exploration: &Exploration,
    plan: &Plan,
    args: &Args,
) -> Result<Entry, Stop> {
    let total = exploration.all_seeds().count();
    let template = "{pos}/{len} {per_sec} {wide_bar} {eta} {msg}";
    let progress = Progress::new(total, format!("seeds of {subject}"), template);
    progress.message(subject.to_string());
    let start = Instant::now();
    let tried = || {
        progress.advance();
        interrupt::go_on()
    };
    let explored = exploration.search(|world| subject.test(world), tried);
    let seconds = start.elapsed().as_secs_f64();
    drop(progress);
    let coverage = &explored.coverage;
    let (tried, hints) = (coverage.tried, coverage.hints());
    let (failed, reconnected) = (coverage.failed, coverage.reconnected);
    let fired = |(rule, seeds): (String, u64)| Fired {
        rule,
        seeds,
        rare: seeds * 100 < tried,
    };
    if let (Some(path), Some(found)) = (&args.out, &explored.failure) {
        save(path, &trace(found))?;
    }
    Ok(Entry {
        subject: subject.to_string(),
        from: args.seeds.start,
        to: args.seeds.end,
        shard: args.shard.to_string(),
        tried,
        seeds_per_second: (tried as f64 / seconds.max(f64::EPSILON)).round(),
        rules: plan
            .lines()
            .zip(explored.coverage.fired)
            .map(fired)
            .collect(),
        failed,
        reconnected,
        hints,
        failure: explored.failure.map(|found| Failed {
            seed: found.seed,
            program: subject.code(exploration, &found),
            replay: format!("verbsim replay {}{}", found.replay, args.faults.argument()),
            shown: format!("{found:#}"),
            seen: found.failure,
            faults: found.faults.to_string(),
            mistakes: lines(&found.diagnosis.mistakes),
            leftovers: lines(&found.diagnosis.leftovers),
            trace: lines(&found.trace),
        }),
        rest: explored
            .rest
            .map(|rest| format!("{}..{}", rest.start, rest.end)),
    })
}

/// The report for people.
fn table(entry: &Entry) -> String {
    let Entry { subject, tried, .. } = entry;
    let style = Style::of_stdout();
    let mut rules = Plain::new(style);
    for Fired { rule, seeds, rare } in &entry.rules {
        let (look, remark) = if *rare {
            (Look::Yellow, ", less than 1 %")
        } else {
            (Look::Plain, "")
        };
        rules.row([
            style.cell(Look::Plain, rule),
            style.cell(
                look,
                format!("fired in {seeds} of {}{remark}", count(*tried, "seed")),
            ),
        ]);
    }
    let met = entry.hints.iter().map(|hint| format!("hint: {hint}\n"));
    let met: String = iter::once(reached(entry)).chain(met).collect();
    rules.text()
        + &met
        + &match &entry.failure {
            Some(failure) => format!("{subject} failed: {}", failure.in_full()),
            None => conclusion(entry),
        }
}

/// One line: how queue pairs fared.
fn reached(entry: &Entry) -> String {
    let [failed, again] = [entry.failed, entry.reconnected].map(|seeds| count(seeds, "seed"));
    format!("a queue pair failed in {failed}, and one was connected after that in {again}\n")
}

/// One line: how many seeds were tried, and whether one failed.
fn conclusion(entry: &Entry) -> String {
    let Entry { subject, tried, .. } = entry;
    let tried = count(*tried, "seed");
    match &entry.failure {
        Some(failure) => format!("{subject}: {tried}, seed {} failed\n", failure.seed),
        None => format!(
            "{subject}: {tried}, no failure, {} seeds/s\n",
            entry.seeds_per_second
        ),
    }
}

/// The results as test cases, for continuous integration.
fn suite(explorations: &[Entry]) -> Suite {
    let case = |entry: &Entry| Case {
        name: format!("seeds {}..{}, shard {}", entry.from, entry.to, entry.shard),
        class: entry.subject.clone(),
        verdict: match (&entry.failure, &entry.rest) {
            (Some(failure), _) => Verdict::Failed(results::Failure {
                title: format!("{}: seed {} failed", entry.subject, failure.seed),
                message: failure.seen.clone(),
                text: failure.in_full(),
                place: None,
            }),
            (None, Some(rest)) => Verdict::Skipped(format!("interrupted; seeds {rest} go on")),
            (None, None) => Verdict::Passed,
        },
    };
    Suite {
        name: "explore".to_owned(),
        properties: Vec::new(),
        cases: explorations.iter().map(case).collect(),
    }
}

fn lines(of: &[impl ToString]) -> Vec<String> {
    of.iter().map(ToString::to_string).collect()
}

/// The trace of a failure, one line per record.
pub(crate) fn trace(found: &Found) -> String {
    found
        .trace
        .iter()
        .map(|record| format!("{record}\n"))
        .collect()
}
