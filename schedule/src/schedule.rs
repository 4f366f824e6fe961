//! How a program is to be run.

use core::time::Duration;
use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::iter;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::time::Instant;

use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::changes::{Change, Chooser};
use crate::clock::Clock;
use crate::filter::filter;
use crate::report::Run;
use crate::supervisor::{Limits, Supervisor};
use crate::sys;

const PRELOAD: &str = "LD_PRELOAD";

/// The library for the clocks and locks of the program, which the build script compiles.
const LIBRARY: &[u8] = include_bytes!(env!("VERBS_SCHEDULE_PRELOAD"));

/// How a program is to be run.
#[derive(Clone, Debug)]
pub struct Schedule {
    seed: u64,
    limit: Duration,
    timeout: Option<Duration>,
    background: Option<String>,
    changes: Option<Vec<Change>>,
}

impl Schedule {
    /// The order of threads follows from the seed. The limit of virtual time is ten minutes.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            limit: Duration::from_secs(600),
            timeout: None,
            background: None,
            changes: None,
        }
    }

    /// Ends a run after this virtual time.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Ends a run after this real time. There is no such limit by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Makes the order of threads follow from these changes, such as those of an earlier
    /// [`Run`], or some of them. Everything else that is drawn still follows from the seed.
    pub fn changes(mut self, changes: impl IntoIterator<Item = Change>) -> Self {
        self.changes = Some(changes.into_iter().collect());
        self
    }

    /// Threads whose names begin with `prefix` do not count as the program's. When only they have
    /// gone on for a minute of virtual time, and no wait of another thread has an end, the run is a
    /// deadlock.
    pub fn background(mut self, prefix: impl Into<String>) -> Self {
        self.background = Some(prefix.into());
        self
    }

    /// Runs a program, which the calling process then supervises. It must have one thread, and must
    /// be the only run of the process at a time. The program has the directory and the standard
    /// streams of this process.
    ///
    /// # Errors
    /// If the kernel or the container refuses the filter or a descriptor of the program.
    pub fn run(&self, command: &Command) -> io::Result<Run> {
        let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(io::Error::other);
        let words = iter::once(command.get_program()).chain(command.get_args());
        let args: Vec<_> = words.map(text).collect::<io::Result<_>>()?;
        let page = memory_file("verbs-schedule-clock")?;
        page.set_len(4096)?;
        let mut library = memory_file("verbs-schedule-preload")?;
        library.write_all(LIBRARY)?;
        let [clock, library_path] = [&page, &library].map(path_of);
        let page = sys::Page::of(&page)?;
        let mut env: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => env.insert(name.to_owned(), value.to_owned()),
                None => env.remove(name),
            };
        }
        env.insert("VERBS_SCHEDULE_CLOCK".into(), clock.into());
        let mut list = OsString::from(library_path);
        if let Some(others) = env.get(OsStr::new(PRELOAD)) {
            list.push(":");
            list.push(others);
        }
        env.insert(PRELOAD.into(), list);
        let env = env.into_iter().map(|(mut pair, value)| {
            pair.push("=");
            pair.push(value);
            text(&pair)
        });
        let env: Vec<_> = env.collect::<io::Result<_>>()?;
        let started = sys::start(&args[0], &args, &env, &filter())?;
        let chooser = match &self.changes {
            Some(changes) => Chooser::of_changes(changes),
            None => Chooser::of_seed(self.seed),
        };
        let until = |timeout| Instant::now().checked_add(timeout);
        let limits = Limits {
            time: self.limit,
            until: self.timeout.and_then(until),
            background: self.background.clone(),
        };
        Ok(Supervisor::new(started, Clock::new(page), self.seed, chooser, limits).run())
    }
}

/// A file without a name, which ends with this process.
fn memory_file(name: &str) -> io::Result<File> {
    Ok(memfd_create(name, MFdFlags::MFD_CLOEXEC)?.into())
}

/// The path by which other processes open a file of this one. Its length is always the same: where
/// the stack of a program is depends on its environment.
fn path_of(file: &File) -> String {
    format!(
        "/proc/{:/>10}/fd/{:/>10}",
        std::process::id(),
        file.as_raw_fd()
    )
}
