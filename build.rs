//! With feature `bundled`: builds the libraries of `exec`, which the program then carries.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library that the program carries: its package, where that is in the workspace, its file, what it exports and no
/// other does, and the variable that says where it was built.
struct Library {
    package: &'static str,
    folder: &'static str,
    file: &'static str,
    mark: &'static str,
    variable: &'static str,
}

const DROP_IN: Library = Library {
    package: "verbs-libibverbs",
    folder: "libibverbs",
    file: "libverbsim_ibverbs.so",
    mark: "VERBSIM_DROP_IN",
    variable: "VERBSIM_BUNDLED",
};

/// The preload of `exec --uverbs`.
const UVERBS: Library = Library {
    package: "verbs-uverbs",
    folder: "uverbs",
    file: "libverbsim_uverbs.so",
    mark: "VERBSIM_UVERBS",
    variable: "VERBSIM_BUNDLED_UVERBS",
};

/// What the libraries are built of.
const SOURCES: [&str; 11] = [
    "libibverbs",
    "uverbs",
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

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_linux = env::var_os("CARGO_CFG_TARGET_OS").is_some_and(|os| os == "linux");
    if env::var_os("CARGO_FEATURE_BUNDLED").is_none() || !is_linux {
        return;
    }
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", here.join(source).display());
    }
    for library in [DROP_IN, UVERBS] {
        let built = library.build(&here);
        let bytes = fs::read(&built).unwrap_or_default();
        // What exec looks for: without it every program would be refused.
        let mark = library.mark.as_bytes();
        if !bytes.windows(mark.len()).any(|part| part == mark) {
            println!("cargo::error={} could not be built", library.package);
        }
        println!("cargo::rustc-env={}={}", library.variable, built.display());
    }
}

impl Library {
    /// Its package. Here it is a folder; from a registry, and where packages are unpacked or vendored, it stands beside
    /// this package, since feature `bundled` depends on it.
    fn place(&self, here: &Path) -> PathBuf {
        let version = env!("CARGO_PKG_VERSION");
        let beside = here.parent().unwrap_or(here);
        let places = [
            here.join(self.folder),
            beside.join(format!("{}-{version}", self.package)),
            beside.join(self.package),
        ];
        let found = places
            .iter()
            .find(|place| place.join("Cargo.toml").is_file());
        found.unwrap_or(&places[0]).clone()
    }

    /// Builds it, optimized, in a directory of its own: cargo holds the lock of the present one.
    fn build(&self, here: &Path) -> PathBuf {
        let of_cargo = |name: &str| env::var_os(name).expect("cargo sets it");
        let target_dir = Path::new(&of_cargo("OUT_DIR")).join("drop-in");
        let target = env::var("TARGET").expect("cargo sets it");
        let mut cargo = Command::new(of_cargo("CARGO"));
        let package = self.place(here);
        cargo
            .args(["build", "--release", "--quiet"])
            .args(["--target", &target, "--target-dir"])
            .arg(&target_dir)
            .arg("--manifest-path")
            .arg(package.join("Cargo.toml"))
            .env_remove("CARGO_BUILD_BUILD_DIR");
        // Here the versions are those of this workspace. Elsewhere they follow what the program is built with.
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
        target_dir.join(target).join("release").join(self.file)
    }
}
