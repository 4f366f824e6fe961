//! Memory windows: life, binding, invalidation, and access through them.

use std::collections::BTreeSet;

use verbs_api::behavior::Check;
use verbs_api::table::{Id, Table};
use verbs_api::{
    Access, Capabilities, Cause, Context, ErrorKind, Handle, Mw as MwHandle, MwAttr, MwBind,
    MwBindInfo, MwType, Object, Pd as PdHandle, Qp as QpHandle, SendOp, Verb,
};

use super::Device;
use super::base::Base;
use super::check::{InContext, find, find_unchecked, in_context, invalid, same_context};
use super::domain::{Domains, Peer};
use super::key::{Keys, WINDOW};
use super::refusal::{Refusal, Result};
use super::region::{ProtectionFault, RKEY};
use crate::memory::Slice;

/// A memory window.
#[derive(Clone, Debug)]
pub(crate) struct Mw {
    context: Context,
    pd: u32,
    mw_type: MwType,
    /// The key that the device accepts.
    rkey: u32,
    /// The key of the last bind that was posted.
    posted_rkey: u32,
    bound: Option<Bound>,
}

/// The windows of a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Windows {
    pub(crate) table: Table<Mw>,
    /// The bound windows of type 2: the slot of the queue pair, and that of the window.
    of_qps: BTreeSet<(u32, u32)>,
}

/// The memory that a window exposes, and for type 2, the queue pair.
#[derive(Clone, Copy, Debug)]
struct Bound {
    info: MwBindInfo,
    qp: Option<QpHandle>,
}

in_context!(Mw, context);

/// The lower bits of a key, which the caller chooses.
const CALLERS: u32 = 0xff;

fn first_key(keys: Keys, id: Id) -> u32 {
    RKEY | WINDOW | keys.key(id.index, id.generation)
}

impl Device {
    /// `ibv_alloc_mw`
    pub(crate) fn alloc_mw(&mut self, pd: PdHandle, mw_type: MwType) -> Result<MwHandle> {
        let Self { base, domains, .. } = self;
        let index = domains.find_pd(base, pd)?;
        let (needed, problem) = match mw_type {
            MwType::Type1 => (Capabilities::MW_TYPE_1, "has no windows of type 1"),
            MwType::Type2 => (Capabilities::MW_TYPE_2, "has no windows of type 2"),
            // There are only these two types.
            _ => return Err(invalid("type", "is not a window type")),
        };
        base.check_has(needed, problem)?;
        base.check_room("memory windows", &domains.windows.table, base.attr.max_mw)?;
        let context = pd.context();
        let keys = domains.regions.keys;
        let id = domains.windows.table.insert(|id| Mw {
            context,
            pd: index,
            mw_type,
            rkey: first_key(keys, id),
            posted_rkey: first_key(keys, id),
            bound: None,
        });
        domains.pds.at_mut(index).mws += 1;
        Ok(base.added_in(pd, id, MwHandle::from_parts))
    }

    /// `ibv_dealloc_mw`
    pub(crate) fn dealloc_mw(&mut self, mw: MwHandle) -> Result<()> {
        let index = find(&self.domains.windows.table, mw)?;
        self.remove_window(index);
        self.flush_deferred_writes();
        Ok(())
    }

    pub(super) fn remove_window(&mut self, index: u32) {
        self.domains.set_bound(index, None);
        let mw = self.domains.windows.table.remove(index);
        self.domains.pds.at_mut(mw.pd).mws -= 1;
        self.base.remove_object(mw.context, Object::Mw, index);
    }

    /// The fields of `struct ibv_mw`, which are read without a check of the handle.
    pub(crate) fn query_mw(&self, mw: MwHandle) -> Result<MwAttr> {
        let index = find_unchecked(&self.domains.windows.table, mw)?;
        let mw = self.domains.windows.table.at(index);
        Ok(MwAttr::new(mw.mw_type, mw.posted_rkey))
    }

    /// Checks the arguments of `ibv_bind_mw`. Returns the new key of the window.
    pub(crate) fn check_bind_mw(
        &self,
        context: Context,
        mw: MwHandle,
        bind: &MwBind,
    ) -> Result<u32> {
        let (window, region) = self.bind_parts(context, mw, &bind.info)?;
        let window = self.domains.windows.table.at(window);
        // Windows of type 2 are bound by work requests only.
        if window.mw_type != MwType::Type1 {
            return Err(invalid("mw", "is not of type 1"));
        }
        // Otherwise a window would open memory of another domain.
        if self.domains.regions.table.at(region).pd != window.pd {
            let cause = Cause::Mismatch {
                object: Object::Mr,
                must_share: "pd",
            };
            return Err(Refusal::new(ErrorKind::Permission, cause));
        }
        if bind.info.access.contains(Access::ZERO_BASED) {
            return Err(invalid("mw_access_flags", "are zero-based"));
        }
        Ok(verbs_api::inc_rkey(window.posted_rkey))
    }

    /// Checks the objects of a bind that is posted. The rest is checked when it is executed.
    pub(crate) fn check_bind(&self, verb: Verb, context: Context, op: &SendOp) -> Result<()> {
        let SendOp::BindMw { mw, info, .. } = op else {
            return Ok(());
        };
        let (window, _) = self.bind_parts(context, *mw, info)?;
        let window = self.domains.windows.table.at(window);
        let refuses = self.base.behavior.bind_wr_type_1 == Check::Refused;
        // Some drivers accept work requests for windows of type 1.
        if verb != Verb::BindMw && window.mw_type == MwType::Type1 && refuses {
            return Err(invalid("mw", "is not of type 2"));
        }
        Ok(())
    }

    /// Records a posted bind: the window reports the new key from now on.
    pub(crate) fn note_bind(&mut self, op: &SendOp) {
        if let SendOp::BindMw { mw, rkey, .. } = op
            && let Ok(index) = self.find_bound(&self.domains.windows.table, *mw)
        {
            let window = self.domains.windows.table.at_mut(index);
            // The structure shows the new key before the bind is executed, as in C.
            window.posted_rkey = with_callers_part(window.posted_rkey, *rkey);
        }
    }

    fn bind_parts(&self, context: Context, mw: MwHandle, info: &MwBindInfo) -> Result<(u32, u32)> {
        let window = self.find_bound(&self.domains.windows.table, mw)?;
        same_context(context, mw)?;
        let region = self.find_bound(&self.domains.regions.table, info.mr)?;
        same_context(context, info.mr)?;
        Ok((window, region))
    }

    /// The window or the region of a bind. Some drivers identify them by their keys only.
    fn find_bound<H: Handle, T: InContext>(&self, table: &Table<T>, handle: H) -> Result<u32> {
        match self.base.behavior.bind_bad_handle {
            Check::Accepted => find_unchecked(table, handle),
            Check::Refused | _ => find(table, handle),
        }
    }

    /// Binds a window if all checks pass. Otherwise it keeps its state.
    pub(crate) fn bind(
        &mut self,
        qp: QpHandle,
        pd: u32,
        mw: MwHandle,
        rkey: u32,
        info: MwBindInfo,
    ) -> Option<()> {
        let window = self
            .domains
            .windows
            .table
            .at(self.find_bound(&self.domains.windows.table, mw).ok()?);
        let second = window.mw_type == MwType::Type2;
        let checks_domains = self.base.behavior.bind_domain == Check::Refused;
        // Type 1 is bound again and unbound with length 0. Type 2 is bound once and must be
        // invalidated first.
        let good = if second {
            window.bound.is_none() && info.length > 0
        } else {
            !info.access.contains(Access::ZERO_BASED)
        };
        let own_qp = window.pd == pd || !second && !checks_domains;
        if !good || !own_qp {
            return None;
        }
        // A bind of no bytes unbinds a window of type 1.
        if info.length > 0 {
            let region = self.find_bound(&self.domains.regions.table, info.mr).ok()?;
            let region = self.domains.regions.table.at(region);
            let writes = Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
            // A window cannot open more than its region allows locally.
            let may_write = region.access.contains(Access::LOCAL_WRITE);
            let lies_within = region.part(info.addr, info.length).is_ok();
            let is_good = region.access.contains(Access::MW_BIND)
                && (may_write || !info.access.intersects(writes))
                && (lies_within || self.base.behavior.mw_bind_range == Check::Accepted)
                && (region.pd == window.pd || !checks_domains);
            if !is_good {
                return None;
            }
        }
        let qp = second.then_some(qp);
        let window = self.domains.windows.table.at_mut(mw.index());
        // Only the lower bits of a key belong to the caller.
        window.rkey = with_callers_part(window.rkey, rkey);
        let bound = (info.length > 0).then_some(Bound { info, qp });
        self.domains.set_bound(mw.index(), bound);
        Some(())
    }
}

impl Domains {
    /// Changes what a window is bound to. Nothing else writes it. The counts of the region and the
    /// queue pair follow, if these still exist.
    fn set_bound(&mut self, index: u32, bound: Option<Bound>) {
        let before = std::mem::replace(&mut self.windows.table.at_mut(index).bound, bound);
        for (bound, is_new) in [(before, false), (bound, true)] {
            let Some(Bound { info, qp }) = bound else {
                continue;
            };
            let (mr, regions) = (info.mr, &mut self.regions.table);
            if let Some(mr) = regions.live_mut(mr.index(), mr.generation()) {
                mr.windows += u32::from(is_new);
                mr.windows -= u32::from(!is_new);
            }
            let entry = qp.map(|qp| (qp.index(), index));
            if is_new {
                self.windows.of_qps.extend(entry);
            } else if let Some(entry) = entry {
                self.windows.of_qps.remove(&entry);
            }
        }
    }

    /// Invalidates the window of type 2 that has this key, for a queue pair (MW-15, MW-17).
    pub(crate) fn invalidate(&mut self, base: &Base, own: QpHandle, rkey: u32) -> Option<()> {
        let any = base.behavior.inv_other_qp == Check::Accepted;
        let window = self.window_of_key(rkey)?;
        let qp = self.windows.table.at(window).bound?.qp?;
        // A window of type 2 belongs to the queue pair that bound it.
        if qp != own && !any {
            return None;
        }
        self.set_bound(window, None);
        Some(())
    }

    /// The part of a region that a peer of a queue pair names through a window (MW-10, -11, -12).
    pub(crate) fn touch_window(
        &self,
        base: &Base,
        peer: Peer,
        rkey: u32,
        addr: u64,
        length: u64,
        need: Access,
    ) -> Result<Slice, ProtectionFault> {
        let key = ProtectionFault::Key;
        let window = self.windows.table.at(self.window_of_key(rkey).ok_or(key)?);
        let Bound { info, qp: only } = window.bound.ok_or(key)?;
        let opens = Some(window.pd) == peer.pd && only.is_none_or(|only| only == peer.qp);
        if !opens || !info.access.contains(need) {
            return Err(key);
        }
        // The region may have been deregistered, on a device that allows that for bound ones.
        let (mr, regions) = (info.mr, &self.regions.table);
        let region = regions.get(mr.index(), mr.generation()).map_err(|_| key)?;
        let range = ProtectionFault::Range;
        // Zero-based windows are addressed from their start.
        let addr = if info.access.contains(Access::ZERO_BASED) {
            info.addr.checked_add(addr).ok_or(range)?
        } else {
            addr
        };
        let lies_within = || {
            let end = addr.checked_sub(info.addr)?.checked_add(length)?;
            (end <= info.length).then_some(())
        };
        // Some drivers check only the region.
        if base.behavior.mw_access_range == Check::Refused {
            lies_within().ok_or(range)?;
        }
        peer.check_pages(region, need)?;
        region.part(addr, length)
    }

    /// The addresses and the length of what a bound window shows.
    pub(super) fn shown_by(&self, rkey: u32) -> Option<(u64, u64)> {
        let window = self.windows.table.at(self.window_of_key(rkey)?);
        let info = window.bound?.info;
        let is_zero_based = info.access.contains(Access::ZERO_BASED);
        Some((if is_zero_based { 0 } else { info.addr }, info.length))
    }

    fn window_of_key(&self, rkey: u32) -> Option<u32> {
        let index = self.regions.keys.slot(rkey)?;
        let found = self.windows.table.peek(index)?;
        (found.rkey == rkey).then_some(index)
    }

    /// Unbinds the windows of a queue pair that is destroyed (QP-DESTROY-04).
    pub(crate) fn free_windows(&mut self, qp: u32) {
        let of_qp = self.windows.of_qps.range((qp, 0)..=(qp, u32::MAX));
        // Unbinding changes the set that is iterated.
        let windows: Vec<u32> = of_qp.map(|(_, window)| *window).collect();
        for index in windows {
            self.set_bound(index, None);
        }
    }
}

/// A key with the caller's bits of another key.
fn with_callers_part(rkey: u32, of: u32) -> u32 {
    rkey & !CALLERS | of & CALLERS
}
