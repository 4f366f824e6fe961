//! The calls of the engine.

use verbs_api::Verbs;
use verbs_api::cm::Cm;

use crate::c::result::{Refusal, Result};
use crate::engine::{engine, unobserved};

/// The engine's rdma_cm.
pub(super) fn cm() -> Result<&'static dyn Cm> {
    engine().sim.cm().ok_or_else(absent)
}

/// The engine's rdma_cm for the library's own needs (see [`unobserved`]).
pub(super) fn unobserved_cm() -> Result<&'static dyn Cm> {
    unobserved().cm().ok_or_else(absent)
}

#[cold]
fn absent() -> Refusal {
    Refusal::unsupported("the devices have no rdma_cm")
}
