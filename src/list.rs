//! `verbsim list`: the scenarios.

use serde::Serialize;
use verbs_api::Capabilities;
use verbs_scenarios::{GROUPS, Scenario, all};

use crate::output::{Format, Stop, json, print};
use crate::style::{Look, Style};
use crate::table::Plain;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How to show them
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// A scenario in the JSON of `list` and `explain`.
#[derive(Serialize)]
pub(crate) struct Listed {
    pub(crate) id: &'static str,
    pub(crate) rules: &'static [&'static str],
    pub(crate) needs: Vec<String>,
    pub(crate) lacks: Vec<String>,
    pub(crate) hazards: Vec<String>,
    /// Why others disturb it, if they do.
    pub(crate) alone: Option<&'static str>,
}

impl Listed {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let names = |of: Capabilities| {
            let names = of.iter_names();
            names.map(|(name, _)| name.to_ascii_lowercase()).collect()
        };
        let hazards = scenario.hazards.iter_names();
        Self {
            id: scenario.id,
            rules: scenario.rules,
            needs: names(scenario.needs),
            lacks: names(scenario.lacks),
            hazards: hazards.map(|(name, _)| name.to_ascii_lowercase()).collect(),
            alone: scenario.alone,
        }
    }
}

pub(crate) fn execute(args: &Args) -> Result<(), Stop> {
    print(&match args.format {
        Format::Json => json(&all().map(Listed::new).collect::<Vec<_>>()),
        Format::Table => table(Style::of_stdout()),
    })
}

fn table(style: Style) -> String {
    let mut table = Plain::new(style);
    for group in GROUPS {
        if !table.is_empty() {
            table.row([style.cell(Look::Plain, "")]);
        }
        table.row([
            style.cell(Look::Bold, group.title),
            style.cell(Look::Dim, group.scenarios.len()),
        ]);
        for scenario in group.scenarios {
            let listed = Listed::new(scenario);
            let lacks = listed.lacks.iter().map(|lacks| format!("no-{lacks}"));
            let needs: Vec<_> = listed.needs.iter().cloned().chain(lacks).collect();
            table.row([
                style.cell(Look::Plain, listed.id),
                style.cell(Look::Dim, listed.rules.join(" ")),
                style.cell(Look::Plain, needs.join(" ")),
            ]);
        }
    }
    table.text()
}
