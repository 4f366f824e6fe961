//! Atomics: what they do to memory, and what was answered, for a requester that asks again.

use std::collections::VecDeque;

use verbs_api::behavior::AtomicCheck;
use verbs_api::{SendOp, SendWr, WcStatus};

use crate::packet::{AtomicEth, AtomicOp, Psn};

/// Bytes that an atomic works on, and that it answers with.
pub(super) const BYTES: u32 = 8;

/// The last answers of a responder, by their sequence number. An atomic that comes again is not
/// carried out again (ATOM-09).
#[derive(Clone, Debug, Default)]
pub(super) struct Replies(VecDeque<(Psn, u64)>);

impl Replies {
    /// As many are kept as the peer may have under way.
    pub(super) fn keep(&mut self, psn: Psn, original: u64, most: u8) {
        while self.0.len() >= usize::from(most) {
            self.0.pop_front();
        }
        self.0.push_back((psn, original));
    }

    /// The newest of this number: sequence numbers come round.
    pub(super) fn find(&self, psn: Psn) -> Option<u64> {
        let found = self.0.iter().rev().find(|(of, _)| *of == psn)?;
        Some(found.1)
    }

    /// The connection is over.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl AtomicOp {
    pub(super) fn applied_to(self, value: u64) -> u64 {
        match self {
            Self::CompareAndSwap { compare, swap } if value == compare => swap,
            Self::CompareAndSwap { .. } => value,
            Self::FetchAndAdd { add } => value.wrapping_add(add),
        }
    }
}

/// The header of an atomic; `None` of other work.
pub(super) fn header(op: &SendOp) -> Option<AtomicEth> {
    let (remote, op) = match *op {
        SendOp::CompareAndSwap {
            remote,
            compare,
            swap,
        } => (remote, AtomicOp::CompareAndSwap { compare, swap }),
        SendOp::FetchAndAdd { remote, add } => (remote, AtomicOp::FetchAndAdd { add }),
        _ => return None,
    };
    Some(AtomicEth {
        addr: remote.addr,
        rkey: remote.rkey,
        op,
    })
}

/// The length of the answer that an atomic takes, or with what it fails (ATOM-03).
pub(super) fn length(check: AtomicCheck, length: u32) -> Result<u32, WcStatus> {
    match length {
        BYTES => Ok(BYTES),
        BYTES.. if check != AtomicCheck::Strict => Ok(BYTES),
        _ => Err(WcStatus::LocLenErr),
    }
}

/// What is wrong with an atomic, for a device that looks when it is posted (ATOM-03, ATOM-04).
pub(super) fn problem(check: AtomicCheck, wr: &SendWr<'_>, length: u64) -> Option<&'static str> {
    let eth = header(&wr.op).filter(|_| check == AtomicCheck::Post)?;
    if length < BYTES.into() {
        Some("has no room for 8 bytes")
    } else if !eth.is_aligned() {
        Some("has a remote address that is no multiple of 8")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ATOM-09: sequence numbers come round while answers of before are kept.
    #[test]
    fn newest_answer_of_a_number_counts() {
        let mut replies = Replies::default();
        for (psn, original) in [(7, 1), (8, 2), (7, 3)] {
            replies.keep(Psn::new(psn), original, 4);
        }
        let found = [7, 8, 9].map(|psn| replies.find(Psn::new(psn)));
        assert_eq!(found, [Some(3), Some(2), None]);
    }
}
