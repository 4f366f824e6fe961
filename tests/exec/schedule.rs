//! `verbsim exec --schedule` and `--explore`, with programs that use no device.
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

use std::fs;
use std::io::{self, Write};

use super::{directory, exec};

/// How a run ended, and what it printed: the program, and then `exec`.
struct Ran {
    status: Option<i32>,
    printed: String,
    said: String,
}

/// Runs `exec`. `None`, with a message, if this machine or container allows no schedule.
fn run(arguments: &[&str]) -> Option<Ran> {
    let output = exec(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stderr);
    if let Some(why) = said.lines().find(|line| line.contains("a schedule: ")) {
        // The harness keeps what the macros print.
        let _ = writeln!(io::stderr(), "skipped: {why}");
        return None;
    }
    Some(Ran {
        status: output.status.code(),
        printed: text(&output.stdout),
        said,
    })
}

/// The line about the schedule.
fn hash(ran: &Ran) -> &str {
    let is_it = |line: &&str| line.starts_with("verbsim: schedule ");
    ran.said.lines().find(is_it).unwrap_or_default()
}

#[test]
fn a_program_by_a_schedule_prints_and_ends_as_without() {
    let script = "echo $1; sleep 3000 & wait; exit 3";
    for seed in ["0", "1", "2", "3"] {
        let arguments = [
            "--schedule",
            seed,
            "--virtual-timeout",
            "1h",
            "--",
            "sh",
            "-c",
        ];
        let arguments = [&arguments[..], &[script, "sh", "text"]].concat();
        let Some(first) = run(&arguments) else { return };
        assert_eq!(
            (first.status, &*first.printed),
            (Some(3), "text\n"),
            "{}",
            first.said
        );
        assert!(
            hash(&first).contains(" by the clock of the program"),
            "{}",
            first.said
        );
        let again = run(&arguments).map(|ran| hash(&ran).to_owned());
        assert_eq!(again.as_deref(), Some(hash(&first)));
    }
}

#[test]
fn a_run_has_limits_of_both_clocks() {
    let busy = "while :; do :; done";
    for (option, script, said) in [
        (
            "--virtual-timeout",
            "sleep 3000",
            "longer than --virtual-timeout",
        ),
        ("--timeout", busy, "longer than --timeout"),
    ] {
        let Some(ran) = run(&["--schedule", "1", option, "1s", "--", "sh", "-c", script]) else {
            return;
        };
        assert_eq!(ran.status, Some(124), "{}", ran.said);
        assert!(ran.said.contains(said), "{}", ran.said);
    }
}

#[test]
fn a_deadlock_is_reported_at_once_with_each_thread() {
    // Each has the end of the pipe that the other one waits for.
    let script = "mkfifo p; cat p & exec 3<> p; cat p";
    let dir = directory("schedule-deadlock");
    let dir = dir.to_str().unwrap();
    let arguments = [
        "--schedule",
        "1",
        "--workdir",
        dir,
        "--",
        "sh",
        "-c",
        script,
    ];
    let Some(ran) = run(&arguments) else { return };
    assert_eq!(ran.status, Some(124), "{}", ran.said);
    assert!(ran.said.contains("verbsim: deadlock: "), "{}", ran.said);
    assert_eq!(
        ran.said.matches("(cat, process ").count(),
        2,
        "{}",
        ran.said
    );
}

#[test]
fn an_exploration_reports_each_way_to_fail_once_with_its_replay() {
    // The file is not controlled by the schedule.
    let script =
        "case $(od -An -N1 -tu1 /dev/urandom) in *[02468]) exit 3;; *[1357]) kill -9 $$;; esac";
    let arguments = [
        "--explore",
        "0..24",
        "--jobs",
        "2",
        "--",
        "sh",
        "-c",
        script,
    ];
    let Some(ran) = run(&arguments) else { return };
    assert_eq!(ran.status, Some(1), "{}", ran.said);
    for how in [
        "the program ended with status 3",
        "signal 9 ended the program",
    ] {
        assert_eq!(ran.printed.matches(how).count(), 1, "{}", ran.printed);
    }
    assert!(
        ran.printed.contains(" of 24 runs failed, in 2 ways"),
        "{}",
        ran.printed
    );
    let replay = ran
        .printed
        .lines()
        .find(|line| line.contains("verbsim exec "));
    let replay = replay.unwrap();
    assert!(
        replay.contains(" --schedule ") && !replay.contains("--jobs"),
        "{replay}"
    );
    assert!(replay.contains("'case $(od"), "{replay}");
}

#[test]
fn a_failure_is_reduced_to_the_changes_that_it_needs() {
    let dir = directory("schedule-changes");
    let dir = dir.to_str().unwrap();
    let script = "(echo a >> file) & (echo b >> file) & wait; test $(head -n 1 file) = a";
    let program = ["--workdir", dir, "--", "sh", "-c", script];
    let explored = run(&[&["--explore", "0..24"], &program[..]].concat());
    let Some(explored) = explored else { return };
    let replay = explored
        .printed
        .lines()
        .find(|line| line.contains(" --changes "));
    let words = replay.unwrap_or(&explored.printed).split_whitespace();
    let words: Vec<_> = words.collect();
    let value = |option| {
        let at = words.iter().position(|word| *word == option);
        at.map_or("", |at| words[at + 1])
    };
    let [seed, changes] = ["--schedule", "--changes"].map(value);
    let changes = changes.trim_matches('\'');
    assert_eq!(changes.split(',').count(), 1, "{}", explored.printed);
    let with = |changes| {
        let options = ["--schedule", seed, "--changes", changes];
        run(&[&options[..], &program[..]].concat()).unwrap()
    };
    assert_eq!(with(changes).status, Some(1));
    // Without the change the first one is first.
    assert_eq!(with("0.1>0").status, Some(0));
}

#[test]
fn a_run_starts_in_a_copy_and_is_judged_by_the_check() {
    let dir = directory("schedule-workdir");
    fs::write(dir.join("file"), "").unwrap();
    let dir = dir.to_str().unwrap();
    let options = ["--explore", "0..6", "--workdir", dir, "--check"];
    let with = |check| {
        let program = ["--", "sh", "-c", "echo x >> file"];
        run(&[&options[..], &[check], &program].concat())
    };
    let Some(good) = with("test $(wc -l < file) = 1") else {
        return;
    };
    assert_eq!(good.status, Some(0), "{} {}", good.printed, good.said);
    assert!(
        good.printed.contains("no failure in 6 runs"),
        "{}",
        good.printed
    );
    let bad = with("false").unwrap();
    assert_eq!(bad.status, Some(1), "{}", bad.said);
    let failed = "failed in 6 runs: --check: exit status: 1";
    assert!(bad.printed.contains(failed), "{}", bad.printed);
    assert_eq!(fs::read_dir(dir).unwrap().count(), 1);
    assert_eq!(fs::read(format!("{dir}/file")).unwrap(), b"");
}

#[test]
fn a_program_that_does_not_exist_is_not_run() {
    for option in ["--schedule", "--explore"] {
        let Some(ran) = run(&[option, "3", "--", "./no-such-program"]) else {
            return;
        };
        assert!(
            ran.said.contains("./no-such-program: No such file"),
            "{}",
            ran.said
        );
        assert_eq!(ran.printed, "");
        let status = if option == "--schedule" { 127 } else { 2 };
        assert_eq!(ran.status, Some(status), "{}", ran.said);
    }
}

#[test]
fn options_of_schedules_need_one() {
    let option = ["--check", "true"];
    let output = exec(&[&option[..], &["--", "true"]].concat())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}
