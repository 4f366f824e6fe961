//! Findings in words.

use core::fmt;
use core::time::Duration;

use verbs_api::site::Site;
use verbs_api::{Cause, CompChannel, Cq, FullQueue};

use super::class::Certainty;
use super::{Diagnosis, Finding, Problem, Why};

/// How devices, places and objects are called where findings are printed.
pub trait Names {
    /// A device, by its number: `sim0`, ...
    fn device(&self, node: u32) -> String {
        format!("sim{node}")
    }

    /// A place: `client.rs:17`.
    fn place(&self, site: Site) -> String {
        site.to_string()
    }

    /// A CQ: `cq#0`.
    fn cq(&self, cq: Cq) -> String {
        cq.to_string()
    }

    /// A completion channel: `channel#0`.
    fn channel(&self, channel: CompChannel) -> String {
        channel.to_string()
    }
}

/// Names that hold in each process: no address of any memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlainNames;

impl Names for PlainNames {}

/// As many names are printed at most.
const MOST: usize = 8;

impl Diagnosis {
    /// The same as printing it, with other names.
    pub fn with_names(&self, names: &dyn Names) -> String {
        let mut text = String::new();
        let mut helped = Vec::new();
        for finding in self.findings() {
            text += &format!("{}\n", finding.in_words(names));
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
        f.write_str(&self.with_names(&PlainNames))
    }
}

impl Finding {
    /// What is wrong, in words: the line without device, class, count and place.
    pub fn sentence(&self, names: &dyn Names) -> String {
        self.problem.in_words(names)
    }

    /// A line without its end: the device, the class, a sentence, and the place.
    pub fn in_words(&self, names: &dyn Names) -> String {
        let (node, class) = (names.device(self.node), self.class());
        let level = match self.certainty {
            Certainty::Certain => "",
            Certainty::Hint => "hint: ",
        };
        let words = self.sentence(names);
        let more = match self.more {
            0 => String::new(),
            more => format!(", and {} more", counted(more, "time", "times")),
        };
        let site = self.site.map(|site| format!(" ({})", names.place(site)));
        format!(
            "{node}: {class}: {level}{words}{more}{}",
            site.unwrap_or_default()
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(&PlainNames))
    }
}

impl Why {
    fn in_words(&self, names: &dyn Names) -> String {
        let at = self.node.map(|node| format!("at {}, ", names.device(node)));
        let (at, place) = (at.unwrap_or_default(), beside(self.place, names));
        format!(": {at}{}{place}", self.cause)
    }
}

/// A place that a sentence speaks of, at its end.
fn beside(place: Option<(&'static str, Site)>, names: &dyn Names) -> String {
    let place = place.map(|(what, site)| format!(", {what} {}", names.place(site)));
    place.unwrap_or_default()
}

impl Problem {
    pub(crate) fn in_words(&self, names: &dyn Names) -> String {
        match self {
            Self::Failed {
                qp_num,
                receive,
                wr_id,
                status,
                why,
                ..
            } => {
                let kind = if *receive { "receive" } else { "send" };
                let why = why
                    .as_ref()
                    .map_or(String::new(), |why| why.in_words(names));
                let handled = if self.is_excused() {
                    "; the program went on"
                } else {
                    ""
                };
                format!("{kind} {wr_id:#x} of qp {qp_num:#x} failed with {status}{why}{handled}")
            }
            Self::Refused { error, .. } => {
                let posted = match error.cause() {
                    Cause::QueueFull {
                        queue: FullQueue::UnsignaledSend,
                        ..
                    } => ": no slot is ever free again",
                    Cause::QueueFull { .. } => ": no slot is free until a completion is polled",
                    _ => "",
                };
                format!("{error}{posted}")
            }
            Self::Misused { text, place, .. } => format!("{text}{}", beside(*place, names)),
            Self::Unposted { qp_num, requests } => {
                let requests = counted(*requests as u64, "work request", "work requests");
                format!(
                    "a batch of {requests} on qp {qp_num:#x} was begun, and neither completed nor aborted"
                )
            }
            Self::Overrun { cq, cqe, lost, qps } => {
                let cq = names.cq(*cq);
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
                let cq = names.cq(*cq);
                let entries = counted((*cqe).into(), "entry", "entries");
                let holds = counted((*unpolled).into(), "completion", "completions");
                let more = counted(*outstanding, "work request", "work requests");
                format!("{cq}, of {entries}, holds {holds}, and {more} may yet complete in it")
            }
            Self::ArmedWithoutChannel { cq } => {
                let cq = names.cq(*cq);
                format!("{cq} is armed, but has no completion channel: no event comes of it")
            }
            Self::LostWakeup {
                cq,
                armed,
                unpolled,
                partly,
            } => {
                let cq = names.cq(*cq);
                let wait = waiting(*unpolled);
                let partly = match partly {
                    true => ", which the poll before had no room for",
                    false => "",
                };
                format!(
                    "{cq} is {armed}, and {wait} in it from before{partly}: no event tells of that"
                )
            }
            Self::SolicitedOnly {
                cq,
                unpolled,
                of_sends,
            } => {
                let cq = names.cq(*cq);
                let (wait, why) = match of_sends {
                    true => {
                        let (one, many) =
                            ("completion of a send waits", "completions of sends wait");
                        let wait = counted((*unpolled).into(), one, many);
                        (wait, ", which nobody can solicit")
                    }
                    false => (waiting(*unpolled), " that nobody solicited"),
                };
                format!("{cq} is armed solicited, and {wait} in it{why}: no event tells of that")
            }
            Self::OtherPolled { cq, unpolled, .. } => {
                let cq = names.cq(*cq);
                let wait = waiting(*unpolled);
                format!("an event of {cq} was read, and {cq} was not polled since: {wait} in it")
            }
            Self::NotArmedAgain { cq, unpolled } => {
                let cq = names.cq(*cq);
                let wait = waiting(*unpolled);
                format!(
                    "{cq} was not armed again since its last event was read, and {wait} in it: no event tells of that"
                )
            }
            Self::NeverPolled { cq, unpolled } => {
                let cq = names.cq(*cq);
                let wait = waiting(*unpolled);
                format!("{cq} was never polled: {wait} in it")
            }
            Self::EndsDiffer {
                qp_num,
                peer: (node, peer),
                what,
                own,
                others,
            } => {
                let node = names.device(*node);
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
                place,
                of,
                ..
            } => {
                let now = |since: &Duration| format!(", for {:.1} s now", since.as_secs_f64());
                let since = since.as_ref().map(now).unwrap_or_default();
                let text = match of.as_deref() {
                    Some(Self::Unacknowledged { of, last, events }) => {
                        let events = read_events(of, last.as_deref(), *events);
                        format!("{events} not acknowledged")
                    }
                    Some(problem) => problem.in_words(names),
                    None => why.clone(),
                };
                let place = beside(*place, names);
                format!("a thread waits in {call} for {waits_for}{since}: {text}{place}")
            }
            Self::PolledInVain {
                cq,
                times,
                outstanding,
            } => {
                let cq = names.cq(*cq);
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
                format!(
                    "{operation} from {from} was refused by qp {qp_num:#x}: {}",
                    why.cause
                )
            }
            Self::Dropped {
                from: (node, from),
                qp_num,
                why,
                details,
                count,
                tries,
            } => {
                let packets = counted(*count, "packet", "packets");
                let node =
                    node.map_or_else(|| "another process".to_owned(), |node| names.device(node));
                let from = match from {
                    0 => node,
                    _ => format!("qp {from:#x} of {node}"),
                };
                let tries = match tries == count {
                    true => String::new(),
                    false => format!(", in {tries} tries"),
                };
                let details = details.as_ref().map(|details| format!(": {details}"));
                let details = details.unwrap_or_default();
                format!("{packets} from {from} for qp {qp_num:#x} not taken{tries}: {why}{details}")
            }
            Self::UnownedGid { qp_num, gid } => {
                format!("a datagram of qp {qp_num:#x} is lost: no device has the address {gid}")
            }
            Self::Garbage { why, count } => {
                let datagrams = counted(*count, "datagram", "datagrams");
                format!("{datagrams} from the network not taken: {why}")
            }
            Self::Unpolled { cq, unpolled } => {
                let cq = names.cq(*cq);
                let completions = counted((*unpolled).into(), "completion", "completions");
                format!("{completions} of {cq} not polled")
            }
            Self::Unread { channel, events } => {
                let channel = names.channel(*channel);
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
            Self::Unacknowledged { of, last, events } => {
                let events = read_events(of, last.as_deref(), *events);
                format!("{events} read and not acknowledged: its destroy would wait")
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
                    let place = |site| format!(" ({})", names.place(site));
                    let shown = left.iter().take(MOST).map(|(name, site)| {
                        format!("{name}{}", site.map(place).unwrap_or_default())
                    });
                    let shown = shown.collect::<Vec<_>>().join(", ");
                    let more = left.len().saturating_sub(MOST);
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
                format!(
                    "work uses {mr}, of which {length} bytes from {offset:#x} on are not all mapped"
                )
            }
            Self::DeregisteredEarly { mr, work, posted } => {
                let posted =
                    posted.map(|site| format!(", which was posted at {}", names.place(site)));
                let posted = posted.unwrap_or_default();
                format!("{mr} was deregistered before the completion of {work} was polled{posted}")
            }
        }
    }
}

/// How many completions wait.
fn waiting(unpolled: u32) -> String {
    counted(unpolled.into(), "completion waits", "completions wait")
}

/// Events of something that were read, and which was the last.
fn read_events(of: &str, last: Option<&str>, events: u32) -> String {
    let last = match last {
        None => String::new(),
        Some(last) if events == 1 => format!(", {last},"),
        Some(last) => format!(", the last {last},"),
    };
    let events = counted(events.into(), "event", "events");
    format!("{events} of {of}{last}")
}

/// A number of things.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    }
}
