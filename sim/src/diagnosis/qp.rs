//! How queue pairs are connected and used.

use super::Class;
use super::journal::Journal;
use super::problem::{Noted, problems};

problems! {
    /// The two ends of a connection do not match.
    EndsDiffer {
        /// The number of the QP that was last to enter the state in which they are compared.
        qp_num: u32,
        /// The node and the number of its peer.
        peer: (u32, u32),
        /// The attribute that differs.
        what: Difference,
        /// The value at the QP.
        own: u64,
        /// The value at its peer.
        others: u64,
    }
    is Class::EndsDiffer,
    key [what.text(), ""],
    |names| {
        let (node, peer) = (names.device(peer.0), peer.1);
        let what = what.text();
        format!("{what}: {own} at qp {qp_num:#x}, and {others} at its peer, qp {peer:#x} of {node}")
    };

    /// Sends were posted on a QP in the error state, after a completion had shown that state.
    PostedInError {
        /// Number of the QP.
        qp_num: u32,
    }
    is Class::AfterError,
    |_| format!(
        "a send was posted on qp {qp_num:#x}, after a completion had shown that it is in ERR: it is only flushed"
    );
}

/// What differs between the ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// The path MTUs.
    PathMtu,
    /// The PSN that an end expects (`rq_psn`), and the one that its peer sends (`sq_psn`).
    RqPsn,
    /// The PSN that an end sends (`sq_psn`), and the one that its peer expects (`rq_psn`).
    SqPsn,
    /// The number of reads that an end may have in progress (`max_rd_atomic`), and the smaller
    /// number that its peer accepts (`max_dest_rd_atomic`).
    Reads,
}

impl Difference {
    fn text(self) -> &'static str {
        match self {
            Self::PathMtu => "the path MTUs differ",
            Self::RqPsn => "the PSN that is waited for is not the one that comes",
            Self::SqPsn => "the PSN that comes is not the one that is waited for",
            Self::Reads => {
                "more reads may be under way (max_rd_atomic) than the other end takes (max_dest_rd_atomic)"
            }
        }
    }
}

impl Journal {
    /// Records that a queue pair may have more reads in progress than its peer accepts. That is a
    /// mistake once it reads.
    #[cold]
    pub(super) fn reads_exceed(&mut self, qp_num: u32, noted: Noted, has_read: bool) {
        // A program that never reads makes no mistake with this.
        if has_read {
            self.note(noted.problem, noted.site);
        } else {
            self.excess.insert(qp_num, noted);
        }
    }

    /// Records that a queue pair posts its first read.
    #[cold]
    pub(crate) fn first_read(&mut self, qp_num: u32) {
        if let Some(noted) = self.excess.remove(&qp_num) {
            self.note(noted.problem, noted.site);
        }
    }

    /// Forgets the reads of a queue pair that is no longer connected.
    pub(crate) fn forget_reads(&mut self, qp_num: u32) {
        self.excess.remove(&qp_num);
    }
}
