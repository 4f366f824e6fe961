//! Fault rules: what a simulator does on purpose to packets, links, calls, completions and
//! resources.
//!
//! A [`Fault`] says what it looks at, [`When`] it fires, and what it does then. Rules are in
//! force from [`Lab::inject`] to [`Lab::remove`], or as long as a [`FaultGuard`] lives. Each counts
//! everything that matches it from then on. If several would fire on the same thing, the first one
//! does. Each rule counts by itself and draws from a random stream of its own, so removing one does
//! not change what another fires on, as long as the same things happen.

use core::fmt;
use core::time::Duration;
use std::collections::BTreeSet;

use crate::cq::WcStatus;
use crate::error::{Cause, Error, ErrorKind, Result, Verb};
use crate::lab::{Lab, Limit};
use crate::packet::{CmMessage, PacketClass, PacketOpcode};

/// A rule: what it looks at, when it fires, what it does then.
///
/// Nodes are numbered as in the device list and in the trace, from 0. A rule begins with what it
/// does. It always fires unless it goes on with when:
///
/// ```
/// use core::time::Duration;
/// use verbs_api::lab::{Fault, PacketClass, PacketFilter};
/// use verbs_api::{ErrorKind, Verb};
///
/// // The second packet of read responses to QP 2 of node 0 is lost.
/// let answers = PacketFilter::EVERY.class(PacketClass::ReadResponse);
/// let lost = Fault::drop(answers.to(0).dest_qpn(2)).nth(2);
/// // The first three posts on node 1 find the queue full.
/// let full = Fault::fail(Verb::PostSend, ErrorKind::NoMemory).node(1).first(3);
/// // Node 0 is cut off from node 2 in the second second.
/// let (from, to) = (Duration::from_secs(1), Duration::from_secs(2));
/// let cut = Fault::link_down(0).peer(2).down_at(from).up_at(to);
/// for fault in [lost, full, cut] {
///     assert!(fault.check().is_ok());
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Fault {
    /// Affect packets on their way.
    #[non_exhaustive]
    Packet {
        /// Which.
        packets: PacketFilter,
        /// When.
        when: When,
        /// What happens to them.
        effect: Effect,
    },
    /// A link is down for a time: what leaves in that time, in either direction, is lost. The ports
    /// stay up, so no program gets an event.
    #[non_exhaustive]
    Link {
        /// A node at one end.
        node: u32,
        /// The node at the other end; `None` means all others, which cuts the node off.
        peer: Option<u32>,
        /// From this time of the simulator's clock.
        down_at: Duration,
        /// Until this time, which is not included; `None` is forever.
        up_at: Option<Duration>,
    },
    /// A port is down for a time, as by [`Lab::set_port`]: programs get `PORT_ERR` and
    /// `PORT_ACTIVE` (ASYNC-09). If the port is down when the rule is taken out of force, it comes
    /// up. [`Lab::settle`] does not wait for changes of ports.
    #[non_exhaustive]
    Port {
        /// The node.
        node: u32,
        /// Which port, from 1.
        port: u8,
        /// From this time of the simulator's clock; at once if it is past.
        down_at: Duration,
        /// Until this time; `None` is forever.
        up_at: Option<Duration>,
    },
    /// Make calls of a verb fail. The call has no other effect.
    #[non_exhaustive]
    Call {
        /// Only on this node; `None` is on any.
        node: Option<u32>,
        /// Which verb.
        verb: Verb,
        /// When.
        when: When,
        /// With which error.
        error: ErrorKind,
    },
    /// Turn successful completions into errors. Each has the effects of a real one: the QP goes to
    /// the error state, or after a UC or UD send to SQE where the device has that state, and the
    /// work behind it is flushed.
    #[non_exhaustive]
    Completion {
        /// Only of QPs of this node; `None` is of any.
        node: Option<u32>,
        /// Only of QPs with this number; `None` is of any. Each node numbers its own QPs.
        qpn: Option<u32>,
        /// When.
        when: When,
        /// With which status; [`WcStatus::Success`] is refused.
        status: WcStatus,
    },
    /// A resource is scarce, as by [`Lab::set_limit`]; if both set a limit, the lower counts. The
    /// rule fires when it makes a call fail.
    #[non_exhaustive]
    Limit {
        /// Only on this node; `None` is on each.
        node: Option<u32>,
        /// Which resource.
        limit: Limit,
        /// How much of it there is.
        value: u64,
    },
}

/// The effect of a rule on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// The packet never arrives.
    Drop,
    /// The packet arrives with a wrong checksum, and is dropped there (TMR-12).
    Corrupt,
    /// The packet arrives twice (TMR-09), the second time after this delay; zero is right after the
    /// first.
    ///
    /// The second one arrives when a delayed packet would ([`Delay`](Self::Delay)).
    Duplicate(Duration),
    /// The packet arrives after this delay. Later packets overtake it; all keep the bytes that they
    /// left with. Zero is refused.
    ///
    /// It arrives when the clock reaches that time: by waiting, polling or settling (stepped), by
    /// [`Lab::advance`] and [`Lab::settle`] (inline, where the clock stands still), or by itself
    /// (real time).
    Delay(Duration),
    /// The next n packets on the same link, from its node to the node it goes to, overtake it: it
    /// arrives right behind the last of them. Packets that arrive late or never do not count. If
    /// fewer follow, it arrives as if delayed by [`REORDER_WITHIN`](Self::REORDER_WITHIN). Zero is
    /// refused.
    Reorder(u32),
    /// The link is slow: the packet arrives later, when a delayed packet would
    /// ([`Delay`](Self::Delay)). Packets of a rule stay in order on each link, from its node to the
    /// node it goes to.
    Shape(Shape),
    /// The packet waits until the rule is removed, and then arrives as if it had just left. Held
    /// packets stay in order. [`Lab::settle`] does not wait for them.
    Hold,
}

/// How slow a link is. The words are those of the network emulator of Linux (`tc-netem`), but a
/// packet never overtakes another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shape {
    /// Each packet arrives this much later. Default: 0.
    pub delay: Duration,
    /// In addition, each packet takes longer by a time that is drawn from the seed, on the scale of
    /// this. Default: 0.
    pub jitter: Duration,
    /// How that time is distributed. Default: [`Distribution::Uniform`].
    pub distribution: Distribution,
    /// Bytes in a second, of packets with their 62 bytes of headers and checksums. A packet waits
    /// for those before it. 0 is refused. Default: no limit.
    pub rate: Option<u64>,
}

/// How the times are distributed by which packets of a slow link are late, in addition to its
/// delay. The names are those of `tc-netem`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Distribution {
    /// From 0 to the jitter, all with the same probability.
    #[default]
    Uniform,
    /// From 0 to the jitter, mostly about half of it: the mean of four uniform ones.
    Normal,
    /// Mostly less than the jitter, but with a long tail: 1 in 100 takes more than 9 times the
    /// jitter, and 1 in 10,000 more than 99 times.
    Pareto,
}

impl Distribution {
    /// Every distribution.
    pub const ALL: &[Self] = &[Self::Uniform, Self::Normal, Self::Pareto];

    /// The name, such as `uniform`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Normal => "normal",
            Self::Pareto => "pareto",
        }
    }
}

impl Shape {
    /// A link that is not slow.
    pub const fn new() -> Self {
        Self {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            distribution: Distribution::Uniform,
            rate: None,
        }
    }

    /// Each packet arrives this much later.
    #[must_use]
    pub const fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Each packet takes longer by a random time on the scale of this.
    #[must_use]
    pub const fn jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }

    /// The random times are distributed like this.
    #[must_use]
    pub const fn distribution(mut self, distribution: Distribution) -> Self {
        self.distribution = distribution;
        self
    }

    /// This many bytes leave in a second.
    #[must_use]
    pub const fn rate(mut self, bytes: u64) -> Self {
        self.rate = Some(bytes);
        self
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delay {:?}, jitter {:?}", self.delay, self.jitter)?;
        if self.distribution != Distribution::Uniform {
            write!(f, " ({})", self.distribution.name())?;
        }
        match self.rate {
            Some(rate) => write!(f, ", {rate} bytes a second"),
            None => Ok(()),
        }
    }
}

impl Effect {
    /// The longest delay of a reordered packet: far less than any wait for an
    /// acknowledgement that a program would ask for (TMR-01).
    pub const REORDER_WITHIN: Duration = Duration::from_micros(100);

    /// Whether the packet arrives later than without the rule.
    pub const fn is_late(self) -> bool {
        matches!(
            self,
            Self::Delay(_) | Self::Reorder(_) | Self::Shape(_) | Self::Hold
        )
    }

    /// The name, such as `drop`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Corrupt => "corrupt",
            Self::Duplicate(_) => "duplicate",
            Self::Delay(_) => "delay",
            Self::Reorder(_) => "reorder",
            Self::Shape(_) => "shape",
            Self::Hold => "hold",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Duplicate(by) if by.is_zero() => Ok(()),
            Self::Duplicate(by) | Self::Delay(by) => write!(f, " by {by:?}"),
            Self::Reorder(count) => write!(f, " behind {count}"),
            Self::Shape(shape) => write!(f, " by {shape}"),
            Self::Drop | Self::Corrupt | Self::Hold => Ok(()),
        }
    }
}

/// The matches that a rule fires on: counted from 1, from the moment the rule is in
/// force.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// Every one.
    Always,
    /// The nth and no other.
    Nth(u64),
    /// The first n.
    First(u64),
    /// Exactly these. None at all is allowed, and fires on nothing.
    These(BTreeSet<u64>),
    /// Each with this probability in a million, drawn from the seed.
    PerMillion(u32),
}

/// The packets that a rule matches: those that meet all conditions. The default is every packet.
///
/// ```
/// use verbs_api::lab::{PacketClass, PacketFilter};
///
/// let to_node_0 = PacketFilter::EVERY.to(0);
/// let responses = to_node_0.class(PacketClass::Response);
/// assert_eq!((responses.to, responses.psn), (Some(0), None));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PacketFilter {
    /// Only packets from this node.
    pub from: Option<u32>,
    /// Only packets to this node.
    pub to: Option<u32>,
    /// Only packets from this QP number. Packets of connected QPs do not carry it, but the
    /// simulator knows it.
    pub src_qpn: Option<u32>,
    /// Only packets to this QP number.
    pub dest_qpn: Option<u32>,
    /// Only packets with this opcode.
    pub opcode: Option<PacketOpcode>,
    /// Only packets of this class.
    pub class: Option<PacketClass>,
    /// Only packets with this sequence number.
    pub psn: Option<u32>,
    /// Only packets with this message of communication management.
    pub cm: Option<CmMessage>,
}

impl PacketFilter {
    /// Every packet.
    pub const EVERY: Self = Self {
        from: None,
        to: None,
        src_qpn: None,
        dest_qpn: None,
        opcode: None,
        class: None,
        psn: None,
        cm: None,
    };

    /// Only from this node.
    #[must_use]
    pub const fn from(mut self, node: u32) -> Self {
        self.from = Some(node);
        self
    }

    /// Only to this node.
    #[must_use]
    pub const fn to(mut self, node: u32) -> Self {
        self.to = Some(node);
        self
    }

    /// Only from this QP number, of 24 bits.
    #[must_use]
    pub const fn src_qpn(mut self, qpn: u32) -> Self {
        self.src_qpn = Some(qpn);
        self
    }

    /// Only to this QP number, of 24 bits.
    #[must_use]
    pub const fn dest_qpn(mut self, qpn: u32) -> Self {
        self.dest_qpn = Some(qpn);
        self
    }

    /// Only with this opcode.
    #[must_use]
    pub const fn opcode(mut self, opcode: PacketOpcode) -> Self {
        self.opcode = Some(opcode);
        self
    }

    /// Only of this class.
    #[must_use]
    pub const fn class(mut self, class: PacketClass) -> Self {
        self.class = Some(class);
        self
    }

    /// Only with this sequence number, of 24 bits.
    #[must_use]
    pub const fn psn(mut self, psn: u32) -> Self {
        self.psn = Some(psn);
        self
    }

    /// Only with this message of communication management, which goes to QP 1.
    #[must_use]
    pub const fn cm(mut self, message: CmMessage) -> Self {
        self.cm = Some(message);
        self
    }
}

/// Names a rule that is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FaultId(pub u64);

/// A rule has fired ([`Lab::firings`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Firing {
    /// The rule.
    pub fault: FaultId,
    /// The match of the rule that it fired on, counted from 1.
    pub ordinal: u64,
}

impl Fault {
    /// Packets never arrive ([`Effect::Drop`]).
    pub const fn drop(packets: PacketFilter) -> Self {
        Self::packet(packets, Effect::Drop)
    }

    /// Packets arrive damaged ([`Effect::Corrupt`]).
    pub const fn corrupt(packets: PacketFilter) -> Self {
        Self::packet(packets, Effect::Corrupt)
    }

    /// Packets arrive twice, the second time this much later ([`Effect::Duplicate`]).
    pub const fn duplicate(packets: PacketFilter, by: Duration) -> Self {
        Self::packet(packets, Effect::Duplicate(by))
    }

    /// Packets arrive this much later ([`Effect::Delay`]).
    pub const fn delay(packets: PacketFilter, by: Duration) -> Self {
        Self::packet(packets, Effect::Delay(by))
    }

    /// This many others overtake a packet ([`Effect::Reorder`]).
    pub const fn reorder(packets: PacketFilter, behind: u32) -> Self {
        Self::packet(packets, Effect::Reorder(behind))
    }

    /// Links are slow for packets ([`Effect::Shape`]).
    pub const fn shape(packets: PacketFilter, shape: Shape) -> Self {
        Self::packet(packets, Effect::Shape(shape))
    }

    /// Packets wait until the rule is removed ([`Effect::Hold`]).
    pub const fn hold(packets: PacketFilter) -> Self {
        Self::packet(packets, Effect::Hold)
    }

    /// Packets are affected in the way that a value says.
    pub const fn packet(packets: PacketFilter, effect: Effect) -> Self {
        Self::Packet {
            packets,
            when: When::Always,
            effect,
        }
    }

    /// The links of a node are down, all or only the one to a [`peer`](Self::peer). They are down
    /// from the start and forever, unless [`down_at`](Self::down_at) and [`up_at`](Self::up_at) are
    /// given.
    pub const fn link_down(node: u32) -> Self {
        Self::Link {
            node,
            peer: None,
            down_at: Duration::ZERO,
            up_at: None,
        }
    }

    /// A port, from 1, is down, at the times of [`link_down`](Self::link_down).
    pub const fn port_down(node: u32, port: u8) -> Self {
        Self::Port {
            node,
            port,
            down_at: Duration::ZERO,
            up_at: None,
        }
    }

    /// Calls of a verb fail, on any [`node`](Self::node).
    pub const fn fail(verb: Verb, error: ErrorKind) -> Self {
        Self::Call {
            node: None,
            verb,
            when: When::Always,
            error,
        }
    }

    /// Successful work completes with an error, on any [`node`](Self::node) and queue pair
    /// ([`qpn`](Self::qpn)).
    pub const fn complete(status: WcStatus) -> Self {
        Self::Completion {
            node: None,
            qpn: None,
            when: When::Always,
            status,
        }
    }

    /// Each [`node`](Self::node) has no more than this much of a resource.
    pub const fn limit(limit: Limit, value: u64) -> Self {
        Self::Limit {
            node: None,
            limit,
            value,
        }
    }

    /// Only the nth thing that matches, from 1. This and the next three do not affect links, ports
    /// and limits.
    #[must_use]
    pub fn nth(self, n: u64) -> Self {
        self.at(When::Nth(n))
    }

    /// Only the first n things that match.
    #[must_use]
    pub fn first(self, n: u64) -> Self {
        self.at(When::First(n))
    }

    /// Exactly these of the things that match, counted from 1.
    #[must_use]
    pub fn these(self, ordinals: impl IntoIterator<Item = u64>) -> Self {
        self.at(When::These(ordinals.into_iter().collect()))
    }

    /// Fires on each match with this probability in a million.
    #[must_use]
    pub fn per_million(self, rate: u32) -> Self {
        self.at(When::PerMillion(rate))
    }

    /// Only on this node: a rule for calls, completions or a limit.
    #[must_use]
    pub fn node(mut self, on: u32) -> Self {
        match &mut self {
            Self::Call { node, .. } | Self::Completion { node, .. } | Self::Limit { node, .. } => {
                *node = Some(on);
            }
            Self::Packet { .. } | Self::Link { .. } | Self::Port { .. } => {}
        }
        self
    }

    /// Only of queue pairs with this number, of 24 bits: a rule for completions.
    #[must_use]
    pub fn qpn(mut self, of: u32) -> Self {
        if let Self::Completion { qpn, .. } = &mut self {
            *qpn = Some(of);
        }
        self
    }

    /// Only the link to this node: a rule for links.
    #[must_use]
    pub fn peer(mut self, to: u32) -> Self {
        if let Self::Link { peer, .. } = &mut self {
            *peer = Some(to);
        }
        self
    }

    /// Takes links or a port down at this time of the simulator's clock.
    #[must_use]
    pub fn down_at(mut self, time: Duration) -> Self {
        if let Self::Link { down_at, .. } | Self::Port { down_at, .. } = &mut self {
            *down_at = time;
        }
        self
    }

    /// Takes links or a port up again at this time of the simulator's clock.
    #[must_use]
    pub fn up_at(mut self, time: Duration) -> Self {
        if let Self::Link { up_at, .. } | Self::Port { up_at, .. } = &mut self {
            *up_at = Some(time);
        }
        self
    }

    /// Checks what can be checked without a simulator. The names in the error are those of the
    /// fields.
    ///
    /// # Errors
    /// `Invalid` for an ordinal 0, a rate above a million, a delay or reordering by zero, a rate of
    /// 0 bytes, a link or port that comes up before it goes down, a port 0, a link from a node to
    /// itself, a status that is not an error, an error kind that its errno value does not have, or
    /// a PSN or QP number of more than 24 bits.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Packet {
                packets,
                when,
                effect,
            } => {
                for (what, value) in [
                    ("psn", packets.psn),
                    ("src_qpn", packets.src_qpn),
                    ("dest_qpn", packets.dest_qpn),
                ] {
                    check_24_bits(what, value)?;
                }
                match effect {
                    Effect::Delay(by) if by.is_zero() => refuse("by", "is zero: nothing is late"),
                    Effect::Reorder(0) => refuse("behind", "is 0: nothing overtakes the packet"),
                    Effect::Shape(shape) if shape.rate == Some(0) => {
                        refuse("rate", "is 0: nothing arrives")
                    }
                    _ => when.check(),
                }
            }
            Self::Link { node, peer, .. } if *peer == Some(*node) => {
                refuse("peer", "is the node itself")
            }
            Self::Port { port: 0, .. } => refuse("port", "is 0: ports count from 1"),
            Self::Link { down_at, up_at, .. } | Self::Port { down_at, up_at, .. } => match up_at {
                Some(up_at) if up_at <= down_at => refuse("up_at", "is not after down_at"),
                _ => Ok(()),
            },
            Self::Call { error, .. }
                if error.errno() <= 0 || ErrorKind::from_errno(error.errno()) != *error =>
            {
                refuse("error", "is not the kind of an errno value")
            }
            Self::Call { verb, .. } if *verb == Verb::Lab => {
                refuse("verb", "is of the test controls, which do not fail")
            }
            Self::Call { when, .. } => when.check(),
            Self::Completion { status, .. } if *status == WcStatus::Success => {
                refuse("status", "must be an error")
            }
            Self::Completion { qpn, when, .. } => {
                check_24_bits("qpn", *qpn)?;
                when.check()
            }
            Self::Limit { .. } => Ok(()),
        }
    }

    /// When it fires. `None` for links, ports and limits.
    pub fn when(&self) -> Option<&When> {
        match self {
            Self::Packet { when, .. } | Self::Call { when, .. } | Self::Completion { when, .. } => {
                Some(when)
            }
            Self::Link { .. } | Self::Port { .. } | Self::Limit { .. } => None,
        }
    }

    /// Replaces the matches that the rule fires on; links, ports and limits are unchanged.
    #[must_use]
    pub fn at(mut self, at: When) -> Self {
        match &mut self {
            Self::Packet { when, .. } | Self::Call { when, .. } | Self::Completion { when, .. } => {
                *when = at;
            }
            Self::Link { .. } | Self::Port { .. } | Self::Limit { .. } => {}
        }
        self
    }
}

impl When {
    fn check(&self) -> Result<()> {
        const MILLION: u32 = 1_000_000;
        match self {
            Self::Nth(0) => refuse("when", "counts from 1"),
            Self::These(ordinals) if ordinals.contains(&0) => refuse("when", "counts from 1"),
            Self::PerMillion(rate) => in_range("per_million", *rate, MILLION),
            _ => Ok(()),
        }
    }
}

/// A rule that is in force as long as this lives.
///
/// ```no_run
/// # use verbs_api::lab::{Fault, FaultGuard, Lab, PacketFilter};
/// # use verbs_api::Result;
/// # fn example(lab: &dyn Lab) -> Result<()> {
/// let loss = FaultGuard::new(lab, Fault::drop(PacketFilter::EVERY).first(3))?;
/// // ... a program runs ...
/// assert_eq!(loss.fired(), 3);
/// # Ok(())
/// # } // The rule is removed.
/// ```
#[must_use = "the rule goes with it"]
pub struct FaultGuard<'l> {
    lab: &'l dyn Lab,
    fault: FaultId,
}

impl<'l> FaultGuard<'l> {
    /// Puts a rule in force.
    ///
    /// # Errors
    /// The errors of [`Lab::inject`].
    pub fn new(lab: &'l dyn Lab, fault: Fault) -> Result<Self> {
        let fault = lab.inject(fault)?;
        Ok(Self { lab, fault })
    }

    /// The id of the rule.
    pub fn id(&self) -> FaultId {
        self.fault
    }

    /// The number of firings; 0 if the rule was removed by other means.
    pub fn fired(&self) -> u64 {
        self.lab.fired(self.fault).unwrap_or(0)
    }
}

impl Drop for FaultGuard<'_> {
    fn drop(&mut self) {
        // It may have been taken out of force by its number.
        let _ = self.lab.remove(self.fault);
    }
}

impl fmt::Debug for FaultGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FaultGuard").field(&self.fault).finish()
    }
}

/// Hosts that do not reach each other as long as this lives: all links between the nodes of one
/// group of hosts and those of another are down. Their packets are lost, so peers notice by their
/// retries.
///
/// ```no_run
/// # use verbs_api::lab::{Lab, Partition};
/// # use verbs_api::Result;
/// # fn example(lab: &dyn Lab) -> Result<()> {
/// let partition = Partition::new(lab, &["ada"], &["bob", "eve"])?;
/// // ... a program runs ...
/// drop(partition); // They reach each other again.
/// # Ok(())
/// # }
/// ```
#[must_use = "the hosts reach each other when it is dropped"]
#[derive(Debug)]
pub struct Partition<'l> {
    _links: Vec<FaultGuard<'l>>,
}

impl<'l> Partition<'l> {
    /// Separates hosts, by their names ([`Lab::host`]).
    ///
    /// # Errors
    /// The errors of [`Lab::host`]; `Invalid` for a host in both groups.
    pub fn new(lab: &'l dyn Lab, hosts: &[&str], others: &[&str]) -> Result<Self> {
        let link = |node, peer| Fault::link_down(node).peer(peer);
        Self::of(lab, hosts, others, |node, peer| vec![link(node, peer)])
    }

    /// Separates hosts, and keeps their packets, which leave once more when this is dropped
    /// ([`Effect::Hold`]).
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn holding(lab: &'l dyn Lab, hosts: &[&str], others: &[&str]) -> Result<Self> {
        let hold = |from, to| Fault::hold(PacketFilter::EVERY.from(from).to(to));
        Self::of(lab, hosts, others, |a, b| vec![hold(a, b), hold(b, a)])
    }

    fn of(
        lab: &'l dyn Lab,
        hosts: &[&str],
        others: &[&str],
        faults: impl Fn(u32, u32) -> Vec<Fault>,
    ) -> Result<Self> {
        if hosts.iter().any(|host| others.contains(host)) {
            refuse("host", "is in both groups of a partition")?;
        }
        let nodes = |hosts: &[&str]| -> Result<Vec<_>> {
            let nodes: Result<Vec<_>> = hosts.iter().map(|host| lab.nodes_of(host)).collect();
            Ok(nodes?.into_iter().flatten().collect())
        };
        let (nodes, peers) = (nodes(hosts)?, nodes(others)?);
        let links = nodes
            .iter()
            .flat_map(|node| peers.iter().map(move |peer| (*node, *peer)));
        let faults = links.flat_map(|(node, peer)| faults(node, peer));
        let guards = faults.map(|fault| FaultGuard::new(lab, fault));
        Ok(Self {
            _links: guards.collect::<Result<_>>()?,
        })
    }
}

fn check_24_bits(what: &'static str, value: Option<u32>) -> Result<()> {
    in_range(what, value.unwrap_or(0), 0xff_ffff)
}

fn in_range(what: &'static str, value: u32, max: u32) -> Result<()> {
    if value <= max {
        return Ok(());
    }
    let (value, max) = (value.into(), max.into());
    let cause = Cause::OutOfRange {
        what,
        value,
        min: 0,
        max,
    };
    Err(Error::new(Verb::Lab, ErrorKind::Invalid, cause))
}

fn refuse(what: &'static str, problem: &'static str) -> Result<()> {
    let cause = Cause::Argument { what, problem };
    Err(Error::new(Verb::Lab, ErrorKind::Invalid, cause))
}
