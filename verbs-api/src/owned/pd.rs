//! Protection domains.

use std::sync::Arc;

use super::life::{self, Owner, object};
use super::{Ah, Context, Cq, Mr, Mw, QpBuilder, Srq, Xrcd};
use crate::ah::AhAttr;
use crate::error::{Error, Result, Verb};
use crate::handle::{self, Object};
use crate::mr::{Access, MrInit};
use crate::mw::MwType;
use crate::qp::QpType;
use crate::srq::SrqInit;
use crate::{Cause, ErrorKind};

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

impl Pd {
    pub(super) fn alloc(context: &Context) -> Result<Self> {
        let handle = context.verbs().alloc_pd(context.handle())?;
        let context = context.clone();
        Ok(Self(Owner::new(Parts { handle, context })))
    }

    /// The context it was made from.
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// Makes a region of `length` zero bytes that the backend owns
    /// ([`Verbs::alloc_mr`](crate::Verbs::alloc_mr)); reach them with [`Mr::read`] and
    /// [`Mr::write`].
    ///
    /// # Errors
    /// `Invalid` for access bits that do not go together or a length above `max_mr_size`;
    /// `NoMemory`.
    pub fn alloc_mr(&self, length: usize, access: Access) -> Result<Mr> {
        let verbs = self.context().verbs();
        Mr::new(self, verbs.alloc_mr(self.handle(), length, access)?)
    }

    /// Makes a region of other memory, or with other addresses
    /// ([`Verbs::alloc_mr_as`](crate::Verbs::alloc_mr_as)). Memory that it shares with another
    /// region stays as long as one of them.
    ///
    /// # Errors
    /// As for [`alloc_mr`](Self::alloc_mr); `Invalid` for an address or a part that does not fit;
    /// `Fault` for memory that is not mapped, or that is not writable and has to be.
    pub fn alloc_mr_as(&self, init: &MrInit) -> Result<Mr> {
        let verbs = self.context().verbs();
        Mr::new(self, verbs.alloc_mr_as(self.handle(), init)?)
    }

    /// Creates a null region ([`Verbs::alloc_null_mr`](crate::Verbs::alloc_null_mr)), for work
    /// whose bytes are not needed.
    ///
    /// # Errors
    /// `NotSupported` without [`Capabilities::NULL_MR`](crate::Capabilities::NULL_MR); `NoMemory`.
    pub fn alloc_null_mr(&self) -> Result<Mr> {
        let verbs = self.context().verbs();
        Mr::new(self, verbs.alloc_null_mr(self.handle())?)
    }

    /// Registers the caller's memory ([`Verbs::reg_mr`](crate::Verbs::reg_mr)). Errors as for
    /// [`alloc_mr`](Self::alloc_mr).
    ///
    /// ```compile_fail,E0133
    /// # use verbs_api::{Access, Result, owned::{Mr, Pd}};
    /// fn register(pd: &Pd, bytes: &mut [u8]) -> Result<Mr> {
    ///     pd.reg_mr(bytes.as_mut_ptr(), bytes.len(), Access::LOCAL_WRITE) // a call to unsafe fn
    /// }
    /// ```
    ///
    /// # Safety
    /// From this call until the region is deregistered, `addr..addr + length` must be valid memory,
    /// with `LOCAL_WRITE` also for writes. The device reads it, and with `LOCAL_WRITE` writes it,
    /// at any time in between: for posted work, for peers that know the rkey, and for any code that
    /// gets hold of the region. No reference to a part may live while work that touches that part
    /// can be executed; two registrations of the same bytes must not be written at the same time.
    ///
    /// The region is deregistered when [`Mr::destroy`] has returned `Ok`, and at no other moment
    /// that can be known for sure: dropping the last handle leaves it registered as long as posted
    /// work uses it, and a region that was forgotten, or whose deregistration failed, stays.
    #[allow(unsafe_code, reason = "passes on the promise of the trait's method")]
    pub unsafe fn reg_mr(&self, addr: *mut u8, length: usize, access: Access) -> Result<Mr> {
        let verbs = self.context().verbs();
        // SAFETY: the caller promises what `Verbs::reg_mr` asks for.
        let mr = unsafe { verbs.reg_mr(self.handle(), addr, length, access)? };
        Mr::new(self, mr)
    }

    /// Makes an unbound memory window ([`Verbs::alloc_mw`](crate::Verbs::alloc_mw)).
    ///
    /// # Errors
    /// `Invalid` or `NotSupported` for a type the device does not have; `NoMemory`.
    pub fn alloc_mw(&self, mw_type: MwType) -> Result<Mw> {
        Mw::alloc(self, mw_type)
    }

    /// Makes an address handle ([`Verbs::create_ah`](crate::Verbs::create_ah)), for sends of UD
    /// queue pairs.
    ///
    /// # Errors
    /// `Invalid` for a port or GID index that does not exist, or a missing global route.
    pub fn create_ah(&self, attr: &AhAttr) -> Result<Ah> {
        Ah::create(self, attr)
    }

    /// Makes a shared receive queue ([`Verbs::create_srq`](crate::Verbs::create_srq)).
    ///
    /// # Errors
    /// `Invalid` for sizes above the device's, or a size of 0; `NoMemory`.
    pub fn create_srq(&self, init: &SrqInit) -> Result<Srq> {
        Srq::create(self, init, None)
    }

    /// Makes a shared receive queue of XRC, in a domain and with a CQ of its own, both of this
    /// context ([`Verbs::create_srq`](crate::Verbs::create_srq)). It holds both.
    ///
    /// # Errors
    /// As for [`create_srq`](Self::create_srq); `Invalid` for a domain or a CQ of another context;
    /// `NotSupported`.
    pub fn create_xrc_srq(&self, init: &SrqInit, xrcd: &Xrcd, cq: &Cq) -> Result<Srq> {
        Srq::create(self, init, Some((xrcd, cq)))
    }

    /// Starts to make a queue pair, with these CQs for its sends and its receives; they may be one.
    pub fn qp<'a>(&'a self, qp_type: QpType, send_cq: &'a Cq, recv_cq: &'a Cq) -> QpBuilder<'a> {
        QpBuilder::new(self, qp_type, send_cq, recv_cq)
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
