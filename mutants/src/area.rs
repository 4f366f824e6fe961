//! What is judged, and by what.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::ValueEnum;
use serde::Deserialize;

use crate::Result;
use crate::mutant::{Source, read};
use crate::programs::Program;
use crate::tree::{Tree, files};

/// Code with mutants, and what judges them first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Area {
    /// The simulator, and the tables of the API that it works by: judged by the suite
    Core,
    /// The drop-in libibverbs: judged by the suite through it, and by the clients
    Abi,
}

/// What notices mutants.
#[derive(Default)]
pub(crate) struct Judges {
    pub(crate) programs: Vec<Program>,
    /// The checks: the place of each one's program, and its name.
    pub(crate) checks: Vec<(usize, String)>,
}

impl Judges {
    fn add(&mut self, program: Program, names: impl IntoIterator<Item = String>) {
        let index = self.programs.len();
        self.programs.push(program);
        let checks = names.into_iter().map(|name| (index, name));
        self.checks.extend(checks);
    }
}

impl Area {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Abi => "abi",
        }
    }

    /// Where its sources are. A file, or a folder with all below it.
    pub(crate) const fn places(self) -> &'static [&'static str] {
        match self {
            Self::Core => &[
                "sim/src",
                "verbs-api/src/table.rs",
                "verbs-api/src/transition.rs",
            ],
            Self::Abi => &["libibverbs/src"],
        }
    }

    /// Its sources.
    pub(crate) fn sources(self, root: &Path) -> Result<Vec<Source>> {
        let mut files = files(root, self.places())?;
        files.retain(|file| file.ends_with(".rs"));
        Ok(read(root, &files)?)
    }

    /// What has to compile: arguments of cargo.
    pub(crate) const fn packages(self) -> &'static str {
        match self {
            Self::Core => "-p verbs-sim -p verbs-api --features verbs-sim/fd",
            Self::Abi => "-p verbs-libibverbs",
        }
    }

    /// The scenarios; for the drop-in also the clients.
    pub(crate) fn judges(self, tree: &Tree) -> Result<Judges> {
        build(tree, "build --profile search -p verbsim --bins")?;
        match self {
            Self::Core => suite(tree),
            Self::Abi => {
                build(tree, "build --profile search -p verbs-libibverbs")?;
                drop_in(tree)
            }
        }
    }

    /// All other tests.
    pub(crate) fn tests(self, tree: &Tree) -> Result<Judges> {
        let more = match self {
            Self::Core => "-p verbs-explore -p verbs-faults -p verbsim",
            Self::Abi => "",
        };
        let packages = self.packages();
        tests(&build(
            tree,
            &format!("test --profile search --no-run {packages} {more}"),
        )?)
    }
}

fn build(tree: &Tree, arguments: &str) -> Result<String> {
    match tree.cargo(arguments, Stdio::inherit())? {
        (true, text) => Ok(text),
        (false, _) => Err(format!("cargo {arguments} fails").into()),
    }
}

/// The suite on every profile, on InfiniBand, and where packets are bytes.
fn suite(tree: &Tree) -> Result<Judges> {
    let verbsim = tree.program("verbsim");
    let mut judges = Judges::default();
    let report = run_report(
        Command::new(&verbsim).args(["run", "--profile", "all"]),
        tree,
    )?;
    let mut add_run = |name: String, run: &Run, more: &[&str]| {
        let options = [
            "run",
            "--profile",
            &run.profile,
            "--link-layer",
            &run.link_layer,
        ];
        let verbsim = verbsim.display().to_string();
        let options = options.iter().chain(more).map(|&option| option.to_owned());
        let program = Program {
            name,
            command: std::iter::once(verbsim).chain(options).collect(),
            dir: tree.path.clone(),
            before_each: Some("--filter"),
            takes_names: true,
        };
        judges.add(program, run.that_ran());
    };
    for run in &report.runs {
        // A mutant that one profile shows on InfiniBand or in bytes alone would be strange.
        match (&run.profile[..], &run.link_layer[..]) {
            ("spec", ETHERNET) => {
                add_run("spec".to_owned(), run, &[]);
                add_run("spec in bytes".to_owned(), run, &["--wire"]);
            }
            (profile, ETHERNET) => add_run(profile.to_owned(), run, &[]),
            ("spec", link_layer) => add_run(format!("spec on {link_layer}"), run, &[]),
            _ => {}
        }
    }
    Ok(judges)
}

/// As a report says it.
const ETHERNET: &str = "ethernet";

/// The suite through the drop-in, then each client.
fn drop_in(tree: &Tree) -> Result<Judges> {
    let verbsim = tree.program("verbsim");
    let words = |line: &str| -> Vec<String> {
        let words = line.split_whitespace().map(|word| match word {
            "verbsim" => verbsim.display().to_string(),
            word => word.to_owned(),
        });
        words.collect()
    };
    let mut judges = Judges::default();
    let command = words("verbsim exec -- verbsim run --backend hw --device sim0 --in-process");
    let report = run_report(Command::new(&command[0]).args(&command[1..]), tree)?;
    for run in report.runs {
        let program = Program {
            name: "suite".to_owned(),
            command: command.clone(),
            dir: tree.path.clone(),
            before_each: Some("--filter"),
            takes_names: true,
        };
        judges.add(program, run.that_ran());
    }
    let built = tree.program("clients");
    fs::create_dir_all(&built)?;
    let mut sources: Vec<PathBuf> = fs::read_dir(tree.path.join("tests/clients"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    sources.sort();
    for source in sources {
        let name = source
            .file_stem()
            .expect("a source has a name")
            .to_string_lossy()
            .into_owned();
        let client = built.join(&name);
        let compiled = Command::new("cc")
            .arg("-O1")
            .arg("-I")
            .arg(tree.path.join("include"))
            .arg(&source)
            .arg("-o")
            .arg(&client)
            .args(["-libverbs", "-lrdmacm", "-lpthread"])
            .status()?;
        if !compiled.success() {
            return Err(format!("cc {} fails", source.display()).into());
        }
        // The options of a client are in a comment at its top.
        let text = fs::read_to_string(&source)?;
        let options = text
            .lines()
            .find_map(|line| line.strip_prefix(" * verbsim exec ")?.strip_suffix(" */"));
        let mut command = words(&format!("verbsim exec {} --", options.unwrap_or_default()));
        command.push(client.display().to_string());
        let program = Program {
            name: format!("client {name}"),
            command,
            dir: tree.path.clone(),
            before_each: None,
            takes_names: false,
        };
        judges.add(program, [name]);
    }
    Ok(judges)
}

/// The test programs that cargo has built, with their tests.
fn tests(messages: &str) -> Result<Judges> {
    #[derive(Deserialize)]
    struct Built {
        manifest_path: PathBuf,
        target: Target,
        profile: Profile,
        executable: Option<PathBuf>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
    }
    #[derive(Deserialize)]
    struct Profile {
        test: bool,
    }
    let mut judges = Judges::default();
    let built = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Built>(line).ok());
    for Built {
        manifest_path,
        target,
        profile,
        executable,
    } in built
    {
        let Some(executable) = executable.filter(|_| profile.test) else {
            continue;
        };
        let dir = manifest_path.parent().unwrap_or(Path::new("")).to_owned();
        let output = Command::new(&executable)
            .args(["--list", "--format", "terse"])
            .current_dir(&dir)
            .output()?;
        let list = String::from_utf8(output.stdout)?;
        let names = list
            .lines()
            .filter_map(|line| Some(line.strip_suffix(": test")?.to_owned()));
        let program = Program {
            name: target.name,
            command: vec![
                executable.display().to_string(),
                "--exact".to_owned(),
                "--test-threads=1".to_owned(),
            ],
            dir,
            before_each: None,
            takes_names: true,
        };
        judges.add(program, names);
    }
    Ok(judges)
}

/// What is read of the report of a run.
#[derive(Deserialize)]
struct Report {
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    profile: String,
    link_layer: String,
    scenarios: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    outcome: String,
}

impl Run {
    fn that_ran(&self) -> impl Iterator<Item = String> {
        let ran = self
            .scenarios
            .iter()
            .filter(|entry| entry.outcome != "skipped");
        ran.map(|entry| entry.id.clone())
    }
}

fn run_report(command: &mut Command, tree: &Tree) -> Result<Report> {
    let output = command
        .args(["--format", "json"])
        .current_dir(&tree.path)
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the suite fails without mutants: {}: {said}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
