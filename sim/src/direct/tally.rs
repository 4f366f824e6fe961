//! Counts what becomes of messages, for tests.

use std::collections::BTreeMap;

use crate::direct::conditions::SlowPath;

/// How many messages were carried out at once, and why others were not.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) only_packets: bool,
    pub(crate) on_fast_path: u64,
    pub(crate) slow_paths: BTreeMap<SlowPath, u64>,
}

impl Tally {
    pub(crate) fn count(&mut self, on_fast_path: Result<(), SlowPath>) {
        match on_fast_path {
            Ok(()) => self.on_fast_path += 1,
            Err(slow_path) => *self.slow_paths.entry(slow_path).or_default() += 1,
        }
    }

    pub(crate) fn restrict(&self, is_allowed: &mut bool) {
        *is_allowed &= !self.only_packets;
    }
}
