//! A worker as its parent sees it.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{self, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam::channel::{self, Receiver, RecvTimeoutError};
use verbs_scenarios::report::Entry;
use verbs_scenarios::{Failure, Scenario};

use super::serve::READY;

/// A worker that is ready.
#[derive(Debug)]
pub(super) struct Child {
    process: process::Child,
    orders: ChildStdin,
    /// The lines of its standard output.
    said: Receiver<String>,
    errors: Errors,
}

/// What it writes to its standard error.
#[derive(Debug)]
struct Errors {
    last: Arc<Mutex<String>>,
    /// Open as long as more may come.
    end: Receiver<()>,
}

impl Child {
    /// Starts one.
    ///
    /// # Errors
    /// It cannot start: why.
    pub(super) fn start(command: &mut Command) -> Result<Self, String> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // Ctrl-C at a terminal is for the parent, which lets the scenario end.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        let mut process = command.spawn().map_err(|error| error.to_string())?;
        let (Some(orders), Some(stdout), Some(stderr)) = (
            process.stdin.take(),
            process.stdout.take(),
            process.stderr.take(),
        ) else {
            return Err("it has no pipes".to_owned());
        };
        let child = Self {
            process,
            orders,
            said: lines(stdout),
            errors: Errors::of(stderr),
        };
        match child.hear(START, |line| (line == READY).then_some(())) {
            Ok(()) => Ok(child),
            Err(RecvTimeoutError::Timeout) => Err(child.kill(START)),
            Err(RecvTimeoutError::Disconnected) => Err(child.bury()),
        }
    }

    /// Runs a scenario, for at most `patience`, and is there for the next.
    ///
    /// # Errors
    /// The scenario does not end, or the process ends first.
    pub(super) fn run(
        mut self,
        scenario: &'static Scenario,
        patience: Duration,
    ) -> Result<(Self, Entry), Failure> {
        self.errors.clear();
        // One that reads no more has ended: what it says shows that.
        let _ = writeln!(self.orders, "{}", scenario.id);
        let entry = self.hear(patience, |line| Entry::of_line(scenario, line));
        match entry {
            Ok(entry) => Ok((self, entry)),
            Err(RecvTimeoutError::Timeout) => Err(Failure::hang(ENDS, self.kill(patience))),
            Err(RecvTimeoutError::Disconnected) => {
                let seen = format!("no report; {}", self.bury());
                Err(Failure::crash(ENDS, seen))
            }
        }
    }

    /// Lets it end, since there is nothing more to run.
    pub(super) fn end(self) {
        drop(self.orders);
        end_of(self.process);
    }

    /// The first line that is meant, within this time. A driver may write others.
    fn hear<T>(
        &self,
        time: Duration,
        meant: impl Fn(&str) -> Option<T>,
    ) -> Result<T, RecvTimeoutError> {
        let deadline = Instant::now() + time;
        loop {
            let line = self.said.recv_deadline(deadline)?;
            if let Some(value) = meant(&line) {
                return Ok(value);
            }
        }
    }

    /// Ends it, after it was silent for this time. Gives the words for that.
    fn kill(mut self, silent: Duration) -> String {
        // Not waited for: one that is stuck in the kernel does not even end when killed.
        let _ = self.process.kill();
        let text = format!("nothing after {silent:?}; it was killed");
        self.errors.behind(text)
    }

    /// How it ended.
    fn bury(self) -> String {
        let text = match end_of(self.process) {
            Some(status) => status.to_string(),
            None => "its end does not come".to_owned(),
        };
        self.errors.behind(text)
    }
}

impl Errors {
    fn of(stderr: impl Read + Send + 'static) -> Self {
        let last = Arc::new(Mutex::new(String::new()));
        let (open, end) = channel::bounded(0);
        let errors = Self {
            last: Arc::clone(&last),
            end,
        };
        let lines = lines(stderr);
        thread::spawn(move || {
            let _open: channel::Sender<()> = open;
            for line in lines.iter().filter(|line| !line.trim().is_empty()) {
                *last.lock().unwrap_or_else(PoisonError::into_inner) = line;
            }
        });
        errors
    }

    fn clear(&self) {
        self.last().clear();
    }

    /// The text, and the last line.
    fn behind(&self, text: String) -> String {
        // At the end of a process all of it is read soon; what is stuck may never end.
        let _ = self.end.recv_timeout(GRACE);
        match self.last().trim() {
            "" => text,
            last => format!("{text}; {last}"),
        }
    }

    fn last(&self) -> std::sync::MutexGuard<'_, String> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lines of a stream, as they come. The last may have no end.
fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (line, lines) = channel::unbounded();
    thread::spawn(move || {
        for bytes in BufReader::new(stream).split(b'\n') {
            let Ok(bytes) = bytes else { return };
            if line
                .send(String::from_utf8_lossy(&bytes).into_owned())
                .is_err()
            {
                return;
            }
        }
    });
    lines
}

/// How a process ended that is about to, if it does: the kernel may never let it go.
fn end_of(mut process: process::Child) -> Option<ExitStatus> {
    let (done, status) = channel::bounded(1);
    thread::spawn(move || done.send(process.wait()));
    status.recv_timeout(GRACE).ok()?.ok()
}

const ENDS: &str = "the process with the scenario ends and reports";

/// How long a process may take to get ready.
const START: Duration = Duration::from_secs(60);

/// How long a process may take to end.
const GRACE: Duration = Duration::from_secs(10);
