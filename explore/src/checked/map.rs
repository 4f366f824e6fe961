//! Maps of the books.

use core::iter;
use core::slice;

/// A map as a sorted list. Most have few keys, new ones come at the end, and all are searched all
/// the time: a list is faster than a tree. The searches are calls, since copies of them at each
/// place would push one another out of the processor's instruction cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Map<K, V>(Vec<(K, V)>);

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + Ord, V> Map<K, V> {
    #[inline(never)]
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let at = self.find(key).ok()?;
        Some(&self.0[at].1)
    }

    #[inline(never)]
    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = self.find(key).ok()?;
        Some(&mut self.0[at].1)
    }

    #[inline(never)]
    pub(super) fn insert(&mut self, key: K, value: V) {
        match self.find(&key) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    #[inline(never)]
    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let at = self.find(key).ok()?;
        Some(self.0.remove(at).1)
    }

    /// The value of a key, which has this one if it had none.
    #[inline(never)]
    pub(super) fn or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        let at = self.find(&key).unwrap_or_else(|at| {
            self.0.insert(at, (key, value()));
            at
        });
        &mut self.0[at].1
    }

    pub(super) fn or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        self.or_insert_with(key, V::default)
    }

    pub(super) fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// In the order of the keys, as all iterators are.
    pub(super) fn iter(&self) -> Iter<'_, K, V> {
        self.into_iter()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = V> {
        self.0.into_iter().map(|(_, value)| value)
    }

    pub(super) fn retain(&mut self, mut stays: impl FnMut(&K, &V) -> bool) {
        self.0.retain(|(key, value)| stays(key, value));
    }

    /// Where a key is, or would be.
    fn find(&self, key: &K) -> Result<usize, usize> {
        let at = self.0.partition_point(|(other, _)| other < key);
        match self.0.get(at) {
            Some((other, _)) if other == key => Ok(at),
            _ => Err(at),
        }
    }
}

pub(super) type Iter<'a, K, V> =
    iter::Map<slice::Iter<'a, (K, V)>, fn(&'a (K, V)) -> (&'a K, &'a V)>;

impl<'a, K, V> IntoIterator for &'a Map<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.0.iter().map(|(key, value)| (key, value))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_map_is_like_that_of_std(
            steps in prop::collection::vec((0_u8..4, 0_u8..20, any::<u8>()), 0..60),
        ) {
            let (mut map, mut model) = (Map::default(), BTreeMap::new());
            for (step, key, value) in steps {
                match step {
                    0 => {
                        map.insert(key, value);
                        model.insert(key, value);
                    }
                    1 => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                    2 => prop_assert_eq!(*map.or_default(key), *model.entry(key).or_default()),
                    _ => {
                        map.retain(|_, other| *other != value);
                        model.retain(|_, other| *other != value);
                    }
                }
                prop_assert_eq!(map.get(&key), model.get(&key));
                prop_assert_eq!(map.get_mut(&key), model.get_mut(&key));
                prop_assert!(map.iter().eq(&model));
                prop_assert!(map.keys().eq(model.keys()) && map.values().eq(model.values()));
            }
        }
    }
}
