//! What a program did wrong or left undone, as far as a simulation knows.

use core::fmt;
use core::time::Duration;

use verbs_api::lab::ArmState;
use verbs_api::site::Site;
use verbs_api::{AsyncEventType, Cause, CompChannel, Cq, Error, Mr, WcStatus};

use crate::class::{Certainty, Class};
use crate::device::reason;

/// What was found, causes before what came of them; what is merely still there comes last.
///
/// Printed it is a line for each finding, with its class and the place in the program, without the address of any
/// memory; the first of each class is followed by what to do. It is empty after a program without mistakes that has
/// destroyed all its objects.
///
/// ```
/// use verbs_api::{CqInit, Verbs};
/// use verbs_sim::{Sim, SimConfig};
///
/// let sim = Sim::new(SimConfig::new());
/// let context = sim.open_device("sim1")?;
/// sim.create_cq(context, &CqInit::new(16))?;
/// let diagnosis = sim.diagnose();
/// assert!(diagnosis.mistakes.is_empty());
/// let text = diagnosis.with_names(|node| format!("sim{node}"), |_| "main.rs:7".to_owned());
/// assert_eq!(
///     text,
///     "sim1: VS-OBJ-03: hint: not destroyed: cq#0 (main.rs:7); 1 context not closed\n\
///      help: VS-OBJ-03: destroy what was created, and close what was opened (DEV-03)\n"
/// );
/// # Ok::<(), verbs_api::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Diagnosis {
    /// What was done wrong, in the order in which it is printed.
    pub mistakes: Vec<Finding>,
    /// What is still there, one finding a device, and one for each context that was closed with what it had.
    pub leftovers: Vec<Finding>,
}

/// Something that a program did wrong or left undone.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// The number of the device: 0 is that of `sim0`.
    pub node: u32,
    /// What it is.
    pub problem: Problem,
    /// Where in the program: of a failure where the work was posted, of a lost wake-up where the CQ was armed, of a
    /// refused call where that was made. `None` if it is not known.
    pub site: Option<Site>,
    /// How often more the same was found at the same place.
    pub more: u64,
    /// How sure it is that it is a mistake: as its class says, but what a program had not done yet when it was stopped is a
    /// hint.
    pub certainty: Certainty,
}

/// A problem as it was noted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Noted {
    pub(crate) problem: Problem,
    pub(crate) site: Option<Site>,
    pub(crate) more: u64,
}

impl From<Problem> for Noted {
    fn from(problem: Problem) -> Self {
        Self {
            problem,
            site: None,
            more: 0,
        }
    }
}

impl Noted {
    /// One that is of a place.
    pub(crate) fn at(problem: Problem, site: Option<Site>) -> Self {
        Self {
            problem,
            site,
            more: 0,
        }
    }
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
    /// A call was refused.
    Refused {
        /// Of which class that is.
        class: Class,
        /// The error: verb, errno value and facts.
        error: Error,
    },
    /// A layer over the verbs was misused, which the simulator does not see ([`Sim::note_misuse`](crate::Sim::note_misuse)).
    Misused {
        /// Of which class that is.
        class: Class,
        /// In words.
        text: String,
    },
    /// Completions were lost, since a CQ was full.
    Overrun {
        /// The CQ.
        cq: Cq,
        /// How many completions it holds.
        cqe: u32,
        /// How many were lost.
        lost: u64,
        /// The numbers of the queue pairs whose completions those were, the first eight.
        qps: Vec<u32>,
    },
    /// More may complete in a CQ than it has room for.
    SmallCq {
        /// The CQ.
        cq: Cq,
        /// How many completions it holds.
        cqe: u32,
        /// How many are in it.
        unpolled: u32,
        /// How much work is outstanding that completes in it.
        outstanding: u64,
    },
    /// A CQ was armed that has no channel: no event comes of that.
    ArmedWithoutChannel {
        /// The CQ.
        cq: Cq,
    },
    /// A CQ is armed, and completions wait in it that were there before: the classic lost wake-up.
    LostWakeup {
        /// The CQ.
        cq: Cq,
        /// What it is armed for.
        armed: ArmState,
        /// How many wait.
        unpolled: u32,
        /// The poll before took as many as it asked for, and left these.
        partly: bool,
    },
    /// A CQ is armed for solicited completions, and others wait in it.
    SolicitedOnly {
        /// The CQ.
        cq: Cq,
        /// How many wait.
        unpolled: u32,
    },
    /// An event told of a CQ that was not polled since, and completions wait in it.
    OtherPolled {
        /// The CQ.
        cq: Cq,
        /// How many wait.
        unpolled: u32,
    },
    /// A CQ was not armed since the last event of it was read, and completions wait in it.
    NotArmedAgain {
        /// The CQ.
        cq: Cq,
        /// How many wait.
        unpolled: u32,
    },
    /// No completion of a CQ was ever polled.
    NeverPolled {
        /// The CQ.
        cq: Cq,
        /// How many wait that are no flush.
        unpolled: u32,
    },
    /// The ends of a connection do not fit together.
    EndsDiffer {
        /// Number of the QP that came last to where it shows.
        qp_num: u32,
        /// The node and the number of its peer.
        peer: (u32, u32),
        /// What differs, with both values: at the QP, and at its peer.
        what: &'static str,
        /// The value at the QP.
        own: u64,
        /// The value at its peer.
        others: u64,
    },
    /// Sends were posted on a QP in the error state, after a completion had told of that.
    PostedInError {
        /// Number of the QP.
        qp_num: u32,
    },
    /// A thread waits, and nothing that is under way ends that.
    Waits {
        /// What it has called: a verb, or a function of the system.
        call: &'static str,
        /// What it waits for, in words.
        waits_for: String,
        /// For how long, if that is known.
        since: Option<Duration>,
        /// Why nothing comes.
        class: Class,
        /// In words, with what would end it.
        why: String,
    },
    /// The program was stopped, and had polled a CQ that had nothing many times.
    PolledInVain {
        /// The CQ.
        cq: Cq,
        /// How often since its last completion.
        times: u64,
        /// What may still complete in it, in words.
        outstanding: String,
    },
    /// A request of a peer in another process was refused. That of a peer in this one is in its `Failed`. The place is where
    /// the region was registered or deregistered, if it is for that.
    RequestRefused {
        /// What was asked for, such as `a write`.
        operation: &'static str,
        /// The number of the peer's QP, in its process.
        from: u32,
        /// The number of the QP that refused it.
        qp_num: u32,
        /// How the peer's work ends.
        status: WcStatus,
        /// What for, in words.
        why: String,
    },
    /// Packets were not taken.
    Dropped {
        /// The node and the number of the QP they came from; the node is `None` if it is another process's, and the number 0
        /// if it is not known.
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
    /// Events were read and not acknowledged: the destroy of what they are of would wait for ever. A thread that does
    /// wait so is another mistake, and a certain one.
    Unacknowledged {
        /// What they are of.
        of: String,
        /// How many.
        events: u32,
    },
    /// Objects are still there.
    NotDestroyed {
        /// Which, with how they stand, and where they were made: users before what they use.
        names: Vec<(String, Option<Site>)>,
        /// How often the device is still open.
        contexts: u32,
        /// They went with their context, which was closed all the same (DEV-03).
        closed: bool,
    },
    /// The bytes of a send changed before its completion was polled.
    Changed {
        /// Number of its QP.
        qp_num: u32,
        /// The program's number for it ([`SendWr::label`](verbs_api::SendWr::label)).
        wr_id: u64,
    },
    /// Work uses memory of a region that is not mapped any more. The place is that of the registration.
    Unmapped {
        /// The region.
        mr: Mr,
        /// The first of the bytes in the region.
        offset: u64,
        /// How many there are.
        length: u64,
    },
    /// A region was deregistered before the completion of work that names it was polled.
    DeregisteredEarly {
        /// The region.
        mr: Mr,
        /// The work, the last that was posted.
        work: String,
        /// Where that was posted, if it is known.
        posted: Option<Site>,
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
    /// Where what it speaks of was made or destroyed, behind words that say which; if it is known.
    pub place: Option<(&'static str, Site)>,
}

/// How devices and places are called where a finding is printed.
pub(crate) struct Names<'a> {
    pub(crate) device: &'a dyn Fn(u32) -> String,
    pub(crate) place: &'a dyn Fn(Site) -> String,
}

impl Why {
    fn in_words(&self, names: &Names<'_>) -> String {
        let at = self
            .node
            .map(|node| format!("at {}, ", (names.device)(node)));
        let place = self
            .place
            .map(|(what, site)| format!(", {what} {}", (names.place)(site)));
        let (at, place) = (at.unwrap_or_default(), place.unwrap_or_default());
        format!(": {at}{}{place}", self.text)
    }
}

/// As many names are printed at most.
const NAMES: usize = 8;

impl Diagnosis {
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.mistakes.is_empty() && self.leftovers.is_empty()
    }

    /// All there is, in the order in which it is printed.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.mistakes.iter().chain(&self.leftovers)
    }

    /// The same as printing it, with names of devices other than `sim0`, `sim1`, ..., and names of places.
    pub fn with_names(
        &self,
        name: impl Fn(u32) -> String,
        place: impl Fn(Site) -> String,
    ) -> String {
        let mut text = String::new();
        let mut helped = Vec::new();
        for finding in self.findings() {
            text += &format!("{}\n", finding.in_words(&name, &place));
            let class = finding.class();
            if !helped.contains(&class) {
                helped.push(class);
                text += &format!("help: {class}: {} ({})\n", class.remedy(), class.rule());
            }
        }
        text
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_names(default_name, |site| site.to_string()))
    }
}

fn default_name(node: u32) -> String {
    format!("sim{node}")
}

impl Finding {
    pub(crate) fn new(node: u32, noted: Noted) -> Self {
        let Noted {
            problem,
            site,
            more,
        } = noted;
        Self {
            node,
            certainty: problem.class().certainty(),
            problem,
            site,
            more,
        }
    }

    /// Of which class it is.
    pub fn class(&self) -> Class {
        self.problem.class()
    }

    /// What is wrong, in words: the line without device, class, count and place.
    pub fn sentence(
        &self,
        name: &impl Fn(u32) -> String,
        place: &impl Fn(Site) -> String,
    ) -> String {
        self.problem.in_words(&Names {
            device: name,
            place,
        })
    }

    /// A line without its end: the device, the class, a sentence, and the place.
    pub fn in_words(
        &self,
        name: &impl Fn(u32) -> String,
        place: &impl Fn(Site) -> String,
    ) -> String {
        let (node, class) = (name(self.node), self.class());
        let level = match self.certainty {
            Certainty::Certain => "",
            Certainty::Hint => "hint: ",
        };
        let words = self.sentence(name, place);
        let more = match self.more {
            0 => String::new(),
            more => format!(", and {} more", counted(more, "time", "times")),
        };
        let site = self.site.map(|site| format!(" ({})", place(site)));
        format!(
            "{node}: {class}: {level}{words}{more}{}",
            site.unwrap_or_default()
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(&default_name, &|site: Site| site.to_string()))
    }
}

impl Problem {
    pub(crate) fn in_words(&self, names: &Names<'_>) -> String {
        match self {
            Self::Failed {
                qp_num,
                receive,
                wr_id,
                status,
                why,
            } => {
                let kind = if *receive { "receive" } else { "send" };
                let why = why
                    .as_ref()
                    .map_or(String::new(), |why| why.in_words(names));
                format!("{kind} {wr_id:#x} of qp {qp_num:#x} failed with {status}{why}")
            }
            Self::Refused { error, .. } => {
                let posted = match error.cause() {
                    Cause::QueueFull { .. } => ": no slot is free until a completion is polled",
                    _ => "",
                };
                format!("{error}{posted}")
            }
            Self::Misused { text, .. } => text.clone(),
            Self::Overrun { cq, cqe, lost, qps } => {
                let entries = counted((*cqe).into(), "entry", "entries");
                let lost = counted(*lost, "completion was", "completions were");
                let qps: Vec<_> = qps.iter().map(|qp| format!("qp {qp:#x}")).collect();
                let qps = qps.join(", ");
                format!("{cq}, of {entries}, has overrun: {lost} lost, of {qps}")
            }
            Self::SmallCq {
                cq,
                cqe,
                unpolled,
                outstanding,
            } => {
                let entries = counted((*cqe).into(), "entry", "entries");
                let holds = counted((*unpolled).into(), "completion", "completions");
                let more = counted(*outstanding, "work request", "work requests");
                format!("{cq}, of {entries}, holds {holds}, and {more} may yet complete in it")
            }
            Self::ArmedWithoutChannel { cq } => {
                format!("{cq} is armed, but has no completion channel: no event comes of it")
            }
            Self::LostWakeup {
                cq,
                armed,
                unpolled,
                partly,
            } => {
                let wait = counted((*unpolled).into(), "completion waits", "completions wait");
                let partly = match partly {
                    true => ", which the poll before had no room for",
                    false => "",
                };
                format!(
                    "{cq} is {armed}, and {wait} in it from before{partly}: no event tells of that"
                )
            }
            Self::SolicitedOnly { cq, unpolled } => {
                let wait = counted((*unpolled).into(), "completion waits", "completions wait");
                format!(
                    "{cq} is armed solicited, and {wait} in it that nobody solicited: no event tells of that"
                )
            }
            Self::OtherPolled { cq, unpolled } => {
                let wait = counted((*unpolled).into(), "completion waits", "completions wait");
                format!("an event of {cq} was read, and {cq} was not polled since: {wait} in it")
            }
            Self::NotArmedAgain { cq, unpolled } => {
                let wait = counted((*unpolled).into(), "completion waits", "completions wait");
                format!(
                    "{cq} was not armed again since its last event was read, and {wait} in it: no event tells of that"
                )
            }
            Self::NeverPolled { cq, unpolled } => {
                let wait = counted((*unpolled).into(), "completion waits", "completions wait");
                format!("{cq} was never polled: {wait} in it")
            }
            Self::EndsDiffer {
                qp_num,
                peer: (node, peer),
                what,
                own,
                others,
            } => {
                let node = (names.device)(*node);
                format!(
                    "{what}: {own} at qp {qp_num:#x}, and {others} at its peer, qp {peer:#x} of {node}"
                )
            }
            Self::PostedInError { qp_num } => {
                format!(
                    "a send was posted on qp {qp_num:#x}, after a completion had shown that it is in ERR: it is only flushed"
                )
            }
            Self::Waits {
                call,
                waits_for,
                since,
                why,
                ..
            } => {
                let now = |since: &Duration| format!(", for {:.1} s now", since.as_secs_f64());
                let since = since.as_ref().map(now).unwrap_or_default();
                format!("a thread waits in {call} for {waits_for}{since}: {why}")
            }
            Self::PolledInVain {
                cq,
                times,
                outstanding,
            } => {
                let times = counted(*times, "time", "times");
                format!("{cq} was polled {times} since its last completion: {outstanding}")
            }
            Self::RequestRefused {
                operation,
                from,
                qp_num,
                why,
                ..
            } => {
                let from = format!("qp {from:#x} of another process");
                format!("{operation} from {from} was refused by qp {qp_num:#x}: {why}")
            }
            Self::Dropped {
                from: (node, from),
                qp_num,
                why,
                count,
            } => {
                let packets = counted(*count, "packet", "packets");
                let node = node.map_or_else(|| "another process".to_owned(), names.device);
                let from = match from {
                    0 => node,
                    _ => format!("qp {from:#x} of {node}"),
                };
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
            Self::NotDestroyed {
                names: left,
                contexts,
                closed,
            } => {
                let before = match closed {
                    true => " before the context was closed",
                    false => "",
                };
                let mut parts = Vec::new();
                if !left.is_empty() {
                    let place = |site| format!(" ({})", (names.place)(site));
                    let shown = left.iter().take(NAMES).map(|(name, site)| {
                        format!("{name}{}", site.map(place).unwrap_or_default())
                    });
                    let shown = shown.collect::<Vec<_>>().join(", ");
                    let more = left.len().saturating_sub(NAMES);
                    let more = (more > 0).then(|| format!(", and {more} more"));
                    parts.push(format!(
                        "not destroyed{before}: {shown}{}",
                        more.unwrap_or_default()
                    ));
                }
                if *contexts > 0 {
                    let contexts = counted((*contexts).into(), "context", "contexts");
                    parts.push(format!("{contexts} not closed"));
                }
                parts.join("; ")
            }
            Self::Changed { qp_num, wr_id } => {
                format!(
                    "the bytes of send {wr_id:#x} of qp {qp_num:#x} were changed before its completion was polled"
                )
            }
            Self::Unmapped { mr, offset, length } => {
                let not_mapped = reason::NOT_MAPPED;
                format!("work uses {mr}, of which {length} bytes from {offset:#x} on {not_mapped}")
            }
            Self::DeregisteredEarly { mr, work, posted } => {
                let posted =
                    posted.map(|site| format!(", which was posted at {}", (names.place)(site)));
                let posted = posted.unwrap_or_default();
                format!("{mr} was deregistered before the completion of {work} was polled{posted}")
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
