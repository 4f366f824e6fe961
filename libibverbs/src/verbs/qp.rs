//! Queue pairs: creating, modifying and destroying them; multicast.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::iter;
use std::ptr::null_mut;

use smallvec::SmallVec;
use verbs_abi::{ibv_gid, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_cap, ibv_qp_ex, ibv_qp_init_attr};
use verbs_api::cm::{Cm, CmId};
use verbs_api::sync::Mutex;
use verbs_api::{
    Gid, Handle, InOrderQuery, QpAttrMask, QpCap, QpInit, QpType, SendOps, Verb, Verbs, Wait,
};

use verbs_sim::Unposted;

use super::batch::{Batch, Call};
use super::context::is_context;
use super::cq::{self, Cq};
use super::domain::Pd;
use super::exclusive::{Exclusive, InUse};
use super::srq::Srq;
use crate::base::per_process::PerProcess;
use crate::base::record;
use crate::c::{
    CObject, Found, Held, Kind, Later, Result, kinds, new_object, not_null, or_zero, passed,
    present, status,
};
use crate::engine::{sim, unobserved};

kinds! {
    /// Queue pairs. Each has the extended structure, which starts with the plain one.
    Qp: ibv_qp_ex as ibv_qp | ibv_qp_ex, Qp, More, numbered Qp,
        named |qp| format!("qp {:#x}", qp.qp_num());
}

/// Values of a queue pair that its structure lacks.
pub(crate) struct More {
    pub(crate) qp_type: QpType,
    /// The sizes of its queues.
    pub(crate) cap: QpCap,
    /// The CQs of its sends and of its receives, as far as it has such queues.
    pub(crate) cqs: SmallVec<[Held<Cq>; 2]>,
    /// The batch of one that was made for batches.
    pub(super) batch: Option<Batch>,
    /// Its use, if it is for one thread at a time.
    pub(super) exclusive: Option<Exclusive>,
}

impl More {
    /// The values of one of XRC_RECV.
    pub(super) fn without_queues(cap: QpCap) -> Self {
        Self {
            qp_type: QpType::XrcRecv,
            cap,
            cqs: SmallVec::new(),
            batch: None,
            exclusive: None,
        }
    }
}

/// The functions of a queue pair for batches, and the operations that it was made for. Without
/// operations there are no functions.
#[derive(Default)]
pub(crate) struct Operations {
    pub(super) send_ops: SendOps,
    /// The extended structure without its plain part.
    pub(super) raw: ibv_qp_ex,
}

/// Queue pairs of XRC_RECV by their handles, for events: the engine keeps no number for these.
pub(super) static TARGETS: PerProcess<Mutex<BTreeMap<verbs_api::Qp, Held<Qp>>>> = PerProcess::new();

/// Batches with requests that are not posted.
pub(crate) fn unposted() -> Vec<Unposted> {
    let of = |qp: Found<Qp>| qp.more.batch.as_ref()?.unposted(qp.call(""));
    Qp::arena().iter().filter_map(of).collect()
}

/// `ibv_create_qp`. Writes the sizes of the queues to `init`.
pub(crate) extern "C" fn create_qp(pd: *mut ibv_pd, init: *mut ibv_qp_init_attr) -> *mut ibv_qp {
    new_object("ibv_create_qp", Later(pd), |()| {
        // SAFETY: the program's, valid for the call (C's contract).
        let asked = unsafe { passed(init) }?;
        let qp = create(pd, &asked, Operations::default(), Maker::Verbs)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { (*init).cap = ibv_qp_cap::to_c(&qp.more.cap) };
        Ok(qp)
    })
}

impl CObject<Qp> {
    /// The number by which findings name it.
    fn qp_num(&self) -> u32 {
        // SAFETY: one of ours, which stays for the call. Only calls set the number.
        unsafe { (*self.raw()).qp_base.qp_num }
    }

    /// A call posts to it.
    #[inline]
    pub(super) fn in_use(&self, call: &'static str) -> Option<InUse<'_>> {
        let exclusive = self.more.exclusive.as_ref()?;
        let (context, number) = (self.handle.context(), self.qp_num());
        exclusive.enter(call, context, format_args!("qp {number:#x}"))
    }

    /// A call on it.
    pub(super) fn call(&self, name: &'static str) -> Call {
        Call {
            name,
            qp: self.handle,
            qp_num: self.qp_num(),
            seen: self.seen(),
        }
    }
}

/// The interface by which a queue pair is made and destroyed in the engine.
#[derive(Clone, Copy)]
pub(crate) enum Maker {
    Verbs,
    /// That of rdma_cm, for an id.
    Cm(CmId),
}

impl Maker {
    fn create(self, pd: verbs_api::Pd, init: &QpInit) -> verbs_api::Result<verbs_api::Qp> {
        let qp = match self {
            Self::Verbs => sim().create_qp(pd, init),
            Self::Cm(id) => sim().create_cm_qp(id, Some(pd), init),
        }?;
        record::has_queue_pair();
        Ok(qp)
    }

    fn destroy(self, qp: verbs_api::Qp) -> verbs_api::Result<()> {
        match self {
            Self::Verbs => sim().destroy_qp(qp, Wait::Forever),
            Self::Cm(id) => sim().destroy_cm_qp(id, Wait::Forever),
        }
    }
}

/// Makes a queue pair.
pub(crate) fn create(
    pd: *mut ibv_pd,
    asked: &ibv_qp_init_attr,
    operations: Operations,
    maker: Maker,
) -> Result<Found<Qp>> {
    let pd = CObject::<Pd>::find_in_context(pd)?;
    let context = pd.context();
    let qp_type = QpType::from(asked.qp_type);
    let send_cq = CObject::<Cq>::find(asked.send_cq)?;
    let recv_cq = match qp_type {
        // It has no receive queue, so programs need not name a CQ for one.
        QpType::XrcSend => None,
        _ => Some(CObject::<Cq>::find(asked.recv_cq)?),
    };
    let srq = CObject::<Srq>::find_some(asked.srq)?;
    let of_receives = recv_cq.as_ref().map(|cq| cq.handle).unwrap_or_default();
    let srq = srq.map(|srq| srq.handle);
    let mut init = ibv_qp_init_attr::from_c(asked, send_cq.handle, of_receives, srq);
    let Operations { send_ops, mut raw } = operations;
    init.send_ops = send_ops;
    let make = |number| {
        // Events name the object by this number.
        init.qp_context = number;
        let handle = maker.create(pd.handle, &init)?;
        let got = unobserved().query_qp(handle, QpAttrMask::CAP)?;
        let cap = got.init.cap;
        raw.qp_base = ibv_qp {
            context,
            qp_context: asked.qp_context,
            pd: pd.seen(),
            send_cq: asked.send_cq,
            recv_cq: recv_cq.as_ref().map_or(null_mut(), |cq| cq.seen()),
            srq: asked.srq,
            qp_num: got.qp_num,
            state: got.attr.qp_state.into(),
            qp_type: asked.qp_type,
            ..ibv_qp::default()
        };
        let more = More {
            qp_type,
            cap,
            cqs: iter::once(&send_cq)
                .chain(&recv_cq)
                .map(Found::hold)
                .collect(),
            batch: (!send_ops.is_empty()).then(|| Batch::new(send_ops)),
            exclusive: pd.exclusive(),
        };
        Ok((handle, more, raw))
    };
    CObject::<Qp>::make_with(make)
}

pub(crate) extern "C" fn modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int {
    status("ibv_modify_qp", qp, |qp| {
        let qp = qp.held();
        // SAFETY: the program's, valid for the call (C's contract).
        let attr = unsafe { passed(attr) }?;
        let mask = QpAttrMask::from_bits_retain(mask as u32);
        let mut changed = ibv_qp_attr::from_c(&attr);
        // Programs need not set the fields that the mask does not name.
        if !mask.contains(QpAttrMask::ALT_PATH) {
            changed.alt_ah_attr = None;
        }
        let modify = || sim().modify_qp(qp.handle, &changed, mask);
        cq::after_others(&qp.more.cqs, Verb::ModifyQp, modify)?;
        // Programs read the state from the structure.
        if mask.contains(QpAttrMask::STATE) {
            // SAFETY: one of ours, which stays for the call; the call sets the state.
            unsafe { (*qp.raw()).qp_base.state = attr.qp_state };
        }
        Ok(())
    })
}

pub(crate) extern "C" fn query_qp(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    mask: c_int,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    status("ibv_query_qp", qp, |found| {
        present(attr)?;
        if !init.is_null() {
            present(init)?;
        }
        let mask = QpAttrMask::from_bits_retain(mask as u32);
        let query = sim().query_qp(found.handle, mask)?;
        let raw = found.raw();
        // SAFETY: the queue pair is one of ours, which stays for the call; the structures are the
        // program's, to be written (C's contract).
        unsafe {
            let base = &raw mut (*raw).qp_base;
            // Errors change the state without a call.
            (*base).state = query.attr.qp_state.into();
            attr.write(ibv_qp_attr {
                cap: ibv_qp_cap::to_c(&query.init.cap),
                ..ibv_qp_attr::to_c(&query.attr)
            });
            if !init.is_null() {
                init.write(ibv_qp_init_attr {
                    qp_context: (*base).qp_context,
                    send_cq: (*base).send_cq,
                    recv_cq: (*base).recv_cq,
                    srq: (*base).srq,
                    cap: ibv_qp_cap::to_c(&query.init.cap),
                    qp_type: (*base).qp_type,
                    sq_sig_all: query.init.sq_sig_all.into(),
                });
            }
        }
        Ok(())
    })
}

pub(crate) extern "C" fn destroy_qp(qp: *mut ibv_qp) -> c_int {
    status("ibv_destroy_qp", qp, |qp| destroy(&qp.held(), Maker::Verbs))
}

pub(crate) fn destroy(qp: &CObject<Qp>, maker: Maker) -> Result<()> {
    cq::after_others(&qp.more.cqs, Verb::DestroyQp, || maker.destroy(qp.handle))?;
    if let Some(batch) = &qp.more.batch {
        batch.end(qp.call(Verb::DestroyQp.name()));
    }
    if qp.more.qp_type == QpType::XrcRecv {
        TARGETS.get_or_default().lock().remove(&qp.handle);
    }
    qp.retire();
    Ok(())
}

pub(crate) extern "C" fn attach_mcast(qp: *mut ibv_qp, gid: *const ibv_gid, lid: u16) -> c_int {
    status("ibv_attach_mcast", qp, |qp| {
        Ok(sim().attach_mcast(qp.handle, read_gid(gid)?, lid)?)
    })
}

pub(crate) extern "C" fn detach_mcast(qp: *mut ibv_qp, gid: *const ibv_gid, lid: u16) -> c_int {
    status("ibv_detach_mcast", qp, |qp| {
        Ok(sim().detach_mcast(qp.handle, read_gid(gid)?, lid)?)
    })
}

fn read_gid(gid: *const ibv_gid) -> Result<Gid> {
    not_null(gid)?;
    // SAFETY: the program's, valid for the call, aligned as it may be (C's contract).
    Ok(Gid(unsafe { gid.read_unaligned() }.raw))
}

pub(crate) extern "C" fn query_qp_data_in_order(qp: *mut ibv_qp, op: u32, flags: u32) -> c_int {
    or_zero("ibv_query_qp_data_in_order", qp, |qp| {
        let flags = InOrderQuery::from_bits_retain(flags);
        let promised = sim().query_qp_data_in_order(qp.handle, op.into(), flags)?;
        // libibverbs knows of x86 alone that the processor sees data in the order of the device.
        let is_seen = cfg!(any(target_arch = "x86", target_arch = "x86_64"))
            || flags.contains(InOrderQuery::DEVICE_ONLY);
        Ok(if is_seen { promised.bits() as c_int } else { 0 })
    })
}
