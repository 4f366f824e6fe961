//! Containers: a ring buffer, and a free list of the memory that ring buffers use.

mod free_list;
mod ring;

pub(crate) use free_list::FreeList;
pub(crate) use ring::Ring;
