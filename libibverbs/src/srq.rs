//! Shared receive queues.

use std::ffi::c_int;

use verbs_api::{RecvWr, SrqAttr, SrqAttrMask, SrqInit, Verbs, Wait};

use crate::c::{ibv_pd, ibv_recv_wr, ibv_srq, ibv_srq_attr, ibv_srq_init_attr};
use crate::engine::engine;
use crate::object::{Object, kinds};
use crate::post;
use crate::region::Pd;
use crate::result::{not_null, pointer, status};

kinds! {
    /// Shared receive queues.
    Srq: ibv_srq as ibv_srq, Srq, More, Srq;
}

/// What an SRQ has beside its structure.
pub(crate) struct More {
    /// Scatter/gather entries of a receive.
    pub(crate) max_sge: u32,
}

/// The sizes that it got stand in `init` then.
pub(crate) extern "C" fn create_srq(pd: *mut ibv_pd, init: *mut ibv_srq_init_attr) -> *mut ibv_srq {
    pointer(|| {
        let found = Object::<Pd>::find(pd)?;
        not_null(init)?;
        // SAFETY: the program's, valid for the call (C's contract).
        let asked = unsafe { init.read() };
        // SAFETY: one of ours, which are never freed.
        let context = unsafe { (*found.raw()).context };
        let made = Object::<Srq>::make_with(|index| {
            let mut sizes = SrqInit::new(asked.attr.max_wr).max_sge(asked.attr.max_sge);
            sizes.attr.srq_limit = asked.attr.srq_limit;
            let sim = &engine().sim;
            // By which the object is found when there is an event.
            let handle = sim.create_srq(found.handle, &sizes.context(index as u64))?;
            let got = sim.srq_init(handle)?.attr;
            // SAFETY: the program's, to be written (C's contract).
            unsafe {
                (*init).attr.max_wr = got.max_wr;
                (*init).attr.max_sge = got.max_sge;
            }
            let raw = ibv_srq {
                context,
                srq_context: asked.srq_context,
                pd,
                handle: 0,
                mutex: [0; 5],
                cond: [0; 6],
                events_completed: 0,
            };
            let max_sge = got.max_sge;
            Ok((handle, More { max_sge }, raw))
        });
        Ok(made?.seen())
    })
}

pub(crate) extern "C" fn modify_srq(
    srq: *mut ibv_srq,
    attr: *mut ibv_srq_attr,
    mask: c_int,
) -> c_int {
    status(|| {
        let srq = Object::<Srq>::find(srq)?;
        not_null(attr)?;
        // SAFETY: the program's, valid for the call (C's contract).
        let attr = unsafe { attr.read() };
        let attr = SrqAttr {
            max_wr: attr.max_wr,
            max_sge: attr.max_sge,
            srq_limit: attr.srq_limit,
        };
        let mask = SrqAttrMask::from_bits_retain(mask as u32);
        Ok(engine().sim.modify_srq(srq.handle, &attr, mask)?)
    })
}

pub(crate) extern "C" fn query_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int {
    status(|| {
        let srq = Object::<Srq>::find(srq)?;
        not_null(attr)?;
        let found = engine().sim.query_srq(srq.handle)?;
        let found = ibv_srq_attr {
            max_wr: found.max_wr,
            max_sge: found.max_sge,
            srq_limit: found.srq_limit,
        };
        // SAFETY: the program's, to be written (C's contract).
        unsafe { attr.write(found) };
        Ok(())
    })
}

pub(crate) extern "C" fn destroy_srq(srq: *mut ibv_srq) -> c_int {
    status(|| {
        let srq = Object::<Srq>::find(srq)?;
        Ok(engine().sim.destroy_srq(srq.handle, Wait::Forever)?)
    })
}

pub(crate) extern "C" fn post_srq_recv(
    srq: *mut ibv_srq,
    wr: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    status(|| {
        let srq = Object::<Srq>::find(srq)?;
        let post = |list: &[RecvWr<'_>]| engine().sim.post_srq_recv(srq.handle, list);
        post::receives(wr, bad_wr, srq.more.max_sge, post)
    })
}
