//! `verbsim rules`: the rules, and what checks each.

use serde::Serialize;
use verbs_scenarios::{Level, Rule, all, reason, rules};

use crate::output::{Format, Stop, json, print};
use crate::style::{Look, Style};
use crate::table::Plain;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only the rules that no scenario checks
    #[arg(long)]
    uncovered: bool,
    /// How to show them
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// A rule in the JSON of `rules`.
#[derive(Serialize)]
struct Covered {
    id: &'static str,
    group: &'static str,
    level: Level,
    rule: &'static str,
    source: &'static str,
    unverified: Option<&'static str>,
    scenarios: Vec<&'static str>,
    reason: Option<&'static str>,
}

pub(crate) fn execute(args: &Args) -> Result<(), Stop> {
    let wanted = |covered: &Covered| !args.uncovered || covered.scenarios.is_empty();
    let listed: Vec<_> = rules().iter().map(Covered::new).filter(wanted).collect();
    print(&match args.format {
        Format::Json => json(&listed),
        Format::Table => table(&listed, Style::of_stdout()),
    })
}

/// The scenarios that check a rule, and if there are none the reason.
pub(crate) fn coverage(rule: &Rule) -> (Vec<&'static str>, Option<&'static str>) {
    let citing = all().filter(|scenario| scenario.checks(rule));
    let ids: Vec<_> = citing.map(|scenario| scenario.id).collect();
    let reason = if ids.is_empty() { reason(rule) } else { None };
    (ids, reason)
}

impl Covered {
    fn new(rule: &'static Rule) -> Self {
        let (scenarios, reason) = coverage(rule);
        Self {
            id: &rule.id,
            group: &rule.group,
            level: rule.level,
            rule: &rule.rule,
            source: &rule.source,
            unverified: rule.unverified.as_deref(),
            scenarios,
            reason,
        }
    }
}

fn table(listed: &[Covered], style: Style) -> String {
    let mut table = Plain::narrow(style);
    for covered in listed {
        let (by, look) = match covered.reason {
            _ if !covered.scenarios.is_empty() => (covered.scenarios.join(" "), Look::Green),
            Some(reason) => (reason.to_string(), Look::Dim),
            None => ("no scenario".to_string(), Look::Red),
        };
        table.row([
            style.cell(Look::Bold, covered.id),
            style.cell(Look::Dim, covered.level.letter()),
            style.cell(Look::Plain, covered.rule),
        ]);
        table.row([
            style.cell(Look::Plain, ""),
            style.cell(Look::Plain, ""),
            style.cell(look, by),
        ]);
        if let Some(looked_for) = covered.unverified {
            table.row([
                style.cell(Look::Plain, ""),
                style.cell(Look::Plain, ""),
                style.cell(Look::Yellow, format!("unverified: {looked_for}")),
            ]);
        }
    }
    let checked = listed.iter().filter(|c| !c.scenarios.is_empty()).count();
    let open = listed
        .iter()
        .filter(|c| c.scenarios.is_empty() && c.reason.is_none())
        .count();
    let unverified = listed.iter().filter(|c| c.unverified.is_some()).count();
    let total = listed.len();
    let count = format!(
        "{total} rules: {checked} with scenarios, {open} without scenario or reason; \
         {unverified} unverified"
    );
    format!("{}\n{}\n", table.text(), style.paint(Look::Bold, &count))
}
