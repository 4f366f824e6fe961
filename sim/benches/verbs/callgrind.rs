//! Instructions of an operation, counted by callgrind: this program runs itself below it.

use std::process::Command;

/// The argument by which this program is told to run one benchmark, to be counted.
const COUNT: &str = "--count";
/// So many rounds are counted, after as many that are not.
const ROUNDS: u32 = 4_000;

/// The benchmark that is to be run, if this is the program that is counted.
pub(crate) fn wanted() -> Option<String> {
    let mut args = std::env::args().skip(1);
    (args.next()? == COUNT).then(|| args.next().expect("a name follows"))
}

/// What callgrind is here to count; the process is over then.
pub(crate) fn run(mut run: impl FnMut()) -> ! {
    (0..ROUNDS).for_each(|_| run());
    counted(run);
    std::process::exit(0)
}

/// Callgrind counts while it is in here: it knows the function by its name.
#[inline(never)]
fn counted(mut run: impl FnMut()) {
    (0..ROUNDS).for_each(|_| run());
}

/// Whether this machine has valgrind.
pub(crate) fn is_there() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok()
}

/// Instructions of one round of the benchmark of this name. None without valgrind.
pub(crate) fn instructions(name: &str) -> Option<f64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*callgrind*counted*")
        .arg(std::env::current_exe().ok()?)
        .args([COUNT, name])
        .output()
        .ok()?;
    let report = String::from_utf8_lossy(&output.stderr);
    // ==123== Collected : 456
    let (_, counted) = report.split_once("Collected :")?;
    let total: f64 = counted.lines().next()?.trim().parse().ok()?;
    Some(total / f64::from(ROUNDS))
}
