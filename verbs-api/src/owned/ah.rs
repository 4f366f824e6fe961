//! Address handles.

use std::sync::Arc;

use super::life::{self, Owner, object};
use super::{Context, Pd};
use crate::ah::AhAttr;
use crate::error::{Result, Verb};
use crate::handle;

/// An address handle: where a send of a UD queue pair goes. Posted work holds it.
#[derive(Clone)]
pub struct Ah(Arc<Owner<Parts>>);

struct Parts {
    handle: handle::Ah,
    pd: Pd,
}

object!(Ah, "ibv_destroy_ah");

impl life::Parts for Parts {
    const VERB: Verb = Verb::DestroyAh;
    type Handle = handle::Ah;

    fn handle(&self) -> handle::Ah {
        self.handle
    }

    fn context(&self) -> &Context {
        self.pd.context()
    }

    fn destroy(&self) -> Result<()> {
        self.context().verbs().destroy_ah(self.handle)
    }
}

impl Ah {
    pub(super) fn create(pd: &Pd, attr: &AhAttr) -> Result<Self> {
        let handle = pd.context().verbs().create_ah(pd.handle(), attr)?;
        let pd = pd.clone();
        Ok(Self(Owner::new(Parts { handle, pd })))
    }

    /// The protection domain it was made from.
    pub fn pd(&self) -> &Pd {
        &self.0.pd
    }
}
