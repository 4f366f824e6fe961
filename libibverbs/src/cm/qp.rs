//! Queue pairs of ids. CQs that a program does not name are made, each with a channel, and go with the queue pair.

use std::ffi::c_int;
use std::ptr::{from_mut, null_mut};

use verbs_abi::{
    IBV_QP_INIT_ATTR_PD, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, IBV_SRQ_INIT_ATTR_PD, ibv_comp_channel,
    ibv_cq, ibv_pd, ibv_qp_cap, ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_srq, ibv_srq_init_attr,
    ibv_srq_init_attr_ex, int, rdma_cm_id,
};
use verbs_api::SendOps;

use super::cm;
use super::id::Id;
use crate::cq;
use crate::engine::engine;
use crate::object::CObject;
use crate::qp::{self, Maker, Qp};
use crate::result::{Refusal, Result, known_bits, last_errno, or_minus_one, present, silent};
use crate::srq::{self, Srq};

/// The CQs that were made for an id, of its sends and of its receives, each with its channel.
#[derive(Default)]
pub(super) struct MadeCqs([Option<MadeCq>; 2]);

#[derive(Clone, Copy)]
struct MadeCq {
    cq: *mut ibv_cq,
    channel: *mut ibv_comp_channel,
}

// SAFETY: the pointers are those of objects, which any thread may have.
unsafe impl Send for MadeCqs {}

impl MadeCq {
    fn new(id: *mut rdma_cm_id, entries: u32) -> Result<Self> {
        // SAFETY: one of ours, which stays for the call.
        let context = unsafe { (*id).verbs };
        let channel = made(cq::create_comp_channel(context))?;
        let cq = cq::create_cq(context, int(entries), id.cast(), channel, 0);
        let cq = made(cq).inspect_err(|_| {
            cq::destroy_comp_channel(channel);
        })?;
        Ok(Self { cq, channel })
    }

    fn destroy(self) {
        cq::destroy_cq(self.cq);
        cq::destroy_comp_channel(self.channel);
    }
}

/// What a call of this library has made.
fn made<T>(pointer: *mut T) -> Result<*mut T> {
    match pointer.is_null() {
        true => Err(Refusal::noted(last_errno())),
        false => Ok(pointer),
    }
}

/// Without `pd` in the domain of the id. The sizes that it got, and the CQs that were made, stand in `init` then.
pub(crate) extern "C" fn create_qp(
    id: *mut rdma_cm_id,
    pd: *mut ibv_pd,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    or_minus_one("rdma_create_qp", id, || {
        let id = CObject::<Id>::find(id)?;
        present(init)?;
        // SAFETY: the program's, valid for the call, and to be written (C's contract).
        create(&id, pd, unsafe { &mut *init }, SendOps::empty())?;
        Ok(0)
    })
}

pub(crate) extern "C" fn create_qp_ex(
    id: *mut rdma_cm_id,
    init: *mut ibv_qp_init_attr_ex,
) -> c_int {
    or_minus_one("rdma_create_qp_ex", id, || {
        let id = CObject::<Id>::find(id)?;
        present(init)?;
        // SAFETY: the program's, valid for the call. It need not know the fields behind those that its mask names,
        // so only these are read (C's contract).
        let comp_mask = unsafe { (*init).comp_mask };
        let known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        known_bits("comp_mask", comp_mask, known)?;
        let pd = match comp_mask & IBV_QP_INIT_ATTR_PD {
            0 => null_mut(),
            // SAFETY: as above.
            _ => unsafe { (*init).pd },
        };
        let send_ops = match comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS {
            0 => SendOps::empty(),
            // SAFETY: as above.
            _ => SendOps::from_bits_retain(unsafe { (*init).send_ops_flags }),
        };
        // SAFETY: the plain structure is the start of the extended one.
        let plain = unsafe { &mut *init.cast::<ibv_qp_init_attr>() };
        create(&id, pd, plain, send_ops)?;
        Ok(0)
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
        return Err(Refusal::new(libc::EINVAL, why));
    }
    let pd = if pd.is_null() { own_pd } else { pd };
    let mut cqs = MadeCqs::default();
    if init.srq.is_null() {
        init.srq = srq;
    }
    let maker = Maker::Cm(cm()?, of.handle);
    let made = cqs.fill(id, init);
    let made = made.and_then(|()| qp::create(pd, init, send_ops, maker));
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

impl MadeCqs {
    /// Makes those that are needed and not named.
    fn fill(&mut self, id: *mut rdma_cm_id, init: &mut ibv_qp_init_attr) -> Result<()> {
        let named = [&mut init.send_cq, &mut init.recv_cq];
        let sizes = [init.cap.max_send_wr, init.cap.max_recv_wr];
        for ((cq, size), own) in named.into_iter().zip(sizes).zip(&mut self.0) {
            if cq.is_null() && size > 0 {
                let made = MadeCq::new(id, size)?;
                (*cq, *own) = (made.cq, Some(made));
            }
        }
        Ok(())
    }

    fn destroy(&mut self) {
        for made in self.0.iter_mut().filter_map(Option::take) {
            made.destroy();
        }
    }
}

/// The CQs that were made for it go too.
pub(crate) extern "C" fn destroy_qp(id: *mut rdma_cm_id) {
    silent("rdma_destroy_qp", id, || {
        let of = CObject::<Id>::find(id)?.hold();
        of.follow_qp()?;
        let Some(qp) = of.more.own.lock().qp.clone() else {
            return Ok(());
        };
        qp::destroy(&qp, Maker::Cm(cm()?, of.handle))?;
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

/// Queue pairs that are made for the id later have it, unless they name another.
pub(crate) extern "C" fn create_srq(
    id: *mut rdma_cm_id,
    pd: *mut ibv_pd,
    init: *mut ibv_srq_init_attr,
) -> c_int {
    or_minus_one("rdma_create_srq", id, || {
        let of = CObject::<Id>::find(id)?;
        let pd = domain(&of, pd)?;
        of.keep_srq(made(srq::create_srq(pd, init))?)?;
        Ok(0)
    })
}

pub(crate) extern "C" fn create_srq_ex(
    id: *mut rdma_cm_id,
    init: *mut ibv_srq_init_attr_ex,
) -> c_int {
    or_minus_one("rdma_create_srq_ex", id, || {
        let of = CObject::<Id>::find(id)?;
        present(init)?;
        let own = domain(&of, null_mut())?;
        // SAFETY: the program's, valid for the call, and to be written (C's contract).
        let init = unsafe { &mut *init };
        if init.comp_mask & IBV_SRQ_INIT_ATTR_PD == 0 {
            (init.comp_mask, init.pd) = (init.comp_mask | IBV_SRQ_INIT_ATTR_PD, own);
        }
        // SAFETY: one of ours, which stays for the call.
        let verbs = unsafe { (*of.seen()).verbs };
        of.keep_srq(made(srq::create_srq_ex(verbs, from_mut(init)))?)?;
        Ok(0)
    })
}

/// The domain that is named, or that of an id which is bound to a device and has no SRQ yet.
fn domain(of: &CObject<Id>, pd: *mut ibv_pd) -> Result<*mut ibv_pd> {
    of.refresh()?;
    // SAFETY: one of ours, which stays for the call.
    let (verbs, own) = unsafe { ((*of.seen()).verbs, (*of.seen()).pd) };
    if verbs.is_null() {
        return Err(Refusal::new(libc::EINVAL, UNBOUND));
    }
    if of.more.own.lock().srq.is_some() {
        return Err(Refusal::new(libc::EINVAL, "the id has an SRQ already"));
    }
    Ok(if pd.is_null() { own } else { pd })
}

impl CObject<Id> {
    /// Lets the engine know the queue pair that the program has put into the field `qp`, or that it
    /// has taken out of it. librdmacm reads the field in each call.
    pub(super) fn follow_qp(&self) -> Result<()> {
        let mut own = self.more.own.lock();
        // SAFETY: one of ours, which stays for the call; programs may write the queue pair.
        let qp = unsafe { (*self.seen()).qp };
        if qp == own.qp.as_ref().map_or(null_mut(), |qp| qp.seen()) {
            return Ok(());
        }
        let qp = CObject::<Qp>::find_some(qp)?.map(|qp| qp.hold());
        let handle = qp.as_ref().map(|qp| qp.handle);
        engine().sim.set_cm_qp(self.handle, handle)?;
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
    silent("rdma_destroy_srq", id, || {
        let of = CObject::<Id>::find(id)?.hold();
        let Some(srq) = of.more.own.lock().srq.take() else {
            return Ok(());
        };
        srq::destroy_srq(srq.seen());
        // SAFETY: one of ours, which stays for the call; the call sets the SRQ.
        unsafe { (*id).srq = null_mut() };
        Ok(())
    });
}
