//! A completion.

use core::fmt;
use core::ops::Deref;

use crate::cq::Wc;

/// A completion, and the QP it belongs to. `W` is what the device reports, with the program's own
/// `wr_id`.
///
/// ```
/// use verbs_api::owned::{Completions, Context, Cq, Pd, Qp};
/// use verbs_api::{QpType, Result};
///
/// /// What a program knows of a peer.
/// struct Peer {
///     qp: Qp,
///     received: u64,
/// }
///
/// fn meet(peers: &mut Vec<Peer>, pd: &Pd, cq: &Cq) -> Result<()> {
///     let qp = pd.qp(QpType::Rc, cq, cq).qp_context(peers.len() as u64).create()?;
///     peers.push(Peer { qp, received: 0 });
///     Ok(())
/// }
///
/// fn count(peers: &mut [Peer], completions: Completions) {
///     for completion in completions.filter(|completion| completion.opcode.is_recv()) {
///         peers[completion.qp_context as usize].received += u64::from(completion.byte_len);
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion<W = Wc> {
    /// The completion of the device.
    pub wc: W,
    /// The program's own value for the queue pair
    /// ([`QpBuilder::qp_context`](super::QpBuilder::qp_context)), even if the queue pair was
    /// destroyed. 0 for an XRC_RECV queue pair, and for work posted by a raw handle.
    ///
    /// For a receive of an SRQ it is found by the number of the queue pair. If a device gives that
    /// number to another queue pair before the completions of the destroyed one are polled, they
    /// get the value of the new one.
    pub qp_context: u64,
}

impl<W> Deref for Completion<W> {
    type Target = W;

    fn deref(&self) -> &W {
        &self.wc
    }
}

impl<W: fmt::Display> fmt::Display for Completion<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.wc.fmt(f)
    }
}
