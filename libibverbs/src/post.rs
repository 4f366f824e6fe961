//! Posting work.
//!
//! A list may be a ring. So no more of it is taken at a time than fits its queue, plus one request, which
//! is refused unless the queue has grown meanwhile. A part ends before the first request that cannot be
//! passed to the engine; those before it are posted.

use std::ffi::c_int;

use smallvec::SmallVec;
use verbs_abi::{bind_mw_t, ibv_ah, ibv_qp, ibv_recv_wr, ibv_send_wr, ibv_sge};
use verbs_api::sync::MutexGuard;
use verbs_api::{Dest, PostError, QpType, RecvWr, SendFlags, SendOp, SendWr, Sge, Verbs};

use crate::ah::Ah;
use crate::engine::engine;
use crate::inline::Inline;
use crate::mw::{self, Mw};
use crate::object::CObject;
use crate::qp::Qp;
use crate::result::{Errno, Result, status};

/// A send, with its list as a part of that of all sends.
pub(crate) struct Send {
    pub(crate) wr_id: u64,
    pub(crate) op: SendOp,
    pub(crate) flags: SendFlags,
    pub(crate) dest: Dest,
    /// Start and end.
    pub(crate) list: (usize, usize),
}

pub(crate) type Entries = SmallVec<[Sge; 8]>;

pub(crate) extern "C" fn post_send(
    qp: *mut ibv_qp,
    first: *mut ibv_send_wr,
    bad_wr: *mut *mut ibv_send_wr,
) -> c_int {
    status(|| {
        let qp = CObject::<Qp>::find(qp)?;
        let most = qp.more.cap.max_send_wr as usize + 1;
        // SAFETY: the program's, valid for the call, as is all it names (C's contract).
        let after = |wr: *mut ibv_send_wr| unsafe { (*wr).next };
        in_parts(first, bad_wr, after, |first| {
            let mut taken = Taken::default();
            let mut refused = None;
            let mut next = first;
            while !next.is_null() && taken.sends.len() < most {
                // SAFETY: as above.
                let taken = unsafe { taken.take(qp, &*next) };
                if let Err(errno) = taken {
                    refused = Some(errno);
                    break;
                }
                next = after(next);
            }
            let list = taken.list();
            Posted {
                posted: engine().sim.post_send(qp.handle, &list),
                refused,
                count: list.len(),
                rest: next,
            }
        })
    })
}

pub(crate) extern "C" fn post_recv(
    qp: *mut ibv_qp,
    first: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    status(|| {
        let qp = CObject::<Qp>::find(qp)?;
        let cap = qp.more.cap;
        let post = |list: &[RecvWr<'_>]| engine().sim.post_recv(qp.handle, list);
        receives(first, bad_wr, (cap.max_recv_wr, cap.max_recv_sge), post)
    })
}

/// Posts a list of receives to a queue that takes so many, of at most so many entries each.
pub(crate) fn receives(
    first: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
    (max_wr, max_sge): (u32, u32),
    post: impl Fn(&[RecvWr<'_>]) -> Result<(), PostError>,
) -> Result<()> {
    let most = max_wr as usize + 1;
    // SAFETY: the program's, valid for the call (C's contract).
    let after = |wr: *mut ibv_recv_wr| unsafe { (*wr).next };
    in_parts(first, bad_wr, after, |first| {
        let mut entries = Entries::new();
        let mut taken: SmallVec<[(u64, usize, usize); 4]> = SmallVec::new();
        let mut next = first;
        while !next.is_null() && taken.len() < most {
            // SAFETY: as above.
            let wr = unsafe { &*next };
            let start = entries.len();
            // SAFETY: as above.
            unsafe { put_list(&mut entries, wr.sg_list, wr.num_sge, max_sge) };
            taken.push((wr.wr_id, start, entries.len()));
            next = wr.next;
        }
        let list: SmallVec<[RecvWr<'_>; 4]> = taken
            .iter()
            .map(|(wr_id, start, end)| RecvWr::new(*wr_id, &entries[*start..*end]))
            .collect();
        Posted {
            posted: post(&list),
            refused: None,
            count: list.len(),
            rest: next,
        }
    })
}

/// Copies a scatter/gather list. Of one that is longer than it may be only the length counts, which
/// the engine refuses.
///
/// # Safety
/// The list has so many entries.
unsafe fn put_list(entries: &mut Entries, list: *const ibv_sge, count: c_int, max: u32) {
    match u32::try_from(count) {
        Ok(count) if count <= max => {
            for at in 0..count as usize {
                // SAFETY: the caller's promise.
                let sge = unsafe { list.add(at).read() };
                entries.push(ibv_sge::from_c(&sge));
            }
        }
        _ => put_too_many(entries, max),
    }
}

pub(crate) fn put_too_many(entries: &mut Entries, max: u32) {
    let more = max as usize + 1;
    entries.extend(std::iter::repeat_n(Sge::default(), more));
}

/// What became of a part of a list.
struct Posted<W> {
    posted: Result<(), PostError>,
    /// Why the engine was not told of the request behind it.
    refused: Option<Errno>,
    /// Its requests.
    count: usize,
    /// Where the list goes on.
    rest: *mut W,
}

/// Posts a list part by part. Says which request was the first that was not posted, and why.
fn in_parts<W>(
    mut first: *mut W,
    bad_wr: *mut *mut W,
    after: impl Fn(*mut W) -> *mut W,
    post: impl Fn(*mut W) -> Posted<W>,
) -> Result<()> {
    let (bad, errno) = loop {
        let part = post(first);
        match (part.posted, part.refused) {
            (Ok(()), None) if part.rest.is_null() => return Ok(()),
            (Ok(()), None) => first = part.rest,
            (Ok(()), Some(errno)) => break (part.count, errno),
            (Err(failed), _) => break (failed.bad_wr, failed.into()),
        }
    };
    let bad = (0..bad).fold(first, |wr, _| after(wr));
    if !bad_wr.is_null() {
        // SAFETY: the program's, to be written (C's contract).
        unsafe { bad_wr.write(bad) };
    }
    Err(errno)
}

/// What was taken of a list of sends.
#[derive(Default)]
struct Taken<'a> {
    sends: SmallVec<[Send; 4]>,
    entries: Entries,
    /// Held while inline data waits to be posted.
    inline: Option<MutexGuard<'a, ()>>,
}

impl<'a> Taken<'a> {
    fn list(&self) -> SmallVec<[SendWr<'_>; 4]> {
        self.sends
            .iter()
            .map(|send| send.wr(&self.entries))
            .collect()
    }

    /// # Safety
    /// What the request names is valid.
    unsafe fn take(&mut self, qp: &'a CObject<Qp>, wr: &ibv_send_wr) -> Result<()> {
        let op = operation(wr)?;
        let flags = SendFlags::from_bits_retain(wr.send_flags);
        let start = self.entries.len();
        // SAFETY: the caller's promise.
        unsafe {
            put_list(
                &mut self.entries,
                wr.sg_list,
                wr.num_sge,
                qp.more.cap.max_send_sge,
            )
        };
        if flags.contains(SendFlags::INLINE)
            && let Some(inline) = &qp.more.inline
        {
            if self.inline.is_none() {
                self.inline = Some(inline.lock());
            }
            let list = &self.entries[start..];
            // SAFETY: the caller's promise.
            let bytes = unsafe { gather(list, inline) };
            if let Some(bytes) = bytes {
                let put = inline.put(self.sends.len(), &bytes)?;
                self.entries.truncate(start);
                self.entries.push(put);
            }
        }
        let ud = wr.ud();
        self.sends.push(Send {
            wr_id: wr.wr_id,
            op,
            flags,
            dest: match qp.more.qp_type {
                QpType::XrcSend => Dest::Xrc {
                    remote_srqn: wr.remote_srqn,
                },
                _ => destination(qp, ud.ah, ud.remote_qpn, ud.remote_qkey),
            },
            list: (start, self.entries.len()),
        });
        Ok(())
    }
}

impl Send {
    pub(crate) fn wr<'a>(&self, entries: &'a [Sge]) -> SendWr<'a> {
        let (start, end) = self.list;
        let mut wr = SendWr::new(self.wr_id, self.op, &entries[start..end]);
        wr.flags = self.flags;
        wr.dest = self.dest;
        wr
    }
}

/// The bytes of inline data that the queue pair takes; none for more, which the engine refuses by its
/// length.
///
/// # Safety
/// The entries name valid memory.
unsafe fn gather(list: &[Sge], inline: &Inline) -> Option<SmallVec<[u8; 256]>> {
    let length: u64 = list.iter().map(|sge| u64::from(sge.length)).sum();
    if list.is_empty() || length > inline.each() as u64 {
        return None;
    }
    let mut bytes = SmallVec::new();
    for sge in list.iter().filter(|sge| sge.length > 0) {
        let start = sge.addr as *const u8;
        // SAFETY: the caller's promise; nobody changes inline data while it is posted (C's contract).
        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(start, sge.length as usize) });
    }
    Some(bytes)
}

/// Where a send goes. A datagram without a good address handle names no destination, and is refused.
pub(crate) fn destination(
    qp: &CObject<Qp>,
    ah: *mut ibv_ah,
    remote_qpn: u32,
    remote_qkey: u32,
) -> Dest {
    // Others leave these fields as they find them.
    if qp.more.qp_type != QpType::Ud {
        return Dest::Connected;
    }
    match CObject::<Ah>::find(ah) {
        Ok(ah) => Dest::Ud {
            ah: ah.handle,
            remote_qpn,
            remote_qkey,
        },
        Err(_) => Dest::Connected,
    }
}

/// What a send does.
fn operation(wr: &ibv_send_wr) -> Result<SendOp> {
    let bind = |bind: &bind_mw_t| -> Result<SendOp> {
        Ok(SendOp::BindMw {
            mw: CObject::<Mw>::find(bind.mw)?.handle,
            rkey: bind.rkey,
            info: mw::info(&bind.bind_info)?,
        })
    };
    ibv_send_wr::from_c(wr, bind)?.ok_or(Errno(libc::EINVAL))
}
