//! Keys of regions and windows, and the regions by key.
//!
//! A key has the slot in its middle bits and a tag in the lowest bits. The tag of a window is the
//! caller's. The two highest bits identify the kind of object.

use std::collections::VecDeque;

use verbs_api::site::Site;
use verbs_api::table::Table;
use verbs_api::{Handle, Object, OdpCaps};

use super::base::Base;
use super::region::{Mr, RKEY};
use crate::rng::{Purpose, Random};

/// The number of bits of the tag.
const TAG: u32 = 8;
/// The number of values that stand for slots in a key.
const NUMBERS: u32 = 1 << 22;

/// Keys of windows have this bit, and those of regions do not.
pub(super) const WINDOW: u32 = 1 << 30;

/// Whether a key is that of a window, live or not.
pub(crate) fn is_window_key(rkey: u32) -> bool {
    rkey & (RKEY | WINDOW) == RKEY | WINDOW
}

/// The number that stands for each slot in a key. It is never 0, so no key is small.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keys {
    /// Maps the slot's own number, which counts from 1, to the other number, and back.
    mask: u32,
}

impl Keys {
    fn turned(self, number: u32) -> u32 {
        match number ^ self.mask {
            // The partner of this number is 0, which does not have a partner either.
            0 => number,
            // Slot numbers count from 1, so 0 stands for no slot.
            _ if number == 0 => 0,
            other => other,
        }
    }

    /// The key of a slot.
    pub(crate) fn key(self, slot: u32, tag: u32) -> u32 {
        self.turned(slot + 1) << TAG | tag & ((1 << TAG) - 1)
    }

    /// The slot that a key belongs to, if the key is valid.
    pub(crate) fn slot(self, key: u32) -> Option<u32> {
        self.turned((key >> TAG) % NUMBERS).checked_sub(1)
    }
}

/// The regions of a node.
#[derive(Clone, Debug)]
pub(crate) struct Regions {
    pub(crate) table: Table<Mr>,
    pub(super) keys: Keys,
    /// The address of the next region of the simulator's own memory.
    pub(super) next_addr: u64,
    /// Whether there was a region whose memory may be gone.
    pub(super) checks: bool,
    /// Who may use those that are on-demand.
    pub(crate) odp: OdpCaps,
    /// The newest deregistered regions.
    gone: VecDeque<Gone>,
}

/// A region that was deregistered.
#[derive(Clone, Debug)]
pub(super) struct Gone {
    lkey: u32,
    rkey: u32,
    pub(super) region: u32,
    /// Where it was registered.
    pub(super) registered: Option<Site>,
    /// Where it was deregistered.
    pub(super) site: Option<Site>,
}

/// The most deregistered regions that are kept.
const GONE: usize = 64;

/// The first address of a node's own regions. Each node has a separate range.
fn first_addr(node: u32) -> u64 {
    (u64::from(node) + 1) << 40
}

impl Regions {
    /// No regions. Their keys follow their slots.
    pub(super) fn new(node: u32, table: Table<Mr>) -> Self {
        Self {
            table,
            keys: Keys::default(),
            next_addr: first_addr(node),
            checks: false,
            odp: OdpCaps::default(),
            gone: VecDeque::new(),
        }
    }

    /// Makes keys unpredictable, while there are none.
    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn scatter_keys(&mut self, seed: u64, node: u32) {
        let drawn = Random::new(seed, Purpose::Keys, node).any();
        self.keys.mask = drawn as u32 % NUMBERS;
    }

    /// Remembers a region that is deregistered in the current call.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(super) fn remember(&mut self, base: &Base, mr: &Mr, region: u32) {
        // Old regions are forgotten, so that memory does not grow with the life of a program.
        if self.gone.len() == GONE {
            self.gone.pop_front();
        }
        self.gone.push_back(Gone {
            lkey: mr.attr.lkey,
            rkey: mr.attr.rkey,
            region,
            registered: base.made_at(mr.handle.context(), Object::Mr, region),
            site: base.site,
        });
    }

    /// The deregistered region that had a key.
    #[cfg_attr(any(), mutants::skip)] // texts
    pub(super) fn gone(&self, key: u32) -> Option<&Gone> {
        // The newest region counts, if a key was used several times.
        let had = |gone: &&Gone| key == gone.lkey || key == gone.rkey;
        self.gone.iter().rev().find(had)
    }

    /// The region of an lkey.
    #[inline(always)]
    pub(crate) fn of_key(&self, lkey: u32) -> Option<&Mr> {
        let mr = self.table.peek(self.keys.slot(lkey)?);
        // The tag may be that of an earlier region in this slot.
        mr.filter(|mr| mr.attr.lkey == lkey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_has_a_key_of_its_own_and_none_is_small() {
        for mask in [0, 1, 5, 0x2a_5a5a, NUMBERS - 1] {
            let keys = Keys { mask };
            for slot in (0..0x4000).chain(NUMBERS - 0x4000..NUMBERS - 1) {
                let key = keys.key(slot, 0x17);
                assert_eq!(keys.slot(key), Some(slot));
                assert!(key >> TAG > 0 && key >> 30 == 0);
                // A tag wraps after all its values.
                assert_eq!(keys.key(slot, 0x117), key);
            }
            assert_eq!(keys.slot(0x17), None);
        }
    }
}
