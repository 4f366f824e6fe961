//! Queue pairs of ids. CQs that are made for one are destroyed with it.

use std::ffi::c_int;
use std::ptr::{from_mut, null_mut};

use verbs_abi::{
    IBV_QP_INIT_ATTR_PD, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, IBV_SRQ_INIT_ATTR_PD, ibv_pd, ibv_qp_cap,
    ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_srq, ibv_srq_init_attr, ibv_srq_init_attr_ex,
    rdma_cm_id,
};
use verbs_api::SendOps;

use super::cqs::{MadeCqs, made};
use super::id::Id;
use crate::c::{CObject, Refusal, Result, known_bits, present, silent, zero_or_minus_one};
use crate::engine::sim;
use crate::verbs::qp::{self, Maker, Qp};
use crate::verbs::srq::{self, Srq};
use crate::verbs::{qp_ex, wr};

/// `rdma_create_qp`. Without `pd` the domain is that of the id. Writes the sizes of the queues, and
/// the CQs that were made, to `init`.
pub(crate) extern "C" fn create_qp(
    id: *mut rdma_cm_id,
    pd: *mut ibv_pd,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    zero_or_minus_one("rdma_create_qp", id, |id| {
        present(init)?;
        // SAFETY: the program's, valid for the call, and to be written (C's contract).
        create(&id, pd, unsafe { &mut *init }, SendOps::empty())
    })
}

pub(crate) extern "C" fn create_qp_ex(
    id: *mut rdma_cm_id,
    init: *mut ibv_qp_init_attr_ex,
) -> c_int {
    zero_or_minus_one("rdma_create_qp_ex", id, |id| {
        present(init)?;
        // SAFETY: the program's, valid for the call. It may lack the fields that its mask does not
        // name, so only named fields are read (C's contract).
        let comp_mask = unsafe { (*init).comp_mask };
        let known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        known_bits("comp_mask", comp_mask, known)?;
        let pd = match comp_mask & IBV_QP_INIT_ATTR_PD {
            0 => null_mut(),
            // SAFETY: as above.
            _ => unsafe { (*init).pd },
        };
        // SAFETY: as above.
        let send_ops = unsafe { qp_ex::send_ops(init) };
        // SAFETY: the plain structure is the start of the extended one.
        let plain = unsafe { &mut *init.cast::<ibv_qp_init_attr>() };
        create(&id, pd, plain, send_ops)
    })
}

const UNBOUND: &str =
    "the id is not bound to a device: call rdma_bind_addr or rdma_resolve_addr first";

fn create(
    of: &CObject<Id>,
    pd: *mut ibv_pd,
    init: &mut ibv_qp_init_attr,
    send_ops: SendOps,
) -> Result<()> {
    of.follow_qp()?;
    of.refresh()?;
    let id = of.seen();
    // SAFETY: one of ours, which stays for the call; programs may write the SRQ and the domain.
    let (verbs, own_pd, srq, qp_type) =
        unsafe { ((*id).verbs, (*id).pd, (*id).srq, (*id).qp_type) };
    let why = if verbs.is_null() {
        Some(UNBOUND)
    } else if of.more.own.lock().qp.is_some() {
        Some("the id has a queue pair already")
    } else if init.qp_type != qp_type {
        Some("qp_type is not that of the id's port space")
    } else {
        None
    };
    if let Some(why) = why {
        return Err(Refusal::invalid(why));
    }
    let pd = if pd.is_null() { own_pd } else { pd };
    let mut cqs = MadeCqs::default();
    // librdmacm takes the SRQ of the id unless the program names one.
    if init.srq.is_null() {
        init.srq = srq;
    }
    let maker = Maker::Cm(of.handle);
    let made = cqs.fill(id, init);
    let made = made.and_then(|()| qp::create(pd, init, wr::operations(send_ops), maker));
    let made = made.inspect_err(|_| cqs.destroy())?;
    init.cap = ibv_qp_cap::to_c(&made.more.cap);
    let [send, recv] = cqs.0;
    let mut own = of.more.own.lock();
    (own.qp, own.cqs) = (Some(made.hold()), cqs);
    // SAFETY: one of ours, which stays for the call; the call sets these fields.
    unsafe {
        (*id).qp = made.seen();
        (*id).pd = pd;
        (*id).send_cq = init.send_cq;
        (*id).recv_cq = init.recv_cq;
        (*id).send_cq_channel = send.map_or((*id).send_cq_channel, |made| made.channel);
        (*id).recv_cq_channel = recv.map_or((*id).recv_cq_channel, |made| made.channel);
    }
    drop(own);
    of.refresh()
}

/// `rdma_destroy_qp`. Destroys the CQs that were made for the queue pair, too.
pub(crate) extern "C" fn destroy_qp(id: *mut rdma_cm_id) {
    silent("rdma_destroy_qp", id, |of| {
        let of = of.held();
        of.follow_qp()?;
        let Some(qp) = of.more.own.lock().qp.clone() else {
            return Ok(());
        };
        qp::destroy(&qp, Maker::Cm(of.handle))?;
        let mut own = of.more.own.lock();
        own.qp = None;
        let mut cqs = std::mem::take(&mut own.cqs);
        drop(own);
        cqs.destroy();
        // SAFETY: one of ours, which stays for the call; the call sets these fields.
        unsafe {
            (*id).qp = null_mut();
            ((*id).send_cq, (*id).recv_cq) = (null_mut(), null_mut());
            ((*id).send_cq_channel, (*id).recv_cq_channel) = (null_mut(), null_mut());
        }
        Ok(())
    });
}

/// `rdma_create_srq`. Queue pairs that are later made for the id use it, unless they name another.
pub(crate) extern "C" fn create_srq(
    id: *mut rdma_cm_id,
    pd: *mut ibv_pd,
    init: *mut ibv_srq_init_attr,
) -> c_int {
    zero_or_minus_one("rdma_create_srq", id, |of| {
        let pd = domain(&of, pd)?;
        of.keep_srq(made(srq::create_srq(pd, init))?)
    })
}

pub(crate) extern "C" fn create_srq_ex(
    id: *mut rdma_cm_id,
    init: *mut ibv_srq_init_attr_ex,
) -> c_int {
    zero_or_minus_one("rdma_create_srq_ex", id, |of| {
        present(init)?;
        let own = domain(&of, null_mut())?;
        // SAFETY: the program's, valid for the call, and to be written (C's contract).
        let init = unsafe { &mut *init };
        if init.comp_mask & IBV_SRQ_INIT_ATTR_PD == 0 {
            (init.comp_mask, init.pd) = (init.comp_mask | IBV_SRQ_INIT_ATTR_PD, own);
        }
        // SAFETY: one of ours, which stays for the call.
        let verbs = unsafe { (*of.seen()).verbs };
        of.keep_srq(made(srq::create_srq_ex(verbs, from_mut(init)))?)
    })
}

/// The domain `pd`, or that of the id if `pd` is null. Refuses an id that is not bound to a device
/// or has an SRQ.
fn domain(of: &CObject<Id>, pd: *mut ibv_pd) -> Result<*mut ibv_pd> {
    of.refresh()?;
    // SAFETY: one of ours, which stays for the call.
    let (verbs, own) = unsafe { ((*of.seen()).verbs, (*of.seen()).pd) };
    if verbs.is_null() {
        return Err(Refusal::invalid(UNBOUND));
    }
    if of.more.own.lock().srq.is_some() {
        return Err(Refusal::invalid("the id has an SRQ already"));
    }
    Ok(if pd.is_null() { own } else { pd })
}

impl CObject<Id> {
    /// Tells the engine which queue pair the program has written to the field `qp`, if any.
    /// librdmacm reads the field in each call.
    pub(super) fn follow_qp(&self) -> Result<()> {
        let mut own = self.more.own.lock();
        // SAFETY: one of ours, which stays for the call; programs may write the queue pair.
        let qp = unsafe { (*self.seen()).qp };
        if qp == own.qp.as_ref().map_or(null_mut(), |qp| qp.seen()) {
            return Ok(());
        }
        let qp = CObject::<Qp>::find_some(qp)?.map(|qp| qp.hold());
        let handle = qp.as_ref().map(|qp| qp.handle);
        sim().set_cm_qp(self.handle, handle)?;
        own.qp = qp;
        Ok(())
    }

    fn keep_srq(&self, srq: *mut ibv_srq) -> Result<()> {
        self.more.own.lock().srq = Some(CObject::<Srq>::find(srq)?.hold());
        // SAFETY: both are ours, which stay for the call; the call sets these fields.
        unsafe {
            (*self.seen()).srq = srq;
            (*self.seen()).pd = (*srq).pd;
        }
        Ok(())
    }
}

pub(crate) extern "C" fn destroy_srq(id: *mut rdma_cm_id) {
    silent("rdma_destroy_srq", id, |of| {
        let of = of.held();
        let Some(srq) = of.more.own.lock().srq.take() else {
            return Ok(());
        };
        srq::destroy_srq(srq.seen());
        // SAFETY: one of ours, which stays for the call; the call sets the SRQ.
        unsafe { (*id).srq = null_mut() };
        Ok(())
    });
}
