//! Places that many queues have in turn: a queue that is empty has none.
//!
//! So queues need no memory while they are idle, none is asked for while they are in use, and the places that are
//! lent next are those that were used last, which are in the processor's caches.

/// Places that no queue has now, by how many are in a row.
#[derive(Debug)]
pub(crate) struct FreeList<T> {
    least: Vec<Vec<T>>,
    /// Twice as many, and so on.
    more: Vec<Vec<Vec<T>>>,
}

impl<T> Default for FreeList<T> {
    fn default() -> Self {
        Self {
            least: Vec::new(),
            more: Vec::new(),
        }
    }
}

/// A clone has no places of its own yet.
impl<T> Clone for FreeList<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T: Default> FreeList<T> {
    /// Places that are lent in a row: so many, or a power of two times as many.
    pub(crate) const LEAST: usize = 4;
    /// So many rows of the least are kept at most, and of others half as many; the rest goes back to the allocator.
    const MOST: usize = 1 << 12;

    /// A row of the least places. They are as those who used them before left them.
    #[inline(always)]
    pub(crate) fn take_least(&mut self) -> Vec<T> {
        match self.least.pop() {
            Some(places) => places,
            None => Self::make(Self::LEAST),
        }
    }

    /// As above, so many: a power of two times the least.
    #[inline(never)]
    pub(crate) fn take(&mut self, count: usize) -> Vec<T> {
        let kept = self.more.get_mut(Self::size(count)).and_then(Vec::pop);
        kept.unwrap_or_else(|| Self::make(count))
    }

    /// Takes places back that were lent.
    #[inline(always)]
    pub(crate) fn take_back(&mut self, places: Vec<T>) {
        match places.len() {
            Self::LEAST if self.least.len() < Self::MOST => self.least.push(places),
            _ => self.take_more_back(places),
        }
    }

    #[inline(never)]
    fn take_more_back(&mut self, places: Vec<T>) {
        if places.len() <= Self::LEAST {
            return;
        }
        let size = Self::size(places.len());
        if size >= self.more.len() {
            self.more.resize_with(size + 1, Vec::new);
        }
        let kept = &mut self.more[size];
        if kept.len() < Self::MOST >> (size + 1) {
            kept.push(places);
        }
    }

    /// The number of a size above the least.
    fn size(count: usize) -> usize {
        (count / Self::LEAST).ilog2() as usize - 1
    }

    #[cold]
    fn make(count: usize) -> Vec<T> {
        let mut places = Vec::with_capacity(count);
        places.resize_with(count, T::default);
        places
    }
}
