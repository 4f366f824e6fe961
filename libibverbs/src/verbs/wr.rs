//! `ibv_wr_*`: the requests of a batch, each by a function of the extended queue pair.

use std::ffi::{c_int, c_void};
use std::mem;
use std::ops::Range;

use verbs_abi::{ibv_ah, ibv_data_buf, ibv_mw, ibv_mw_bind_info, ibv_qp, ibv_qp_ex, ibv_sge, ud_t};
use verbs_api::{
    BatchEnd, Dest, PlacementType, QpType, Remote, SelectivityLevel, SendFlags, SendOp, SendOps,
    Sge, Verbs,
};
use verbs_sim::Class;

use super::batch::{Batch, Building, Send};
use super::list;
use super::mw::{self, Mw};
use super::post::destination;
use super::qp::{Operations, Qp};
use crate::base::thread::entries;
use crate::c::{CObject, Refusal, Result, pointer, present, silent, status, values};
use crate::engine::sim;

/// `ibv_qp_to_qp_ex`: the extended structure of a queue pair that was made for batches, or null.
pub(crate) extern "C" fn qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex {
    pointer("ibv_qp_to_qp_ex", qp, |qp| {
        batch_of(&qp)?;
        Ok(qp.raw())
    })
}

/// The functions of a queue pair that takes batches of these operations. A queue pair for no
/// operation has none.
pub(crate) fn operations(send_ops: SendOps) -> Operations {
    if send_ops.is_empty() {
        return Operations::default();
    }
    let raw = entries!(ibv_qp_ex: self {
        wr_atomic_cmp_swp wr_atomic_fetch_add wr_bind_mw wr_local_inv wr_rdma_read wr_rdma_write
        wr_rdma_write_imm wr_send wr_send_imm wr_send_inv wr_send_tso wr_atomic_write wr_flush
        wr_set_ud_addr wr_set_xrc_srqn wr_set_inline_data wr_set_inline_data_list wr_set_sge
        wr_set_sge_list wr_start wr_complete wr_abort
    });
    Operations { send_ops, raw }
}

/// The batch of a queue pair.
fn batch_of(qp: &CObject<Qp>) -> Result<&Batch> {
    qp.more.batch.as_ref().ok_or_else(|| {
        Refusal::invalid("it was made without send_ops_flags, so it takes no batches")
    })
}

extern "C" fn wr_start(qp: *mut ibv_qp_ex) {
    silent("ibv_wr_start", qp, |qp| {
        let batch = batch_of(&qp)?;
        let in_use = qp.in_use("ibv_wr_start");
        batch.start(qp.call("ibv_wr_start"))?;
        // The use lasts until the batch ends.
        mem::forget(in_use);
        Ok(())
    });
}

/// Calls `work` with the batch that this thread has started.
fn with(
    qp: *mut ibv_qp_ex,
    name: &'static str,
    work: impl FnOnce(&CObject<Qp>, &mut Building) -> Result<()>,
) {
    silent(name, qp, |qp| {
        batch_of(&qp)?.with(qp.call(name), |building| work(&qp, building))
    });
}

extern "C" fn wr_complete(qp: *mut ibv_qp_ex) -> c_int {
    status("ibv_wr_complete", qp, |qp| {
        end(&qp, "ibv_wr_complete", |building| {
            Ok(sim().post_batch(qp.handle, &building.list(), BatchEnd::Complete)?)
        })
    })
}

extern "C" fn wr_abort(qp: *mut ibv_qp_ex) {
    silent("ibv_wr_abort", qp, |qp| {
        end(&qp, "ibv_wr_abort", |_| Ok(()))
    });
}

/// Ends the batch that this thread has started.
fn end(
    qp: &CObject<Qp>,
    name: &'static str,
    post: impl FnOnce(&Building) -> Result<()>,
) -> Result<()> {
    let ended = batch_of(qp)?.complete(qp.call(name), post);
    if let Some(exclusive) = &qp.more.exclusive {
        exclusive.leave();
    }
    ended
}

/// Appends elements. Returns their places.
fn put<T: Copy>(to: &mut Vec<T>, elements: &[T]) -> Range<usize> {
    let start = to.len();
    to.extend_from_slice(elements);
    start..to.len()
}

/// Adds a request to the batch.
fn add(qp: *mut ibv_qp_ex, name: &'static str, op: impl FnOnce() -> Result<SendOp>) {
    with(qp, name, |qp, building| {
        let op = op()?;
        if !batch_of(qp)?.send_ops.contains(SendOps::of(&op)) {
            // The engine refuses it when the batch is completed; the finding names this call.
            let what = "it was made without this operation (send_ops_flags)";
            qp.call(name).note(Class::Batched, what, None);
        }
        let raw = qp.raw();
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

/// Functions that add a request to the batch, each with its operation.
macro_rules! requests {
    ($( fn $name:ident($( $argument:ident: $type:ty ),*) => $op:expr; )*) => { $(
        extern "C" fn $name(qp: *mut ibv_qp_ex $(, $argument: $type)*) {
            add(qp, concat!("ibv_", stringify!($name)), || Ok($op));
        }
    )* };
}

/// The remote memory of an operation.
fn remote(rkey: u32, addr: u64) -> Remote {
    Remote { addr, rkey }
}

requests! {
    fn wr_send() => SendOp::Send;
    fn wr_send_imm(imm: u32) => SendOp::SendWithImm { imm_data: imm.to_ne_bytes() };
    fn wr_send_inv(rkey: u32) => SendOp::SendWithInv { rkey };
    fn wr_local_inv(rkey: u32) => SendOp::LocalInv { rkey };
    fn wr_rdma_write(rkey: u32, addr: u64) => SendOp::RdmaWrite { remote: remote(rkey, addr) };
    fn wr_rdma_write_imm(rkey: u32, addr: u64, imm: u32) => SendOp::RdmaWriteWithImm {
        remote: remote(rkey, addr),
        imm_data: imm.to_ne_bytes(),
    };
    fn wr_rdma_read(rkey: u32, addr: u64) => SendOp::RdmaRead { remote: remote(rkey, addr) };
    fn wr_atomic_cmp_swp(rkey: u32, addr: u64, compare: u64, swap: u64) => SendOp::CompareAndSwap {
        remote: remote(rkey, addr),
        compare,
        swap,
    };
    fn wr_atomic_fetch_add(rkey: u32, addr: u64, add: u64) => SendOp::FetchAndAdd {
        remote: remote(rkey, addr),
        add,
    };
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

/// Segmentation (TSO). [`SendOp::Tso`] has no header.
extern "C" fn wr_send_tso(qp: *mut ibv_qp_ex, _hdr: *mut c_void, _hdr_sz: u16, mss: u16) {
    add(qp, "ibv_wr_send_tso", || Ok(SendOp::Tso { mss }));
}

extern "C" fn wr_atomic_write(qp: *mut ibv_qp_ex, rkey: u32, addr: u64, value: *const c_void) {
    add(qp, "ibv_wr_atomic_write", || {
        // SAFETY: the program's, valid for the call, with 8 bytes (C's contract).
        let bytes = unsafe { values(value.cast(), 8) }?;
        let mut value = [0; 8];
        value.copy_from_slice(bytes);
        let remote = remote(rkey, addr);
        Ok(SendOp::AtomicWrite { remote, value })
    });
}

extern "C" fn wr_flush(
    qp: *mut ibv_qp_ex,
    rkey: u32,
    addr: u64,
    length: usize,
    placement: u8,
    level: u8,
) {
    add(qp, "ibv_wr_flush", || {
        let Some(level) = SelectivityLevel::from_raw(level) else {
            let what = format!("{level} is not a selectivity level");
            return Err(Refusal::invalid(what));
        };
        let length = match (level, u32::try_from(length)) {
            // A flush of a region has no length.
            (SelectivityLevel::Mr, _) => 0,
            (SelectivityLevel::Range, Ok(length)) => length,
            (SelectivityLevel::Range, Err(_)) => {
                let what = format!("a flush of {length} bytes is longer than a request can say");
                return Err(Refusal::invalid(what));
            }
        };
        Ok(SendOp::Flush {
            remote: remote(rkey, addr),
            length,
            placement: PlacementType::from_bits_retain(placement),
            level,
        })
    });
}

/// Changes the last request of the batch, and the entries and bytes that it refers to.
fn change(
    qp: *mut ibv_qp_ex,
    name: &'static str,
    change: impl FnOnce(&CObject<Qp>, &mut Send, &mut Vec<Sge>, &mut Vec<u8>) -> Result<()>,
) {
    with(qp, name, |qp, building| {
        let Some(last) = building.sends.last_mut() else {
            let what = "the batch has no work request yet";
            return Err(Refusal::of(Class::Batched, libc::EINVAL, what));
        };
        change(qp, last, &mut building.entries, &mut building.bytes)
    });
}

extern "C" fn wr_set_ud_addr(qp: *mut ibv_qp_ex, ah: *mut ibv_ah, qpn: u32, qkey: u32) {
    change(qp, "ibv_wr_set_ud_addr", |found, last, _, _| {
        let to = ud_t {
            ah,
            remote_qpn: qpn,
            remote_qkey: qkey,
        };
        last.dest = destination(found, to)?;
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
        // The engine refuses a list that is too long, whatever its length.
        let count = c_int::try_from(count).unwrap_or(c_int::MAX);
        let list = list::sge_list(list, count, found.more.cap.max_send_sge)?;
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
        // SAFETY: the program's, valid for the call, `count` of them (C's contract).
        let buffers = unsafe { values(list, count) }?;
        let lengths = buffers.iter().map(|buffer| buffer.length as u64);
        // The lengths are the program's, and their sum may overflow.
        let length = lengths.fold(0, u64::saturating_add);
        last.flags |= SendFlags::INLINE;
        if length > found.more.cap.max_inline_data.into() {
            // The engine refuses the request by its length.
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            last.list = put(
                entries,
                &[Sge {
                    length,
                    ..Sge::default()
                }],
            );
            // An earlier call may have set other data.
            last.inline = None;
            return Ok(());
        }
        let start = bytes.len();
        for buffer in buffers {
            // SAFETY: the program's, valid for the call, of this length (C's contract).
            bytes.extend_from_slice(unsafe { values(buffer.addr.cast(), buffer.length) }?);
        }
        last.inline = Some(start..bytes.len());
        Ok(())
    });
}
