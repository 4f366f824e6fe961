//! Sources, documents and help texts are in plain English, and no wider than 100 columns.
//!
//! `tests/words.toml` lists the patterns of a dialect that we no longer write, what to write instead,
//! and exceptions.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

/// The most columns of a line of comment or prose.
const WIDTH: usize = 100;

/// The contents of `tests/words.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    word: Vec<Word>,
    #[serde(default)]
    exception: Vec<Exception>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Word {
    pattern: String,
    plain: Option<String>,
    write: String,
    finds: Vec<String>,
    passes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    file: String,
    text: String,
    reason: String,
}

/// A [`Word`] that can be looked for.
struct Pattern {
    dialect: Regex,
    plain: Option<Regex>,
    write: String,
}

impl Pattern {
    fn new(word: &Word) -> Self {
        Self {
            dialect: expression(&word.pattern),
            plain: word.plain.as_deref().map(expression),
            write: word.write.clone(),
        }
    }

    /// The places in `text` that are not plain English: where each begins, and its words.
    fn find<'a>(&self, text: &'a str) -> Vec<(usize, &'a str)> {
        let plain: Vec<_> = self
            .plain
            .iter()
            .flat_map(|plain| plain.find_iter(text))
            .collect();
        let marks = ['.', ';', ':', '(', ' ', '\n'];
        self.dialect
            .find_iter(text)
            .map(|found| {
                let words = found.as_str().trim_start_matches(marks);
                (found.end() - words.len(), words)
            })
            .filter(|(start, _)| !plain.iter().any(|plain| plain.range().contains(start)))
            .collect()
    }
}

/// An expression in which a space also matches the end of a line, but not of a paragraph.
fn expression(pattern: &str) -> Regex {
    RegexBuilder::new(&pattern.replace(' ', r"(?: +| *\n)"))
        .case_insensitive(true)
        .multi_line(true)
        .build()
        .unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

/// A problem in a line of a file or of a help text.
struct Finding {
    file: String,
    line: usize,
    text: String,
    problem: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn list() -> List {
    toml::from_str(&fs::read_to_string(root().join("tests/words.toml")).unwrap()).unwrap()
}

/// The lines of a file without comment marks, quote marks and the backslashes of continued strings, so
/// that a pattern can match across lines. Blocks of code and output in documents are left out, because
/// programs print them.
fn prose(name: &str, text: &str) -> String {
    let markdown = name.ends_with(".md");
    let mut shown = false;
    let mut prose = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.trim();
        if markdown && line.trim_start_matches(['>', ' ']).starts_with("```") {
            shown = !shown;
        } else if !shown {
            let line = match line.strip_prefix("//") {
                Some(comment) => comment.trim_start_matches(['/', '!']),
                None if markdown => line.trim_start_matches(['>', '#', '-', '*']),
                None => line.trim_start_matches(['#', '*']),
            };
            prose += line.trim_start().trim_end_matches('\\').trim_end();
        }
        prose.push('\n');
    }
    prose
}

/// Whether a line is too wide although it could be broken.
fn is_too_wide(name: &str, line: &str, shown: bool) -> bool {
    let start = line.trim_start();
    let is_prose = match name.rsplit_once('.') {
        Some((_, "rs")) => start.starts_with("//"),
        Some((_, "h")) => start.starts_with("/*") || start.starts_with("* "),
        Some((_, "py" | "toml")) => start.starts_with('#'),
        _ => !shown && !start.starts_with('|'),
    };
    // A table in a comment.
    let is_table = start
        .trim_start_matches(['/', '!', '*', '#', ' '])
        .starts_with('|');
    is_prose && !is_table && !line.contains("://") && without_targets(line).chars().count() > WIDTH
}

/// Whether a text is that of a file: help texts are wrapped for the terminal.
fn is_file(name: &str) -> bool {
    !name.ends_with(" --help")
}

/// A line without the targets of its links.
fn without_targets(line: &str) -> String {
    let mut parts = line.split("](");
    let mut rest = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        rest += "](";
        rest += part.split_once(')').map_or(part, |(_, rest)| rest);
    }
    rest
}

/// All findings in a text, by line.
fn findings(name: &str, text: &str, patterns: &[Pattern]) -> Vec<Finding> {
    let lines: Vec<_> = text.lines().collect();
    let finding = |line: usize, problem| Finding {
        file: name.to_owned(),
        line: line + 1,
        text: lines[line].to_owned(),
        problem,
    };
    let prose = prose(name, text);
    let mut all = Vec::new();
    for pattern in patterns {
        for (start, words) in pattern.find(&prose) {
            let line = prose[..start].matches('\n').count();
            let words = words.replace('\n', " ");
            all.push(finding(
                line,
                format!("\"{words}\": write {}", pattern.write),
            ));
        }
    }
    let mut shown = false;
    for (number, line) in lines.iter().enumerate() {
        if name.ends_with(".md") && line.trim_start_matches(['>', ' ']).starts_with("```") {
            shown = !shown;
        }
        if is_file(name) && is_too_wide(name, line, shown) {
            all.push(finding(number, format!("wider than {WIDTH} columns")));
        }
    }
    all.sort_by_key(|finding| finding.line);
    all
}

/// The texts of the repository: the files that git knows, and those that it would add.
fn files() -> Vec<(String, String)> {
    let git = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(git.status.success(), "git ls-files: {}", git.status);
    let is_text = |file: &&str| {
        let ends = [".rs", ".md", ".h", ".py", ".toml"];
        // The list and its samples, and sources that others quote.
        let is_other = file.starts_with("tests/words.") || file.starts_with("mutants/survivors/");
        ends.iter().any(|end| file.ends_with(end)) && !is_other
    };
    String::from_utf8(git.stdout)
        .unwrap()
        .lines()
        .filter(is_text)
        .filter_map(|file| Some((file.to_owned(), fs::read_to_string(root().join(file)).ok()?)))
        .collect()
}

/// The output of `verbsim --help`, and of `--help` of each command and subcommand.
fn help_texts() -> Vec<(String, String)> {
    let mut texts = Vec::new();
    let mut commands = vec![Vec::new()];
    while let Some(command) = commands.pop() {
        let help = Command::new(env!("CARGO_BIN_EXE_verbsim"))
            .args(&command)
            .arg("--help")
            .output()
            .unwrap();
        assert!(help.status.success(), "{command:?} --help: {}", help.status);
        let text = String::from_utf8(help.stdout).unwrap();
        let listed = text.lines().skip_while(|line| *line != "Commands:").skip(1);
        for line in listed.take_while(|line| !line.is_empty()) {
            let name = line
                .strip_prefix("  ")
                .filter(|line| !line.starts_with(' '));
            if let Some(name) = name.and_then(|line| line.split_whitespace().next())
                && name != "help"
            {
                let mut command = command.clone();
                command.push(name.to_owned());
                commands.push(command);
            }
        }
        texts.push((format!("verbsim {} --help", command.join(" ")), text));
    }
    texts
}

#[test]
fn texts_are_in_plain_english() {
    let list = list();
    let patterns: Vec<_> = list.word.iter().map(Pattern::new).collect();
    let mut unused: BTreeSet<_> = (0..list.exception.len()).collect();
    let mut wrong = String::new();
    for (name, text) in files().into_iter().chain(help_texts()) {
        for finding in findings(&name, &text, &patterns) {
            let is_excepted = |exception: &Exception| {
                finding.file == exception.file && finding.text.contains(&exception.text)
            };
            let matching = list.exception.iter().enumerate();
            let matching: Vec<_> = matching
                .filter(|(_, exception)| is_excepted(exception))
                .collect();
            if matching.is_empty() {
                let Finding {
                    file,
                    line,
                    problem,
                    ..
                } = finding;
                let _ = writeln!(wrong, "{file}:{line}: {problem}");
            }
            for (number, _) in matching {
                unused.remove(&number);
            }
        }
    }
    for number in unused {
        let Exception { file, text, .. } = &list.exception[number];
        let _ = writeln!(
            wrong,
            "tests/words.toml: the exception for \"{text}\" in {file} matches nothing"
        );
    }
    assert!(
        wrong.is_empty(),
        "{} findings:\n{wrong}",
        wrong.lines().count()
    );
}

#[test]
fn each_pattern_finds_its_dialect_and_not_the_plain_form() {
    let list = list();
    for word in &list.word {
        let pattern = Pattern::new(word);
        assert!(
            !word.finds.is_empty() && !word.passes.is_empty(),
            "{}",
            word.pattern
        );
        for sample in &word.finds {
            assert!(
                !pattern.find(sample).is_empty(),
                "{}: {sample}",
                word.pattern
            );
        }
        for sample in &word.passes {
            assert!(
                pattern.find(sample).is_empty(),
                "{}: {sample}",
                word.pattern
            );
        }
    }
    for Exception { file, reason, .. } in &list.exception {
        assert!(!reason.is_empty(), "{file}");
    }
}

#[test]
fn phrases_are_found_across_lines_and_wide_lines_by_their_kind() {
    let list = list();
    let patterns: Vec<_> = list.word.iter().map(Pattern::new).collect();
    let lines = |name: &str, text: &str| {
        let all = findings(name, text, &patterns);
        all.iter().map(|finding| finding.line).collect::<Vec<_>>()
    };
    assert_eq!(
        lines(
            "a.rs",
            "fn a();\n    /// A handle in\n    /// place of a pointer.\n"
        ),
        [2]
    );
    assert_eq!(
        lines("a.rs", "/// A handle in\n///\n/// place of a pointer.\n"),
        []
    );
    assert_eq!(lines("a.rs", "\"a handle in \\\n    place of it\""), [1]);
    assert_eq!(lines("a.md", "A handle in place\nof a pointer.\n"), [1]);
    assert_eq!(
        lines(
            "a.md",
            "```text\nA handle in place of a pointer.\n```\nin vain"
        ),
        [4]
    );
    let wide = "word ".repeat(21);
    assert_eq!(
        lines("a.rs", &format!("let a = 1;\n// {wide}\nlet {wide}")),
        [2]
    );
    assert_eq!(lines("a.rs", &format!("//! | {wide} |")), []);
    assert_eq!(lines("a.py", &format!("# {wide}\n{wide}")), [1]);
    assert_eq!(
        lines("a.h", &format!("/* {wide}\n * {wide}\n{wide}")),
        [1, 2]
    );
    assert_eq!(
        lines(
            "a.md",
            &format!("{wide}\n| {wide} |\n```sh\n{wide}\n```\n{wide}")
        ),
        [1, 6]
    );
    assert_eq!(
        lines("a.md", &format!("[a link](docs/{})", "a".repeat(100))),
        []
    );
    assert_eq!(
        lines("a.md", &format!("https://example.com/{}", "a".repeat(100))),
        []
    );
}
