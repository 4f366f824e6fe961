//! The processes that a program has started, those that these have started, and so on.
//!
//! Those whose parents have ended are children of this process, which has asked for that
//! (`Descendants::adopt`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process;

use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// All of them that are still there.
pub(super) struct Descendants {
    /// Children that this process had when it became what it is, as of a shell.
    others: BTreeSet<i32>,
}

impl Descendants {
    /// From now on processes whose parents end are this process's.
    pub(super) fn adopt() -> nix::Result<Self> {
        set_child_subreaper(true)?;
        let none = BTreeSet::new();
        let others = below(own_id(), &none).into_iter().collect();
        Ok(Self { others })
    }

    pub(super) fn are_gone(&self) -> bool {
        below(own_id(), &self.others).is_empty()
    }

    /// Sends a signal to each. None escapes SIGKILL by having started one more.
    pub(super) fn send(&self, signal: Signal) {
        let mut told = BTreeSet::new();
        loop {
            let mut new = below(own_id(), &self.others);
            new.retain(|process| told.insert(*process));
            for process in &new {
                // It may have ended since. A stopped process would not see the signal.
                let process = Pid::from_raw(*process);
                let _ = kill(process, signal);
                let _ = kill(process, Signal::SIGCONT);
            }
            if new.is_empty() || signal != Signal::SIGKILL {
                return;
            }
        }
    }
}

fn own_id() -> i32 {
    process::id() as i32
}

/// The processes below one, parents before children, without `others` and their descendants.
fn below(root: i32, others: &BTreeSet<i32>) -> Vec<i32> {
    let mut children = BTreeMap::<i32, Vec<i32>>::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let process = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(process) = process.filter(|process| !others.contains(process)) else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(process);
        }
    }
    let mut found = children.remove(&root).unwrap_or_default();
    let mut seen = 0;
    while let Some(process) = found.get(seen) {
        let more = children.remove(process).unwrap_or_default();
        found.extend(more);
        seen += 1;
    }
    found
}

/// The parent in a line such as `7 (sh) S 1 ...`. The name can have any byte.
fn parent(stat: &str) -> Option<i32> {
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_is_known_whatever_its_child_is_called() {
        assert_eq!(parent("7 (sh) S 1 7 7 0"), Some(1));
        assert_eq!(parent("7 (a) R 9 (b) S 3 7"), Some(3));
        assert_eq!(parent(""), None);
    }
}
