//! A set of bytes, as ranges.

use core::ops::Range;
use std::collections::BTreeMap;

/// Ranges that neither touch nor overlap, by their start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    pub(crate) fn add(&mut self, range: Range<u64>) {
        let Range { mut start, mut end } = range;
        if start >= end {
            return;
        }
        if let Some((&before, &until)) = self.0.range(..=start).next_back()
            && until >= start
        {
            start = before;
            end = end.max(until);
        }
        while let Some((&next, &until)) = self.0.range(start..=end).next() {
            self.0.remove(&next);
            end = end.max(until);
        }
        self.0.insert(start, end);
    }

    pub(crate) fn remove(&mut self, range: Range<u64>) {
        let Range { start, end } = range;
        while let Some((&from, &until)) = self.0.range(..end).next_back() {
            if until <= start || start >= end {
                return;
            }
            self.0.remove(&from);
            if from < start {
                self.0.insert(from, start);
            }
            if until > end {
                self.0.insert(end, until);
            }
        }
    }

    pub(crate) fn overlaps(&self, range: &Range<u64>) -> bool {
        let before = self.0.range(..range.end).next_back();
        before.is_some_and(|(_, end)| range.start < *end)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().map(|(start, end)| *start..*end)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a set of single bytes.
        #[test]
        fn ranges_are_a_set_of_bytes(
            steps in prop::collection::vec((any::<bool>(), 0_u64..40, 0_u64..12), 0..40),
        ) {
            let (mut ranges, mut bytes) = (Ranges::default(), BTreeSet::new());
            for (adds, start, length) in steps {
                let range = start..start + length;
                if adds {
                    ranges.add(range.clone());
                    bytes.extend(range);
                } else {
                    ranges.remove(range.clone());
                    bytes.retain(|byte| !range.contains(byte));
                }
                let flat: Vec<u64> = ranges.iter().flatten().collect();
                prop_assert_eq!(flat, bytes.iter().copied().collect::<Vec<_>>());
                let touched = bytes.range(10..15).next().is_some();
                prop_assert_eq!(ranges.overlaps(&(10..15)), touched);
            }
        }
    }
}
