//! Memory that a program changes, unmaps or deregisters while it belongs to the device.

use verbs_api::site::Site;
use verbs_api::{Mr, Srq};

use super::Class;
use super::problem::problems;
use super::words::place_named;

problems! {
    /// The bytes of a send changed before its completion was polled.
    Changed {
        /// Number of its QP.
        qp_num: u32,
        /// The program's number for it ([`SendWr::label`](verbs_api::SendWr::label)).
        wr_id: u64,
    }
    is Class::Changed,
    |_| format!(
        "the bytes of send {wr_id:#x} of qp {qp_num:#x} were changed before its completion was polled"
    );

    /// Work uses memory of a region that is no longer mapped. The place is that of the
    /// registration.
    Unmapped {
        /// The region.
        mr: Mr,
        /// The offset of these bytes in the region.
        offset: u64,
        /// The number of bytes.
        length: u64,
    }
    is Class::Unmapped,
    |_| format!("work uses {mr}, of which {length} bytes from {offset:#x} on are not all mapped");

    /// A region was deregistered before the completion of work that names it was polled.
    DeregisteredEarly {
        /// The region.
        mr: Mr,
        /// The program's number for the work, the last one that was posted.
        wr_id: u64,
        /// The queue of that work.
        queue: PostedTo,
        /// Where it was posted, if that is known.
        posted: Option<Site>,
    }
    is Class::DeregisteredEarly,
    |names| {
        let work = match queue {
            PostedTo::Send(qp_num) => format!("send {wr_id:#x} of qp {qp_num:#x}"),
            PostedTo::Recv(qp_num) => format!("receive {wr_id:#x} of qp {qp_num:#x}"),
            PostedTo::Srq(srq) => format!("receive {wr_id:#x} of {srq}"),
        };
        let posted = posted.map(|site| ("which was posted at", site));
        let posted = place_named(posted, names);
        format!("{mr} was deregistered before the completion of {work} was polled{posted}")
    };
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
