//! What judges mutants: programs with named checks, such as the suite with its scenarios.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;

/// A program that runs selected checks.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) command: Vec<String>,
    pub(crate) dir: PathBuf,
    /// The text before the name of each check.
    pub(crate) before_each: Option<&'static str>,
    /// Whether it takes the names of checks; otherwise it has one check.
    pub(crate) takes_names: bool,
}

/// One of its checks.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub(crate) program: usize,
    pub(crate) name: String,
    /// How long it takes, if nothing is wrong.
    pub(crate) takes: Duration,
    /// The mutants it reaches.
    pub(crate) reaches: BTreeSet<u32>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Good,
    /// What failed, if the program says it; else how it ended.
    Bad(String),
}

impl Program {
    /// Runs checks, which take `takes` if nothing is wrong, with this variable of the environment.
    /// Their output goes to `out`.
    pub(crate) fn run(
        &self,
        names: &[&str],
        variable: (&str, &str),
        takes: Duration,
        out: &Path,
    ) -> Result<End> {
        // A mutant may allocate all memory, loop forever, or wait forever.
        let (busy, limit) = (
            Duration::from_secs(5) + takes * 5,
            Duration::from_secs(60) + takes * 10,
        );
        let script = format!(
            "ulimit -v 8000000; ulimit -t {}; exec \"$@\"",
            busy.as_secs()
        );
        let names = names.iter().filter(|_| self.takes_names);
        let names = names.flat_map(|name| self.before_each.into_iter().chain([*name]));
        let mut child = Command::new("sh")
            .args(["-c", &script, "sh"])
            .args(&self.command)
            .args(names)
            .current_dir(&self.dir)
            .env(variable.0, variable.1)
            .stdin(Stdio::null())
            .stdout(File::create(out)?)
            .stderr(Stdio::null())
            .spawn()?;
        let start = Instant::now();
        let mut at_work = (Instant::now(), 0);
        let mut nap = Duration::from_micros(500);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            let ticks = ticks(child.id());
            if ticks != at_work.1 {
                at_work = (Instant::now(), ticks);
            }
            if start.elapsed() > limit || at_work.0.elapsed() > STILL {
                child.kill()?;
                child.wait()?;
                return Ok(End::Bad("no end".to_owned()));
            }
            thread::sleep(nap);
            nap = (nap * 5 / 4).min(Duration::from_millis(20));
        };
        if status.success() {
            Ok(End::Good)
        } else {
            Ok(End::Bad(what_failed(out, status)))
        }
    }
}

/// A process that has done nothing for this time waits without result.
const STILL: Duration = Duration::from_secs(6);

/// How much of the processor a process has had.
fn ticks(process: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let behind_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields = behind_name.split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Runs each check alone, to see how long it takes and what it reaches. A check that fails without
/// mutants, or takes too long to be asked often, is left out, and said.
pub(crate) fn measure(
    programs: &[Program],
    names: Vec<(usize, String)>,
    longest: Duration,
    dir: &Path,
    jobs: usize,
) -> Result<Vec<Check>> {
    let next = AtomicUsize::new(0);
    let worker = |worker: usize| -> Result<Vec<Check>, String> {
        let (out, reached) = (
            dir.join(format!("{worker}.out")),
            dir.join(format!("{worker}.reached")),
        );
        let mut checks = Vec::new();
        while let Some((program, name)) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            let _ = fs::remove_file(&reached);
            let start = Instant::now();
            let variable = (
                mutant_switch::REACHED,
                reached.to_str().expect("a path of ours"),
            );
            let end = programs[*program].run(&[name], variable, longest, &out);
            let takes = start.elapsed();
            let of = &programs[*program].name;
            match end.map_err(|error| error.to_string())? {
                End::Bad(how) => eprintln!("left out: {of} {name} fails without mutants: {how}"),
                End::Good if takes > longest => {
                    eprintln!("left out: {of} {name} takes {} ms", takes.as_millis());
                }
                End::Good => checks.push(Check {
                    program: *program,
                    name: name.clone(),
                    takes,
                    reaches: numbers(&reached),
                }),
            }
        }
        Ok(checks)
    };
    let mut all = Vec::new();
    for checks in in_parallel(jobs, worker) {
        all.extend(checks?);
    }
    all.sort_by(|a, b| (a.program, a.takes, &a.name).cmp(&(b.program, b.takes, &b.name)));
    Ok(all)
}

/// What each of some workers makes.
pub(crate) fn in_parallel<T: Send>(jobs: usize, worker: impl Fn(usize) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let worker = &worker;
        let all: Vec<_> = (0..jobs)
            .map(|job| scope.spawn(move || worker(job)))
            .collect();
        let join = |job: thread::ScopedJoinHandle<'_, T>| job.join().expect("it does not panic");
        all.into_iter().map(join).collect()
    })
}

fn numbers(path: &Path) -> BTreeSet<u32> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// The first check that the output says has failed.
fn what_failed(out: &Path, status: ExitStatus) -> String {
    let text = fs::read(out).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let of_suite = |line: &str| Some(line.split_once(" failed: ")?.0.to_owned());
    let of_tests = |line: &str| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some(name.to_owned())
    };
    let mut failed = text
        .lines()
        .filter_map(|line| of_suite(line).or_else(|| of_tests(line)));
    failed.next().unwrap_or_else(|| status.to_string())
}
