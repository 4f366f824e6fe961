//! Memory of regions that is no longer mapped, where memory is checked: the affected regions, and
//! where they were registered.

use std::collections::BTreeMap;

use verbs_api::Mr as MrHandle;
use verbs_api::site::Site;

use super::Device;
use super::region::Mr;
use crate::diagnosis::FailureCause;
use crate::diagnosis::problem::Unmapped;
use crate::memory::Gone;

/// The regions by their slots, where memory is checked. Otherwise empty.
#[derive(Clone, Debug, Default)]
pub(super) struct Registered(BTreeMap<u32, Region>);

#[derive(Clone, Debug)]
struct Region {
    mr: MrHandle,
    site: Option<Site>,
    /// The last bytes that were found unmapped: their offset and number.
    unmapped: Option<(u64, u64)>,
}

impl Registered {
    pub(super) fn add(&mut self, index: u32, mr: MrHandle, site: Option<Site>) {
        let unmapped = None;
        self.0.insert(index, Region { mr, site, unmapped });
    }

    pub(super) fn remove(&mut self, index: u32) {
        self.0.remove(&index);
    }

    /// Why work on a region failed, if its memory is not mapped.
    pub(super) fn why(&self, index: u32) -> Option<FailureCause> {
        let Region { mr, unmapped, .. } = *self.0.get(&index)?;
        let (offset, length) = unmapped?;
        Some(FailureCause::NotMapped { mr, offset, length })
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
        let regions = &mut self.domains.regions;
        let found = |(index, mr): (u32, &Mr)| Some((index, mr.offset_of(&bytes)?));
        // The region may have been deregistered since.
        let Some((index, offset)) = regions.table.iter().find_map(found) else {
            return true;
        };
        let length = bytes.length as u64;
        if let Some(region) = regions.registered.0.get_mut(&index) {
            region.unmapped = Some((offset, length));
            let (mr, site) = (region.mr, region.site);
            let problem = Unmapped { mr, offset, length };
            self.base.journal.note(problem, site);
        }
        true
    }
}
