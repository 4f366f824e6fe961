//! Queues of events: of a channel, and of a context.
//!
//! The events of a destroyed object are removed from the middle of a queue, so each event has a
//! number.

use std::collections::VecDeque;

use smallvec::SmallVec;
use verbs_api::site::Site;
use verbs_api::table::Table;
use verbs_api::{Cause, CompChannel, Context, ErrorKind, Handle, Object};

use super::check::{InContext, check_unused, find};
use super::refusal::{Refusal, Result};

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

/// A channel: its unread events, its users, and the threads that wait for it.
#[derive(Clone, Debug)]
pub(crate) struct Channel<H, E> {
    pub(crate) handle: H,
    /// The number of objects whose events it has.
    pub(crate) users: u32,
    /// Unread events, oldest first (CHAN-33).
    pub(crate) events: Events<E>,
    /// The number of waiting threads, which the runtime updates.
    waiters: u32,
    /// Whether more events remained when the last one was read.
    pub(super) was_left: bool,
    /// Where the last event was read.
    pub(super) read_at: Option<Site>,
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

    #[cfg_attr(any(), mutants::skip)] // the suite does not reach it
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of unread events, and the number queued so far.
    pub(crate) fn counts(&self) -> (usize, u64) {
        (self.len(), self.queued)
    }

    /// Adds an event at the end. Returns its number.
    pub(crate) fn push(&mut self, event: T) -> u64 {
        self.queued += 1;
        self.places.push_back((self.queued, Some(event)));
        self.queued
    }

    /// Removes the oldest event.
    pub(crate) fn pop(&mut self) -> Result<T> {
        while let Some((_, event)) = self.places.pop_front() {
            if let Some(event) = event {
                return Ok(event);
            }
            self.gaps -= 1;
        }
        Err(Refusal::new(ErrorKind::WouldBlock, Cause::NoEvent))
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

impl<H: Handle, E> InContext for Channel<H, E> {
    fn context(&self) -> Context {
        self.handle.context()
    }
}

impl<H: Handle, E> Channel<H, E> {
    pub(crate) fn new(handle: H) -> Self {
        Self {
            handle,
            users: 0,
            events: Events::default(),
            waiters: 0,
            was_left: false,
            read_at: None,
        }
    }

    /// Refuses to destroy a channel with users, which would queue their events on it, or with
    /// threads that wait.
    pub(crate) fn check_unused(&self, by: Object) -> Result<()> {
        check_unused(H::OBJECT, &[(by, self.users)])?;
        // The threads would never wake up, and a driver would free memory that they use.
        if self.waiters > 0 {
            let text = format!("{} threads wait on {}", self.waiters, self.handle);
            return Err(Refusal::usage(text));
        }
        Ok(())
    }

    /// Removes the oldest event, for a program that reads it at `site`.
    pub(crate) fn read(&mut self, site: Option<Site>) -> Result<E> {
        let event = self.events.pop()?;
        // A program that stops reading here may wait for an edge that never comes.
        (self.was_left, self.read_at) = (!self.events.is_empty(), site);
        Ok(event)
    }
}

/// Counts a thread that starts or stops waiting on a channel.
pub(crate) fn count_waiter<H: Handle, E>(
    channels: &mut Table<Channel<H, E>>,
    channel: H,
    starts: bool,
) {
    // The channel may have been destroyed by the closing of its context.
    if let Ok(index) = find(channels, channel) {
        let waiters = &mut channels.at_mut(index).waiters;
        *waiters = if starts { *waiters + 1 } else { *waiters - 1 };
    }
}

/// A channel with a queued event on which a thread still waits, if there is one.
pub(crate) fn waited_for_and_queued<H: Handle, E>(channels: &Table<Channel<H, E>>) -> Option<H> {
    let mut channels = channels.iter().map(|(_, channel)| channel);
    let missed = channels.find(|channel| channel.waiters > 0 && !channel.events.is_empty());
    missed.map(|channel| channel.handle)
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
        let read: Vec<_> = (0..10).filter_map(|_| events.pop().ok()).collect();
        assert_eq!(read, left[..10]);
        numbers[..99]
            .iter()
            .for_each(|number| assert!(events.take_out(*number).is_none_or(|event| event != 99)));
        assert_eq!((events.len(), events.places.len()), (1, 1));
        assert_eq!((events.pop().ok(), events.pop().ok()), (Some(99), None));
        assert!(events.is_empty());
        assert_eq!(events.counts(), (0, 100));
    }
}
