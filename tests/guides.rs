//! Each guide does what it says: from an empty folder, its files and commands are copied out of the
//! Markdown, word for word, and run. The crates are those that `cargo package` makes.
//!
//! | in a guide | means |
//! |---|---|
//! | a paragraph that begins with `` `path` ``, then a block | the file has this text |
//! | a paragraph that begins with ``Add to `path` ``, then a block | it is added to the file |
//! | a block `sh` | the commands run, and succeed; a block `sh fails` does not |
//! | a block `text` behind one of commands | its lines are in the output, in this order; `...` is for lines left out |
//! | any other block | is not looked at: `shell` is for what a test cannot do, such as installing |

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A step that a reader takes.
#[derive(Debug)]
enum Step {
    Write {
        path: String,
        text: String,
    },
    Add {
        path: String,
        text: String,
    },
    Run {
        commands: String,
        fails: bool,
        prints: Option<String>,
    },
}

#[test]
#[ignore = "builds each guide's packages, for minutes: `./check guides` runs it"]
fn each_guide_does_what_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = root.join(option_env!("CARGO_TARGET_DIR").unwrap_or("target"));
    // Not below the workspace, which a new package would join.
    let place = std::env::temp_dir().join("verbsim-guides");
    let _ = fs::remove_dir_all(&place);
    packaged(root, &target, &place.join("packages"));
    let mut wrong = Vec::new();
    let only = std::env::var("GUIDE").ok();
    for guide in GUIDES
        .iter()
        .filter(|guide| only.as_deref().is_none_or(|only| guide.contains(only)))
    {
        let text = fs::read_to_string(root.join("docs").join(guide)).unwrap();
        let all = steps(&text);
        let dir = if text.contains("\ncd verbsim\n") {
            let dir = place.join("clone");
            copy(root, &dir.join("verbsim"));
            dir
        } else {
            let dir = place.join("packages").join(guide.trim_end_matches(".md"));
            fs::create_dir_all(&dir).unwrap();
            dir
        };
        assert!(
            all.iter().any(|step| matches!(step, Step::Run { .. })),
            "{guide} runs nothing"
        );
        let mut reader = Reader {
            at: dir.clone(),
            dir,
            target: target.clone(),
        };
        if let Err(problem) = all.iter().try_for_each(|step| reader.take(step)) {
            wrong.push(format!("docs/{guide}: {problem}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// In `docs`.
const GUIDES: &[&str] = &[
    "testing-rust.md",
    "existing-programs.md",
    "faults-on-purpose.md",
    "schedule.md",
    "model-checking.md",
    "exploration.md",
    "conformance.md",
    "scenarios.md",
    "deviations.md",
];

/// Packs all packages, unpacks them, and makes them those that a name alone means.
fn packaged(root: &Path, target: &Path, place: &Path) {
    fs::create_dir_all(place).unwrap();
    let done = Command::new(env!("CARGO"))
        .args([
            "package",
            "--workspace",
            // These are for this repository alone.
            "--exclude=verbs-mutants",
            "--exclude=mutant-switch",
            "--no-verify",
            "--allow-dirty",
            "--quiet",
        ])
        .current_dir(root)
        .status()
        .unwrap();
    assert!(done.success(), "cargo package: {done}");
    let mut patch = String::from("[patch.crates-io]\n");
    let version = env!("CARGO_PKG_VERSION");
    for entry in fs::read_dir(target.join("package")).unwrap() {
        let path = entry.unwrap().path();
        let Some(name) = path
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .strip_suffix(&format!("-{version}.crate"))
        else {
            continue;
        };
        let done = Command::new("tar")
            // Not with the times of the archive, which never change: cargo would take old builds.
            .arg("xzmf")
            .arg(&path)
            .current_dir(place)
            .status()
            .unwrap();
        assert!(done.success(), "tar: {done}");
        let unpacked = place.join(format!("{name}-{version}"));
        patch += &format!("{name} = {{ path = {unpacked:?} }}\n");
    }
    fs::create_dir_all(place.join(".cargo")).unwrap();
    fs::write(place.join(".cargo/config.toml"), patch).unwrap();
}

/// A clone of the repository as it is.
fn copy(root: &Path, to: &Path) {
    let git = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .unwrap();
    for file in String::from_utf8(git.stdout).unwrap().lines() {
        let (from, to) = (root.join(file), to.join(file));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        // A file may be gone. One that is the same keeps its time, so that cargo does not build it
        // again.
        if fs::read(&from).ok() != fs::read(&to).ok() {
            let _ = fs::copy(from, to);
        }
    }
}

/// Who does what a guide says.
struct Reader {
    /// Where the reader began.
    dir: PathBuf,
    /// Where the last command left off.
    at: PathBuf,
    target: PathBuf,
}

impl Reader {
    fn take(&mut self, step: &Step) -> Result<(), String> {
        match step {
            Step::Write { path, text } => {
                let path = self.at.join(path);
                fs::create_dir_all(path.parent().unwrap()).map_err(|error| error.to_string())?;
                fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
            }
            Step::Add { path, text } => {
                let path = self.at.join(path);
                let before = fs::read_to_string(&path)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                fs::write(&path, format!("{before}\n{text}")).map_err(|error| error.to_string())
            }
            Step::Run {
                commands,
                fails,
                prints,
            } => {
                let output = self.run(commands)?;
                if output.0 == *fails {
                    let wanted = if *fails { "fail" } else { "succeed" };
                    return Err(format!("does not {wanted}:\n{commands}{}", output.1));
                }
                prints
                    .as_deref()
                    .map_or(Ok(()), |prints| has(&output.1, prints))
            }
        }
    }

    /// Whether the commands succeed, and what they print.
    fn run(&mut self, commands: &str) -> Result<(bool, String), String> {
        let end = self.dir.join(".at");
        let script = format!(
            "set -e\nexec 2>&1\ntrap 'pwd > {}' EXIT\n{commands}",
            end.display()
        );
        let path = std::env::var("PATH").unwrap_or_default();
        let program = self.target.join("search");
        let output = Command::new("bash")
            .args(["-c", &script])
            .current_dir(&self.at)
            .env("PATH", format!("{}:{path}", program.display()))
            // As after `pip install verbsim`.
            .env(
                "PYTHONPATH",
                Path::new(env!("CARGO_MANIFEST_DIR")).join("python"),
            )
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("CARGO_TARGET_DIR", self.target.join("guides/target"))
            .env("CARGO_TERM_COLOR", "never")
            // Nothing that a guide shows depends on these, and they take minutes.
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            .output()
            .map_err(|error| format!("bash: {error}"))?;
        self.at = fs::read_to_string(&end)
            .map_err(|error| error.to_string())?
            .trim_end()
            .into();
        Ok((
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        ))
    }
}

/// Whether the lines that a guide shows are in the output, in their order.
fn has(output: &str, shown: &str) -> Result<(), String> {
    let mut lines = output.lines();
    for line in shown
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && *line != "...")
    {
        if !lines.any(|seen| seen.contains(line)) {
            return Err(format!("the output lacks, in this order: {line}\n{output}"));
        }
    }
    Ok(())
}

fn steps(markdown: &str) -> Vec<Step> {
    let (mut steps, mut paragraph, mut behind_commands) = (Vec::new(), String::new(), false);
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            match line.is_empty() {
                // The last paragraph is that before the block.
                true => {}
                false if line.starts_with('#') => paragraph.clear(),
                false => {
                    paragraph = line.to_owned();
                    let rest = lines
                        .clone()
                        .take_while(|line| !line.is_empty() && !line.starts_with("```"));
                    let count = rest.count();
                    lines.by_ref().take(count).for_each(drop);
                    behind_commands = false;
                }
            }
            continue;
        };
        let block = lines.by_ref().take_while(|line| *line != "```");
        let text = block.map(|line| format!("{line}\n")).collect::<String>();
        let is_commands = matches!(info, "sh" | "sh fails");
        if is_commands {
            steps.push(Step::Run {
                commands: text,
                fails: info == "sh fails",
                prints: None,
            });
        } else if info == "text" && behind_commands {
            if let Some(Step::Run { prints, .. }) = steps.last_mut() {
                *prints = Some(text);
            }
        } else if let Some(path) = named("`", &paragraph) {
            steps.push(Step::Write { path, text });
        } else if let Some(path) = named("Add to `", &paragraph) {
            steps.push(Step::Add { path, text });
        }
        paragraph.clear();
        behind_commands = is_commands;
    }
    steps
}

/// The path that a paragraph begins with, behind this text.
fn named(before: &str, paragraph: &str) -> Option<String> {
    let (path, _) = paragraph.strip_prefix(before)?.split_once('`')?;
    let is_path = path.contains('.') && !path.contains([' ', '(', ':']);
    is_path.then(|| path.to_owned())
}

/// The pages of the root, of `docs`, and the `README.md` of each folder, with their texts.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let inside = |folder: &Path| {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .collect::<Vec<_>>()
    };
    let readmes = inside(root).into_iter().map(|path| path.join("README.md"));
    let files = [inside(root), inside(&root.join("docs")), readmes.collect()].concat();
    let is_page = |path: &PathBuf| path.extension().is_some_and(|of| of == "md") && path.exists();
    let pages = files.into_iter().filter(is_page).map(|page| {
        let text = fs::read_to_string(&page).unwrap();
        (page, text)
    });
    let pages: Vec<_> = pages.collect();
    assert!(pages.len() > 30, "{} pages", pages.len());
    pages
}

#[test]
fn the_readme_says_how_many_rules_are_unverified() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let rules = verbs_scenarios::rules().iter();
    let count = rules.filter(|rule| rule.unverified.is_some()).count();
    let says = format!("({count} of them unverified)");
    assert!(readme.contains(&says), "README.md does not say {says}");
}

/// rustdoc leaves out a line that begins with `# `. GitHub and the registries of packages show it.
#[test]
fn no_page_shows_a_line_that_rustdoc_hides() {
    for (page, text) in pages() {
        // Every second piece is the inside of a block.
        for block in text.split("\n```").skip(1).step_by(2) {
            let mut lines = block.lines();
            if lines.next().is_some_and(|info| info.starts_with("rust")) {
                let hidden = lines.find(|line| *line == "#" || line.starts_with("# "));
                assert_eq!(hidden, None, "{}", page.display());
            }
        }
    }
}

#[test]
fn each_file_that_a_page_links_to_exists() {
    for (page, text) in pages() {
        let links = text.split("](").skip(1);
        let links = links.filter_map(|rest| Some(rest.split_once(')')?.0));
        for link in links.filter(|link| !link.contains("://")) {
            let (file, _) = link.split_once('#').unwrap_or((link, ""));
            let file = page.parent().unwrap().join(file);
            assert!(file.exists(), "{}: {link}", page.display());
        }
    }
}

/// Contributors follow its lists file by file. Names in capital letters stand for any.
#[test]
fn each_file_that_the_page_for_contributors_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    let is_path = |word: &&str| {
        let in_path = |letter: char| letter.is_ascii_alphanumeric() || "._-/".contains(letter);
        let folder = word.split_once('/').map_or("", |(folder, _)| folder);
        let is_placeholder = word
            .split(['/', '.'])
            .any(|part| part.len() > 1 && part.chars().all(|letter| letter.is_ascii_uppercase()));
        word.chars().all(in_path)
            && !folder.is_empty()
            && folder != "target"
            && root.join(folder).is_dir()
            && !is_placeholder
    };
    // Every second piece is between backquotes.
    let words = page.split('`').skip(1).step_by(2);
    let paths: Vec<_> = words.filter(is_path).collect();
    assert!(paths.len() > 50, "{paths:?}");
    for path in paths {
        assert!(root.join(path).exists(), "{path}");
    }
}

#[test]
fn steps_are_read_from_markdown() {
    let markdown = "# A guide\n\nWords.\n\n`src/lib.rs`, the loop:\n\n```rust\nfn f() {}\n```\n\nRun it:\n\n```sh\ncargo test\n```\n\n\
        ```text\none\n...\ntwo\n```\n\nOnly shown:\n\n```text\nthree\n```\n\n```sh fails\nfalse\n```\n\n\
        Add to `Cargo.toml`:\n\n```toml\n[x]\n```\n";
    let seen: Vec<String> = steps(markdown)
        .iter()
        .map(|step| format!("{step:?}"))
        .collect();
    let expected = [
        r#"Write { path: "src/lib.rs", text: "fn f() {}\n" }"#,
        r#"Run { commands: "cargo test\n", fails: false, prints: Some("one\n...\ntwo\n") }"#,
        r#"Run { commands: "false\n", fails: true, prints: None }"#,
        r#"Add { path: "Cargo.toml", text: "[x]\n" }"#,
    ];
    assert_eq!(seen, expected);
    assert!(has("zero\none\nmore\ntwo", "one\n...\ntwo").is_ok());
    assert!(has("two\none", "one\ntwo").is_err());
}
