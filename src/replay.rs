//! `verbsim replay`: one run again.

use std::path::PathBuf;

use verbs_explore::Replay;

use crate::capture;
use crate::explore::{Faults, trace};
use crate::output::{Stop, print, save};
use crate::subject::Subject;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The replay that `verbsim explore` printed, such as VERSION:SUBJECT:SEED:PLAN:FAULTS
    #[arg(value_name = "REPLAY")]
    replay: Replay,
    #[command(flatten)]
    faults: Faults,
    /// Write every packet to this file, for Wireshark
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Write the trace of the failure to this file instead of the standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn execute(args: &Args) -> Result<(), Stop> {
    let subject = Subject::named(&args.replay.subject)?;
    let plan = args.faults.plan(subject.usual_faults())?;
    let pcap = capture::of_profile(args.pcap.as_deref(), subject.profile())?;
    let exploration = subject
        .exploration(args.faults.planted_defect, pcap)
        .faults(plan);
    exploration
        .check(args.faults.name(subject.usual_faults()))
        .map_err(|error| Stop::usage(error.to_string()))?;
    let found = exploration
        .replay(&args.replay, |world| subject.test(world))
        .map_err(|error| Stop::usage(error.to_string()))?;
    capture::end(args.pcap.as_deref(), pcap)?;
    let Some(found) = found else {
        return print(&format!("{subject}: no failure, so there is no trace\n"));
    };
    let trace = trace(&found);
    match &args.out {
        Some(path) => save(path, &trace)?,
        None => print(&trace)?,
    }
    print(&format!("{subject} failed: {}\n", found.failure))?;
    Err(Stop::NotGood)
}
