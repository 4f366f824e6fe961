//! Known findings that are not reported again.

use core::cell::LazyCell;

use super::class::{Class, UnknownClass};

/// A list of known findings. Each entry is a class, such as `VS-CQ-04`, or a class and a place,
/// such as `VS-ARM-05:src/client.rs:*`, where `*` stands for any text. The place is what a finding
/// has in parentheses.
///
/// ```
/// use verbs_sim::{Class, Suppressions};
///
/// let known = Suppressions::parse("VS-CQ-04\nVS-ARM-05:src/client.rs:*  # ticket 7").unwrap();
/// assert!(known.cover(Class::Unpolled, || None));
/// assert!(known.cover(Class::ArmedWithoutChannel, || Some("src/client.rs:17".to_owned())));
/// assert!(!known.cover(Class::ArmedWithoutChannel, || Some("src/server.rs:17".to_owned())));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suppressions(Vec<Suppression>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Suppression {
    class: Class,
    /// `None` covers all places, and findings without one.
    place: Option<String>,
}

impl Suppressions {
    /// Adds an entry.
    ///
    /// # Errors
    /// [`UnknownClass`] if there is no such class.
    pub fn add(&mut self, entry: &str) -> Result<(), UnknownClass> {
        let (class, place) = match entry.split_once(':') {
            Some((class, place)) => (class.trim(), Some(place.trim().to_owned())),
            None => (entry.trim(), None),
        };
        let class = class.parse()?;
        self.0.push(Suppression { class, place });
        Ok(())
    }

    /// Reads a text with an entry in each line. A `#` starts a comment.
    ///
    /// # Errors
    /// The number of the first line with an unknown class, and its name.
    pub fn parse(text: &str) -> Result<Self, (usize, UnknownClass)> {
        let mut all = Self::default();
        for (line, number) in text.lines().zip(1..) {
            let entry = line.split('#').next().unwrap_or_default().trim();
            if !entry.is_empty() {
                all.add(entry).map_err(|unknown| (number, unknown))?;
            }
        }
        Ok(all)
    }

    /// Whether the list covers a finding of this class at the place that `place` returns.
    pub fn cover(&self, class: Class, place: impl FnOnce() -> Option<String>) -> bool {
        // Finding the name of a place takes time, and most findings are not suppressed.
        let place = LazyCell::new(|| place().unwrap_or_default());
        let covers = |pattern: &String| matches(pattern, &place);
        let mut of_class = self.0.iter().filter(|entry| entry.class == class);
        of_class.any(|entry| entry.place.as_ref().is_none_or(covers))
    }
}

/// Whether a text matches a pattern, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(first) else {
        return false;
    };
    // A star may stand for any length, so each one is tried.
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
        let all = Suppressions::parse(text).unwrap();
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
        let text = "VS-CQ-04\nVS-CQ-99:x.c:1\n";
        let (line, unknown) = Suppressions::parse(text).unwrap_err();
        assert_eq!(line, 2);
        assert!(unknown.to_string().contains("VS-CQ-99"), "{unknown}");
    }
}
