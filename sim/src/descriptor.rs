//! File descriptors that say when an event can be read: of completion channels and of contexts.
//!
//! An eventfd each, which is kept as the queue is: readable exactly while an event is queued. Every
//! new event writes it once more, so that an edge-triggered epoll wakes for each, as with the
//! kernel's own descriptors.

use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};
use verbs_api::{CompChannel, Context, Error, Result, Verb};

use crate::node::Node;

/// A queue of events that a descriptor stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventQueue {
    /// Events of the CQs on a channel.
    Channel(CompChannel),
    /// Asynchronous events of a context.
    Async(Context),
}

/// The descriptors of a node that somebody asked for.
#[derive(Debug, Default)]
pub(crate) struct Descriptors(Vec<Descriptor>);

#[derive(Debug)]
struct Descriptor {
    of: EventQueue,
    fd: OwnedFd,
    /// Events queued so far, as last seen.
    seen: u64,
    readable: bool,
}

impl Descriptors {
    /// A duplicate of the descriptor of a queue.
    pub(crate) fn open(&mut self, verb: Verb, of: EventQueue, node: &Node) -> Result<OwnedFd> {
        let os = |errno: Errno| Error::from_raw(verb, errno.raw_os_error());
        let known = self.0.iter().position(|descriptor| descriptor.of == of);
        let index = match known {
            Some(index) => index,
            None => {
                node.event_queue(verb, of)?;
                let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(os)?;
                self.0.push(Descriptor {
                    of,
                    fd,
                    seen: 0,
                    readable: false,
                });
                self.update(node);
                self.0.len() - 1
            }
        };
        rustix::io::fcntl_dupfd_cloexec(&self.0[index].fd, 0).map_err(os)
    }

    /// Makes each descriptor readable or not, as its queue now is. Those of queues that are gone
    /// are closed; a duplicate of one is never readable again.
    pub(crate) fn update(&mut self, node: &Node) {
        self.0.retain_mut(|descriptor| descriptor.update(node));
    }
}

impl Descriptor {
    fn update(&mut self, node: &Node) -> bool {
        let queue = node.event_queue(Verb::GetCqEvent, self.of).ok();
        let (waiting, queued) = queue.unwrap_or((0, self.seen));
        // Neither can fail, nor wait though a program may have made the descriptor blocking: the counter
        // stays far below its end, and is read only when above zero.
        if waiting == 0 && self.readable && is_readable(&self.fd) {
            let _ = read(&self.fd, &mut [0; 8]);
        } else if waiting > 0 && queued > self.seen {
            let _ = write(&self.fd, &1u64.to_ne_bytes());
        }
        (self.readable, self.seen) = (waiting > 0, queued);
        queue.is_some()
    }
}

/// Whether the counter is above zero: a program may have read it, which it should not.
fn is_readable(fd: &OwnedFd) -> bool {
    let mut ask = [PollFd::new(fd, PollFlags::IN)];
    poll(&mut ask, Some(&Timespec::default())) == Ok(1)
}
