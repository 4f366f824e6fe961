//! Asynchronous events.

use std::ffi::c_int;

use verbs_abi::{ElementType, ibv_async_event, ibv_context};
use verbs_api::{
    AsyncEvent, AsyncEventType, Context, Element, Handle, QpAttrMask, QpType, Verbs, Wait,
};

use verbs_sim::WaitGuard;

use super::context::OpenDevice;
use super::cq::Cq;
use super::qp::{self, Qp};
use super::srq::Srq;
use crate::c::blocking;
use crate::c::{CObject, Kind, Refusal, Result, passed, present, silent};
use crate::engine::{sim, unobserved};

pub(crate) extern "C-unwind" fn get_async_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
) -> c_int {
    let attempt = |context: &CObject<OpenDevice>| {
        present(event)?;
        let take = || sim().get_async_event(context.handle, Wait::Poll);
        blocking::look(&context.more.async_fd, take)?.give(|taken| {
            let taken = ibv_async_event {
                element: element(taken.element)?,
                event_type: taken.event_type.into(),
            };
            // SAFETY: the program's, to be written (C's contract).
            unsafe { event.write(taken) };
            Ok(())
        })
    };
    let sleeping = |context: &CObject<OpenDevice>| Some(WaitGuard::on_async(sim(), context.handle));
    blocking::call("ibv_get_async_event", context, attempt, sleeping)
}

/// The pointer of an object, or the number of a port, as C has both in one field.
fn element(element: Element) -> Result<usize> {
    Ok(match element {
        Element::Cq(cq) => {
            CObject::<Cq>::numbered(unobserved().query_cq(cq)?.cq_context)?.seen() as usize
        }
        Element::Qp(qp) => {
            let found = unobserved().query_qp(qp, QpAttrMask::empty())?;
            match found.init.qp_type {
                // The engine keeps no number for these.
                QpType::XrcRecv => {
                    let targets = qp::TARGETS.get_or_default().lock();
                    let found = targets.get(&qp).ok_or(Refusal::expected(libc::EIO))?;
                    found.seen() as usize
                }
                _ => CObject::<Qp>::numbered(found.init.qp_context)?.seen() as usize,
            }
        }
        Element::Srq(srq) => {
            CObject::<Srq>::numbered(unobserved().srq_init(srq)?.srq_context)?.seen() as usize
        }
        Element::Port(port) => port.into(),
        _ => 0,
    })
}

/// `ibv_ack_async_event`. Events of a device or a port need no acknowledgement: nothing waits for
/// it.
pub(crate) extern "C" fn ack_async_event(event: *mut ibv_async_event) {
    silent("ibv_ack_async_event", (), |()| {
        // SAFETY: the program's, valid for the call (C's contract).
        let event = unsafe { passed(event) }?;
        let event_type = AsyncEventType::from(event.event_type);
        let pointer = event.element;
        let (context, element) = match ElementType::of(event_type) {
            // The type of the event decides what its element points to.
            ElementType::Cq => of::<Cq>(pointer, Element::Cq)?,
            ElementType::Qp => of::<Qp>(pointer, Element::Qp)?,
            ElementType::Srq => of::<Srq>(pointer, Element::Srq)?,
            _ => return Ok(()),
        };
        let event = AsyncEvent::new(event_type, element);
        Ok(sim().ack_async_event(context, &event)?)
    });
}

/// The context of an object, and the object as the element of an event.
fn of<K: Kind>(pointer: usize, element: fn(K::Handle) -> Element) -> Result<(Context, Element)> {
    let handle = CObject::<K>::find(pointer as *mut K::Seen)?.handle;
    Ok((handle.context(), element(handle)))
}
