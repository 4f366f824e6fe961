//! Protection domains, parent domains, and thread domains.
//!
//! The engine knows only protection domains. An object that is made through a parent domain is made
//! in the protection domain of the parent. This file counts the users of parent domains and of
//! thread domains. A thread domain has no other effect than findings ([`exclusive`]): all threads
//! can use every object.
//!
//! [`exclusive`]: super::exclusive
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use verbs_abi::{
    IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS, IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC,
    IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT, ibv_context, ibv_parent_domain_init_attr, ibv_pd,
    ibv_td, ibv_td_init_attr,
};
use verbs_api::{Handle, Verbs};
use verbs_sim::Class;

use super::context::is_context;
use super::exclusive::Exclusive;
use crate::c::{
    CObject, Held, Refusal, Result, kinds, new_object, present, same_context, silent, status,
};
use crate::engine::sim;

kinds! {
    /// Protection domains and parent domains.
    Pd: ibv_pd as ibv_pd, Pd, More, numbered Pd;
    /// Thread domains, each with its users.
    Td: ibv_td as ibv_td, Context, Users, named |_td| "the thread domain".to_owned();
}

/// Values of a domain that its structure lacks.
#[derive(Default)]
pub(crate) struct More {
    /// For a protection domain the parent domains, for a parent domain all objects.
    users: Users,
    stands_for: Option<Parent>,
    /// The protection domain was deallocated in the engine.
    is_deallocated: AtomicBool,
}

struct Parent {
    pd: Held<Pd>,
    td: Option<Held<Td>>,
}

/// The number of users.
#[derive(Default)]
pub(crate) struct Users(AtomicU32);

impl Users {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn remove(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn check_none(&self) -> Result<()> {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            users => {
                let what = format!("it is still used by {users} of what was made with it");
                Err(Refusal::of(Class::Busy, libc::EBUSY, what))
            }
        }
    }
}

impl CObject<Pd> {
    /// Makes an object in this domain. The object uses the domain until [`left`](Self::left).
    pub(crate) fn within<T>(&self, make: impl FnOnce() -> Result<T>) -> Result<T> {
        self.entered();
        make().inspect_err(|_| self.left())
    }

    /// Counts one more object.
    pub(crate) fn entered(&self) {
        if self.is_parent() {
            self.more.users.add();
        }
    }

    /// Counts one object less.
    pub(crate) fn left(&self) {
        if self.is_parent() {
            self.more.users.remove();
        }
    }

    pub(crate) fn is_parent(&self) -> bool {
        self.more.stands_for.is_some()
    }

    /// The use of an object that is made in this domain, if it has a thread domain.
    pub(super) fn exclusive(&self) -> Option<Exclusive> {
        let parent = self.more.stands_for.as_ref()?;
        parent
            .td
            .is_some()
            .then(|| Exclusive::new("its thread domain"))
    }

    /// The domain that counts the users: a protection domain and its imports are one.
    fn counted(&self) -> &Self {
        if self.is_parent() { self } else { self.first() }
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
        let counted = pd.counted();
        let own = &counted.more;
        own.users.check_none()?;
        let Some(parent) = &own.stands_for else {
            sim().dealloc_pd(pd.handle)?;
            own.is_deallocated.store(true, Ordering::Relaxed);
            counted.retire();
            pd.retire();
            return Ok(());
        };
        pd.end()?;
        // `end` succeeds once, so users are counted down once.
        parent.pd.more.users.remove();
        if let Some(td) = &parent.td {
            td.more.remove();
        }
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
        // A parent domain of a parent domain uses the latter, so that it stays in use.
        let pd = if own.is_parent() {
            own.hold()
        } else {
            CObject::<Pd>::find_first(pd)?
        };
        let td = CObject::<Td>::find_some(td)?.map(|td| td.hold());
        same_context(pd.handle, of.handle)?;
        if td.as_ref().is_some_and(|td| td.handle != of.handle) {
            let what = "the thread domain is of another context";
            return Err(Refusal::of(Class::OtherParent, libc::EINVAL, what));
        }
        let unknown = comp_mask & !KNOWN;
        if unknown != 0 {
            return Err(Refusal::invalid(format!(
                "comp_mask has {unknown:#x}, which is not known here"
            )));
        }
        let more = More {
            users: Users::default(),
            stands_for: Some(Parent {
                pd: pd.clone(),
                td: td.clone(),
            }),
            is_deallocated: AtomicBool::new(false),
        };
        let raw = || ibv_pd { context, handle: 0 };
        let parent = CObject::<Pd>::make_as(pd.clone(), more, raw)?;
        pd.more.users.add();
        if let Some(td) = td {
            td.more.add();
        }
        Ok(parent)
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
        CObject::<Td>::make(of.handle, Users::default(), || ibv_td { context })
    })
}

pub(crate) extern "C" fn dealloc_td(td: *mut ibv_td) -> c_int {
    status("ibv_dealloc_td", td, |td| {
        td.more.check_none()?;
        td.end()
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
        if pd.is_parent() {
            return Err(Refusal::invalid("the object was not imported"));
        }
        pd.end_import()
    });
}
