//! Protection domains.

use std::sync::Arc;

use super::Context;
use super::life::{self, Owner, object};
use crate::error::{Cause, Error, ErrorKind, Result, Verb};
use crate::handle::{self, Object};
use crate::site::{Site, Standing};

/// A protection domain: regions, queue pairs and address handles work together within one.
#[derive(Clone)]
pub struct Pd(Arc<Owner<Parts>>);

struct Parts {
    handle: handle::Pd,
    context: Context,
}

object!(Pd, "ibv_dealloc_pd");

impl life::Parts for Parts {
    const VERB: Verb = Verb::DeallocPd;
    type Handle = handle::Pd;

    fn handle(&self) -> handle::Pd {
        self.handle
    }

    fn context(&self) -> &Context {
        &self.context
    }

    fn destroy(&self) -> Result<()> {
        self.context.verbs().dealloc_pd(self.handle)
    }
}

impl Context {
    /// Creates a protection domain ([`Verbs::alloc_pd`](crate::Verbs::alloc_pd)).
    #[track_caller]
    pub fn alloc_pd(&self) -> Result<Pd> {
        let _standing = Standing::at(Site::here());
        let handle = self.verbs().alloc_pd(self.handle())?;
        let context = self.clone();
        Ok(Pd(Owner::new(Parts { handle, context })))
    }
}

impl Pd {
    /// The context it was made from.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Refuses an object of another protection domain.
    pub(super) fn check(&self, verb: Verb, object: Object, of: &Self) -> Result<()> {
        if self == of {
            return Ok(());
        }
        let cause = Cause::Mismatch {
            object,
            must_share: "pd",
        };
        Err(Error::new(verb, ErrorKind::Invalid, cause))
    }
}
