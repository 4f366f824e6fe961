//! Address handles.

use std::sync::Arc;

use super::life::{self, Owner, object};
use super::{Context, Pd};
use crate::ah::AhAttr;
use crate::error::{Result, Verb};
use crate::handle;
use crate::site::{Site, Standing};

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

impl Pd {
    /// Creates an address handle ([`Verbs::create_ah`](crate::Verbs::create_ah)), for sends of UD
    /// queue pairs.
    ///
    /// # Errors
    /// `Invalid` for a port or GID index that does not exist, or a missing global route.
    #[track_caller]
    pub fn create_ah(&self, attr: &AhAttr) -> Result<Ah> {
        let _standing = Standing::at(Site::here());
        let handle = self.context().verbs().create_ah(self.handle(), attr)?;
        let pd = self.clone();
        Ok(Ah(Owner::new(Parts { handle, pd })))
    }
}

impl Ah {
    /// The protection domain it was made from.
    pub fn pd(&self) -> &Pd {
        &self.0.pd
    }
}
