//! `verbsim run`: the suite against a device.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use verbs_scenarios::report::{
    BackendInfo, Entry, Facts, FailureReport, Outcome, Report, Run, Summary,
};
use verbs_scenarios::{GROUPS, Runner, Scenario, rule, rules, select};
use verbsim::backend::{Choice, Chosen, Hardware};
use verbsim::workers::{self, Watch};

use crate::board::Board;
use crate::output::{Stop, json, note, print, save};
use crate::results::{self, Case, Format, Suite, Verdict, github, junit};
use crate::style::{Look, Style};
use crate::table::Plain;
use crate::words::meant;
use crate::{about, capture, interrupt};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    choice: Choice,
    /// Run only matching scenarios: a scenario id, a rule id, or part of a scenario id. May be
    /// given several times
    #[arg(long, value_name = "PATTERN")]
    filter: Vec<String>,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, clap::Args)]
struct Output {
    /// How to show the result
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Write the full result to this file, and print only failures and the summary
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn execute(args: &Args) -> Result<(), Stop> {
    if let Choice::Hw(options) = &args.choice
        && options.worker
    {
        let hardware = Hardware::chosen(options).map_err(Stop::Usage)?;
        return workers::serve(&hardware).map_err(Stop::Usage);
    }
    let scenarios = chosen(&args.filter)?;
    let file = args.choice.pcap();
    let pcap = file.map(capture::begin).transpose()?;
    let board = Board::new();
    listen(&board, &args.output);
    let mut end = Ok(());
    for chosen in args.choice.backends(pcap).map_err(Stop::Usage)? {
        end = run_on(&chosen, &scenarios, &board);
        if end.is_err() || interrupt::go_on().is_break() {
            break;
        }
    }
    capture::end(file, pcap)?;
    let report = board.report();
    if report.runs.is_empty() {
        return end;
    }
    // What was done is shown, whatever came then.
    args.output.write(&report)?;
    end?;
    match (report.is_good(), interrupt::go_on().is_break()) {
        (false, _) => Err(Stop::NotGood),
        (true, true) => Err(Stop::Interrupted(REST.to_owned())),
        (true, false) => Ok(()),
    }
}

const REST: &str = "interrupted; the remaining scenarios did not run";

/// Lets Ctrl-C say what it waits for, and a second one show what was done.
fn listen(board: &Arc<Board>, output: &Output) {
    let asked = {
        let board = Arc::clone(board);
        move || {
            let what = board.waits_for();
            note(format_args!("verbsim: {what}; Ctrl-C again does not wait"));
        }
    };
    let (board, output) = (Arc::clone(board), output.clone());
    interrupt::listen(asked, move || {
        if let Err(stop) = output.write(&board.report())
            && let Some(message) = stop.message()
        {
            note(message);
        }
        note(REST);
    });
}

fn run_on(
    chosen: &Chosen,
    scenarios: &[&'static Scenario],
    board: &Arc<Board>,
) -> Result<(), Stop> {
    let Chosen { backend, workers } = chosen;
    let backend = backend.as_ref();
    let info = backend.info();
    let in_words = |error: String| Stop::usage(format!("{}: {error}", info.backend));
    let facts = Facts::of(backend).map_err(|error| in_words(error.to_string()))?;
    if let Some(workers) = workers {
        board.begin(info.clone(), facts, scenarios.len());
        let ran = workers.run(backend, scenarios, board.as_ref());
        if ran.is_ok() {
            board.end();
        } else {
            // Without its first process it is not a run.
            board.forget();
        }
        return ran.map_err(in_words);
    }
    let runner = Runner::new(backend).map_err(|error| in_words(error.to_string()))?;
    board.begin(info.clone(), facts, scenarios.len());
    for scenario in scenarios {
        if board.starts(scenario).is_break() {
            break;
        }
        board.ended(runner.run(scenario));
    }
    board.end();
    Ok(())
}

impl Output {
    fn write(&self, report: &Report) -> Result<(), Stop> {
        let text = |style| match self.format {
            Format::Table => table(report, style),
            Format::Json => json(report),
            Format::Junit => junit::document(&suites(report)),
            Format::Github => {
                let summaries = report.runs.iter().map(|run| summary(run, style));
                github::annotations(&suites(report)) + &summaries.collect::<String>()
            }
        };
        let style = Style::of_stdout();
        let Some(path) = &self.out else {
            return print(&text(style));
        };
        save(path, &text(Style::plain()))?;
        let verdicts = report.runs.iter().map(|run| verdict(run, style));
        print(&verdicts.collect::<String>())
    }
}

/// All scenarios, or those that any of the patterns means.
fn chosen(patterns: &[String]) -> Result<Vec<&'static Scenario>, Stop> {
    let mut ids = HashSet::new();
    for pattern in patterns {
        let found = select(pattern);
        if found.is_empty() {
            return Err(no_scenario(pattern));
        }
        ids.extend(found.iter().map(|scenario| scenario.id));
    }
    let is_meant = |scenario: &&Scenario| patterns.is_empty() || ids.contains(scenario.id);
    Ok(verbs_scenarios::all().filter(is_meant).collect())
}

/// A pattern that matches nothing.
pub(crate) fn no_scenario(pattern: &str) -> Stop {
    let rules = rules().iter().map(|rule| &rule.id[..]);
    let names = verbs_scenarios::all()
        .map(|scenario| scenario.id)
        .chain(rules);
    let meant = meant(pattern, names, "`verbsim list` shows all");
    Stop::usage(format!("no scenario matches {pattern}{meant}"))
}

fn table(report: &Report, style: Style) -> String {
    let mut text = String::new();
    for run in &report.runs {
        text += &header(run, style);
        text += &scenarios(run, style);
        text += &verdict(run, style);
    }
    text
}

/// What the run was on, above its scenarios.
fn header(run: &Run, style: Style) -> String {
    let mut text = String::new();
    for (title, line) in about::lines(run) {
        let title = style.paint(Look::Bold, &format!("{title:<8}"));
        writeln!(text, "{title} {line}").expect("a string");
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Each run with its scenarios, for continuous integration.
fn suites(report: &Report) -> Vec<Suite> {
    let suite = |run: &Run| Suite {
        name: subject(&run.info),
        properties: about::properties(run),
        cases: run.scenarios.iter().map(|entry| case(run, entry)).collect(),
    };
    report.runs.iter().map(suite).collect()
}

fn case(run: &Run, entry: &Entry) -> Case {
    let (group, name) = entry.id.split_once('.').unwrap_or(("", entry.id));
    let BackendInfo {
        device,
        link_layer,
        profile,
        ..
    } = &run.info;
    let reason = || entry.reason.clone().unwrap_or_default();
    let verdict = match (entry.outcome, &entry.failure) {
        (Outcome::Failed, Some(failure)) => Verdict::Failed(results::Failure {
            title: format!("{}: {}", entry.id, failure.kind.name()),
            message: format!("expected {}, seen {}", failure.expected, failure.seen),
            text: failed(run, entry, failure, Style::plain()),
            place: None,
        }),
        (Outcome::UnexpectedPass, _) => Verdict::Failed(results::Failure::in_a_line(
            format!("{}: unexpected pass", entry.id),
            format!("it passed, although a deviation is recorded: {}", reason()),
        )),
        (Outcome::KnownDeviation, _) => Verdict::Skipped(format!("known deviation: {}", reason())),
        (Outcome::Skipped, _) => Verdict::Skipped(reason()),
        _ => Verdict::Passed,
    };
    Case {
        name: name.to_owned(),
        class: format!("{device}.{profile}.{link_layer}.{group}"),
        verdict,
    }
}

/// What is not good, and the summary.
fn verdict(run: &Run, style: Style) -> String {
    let mut text = String::new();
    for entry in &run.scenarios {
        match (entry.outcome, &entry.failure) {
            (Outcome::Failed, Some(failure)) => text += &failed(run, entry, failure, style),
            (Outcome::UnexpectedPass, _) => {
                let title = format!("{} passed unexpectedly", entry.id);
                let reason = entry.reason.as_deref().unwrap_or_default();
                writeln!(text, "{}: {reason}", style.paint(Look::Red, &title)).expect("a string");
            }
            _ => {}
        }
    }
    text + &summary(run, style)
}

/// A row for each scenario, below a heading for each group.
fn scenarios(run: &Run, style: Style) -> String {
    let mut table = Plain::new(style);
    for group in GROUPS {
        let of_group = |entry: &&Entry| group.scenarios.iter().any(|s| s.id == entry.id);
        let entries: Vec<_> = run.scenarios.iter().filter(of_group).collect();
        if entries.is_empty() {
            continue;
        }
        if !table.is_empty() {
            table.row([style.cell(Look::Plain, "")]);
        }
        let passed = entries
            .iter()
            .filter(|e| e.outcome == Outcome::Passed)
            .count();
        table.row([
            style.cell(Look::Plain, ""),
            style.cell(Look::Bold, group.title),
            style.cell(Look::Dim, format!("{passed} of {} passed", entries.len())),
        ]);
        for entry in entries {
            table.row(row(entry, style));
        }
    }
    table.text() + "\n"
}

fn row(entry: &Entry, style: Style) -> [comfy_table::Cell; 3] {
    let (mark, look) = mark(entry.outcome);
    let scenario = verbs_scenarios::all().find(|scenario| scenario.id == entry.id);
    let words = scenario.map_or_else(|| entry.id.to_string(), Scenario::behavior);
    let mut rules = entry.rules.join(" ");
    if let Some(reason) = &entry.reason {
        write!(rules, "  {reason}").expect("a string");
    }
    if !entry.passed_over.is_empty() {
        let events = entry.passed_over.join(", ");
        write!(rules, "  passed over: {events}").expect("a string");
    }
    let text = if entry.outcome == Outcome::Passed {
        Look::Plain
    } else {
        look
    };
    [
        style.cell(look, mark),
        style.cell(text, words),
        style.cell(Look::Dim, rules),
    ]
}

const fn mark(outcome: Outcome) -> (&'static str, Look) {
    match outcome {
        Outcome::Passed => ("✓", Look::Green),
        Outcome::Failed => ("✗", Look::Red),
        Outcome::Skipped => ("-", Look::Dim),
        Outcome::KnownDeviation => ("~", Look::Yellow),
        Outcome::UnexpectedPass => ("!", Look::Red),
    }
}

/// A failure in full.
fn failed(run: &Run, entry: &Entry, failure: &FailureReport, style: Style) -> String {
    let title = format!("{} failed: {}", entry.id, failure.kind.name());
    let mut text = style.paint(Look::Red, &title) + "\n";
    let mut field = |name: &str, value: &str| {
        let name = style.paint(Look::Bold, &format!("{name:<9}"));
        writeln!(text, "  {name} {value}").expect("a string");
    };
    let (name, rules) = match failure.rule {
        Some(id) => ("rule", vec![id]),
        None => ("checks", entry.rules.to_vec()),
    };
    for id in rules {
        let sentence = rule(id).map_or("", |rule| &rule.rule);
        field(name, &format!("{id}: {sentence}"));
    }
    field("expected", &failure.expected);
    field("seen", &failure.seen);
    field("seed", &run.info.seed.to_string());
    field("replay", &failure.replay);
    if !failure.trace.is_empty() {
        field("trace", "the last calls and packets");
    }
    for line in &failure.trace {
        writeln!(text, "    {}", style.paint(Look::Dim, line)).expect("a string");
    }
    text + "\n"
}

fn summary(run: &Run, style: Style) -> String {
    let Summary {
        passed,
        failed,
        skipped,
        known_deviations,
        unexpected_passes,
    } = run.summary;
    let part = |count: usize, words: &str, look| {
        let look = if count == 0 { Look::Plain } else { look };
        style.paint(look, &format!("{count} {words}"))
    };
    let mut parts = vec![
        part(passed, "passed", Look::Green),
        part(failed, "failed", Look::Red),
    ];
    for (count, one, many, look) in [
        (skipped, "skipped", "skipped", Look::Plain),
        (
            known_deviations,
            "known deviation",
            "known deviations",
            Look::Yellow,
        ),
        (
            unexpected_passes,
            "unexpected pass",
            "unexpected passes",
            Look::Red,
        ),
    ] {
        if count > 0 {
            parts.push(part(count, if count == 1 { one } else { many }, look));
        }
    }
    if run.summary.ran() == 0 {
        parts.push(style.paint(Look::Red, "none ran"));
    }
    let what = style.paint(Look::Bold, &subject(&run.info));
    format!("{what}: {}\n", parts.join(", "))
}

/// What a run was of, in words.
fn subject(info: &BackendInfo) -> String {
    let BackendInfo {
        backend,
        device,
        link_layer,
        profile,
        seed,
        ..
    } = info;
    format!("{backend} {device}, {link_layer}, profile {profile}, seed {seed}")
}
