//! Workflow commands of GitHub Actions, which show annotations.
//!
//! <https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands>

use super::{Failure, Suite, Verdict};

/// One line for each failure, then one for each doubtful case. GitHub shows ten of each level.
pub(crate) fn annotations(suites: &[Suite]) -> String {
    let (mut errors, mut warnings) = (String::new(), String::new());
    for case in suites.iter().flat_map(|suite| &suite.cases) {
        match &case.verdict {
            Verdict::Failed(failure) => errors += &annotation("error", failure),
            Verdict::Doubtful(failure) => warnings += &annotation("warning", failure),
            Verdict::Passed | Verdict::Skipped(_) => {}
        }
    }
    errors + &warnings
}

fn annotation(level: &str, failure: &Failure) -> String {
    let place = failure.place.as_ref().map_or_else(String::new, |place| {
        format!("file={},line={},", property(&place.file), place.line)
    });
    let title = property(&failure.title);
    format!("::{level} {place}title={title}::{}\n", data(&failure.text))
}

/// Escapes what would end the line.
fn data(text: &str) -> String {
    let escaped = text.trim_end().replace('%', "%25");
    escaped.replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes what would end the line or the property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Case, Place};

    #[test]
    fn annotations_are_lines_with_errors_first_and_escape_what_would_end_their_parts() {
        let failure = |place| Failure {
            title: "a, b: VS-KEY-01".to_owned(),
            message: String::new(),
            text: "100 % wrong:\nno region\n".to_owned(),
            place,
        };
        let place = Place {
            file: "src/a,b.c".to_owned(),
            line: 10,
        };
        let case = |verdict| Case {
            name: String::new(),
            class: String::new(),
            verdict,
        };
        let suite = Suite {
            name: String::new(),
            properties: Vec::new(),
            cases: vec![
                case(Verdict::Doubtful(failure(None))),
                case(Verdict::Passed),
                case(Verdict::Skipped("needs a lab".to_owned())),
                case(Verdict::Failed(failure(Some(place)))),
            ],
        };
        assert_eq!(
            annotations(&[suite]),
            "::error file=src/a%2Cb.c,line=10,title=a%2C b%3A VS-KEY-01::100 %25 wrong:%0Ano region\n\
             ::warning title=a%2C b%3A VS-KEY-01::100 %25 wrong:%0Ano region\n"
        );
    }
}
