//! File descriptors that say when an event can be read: of completion channels and of contexts.
//!
//! A flag each, which is kept as the queue is: up exactly while an event is queued. Every
//! new event raises it once more, so that an edge-triggered epoll wakes for each, as with the
//! kernel's own descriptors.

mod flag;
mod guarded;

pub(crate) use flag::Flag;
pub use guarded::Guarded;
#[cfg(feature = "network")]
pub(crate) use guarded::raised;

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use verbs_api::{Error, Handle, Result, Verb};

use crate::device::{Device, EventQueue, slot_of};

/// The descriptors of a node that somebody asked for, each by the place of its queue.
#[derive(Debug, Default)]
pub(crate) struct Descriptors {
    channels: Vec<Option<Descriptor>>,
    contexts: Vec<Option<Descriptor>>,
}

/// One descriptor.
#[derive(Debug)]
pub(crate) struct Descriptor {
    flag: Flag,
    /// Events queued so far, as last seen.
    seen: u64,
    readable: bool,
}

impl Descriptors {
    /// A duplicate of the descriptor of a queue.
    pub(crate) fn open(
        &mut self,
        verb: Verb,
        of: EventQueue,
        device: &mut Device,
    ) -> Result<OwnedFd> {
        let queue = device.cqs.event_queue(&device.base, verb, of)?;
        let place = self.place(of);
        let descriptor = match place {
            Some(known) => known,
            None => {
                let descriptor = place.insert(Descriptor::new(verb)?);
                device.cqs.watch(&mut device.base, of);
                descriptor.update(Some(queue));
                descriptor
            }
        };
        descriptor.duplicate(verb)
    }

    fn place(&mut self, of: EventQueue) -> &mut Option<Descriptor> {
        let (places, index) = match of {
            EventQueue::Channel(channel) => (&mut self.channels, channel.index()),
            EventQueue::Async(context) => (&mut self.contexts, slot_of(context)),
        };
        let index = index as usize;
        if index >= places.len() {
            places.resize_with(index + 1, || None);
        }
        &mut places[index]
    }

    /// Makes descriptors readable or not, as their queues now are, where something has changed. Those of
    /// queues that are gone are closed; a duplicate of one is never readable again.
    #[inline(always)]
    pub(crate) fn update(&mut self, device: &mut Device) {
        if device.base.has_changed_queue() {
            self.update_changed(device);
        }
    }

    #[inline(never)]
    fn update_changed(&mut self, device: &mut Device) {
        while let Some(of) = device.base.changed_queue() {
            self.update_of(of, device);
        }
    }

    #[inline(never)]
    fn update_of(&mut self, of: EventQueue, device: &Device) {
        let queue = device
            .cqs
            .event_queue(&device.base, Verb::GetCqEvent, of)
            .ok();
        let place = self.place(of);
        if let Some(descriptor) = place {
            descriptor.update(queue);
        }
        if queue.is_none() {
            *place = None;
        }
    }
}

impl Descriptor {
    /// Of a queue of which nothing has been seen yet.
    pub(crate) fn new(verb: Verb) -> Result<Self> {
        let flag = Flag::new().map_err(|errno| os(verb, errno))?;
        Ok(Self {
            flag,
            seen: 0,
            readable: false,
        })
    }

    pub(crate) fn duplicate(&self, verb: Verb) -> Result<OwnedFd> {
        self.flag.duplicate().map_err(|errno| os(verb, errno))
    }

    /// `queue` is how many events wait in the queue, and how many were put in so far, if it is there.
    pub(crate) fn update(&mut self, queue: Option<(usize, u64)>) {
        let (waiting, queued) = queue.unwrap_or((0, self.seen));
        if waiting == 0 && self.readable {
            self.flag.lower();
        } else if waiting > 0 && queued > self.seen {
            self.flag.raise();
        }
        (self.readable, self.seen) = (waiting > 0, queued);
    }
}

fn os(verb: Verb, errno: Errno) -> Error {
    Error::from_raw(verb, errno.raw_os_error())
}
