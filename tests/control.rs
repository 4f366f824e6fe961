//! `verbsim.h` and the Python module: in programs of C and C++ of each standard, and where nothing
//! is simulated.
//!
//! The programs are `tests/clients/control.c` and `tests/clients/control.py`, which check what the
//! functions do.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Compiles a program that includes the header.
fn compile(compiler: &str, options: &[&str], source: &Path, name: &str) -> PathBuf {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let done = Command::new(compiler)
        .args(["-Wall", "-Wextra", "-Werror", "-I"])
        .arg(Path::new(ROOT).join("include"))
        .args(options)
        .arg(source)
        .arg("-o")
        .arg(&built)
        .args(["-libverbs", "-lpthread"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{compiler} {options:?}: {said}");
    built
}

fn client() -> PathBuf {
    let source = Path::new(ROOT).join("tests/clients/control.c");
    compile("cc", &["-O1", "-g"], &source, "control-client")
}

/// Whether a command succeeds, and what it prints.
fn run(command: &mut Command) -> (bool, String) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    (output.status.success(), text)
}

fn exec(options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbsim"));
    command.arg("exec").args(options).arg("--");
    command
}

#[test]
#[ignore = "wants cc, g++ and libibverbs-dev: `./check libibverbs` runs it"]
fn the_header_compiles_without_warnings_in_each_standard_of_c_and_of_cpp() {
    let text = "#include <verbsim.h>\n#include <verbsim.h>\nint main(void) { return verbsim_is_simulated(); }\n";
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for (compiler, file, standards) in [
        ("cc", "header.c", &["c99", "c11", "gnu17"][..]),
        ("g++", "header.cc", &["c++98", "c++11", "c++20"]),
    ] {
        let source = place.join(file);
        fs::write(&source, text).unwrap();
        for standard in standards {
            let standard = format!("-std={standard}");
            let options = [&*standard, "-pedantic", "-Wshadow", "-Wcast-qual"];
            let built = compile(compiler, &options, &source, "header");
            assert!(Command::new(built).status().unwrap().success());
        }
    }
}

#[test]
#[ignore = "wants cc, libibverbs-dev and pyverbs: `./check libibverbs` runs it"]
fn on_devices_that_are_not_simulated_each_function_says_so() {
    assert_eq!(run(&mut Command::new(client())), (true, String::new()));
    for options in [&[][..], &["-S"]] {
        let said = run(&mut python("/usr/bin/python3", options));
        assert_eq!(said, (true, "not simulated\n".to_owned()), "{options:?}");
    }
}

/// Without `site` there is no pyverbs.
fn python(program: &str, options: &[&str]) -> Command {
    let mut command = Command::new(program);
    in_python(&mut command, options);
    command
}

fn in_python(command: &mut Command, options: &[&str]) {
    command
        .env("PYTHONPATH", Path::new(ROOT).join("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(options)
        .arg(Path::new(ROOT).join("tests/clients/control.py"));
}

#[test]
#[ignore = "wants pyverbs and the drop-in: `./check libibverbs` runs it"]
fn python_has_the_functions_with_pyverbs_and_without() {
    for (options, of_python, said) in [
        (&[][..], &[][..], "simulated, with pyverbs\n"),
        (&["--no-preload"], &[], "simulated, with pyverbs\n"),
        (&[], &["-S"], "simulated\n"),
    ] {
        let mut command = exec(options);
        command.arg("/usr/bin/python3");
        in_python(&mut command, of_python);
        let (succeeds, text) = run(&mut command);
        assert!(succeeds && text.starts_with(said), "{options:?}: {text}");
    }
}

/// What a call with a wrong argument says: its name, and the fact.
const REFUSALS: &[&str] = &[
    "verbsim_inject: rules is NULL",
    "verbsim_inject: there is no [[rule]]",
    "verbsim_inject: rules is not UTF-8",
    "verbsim_inject: rules:3: rule 1: field \"effect\": \"dorp\" is not one of drop, corrupt, duplicate, delay, reorder, shape, hold",
    "verbsim_inject: rule 2: node is 7, allowed are 0 to 1",
    "verbsim_inject: rule 1: ibv_get_device_list is not a call that can fail",
    "verbsim_delay_packets: by is zero: nothing is late",
    "verbsim_fail_calls: verb is NULL",
    "verbsim_fail_calls: no verb is called ibv_nothing",
    "verbsim_fail_calls: error is not the kind of an errno value",
    "verbsim_fail_completions: status must be an error",
    "verbsim_port_down: device is NULL",
    "verbsim_port_down: port is 2, allowed are 1 to 1",
    "verbsim_port_down: port is 256: a port is 1 to 255",
    "verbsim_kill_device: no device is called nowhere; there are left, right",
    "verbsim_fired: there is no fault 0 in this process",
    "verbsim_mark: text is NULL",
    "verbsim_count_findings: what is fatal: allowed are NULL, error, warning, or a class (`verbsim classes` lists them)",
    "verbsim_count_findings: there is no mark 1000; the last one is 1",
];

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn wrong_arguments_are_named_and_marks_and_faults_are_in_the_trace() {
    let trace = Path::new(env!("CARGO_TARGET_TMPDIR")).join("control.trace");
    let to = trace.to_str().unwrap();
    let mut command = exec(&["--names", "left,right", "--seed", "0", "--trace", to]);
    let (succeeds, said) = run(command.arg(client()));
    assert!(succeeds, "{said}");
    for refusal in REFUSALS {
        let line = format!("verbsim: {refusal}");
        assert!(said.lines().any(|other| other == line), "{line}\n{said}");
    }
    let trace = fs::read_to_string(trace).unwrap();
    let mut lines = trace.lines();
    for wanted in [
        "verbsim_inject fault 1: [[rule]] kind = \"packet\" effect = \"drop\" from = 0 src_qpn = 5124098 first = 2",
        ": a fault rule",
        "verbsim_remove fault 1",
        "verbsim_mark before the mistake",
        "REM_ACCESS_ERR",
        "verbsim_mark after the mistake",
        "verbsim_mark round and round",
        "node 1 verbsim_kill_device",
        "async event DEVICE_FATAL",
    ] {
        let is_there = lines.any(|line| line.contains(wanted));
        assert!(is_there, "the trace lacks, in this order: {wanted}");
    }
}
