//! Atomics: what they do to memory, and what was answered, for a requester that asks again.

use std::collections::VecDeque;

use verbs_api::behavior::AtomicCheck;
use verbs_api::{Access, SendOp, SendWr, WcStatus};

use super::Node;
use super::requester::OutPacket;
use super::responder::{INVALID, Refusal};
use crate::memory::{Gone, Payload};
use crate::packet::{AtomicEth, AtomicOp, Op, Psn};

/// Bytes that an atomic works on, and that it answers with.
pub(super) const BYTES: u32 = 8;

/// The last answers of a responder, by their sequence number. An atomic that comes again is not
/// carried out again (ATOM-09).
#[derive(Clone, Debug, Default)]
pub(super) struct Replies(VecDeque<(Psn, u64)>);

impl Replies {
    /// As many are kept as the peer may have under way.
    fn keep(&mut self, psn: Psn, original: u64, most: u8) {
        while self.0.len() >= usize::from(most) {
            self.0.pop_front();
        }
        self.0.push_back((psn, original));
    }

    fn find(&self, psn: Psn) -> Option<u64> {
        let found = self.0.iter().find(|(of, _)| *of == psn)?;
        Some(found.1)
    }

    /// The connection is over.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl AtomicOp {
    fn applied_to(self, value: u64) -> u64 {
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

impl Node {
    /// What is wrong with an atomic, for a device that looks when it is posted (ATOM-03, ATOM-04).
    pub(super) fn refuses_atomic(&self, wr: &SendWr<'_>, length: u64) -> Option<&'static str> {
        let eth = header(&wr.op).filter(|_| self.behavior.atomic_check == AtomicCheck::Post)?;
        if length < BYTES.into() {
            Some("has no room for 8 bytes")
        } else if !eth.is_aligned() {
            Some("has a remote address that is no multiple of 8")
        } else {
            None
        }
    }

    /// Carries out an atomic, and answers with what was there.
    pub(super) fn execute_atomic(
        &mut self,
        index: u32,
        psn: Psn,
        eth: AtomicEth,
    ) -> Result<u32, Refusal> {
        let qp = self.qps.at(index);
        let most = qp.attr.max_dest_rd_atomic;
        // The alignment is looked at before the key (ATOM-04).
        if most == 0 || !eth.is_aligned() {
            return Err(INVALID);
        }
        self.check_enabled(index, Access::REMOTE_ATOMIC, None)?;
        let place = self
            .touch_remote(
                index,
                eth.rkey,
                eth.addr,
                BYTES.into(),
                Access::REMOTE_ATOMIC,
            )
            .map_err(|_| self.access_fault(None))?;
        let mut bytes = [0; BYTES as usize];
        let mut memory = self.memory.lock();
        let lost = |Gone| Refusal::Lost;
        memory
            .read(place.region, place.offset, &mut bytes)
            .map_err(lost)?;
        let original = u64::from_ne_bytes(bytes);
        let value = eth.op.applied_to(original).to_ne_bytes();
        memory
            .write(place.region, place.offset, &value)
            .map_err(lost)?;
        drop(memory);
        self.qps.at_mut(index).replies.keep(psn, original, most);
        self.answer_atomic(index, psn, original);
        Ok(1)
    }

    /// Answers an atomic that was carried out before, if that is not too long ago.
    pub(super) fn repeat_atomic(&mut self, index: u32, psn: Psn) {
        if let Some(original) = self.qps.at(index).replies.find(psn) {
            self.answer_atomic(index, psn, original);
        }
    }

    fn answer_atomic(&mut self, index: u32, psn: Psn, original: u64) {
        let packet = OutPacket::answer(Op::AtomicResponse, psn);
        let payload = Payload::inline(original.to_ne_bytes()[..].into());
        self.send_to_peer(index, packet, payload);
    }
}
