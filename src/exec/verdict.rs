//! The outcome of the processes of a program, which they write to a record: memory that they share
//! with this process.
//!
//! `libibverbs/src/base/record.rs` is the library's side, and describes the layout.

use std::collections::BTreeMap;
use std::{env, fs, io};

use super::memory::Memory;

/// The variable by which processes find the record: its address, then the addresses of records of
/// any outer `exec`.
pub(super) const VARIABLE: &str = "VERBSIM_VERDICT";

/// Bytes of the record: room for 40,000 processes, or for 10,000 mistakes.
const SIZE: usize = 4 << 20;

/// Bytes of the counters at the end of the record.
const COUNTERS: usize = 16;

/// The record. It disappears with the last process that has it.
pub(super) struct Verdict(Memory);

/// The contents of the record.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Processes, by their number in the record.
    processes: BTreeMap<u64, Process>,
    /// The record was too small for all entries.
    pub(super) is_full: bool,
}

/// The entries of one process.
#[derive(Debug, Default)]
pub(super) struct Process {
    pub(super) id: i32,
    pub(super) name: String,
    /// It loaded the library. A child after `fork` did not: its parent had.
    has_loaded: bool,
    has_opened: bool,
    has_queue_pair: bool,
    /// A libibverbs or librdmacm that is not the drop-in. The process called nothing of the
    /// drop-in.
    foreign: Option<String>,
    /// Number of errors and of warnings in the diagnosis that it wrote at its end.
    diagnosed: Option<(usize, usize)>,
    /// The lines of each mistake, recorded when it happened. The diagnosis replaces them.
    pub(super) recorded: Vec<String>,
    /// How many of the recorded mistakes are warnings: the program may have handled them later.
    recorded_warnings: usize,
    /// What it could not write, with the reason.
    pub(super) unwritten: Vec<String>,
    /// It is still running, as far as this process can see.
    pub(super) still_runs: bool,
}

impl Verdict {
    /// # Errors
    /// The system has no memory for it.
    pub(super) fn new() -> io::Result<Self> {
        Memory::new(SIZE).map(Self)
    }

    /// The value of the variable.
    ///
    /// # Errors
    /// The kernel does not say which file the record is.
    pub(super) fn address(&self) -> io::Result<String> {
        let own = self.0.address()?;
        Ok(match env::var(VARIABLE) {
            Ok(outer) => format!("{own},{outer}"),
            Err(_) => own,
        })
    }

    /// The text so far.
    ///
    /// # Errors
    /// The record cannot be read.
    pub(super) fn facts(&self) -> io::Result<Facts> {
        let mut facts = Facts::of(&self.0.bytes()?);
        // A program that `execve` has started in a process has the same id.
        let mut seen = Vec::new();
        for process in facts.processes.values_mut().rev() {
            let is_last = !seen.contains(&process.id);
            process.still_runs = process.is_undiagnosed() && is_last && self.is_of(process.id);
            seen.push(process.id);
        }
        Ok(facts)
    }

    /// Whether a process has the record in its memory. If the system does not answer, yes.
    fn is_of(&self, process: i32) -> bool {
        match fs::read_to_string(format!("/proc/{process}/maps")) {
            Ok(maps) => maps.lines().any(|line| self.0.is_in(line)),
            Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        }
    }
}

impl Facts {
    fn of(record: &[u8]) -> Self {
        let (entries, counters) = record.split_at(record.len().saturating_sub(COUNTERS));
        let mut facts = Self::default();
        let next = counters.first_chunk().copied().map(u64::from_ne_bytes);
        facts.is_full = next > Some(entries.len() as u64);
        // An entry whose end is missing is still being written.
        let entries = entries.split(|byte| *byte == 0);
        for entry in entries.filter_map(|entry| entry.strip_suffix(b"\n")) {
            facts.add(&String::from_utf8_lossy(entry));
        }
        facts
    }

    fn add(&mut self, entry: &str) {
        let mut words = entry.splitn(3, ' ');
        let (Some(Ok(number)), Some(kind)) = (words.next().map(str::parse), words.next()) else {
            return;
        };
        let rest = words.next().unwrap_or_default();
        let process = self.processes.entry(number).or_default();
        match kind {
            "loaded" | "forked" => {
                let (id, name) = rest.split_once(' ').unwrap_or_default();
                process.id = id.parse().unwrap_or_default();
                process.name = name.to_owned();
                process.has_loaded = kind == "loaded";
            }
            "opened" => process.has_opened = true,
            "queue_pair" => process.has_queue_pair = true,
            "foreign" => process.foreign = Some(rest.to_owned()),
            "error" | "warning" => {
                process.recorded.push(rest.to_owned());
                process.recorded_warnings += usize::from(kind == "warning");
            }
            "ended" => {
                let (errors, warnings) = rest.split_once(' ').unwrap_or_default();
                let count = |text: &str| text.parse().unwrap_or(0);
                process.diagnosed = Some((count(errors), count(warnings)));
            }
            "unwritten" => process.unwritten.push(rest.to_owned()),
            _ => {}
        }
    }

    /// Why the diagnosis of the program is empty: none of its processes used a device.
    pub(super) fn unused(&self) -> Option<String> {
        let processes = || self.processes.values();
        let why = if processes().any(|process| process.has_opened) {
            return None;
        } else if let Some(foreign) = self.foreign().next() {
            foreign
        } else if processes().any(|process| process.has_loaded) {
            "it opened no device".to_owned()
        } else {
            "it never loaded libibverbs (a static program?)".to_owned()
        };
        Some(format!("the program used no RDMA device: {why}"))
    }

    /// Why the program may have used another network: it looked at devices, and used none. A
    /// process that still runs may use one later.
    pub(super) fn fell_back(&self) -> Option<&'static str> {
        let mut processes = self.processes.values();
        let has_opened = processes.clone().any(|process| process.has_opened);
        let may_use = |process: &Process| process.has_queue_pair || process.still_runs;
        (has_opened && !processes.any(may_use)).then_some(
            "warning: devices were opened, and no process created a queue pair: the program may have fallen back to TCP. \
             Look for a GID index or a port that it names and the device does not have, for files that it reads below \
             /sys, and for a libibverbs that it brings (--allow-unused if it only looks at devices)",
        )
    }

    /// A warning about each process that has a libibverbs or librdmacm of its own and did not use
    /// the drop-in.
    pub(super) fn foreign(&self) -> impl Iterator<Item = String> {
        self.processes.values().filter_map(|process| {
            let (path, who) = (process.foreign.as_ref()?, process.who());
            Some(format!(
                "{who} has loaded {path}, and called nothing of the drop-in; if it should use RDMA, it opens that file \
                 with RTLD_DEEPBIND or dlmopen: replace the file by a link to the library that `verbsim exec -- \
                 printenv LD_PRELOAD` names"
            ))
        })
    }

    /// Number of errors and of warnings.
    pub(super) fn found(&self) -> (usize, usize) {
        let found = self.processes.values().map(Process::found);
        found.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
    }

    /// Whether some process has written its diagnosis.
    pub(super) fn is_diagnosed(&self) -> bool {
        let mut processes = self.processes.values();
        processes.any(|process| process.diagnosed.is_some())
    }

    /// The processes that used a device or made a mistake and have not written their diagnosis.
    pub(super) fn undiagnosed(&self) -> impl Iterator<Item = &Process> {
        let processes = self.processes.values();
        processes.filter(|process| process.is_undiagnosed())
    }

    /// The processes that could not write everything.
    pub(super) fn failed_to_write(&self) -> impl Iterator<Item = &Process> {
        let processes = self.processes.values();
        processes.filter(|process| !process.unwritten.is_empty())
    }
}

impl Process {
    /// The name of a process in texts.
    pub(super) fn who(&self) -> String {
        format!("process {} ({})", self.id, self.name)
    }

    /// A process without a device is not listed, unless it made a mistake.
    fn is_undiagnosed(&self) -> bool {
        self.diagnosed.is_none() && (self.has_opened || !self.recorded.is_empty())
    }

    fn found(&self) -> (usize, usize) {
        let warnings = self.recorded_warnings;
        self.diagnosed
            .unwrap_or((self.recorded.len() - warnings, warnings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record with these entries, and where the next one begins.
    fn facts(entries: &[&str], next: u64) -> Facts {
        let mut record = vec![0; 256];
        let text = entries.join("\0");
        record[..text.len()].copy_from_slice(text.as_bytes());
        record.extend([next, 0].map(u64::to_ne_bytes).concat());
        Facts::of(&record)
    }

    #[test]
    fn facts_are_those_of_all_processes() {
        let entries = [
            "1 loaded 70 server\n",
            "2 loaded 71 client\n",
            "1 opened\n",
            "3 forked 72 client\n",
            "3 error VS-FORK-01: it is the parent's\nhelp: VS-FORK-01\n",
            "1 error VS-OBJ-02\n",
            "4 forked 73 client\n",
            "4 warning VS-QP-03\n",
            "nonsense\n",
            "1 ended 2 1\n",
            "2 opened\n",
            // It is still being written.
            "2 error VS-",
        ];
        let facts = facts(&entries, 200);
        assert_eq!((facts.unused(), facts.found()), (None, (3, 2)));
        assert!(facts.is_diagnosed() && !facts.is_full);
        let undiagnosed = facts.undiagnosed();
        let undiagnosed = undiagnosed.map(|of| (of.id, &*of.name, of.recorded.concat()));
        let text = "VS-FORK-01: it is the parent's\nhelp: VS-FORK-01";
        assert_eq!(
            undiagnosed.collect::<Vec<_>>(),
            [
                (71, "client", String::new()),
                (72, "client", text.to_owned()),
                (73, "client", "VS-QP-03".to_owned())
            ]
        );
    }

    #[test]
    fn a_record_that_was_too_small_says_so() {
        assert!(!facts(&[], 256).is_full);
        assert!(facts(&[], 257).is_full);
    }

    #[test]
    fn a_program_that_only_looks_at_devices_may_have_fallen_back() {
        let opened = ["1 loaded 70 server\n", "1 opened\n", "2 loaded 71 client\n"];
        let with = |entry| facts(&[&opened[..], &[entry]].concat(), 0).fell_back();
        assert!(with("1 ended 0 0\n").is_some());
        assert_eq!(with("2 queue_pair\n"), None);
        assert_eq!(facts(&opened[..1], 0).fell_back(), None, "it opened none");
    }

    #[test]
    fn a_program_without_a_device_is_known() {
        let why = |entries: &[&str]| facts(entries, 0).unused().unwrap_or_default();
        assert!(why(&[]).contains("never loaded"));
        assert!(why(&["1 loaded 70 true\n"]).contains("opened no device"));
        assert_eq!(why(&["1 loaded 70 true\n", "1 opened\n"]), "");
        let foreign = why(&[
            "1 loaded 70 python3\n",
            "1 foreign /x/libibverbs-1de1263b.so.1\n",
        ]);
        let expected = "process 70 (python3) has loaded /x/libibverbs-1de1263b.so.1, and";
        assert!(foreign.contains(expected), "{foreign}");
    }
}
