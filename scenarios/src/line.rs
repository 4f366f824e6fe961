//! An entry of a report as a line of JSON, from the process that runs a scenario to the one that
//! reports.

use serde::{Deserialize, Serialize};

use crate::failure::FailureKind;
use crate::report::{Entry, FailureReport, Outcome};
use crate::rules::rule;
use crate::scenario::Scenario;
use crate::setup::Negative;

/// What a line has of an [`Entry`]. Traces are the simulator's, which runs in the process itself.
#[derive(Serialize, Deserialize)]
struct Line {
    id: String,
    outcome: Outcome,
    reason: Option<String>,
    seconds: Option<f64>,
    failure: Option<Failed>,
    negative: Option<Negative>,
    passed_over: Vec<String>,
    noted: Vec<Failed>,
    ended_by: Option<Failed>,
}

#[derive(Serialize, Deserialize)]
struct Failed {
    kind: FailureKind,
    rule: Option<String>,
    expected: String,
    seen: String,
    ends: bool,
    replay: String,
}

impl Entry {
    /// As a line, without its end: all but the names of the rules that assertions named, and
    /// traces.
    pub fn to_line(&self) -> String {
        let line = Line {
            id: self.id.to_owned(),
            outcome: self.outcome,
            reason: self.reason.clone(),
            seconds: self.seconds,
            failure: self.failure.as_ref().map(Failed::of),
            negative: self.negative,
            passed_over: self.passed_over.clone(),
            noted: self.noted.iter().map(Failed::of).collect(),
            ended_by: self.ended_by.as_ref().map(Failed::of),
        };
        serde_json::to_string(&line).expect("plain data")
    }

    /// The entry of this scenario, if that is what the line has.
    pub fn of_line(scenario: &'static Scenario, line: &str) -> Option<Self> {
        let line: Line = serde_json::from_str(line).ok()?;
        (line.id == scenario.id).then(|| Self {
            outcome: line.outcome,
            reason: line.reason,
            seconds: line.seconds,
            failure: line.failure.map(Failed::report),
            negative: line.negative,
            passed_over: line.passed_over,
            noted: line.noted.into_iter().map(Failed::report).collect(),
            ended_by: line.ended_by.map(Failed::report),
            ..Self::new(scenario)
        })
    }
}

impl Failed {
    fn of(failure: &FailureReport) -> Self {
        Self {
            kind: failure.kind,
            rule: failure.rule.map(str::to_owned),
            expected: failure.expected.clone(),
            seen: failure.seen.clone(),
            ends: failure.ends,
            replay: failure.replay.clone(),
        }
    }

    fn report(self) -> FailureReport {
        let rule = self.rule.and_then(|id| rule(&id));
        FailureReport {
            kind: self.kind,
            rule: rule.map(|rule| rule.id.as_str()),
            expected: self.expected,
            seen: self.seen,
            ends: self.ends,
            trace: Vec::new(),
            replay: self.replay,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_goes_through_a_line_unchanged() {
        let scenario = crate::all().next().unwrap();
        let failure = FailureReport {
            kind: FailureKind::Hang,
            rule: Some(scenario.rules[0]),
            expected: "an end\nof it".to_owned(),
            seen: "\"nothing\"".to_owned(),
            ends: true,
            trace: Vec::new(),
            replay: "verbsim run".to_owned(),
        };
        let entry = Entry {
            outcome: Outcome::KnownDeviation,
            reason: Some("it is so".to_owned()),
            seconds: Some(1.5),
            failure: Some(failure.clone()),
            negative: Some(Negative::Waited),
            passed_over: vec!["GID_CHANGE".to_owned()],
            noted: vec![failure.clone()],
            ended_by: Some(failure),
            ..Entry::new(scenario)
        };
        let line = entry.to_line();
        assert_eq!(line.lines().count(), 1);
        assert_eq!(Entry::of_line(scenario, &line), Some(entry));
    }

    #[test]
    fn what_is_not_the_entry_of_the_scenario_is_none() {
        let [first, second] = [0, 1].map(|n| crate::all().nth(n).unwrap());
        let line = Entry::new(first).to_line();
        for garbage in ["", "{}", "null", &line[1..], &line[..line.len() - 1]] {
            assert_eq!(Entry::of_line(first, garbage), None, "{garbage}");
        }
        assert_eq!(Entry::of_line(second, &line), None);
    }
}
