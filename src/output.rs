//! The output of a command, and the ways in which it can end.

use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::ValueEnum;
use serde::Serialize;

use crate::interrupt;

/// The format of a command's output.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// For programs; `verbsim help json` describes it
    Json,
}

/// The reason why a command failed.
pub(crate) enum Stop {
    /// The suite ran, and the device failed.
    NotGood,
    /// The command could not run.
    Usage(String),
    /// The program that the command started ended with this status, or could not start.
    #[cfg(target_os = "linux")]
    Status { status: u8, message: Option<String> },
    /// Ctrl-C ended the command, which is not an error: the text says what remains.
    Interrupted(String),
}

impl Stop {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// The text to print.
    pub(crate) fn message(&self) -> Option<String> {
        match self {
            Self::NotGood => None,
            Self::Usage(message) => Some(format!("error: {message}")),
            #[cfg(target_os = "linux")]
            Self::Status { message, .. } => Some(format!("error: {}", message.as_ref()?)),
            Self::Interrupted(text) => Some(text.clone()),
        }
    }

    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::NotGood => 1,
            Self::Usage(_) => 2,
            #[cfg(target_os = "linux")]
            Self::Status { status, .. } => *status,
            Self::Interrupted(_) => interrupt::STATUS,
        }
    }
}

/// Writes to the standard output. A closed pipe is not an error.
pub(crate) fn print(text: &str) -> Result<(), Stop> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Stop::usage(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a line to the standard error. If that is closed or full, the line is lost and the command
/// continues.
pub(crate) fn note(line: impl Display) {
    // In one write, because other processes may write at the same time.
    let line = format!("{line}\n");
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Writes a file.
pub(crate) fn save(path: &Path, text: &str) -> Result<(), Stop> {
    fs::write(path, text).map_err(|error| Stop::usage(format!("{}: {error}", path.display())))
}

/// As JSON, with a newline at its end.
pub(crate) fn json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data");
    text.push('\n');
    text
}
