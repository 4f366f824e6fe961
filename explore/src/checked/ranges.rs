//! A set of bytes, as ranges.

use core::ops::Range;

/// Ranges that neither touch nor overlap, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<Range<u64>>);

impl Ranges {
    pub(crate) fn add(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.0.partition_point(|other| other.end < range.start);
        let end = self.0.partition_point(|other| other.start <= range.end);
        let all = self.0[first..end].iter().fold(range, |all, touched| {
            all.start.min(touched.start)..all.end.max(touched.end)
        });
        self.0.splice(first..end, [all]);
    }

    pub(crate) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.0.partition_point(|other| other.end <= range.start);
        let end = self.0.partition_point(|other| other.start < range.end);
        if let [cut, ..] = &self.0[first..end] {
            let before = cut.start..range.start;
            let behind = range.end..self.0[end - 1].end;
            let left = [before, behind].into_iter().filter(|part| !part.is_empty());
            self.0.splice(first..end, left);
        }
    }

    pub(crate) fn overlaps(&self, range: &Range<u64>) -> bool {
        let first = self.0.partition_point(|other| other.end <= range.start);
        self.0
            .get(first)
            .is_some_and(|other| other.start < range.end)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().cloned()
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
