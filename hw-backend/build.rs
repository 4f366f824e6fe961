//! Says which packages are missing before the bindings fail in words that do not help.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=LIBCLANG_PATH");
    println!("cargo::rerun-if-env-changed=PKG_CONFIG_PATH");
    if env::var_os("CARGO_FEATURE_HW").is_none() {
        return;
    }
    let mut missing = Vec::new();
    let exists = |library: &str| {
        let status = Command::new("pkg-config")
            .args(["--exists", library])
            .status();
        status.is_ok_and(|status| status.success())
    };
    if Command::new("pkg-config")
        .arg("--version")
        .output()
        .is_err()
    {
        missing.push("pkg-config");
    } else {
        missing.extend(
            ["libibverbs", "librdmacm"]
                .into_iter()
                .filter(|library| !exists(library)),
        );
    }
    if !has_libclang() {
        missing.push("libclang 14 or 15");
    }
    if missing.is_empty() {
        return;
    }
    println!(
        "cargo::error=feature `hw` needs {}, which is not here",
        missing.join(", ")
    );
    for (system, packages) in PACKAGES {
        println!("cargo::error=  {system}: {packages}");
    }
    println!("cargo::error=  then set LIBCLANG_PATH to the directory of that libclang");
}

const PACKAGES: &[(&str, &str)] = &[
    (
        "Debian 12",
        "apt install pkg-config libibverbs-dev librdmacm-dev libclang1-14 libclang-common-14-dev",
    ),
    (
        "Ubuntu 22.04, 24.04",
        "apt install pkg-config libibverbs-dev librdmacm-dev libclang1-14 libclang-common-14-dev",
    ),
    (
        "Fedora",
        "dnf install pkgconf rdma-core-devel clang15-devel",
    ),
];

/// Whether there is a libclang where it is looked for, or in the usual places.
fn has_libclang() -> bool {
    let given = env::var("LIBCLANG_PATH").unwrap_or_default();
    let usual = [
        "/usr/lib/llvm-14/lib",
        "/usr/lib/llvm-15/lib",
        "/usr/lib64",
        "/usr/lib",
    ];
    let in_dir = |dir: &str| {
        let entries = Path::new(dir).read_dir().into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).any(|name| {
            let name = name.to_string_lossy();
            name.starts_with("libclang")
                && !name.starts_with("libclang-cpp")
                && name.contains(".so")
        })
    };
    in_dir(&given) || Path::new(&given).is_file() || usual.into_iter().any(in_dir)
}
