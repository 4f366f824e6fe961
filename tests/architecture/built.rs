//! What is built is kept neither in the repository nor in a package.
//!
//! Git says which files are kept. Sources that are not a clone pass.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Folders of what is built.
const FOLDERS: [&str; 4] = ["target", "criterion", "__pycache__", ".pytest_cache"];

/// How machine code begins: programs, objects and shared libraries, and archives of them.
const CODE: [&[u8]; 2] = [b"\x7fELF", b"!<arch>\n"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The lines that a command prints in the root.
fn lines(program: impl AsRef<OsStr>, arguments: &[&str]) -> Vec<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn is_clone() -> bool {
    root().join(".git").exists()
}

fn is_in_folder_of_output(path: &str) -> bool {
    let folders = path.split('/').rev().skip(1);
    folders.into_iter().any(|name| FOLDERS.contains(&name))
}

#[test]
fn no_build_output_is_tracked() {
    if !is_clone() {
        return;
    }
    // Without core.quotePath, names that are not ASCII are as in the file system.
    let tracked = lines("git", &["-c", "core.quotePath=false", "ls-files"]);
    assert!(tracked.len() > 1000, "{} files", tracked.len());
    let is_code = |file: &&String| {
        let bytes = fs::read(root().join(file)).unwrap_or_default();
        CODE.iter().any(|start| bytes.starts_with(start))
    };
    let output = tracked
        .iter()
        .filter(|file| is_in_folder_of_output(file) || is_code(file));
    assert_eq!(output.collect::<Vec<_>>(), Vec::<&String>::new());
}

/// Else it comes back with the next `git add`. Benchmarks write into the folder of their package.
#[test]
fn git_ignores_build_output_in_every_folder() {
    if !is_clone() {
        return;
    }
    let paths = [
        "target/debug/verbsim",
        "sim/target/criterion/report/index.html",
        "python/verbsim/__pycache__/verbsim.pyc",
        "tests/ci/.pytest_cache/README.md",
        "callgrind.out.1",
    ];
    let arguments = [&["check-ignore"][..], &paths].concat();
    assert_eq!(lines("git", &arguments), paths);
}

#[test]
fn no_build_output_is_packaged() {
    if !is_clone() {
        return;
    }
    let arguments = [
        "package",
        "--workspace",
        "--list",
        "--allow-dirty",
        "--offline",
    ];
    let packaged = lines(env!("CARGO"), &arguments);
    assert!(packaged.len() > 1000, "{} files", packaged.len());
    let output = packaged.iter().filter(|file| is_in_folder_of_output(file));
    assert_eq!(output.collect::<Vec<_>>(), Vec::<&String>::new());
}
