//! Ids that wait for their events by themselves, and endpoints, which are such ids.

use std::ffi::c_int;
use std::ptr::null_mut;

use verbs_abi::{
    RAI_PASSIVE, RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_REJECTED, ibv_pd, ibv_qp_init_attr,
    rdma_addrinfo, rdma_cm_event, rdma_cm_id,
};
use verbs_api::Verb;
use verbs_api::cm::CmEventType;

use super::address::{bind_addr, resolve_addr, resolve_route};
use super::event;
use super::id::{self, Id};
use super::qp;
use crate::object::CObject;
use crate::result::{Refusal, Result, last_errno, or_minus_one, present, silent};

/// What an endpoint that listens makes for each request.
#[derive(Clone, Copy)]
pub(super) struct Endpoint {
    pd: *mut ibv_pd,
    init: Option<ibv_qp_init_attr>,
}

// SAFETY: the pointers are the program's, which promises that they are good as long as the endpoint.
unsafe impl Send for Endpoint {}

/// Time to resolve an address, and a route.
const RESOLVE_MS: c_int = 2000;

impl CObject<Id> {
    /// Of an id that waits by itself: lets what a call has begun come to its end. Its event is that of the id then.
    pub(super) fn complete(&self, call: Verb) -> Result<()> {
        let Some(channel) = self.more.own.lock().channel.clone() else {
            return Ok(());
        };
        self.let_go_of_event()?;
        let event = event::next(call.name(), &channel)?;
        // SAFETY: one of ours, which stays for the call; calls set the event, which has just been read.
        let (kind, status) = unsafe {
            (*self.seen()).event = event;
            ((*event).event, (*event).status)
        };
        match status {
            0 => Ok(()),
            _ if kind == RDMA_CM_EVENT_REJECTED => Err(Refusal::expected(libc::ECONNREFUSED)),
            status => Err(Refusal::expected(status)),
        }
    }
}

pub(crate) extern "C" fn create_ep(
    id: *mut *mut rdma_cm_id,
    info: *mut rdma_addrinfo,
    pd: *mut ibv_pd,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    or_minus_one("rdma_create_ep", (), || {
        present(id)?;
        present(info)?;
        // SAFETY: the program's, valid for the call (C's contract).
        let info = unsafe { info.read() };
        let ps = u32::try_from(info.ai_port_space).map_err(|_| {
            let what = format!("ai_port_space is {}", info.ai_port_space);
            Refusal::new(libc::EINVAL, what)
        })?;
        let made = id::create(null_mut(), null_mut(), ps)?;
        let ready = begin(&made, &info, pd, init);
        ready.inspect_err(|_| {
            let _ = end(&made);
        })?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { id.write(made.seen()) };
        Ok(0)
    })
}

/// Brings a new endpoint as far as its addresses lead.
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
    if info.ai_flags & RAI_PASSIVE != 0 {
        succeeded(bind_addr(id, info.ai_src_addr))?;
        let init = match init.is_null() {
            true => None,
            // SAFETY: the program's, valid for the call (C's contract).
            false => Some(unsafe { init.read() }),
        };
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
    match init.is_null() {
        true => Ok(()),
        false => succeeded(qp::create_qp(id, pd, init)),
    }
}

/// What a call of this library has returned.
fn succeeded(result: c_int) -> Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(Refusal::noted(last_errno())),
    }
}

/// Waits for a request to a listening endpoint. Its id has a queue pair if the endpoint has attributes for one.
pub(crate) extern "C" fn get_request(listen: *mut rdma_cm_id, id: *mut *mut rdma_cm_id) -> c_int {
    or_minus_one("rdma_get_request", listen, || {
        let listener = CObject::<Id>::find(listen)?.hold();
        present(id)?;
        let (channel, endpoint) = {
            let own = listener.more.own.lock();
            let channel = own.channel.clone().ok_or_else(|| {
                let what = "the id has an event channel of the program, which gives its requests";
                Refusal::new(libc::EINVAL, what)
            })?;
            (channel, own.endpoint)
        };
        listener.let_go_of_event()?;
        let event = event::next("rdma_get_request", &channel)?;
        let made = take(event, endpoint).inspect_err(|_| {
            let _ = event::acknowledge(event);
        })?;
        // SAFETY: one of ours, which stays for the call; calls set the event. The other is the program's, to be
        // written (C's contract).
        unsafe {
            (*made).event = event;
            id.write(made);
        }
        Ok(0)
    })
}

fn take(event: *mut rdma_cm_event, endpoint: Option<Endpoint>) -> Result<*mut rdma_cm_id> {
    // SAFETY: it has just been read.
    let (kind, status, id) = unsafe { ((*event).event, (*event).status, (*event).id) };
    if status != 0 {
        return Err(Refusal::expected(status));
    }
    if kind != RDMA_CM_EVENT_CONNECT_REQUEST {
        let what = format!("the event is {}, and no request", CmEventType::from(kind));
        return Err(Refusal::new(libc::EINVAL, what));
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
    silent("rdma_destroy_ep", id, || {
        end(&CObject::<Id>::find(id)?.hold())
    });
}

fn end(id: &CObject<Id>) -> Result<()> {
    qp::destroy_qp(id.seen());
    qp::destroy_srq(id.seen());
    id.destroy()
}
