//! `verbsim exec`: runs a program on simulated devices.

#[cfg(target_os = "linux")]
mod library;
#[cfg(target_os = "linux")]
mod parent;
#[cfg(target_os = "linux")]
mod start;

use std::ffi::{OsStr, OsString};
use std::path::{self, PathBuf};
use std::time::Duration;

use clap::{Arg, ArgMatches, FromArgMatches, value_parser};
use verbs_settings::{Kind, SETTINGS, Setting};

#[cfg(target_os = "linux")]
pub(crate) use start::execute;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,
    /// End the program if it takes longer: by SIGTERM, and 5 seconds later by SIGKILL
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// The drop-in library [default: the one that this program came with]
    #[arg(long, value_name = "FILE", env = "VERBSIM_LIBRARY")]
    library: Option<PathBuf>,
    /// The program and its arguments
    #[arg(
        value_name = "PROGRAM",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    program: Vec<OsString>,
}

/// The settings of the devices that stand on the command line.
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

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0.0);
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "it is to be a number of seconds above 0".to_owned())
}

/// There is no drop-in.
#[cfg(not(target_os = "linux"))]
pub(crate) fn execute(_: &Args) -> Result<(), crate::output::Stop> {
    Err(crate::output::Stop::usage(
        "the drop-in for libibverbs is for Linux",
    ))
}
