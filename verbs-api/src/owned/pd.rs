//! Protection domains.

use std::sync::Arc;

use super::life::{self, Owner, object};
use super::{Context, Td};
use crate::error::{Cause, Error, ErrorKind, Result, Verb};
use crate::handle::{self, Object};
use crate::site::{Site, Standing};

/// A protection domain: regions, queue pairs and address handles work together within one.
#[derive(Clone)]
pub struct Pd(Arc<Owner<Parts>>);

struct Parts {
    handle: handle::Pd,
    context: Context,
    /// The domains of a parent domain.
    of: Option<(Pd, Option<Td>)>,
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
        Ok(Pd(Owner::new(Parts {
            handle,
            context: self.clone(),
            of: None,
        })))
    }
}

impl Pd {
    /// The context it was made from.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Creates a parent domain of this one
    /// ([`Verbs::alloc_parent_domain`](crate::Verbs::alloc_parent_domain)). Objects made in either
    /// work together.
    ///
    /// # Errors
    /// `Invalid` for a thread domain of another context; `NotSupported` without
    /// [`Capabilities::PARENT_DOMAIN`](crate::Capabilities::PARENT_DOMAIN); `NoMemory`.
    #[track_caller]
    pub fn alloc_parent_domain(&self, td: Option<&Td>) -> Result<Self> {
        let _standing = Standing::at(Site::here());
        let (verbs, td_handle) = (self.context().verbs(), td.map(Td::handle));
        let handle = verbs.alloc_parent_domain(self.handle(), td_handle)?;
        Ok(Self(Owner::new(Parts {
            handle,
            context: self.context().clone(),
            of: Some((self.clone(), td.cloned())),
        })))
    }

    /// The protection domain: the one behind a parent domain, or this one.
    fn protection(&self) -> &Self {
        let of = self.0.of.as_ref();
        of.map_or(self, |(pd, _)| pd.protection())
    }

    /// Refuses an object of another protection domain.
    pub(super) fn check(&self, verb: Verb, object: Object, of: &Self) -> Result<()> {
        if self.protection() == of.protection() {
            return Ok(());
        }
        let cause = Cause::Mismatch {
            object,
            must_share: "pd",
        };
        Err(Error::new(verb, ErrorKind::Invalid, cause))
    }
}
