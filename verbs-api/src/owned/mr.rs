//! Memory regions, and the parts of them that work requests name.

use core::ops::{Bound, RangeBounds};
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use smallvec::SmallVec;

use super::ledger::{Hold, Holds};
use super::life::{self, Owner, Parts as _, object};
use super::{Context, Dm, Pd};
use crate::error::{Cause, Error, ErrorKind, PostError, Result, Verb};
use crate::handle;
use crate::mr::{Access, MrAttr, MrInit};
use crate::odp::{Advice, AdviseFlags};
use crate::site::{Site, Standing};
use crate::wr::Remote;

/// A memory region. Its bytes are copied in and out; nothing refers into it.
///
/// Posted work holds it: if it is dropped earlier, it is deregistered when that work has completed
/// and the completion has been polled.
///
/// ```compile_fail,E0599
/// # fn f(mr: &verbs_api::owned::Mr) {
/// let bytes: &[u8] = mr.as_slice(); // no such method: the device may write at any time
/// # }
/// ```
#[derive(Clone)]
pub struct Mr(Arc<Owner<Parts>>);

struct Parts {
    handle: handle::Mr,
    attr: MrAttr,
    pd: Pd,
    /// The device memory that it is of.
    _dm: Option<Dm>,
}

object!(Mr, "ibv_dereg_mr");

impl life::Parts for Parts {
    const VERB: Verb = Verb::DeregMr;
    type Handle = handle::Mr;

    fn handle(&self) -> handle::Mr {
        self.handle
    }

    fn context(&self) -> &Context {
        self.pd.context()
    }

    fn destroy(&self) -> Result<()> {
        self.context().verbs().dereg_mr(self.handle)
    }
}

impl Pd {
    /// Creates a region of `length` zero bytes that the backend owns
    /// ([`Verbs::alloc_mr`](crate::Verbs::alloc_mr)); reach them with [`Mr::read`] and
    /// [`Mr::write`].
    ///
    /// # Errors
    /// `Invalid` for access bits that do not go together or a length above `max_mr_size`;
    /// `NoMemory`.
    #[track_caller]
    pub fn alloc_mr(&self, length: usize, access: Access) -> Result<Mr> {
        let _standing = Standing::at(Site::here());
        let verbs = self.context().verbs();
        Mr::new(self, verbs.alloc_mr(self.handle(), length, access)?)
    }

    /// Creates a region of other memory, or with other addresses
    /// ([`Verbs::alloc_mr_as`](crate::Verbs::alloc_mr_as)). Memory that it shares with another
    /// region stays as long as one of them.
    ///
    /// # Errors
    /// As for [`alloc_mr`](Self::alloc_mr); `Invalid` for an address or a part that does not fit;
    /// `Fault` for memory that is not mapped, or that is not writable and has to be.
    #[track_caller]
    pub fn alloc_mr_as(&self, init: &MrInit) -> Result<Mr> {
        let _standing = Standing::at(Site::here());
        let verbs = self.context().verbs();
        Mr::new(self, verbs.alloc_mr_as(self.handle(), init)?)
    }

    /// Creates a null region ([`Verbs::alloc_null_mr`](crate::Verbs::alloc_null_mr)), for work
    /// whose bytes are not needed.
    ///
    /// # Errors
    /// `NotSupported` without [`Capabilities::NULL_MR`](crate::Capabilities::NULL_MR); `NoMemory`.
    #[track_caller]
    pub fn alloc_null_mr(&self) -> Result<Mr> {
        let _standing = Standing::at(Site::here());
        let verbs = self.context().verbs();
        Mr::new(self, verbs.alloc_null_mr(self.handle())?)
    }

    /// Registers `length` bytes of a dma-buf, from `offset` on
    /// ([`Verbs::reg_dmabuf_mr`](crate::Verbs::reg_dmabuf_mr)). Work requests name the first one by
    /// `iova`. The descriptor may be closed afterwards.
    ///
    /// # Errors
    /// `Invalid` for an `iova` that lies elsewhere in its page than `offset`, access bits that such
    /// a region cannot have or that do not go together, bytes behind the end, and a descriptor of
    /// something else; `NotSupported` without
    /// [`Capabilities::DMABUF`](crate::Capabilities::DMABUF); `NoMemory`.
    #[cfg(unix)]
    #[track_caller]
    pub fn reg_dmabuf_mr(
        &self,
        offset: u64,
        length: usize,
        iova: u64,
        fd: BorrowedFd<'_>,
        access: Access,
    ) -> Result<Mr> {
        let _standing = Standing::at(Site::here());
        let verbs = self.context().verbs();
        let mr = verbs.reg_dmabuf_mr(self.handle(), offset, length, iova, fd, access)?;
        Mr::new(self, mr)
    }

    /// Advises the device about parts of on-demand regions
    /// ([`Verbs::advise_mr`](crate::Verbs::advise_mr)).
    ///
    /// # Errors
    /// As for the verb.
    #[track_caller]
    pub fn advise_mr(&self, advice: Advice, flags: AdviseFlags, list: &[Sge<'_>]) -> Result<()> {
        let _standing = Standing::at(Site::here());
        let resolved = list.iter().map(|sge| sge.resolve(Verb::AdviseMr, self));
        let list: Vec<_> = resolved.collect::<Result<_>>()?;
        let verbs = self.context().verbs();
        verbs.advise_mr(self.handle(), advice, flags, &list)
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
    #[track_caller]
    pub unsafe fn reg_mr(&self, addr: *mut u8, length: usize, access: Access) -> Result<Mr> {
        let _standing = Standing::at(Site::here());
        let verbs = self.context().verbs();
        // SAFETY: the caller promises what `Verbs::reg_mr` asks for.
        let mr = unsafe { verbs.reg_mr(self.handle(), addr, length, access)? };
        Mr::new(self, mr)
    }
}

impl Mr {
    fn new(pd: &Pd, handle: handle::Mr) -> Result<Self> {
        Self::of(pd, handle, None)
    }

    /// A region of a device memory.
    pub(super) fn of_dm(pd: &Pd, handle: handle::Mr, dm: &Dm) -> Result<Self> {
        Self::of(pd, handle, Some(dm.clone()))
    }

    fn of(pd: &Pd, handle: handle::Mr, dm: Option<Dm>) -> Result<Self> {
        let verbs = pd.context().verbs();
        let attr = verbs.query_mr(handle).inspect_err(|_| {
            let _ = verbs.dereg_mr(handle);
        })?;
        Ok(Self(Owner::new(Parts {
            handle,
            attr,
            pd: pd.clone(),
            _dm: dm,
        })))
    }

    /// The protection domain it was made from.
    pub fn pd(&self) -> &Pd {
        &self.0.pd
    }

    /// Address of the first byte, as peers name it.
    pub fn addr(&self) -> u64 {
        self.0.attr.addr
    }

    /// Bytes.
    pub fn length(&self) -> usize {
        usize::try_from(self.0.attr.length).expect("it was a usize when it was made")
    }

    /// Key for local work requests.
    pub fn lkey(&self) -> u32 {
        self.0.attr.lkey
    }

    /// Key for peers.
    pub fn rkey(&self) -> u32 {
        self.0.attr.rkey
    }

    /// The address and key at `offset`, for a peer's RDMA Write or Read. It holds nothing: when the
    /// region is deregistered, the peer's work fails with `REM_ACCESS_ERR`.
    pub fn remote(&self, offset: usize) -> Remote {
        self.0.attr.remote(offset as u64)
    }

    /// A part of the region, for a work request. Posting checks that the region has these bytes.
    ///
    /// It borrows the region, so it cannot outlive the region:
    ///
    /// ```compile_fail,E0505
    /// # use verbs_api::owned::{Mr, Qp, RecvWr};
    /// # fn f(qp: &Qp, mr: Mr) {
    /// let sge = mr.sge(..64);
    /// drop(mr); // cannot move out of `mr` because it is borrowed
    /// qp.post_recv(&[RecvWr::new(1, &[sge])]).unwrap();
    /// # }
    /// ```
    pub fn sge(&self, range: impl RangeBounds<usize>) -> Sge<'_> {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(end) => end.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => self.length(),
        };
        Sge {
            mr: self,
            start,
            end,
        }
    }

    /// Copies bytes out, from `offset`.
    ///
    /// # Errors
    /// `Invalid` outside the region, or for the caller's own memory; `Usage` (simulator) if posted
    /// work may still write these bytes: its completion has not been polled.
    #[track_caller]
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        let _standing = Standing::at(Site::here());
        let verbs = self.0.context().verbs();
        verbs.read_mr(self.handle(), offset, bytes)
    }

    /// Copies `length` bytes out, from `offset`, to a new vector. Errors as for
    /// [`read`](Self::read).
    #[track_caller]
    pub fn read_vec(&self, offset: usize, length: usize) -> Result<Vec<u8>> {
        // Not more memory than there are bytes, whatever length the caller gave.
        let mut bytes = vec![0; length.min(self.length().saturating_add(1))];
        self.read(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Copies bytes in, at `offset`. Errors as for [`read`](Self::read); `Usage` also if posted
    /// work may still read these bytes.
    #[track_caller]
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        let _standing = Standing::at(Site::here());
        let verbs = self.0.context().verbs();
        verbs.write_mr(self.handle(), offset, bytes)
    }
}

/// The entries of all work requests up to the first that is bad, and that one.
pub(super) fn resolve<'a, W>(
    pd: &Pd,
    verb: Verb,
    list: &'a [W],
    sg_list: impl Fn(&W) -> &'a [Sge<'a>],
    mut check: impl FnMut(&W) -> Result<()>,
) -> (SmallVec<[crate::mr::Sge; 2]>, Option<PostError>) {
    let mut sges = SmallVec::new();
    for (bad_wr, wr) in list.iter().enumerate() {
        let before = sges.len();
        let resolved = check(wr).and_then(|()| {
            for sge in sg_list(wr) {
                sges.push(sge.resolve(verb, pd)?);
            }
            Ok(())
        });
        if let Err(error) = resolved {
            sges.truncate(before);
            return (sges, Some(PostError { bad_wr, error }));
        }
    }
    (sges, None)
}

/// What a work request with this list holds.
pub(super) fn regions(sg_list: &[Sge<'_>]) -> Holds {
    let held = sg_list.iter().map(|sge| Hold::Mr(sge.mr().clone()));
    held.collect()
}

/// A part of a region, as a scatter/gather entry: [`Mr::sge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sge<'a> {
    mr: &'a Mr,
    start: usize,
    end: usize,
}

impl<'a> Sge<'a> {
    /// The region.
    pub fn mr(&self) -> &'a Mr {
        self.mr
    }

    /// The entry for the device.
    ///
    /// # Errors
    /// `Invalid` if the region is of another protection domain than the QP, or does not have these
    /// bytes, or they are more than 2^32 - 1.
    pub(super) fn resolve(&self, verb: Verb, pd: &Pd) -> Result<crate::mr::Sge> {
        let (addr, length) = self.range(verb, pd)?;
        let Ok(length) = u32::try_from(length) else {
            let cause = Cause::OutOfRange {
                what: "length of the sge",
                value: i64::try_from(length).unwrap_or(i64::MAX),
                min: 0,
                max: u32::MAX.into(),
            };
            return Err(Error::new(verb, ErrorKind::Invalid, cause));
        };
        Ok(crate::mr::Sge {
            addr,
            length,
            lkey: self.mr.lkey(),
        })
    }

    /// Address and length.
    ///
    /// # Errors
    /// `Invalid` if the region is of another protection domain than the QP, or does not have these
    /// bytes.
    pub(super) fn range(&self, verb: Verb, pd: &Pd) -> Result<(u64, u64)> {
        pd.check(verb, handle::Object::Mr, self.mr.pd())?;
        let out_of_range = |what, value, min, max: usize| {
            let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
            let (value, min, max) = (number(value), number(min), number(max));
            let cause = Cause::OutOfRange {
                what,
                value,
                min,
                max,
            };
            Error::new(verb, ErrorKind::Invalid, cause)
        };
        let whole = self.mr.length();
        if self.start > whole {
            return Err(out_of_range("start of the sge", self.start, 0, whole));
        }
        if self.end < self.start || self.end > whole {
            return Err(out_of_range("end of the sge", self.end, self.start, whole));
        }
        let addr = self.mr.addr().wrapping_add(self.start as u64);
        Ok((addr, (self.end - self.start) as u64))
    }
}
