//! Why a work request or a peer cannot use memory.

use verbs_api::{Access, Object, Sge};

use super::base::Base;
use super::check::InContext;
use super::key::Regions;
use super::mw::is_window_key;
use super::region::{Mr, RKEY};
use crate::diagnosis::{FailureCause, KeyKind, RegionSlot, Rights, Why};

/// The largest offset from a region that is reported. Larger offsets depend on where the machine
/// has allocated memory.
const NEAR: u64 = 1 << 20;

impl Regions {
    /// Why a peer of a queue pair of this protection domain cannot use the memory that it names.
    pub(crate) fn why_not_remote(
        &self,
        base: &Base,
        pd: Option<u32>,
        rkey: u32,
        addr: u64,
        length: u64,
        need: Access,
    ) -> Why {
        if is_window_key(rkey) {
            return FailureCause::NoWindow { rkey }.into();
        }
        let region = self.slot_of_key(rkey);
        match self.of_key(rkey & !RKEY) {
            None => self.no_region(KeyKind::Rkey, rkey),
            // Programs often exchange the two keys of a region.
            Some(mr) if mr.attr.rkey != rkey && mr.attr.lkey == rkey => FailureCause::OtherKey {
                region,
                key: rkey,
                kind: KeyKind::Lkey,
                needed: KeyKind::Rkey,
            }
            .into(),
            Some(mr) => {
                let why = self.why_not_in(base, mr, pd, addr, length, need);
                let why = why.or_else(|| self.why_unmapped(rkey));
                why.unwrap_or_else(|| FailureCause::Unusable { region }.into())
            }
        }
    }

    /// Why work of a queue pair of this protection domain cannot use the memory that it names.
    pub(crate) fn why_not_local(
        &self,
        base: &Base,
        pd: u32,
        list: &[Sge],
        need: Access,
    ) -> Option<Why> {
        list.iter().find_map(|sge| {
            let Some(mr) = self.of_key(sge.lkey) else {
                // Programs often exchange the two keys of a region.
                let is_rkey = sge.lkey & RKEY != 0;
                let of_key = self.of_key(sge.lkey & !RKEY).filter(|_| is_rkey);
                return Some(match of_key {
                    Some(_) => FailureCause::OtherKey {
                        region: self.slot_of_key(sge.lkey),
                        key: sge.lkey,
                        kind: KeyKind::Rkey,
                        needed: KeyKind::Lkey,
                    }
                    .into(),
                    None => self.no_region(KeyKind::Lkey, sge.lkey),
                });
            };
            let why = self.why_not_in(base, mr, Some(pd), sge.addr, sge.length.into(), need);
            why.or_else(|| self.why_unmapped(sge.lkey))
        })
    }

    /// The cause, if memory of the region of a key was not mapped.
    fn why_unmapped(&self, key: u32) -> Option<Why> {
        let cause = self.registered.why(self.keys().slot(key & !RKEY)?)?;
        Some(cause.into())
    }

    /// The cause for a key without a region. It may have had one, which was deregistered.
    fn no_region(&self, kind: KeyKind, key: u32) -> Why {
        match self.gone(key) {
            Some(gone) => {
                let region = gone.region;
                Why::from(FailureCause::Deregistered { region, kind, key }).at("at", gone.site)
            }
            None => FailureCause::NoRegion { kind, key }.into(),
        }
    }

    fn slot_of_key(&self, key: u32) -> RegionSlot {
        RegionSlot(self.keys().slot(key).unwrap_or_default())
    }

    fn why_not_in(
        &self,
        base: &Base,
        mr: &Mr,
        pd: Option<u32>,
        addr: u64,
        length: u64,
        need: Access,
    ) -> Option<Why> {
        let region = self.slot_of_key(mr.attr.lkey);
        let why = Why::from(why_not_in(mr, region, pd, addr, length, need)?);
        let index = self.keys().slot(mr.attr.lkey)?;
        let registered = base.made_at(mr.context(), Object::Mr, index);
        Some(why.at("registered at", registered))
    }
}

fn why_not_in(
    mr: &Mr,
    region: RegionSlot,
    pd: Option<u32>,
    addr: u64,
    length: u64,
    need: Access,
) -> Option<FailureCause> {
    if Some(mr.pd) != pd {
        return Some(FailureCause::OtherPd { region });
    }
    let rights = need - mr.access;
    if !rights.is_empty() {
        return Some(FailureCause::Missing {
            region,
            rights: Rights(rights),
        });
    }
    if mr.part(addr, length).is_ok() {
        return None;
    }
    let (start, bytes) = (mr.attr.addr, mr.attr.length);
    Some(match addr.checked_sub(start) {
        Some(offset) if offset <= bytes + NEAR => FailureCause::OutOf {
            region,
            offset,
            length,
            bytes,
        },
        _ => FailureCause::FarFrom { region },
    })
}
