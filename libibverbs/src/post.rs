//! Posting work.
//!
//! A list may be a ring. So no more of it is taken at a time than fits its queue, plus one request, which
//! is refused unless the queue has grown meanwhile. A part ends before the first request that cannot be
//! passed to the engine; those before it are posted.

use std::ffi::c_int;
use std::iter::successors;
use std::mem::take;
use std::ptr::{null_mut, with_exposed_provenance};
use std::slice;

use smallvec::SmallVec;
use verbs_abi::{bind_mw_t, ibv_qp, ibv_recv_wr, ibv_send_wr, ibv_sge, ud_t};
use verbs_api::{Dest, PostError, QpCap, QpType, RecvWr, SendFlags, SendOp, SendWr, Sge, Verbs};

use crate::ah::Ah;
use crate::engine::engine;
use crate::mw::{self, Mw};
use crate::object::CObject;
use crate::qp::Qp;
use crate::result::{Refusal, Result, no_values, quick_status, values};

pub(crate) extern "C" fn post_send(
    qp: *mut ibv_qp,
    first: *mut ibv_send_wr,
    bad_wr: *mut *mut ibv_send_wr,
) -> c_int {
    quick_status("ibv_post_send", qp, || {
        let qp = CObject::<Qp>::find(qp)?;
        if let Some(batch) = &qp.more.batch {
            batch.passed_over("ibv_post_send", &qp);
        }
        in_parts(first, bad_wr, qp.more.cap.max_send_wr, |part| {
            let mut room: SmallVec<[u8; 256]> = SmallVec::new();
            let scattered = part.requests().map(|wr| scattered(&qp, wr)).sum();
            if scattered > 0 {
                room.resize(scattered, 0);
            }
            let mut room = &mut room[..];
            part.post(
                |wr| send(&qp, wr, &mut room),
                |list| engine().sim.post_send(qp.handle, list),
            )
        })
    })
}

pub(crate) extern "C" fn post_recv(
    qp: *mut ibv_qp,
    first: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    quick_status("ibv_post_recv", qp, || {
        let qp = CObject::<Qp>::find(qp)?;
        let cap = &qp.more.cap;
        let post = |list: &[RecvWr<'_>]| engine().sim.post_recv(qp.handle, list);
        receives(first, bad_wr, (cap.max_recv_wr, cap.max_recv_sge), post)
    })
}

/// Posts a list of receives to a queue that takes so many, of at most so many entries each.
#[inline]
pub(crate) fn receives(
    first: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
    (max_wr, max_sge): (u32, u32),
    post: impl Fn(&[RecvWr<'_>]) -> Result<(), PostError>,
) -> Result<()> {
    in_parts(first, bad_wr, max_wr, |part| {
        let receive = |wr: &ibv_recv_wr| {
            let list = list(wr.sg_list, wr.num_sge, max_sge)?;
            Ok(RecvWr::new(wr.wr_id, list))
        };
        part.post(receive, &post)
    })
}

/// A work request of C, which names the next.
trait Linked {
    fn next(&self) -> *mut Self;

    /// What findings call it.
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

/// Where a list goes on behind a part; or the first request that was not posted, and why.
type Posted<W> = Result<*mut W, (*mut W, Refusal)>;

/// Posts a list part by part. Says which request was the first that was not posted, and why.
#[inline]
fn in_parts<W>(
    mut first: *mut W,
    bad_wr: *mut *mut W,
    max_wr: u32,
    post: impl Fn(Part<W>) -> Posted<W>,
) -> Result<()> {
    let most = max_wr as usize + 1;
    loop {
        let posted = match first.is_aligned() {
            true => post(Part { first, most }),
            false => Err((first, no_values(first, 1))),
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

/// Requests of a list: from one on, and at most so many.
struct Part<W> {
    first: *mut W,
    most: usize,
}

impl<W: Linked> Part<W> {
    #[inline]
    fn requests<'a>(&self) -> impl Iterator<Item = &'a W>
    where
        W: 'a,
    {
        let link = |wr: *mut W| match wr.is_aligned() {
            // SAFETY: the program's, valid for the call, as is all that they name (C's contract).
            // Nothing is kept for longer.
            true => unsafe { wr.as_ref() },
            false => None,
        };
        successors(link(self.first), move |wr| link(wr.next())).take(self.most)
    }

    /// Posts them, each converted to what the engine takes.
    #[inline]
    fn post<'a, R>(
        &self,
        mut convert: impl FnMut(&'a W) -> Result<R>,
        post: impl Fn(&[R]) -> Result<(), PostError>,
    ) -> Posted<W>
    where
        W: 'a,
    {
        match self.requests().next() {
            Some(wr) if wr.next().is_null() => {
                // It is large, so it stays where it was made.
                let posted = match &mut convert(wr) {
                    Ok(wr) => post(slice::from_ref(wr)).map_err(Refusal::from),
                    Err(refusal) => Err(refusal.take().of_part(wr.name())),
                };
                posted.map_or_else(|refusal| Err((self.first, refusal)), |()| Ok(null_mut()))
            }
            _ => self.post_list(convert, post),
        }
    }

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
            (Err(failed), _) => {
                let before = self.requests().take(failed.bad_wr).last();
                Err((before.map_or(self.first, W::next), failed.into()))
            }
        }
    }
}

/// A scatter/gather list of at most `max` entries. Of a longer one only that counts, which the engine refuses.
#[inline]
pub(crate) fn list<'a>(first: *const ibv_sge, count: c_int, max: u32) -> Result<&'a [Sge]> {
    match u32::try_from(count) {
        Ok(count) if count <= max => {
            // SAFETY: the program's, valid for the call, and so long (C's contract).
            let list = unsafe { ibv_sge::list(first, count as usize) };
            list.ok_or_else(|| no_values(first, count as usize))
        }
        Ok(count) => Ok(TOO_MANY.get(..count as usize).unwrap_or(&TOO_MANY)),
        Err(_) => Ok(&TOO_MANY),
    }
}

/// More entries than a device takes; of a list that is longer still not even the length is true.
static TOO_MANY: [Sge; 256] = [const {
    Sge {
        addr: 0,
        length: 0,
        lkey: 0,
    }
}; 256];

/// A send as the engine takes it. Its inline data stays where it is, if that is in one place; if not, it is put
/// together in `room`.
#[inline]
fn send<'a>(qp: &CObject<Qp>, wr: &'a ibv_send_wr, room: &mut &'a mut [u8]) -> Result<SendWr<'a>> {
    let list = list(wr.sg_list, wr.num_sge, qp.more.cap.max_send_sge)?;
    let mut made = SendWr::new(wr.wr_id, operation(wr)?, list);
    made.flags = SendFlags::from_bits_retain(wr.send_flags);
    made.dest = match qp.more.qp_type {
        QpType::XrcSend => Dest::Xrc {
            remote_srqn: wr.remote_srqn,
        },
        _ => destination(qp, wr.ud())?,
    };
    if made.flags.contains(SendFlags::INLINE) && fits_inline(&qp.more.cap, list) {
        made.inline_data = Some(match list {
            [sge] => bytes(sge)?,
            _ => gather(list, room)?,
        });
        made.sg_list = &[];
    }
    Ok(made)
}

/// Bytes of inline data that is in several places.
fn scattered(qp: &CObject<Qp>, wr: &ibv_send_wr) -> usize {
    if wr.num_sge < 2 || wr.send_flags & SendFlags::INLINE.bits() == 0 {
        return 0;
    }
    match list(wr.sg_list, wr.num_sge, qp.more.cap.max_send_sge) {
        Ok(list) if fits_inline(&qp.more.cap, list) => length(list) as usize,
        _ => 0,
    }
}

/// Whether a queue pair takes inline data from this list; more of it the engine refuses by its length.
fn fits_inline(cap: &QpCap, list: &[Sge]) -> bool {
    list.len() <= cap.max_send_sge as usize && length(list) <= cap.max_inline_data.into()
}

fn length(list: &[Sge]) -> u64 {
    list.iter().map(|sge| u64::from(sge.length)).sum()
}

fn gather<'a>(list: &[Sge], room: &mut &'a mut [u8]) -> Result<&'a [u8]> {
    let (gathered, rest) = take(room).split_at_mut(length(list) as usize);
    *room = rest;
    let mut left = &mut gathered[..];
    for sge in list {
        let (now, later) = left.split_at_mut(sge.length as usize);
        now.copy_from_slice(bytes(sge)?);
        left = later;
    }
    Ok(gathered)
}

/// The bytes of an entry of inline data.
fn bytes<'a>(sge: &Sge) -> Result<&'a [u8]> {
    let start = with_exposed_provenance(sge.addr as usize);
    // SAFETY: the program's, valid for the call (C's contract).
    unsafe { values(start, sge.length as usize) }
}

/// Where a send goes.
#[inline]
pub(crate) fn destination(qp: &CObject<Qp>, ud: ud_t) -> Result<Dest> {
    // Others leave these fields as they find them.
    if qp.more.qp_type != QpType::Ud {
        return Ok(Dest::Connected);
    }
    Ok(Dest::Ud {
        ah: CObject::<Ah>::find(ud.ah)?.handle,
        remote_qpn: ud.remote_qpn,
        remote_qkey: ud.remote_qkey,
    })
}

/// What a send does.
#[inline]
fn operation(wr: &ibv_send_wr) -> Result<SendOp> {
    let bind = |bind: &bind_mw_t| -> Result<SendOp> {
        Ok(SendOp::BindMw {
            mw: CObject::<Mw>::find(bind.mw)?.handle,
            rkey: bind.rkey,
            info: mw::info(&bind.bind_info)?,
        })
    };
    ibv_send_wr::from_c(wr, bind)?.ok_or_else(|| {
        let what = format!("there is no operation of the opcode {}", wr.opcode);
        Refusal::new(libc::EINVAL, what)
    })
}
