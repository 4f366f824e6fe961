//! The program `verbsim` as one explores with it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) status: i32,
    /// What it wrote to the standard output, or if that is nothing, to the standard error.
    pub(crate) output: String,
    /// The trace, if it wrote one.
    pub(crate) trace: String,
    /// The command line that brings it back, if it named one.
    pub(crate) replay: Option<Vec<String>>,
}

/// Runs `verbsim` with these arguments.
pub(crate) fn verbsim(args: &[&str]) -> Ended {
    let output = Command::new(env!("CARGO_BIN_EXE_verbsim"))
        .args(args)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    let replay = out
        .lines()
        .find_map(|line| line.trim().strip_prefix("verbsim replay "));
    Ended {
        status: output.status.code().expect("it was not killed"),
        replay: replay.map(|args| args.split(' ').map(str::to_string).collect()),
        output: if out.is_empty() { err } else { out },
        trace: String::new(),
    }
}

/// `verbsim explore` with these arguments.
pub(crate) fn explore(args: &[&str]) -> Ended {
    with_trace(&[&["explore"], args].concat())
}

/// What it named to bring a failure back.
pub(crate) fn replay(found: &Ended) -> Ended {
    let args = found.replay.as_ref().expect("a command to replay");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    with_trace(&[&["replay"], &args[..]].concat())
}

/// A file of this process's own, which is not there yet.
pub(crate) fn file(name: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    env::temp_dir().join(format!("verbsim-{}-{number}-{name}", process::id()))
}

fn with_trace(args: &[&str]) -> Ended {
    let path = file("trace");
    let ended = verbsim(&[args, &["--out", path.to_str().unwrap()]].concat());
    let trace = fs::read_to_string(&path).unwrap_or_default();
    // It may not be there: a run without a failure writes none.
    let _ = fs::remove_file(&path);
    Ended { trace, ..ended }
}
