//! Mutants, and which of them are judged.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use verbs_api::random::Random;

use crate::operators::{Site, find};
use crate::unjudged::is_unjudged;

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

/// Reads the sources, which are below `root`. Those of modules that are not judged are left
/// out.
///
/// # Errors
/// If one cannot be read.
pub(crate) fn read(root: &Path, paths: &[String]) -> io::Result<Vec<Source>> {
    let mut skipped = Vec::new();
    let mut sources = Vec::new();
    for path in paths {
        let text = fs::read_to_string(root.join(path))?;
        let found = find(path, &text);
        let folder = folder_of(path);
        skipped.extend(found.skipped.iter().map(|name| format!("{folder}/{name}")));
        sources.push(Source {
            path: path.clone(),
            text,
            sites: found.sites,
        });
    }
    let is_of = |path: &str, module: &String| {
        path.strip_prefix(&module[..])
            .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    sources.retain(|source| !skipped.iter().any(|module| is_of(&source.path, module)));
    Ok(sources)
}

/// The folder with the modules that a source declares.
fn folder_of(path: &str) -> &str {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "mod.rs" | "lib.rs" | "main.rs" => folder,
        _ => path.trim_end_matches(".rs"),
    }
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
                if is_unjudged(&of.path, &what.text) {
                    continue;
                }
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
