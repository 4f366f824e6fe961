//! `verbsim exec`: runs a program on simulated devices.

#[cfg(target_os = "linux")]
mod descendants;
#[cfg(target_os = "linux")]
mod ending;
#[cfg(target_os = "linux")]
pub(crate) mod library;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod parent;
#[cfg(target_os = "linux")]
mod preload;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod schedule;
#[cfg(target_os = "linux")]
mod start;
#[cfg(target_os = "linux")]
mod verdict;

use std::ffi::{OsStr, OsString};
use std::path::{self, PathBuf};
use std::time::Duration;

use clap::{Arg, ArgMatches, FromArgMatches, ValueEnum, value_parser};
use verbs_settings::{Kind, SETTINGS, Setting};

#[cfg(target_os = "linux")]
pub(crate) use start::environment;

#[derive(Clone, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,
    /// Kill the program and its children after this time, such as `10s`, `500ms` or `2m`: by
    /// SIGTERM, and 5 seconds later by SIGKILL
    #[arg(long, value_name = "TIME", value_parser = time)]
    timeout: Option<Duration>,
    /// Wait for all processes that the program started, such as daemons. Ctrl-C and SIGTERM end the
    /// wait
    #[arg(long)]
    wait: bool,
    /// Exit with status 99 if the diagnosis has a finding of this level or worse. Implies
    /// --diagnose
    #[arg(long, value_name = "LEVEL")]
    fail_on: Option<FailOn>,
    /// Accept a program that uses no device, or that opens devices and creates no queue pair
    #[arg(long)]
    allow_unused: bool,
    /// The drop-in library [default: the one that came with verbsim]
    #[arg(long, value_name = "FILE", env = "VERBSIM_LIBRARY")]
    library: Option<PathBuf>,
    /// Do not set LD_PRELOAD: the program gets the drop-in library only where it looks for
    /// libibverbs.so.1 or librdmacm.so.1 by name, and finds no device files below
    /// /sys/class/infiniband and /dev/infiniband
    #[arg(long)]
    no_preload: bool,
    /// Ignored, for older scripts: the preloaded library always shows the device files
    #[arg(long, hide = true)]
    uverbs: bool,
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    schedule: schedule::Options,
    /// The program and its arguments
    #[arg(
        value_name = "PROGRAM",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    program: Vec<OsString>,
}

/// From which level on a finding fails the run.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// Any finding
    Warning,
    /// Definite mistakes
    Error,
}

impl Args {
    /// An option that says something of the diagnosis alone, and does not ask for one.
    #[cfg(target_os = "linux")]
    fn about_diagnosis(&self) -> Option<&'static str> {
        let Options(settings) = &self.options;
        let mut names = settings.iter().map(|(setting, _)| setting.name);
        let setting = names.find(|name| ["diagnose-format", "suppressions"].contains(name));
        setting.or_else(|| self.allow_unused.then_some("allow-unused"))
    }
}

/// The settings of the devices that stand on the command line.
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "`exec` runs programs on Linux only")
)]
#[derive(Clone)]
struct Options(Vec<(&'static Setting, OsString)>);

impl clap::Args for Options {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(SETTINGS.iter().map(|setting| {
            let option = Arg::new(setting.name)
                .long(setting.name)
                .value_name(setting.value)
                .value_parser(value_parser!(OsString))
                .help(setting.help);
            match setting.kind {
                Kind::Output => option
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("-"),
                Kind::Switch => option
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("true"),
                _ => option,
            }
        }))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Options {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |setting: &'static Setting| {
            let value: &OsString = matches.get_one(setting.name)?;
            let value = match setting.kind {
                Kind::File(words) if !words.iter().any(|word| value == word) => absolute(value),
                Kind::Output if value != "-" => absolute(value),
                _ => value.clone(),
            };
            Some((setting, value))
        };
        Ok(Self(SETTINGS.iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The program may go elsewhere before it is read.
fn absolute(path: &OsStr) -> OsString {
    path::absolute(path).map_or_else(|_| path.to_owned(), PathBuf::into_os_string)
}

/// A number of seconds, or with a unit.
fn time(text: &str) -> Result<Duration, String> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let parsed = units
        .iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let (number, seconds) = parsed.unwrap_or((text, &1.0));
    let number = number.parse::<f64>().ok().filter(|number| *number > 0.0);
    number
        .and_then(|number| Duration::try_from_secs_f64(number * seconds).ok())
        .ok_or_else(|| {
            "a time is a number above 0 of seconds, or has a unit: 10s, 500ms, 2m".to_owned()
        })
}

/// Becomes the program, runs it, or runs it under many schedules.
#[cfg(target_os = "linux")]
pub(crate) fn execute(args: &Args) -> Result<(), crate::output::Stop> {
    match &args.schedule.explore {
        Some(seeds) => schedule::explore(args, seeds.clone()),
        None => start::execute(args),
    }
}

/// There is no drop-in.
#[cfg(not(target_os = "linux"))]
pub(crate) fn execute(_: &Args) -> Result<(), crate::output::Stop> {
    Err(crate::output::Stop::usage(
        "the drop-in for libibverbs is for Linux",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_of_seconds_unless_it_has_a_unit() {
        for (text, millis) in [
            ("10", 10_000),
            ("0.5", 500),
            ("10s", 10_000),
            ("500ms", 500),
            ("2m", 120_000),
        ] {
            assert_eq!(time(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "0", "-1", "s", "1d", "inf", "NaN", "1e300h"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
