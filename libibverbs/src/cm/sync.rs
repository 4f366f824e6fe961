//! Endpoints: ids that wait for their events by themselves, and make a queue pair.

use std::ffi::c_int;
use std::ptr::null_mut;

use verbs_abi::{
    RAI_PASSIVE, RDMA_CM_EVENT_CONNECT_REQUEST, ibv_pd, ibv_qp_init_attr, rdma_addrinfo,
    rdma_cm_event, rdma_cm_id,
};
use verbs_api::cm::CmEventType;

use super::address::{bind_addr, resolve_addr, resolve_route};
use super::event;
use super::id::{self, Endpoint, Id};
use super::qp;
use super::unacknowledged::acknowledge;
use crate::c::{CObject, Refusal, Result, last_errno, passed, present, silent, zero_or_minus_one};

/// Time to resolve an address, and again to resolve a route, in milliseconds.
const RESOLVE_MS: c_int = 2000;

pub(crate) extern "C" fn create_ep(
    id: *mut *mut rdma_cm_id,
    info: *mut rdma_addrinfo,
    pd: *mut ibv_pd,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    zero_or_minus_one("rdma_create_ep", (), |()| {
        present(id)?;
        // SAFETY: the program's, valid for the call (C's contract).
        let info = unsafe { passed(info) }?;
        let ps = u32::try_from(info.ai_port_space)
            .map_err(|_| Refusal::invalid(format!("ai_port_space is {}", info.ai_port_space)))?;
        let made = id::create(null_mut(), null_mut(), ps)?;
        let ready = begin(&made, &info, pd, init);
        // The program does not get an id that is not ready.
        ready.inspect_err(|_| {
            let _ = end(&made);
        })?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { id.write(made.seen()) };
        Ok(())
    })
}

/// Binds a new passive endpoint, or resolves the addresses of an active one.
fn begin(
    made: &CObject<Id>,
    info: &rdma_addrinfo,
    pd: *mut ibv_pd,
    init: *mut ibv_qp_init_attr,
) -> Result<()> {
    let id = made.seen();
    let qp_type = info.ai_qp_type as u32;
    if !init.is_null() {
        present(init)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { (*init).qp_type = qp_type };
    }
    // A passive endpoint makes its queue pairs when requests come.
    if info.ai_flags & RAI_PASSIVE != 0 {
        succeeded(bind_addr(id, info.ai_src_addr))?;
        // SAFETY: the program's, valid for the call (C's contract).
        let init = (!init.is_null()).then(|| unsafe { init.read() });
        made.more.own.lock().endpoint = Some(Endpoint { pd, init });
        return Ok(());
    }
    succeeded(resolve_addr(
        id,
        info.ai_src_addr,
        info.ai_dst_addr,
        RESOLVE_MS,
    ))?;
    succeeded(resolve_route(id, RESOLVE_MS))?;
    if init.is_null() {
        return Ok(());
    }
    succeeded(qp::create_qp(id, pd, init))
}

/// The result of a function of this library, which has noted why it failed.
fn succeeded(result: c_int) -> Result<()> {
    if result != 0 {
        return Err(Refusal::expected(last_errno()));
    }
    Ok(())
}

/// `rdma_get_request`: waits for a request to a listening endpoint. The id of the request has a
/// queue pair if the endpoint has attributes for one.
pub(crate) extern "C" fn get_request(listen: *mut rdma_cm_id, id: *mut *mut rdma_cm_id) -> c_int {
    zero_or_minus_one("rdma_get_request", listen, |listener| {
        let listener = listener.held();
        present(id)?;
        // The lock is not held while the call waits.
        let (channel, endpoint) = {
            let own = listener.more.own.lock();
            let channel = own.channel.clone().ok_or_else(|| {
                Refusal::invalid(
                    "the id has an event channel of the program, which gives its requests",
                )
            })?;
            (channel, own.endpoint)
        };
        listener.acknowledge_own()?;
        let event = event::next("rdma_get_request", &channel)?;
        let made = take(event, endpoint).inspect_err(|_| {
            let _ = acknowledge(event);
        })?;
        // SAFETY: one of ours, which stays for the call; calls set the event. The other is the
        // program's, to be written (C's contract).
        unsafe {
            (*made).event = event;
            id.write(made);
        }
        Ok(())
    })
}

/// The id of a request. The error is why the event is not a request.
fn take(event: *mut rdma_cm_event, endpoint: Option<Endpoint>) -> Result<*mut rdma_cm_id> {
    // SAFETY: it has just been read.
    let (kind, status, id) = unsafe { ((*event).event, (*event).status, (*event).id) };
    if status != 0 {
        return Err(Refusal::expected(status));
    }
    if kind != RDMA_CM_EVENT_CONNECT_REQUEST {
        return Err(Refusal::invalid(format!(
            "the event is {}, and no request",
            CmEventType::from(kind)
        )));
    }
    if let Some(Endpoint {
        pd,
        init: Some(mut init),
    }) = endpoint
    {
        succeeded(qp::create_qp(id, pd, &mut init))?;
    }
    Ok(id)
}

pub(crate) extern "C" fn destroy_ep(id: *mut rdma_cm_id) {
    silent("rdma_destroy_ep", id, |id| end(&id.held()));
}

fn end(id: &CObject<Id>) -> Result<()> {
    qp::destroy_qp(id.seen());
    qp::destroy_srq(id.seen());
    id.destroy()
}
