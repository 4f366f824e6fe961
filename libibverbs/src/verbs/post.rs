//! Posting sends and receives.

use std::ffi::c_int;
use std::mem::take;
use std::ptr::with_exposed_provenance;

use smallvec::SmallVec;
use verbs_abi::{bind_mw_t, ibv_qp, ibv_recv_wr, ibv_send_wr, ud_t};
use verbs_api::{Dest, QpCap, QpType, RecvWr, SendFlags, SendOp, SendWr, Sge, Verbs};

use super::ah::Ah;
use super::list::{in_parts, receives, sge_list};
use super::mw::{self, Mw};
use super::qp::Qp;
use crate::c::{CObject, Later, Refusal, Result, quick_status, values};
use crate::engine::sim;

pub(crate) extern "C" fn post_send(
    qp: *mut ibv_qp,
    first: *mut ibv_send_wr,
    bad_wr: *mut *mut ibv_send_wr,
) -> c_int {
    quick_status("ibv_post_send", Later(qp), |()| {
        let qp = CObject::<Qp>::find(qp)?;
        let _in_use = qp.in_use("ibv_post_send");
        if let Some(batch) = &qp.more.batch {
            batch.passed_over(qp.call("ibv_post_send"));
        }
        in_parts(first, bad_wr, qp.more.cap.max_send_wr, |part| {
            let mut room: SmallVec<[u8; 256]> = SmallVec::new();
            let scattered = part.requests().map(|wr| scattered(&qp, wr)).sum();
            // Mostly inline data is in one place, and the room stays untouched.
            if scattered > 0 {
                room.resize(scattered, 0);
            }
            let mut room = &mut room[..];
            part.post(
                |wr| send(&qp, wr, &mut room),
                |list| sim().post_send(qp.handle, list),
            )
        })
    })
}

pub(crate) extern "C" fn post_recv(
    qp: *mut ibv_qp,
    first: *mut ibv_recv_wr,
    bad_wr: *mut *mut ibv_recv_wr,
) -> c_int {
    quick_status("ibv_post_recv", Later(qp), |()| {
        let qp = CObject::<Qp>::find(qp)?;
        let _in_use = qp.in_use("ibv_post_recv");
        let cap = &qp.more.cap;
        let post = |list: &[RecvWr<'_>]| sim().post_recv(qp.handle, list);
        receives(first, bad_wr, cap.max_recv_wr, cap.max_recv_sge, post)
    })
}

/// A send for the engine. Inline data stays where it is if it is in one place; otherwise it is
/// gathered in `room`.
#[inline]
fn send<'a>(qp: &CObject<Qp>, wr: &'a ibv_send_wr, room: &mut &'a mut [u8]) -> Result<SendWr<'a>> {
    let list = sge_list(wr.sg_list, wr.num_sge, qp.more.cap.max_send_sge)?;
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
    }
    Ok(made)
}

/// Bytes of inline data, if it is in several places.
fn scattered(qp: &CObject<Qp>, wr: &ibv_send_wr) -> usize {
    // A single entry is used where it is.
    if wr.num_sge < 2 || wr.send_flags & SendFlags::INLINE.bits() == 0 {
        return 0;
    }
    match sge_list(wr.sg_list, wr.num_sge, qp.more.cap.max_send_sge) {
        Ok(list) if fits_inline(&qp.more.cap, list) => length(list) as usize,
        _ => 0,
    }
}

/// Whether a queue pair takes inline data from this list. The engine refuses a longer list by its
/// length.
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

/// The destination of a send.
#[inline]
pub(super) fn destination(qp: &CObject<Qp>, ud: ud_t) -> Result<Dest> {
    // For other types programs need not set these fields.
    if qp.more.qp_type != QpType::Ud {
        return Ok(Dest::Connected);
    }
    Ok(Dest::Ud {
        ah: CObject::<Ah>::find(ud.ah)?.handle,
        remote_qpn: ud.remote_qpn,
        remote_qkey: ud.remote_qkey,
    })
}

/// The operation of a send.
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
        Refusal::invalid(format!("there is no operation of the opcode {}", wr.opcode))
    })
}
