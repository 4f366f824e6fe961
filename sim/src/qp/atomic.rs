//! Atomics: their arguments, and what they do to memory.

use verbs_api::behavior::AtomicCheck;
use verbs_api::{SendOp, SendWr, WcStatus};

use crate::packet::{AtomicEth, AtomicOp};

/// The number of bytes that an atomic works on, and that its answer has.
pub(crate) const BYTES: u32 = 8;

/// Whether an atomic may work on the bytes at a remote address (ATOM-04).
pub(crate) fn is_aligned(addr: u64) -> bool {
    addr.is_multiple_of(BYTES.into())
}

impl AtomicOp {
    pub(crate) fn applied_to(self, value: u64) -> u64 {
        match self {
            Self::CompareAndSwap { compare, swap } if value == compare => swap,
            Self::CompareAndSwap { .. } => value,
            Self::FetchAndAdd { add } => value.wrapping_add(add),
        }
    }
}

/// The header of an atomic, or `None` for other work.
pub(crate) fn header(op: &SendOp) -> Option<AtomicEth> {
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

/// The length of the answer that an atomic accepts. The error is the status it fails with
/// (ATOM-03).
pub(crate) fn length(check: AtomicCheck, length: u32) -> Result<u32, WcStatus> {
    match length {
        BYTES => Ok(BYTES),
        BYTES.. if check != AtomicCheck::Strict => Ok(BYTES),
        _ => Err(WcStatus::LocLenErr),
    }
}

/// The problem of an atomic, for a device that checks it when it is posted (ATOM-03, ATOM-04).
#[inline]
pub(crate) fn problem(check: AtomicCheck, wr: &SendWr<'_>, length: u64) -> Option<&'static str> {
    // The cheap check first: few devices check this early.
    if check != AtomicCheck::Post {
        return None;
    }
    let eth = header(&wr.op)?;
    if length < BYTES.into() {
        Some("has no room for 8 bytes")
    } else if !is_aligned(eth.addr) {
        Some("has a remote address that is not a multiple of 8")
    } else {
        None
    }
}
