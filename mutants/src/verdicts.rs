//! The verdicts, kept between runs, and the table of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use comfy_table::{CellAlignment, Table, presets};

use crate::Result;
use crate::judge::Verdict;
use crate::mutant::Key;
use crate::reasons::{Class, Reason};

/// The verdict of the first judges, and of all other tests if they ran.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub(crate) first: Verdict,
    pub(crate) tests: Option<Verdict>,
}

/// The verdicts, and their file: one line each; a later line replaces an earlier one.
#[derive(Debug)]
pub(crate) struct Verdicts {
    pub(crate) all: BTreeMap<Key, Judged>,
    file: File,
}

impl Verdicts {
    /// Reads the verdicts of the file, or starts afresh.
    pub(crate) fn open(path: &Path, afresh: bool) -> Result<Self> {
        if afresh {
            let _ = fs::remove_file(path);
        }
        let text = fs::read_to_string(path).unwrap_or_default();
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let mut verdicts = Self {
            all: BTreeMap::new(),
            file,
        };
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let [file, function, text, stage, verdict] = fields[..] else {
                continue;
            };
            let [file, function, text] = [file, function, text].map(str::to_owned);
            verdicts.add(
                Key {
                    file,
                    function,
                    text,
                },
                stage == "tests",
                read(verdict),
            );
        }
        Ok(verdicts)
    }

    /// Adds one, and writes it down.
    pub(crate) fn note(&mut self, key: &Key, of_tests: bool, verdict: Verdict) -> Result<()> {
        let Key {
            file,
            function,
            text,
        } = key;
        let stage = if of_tests { "tests" } else { "first" };
        let words = match &verdict {
            Verdict::Caught(by) => format!("caught by {by}"),
            Verdict::Survived => "survived".to_owned(),
            Verdict::Unreached => "unreached".to_owned(),
        };
        writeln!(self.file, "{file}\t{function}\t{text}\t{stage}\t{words}")?;
        self.add(key.clone(), of_tests, verdict);
        Ok(())
    }

    fn add(&mut self, key: Key, of_tests: bool, verdict: Verdict) {
        let former = self.all.remove(&key);
        let judged = match (of_tests, former) {
            (true, Some(former)) => Judged {
                tests: Some(verdict),
                ..former
            },
            (true, None) => return,
            (false, former) => Judged {
                first: verdict,
                tests: former.and_then(|former| former.tests),
            },
        };
        self.all.insert(key, judged);
    }
}

fn read(verdict: &str) -> Verdict {
    match verdict {
        "survived" => Verdict::Survived,
        "unreached" => Verdict::Unreached,
        by => Verdict::Caught(by.trim_start_matches("caught by ").to_owned()),
    }
}

impl Judged {
    pub(crate) fn is_caught_at_first(&self) -> bool {
        matches!(self.first, Verdict::Caught(_))
    }

    pub(crate) fn is_caught_by_tests(&self) -> bool {
        matches!(self.tests, Some(Verdict::Caught(_)))
    }
}

/// How many mutants there are of each kind.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    first: usize,
    tests: usize,
    holes: usize,
    /// By class, of those that do not count.
    apart: [usize; 6],
}

const APART: [Class; 6] = [
    Class::Equivalent,
    Class::Cost,
    Class::Undefined,
    Class::Unreachable,
    Class::Text,
    Class::Controls,
];

impl Counts {
    fn add(&mut self, judged: &Judged, class: Option<Class>) {
        if let Some(at) = APART.iter().position(|apart| Some(*apart) == class) {
            self.apart[at] += 1;
        } else if judged.is_caught_at_first() {
            self.first += 1;
        } else if judged.is_caught_by_tests() || class == Some(Class::Tests) {
            self.tests += 1;
        } else {
            self.holes += 1;
        }
    }

    fn row(&self, name: &str) -> Vec<String> {
        let all = self.first + self.tests + self.holes;
        let share = |part: usize| match all {
            0 => String::new(),
            all => format!("{:.1}", part as f64 * 100.0 / all as f64),
        };
        let mut row = vec![name.to_owned()];
        row.extend([all, self.first, self.tests, self.holes].map(|count| count.to_string()));
        row.extend([share(self.first), share(self.first + self.tests)]);
        row.extend(self.apart.map(|count| count.to_string()));
        row
    }
}

/// A row for each source, one for the code of CQs, one for all.
pub(crate) fn table(
    verdicts: &Verdicts,
    mutants: &BTreeSet<&Key>,
    reasons: &BTreeMap<Key, Reason>,
) -> String {
    let mut by_file: BTreeMap<&str, Counts> = BTreeMap::new();
    let (mut of_cqs, mut all) = (Counts::default(), Counts::default());
    for (key, judged) in &verdicts.all {
        if !mutants.contains(key) {
            continue;
        }
        let own = reasons.get(key).filter(|_| !judged.is_caught_at_first());
        let class = own.map(|reason| reason.class);
        by_file.entry(&key.file).or_default().add(judged, class);
        all.add(judged, class);
        if CQS.contains(&&key.file[..]) {
            of_cqs.add(judged, class);
        }
    }
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    let mut header = [
        "",
        "count",
        "scenarios",
        "tests",
        "holes",
        "scenarios %",
        "all %",
    ]
    .map(str::to_owned)
    .to_vec();
    header.extend(APART.map(|class| class.to_string()));
    table.set_header(header);
    for (file, counts) in &by_file {
        table.add_row(counts.row(file));
    }
    if CQS.iter().any(|file| by_file.contains_key(file)) {
        table.add_row(of_cqs.row("the code of CQs"));
    }
    table.add_row(all.row("all"));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// The code of CQs.
const CQS: &[&str] = &[
    "sim/src/device/channel.rs",
    "sim/src/device/completion.rs",
    "sim/src/device/cq.rs",
    "sim/src/device/cq_ex.rs",
    "sim/src/device/moderate.rs",
    "sim/src/device/notify.rs",
    "sim/src/device/empty.rs",
];
