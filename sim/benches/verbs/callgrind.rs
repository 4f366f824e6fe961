//! Instructions and cache misses of an operation, counted by callgrind, which runs this program.

use std::process::Command;

/// The argument that makes this program run one benchmark, to be counted.
const COUNT: &str = "--count";
/// The number of counted messages. The same number is sent before, uncounted.
const MESSAGES: u32 = 4_000;
/// The simulated caches: bytes, ways and bytes of a line.
const CACHES: [&str; 4] = [
    "--cache-sim=yes",
    "--I1=32768,8,64",
    "--D1=32768,8,64",
    "--LL=33554432,16,64",
];

/// The benchmark to run, if this is the program that is counted.
pub(crate) fn wanted() -> Option<String> {
    let mut args = std::env::args().skip(1);
    (args.next()? == COUNT).then(|| args.next().expect("a name follows"))
}

/// Runs an operation with `messages` messages for callgrind, and ends the process.
pub(crate) fn run(messages: u32, mut run: impl FnMut()) -> ! {
    let rounds = MESSAGES / messages;
    (0..rounds).for_each(|_| run());
    counted(rounds, run);
    std::process::exit(0)
}

/// Callgrind counts during this function, which it knows by name.
#[inline(never)]
fn counted(rounds: u32, mut run: impl FnMut()) {
    (0..rounds).for_each(|_| run());
}

/// Whether valgrind is installed.
pub(crate) fn is_there() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok()
}

/// The instructions of one message of the benchmark with this name. None without valgrind.
pub(crate) fn instructions(name: &str) -> Option<f64> {
    count(name, "Collected :", &[])
}

/// The misses of the last-level cache.
pub(crate) fn misses(name: &str) -> Option<f64> {
    count(name, "LL misses:", &CACHES)
}

/// The first number after `label` in the report.
fn count(name: &str, label: &str, options: &[&str]) -> Option<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*callgrind*counted*")
        .args(options)
        .arg(std::env::current_exe().ok()?)
        .args([COUNT, name])
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr);
    let (_, counted) = report.split_once(label)?;
    let number = counted.split_whitespace().next()?.replace(',', "");
    Some(number.parse::<f64>().ok()? / f64::from(MESSAGES))
}
