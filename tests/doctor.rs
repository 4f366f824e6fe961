//! `verbsim doctor`: what it says of programs as they are. `src/doctor/advice.rs` has a table of
//! machines.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory with a library that has the mark of the drop-in.
fn directory() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("doctor");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    let drop_in = "#[unsafe(no_mangle)] pub static VERBSIM_DROP_IN: u8 = 1;";
    compile(
        &dir.join("libdrop_in.so"),
        drop_in,
        &["--crate-type", "cdylib"],
    );
    dir
}

fn compile(to: &Path, text: &str, options: &[&str]) {
    let source = to.with_extension("rs");
    fs::write(&source, text).unwrap();
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "-o"]).args([to, &source]);
    assert!(rustc.args(options).status().unwrap().success());
}

fn executable(path: &Path, content: &[u8], mode: u32) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_kind_of_program_it_is_decides_what_is_said() {
    let dir = directory();
    let file = |name: &str| dir.join(name);
    compile(&file("dynamic"), "fn main() {}", &[]);
    compile(
        &file("static"),
        "fn main() {}",
        &[
            "-C",
            "target-feature=+crt-static",
            "-C",
            "relocation-model=static",
        ],
    );
    let dynamic = fs::read(file("dynamic")).unwrap();
    executable(&file("setuid"), &dynamic, 0o4755);
    executable(&file("script"), b"#!/usr/bin/env sh\n", 0o755);
    executable(&file("plain"), b"text", 0o644);
    executable(&file("foreign"), b"\x7fELF\x01", 0o755);
    for (program, is_wrong, said) in [
        (file("dynamic"), false, "is dynamically linked"),
        (file("script"), false, "is dynamically linked"),
        ("sh".into(), false, "is dynamically linked"),
        (file("static"), true, "is statically linked"),
        (file("setuid"), true, "is setuid"),
        (file("plain"), true, "it is not executable"),
        (file("foreign"), true, "not a program of 64 bits"),
        (file("absent"), true, "no such file"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verbsim"));
        command
            .arg("doctor")
            .arg("--library")
            .arg(file("libdrop_in.so"));
        let output = command.arg("--").arg(&program).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find(|line| line.contains(" program "));
        assert!(
            line.unwrap().contains(said),
            "{}: {text}",
            program.display()
        );
        // A machine may have problems of its own.
        let is_problem = text.lines().any(|line| line.starts_with("problem"));
        assert_eq!(output.status.code(), Some(i32::from(is_problem)), "{text}");
        assert!(is_problem || !is_wrong, "{text}");
    }
}
