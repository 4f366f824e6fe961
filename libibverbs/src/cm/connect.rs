//! Connections.
use std::ffi::{c_int, c_void};

use verbs_abi::{ibv_qp_attr, rdma_cm_id, rdma_conn_param};
use verbs_api::cm::{Cm, CmId, ConnParam, PortSpace, RDMA_MAX_INIT_DEPTH, RDMA_MAX_RESP_RES};
use verbs_api::{AsyncEventType, QpState, Verb};
use verbs_sim::Sim;

use super::id::Id;
use crate::c::{CObject, Result, present, zero_or_minus_one};
use crate::engine::sim;

pub(crate) extern "C" fn listen(id: *mut rdma_cm_id, backlog: c_int) -> c_int {
    on("rdma_listen", id, |cm, id| cm.listen(id, backlog))
}

pub(crate) extern "C" fn connect(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int {
    zero_or_minus_one("rdma_connect", id, |id| {
        let id = id.held();
        // The program may have made the queue pair by verbs.
        id.follow_qp()?;
        with(&id, param, |cm, id, param| cm.connect(id, param))?;
        id.complete(Verb::CmConnect)
    })
}

/// `rdma_accept`. For datagrams nothing follows, so the call does not wait.
pub(crate) extern "C" fn accept(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int {
    zero_or_minus_one("rdma_accept", id, |id| {
        let id = id.held();
        id.follow_qp()?;
        // A call that fails may have changed the queue pair, so the structure follows in any case.
        let accepted = with(&id, param, |cm, id, param| cm.accept(id, param));
        id.refresh()?;
        accepted?;
        if !id.is_datagram() {
            id.complete(Verb::CmAccept)?;
        }
        Ok(())
    })
}

/// Calls the engine with the parameters of the program, or with the defaults of librdmacm.
fn with(
    id: &CObject<Id>,
    param: *const rdma_conn_param,
    call: fn(&Sim, CmId, &ConnParam<'_>) -> verbs_api::Result<()>,
) -> Result<()> {
    let param = if param.is_null() {
        default_param()
    } else {
        present(param)?;
        // SAFETY: the program's, with its private data, valid for the call (C's contract).
        unsafe { (*param).param() }
    };
    Ok(call(sim(), id.handle, &param)?)
}

pub(crate) extern "C" fn reject(id: *mut rdma_cm_id, data: *const c_void, length: u8) -> c_int {
    // SAFETY: the program's, valid for the call, of this length (C's contract).
    let data = unsafe { private_data(data, length) };
    on("rdma_reject", id, |cm, id| cm.reject(id, data))
}

/// Private data of a program. A null pointer means no data, as in librdmacm.
///
/// # Safety
/// If the pointer is not null, as many bytes are there for `'a`.
pub(super) unsafe fn private_data<'a>(data: *const c_void, length: u8) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { verbs_abi::slice(data.cast::<u8>(), length.into()) }.unwrap_or_default()
}

pub(crate) extern "C" fn establish(id: *mut rdma_cm_id) -> c_int {
    on("rdma_establish", id, |cm, id| cm.establish(id))
}

pub(crate) extern "C" fn notify(id: *mut rdma_cm_id, event: u32) -> c_int {
    on("rdma_notify", id, |cm, id| {
        cm.notify(id, AsyncEventType::from(event))
    })
}

pub(crate) extern "C" fn disconnect(id: *mut rdma_cm_id) -> c_int {
    zero_or_minus_one("rdma_disconnect", id, |id| {
        let id = id.held();
        id.follow_qp()?;
        // As in `accept`, the structure follows even if the call fails.
        let ended = sim().disconnect(id.handle);
        id.refresh()?;
        ended?;
        id.complete(Verb::CmDisconnect)
    })
}

/// Calls the engine for an id, and brings its structure up to date.
pub(super) fn on(
    name: &'static str,
    id: *mut rdma_cm_id,
    call: impl FnOnce(&Sim, CmId) -> verbs_api::Result<()>,
) -> c_int {
    zero_or_minus_one(name, id, |id| {
        call(sim(), id.handle)?;
        id.refresh()
    })
}

/// `rdma_init_qp_attr`. The attributes name the state that is asked for.
pub(crate) extern "C" fn init_qp_attr(
    id: *mut rdma_cm_id,
    attr: *mut ibv_qp_attr,
    mask: *mut c_int,
) -> c_int {
    zero_or_minus_one("rdma_init_qp_attr", id, |id| {
        present(attr)?;
        present(mask)?;
        // SAFETY: the program's, valid for the call (C's contract).
        let state = QpState::from(unsafe { (*attr).qp_state });
        let (found, of) = sim().init_qp_attr(id.handle, state)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe {
            attr.write(ibv_qp_attr::to_c(&found));
            mask.write(of.bits() as c_int);
        }
        Ok(())
    })
}

impl CObject<Id> {
    fn is_datagram(&self) -> bool {
        // SAFETY: one of ours, which stays for the call.
        let ps = unsafe { (*self.seen()).ps };
        PortSpace::from(ps).is_datagram()
    }
}

/// The resources of the device, and the largest numbers of retries.
fn default_param() -> ConnParam<'static> {
    const MAX_RETRIES: u8 = 7;
    ConnParam {
        responder_resources: RDMA_MAX_RESP_RES,
        initiator_depth: RDMA_MAX_INIT_DEPTH,
        retry_count: MAX_RETRIES,
        rnr_retry_count: MAX_RETRIES,
        ..ConnParam::default()
    }
}
