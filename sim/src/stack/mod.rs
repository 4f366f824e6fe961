//! What stands on the device: queue pairs, and on them everything else.
//!
//! A module sees what is private to those around it, and nothing that is private to those beside it.
//! So the floors are nested, and the compiler keeps them apart: `device` cannot name a queue pair,
//! and a queue pair cannot name the node.

mod qp;
pub(crate) mod shell;
