//! Enhanced connection establishment: the options that messages of a connection carry.

use verbs_api::Ece;
use verbs_api::cm::CmId;
use verbs_roce::mad;

use super::Manager;
use super::host::Host;
use super::id::Id;
use crate::device::{Result, invalid};

/// The options of both sides, as an id knows them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    pub(super) local: Ece,
    pub(super) remote: Ece,
}

impl Options {
    /// The options of a request.
    pub(super) fn request(&self, host: Host<'_>) -> mad::Ece {
        sent(host, self.local.vendor_id, self.local.options)
    }

    /// The options of an answer, which repeats the vendor of the request.
    pub(super) fn answer(&self, host: Host<'_>) -> mad::Ece {
        sent(host, self.remote.vendor_id, self.local.options)
    }

    /// Takes the options of the peer's message.
    pub(super) fn receive(&mut self, ece: mad::Ece) {
        self.remote = Ece::new(ece.vendor_id, ece.options);
    }
}

fn sent(host: Host<'_>, vendor_id: u32, options: u32) -> mad::Ece {
    // The messages of iWARP have no room for them.
    if host.is_iwarp() {
        return mad::Ece::default();
    }
    mad::Ece { vendor_id, options }
}

impl Manager {
    /// `rdma_set_local_ece`
    pub(crate) fn set_local_ece(&mut self, id: CmId, ece: &Ece) -> Result<()> {
        let index = self.ids.find(id)?;
        let of = self.ids.at_mut(index);
        check_own(of)?;
        if ece.vendor_id == 0 {
            return Err(invalid("vendor_id", "is 0, which no vendor has"));
        }
        if ece.comp_mask != 0 {
            return Err(invalid("comp_mask", "is not 0"));
        }
        of.ece.local = *ece;
        Ok(())
    }

    /// `rdma_get_remote_ece`
    pub(crate) fn get_remote_ece(&self, id: CmId) -> Result<Ece> {
        let of = self.ids.at(self.ids.find(id)?);
        check_own(of)?;
        Ok(of.ece.remote)
    }

    /// The options of an id and of its peer.
    pub(crate) fn ece(&self, id: CmId) -> Result<(Ece, Ece)> {
        let Options { local, remote } = self.ids.at(self.ids.find(id)?).ece;
        Ok((local, remote))
    }

    /// Keeps the options of the queue pair of an id for its messages.
    pub(crate) fn keep_ece(&mut self, id: CmId, local: Ece) -> Result<()> {
        let index = self.ids.find(id)?;
        self.ids.at_mut(index).ece.local = local;
        Ok(())
    }
}

/// Refuses an id whose queue pair has its options from librdmacm.
fn check_own(id: &Id) -> Result<()> {
    match id.qp {
        Some(_) => Err(invalid("id", "has a qp, whose options rdma_cm sets")),
        None => Ok(()),
    }
}
