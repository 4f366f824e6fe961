//! Device memory.

use std::sync::Arc;

use super::life::{self, Owner, Parts as _, object};
use super::{Context, Mr, Pd};
use crate::dm::DmInit;
use crate::error::{Result, Verb};
use crate::handle;
use crate::mr::Access;
use crate::site::{Site, Standing};

/// A device memory. [`Pd::reg_dm_mr`] registers parts of it, which hold it.
///
/// ```
/// use verbs_api::owned::{Dm, Mr, Pd};
/// use verbs_api::{Access, DmInit, Result};
///
/// /// A counter on the device, for fetch-and-add of peers. Its address is 0.
/// fn counter(pd: &Pd) -> Result<(Dm, Mr)> {
///     let dm = pd.context().alloc_dm(&DmInit::new(8).log_align(3))?;
///     dm.write(0, &[0; 8])?;
///     let access = Access::ZERO_BASED | Access::LOCAL_WRITE | Access::REMOTE_ATOMIC;
///     let mr = pd.reg_dm_mr(&dm, 0, 8, access)?;
///     Ok((dm, mr))
/// }
/// ```
#[derive(Clone)]
pub struct Dm(Arc<Owner<Parts>>);

struct Parts {
    handle: handle::Dm,
    length: usize,
    context: Context,
}

object!(Dm, "ibv_free_dm");

impl life::Parts for Parts {
    const VERB: Verb = Verb::FreeDm;
    type Handle = handle::Dm;

    fn handle(&self) -> handle::Dm {
        self.handle
    }

    fn context(&self) -> &Context {
        &self.context
    }

    fn destroy(&self) -> Result<()> {
        self.context.verbs().free_dm(self.handle)
    }
}

impl Context {
    /// Allocates a device memory ([`Verbs::alloc_dm`](crate::Verbs::alloc_dm)).
    ///
    /// # Errors
    /// `Invalid` for a length or an alignment that the device does not have; `NoMemory` if less is
    /// free; `NotSupported` without
    /// [`Capabilities::DEVICE_MEMORY`](crate::Capabilities::DEVICE_MEMORY).
    #[track_caller]
    pub fn alloc_dm(&self, init: &DmInit) -> Result<Dm> {
        let _standing = Standing::at(Site::here());
        let handle = self.verbs().alloc_dm(self.handle(), init)?;
        Ok(Dm(Owner::new(Parts {
            handle,
            length: init.length,
            context: self.clone(),
        })))
    }
}

impl Pd {
    /// Registers `length` bytes of a device memory from `offset` on
    /// ([`Verbs::reg_dm_mr`](crate::Verbs::reg_dm_mr)). The region has the addresses from 0 on.
    ///
    /// # Errors
    /// `Invalid` without [`Access::ZERO_BASED`], with [`Access::MW_BIND`], [`Access::HUGETLB`] or
    /// [`Access::ON_DEMAND`], for bytes that are not in the memory, or a memory of another context;
    /// `NoMemory`.
    #[track_caller]
    pub fn reg_dm_mr(&self, dm: &Dm, offset: u64, length: usize, access: Access) -> Result<Mr> {
        let _standing = Standing::at(Site::here());
        let (verbs, of) = (self.context().verbs(), dm.handle());
        let mr = verbs.reg_dm_mr(self.handle(), of, offset, length, access)?;
        Mr::of_dm(self, mr, dm)
    }
}

impl Dm {
    /// Bytes.
    pub fn length(&self) -> usize {
        self.0.length
    }

    /// Copies bytes out, from `offset` on.
    ///
    /// # Errors
    /// `Fault` outside the memory; `Invalid` for an offset or a length that is not a multiple of 4.
    #[track_caller]
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let _standing = Standing::at(Site::here());
        let verbs = self.0.context().verbs();
        verbs.copy_from_dm(self.handle(), offset, bytes)
    }

    /// Copies bytes in, from `offset` on. Errors as for [`read`](Self::read).
    #[track_caller]
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let _standing = Standing::at(Site::here());
        let verbs = self.0.context().verbs();
        verbs.copy_to_dm(self.handle(), offset, bytes)
    }
}
