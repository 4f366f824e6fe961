//! Starting a program with the drop-in in the place of the system's libibverbs.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use nix::libc;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use verbs_settings::{Config, Setting, Variables, trees};
use verbs_sim::Pcap;

use super::ending::{self, Judge};
use super::parent::End;
use super::report::Report;
use super::schedule::{Outcome, Scheduled};
use super::verdict::{self, Facts, Process, Verdict};
use super::{Args, Options, library, parent, preload};
use crate::output::Stop;

/// Becomes the program, or stays as its parent where there is something to do at its end.
pub(super) fn execute(args: &Args) -> Result<(), Stop> {
    match args.schedule.schedule {
        Some(seed) => Err(scheduled(args, seed).0),
        None => execute_by(args, None),
    }
}

/// Runs the program under the schedule of a seed. Returns how `exec` is to end, and what is known
/// of the run if there was one.
pub(super) fn scheduled(args: &Args, seed: u64) -> (Stop, Option<Outcome>) {
    let schedule = Scheduled::new(seed, &args.schedule, args.timeout);
    let stop = match execute_by(args, Some(&schedule)) {
        Ok(()) => Stop::usage("the run has no end"),
        Err(stop) => stop,
    };
    (stop, schedule.outcome())
}

fn execute_by(args: &Args, schedule: Option<&Scheduled<'_>>) -> Result<(), Stop> {
    let Args {
        options: Options(options),
        timeout,
        wait,
        ..
    } = args;
    let mut variables = Variables::of_process();
    for (setting, value) in options {
        variables.set(setting, value);
    }
    let mut config = Config::read(&variables).map_err(Stop::Usage)?;
    if let Some(Scheduled { seed, .. }) = schedule
        && config.seed().is_none()
    {
        variables.set(Setting::named("seed"), seed.to_string());
        config = Config::read(&variables).map_err(Stop::Usage)?;
    }
    let asks = args.fail_on.is_some() || config.memory();
    if asks && config.diagnose().is_none() {
        variables.set(Setting::named("diagnose"), "-");
        config = Config::read(&variables).map_err(Stop::Usage)?;
    }
    if config.diagnose().is_none()
        && let Some(name) = args.about_diagnosis()
    {
        return Err(Stop::usage(format!(
            "--{name} is for a diagnosis, and nothing asks for one: add --diagnose or --fail-on"
        )));
    }
    if !config.fabric().is_default() {
        config.fabric().check().map_err(Stop::Usage)?;
    }
    let library = library::directory(args.library.as_deref())?;
    // The processes of the program append to these files.
    for (setting, path) in options {
        let emptied = match setting.name {
            "trace" | "diagnose" if path != "-" => fs::write(path, ""),
            "pcap" => fs::write(path, "").and_then(|()| Pcap::prepare(path.as_ref())),
            _ => Ok(()),
        };
        emptied.map_err(|error| Stop::usage(format!("{}: {error}", path.display())))?;
    }
    let [program, arguments @ ..] = &args.program[..] else {
        return Err(Stop::usage("no program is named"));
    };
    let report = match config.diagnose() {
        Some(to) if config.diagnose_format().is_document() => {
            let words = args.program.iter().map(|word| word.display().to_string());
            let report = Report::new(config.diagnose_format(), words.collect(), to)?;
            variables.set(Setting::named("diagnose"), report.findings());
            variables.set(Setting::named("diagnose-format"), "json");
            config = Config::read(&variables).map_err(Stop::Usage)?;
            Some(report)
        }
        _ => None,
    };
    // A program that hangs says at its end what it waits for.
    let waits = match schedule {
        Some(_) if config.diagnose().is_none() => {
            let waits = Waits::new()?;
            variables.set(Setting::named("diagnose"), &waits.0);
            Some(waits)
        }
        _ => None,
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(variables.iter())
        .envs(environment(&library, !args.no_preload));
    trees::sweep();
    let judge = config.diagnose().map(|diagnosis| Judge {
        diagnosis,
        format: config.diagnose_format(),
        fail_on: args.fail_on,
        allow_unused: args.allow_unused,
        report,
    });
    let judged = match &judge {
        Some(judge) => {
            let verdict = Verdict::new();
            let refused = |error| Stop::usage(format!("the record of the run: {error}"));
            Some((judge, verdict.map_err(refused)?))
        }
        None => None,
    };
    let error = if judged.is_none() && timeout.is_none() && !wait && schedule.is_none() {
        command.exec()
    } else {
        match stay(&mut command, *timeout, *wait, schedule, judged) {
            Ok(stop) => {
                if schedule.is_some_and(Scheduled::is_stuck)
                    && let Some(waits) = &waits
                {
                    ending::write("-", &waits.read());
                }
                return Err(stop);
            }
            Err(error) => error,
        }
    };
    let why = format!("{}: {error}", Path::new(program).display());
    if let Some(judge) = &judge {
        judge.not_started(&why);
    }
    Err(Stop::Status {
        // As shells have it.
        status: if error.kind() == io::ErrorKind::NotFound {
            127
        } else {
            126
        },
        message: Some(why),
    })
}

/// A file for the diagnosis of a program that was not asked for one. It is removed with this value.
struct Waits(PathBuf);

impl Waits {
    fn new() -> Result<Self, Stop> {
        let own = trees::own();
        let path = own.join("diagnosis");
        let made = trees::make(&own).and_then(|()| fs::write(&path, ""));
        made.map_err(|error| Stop::usage(format!("{}: {error}", path.display())))?;
        Ok(Self(path))
    }

    fn read(&self) -> String {
        fs::read_to_string(&self.0).unwrap_or_default()
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        trees::remove(&trees::own());
    }
}

/// The variables by which the loader finds the drop-in library, which has this directory.
pub(crate) fn environment(library: &Path, preloads: bool) -> Vec<(&'static str, OsString)> {
    let mut variables = vec![("LD_LIBRARY_PATH", before(library, "LD_LIBRARY_PATH"))];
    if preloads {
        variables.extend(preload::variables(library));
    }
    variables
}

/// Puts a directory before those of a variable.
fn before(dir: &Path, variable: &str) -> OsString {
    let mut all = dir.as_os_str().to_owned();
    if let Some(others) = env::var_os(variable).filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

/// Runs the program, and judges it at its end if it is diagnosed.
fn stay(
    command: &mut Command,
    timeout: Option<Duration>,
    waits: bool,
    schedule: Option<&Scheduled<'_>>,
    judged: Option<(&Judge<'_>, Verdict)>,
) -> io::Result<Stop> {
    let run = |command: &mut Command| match schedule {
        Some(schedule) => schedule.run(command),
        None => parent::run(command, timeout, waits),
    };
    let Some((judge, verdict)) = judged else {
        let ended = run(command);
        trees::sweep();
        return Ok(ending::of_program(ended?.how));
    };
    command.env(verdict::VARIABLE, verdict.address()?);
    let ended = run(command);
    trees::sweep();
    let ended = ended?;
    let facts = settled(&verdict, ended.how)?;
    Ok(judge.judge(ended, &facts))
}

/// What the processes say at last. A signal such as that of Ctrl-C reaches them all, and the
/// program may have ended before a process that it has started is diagnosed.
fn settled(verdict: &Verdict, end: End) -> io::Result<Facts> {
    const PATIENCE: Duration = Duration::from_secs(5);
    const STEP: Duration = Duration::from_millis(10);
    let until = Instant::now() + PATIENCE;
    let may_come = matches!(
        end,
        End::Signal(libc::SIGINT | libc::SIGTERM | libc::SIGALRM)
    );
    loop {
        let facts = verdict.facts()?;
        let lives = |process: &Process| kill(Pid::from_raw(process.id), None).is_ok();
        let is_settled = !facts.undiagnosed().any(lives);
        if !may_come || is_settled || Instant::now() >= until {
            return Ok(facts);
        }
        thread::sleep(STEP);
    }
}
