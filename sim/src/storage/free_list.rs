//! A free list of slots that queues borrow: an empty queue has no slots.
//!
//! So idle queues need no memory, and busy queues do not allocate. The slots borrowed next are
//! those used last, which are in the processor's caches.

/// Unused rows of slots, by their size.
#[derive(Debug, Default)]
pub(crate) struct FreeList<T> {
    least: Vec<Vec<T>>,
    /// Rows of twice the size, four times the size, and so on.
    more: Vec<Vec<Vec<T>>>,
}

/// A clone has no slots yet.
impl<T: Default> Clone for FreeList<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T: Default> FreeList<T> {
    /// Slots of the smallest row. Other rows are a power of two times as large.
    pub(crate) const LEAST: usize = 4;
    /// The limit of unused rows of the smallest size. Each next size has half the limit. Further
    /// rows are returned to the allocator.
    const MOST: usize = 1 << 12;

    /// Takes a row of the smallest size. Its slots have the contents that their last users left.
    #[inline(always)]
    pub(crate) fn take_least(&mut self) -> Vec<T> {
        let kept = self.least.pop();
        kept.unwrap_or_else(|| Self::make(Self::LEAST))
    }

    /// Takes a row of `count` slots: a power of two times the smallest size.
    #[inline(never)]
    pub(crate) fn take(&mut self, count: usize) -> Vec<T> {
        let kept = self.more.get_mut(Self::size(count)).and_then(Vec::pop);
        kept.unwrap_or_else(|| Self::make(count))
    }

    /// Puts a row back.
    #[inline(always)]
    #[cfg_attr(any(), mutants::skip)] // cost
    pub(crate) fn put(&mut self, slots: Vec<T>) {
        match slots.len() {
            Self::LEAST if self.least.len() < Self::MOST => self.least.push(slots),
            _ => self.put_large(slots),
        }
    }

    #[inline(never)]
    #[cfg_attr(any(), mutants::skip)] // cost
    fn put_large(&mut self, slots: Vec<T>) {
        if slots.len() <= Self::LEAST {
            return;
        }
        let size = Self::size(slots.len());
        if size >= self.more.len() {
            self.more.resize_with(size + 1, Vec::new);
        }
        let kept = &mut self.more[size];
        if kept.len() < Self::MOST >> (size + 1) {
            kept.push(slots);
        }
    }

    /// The index in `more` of a size.
    fn size(count: usize) -> usize {
        (count / Self::LEAST).ilog2() as usize - 1
    }

    #[cold]
    fn make(count: usize) -> Vec<T> {
        let mut slots = Vec::with_capacity(count);
        slots.resize_with(count, T::default);
        slots
    }
}
