//! Memory regions, and the parts of them that work requests name.

use core::ops::{Bound, RangeBounds};
use std::sync::Arc;

use smallvec::SmallVec;

use super::ledger::{Hold, Holds};
use super::life::{self, Owner, Parts as _, object};
use super::{Context, Pd};
use crate::error::{Cause, Error, ErrorKind, PostError, Result, Verb};
use crate::handle;
use crate::mr::MrAttr;
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

impl Mr {
    pub(super) fn new(pd: &Pd, handle: handle::Mr) -> Result<Self> {
        let verbs = pd.context().verbs();
        let attr = verbs.query_mr(handle).inspect_err(|_| {
            let _ = verbs.dereg_mr(handle);
        })?;
        let pd = pd.clone();
        Ok(Self(Owner::new(Parts { handle, attr, pd })))
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

    /// The place at `offset`, for a peer's RDMA Write or Read. It holds nothing: when the region is
    /// gone, the peer's work fails with `REM_ACCESS_ERR`.
    pub fn remote(&self, offset: usize) -> Remote {
        self.0.attr.remote(offset as u64)
    }

    /// A part of the region, for a work request. Posting checks that the region has these bytes.
    ///
    /// It borrows the region, so it cannot name one that is gone:
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
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        let verbs = self.0.context().verbs();
        verbs.read_mr(self.handle(), offset, bytes)
    }

    /// Copies `length` bytes out, from `offset`, to a new vector. Errors as for
    /// [`read`](Self::read).
    pub fn read_vec(&self, offset: usize, length: usize) -> Result<Vec<u8>> {
        // Not more memory than there are bytes, whatever length the caller gave.
        let mut bytes = vec![0; length.min(self.length().saturating_add(1))];
        self.read(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Copies bytes in, at `offset`. Errors as for [`read`](Self::read); `Usage` also if posted
    /// work may still read these bytes.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
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
