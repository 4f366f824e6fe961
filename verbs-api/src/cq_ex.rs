//! Extended completion queues, and what `ibv_modify_cq` changes.

use bitflags::bitflags;

use crate::cq::{CqInit, WcFlags, WcOpcode, WcStatus};
use crate::handle::Pd;

/// The arguments of `ibv_create_cq_ex`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CqInitEx {
    /// The arguments of every CQ.
    pub cq: CqInit,
    /// The fields that its completions can be asked for
    /// ([`Verbs::read_wc`](crate::Verbs::read_wc)).
    pub wc_flags: WcFields,
    /// The flags.
    pub flags: CqFlags,
    /// The parent domain that it is made with, which it keeps in use (PD-06). Default: none.
    pub parent_domain: Option<Pd>,
}

impl CqInitEx {
    /// A CQ with the fields of `ibv_poll_cq`, and no flags.
    pub const fn new(cq: CqInit) -> Self {
        Self {
            cq,
            wc_flags: WcFields::STANDARD,
            flags: CqFlags::empty(),
            parent_domain: None,
        }
    }

    /// With these fields, and no others.
    #[must_use]
    pub const fn wc_flags(self, wc_flags: WcFields) -> Self {
        Self { wc_flags, ..self }
    }

    /// With these flags.
    #[must_use]
    pub const fn flags(self, flags: CqFlags) -> Self {
        Self { flags, ..self }
    }

    /// With this parent domain.
    #[must_use]
    pub const fn parent_domain(self, pd: Pd) -> Self {
        Self {
            parent_domain: Some(pd),
            ..self
        }
    }
}

bitflags! {
    /// Fields of a completion that an extended CQ can be asked for (`enum ibv_create_cq_wc_flags`).
    /// Status, operation, flags, the vendor's code and the number of the work request always can.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct WcFields: u64 {
        /// [`WcEx::byte_len`]
        const BYTE_LEN = 1 << 0;
        /// [`WcEx::imm_data`]
        const IMM = 1 << 1;
        /// [`WcEx::qp_num`]
        const QP_NUM = 1 << 2;
        /// [`WcEx::src_qp`]
        const SRC_QP = 1 << 3;
        /// [`WcEx::slid`]
        const SLID = 1 << 4;
        /// [`WcEx::sl`]
        const SL = 1 << 5;
        /// [`WcEx::dlid_path_bits`]
        const DLID_PATH_BITS = 1 << 6;
        /// [`WcEx::completion_ts`]; needs
        /// [`Capabilities::WC_TIMESTAMP`](crate::Capabilities::WC_TIMESTAMP).
        const COMPLETION_TIMESTAMP = 1 << 7;
        /// The VLAN of a raw packet.
        const CVLAN = 1 << 8;
        /// The tag of the rule that steered a raw packet.
        const FLOW_TAG = 1 << 9;
        /// What a tag was matched with.
        const TM_INFO = 1 << 10;
        /// [`WcEx::completion_wallclock_ns`]; needs
        /// [`Capabilities::WC_TIMESTAMP`](crate::Capabilities::WC_TIMESTAMP).
        const COMPLETION_TIMESTAMP_WALLCLOCK = 1 << 11;
        /// The fields that `ibv_poll_cq` gives (`IBV_WC_STANDARD_FLAGS`).
        const STANDARD = 0x7f;
        const _ = !0;
    }
}

impl WcFields {
    /// The times of a completion.
    pub const TIMESTAMPS: Self =
        Self::COMPLETION_TIMESTAMP.union(Self::COMPLETION_TIMESTAMP_WALLCLOCK);
}

bitflags! {
    /// The flags of an extended CQ (`enum ibv_create_cq_attr_flags`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct CqFlags: u32 {
        /// One thread at a time uses it, so it needs no lock. The backends ensure that themselves.
        const SINGLE_THREADED = 1 << 0;
        /// An overrun is not an error: a new completion replaces the oldest, which is lost
        /// (CQ-CREATE-14).
        const IGNORE_OVERRUN = 1 << 1;
        const _ = !0;
    }
}

/// The completion that an iteration is at (the fields and readers of `struct ibv_cq_ex`). Fields
/// that the CQ was not made with are `None`.
///
/// When `status` is not success only `wr_id`, `status`, `qp_num` and `vendor_err` mean anything, as
/// in [`Wc`](crate::Wc). The default, for backends to fill in, has none of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WcEx {
    /// The value of the work request.
    pub wr_id: u64,
    /// The status.
    pub status: WcStatus,
    /// The operation (`ibv_wc_read_opcode`).
    pub opcode: WcOpcode,
    /// The vendor's own code (`ibv_wc_read_vendor_err`).
    pub vendor_err: u32,
    /// The other fields that are valid (`ibv_wc_read_wc_flags`).
    pub wc_flags: WcFlags,
    /// Like [`Wc::byte_len`](crate::Wc::byte_len) (`ibv_wc_read_byte_len`).
    pub byte_len: Option<u32>,
    /// Immediate data as on the wire (`ibv_wc_read_imm_data`); with [`WcFlags::WITH_INV`] the key
    /// that was invalidated, in the machine's order (`ibv_wc_read_invalidated_rkey`).
    pub imm_data: Option<[u8; 4]>,
    /// The local QP (`ibv_wc_read_qp_num`).
    pub qp_num: Option<u32>,
    /// The sender's QP number; UD receives only (`ibv_wc_read_src_qp`).
    pub src_qp: Option<u32>,
    /// Source LID; UD receives only (`ibv_wc_read_slid`).
    pub slid: Option<u32>,
    /// Service level; UD receives only (`ibv_wc_read_sl`).
    pub sl: Option<u8>,
    /// Destination LID path bits; UD receives only (`ibv_wc_read_dlid_path_bits`).
    pub dlid_path_bits: Option<u8>,
    /// When it was added to the CQ, in ticks of the device's clock
    /// ([`DeviceAttrEx::hca_core_clock`](crate::DeviceAttrEx::hca_core_clock),
    /// `ibv_wc_read_completion_ts`).
    pub completion_ts: Option<u64>,
    /// The completion time in nanoseconds of the wall clock
    /// (`ibv_wc_read_completion_wallclock_ns`); in the simulator, since its start.
    pub completion_wallclock_ns: Option<u64>,
}

/// The moderation of events: how many completions, or how long, an event waits
/// (`struct ibv_moderate_cq`, `ibv_modify_cq`).
///
/// Moderation is on when both numbers are above zero. A CQ that is armed then makes its event when
/// `cq_count` completions of the requested type have been added since it was armed, or `cq_period`
/// after the first of them. The default is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CqModeration {
    /// Completions for an event.
    pub cq_count: u16,
    /// Microseconds from the first completion until the event comes at the latest.
    pub cq_period: u16,
}
