//! Memory that a program changes, unmaps or deregisters while it is the device's.

use verbs_api::Mr;
use verbs_api::site::Site;

use super::Class;
use super::journal::Journal;
use super::problem::Describe;
use super::words::Names;

/// The bytes of a send changed before its completion was polled.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Changed {
    /// Number of its QP.
    pub qp_num: u32,
    /// The program's number for it ([`SendWr::label`](verbs_api::SendWr::label)).
    pub wr_id: u64,
}

impl Describe for Changed {
    fn class(&self) -> Class {
        Class::Changed
    }

    fn sentence(&self, _: &dyn Names) -> String {
        let Self { qp_num, wr_id } = self;
        format!(
            "the bytes of send {wr_id:#x} of qp {qp_num:#x} were changed before its completion was polled"
        )
    }
}

/// Work uses memory of a region that is not mapped any more. The place is that of the registration.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Unmapped {
    /// The region.
    pub mr: Mr,
    /// The first of the bytes in the region.
    pub offset: u64,
    /// How many there are.
    pub length: u64,
}

impl Describe for Unmapped {
    fn class(&self) -> Class {
        Class::Unmapped
    }

    fn sentence(&self, _: &dyn Names) -> String {
        let Self { mr, offset, length } = self;
        format!("work uses {mr}, of which {length} bytes from {offset:#x} on are not all mapped")
    }
}

/// A region was deregistered before the completion of work that names it was polled.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DeregisteredEarly {
    /// The region.
    pub mr: Mr,
    /// The work, the last that was posted.
    pub work: String,
    /// Where that was posted, if it is known.
    pub posted: Option<Site>,
}

impl Describe for DeregisteredEarly {
    fn class(&self) -> Class {
        Class::DeregisteredEarly
    }

    fn sentence(&self, names: &dyn Names) -> String {
        let Self { mr, work, posted } = self;
        let posted = posted.map(|site| format!(", which was posted at {}", names.place(site)));
        let posted = posted.unwrap_or_default();
        format!("{mr} was deregistered before the completion of {work} was polled{posted}")
    }
}

impl Journal {
    /// The bytes of a send have changed before its completion was polled.
    #[cold]
    pub(crate) fn changed(&mut self, qp_num: u32, wr_id: u64, posted_at: Option<Site>) {
        self.note(Changed { qp_num, wr_id }, posted_at);
    }

    /// Work uses bytes of a region that are not mapped.
    #[cold]
    pub(crate) fn unmapped(&mut self, mr: Mr, (offset, length): (u64, u64), site: Option<Site>) {
        self.note(Unmapped { mr, offset, length }, site);
    }

    /// A region is deregistered before the completion of work that names it was polled.
    #[cold]
    pub(crate) fn deregistered_early(
        &mut self,
        mr: Mr,
        (work, posted): (String, Option<Site>),
        site: Option<Site>,
    ) {
        self.note(DeregisteredEarly { mr, work, posted }, site);
    }
}
