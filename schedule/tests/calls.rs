//! The programs of `calls.c`: each does what it does without a schedule, in virtual time, and the
//! same seed gives the same run.
#![cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, io, thread};

/// A program, and what it prints: by line, with the seconds since its start. `deadlock`,
/// `unheard` and `circle` never end by themselves.
#[rustfmt::skip]
const PROGRAMS: &[(&str, &str)] = &[
    ("read_", "read 3 at 3"),
    ("readv_", "readv 3 at 3"),
    ("recv_", "recv 3 at 3"),
    ("recvmsg_", "recvmsg 3 at 3"),
    ("recvmmsg_", "recvmmsg 1 at 3"),
    ("dontwait", "looked 1 at 3"),
    ("rcvtimeo", "recv 1 at 4"),
    ("write_", "read 300000 at 2; written 300000 at 2"),
    ("accept_", "accept 1 at 1; read 1 at 2"),
    ("poll_", "poll 0 at 2; revents 0 at 2; poll 1 at 5; revents 1 at 5"),
    ("ppoll_", "ppoll 0 at 2; ppoll 1 at 5"),
    ("select_", "select 0 at 2; set 0 at 2; select 1 at 5; set 1 at 5"),
    ("pselect_", "pselect 0 at 2; pselect 1 at 5"),
    ("epoll_", "epoll_wait 0 at 2; epoll_pwait 1 at 5"),
    ("epoll_pwait2_", "epoll_pwait2 0 at 2; epoll_pwait2 1 at 5"),
    ("eventfd_", "eventfd 1 at 3"),
    ("timerfd_", "timerfd 1 at 1; timerfd 1 at 3; timerfd 1 at 5; interval 2 at 5"),
    ("condition_", "joined 5 at 1; timedwait 1 at 6"),
    ("threads", "threads 199 at 2"),
    ("semaphore", "sem_wait 0 at 3"),
    ("barrier_", "met 4 at 3"),
    ("cancel", "canceled 1 at 1"),
    ("leader", "last 0 at 2"),
    ("sleeps", "nanosleep 0 at 3; clock_nanosleep 0 at 5; absolute 0 at 9; usleep 0 at 10"),
    ("clocks", "busy 1 at 0; same 1 at 0"),
    ("forks", "child 2 at 1; child 1 at 2; child 0 at 3; none 1 at 3"),
    ("nohang", "looked 1 at 2; status 7 at 2"),
    ("waitid_", "waitid 9 at 2"),
    ("killed", "signal 9 at 1"),
    ("crash", "signal 6 at 0"),
    ("spawns", "spawned 4 at 2; no program 1 at 2; system 5 at 3"),
    ("exec_", "other program"),
    ("daemon_", "parent 0 at 0; daemon 0 at 5"),
    ("signal_", "pause -1 at 2; got 1 at 2"),
    ("interrupted", "EINTR 1 at 2; EINTR 1 at 4"),
    ("restarted", "read 1 at 4; got 1 at 4"),
    ("suspend", "before 0 at 0; sigsuspend -1 at 0; got 1 at 0; ppoll -1 at 0; got 1 at 0"),
    ("sigwait_", "sigwait 1 at 2; sigtimedwait 1 at 5"),
    ("alarm_", "left 9 at 0; alarm 1 at 3; set 1 at 3; itimer 0 at 5"),
    ("timer", "fired 7 at 3; fired 7 at 5; over 0 at 11"),
    ("random_", "getrandom 16 at 0; getentropy 0 at 0; differ 1 at 0"),
    ("yields", "joined 0 at 1"),
    ("deadlock", ""),
    ("unheard", ""),
    ("circle", ""),
    ("bomb", "processes 128 at 0"),
    ("segv", "before 0 at 0"),
    ("kills_itself", "before 0 at 0"),
    ("computes", "computed 0 at 0"),
    ("kill_group", "kill 0 at 1; got 1 at 1; two 1 at 2; kill 0 at 2; got 0 at 2; three 1 at 3"),
    ("robust", "owner died 1 at 2; unlock 0 at 2; owner died 1 at 3; unlock 0 at 3; \
        owner died 1 at 5; unlock 0 at 5"),
    ("robust_pi", "owner died 1 at 2; unlock 0 at 2; owner died 1 at 3; unlock 0 at 3; \
        owner died 1 at 5; unlock 0 at 5"),
    ("pi", "added 20 at 2; timedlock 1 at 5; trylock 1 at 5"),
    ("bits", "none 0 at 1; shared 0 at 1; one 1 at 1; bits 2 at 2; invalid 1 at 2; \
        other value 1 at 2; moved 2 at 2; left 0 at 2; one 1 at 2; \
        op 1 at 2; word 6 at 2; bits 7 at 2"),
    ("requeue_pi", "lock 0 at 1; again 1 at 1; moved 3 at 1; none 0 at 2; unlock 0 at 2; \
        unlock 0 at 3; unlock 0 at 4; unlock 0 at 5; all 3 at 5; free 0 at 5; not held 1 at 5"),
    ("spawns_at_once", "all 12 at 1"),
    ("without_leader", "read 2 at 3"),
    #[cfg(target_arch = "x86_64")]
    ("refused", "io_uring_setup 1 at 0; futex_waitv 1 at 0; futex_wait 1 at 0; x32 1 at 0"),
    ("tcp", "late 0 at 0"),
    ("stops", "stopped 1 at 1; goes on 1 at 2; stopped 1 at 3; goes on 1 at 4; status 3 at 5"),
    ("same_memory", "woken 0 at 1"),
    ("signalfd_", "read 1 at 1; poll 1 at 2; read 1 at 2; epoll 1 at 3"),
    ("remaining", "interrupted 1 at 2; left 6 at 2; interrupted 1 at 5; left 3 at 5; \
        sleep 3 at 6; select 0 at 8; left 0 at 8"),
    ("invalid", "poll 4 at 0; select 3 at 0; sleep 5 at 0; futex 2 at 0; others 2 at 0; \
        timers 6 at 0; huge 0 at 0; left 1 at 0; clocks 2 at 0"),
    ("timed", "sem_timedwait 1 at 2; timedrdlock 1 at 4; timedwrlock 1 at 5; counted 10 at 5; \
        mtx_trylock 0 at 5; again 1 at 5"),
    ("closed", "read 8 at 2; read 3 at 5"),
    ("flock_", "flock 0 at 0; flock 0 at 1; flock 0 at 2; again 0 at 3"),
];

/// Programs that wait in calls that the schedule does not control, or in none: they end, by time.
#[rustfmt::skip]
const BY_TIME: &[(&str, &str, &str)] = &[
    ("fifo", "fifo 3", "a thread slept in openat"),
    ("waitall", "recv 8", "a thread slept in recvfrom"),
    ("lockf_", "lockf 0; unlocked 0", "a thread slept in fcntl"),
    ("splice_", "splice 3", "a thread slept in splice"),
    ("backlog", "joined 3", "a thread slept in connect"),
    ("spinner", "spun 0", "a thread ran for long without a call"),
];

/// The seeds of each program: one for each strategy. `VERBS_SCHEDULE_RUNS` is how many there are.
const SEEDS: u64 = 4;

/// The runs of each seed.
const RUNS: usize = 3;

/// Compiles the programs, into the folder of this test, once.
fn programs() -> PathBuf {
    static COMPILED: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut compiled = COMPILED.lock().expect("no other test has failed here");
    compiled.get_or_insert_with(compile).clone()
}

fn compile() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join("calls");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/calls.c");
    let arguments = ["-Wall", "-Wextra", "-Werror", "-O1", "-pthread", "-o"];
    let compiled = Command::new("cc")
        .args(arguments)
        .arg(&program)
        .arg(source)
        .status();
    let compiled = compiled.expect("a C compiler, as Rust's linker is");
    assert!(compiled.success());
    program
}

/// A program by the schedule of a seed.
fn schedule(seed: u64, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbs-schedule"));
    command
        .arg(seed.to_string())
        .args(words)
        .env_remove("VERBS_SCHEDULE_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a program to its end. Its output ends when no process has it any more: nothing is left.
fn run(seed: u64, words: &[&str]) -> Output {
    let output = schedule(seed, words).output();
    output.expect("it was built")
}

/// Whether this machine allows schedules at all. Prints why if it does not.
fn is_allowed() -> bool {
    let output = run(0, &["true"]);
    let is_allowed = output.status.code() != Some(125);
    if !is_allowed {
        // Not `eprintln`, which the harness keeps for itself.
        let text = format!("skipped: {}", text(&output.stderr));
        io::stderr()
            .write_all(text.as_bytes())
            .expect("a standard error");
    }
    is_allowed
}

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        let text = format!("skipped: there is no {program}\n");
        io::stderr()
            .write_all(text.as_bytes())
            .expect("a standard error");
    }
    found
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a run printed, in one line.
fn printed(output: &Output) -> String {
    text(&output.stdout).trim_end().replace('\n', "; ")
}

/// The last line: the end, the steps and their hash, but not the number of the process.
fn summary(output: &Output) -> String {
    let all = text(&output.stderr);
    let last = all.lines().last().unwrap_or_default();
    last.split_once("), ")
        .map_or(last, |(_, rest)| rest)
        .to_owned()
}

fn seeds() -> u64 {
    let runs = env::var("VERBS_SCHEDULE_RUNS").ok();
    runs.and_then(|runs| runs.parse().ok()).unwrap_or(SEEDS)
}

/// Checks that a program prints the same with each seed, and makes the same steps with the same
/// one.
fn check(words: &[&str], expected: &str) {
    for seed in 0..seeds() {
        let first = run(seed, words);
        let what = format!("{words:?}, seed {seed}: {}", text(&first.stderr));
        assert_eq!(printed(&first), expected, "{what}");
        assert!(!summary(&first).contains("by time"), "{what}");
        for _ in 1..RUNS {
            assert_eq!(summary(&run(seed, words)), summary(&first), "{what}");
        }
    }
}

#[test]
fn each_call_does_what_it_does_without_a_schedule() {
    if !is_allowed() {
        return;
    }
    let program = programs();
    let program = program.to_str().expect("a path in UTF-8");
    let next = AtomicUsize::new(0);
    let check_some = || {
        while let Some((name, expected)) = PROGRAMS.get(next.fetch_add(1, Ordering::Relaxed)) {
            check(&[program, name], expected);
        }
    };
    thread::scope(|scope| {
        scope.spawn(check_some);
        scope.spawn(check_some);
    });
}

#[test]
fn what_the_schedule_does_not_control_ends_too_and_is_named() {
    if !is_allowed() {
        return;
    }
    let program = programs();
    let program = program.to_str().expect("a path in UTF-8");
    // How much TCP takes at a time differs, but no wait is longer for that.
    let output = run(1, &[program, "tcp_bulk"]);
    assert_eq!(printed(&output), "sent 0 at 1", "{}", text(&output.stderr));
    for (name, expected, reason) in BY_TIME {
        let output = run(1, &[program, name]);
        // They may print in another order.
        let all = printed(&output);
        let lines = all.split("; ").map(|line| line.split(" at ").next());
        let mut lines: Vec<_> = lines.map(|line| line.unwrap_or_default()).collect();
        lines.sort_unstable();
        assert_eq!(lines.join("; "), *expected, "{}", text(&output.stderr));
        let by_time = format!("by time: {reason}");
        assert!(summary(&output).contains(&by_time), "{}", summary(&output));
    }
}

#[test]
fn a_deadlock_names_each_thread_and_what_it_waits_for() {
    if !is_allowed() {
        return;
    }
    let program = programs();
    let program = program.to_str().expect("a path in UTF-8");
    let expected: [(&str, &[&str]); 5] = [
        // The timer that it has closed is not a time that it waits for.
        (
            "closed",
            &[
                "thread 0 (calls, process ",
                "for a mutex that it holds itself, since 5",
            ],
        ),
        (
            "deadlock",
            &[
                "thread 0 (calls, process ",
                "for a mutex that it holds itself, since ",
            ],
        ),
        (
            "unheard",
            &["thread 0 (calls, process ", " waits in futex("],
        ),
        (
            "silence",
            &[
                "thread 0 (calls",
                "accept for descriptor 6 (socket",
                "for descriptor 3 (anon_inode:[eventpoll]), descriptor 4 (pipe",
            ],
        ),
        // The first thread could go on.
        (
            "circle",
            &[
                "thread 1 (calls",
                "thread 2 (calls",
                "in futex for a mutex that thread 2 holds",
                "in futex for a mutex that thread 1 holds",
            ],
        ),
    ];
    for (name, parts) in expected {
        let output = run(1, &[program, name]);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(124), "{errors}");
        for part in parts {
            assert!(errors.contains(part), "{name}: {errors}");
        }
        assert_eq!(errors.contains("thread 0"), name != "circle", "{errors}");
    }
}

#[test]
fn the_status_is_that_of_the_program() {
    if !is_allowed() {
        return;
    }
    let program = programs();
    let program = program.to_str().expect("a path in UTF-8");
    let status = |words: &[&str]| run(1, words).status.code();
    assert_eq!(status(&[program]), Some(2));
    assert_eq!(status(&[program, "segv"]), Some(128 + 11));
    assert_eq!(status(&[program, "kills_itself"]), Some(128 + 9));
    assert_eq!(status(&["/no/such/program"]), Some(127));
    assert_eq!(status(&["/"]), Some(126));
    assert_eq!(status(&["sh", "-c", "exit 7"]), Some(7));
}

#[test]
fn shells_and_python_run_by_a_schedule() {
    if !is_allowed() {
        return;
    }
    let script = "seq 100000 | dd bs=32k 2> /dev/null | sort -rn | tail -n 1; \
                  (sleep 5; echo late) & sleep 1; echo first; wait; \
                  yes | head -n 1; timeout 5 sleep 100; echo $?";
    check(&["sh", "-c", script], "1; first; late; y; 124");
    let script = "
import threading, multiprocessing, queue, time
def work(q, n):
    time.sleep(n)
    q.put(n)
if __name__ == '__main__':
    kinds = [(queue.Queue(), threading.Thread)]
    kinds += [(multiprocessing.Queue(), multiprocessing.Process)]
    for q, kind in kinds:
        all = [kind(target=work, args=(q, 3 - n)) for n in range(3)]
        [one.start() for one in all]
        print([q.get() for _ in all])
        [one.join() for one in all]
";
    if has("python3") {
        for seed in 0..seeds() {
            let output = run(seed, &["python3", "-c", script]);
            let what = format!("seed {seed}: {}", text(&output.stderr));
            assert_eq!(printed(&output), "[1, 2, 3]; [1, 2, 3]", "{what}");
        }
    }
}

#[test]
fn nothing_is_left_when_the_supervisor_is_killed() {
    if !is_allowed() {
        return;
    }
    let program = programs();
    let program = program.to_str().expect("a path in UTF-8");
    let mut command = schedule(1, &[program, "outside"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it was built");
    let output = child.stdout.take().expect("a pipe");
    let mut lines = BufReader::new(output).lines();
    let numbers: Vec<_> = lines
        .by_ref()
        .take(4)
        .collect::<io::Result<_>>()
        .expect("the number of each process");
    let does_live = |pid: &String| fs::exists(format!("/proc/{pid}")).expect("/proc");
    assert!(numbers.iter().all(does_live), "{numbers:?}");
    child.kill().expect("it lives");
    child.wait().expect("it is a child");
    // The guardian is the last that has the output.
    assert!(lines.next().is_none());
    assert!(!numbers.iter().any(does_live), "{numbers:?}");
}
