//! Queues of events: of a completion channel, and of a context.
//!
//! The events of a destroyed object are removed from the middle of a queue, so each event has a
//! number.

use std::collections::VecDeque;

use smallvec::SmallVec;
use verbs_api::{CompChannel, Context};

/// A queue of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EventQueue {
    /// Events of the CQs on a channel.
    Channel(CompChannel),
    /// Asynchronous events of a context.
    Async(Context),
}

/// The unread events, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Events<T> {
    /// Each event with its number. A removed event leaves an empty place.
    places: VecDeque<(u64, Option<T>)>,
    /// The number of empty places.
    gaps: usize,
    /// The number of events queued so far.
    queued: u64,
    /// Whether changes are recorded.
    pub(crate) watched: bool,
}

/// The numbers of the events of one object, oldest first.
pub(super) type Numbers = SmallVec<[u64; 1]>;

impl<T> Default for Events<T> {
    fn default() -> Self {
        Self {
            places: VecDeque::new(),
            gaps: 0,
            queued: 0,
            watched: false,
        }
    }
}

impl<T> Events<T> {
    /// The number of unread events.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.gaps
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of events queued so far.
    pub(crate) fn queued(&self) -> u64 {
        self.queued
    }

    /// Adds an event at the end. Returns its number.
    pub(crate) fn push(&mut self, event: T) -> u64 {
        self.queued += 1;
        self.places.push_back((self.queued, Some(event)));
        self.queued
    }

    /// Removes the oldest event.
    pub(crate) fn pop(&mut self) -> Option<T> {
        loop {
            let (_, event) = self.places.pop_front()?;
            if event.is_some() {
                return event;
            }
            self.gaps -= 1;
        }
    }

    /// Removes an event, if it is in the queue. There are never more empty places than others.
    pub(crate) fn take_out(&mut self, number: u64) -> Option<T> {
        let place = self.places.binary_search_by_key(&number, |(of, _)| *of);
        let event = self.places[place.ok()?].1.take()?;
        self.gaps += 1;
        if self.gaps > self.len() {
            // Each removal pays for at most one moved place.
            self.places.retain(|(_, event)| event.is_some());
            self.gaps = 0;
        }
        Some(event)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|(_, event)| event.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events come in order when others are removed, and removed events soon take no memory.
    #[test]
    fn events_come_in_order_but_for_those_that_were_taken_out() {
        let mut events = Events::default();
        let numbers: Vec<_> = (0..100).map(|event| events.push(event)).collect();
        for number in numbers.iter().skip(1).step_by(3) {
            events.take_out(*number);
            events.take_out(*number);
        }
        let left: Vec<_> = (0..100).filter(|event| event % 3 != 1).collect();
        assert!(events.iter().eq(&left));
        assert_eq!(events.len(), left.len());
        let read: Vec<_> = (0..10).filter_map(|_| events.pop()).collect();
        assert_eq!(read, left[..10]);
        numbers[..99]
            .iter()
            .for_each(|number| assert!(events.take_out(*number).is_none_or(|event| event != 99)));
        assert_eq!((events.len(), events.places.len()), (1, 1));
        assert_eq!((events.pop(), events.pop()), (Some(99), None));
        assert!(events.is_empty());
        assert_eq!(events.queued(), 100);
    }
}
