//! `verbs-schedule SEED PROGRAM ARGS...`: runs a program by the schedule of a seed.
//!
//! The status is that of the program, 128 and the number of the signal that ended it, 124 if it had
//! to be ended, and 125 if it cannot be run by a schedule.

use std::process::{Command, ExitCode};

use verbs_schedule::{End, Run, Schedule, WaitStatus};

/// The program had to be ended.
const STUCK: u8 = 124;

/// There is no run.
const FAILED: u8 = 125;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let seed = args.next().and_then(|seed| seed.to_str()?.parse().ok());
    let (Some(seed), Some(program)) = (seed, args.next()) else {
        eprintln!("usage: verbs-schedule SEED PROGRAM ARGS...");
        return FAILED.into();
    };
    let mut command = Command::new(program);
    command.args(args);
    match Schedule::new(seed).run(&command) {
        Ok(run) => say(&run),
        Err(error) => {
            eprintln!("verbs-schedule: this machine or container allows no schedule: {error}");
            FAILED.into()
        }
    }
}

/// Says how a run ended. Returns the status.
fn say(run: &Run) -> ExitCode {
    let is_stuck = match &run.end {
        End::Ended | End::Interrupted => false,
        End::Deadlock(stuck) | End::TimeLimit(stuck) | End::TimedOut(stuck) => {
            for thread in stuck {
                eprintln!("{thread}");
            }
            true
        }
    };
    let by_time: String = run
        .by_time
        .iter()
        .map(|why| format!(", by time: {why}"))
        .collect();
    eprintln!(
        "{:?}, {} steps, hash {:016x}, {:?}{by_time}",
        run.status, run.steps.count, run.steps.hash, run.elapsed,
    );
    match run.status {
        _ if is_stuck => STUCK.into(),
        Some(WaitStatus::Exited(_, status)) => (status as u8).into(),
        Some(WaitStatus::Signaled(_, signal, _)) => (128 + signal as u8).into(),
        _ => FAILED.into(),
    }
}
