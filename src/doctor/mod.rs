//! `verbsim doctor`: says before a program runs whether `verbsim exec` can give it simulated
//! devices.

#[cfg(target_os = "linux")]
mod advice;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod program;

use std::ffi::OsString;
use std::path::PathBuf;

use crate::output::Stop;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The drop-in library [default: the one that came with verbsim]
    #[arg(long, value_name = "FILE", env = "VERBSIM_LIBRARY")]
    library: Option<PathBuf>,
    /// The program; its arguments do not matter
    #[arg(
        value_name = "PROGRAM",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    program: Vec<OsString>,
}

/// Everything that the advice follows from.
#[cfg(target_os = "linux")]
struct Facts {
    /// The directory of the drop-in library.
    library: PathBuf,
    program: program::Program,
    machine: machine::Machine,
}

/// There is no drop-in.
#[cfg(not(target_os = "linux"))]
pub(crate) fn execute(_: &Args) -> Result<(), Stop> {
    Err(Stop::usage("the drop-in for libibverbs is for Linux"))
}

/// Prints a line for each fact that was checked, and a remedy for each obstacle.
#[cfg(target_os = "linux")]
pub(crate) fn execute(args: &Args) -> Result<(), Stop> {
    use crate::exec::{self, library};
    use crate::output;
    use advice::{Advice, Level};

    let library = library::directory(args.library.as_deref())?;
    let name = args.program.first().map(OsString::as_os_str);
    let name = name.ok_or_else(|| Stop::usage("no program is named"))?;
    let environments = [false, true].map(|preloads| exec::environment(&library, preloads));
    let facts = Facts {
        program: program::Program::find(name, &environments),
        machine: machine::Machine::look(&library),
        library,
    };
    let all = advice::all(&facts);
    let lines: String = all.iter().map(Advice::line).collect();
    output::print(&lines)?;
    if all.iter().any(|advice| advice.level == Level::Problem) {
        return Err(Stop::NotGood);
    }
    Ok(())
}
