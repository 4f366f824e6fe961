//! What a command writes, and how it can end.

use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::ValueEnum;
use serde::Serialize;

/// How a command shows what it has to say.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// For programs; `verbsim help json` describes it
    Json,
}

/// Why a command did not end well.
pub(crate) enum Stop {
    /// The suite ran and the device is not good.
    NotGood,
    /// The command could not be done.
    Usage(String),
    /// What the command ran has ended like this, or could not begin.
    Status { status: u8, message: Option<String> },
}

impl Stop {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// What there is to say.
    pub(crate) fn message(&self) -> Option<&str> {
        match self {
            Self::NotGood => None,
            Self::Usage(message) => Some(message),
            Self::Status { message, .. } => message.as_deref(),
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::NotGood => ExitCode::from(1),
            Self::Usage(_) => ExitCode::from(2),
            Self::Status { status, .. } => ExitCode::from(*status),
        }
    }
}

/// Writes to the standard output. A reader that has seen enough is no error.
pub(crate) fn print(text: &str) -> Result<(), Stop> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Stop::usage(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a line to the standard error. If it is closed or full, the line is lost, and the command goes on.
pub(crate) fn note(line: impl Display) {
    // In one piece: other processes may write there too.
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
