//! Posting work. The objects that a list names are held until the call returns, so that no other
//! thread can destroy them while the library reads the list.

use std::ffi::c_int;
use std::sync::Arc;

use verbs_abi::{ibv_ah, ibv_mr, ibv_recv_wr, ibv_send_wr, ibv_sge, inline};
use verbs_api::{
    Cause, Dest, Error, ErrorKind, PostError, Qp as QpHandle, QpType, RecvWr, Result, SendFlags,
    SendWr, Sge, Verb,
};

use crate::errno::{check, invalid, of_context};
use crate::hw::Hw;
use crate::mw::{Binds, HeldBinds};
use crate::objects::{Ah, Mr, Qp};
use crate::owner::{Held, Kind, Owned};

/// The objects of a send, found by its handles.
pub(crate) struct Found {
    ah: Option<Arc<Ah>>,
    binds: Option<Binds>,
    /// The regions of its inline data, which the library copies.
    inline: Vec<Arc<Mr>>,
}

/// The objects of a send. They cannot be destroyed while this exists.
pub(crate) struct Uses<'a> {
    pub(crate) ah: Option<Held<'a, ibv_ah>>,
    pub(crate) binds: Option<HeldBinds<'a>>,
    _inline: Vec<Held<'a, ibv_mr>>,
}

impl Hw {
    /// `ibv_post_send`
    pub(crate) fn post_sends(&self, qp: QpHandle, list: &[SendWr<'_>]) -> Result<(), PostError> {
        let verb = Verb::PostSend;
        let qp = self.qp(verb, qp)?;
        qp.check_has_queues(verb)?;
        let (found, mut refused) = until_refused(list.iter().map(|wr| self.used_by(verb, &qp, wr)));
        let (uses, gone) = until_refused(found.iter().map(|found| found.hold(verb)));
        refused = gone.or(refused);
        let mut sges: Vec<_> = list.iter().map(data).collect();
        let built = list.iter().zip(&mut sges).zip(&uses);
        let (mut wrs, unknown) = until_refused(built.map(|((wr, sges), uses)| {
            let bind = uses.binds.as_ref().and_then(|binds| binds.of(&wr.op));
            let raw = ibv_send_wr::to_c(wr, uses.ah.as_ref().map(Held::get), bind);
            let Some(raw) = raw else {
                return Err(invalid(verb, "opcode", "is not known to this backend"));
            };
            let (sg_list, num_sge) = (sges.as_mut_ptr(), count(sges));
            Ok(ibv_send_wr {
                sg_list,
                num_sge,
                ..raw
            })
        }));
        refused = unknown.or(refused);
        link(&mut wrs, |wr, next| wr.next = next);
        let call = |qp, first, bad: &mut _| {
            // SAFETY: the QP is live; the list is linked through `wrs`, whose entries point into
            // `sges` and to what `uses` holds. All live until the call returns, after which the
            // library needs none of them.
            unsafe { inline::post_send(qp, first, bad) }
        };
        let unnamed = refused.as_ref().map_or(0, |refused| refused.bad_wr);
        let posted = post(verb, &qp.raw, &mut wrs, unnamed, call);
        let count = posted
            .as_ref()
            .map_or_else(|error| error.bad_wr, |()| wrs.len());
        for (wr, uses) in list.iter().zip(&uses).take(count) {
            if let Some(binds) = &uses.binds {
                binds.was_posted(&wr.op);
            }
        }
        posted?;
        refused.map_or(Ok(()), Err)
    }

    /// `ibv_post_recv`
    pub(crate) fn post_recvs(&self, qp: QpHandle, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        let verb = Verb::PostRecv;
        let qp = self.qp(verb, qp)?;
        qp.check_has_queues(verb)?;
        recv_list(list, |wrs| {
            post(verb, &qp.raw, wrs, 0, |qp, first, bad| {
                // SAFETY: the QP is live; the list is valid until the call returns (`recv_list`).
                unsafe { inline::post_recv(qp, first, bad) }
            })
        })
    }

    /// The objects that a request names.
    pub(crate) fn used_by(&self, verb: Verb, qp: &Qp, wr: &SendWr<'_>) -> Result<Found> {
        let is_inline = wr.flags.contains(SendFlags::INLINE);
        // The library copies these bytes and never writes them.
        if wr.inline_data.is_some() && (!is_inline || wr.op.reads()) {
            let problem = "is with INLINE, for Send and RDMA Write";
            return Err(invalid(verb, "inline data", problem));
        }
        // The simulator refuses long inline data before it looks at the memory. Some drivers do
        // not.
        let is_refused =
            qp.device.simulated && wr.length() > u64::from(qp.init.cap.max_inline_data);
        let inline = if is_inline && !is_refused {
            self.regions_of(verb, wr.sg_list, qp.init.cap.max_inline_data)?
        } else {
            Vec::new()
        };
        let binds = self.bound_by(verb, qp.context, &wr.op)?;
        // The fields of the destination have another meaning on a connected queue pair.
        if qp.init.qp_type != QpType::Ud {
            let ah = None;
            return Ok(Found { ah, binds, inline });
        }
        let Dest::Ud { ah, .. } = wr.dest else {
            // Libraries follow the pointer without checking it.
            let problem = "is missing: a UD send names its destination";
            return Err(invalid(verb, "ah", problem));
        };
        let found = self.find(|tables| &tables.ahs, verb, ah)?;
        of_context(verb, ah, qp.context)?;
        let ah = Some(found);
        Ok(Found { ah, binds, inline })
    }

    /// The regions of inline data. The library copies the data in this process, so the memory must
    /// be known.
    fn regions_of(&self, verb: Verb, list: &[Sge], max: u32) -> Result<Vec<Arc<Mr>>> {
        let tables = self.tables.lock();
        let used = list.iter().filter(|sge| sge.length > 0);
        let region_of = |sge: &Sge| {
            let mut mrs = tables.mrs.iter().map(|(_, mr)| mr);
            let found = mrs.find(|mr| {
                let memory = mr.memory.read();
                // Another thread may unmap on-demand memory during the call.
                !memory.is_on_demand() && memory.holds(sge.addr, u64::from(sge.length))
            });
            found.cloned()
        };
        if let Some(regions) = used.map(region_of).collect() {
            return Ok(regions);
        }
        let what = "inline data";
        let length: i64 = list.iter().map(|sge| i64::from(sge.length)).sum();
        let (kind, cause) = if length > i64::from(max) {
            let cause = Cause::OutOfRange {
                what,
                value: length,
                min: 0,
                max: max.into(),
            };
            (ErrorKind::Invalid, cause)
        } else {
            let problem = "is in no memory region";
            (ErrorKind::Fault, Cause::Argument { what, problem })
        };
        Err(Error::new(verb, kind, cause))
    }
}

impl Found {
    pub(crate) fn hold(&self, verb: Verb) -> Result<Uses<'_>> {
        let inline = self.inline.iter().map(|mr| mr.raw.hold(verb));
        Ok(Uses {
            ah: self.ah.as_ref().map(|ah| ah.raw.hold(verb)).transpose()?,
            binds: self
                .binds
                .as_ref()
                .map(|binds| binds.hold(verb))
                .transpose()?,
            _inline: inline.collect::<Result<_>>()?,
        })
    }
}

/// The requests before the first that is refused, and that request.
fn until_refused<T>(made: impl Iterator<Item = Result<T>>) -> (Vec<T>, Option<PostError>) {
    let mut all = Vec::new();
    for (bad_wr, made) in made.enumerate() {
        match made {
            Ok(made) => all.push(made),
            Err(error) => return (all, Some(PostError::new(bad_wr, error))),
        }
    }
    (all, None)
}

/// The list of a send. Inline data is one entry.
pub(crate) fn data(wr: &SendWr<'_>) -> Vec<ibv_sge> {
    match wr.inline_data {
        None => entries(wr.sg_list),
        Some([]) => Vec::new(),
        Some(bytes) => vec![ibv_sge {
            addr: bytes.as_ptr().expose_provenance() as u64,
            length: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            lkey: 0,
        }],
    }
}

fn entries(list: &[Sge]) -> Vec<ibv_sge> {
    list.iter().map(ibv_sge::to_c).collect()
}

fn count(sges: &[ibv_sge]) -> c_int {
    c_int::try_from(sges.len()).unwrap_or(c_int::MAX)
}

/// Makes the C list of receives. It lives, with all that it points to, while `post` runs.
pub(crate) fn recv_list<R>(list: &[RecvWr<'_>], post: impl FnOnce(&mut [ibv_recv_wr]) -> R) -> R {
    let mut sges: Vec<_> = list.iter().map(|wr| entries(wr.sg_list)).collect();
    let built = list.iter().zip(&mut sges);
    let mut wrs: Vec<_> = built
        .map(|(wr, sges)| ibv_recv_wr {
            wr_id: wr.wr_id,
            next: std::ptr::null_mut(),
            sg_list: sges.as_mut_ptr(),
            num_sge: count(sges),
        })
        .collect();
    link(&mut wrs, |wr, next| wr.next = next);
    post(&mut wrs)
}

/// Makes a linked list of a slice.
fn link<T>(list: &mut [T], mut set: impl FnMut(&mut T, *mut T)) {
    let mut next = std::ptr::null_mut();
    for wr in list.iter_mut().rev() {
        set(wr, next);
        next = wr;
    }
}

/// Posts a list. Some drivers return 0 and name a bad work request all the same. Some refuse a list
/// and name none: then it is request number `unnamed`.
pub(crate) fn post<Q: Kind, T>(
    verb: Verb,
    queue: &Owned<Q>,
    wrs: &mut [T],
    unnamed: usize,
    call: impl FnOnce(*mut Q, *mut T, &mut *mut T) -> c_int,
) -> Result<(), PostError> {
    if wrs.is_empty() {
        return Ok(());
    }
    let (first, mut bad) = (wrs.as_mut_ptr(), std::ptr::null_mut());
    let result = queue.with(verb, |queue| call(queue, first, &mut bad))?;
    if result == 0 && bad.is_null() {
        return Ok(());
    }
    let offset = (bad as usize).wrapping_sub(first as usize) / size_of::<T>();
    let bad_wr = if bad.is_null() {
        unnamed
    } else {
        offset.min(wrs.len() - 1)
    };
    let error = match check(verb, result) {
        Err(error) => error,
        Ok(()) => {
            let text = "the driver returned 0, but named a work request that it did not take";
            Error::new(verb, ErrorKind::Invalid, Cause::Text(text.into())).with_raw(0)
        }
    };
    Err(PostError::new(bad_wr, error))
}
