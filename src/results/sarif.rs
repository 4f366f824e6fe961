//! SARIF 2.1.0, the format of static analyzers, which code hosts show next to the code.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use verbs_scenarios::rule;
use verbs_sim::{Certainty, Class};

use super::{Case, Failure, Place, Suite, Verdict};
use crate::output;

/// What is escaped in the path of a URI (RFC 3986).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// One document. A case whose class is one of the classes of mistakes becomes a result. Any other
/// case that did not pass says something about the run, and becomes a notification. GitHub refuses
/// a document with a result that has no location, so such a result gets `otherwise`.
pub(crate) fn document(suite: &Suite, otherwise: &Place) -> String {
    let (mut rules, mut results, mut notifications) = (BTreeMap::new(), Vec::new(), Vec::new());
    for case in &suite.cases {
        let (level, failure) = match &case.verdict {
            Verdict::Failed(failure) => ("error", failure),
            Verdict::Doubtful(failure) => ("warning", failure),
            Verdict::Passed | Verdict::Skipped(_) => continue,
        };
        if let Some(class) = class(case) {
            rules.insert(class.name(), described(class));
            results.push(result(class, level, failure, otherwise));
        } else {
            notifications.push(json!({ "level": level, "message": { "text": failure.text } }));
        }
    }
    let is_error = |notification: &Value| notification["level"] == "error";
    output::json(&json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "verbsim",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.into_values().collect::<Vec<_>>(),
            }},
            "invocations": [{
                "commandLine": suite.name,
                "executionSuccessful": !notifications.iter().any(is_error),
                "toolExecutionNotifications": notifications,
            }],
            "results": results,
        }],
    }))
}

fn class(case: &Case) -> Option<Class> {
    let mut all = Class::ALL.iter().copied();
    all.find(|class| class.name() == case.class)
}

/// A class of mistakes, as a rule of SARIF.
fn described(class: Class) -> Value {
    let sentence = rule(class.rule()).map_or("", |rule| &rule.rule);
    let level = match class.certainty() {
        Certainty::Certain => "error",
        _ => "warning",
    };
    json!({
        "id": class.name(),
        "shortDescription": { "text": sentence },
        "fullDescription": { "text": sentence },
        "help": { "text": class.remedy() },
        "defaultConfiguration": { "level": level },
    })
}

fn result(class: Class, level: &str, failure: &Failure, otherwise: &Place) -> Value {
    let place = failure.place.as_ref().unwrap_or(otherwise);
    json!({
        "ruleId": class.name(),
        "level": level,
        "message": { "text": failure.text },
        "locations": [{ "physicalLocation": {
            "artifactLocation": artifact(&place.file),
            "region": { "startLine": place.line },
        }}],
    })
}

fn artifact(path: &str) -> Value {
    let escaped = utf8_percent_encode(path, ESCAPED);
    if path.starts_with('/') {
        json!({ "uri": format!("file://{escaped}") })
    } else {
        json!({ "uri": escaped.to_string(), "uriBaseId": "%SRCROOT%" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped_and_relative_to_the_checkout() {
        let relative = json!({ "uri": "src/a%20b%25%23%3A.c", "uriBaseId": "%SRCROOT%" });
        assert_eq!(artifact("src/a b%#:.c"), relative);
        let absolute = json!({ "uri": "file:///usr/bin/g%2B%2B-12_x~" });
        assert_eq!(artifact("/usr/bin/g++-12_x~"), absolute);
    }
}
