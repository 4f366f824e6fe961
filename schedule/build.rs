//! Compiles the library that the supervisor gives to the programs that it starts.
//!
//! Cargo cannot make a library a part of another one. The compiler can: it needs no crates.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=preload");
    let of_cargo = |name: &str| env::var(name).unwrap_or_default();
    if of_cargo("CARGO_CFG_TARGET_OS") != "linux" {
        return;
    }
    let library = Path::new(&of_cargo("OUT_DIR")).join("libverbs_schedule.so");
    let mut rustc = Command::new(of_cargo("RUSTC"));
    rustc
        .args([
            "--crate-name",
            "verbs_schedule_preload",
            "--crate-type",
            "cdylib",
        ])
        .args([
            "--edition",
            "2024",
            "-O",
            "-C",
            "panic=abort",
            "-C",
            "strip=symbols",
        ])
        .args(["--target", &of_cargo("TARGET"), "-o"])
        .arg(&library)
        .arg("preload/lib.rs");
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.args(["-C", &format!("linker={linker}")]);
    }
    match rustc.status() {
        Ok(status) if status.success() => {}
        result => println!("cargo::error=preload/lib.rs could not be compiled: {result:?}"),
    }
    println!(
        "cargo::rustc-env=VERBS_SCHEDULE_PRELOAD={}",
        library.display()
    );
}
