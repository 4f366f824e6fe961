//! The program `verbsim`: runs the conformance suite against a device, and shows what it checks.
//!
//! Thin: each command is a file; the library `verbsim` says what the suite runs against.
#![deny(
    clippy::print_stderr,
    reason = "`eprintln!` panics if the standard error is closed or full: `output::note` does not"
)]

mod about;
mod board;
mod capture;
mod classes;
mod compare;
mod deviations;
mod devices;
mod doctor;
mod exec;
mod explain;
mod explore;
mod help;
mod interrupt;
mod list;
mod output;
mod progress;
mod replay;
mod results;
mod rules;
mod run;
mod seeds;
mod style;
mod subject;
mod table;
#[cfg(target_os = "linux")]
mod which;
mod words;

use std::env;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// A software RDMA device with exact verbs semantics, and a conformance suite for any device.
///
/// Without arguments: run the suite against the simulator.
#[derive(Parser)]
#[command(name = "verbsim", version = env!("VERSION_AND_COMMIT"), after_help = EXIT_STATUS, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run scenarios against a device
    #[command(after_help = EXIT_STATUS)]
    Run(run::Args),
    /// Run random programs or scenarios under many seeds and faults, until one fails
    #[command(after_help = EXIT_STATUS_OF_SEARCH)]
    Explore(explore::Args),
    /// Repeat a failure that `explore` found: the same trace, byte for byte
    #[command(after_help = EXIT_STATUS_OF_SEARCH)]
    Replay(replay::Args),
    /// Run random programs on a device and on the simulator, and report where they differ
    #[command(after_help = EXIT_STATUS_OF_COMPARE)]
    Compare(compare::Args),
    /// Draft records of the failures in a report, for `run --deviations`
    Deviations(deviations::Args),
    /// List the scenarios
    List(list::Args),
    /// List the rules, each with its scenarios or the reason for having none
    Rules(rules::Args),
    /// List the classes of mistakes that `exec --diagnose` reports
    Classes(classes::Args),
    /// List devices with their ports, capabilities and behavior
    Devices(devices::Args),
    /// Explain a rule, a class of mistakes, a group of these, or a scenario
    Explain(explain::Args),
    /// Run a program that uses libibverbs on simulated devices
    #[command(after_help = EXIT_STATUS_OF_EXEC)]
    Exec(exec::Args),
    /// Check whether `exec` can give a program simulated devices, and report any obstacles
    #[command(after_help = EXIT_STATUS_OF_DOCTOR)]
    Doctor(doctor::Args),
    /// Show the help of a command, or a document: faults, json, modes, ...
    Help(help::Args),
    /// Write completions for a shell, or man pages
    #[command(alias = "completions")]
    Generate(help::Generate),
}

fn main() -> ExitCode {
    let cli = if env::args_os().len() < 2 {
        Cli::parse_from(["verbsim", "run"])
    } else {
        Cli::parse()
    };
    let result = match cli.command {
        Command::Run(args) => run::execute(&args),
        Command::Explore(args) => explore::execute(&args),
        Command::Replay(args) => replay::execute(&args),
        Command::Compare(args) => compare::execute(&args),
        Command::Deviations(args) => deviations::execute(&args),
        Command::List(args) => list::execute(&args),
        Command::Rules(args) => rules::execute(&args),
        Command::Classes(args) => classes::execute(&args),
        Command::Devices(args) => devices::execute(&args),
        Command::Explain(args) => explain::execute(&args),
        Command::Exec(args) => exec::execute(&args),
        Command::Doctor(args) => doctor::execute(&args),
        Command::Help(args) => help::execute(&args, Cli::command()),
        Command::Generate(args) => help::generate(&args, Cli::command()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(stop) => {
            if let Some(message) = stop.message() {
                output::note(message);
            }
            ExitCode::from(stop.status())
        }
    }
}

const EXIT_STATUS: &str = "\
Exit status:
  0  at least one scenario ran, none failed, none passed unexpectedly
  1  a scenario failed or passed unexpectedly, the simulator lacks more than its profile says, or every
     scenario was skipped
  2  the command line is wrong, or a file could not be read or written
  130  Ctrl-C ended the run; it showed what it had done. A second Ctrl-C does not wait for the scenario
       that runs";

const EXIT_STATUS_OF_EXEC: &str = "\
Exit status:
  the program's, if it exited
  128 + N  signal N ended the program; 134 also with --halt-on-error
  99   the program exited, and --fail-on matched a finding; or it exited with 0, --diagnose was given,
       and no process used a device (--allow-unused permits that); or a process could not write its
       diagnosis
  124  the program ran longer than --timeout or --virtual-timeout, or could not go on under its
       schedule, and was killed
  1    --explore found a run that failed, or --check rejected the run
  126  the program cannot be run
  127  the program does not exist
  2    an option, a variable or the settings file is wrong, or the library is missing; the program was
       not started";

const EXIT_STATUS_OF_COMPARE: &str = "\
Exit status:
  0  each difference is a known one
  1  a program differs in an unknown way
  2  the command line is wrong, or the device cannot be used";

const EXIT_STATUS_OF_DOCTOR: &str = "\
Exit status:
  0  no obstacle
  1  an obstacle: a line that begins with `problem` names it and the remedy
  2  the command line is wrong, or there is no drop-in library";

const EXIT_STATUS_OF_SEARCH: &str = "\
Exit status:
  0  nothing failed
  1  something failed
  2  the command line is wrong, or a file could not be read or written
  130  Ctrl-C ended the run; it showed what it had done";
