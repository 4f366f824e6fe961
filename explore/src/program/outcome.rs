//! The outcome of a program.

use core::fmt;
use core::time::Duration;

use verbs_api::{AsyncEventType, ErrorKind, InOrder, QpState, Wc, WcFlags, WcOpcode, WcStatus};

use super::call::Number;

/// The outcome of a program. Two runs went the same way if their outcomes are equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The result of each call, in order.
    pub seen: Vec<Seen>,
    /// The time that the pending activity of each call took, by the simulator's clock.
    pub took: Vec<Duration>,
    /// Calls that posted sends to a QP in ERR, known on a simulator if work does not race.
    pub in_error: Vec<u32>,
    /// Completions that were left, by CQ.
    pub completions: Vec<(Number, Vec<Completion>)>,
    /// Events that were left, by channel: of these CQs.
    pub events: Vec<(Number, Vec<Number>)>,
    /// Asynchronous events that were left, by context.
    pub async_events: Vec<(Number, Vec<Seen>)>,
    /// States of QPs at the end.
    pub states: Vec<(Number, Seen)>,
    /// Regions and device memories at the end.
    pub regions: Vec<Region>,
    /// What went wrong around the program: something that did not come to its end, or could not be
    /// destroyed after it. Always empty if the backend is right.
    pub faults: Vec<String>,
}

impl Outcome {
    /// The CQs that overran.
    pub(super) fn overrun(&self) -> Vec<Number> {
        let left = self.async_events.iter().flat_map(|(_, seen)| seen);
        let cq = |seen: &Seen| match seen {
            Seen::AsyncEvent(AsyncEventType::CqErr, cq) => *cq,
            _ => None,
        };
        left.chain(&self.seen).filter_map(cq).collect()
    }
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Seen {
    /// Success, and nothing to say of it.
    Done,
    /// An error.
    Refused(ErrorKind),
    /// An error for this work request of the list; those before it were posted.
    RefusedAt(usize, ErrorKind),
    /// A size.
    Size(u32),
    /// Completions.
    Completions(Vec<Completion>),
    /// An event of this CQ.
    Event(Number),
    /// An asynchronous event, of the CQ, QP or SRQ of this number, if of one.
    AsyncEvent(AsyncEventType, Option<Number>),
    /// The state of a QP.
    State(QpState),
    /// What a QP promises of the order of bytes.
    InOrder(InOrder),
    /// The options of a QP.
    Options(u32),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Seen {
    /// Whether the call did something, or a part of it.
    pub(super) const fn is_done(&self) -> bool {
        !matches!(self, Self::Refused(_) | Self::RefusedAt(0, _))
    }

    /// Whether the call may have started work. Some devices start work that waited in SQD with the
    /// next post, even if they refuse that.
    pub(super) const fn may_start(&self) -> bool {
        !matches!(self, Self::Refused(_))
    }

    /// Whether the call was a misuse, of which real devices know nothing.
    pub const fn is_misuse(&self) -> bool {
        matches!(self, Self::Refused(ErrorKind::Usage))
    }
}

/// The defined fields of a completion; the QP by its number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Completion {
    /// The QP; `None` for a number that no QP has.
    pub qp: Option<Number>,
    /// The work request: its call and its position in the list.
    pub wr_id: WrId,
    /// The status.
    pub status: WcStatus,
    /// The further fields of a success.
    pub success: Option<Success>,
}

/// A work request: the call that posted it, and its place in the list there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct WrId {
    /// The call.
    pub call: u32,
    /// The position in its list.
    pub index: u32,
}

/// The fields of a successful completion.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Success {
    /// The operation that completed.
    pub opcode: WcOpcode,
    /// Bytes, of receives and RDMA Reads.
    pub byte_len: Option<u32>,
    /// Immediate data, of receives.
    pub imm_data: Option<[u8; 4]>,
    /// The sender, of datagrams.
    pub from: Option<Number>,
}

/// A region or a device memory at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Region {
    /// Kind and number, such as `mr 0`.
    pub of: String,
    /// The bytes. Undefined ones are zero.
    pub bytes: Vec<u8>,
    /// The undefined bytes, as start and end.
    pub undefined: Vec<(u32, u32)>,
}

impl WrId {
    /// As the value of a work request id.
    pub fn raw(self) -> u64 {
        u64::from(self.call) << 32 | u64::from(self.index)
    }

    /// The reference in the work request id `raw`.
    pub fn of(raw: u64) -> Self {
        Self {
            call: (raw >> 32) as u32,
            index: raw as u32,
        }
    }
}

impl Completion {
    /// The completion `wc`; `number` returns the number of a QP by its QP number, and whether it is
    /// UD.
    pub(super) fn of(wc: &Wc, number: impl Fn(u32) -> Option<(Number, bool)>) -> Self {
        let qp = number(wc.qp_num);
        let success = (wc.status == WcStatus::Success).then(|| {
            let is_recv = wc.opcode.is_recv();
            let has_imm = is_recv && wc.wc_flags.contains(WcFlags::WITH_IMM);
            let is_datagram = is_recv && qp.is_some_and(|(_, is_ud)| is_ud);
            Success {
                opcode: wc.opcode,
                byte_len: (is_recv || wc.opcode == WcOpcode::RdmaRead).then_some(wc.byte_len),
                imm_data: has_imm.then_some(wc.imm_data),
                from: number(wc.src_qp)
                    .filter(|_| is_datagram)
                    .map(|(number, _)| number),
            }
        });
        Self {
            qp: qp.map(|(number, _)| number),
            wr_id: WrId::of(wc.wr_id),
            status: wc.status,
            success,
        }
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("success"),
            Self::Refused(kind) => f.write_str(&name(*kind)),
            Self::RefusedAt(at, kind) => {
                write!(f, "{} for work request {at} of the list", name(*kind))
            }
            Self::Size(size) => write!(f, "size {size}"),
            Self::Completions(list) => show(f, list),
            Self::Event(cq) => write!(f, "an event of cq {cq}"),
            Self::AsyncEvent(event_type, None) => event_type.fmt(f),
            Self::AsyncEvent(event_type, Some(of)) => write!(f, "{event_type} of {of}"),
            Self::State(state) => state.fmt(f),
            Self::InOrder(promised) => write!(f, "in order {:#x}", promised.bits()),
            Self::Options(options) => write!(f, "options {options:#x}"),
            Self::Bytes(bytes) => write!(f, "bytes {bytes:02x?}"),
        }
    }
}

fn name(kind: ErrorKind) -> String {
    match kind {
        ErrorKind::Usage => "usage error".to_string(),
        ErrorKind::Stalled => "stalled".to_string(),
        ErrorKind::Os(errno) => format!("errno {errno}"),
        kind => kind.symbol().to_string(),
    }
}

/// Completions, in brackets.
pub(super) fn show(f: &mut fmt::Formatter<'_>, list: &[Completion]) -> fmt::Result {
    f.write_str("[")?;
    for (i, completion) in list.iter().enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        write!(f, "{comma}{completion}")?;
    }
    f.write_str("]")
}

impl fmt::Display for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrId { call, index } = self.wr_id;
        match self.qp {
            Some(qp) => write!(f, "qp {qp}")?,
            None => f.write_str("no qp")?,
        }
        write!(f, " call {call}.{index} {}", self.status)?;
        let Some(success) = &self.success else {
            return Ok(());
        };
        write!(f, " {}", success.opcode)?;
        if let Some(bytes) = success.byte_len {
            write!(f, " {bytes} B")?;
        }
        if let Some(imm_data) = success.imm_data {
            write!(f, " imm {imm_data:02x?}")?;
        }
        match success.from {
            Some(from) => write!(f, " from qp {from}"),
            None => Ok(()),
        }
    }
}
