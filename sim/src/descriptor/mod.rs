//! File descriptors of completion channels and contexts that are readable while an event is queued.
//!
//! Each has a flag that follows its queue: it is up exactly while an event is queued. Every new
//! event raises it again, so an edge-triggered epoll wakes for each, as with the kernel's
//! descriptors.

mod flag;
mod guarded;

pub(crate) use flag::Flag;
pub use guarded::Guarded;
#[cfg(feature = "network")]
pub(crate) use guarded::raised;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use verbs_api::{Error, Result, Verb};

use crate::device::{Answer, Device, EventQueue};

/// The descriptors of a node that were asked for.
#[derive(Default)]
pub(crate) struct Descriptors(BTreeMap<EventQueue, Descriptor>);

/// One descriptor.
pub(crate) struct Descriptor {
    flag: Flag,
    /// The number of queued events when it was last updated.
    seen: u64,
    readable: bool,
}

impl Descriptors {
    /// Duplicates the descriptor of a queue.
    pub(crate) fn open(
        &mut self,
        verb: Verb,
        of: EventQueue,
        device: &mut Device,
    ) -> Result<OwnedFd> {
        let queue = device.cqs.event_queue(&device.base, of).by(verb)?;
        let descriptor = match self.0.entry(of) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let descriptor = place.insert(Descriptor::new(verb)?);
                device.cqs.watch(&mut device.base, of);
                descriptor.update(Some(queue));
                descriptor
            }
        };
        descriptor.duplicate(verb)
    }

    /// Updates the descriptors of changed queues to be readable or not. Descriptors of destroyed
    /// queues are closed; a duplicate of one is never readable again.
    #[inline(always)]
    pub(crate) fn update(&mut self, device: &mut Device) {
        if !device.base.changed_queues.is_empty() {
            self.update_changed(device);
        }
    }

    #[inline(never)]
    fn update_changed(&mut self, device: &mut Device) {
        while let Some(of) = device.base.changed_queues.pop() {
            let queue = device.cqs.event_queue(&device.base, of).ok();
            if let Some(descriptor) = self.0.get_mut(&of) {
                descriptor.update(queue);
            }
            if queue.is_none() {
                self.0.remove(&of);
            }
        }
    }
}

impl Descriptor {
    /// The descriptor of a queue without events so far.
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

    /// Updates the descriptor to its queue: the number of waiting events, and of all that were ever
    /// queued. `None` if the queue was destroyed.
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
