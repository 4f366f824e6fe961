//! Lists of work requests and of scatter/gather entries.
//!
//! A list of work requests may be a ring. So each part of it that is posted is at most one request
//! longer than the queue: the engine refuses that request, unless the queue has emptied in the
//! meantime. A part ends before the first request that cannot be converted for the engine; those
//! before it are posted.
use std::ffi::c_int;
use std::iter::successors;
use std::ptr::null_mut;
use std::slice;

use smallvec::SmallVec;
use verbs_abi::{ibv_recv_wr, ibv_send_wr, ibv_sge};
use verbs_api::{PostError, RecvWr, Sge};
use verbs_sim::Class;

use crate::c::{Refusal, Result, no_values};

/// Posts a list of receives to a queue of `max_wr` requests with at most `max_sge` entries each.
#[inline]
pub(super) fn receives(
    first: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
    max_wr: u32,
    max_sge: u32,
    post: impl Fn(&[RecvWr<'_>]) -> Result<(), PostError>,
) -> Result<()> {
    in_parts(first, bad_wr, max_wr, |part| {
        let receive = |wr: &ibv_recv_wr| {
            let list = sge_list(wr.sg_list, wr.num_sge, max_sge)?;
            Ok(RecvWr::new(wr.wr_id, list))
        };
        part.post(receive, &post)
    })
}

/// A work request of C, which points to the next.
pub(super) trait Linked {
    fn next(&self) -> *mut Self;

    /// Its name in findings.
    fn name(&self) -> String;
}

impl Linked for ibv_send_wr {
    fn next(&self) -> *mut Self {
        self.next
    }

    fn name(&self) -> String {
        format!("send {:#x}", self.wr_id)
    }
}

impl Linked for ibv_recv_wr {
    fn next(&self) -> *mut Self {
        self.next
    }

    fn name(&self) -> String {
        format!("receive {:#x}", self.wr_id)
    }
}

/// The rest of a list behind a part; or the first request that was not posted, and why.
pub(super) type Posted<W> = Result<*mut W, (*mut W, Refusal)>;

/// Posts a list part by part. Writes the first request that was not posted to `bad_wr`, and returns
/// why.
#[inline]
pub(super) fn in_parts<W>(
    mut first: *mut W,
    bad_wr: *mut *mut W,
    max_wr: u32,
    post: impl Fn(Part<W>) -> Posted<W>,
) -> Result<()> {
    let most = max_wr as usize + 1;
    loop {
        let posted = if first.is_aligned() {
            post(Part { first, most })
        } else {
            Err((first, no_values(first, 1)))
        };
        match posted {
            Ok(rest) if rest.is_null() => return Ok(()),
            Ok(rest) => first = rest,
            Err((bad, refusal)) => {
                if !bad_wr.is_null() {
                    // SAFETY: the program's, to be written (C's contract).
                    unsafe { bad_wr.write_unaligned(bad) };
                }
                return Err(refusal);
            }
        }
    }
}

/// Requests of a list: at most `most`, from `first` on.
pub(super) struct Part<W> {
    first: *mut W,
    most: usize,
}

impl<W: Linked> Part<W> {
    #[inline]
    pub(super) fn requests<'a>(&self) -> impl Iterator<Item = &'a W>
    where
        W: 'a,
    {
        let link = |wr: *mut W| {
            if !wr.is_aligned() {
                return None;
            }
            // SAFETY: the program's, valid for the call, as is all that it points to (C's
            // contract). Nothing is kept for longer.
            unsafe { wr.as_ref() }
        };
        successors(link(self.first), move |wr| link(wr.next())).take(self.most)
    }

    /// Converts the requests for the engine, and posts them.
    #[inline]
    pub(super) fn post<'a, R>(
        &self,
        mut convert: impl FnMut(&'a W) -> Result<R>,
        post: impl Fn(&[R]) -> Result<(), PostError>,
    ) -> Posted<W>
    where
        W: 'a,
    {
        match self.requests().next() {
            Some(wr) if wr.next().is_null() => {
                // A request is large, so it is not moved.
                let posted = match &mut convert(wr) {
                    Ok(wr) => post(slice::from_ref(wr)).map_err(Refusal::from),
                    Err(refusal) => Err(refusal.take().of_part(wr.name())),
                };
                posted.map_or_else(|refusal| Err((self.first, refusal)), |()| Ok(null_mut()))
            }
            _ => self.post_list(convert, post),
        }
    }

    /// The general case, apart because programs mostly post single requests.
    #[inline(never)]
    fn post_list<'a, R>(
        &self,
        mut convert: impl FnMut(&'a W) -> Result<R>,
        post: impl Fn(&[R]) -> Result<(), PostError>,
    ) -> Posted<W>
    where
        W: 'a,
    {
        let mut list: SmallVec<[R; 16]> = SmallVec::new();
        let (mut rest, mut refused) = (self.first, None);
        for wr in self.requests() {
            match convert(wr) {
                Ok(wr) => list.push(wr),
                Err(refusal) => {
                    refused = Some(refusal.of_part(wr.name()));
                    break;
                }
            }
            rest = wr.next();
        }
        match (post(&list), refused) {
            (Ok(()), None) => Ok(rest),
            (Ok(()), Some(refusal)) => Err((rest, refusal)),
            // The engine has posted the requests before the bad one.
            (Err(failed), _) => {
                let before = self.requests().take(failed.bad_wr).last();
                Err((before.map_or(self.first, W::next), failed.into()))
            }
        }
    }
}

/// A scatter/gather list of at most `max` entries. For a longer one, any list of its length: the
/// engine refuses it for that. What is not the length of a list is refused here.
#[inline]
pub(super) fn sge_list<'a>(first: *const ibv_sge, count: c_int, max: u32) -> Result<&'a [Sge]> {
    match u32::try_from(count) {
        Ok(count) if count <= max => {
            // SAFETY: the program's, valid for the call, of this length (C's contract).
            let list = unsafe { ibv_sge::list(first, count as usize) };
            list.ok_or_else(|| no_values(first, count as usize))
        }
        _ => {
            let length = usize::try_from(count).ok();
            let list = length.and_then(|length| TOO_MANY.get(..length));
            list.ok_or_else(|| no_length(count, max))
        }
    }
}

#[cold]
fn no_length(count: c_int, max: u32) -> Refusal {
    let what = format!("num_sge is {count}, allowed are 0 to {max}");
    Refusal::of(Class::LongList, libc::EINVAL, what)
}

/// More entries than a device accepts, for their number: they are never read.
static TOO_MANY: [Sge; MANY] = [const {
    Sge {
        addr: 0,
        length: 0,
        lkey: 0,
    }
}; MANY];

const MANY: usize = 1 << 16;
