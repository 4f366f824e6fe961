//! Counts what becomes of messages, for tests.

use std::collections::BTreeMap;

use crate::stack::qp::Detour;

/// How many messages were carried out at once, and why others were not.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) only_packets: bool,
    pub(super) carried: u64,
    pub(super) detours: BTreeMap<Detour, u64>,
}

impl Tally {
    pub(super) fn count(&mut self, carried: Result<(), Detour>) {
        match carried {
            Ok(()) => self.carried += 1,
            Err(detour) => *self.detours.entry(detour).or_default() += 1,
        }
    }

    pub(super) fn restrict(&self, is_allowed: &mut bool) {
        *is_allowed &= !self.only_packets;
    }
}
