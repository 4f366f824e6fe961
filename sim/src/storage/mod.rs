//! Containers: a ring buffer, and a free list of the memory that ring buffers use.

mod ring;
mod spare;

pub(crate) use ring::Ring;
pub(crate) use spare::Spare;
