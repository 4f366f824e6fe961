//! Errors: one kind for all backends, the verb that failed, and the facts.

use core::fmt;
use core::net::IpAddr;

use crate::cm::CmEvent;
use crate::cq::{Wc, WcStatus};
use crate::device::Gid;
use crate::handle::{Cq, Object};
use crate::qp::{QpAttrMask, QpState};
use crate::report::{LostWakeup, Stall};
use crate::shown::debug_is_display;

/// The result of a verb of the trait.
pub type Result<T, E = Error> = core::result::Result<T, E>;

macro_rules! verbs {
    ($( $variant:ident = $name:literal; )*) => {
        /// A verb of the traits, by its name in libibverbs or librdmacm where it has one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Verb {
            $( #[doc = concat!("`", $name, "`")] $variant, )*
        }

        impl Verb {
            /// Every verb.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name, such as `ibv_post_send`.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )* }
            }
        }
    };
}

verbs! {
    GetDeviceList = "ibv_get_device_list";
    OpenDevice = "ibv_open_device";
    CloseDevice = "ibv_close_device";
    QueryDevice = "ibv_query_device";
    QueryPort = "ibv_query_port";
    QueryGid = "ibv_query_gid";
    QueryDeviceEx = "ibv_query_device_ex";
    QueryGidEx = "ibv_query_gid_ex";
    QueryGidTable = "ibv_query_gid_table";
    QueryPkey = "ibv_query_pkey";
    QueryRtValues = "ibv_query_rt_values_ex";
    AllocPd = "ibv_alloc_pd";
    DeallocPd = "ibv_dealloc_pd";
    AllocTd = "ibv_alloc_td";
    DeallocTd = "ibv_dealloc_td";
    AllocParentDomain = "ibv_alloc_parent_domain";
    AllocMr = "alloc_mr";
    AllocMrAs = "alloc_mr_as";
    AllocNullMr = "ibv_alloc_null_mr";
    RegMr = "ibv_reg_mr";
    RegDmabufMr = "ibv_reg_dmabuf_mr";
    ReregMr = "ibv_rereg_mr";
    DeregMr = "ibv_dereg_mr";
    AdviseMr = "ibv_advise_mr";
    QueryMr = "query_mr";
    AllocMw = "ibv_alloc_mw";
    DeallocMw = "ibv_dealloc_mw";
    QueryMw = "query_mw";
    BindMw = "ibv_bind_mw";
    AllocDm = "ibv_alloc_dm";
    FreeDm = "ibv_free_dm";
    RegDmMr = "ibv_reg_dm_mr";
    CopyToDm = "ibv_memcpy_to_dm";
    CopyFromDm = "ibv_memcpy_from_dm";
    ReadMr = "read_mr";
    WriteMr = "write_mr";
    MapMr = "map_mr";
    CreateCompChannel = "ibv_create_comp_channel";
    DestroyCompChannel = "ibv_destroy_comp_channel";
    CreateCq = "ibv_create_cq";
    CreateCqEx = "ibv_create_cq_ex";
    ModifyCq = "ibv_modify_cq";
    StartPoll = "ibv_start_poll";
    NextPoll = "ibv_next_poll";
    ReadWc = "ibv_wc_read";
    EndPoll = "ibv_end_poll";
    QueryCq = "query_cq";
    ResizeCq = "ibv_resize_cq";
    ReqNotifyCq = "ibv_req_notify_cq";
    PollCq = "ibv_poll_cq";
    GetCqEvent = "ibv_get_cq_event";
    AckCqEvents = "ibv_ack_cq_events";
    DestroyCq = "ibv_destroy_cq";
    CreateQp = "ibv_create_qp";
    QueryQp = "ibv_query_qp";
    QueryQpDataInOrder = "ibv_query_qp_data_in_order";
    ModifyQp = "ibv_modify_qp";
    QueryEce = "ibv_query_ece";
    SetEce = "ibv_set_ece";
    DestroyQp = "ibv_destroy_qp";
    CreateAh = "ibv_create_ah";
    DestroyAh = "ibv_destroy_ah";
    AttachMcast = "ibv_attach_mcast";
    DetachMcast = "ibv_detach_mcast";
    CreateSrq = "ibv_create_srq";
    QuerySrq = "ibv_query_srq";
    ModifySrq = "ibv_modify_srq";
    DestroySrq = "ibv_destroy_srq";
    PostSrqRecv = "ibv_post_srq_recv";
    GetSrqNum = "ibv_get_srq_num";
    OpenXrcd = "ibv_open_xrcd";
    CloseXrcd = "ibv_close_xrcd";
    OpenQp = "ibv_open_qp";
    PostSend = "ibv_post_send";
    PostBatch = "ibv_wr_complete";
    PostRecv = "ibv_post_recv";
    GetAsyncEvent = "ibv_get_async_event";
    AckAsyncEvent = "ibv_ack_async_event";
    ConnectRc = "connect_rc";
    Lab = "lab";
    ChannelFd = "channel_fd";
    AsyncFd = "async_fd";
    ExportDmabuf = "export_dmabuf";
    CorruptHandle = "corrupt_handle";
    CmGetDevices = "rdma_get_devices";
    CmCreateEventChannel = "rdma_create_event_channel";
    CmDestroyEventChannel = "rdma_destroy_event_channel";
    CmCreateId = "rdma_create_id";
    CmQueryId = "query_id";
    CmDestroyId = "rdma_destroy_id";
    CmMigrateId = "rdma_migrate_id";
    CmSetOption = "rdma_set_option";
    CmBindAddr = "rdma_bind_addr";
    CmResolveAddr = "rdma_resolve_addr";
    CmResolveRoute = "rdma_resolve_route";
    CmCreateQp = "rdma_create_qp";
    CmDestroyQp = "rdma_destroy_qp";
    CmInitQpAttr = "rdma_init_qp_attr";
    CmSetLocalEce = "rdma_set_local_ece";
    CmGetRemoteEce = "rdma_get_remote_ece";
    CmListen = "rdma_listen";
    CmConnect = "rdma_connect";
    CmAccept = "rdma_accept";
    CmReject = "rdma_reject";
    CmRejectEce = "rdma_reject_ece";
    CmEstablish = "rdma_establish";
    CmNotify = "rdma_notify";
    CmDisconnect = "rdma_disconnect";
    CmJoinMulticast = "rdma_join_multicast";
    CmLeaveMulticast = "rdma_leave_multicast";
    CmGetEvent = "rdma_get_cm_event";
    CmAckEvent = "rdma_ack_cm_event";
    CmWriteEvent = "rdma_write_cm_event";
    CmChannelFd = "event_channel_fd";
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! kinds {
    ($( $(#[$meta:meta])* $variant:ident = $errno:literal, $symbol:literal; )*) => {
        /// The kind of error, the same for all backends. Each kind stands for one errno value.
        ///
        /// The conversions from and to errno (Linux numbers) are total: a number without a kind of
        /// its own is [`ErrorKind::Os`], and [`ErrorKind::from_errno`] never gives a kind whose
        /// [`ErrorKind::errno`] is another number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $( $(#[$meta])* #[doc = concat!("`", $symbol, "`.")] $variant, )*
            /// The program misused the interface in a way C cannot report (an acknowledgement too
            /// many, a destroyed channel with a thread waiting on it). `EINVAL` as a number.
            Usage,
            /// A wait that nothing can end any more (simulator only). `EDEADLK` as a number.
            Stalled,
            /// An errno value without a kind of its own.
            Os(i32),
        }

        impl ErrorKind {
            /// Every kind that [`from_errno`](Self::from_errno) can give, except [`Os`](Self::Os).
            pub const FROM_ERRNO: &'static [Self] = &[$(Self::$variant),*];

            /// The kind for an errno value, given as a positive number.
            pub const fn from_errno(errno: i32) -> Self {
                match errno {
                    $( $errno => Self::$variant, )*
                    other => Self::Os(other),
                }
            }

            /// The errno value as a positive number.
            pub const fn errno(self) -> i32 {
                match self {
                    $( Self::$variant => $errno, )*
                    Self::Usage => 22,
                    Self::Stalled => 35,
                    Self::Os(errno) => errno,
                }
            }

            /// The symbol of the errno value, such as `EINVAL`.
            pub const fn symbol(self) -> &'static str {
                match self {
                    $( Self::$variant => $symbol, )*
                    Self::Usage => "EINVAL",
                    Self::Stalled => "EDEADLK",
                    Self::Os(_) => "errno",
                }
            }
        }
    };
}

kinds! {
    /// The operation is not permitted.
    Permission = 1, "EPERM";
    /// No such object.
    NotFound = 2, "ENOENT";
    /// Interrupted by a signal.
    Interrupted = 4, "EINTR";
    /// Input or output error; also a dead device.
    Io = 5, "EIO";
    /// No open file has the descriptor.
    BadFile = 9, "EBADF";
    /// No event or completion is there yet; the call would have to wait.
    WouldBlock = 11, "EAGAIN";
    /// No resources: memory, a full queue, or a limit of the device.
    NoMemory = 12, "ENOMEM";
    /// Access denied.
    Access = 13, "EACCES";
    /// An address that is not mapped.
    Fault = 14, "EFAULT";
    /// Still in use.
    Busy = 16, "EBUSY";
    /// The object exists already.
    Exists = 17, "EEXIST";
    /// No such device.
    NoDevice = 19, "ENODEV";
    /// An argument, a handle or a state that the verb does not accept.
    Invalid = 22, "EINVAL";
    /// Too many open files in the process.
    TooManyFiles = 24, "EMFILE";
    /// The device does not have this function.
    NotImplemented = 38, "ENOSYS";
    /// An entry of a table is empty.
    NoData = 61, "ENODATA";
    /// The operation is not supported.
    NotSupported = 95, "EOPNOTSUPP";
    /// An address of a family that is not that of the others, or unknown.
    AddressFamily = 97, "EAFNOSUPPORT";
    /// The address and port are those of another.
    AddressInUse = 98, "EADDRINUSE";
    /// The address cannot be used here.
    AddressNotAvailable = 99, "EADDRNOTAVAIL";
    /// No network leads there.
    NetworkUnreachable = 101, "ENETUNREACH";
    /// The id is not connected.
    NotConnected = 107, "ENOTCONN";
    /// The time given has passed.
    TimedOut = 110, "ETIMEDOUT";
    /// The peer refused.
    ConnectionRefused = 111, "ECONNREFUSED";
    /// A network leads there, and the host cannot be reached.
    HostUnreachable = 113, "EHOSTUNREACH";
}

/// Why a handle is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadHandle {
    /// The zero handle.
    Null,
    /// The object has been destroyed.
    Stale,
    /// The object was lost when its host crashed ([`Lab::crash`](crate::lab::Lab::crash)).
    Crashed,
    /// The object belongs to another context or another backend.
    Foreign,
    /// The number by which the driver knows its object has been corrupted.
    Corrupt,
}

/// The facts behind an error, as far as the backend knows them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cause {
    /// Only the number is known.
    Unspecified,
    /// A handle does not name a live object of this context.
    Handle {
        /// What it should name.
        object: Object,
        /// What is wrong with it.
        problem: BadHandle,
    },
    /// `ibv_modify_qp`: no such transition.
    InvalidTransition {
        /// The present state.
        from: QpState,
        /// The state that was asked for.
        to: QpState,
    },
    /// `ibv_modify_qp`: the attribute mask does not fit the transition.
    TransitionMask {
        /// The present state.
        from: QpState,
        /// The state that was asked for.
        to: QpState,
        /// Attributes the transition requires and the mask lacks.
        missing: QpAttrMask,
        /// Attributes the transition does not allow.
        extra: QpAttrMask,
    },
    /// A number is outside its range.
    OutOfRange {
        /// The name of the field or argument.
        what: &'static str,
        /// Its value.
        value: i64,
        /// The least value allowed.
        min: i64,
        /// The greatest value allowed.
        max: i64,
    },
    /// Rights let a peer write memory, and not the program itself (MR-01).
    NoLocalWrite,
    /// No device of this machine has an address.
    NoAddress {
        /// The address.
        ip: IpAddr,
    },
    /// An iteration over the completions of a CQ is open, so the CQ cannot be destroyed.
    IterationOpen {
        /// The CQ.
        cq: Cq,
    },
    /// An argument is wrong for another reason.
    Argument {
        /// The name of the field or argument.
        what: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Objects that must belong together do not.
    Mismatch {
        /// The object that does not fit.
        object: Object,
        /// What it must share with the other one, such as `context` or `pd`.
        must_share: &'static str,
    },
    /// Other objects still use this one.
    InUse {
        /// The object that was to be destroyed.
        object: Object,
        /// A kind of object that still uses it.
        by: Object,
        /// How many of them.
        count: u32,
    },
    /// Events of the object that were read have not been acknowledged.
    Unacknowledged {
        /// The object that was to be destroyed.
        object: Object,
        /// How many events.
        events: u32,
    },
    /// A queue has no free slot.
    QueueFull {
        /// Which queue.
        queue: FullQueue,
        /// How many work requests it holds.
        capacity: u32,
    },
    /// A limit was reached.
    Limit {
        /// The limited thing.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The QP is in a state in which the verb is not allowed.
    QpState {
        /// That state.
        state: QpState,
    },
    /// No device has the destination GID of an address vector.
    UnownedGid {
        /// The destination GID.
        gid: Gid,
    },
    /// The CQ has overrun and cannot be used any more.
    CqOverrun,
    /// A work request failed ([`Wc::ok`](crate::Wc::ok)).
    Completion {
        /// Which.
        wr_id: u64,
        /// How.
        status: WcStatus,
        /// The number of its QP.
        qp_num: u32,
    },
    /// No event is queued.
    NoEvent,
    /// A fault rule made the call fail.
    Injected,
    /// A wait that nothing in flight can end, with the state of its objects.
    Stall(Box<Stall>),
    /// A thread that waited when no more work could come.
    LostWakeup(Box<LostWakeup>),
    /// An event of rdma_cm that ended what the call waited for.
    CmEvent(Box<CmEvent>),
    /// A misuse in words: which object, which fact.
    Usage(Box<str>),
    /// Another fact, in the backend's words.
    Text(Box<str>),
}

/// A queue without a free slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FullQueue {
    /// The send queue of a queue pair.
    Send,
    /// A send queue in which no send is signaled: no completion ever frees a slot (SQ-03).
    UnsignaledSend,
    /// The receive queue of a queue pair.
    Receive,
    /// A shared receive queue.
    SharedReceive,
}

impl fmt::Display for FullQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Send => "send queue",
            Self::UnsignaledSend => "send queue, in which no send is signaled,",
            Self::Receive => "receive queue",
            Self::SharedReceive => "shared receive queue",
        })
    }
}

/// Why a verb failed.
///
/// ```
/// use verbs_api::{Cause, Error, ErrorKind, Verb};
///
/// let cause = Cause::OutOfRange { what: "cqe", value: 0, min: 1, max: 4096 };
/// let error = Error::new(Verb::ResizeCq, ErrorKind::Invalid, cause);
/// assert_eq!(error.errno(), 22);
/// assert_eq!(error.to_string(), "ibv_resize_cq: EINVAL: cqe is 0, allowed are 1 to 4096");
/// ```
#[derive(Clone, PartialEq)]
pub struct Error(Box<Inner>);

/// What is in an error. It is boxed, so that a verb that succeeds returns a word or two.
#[derive(Clone, PartialEq)]
struct Inner {
    verb: Verb,
    kind: ErrorKind,
    raw: Option<i32>,
    bad_wr: Option<usize>,
    cause: Cause,
}

impl Error {
    /// An error of `verb`, with what is known about it.
    #[cold]
    pub fn new(verb: Verb, kind: ErrorKind, cause: Cause) -> Self {
        Self(Box::new(Inner {
            verb,
            kind,
            raw: None,
            bad_wr: None,
            cause,
        }))
    }

    /// An error that a C call returned as `raw`: an errno value of either sign.
    pub fn from_raw(verb: Verb, raw: i32) -> Self {
        let errno = if raw == i32::MIN { raw } else { raw.abs() };
        Self::new(verb, ErrorKind::from_errno(errno), Cause::Unspecified).with_raw(raw)
    }

    /// Adds the number that the C call returned, with its sign.
    #[must_use]
    pub fn with_raw(mut self, raw: i32) -> Self {
        self.0.raw = Some(raw);
        self
    }

    /// The verb that failed.
    pub fn verb(&self) -> Verb {
        self.0.verb
    }

    /// The kind of error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The errno value, positive.
    pub fn errno(&self) -> i32 {
        self.kind().errno()
    }

    /// The number as a C call returned it (some drivers return it negative), if one did.
    pub fn raw(&self) -> Option<i32> {
        self.0.raw
    }

    /// For a list of work requests, the index of the first that was not posted, if this was a
    /// [`PostError`].
    pub fn bad_wr(&self) -> Option<usize> {
        self.0.bad_wr
    }

    /// The facts.
    pub fn cause(&self) -> &Cause {
        &self.0.cause
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.verb())?;
        match self.kind() {
            ErrorKind::Os(errno) => write!(f, "errno {errno}")?,
            ErrorKind::Usage => f.write_str("usage error")?,
            ErrorKind::Stalled => f.write_str("stalled")?,
            kind => f.write_str(kind.symbol())?,
        }
        match self.cause() {
            Cause::Unspecified => {}
            cause => write!(f, ": {cause}")?,
        }
        match self.bad_wr() {
            Some(bad_wr) => write!(f, " (work request {bad_wr} of the list)"),
            None => Ok(()),
        }
    }
}

debug_is_display!(Error, PostError);

impl core::error::Error for Error {}

impl Wc {
    /// The completion, if the work request succeeded.
    ///
    /// ```
    /// # use verbs_api::{Result, owned::Cq};
    /// # async fn f(cq: &Cq) -> Result<()> {
    /// for wc in cq.next().await? {
    ///     wc.ok()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Io` if it failed, with the status, the work request and the QP
    /// ([`Cause::Completion`]).
    pub fn ok(&self) -> Result<&Self> {
        let (wr_id, status, qp_num) = (self.wr_id, self.status, self.qp_num);
        if status == WcStatus::Success {
            return Ok(self);
        }
        let cause = Cause::Completion {
            wr_id,
            status,
            qp_num,
        };
        Err(Error::new(Verb::PollCq, ErrorKind::Io, cause))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unspecified => f.write_str("no more is known"),
            Self::Handle { object, problem } => {
                let problem = match problem {
                    BadHandle::Null => "is the zero handle",
                    BadHandle::Stale => "names an object that has been destroyed",
                    BadHandle::Crashed => "names an object that was lost when its host crashed",
                    BadHandle::Foreign => "belongs to another context",
                    BadHandle::Corrupt => "is corrupt",
                };
                write!(f, "the {object} handle {problem}")
            }
            Self::InvalidTransition { from, to } => {
                write!(f, "there is no transition from {from} to {to}")
            }
            Self::TransitionMask {
                from,
                to,
                missing,
                extra,
            } => {
                write!(f, "{from} to {to}")?;
                if !missing.is_empty() {
                    write!(f, " also requires {missing}")?;
                }
                if !missing.is_empty() && !extra.is_empty() {
                    f.write_str(" and")?;
                }
                if !extra.is_empty() {
                    write!(f, " does not allow {extra}")?;
                }
                Ok(())
            }
            Self::OutOfRange {
                what,
                value,
                min,
                max,
            } => {
                write!(f, "{what} is {value}, allowed are {min} to {max}")
            }
            Self::NoLocalWrite => f.write_str("access allows remote writes but no local ones"),
            Self::NoAddress { ip } => write!(f, "no device here has {ip}"),
            Self::IterationOpen { cq } => {
                write!(f, "an iteration over {cq} is open, and would be waited for")
            }
            Self::Argument { what, problem } => write!(f, "{what} {problem}"),
            Self::Mismatch { object, must_share } => {
                write!(f, "the {object} is of another {must_share}")
            }
            Self::InUse { object, by, count } => {
                write!(f, "the {object} is still used by {count} {by}")
            }
            Self::Unacknowledged { object, events } => {
                write!(
                    f,
                    "{events} events of the {object} were read and not acknowledged"
                )
            }
            Self::QueueFull { queue, capacity } => {
                write!(f, "the {queue} is full: {capacity} work requests")
            }
            Self::Limit { what, limit } => write!(f, "the limit of {limit} {what} is reached"),
            Self::QpState { state } => write!(f, "the qp is in {state}"),
            Self::UnownedGid { gid } => write!(f, "no device has the address {gid}"),
            Self::CqOverrun => f.write_str("the cq has overrun"),
            Self::Completion {
                wr_id,
                status,
                qp_num,
            } => write!(
                f,
                "work request {wr_id:#x} of qp {qp_num:#x} failed: {status}"
            ),
            Self::NoEvent => f.write_str("no event is queued"),
            Self::Injected => f.write_str("a fault rule made the call fail"),
            Self::Stall(stall) => stall.fmt(f),
            Self::LostWakeup(lost) => lost.fmt(f),
            Self::CmEvent(event) => event.fmt(f),
            Self::Usage(text) | Self::Text(text) => f.write_str(text),
        }
    }
}

/// Why `ibv_post_send` or `ibv_post_recv` stopped, and where.
///
/// The work requests before [`bad_wr`](Self::bad_wr) have been posted; that one and those after
/// it have not (SQ-01, RQ-01).
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct PostError {
    /// Index of the first work request that was not posted.
    pub bad_wr: usize,
    /// Why not.
    pub error: Error,
}

impl PostError {
    /// A list that stopped at its work request `bad_wr`, for backends.
    pub const fn new(bad_wr: usize, error: Error) -> Self {
        Self { bad_wr, error }
    }
}

impl fmt::Display for PostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (work request {} of the list)",
            self.error, self.bad_wr
        )
    }
}

impl core::error::Error for PostError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl From<Error> for PostError {
    /// An error without the index of a work request concerns the whole call: nothing was posted.
    fn from(mut error: Error) -> Self {
        let bad_wr = error.0.bad_wr.take();
        Self::new(bad_wr.unwrap_or(0), error)
    }
}

impl From<PostError> for Error {
    /// With [`bad_wr`](Self::bad_wr).
    fn from(posted: PostError) -> Self {
        let mut error = posted.error;
        error.0.bad_wr = Some(posted.bad_wr);
        error
    }
}

#[cfg(test)]
mod tests;
