//! What is reported when an invariant does not hold.

use core::fmt;

use verbs_api::Verb;

/// What [`Checked`](super::Checked) looks after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Invariant {
    /// Each signaled send and each consumed receive completes once, on its CQ, with its own `wr_id`
    /// and opcode; an unsignaled send that succeeds does not.
    Completion,
    /// A work request completes, or something that the calls allow explains why it does not.
    Lost,
    /// What a QP receives is what its peer sent, once and in order (RC).
    Delivery,
    /// A CQ event needs an arm of its CQ.
    Event,
    /// Nothing goes while events of it are unacknowledged, and no more are acknowledged than read.
    Acknowledgement,
    /// No byte changes that no work request may write.
    Memory,
    /// Each atomic is executed once.
    Atomic,
    /// Parents stay while they have children, and what is destroyed is gone.
    Resource,
}

impl Invariant {
    /// Every invariant.
    pub const ALL: &'static [Self] = &[
        Self::Completion,
        Self::Lost,
        Self::Delivery,
        Self::Event,
        Self::Acknowledgement,
        Self::Memory,
        Self::Atomic,
        Self::Resource,
    ];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completion => "completion",
            Self::Lost => "lost",
            Self::Delivery => "delivery",
            Self::Event => "event",
            Self::Acknowledgement => "acknowledgement",
            Self::Memory => "memory",
            Self::Atomic => "atomic",
            Self::Resource => "resource",
        }
    }

    /// It in a sentence.
    pub const fn promise(self) -> &'static str {
        match self {
            Self::Completion => {
                "each work request completes at most once, in order, as it was posted"
            }
            Self::Lost => "each signaled work request completes",
            Self::Delivery => "an RC queue pair receives what its peer sent, once and in order",
            Self::Event => "at most one event for each arm",
            Self::Acknowledgement => "events are acknowledged once, and before their object goes",
            Self::Memory => "no byte changes that no work request may write",
            Self::Atomic => "each atomic is executed once",
            Self::Resource => "children go before their parents, and leave nothing behind",
        }
    }

    /// The rules it rests on, the main one first.
    pub const fn rules(self) -> &'static [&'static str] {
        match self {
            Self::Completion => &[
                "WC-02",
                "WC-04",
                "WC-18",
                "WC-25",
                "CQ-POLL-07",
                "CQ-CREATE-15",
                "XRC-04",
            ],
            Self::Lost => &["QP-FLUSH-01", "CQ-OVR-02", "CQ-CREATE-14"],
            Self::Delivery => &["RQ-04", "SQ-14", "WC-10"],
            Self::Event => &["CQ-ARM-02", "CQ-ARM-04", "CHAN-36"],
            Self::Acknowledgement => &["CHAN-35", "CHAN-37", "QP-DESTROY-03"],
            Self::Memory => &["RDMA-01", "RQ-04", "MR-05"],
            Self::Atomic => &["ATOM-01"],
            Self::Resource => &["PD-01", "CQ-DESTROY-04", "CHAN-38", "SRQ-11", "XRC-02"],
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An invariant that does not hold, and the call that showed it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Broken {
    /// Which.
    pub invariant: Invariant,
    /// The verb whose result showed it; `None` if it was found at the end.
    pub verb: Option<Verb>,
    /// Number of earlier calls, including this one, without queries.
    pub call: u64,
    /// The objects and the facts.
    pub facts: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invariant {}: ", self.invariant)?;
        match self.verb {
            Some(verb) => write!(f, "{verb} (call {}): {}", self.call, self.facts),
            None => write!(f, "at the end (after call {}): {}", self.call, self.facts),
        }
    }
}

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for Broken {}
