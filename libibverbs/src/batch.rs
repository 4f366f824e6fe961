//! Extended queue pairs: batches of sends (`ibv_wr_*`), which are posted as a whole or not at all.
//!
//! From `ibv_wr_start` to its end a batch belongs to the thread that started it. Another thread that starts
//! one waits; its other calls are refused. An invalid request is remembered, and fails the batch when it is
//! to be completed. So does a second start by the same thread, which would have to wait for itself.
//! Destroying the queue pair ends the batch, and all waiting for it.

mod turn;

use std::ffi::{c_int, c_void};
use std::ops::Range;

use smallvec::SmallVec;
use verbs_abi::{
    IBV_QP_INIT_ATTR_CREATE_FLAGS, IBV_QP_INIT_ATTR_PD, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
    IBV_QP_INIT_ATTR_XRCD, ibv_ah, ibv_context, ibv_data_buf, ibv_mw, ibv_mw_bind_info, ibv_qp,
    ibv_qp_cap, ibv_qp_ex, ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_sge, ud_t,
};
use verbs_api::{BatchEnd, Dest, QpType, Remote, SendFlags, SendOp, SendOps, SendWr, Sge, Verbs};
use verbs_sim::Class;

use crate::caller::way_to;
use crate::domain::Pd;
use crate::engine::engine;
use crate::mw::{self, Mw};
use crate::object::{CObject, context_of};
use crate::post::{self, destination};
use crate::qp::{self, Qp};
use crate::result::{
    Refusal, Result, known_bits, pointer, present, same_context, silent, status, values,
};
use crate::xrc;

use turn::Call;
pub(crate) use turn::{Batch, unposted};

/// What a batch is made of. It is empty between batches.
#[derive(Default)]
struct Building {
    sends: Vec<Send>,
    entries: Vec<Sge>,
    bytes: Vec<u8>,
    refused: Option<Refusal>,
}

/// A send of a batch.
struct Send {
    wr_id: u64,
    op: SendOp,
    flags: SendFlags,
    dest: Dest,
    /// Of all entries.
    list: Range<usize>,
    /// Of all bytes, if it has inline data.
    inline: Option<Range<usize>>,
}

impl Building {
    fn list(&self) -> SmallVec<[SendWr<'_>; 16]> {
        let made = |send: &Send| {
            let list = &self.entries[send.list.clone()];
            let mut made = SendWr::new(send.wr_id, send.op, list);
            (made.flags, made.dest) = (send.flags, send.dest);
            made.inline_data = send.inline.clone().map(|range| &self.bytes[range]);
            made
        };
        self.sends.iter().map(made).collect()
    }

    fn clear(&mut self) {
        self.sends.clear();
        self.entries.clear();
        self.bytes.clear();
        self.refused = None;
    }
}

pub(crate) extern "C" fn create_qp_ex(
    context: *mut ibv_context,
    init: *mut ibv_qp_init_attr_ex,
) -> *mut ibv_qp {
    pointer("ibv_create_qp_ex", context, || {
        present(init)?;
        // SAFETY: the program's, valid for the call. It need not know the fields behind those that
        // its mask names, so only these are read (C's contract).
        let (comp_mask, pd) = unsafe { ((*init).comp_mask, (*init).pd) };
        known_bits(
            "comp_mask",
            comp_mask,
            IBV_QP_INIT_ATTR_PD
                | IBV_QP_INIT_ATTR_XRCD
                | IBV_QP_INIT_ATTR_CREATE_FLAGS
                | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        )?;
        if comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS != 0 {
            // SAFETY: as above.
            known_bits("create_flags", unsafe { (*init).create_flags }, 0)?;
        }
        let send_ops = match comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS {
            0 => SendOps::empty(),
            // SAFETY: as above.
            _ => SendOps::from_bits_retain(unsafe { (*init).send_ops_flags }),
        };
        // SAFETY: the plain structure is the start of the extended one.
        let plain = unsafe { init.cast::<ibv_qp_init_attr>().read() };
        let qp_type = QpType::from(plain.qp_type);
        let is_target = qp_type == QpType::XrcRecv;
        if is_target != (comp_mask & IBV_QP_INIT_ATTR_XRCD != 0)
            || !is_target && comp_mask & IBV_QP_INIT_ATTR_PD == 0
        {
            let what = format!(
                "comp_mask is {comp_mask:#x}: a queue pair of {qp_type} needs a {}",
                if is_target { "xrcd" } else { "pd, and no xrcd" }
            );
            return Err(Refusal::new(libc::EINVAL, what));
        }
        if is_target {
            // SAFETY: as above.
            let xrcd = unsafe { (*init).xrcd };
            return Ok(xrc::create_target(context, xrcd, plain.qp_context)?.seen());
        }
        same_context(CObject::<Pd>::find(pd)?.handle, context_of(context)?)?;
        let qp = qp::create(pd, &plain, send_ops, qp::Maker::Verbs)?;
        // SAFETY: the program's, to be written (C's contract).
        unsafe { (*init).cap = ibv_qp_cap::to_c(&qp.more.cap) };
        Ok(qp.seen())
    })
}

/// The extended structure of a queue pair that was made with operations for batches, or null.
pub(crate) extern "C" fn qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex {
    pointer("ibv_qp_to_qp_ex", qp, || {
        let qp = CObject::<Qp>::find(qp)?;
        batch_of(&qp)?;
        Ok(qp.raw())
    })
}

/// The structure of a queue pair without its plain part; with functions if it takes batches.
pub(crate) fn extended(takes_batches: bool) -> ibv_qp_ex {
    let mut raw = ibv_qp_ex::default();
    if takes_batches {
        raw.wr_atomic_cmp_swp = Some(way_to!(wr_atomic_cmp_swp));
        raw.wr_atomic_fetch_add = Some(way_to!(wr_atomic_fetch_add));
        raw.wr_bind_mw = Some(way_to!(wr_bind_mw));
        raw.wr_local_inv = Some(way_to!(wr_local_inv));
        raw.wr_rdma_read = Some(way_to!(wr_rdma_read));
        raw.wr_rdma_write = Some(way_to!(wr_rdma_write));
        raw.wr_rdma_write_imm = Some(way_to!(wr_rdma_write_imm));
        raw.wr_send = Some(way_to!(wr_send));
        raw.wr_send_imm = Some(way_to!(wr_send_imm));
        raw.wr_send_inv = Some(way_to!(wr_send_inv));
        raw.wr_send_tso = Some(way_to!(wr_send_tso));
        raw.wr_atomic_write = Some(way_to!(wr_atomic_write));
        raw.wr_flush = Some(way_to!(wr_flush));
        raw.wr_set_ud_addr = Some(way_to!(wr_set_ud_addr));
        raw.wr_set_xrc_srqn = Some(way_to!(wr_set_xrc_srqn));
        raw.wr_set_inline_data = Some(way_to!(wr_set_inline_data));
        raw.wr_set_inline_data_list = Some(way_to!(wr_set_inline_data_list));
        raw.wr_set_sge = Some(way_to!(wr_set_sge));
        raw.wr_set_sge_list = Some(way_to!(wr_set_sge_list));
        raw.wr_start = Some(way_to!(wr_start));
        raw.wr_complete = Some(way_to!(wr_complete));
        raw.wr_abort = Some(way_to!(wr_abort));
    }
    raw
}

/// Calls `work` with the batch of a queue pair.
#[inline]
fn at<R>(
    qp: *mut ibv_qp_ex,
    name: &'static str,
    work: impl FnOnce(Call<'_>, &Batch) -> Result<R>,
) -> Result<R> {
    let qp = CObject::<Qp>::find(qp.cast())?;
    let batch = batch_of(&qp)?;
    work(Call { name, qp: &qp }, batch)
}

/// What a queue pair builds batches with.
fn batch_of(qp: &CObject<Qp>) -> Result<&Batch> {
    qp.more.batch.as_ref().ok_or_else(|| {
        let what = "it was made without send_ops_flags, so it takes no batches";
        Refusal::new(libc::EINVAL, what)
    })
}

extern "C" fn wr_start(qp: *mut ibv_qp_ex) {
    silent("ibv_wr_start", qp, || {
        at(qp, "ibv_wr_start", |call, batch| batch.start(call))
    });
}

/// Works on the batch that this thread has started.
fn with(
    qp: *mut ibv_qp_ex,
    name: &'static str,
    work: impl FnOnce(Call<'_>, &Batch, &mut Building) -> Result<()>,
) {
    silent(name, qp, || {
        at(qp, name, |call, batch| {
            batch.with(call, |building| work(call, batch, building))
        })
    });
}

extern "C" fn wr_complete(qp: *mut ibv_qp_ex) -> c_int {
    status("ibv_wr_complete", qp, || {
        at(qp, "ibv_wr_complete", |call, batch| {
            batch.complete(call, |building| {
                let (sim, list) = (&engine().sim, building.list());
                Ok(sim.post_batch(call.qp.handle, &list, BatchEnd::Complete)?)
            })
        })
    })
}

extern "C" fn wr_abort(qp: *mut ibv_qp_ex) {
    silent("ibv_wr_abort", qp, || {
        at(qp, "ibv_wr_abort", |call, batch| {
            batch.complete(call, |_| Ok(()))
        })
    });
}

/// Appends elements; where they are.
fn put<T: Copy>(to: &mut Vec<T>, elements: &[T]) -> Range<usize> {
    let start = to.len();
    to.extend_from_slice(elements);
    start..to.len()
}

/// A new request of the batch.
fn add(qp: *mut ibv_qp_ex, name: &'static str, op: impl FnOnce() -> Result<SendOp>) {
    with(qp, name, |call, batch, building| {
        let op = op()?;
        if !batch.send_ops.contains(SendOps::of(&op)) {
            // The engine refuses it when the batch is to be completed.
            let what = "it was made without this operation (send_ops_flags)";
            call.note(Class::Batched, what, None);
        }
        let raw = call.qp.raw();
        // SAFETY: one of ours, which stays for the call; the program has set these fields.
        let (wr_id, flags) = unsafe { ((*raw).wr_id, (*raw).wr_flags) };
        building.sends.push(Send {
            wr_id,
            op,
            flags: SendFlags::from_bits_retain(flags),
            dest: Dest::Connected,
            list: 0..0,
            inline: None,
        });
        Ok(())
    });
}

extern "C" fn wr_send(qp: *mut ibv_qp_ex) {
    add(qp, "ibv_wr_send", || Ok(SendOp::Send));
}

extern "C" fn wr_send_imm(qp: *mut ibv_qp_ex, imm_data: u32) {
    let imm_data = imm_data.to_ne_bytes();
    add(qp, "ibv_wr_send_imm", || {
        Ok(SendOp::SendWithImm { imm_data })
    });
}

extern "C" fn wr_send_inv(qp: *mut ibv_qp_ex, rkey: u32) {
    add(qp, "ibv_wr_send_inv", || Ok(SendOp::SendWithInv { rkey }));
}

extern "C" fn wr_local_inv(qp: *mut ibv_qp_ex, rkey: u32) {
    add(qp, "ibv_wr_local_inv", || Ok(SendOp::LocalInv { rkey }));
}

extern "C" fn wr_rdma_write(qp: *mut ibv_qp_ex, rkey: u32, addr: u64) {
    let remote = Remote { addr, rkey };
    add(qp, "ibv_wr_rdma_write", || Ok(SendOp::RdmaWrite { remote }));
}

extern "C" fn wr_rdma_write_imm(qp: *mut ibv_qp_ex, rkey: u32, addr: u64, imm_data: u32) {
    let (remote, imm_data) = (Remote { addr, rkey }, imm_data.to_ne_bytes());
    add(qp, "ibv_wr_rdma_write_imm", || {
        Ok(SendOp::RdmaWriteWithImm { remote, imm_data })
    });
}

extern "C" fn wr_rdma_read(qp: *mut ibv_qp_ex, rkey: u32, addr: u64) {
    let remote = Remote { addr, rkey };
    add(qp, "ibv_wr_rdma_read", || Ok(SendOp::RdmaRead { remote }));
}

extern "C" fn wr_atomic_cmp_swp(qp: *mut ibv_qp_ex, rkey: u32, addr: u64, compare: u64, swap: u64) {
    let remote = Remote { addr, rkey };
    let op = SendOp::CompareAndSwap {
        remote,
        compare,
        swap,
    };
    add(qp, "ibv_wr_atomic_cmp_swp", || Ok(op));
}

extern "C" fn wr_atomic_fetch_add(qp: *mut ibv_qp_ex, rkey: u32, addr: u64, value: u64) {
    let remote = Remote { addr, rkey };
    add(qp, "ibv_wr_atomic_fetch_add", || {
        Ok(SendOp::FetchAndAdd { remote, add: value })
    });
}

extern "C" fn wr_bind_mw(
    qp: *mut ibv_qp_ex,
    mw: *mut ibv_mw,
    rkey: u32,
    info: *const ibv_mw_bind_info,
) {
    add(qp, "ibv_wr_bind_mw", || {
        present(info)?;
        let mw = CObject::<Mw>::find(mw)?.handle;
        // SAFETY: the program's, valid for the call (C's contract).
        let info = mw::info(&unsafe { info.read() })?;
        Ok(SendOp::BindMw { mw, rkey, info })
    });
}

/// As [`SendOp::Tso`], without the header.
extern "C" fn wr_send_tso(qp: *mut ibv_qp_ex, _hdr: *mut c_void, _hdr_sz: u16, mss: u16) {
    add(qp, "ibv_wr_send_tso", || Ok(SendOp::Tso { mss }));
}

/// No queue pair is made with it.
fn unsupported(qp: *mut ibv_qp_ex, name: &'static str) {
    with(qp, name, |_, _, _| {
        let what = "no device here has this operation";
        Err(Refusal::unsupported(what))
    });
}

extern "C" fn wr_atomic_write(qp: *mut ibv_qp_ex, _rkey: u32, _addr: u64, _value: *const c_void) {
    unsupported(qp, "ibv_wr_atomic_write");
}

extern "C" fn wr_flush(
    qp: *mut ibv_qp_ex,
    _rkey: u32,
    _addr: u64,
    _length: usize,
    _kind: u8,
    _level: u8,
) {
    unsupported(qp, "ibv_wr_flush");
}

/// Changes the last request of the batch.
fn change(
    qp: *mut ibv_qp_ex,
    name: &'static str,
    change: impl FnOnce(&CObject<Qp>, &mut Send, &mut Vec<Sge>, &mut Vec<u8>) -> Result<()>,
) {
    with(qp, name, |call, _, building| {
        let Some(last) = building.sends.last_mut() else {
            let what = "the batch has no work request yet";
            return Err(Refusal::of(Class::Batched, libc::EINVAL, what));
        };
        change(call.qp, last, &mut building.entries, &mut building.bytes)
    });
}

extern "C" fn wr_set_ud_addr(qp: *mut ibv_qp_ex, ah: *mut ibv_ah, qpn: u32, qkey: u32) {
    change(qp, "ibv_wr_set_ud_addr", |found, last, _, _| {
        let (remote_qpn, remote_qkey) = (qpn, qkey);
        last.dest = destination(
            found,
            ud_t {
                ah,
                remote_qpn,
                remote_qkey,
            },
        )?;
        Ok(())
    });
}

extern "C" fn wr_set_xrc_srqn(qp: *mut ibv_qp_ex, remote_srqn: u32) {
    change(qp, "ibv_wr_set_xrc_srqn", |found, last, _, _| {
        if found.more.qp_type != QpType::XrcSend {
            let what = format!("a queue pair of {} sends to no SRQ", found.more.qp_type);
            return Err(Refusal::of(Class::Batched, libc::EINVAL, what));
        }
        last.dest = Dest::Xrc { remote_srqn };
        Ok(())
    });
}

extern "C" fn wr_set_sge(qp: *mut ibv_qp_ex, lkey: u32, addr: u64, length: u32) {
    change(qp, "ibv_wr_set_sge", |_, last, entries, _| {
        last.list = put(entries, &[Sge { addr, length, lkey }]);
        Ok(())
    });
}

extern "C" fn wr_set_sge_list(qp: *mut ibv_qp_ex, count: usize, list: *const ibv_sge) {
    change(qp, "ibv_wr_set_sge_list", |found, last, entries, _| {
        let count = c_int::try_from(count).unwrap_or(c_int::MAX);
        let list = post::list(list, count, found.more.cap.max_send_sge)?;
        last.list = put(entries, list);
        Ok(())
    });
}

extern "C" fn wr_set_inline_data(qp: *mut ibv_qp_ex, addr: *const c_void, length: usize) {
    let buffer = ibv_data_buf { addr, length };
    set_inline(qp, "ibv_wr_set_inline_data", 1, &buffer);
}

extern "C" fn wr_set_inline_data_list(qp: *mut ibv_qp_ex, count: usize, list: *const ibv_data_buf) {
    set_inline(qp, "ibv_wr_set_inline_data_list", count, list);
}

fn set_inline(qp: *mut ibv_qp_ex, name: &'static str, count: usize, list: *const ibv_data_buf) {
    change(qp, name, |found, last, entries, bytes| {
        // SAFETY: the program's, valid for the call, and so many (C's contract).
        let buffers = unsafe { values(list, count) }?;
        let lengths = buffers.iter().map(|buffer| buffer.length as u64);
        let length = lengths.fold(0, u64::saturating_add);
        last.flags |= SendFlags::INLINE;
        if length > found.more.cap.max_inline_data.into() {
            // The engine refuses it by its length.
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            last.list = put(
                entries,
                &[Sge {
                    length,
                    ..Sge::default()
                }],
            );
            last.inline = None;
            return Ok(());
        }
        let start = bytes.len();
        for buffer in buffers {
            // SAFETY: the program's, valid for the call, and so large (C's contract).
            bytes.extend_from_slice(unsafe { values(buffer.addr.cast(), buffer.length) }?);
        }
        last.inline = Some(start..bytes.len());
        Ok(())
    });
}
