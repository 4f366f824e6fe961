//! Enhanced connection establishment: the options of a queue pair.

use verbs_api::{Ece, ErrorKind};

use crate::device::{Refusal, Result, invalid};

/// The options of a queue pair.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum EceOptions {
    /// All that the device supports.
    #[default]
    All,
    /// None until the next `ibv_modify_qp`, and then these.
    Asked(u32),
    /// These.
    Accepted(u32),
}

impl EceOptions {
    /// `ibv_query_ece`, on a device that supports `own`.
    pub(crate) fn query(self, own: Ece) -> Ece {
        let options = match self {
            Self::All => own.options,
            Self::Asked(_) => 0,
            Self::Accepted(options) => options,
        };
        Ece { options, ..own }
    }

    /// `ibv_set_ece`
    pub(crate) fn set(&mut self, own: Ece, asked: &Ece) -> Result<()> {
        if asked.vendor_id == 0 {
            // libibverbs refuses it itself, since a peer without options names it.
            let problem = "is 0, which no vendor has";
            return Err(Refusal::argument(
                ErrorKind::NotSupported,
                "vendor_id",
                problem,
            ));
        }
        if asked.comp_mask != 0 {
            return Err(invalid("comp_mask", "is not 0"));
        }
        if asked.vendor_id != own.vendor_id {
            return Err(invalid("vendor_id", "is not that of the device"));
        }
        *self = Self::Asked(asked.options);
        Ok(())
    }

    /// The device takes what was asked for, as far as it supports it.
    pub(super) fn accept(&mut self, own: Ece) {
        if let Self::Asked(options) = *self {
            *self = Self::Accepted(options & own.options);
        }
    }
}
