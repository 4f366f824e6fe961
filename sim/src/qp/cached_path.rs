//! The path to the peer, which the fast path keeps with the requester.

use bitflags::bitflags;

/// The path to the peer, valid in one epoch of the fabric.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CachedPath {
    pub(crate) epoch: u64,
    pub(crate) node: u32,
    /// The slot of the peer on that node.
    pub(crate) peer: u32,
    /// The kinds of messages that both ends are ready for.
    pub(crate) kinds: Kinds,
    /// Whether a send completes when it has left, before its message is received.
    pub(crate) ends_first: bool,
}

bitflags! {
    /// The kind of a message, or a set of kinds.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Kinds: u8 {
        const SEND = 1 << 0;
        const SEND_WITH_IMM = 1 << 1;
        const WRITE = 1 << 2;
        const WRITE_WITH_IMM = 1 << 3;
        const READ = 1 << 4;
        const ATOMIC = 1 << 5;

        const SENDS = Self::SEND.bits() | Self::SEND_WITH_IMM.bits();
        const WRITES = Self::WRITE.bits() | Self::WRITE_WITH_IMM.bits();
        /// The kinds that return data.
        const READS = Self::READ.bits() | Self::ATOMIC.bits();
        /// The kinds that consume a receive.
        const RECEIVED = Self::SENDS.bits() | Self::WRITE_WITH_IMM.bits();
    }
}
