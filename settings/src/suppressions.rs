//! Findings that are known, and not to be said again.

use std::fs;
use std::path::Path;

use verbs_sim::Class;

use crate::setting::Given;

/// What is left out of a diagnosis. A file has a line for each: a class, such as `VS-CQ-04`, or a class and a place, such
/// as `VS-ARM-05:old_client.c:*`, where `*` is any text. What is behind `#` is for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suppressions(Vec<Suppression>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Suppression {
    class: Class,
    /// `None` for all places, and for findings without one.
    place: Option<String>,
}

impl Suppressions {
    /// Those of the file that is set.
    pub(crate) fn given(given: Option<Given<String>>) -> Result<Self, String> {
        let Some(given) = given else {
            return Ok(Self::default());
        };
        let path = &given.value;
        Self::read(Path::new(path)).map_err(|problem| given.refuse(path, problem))
    }

    /// Those of a file.
    ///
    /// # Errors
    /// It cannot be read, or a line names no class: which one.
    pub fn read(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        Self::of_text(&text)
            .map_err(|(line, problem)| format!("{}:{line}: {problem}", path.display()))
    }

    /// With the number of the line that is wrong.
    fn of_text(text: &str) -> Result<Self, (usize, String)> {
        let mut all = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            let entry = line.split('#').next().unwrap_or_default().trim();
            if !entry.is_empty() {
                all.push(Suppression::of_text(entry).map_err(|problem| (number, problem))?);
            }
        }
        Ok(Self(all))
    }

    /// Whether a finding of this class, at the place that `place` gives, is left out.
    pub fn cover(&self, class: Class, place: impl FnOnce() -> Option<String>) -> bool {
        let mut of_class = self
            .0
            .iter()
            .filter(|entry| entry.class == class)
            .peekable();
        if of_class.peek().is_none() {
            return false;
        }
        // Names of places take time.
        let place = place().unwrap_or_default();
        of_class.any(|entry| {
            let pattern = entry.place.as_deref();
            pattern.is_none_or(|pattern| matches(pattern, &place))
        })
    }
}

impl Suppression {
    fn of_text(entry: &str) -> Result<Self, String> {
        let (class, place) = match entry.split_once(':') {
            Some((class, place)) => (class.trim(), Some(place.trim().to_owned())),
            None => (entry, None),
        };
        let class = class
            .parse()
            .map_err(|unknown| format!("{unknown}; `verbsim classes` lists them"))?;
        Ok(Self { class, place })
    }
}

/// Whether a text is of a pattern, where `*` is any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(first) else {
        return false;
    };
    let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.any(|at| matches(rest, &text[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        for (pattern, text, expected) in [
            ("client.c:17", "client.c:17", true),
            ("client.c:17", "client.c:171", false),
            ("client.c:*", "client.c:17", true),
            ("client.c:*", "old_client.c:17", false),
            ("*client.c:*", "old_client.c:17", true),
            ("* in lib*.so*", "post in libold.so.1", true),
            ("*", "", true),
            ("*a*a", "ba", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_line_is_of_a_class_or_of_its_places() {
        let text = "# known\n\nVS-CQ-04\nvs-arm-05:old.c:*  # ticket 7\n VS-ARM-05 : new.c:3\n";
        let all = Suppressions::of_text(text).unwrap();
        let cover = |class, place: Option<&str>| all.cover(class, || place.map(str::to_owned));
        assert!(cover(Class::Unpolled, None) && cover(Class::Unpolled, Some("x.c:1")));
        assert!(cover(Class::ArmedWithoutChannel, Some("old.c:12")));
        assert!(cover(Class::ArmedWithoutChannel, Some("new.c:3")));
        assert!(!cover(Class::ArmedWithoutChannel, Some("new.c:4")));
        assert!(!cover(Class::ArmedWithoutChannel, None));
        assert!(!cover(Class::Overrun, Some("old.c:12")));
        assert!(!Suppressions::default().cover(Class::Overrun, || None));
    }

    #[test]
    fn a_line_that_names_no_class_is_named() {
        let (line, problem) = Suppressions::of_text("VS-CQ-04\nVS-CQ-99:x.c:1\n").unwrap_err();
        assert_eq!(line, 2);
        assert!(problem.contains("VS-CQ-99"), "{problem}");
    }
}
