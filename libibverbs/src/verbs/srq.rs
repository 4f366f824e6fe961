//! Shared receive queues.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use verbs_abi::{
    IBV_SRQ_INIT_ATTR_CQ, IBV_SRQ_INIT_ATTR_PD, IBV_SRQ_INIT_ATTR_TM, IBV_SRQ_INIT_ATTR_TYPE,
    IBV_SRQ_INIT_ATTR_XRCD, IBV_SRQT_BASIC, IBV_SRQT_TM, IBV_SRQT_XRC, ibv_context, ibv_pd,
    ibv_recv_wr, ibv_srq, ibv_srq_attr, ibv_srq_init_attr, ibv_srq_init_attr_ex,
};
use verbs_api::{Handle, RecvWr, SrqAttrMask, SrqInit, Verbs, Wait, XrcSrq};

use super::context::{context_of, is_context};
use super::cq::Cq;
use super::domain::Pd;
use super::exclusive::Exclusive;
use super::list;
use super::xrc::Xrcd;
use crate::c::{
    CObject, Found, Later, Refusal, Result, kinds, new_object, present, quick_status, same_context,
    status,
};
use crate::engine::{sim, unobserved};

kinds! {
    /// Shared receive queues.
    Srq: ibv_srq as ibv_srq, Srq, More, numbered Srq;
}

/// Values of an SRQ that its structure lacks.
pub(crate) struct More {
    /// Receives that fit.
    max_wr: AtomicU32,
    /// Scatter/gather entries of a receive.
    max_sge: u32,
    /// Its use, if it is for one thread at a time.
    exclusive: Option<Exclusive>,
}

/// `ibv_create_srq`. Writes the sizes of the queue to `init`.
pub(crate) extern "C" fn create_srq(pd: *mut ibv_pd, init: *mut ibv_srq_init_attr) -> *mut ibv_srq {
    new_object("ibv_create_srq", Later(pd), |()| {
        present(init)?;
        // SAFETY: the program's, valid for the call and to be written (C's contract).
        unsafe { create(pd, init, None) }
    })
}

const XRCD_AND_CQ: u32 = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;

/// `ibv_create_srq_ex`. Writes the sizes of the queue to `init`. There is no tag matching.
pub(crate) extern "C" fn create_srq_ex(
    context: *mut ibv_context,
    init: *mut ibv_srq_init_attr_ex,
) -> *mut ibv_srq {
    new_object("ibv_create_srq_ex", Later(context), |()| {
        present(init)?;
        // SAFETY: the program's, valid for the call. It may lack the fields that its mask does not
        // name, so only named fields are read (C's contract).
        let comp_mask = unsafe { (*init).comp_mask };
        if comp_mask & !(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | XRCD_AND_CQ) != 0 {
            // Programs try tag matching, and look for this error.
            let errno = match comp_mask & IBV_SRQ_INIT_ATTR_TM {
                0 => libc::EINVAL,
                _ => libc::EOPNOTSUPP,
            };
            let what = format!(
                "comp_mask is {comp_mask:#x}: no device here has more than the type, pd, xrcd and cq"
            );
            return Err(Refusal::new(errno, what));
        }
        if comp_mask & IBV_SRQ_INIT_ATTR_PD == 0 {
            return Err(Refusal::invalid("comp_mask does not name the pd"));
        }
        // SAFETY: as above.
        let pd = unsafe { (*init).pd };
        same_context(CObject::<Pd>::find(pd)?.handle, context_of(context)?)?;
        let srq_type = match comp_mask & IBV_SRQ_INIT_ATTR_TYPE {
            0 => IBV_SRQT_BASIC,
            // SAFETY: as above.
            _ => unsafe { (*init).srq_type },
        };
        let xrc = match srq_type {
            IBV_SRQT_BASIC => None,
            IBV_SRQT_XRC if comp_mask & XRCD_AND_CQ == XRCD_AND_CQ => {
                // SAFETY: as above.
                let (xrcd, cq) = unsafe { ((*init).xrcd, (*init).cq) };
                Some(XrcSrq {
                    xrcd: CObject::<Xrcd>::find(xrcd)?.handle,
                    cq: CObject::<Cq>::find(cq)?.handle,
                })
            }
            IBV_SRQT_TM => return Err(Refusal::unsupported("no device here matches tags")),
            IBV_SRQT_XRC => {
                return Err(Refusal::invalid(
                    "comp_mask does not name both xrcd and cq, which an SRQ of XRC needs",
                ));
            }
            other => {
                return Err(Refusal::invalid(format!(
                    "there is no type {other} of SRQs"
                )));
            }
        };
        // SAFETY: the plain structure is the start of the extended one.
        unsafe { create(pd, init.cast(), xrc) }
    })
}

/// # Safety
/// `init` can be read, and its sizes written.
unsafe fn create(
    pd: *mut ibv_pd,
    init: *mut ibv_srq_init_attr,
    xrc: Option<XrcSrq>,
) -> Result<Found<Srq>> {
    let pd = CObject::<Pd>::find_in_context(pd)?;
    // SAFETY: the caller's promise.
    let asked = unsafe { init.read() };
    let make = |number| {
        // Events name the object by this number.
        let mut wanted = SrqInit::new(asked.attr.max_wr).context(number);
        wanted.attr = ibv_srq_attr::from_c(&asked.attr);
        wanted.xrc = xrc;
        let handle = sim().create_srq(pd.handle, &wanted)?;
        // A device may give a larger queue than was asked for.
        let got = unobserved().srq_init(handle)?.attr;
        // SAFETY: the caller's promise.
        unsafe {
            (*init).attr.max_wr = got.max_wr;
            (*init).attr.max_sge = got.max_sge;
        }
        let raw = ibv_srq {
            context: pd.context(),
            srq_context: asked.srq_context,
            pd: pd.seen(),
            ..ibv_srq::default()
        };
        let more = More {
            max_wr: got.max_wr.into(),
            max_sge: got.max_sge,
            exclusive: pd.exclusive(),
        };
        Ok((handle, more, raw))
    };
    CObject::<Srq>::make_with(make)
}

pub(crate) extern "C" fn modify_srq(
    srq: *mut ibv_srq,
    attr: *mut ibv_srq_attr,
    mask: c_int,
) -> c_int {
    status("ibv_modify_srq", srq, |srq| {
        present(attr)?;
        // SAFETY: the program's, valid for the call (C's contract).
        let attr = ibv_srq_attr::from_c(&unsafe { attr.read() });
        let mask = SrqAttrMask::from_bits_retain(mask as u32);
        sim().modify_srq(srq.handle, &attr, mask)?;
        // The engine may have given more room than was asked for.
        if mask.contains(SrqAttrMask::MAX_WR) {
            let got = unobserved().query_srq(srq.handle)?;
            srq.more.max_wr.store(got.max_wr, Ordering::Relaxed);
        }
        Ok(())
    })
}

pub(crate) extern "C" fn query_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int {
    status("ibv_query_srq", srq, |srq| {
        present(attr)?;
        let found = sim().query_srq(srq.handle)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { attr.write(ibv_srq_attr::to_c(&found)) };
        Ok(())
    })
}

pub(crate) extern "C" fn destroy_srq(srq: *mut ibv_srq) -> c_int {
    status("ibv_destroy_srq", srq, |srq| {
        let srq = srq.held();
        sim().destroy_srq(srq.handle, Wait::Forever)?;
        srq.retire();
        Ok(())
    })
}

pub(crate) extern "C" fn get_srq_num(srq: *mut ibv_srq, number: *mut u32) -> c_int {
    status("ibv_get_srq_num", srq, |srq| {
        present(number)?;
        let found = sim().srq_num(srq.handle)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { number.write(found) };
        Ok(())
    })
}

pub(crate) extern "C" fn post_srq_recv(
    srq: *mut ibv_srq,
    wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    quick_status("ibv_post_srq_recv", srq, |srq| {
        let _in_use = srq.more.exclusive.as_ref().and_then(|exclusive| {
            exclusive.enter("ibv_post_srq_recv", srq.handle.context(), srq.handle)
        });
        let post = |list: &[RecvWr<'_>]| sim().post_srq_recv(srq.handle, list);
        let max_wr = srq.more.max_wr.load(Ordering::Relaxed);
        list::receives(wr, bad_wr, max_wr, srq.more.max_sge, post)
    })
}
