//! Domains of XRC.

use verbs_api::{Context, Handle, Xrcd};

use super::map::Map;
use super::memory::Device;

/// The domains that programs have open.
#[derive(Debug, Default)]
pub(crate) struct Domains(Map<Xrcd, Domain>);

/// A domain. Which files name the same one only the system knows: those of a device that are named
/// by files are taken for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    OfFile(Device),
    Private(Xrcd),
}

impl Domains {
    pub(crate) fn opened(&mut self, xrcd: Xrcd, domain: Domain) {
        self.0.insert(xrcd, domain);
    }

    pub(crate) fn of(&self, xrcd: Xrcd) -> Option<Domain> {
        self.0.get(&xrcd).copied()
    }

    pub(crate) fn gone(&mut self, xrcd: Xrcd) {
        self.0.remove(&xrcd);
    }

    pub(crate) fn closed(&mut self, context: Context) {
        self.0.retain(|xrcd, _| xrcd.context() != context);
    }
}
