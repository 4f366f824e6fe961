//! Mutants, and which of them are judged.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use verbs_api::random::Random;

use crate::operators::{Site, sites};

/// What a mutant is known by, wherever its code moves: no line of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) file: String,
    pub(crate) function: String,
    /// What is mutated into what. The second of the same text in a function has `#2` behind it.
    pub(crate) text: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file,
            function,
            text,
        } = self;
        write!(f, "{file} {function}: {text}")
    }
}

/// A change of one place of a source.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    pub(crate) key: Key,
    pub(crate) line: usize,
    /// It only makes a text.
    pub(crate) is_text: bool,
    /// Its place: the source, the site in it, the mutation of that.
    pub(crate) place: [usize; 3],
}

/// A source with its sites.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) sites: Vec<Site>,
}

/// Reads the sources, which are below `root`.
///
/// # Errors
/// If one cannot be read.
pub(crate) fn read(root: &Path, paths: &[String]) -> io::Result<Vec<Source>> {
    let source = |path: &String| {
        let text = fs::read_to_string(root.join(path))?;
        let sites = sites(path, &text);
        let path = path.clone();
        Ok(Source { path, text, sites })
    };
    paths.iter().map(source).collect()
}

/// All mutants of the sources. The number of one is its place in the list, and one.
pub(crate) fn mutants(sources: &[Source]) -> Vec<Mutant> {
    let mut all = Vec::new();
    for (source, of) in sources.iter().enumerate() {
        let mut seen = std::collections::HashMap::new();
        for (site, at) in of.sites.iter().enumerate() {
            for (mutation, what) in at.mutations.iter().enumerate() {
                let count = seen.entry((&at.function, &what.text)).or_insert(0);
                *count += 1;
                let text = match *count {
                    1 => what.text.clone(),
                    again => format!("{} #{again}", what.text),
                };
                all.push(Mutant {
                    key: Key {
                        file: of.path.clone(),
                        function: at.function.clone(),
                        text,
                    },
                    line: at.line,
                    is_text: at.is_text,
                    place: [source, site, mutation],
                });
            }
        }
    }
    all
}

/// At most `most` of the mutants `0..count`, at random, in order.
pub(crate) fn sample(count: usize, most: usize, seed: u64) -> Vec<usize> {
    let mut all: Vec<usize> = (0..count).collect();
    let mut random = Random::new(seed, 0);
    let most = most.min(count);
    for at in 0..most {
        let left = (count - at) as u64;
        all.swap(at, at + (random.next_u64() % left) as usize);
    }
    all.truncate(most);
    all.sort_unstable();
    all
}
