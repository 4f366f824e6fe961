//! A queue for elements that are too large to be moved. They are written, read and dropped in
//! place, and their slots are reused.

use std::{fmt, mem};

use super::free_list::FreeList;

/// A queue in a ring of slots. It only grows, unless it returns its slots to a free list.
#[derive(Default)]
pub(crate) struct Ring<T> {
    /// Empty, or a power of two.
    slots: Vec<T>,
    /// The slot of the oldest element.
    first: usize,
    len: usize,
}

/// Clones the elements, not the contents of unused slots.
impl<T: Clone + Default> Clone for Ring<T> {
    fn clone(&self) -> Self {
        let mut slots: Vec<T> = self.iter().cloned().collect();
        // The number of slots must stay a power of two.
        slots.resize_with(self.slots.len(), T::default);
        Self {
            slots,
            first: 0,
            len: self.len,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Ring<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T> Ring<T> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    fn index(&self, offset: usize) -> usize {
        (self.first + offset) & self.slots.len().wrapping_sub(1)
    }

    /// The element `offset` slots after the oldest.
    #[inline(always)]
    pub(crate) fn get(&self, offset: usize) -> Option<&T> {
        if offset < self.len {
            self.slots.get(self.index(offset))
        } else {
            None
        }
    }

    /// The element `offset` slots after the oldest.
    ///
    /// # Panics
    /// If there is no such element.
    #[inline]
    pub(crate) fn at_mut(&mut self, offset: usize) -> &mut T {
        assert!(offset < self.len, "it is in the queue");
        let index = self.index(offset);
        &mut self.slots[index]
    }

    /// All elements from `from` slots after the oldest on.
    pub(crate) fn range(&self, from: usize) -> impl DoubleEndedIterator<Item = &T> {
        (from..self.len).filter_map(|offset| self.get(offset))
    }

    /// All elements, oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.range(0)
    }
}

impl<T: Default> Ring<T> {
    /// The oldest element.
    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// A new slot at the end, with the contents that its last user left.
    #[inline(always)]
    pub(crate) fn push(&mut self) -> &mut T {
        if self.len == self.slots.len() {
            self.grow();
        }
        self.push_into_room()
    }

    /// A new slot at the end, with the contents that its last user left. Slots come from a free
    /// list.
    #[inline(always)]
    pub(crate) fn push_from(&mut self, free: &mut FreeList<T>) -> &mut T {
        if self.len == self.slots.len() {
            match self.len {
                // An empty vector has nothing to drop.
                0 => mem::forget(mem::replace(&mut self.slots, free.take_least())),
                _ => self.exchange(free),
            }
        }
        self.push_into_room()
    }

    #[inline(always)]
    fn push_into_room(&mut self) -> &mut T {
        let index = self.index(self.len);
        self.len += 1;
        &mut self.slots[index]
    }

    /// Returns the slots to the free list, once the queue is empty.
    #[inline(always)]
    pub(crate) fn release(&mut self, free: &mut FreeList<T>) {
        if self.len == 0 {
            self.first = 0;
            free.put(mem::take(&mut self.slots));
        }
    }

    /// Removes the oldest element. Returns its slot, still with the element.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<&mut T> {
        if self.len == 0 {
            return None;
        }
        let index = self.first;
        self.first = self.index(1);
        self.len -= 1;
        Some(&mut self.slots[index])
    }

    /// The newest element.
    pub(crate) fn back(&self) -> Option<&T> {
        self.get(self.len.checked_sub(1)?)
    }

    /// Removes the newest element. Returns its slot, still with the element.
    pub(crate) fn pop_back(&mut self) -> Option<&mut T> {
        self.len = self.len.checked_sub(1)?;
        let index = self.index(self.len);
        Some(&mut self.slots[index])
    }

    /// Moves all elements of another queue to the end of this one.
    #[inline(never)]
    pub(crate) fn append(&mut self, from: &mut Self) {
        while let Some(moved) = from.pop() {
            *self.push() = mem::take(moved);
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.slots.rotate_left(self.first);
        self.first = 0;
        let count = (2 * self.slots.len()).max(FreeList::<T>::LEAST);
        self.slots.resize_with(count, T::default);
    }

    /// Exchanges a full row of slots for a larger one.
    #[inline(never)]
    fn exchange(&mut self, free: &mut FreeList<T>) {
        let mut more = free.take(2 * self.slots.len());
        for (offset, into) in more.iter_mut().enumerate().take(self.len) {
            let index = self.index(offset);
            mem::swap(into, &mut self.slots[index]);
        }
        mem::swap(&mut more, &mut self.slots);
        self.first = 0;
        free.put(more);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::rng::{Purpose, Random};

    /// After any pushes, pops and appends, it equals the standard library's queue.
    #[test]
    fn a_ring_is_a_queue() {
        let mut random = Random::new(1, Purpose::Node, 0);
        let mut rings: [Ring<u64>; 2] = Default::default();
        let mut models: [VecDeque<u64>; 2] = Default::default();
        let mut longest = 0;
        for number in 0..10_000 {
            let draw = random.any();
            let at = (draw >> 8 & 1) as usize;
            let (ring, model) = (&mut rings[at], &mut models[at]);
            match draw % 16 {
                0 => {
                    let [a, b] = &mut rings;
                    a.append(b);
                    let [a, b] = &mut models;
                    a.append(b);
                }
                1 => assert_eq!(ring.pop_back().copied(), model.pop_back()),
                2..8 => assert_eq!(ring.pop().copied(), model.pop_front()),
                _ => {
                    *ring.push() = number;
                    model.push_back(number);
                }
            }
            for (ring, model) in rings.iter().zip(&models) {
                assert_eq!((ring.front(), ring.back()), (model.front(), model.back()));
                assert_eq!(ring.is_empty(), model.is_empty());
            }
            longest = longest.max(models[0].len());
        }
        assert!(longest > 8, "it has grown more than once");
    }
}
