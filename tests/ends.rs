//! How C programs on the drop-in end under `verbsim exec --diagnose`: the findings and the status.
//!
//! The programs are those of `tests/clients/ends/ends.c`.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// The program.
fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/ends/ends.c");
        let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ends");
        let flags = ["-Wall", "-Wextra", "-Werror", "-O1", "-g"];
        let mut cc = Command::new("cc");
        cc.args(flags)
            .arg(source)
            .arg("-o")
            .arg(&built)
            .arg("-libverbs");
        assert!(cc.status().unwrap().success());
        built
    })
}

/// The way may have several words. A shell lets the commands that it starts in the background
/// ignore SIGINT.
fn exec(options: &[&str], way: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,QUIT", env!("CARGO_BIN_EXE_verbsim")]);
    command.arg("exec").args(options).arg(program());
    command.args(way.split(' '));
    command
}

/// Status, and what is on the standard error.
fn run(options: &[&str], way: &str) -> (i32, String) {
    let output = exec(options, way).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), said)
}

/// The same, of a program that is sent a signal when it has begun.
fn interrupted(options: &[&str], way: &str, signal: Signal) -> (i32, String) {
    let mut command = exec(options, way);
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let _stdout = begun(&mut child);
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code().unwrap(), said)
}

/// Waits until it has begun. What it still writes has a reader.
fn begun(child: &mut Child) -> BufReader<ChildStdout> {
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    stdout
}

const DIAGNOSE: &[&str] = &["--diagnose"];

/// The finding about a program that has ended without destroying its objects.
const LEFT: &str = "1 context not closed";

/// The finding about a program that was stopped while it waits. Its objects are not reported.
const WAITS: &str = "a thread waits in ibv_get_cq_event";

/// It was diagnosed, and noticed nothing of the signal.
#[track_caller]
fn assert_diagnosed(said: &str, what: &str) {
    assert!(said.contains(what), "{said}");
    assert_eq!(said.contains(LEFT), what == LEFT, "{said}");
    for other in ["could be diagnosed", "no mistakes"] {
        assert!(!said.contains(other), "{said}");
    }
    // As the program itself complains.
    assert!(!said.contains(": errno "), "{said}");
}

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn programs_that_end_by_themselves() {
    let none = "verbsim: no mistakes were found\n";
    assert_eq!(run(DIAGNOSE, "right"), (0, none.to_owned()));
    assert_eq!(
        run(&["--fail-on", "warning"], "right"),
        (0, none.to_owned())
    );
    assert_eq!(run(DIAGNOSE, "ignores"), (0, none.to_owned()));
    for (options, status) in [(DIAGNOSE, 0), (&["--fail-on", "warning"], 99)] {
        let (code, said) = run(options, "unclosed");
        assert_eq!(code, status);
        assert_diagnosed(&said, LEFT);
    }
    for way in ["no-device", "list"] {
        let (code, said) = run(DIAGNOSE, way);
        assert_eq!(code, 99);
        assert!(said.contains("it opened no device"), "{said}");
    }
    // Its hints are lost, which is not a failure.
    let (code, said) = run(&["--fail-on", "warning"], "_exit");
    assert_eq!(code, 0);
    assert!(
        said.contains("(ends) ended without a diagnosis: what only its end shows is missing"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");
    let (code, said) = run(DIAGNOSE, "crash");
    assert_eq!(code, 128 + 11);
    assert!(said.contains("signal 11 ended process "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(run(DIAGNOSE, "abort"), (128 + 6, none.to_owned()));
}

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn programs_that_a_signal_ends_are_diagnosed_before() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGALRM] {
        // It may be about to wait, or to poll.
        for way in ["wait", "busy"] {
            let (code, said) = interrupted(DIAGNOSE, way, signal);
            assert_eq!(code, 128 + signal as i32, "{said}");
            assert!(
                said.starts_with("verbsim: no mistakes") || said.contains(": hint: "),
                "{said}"
            );
            assert!(
                !said.contains("diagnosed") && !said.contains(LEFT),
                "{said}"
            );
            assert!(!said.contains(": errno "), "{said}");
        }
    }
    let (code, said) = run(DIAGNOSE, "alarm");
    assert_eq!(code, 128 + Signal::SIGALRM as i32);
    assert_diagnosed(&said, WAITS);
    let (code, said) = run(&["--diagnose", "--timeout", "1s"], "wait");
    assert_eq!(code, 124);
    assert_diagnosed(&said, WAITS);
    // Children: one with a device is diagnosed, and one without ends as usual.
    let (code, said) = run(DIAGNOSE, "children");
    assert_eq!(
        (code, &*said),
        (0, "verbsim: no mistakes were found\n"),
        "neither could not be diagnosed"
    );
}

#[test]
#[ignore = "wants ibv_devinfo and the drop-in: `./check libibverbs` runs it"]
fn a_program_that_opens_devices_and_has_no_queue_pair_may_have_fallen_back() {
    let looks = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verbsim"));
        let output = command
            .arg("exec")
            .args(options)
            .arg("ibv_devinfo")
            .output();
        let output = output.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), said)
    };
    let (code, said) = looks(&["--fail-on", "warning"]);
    assert_eq!(code, 99, "{said}");
    assert!(said.contains("may have fallen back to TCP"), "{said}");
    let (code, said) = looks(&["--fail-on", "error"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("may have fallen back to TCP"), "{said}");
    let none = "verbsim: no mistakes were found\n";
    let (code, said) = looks(&["--fail-on", "warning", "--allow-unused"]);
    assert_eq!((code, &*said), (0, none));
}

/// What a process may do to itself before it ends by return.
const CHANGES: [&str; 10] = [
    "return", "setuid", "chroot", "nofile", "fdleak", "noproc", "fsize", "closed", "stdio", "all",
];

#[test]
#[ignore = "wants cc, libibverbs-dev, root and the drop-in: `./check libibverbs` runs it"]
fn a_mistake_is_found_whatever_its_process_does_afterwards() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ends.diagnosis");
    let to_file = format!("--diagnose={}", file.display());
    let ends = CHANGES.into_iter().chain(["_exit", "execve", "kill"]);
    for (how, late) in ends.flat_map(|how| [(how, ""), (how, " late")]) {
        let class = if late.is_empty() {
            "VS-OBJ-02"
        } else {
            "VS-OBJ-01"
        };
        for options in [
            &["--fail-on", "error"][..],
            &["--fail-on", "error", &to_file],
        ] {
            let (code, said) = run(options, &format!("mistake {how}{late}"));
            let expected = if how == "kill" { 128 + 9 } else { 99 };
            assert_eq!(code, expected, "{how}{late} {options:?}: {said}");
            let in_file = options.len() > 2;
            let said = if in_file {
                fs::read_to_string(&file).unwrap()
            } else {
                said
            };
            assert!(said.contains(class), "{how}{late} {options:?}: {said}");
        }
    }
}

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn a_mistake_of_a_process_that_wrote_no_diagnosis_is_a_line_of_json_too() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ends.json");
    let to_file = format!("--diagnose={}", file.display());
    let (_, said) = run(&[&to_file, "--diagnose-format", "json"], "mistake _exit");
    assert!(said.contains("ended without a diagnosis"), "{said}");
    let text = fs::read_to_string(&file).unwrap();
    let found: Value = serde_json::from_str(&text).expect("it is one line");
    assert_eq!(found["class"], "VS-OBJ-02", "{text}");
}

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn the_help_follows_the_first_mistake_of_a_class_that_is_not_suppressed() {
    let source = include_str!("clients/ends/ends.c");
    let first = source.lines().position(|line| line.contains("FIRST"));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ends.suppressed");
    fs::write(&path, format!("VS-OBJ-02:*ends.c:{}\n", first.unwrap() + 1)).unwrap();
    let options = [
        "--fail-on",
        "error",
        "--suppressions",
        path.to_str().unwrap(),
    ];
    let (code, said) = run(&options, "mistake _exit twice");
    assert_eq!(code, 99, "{said}");
    assert_eq!(said.matches("\nsim0: VS-OBJ-02: ").count(), 1, "{said}");
    assert!(said.contains("help: VS-OBJ-02"), "{said}");
}

/// It may be right: a diagnosis says that the program went on; without one that is not known.
#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn a_failure_that_a_program_handles_is_not_an_error_however_it_ends() {
    for how in ["return", "_exit", "execve"] {
        let (code, said) = run(&["--fail-on", "error"], &format!("recovers {how}"));
        assert_eq!(code, 0, "{how}: {said}");
        let went_on = said.contains("; the program went on");
        assert_eq!(went_on, how == "return", "{how}: {said}");
    }
}

/// A container may limit both. Under other limits the calls that need more have their own errors.
#[test]
#[ignore = "wants cc, libibverbs-dev, root and the drop-in: `./check libibverbs` runs it"]
fn a_process_without_threads_or_descriptors_gets_the_errno_value_and_a_line() {
    for (fabric, what, errno, reason) in [
        (
            "loopback",
            "threads",
            "EAGAIN",
            "no thread for timers can start: ",
        ),
        (
            "private",
            "threads",
            "EAGAIN",
            "no thread for timers can start: ",
        ),
        ("loopback", "descriptors", "EMFILE", "Too many open files"),
        (
            "loopback",
            "second-descriptor",
            "EMFILE",
            "Too many open files",
        ),
    ] {
        let mut command = exec(&["--fabric", fabric], &format!("without {what}"));
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let line = format!("verbsim: ibv_open_device: {errno}: {reason}");
        assert!(said.starts_with(&line), "{fabric}, {what}: {said}");
        assert_eq!(said.lines().count(), 1, "{fabric}, {what}: {said}");
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!((output.status.code(), printed.trim_end()), (Some(0), errno));
    }
}

/// The library's own write may not end the program by SIGXFSZ.
#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn packets_that_cannot_be_written_do_not_end_the_program() {
    let packets = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ends.pcap");
    let (code, said) = run(&["--pcap", packets.to_str().unwrap()], "limited");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("ends.pcap: File too large"), "{said}");
}

/// The library's own write may not end the program by SIGPIPE.
#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn a_standard_error_without_a_reader_changes_no_status() {
    for (way, status) in [("mistake return", 99), ("right", 0)] {
        let (reader, without_reader) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = exec(&["--fail-on", "error"], way);
        let output = command.stderr(without_reader).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{way}");
    }
}

/// A sandbox may limit `exec` too.
#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn a_mistake_is_found_under_a_limit_on_the_size_of_files() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ends.limited");
    let to_file = format!("--diagnose={}", file.display());
    for to in ["--diagnose", &to_file] {
        let within = exec(&["--fail-on", "error", to], "mistake return");
        let mut command = Command::new("prlimit");
        command.arg("--fsize=0").arg(within.get_program());
        let output = command.args(within.get_args()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(99), "{said}");
        assert!(said.contains("VS-OBJ-02"), "{said}");
        let is_full = said.contains("File too large");
        assert_eq!(is_full, to != "--diagnose", "{said}");
    }
}

#[test]
#[ignore = "wants cc, libibverbs-dev, root and the drop-in: `./check libibverbs` runs it"]
fn a_trace_is_written_whatever_its_process_does_before_the_end() {
    let trace = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ends.changed");
    for how in CHANGES
        .into_iter()
        .filter(|how| !["fsize", "all"].contains(how))
    {
        let (_, said) = run(
            &["--trace", trace.to_str().unwrap()],
            &format!("mistake {how}"),
        );
        let text = fs::read_to_string(&trace).unwrap();
        assert!(text.contains("ibv_dealloc_pd"), "{how}: {said}{text}");
    }
}

#[test]
#[ignore = "wants cc, libibverbs-dev, root and the drop-in: `./check libibverbs` runs it"]
fn a_process_that_cannot_be_judged_does_not_run() {
    for (how, what) in [
        ("closed", "VS-OBJ-02"),
        ("setuid", "VS-OBJ-02"),
        // Neither by a descriptor nor under /proc.
        (
            "closed-setuid",
            "the process cannot be diagnosed: the record of `verbsim exec`",
        ),
    ] {
        let (code, said) = run(&["--fail-on", "error"], &format!("goes-on {how}"));
        assert_eq!(code, 99, "{how}: {said}");
        assert!(said.contains(what), "{how}: {said}");
    }
}

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn a_child_may_not_use_what_its_parent_made_though_it_ends_by_exit() {
    let (code, said) = run(&["--fail-on", "error"], "forks");
    assert_eq!(code, 99, "{said}");
    assert!(
        said.contains("VS-FORK-01: ibv_dereg_mr: EINVAL: the pointer to a struct ibv_mr"),
        "{said}"
    );
}

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn a_process_that_outlives_the_program_is_named_or_waited_for() {
    for waits in [false, true] {
        let options: &[&str] = if waits {
            &["--fail-on", "error", "--wait"]
        } else {
            &["--fail-on", "error"]
        };
        let mut command = exec(options, "daemon");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let _stdout = begun(&mut child);
        let stdin = child.stdin.take();
        let status = if waits {
            drop(stdin);
            child.wait()
        } else {
            let status = child.wait();
            drop(stdin);
            status
        };
        let mut said = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        assert_eq!(status.unwrap().code(), Some(99), "{said}");
        assert!(said.contains("VS-OBJ-02"), "{said}");
        assert_eq!(said.contains("(ends) still runs"), !waits, "{said}");
    }
}

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn a_trace_is_written_too() {
    let trace = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ends.trace");
    let path = trace.to_str().unwrap();
    let (code, said) = run(&["--trace", path, "--timeout", "1s"], "wait");
    assert_eq!(code, 124, "{said}");
    let text = fs::read_to_string(&trace).unwrap();
    assert!(
        text.lines().last().unwrap().contains("ibv_get_cq_event"),
        "{text}"
    );
}

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn a_handler_of_the_program_is_left_alone() {
    for way in ["own-before", "own-after"] {
        let (code, said) = interrupted(DIAGNOSE, way, Signal::SIGTERM);
        assert_eq!(code, 3, "{way}");
        assert_diagnosed(&said, LEFT);
    }
}

#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn a_program_that_hangs_in_the_simulator_ends_too() {
    let begun = Instant::now();
    let (code, said) = interrupted(DIAGNOSE, "hang-with-lock", Signal::SIGTERM);
    assert_eq!(code, 128 + 15);
    assert!(
        said.contains("the simulator was busy: no diagnosis"),
        "{said}"
    );
    assert!(begun.elapsed() < Duration::from_secs(30));
}

/// A handler of the program never runs on the thread that writes the diagnosis after a signal.
#[test]
#[ignore = "wants cc, libibverbs-dev and the drop-in: `./check libibverbs` runs it"]
fn the_thread_that_waits_for_signals_blocks_them() {
    let output = exec(DIAGNOSE, "masks").output().unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    // The kernel keeps 15 bytes of a name.
    assert!(!said.contains("verbs-sim signa takes"), "{said}");
}
