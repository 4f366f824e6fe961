//! Behavior: where the specification or practice leaves a choice, which answer a device gives.
//!
//! A choice is a *knob*. Its default is how we read the specification; a
//! [`Profile`](crate::profile::Profile) has a value for each knob. The suite asserts the declared
//! value, and never skips.

use core::fmt;

use crate::WcStatus;
use crate::shown::debug_is_display;

macro_rules! knob_values {
    ($( $(#[$meta:meta])* $name:ident { $( $(#[$vmeta:meta])* $variant:ident = $text:literal; )* } )*) => { $(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$vmeta])* $variant, )*
        }

        impl KnobValue for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),*];

            fn text(self) -> &'static str {
                match self { $( Self::$variant => $text, )* }
            }
        }
    )* };
}

macro_rules! knobs {
    ($( $(#[$meta:meta])* $name:ident: $ty:ty = $default:expr, [$($rule:literal),+]; )*) => {
        /// One answer for every knob.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Behavior {
            $( $(#[$meta])* pub $name: $ty, )*
        }

        impl Behavior {
            /// How we read the specification; the default.
            pub const SPEC: Self = Self { $( $name: $default, )* };

            /// The value of the knob named `knob`, as text; `None` if there is no such knob.
            pub fn get(&self, knob: &str) -> Option<&'static str> {
                match knob {
                    $( stringify!($name) => Some(self.$name.text()), )*
                    _ => None,
                }
            }

            /// Sets a knob by its name to a value by its name.
            ///
            /// # Errors
            /// Lists the knobs or the values that exist.
            pub fn set(&mut self, knob: &str, value: &str) -> Result<(), UnknownKnob> {
                match knob {
                    $( stringify!($name) => {
                        self.$name = parse(knob, value)?;
                        Ok(())
                    } )*
                    _ => Err(UnknownKnob {
                        message: format!(
                            "no knob is called {knob}; there are {}",
                            Knob::ALL.iter().map(|k| k.name).collect::<Vec<_>>().join(", ")
                        ),
                    }),
                }
            }
        }

        /// A device's behavior as far as known: `None` for a knob that is not described.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Declared {
            $( $(#[$meta])* pub $name: Option<$ty>, )*
        }

        impl Declared {
            /// The declared value of the knob named `knob`, as text.
            pub fn get(&self, knob: &str) -> Option<&'static str> {
                match knob {
                    $( stringify!($name) => self.$name.map(KnobValue::text), )*
                    _ => None,
                }
            }
        }

        impl From<Behavior> for Declared {
            fn from(behavior: Behavior) -> Self {
                Self { $( $name: Some(behavior.$name), )* }
            }
        }

        impl Knob {
            /// Every knob.
            pub const ALL: &'static [Knob] = &[
                $( Knob { name: stringify!($name), rules: &[$($rule),+], values: texts::<$ty> }, )*
            ];
        }
    };
}

/// A value that a knob can have.
pub trait KnobValue: Copy + PartialEq + 'static {
    /// Every value.
    const ALL: &'static [Self];

    /// The name in configuration and reports.
    fn text(self) -> &'static str;
}

impl KnobValue for bool {
    const ALL: &'static [Self] = &[false, true];

    fn text(self) -> &'static str {
        if self { "yes" } else { "no" }
    }
}

/// A knob, by name.
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    /// The name, such as `arm_downgrade`.
    pub name: &'static str,
    /// The rules it bears on.
    pub rules: &'static [&'static str],
    values: fn() -> Vec<&'static str>,
}

impl Knob {
    /// The names of its values.
    pub fn values(&self) -> Vec<&'static str> {
        (self.values)()
    }
}

/// No such knob, or no such value of the knob.
#[derive(Clone, PartialEq, Eq)]
pub struct UnknownKnob {
    message: String,
}

impl fmt::Display for UnknownKnob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

debug_is_display!(UnknownKnob);

impl core::error::Error for UnknownKnob {}

impl Default for Behavior {
    fn default() -> Self {
        Self::SPEC
    }
}

fn texts<T: KnobValue>() -> Vec<&'static str> {
    T::ALL.iter().map(|value| value.text()).collect()
}

fn parse<T: KnobValue>(knob: &str, value: &str) -> Result<T, UnknownKnob> {
    T::ALL
        .iter()
        .copied()
        .find(|v| v.text() == value)
        .ok_or_else(|| UnknownKnob {
            message: format!(
                "{knob} cannot be {value}; it can be {}",
                texts::<T>().join(", ")
            ),
        })
}

knob_values! {
    /// The error completions that satisfy a solicited request.
    ErrorFires {
        /// All of them.
        All = "all";
        /// Error completions of receives.
        Receives = "receives";
        /// Flushed receives; a failed one counts if its message is solicited.
        FlushedReceives = "flushed_receives";
        /// None.
        None = "none";
    }
    /// How a size or a depth is rounded up. 0 stays 0.
    Rounding {
        /// No rounding.
        Exact = "exact";
        /// To the next 2^n - 1.
        Pow2Minus1 = "pow2_minus_1";
        /// To the next 2^n.
        Pow2 = "pow2";
    }
    /// The effect of an overrun.
    Overrun {
        /// The CQ is dead: one `CQ_ERR`; each QP that could not complete is in error, with
        /// `QP_FATAL`.
        Dead = "dead";
        /// The new completion is lost, `CQ_ERR` for each; the CQ goes on; a responder whose
        /// receive was lost goes to error, without an event.
        DropNew = "drop_new";
    }
    /// When a send queue slot becomes free.
    SqRelease {
        /// When a completion that covers it is polled.
        Poll = "poll";
        /// When the work request completes.
        Completion = "completion";
    }
    /// For which sends `byte_len` of the completion is set.
    SendByteLen {
        /// All.
        All = "all";
        /// RDMA Reads and atomics.
        Reads = "reads";
    }
    /// The content of completion fields that mean nothing.
    UndefinedFields {
        /// Zero.
        Zero = "zero";
        /// Garbage, drawn from the seed.
        Garbage = "garbage";
    }
    /// The result of polling a dead CQ after its older completions.
    PollAfterOverrun {
        /// A failure.
        Error = "error";
        /// No completion.
        Empty = "empty";
    }
    /// An errno value.
    Errno {
        /// `EINVAL`
        Einval = "einval";
        /// `ENOMEM`
        Enomem = "enomem";
    }
    /// The answer of a device that may lack a check.
    Check {
        /// The device checks, and refuses.
        Refused = "refused";
        /// The device does not check, and accepts.
        Accepted = "accepted";
    }
    /// How an opcode that the transport does not have is refused.
    IllegalOpcode {
        /// At the post, with `EINVAL`.
        Einval = "einval";
        /// By a completion with `LOC_QP_OP_ERR`.
        LocQpOpErr = "loc_qp_op_err";
    }
    /// The status of work whose own memory is bad.
    FaultStatus {
        /// `LOC_PROT_ERR`
        LocProtErr = "loc_prot_err";
        /// `LOC_QP_OP_ERR`
        LocQpOpErr = "loc_qp_op_err";
        /// `GENERAL_ERR`
        GeneralErr = "general_err";
    }
    /// The status of a receive that is too small, and of the send that it was for.
    ShortStatus {
        /// `LOC_LEN_ERR`, and `REM_INV_REQ_ERR` at the sender.
        LocLenErr = "loc_len_err";
        /// `LOC_QP_OP_ERR`, and `REM_OP_ERR` at the sender.
        LocQpOpErr = "loc_qp_op_err";
    }
    /// Whether a region can have no bytes.
    ZeroLength {
        /// The operation is accepted.
        Accepted = "accepted";
        /// The operation is accepted, unless its memory starts on a page: then no page holds it.
        WithinPage = "within_page";
        /// The operation is refused.
        Refused = "refused";
    }
    /// The keys of a region.
    MrKeys {
        /// The lkey is never an rkey.
        Apart = "apart";
        /// Both are the same.
        Same = "same";
        /// Both are the same, but a region without rights for peers has rkey 0, which opens
        /// nothing.
        SameIfRemote = "same_if_remote";
    }
    /// The effect on a memory window of deregistering the region that it is bound to.
    DeregBound {
        /// The region stays: `EBUSY`.
        Ebusy = "ebusy";
        /// The region stays: `EINVAL`.
        Einval = "einval";
        /// The region is deregistered; the window opens no memory any more.
        Orphan = "orphan";
    }
    /// The answer to a Send whose invalidation fails.
    SendInvalAnswer {
        /// None: the Send is retried without result.
        Nothing = "nothing";
        /// With a remote access error.
        Nak = "nak";
        /// An acknowledgement, as for success.
        Ack = "ack";
    }
    /// How an atomic of wrong length or alignment fails.
    AtomicCheck {
        /// Either fails: the length with `LOC_LEN_ERR`, the alignment with `REM_INV_REQ_ERR`.
        Strict = "strict";
        /// Like `Strict`, but a list of more than 8 bytes is accepted.
        Longer = "longer";
        /// `EINVAL` at the post, but a list of more than 8 bytes is taken.
        Post = "post";
    }
    /// The status of an operation that the responder's queue pair does not allow.
    QpAccessStatus {
        /// `REM_ACCESS_ERR`
        RemAccessErr = "rem_access_err";
        /// `REM_INV_REQ_ERR`
        RemInvReqErr = "rem_inv_req_err";
    }
    /// The status of a send to an SRQ outside the peer's XRC domain.
    UnknownSrq {
        /// `REM_INV_REQ_ERR`
        RemInvReqErr = "rem_inv_req_err";
        /// `REM_OP_ERR`
        RemOpErr = "rem_op_err";
    }
    /// The meaning of a retry count of 7, without an answer.
    Retry7 {
        /// Seven retries.
        Seven = "seven";
        /// Retries without a limit.
        Unlimited = "unlimited";
    }
    /// The effect of posting a send before RTS.
    PostWrongState {
        /// `EINVAL`, and nothing is queued.
        Refused = "refused";
        /// `EINVAL`, but it is queued all the same, as is what follows it in its list: it runs in
        /// RTS, with the next send.
        Queued = "queued";
    }
    /// The effect of an unreliable message that is longer than its receive.
    ShortDatagram {
        /// The message is dropped, and the receive stays.
        Drop = "drop";
        /// The receive completes with `LOC_LEN_ERR`, and the queue pair goes to ERR.
        LocLenErr = "loc_len_err";
        /// The receive completes with `LOC_QP_OP_ERR`, and the queue pair goes to ERR.
        LocQpOpErr = "loc_qp_op_err";
    }
    /// The parts of its address handle's global route that a datagram carries.
    RouteFields {
        /// Traffic class, flow label and hop limit.
        All = "all";
        /// The traffic class. The hop limit is that of the network's route, the flow label 0.
        TrafficClass = "traffic_class";
    }
    /// The `sl` in the completion of a datagram that came over Ethernet, which has no service
    /// levels.
    UdSl {
        /// 0.
        Zero = "zero";
        /// The packet's type, as the ConnectX family reports it: 8 for UDP, and 1 for IPv6 or 2 for
        /// IPv4.
        PacketType = "packet_type";
    }
    /// When a Send or RDMA Write of a connected queue pair is done.
    SendDone {
        /// When the responder has acknowledged it.
        Acknowledged = "acknowledged";
        /// When all of it is on its way.
        Sent = "sent";
    }
    /// The effect of a request that the responder refuses, and of any other error of a queue pair,
    /// on the connection.
    RemoteFaults {
        /// The request completes with the status of the refusal. The other queue pair stays as it
        /// is until its own request fails.
        Answered = "answered";
        /// The connection ends, as on iWARP: both queue pairs go to ERR. A Send or RDMA Write that
        /// has left completes with success, whatever became of it, and other work with
        /// `WR_FLUSH_ERR`. If rdma_cm has made the connection, both sides get `Disconnected`.
        EndsConnection = "ends_connection";
    }
    /// When an acknowledgement counts.
    AckEffect {
        /// At its arrival.
        Arrival = "arrival";
        /// At its arrival or up to 8 us later, but before the time-out of the send: drawn from the
        /// seed, for each queue pair by itself. The sends of a queue pair keep their order. Where
        /// only the program moves the clock (`Mode::Inline` of the simulator), at its arrival.
        Late = "late";
    }
    /// When the data of a message is in its place.
    Placement {
        /// At its arrival and in order, as the device promises
        /// ([`query_qp_data_in_order`](crate::Verbs::query_qp_data_in_order)).
        Arrival = "arrival";
        /// At its arrival and in order, but the device promises nothing.
        Unpromised = "unpromised";
        /// The end of the data at once, and the rest as late as allowed: when a completion is
        /// polled, a later message of the queue pair starts, or a verb ends the device's use of the
        /// memory. In memory registered with
        /// [`RELAXED_ORDERING`](crate::Access::RELAXED_ORDERING), in an order drawn from the seed.
        Late = "late";
    }
    /// The limit of an SRQ that a query gives after its event was raised.
    LimitReadback {
        /// 0: no event is asked for.
        Zero = "zero";
        /// The limit, as it was set.
        Kept = "kept";
    }
    /// The effect of a `timeout`, `retry_cnt`, `rnr_retry` or `min_rnr_timer` that is wider than
    /// its field of 5 or 3 bits.
    WideValues {
        /// The change is refused with `EINVAL`.
        Refused = "refused";
        /// Only a `timeout` is refused. Others are kept. Packets have the bits that fit.
        TimeoutRefused = "timeout_refused";
        /// The bits that fit are taken.
        Truncated = "truncated";
    }
    /// The work posted in ERR that is flushed; other work never completes.
    FlushPostInErr {
        /// All of it.
        All = "all";
        /// Sends.
        Sends = "sends";
        /// None.
        None = "none";
    }
}

impl Rounding {
    /// The size that is used when this one is asked for.
    pub fn up(self, asked: u32) -> u32 {
        match self {
            _ if asked == 0 => 0,
            Self::Exact => asked,
            Self::Pow2Minus1 => (asked + 1).next_power_of_two() - 1,
            Self::Pow2 => asked.next_power_of_two(),
        }
    }
}

impl FaultStatus {
    /// The status of the completion.
    pub fn status(self) -> WcStatus {
        match self {
            Self::LocProtErr => WcStatus::LocProtErr,
            Self::LocQpOpErr => WcStatus::LocQpOpErr,
            Self::GeneralErr => WcStatus::GeneralErr,
        }
    }
}

impl ShortDatagram {
    /// The status of the receive's completion, if there is one.
    pub fn status(self) -> Option<WcStatus> {
        match self {
            Self::Drop => None,
            Self::LocLenErr => Some(WcStatus::LocLenErr),
            Self::LocQpOpErr => Some(WcStatus::LocQpOpErr),
        }
    }
}

knobs! {
    /// A completion that is present and unpolled when the CQ is armed makes an event.
    arm_sees_unpolled: bool = false, ["CQ-ARM-03", "CQ-ARM-25", "CQ-ARM-30"];
    /// An event is merged into an unread one of the same CQ.
    merge_unread_events: bool = false, ["CQ-ARM-13", "CQ-ARM-49"];
    /// Error completions satisfy a solicited request.
    error_fires_solicited: ErrorFires = ErrorFires::All, ["CQ-ARM-09", "CQ-ARM-10", "CQ-ARM-42"];
    /// Next, then solicited, leaves solicited in force.
    arm_downgrade: bool = false, ["CQ-ARM-15", "CQ-ARM-16"];
    /// A receive of a solicited message satisfies a solicited request.
    recv_se_fires: bool = true, ["CQ-ARM-06", "CQ-ARM-07"];
    /// A send with SOLICITED satisfies a solicited request on the sender's own CQ.
    send_se_fires_local: bool = false, ["CQ-ARM-24", "CQ-ARM-44"];
    /// Arming a CQ that has no channel.
    arm_no_channel: Check = Check::Accepted, ["CQ-ARM-48"];
    /// Arming a CQ whose handle is corrupt in the C structure.
    arm_bad_handle: Check = Check::Refused, ["CQ-ARM-21"];
    /// How CQ sizes are rounded.
    cqe_rounding: Rounding = Rounding::Exact, ["CQ-CREATE-01", "CQ-RESIZE-08"];
    /// How the sizes of send queues, receive queues and SRQs are rounded.
    wr_rounding: Rounding = Rounding::Exact, ["QP-CREATE-01", "SRQ-01", "SRQ-09"];
    /// A resize to a smaller size takes effect; otherwise the size stays.
    shrink: bool = true, ["CQ-RESIZE-09", "CQ-RESIZE-21"];
    /// A size below the completions present.
    shrink_below: Check = Check::Refused, ["CQ-RESIZE-06"];
    /// What an overrun does.
    overrun: Overrun = Overrun::Dead, ["CQ-OVR-02", "CQ-OVR-03", "CQ-OVR-04", "CQ-OVR-05"];
    /// The requester of a message whose completion is lost to an overrun fails with `REM_OP_ERR`;
    /// otherwise it gets no answer.
    overrun_nak: bool = true, ["CQ-OVR-04"];
    /// Polling after an overrun.
    poll_after_overrun: PollAfterOverrun = PollAfterOverrun::Error, ["CQ-POLL-04", "CQ-OVR-02"];
    /// Unpolled completions of a QP that is destroyed or reset are removed.
    cqe_purge: bool = false, ["CQ-DESTROY-08"];
    /// When a send queue slot becomes free.
    sq_release: SqRelease = SqRelease::Poll, ["SQ-05", "SRQ-19"];
    /// A post that fails returns the number of its error with a minus sign.
    negative_errno: bool = false, ["SQ-02"];
    /// The error for too many SGEs, or too much inline data.
    sge_errno: Errno = Errno::Einval, ["SQ-06", "SQ-09"];
    /// How an opcode that the transport does not have is refused.
    illegal_opcode: IllegalOpcode = IllegalOpcode::Einval, ["SQ-20"];
    /// A UD message above the MTU completes with success and is not sent; otherwise it fails with
    /// `LOC_LEN_ERR`.
    ud_over_mtu: Check = Check::Refused, ["UD-10"];
    /// The service level of a datagram that came over Ethernet.
    ud_sl: UdSl = UdSl::PacketType, ["WC-15"];
    /// `GRH` is set in the completions of connected receives.
    grh_flag_rc: bool = false, ["WC-14"];
    /// `byte_len` of send completions.
    send_byte_len: SendByteLen = SendByteLen::All, ["WC-09"];
    /// Fields of a completion that mean nothing for its kind or status.
    undefined_wc_fields: UndefinedFields = UndefinedFields::Zero, ["WC-01"];
    /// The status of a send or write from memory that its key does not allow.
    send_key_status: FaultStatus = FaultStatus::LocProtErr, ["SQ-22", "WC-24", "WC-33"];
    /// The status of a send or write from outside the region of its key.
    send_range_status: FaultStatus = FaultStatus::LocProtErr, ["SQ-22"];
    /// The status of a read into memory that does not allow it.
    read_fault_status: FaultStatus = FaultStatus::LocProtErr, ["SQ-22"];
    /// The status of a receive into memory that does not allow it.
    recv_fault_status: FaultStatus = FaultStatus::LocProtErr, ["RQ-07", "WC-24"];
    /// The status of a receive of RC that is too small, and of the send.
    recv_short_status: ShortStatus = ShortStatus::LocLenErr, ["RQ-05", "WC-22", "WC-27"];
    /// A read on a QP whose `max_rd_atomic` is 0 is refused or fails with `LOC_QP_OP_ERR`;
    /// otherwise it waits forever.
    read_without_depth: Check = Check::Refused, ["RDMA-20"];
    /// An RDMA operation that the responder's queue pair does not allow.
    qp_access_status: QpAccessStatus = QpAccessStatus::RemAccessErr, ["RDMA-04"];
    /// The responder gets `QP_ACCESS_ERR` for an access violation.
    qp_access_event: bool = true, ["RDMA-09", "ASYNC-15"];
    /// A wrong length or alignment of an atomic.
    atomic_check: AtomicCheck = AtomicCheck::Strict, ["ATOM-03", "ATOM-04"];
    /// The responder gets `QP_REQ_ERR` for an invalid request, if no receive reports it.
    qp_req_event: bool = true, ["ASYNC-14"];
    /// Deregistering a region to which a memory window is bound.
    dereg_bound: DeregBound = DeregBound::Ebusy, ["MR-07"];
    /// The answer to an RC Send whose invalidation fails. The receive fails in any case.
    nak_send_inval: SendInvalAnswer = SendInvalAnswer::Nothing, ["MW-18"];
    /// A window beyond its region, when it is bound; if accepted, what is outside opens nothing.
    mw_bind_range: Check = Check::Refused, ["MW-08"];
    /// An unsignaled bind that fails makes a completion.
    bind_err_wc: bool = true, ["MW-24"];
    /// A bind of a window or region whose handle is corrupt in the C structure.
    bind_bad_handle: Check = Check::Refused, ["MW-28"];
    /// A bind of a window of type 1 by a work request.
    bind_wr_type_1: Check = Check::Refused, ["MW-05"];
    /// Domains in a bind; if accepted, only a window of type 2 and the queue pair must share
    /// theirs.
    bind_domain: Check = Check::Refused, ["MW-09"];
    /// Access beyond a window, within its region.
    mw_access_range: Check = Check::Refused, ["MW-11"];
    /// A window of type 2 that is invalidated by or for a queue pair on which it is not bound.
    inv_other_qp: Check = Check::Refused, ["MW-18", "MW-25"];
    /// A memory region of no bytes.
    zero_len_mr: ZeroLength = ZeroLength::Accepted, ["MR-10"];
    /// A zero-based region has address 0; otherwise that of its memory, as if it were not.
    zero_based_mr: bool = true, ["RDMA-21", "MR-21"];
    /// The keys of a region.
    mr_keys: MrKeys = MrKeys::Apart, ["MR-03"];
    /// A retry count of 7.
    retry7: Retry7 = Retry7::Seven, ["TMR-04"];
    /// A send that is posted before RTS.
    post_wrong_state: PostWrongState = PostWrongState::Refused, ["QP-STATE-18"];
    /// Which work that is posted in ERR is flushed.
    flush_post_in_err: FlushPostInErr = FlushPostInErr::All, ["QP-STATE-21", "WC-25"];
    /// `SQ_DRAINED` is raised even if it was not asked for.
    sq_drained_always: bool = false, ["QP-STATE-11", "ASYNC-16"];
    /// Sends that were held in SQD run when the QP comes back to RTS; otherwise with the next send.
    sqd_resumes: bool = true, ["QP-STATE-10"];
    /// `COMM_EST` is raised, once, when the first message arrives on a connected QP in RTR.
    comm_est: bool = false, ["QP-STATE-24", "ASYNC-08"];
    /// A path MTU above the port's active one; if accepted, up to the port's greatest.
    mtu_above_active: Check = Check::Refused, ["QP-STATE-28"];
    /// How `max_rd_atomic` and `max_dest_rd_atomic` are rounded.
    rd_atomic_rounding: Rounding = Rounding::Exact, ["QP-STATE-30"];
    /// A Send that was cut for another path MTU than the responder's QP has; RDMA Writes are
    /// refused in any case.
    send_mtu: Check = Check::Refused, ["RQ-14", "UC-10"];
    /// The answer to an RDMA Read that was cut for another path MTU than the reader's; if accepted,
    /// the packets are taken for as many sequence numbers as the read has, and of smaller ones the
    /// rest is missing.
    read_mtu: Check = Check::Refused, ["RDMA-28"];
    /// The next QP reuses the number of a destroyed one.
    number_reuse: bool = false, ["QP-DESTROY-06"];
    /// The next region reuses the keys of a deregistered one.
    key_reuse: bool = false, ["MR-17"];
    /// A UC or UD QP whose send fails goes to SQE; otherwise to ERR.
    sqe: bool = true, ["QP-STATE-15"];
    /// A wrong current state in a change of a QP; if accepted, it is taken for the real one.
    wrong_cur_state: Check = Check::Refused, ["QP-STATE-09"];
    /// The limit of an SRQ that a query gives after the event was raised: 0, or still the limit.
    srq_limit_readback: LimitReadback = LimitReadback::Zero, ["SRQ-06"];
    /// An SRQ with fewer receives than a new limit raises the event at once; otherwise when the
    /// next receive is taken.
    srq_limit_at_once: bool = false, ["SRQ-07"];
    /// The slot of a receive of an SRQ is free when its completion is lost; otherwise it stays
    /// taken.
    lost_frees_srq_slot: bool = true, ["SRQ-20"];
    /// An SRQ can be queried; otherwise that is refused with `EOPNOTSUPP`.
    srq_query: bool = true, ["SRQ-16"];
    /// The limit given when an SRQ is made is armed; otherwise it is ignored.
    srq_limit_at_creation: bool = false, ["SRQ-01"];
    /// Receives of an SRQ are checked against the domain of the QP that takes them; otherwise
    /// against the SRQ's.
    srq_checks_qp_pd: bool = false, ["SRQ-12"];
    /// Sizes of a receive queue above the device's limits, for a QP that has an SRQ instead.
    srq_recv_sizes: Check = Check::Accepted, ["QP-CREATE-04"];
    /// `QP_LAST_WQE_REACHED` is raised for a QP with an SRQ that goes to ERR.
    last_wqe: bool = true, ["QP-FLUSH-05", "ASYNC-18"];
    /// A UC queue pair with an SRQ.
    uc_srq: Check = Check::Refused, ["QP-CREATE-04"];
    /// An XRC message to an SRQ outside the domain.
    xrc_unknown_srq: UnknownSrq = UnknownSrq::RemInvReqErr, ["XRC-06"];
    /// An index outside the P_Key table; if accepted, it stands for the default P_Key.
    bad_pkey_index: Check = Check::Refused, ["QP-STATE-27"];
    /// A receive that is posted in RESET; if accepted, it is used later.
    post_recv_reset: Check = Check::Refused, ["QP-STATE-19"];
    /// A change from RESET to ERR.
    reset_to_err: Check = Check::Refused, ["QP-STATE-07"];
    /// Values that are wider than their fields, in a change of a QP.
    wide_values: WideValues = WideValues::Refused, ["TMR-07"];
    /// On Ethernet, an address vector whose destination GID no device has; if refused, with
    /// `ETIMEDOUT` when a QP goes to RTR or the address handle is made. Linux waits a second for an
    /// answer first, the simulator does not.
    unowned_gid: Check = Check::Refused, ["AH-07"];
    /// A RoCE port has each GID twice: first for version 1 of RoCE, and then for version 2.
    roce_v1: bool = false, ["DEV-18"];
    /// Packets for a queue pair in INIT are kept until it is ready; otherwise they are dropped.
    buffer_when_not_ready: bool = false, ["QP-STATE-23"];
    /// When an RC Send or RDMA Write is done.
    send_done: SendDone = SendDone::Acknowledged, ["SQ-15"];
    /// What a request that the responder refuses does to the connection.
    remote_faults: RemoteFaults = RemoteFaults::Answered, ["RDMA-30"];
    /// A receive whose list reaches outside its memory, where the message does not.
    recv_sgl_overhang: Check = Check::Accepted, ["RQ-08"];
    /// An RC message that finds no receive is asked for again later; otherwise the connection ends.
    rnr: bool = true, ["RNR-01"];
    /// A UC or UD message that is too long for the receive.
    ud_short_recv: ShortDatagram = ShortDatagram::Drop, ["UD-09", "UC-06"];
    /// Which parts of its address handle's global route a datagram carries.
    route_fields: RouteFields = RouteFields::All, ["UD-20"];
    /// An address handle of another protection domain than the queue pair's.
    ah_pd_check: Check = Check::Refused, ["UD-12"];
    /// An invalid key in a scatter/gather entry of no bytes.
    zero_len_sge_check: Check = Check::Accepted, ["SQ-23"];
    /// A completion that is lost to an overrun still satisfies a request: its event finds nothing
    /// new.
    spurious_events: bool = false, ["CQ-ARM-51"];
    /// When the data of a message is in its place.
    placement: Placement = Placement::Arrival, ["RDMA-26", "RO-02", "RO-06"];
    /// When the acknowledgement of a Send or RDMA Write counts.
    ack_effect: AckEffect = AckEffect::Arrival, ["CQ-POLL-08", "CQ-POLL-13"];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_of_every_knob_can_be_set_and_read_by_name() {
        for knob in Knob::ALL {
            for value in knob.values() {
                let mut behavior = Behavior::SPEC;
                behavior.set(knob.name, value).unwrap();
                assert_eq!(behavior.get(knob.name), Some(value));
            }
        }
    }

    #[test]
    fn an_unknown_knob_or_value_says_what_there_is() {
        let mut behavior = Behavior::SPEC;
        assert!(
            behavior
                .set("arm", "yes")
                .unwrap_err()
                .to_string()
                .contains("arm_downgrade")
        );
        let error = behavior.set("overrun", "maybe").unwrap_err();
        assert_eq!(
            error.to_string(),
            "overrun cannot be maybe; it can be dead, drop_new"
        );
    }
}
