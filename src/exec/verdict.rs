//! What became of the processes of a program: they tell it in lines of a file that this process keeps open.
//!
//! The library's side is `libibverbs/src/verdict.rs`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process;

use nix::sys::memfd::{MFdFlags, memfd_create};

/// Where the processes find the file.
pub(super) const VARIABLE: &str = "VERBSIM_VERDICT";

/// The library knows the file by this name.
const NAME: &str = "verbsim-verdict";

/// The file, which is gone with this process.
pub(super) struct Verdict(File);

/// What it says, of all processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Processes that loaded the library.
    pub(super) loaded: usize,
    /// Processes that opened a device.
    pub(super) opened: usize,
    /// Those of them that were diagnosed at their end.
    pub(super) ended: usize,
    pub(super) errors: usize,
    pub(super) warnings: usize,
}

impl Verdict {
    /// # Errors
    /// The kernel has none.
    pub(super) fn new() -> io::Result<Self> {
        let file = memfd_create(NAME, MFdFlags::MFD_CLOEXEC)?;
        Ok(Self(file.into()))
    }

    /// The value of the variable. Any process of this user can open it, whatever its parent left open.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", process::id(), self.0.as_raw_fd())
    }

    /// What was said until now.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn facts(&self) -> io::Result<Facts> {
        Ok(Facts::of(&self.text()?))
    }

    /// Tells what was said to an `exec` around this one, whose file this path leads to.
    ///
    /// # Errors
    /// This file cannot be read.
    pub(super) fn pass_on(&self, outer: &Path) -> io::Result<()> {
        let text = self.text()?;
        // It may be gone, and the name another's.
        let name = fs::read_link(outer).unwrap_or_default();
        let is_its = name
            .to_string_lossy()
            .starts_with(&format!("/memfd:{NAME}"));
        if is_its && let Ok(mut file) = OpenOptions::new().append(true).open(outer) {
            // Nobody is there to be told.
            let _ = file.write_all(text.as_bytes());
        }
        Ok(())
    }

    fn text(&self) -> io::Result<String> {
        let mut text = String::new();
        let mut file = &self.0;
        file.rewind()?;
        file.read_to_string(&mut text)?;
        Ok(text)
    }
}

impl Facts {
    fn of(text: &str) -> Self {
        let mut facts = Self::default();
        for line in text.lines() {
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["loaded"] => facts.loaded += 1,
                ["opened"] => facts.opened += 1,
                [end @ ("ended" | "found"), errors, warnings] => {
                    // What was found in a process without a device is no less wrong.
                    facts.ended += usize::from(end == "ended");
                    facts.errors += errors.parse().unwrap_or(0);
                    facts.warnings += warnings.parse().unwrap_or(0);
                }
                _ => {}
            }
        }
        facts
    }

    /// Why nothing can be said of the program: no process of it used a device.
    pub(super) fn unused(&self) -> Option<&'static str> {
        match self {
            Self { loaded: 0, .. } => Some(
                "the program used no RDMA device: it never loaded libibverbs (a static program?)",
            ),
            Self { opened: 0, .. } => Some("the program used no RDMA device: it opened no device"),
            _ => None,
        }
    }

    pub(super) fn findings(&self) -> usize {
        self.errors + self.warnings
    }

    /// How many processes used a device, and were not diagnosed.
    pub(super) fn undiagnosed(&self) -> usize {
        self.opened.saturating_sub(self.ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_those_of_all_processes() {
        let text =
            "loaded\nloaded\nopened\nloaded\nopened\nended 2 1\nnonsense\nended 1\nfound 1 0\n";
        let facts = Facts::of(text);
        let expected = Facts {
            loaded: 3,
            opened: 2,
            ended: 1,
            errors: 3,
            warnings: 1,
        };
        assert_eq!(facts, expected);
        assert_eq!((facts.unused(), facts.undiagnosed()), (None, 1));
    }

    #[test]
    fn a_program_without_a_device_is_known() {
        let why = |text| Facts::of(text).unused().unwrap_or_default();
        assert!(why("").contains("never loaded"));
        assert!(why("loaded\n").contains("opened no device"));
        assert_eq!(why("loaded\nopened\n"), "");
    }
}
