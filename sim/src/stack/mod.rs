//! What stands on the device: queue pairs, and on them the node and all that surrounds it.
//!
//! A module can name what is private to the modules around it, but nothing that is private to those
//! beside it. So the floors are nested, and the compiler keeps them apart: `device`, outside, cannot
//! name what is in here; `qp` cannot name the node, which is private to `shell`.

mod qp;
pub(crate) mod shell;
