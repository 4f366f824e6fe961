//! Memory that a program changes, unmaps, deregisters or uses again while it belongs to the device.

use verbs_api::site::Site;
use verbs_api::{Mr, SendOp, Srq};

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

    /// Work uses memory of a dma-buf that its exporter has withdrawn. The place is that of the
    /// registration.
    Withdrawn {
        /// The region.
        mr: Mr,
        /// The offset of these bytes in the region.
        offset: u64,
        /// The number of bytes.
        length: u64,
    }
    is Class::Unmapped,
    |_| format!(
        "work uses {mr}, of which the exporter of the dma-buf has withdrawn {length} bytes from {offset:#x} on"
    );

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
        let work = queue.named(*wr_id);
        let posted = posted.map(|site| ("which was posted at", site));
        let posted = place_named(posted, names);
        format!("{mr} was deregistered before the completion of {work} was polled{posted}")
    };

    /// A message was placed over that of an earlier receive whose completion was not polled. The
    /// place is the post of the later receive.
    Overlaid {
        /// The queue of both receives.
        queue: PostedTo,
        /// The program's number for the later receive.
        wr_id: u64,
        /// The program's number for the earlier one.
        earlier: u64,
        /// Where the earlier one was posted, if that is known.
        posted: Option<Site>,
    }
    is Class::Overlaid,
    |names| {
        let work = queue.named(*wr_id);
        let posted = place_named(posted.map(|site| ("posted at", site)), names);
        format!(
            "the message of {work} was placed over that of receive {earlier:#x}, whose completion was not polled{posted}"
        )
    };

    /// A send takes bytes that an earlier read or atomic of its queue brings, and does not wait
    /// for them.
    Unfenced {
        /// Number of the QP.
        qp_num: u32,
        /// The program's number for the send.
        wr_id: u64,
        /// Whether it is inline, so that a fence does not help.
        is_inline: bool,
        /// The read or the atomic.
        op: SendOp,
        /// The program's number for it.
        earlier: u64,
        /// Where it was posted, if that is known.
        posted: Option<Site>,
    }
    is Class::Unfenced,
    |names| {
        let posted = place_named(posted.map(|site| ("posted at", site)), names);
        let takes = if *is_inline {
            "is inline, and takes at its post"
        } else {
            "is not fenced, and takes"
        };
        format!(
            "send {wr_id:#x} of qp {qp_num:#x} {takes} bytes that {} {earlier:#x} brings, whose completion was not polled{posted}",
            op.name(),
        )
    };
}

impl PostedTo {
    /// Work request `wr_id` of this queue, in words.
    fn named(self, wr_id: u64) -> String {
        match self {
            Self::Send(qp_num) => format!("send {wr_id:#x} of qp {qp_num:#x}"),
            Self::Recv(qp_num) => format!("receive {wr_id:#x} of qp {qp_num:#x}"),
            Self::Srq(srq) => format!("receive {wr_id:#x} of {srq}"),
        }
    }
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
