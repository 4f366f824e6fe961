//! Batches of sends.
//!
//! The library holds a lock of the queue pair from `ibv_wr_start` on, so a batch is built in one
//! go: all checks on this side of C come before.

use std::ffi::c_void;

use verbs_abi::{ibv_data_buf, ibv_qp, ibv_qp_ex, ibv_sge, library};
use verbs_api::{
    BatchEnd, Cause, Dest, Error, ErrorKind, Qp as QpHandle, Result, SendFlags, SendOp, SendOps,
    SendWr, Verb,
};

use crate::errno::{check, invalid, missing};
use crate::hw::Hw;
use crate::post::{Found, Uses, data};

impl Hw {
    pub(crate) fn post_whole(
        &self,
        qp: QpHandle,
        list: &[SendWr<'_>],
        end: BatchEnd,
    ) -> Result<()> {
        let verb = Verb::PostBatch;
        let qp = self.qp(verb, qp)?;
        // The library has no function for operations that were not asked for.
        let has = |wr: &SendWr<'_>| qp.init.send_ops.contains(SendOps::of(&wr.op));
        if qp.init.send_ops.is_empty() || !list.iter().all(has) {
            let problem = "is not among those that the qp was made with";
            return Err(invalid(verb, "operation", problem));
        }
        let max_inline = u64::from(qp.init.cap.max_inline_data);
        if list.iter().any(|wr| overruns(wr, max_inline)) {
            return Err(invalid(verb, "inline data", "is more than the qp takes"));
        }
        let has_data = |wr: &SendWr<'_>| !wr.sg_list.is_empty() || wr.inline_data.is_some();
        if list.iter().any(|wr| moves_nothing(&wr.op) && has_data(wr)) {
            return Err(invalid(verb, "sg_list", "is for work that moves data"));
        }
        let found: Vec<Found> = list
            .iter()
            .map(|wr| self.used_by(verb, &qp, wr))
            .collect::<Result<_>>()?;
        let uses: Vec<Uses<'_>> = found
            .iter()
            .map(|found| found.hold(verb))
            .collect::<Result<_>>()?;
        let sges: Vec<_> = list.iter().map(data).collect();
        let to_extended = library::ibv_qp_to_qp_ex().map_err(missing(verb))?;
        let build = |qp: *mut ibv_qp| {
            // SAFETY: the QP is live, and was made with `create_qp_with`.
            let batch = unsafe { Batch::start(to_extended(qp)) }?;
            for ((wr, sges), uses) in list.iter().zip(&sges).zip(&uses) {
                // SAFETY: the objects of the request are held.
                if !unsafe { batch.add(wr, sges, uses) } {
                    batch.abort();
                    return None;
                }
            }
            Some(match end {
                BatchEnd::Complete => batch.complete(),
                BatchEnd::Abort => {
                    batch.abort();
                    0
                }
            })
        };
        let result = qp.raw.alone(verb, build)?;
        let Some(result) = result else {
            let cause = Cause::Text("the library lacks a function of the batch".into());
            return Err(Error::new(verb, ErrorKind::NotSupported, cause));
        };
        check(verb, result)?;
        if end == BatchEnd::Complete {
            for (wr, uses) in list.iter().zip(&uses) {
                if let Some(binds) = &uses.binds {
                    binds.was_posted(&wr.op);
                }
            }
        }
        Ok(())
    }
}

/// Operations without a list.
fn moves_nothing(op: &SendOp) -> bool {
    matches!(op, SendOp::LocalInv { .. } | SendOp::BindMw { .. }) || op.is_for_batches()
}

/// Inline data in several parts that is too long. The library of soft-RoCE checks each part alone,
/// and writes beyond its queue.
fn overruns(wr: &SendWr<'_>, max_inline: u64) -> bool {
    wr.flags.contains(SendFlags::INLINE) && wr.sg_list.len() > 1 && wr.length() > max_inline
}

/// A batch that was started. The same thread has to end it.
struct Batch(*mut ibv_qp_ex);

impl Batch {
    /// # Safety
    /// `extended` is that of a live QP that was made by `ibv_create_qp_ex` with operations for
    /// batches, and only used by this batch until its end; or null.
    unsafe fn start(extended: *mut ibv_qp_ex) -> Option<Self> {
        if extended.is_null() {
            return None;
        }
        // SAFETY: the library returned an extended one.
        let ops = unsafe { &*extended };
        let (start, _, _) = (ops.wr_start?, ops.wr_complete?, ops.wr_abort?);
        // SAFETY: the caller's promise.
        unsafe { start(extended) };
        Some(Self(extended))
    }

    /// Adds a request. Returns false if the library has no function for it.
    ///
    /// The address handle and the inline data of the request are live.
    unsafe fn add(&self, wr: &SendWr<'_>, sges: &[ibv_sge], uses: &Uses<'_>) -> bool {
        // SAFETY: the QP is live, and ours until the batch has ended (`start`). The called
        // functions are those of the operations that it was made with. They copy their arguments.
        unsafe { self.build(wr, sges, uses) }.is_some()
    }

    unsafe fn build(&self, wr: &SendWr<'_>, sges: &[ibv_sge], uses: &Uses<'_>) -> Option<()> {
        let qp = self.0;
        // SAFETY: see `add`.
        unsafe {
            (*qp).wr_id = wr.wr_id;
            (*qp).wr_flags = wr.flags.bits();
            match wr.op {
                SendOp::Send => (*qp).wr_send?(qp),
                SendOp::SendWithImm { imm_data } => {
                    (*qp).wr_send_imm?(qp, u32::from_ne_bytes(imm_data));
                }
                SendOp::RdmaWrite { remote } => {
                    (*qp).wr_rdma_write?(qp, remote.rkey, remote.addr);
                }
                SendOp::RdmaWriteWithImm { remote, imm_data } => {
                    let imm_data = u32::from_ne_bytes(imm_data);
                    (*qp).wr_rdma_write_imm?(qp, remote.rkey, remote.addr, imm_data);
                }
                SendOp::RdmaRead { remote } => {
                    (*qp).wr_rdma_read?(qp, remote.rkey, remote.addr);
                }
                SendOp::CompareAndSwap {
                    remote,
                    compare,
                    swap,
                } => (*qp).wr_atomic_cmp_swp?(qp, remote.rkey, remote.addr, compare, swap),
                SendOp::FetchAndAdd { remote, add } => {
                    (*qp).wr_atomic_fetch_add?(qp, remote.rkey, remote.addr, add);
                }
                SendOp::Flush {
                    remote,
                    length,
                    placement,
                    level,
                } => {
                    let (length, kind) = (length as usize, placement.bits());
                    (*qp).wr_flush?(qp, remote.rkey, remote.addr, length, kind, level.raw());
                }
                SendOp::AtomicWrite { remote, value } => {
                    let value = value.as_ptr().cast();
                    (*qp).wr_atomic_write?(qp, remote.rkey, remote.addr, value);
                }
                SendOp::LocalInv { rkey } => (*qp).wr_local_inv?(qp, rkey),
                SendOp::SendWithInv { rkey } => (*qp).wr_send_inv?(qp, rkey),
                SendOp::BindMw { .. } => {
                    let bind = uses.binds.as_ref()?.of(&wr.op)?;
                    (*qp).wr_bind_mw?(qp, bind.mw, bind.rkey, &bind.bind_info);
                }
                _ => return None,
            }
            if let (
                Dest::Ud {
                    remote_qpn,
                    remote_qkey,
                    ..
                },
                Some(ah),
            ) = (wr.dest, &uses.ah)
            {
                (*qp).wr_set_ud_addr?(qp, ah.get(), remote_qpn, remote_qkey);
            }
            if let Dest::Xrc { remote_srqn } = wr.dest {
                // Only libraries with XRC have a function for it.
                if let Some(set) = (*qp).wr_set_xrc_srqn {
                    set(qp, remote_srqn);
                }
            }
            if moves_nothing(&wr.op) {
                // The library has ended the batch already.
            } else if wr.flags.contains(SendFlags::INLINE) {
                let start = |sge: &ibv_sge| {
                    std::ptr::with_exposed_provenance_mut::<c_void>(sge.addr as usize)
                };
                if let [sge] = sges {
                    (*qp).wr_set_inline_data?(qp, start(sge), sge.length as usize);
                } else {
                    let buf = |sge: &ibv_sge| ibv_data_buf {
                        addr: start(sge),
                        length: sge.length as usize,
                    };
                    let bufs: Vec<_> = sges.iter().map(buf).collect();
                    (*qp).wr_set_inline_data_list?(qp, bufs.len(), bufs.as_ptr());
                }
            } else {
                (*qp).wr_set_sge_list?(qp, sges.len(), sges.as_ptr());
            }
        }
        Some(())
    }

    fn complete(self) -> i32 {
        // SAFETY: `start` has checked that the function exists, and its promise holds.
        unsafe { (*self.0).wr_complete.map_or(0, |complete| complete(self.0)) }
    }

    fn abort(self) {
        // SAFETY: as in `complete`.
        unsafe { (*self.0).wr_abort.map_or((), |abort| abort(self.0)) }
    }
}
