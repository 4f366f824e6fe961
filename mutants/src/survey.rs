//! A run: which mutants are judged, their outcome, and the problems.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::area::{Area, Judges};
use crate::changed::Changed;
use crate::judge::{Verdict, judge};
use crate::mutant::{Key, Mutant, Source, mutants, sample};
use crate::programs::measure;
use crate::reasons::{self, Class, Reason};
use crate::tree::Tree;
use crate::verdicts::{Judged, Verdicts, table};
use crate::{Args, Result};

/// A check that takes longer is not asked: it would be asked for each survivor.
const LONGEST: Duration = Duration::from_secs(60);
const LONGEST_TEST: Duration = Duration::from_secs(60);

/// All mutants of an area, with what is known of them.
pub(crate) struct Survey {
    area: Area,
    root: PathBuf,
    /// Where the copy is, and the verdicts.
    dir: PathBuf,
    sources: Vec<Source>,
    mutants: Vec<Mutant>,
    reasons: BTreeMap<Key, Reason>,
    verdicts: Verdicts,
}

/// Who judges.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The scenarios, and the clients of the drop-in.
    First,
    /// All other tests.
    Tests,
}

impl Survey {
    /// # Errors
    /// If a source, a reason or an earlier verdict cannot be read.
    pub(crate) fn new(args: &Args) -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("the workspace");
        let dir = args.dir.join(args.area.name());
        fs::create_dir_all(&dir)?;
        let dir = dir.canonicalize()?;
        let sources = args.area.sources(root)?;
        Ok(Self {
            area: args.area,
            root: root.to_owned(),
            mutants: mutants(&sources),
            sources,
            reasons: reasons::read(&folder(root))?,
            verdicts: Verdicts::open(&dir.join("verdicts.tsv"), !(args.again || args.tests))?,
            dir,
        })
    }

    /// Judges those that are asked for and compile.
    ///
    /// # Errors
    /// If the copy does not compile, its tests fail without a mutant, or there is no such commit.
    pub(crate) fn judge(&mut self, args: &Args) -> Result<()> {
        let chosen = self.chosen(args)?;
        eprintln!("{} mutants, {} to judge", self.mutants.len(), chosen.len());
        let tree = Tree::new(&self.root, &self.dir)?;
        let packages = self.area.packages();
        let left = tree.weave(&self.sources, &self.mutants, &chosen, packages)?;
        let numbers: Vec<u32> = left.into_iter().collect();
        let (judges, stage) = if args.tests {
            (self.area.tests(&tree)?, Stage::Tests)
        } else {
            (self.area.judges(&tree)?, Stage::First)
        };
        self.ask(judges, &numbers, stage, args.jobs())
    }

    /// What is wrong about the mutants that have a verdict, and about the reasons. In a whole run a
    /// reason may not be of a mutant that is noticed.
    pub(crate) fn problems(&self, is_whole: bool) -> Vec<String> {
        let unknown = self.unknown().into_iter();
        let unknown = unknown.map(|key| format!("a reason for a mutant that there is not: {key}"));
        let of_judged = self
            .mutants
            .iter()
            .filter_map(|mutant| self.problem(mutant, is_whole));
        unknown.chain(of_judged).collect()
    }

    /// Adds the survivors without a reason to the files, and drops the reasons of mutants that
    /// there are not or that a scenario notices.
    pub(crate) fn write(&mut self) -> Result<()> {
        for key in self.unknown() {
            self.reasons.remove(&key);
        }
        let noticed = self.verdicts.all.iter();
        let noticed = noticed.filter(|(_, judged)| judged.is_caught_at_first());
        for (key, _) in noticed {
            self.reasons.remove(key);
        }
        for mutant in &self.mutants {
            let Some(judged) = self.verdicts.all.get(&mutant.key) else {
                continue;
            };
            if judged.is_caught_at_first() || self.reasons.contains_key(&mutant.key) {
                continue;
            }
            let (class, because) = match &judged.tests {
                Some(Verdict::Caught(by)) => (Class::Tests, by.clone()),
                _ => (Class::Hole, "not looked at yet".to_owned()),
            };
            let reason = Reason { class, because };
            self.reasons.insert(mutant.key.clone(), reason);
        }
        reasons::write(&folder(&self.root), &self.reasons)
    }

    /// All verdicts that there are, counted by source.
    pub(crate) fn table(&self) -> String {
        let known = self.mutants.iter().map(|mutant| &mutant.key).collect();
        table(&self.verdicts, &known, &self.reasons)
    }

    /// Reasons for mutants that there are not.
    fn unknown(&self) -> Vec<Key> {
        let known: BTreeSet<&Key> = self.mutants.iter().map(|mutant| &mutant.key).collect();
        let is_of_area = |key: &&Key| {
            let mut places = self.area.places().iter();
            places.any(|place| key.file.starts_with(place))
        };
        let keys = self.reasons.keys().filter(is_of_area);
        keys.filter(|key| !known.contains(key)).cloned().collect()
    }

    /// The numbers of those to judge.
    fn chosen(&self, args: &Args) -> Result<BTreeSet<u32>> {
        let since = args.since.as_ref();
        let since = since.map(|commit| Changed::since(&self.root, commit));
        let since = since.transpose()?;
        let is_of_shard = |place: &usize| match args.shard {
            Some([k, n]) => place % n == k - 1,
            None => true,
        };
        let is_wanted = |place: &usize| {
            let mutant = &self.mutants[*place];
            let judged = self.verdicts.all.get(&mutant.key);
            let is_done = judged.is_some_and(Judged::is_caught_at_first);
            let has = |part: &String| mutant.key.file.contains(part);
            let is_named = args.file.is_empty() || args.file.iter().any(has);
            let is_new = |since: &Changed| since.has(&mutant.key.file, mutant.line);
            let is_new = since.as_ref().is_none_or(is_new);
            // What does not count, tests are not asked about: many come to it, and none notices.
            let reason = self.reasons.get(&mutant.key);
            let is_missed = judged.is_some() && reason.is_none_or(|reason| reason.class.counts());
            is_named && is_new && !is_done && (is_missed || !args.tests)
        };
        let places = (0..self.mutants.len())
            .filter(is_of_shard)
            .filter(is_wanted);
        let mut chosen: Vec<usize> = places.collect();
        if let Some(most) = args.sample {
            let places = sample(chosen.len(), most, args.seed);
            chosen = places.into_iter().map(|place| chosen[place]).collect();
        }
        Ok(chosen.into_iter().map(|place| place as u32 + 1).collect())
    }

    /// Asks the judges about these mutants, and notes each verdict as soon as it is there.
    fn ask(&mut self, judges: Judges, numbers: &[u32], stage: Stage, jobs: usize) -> Result<()> {
        let Judges { programs, checks } = judges;
        let longest = match stage {
            Stage::First => LONGEST,
            Stage::Tests => LONGEST_TEST,
        };
        let checks = measure(&programs, checks, longest, &self.dir, jobs)?;
        eprintln!("{} mutants, {} checks", numbers.len(), checks.len());
        let Self {
            mutants,
            verdicts,
            dir,
            ..
        } = self;
        let (mut done, mut failed, start) = (0, Ok(()), Instant::now());
        let say = |number: u32, verdict| {
            done += 1;
            if done % 100 == 0 {
                let seconds = start.elapsed().as_secs();
                eprintln!("{done} of {} in {seconds} s", numbers.len());
            }
            let key = &mutants[number as usize - 1].key;
            if let Err(error) = verdicts.note(key, stage == Stage::Tests, verdict) {
                failed = Err(error.to_string());
            }
        };
        judge(&programs, &checks, numbers, dir, jobs, say)?;
        Ok(failed?)
    }

    /// A mutant that was judged survives without a reason, or has a reason and does not.
    fn problem(&self, mutant: &Mutant, is_whole: bool) -> Option<String> {
        let Mutant { key, line, .. } = mutant;
        let judged = self.verdicts.all.get(key)?;
        match (&judged.first, self.reasons.get(key)) {
            (Verdict::Caught(by), Some(Reason { class, .. })) if is_whole => Some(format!(
                "it is said to be {class}, but {by} notices it: {key}"
            )),
            (Verdict::Caught(_), _) => None,
            (_, Some(_)) => None,
            (_, None) => Some(format!(
                "it survives without a reason: line {line} of {key}"
            )),
        }
    }
}

/// The files of reasons.
fn folder(root: &Path) -> PathBuf {
    root.join("mutants/survivors")
}
