//! `ibv_create_qp_ex` and `ibv_open_qp`: queue pairs for batches, and those of XRC_RECV.

use std::ffi::c_void;
use std::ptr::null_mut;

use verbs_abi::{
    IBV_QP_INIT_ATTR_CREATE_FLAGS, IBV_QP_INIT_ATTR_PD, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
    IBV_QP_INIT_ATTR_XRCD, IBV_QP_OPEN_ATTR_CONTEXT, IBV_QP_OPEN_ATTR_NUM, IBV_QP_OPEN_ATTR_TYPE,
    IBV_QP_OPEN_ATTR_XRCD, ibv_context, ibv_qp, ibv_qp_cap, ibv_qp_ex, ibv_qp_init_attr,
    ibv_qp_init_attr_ex, ibv_qp_open_attr, ibv_xrcd,
};
use verbs_api::{QpAttrMask, QpType, SendOps, Verbs};

use super::context::context_of;
use super::domain::Pd;
use super::qp::{self, Qp};
use super::wr;
use super::xrc::Xrcd;
use crate::base::record;
use crate::c::{
    CObject, Found, Later, Refusal, Result, known_bits, new_object, passed, present, same_context,
};
use crate::engine::{sim, unobserved};

/// The operations that extended attributes ask for.
///
/// # Safety
/// `init` has the fields that its mask names.
pub(crate) unsafe fn send_ops(init: *const ibv_qp_init_attr_ex) -> SendOps {
    // SAFETY: the caller's promise. Only fields that the mask names are read.
    unsafe {
        if (*init).comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS == 0 {
            return SendOps::empty();
        }
        SendOps::from_bits_retain((*init).send_ops_flags)
    }
}

pub(crate) extern "C" fn create_qp_ex(
    context: *mut ibv_context,
    init: *mut ibv_qp_init_attr_ex,
) -> *mut ibv_qp {
    new_object("ibv_create_qp_ex", Later(context), |()| {
        present(init)?;
        // SAFETY: the program's, valid for the call. It may lack the fields that its mask does not
        // name, so only named fields are read (C's contract).
        let (comp_mask, pd) = unsafe { ((*init).comp_mask, (*init).pd) };
        known_bits(
            "comp_mask",
            comp_mask,
            IBV_QP_INIT_ATTR_PD
                | IBV_QP_INIT_ATTR_XRCD
                | IBV_QP_INIT_ATTR_CREATE_FLAGS
                | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        )?;
        if comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS != 0 {
            // SAFETY: as above.
            known_bits("create_flags", unsafe { (*init).create_flags }, 0)?;
        }
        // SAFETY: as above.
        let send_ops = unsafe { send_ops(init) };
        // SAFETY: the plain structure is the start of the extended one.
        let plain = unsafe { init.cast::<ibv_qp_init_attr>().read() };
        let qp_type = QpType::from(plain.qp_type);
        let is_target = qp_type == QpType::XrcRecv;
        // A target is in an XRC domain and has no protection domain.
        if is_target != (comp_mask & IBV_QP_INIT_ATTR_XRCD != 0)
            || !is_target && comp_mask & IBV_QP_INIT_ATTR_PD == 0
        {
            let what = format!(
                "comp_mask is {comp_mask:#x}: a queue pair of {qp_type} needs a {}",
                if is_target { "xrcd" } else { "pd, and no xrcd" }
            );
            return Err(Refusal::invalid(what));
        }
        if is_target {
            // SAFETY: as above.
            let xrcd = unsafe { (*init).xrcd };
            let create = |xrcd| sim().create_xrc_recv_qp(xrcd);
            return target(context, xrcd, plain.qp_context, create);
        }
        same_context(CObject::<Pd>::find(pd)?.handle, context_of(context)?)?;
        let qp = qp::create(pd, &plain, wr::operations(send_ops), qp::Maker::Verbs)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { (*init).cap = ibv_qp_cap::to_c(&qp.more.cap) };
        Ok(qp)
    })
}

const NUM_XRCD_AND_TYPE: u32 = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;

pub(crate) extern "C" fn open_qp(
    context: *mut ibv_context,
    attr: *mut ibv_qp_open_attr,
) -> *mut ibv_qp {
    new_object("ibv_open_qp", Later(context), |()| {
        // SAFETY: the program's, valid for the call (C's contract).
        let attr = unsafe { passed(attr) }?;
        let known = NUM_XRCD_AND_TYPE | IBV_QP_OPEN_ATTR_CONTEXT;
        known_bits("comp_mask", attr.comp_mask, known)?;
        let names_all = attr.comp_mask & NUM_XRCD_AND_TYPE == NUM_XRCD_AND_TYPE;
        if !names_all || QpType::from(attr.qp_type) != QpType::XrcRecv {
            return Err(Refusal::invalid(
                "comp_mask and qp_type do not name a queue pair of XRC_RECV by number and xrcd",
            ));
        }
        let qp_context = match attr.comp_mask & IBV_QP_OPEN_ATTR_CONTEXT {
            0 => null_mut(),
            _ => attr.qp_context,
        };
        let number = attr.qp_num;
        let open = |xrcd| sim().open_qp(xrcd, number);
        target(context, attr.xrcd, qp_context, open)
    })
}

/// Makes the structure of a queue pair of XRC_RECV, which has neither queues nor a protection
/// domain. `make` creates or opens it in the engine.
fn target(
    context: *mut ibv_context,
    xrcd: *mut ibv_xrcd,
    qp_context: *mut c_void,
    make: impl FnOnce(verbs_api::Xrcd) -> verbs_api::Result<verbs_api::Qp>,
) -> Result<Found<Qp>> {
    let xrcd = CObject::<Xrcd>::find(xrcd)?.handle;
    same_context(xrcd, context_of(context)?)?;
    let handle = make(xrcd)?;
    record::has_queue_pair();
    let got = unobserved().query_qp(handle, QpAttrMask::STATE)?;
    let qp_base = ibv_qp {
        context,
        qp_context,
        qp_num: got.qp_num,
        state: got.attr.qp_state.into(),
        qp_type: QpType::XrcRecv.into(),
        ..ibv_qp::default()
    };
    let raw = || ibv_qp_ex {
        qp_base,
        ..ibv_qp_ex::default()
    };
    let more = qp::More::without_queues(got.init.cap);
    let qp = CObject::<Qp>::make(handle, more, raw)?;
    let targets = qp::TARGETS.get_or_default();
    targets.lock().insert(handle, qp.hold());
    Ok(qp)
}
