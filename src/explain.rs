//! `verbsim explain`: all there is to say about a rule, a class of mistakes or a scenario.

use serde::Serialize;
use verbs_scenarios::{Level, Rule, Scenario, all, rule, rules};

use crate::classes;
use crate::list::Listed;
use crate::output::{Format, Stop, json, print};
use crate::rules::coverage;
use crate::style::{Look, Style};
use crate::table::Plain;
use crate::words::meant;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A rule, such as `CQ-ARM-17`, a class of mistakes, such as `VS-ARM-01`, a group, such as
    /// `CQ-ARM` or `VS-ARM`, or a scenario
    id: String,
    /// How to show it
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

pub(crate) fn execute(args: &Args) -> Result<(), Stop> {
    let id = &args.id;
    let style = Style::of_stdout();
    if let Some(text) = classes::explain(id, args.format, style) {
        return print(&text);
    }
    let found = rules().iter().find(|rule| rule.id.eq_ignore_ascii_case(id));
    let scenario = all().find(|scenario| scenario.id == id);
    let group: Vec<&'static Rule> = rules()
        .iter()
        .filter(|rule| rule.group.eq_ignore_ascii_case(id))
        .collect();
    let text = match (found, scenario, args.format) {
        (Some(rule), _, Format::Json) => json(&RuleJson::new(rule)),
        (Some(rule), _, Format::Table) => explain_rule(rule, style),
        (None, Some(scenario), Format::Json) => json(&ScenarioJson::new(scenario)),
        (None, Some(scenario), Format::Table) => explain_scenario(scenario, style),
        (None, None, _) if group.is_empty() => return Err(unknown(id)),
        (None, None, Format::Json) => json(&GroupJson::new(&group)),
        (None, None, Format::Table) => explain_group(&group, style),
    };
    print(&text)
}

fn unknown(id: &str) -> Stop {
    let of_rules = rules()
        .iter()
        .flat_map(|rule| [&rule.id[..], &rule.group[..]]);
    let names = of_rules
        .chain(all().map(|scenario| scenario.id))
        .chain(classes::names());
    let meant = meant(
        id,
        names,
        "see `verbsim rules`, `verbsim classes` and `verbsim list`",
    );
    Stop::usage(format!(
        "no rule, class of mistakes, group or scenario is called {id}{meant}"
    ))
}

#[derive(Serialize)]
struct GroupJson {
    kind: &'static str,
    rules: Vec<RuleJson>,
}

impl GroupJson {
    fn new(group: &[&'static Rule]) -> Self {
        let rules = group.iter().map(|rule| RuleJson::new(rule)).collect();
        Self {
            kind: "group",
            rules,
        }
    }
}

#[derive(Serialize)]
struct RuleJson {
    kind: &'static str,
    #[serde(flatten)]
    rule: &'static Rule,
    scenarios: Vec<&'static str>,
    reason: Option<&'static str>,
}

impl RuleJson {
    fn new(rule: &'static Rule) -> Self {
        let (scenarios, reason) = coverage(rule);
        Self {
            kind: "rule",
            rule,
            scenarios,
            reason,
        }
    }
}

#[derive(Serialize)]
struct ScenarioJson {
    kind: &'static str,
    #[serde(flatten)]
    scenario: Listed,
}

impl ScenarioJson {
    fn new(scenario: &Scenario) -> Self {
        Self {
            kind: "scenario",
            scenario: Listed::new(scenario),
        }
    }
}

/// Each rule in a paragraph.
fn explain_group(group: &[&'static Rule], style: Style) -> String {
    let mut text = String::new();
    for rule in group {
        text += &title(&rule.id, &rule.rule, style);
    }
    text + "\n`verbsim explain ID` says where a rule is stated and what checks it.\n"
}

fn explain_rule(rule: &'static Rule, style: Style) -> String {
    let (scenarios, reason) = coverage(rule);
    let level = match rule.level {
        Level::Must => "must hold",
        Level::Allowed => "one of a set of outcomes; the device's behavior says which",
        Level::Informative => "informative",
    };
    let checked = match reason {
        _ if !scenarios.is_empty() => scenarios.join(", "),
        Some(reason) => format!("by no scenario: {reason}"),
        None => "by no scenario".to_string(),
    };
    let fields = [
        ("level", format!("{}: {level}", rule.level.letter())),
        ("source", rule.source.clone()),
        ("unverified", rule.unverified.clone().unwrap_or_default()),
        ("observe", rule.observe.clone()),
        ("differs", rule.divergence.clone().unwrap_or_default()),
        ("same as", rule.same_as.join(", ")),
        ("checked", checked),
    ];
    title(&rule.id, &rule.rule, style) + &fields_of(fields, style)
}

fn explain_scenario(scenario: &Scenario, style: Style) -> String {
    let listed = Listed::new(scenario);
    let needs = [
        ("needs", listed.needs.join(", ")),
        ("lacks", listed.lacks.join(", ")),
        ("hazards", listed.hazards.join(", ")),
    ];
    let rules = scenario.rules.iter().map(|id| {
        let sentence = rule(id).map_or("", |rule| &rule.rule);
        ("rule", format!("{id} {sentence}"))
    });
    let run = ("run", format!("verbsim run --filter {}", scenario.id));
    let fields = needs.into_iter().chain(rules).chain([run]);
    title(scenario.id, "", style) + &fields_of(fields, style)
}

/// The name of a thing, and a sentence about it. On a terminal it wraps.
pub(crate) fn title(name: &str, sentence: &str, style: Style) -> String {
    let mut table = Plain::new(style);
    table.row([
        style.cell(Look::Bold, name),
        style.cell(Look::Plain, sentence),
    ]);
    table.text_at(0)
}

/// The fields of a thing that have a value, each a name and the value. On a terminal they wrap.
pub(crate) fn fields_of<'a>(
    fields: impl IntoIterator<Item = (&'a str, String)>,
    style: Style,
) -> String {
    let mut table = Plain::new(style);
    for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
        table.row([
            style.cell(Look::Dim, format!("{name:<8}")),
            style.cell(Look::Plain, value),
        ]);
    }
    table.text_at(2)
}
