//! Protection domains, parent domains, and thread domains.
//!
//! A thread domain has no other effect than findings ([`exclusive`]): all threads can use every
//! object.
//!
//! [`exclusive`]: super::exclusive

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

use verbs_abi::{
    IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS, IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC,
    IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT, ibv_context, ibv_parent_domain_init_attr, ibv_pd,
    ibv_td, ibv_td_init_attr,
};
use verbs_api::{Handle, Verbs};

use super::context::is_context;
use super::exclusive::Exclusive;
use crate::c::{CObject, Refusal, kinds, new_object, present, same_context, silent, status};
use crate::engine::sim;

kinds! {
    /// Protection domains and parent domains.
    Pd: ibv_pd as ibv_pd, Pd, More, numbered Pd;
    /// Thread domains.
    Td: ibv_td as ibv_td, Td, ();
}

/// Values of a domain that its structure lacks.
#[derive(Default)]
pub(crate) struct More {
    is_parent: bool,
    has_td: bool,
    /// It was deallocated in the engine.
    is_deallocated: AtomicBool,
}

impl CObject<Pd> {
    /// The use of an object that is made in this domain, if it has a thread domain.
    pub(super) fn exclusive(&self) -> Option<Exclusive> {
        let has_td = self.more.has_td;
        has_td.then(|| Exclusive::new("its thread domain"))
    }

    /// The context that the program passed.
    pub(crate) fn context(&self) -> *mut ibv_context {
        // SAFETY: one of ours, which stays for the call.
        unsafe { (*self.raw()).context }
    }
}

pub(crate) extern "C" fn alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    new_object("ibv_alloc_pd", context, |of| {
        let handle = sim().alloc_pd(of.handle)?;
        CObject::<Pd>::make(handle, More::default(), || ibv_pd { context, handle: 0 })
    })
}

/// `ibv_dealloc_pd`, of any domain. A parent domain does not take its protection domain along.
pub(crate) extern "C" fn dealloc_pd(pd: *mut ibv_pd) -> c_int {
    status("ibv_dealloc_pd", pd, |pd| {
        sim().dealloc_pd(pd.handle)?;
        // A protection domain and its imports are one.
        let first = pd.first();
        first.more.is_deallocated.store(true, Ordering::Relaxed);
        first.retire();
        pd.retire();
        Ok(())
    })
}

/// Attributes of a parent domain. All are without effect: functions that allocate memory for
/// queues, which are not in the program's memory here, and buffers that a confidential guest shares
/// with its host.
const KNOWN: u32 = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS
    | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT
    | IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC;

pub(crate) extern "C" fn alloc_parent_domain(
    context: *mut ibv_context,
    attr: *mut ibv_parent_domain_init_attr,
) -> *mut ibv_pd {
    new_object("ibv_alloc_parent_domain", context, |of| {
        present(attr)?;
        // SAFETY: the program's, valid for the call. It need not know the fields behind the mask
        // (C's contract).
        let (pd, td, comp_mask) = unsafe { ((*attr).pd, (*attr).td, (*attr).comp_mask) };
        let own = CObject::<Pd>::find(pd)?;
        let td = CObject::<Td>::find_some(td)?.map(|td| td.handle);
        same_context(own.handle, of.handle)?;
        let unknown = comp_mask & !KNOWN;
        if unknown != 0 {
            return Err(Refusal::invalid(format!(
                "comp_mask has {unknown:#x}, which is not known here"
            )));
        }
        let handle = sim().alloc_parent_domain(own.handle, td)?;
        let more = More {
            is_parent: true,
            has_td: td.is_some(),
            ..More::default()
        };
        // It has the number of its protection domain, as the kernel knows no other.
        CObject::<Pd>::make_numbered(own.number, handle, more, || ibv_pd { context, handle: 0 })
    })
}

pub(crate) extern "C" fn alloc_td(
    context: *mut ibv_context,
    attr: *mut ibv_td_init_attr,
) -> *mut ibv_td {
    new_object("ibv_alloc_td", context, |of| {
        present(attr)?;
        // SAFETY: the program's, valid for the call (C's contract).
        if unsafe { (*attr).comp_mask } != 0 {
            return Err(Refusal::invalid("comp_mask is not 0"));
        }
        CObject::<Td>::make(sim().alloc_td(of.handle)?, (), || ibv_td { context })
    })
}

pub(crate) extern "C" fn dealloc_td(td: *mut ibv_td) -> c_int {
    status("ibv_dealloc_td", td, |td| {
        sim().dealloc_td(td.handle)?;
        td.retire();
        Ok(())
    })
}

pub(crate) extern "C" fn import_pd(context: *mut ibv_context, handle: u32) -> *mut ibv_pd {
    new_object("ibv_import_pd", context, |of| {
        let first = CObject::<Pd>::with_handle(handle, |pd| {
            pd.handle.context() == of.handle && !pd.more.is_deallocated.load(Ordering::Relaxed)
        })?;
        let raw = || ibv_pd { context, handle: 0 };
        CObject::<Pd>::make_as(first.hold(), More::default(), raw)
    })
}

/// `ibv_unimport_pd`. A domain that was not imported stays.
pub(crate) extern "C" fn unimport_pd(pd: *mut ibv_pd) {
    silent("ibv_unimport_pd", pd, |pd| {
        if pd.more.is_parent {
            return Err(Refusal::invalid("the object was not imported"));
        }
        pd.end_import()
    });
}
