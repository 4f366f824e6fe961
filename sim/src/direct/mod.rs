//! The fast path: a message that nothing can disturb moves from memory to memory, without packets.
//!
//! It states the conditions of packets a second time, and leaves both ends as packets would. The
//! test `crate::equivalence` compares the two.
//!
//! | file | |
//! |---|---|
//! | `conditions` | the conditions at each end, and the state that each end reaches |
//! | `datagram` | conditions and effects of UD |
//! | `fast_path` | one message or a list, from node to node |

#[cfg_attr(any(), mutants::skip)] // the suite observes packets; `equivalence` compares it
pub(crate) mod conditions;
#[cfg_attr(any(), mutants::skip)] // the suite observes packets; `equivalence` compares it
mod datagram;
#[cfg_attr(any(), mutants::skip)] // the suite observes packets; `equivalence` compares it
mod fast_path;
#[cfg(test)]
pub(crate) mod tally;

pub(crate) use fast_path::{Direct, FastPath, keeps_paths};
