//! Thread domains.

use std::sync::Arc;

use super::Context;
use super::life::{self, Owner, object};
use crate::error::{Result, Verb};
use crate::handle;
use crate::site::{Site, Standing};

/// A thread domain: a promise that one thread at a time uses what is made in a parent domain with
/// it ([`Pd::alloc_parent_domain`](super::Pd::alloc_parent_domain)).
#[derive(Clone)]
pub struct Td(Arc<Owner<Parts>>);

struct Parts {
    handle: handle::Td,
    context: Context,
}

object!(Td, "ibv_dealloc_td");

impl life::Parts for Parts {
    const VERB: Verb = Verb::DeallocTd;
    type Handle = handle::Td;

    fn handle(&self) -> handle::Td {
        self.handle
    }

    fn context(&self) -> &Context {
        &self.context
    }

    fn destroy(&self) -> Result<()> {
        self.context.verbs().dealloc_td(self.handle)
    }
}

impl Context {
    /// Creates a thread domain ([`Verbs::alloc_td`](crate::Verbs::alloc_td)).
    ///
    /// # Errors
    /// `NotSupported` without
    /// [`Capabilities::PARENT_DOMAIN`](crate::Capabilities::PARENT_DOMAIN); `NoMemory`.
    #[track_caller]
    pub fn alloc_td(&self) -> Result<Td> {
        let _standing = Standing::at(Site::here());
        let handle = self.verbs().alloc_td(self.handle())?;
        let context = self.clone();
        Ok(Td(Owner::new(Parts { handle, context })))
    }
}
