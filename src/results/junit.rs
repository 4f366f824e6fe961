//! JUnit XML.

use std::collections::BTreeMap;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::{Case, Failure, Suite, Verdict};

/// One document with all suites. It has no times: they differ from run to run.
pub(crate) fn document(suites: &[Suite]) -> String {
    let mut report = Report::new("verbsim");
    report.add_test_suites(suites.iter().map(suite));
    report.to_string().expect("the writer is a string")
}

/// Readers treat two cases with the same class and name as one case, so the second gets a number.
fn suite(of: &Suite) -> TestSuite {
    let mut suite = TestSuite::new(valid(&of.name));
    let properties = of.properties.iter();
    suite.add_properties(properties.map(|(name, value)| (valid(name), valid(value))));
    let mut seen = BTreeMap::new();
    suite.add_test_cases(of.cases.iter().map(|of| {
        let count = seen.entry((&of.class, &of.name)).or_insert(0);
        *count += 1;
        match *count {
            1 => case(of, &of.name),
            count => case(of, &format!("{} ({count})", of.name)),
        }
    }));
    suite
}

fn case(of: &Case, name: &str) -> TestCase {
    let mut case = TestCase::new(valid(name), status(&of.verdict));
    case.set_classname(valid(&of.class));
    if let Verdict::Doubtful(Failure { place, .. }) | Verdict::Failed(Failure { place, .. }) =
        &of.verdict
        && let Some(place) = place
    {
        let attributes = [
            ("file", valid(&place.file)),
            ("line", place.line.to_string()),
        ];
        let attributes = attributes.map(|(name, value)| (name.into(), value.into()));
        case.extra.extend(attributes);
    }
    case
}

fn status(of: &Verdict) -> TestCaseStatus {
    match of {
        Verdict::Passed => TestCaseStatus::success(),
        Verdict::Skipped(why) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(valid(why));
            status
        }
        // The format has no warnings.
        Verdict::Doubtful(failure) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(valid(&format!("warning: {}", failure.message)));
            status.set_description(valid(&failure.text));
            status
        }
        Verdict::Failed(failure) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(valid(&failure.message));
            status.set_type(valid(&failure.title));
            status.set_description(valid(&failure.text));
            status
        }
    }
}

/// Leaves out the two characters that XML does not allow and the crate does not leave out.
fn valid(text: &str) -> String {
    text.replace(['\u{fffe}', '\u{ffff}'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_nothing_that_xml_does_not_allow() {
        let odd = "a\0b\u{1b}[1mc\u{7}d\u{fffe}e\u{ffff}<&\"]]>";
        let case = |verdict| Case {
            name: odd.to_owned(),
            class: odd.to_owned(),
            verdict,
        };
        let failure = || Failure::in_a_line(odd, odd);
        let text = document(&[Suite {
            name: odd.to_owned(),
            properties: vec![(odd.to_owned(), odd.to_owned())],
            cases: vec![
                case(Verdict::Passed),
                case(Verdict::Skipped(odd.to_owned())),
                case(Verdict::Doubtful(failure())),
                case(Verdict::Failed(failure())),
            ],
        }]);
        // `Char` of XML 1.0.
        let is_char = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        assert!(text.chars().all(is_char), "{text:?}");
        let escaped = "abcde&lt;&amp;&quot;]]&gt;";
        assert_eq!(text.matches(escaped).count(), 17, "{text}");
    }
}
