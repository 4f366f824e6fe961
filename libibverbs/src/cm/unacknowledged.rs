//! Events that were read and not acknowledged.

use std::collections::BTreeMap;

use verbs_abi::{rdma_cm_event, rdma_cm_param};
use verbs_api::cm::{Cm, CmEvent};
use verbs_api::sync::Mutex;
use verbs_sim::Class;

use crate::base::per_process::PerProcess;
use crate::c::{Refusal, Result};
use crate::engine::sim;

/// The structure of the program, and the event that it points into.
struct Read {
    seen: Box<rdma_cm_event>,
    event: CmEvent,
}

// SAFETY: the structure is the program's, as in C. Its pointers are those of objects, which any
// thread may use.
unsafe impl Send for Read {}

/// The events, by the addresses that the program has.
static EVENTS: PerProcess<Mutex<BTreeMap<usize, Read>>> = PerProcess::new();

/// Keeps an event for the program. `shown` is its structure without the parameters.
pub(super) fn keep(event: CmEvent, shown: rdma_cm_event) -> *mut rdma_cm_event {
    let mut read = Read {
        seen: Box::new(shown),
        event,
    };
    // Moving the event does not move the private data that the parameters point to.
    read.seen.param = rdma_cm_param::to_c(&read.event.param);
    let address = &raw mut *read.seen;
    EVENTS
        .get_or_default()
        .lock()
        .insert(address as usize, read);
    address
}

/// Acknowledges an event, and frees its structure.
pub(super) fn acknowledge(event: *mut rdma_cm_event) -> Result<()> {
    let mut events = EVENTS.get_or_default().lock();
    let read = events.remove(&(event as usize));
    drop(events);
    let read = read.ok_or_else(|| unknown(event))?;
    Ok(sim().ack_cm_event(&read.event)?)
}

fn unknown(event: *mut rdma_cm_event) -> Refusal {
    if event.is_null() {
        return Refusal::invalid("the pointer to the event is NULL");
    }
    let what = "the event was acknowledged before, or never read";
    Refusal::of(Class::OverAcknowledged, libc::EINVAL, what)
}
