//! The trace: one typed record per event.
//!
//! A trace depends on the seed and the calls alone. It has no address, thread or time of the
//! machine.

use core::fmt;
use core::time::Duration;

use crate::cq::Wc;
use crate::event::{AsyncEvent, Element};
use crate::fault::Effect;
use crate::handle::{CmChannel, CompChannel, Cq, Qp};
use crate::packet::PacketView;
use crate::qp::QpState;
use crate::report::ArmState;

/// One record of a trace.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TraceRecord {
    /// The time, by the simulator's clock.
    pub at: Duration,
    /// The node of the fabric.
    pub node: u32,
    /// What.
    pub event: TraceEvent,
}

impl TraceRecord {
    /// A record, for backends.
    pub const fn new(at: Duration, node: u32, event: TraceEvent) -> Self {
        Self { at, node, event }
    }
}

impl fmt::Display for TraceRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.at.as_nanos();
        write!(
            f,
            "{:>9}.{:03} us node {} ",
            nanos / 1000,
            nanos % 1000,
            self.node
        )?;
        self.event.fmt(f)
    }
}

/// The kinds of record.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TraceEvent {
    /// A verb was called.
    Call {
        /// The verb and its arguments.
        call: String,
    },
    /// The result of the verb, if it is more than success.
    Return {
        /// The value or the error.
        value: String,
    },
    /// A packet left.
    Sent(PacketView),
    /// A packet arrived.
    Received(PacketView),
    /// A packet was lost, and why.
    Lost {
        /// The packet.
        packet: PacketView,
        /// Why.
        why: &'static str,
    },
    /// A fault rule did something to a packet other than losing it.
    Affected {
        /// The packet.
        packet: PacketView,
        /// What it did.
        effect: Effect,
    },
    /// A packet arrived and was dropped by the transport's rules.
    Dropped {
        /// Why.
        why: &'static str,
    },
    /// A completion was added to a CQ.
    Completion {
        /// Which CQ.
        cq: Cq,
        /// The completion.
        wc: Wc,
    },
    /// A completion found its CQ full.
    Overrun {
        /// Which CQ.
        cq: Cq,
        /// The completion that was lost.
        wc: Wc,
    },
    /// The pending request of a CQ changed.
    Armed {
        /// Which CQ.
        cq: Cq,
        /// What is pending now.
        armed: ArmState,
    },
    /// A completion event was queued on a channel.
    CqEvent {
        /// Which channel.
        channel: CompChannel,
        /// Which CQ it names.
        cq: Cq,
    },
    /// An asynchronous event was queued.
    Async(AsyncEvent),
    /// An event of rdma_cm was queued on a channel.
    CmEvent {
        /// Which channel.
        channel: CmChannel,
        /// What happened, to which id.
        event: String,
    },
    /// A QP changed state.
    QpState {
        /// Which QP.
        qp: Qp,
        /// From.
        from: QpState,
        /// To.
        to: QpState,
    },
    /// A timer fired.
    Timer {
        /// Whose: a QP's, or a CQ's.
        of: Element,
        /// Which, such as `ack timeout`.
        what: &'static str,
    },
    /// A fault rule fired on something other than a packet, or a host lost or got its power.
    Fault {
        /// What it did.
        what: &'static str,
    },
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call { call } => f.write_str(call),
            Self::Return { value } => write!(f, "  = {value}"),
            Self::Sent(packet) => write!(f, "  > {packet}"),
            Self::Received(packet) => write!(f, "  < {packet}"),
            Self::Lost { packet, why } => write!(f, "  x {packet}: {why}"),
            Self::Affected { packet, effect } => write!(f, "  ~ {packet}: {effect}"),
            Self::Dropped { why } => write!(f, "  dropped: {why}"),
            Self::Completion { cq, wc } => write!(f, "  {cq} + {wc}"),
            Self::Overrun { cq, wc } => write!(f, "  {cq} overrun, lost: {wc}"),
            Self::Armed { cq, armed } => write!(f, "  {cq} {armed}"),
            Self::CqEvent { channel, cq } => write!(f, "  {channel} event of {cq}"),
            Self::Async(event) => write!(f, "  async event {event}"),
            Self::CmEvent { channel, event } => write!(f, "  {channel} event {event}"),
            Self::QpState { qp, from, to } => write!(f, "  {qp} {from} => {to}"),
            Self::Timer { of, what } => write!(f, "  {what} of {of} fires"),
            Self::Fault { what } => write!(f, "  fault: {what}"),
        }
    }
}
