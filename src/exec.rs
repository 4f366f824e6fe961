//! `verbsim exec`: runs a program on simulated devices.

use std::env::{self, consts};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{self, Path, PathBuf};
use std::process::{self, Command, ExitStatus};

use crate::output::Stop;

/// What `libibverbs/src/config.rs` reads. A variable that is set already holds unless an option says
/// otherwise.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many devices [default: 2, or as many as there are names]
    #[arg(long, value_name = "N")]
    devices: Option<u32>,
    /// Names of the devices [default: sim0, sim1, ...]
    #[arg(long, value_name = "NAME,...")]
    names: Option<String>,
    /// Ports of each device, all active [default: 1]
    #[arg(long, value_name = "N")]
    ports: Option<u8>,
    /// What is between the ports: ethernet (RoCE version 2) or infiniband [default: ethernet]
    #[arg(long, value_name = "NAME")]
    link_layer: Option<String>,
    /// Entries of GID tables, such as sim0/1/0=fe80::1: device, port from 1, index from 0
    #[arg(long, value_name = "PLACE=GID,...")]
    gids: Option<String>,
    /// Which set of behavior values the devices have [default: spec]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Lower limits of the devices, such as max_qp=16,max_cqe=255 [default: those of the profile]
    #[arg(long, value_name = "NAME=N,...")]
    limits: Option<String>,
    /// Seed of everything random [default: 0, but for keys, which are drawn]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// A file of fault rules, `standard`, or `none`; docs/faults.md [default: none]
    #[arg(long, value_name = "FILE")]
    faults: Option<String>,
    /// Where the trace goes when the program ends: a file, or - for its standard error
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,
    /// Say what the program did wrong when it ends: in a file, or on its standard error
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "-"
    )]
    diagnose: Option<String>,
    /// A file of TOML that says the same, by the names of these options
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The drop-in library [default: the one beside this program]
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

impl Args {
    fn variables(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        let text = |value: Option<String>| value.map(OsString::from);
        let all = [
            ("VERBSIM_DEVICES", text(self.devices.map(|n| n.to_string()))),
            ("VERBSIM_NAMES", text(self.names.clone())),
            ("VERBSIM_PORTS", text(self.ports.map(|n| n.to_string()))),
            ("VERBSIM_LINK_LAYER", text(self.link_layer.clone())),
            ("VERBSIM_GIDS", text(self.gids.clone())),
            ("VERBSIM_PROFILE", text(self.profile.clone())),
            ("VERBSIM_LIMITS", text(self.limits.clone())),
            ("VERBSIM_SEED", text(self.seed.map(|n| n.to_string()))),
            (
                "VERBSIM_FAULTS",
                self.faults.as_deref().map(|to| path_of(to, &PLANS)),
            ),
            (
                "VERBSIM_TRACE",
                self.trace.as_deref().map(|to| path_of(to, &["-"])),
            ),
            (
                "VERBSIM_DIAGNOSE",
                self.diagnose.as_deref().map(|to| path_of(to, &["-"])),
            ),
            ("VERBSIM_CONFIG", self.config.as_deref().map(absolute)),
        ];
        all.into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
    }
}

/// What stands for a plan without a file.
const PLANS: [&str; 2] = ["standard", "none"];

/// What names a file, unless it is one of some words.
fn path_of(text: &str, words: &[&str]) -> OsString {
    match words.contains(&text) {
        true => text.into(),
        false => absolute(Path::new(text)),
    }
}

/// The program may go elsewhere before it is read.
fn absolute(path: &Path) -> OsString {
    let absolute = path::absolute(path);
    absolute.map_or_else(|_| path.into(), PathBuf::into_os_string)
}

/// Runs the program, and ends as it ends: with its status, or 128 and the signal that ended it.
pub(crate) fn execute(args: &Args) -> Result<(), Stop> {
    if consts::OS != "linux" {
        return Err(Stop::usage("the drop-in for libibverbs is for Linux"));
    }
    let library = library(args.library.as_deref())?;
    let names = Names::of(&library)?;
    let [program, arguments @ ..] = &args.program[..] else {
        return Err(Stop::usage("no program is named"));
    };
    // What the processes of the program write is put behind each other.
    for path in [&args.trace, &args.diagnose].into_iter().flatten() {
        if path != "-" {
            fs::write(path, "").map_err(|error| Stop::usage(format!("{path}: {error}")))?;
        }
    }
    let status = Command::new(program)
        .args(arguments)
        .envs(args.variables())
        .env(
            "LD_LIBRARY_PATH",
            names.before(env::var_os("LD_LIBRARY_PATH")),
        )
        .status();
    drop(names);
    let status = status
        .map_err(|error| Stop::usage(format!("{}: {error}", Path::new(program).display())))?;
    process::exit(code(status))
}

fn code(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(1)
}

/// File name of the drop-in, as cargo builds it.
const LIBRARY: &str = "libverbsim_ibverbs.so";

fn library(chosen: Option<&Path>) -> Result<PathBuf, Stop> {
    let beside = || Some(env::current_exe().ok()?.with_file_name(LIBRARY));
    let path = chosen.map(Path::to_path_buf).or_else(beside);
    let path = path.unwrap_or_else(|| PathBuf::from(LIBRARY));
    path.canonicalize().map_err(|error| {
        Stop::usage(format!(
            "the drop-in for libibverbs: {}: {error}; `cargo build --package verbs-libibverbs` builds \
             it (with --release for a program built so), --library names one elsewhere",
            path.display()
        ))
    })
}

/// A directory in which the library has the names by which programs look for it.
struct Names(PathBuf);

impl Names {
    fn of(library: &Path) -> Result<Self, Stop> {
        let dir = env::temp_dir().join(format!("verbsim-{}", process::id()));
        let problem = |error| Stop::usage(format!("{}: {error}", dir.display()));
        // Fails if it is there: nobody else is to choose what is in it.
        fs::create_dir(&dir).map_err(problem)?;
        let names = Self(dir.clone());
        #[cfg(unix)]
        for name in ["libibverbs.so.1", "libibverbs.so"] {
            std::os::unix::fs::symlink(library, dir.join(name)).map_err(problem)?;
        }
        Ok(names)
    }

    fn before(&self, path: Option<OsString>) -> OsString {
        let mut all = self.0.clone().into_os_string();
        if let Some(path) = path.filter(|path| !path.is_empty()) {
            all.push(OsStr::new(":"));
            all.push(path);
        }
        all
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        // What stays behind does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}
