//! A queue for what is too large to be moved: it is written, read and dropped in its place, and the
//! place is used again.

use std::mem;

/// A queue in a ring of places, which only grows.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// None, or a power of two.
    places: Vec<T>,
    /// The place of the oldest.
    first: usize,
    len: usize,
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
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The oldest.
    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        if self.len == 0 {
            return None;
        }
        self.places.get(self.first)
    }

    /// A new place at the end, as the one who used it before left it.
    #[inline]
    pub(crate) fn push(&mut self) -> &mut T {
        if self.len == self.places.len() {
            self.grow();
        }
        let place = (self.first + self.len) & (self.places.len() - 1);
        self.len += 1;
        &mut self.places[place]
    }

    /// The oldest is not in the queue any more: its place, still as it was.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<&mut T> {
        if self.len == 0 {
            return None;
        }
        let place = self.first;
        self.len -= 1;
        self.first = (place + 1) & (self.places.len() - 1);
        Some(&mut self.places[place])
    }

    /// The newest.
    pub(crate) fn back(&self) -> Option<&T> {
        let last = self.len.checked_sub(1)?;
        self.places
            .get((self.first + last) & (self.places.len() - 1))
    }

    /// As [`pop`](Self::pop), of the newest.
    pub(crate) fn pop_back(&mut self) -> Option<&mut T> {
        self.len = self.len.checked_sub(1)?;
        let place = (self.first + self.len) & (self.places.len() - 1);
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
        const FIRST: usize = 4;
        self.places.rotate_left(self.first);
        self.first = 0;
        let count = (2 * self.places.len()).max(FIRST);
        self.places.resize_with(count, T::default);
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
