//! Queue pairs: types, states, attributes.

use bitflags::bitflags;
use core::fmt;

use crate::ah::AhAttr;
use crate::batch::SendOps;
use crate::c_enum::c_enum;
use crate::device::Mtu;
use crate::handle::{Cq, Srq};
use crate::mr::Access;

c_enum! {
    /// Transport of a QP (`enum ibv_qp_type`).
    QpType {
        /// Reliable connection.
        Rc = 2, "RC";
        /// Unreliable connection.
        Uc = 3, "UC";
        /// Unreliable datagram.
        Ud = 4, "UD";
        /// Raw packets.
        RawPacket = 8, "RAW_PACKET";
        /// Extended reliable connection, initiator.
        XrcSend = 9, "XRC_SEND";
        /// Extended reliable connection, target.
        XrcRecv = 10, "XRC_RECV";
        /// The driver's own.
        Driver = 255, "DRIVER";
    }
}

c_enum! {
    /// State of a QP (`enum ibv_qp_state`).
    QpState {
        /// New; nothing works.
        Reset = 0, "RESET";
        /// Receives can be posted.
        Init = 1, "INIT";
        /// Ready to receive.
        Rtr = 2, "RTR";
        /// Ready to send.
        Rts = 3, "RTS";
        /// Send queue drained, or draining.
        Sqd = 4, "SQD";
        /// Send queue error.
        Sqe = 5, "SQE";
        /// Error.
        Err = 6, "ERR";
    }
}

c_enum! {
    /// State of path migration (`enum ibv_mig_state`).
    MigState {
        /// Migrated.
        Migrated = 0, "MIGRATED";
        /// Looking for an alternate path.
        Rearm = 1, "REARM";
        /// Ready to migrate.
        Armed = 2, "ARMED";
    }
}

/// Sizes of a QP's queues (`struct ibv_qp_cap`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpCap {
    /// Work requests of the send queue.
    pub max_send_wr: u32,
    /// Work requests of the receive queue.
    pub max_recv_wr: u32,
    /// Scatter/gather entries of a send.
    pub max_send_sge: u32,
    /// Scatter/gather entries of a receive.
    pub max_recv_sge: u32,
    /// Bytes of inline data.
    pub max_inline_data: u32,
}

impl Default for QpCap {
    /// 16 sends, 16 receives, one entry each, no inline data.
    fn default() -> Self {
        Self {
            max_send_wr: 16,
            max_recv_wr: 16,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        }
    }
}

/// What `ibv_create_qp` takes (`struct ibv_qp_init_attr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QpInit {
    /// Transport.
    pub qp_type: QpType,
    /// Where completions of sends go.
    pub send_cq: Cq,
    /// Where completions of receives go. Ignored for XRC_SEND, which has none.
    pub recv_cq: Cq,
    /// An SRQ that receives come from, instead of a queue of its own (RC and UD). The sizes of a
    /// receive queue are then ignored (QP-CREATE-04).
    pub srq: Option<Srq>,
    /// Sizes.
    pub cap: QpCap,
    /// Every send makes a completion, signaled or not (WC-19).
    pub sq_sig_all: bool,
    /// The caller's own value.
    pub qp_context: u64,
    /// Operations that its batches may have ([`Verbs::post_batch`](crate::Verbs::post_batch)).
    /// Default: none, so it takes no batches.
    pub send_ops: SendOps,
}

impl QpInit {
    /// A QP of `qp_type` on these CQs, with the default sizes of [`QpCap`].
    pub fn new(qp_type: QpType, send_cq: Cq, recv_cq: Cq) -> Self {
        Self {
            qp_type,
            send_cq,
            recv_cq,
            srq: None,
            cap: QpCap::default(),
            sq_sig_all: false,
            qp_context: 0,
            send_ops: SendOps::empty(),
        }
    }

    /// With receives from this SRQ.
    #[must_use]
    pub const fn srq(self, srq: Srq) -> Self {
        Self {
            srq: Some(srq),
            ..self
        }
    }

    /// With batches of these operations.
    #[must_use]
    pub const fn send_ops(self, send_ops: SendOps) -> Self {
        Self { send_ops, ..self }
    }

    /// With these sizes.
    #[must_use]
    pub const fn cap(self, cap: QpCap) -> Self {
        Self { cap, ..self }
    }

    /// With a completion for every send.
    #[must_use]
    pub const fn sq_sig_all(self) -> Self {
        Self {
            sq_sig_all: true,
            ..self
        }
    }
}

bitflags! {
    /// Which fields of [`QpAttr`] count (`enum ibv_qp_attr_mask`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct QpAttrMask: u32 {
        /// `qp_state`
        const STATE = 1 << 0;
        /// `cur_qp_state`
        const CUR_STATE = 1 << 1;
        /// `en_sqd_async_notify`
        const EN_SQD_ASYNC_NOTIFY = 1 << 2;
        /// `qp_access_flags`
        const ACCESS_FLAGS = 1 << 3;
        /// `pkey_index`
        const PKEY_INDEX = 1 << 4;
        /// `port_num`
        const PORT = 1 << 5;
        /// `qkey`
        const QKEY = 1 << 6;
        /// `ah_attr`
        const AV = 1 << 7;
        /// `path_mtu`
        const PATH_MTU = 1 << 8;
        /// `timeout`
        const TIMEOUT = 1 << 9;
        /// `retry_cnt`
        const RETRY_CNT = 1 << 10;
        /// `rnr_retry`
        const RNR_RETRY = 1 << 11;
        /// `rq_psn`
        const RQ_PSN = 1 << 12;
        /// `max_rd_atomic`
        const MAX_QP_RD_ATOMIC = 1 << 13;
        /// `alt_ah_attr` and its companions
        const ALT_PATH = 1 << 14;
        /// `min_rnr_timer`
        const MIN_RNR_TIMER = 1 << 15;
        /// `sq_psn`
        const SQ_PSN = 1 << 16;
        /// `max_dest_rd_atomic`
        const MAX_DEST_RD_ATOMIC = 1 << 17;
        /// `path_mig_state`
        const PATH_MIG_STATE = 1 << 18;
        /// `cap`
        const CAP = 1 << 19;
        /// `dest_qp_num`
        const DEST_QPN = 1 << 20;
        /// `rate_limit`
        const RATE_LIMIT = 1 << 25;
        const _ = !0;
    }
}

impl QpAttrMask {
    /// The attributes of the InfiniBand specification, all of which a query can ask for; libibverbs
    /// refuses others there.
    pub const STANDARD: Self = Self::from_bits_retain((1 << 21) - 1);
}

impl fmt::Display for QpAttrMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bitflags::parser::to_writer(self, f)
    }
}

/// Attributes of a QP (`struct ibv_qp_attr`). Ranges are those of QP-STATE-27.
///
/// Write it with `..QpAttr::default()`: fields may be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpAttr {
    /// The state, or the state to go to.
    pub qp_state: QpState,
    /// The state the caller believes the QP to be in.
    pub cur_qp_state: QpState,
    /// Payload bytes of one packet.
    pub path_mtu: Mtu,
    /// Path migration.
    pub path_mig_state: MigState,
    /// Q_Key of a UD QP.
    pub qkey: u32,
    /// PSN expected first, 24 bits.
    pub rq_psn: u32,
    /// PSN sent first, 24 bits.
    pub sq_psn: u32,
    /// QP number of the peer, 24 bits.
    pub dest_qp_num: u32,
    /// What peers may do.
    pub qp_access_flags: Access,
    /// Sizes; filled by a query.
    pub cap: QpCap,
    /// Address of the peer.
    pub ah_attr: Option<AhAttr>,
    /// Alternate address; devices without path migration refuse it.
    pub alt_ah_attr: Option<AhAttr>,
    /// Index in the P_Key table.
    pub pkey_index: u16,
    /// Raise `SQ_DRAINED` when SQD is drained.
    pub en_sqd_async_notify: bool,
    /// In SQD: started work is not finished yet. Filled by a query.
    pub sq_draining: bool,
    /// RDMA Reads and atomics outstanding as requester.
    pub max_rd_atomic: u8,
    /// RDMA Reads and atomics outstanding as responder.
    pub max_dest_rd_atomic: u8,
    /// Code of the wait that a peer is asked for if no receive is posted, 0 to 31 (TMR-06).
    pub min_rnr_timer: u8,
    /// Local port, from 1.
    pub port_num: u8,
    /// Code of the time-out of an acknowledgement, 0 to 31: 4.096 us times 2 to this power; 0 waits
    /// forever (TMR-01).
    pub timeout: u8,
    /// Retries without an answer, 0 to 7 (TMR-03).
    pub retry_cnt: u8,
    /// Retries when the receiver is not ready, 0 to 7; 7 has no limit (RNR-02).
    pub rnr_retry: u8,
}

impl Default for QpAttr {
    /// All fields zero or their first value.
    fn default() -> Self {
        Self {
            qp_state: QpState::Reset,
            cur_qp_state: QpState::Reset,
            path_mtu: Mtu::Mtu256,
            path_mig_state: MigState::Migrated,
            qkey: 0,
            rq_psn: 0,
            sq_psn: 0,
            dest_qp_num: 0,
            qp_access_flags: Access::empty(),
            cap: QpCap {
                max_send_wr: 0,
                max_recv_wr: 0,
                max_send_sge: 0,
                max_recv_sge: 0,
                max_inline_data: 0,
            },
            ah_attr: None,
            alt_ah_attr: None,
            pkey_index: 0,
            en_sqd_async_notify: false,
            sq_draining: false,
            max_rd_atomic: 0,
            max_dest_rd_atomic: 0,
            min_rnr_timer: 0,
            port_num: 0,
            timeout: 0,
            retry_cnt: 0,
            rnr_retry: 0,
        }
    }
}

/// Builds the attributes of one modify together with their mask.
///
/// ```
/// use verbs_api::{QpAttrMask, QpModify, QpState};
///
/// let modify = QpModify::to(QpState::Rts).set(QpAttrMask::SQ_PSN, |a| a.sq_psn = 7);
/// assert_eq!(modify.mask, QpAttrMask::STATE | QpAttrMask::SQ_PSN);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpModify {
    /// The attributes.
    pub attr: QpAttr,
    /// Which of them count.
    pub mask: QpAttrMask,
}

impl QpModify {
    /// A move to `state` and nothing else.
    pub fn to(state: QpState) -> Self {
        let attr = QpAttr {
            qp_state: state,
            ..QpAttr::default()
        };
        Self {
            attr,
            mask: QpAttrMask::STATE,
        }
    }

    /// With the attribute that `bit` names set by `set`.
    #[must_use]
    pub fn set(mut self, bit: QpAttrMask, set: impl FnOnce(&mut QpAttr)) -> Self {
        set(&mut self.attr);
        self.mask |= bit;
        self
    }
}

/// What `ibv_query_qp` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QpQuery {
    /// The QP number.
    pub qp_num: u32,
    /// The present attributes.
    pub attr: QpAttr,
    /// The attributes at creation, with the sizes the QP really has.
    pub init: QpInit,
}

impl QpQuery {
    /// The answer to a query, for backends.
    pub const fn new(qp_num: u32, attr: QpAttr, init: QpInit) -> Self {
        Self { qp_num, attr, init }
    }
}
