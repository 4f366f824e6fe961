//! Memory that a program changes, unmaps or deregisters while it belongs to the device.

use verbs_api::site::Site;
use verbs_api::{Mr, Srq};

use super::Class;
use super::journal::Journal;
use super::problem::Describe;
use super::words::Names;

/// The bytes of a send changed before its completion was polled.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Changed {
    /// Number of its QP.
    pub qp_num: u32,
    /// The program's number for it ([`SendWr::label`](verbs_api::SendWr::label)).
    pub wr_id: u64,
}

impl Describe for Changed {
    fn class(&self) -> Class {
        Class::Changed
    }

    fn sentence(&self, _: &dyn Names) -> String {
        let Self { qp_num, wr_id } = self;
        format!(
            "the bytes of send {wr_id:#x} of qp {qp_num:#x} were changed before its completion was polled"
        )
    }
}

/// Work uses memory of a region that is no longer mapped. The place is that of the registration.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Unmapped {
    /// The region.
    pub mr: Mr,
    /// The offset of these bytes in the region.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
}

impl Describe for Unmapped {
    fn class(&self) -> Class {
        Class::Unmapped
    }

    fn sentence(&self, _: &dyn Names) -> String {
        let Self { mr, offset, length } = self;
        format!("work uses {mr}, of which {length} bytes from {offset:#x} on are not all mapped")
    }
}

/// A region was deregistered before the completion of work that names it was polled.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeregisteredEarly {
    /// The region.
    pub mr: Mr,
    /// The program's number for the work, the last one that was posted.
    pub wr_id: u64,
    /// The queue of that work.
    pub queue: PostedTo,
    /// Where it was posted, if that is known.
    pub posted: Option<Site>,
}

/// The queue of a work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PostedTo {
    /// The send queue of the queue pair with this number.
    Send(u32),
    /// The receive queue of the queue pair with this number.
    Recv(u32),
    /// A shared receive queue.
    Srq(Srq),
}

/// Work whose completion has not been polled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostedWork {
    /// The program's number for it.
    pub(crate) wr_id: u64,
    pub(crate) queue: PostedTo,
    /// Where it was posted, if that is known.
    pub(crate) posted: Option<Site>,
}

impl Describe for DeregisteredEarly {
    fn class(&self) -> Class {
        Class::DeregisteredEarly
    }

    fn sentence(&self, names: &dyn Names) -> String {
        let Self {
            mr,
            wr_id,
            queue,
            posted,
        } = self;
        let work = match queue {
            PostedTo::Send(qp_num) => format!("send {wr_id:#x} of qp {qp_num:#x}"),
            PostedTo::Recv(qp_num) => format!("receive {wr_id:#x} of qp {qp_num:#x}"),
            PostedTo::Srq(srq) => format!("receive {wr_id:#x} of {srq}"),
        };
        let posted = posted.map(|site| format!(", which was posted at {}", names.place(site)));
        let posted = posted.unwrap_or_default();
        format!("{mr} was deregistered before the completion of {work} was polled{posted}")
    }
}

impl Journal {
    /// Records that the bytes of a send changed before its completion was polled.
    #[cold]
    pub(crate) fn changed(&mut self, qp_num: u32, wr_id: u64, posted_at: Option<Site>) {
        self.note(Changed { qp_num, wr_id }, posted_at);
    }

    /// Records that work uses bytes of a region that are not mapped.
    #[cold]
    pub(crate) fn unmapped(&mut self, mr: Mr, offset: u64, length: u64, site: Option<Site>) {
        self.note(Unmapped { mr, offset, length }, site);
    }

    /// Records that a region is deregistered before the completion of work that names it was
    /// polled.
    #[cold]
    pub(crate) fn deregistered_early(&mut self, mr: Mr, work: PostedWork, site: Option<Site>) {
        let PostedWork {
            wr_id,
            queue,
            posted,
        } = work;
        let early = DeregisteredEarly {
            mr,
            wr_id,
            queue,
            posted,
        };
        self.note(early, site);
    }
}
