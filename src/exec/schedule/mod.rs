//! Running the program one thread at a time, in virtual time: in the order of one seed, or of many.

mod exploration;
mod fork;
mod outcome;
mod run;
mod shrink;

use std::num::NonZero;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

pub(super) use exploration::explore;
pub(super) use outcome::Outcome;
pub(super) use run::Scheduled;

use verbs_schedule::Change;

use super::time;
use crate::seeds;

/// The options about schedules.
#[derive(Clone, clap::Args)]
#[group(skip)]
#[command(next_help_heading = "Options for schedules (`verbsim help schedule`)")]
pub(super) struct Options {
    /// Run the program one thread at a time, in virtual time, in the order that follows from this
    /// seed. It is the seed of the devices, too, unless --seed gives another
    #[arg(
        long,
        value_name = "SEED",
        group = "scheduled",
        conflicts_with = "wait"
    )]
    pub(super) schedule: Option<u64>,
    /// Run the program under the schedule of each seed, one (7) or from A to below B (0..1000), and
    /// report how runs fail
    #[arg(long, value_name = "A..B", value_parser = seeds::parse, group = "scheduled", conflicts_with = "wait")]
    pub(super) explore: Option<Range<u64>>,
    /// With --schedule, take these changes of thread instead of those of the seed: a list such as
    /// `1.57>0,0.3>2`, which the report of an exploration has
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        requires = "schedule"
    )]
    pub(super) changes: Option<Vec<Change>>,
    /// With --explore, the number of runs that may reduce the changes of a failure [default: 300]
    #[arg(long, value_name = "N", requires = "explore")]
    pub(super) shrink: Option<usize>,
    /// With --explore, the number of runs at the same time [default: one for each CPU, or 1 where a
    /// run can have no network of its own]
    #[arg(long, value_name = "N", requires = "explore")]
    pub(super) jobs: Option<NonZero<usize>>,
    /// End a run after this time by the program's own clock [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = time, requires = "scheduled")]
    pub(super) virtual_timeout: Option<Duration>,
    /// After each run, a shell command that judges it: a run fails if it does not exit with 0
    #[arg(long, value_name = "COMMAND", requires = "scheduled")]
    pub(super) check: Option<String>,
    /// Start each run in a fresh copy of this directory
    #[arg(long, value_name = "DIR", requires = "scheduled")]
    pub(super) workdir: Option<PathBuf>,
    /// Share the network of this machine. Otherwise each run has one of its own, with nothing but a
    /// loopback interface
    #[arg(long, requires = "scheduled")]
    pub(super) host_network: bool,
}
