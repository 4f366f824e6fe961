//! The fast path: a message that nothing can disturb moves from memory to memory, without packets.
//!
//! It states the conditions of the other path a second time, and leaves both ends as packets would. The test
//! `equivalence` holds it to that.
//!
//! | file | |
//! |---|---|
//! | `conditions` | what must hold at each end, and what each end becomes |
//! | `datagram` | the same for UD |
//! | `send_one` | one message or a list, from node to node |

mod conditions;
mod datagram;
#[cfg(test)]
mod equivalence;
mod fast_path;
#[cfg(test)]
mod tally;

pub(crate) use fast_path::{Direct, FastPath, keeps_paths};
