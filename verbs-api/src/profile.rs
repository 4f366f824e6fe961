//! Profiles: devices that people have, or fear, by name: their behavior, what they lack, and their
//! limits.

use core::fmt;

use crate::behavior::{
    AckEffect, AtomicCheck, Behavior, Check, DeregBound, Errno, ErrorFires, FaultStatus,
    FlushPostInErr, IllegalOpcode, LimitReadback, MrKeys, Overrun, Placement, PollAfterOverrun,
    PostWrongState, QpAccessStatus, RemoteFaults, Retry7, Rounding, RouteFields, SendByteLen,
    SendInvalAnswer, ShortDatagram, ShortStatus, SqRelease, UdSl, UndefinedFields, UnknownSrq,
    WideValues, ZeroLength,
};
use crate::shown::debug_is_display;
use crate::{Capabilities, Ece, LinkLayer, OdpCaps};

pub use crate::limits::{DeviceLimits, LimitError};
pub use crate::reported::Reported;

/// A kind of device: its choices, its limits, and the capabilities that it lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// The name: that of its driver, if it has one.
    pub name: &'static str,
    /// Its choices where the rules leave one.
    pub behavior: Behavior,
    /// The capabilities that it lacks.
    pub lacks: Capabilities,
    /// The link layers it can have: Ethernet, and InfiniBand if its driver supports that.
    pub link_layers: &'static [LinkLayer],
    /// Its on-demand paging. Without [`Capabilities::ODP`] it has none.
    pub odp: OdpCaps,
    /// The limits. It has 4 completion vectors, as on a machine with 4 processors.
    pub limits: DeviceLimits,
    /// What it reports and no call depends on.
    pub reported: Reported,
    /// The vendor of its options for a queue pair, and those that it supports
    /// ([`Verbs::query_ece`](crate::Verbs::query_ece)), unless it lacks [`Capabilities::ECE`].
    pub ece: Ece,
}

impl Profile {
    /// The specification as we read it, with every capability. The default.
    pub const SPEC: Self = Self::new("spec", Behavior::SPEC);

    /// Soft-RoCE of Linux 6.1, as measured.
    pub const RXE: Self = Self {
        lacks: SOFTWARE_LACKS,
        link_layers: ETHERNET,
        limits: RXE_LIMITS,
        reported: Reported::RXE,
        ..Self::new("rxe", RXE)
    };

    /// Soft-iWARP of Linux 6.1, as measured. An iWARP device has RC alone, connected by rdma_cm,
    /// without immediate data and receiver-not-ready; this one also has no atomics, memory windows,
    /// batches, extended CQs, changes of the sizes of CQs and SRQs, and no regions with addresses
    /// of the program's choice.
    pub const SIW: Self = Self {
        lacks: Capabilities::IWARP_LACKS
            .union(SOFTWARE_LACKS)
            .union(Capabilities::RESIZE_CQ)
            .union(Capabilities::SRQ_RESIZE)
            .union(Capabilities::REG_MR_IOVA)
            .union(Capabilities::ATOMICS)
            .union(Capabilities::MW)
            .union(Capabilities::BATCHES)
            .union(Capabilities::CQ_EX),
        link_layers: ETHERNET,
        limits: SIW_LIMITS,
        reported: Reported::SIW,
        ..Self::new("siw", SIW)
    };

    /// The ConnectX family, from its driver and reports, without flushes and atomic writes
    /// (rdma-core 65). Limits are those of a card and its firmware; these are the specification's.
    pub const MLX5: Self = Self {
        lacks: NO_EXTENSIONS,
        odp: OdpCaps::MLX5,
        limits: POW2_MINUS_1_LIMITS,
        // What logs of NCCL show of these devices.
        ece: Ece::new(0x15b3, 0x3000_0002),
        ..Self::new("mlx5", MLX5)
    };

    /// A device that does not exist: it does everything that the rules allow and a program may not
    /// expect.
    pub const ADVERSARIAL: Self = Self {
        limits: POW2_MINUS_1_LIMITS,
        // The upper bits of both fields are in use.
        ece: Ece::new(0x00fe_dcba, 0x8000_0005),
        ..Self::new("adversarial", ADVERSARIAL)
    };

    /// Every profile.
    pub const ALL: &[Self] = &[
        Self::SPEC,
        Self::RXE,
        Self::SIW,
        Self::MLX5,
        Self::ADVERSARIAL,
    ];

    const fn new(name: &'static str, behavior: Behavior) -> Self {
        Self {
            name,
            behavior,
            lacks: Capabilities::empty(),
            link_layers: &[LinkLayer::Ethernet, LinkLayer::InfiniBand],
            odp: OdpCaps::EVERY,
            limits: DeviceLimits::SPEC,
            reported: Reported::SPEC,
            // A vendor that is unknown, and two options to tell apart.
            ece: Ece::new(0x00ff_ffff, 0x3),
        }
    }

    /// The profile of this name.
    ///
    /// # Errors
    /// Lists the names that exist.
    pub fn named(name: &str) -> Result<Self, UnknownProfile> {
        let found = Self::ALL.iter().find(|profile| profile.name == name);
        found.copied().ok_or_else(|| UnknownProfile {
            name: name.to_owned(),
        })
    }
}

impl Default for Profile {
    fn default() -> Self {
        Self::SPEC
    }
}

/// Its name.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// No profile has this name. The message lists those that exist.
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownProfile {
    name: String,
}

impl fmt::Display for UnknownProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Profile::ALL.iter().map(|profile| profile.name).collect();
        let (name, names) = (&self.name, names.join(", "));
        write!(f, "no profile is called {name}; there are {names}")
    }
}

debug_is_display!(UnknownProfile);

impl core::error::Error for UnknownProfile {}

const ETHERNET: &[LinkLayer] = &[LinkLayer::Ethernet];

const RXE: Behavior = Behavior {
    error_fires_solicited: ErrorFires::FlushedReceives,
    cqe_rounding: Rounding::Pow2Minus1,
    overrun: Overrun::DropNew,
    overrun_nak: false,
    poll_after_overrun: PollAfterOverrun::Empty,
    sq_release: SqRelease::Completion,
    illegal_opcode: IllegalOpcode::LocQpOpErr,
    ud_over_mtu: Check::Accepted,
    route_fields: RouteFields::TrafficClass,
    grh_flag_rc: true,
    send_key_status: FaultStatus::LocQpOpErr,
    recv_fault_status: FaultStatus::LocQpOpErr,
    recv_short_status: ShortStatus::LocQpOpErr,
    read_without_depth: Check::Accepted,
    qp_access_status: QpAccessStatus::RemInvReqErr,
    qp_access_event: false,
    atomic_check: AtomicCheck::Post,
    dereg_bound: DeregBound::Einval,
    nak_send_inval: SendInvalAnswer::Ack,
    bind_wr_type_1: Check::Accepted,
    bind_domain: Check::Accepted,
    mw_access_range: Check::Accepted,
    inv_other_qp: Check::Accepted,
    qp_req_event: false,
    bind_bad_handle: Check::Accepted,
    wr_rounding: Rounding::Pow2Minus1,
    zero_len_mr: ZeroLength::WithinPage,
    zero_based_mr: false,
    mr_keys: MrKeys::SameIfRemote,
    retry7: Retry7::Unlimited,
    post_wrong_state: PostWrongState::Queued,
    flush_post_in_err: FlushPostInErr::Sends,
    sq_drained_always: true,
    sqd_resumes: false,
    mtu_above_active: Check::Accepted,
    rd_atomic_rounding: Rounding::Pow2,
    send_mtu: Check::Accepted,
    read_mtu: Check::Accepted,
    sqe: false,
    wrong_cur_state: Check::Accepted,
    bad_pkey_index: Check::Accepted,
    wide_values: WideValues::TimeoutRefused,
    ud_short_recv: ShortDatagram::LocQpOpErr,
    last_wqe: false,
    srq_limit_at_creation: true,
    srq_checks_qp_pd: true,
    uc_srq: Check::Accepted,
    ud_sl: UdSl::Zero,
    placement: Placement::Unpromised,
    ..Behavior::SPEC
};

const SIW: Behavior = Behavior {
    error_fires_solicited: ErrorFires::None,
    arm_downgrade: true,
    arm_bad_handle: Check::Accepted,
    recv_se_fires: false,
    send_se_fires_local: true,
    cqe_rounding: Rounding::Pow2,
    overrun: Overrun::DropNew,
    poll_after_overrun: PollAfterOverrun::Empty,
    sq_release: SqRelease::Completion,
    send_key_status: FaultStatus::LocQpOpErr,
    send_range_status: FaultStatus::LocQpOpErr,
    recv_fault_status: FaultStatus::GeneralErr,
    flush_post_in_err: FlushPostInErr::None,
    number_reuse: true,
    wr_rounding: Rounding::Pow2,
    zero_len_mr: ZeroLength::Refused,
    zero_based_mr: false,
    mr_keys: MrKeys::Same,
    negative_errno: true,
    srq_query: false,
    srq_limit_readback: LimitReadback::Kept,
    srq_limit_at_creation: true,
    srq_recv_sizes: Check::Refused,
    last_wqe: false,
    rd_atomic_rounding: Rounding::Pow2,
    remote_faults: RemoteFaults::EndsConnection,
    rnr: false,
    placement: Placement::Unpromised,
    ..Behavior::SPEC
};

const MLX5: Behavior = Behavior {
    arm_sees_unpolled: true,
    merge_unread_events: true,
    arm_bad_handle: Check::Accepted,
    cqe_rounding: Rounding::Pow2Minus1,
    cqe_purge: true,
    sge_errno: Errno::Enomem,
    illegal_opcode: IllegalOpcode::LocQpOpErr,
    send_byte_len: SendByteLen::Reads,
    atomic_check: AtomicCheck::Longer,
    mw_bind_range: Check::Accepted,
    bind_err_wc: false,
    bind_bad_handle: Check::Accepted,
    mr_keys: MrKeys::Same,
    wide_values: WideValues::Truncated,
    roce_v1: true,
    lost_frees_srq_slot: false,
    ..Behavior::SPEC
};

const ADVERSARIAL: Behavior = Behavior {
    xrc_unknown_srq: UnknownSrq::RemOpErr,
    merge_unread_events: true,
    arm_no_channel: Check::Refused,
    shrink_below: Check::Accepted,
    poll_after_overrun: PollAfterOverrun::Empty,
    cqe_rounding: Rounding::Pow2Minus1,
    wr_rounding: Rounding::Pow2Minus1,
    shrink: false,
    comm_est: true,
    sge_errno: Errno::Enomem,
    illegal_opcode: IllegalOpcode::LocQpOpErr,
    ud_over_mtu: Check::Accepted,
    ud_short_recv: ShortDatagram::LocLenErr,
    ud_sl: UdSl::Zero,
    unowned_gid: Check::Accepted,
    route_fields: RouteFields::TrafficClass,
    send_byte_len: SendByteLen::Reads,
    undefined_wc_fields: UndefinedFields::Garbage,
    number_reuse: true,
    key_reuse: true,
    recv_sgl_overhang: Check::Refused,
    zero_len_sge_check: Check::Refused,
    spurious_events: true,
    placement: Placement::Late,
    ack_effect: AckEffect::Late,
    ..Behavior::SPEC
};

/// `ibv_query_device` of rxe0 on Linux 6.1, and the most inline data that a queue pair is made
/// with.
const RXE_LIMITS: DeviceLimits = DeviceLimits {
    max_ah: 32_767,
    max_cq: 1 << 20,
    max_cqe: 32_767,
    max_inline_data: 512,
    max_mcast_grp: 8192,
    max_mcast_qp_attach: 56,
    max_mr: 524_287,
    max_mr_size: u64::MAX,
    max_mw: 524_287,
    max_pd: 1 << 20,
    max_qp: 1_048_560,
    max_qp_init_rd_atom: 128,
    max_qp_rd_atom: 128,
    max_qp_wr: 1 << 20,
    max_sge: 32,
    max_srq: 917_503,
    max_srq_sge: 27,
    max_srq_wr: 1 << 20,
    ..DeviceLimits::SPEC
};

/// `ibv_query_device` of siw0 on Linux 6.1, and the most inline data that a queue pair is created
/// with.
const SIW_LIMITS: DeviceLimits = DeviceLimits {
    max_ah: 0,
    max_cq: 102_400,
    max_cqe: 3_276_800,
    max_inline_data: 80,
    max_mcast_grp: 0,
    max_mcast_qp_attach: 0,
    max_mr: 1_024_000,
    max_mr_size: u64::MAX,
    max_mw: 0,
    max_pd: 102_400,
    max_qp: 102_400,
    max_qp_init_rd_atom: 128,
    max_qp_rd_atom: 128,
    max_qp_wr: 32_768,
    max_sge: 6,
    max_srq: 102_400,
    max_srq_sge: 6,
    max_srq_wr: 327_680,
    ..DeviceLimits::SPEC
};

/// A CQ of the greatest size has exactly that.
const POW2_MINUS_1_LIMITS: DeviceLimits = DeviceLimits {
    max_cqe: 4_194_303,
    ..DeviceLimits::SPEC
};

/// The memory placement extensions, which devices have since 2022 (Linux 6.2), or not at all.
const NO_EXTENSIONS: Capabilities = Capabilities::FLUSH.union(Capabilities::ATOMIC_WRITE);

/// What neither driver of Linux 6.1 for devices of software can do: change a region, null regions,
/// regions of a dma-buf; on-demand paging; device memory, parent domains; moderate CQs, ignore an
/// overrun, tell their time and that of a completion; flushes, atomic writes; agree on options of a
/// vendor.
const SOFTWARE_LACKS: Capabilities = Capabilities::REREG_MR
    .union(Capabilities::NULL_MR)
    .union(Capabilities::DMABUF)
    .union(Capabilities::ODP)
    .union(Capabilities::ODP_IMPLICIT)
    .union(Capabilities::DEVICE_MEMORY)
    .union(Capabilities::PARENT_DOMAIN)
    .union(Capabilities::RT_VALUES)
    .union(Capabilities::XRC)
    .union(Capabilities::CQ_MODERATION)
    .union(Capabilities::IGNORE_OVERRUN)
    .union(Capabilities::WC_TIMESTAMP)
    .union(Capabilities::ECE)
    .union(NO_EXTENSIONS);
