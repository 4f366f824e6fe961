//! Why a work request or a peer cannot use memory, also if that is no longer mapped.

use verbs_api::{Access, Handle, Object, Sge};

use super::Device;
use super::base::Base;
use super::check::InContext;
use super::key::{Regions, is_window_key};
use super::region::{Mr, RKEY};
use crate::diagnosis::problem::{Unmapped, Withdrawn};
use crate::diagnosis::{FailureCause, KeyKind, Rights, Why};
use crate::memory::Gone;

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
        let Some(mr) = self.of_key(rkey & !RKEY) else {
            return self.no_region(KeyKind::Rkey, rkey);
        };
        let region = self.slot_of_key(rkey);
        // Programs often exchange the two keys of a region.
        if mr.attr.rkey != rkey && mr.attr.lkey == rkey {
            return FailureCause::IsLkey { region, key: rkey }.into();
        }
        let why = self.why_not_in(base, mr, pd, addr, length, need);
        why.unwrap_or_else(|| FailureCause::Unusable { region }.into())
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
            let key = sge.lkey;
            if let Some(mr) = self.of_key(key) {
                return self.why_not_in(base, mr, Some(pd), sge.addr, sge.length.into(), need);
            }
            // Programs often exchange the two keys of a region.
            let is_rkey = key & RKEY != 0 && self.of_key(key & !RKEY).is_some();
            Some(if is_rkey {
                let region = self.slot_of_key(key);
                FailureCause::IsRkey { region, key }.into()
            } else {
                self.no_region(KeyKind::Lkey, key)
            })
        })
    }

    /// The cause for a key without a region. It may have had one, which was deregistered.
    fn no_region(&self, kind: KeyKind, key: u32) -> Why {
        match self.gone(key) {
            Some(gone) => {
                let region = gone.region;
                let why = Why::from(FailureCause::Deregistered { region, kind, key });
                why.at("at", gone.site).registered_at(gone.registered)
            }
            None => FailureCause::NoRegion { kind, key }.into(),
        }
    }

    /// Whose key it is, for work of another device. The region may have been deregistered since.
    pub(crate) fn why_not_elsewhere(&self, base: &Base, kind: KeyKind, key: u32) -> Option<Why> {
        let has_key = |mr: &&Mr| match kind {
            KeyKind::Lkey => mr.attr.lkey == key,
            KeyKind::Rkey => mr.attr.rkey == key,
        };
        let present = self.of_key(key & !RKEY).filter(has_key);
        let (region, what, site) = match (present, self.gone(key)) {
            (Some(mr), _) => {
                let region = self.slot_of_key(mr.attr.lkey);
                let site = base.made_at(mr.context(), Object::Mr, region);
                (region, "registered at", site)
            }
            (None, Some(gone)) => (gone.region, "deregistered at", gone.site),
            (None, None) => return None,
        };
        let cause = FailureCause::OfOtherDevice { region, kind, key };
        Some(Why::from(cause).at(what, site))
    }

    fn slot_of_key(&self, key: u32) -> u32 {
        self.keys.slot(key).unwrap_or_default()
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
        let missing = need - mr.access;
        let (start, bytes) = (mr.attr.addr, mr.attr.length);
        let cause = if Some(mr.pd) != pd {
            FailureCause::OtherPd { region }
        } else if !missing.is_empty() {
            let rights = Rights(missing);
            FailureCause::Missing { region, rights }
        } else if mr.part(addr, length).is_ok() {
            // The bytes are in the region. Then only its memory can be missing, or out of reach.
            match mr.why_unmapped() {
                Some(why) => return Some(why.into()),
                None if mr.is_on_demand() => FailureCause::NoPaging { region },
                None => return None,
            }
        } else {
            match addr.checked_sub(start) {
                Some(offset) if offset <= bytes.saturating_add(NEAR) => FailureCause::OutOf {
                    region,
                    offset,
                    length,
                    bytes,
                },
                _ => FailureCause::FarFrom { region },
            }
        };
        let registered = base.made_at(mr.context(), Object::Mr, region);
        Some(Why::from(cause).at("registered at", registered))
    }
}

impl Device {
    /// Handles bytes that could not be copied. If they are not mapped, records a finding and
    /// returns true. Otherwise they were deregistered with their region.
    #[cold]
    pub(crate) fn note_unmapped(&mut self, gone: Gone) -> bool {
        let Gone::Unmapped(bytes) = gone else {
            return false;
        };
        let regions = &mut self.domains.regions.table;
        let found = |(index, mr): (u32, &Mr)| Some((index, mr.offset_of(&bytes)?));
        // The region may have been deregistered since.
        let Some((index, offset)) = regions.iter().find_map(found) else {
            return true;
        };
        let region = regions.at_mut(index);
        let (mr, length) = (region.handle, bytes.length as u64);
        region.unmapped = Some(Box::new((offset, length)));
        let why = region.why_unmapped();
        let registered = self.base.made_at(mr.context(), Object::Mr, index);
        let journal = &mut self.base.journal;
        match why {
            // It is not a mistake, and the work that fails for it is a finding.
            Some(FailureCause::Lab(_)) => {}
            Some(FailureCause::Withdrawn { .. }) => {
                journal.note(Withdrawn { mr, offset, length }, registered);
            }
            _ => journal.note(Unmapped { mr, offset, length }, registered),
        }
        true
    }
}
