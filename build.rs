//! Says which commit the program is built from. With feature `bundled`: builds the drop-in library,
//! which the program then carries.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package of the drop-in library, its folder in the workspace, and the file that cargo builds.
const PACKAGE: &str = "verbs-libibverbs";
const FOLDER: &str = "libibverbs";
const FILE: &str = "libverbsim_ibverbs.so";

/// The library exports this name, and no other library does. `exec` looks for it too.
const MARK: &str = "VERBSIM_DROP_IN";

/// What the library is built of.
const SOURCES: [&str; 10] = [
    "libibverbs",
    "settings",
    "explore",
    "faults",
    "sim",
    "roce",
    "udp",
    "verbs-api",
    "verbs-abi",
    "Cargo.lock",
];

/// What cargo tells this script, and would take for its own when it is run again.
const OF_CARGO: [&str; 4] = [
    "CARGO_FEATURE_",
    "CARGO_CFG_",
    "CARGO_PKG_",
    "CARGO_MANIFEST_",
];

/// A library that is built already. `./package` sets it, since its packages have the library as a
/// file too.
const BUILT: &str = "BUNDLED_LIBRARY";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let version = env!("CARGO_PKG_VERSION");
    let commit = packaged_commit(&here).or_else(|| checked_out_commit(&here));
    let commit = commit.map_or_else(String::new, |commit| format!(" ({commit})"));
    // Not `VERBSIM_...`: programs that `cargo run` and `cargo test` start get it too, and `exec`
    // refuses such variables if they are not settings.
    println!("cargo::rustc-env=VERSION_AND_COMMIT={version}{commit}");
    let is_linux = env::var_os("CARGO_CFG_TARGET_OS").is_some_and(|os| os == "linux");
    if env::var_os("CARGO_FEATURE_BUNDLED").is_some() && is_linux {
        bundle(&here);
    }
}

/// The commit that `cargo package` has recorded, in 12 digits as below.
fn packaged_commit(here: &Path) -> Option<String> {
    const RECORD: &str = ".cargo_vcs_info.json";
    let record = fs::read_to_string(here.join(RECORD)).ok()?;
    println!("cargo::rerun-if-changed={RECORD}");
    let (_, rest) = record.split_once("\"sha1\": \"")?;
    rest.get(..12).map(str::to_owned)
}

/// The commit that is checked out here, if this package is a repository of its own.
fn checked_out_commit(here: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .current_dir(here)
            .args(arguments)
            .output();
        let output = output.ok().filter(|output| output.status.success())?;
        let line = String::from_utf8(output.stdout).ok()?;
        Some(line.trim_end().to_owned())
    };
    let top = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != here.canonicalize().ok()? {
        return None;
    }
    // A commit or a checkout adds a line to the log of HEAD.
    let log = here.join(git(&["rev-parse", "--git-path", "logs/HEAD"])?);
    if log.exists() {
        println!("cargo::rerun-if-changed={}", log.display());
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

/// Tells the compiler where the library is that the program carries.
fn bundle(here: &Path) {
    println!("cargo::rerun-if-env-changed={BUILT}");
    let built = env::var_os(BUILT).map_or_else(
        || {
            for source in SOURCES {
                println!("cargo::rerun-if-changed={}", here.join(source).display());
            }
            build(here)
        },
        PathBuf::from,
    );
    println!("cargo::rerun-if-changed={}", built.display());
    let bytes = fs::read(&built).unwrap_or_default();
    let mark = MARK.as_bytes();
    if !bytes.windows(mark.len()).any(|part| part == mark) {
        println!("cargo::error={PACKAGE} could not be built");
    }
    println!("cargo::rustc-env={BUILT}={}", built.display());
}

/// Its package. Here it is a folder; from a registry, and where packages are unpacked or vendored,
/// it is next to this package, since feature `bundled` depends on it.
fn place(here: &Path) -> PathBuf {
    let version = env!("CARGO_PKG_VERSION");
    let around = here.parent().unwrap_or(here);
    let places = [
        here.join(FOLDER),
        around.join(format!("{PACKAGE}-{version}")),
        around.join(PACKAGE),
    ];
    let found = places
        .iter()
        .find(|place| place.join("Cargo.toml").is_file());
    found.unwrap_or(&places[0]).clone()
}

/// Builds it, optimized, in a directory of its own: cargo holds the lock of the present one.
fn build(here: &Path) -> PathBuf {
    let of_cargo = |name: &str| env::var_os(name).expect("cargo sets it");
    let target_dir = Path::new(&of_cargo("OUT_DIR")).join("drop-in");
    let target = env::var("TARGET").expect("cargo sets it");
    let mut cargo = Command::new(of_cargo("CARGO"));
    let package = place(here);
    cargo
        .args(["build", "--release", "--quiet"])
        .args(["--target", &target, "--target-dir"])
        .arg(&target_dir)
        .arg("--manifest-path")
        .arg(package.join("Cargo.toml"))
        .env_remove("CARGO_BUILD_BUILD_DIR");
    // Here the versions are those of this workspace. Elsewhere they follow what the program is
    // built with.
    if package.starts_with(here) {
        cargo.arg("--locked");
    }
    for (name, _) in env::vars_os() {
        if OF_CARGO
            .iter()
            .any(|of| name.to_string_lossy().starts_with(of))
        {
            cargo.env_remove(name);
        }
    }
    match cargo.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let errors = said.lines().filter(|_| !output.status.success());
            errors.for_each(|line| println!("cargo::error={line}"));
        }
        Err(error) => println!("cargo::error=cargo: {error}"),
    }
    target_dir.join(target).join("release").join(FILE)
}
