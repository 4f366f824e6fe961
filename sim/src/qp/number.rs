//! QP numbers.

use verbs_api::MULTICAST_QPN;
use verbs_api::profile::DeviceLimits;
use verbs_api::table::Id;

use crate::device::QP_INDEX_BITS;
use crate::rng::{Purpose, Random};

/// Assigns a QP number to the queue pair of each slot. A number has 24 bits. The lower 17 are the
/// slot plus 2. The tag above them changes each time the slot is used. Then the bits from the
/// twelfth on are combined with a mask. Where processes share an address, the number of the process
/// replaces the tag.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Numbers {
    /// The bits that are inverted.
    mask: u32,
    tenant: Option<u8>,
}

const INDEX: u32 = (1 << QP_INDEX_BITS) - 1;
/// Leaves room for slots that are in quarantine before they are used again.
const _: () = assert!(
    DeviceLimits::SPEC.max_qp == (1 << QP_INDEX_BITS) - 2 - 2 * verbs_api::table::QUARANTINE as u32
);
/// Smaller numbers have the same meaning on every port.
const WELL_KNOWN: u32 = 2;

impl Numbers {
    /// Numbers that most likely no other process has.
    pub(crate) fn scattered(seed: u64, node: u32) -> Self {
        let drawn = Random::new(seed, Purpose::QpNumbers, node).any();
        Self {
            mask: (drawn as u32 % 0xfff + 1) << 12,
            tenant: None,
        }
    }

    /// The process shares its addresses, and `number` identifies it there.
    pub(crate) fn become_tenant(&mut self, number: u8) {
        self.mask &= INDEX;
        self.tenant = Some(number);
    }

    pub(crate) fn are_scattered(self) -> bool {
        self.mask != 0
    }

    /// The number of the queue pair in a slot.
    pub(crate) fn number(self, id: Id, number_reuse: bool) -> u32 {
        // A number that is reused immediately would accept packets of an old connection.
        let tag = match self.tenant {
            Some(tenant) => tenant.into(),
            None if number_reuse => 0,
            None => id.generation - 1,
        };
        self.turned((tag & 0x7f) << QP_INDEX_BITS | (id.index + WELL_KNOWN))
    }

    /// The slot of the queue pair that has this number, if it exists.
    pub(crate) fn slot(self, qp_num: u32) -> Option<u32> {
        let own = self.turned(qp_num) & INDEX;
        own.checked_sub(WELL_KNOWN)
    }

    /// The other number of a pair. Numbers with the same meaning on every port map to themselves.
    fn turned(self, number: u32) -> u32 {
        let is_fixed = |number| !(WELL_KNOWN..MULTICAST_QPN).contains(&number);
        // Pairs keep the mapping its own inverse.
        match number ^ self.mask {
            other if is_fixed(number) || is_fixed(other) => number,
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_one_other_and_known_ones_are_their_own() {
        for mask in [1 << 12, 0x5a5 << 12, 0xfff << 12] {
            let numbers = Numbers { mask, tenant: None };
            for number in (0..0x4000).chain(0xff_c000..0x100_0010) {
                assert_eq!(numbers.turned(numbers.turned(number)), number);
                assert_eq!(numbers.turned(number) >> 24, number >> 24);
            }
            for known in [0, 1, MULTICAST_QPN, u32::MAX] {
                assert_eq!(numbers.turned(known), known);
            }
            assert_ne!(numbers.turned(17), 17);
        }
    }

    #[test]
    fn a_number_leads_to_its_slot() {
        let scattered = Numbers::scattered(1, 0);
        let all = {
            let mut tenant = scattered;
            tenant.become_tenant(126);
            let number = tenant.number(
                Id {
                    index: 5,
                    generation: 128,
                },
                false,
            );
            assert_eq!(number >> QP_INDEX_BITS, 126);
            [Numbers::default(), scattered, tenant]
        };
        for numbers in all {
            for (index, generation) in [(0, 1), (5, 128), (DeviceLimits::SPEC.max_qp - 1, 3)] {
                let id = Id { index, generation };
                assert_eq!(numbers.slot(numbers.number(id, false)), Some(index));
                assert_eq!(numbers.slot(numbers.number(id, true)), Some(index));
            }
        }
    }
}
