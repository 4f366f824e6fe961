//! File descriptors that say when an event can be read: of completion channels and of contexts.
//!
//! An eventfd each, which is kept as the queue is: readable exactly while an event is queued. Every
//! new event writes it once more, so that an edge-triggered epoll wakes for each, as with the
//! kernel's own descriptors.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use verbs_api::{Error, Result, Verb};

use crate::device::{Device, EventQueue};
use crate::eventfd::EventFd;

/// The descriptors of a node that somebody asked for.
#[derive(Debug, Default)]
pub(super) struct Descriptors(BTreeMap<EventQueue, Descriptor>);

/// One descriptor.
#[derive(Debug)]
pub(super) struct Descriptor {
    fd: EventFd,
    /// Events queued so far, as last seen.
    seen: u64,
    readable: bool,
}

impl Descriptors {
    /// A duplicate of the descriptor of a queue.
    pub(super) fn open(
        &mut self,
        verb: Verb,
        of: EventQueue,
        device: &mut Device,
    ) -> Result<OwnedFd> {
        let descriptor = match self.0.entry(of) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                device.cqs.event_queue(&device.base, verb, of)?;
                let descriptor = Descriptor::new(verb)?;
                device.cqs.watch(&mut device.base, of);
                let descriptor = place.insert(descriptor);
                descriptor.update(device.cqs.event_queue(&device.base, verb, of).ok());
                descriptor
            }
        };
        descriptor.duplicate(verb)
    }

    /// Makes descriptors readable or not, as their queues now are, where something has changed. Those of
    /// queues that are gone are closed; a duplicate of one is never readable again.
    pub(super) fn update(&mut self, device: &mut Device) {
        while let Some(of) = device.base.changed_queue() {
            let queue = device
                .cqs
                .event_queue(&device.base, Verb::GetCqEvent, of)
                .ok();
            if let Entry::Occupied(mut known) = self.0.entry(of) {
                known.get_mut().update(queue);
                if queue.is_none() {
                    known.remove();
                }
            }
        }
    }
}

impl Descriptor {
    /// Of a queue of which nothing has been seen yet.
    pub(super) fn new(verb: Verb) -> Result<Self> {
        let fd = EventFd::new().map_err(|errno| os(verb, errno))?;
        Ok(Self {
            fd,
            seen: 0,
            readable: false,
        })
    }

    pub(super) fn duplicate(&self, verb: Verb) -> Result<OwnedFd> {
        self.fd.duplicate().map_err(|errno| os(verb, errno))
    }

    /// `queue` is how many events wait in the queue, and how many were put in so far, if it is there.
    pub(super) fn update(&mut self, queue: Option<(usize, u64)>) {
        let (waiting, queued) = queue.unwrap_or((0, self.seen));
        if waiting == 0 && self.readable {
            self.fd.lower();
        } else if waiting > 0 && queued > self.seen {
            self.fd.raise();
        }
        (self.readable, self.seen) = (waiting > 0, queued);
    }
}

fn os(verb: Verb, errno: Errno) -> Error {
    Error::from_raw(verb, errno.raw_os_error())
}
