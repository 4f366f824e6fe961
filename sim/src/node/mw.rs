//! Memory windows: life, binding, invalidation, and access through them.

use std::collections::BTreeSet;

use verbs_api::behavior::{Check, DeregBound};
use verbs_api::table::{Id, Table};
use verbs_api::{
    Access, Capabilities, Cause, Context, Error, ErrorKind, Handle, Mw as MwHandle, MwAttr, MwBind,
    MwBindInfo, MwType, Object, Pd as PdHandle, Qp as QpHandle, Result, SendOp, SendWr, Verb,
    WcStatus,
};

use super::key::Keys;
use super::region::{ProtectionFault, RKEY};
use super::{InContext, Node, invalid, same_context};
use crate::memory::Slice;
use crate::time::Time;

/// A memory window.
#[derive(Clone, Debug)]
pub(super) struct Mw {
    context: Context,
    pd: u32,
    mw_type: MwType,
    /// The key that the device knows.
    rkey: u32,
    /// The key of the last bind that was posted.
    told: u32,
    bound: Option<Bound>,
}

/// What a window shows, and of type 2, to whom.
#[derive(Clone, Copy, Debug)]
struct Bound {
    info: MwBindInfo,
    qp: Option<QpHandle>,
}

impl InContext for Mw {
    fn context(&self) -> Context {
        self.context
    }
}

/// Keys of windows have this bit, those of regions have not.
const WINDOW: u32 = 1 << 30;
/// The lower bits of a key are the caller's.
const CALLERS: u32 = 0xff;

/// Whether a key is that of a window, live or not.
pub(super) fn is_window_key(rkey: u32) -> bool {
    rkey & (RKEY | WINDOW) == RKEY | WINDOW
}

fn first_key(keys: Keys, id: Id) -> u32 {
    RKEY | WINDOW | keys.key(id.index, id.generation)
}

impl Node {
    /// `ibv_alloc_mw`
    pub fn alloc_mw(&mut self, pd: PdHandle, mw_type: MwType) -> Result<MwHandle> {
        let verb = Verb::AllocMw;
        let index = Self::find(&self.pds, verb, pd)?;
        let (needed, problem) = match mw_type {
            MwType::Type1 => (Capabilities::MW_TYPE_1, "has no windows of type 1"),
            MwType::Type2 => (Capabilities::MW_TYPE_2, "has no windows of type 2"),
            _ => return Err(invalid(verb, "type", "is none")),
        };
        self.check_has(verb, needed, problem)?;
        self.check_room(verb, "memory windows", self.mws.len(), self.attr.max_mw)?;
        let context = pd.context();
        let keys = self.mrs.keys();
        let id = self.mws.insert(|id| Mw {
            context,
            pd: index,
            mw_type,
            rkey: first_key(keys, id),
            told: first_key(keys, id),
            bound: None,
        });
        self.pds.at_mut(index).mws += 1;
        self.add_object(context, Object::Mw, id.index);
        Ok(MwHandle::from_parts(context, id.index, id.generation))
    }

    /// `ibv_dealloc_mw`
    pub fn dealloc_mw(&mut self, mw: MwHandle) -> Result<()> {
        let index = Self::find(&self.mws, Verb::DeallocMw, mw)?;
        self.remove_window(index);
        self.place_late();
        Ok(())
    }

    fn remove_window(&mut self, index: u32) {
        self.set_bound(index, None);
        let mw = self.mws.remove(index);
        self.pds.at_mut(mw.pd).mws -= 1;
        self.remove_object(mw.context, Object::Mw, index);
    }

    /// The only writer of what a window is bound to. The region and the queue pair know of it, if they are
    /// still there.
    fn set_bound(&mut self, index: u32, bound: Option<Bound>) {
        let before = std::mem::replace(&mut self.mws.at_mut(index).bound, bound);
        for (bound, is_new) in [(before, false), (bound, true)] {
            let Some(Bound {
                info: MwBindInfo { mr, .. },
                qp,
            }) = bound
            else {
                continue;
            };
            if let Some(mr) = self.mrs.live_mut(mr.index(), mr.generation()) {
                match is_new {
                    true => mr.windows += 1,
                    false => mr.windows -= 1,
                }
            }
            let qp = qp.and_then(|qp| self.qps.live_mut(qp.index(), qp.generation()));
            if let Some(qp) = qp {
                match is_new {
                    true => qp.windows.insert(index),
                    false => qp.windows.remove(&index),
                };
            }
        }
    }

    /// The fields of `struct ibv_mw`, which is read without a look at its handle.
    pub fn query_mw(&self, mw: MwHandle) -> Result<MwAttr> {
        let index = Self::find_unchecked(&self.mws, Verb::QueryMw, mw)?;
        let mw = self.mws.at(index);
        Ok(MwAttr::new(mw.mw_type, mw.told))
    }

    /// `ibv_bind_mw`
    pub fn bind_mw(&mut self, now: Time, qp: QpHandle, mw: MwHandle, bind: &MwBind) -> Result<()> {
        let verb = Verb::BindMw;
        let index = self.find_qp(verb, qp)?;
        let (window, region) = self.bind_parts(verb, qp.context(), mw, &bind.info)?;
        let window = self.mws.at(window);
        if window.mw_type != MwType::Type1 {
            return Err(invalid(verb, "mw", "is not of type 1"));
        }
        if self.mrs.at(region).pd() != window.pd {
            let cause = Cause::Mismatch {
                object: Object::Mr,
                must_share: "pd",
            };
            return Err(Error::new(verb, ErrorKind::Permission, cause));
        }
        if bind.info.access.contains(Access::ZERO_BASED) {
            return Err(invalid(verb, "mw_access_flags", "are zero-based"));
        }
        let rkey = verbs_api::inc_rkey(window.told);
        let wr = SendWr::bind_mw(bind.wr_id, mw, rkey, bind.info).unsignaled();
        let posted = self.push_send(verb, index, &wr.flags(bind.flags));
        self.run_sends(now, index);
        posted
    }

    /// What a bind that is posted must name; the rest is looked at when it is executed.
    pub(super) fn check_bind(&self, verb: Verb, context: Context, op: &SendOp) -> Result<()> {
        let SendOp::BindMw { mw, info, .. } = op else {
            return Ok(());
        };
        let (window, _) = self.bind_parts(verb, context, *mw, info)?;
        let window = self.mws.at(window);
        let refuses = self.behavior.bind_wr_type_1 == Check::Refused;
        if verb != Verb::BindMw && window.mw_type == MwType::Type1 && refuses {
            return Err(invalid(verb, "mw", "is not of type 2"));
        }
        Ok(())
    }

    /// A bind is posted: the window's key is the new one from now on.
    pub(super) fn note_bind(&mut self, op: &SendOp) {
        if let SendOp::BindMw { mw, rkey, .. } = op
            && let Ok(index) = self.find_bound(&self.mws, Verb::PostSend, *mw)
        {
            let window = self.mws.at_mut(index);
            window.told = with_callers_part(window.told, *rkey);
        }
    }

    fn bind_parts(
        &self,
        verb: Verb,
        context: Context,
        mw: MwHandle,
        info: &MwBindInfo,
    ) -> Result<(u32, u32)> {
        let window = self.find_bound(&self.mws, verb, mw)?;
        same_context(verb, context, mw)?;
        let region = self.find_bound(&self.mrs, verb, info.mr)?;
        same_context(verb, context, info.mr)?;
        Ok((window, region))
    }

    /// The window or the region of a bind: drivers know them by their keys.
    fn find_bound<H: Handle, T: InContext>(
        &self,
        table: &Table<T>,
        verb: Verb,
        handle: H,
    ) -> Result<u32> {
        match self.behavior.bind_bad_handle {
            Check::Accepted => Self::find_unchecked(table, verb, handle),
            Check::Refused | _ => Self::find(table, verb, handle),
        }
    }

    /// Carries out work that no peer has a part in; `None` if it is not of that kind.
    pub(super) fn execute_locally(&mut self, index: u32, op: SendOp) -> Option<WcStatus> {
        let (done, failure) = match op {
            SendOp::BindMw { mw, rkey, info } => {
                (self.bind(index, mw, rkey, info), WcStatus::MwBindErr)
            }
            SendOp::LocalInv { rkey } => (self.invalidate(index, rkey), WcStatus::LocQpOpErr),
            _ => return None,
        };
        Some(done.map_or(failure, |()| WcStatus::Success))
    }

    /// Binds a window, if all is as it should be; otherwise it stays as it is.
    fn bind(&mut self, index: u32, mw: MwHandle, rkey: u32, info: MwBindInfo) -> Option<()> {
        let qp = self.qps.at(index);
        let verb = Verb::PostSend;
        let window = self.mws.at(self.find_bound(&self.mws, verb, mw).ok()?);
        let second = window.mw_type == MwType::Type2;
        let checks_domains = self.behavior.bind_domain == Check::Refused;
        let good = match second {
            true => window.bound.is_none() && info.length > 0,
            false => !info.access.contains(Access::ZERO_BASED),
        };
        let own_qp = window.pd == qp.pd || !second && !checks_domains;
        if !good || !own_qp {
            return None;
        }
        if info.length > 0 {
            let region = self.find_bound(&self.mrs, verb, info.mr).ok()?;
            let region = self.mrs.at(region);
            let writes = Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
            let may_write = region.access().contains(Access::LOCAL_WRITE);
            let lies_within = region.part(info.addr, info.length).is_ok();
            let is_good = region.access().contains(Access::MW_BIND)
                && (may_write || !info.access.intersects(writes))
                && (lies_within || self.behavior.mw_bind_range == Check::Accepted)
                && (region.pd() == window.pd || !checks_domains);
            if !is_good {
                return None;
            }
        }
        let qp = second.then_some(qp.handle);
        let window = self.mws.at_mut(mw.index());
        window.rkey = with_callers_part(window.rkey, rkey);
        let bound = (info.length > 0).then_some(Bound { info, qp });
        self.set_bound(mw.index(), bound);
        Some(())
    }

    /// Invalidates the window of type 2 that has this key, for a queue pair (MW-15, MW-17).
    pub(super) fn invalidate(&mut self, index: u32, rkey: u32) -> Option<()> {
        let own = self.qps.at(index).handle;
        let any = self.behavior.inv_other_qp == Check::Accepted;
        let window = self.window_of_key(rkey)?;
        let qp = self.mws.at(window).bound?.qp?;
        if qp != own && !any {
            return None;
        }
        self.set_bound(window, None);
        Some(())
    }

    /// The part of a region that a peer of a queue pair names through a window (MW-10, -11, -12).
    pub(super) fn touch_window(
        &self,
        qp: u32,
        rkey: u32,
        addr: u64,
        length: u64,
        need: Access,
    ) -> Result<Slice, ProtectionFault> {
        let key = ProtectionFault::Key;
        let qp = self.qps.at(qp);
        let window = self.mws.at(self.window_of_key(rkey).ok_or(key)?);
        let Bound { info, qp: only } = window.bound.ok_or(key)?;
        let opens = window.pd == qp.pd && only.is_none_or(|only| only == qp.handle);
        if !opens || !info.access.contains(need) {
            return Err(key);
        }
        let region = self.mrs.get(info.mr.index(), info.mr.generation());
        let region = region.map_err(|_| key)?;
        let range = ProtectionFault::Range;
        let addr = match info.access.contains(Access::ZERO_BASED) {
            true => info.addr.checked_add(addr).ok_or(range)?,
            false => addr,
        };
        let lies_within = || {
            let end = addr.checked_sub(info.addr)?.checked_add(length)?;
            (end <= info.length).then_some(())
        };
        if self.behavior.mw_access_range == Check::Refused {
            lies_within().ok_or(range)?;
        }
        region.part(addr, length)
    }

    fn window_of_key(&self, rkey: u32) -> Option<u32> {
        let index = self.mrs.keys().slot(rkey)?;
        let found = self.mws.peek(index)?;
        (found.rkey == rkey).then_some(index)
    }

    /// Refuses to let go of a region to which windows are bound (MR-07).
    pub(super) fn check_unbound(&self, verb: Verb, mr: u32) -> Result<()> {
        let kind = match self.behavior.dereg_bound {
            DeregBound::Einval => ErrorKind::Invalid,
            DeregBound::Orphan => return Ok(()),
            DeregBound::Ebusy | _ => ErrorKind::Busy,
        };
        let count = self.mrs.at(mr).windows;
        if count == 0 {
            return Ok(());
        }
        let cause = Cause::InUse {
            object: Object::Mr,
            by: Object::Mw,
            count,
        };
        Err(Error::new(verb, kind, cause))
    }

    /// What was bound on a queue pair that is gone is free (QP-DESTROY-04).
    pub(super) fn free_windows(&mut self, windows: &BTreeSet<u32>) {
        for index in windows {
            self.set_bound(*index, None);
        }
    }

    pub(super) fn remove_windows_of(&mut self, context: Context) {
        for index in self.objects(context, Object::Mw) {
            self.remove_window(index);
        }
    }
}

/// A key with the caller's part of another.
fn with_callers_part(rkey: u32, of: u32) -> u32 {
    rkey & !CALLERS | of & CALLERS
}
