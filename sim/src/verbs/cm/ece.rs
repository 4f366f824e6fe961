//! Enhanced connection establishment of queue pairs that belong to ids: librdmacm lets both sides
//! agree on the options that both devices support.

use verbs_api::cm::CmId;
use verbs_api::{Cause, Ece, Error, ErrorKind, Qp, Result, Verb, Verbs};

use crate::device::Answer;
use crate::verbs::Sim;

impl Sim {
    /// Gives an id the options of its new queue pair, and that the options of a request.
    pub(super) fn start_ece(&self, id: CmId, qp: Qp) -> Result<()> {
        let own = self.ece_of(qp)?;
        let remote = self.keep_ece(id, own)?;
        if remote.vendor_id == 0 {
            return Ok(());
        }
        let is_same = remote.vendor_id == own.vendor_id;
        // Options of another vendor have no meaning here.
        let options = if is_same { remote.options } else { 0 };
        self.ask_ece(qp, Ece::new(own.vendor_id, options))
    }

    /// Keeps what a queue pair in INIT has accepted of a request, for the answer.
    pub(super) fn settle_ece(&self, id: CmId, qp: Qp) -> Result<()> {
        let accepted = self.ece_of(qp)?;
        self.keep_ece(id, accepted).map(drop)
    }

    /// Gives the queue pair of an id the options of an answer, which has the vendor of the request.
    pub(super) fn take_ece(&self, id: CmId, qp: Qp) -> Result<()> {
        let verb = Verb::CmGetEvent;
        let (local, remote) = self.look_at(|manager, _| manager.ece(id)).by(verb)?;
        if remote.vendor_id == 0 {
            // The other side has none.
            return self.ask_ece(qp, Ece::new(local.vendor_id, 0));
        }
        if remote.vendor_id != local.vendor_id {
            let text = "the answer has options of another vendor than the request";
            let cause = Cause::Text(text.into());
            return Err(Error::new(verb, ErrorKind::Invalid, cause));
        }
        self.ask_ece(qp, remote)
    }

    /// Sets the options that an id sends. Returns those of its peer.
    fn keep_ece(&self, id: CmId, local: Ece) -> Result<Ece> {
        let kept = self.look_at(|manager, _| {
            manager.keep_ece(id, local)?;
            manager.ece(id)
        });
        Ok(kept.by(Verb::CmCreateQp)?.1)
    }

    /// The options of a queue pair: zeros if its device has none.
    fn ece_of(&self, qp: Qp) -> Result<Ece> {
        if_supported(self.unobserved().query_ece(qp))
    }

    fn ask_ece(&self, qp: Qp, ece: Ece) -> Result<()> {
        if_supported(self.unobserved().set_ece(qp, &ece))
    }
}

/// The default if the device lacks the verb.
fn if_supported<T: Default>(result: Result<T>) -> Result<T> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotSupported => Ok(T::default()),
        result => result,
    }
}
