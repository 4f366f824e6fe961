//! Counts what becomes of messages, for tests.

use std::collections::BTreeMap;

use crate::direct::conditions::Detour;

/// How many messages were carried out at once, and why others were not.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) only_packets: bool,
    pub(crate) carried: u64,
    pub(crate) detours: BTreeMap<Detour, u64>,
}

impl Tally {
    pub(crate) fn count(&mut self, carried: Result<(), Detour>) {
        match carried {
            Ok(()) => self.carried += 1,
            Err(detour) => *self.detours.entry(detour).or_default() += 1,
        }
    }

    pub(crate) fn restrict(&self, is_allowed: &mut bool) {
        *is_allowed &= !self.only_packets;
    }
}
