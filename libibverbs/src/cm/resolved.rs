//! Names that an id resolves with an event: `rdma_resolve_addrinfo` and `rdma_query_addrinfo`.
//!
//! As in librdmacm, the call itself asks the system's resolver, and the event follows at once.

use std::ffi::{c_char, c_int};

use verbs_abi::{rdma_addrinfo, rdma_cm_id};
use verbs_api::Verb;
use verbs_api::cm::{Cm, CmEventType};

use super::addrinfo::{self, Resolving};
use super::id::Id;
use crate::c::{CObject, Refusal, Result, last_errno, present, zero_or_minus_one};
use crate::engine::sim;

pub(crate) extern "C" fn resolve_addrinfo(
    id: *mut rdma_cm_id,
    node: *const c_char,
    service: *const c_char,
    hints: *const rdma_addrinfo,
) -> c_int {
    zero_or_minus_one("rdma_resolve_addrinfo", id, |id| {
        let id = id.held();
        let mut resolving = id.more.resolving.lock();
        // The id has room for one result.
        if !matches!(*resolving, Resolving::Nothing) {
            let what = "it resolves names already, or the result was not queried";
            return Err(Refusal::new(libc::EBUSY, what));
        }
        *resolving = Resolving::Begun;
        drop(resolving);
        id.resolve(node, service, hints).inspect_err(|_| {
            *id.more.resolving.lock() = Resolving::Nothing;
        })?;
        id.complete(Verb::CmWriteEvent)
    })
}

/// `rdma_query_addrinfo`. The program frees the list.
pub(crate) extern "C" fn query_addrinfo(
    id: *mut rdma_cm_id,
    info: *mut *mut rdma_addrinfo,
) -> c_int {
    zero_or_minus_one("rdma_query_addrinfo", id, |id| {
        present(info)?;
        let mut resolving = id.more.resolving.lock();
        let list = match std::mem::take(&mut *resolving) {
            Resolving::Ended(list) => list,
            other => {
                *resolving = other;
                let what = "it has resolved no names, or the result was queried before";
                return Err(Refusal::new(libc::ENOENT, what));
            }
        };
        // SAFETY: the program's, to be written (C's contract).
        unsafe { info.write(list.into_raw()) };
        Ok(())
    })
}

impl CObject<Id> {
    /// Resolves names, and queues the event.
    fn resolve(
        &self,
        node: *const c_char,
        service: *const c_char,
        hints: *const rdma_addrinfo,
    ) -> Result<()> {
        let found = addrinfo::resolve(node, service, hints)?;
        let list = found.map_err(|failed| Refusal::expected(errno_of(failed)))?;
        // Another thread may read the event before the call that queues it returns.
        *self.more.resolving.lock() = Resolving::Ended(list);
        sim().write_event(self.handle, CmEventType::AddrinfoResolved, 0, 0)?;
        Ok(())
    }
}

/// The errno value for a failure of `getaddrinfo`. librdmacm documents none.
fn errno_of(failed: c_int) -> c_int {
    match failed {
        libc::EAI_SYSTEM => last_errno(),
        libc::EAI_MEMORY => libc::ENOMEM,
        libc::EAI_AGAIN => libc::EAGAIN,
        _ => libc::ENOENT,
    }
}
