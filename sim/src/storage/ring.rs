//! A queue for what is too large to be moved: it is written, read and dropped in its place, and the
//! place is used again.

use std::{fmt, mem};

use super::free_list::FreeList;

/// A queue in a ring of places. It only grows, unless it gives its places back.
pub(crate) struct Ring<T> {
    /// None, or a power of two.
    places: Vec<T>,
    /// The place of the oldest.
    first: usize,
    len: usize,
}

/// Of the queue, not of places that nothing is in.
impl<T: Clone + Default> Clone for Ring<T> {
    fn clone(&self) -> Self {
        let mut places: Vec<T> = self.iter().cloned().collect();
        places.resize_with(self.places.len(), T::default);
        Self {
            places,
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
    fn place(&self, offset: usize) -> usize {
        (self.first + offset) & self.places.len().wrapping_sub(1)
    }

    /// The one that stands so far behind the oldest.
    #[inline(always)]
    pub(crate) fn get(&self, offset: usize) -> Option<&T> {
        match offset < self.len {
            true => self.places.get(self.place(offset)),
            false => None,
        }
    }

    /// As above, of one that is there; panics otherwise.
    #[inline]
    pub(crate) fn at_mut(&mut self, offset: usize) -> &mut T {
        assert!(offset < self.len, "it is in the queue");
        let place = self.place(offset);
        &mut self.places[place]
    }

    /// All from one on that stands so far behind the oldest.
    pub(crate) fn range(&self, from: usize) -> impl DoubleEndedIterator<Item = &T> {
        (from..self.len).filter_map(|offset| self.get(offset))
    }

    /// All, oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.range(0)
    }
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            first: 0,
            len: 0,
        }
    }
}

impl<T: Default> Ring<T> {
    /// The oldest.
    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// A new place at the end, as the one who used it before left it.
    #[inline(always)]
    pub(crate) fn push(&mut self) -> &mut T {
        if self.len == self.places.len() {
            self.grow();
        }
        self.push_into_room()
    }

    /// As above, where places are lent.
    #[inline(always)]
    pub(crate) fn push_lent(&mut self, free: &mut FreeList<T>) -> &mut T {
        if self.len == self.places.len() {
            match self.len {
                // An empty one has nothing to drop.
                0 => mem::forget(mem::replace(&mut self.places, free.take_least())),
                _ => self.exchange(free),
            }
        }
        self.push_into_room()
    }

    #[inline(always)]
    fn push_into_room(&mut self) -> &mut T {
        let place = self.place(self.len);
        self.len += 1;
        &mut self.places[place]
    }

    /// Gives lent places back once there is nothing in them.
    #[inline(always)]
    pub(crate) fn give_back(&mut self, free: &mut FreeList<T>) {
        if self.len == 0 {
            self.first = 0;
            free.take_back(mem::take(&mut self.places));
        }
    }

    /// The oldest is not in the queue any more: its place, still as it was.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<&mut T> {
        if self.len == 0 {
            return None;
        }
        let place = self.first;
        self.first = self.place(1);
        self.len -= 1;
        Some(&mut self.places[place])
    }

    /// The newest.
    pub(crate) fn back(&self) -> Option<&T> {
        self.get(self.len.checked_sub(1)?)
    }

    /// As [`pop`](Self::pop), of the newest.
    pub(crate) fn pop_back(&mut self) -> Option<&mut T> {
        self.len = self.len.checked_sub(1)?;
        let place = self.place(self.len);
        Some(&mut self.places[place])
    }

    /// Moves all of another queue to the end of this one.
    #[inline(never)]
    pub(crate) fn append(&mut self, from: &mut Self) {
        while let Some(moved) = from.pop() {
            *self.push() = mem::take(moved);
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.places.rotate_left(self.first);
        self.first = 0;
        let count = (2 * self.places.len()).max(FreeList::<T>::LEAST);
        self.places.resize_with(count, T::default);
    }

    /// Exchanges full places for more.
    #[inline(never)]
    fn exchange(&mut self, free: &mut FreeList<T>) {
        let mut more = free.take(2 * self.places.len());
        for (offset, into) in more.iter_mut().enumerate().take(self.len) {
            let place = self.place(offset);
            mem::swap(into, &mut self.places[place]);
        }
        mem::swap(&mut more, &mut self.places);
        self.first = 0;
        free.take_back(more);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::rng::{Purpose, Random};

    /// Whatever is pushed, popped and appended: it is the queue of the standard library.
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
