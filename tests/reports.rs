//! Reports about the mistakes of C programs on the drop-in: as JSON, without suppressed findings,
//! at once.
//!
//! The programs are those of `tests/sanitizer`.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A program, built.
fn program(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/sanitizer/{name}.c"));
    let built = file(&format!("{name}-{:?}", std::thread::current().id()));
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-g"]).arg(source).arg("-o").arg(&built);
    let cc = cc.args(["-libverbs", "-lrdmacm", "-lpthread"]).status();
    assert!(cc.unwrap().success());
    built
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("reports-{name}"))
}

/// A command under `exec`: its status, and what is written.
fn exec(options: &[&str], command: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_verbsim"))
        .args(["exec", "--names", "left,right", "--seed", "0"])
        .args(options)
        .arg("--")
        .args(command)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    (output.status.code().unwrap(), said)
}

fn run(options: &[&str], name: &str) -> (i32, String) {
    exec(options, &[program(name).to_str().unwrap(), "wrong"])
}

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn a_finding_is_an_object_in_a_line() {
    let path = file("found.json");
    let to = format!("--diagnose={}", path.display());
    let (status, said) = run(&[&to, "--diagnose-format", "json"], "after_error");
    assert_eq!((status, &*said), (0, ""));
    let text = fs::read_to_string(&path).unwrap();
    let found: Value = serde_json::from_str(&text).expect("it is one line");
    for (field, expected) in [
        ("schema", 1.into()),
        ("device", "left".into()),
        ("class", "VS-QP-05".into()),
        ("level", "warning".into()),
        ("rule", "QP-FLUSH-03".into()),
        ("place", "after_error.c:15".into()),
        ("count", Value::from(2)),
    ] {
        assert_eq!(found[field], expected, "{field}: {text}");
    }
    assert!(found["process"].as_u64() > Some(1), "{text}");
    let (sentence, help) = (&found["sentence"], &found["help"]);
    assert!(sentence.as_str().unwrap().starts_with("a send was posted"));
    assert!(help.as_str().unwrap().starts_with("after the first"));

    let (_, said) = run(&["--diagnose", "--diagnose-format", "json"], "leak");
    let found: Value = serde_json::from_str(&said).expect("there is no heading");
    assert!(found["place"].is_null(), "{said}");
}

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn what_is_suppressed_is_not_told() {
    let path = file("known");
    let options = [
        "--fail-on",
        "warning",
        "--suppressions",
        path.to_str().unwrap(),
    ];
    fs::write(&path, "VS-ARM-05:arm_no_*.c:*\n").unwrap();
    let (status, said) = run(&options, "arm_no_channel");
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("verbsim: 1 finding was suppressed\n"));
    assert!(!said.contains("VS-ARM-05"), "{said}");

    fs::write(&path, "VS-ARM-05:other.c:*\n").unwrap();
    let (status, said) = run(&options, "arm_no_channel");
    assert_eq!(status, 99, "{said}");
    assert!(said.contains("VS-ARM-05: ") && !said.contains("suppressed"));

    // Neither does it end the program.
    fs::write(&path, "VS-MR-01\n").unwrap();
    let (status, said) = run(&[&options[2..], &["--halt-on-error"]].concat(), "access");
    assert_eq!(status, 0, "{said}");
}

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn a_program_is_ended_at_its_first_error() {
    // A call that is refused; work that fails; a CQ that overruns.
    for (name, class) in [
        ("access", "VS-MR-01"),
        ("rkey", "VS-KEY-01"),
        ("overrun", "VS-CQ-01"),
    ] {
        let (status, said) = run(&["--halt-on-error"], name);
        assert_eq!(status, 128 + 6, "{said}");
        let last = said.lines().last().unwrap();
        assert!(last.starts_with("verbsim: the program is ended here: "));
        assert!(last.contains(class), "{said}");
        assert!(said.contains(&format!("help: {class}")), "{said}");
        assert!(!said.contains("could not be diagnosed"), "{said}");
    }
    // It may be right.
    let (status, said) = run(&["--halt-on-error"], "after_error");
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("VS-QP-05: hint"), "{said}");
}

#[test]
#[ignore = "wants cc, gdb, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn a_debugger_stops_in_the_call_that_was_a_mistake() {
    let program = program("access");
    let commands = [
        "set breakpoint pending on",
        "set debuginfod enabled off",
        "break verbsim_report",
        "run",
        "backtrace",
        "continue",
    ];
    let mut gdb = vec!["gdb", "-q", "-nx", "-batch"];
    gdb.extend(commands.iter().flat_map(|command| ["-ex", command]));
    gdb.extend(["--args", program.to_str().unwrap(), "wrong"]);
    let (status, said) = exec(&["--diagnose"], &gdb);
    assert_eq!(status, 0, "{said}");
    let stops = said.matches("hit Breakpoint 1").count();
    assert_eq!(stops, 1, "{said}");
    let place = "access.c:10";
    assert!(said.contains(&format!("/{place}")), "{said}");
    assert!(said.contains(&format!("({place})")), "{said}");
}
