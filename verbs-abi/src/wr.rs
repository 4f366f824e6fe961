//! Work requests.

use std::ffi::{c_int, c_uint, c_void};

use verbs_api::{Dest, Remote, SendOp, SendWr};

use crate::{ibv_ah, ibv_mw, ibv_mw_bind_info, ibv_sge};

structures! {
    ibv_recv_wr [32] {
        wr_id: u64,
        next: *mut ibv_recv_wr,
        sg_list: *mut ibv_sge,
        num_sge: c_int,
    }

    /// Immediate data is as on the wire, or the key to invalidate.
    ibv_send_wr [128] {
        wr_id: u64,
        next: *mut ibv_send_wr,
        sg_list: *mut ibv_sge,
        num_sge: c_int,
        opcode: u32,
        send_flags: c_uint,
        imm_data = (imm_data): u32,
        wr: wr_t,
        remote_srqn = qp_type: u32,
        bind_mw_or_tso = (bind_mw): bind_mw_or_tso_t,
    }

    // C has no names for these; they are those of the bindings.
    /// `wr.rdma` of a send
    rdma_t { remote_addr: u64, rkey: u32 }
    /// `wr.atomic` of a send
    atomic_t { remote_addr: u64, compare_add: u64, swap: u64, rkey: u32 }
    /// `wr.ud` of a send
    ud_t { ah: *mut ibv_ah, remote_qpn: u32, remote_qkey: u32 }
    /// `bind_mw` of a send
    bind_mw_t { mw: *mut ibv_mw, rkey: u32, bind_info: ibv_mw_bind_info }
    /// `tso` of a send
    tso_t { hdr: *mut c_void, hdr_sz: u16, mss: u16 }
}

/// What `wr` of a send is depends on its operation.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the fields are those of C")]
pub union wr_t {
    pub rdma: rdma_t,
    pub atomic: atomic_t,
    pub ud: ud_t,
}

/// The last union of a send: the arguments of a bind or of TSO, depending on its operation.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "the fields are those of C")]
pub union bind_mw_or_tso_t {
    pub bind_mw: bind_mw_t,
    pub tso: tso_t,
}

constants! {
    numbers ibv_wr_opcode: u32 {
        IBV_WR_RDMA_WRITE = 0,
        IBV_WR_RDMA_WRITE_WITH_IMM = 1,
        IBV_WR_SEND = 2,
        IBV_WR_SEND_WITH_IMM = 3,
        IBV_WR_RDMA_READ = 4,
        IBV_WR_ATOMIC_CMP_AND_SWP = 5,
        IBV_WR_ATOMIC_FETCH_AND_ADD = 6,
        IBV_WR_LOCAL_INV = 7,
        IBV_WR_BIND_MW = 8,
        IBV_WR_SEND_WITH_INV = 9,
        IBV_WR_TSO = 10,
    }
}

impl ibv_send_wr {
    /// The operation; `None` if verbsim does not know it. `bind` is the bind's argument.
    ///
    /// # Errors
    /// Those of `bind`.
    // Each send comes here, and the result is large: as a call it is copied.
    #[inline(always)]
    pub fn from_c<E>(
        wr: &Self,
        bind: impl FnOnce(&bind_mw_t) -> Result<SendOp, E>,
    ) -> Result<Option<SendOp>, E> {
        // SAFETY: all that shares a place is numbers and pointers, for which any bytes are a value.
        let (rdma, atomic, bound, tso) = unsafe {
            (
                wr.wr.rdma,
                wr.wr.atomic,
                wr.bind_mw_or_tso.bind_mw,
                wr.bind_mw_or_tso.tso,
            )
        };
        let remote = Remote {
            addr: rdma.remote_addr,
            rkey: rdma.rkey,
        };
        let of_atomic = Remote {
            addr: atomic.remote_addr,
            rkey: atomic.rkey,
        };
        let (compare_add, swap) = (atomic.compare_add, atomic.swap);
        let (imm_data, rkey) = (wr.imm_data.to_ne_bytes(), wr.imm_data);
        Ok(Some(match wr.opcode {
            IBV_WR_RDMA_WRITE => SendOp::RdmaWrite { remote },
            IBV_WR_RDMA_WRITE_WITH_IMM => SendOp::RdmaWriteWithImm { remote, imm_data },
            IBV_WR_SEND => SendOp::Send,
            IBV_WR_SEND_WITH_IMM => SendOp::SendWithImm { imm_data },
            IBV_WR_RDMA_READ => SendOp::RdmaRead { remote },
            IBV_WR_ATOMIC_CMP_AND_SWP => SendOp::CompareAndSwap {
                remote: of_atomic,
                compare: compare_add,
                swap,
            },
            IBV_WR_ATOMIC_FETCH_AND_ADD => SendOp::FetchAndAdd {
                remote: of_atomic,
                add: compare_add,
            },
            IBV_WR_LOCAL_INV => SendOp::LocalInv { rkey },
            IBV_WR_BIND_MW => bind(&bound)?,
            IBV_WR_SEND_WITH_INV => SendOp::SendWithInv { rkey },
            IBV_WR_TSO => SendOp::Tso { mss: tso.mss },
            _ => return Ok(None),
        }))
    }

    /// The request without its list; none if C has no such operation. On a queue pair for datagrams
    /// it is for this address handle. A bind is this one.
    pub fn to_c(wr: &SendWr<'_>, ah: Option<*mut ibv_ah>, bind: Option<bind_mw_t>) -> Option<Self> {
        let (opcode, imm_data) = match wr.op {
            SendOp::RdmaWrite { .. } => (IBV_WR_RDMA_WRITE, 0),
            SendOp::RdmaWriteWithImm { imm_data, .. } => {
                (IBV_WR_RDMA_WRITE_WITH_IMM, u32::from_ne_bytes(imm_data))
            }
            SendOp::Send => (IBV_WR_SEND, 0),
            SendOp::SendWithImm { imm_data } => {
                (IBV_WR_SEND_WITH_IMM, u32::from_ne_bytes(imm_data))
            }
            SendOp::RdmaRead { .. } => (IBV_WR_RDMA_READ, 0),
            SendOp::CompareAndSwap { .. } => (IBV_WR_ATOMIC_CMP_AND_SWP, 0),
            SendOp::FetchAndAdd { .. } => (IBV_WR_ATOMIC_FETCH_AND_ADD, 0),
            SendOp::LocalInv { rkey } => (IBV_WR_LOCAL_INV, rkey),
            SendOp::BindMw { .. } => (IBV_WR_BIND_MW, 0),
            SendOp::SendWithInv { rkey } => (IBV_WR_SEND_WITH_INV, rkey),
            SendOp::Tso { .. } => (IBV_WR_TSO, 0),
            _ => return None,
        };
        let (wr_id, send_flags) = (wr.wr_id, wr.flags.bits());
        let mut made = Self {
            wr_id,
            opcode,
            send_flags,
            imm_data,
            ..Self::default()
        };
        let atomic = |remote: Remote, compare_add, swap| atomic_t {
            remote_addr: remote.addr,
            compare_add,
            swap,
            rkey: remote.rkey,
        };
        match wr.op {
            SendOp::RdmaWrite { remote }
            | SendOp::RdmaWriteWithImm { remote, .. }
            | SendOp::RdmaRead { remote } => {
                made.wr.rdma = rdma_t {
                    remote_addr: remote.addr,
                    rkey: remote.rkey,
                };
            }
            SendOp::CompareAndSwap {
                remote,
                compare,
                swap,
            } => made.wr.atomic = atomic(remote, compare, swap),
            SendOp::FetchAndAdd { remote, add } => made.wr.atomic = atomic(remote, add, 0),
            SendOp::BindMw { .. } => made.bind_mw_or_tso.bind_mw = bind?,
            SendOp::Tso { mss } => made.bind_mw_or_tso.tso.mss = mss,
            _ => {}
        }
        match (wr.dest, ah) {
            (
                Dest::Ud {
                    remote_qpn,
                    remote_qkey,
                    ..
                },
                Some(ah),
            ) => {
                made.wr.ud = ud_t {
                    ah,
                    remote_qpn,
                    remote_qkey,
                };
            }
            (Dest::Xrc { remote_srqn }, _) => made.remote_srqn = remote_srqn,
            _ => {}
        }
        Some(made)
    }

    /// Where it goes, if it is a datagram.
    pub fn ud(&self) -> ud_t {
        // SAFETY: numbers and a pointer, for which any bytes are a value.
        unsafe { self.wr.ud }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;
    use verbs_api::{Mr, Mw};

    use super::*;

    fn from_c(wr: &ibv_send_wr) -> SendOp {
        let bind = |bind: &bind_mw_t| {
            let info = ibv_mw_bind_info::from_c(&bind.bind_info, Mr::default());
            Ok::<_, Infallible>(SendOp::BindMw {
                mw: Mw::default(),
                rkey: bind.rkey,
                info,
            })
        };
        let Ok(op) = ibv_send_wr::from_c(wr, bind);
        op.expect("there is such an operation")
    }

    proptest! {
        #[test]
        fn operations_survive(
            bytes in prop::collection::vec(any::<u8>(), size_of::<ibv_send_wr>()),
            opcode in IBV_WR_RDMA_WRITE..=IBV_WR_TSO,
        ) {
            let there = from_c(&ibv_send_wr { opcode, ..crate::border::of_bytes(&bytes) });
            let bind = match &there {
                SendOp::BindMw { rkey, info, .. } => {
                    let bind_info = ibv_mw_bind_info::to_c(info, std::ptr::null_mut());
                    Some(bind_mw_t { rkey: *rkey, bind_info, ..bind_mw_t::default() })
                }
                _ => None,
            };
            let back = ibv_send_wr::to_c(&SendWr::new(0, there, &[]), None, bind);
            prop_assert_eq!(from_c(&back.unwrap()), there);
        }
    }
}
