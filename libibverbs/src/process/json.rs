//! Findings in JSON: an object on a line each. `docs/json.md` describes the fields.

use serde::Serialize;
use verbs_sim::{Certainty, Finding};

use super::place;
use crate::c::symbols::Source;
use crate::engine::engine;

/// The version of the format.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Line<'a> {
    schema: u32,
    process: u32,
    device: &'a str,
    class: &'a str,
    level: &'a str,
    rule: &'a str,
    sentence: &'a str,
    place: Option<String>,
    callers: Vec<String>,
    sources: Vec<Source>,
    count: u64,
    help: &'a str,
}

/// The level of a finding, by its certainty.
pub(super) fn level(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Certain => "error",
        _ => "warning",
    }
}

/// The line of a finding, with its end.
pub(super) fn line(finding: &Finding) -> String {
    let class = finding.class();
    let line = Line {
        schema: SCHEMA,
        process: std::process::id(),
        device: engine().name_of(finding.node),
        class: class.name(),
        level: level(finding.certainty),
        rule: class.rule(),
        sentence: &finding.sentence(engine()),
        place: finding.site.map(place::name),
        callers: finding.site.map(place::around).unwrap_or_default(),
        sources: finding.site.map(place::sources).unwrap_or_default(),
        count: finding.more + 1,
        help: class.remedy(),
    };
    let text = serde_json::to_string(&line).expect("plain data");
    text + "\n"
}
