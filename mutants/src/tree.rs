//! A copy of the workspace in which the sources are woven.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::Result;
use crate::mutant::{Mutant, Source};
use crate::weave::{Woven, weave};

/// The copy, and where it is built.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    root: PathBuf,
    pub(crate) path: PathBuf,
    target: PathBuf,
    /// All files that git knows or would take.
    files: Vec<String>,
}

impl Tree {
    /// The copy of the workspace at `root` that is in `dir`.
    ///
    /// # Errors
    /// If git does not list its files.
    pub(crate) fn new(root: &Path, dir: &Path) -> Result<Self> {
        Ok(Self {
            root: root.to_owned(),
            path: dir.join("tree"),
            target: dir.join("build"),
            files: files(root, &[])?,
        })
    }

    /// A program that was built.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.target.join("search").join(name)
    }

    /// Weaves these mutants, by their numbers, and leaves out what does not compile: gives the
    /// rest. `packages` are arguments of cargo.
    ///
    /// # Errors
    /// If code does not compile that is not a mutant.
    pub(crate) fn weave(
        &self,
        sources: &[Source],
        mutants: &[Mutant],
        chosen: &BTreeSet<u32>,
        packages: &str,
    ) -> Result<BTreeSet<u32>> {
        let mut left = chosen.clone();
        loop {
            let woven = woven(sources, mutants, &left);
            self.write(&woven)?;
            let bad = self.check(&woven, packages)?;
            if bad.is_empty() {
                return Ok(left);
            }
            eprintln!("{} of {} mutants do not compile", bad.len(), left.len());
            left.retain(|number| !bad.contains(number));
        }
    }

    /// Whether cargo does this, and what it says, a JSON object a line.
    pub(crate) fn cargo(&self, arguments: &str, stderr: Stdio) -> Result<(bool, String)> {
        let output = Command::new("cargo")
            .args(arguments.split_whitespace())
            .args(["--quiet", "--message-format=json"])
            .current_dir(&self.path)
            .env("CARGO_TARGET_DIR", &self.target)
            // Code that a mutant leaves unused is not a defect, and warnings cost time.
            .env("RUSTFLAGS", "-Awarnings")
            .env("CARGO_PROFILE_SEARCH_OPT_LEVEL", "1")
            .stderr(stderr)
            .output()?;
        let text = String::from_utf8(output.stdout)?;
        Ok((output.status.success(), text))
    }

    /// All files, with the woven ones instead of their sources. Unchanged files are not written, so
    /// that little is built again.
    fn write(&self, woven: &BTreeMap<String, Woven>) -> Result<()> {
        for file in &self.files {
            let (from, to) = (self.root.join(file), self.path.join(file));
            let content = match woven.get(file) {
                Some(woven) => woven.text.clone().into_bytes(),
                None => fs::read(&from)?,
            };
            let content = if is_manifest_of(file, woven) {
                with_switch(file, &String::from_utf8(content)?).into_bytes()
            } else {
                content
            };
            if fs::read(&to).ok().as_ref() != Some(&content) {
                fs::create_dir_all(to.parent().expect("it is below the root"))?;
                fs::write(&to, content)?;
                fs::set_permissions(&to, fs::metadata(&from)?.permissions())?;
            }
        }
        let list = self.path.with_extension("list");
        let former = fs::read_to_string(&list).unwrap_or_default();
        let now: BTreeSet<&str> = self.files.iter().map(String::as_str).collect();
        for gone in former.lines().filter(|file| !now.contains(file)) {
            let _ = fs::remove_file(self.path.join(gone));
        }
        fs::write(&list, self.files.join("\n"))?;
        Ok(())
    }

    /// The mutants that do not compile, as far as the compiler gets.
    fn check(&self, woven: &BTreeMap<String, Woven>, packages: &str) -> Result<BTreeSet<u32>> {
        let (good, text) = self.cargo(&format!("check {packages}"), Stdio::null())?;
        // Errors in the code around may follow from the others, so the certain ones come first.
        let [mut own, mut around, mut near] = [const { BTreeSet::new() }; 3];
        let mut messages = Vec::new();
        for message in text.lines().filter_map(Message::error) {
            let of_woven =
                |span: &Span| Some((woven.get(&span.file_name)?, span.byte_start..span.byte_end));
            let spans: Vec<_> = message.spans.iter().filter_map(of_woven).collect();
            let places = spans
                .iter()
                .filter_map(|(file, bytes)| file.mutants_at(bytes.clone()));
            let places: Vec<_> = places.collect();
            match (
                places.iter().find(|(_, is_own)| *is_own).or(places.first()),
                &spans[..],
            ) {
                (Some((mutants, true)), _) => own.extend(*mutants),
                (Some((mutants, false)), _) => around.extend(*mutants),
                (None, [(file, bytes), ..]) => near.extend(file.left_out_near(bytes.clone())),
                (None, []) => {}
            }
            messages.push(message.message);
        }
        let bad = [own, around, near].into_iter().find(|bad| !bad.is_empty());
        match (bad, good) {
            (Some(bad), _) => Ok(bad),
            (None, true) => Ok(BTreeSet::new()),
            (None, false) => {
                Err(format!("the copy does not compile: {}", messages.join("; ")).into())
            }
        }
    }
}

/// The files below these paths that git knows or would take; all for none.
pub(crate) fn files(root: &Path, paths: &[&str]) -> Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .args(paths)
        .current_dir(root)
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let files: BTreeSet<&str> = text.lines().collect();
    let there = files.into_iter().filter(|file| root.join(file).is_file());
    Ok(there.map(str::to_owned).collect())
}

fn woven(
    sources: &[Source],
    mutants: &[Mutant],
    chosen: &BTreeSet<u32>,
) -> BTreeMap<String, Woven> {
    let mut numbers: Vec<Vec<Vec<(usize, u32)>>> = sources
        .iter()
        .map(|source| vec![Vec::new(); source.sites.len()])
        .collect();
    for number in chosen {
        let [source, site, mutation] = mutants[*number as usize - 1].place;
        numbers[source][site].push((mutation, *number));
    }
    let of_source = |(source, numbers): (&Source, Vec<Vec<(usize, u32)>>)| {
        let chosen: Vec<_> = source.sites.iter().zip(numbers).collect();
        (source.path.clone(), weave(&source.text, &chosen))
    };
    sources.iter().zip(numbers).map(of_source).collect()
}

/// The manifest of a package that has woven sources.
fn is_manifest_of(file: &str, woven: &BTreeMap<String, Woven>) -> bool {
    let package = file.strip_suffix("/Cargo.toml");
    package.is_some_and(|package| {
        woven
            .keys()
            .any(|path| path.starts_with(&format!("{package}/")))
    })
}

fn with_switch(file: &str, manifest: &str) -> String {
    let up = "../".repeat(file.matches('/').count());
    let switch = format!("[dependencies]\nmutant-switch = {{ path = \"{up}mutants/switch\" }}\n");
    manifest.replacen("[dependencies]\n", &switch, 1)
}

/// What the compiler says.
#[derive(Deserialize)]
struct Message {
    level: String,
    message: String,
    spans: Vec<Span>,
}

#[derive(Deserialize)]
struct Span {
    file_name: String,
    byte_start: usize,
    byte_end: usize,
    is_primary: bool,
}

impl Message {
    /// An error, the primary places first.
    fn error(line: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Line {
            message: Message,
        }
        let Line { mut message } = serde_json::from_str(line).ok()?;
        message.spans.sort_by_key(|span| !span.is_primary);
        (message.level == "error").then_some(message)
    }
}
