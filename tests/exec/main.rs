//! `verbsim exec`: the program runs as if it had been started by itself, on the drop-in or not at
//! all.
//!
//! A library with the mark of the drop-in stands in for it, so that these tests need nothing but
//! Rust.
#![cfg(target_os = "linux")]

mod library;
mod schedule;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::OnceLock;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use verbs_settings::SETTINGS;

/// A directory of a test's own, empty.
fn directory(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("exec-{test}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// A library of one symbol.
fn build(path: &Path, symbol: &str) {
    let source = path.with_extension("rs");
    let text = format!("#[unsafe(no_mangle)] pub static {symbol}: u8 = 1;");
    fs::write(&source, text).unwrap();
    let built = Command::new("rustc")
        .args(["--edition", "2024", "--crate-type", "cdylib", "-o"])
        .args([path, &source])
        .status();
    assert!(built.unwrap().success());
}

/// The stand-in.
fn drop_in() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let path = directory("library").join("libstand_in.so");
        build(&path, "VERBSIM_DROP_IN");
        path
    })
}

/// `verbsim exec` with the stand-in.
fn exec(arguments: &[&str]) -> Command {
    exec_on(drop_in(), arguments)
}

fn exec_on(library: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbsim"));
    command.arg("exec").arg("--library").arg(library);
    command.args(arguments).env_remove("VERBSIM_LIBRARY");
    command
}

fn run(mut command: Command) -> Output {
    command.output().unwrap()
}

/// Status, and what is on the standard error.
fn refused(command: Command) -> (Option<i32>, String) {
    let output = run(command);
    assert!(output.stdout.is_empty());
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// A running program that has written a line.
fn started(arguments: &[&str]) -> (Child, BufReader<ChildStdout>, String) {
    let mut command = exec(arguments);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    (child, lines, line)
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
}

/// With nothing to do at the end it becomes the program; else it stays as its parent.
const BOTH_WAYS: [&[&str]; 2] = [&[], &["--timeout", "600"]];

#[test]
fn it_becomes_the_program_unless_there_is_something_to_do_at_its_end() {
    for (options, same) in [
        (BOTH_WAYS[0], true),
        (BOTH_WAYS[1], false),
        (&["--diagnose", "--allow-unused"], false),
    ] {
        let (mut child, _, line) = started(&[options, &["sh", "-c", "echo $$"]].concat());
        assert_eq!(line.trim() == child.id().to_string(), same, "{options:?}");
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn it_ends_as_the_program_ends() {
    for options in BOTH_WAYS {
        let status = |program: &str| {
            let output = run(exec(&[options, &["sh", "-c", program]].concat()));
            (output.status.code(), output.status.signal())
        };
        assert_eq!(status("exit 0"), (Some(0), None));
        assert_eq!(status("exit 77"), (Some(77), None));
        let by_signal = match options {
            [] => (None, Some(9)),
            _ => (Some(128 + 9), None),
        };
        assert_eq!(status("kill -9 $$"), by_signal);
    }
}

#[test]
fn a_program_that_cannot_be_started_gives_the_status_that_shells_give() {
    let text = directory("no-program").join("text");
    fs::write(&text, "").unwrap();
    for options in BOTH_WAYS {
        for (program, expected) in [("/nowhere/program", 127), (text.to_str().unwrap(), 126)] {
            let (status, said) = refused(exec(&[options, &[program]].concat()));
            assert_eq!(status, Some(expected));
            assert!(said.contains(program), "{said}");
        }
    }
}

#[test]
fn nonsense_is_refused_before_the_program_starts() {
    let dir = directory("nonsense");
    let [started, file] = ["started", "file.toml"].map(|name| dir.join(name));
    fs::write(&file, "colour = 1\n").unwrap();
    let file = file.to_str().unwrap();
    for (options, variable, named) in [
        (
            &["--ports", "0"][..],
            ("", ""),
            "VERBSIM_PORTS (--ports) is 0",
        ),
        (&["--config", file], ("", ""), "colour"),
        (&["--faults", "/nowhere.toml"], ("", ""), "/nowhere.toml"),
        (
            &["--suppressions", file],
            ("", ""),
            "file.toml:1: no class of mistakes is called colour",
        ),
        (&["--timeout", "0"], ("", ""), "above 0"),
        (&[], ("VERBSIM_SEED", "x"), "VERBSIM_SEED (--seed) is x"),
        (&[], ("VERBSIM_PROFLE", "rxe"), "VERBSIM_PROFLE"),
    ] {
        let program = ["touch", started.to_str().unwrap()];
        let mut command = exec(&[options, &program].concat());
        if !variable.0.is_empty() {
            command.env(variable.0, variable.1);
        }
        let (status, said) = refused(command);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains(named), "{said}");
        assert!(!started.exists(), "the program has been started: {said}");
    }
}

#[test]
fn signals_are_passed_on() {
    const PROGRAM: &str = "trap 'echo term; exit 3' TERM; trap 'echo usr1' USR1; echo ready; \
                           while :; do read line; done";
    for options in BOTH_WAYS {
        let (mut child, mut lines, _) = started(&[options, &["sh", "-c", PROGRAM]].concat());
        send(&child, Signal::SIGUSR1);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "usr1");
        send(&child, Signal::SIGTERM);
        assert_eq!(child.wait().unwrap().code(), Some(3));
    }
}

#[test]
fn a_program_ends_with_its_parent() {
    for options in BOTH_WAYS {
        let (mut child, mut lines, _) =
            started(&[options, &["sh", "-c", "echo ready; exec tail -f /dev/null"]].concat());
        send(&child, Signal::SIGKILL);
        child.wait().unwrap();
        // The end comes when no process has the pipe any more.
        assert_eq!(lines.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
}

#[test]
fn a_program_that_takes_too_long_is_ended() {
    for (program, said) in [
        ("exec tail -f /dev/null", ""),
        // One that does not want to end; which signal it was tells what it wrote.
        (
            "trap 'echo asked' TERM; while :; do read line; done",
            "asked\n",
        ),
    ] {
        let mut command = exec(&["--timeout", "0.5", "sh", "-c", program]);
        // No process writes it.
        let (_writer, stdin) = pipe();
        command.stdin(stdin);
        let output = run(command);
        assert_eq!(output.status.code(), Some(124));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), said);
    }
}

/// A process that is left would keep the pipe.
#[test]
fn what_a_program_has_started_ends_with_it_at_a_timeout() {
    for program in [
        // It is waited for.
        "tail -f /dev/null; true",
        // It is not in a group of this program, and is an orphan.
        "(setsid sh -c 'tail -f /dev/null; true' &); tail -f /dev/null",
        // No process wants to end.
        "trap '' TERM; tail -f /dev/null; true",
        // The parent ends at once, and its children take their time.
        "sh -c \"trap 'sleep 1; echo asked; exit' TERM; echo \\$0; while :; do sleep 0.1; done\" & wait",
    ] {
        let output = run(exec(&["--timeout", "2", "sh", "-c", program]));
        assert_eq!(output.status.code(), Some(124), "{program}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said.contains("asked"), program.contains("asked"), "{said}");
    }
}

/// A shell may have become `verbsim`, with children of its own.
#[test]
fn what_the_program_has_not_started_stays_at_a_timeout() {
    let script = "tail -f /dev/null & echo $!; exec \"$@\"";
    let mut command = Command::new("sh");
    let within = exec(&["--timeout", "0.5", "tail", "-f", "/dev/null"]);
    command.args(["-c", script, "sh"]).arg(within.get_program());
    command.args(within.get_args());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(124));
    // It was there.
    kill(Pid::from_raw(line.trim().parse().unwrap()), Signal::SIGKILL).unwrap();
}

/// Only the new parent can.
#[test]
fn orphans_of_the_program_are_waited_for() {
    const PROGRAM: &str = "orphan=$(sh -c 'sleep 0.2 >/dev/null & echo $!'); \
                           while kill -0 $orphan 2>/dev/null; do sleep 0.05; done; echo gone";
    let output = run(exec(&["--timeout", "10", "sh", "-c", PROGRAM]));
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "gone\n");
}

fn pipe() -> (impl Write, Stdio) {
    let (reader, writer) = std::io::pipe().unwrap();
    (writer, reader.into())
}

#[test]
fn nothing_is_left_behind() {
    let dir = directory("left");
    for options in BOTH_WAYS {
        let mut command = exec(&[options, &["true"]].concat());
        for variable in ["TMPDIR", "XDG_CACHE_HOME", "HOME"] {
            command.env(variable, &dir);
        }
        assert!(run(command).status.success());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    }
}

#[test]
fn a_program_that_a_signal_ends_is_said_to_be_undiagnosed() {
    let output = run(exec(&["--diagnose", "sh", "-c", "kill -9 $$"]));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("signal 9"), "{said}");
}

/// A shell's function that writes to the records what the drop-in writes: entries, from the
/// beginning.
const SAY: &str = r#"say() {
    IFS=,
    for record in $VERBSIM_VERDICT; do
        IFS=' '
        set -- "$1" $record
        printf "$1" 1<>/proc/$2/fd/$3
    done
}
"#;

/// What the function is given: `$$` is the process of the shell.
fn entries(facts: &[&str]) -> String {
    facts.iter().map(|fact| format!("{fact}\\n\\000")).collect()
}

/// A program that says of its processes what the drop-in says: status, and what is on the standard
/// error.
fn judged(options: &[&str], facts: &[&str], end: &str) -> (Option<i32>, String) {
    let program = format!("{SAY} say \"{}\"; {end}", entries(facts));
    refused(exec(&[options, &["sh", "-c", &program]].concat()))
}

/// The record of one process, which has opened a device, created no queue pair, and was diagnosed.
const LOOKED: &[&str] = &["1 loaded $$ sh", "1 opened", "1 ended 0 0"];

/// The record of one process, which has used a device and was diagnosed, and made no mistake.
const RIGHT: &[&str] = &["1 loaded $$ sh", "1 opened", "1 queue_pair", "1 ended 0 0"];

/// The record of one process, which has used a device.
const CUT_SHORT: &[&str] = &["1 loaded $$ sh", "1 opened", "1 queue_pair"];

/// The same, and it has made a mistake.
const MISTAKEN: &[&str] = &[
    "1 loaded $$ sh",
    "1 opened",
    "1 queue_pair",
    "1 error sim0: VS-OBJ-02: a pd",
];

/// A script that is run under a diagnosis may run its programs by `exec` itself.
#[test]
fn what_is_found_in_an_exec_within_counts_for_the_one_around_it() {
    let [verbsim, library] = [env!("CARGO_BIN_EXE_verbsim"), drop_in().to_str().unwrap()];
    for facts in [
        &["1 loaded 7 sh", "1 opened", "1 queue_pair", "1 ended 1 0"],
        MISTAKEN,
    ] {
        let program = format!("{SAY} say \"{}\"", entries(facts));
        for inner in [&[][..], &["--diagnose"], &["--timeout", "600"]] {
            let outset = [verbsim, "exec", "--library", library];
            let inner = [&outset, inner, &["sh", "-c", &program]].concat();
            let (status, said) = refused(exec(&[&["--fail-on", "error"], &inner[..]].concat()));
            assert_eq!(status, Some(99), "{said}");
            assert!(!said.contains("used no RDMA device"), "{said}");
        }
    }
}

const NONE_FOUND: &str = "verbsim: no mistakes were found\n";

#[test]
fn a_program_that_used_no_device_is_an_error_of_the_diagnosis() {
    let (never, opened_none) = ("never loaded libibverbs", "opened no device");
    for (options, facts, program, status, said) in [
        (&["--diagnose"][..], &[][..], 0, 99, never),
        (&["--fail-on", "error"], &[], 0, 99, never),
        (&["--diagnose"], &CUT_SHORT[..1], 0, 99, opened_none),
        (&["--diagnose", "--allow-unused"], &[], 0, 0, ""),
        // Without a diagnosis there is no record.
        (&["--timeout", "600"], &[], 0, 0, ""),
        // The status of a program that failed says why it used no device.
        (&["--diagnose"], &[], 3, 3, never),
        (&["--fail-on", "error"], &CUT_SHORT[..1], 3, 3, opened_none),
        (&["--diagnose"], RIGHT, 3, 3, NONE_FOUND),
        // It only looked at devices.
        (&["--diagnose"], LOOKED, 3, 3, "fallen back to TCP"),
        (&["--fail-on", "error"], LOOKED, 3, 3, "fallen back to TCP"),
        (
            &["--fail-on", "warning"],
            LOOKED,
            3,
            99,
            "fallen back to TCP",
        ),
        (&["--diagnose", "--allow-unused"], LOOKED, 3, 3, NONE_FOUND),
    ] {
        let (code, text) = judged(options, facts, &format!("exit {program}"));
        assert_eq!(code, Some(status), "{options:?} {facts:?} {program}");
        assert!(
            text.contains(said) && text.is_empty() == said.is_empty(),
            "{text}"
        );
    }
}

#[test]
fn what_is_found_is_a_failure_from_the_level_on_that_was_asked_for() {
    let diagnose: &[&str] = &["--diagnose"];
    let (error, warning) = (["--fail-on", "error"], ["--fail-on", "warning"]);
    for (options, found, status) in [
        (diagnose, "1 1", 3),
        (&error, "1 0", 99),
        (&error, "0 1", 3),
        (&warning, "0 1", 99),
        (&warning, "1 0", 99),
    ] {
        // It counts whichever process it is.
        let ended = format!("1 ended {found}");
        let facts = [
            CUT_SHORT,
            &[&ended, "2 forked 7 sh", "2 opened", "2 ended 0 0"],
        ]
        .concat();
        let (code, said) = judged(options, &facts, "exit 3");
        assert_eq!((code, &*said), (Some(status), ""), "{options:?} {found}");
    }
    // So does what a process did that has opened no device.
    let facts = [RIGHT, &["2 loaded 7 sh", "2 ended 1 0"]].concat();
    assert_eq!(judged(&error, &facts, "exit 3"), (Some(99), String::new()));
    let (code, said) = judged(&warning, RIGHT, "exit 3");
    assert_eq!((code, &*said), (Some(3), NONE_FOUND));
    // After a time-out the diagnosis names what it does not report.
    let (code, said) = judged(&["--diagnose", "--timeout", "0.5"], RIGHT, "sleep 100");
    assert_eq!(code, Some(124));
    assert!(said.contains("no mistakes were found; to wait"), "{said}");
    // A signal says more.
    let facts = [CUT_SHORT, &["1 ended 1 0"]].concat();
    let (code, said) = judged(&warning, &facts, "kill $$");
    assert_eq!((code, &*said), (Some(128 + 15), ""));
}

/// However it ends: the status follows from what it has recorded.
#[test]
fn a_mistake_counts_though_its_process_wrote_no_diagnosis() {
    for (options, end, status) in [
        (&["--fail-on", "error"][..], "exit 0", 99),
        (&["--fail-on", "warning"], "exit 3", 99),
        (&["--fail-on", "error"], "exec true", 99),
        (&["--diagnose"], "exit 3", 3),
        (&["--fail-on", "error"], "kill -9 $$", 128 + 9),
        (
            &["--fail-on", "error", "--timeout", "0.5"],
            "sleep 100",
            124,
        ),
    ] {
        let (code, said) = judged(options, MISTAKEN, end);
        assert_eq!(code, Some(status), "{options:?} {end}: {said}");
        assert!(said.contains("\nsim0: VS-OBJ-02: a pd\n"), "{said}");
        assert!(!said.contains("no mistakes"), "{said}");
    }
    // It is in the diagnosis of a process that wrote one.
    let facts = [MISTAKEN, &["1 ended 1 0"]].concat();
    let (code, said) = judged(&["--fail-on", "error"], &facts, "exit 3");
    assert_eq!((code, &*said), (Some(99), ""));
}

#[test]
fn what_could_not_be_written_is_a_failure() {
    let facts = [CUT_SHORT, &["1 unwritten the diagnosis: /file: full"]].concat();
    let (code, said) = judged(&["--diagnose"], &facts, "exit 0");
    assert_eq!(code, Some(99), "{said}");
    let what = "(sh) could not write the diagnosis: /file: full\n";
    assert!(said.contains(what), "{said}");
    // Nor can this process write there.
    let options = ["--diagnose=/dev/full", "--fail-on", "error"];
    let (code, said) = judged(&options, MISTAKEN, "exit 0");
    assert_eq!(code, Some(99), "{said}");
    for what in ["/dev/full: No space left", "VS-OBJ-02: a pd"] {
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn a_process_that_was_not_diagnosed_is_not_one_without_mistakes() {
    let facts = [RIGHT, &["2 loaded 7 server", "2 opened"]].concat();
    let (code, said) = judged(&["--fail-on", "error"], &facts, "exit 0");
    assert_eq!(
        (code, &*said),
        (
            Some(0),
            "verbsim: process 7 (server) ended without a diagnosis: what only its end shows is missing\n"
        )
    );
    let (_, said) = judged(&["--diagnose"], CUT_SHORT, "kill $$");
    assert!(said.contains("signal 15 ended process "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

/// The signal that has ended the program has reached them too.
#[test]
fn processes_that_outlive_the_program_are_heard_if_a_signal_ends_it() {
    let directory = directory("late");
    let late = |facts: &[&str]| entries(facts).replace('1', "2");
    let [loaded, ended] = [late(CUT_SHORT), late(&["1 ended 0 0"])];
    let child = format!(
        "trap '' TERM; {SAY} say \"{loaded}\"; echo >fifo\n\
         while kill -0 $1 2>/dev/null; do :; done; say \"{ended}\""
    );
    fs::write(directory.join("child"), child).unwrap();
    let first = entries(RIGHT);
    let end = "mkfifo fifo; sh child $$ & read -r line <fifo; kill $$";
    let program = format!("{SAY} say \"{first}\"; {end}");
    let mut command = exec(&["--diagnose", "sh", "-c", &program]);
    command.current_dir(&directory);
    let (code, said) = refused(command);
    assert_eq!((code, &*said), (Some(128 + 15), NONE_FOUND));
}

#[test]
fn a_file_for_the_diagnosis_of_a_right_program_stays_empty() {
    let file = directory("right").join("diagnosis");
    let option = format!("--diagnose={}", file.display());
    assert_eq!(judged(&[&option], RIGHT, ""), (Some(0), String::new()));
    assert_eq!(fs::read_to_string(&file).unwrap(), "");
    judged(&[&option], CUT_SHORT, "kill $$");
    assert!(fs::read_to_string(&file).unwrap().contains("signal 15"));
}

#[test]
fn a_file_of_packets_has_those_of_one_run() {
    let packets = directory("packets").join("packets.pcap");
    fs::write(&packets, [7; 1000]).unwrap();
    let ended = run(exec(&["--pcap", packets.to_str().unwrap(), "--", "true"]));
    assert!(ended.status.success());
    let written = fs::read(&packets).unwrap();
    assert_eq!(
        (written.len(), &written[..4]),
        (24, &0xa1b2_3c4d_u32.to_ne_bytes()[..])
    );
}

/// Programs read it: all other output is elsewhere.
#[test]
fn a_file_for_programs_has_only_findings() {
    let file = directory("json").join("found.json");
    let option = format!("--diagnose={}", file.display());
    let options = [&*option, "--diagnose-format", "json"];
    let facts = [CUT_SHORT, &["1 error {}"]].concat();
    let (_, said) = judged(&options, &facts, "kill $$");
    assert!(said.contains("signal 15") && !said.contains("{}"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}\n");
}

/// Its own text is lost, and nothing else.
#[test]
fn a_document_is_of_one_run_and_says_what_cannot_be_read() {
    let file = directory("document").join("found.xml");
    let to = format!("--diagnose={}", file.display());
    let options = [&to, "--diagnose-format", "junit", "--allow-unused"];
    for (program, status, failures) in [
        ("echo nonsense >>$VERBSIM_DIAGNOSE", 99, 1),
        ("exit 0", 0, 0),
        ("rm $VERBSIM_DIAGNOSE", 99, 1),
        ("exit 3", 3, 1),
    ] {
        let output = run(exec(&[&options[..], &["sh", "-c", program]].concat()));
        assert_eq!(output.status.code(), Some(status), "{program}");
        let document = fs::read_to_string(&file).unwrap();
        let seen = document.matches("<failure ").count();
        assert_eq!(seen, failures, "{program}: {document}");
        let is_said = document.contains("cannot be read: ");
        assert_eq!(is_said, status == 99, "{program}: {document}");
    }
}

#[test]
fn a_standard_error_that_is_closed_or_full_changes_no_status() {
    let slow = ["--timeout", "0.5", "sleep", "100"];
    let of = |facts| format!("{SAY} say \"{}\"", entries(facts));
    let (right, mistaken) = (of(RIGHT), of(MISTAKEN));
    for (arguments, status) in [
        (&["--diagnose", "true"][..], 99),
        // Only the line that no mistakes were found is lost.
        (&["--fail-on", "warning", "sh", "-c", &right], 0),
        (&["--fail-on", "error", "sh", "-c", &mistaken], 99),
        (&["--diagnose", "--allow-unused", "sh", "-c", "exit 3"], 3),
        (&slow, 124),
        (&["--ports", "0", "true"], 2),
    ] {
        let (reader, without_reader) = std::io::pipe().unwrap();
        drop(reader);
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        for stderr in [Stdio::from(without_reader), full.into()] {
            let mut command = exec(arguments);
            let output = command.stderr(stderr).output().unwrap();
            assert_eq!(output.status.code(), Some(status), "{arguments:?}");
        }
    }
}

#[test]
fn processes_that_the_program_leaves_behind_are_waited_for_if_asked() {
    // The line comes when the program has ended, and was waited for.
    const PROGRAM: &str = "exec 3<&0; export program=$$; (setsid sh -c '\
        while kill -0 $program; do :; done; echo left; read line <&3; echo $line' 2>/dev/null &); exit 3";
    for (options, line, status) in [
        (&["--wait"][..], "go on\n", 3),
        (&["--wait", "--timeout", "600"], "go on\n", 3),
        (&["--wait", "--timeout", "1"], "", 124),
    ] {
        let (mut child, mut lines, left) = started(&[options, &["sh", "-c", PROGRAM]].concat());
        assert_eq!(left, "left\n");
        let mut stdin = child.stdin.take().unwrap();
        if !line.is_empty() {
            assert!(child.try_wait().unwrap().is_none(), "it waits");
        }
        stdin.write_all(line.as_bytes()).unwrap();
        let mut seen = String::new();
        lines.read_to_string(&mut seen).unwrap();
        assert_eq!(seen, line);
        assert_eq!(child.wait().unwrap().code(), Some(status));
    }
    // A signal ends the wait.
    let (mut child, _lines, _) = started(&["--wait", "sh", "-c", PROGRAM]);
    send(&child, Signal::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn an_end_at_the_first_error_is_diagnosed() {
    let program = "echo $VERBSIM_HALT_ON_ERROR";
    let output = run(exec(&[
        "--halt-on-error",
        "--allow-unused",
        "sh",
        "-c",
        program,
    ]));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "true\n");
    // That it used no device is an error of the diagnosis.
    let (status, _) = refused(exec(&["--halt-on-error", "true"]));
    assert_eq!(status, Some(99));
}

#[test]
fn the_guide_has_every_setting() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/drop-in.md");
    let guide = fs::read_to_string(guide).unwrap();
    for setting in SETTINGS {
        let row = format!("| `--{}", setting.name);
        let row = guide.lines().find(|line| line.starts_with(&row));
        let row = row.unwrap_or_else(|| panic!("no row of --{}", setting.name));
        assert!(row.contains(&format!("`{}`", setting.variable())), "{row}");
        let is_key = row.contains(&format!("`{} = ", setting.key()));
        assert_eq!(is_key, setting.name != "config", "{row}");
    }
}
