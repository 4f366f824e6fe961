//! One run.

use std::cell::OnceCell;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::time::Duration;
use std::{env, fs, io};

use nix::sys::wait::WaitStatus;
use verbs_schedule::{End as Why, Schedule, isolate};

use super::Options;
use super::outcome::{self, Outcome};
use crate::exec::parent::{End, Ended};
use crate::output::note;
use crate::which::which;

/// A run of a program under the schedule of a seed.
pub(in crate::exec) struct Scheduled<'a> {
    pub(in crate::exec) seed: u64,
    options: &'a Options,
    timeout: Option<Duration>,
    /// What is known of the run once it has ended.
    outcome: OnceCell<Outcome>,
}

impl<'a> Scheduled<'a> {
    pub(in crate::exec) fn new(seed: u64, options: &'a Options, timeout: Option<Duration>) -> Self {
        Self {
            seed,
            options,
            timeout,
            outcome: OnceCell::new(),
        }
    }

    /// Whether the program had to be ended.
    pub(in crate::exec) fn is_stuck(&self) -> bool {
        self.outcome.get().is_some_and(Outcome::is_stuck)
    }

    /// What is known of the run, unless it could not begin.
    pub(in crate::exec) fn outcome(self) -> Option<Outcome> {
        self.outcome.into_inner()
    }

    /// Runs the program.
    ///
    /// # Errors
    /// The directory cannot be copied, or the kernel refuses what a schedule needs.
    pub(in crate::exec) fn run(&self, command: &mut Command) -> io::Result<Ended> {
        let program = command.get_program();
        if which(program).is_none() {
            return Err(io::Error::from_raw_os_error(nix::libc::ENOENT));
        }
        let copy = self.options.workdir.as_deref().map(Copy::of).transpose()?;
        if let Some(Copy(dir)) = &copy {
            env::set_current_dir(dir)?;
        }
        let isolated = (!self.options.host_network).then(isolate).transpose();
        let mut schedule = Schedule::new(self.seed).background(outcome::OWN);
        if let Some(changes) = &self.options.changes {
            schedule = schedule.changes(changes.iter().copied());
        }
        if let Some(limit) = self.options.virtual_timeout {
            schedule = schedule.limit(limit);
        }
        if let Some(timeout) = self.timeout {
            schedule = schedule.timeout(timeout);
        }
        let run = schedule
            .run(command)
            .map_err(|error| io::Error::new(error.kind(), format!("a schedule: {error}")))?;
        let mut outcome = Outcome::of(&run, matches!(isolated, Ok(Some(()))));
        let mut how = how(&run.end, run.status);
        if let Some(check) = &self.options.check {
            let judged = Command::new("sh").args(["-c", check]).status()?;
            if !judged.success() {
                outcome.check = Some(judged.to_string());
                how = match how {
                    End::Status(0) => End::Status(1),
                    other => other,
                };
            }
        }
        for line in outcome.lines() {
            note(line);
        }
        if let Err(error) = isolated {
            note(format_args!(
                "verbsim: the run shared the network of this machine ({error}): its addresses and ports may differ in another run"
            ));
        }
        let program = match run.status {
            Some(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)) => pid.as_raw(),
            _ => 0,
        };
        // It is the only run of this value.
        let _ = self.outcome.set(outcome);
        Ok(Ended { how, program })
    }
}

fn how(end: &Why, status: Option<WaitStatus>) -> End {
    match (end, status) {
        (Why::Deadlock(_), _) => End::Deadlock,
        (Why::TimeLimit(_), _) => End::OutOfTime,
        (Why::TimedOut(_), _) => End::TimedOut,
        (Why::Interrupted, _) => End::Signal(nix::libc::SIGINT),
        (Why::Ended, Some(WaitStatus::Exited(_, status))) => End::Status(status as u8),
        (Why::Ended, Some(WaitStatus::Signaled(_, signal, _))) => End::Signal(signal as i32),
        // Its status was not for this process to take.
        (Why::Ended, _) => End::Signal(nix::libc::SIGKILL),
    }
}

/// A copy of a directory, which is removed with this value.
struct Copy(PathBuf);

impl Copy {
    fn of(dir: &Path) -> io::Result<Self> {
        // Names of the same length: the environment of the program has it.
        let name = format!("verbsim-run-{:010}", process::id());
        let path = env::temp_dir().join(name);
        // It may be of an earlier process of this number, which a signal has ended.
        let _ = fs::remove_dir_all(&path);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let copy = Self(path);
        let copied = Command::new("cp")
            .args(["-a", "--"])
            .args([&dir.join("."), &copy.0])
            .status()?;
        if copied.success() {
            Ok(copy)
        } else {
            let text = format!("{} cannot be copied", dir.display());
            Err(io::Error::other(text))
        }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
