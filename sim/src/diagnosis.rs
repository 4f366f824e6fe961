//! What a program did wrong or left undone, as far as a simulation knows.

use core::fmt;

use verbs_api::lab::ArmState;
use verbs_api::{AsyncEventType, CompChannel, Cq, Object, WcStatus};

/// What was found, by node; of a node what failed comes first, then what was left.
///
/// Printed it is a line for each finding, without the address of anything. It is empty after a program
/// without mistakes that has destroyed all its objects.
///
/// ```
/// use verbs_api::{CqInit, Verbs};
/// use verbs_sim::{Sim, SimConfig};
///
/// let sim = Sim::new(SimConfig::new());
/// let context = sim.open_device("sim1")?;
/// sim.create_cq(context, &CqInit::new(16))?;
/// assert_eq!(
///     sim.diagnose().to_string(),
///     "sim1: not destroyed: cq#0\nsim1: 1 context not closed\n"
/// );
/// # Ok::<(), verbs_api::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Diagnosis {
    /// In the order in which they are printed.
    pub findings: Vec<Finding>,
}

/// Something that a program did wrong or left undone.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// The number of the device: 0 is that of `sim0`.
    pub node: u32,
    /// What it is.
    pub problem: Problem,
}

/// What there is to be found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Problem {
    /// A work request failed, and was not only flushed.
    Failed {
        /// Number of its QP.
        qp_num: u32,
        /// It is a receive.
        receive: bool,
        /// The program's number for it ([`SendWr::label`](verbs_api::SendWr::label)).
        wr_id: u64,
        /// How it ended.
        status: WcStatus,
        /// What it failed for, if that is known.
        why: Option<Why>,
    },
    /// Completions were lost, since a CQ was full.
    Overrun {
        /// The CQ.
        cq: Cq,
        /// How many completions it holds.
        cqe: u32,
        /// How many were lost.
        lost: u64,
    },
    /// A CQ is armed, and completions wait in it that were there before: the classic lost wake-up.
    LostWakeup {
        /// The CQ.
        cq: Cq,
        /// What it is armed for.
        armed: ArmState,
        /// How many wait.
        unpolled: u32,
    },
    /// Packets were not taken.
    Dropped {
        /// The node and the number of the QP they came from; `None` if it is another process's.
        from: (Option<u32>, u32),
        /// The number of the QP they were for.
        qp_num: u32,
        /// Why.
        why: &'static str,
        /// How many.
        count: u64,
    },
    /// Datagrams came from the network that are no packets for this device.
    Garbage {
        /// What they were.
        why: &'static str,
        /// How many.
        count: u64,
    },
    /// Completions wait in a CQ.
    Unpolled {
        /// The CQ.
        cq: Cq,
        /// How many.
        unpolled: u32,
    },
    /// Events of CQs wait in a channel.
    Unread {
        /// The channel.
        channel: CompChannel,
        /// How many.
        events: u32,
    },
    /// Asynchronous events that tell of an error were not read.
    UnreadAsync {
        /// What they tell.
        event_type: AsyncEventType,
        /// What they are of.
        of: String,
        /// How many.
        events: u32,
    },
    /// Events were read and not acknowledged: the destroy of what they are of would wait for ever.
    Unacknowledged {
        /// What they are of.
        of: String,
        /// How many.
        events: u32,
    },
    /// Objects of a kind are still there.
    NotDestroyed {
        /// What they are.
        kind: Object,
        /// Which, with how they stand.
        names: Vec<String>,
        /// They went with their context, which was closed all the same (DEV-03).
        closed: bool,
    },
    /// Devices are still open.
    NotClosed {
        /// How many times.
        contexts: u32,
    },
}

/// What something failed for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Why {
    /// The node where that was found, if it is another one: the responder's.
    pub node: Option<u32>,
    /// In words.
    pub text: String,
}

/// As many names are printed at most.
const NAMES: usize = 8;

impl Diagnosis {
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty()
    }

    /// The same as printing it, with names of devices other than `sim0`, `sim1`, ...
    pub fn with_names(&self, name: impl Fn(u32) -> String) -> String {
        let line = |finding: &Finding| {
            let words = finding.problem.in_words(&name);
            format!("{}: {words}\n", name(finding.node))
        };
        self.findings.iter().map(line).collect()
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_names(|node| format!("sim{node}")))
    }
}

impl Problem {
    fn in_words(&self, name: &impl Fn(u32) -> String) -> String {
        match self {
            Self::Failed {
                qp_num,
                receive,
                wr_id,
                status,
                why,
            } => {
                let kind = if *receive { "receive" } else { "send" };
                let why = match why {
                    None => String::new(),
                    Some(Why { node: None, text }) => format!(": {text}"),
                    Some(Why {
                        node: Some(node),
                        text,
                    }) => format!(": at {}, {text}", name(*node)),
                };
                format!("{kind} {wr_id:#x} of qp {qp_num:#x} failed with {status}{why}")
            }
            Self::Overrun { cq, cqe, lost } => {
                let entries = counted((*cqe).into(), "entry", "entries");
                let lost = counted(*lost, "completion was", "completions were");
                format!("{cq}, of {entries}, has overrun: {lost} lost")
            }
            Self::LostWakeup {
                cq,
                armed,
                unpolled,
            } => {
                let wait = counted((*unpolled).into(), "completion waits", "completions wait");
                format!(
                    "{cq} is {armed}, and {wait} in it from before, of which no event tells: poll \
                     once more after ibv_req_notify_cq"
                )
            }
            Self::Dropped {
                from: (node, from),
                qp_num,
                why,
                count,
            } => {
                let packets = counted(*count, "packet", "packets");
                let node = node.map_or_else(|| "another process".to_owned(), name);
                let from = format!("qp {from:#x} of {node}");
                format!("{packets} from {from} for qp {qp_num:#x} not taken: {why}")
            }
            Self::Garbage { why, count } => {
                let datagrams = counted(*count, "datagram", "datagrams");
                format!("{datagrams} from the network not taken: {why}")
            }
            Self::Unpolled { cq, unpolled } => {
                let completions = counted((*unpolled).into(), "completion", "completions");
                format!("{completions} of {cq} not polled")
            }
            Self::Unread { channel, events } => {
                let events = counted((*events).into(), "event", "events");
                format!("{events} of {channel} not read")
            }
            Self::UnreadAsync {
                event_type,
                of,
                events,
            } => {
                let events = counted((*events).into(), "event", "events");
                format!("{events} {event_type} of {of} not read")
            }
            Self::Unacknowledged { of, events } => {
                let events = counted((*events).into(), "event", "events");
                format!("{events} of {of} read and not acknowledged: its destroy would wait")
            }
            Self::NotDestroyed { names, closed, .. } => {
                let before = match closed {
                    true => " before the context was closed",
                    false => "",
                };
                let shown = names[..names.len().min(NAMES)].join(", ");
                let mut text = format!("not destroyed{before}: {shown}");
                if let Some(more) = names.len().checked_sub(NAMES + 1) {
                    text += &format!(", and {} more", more + 1);
                }
                text
            }
            Self::NotClosed { contexts } => {
                let contexts = counted((*contexts).into(), "context", "contexts");
                format!("{contexts} not closed")
            }
        }
    }
}

/// A number of things.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    }
}
