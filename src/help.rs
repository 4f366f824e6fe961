//! `verbsim help`: the help of commands, and the documents. `verbsim generate`: completions, man
//! pages and the C header.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use clap_complete::Shell;

use crate::output::{Stop, print};
use crate::words::meant;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A command or a document
    topic: Option<String>,
}

#[derive(clap::Args)]
pub(crate) struct Generate {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Completions, on the standard output
    Completions {
        /// For this shell
        shell: Shell,
    },
    /// Man pages, a file for each command
    Man {
        /// The folder to write them to
        folder: PathBuf,
    },
    /// The C header verbsim.h, by which a program's tests inject faults and ask for findings
    Header {
        /// The folder to write it to
        folder: PathBuf,
    },
}

/// Documents by their names, with a line about each.
const DOCUMENTS: &[(&str, &str, &str)] = &[
    (
        "ci",
        "run all this in continuous integration, and show the results",
        include_str!("../docs/ci.md"),
    ),
    (
        "conformance",
        "judge a device",
        include_str!("../docs/conformance.md"),
    ),
    (
        "deviations",
        "record a deviation",
        include_str!("../docs/deviations.md"),
    ),
    (
        "drop-in",
        "devices and options of `verbsim exec`",
        include_str!("../docs/drop-in.md"),
    ),
    (
        "existing-programs",
        "run an existing program",
        include_str!("../docs/existing-programs.md"),
    ),
    (
        "exploration",
        "explore a test under many seeds and faults",
        include_str!("../docs/exploration.md"),
    ),
    (
        "faults",
        "the format of fault plans",
        include_str!("../docs/faults.md"),
    ),
    (
        "faults-on-purpose",
        "let a test in C, C++ or Python cause faults",
        include_str!("../docs/faults-on-purpose.md"),
    ),
    (
        "invariants",
        "what is checked in every run",
        include_str!("../docs/invariants.md"),
    ),
    (
        "json",
        "the JSON that verbsim writes",
        include_str!("../docs/json.md"),
    ),
    (
        "model-checking",
        "model-check an event loop",
        include_str!("../docs/model-checking.md"),
    ),
    (
        "modes",
        "threads, time, and what is the same in every run",
        include_str!("../docs/modes.md"),
    ),
    (
        "mutants",
        "how the suite itself is judged",
        include_str!("../docs/mutants.md"),
    ),
    (
        "packages",
        "install, remove, and the plugin for pytest",
        include_str!("../docs/packages.md"),
    ),
    (
        "sanitizer",
        "what a diagnosis finds, and how to live with it",
        include_str!("../docs/sanitizer.md"),
    ),
    (
        "scenarios",
        "write a scenario",
        include_str!("../docs/scenarios.md"),
    ),
    (
        "schedule",
        "find races in a program that you do not change",
        include_str!("../docs/schedule.md"),
    ),
    (
        "testing-rust",
        "test an RDMA program in Rust",
        include_str!("../docs/testing-rust.md"),
    ),
];

pub(crate) fn execute(args: &Args, mut cli: clap::Command) -> Result<(), Stop> {
    let Some(topic) = &args.topic else {
        let width = DOCUMENTS
            .iter()
            .map(|(name, ..)| name.len())
            .max()
            .unwrap_or(0);
        let listed = DOCUMENTS
            .iter()
            .map(|(name, about, _)| format!("  {name:<width$}  {about}\n"));
        let documents: String = listed.collect();
        return print(&format!("{}\nDocuments:\n{documents}", cli.render_help()));
    };
    if let Some((_, _, text)) = DOCUMENTS.iter().find(|(name, ..)| name == topic) {
        return print(text);
    }
    cli.build();
    if let Some(command) = cli.find_subcommand_mut(topic) {
        return print(&command.render_long_help().to_string());
    }
    let documents = DOCUMENTS.iter().map(|(name, ..)| *name);
    let names = cli
        .get_subcommands()
        .map(clap::Command::get_name)
        .chain(documents);
    let meant = meant(topic, names, "`verbsim help` lists both");
    Err(Stop::usage(format!(
        "no command or document is called {topic}{meant}"
    )))
}

pub(crate) fn generate(args: &Generate, mut cli: clap::Command) -> Result<(), Stop> {
    match &args.what {
        What::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut cli, "verbsim", &mut text);
            print(&String::from_utf8_lossy(&text))
        }
        What::Man { folder } => written_to(folder, |folder| clap_mangen::generate_to(cli, folder)),
        What::Header { folder } => written_to(folder, |folder| {
            let text = include_str!("../include/verbsim.h");
            fs::write(folder.join("verbsim.h"), text)
        }),
    }
}

/// Makes the folder, and writes into it.
fn written_to(folder: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), Stop> {
    let written = fs::create_dir_all(folder).and_then(|()| write(folder));
    written.map_err(|error| Stop::usage(format!("{}: {error}", folder.display())))
}
