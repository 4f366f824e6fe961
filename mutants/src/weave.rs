//! A source with all its mutants, each behind the switch.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::operators::{Form, Site};

/// A source with mutants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Woven {
    pub(crate) text: String,
    /// Where in it the mutants are: a mutant's own code, and then what is around all of a site.
    places: Vec<Place>,
}

#[derive(Clone, Debug)]
struct Place {
    range: Range<usize>,
    mutants: Vec<u32>,
    is_own_code: bool,
    leaves_out: bool,
}

/// A site, and what is woven of it.
pub(crate) struct Chosen<'s> {
    pub(crate) site: &'s Site,
    /// Mutations, by their place in the site, with their numbers.
    pub(crate) numbers: Vec<(usize, u32)>,
}

/// Weaves them into their source.
pub(crate) fn weave(source: &str, chosen: &[Chosen<'_>]) -> Woven {
    // What opens at one byte, the widest first; what closes at one, the narrowest first.
    let mut opens: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut closes: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, Chosen { site, numbers }) in chosen.iter().enumerate() {
        if !numbers.is_empty() {
            opens.entry(site.range.start).or_default().push(index);
            closes.entry(site.range.end).or_default().push(index);
        }
    }
    let width = |index: &usize| chosen[*index].site.range.len();
    let mut woven = Woven::default();
    let mut starts = vec![0; chosen.len()];
    let mut at = 0;
    let mut bytes: Vec<usize> = opens.keys().chain(closes.keys()).copied().collect();
    bytes.sort_unstable();
    bytes.dedup();
    for byte in bytes {
        woven.text += &source[at..byte];
        at = byte;
        let (points, wide): (Vec<_>, Vec<_>) = opens
            .remove(&byte)
            .unwrap_or_default()
            .into_iter()
            .partition(|index| width(index) == 0);
        let mut ending = closes.remove(&byte).unwrap_or_default();
        ending.retain(|index| width(index) > 0);
        // If two are equally wide, the later one is inside.
        ending.sort_by_key(|index| (width(index), usize::MAX - index));
        for index in ending {
            woven.text += close(chosen[index].site.form);
            woven.end(starts[index], &chosen[index]);
        }
        for index in points {
            let start = woven.text.len();
            woven.open(source, &chosen[index]);
            woven.end(start, &chosen[index]);
        }
        let mut wide = wide;
        wide.sort_by_key(|index| (usize::MAX - width(index), *index));
        for index in wide {
            starts[index] = woven.text.len();
            woven.open(source, &chosen[index]);
        }
    }
    woven.text += &source[at..];
    woven
}

impl Woven {
    /// The mutants that an error of the compiler at these bytes may be about: the one whose code it
    /// is in, else those of the narrowest site around. And whether it is the one.
    pub(crate) fn mutants_at(&self, bytes: Range<usize>) -> Option<(&[u32], bool)> {
        let around =
            |place: &&Place| place.range.start <= bytes.start && bytes.start < place.range.end;
        let of = |own: bool| {
            let places = self.places.iter().filter(|place| place.is_own_code == own);
            places.filter(around).min_by_key(|place| place.range.len())
        };
        let found = of(true).or_else(|| of(false))?;
        Some((&found.mutants, found.is_own_code))
    }

    /// The mutants nearest to these bytes that leave something out: what the compiler misses there
    /// may be missed elsewhere.
    pub(crate) fn left_out_near(&self, bytes: Range<usize>) -> &[u32] {
        let left_out = self.places.iter().filter(|place| place.leaves_out);
        let distance = |place: &&Place| {
            let before = bytes.start.saturating_sub(place.range.end);
            before + place.range.start.saturating_sub(bytes.end)
        };
        left_out
            .min_by_key(distance)
            .map_or(&[], |place| &place.mutants)
    }

    fn open(&mut self, source: &str, chosen: &Chosen<'_>) {
        let Chosen { site, numbers } = chosen;
        let original = &source[site.range.clone()];
        match site.form {
            Form::Expression => self.text += "(",
            Form::Shorthand => self.text += &format!("{original}: ("),
            _ => {}
        }
        for (mutation, number) in numbers {
            let live = format!("::mutant_switch::is({number})");
            let code = &site.mutations[*mutation].code;
            let (before, behind) = match site.form {
                Form::Expression | Form::Shorthand => (format!("if {live} {{ "), " } else "),
                Form::Statement => (format!("if !{live} {{ "), ""),
                Form::Entry => (format!(" if {live} {{ "), " }"),
                Form::Arm => (format!(" if !{live}"), ""),
                Form::Let => (format!("!{live} && "), ""),
            };
            self.text += &before;
            let start = self.text.len();
            self.text += code;
            if !code.is_empty() {
                self.places.push(Place {
                    range: start..self.text.len(),
                    mutants: vec![*number],
                    is_own_code: true,
                    leaves_out: false,
                });
            }
            self.text += behind;
        }
        if matches!(site.form, Form::Expression | Form::Shorthand) {
            self.text += "{ ";
        }
    }

    fn end(&mut self, start: usize, chosen: &Chosen<'_>) {
        let Chosen { site, numbers } = chosen;
        self.places.push(Place {
            range: start..self.text.len(),
            mutants: numbers.iter().map(|(_, number)| *number).collect(),
            is_own_code: false,
            leaves_out: matches!(site.form, Form::Statement | Form::Arm | Form::Let),
        });
    }
}

fn close(form: Form) -> &'static str {
    match form {
        Form::Expression | Form::Shorthand => " })",
        Form::Statement => " }",
        Form::Entry | Form::Arm | Form::Let => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::find;

    /// All of the source's mutants, numbered from 1.
    fn all(source: &str) -> Woven {
        let sites = find("test.rs", source).sites;
        let mut number = 0;
        let chosen: Vec<_> = sites
            .iter()
            .map(|site| {
                let numbered = (0..site.mutations.len()).map(|at| {
                    number += 1;
                    (at, number)
                });
                Chosen {
                    site,
                    numbers: numbered.collect(),
                }
            })
            .collect();
        weave(source, &chosen)
    }

    #[test]
    fn what_is_woven_is_rust() {
        let source = "
            impl A {
                fn f(&self, b: u8) -> Option<bool> {
                    let Some(c) = self.d else { return None };
                    if let Some(e) = g(b) && e > 1 { self.h += 1; return Some(true); }
                    match b { 1 if c => i(), 2 => { j(); k() } _ => l() }
                    for _ in 0..3 { self.m(B { n: b + 1, c }); }
                    while self.n() { break }
                    Some(!c)
                }
            }";
        let woven = all(source);
        syn::parse_file(&woven.text).unwrap_or_else(|error| panic!("{error}: {}", woven.text));
    }

    #[test]
    fn an_error_is_of_the_code_it_is_in() {
        let woven = all("fn f(b: u8) -> u8 { b + 1 }");
        let bytes = |text: &str| {
            let at = woven.text.find(text).expect("it is there");
            at..at + 1
        };
        let mutants = |text| woven.mutants_at(bytes(text));
        assert_eq!(mutants("return 1"), Some((&[2][..], true)));
        assert_eq!(mutants("(b) * (1)"), Some((&[4][..], true)));
        assert_eq!(mutants("b + "), Some((&[3, 4][..], false)));
    }
}
