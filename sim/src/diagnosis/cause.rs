//! What work failed for, or a peer's request was refused for: data, with their words in one place.

use core::fmt;

use verbs_api::site::Site;
use verbs_api::{Access, Cq, Gid, Mr};

use crate::packet::DropReason;

/// What something failed for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Why {
    /// The node where that was found, if it is another one: the responder's.
    pub node: Option<u32>,
    pub(crate) cause: FailureCause,
    /// Where what it speaks of was made or destroyed, behind words that say which; if it is known.
    pub place: Option<(&'static str, Site)>,
}

impl From<FailureCause> for Why {
    fn from(cause: FailureCause) -> Self {
        Self {
            node: None,
            cause,
            place: None,
        }
    }
}

impl Why {
    /// The cause, as a finding prints it.
    pub fn text(&self) -> String {
        self.cause.to_string()
    }

    /// With a place that the cause speaks of, if it is known.
    pub(crate) fn at(self, what: &'static str, site: Option<Site>) -> Self {
        let place = site.map(|site| (what, site));
        Self { place, ..self }
    }

    /// The same cause, of the receive that a message takes.
    pub(crate) fn for_receive(self, label: u64) -> Self {
        let cause = FailureCause::ForReceive(label, Box::new(self.cause));
        Self { cause, ..self }
    }
}

/// A memory region, by its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegionSlot(pub(crate) u32);

/// Which key of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Lkey,
    Rkey,
}

/// What a work request failed for, or a request of a peer was refused for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FailureCause {
    /// A fault rule or the laboratory did it.
    Lab(LabCause),
    /// The peer asked to wait more often than `rnr_retry` allows.
    PeerNotReady,
    /// No device has the GID of the address vector.
    UnownedGid(Gid),
    /// No port has the LID of the address vector.
    UnownedLid,
    /// A peer in another process did not answer.
    NoAnswer,
    /// A peer in another process refused it.
    RefusedElsewhere,
    /// The peer's node dropped the last packets, which were for this queue pair.
    Dropped { qp_num: u32, why: DropReason },
    /// No receive was posted, and the device does not ask its peers to wait.
    NoReceive,
    /// The message is longer than the receive that fails, of this many bytes.
    LongerThanReceive { room: u64 },
    /// The message is longer than a receive of the refusing end.
    LongerThan { label: u64, room: u64 },
    /// The receive that a message takes cannot be used.
    ForReceive(u64, Box<FailureCause>),
    /// The address handle of a datagram was destroyed.
    AhGone,
    /// The address handle of a datagram has another protection domain.
    AhOfOtherPd,
    /// A datagram is longer than the path MTU.
    OverMtu { length: u32, mtu: u32 },
    /// Parts of an answer are not as long as the path MTU says.
    AnswerCut { mtu: u32 },
    /// Parts of a message are not as long as the path MTU says.
    MessageCut { mtu: u32 },
    /// The first request is the rest of a message.
    NoBeginning,
    /// `max_rd_atomic` allows no reads and atomics.
    NoReads,
    /// `max_dest_rd_atomic` allows no reads and atomics.
    NoReadsThere,
    /// An atomic names another number of bytes than 8.
    AtomicLength(u32),
    /// An atomic names an address that is not a multiple of 8.
    Misaligned,
    /// The queue pair does not allow what a peer asks for (`qp_access_flags`).
    QpForbids { qp_num: u32, needed: Access },
    /// The completion of the receive was lost, since its CQ had overrun.
    Overrun(Cq),
    /// The key to be invalidated is not one of a window that can be.
    NotInvalidated { rkey: u32 },
    /// A request that makes no sense where it came.
    Invalid,
    /// No window of this rkey opens the memory.
    NoWindow { rkey: u32 },
    /// No region has the key.
    NoRegion(KeyKind, u32),
    /// The region of the key was deregistered.
    Deregistered {
        region: RegionSlot,
        kind: KeyKind,
        key: u32,
    },
    /// The key is the other one of its region than this kind, which was needed.
    OtherKey {
        region: RegionSlot,
        key: u32,
        needed: KeyKind,
    },
    /// The region has another protection domain.
    OtherPd(RegionSlot),
    /// The region lacks rights.
    Missing { region: RegionSlot, rights: Access },
    /// Bytes are not in the region, but near it.
    OutOf {
        region: RegionSlot,
        offset: u64,
        length: u64,
        bytes: u64,
    },
    /// The address is not in the region, nor near it.
    FarFrom(RegionSlot),
    /// Memory of the region is not mapped.
    NotMapped { mr: Mr, offset: u64, length: u64 },
    /// The region cannot be used, for another reason.
    Unusable(RegionSlot),
}

/// What a fault rule or the laboratory did, so that work failed: not a mistake of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LabCause {
    /// A rule made an error of it.
    Injected,
    /// A rule lost the request or its answer.
    Lost,
    /// A rule damaged the request or its answer.
    Damaged,
    /// A rule delayed the request or its answer.
    Late,
    /// A rule cut the link.
    Link,
    /// A port on the way was down.
    Port,
    /// The peer's device was dead.
    Device,
    /// The peer's queue pair had failed for the laboratory.
    Peer,
    /// A GID or a P_Key was changed.
    Tables,
    /// The receiver's SRQ failed.
    Srq,
}

/// Why no answer comes to a request, as far as the fabric knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossCause {
    /// A fault rule or the laboratory lost it.
    Lab(LabCause),
    /// The program, for something that sending again cannot mend.
    Lasting,
}

impl FailureCause {
    /// The cause itself, without the receive that it is of.
    pub(crate) fn root(&self) -> &Self {
        match self {
            Self::ForReceive(_, cause) => cause.root(),
            cause => cause,
        }
    }

    /// Whether a fault rule or the laboratory did it.
    pub(crate) fn is_of_lab(&self) -> bool {
        matches!(self, Self::Lab(_))
    }
}

impl LabCause {
    /// What work fails for whose packets were dropped for this reason.
    pub(crate) fn of_drop(reason: DropReason) -> Option<Self> {
        Some(match reason {
            DropReason::FaultRule => Self::Lost,
            DropReason::Checksum => Self::Damaged,
            DropReason::HeldBack => Self::Late,
            DropReason::LinkDown => Self::Link,
            DropReason::PortDown => Self::Port,
            DropReason::DeadDevice => Self::Device,
            _ => return None,
        })
    }
}

/// Rights, by name.
pub(crate) fn access_names(access: Access) -> String {
    let names: Vec<_> = access.iter_names().map(|(name, _)| name).collect();
    names.join(" and ")
}

impl fmt::Display for RegionSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mr#{}", self.0)
    }
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lkey => "lkey",
            Self::Rkey => "rkey",
        })
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lab(cause) => cause.fmt(f),
            Self::PeerNotReady => f.write_str("its peer had no receive posted"),
            Self::UnownedGid(gid) => write!(f, "no device has the address {gid}"),
            Self::UnownedLid => f.write_str("no port has the address it is connected with"),
            Self::NoAnswer => f.write_str("its peer, in another process, did not answer"),
            Self::RefusedElsewhere => f.write_str("its peer, in another process, refused it"),
            Self::Dropped { qp_num, why } => write!(f, "for qp {qp_num:#x}, {why}"),
            Self::NoReceive => DropReason::NoReceive.fmt(f),
            Self::LongerThanReceive { room } => {
                write!(f, "the message is longer than its {room} bytes")
            }
            Self::LongerThan { label, room } => write!(
                f,
                "the message is longer than the {room} bytes of receive {label:#x}"
            ),
            Self::ForReceive(label, cause) => write!(f, "for receive {label:#x}, {cause}"),
            Self::AhGone => f.write_str("its address handle is gone"),
            Self::AhOfOtherPd => f.write_str("its address handle is of another protection domain"),
            Self::OverMtu { length, mtu } => {
                write!(f, "{length} bytes are more than the MTU, {mtu}")
            }
            Self::AnswerCut { mtu } => {
                write!(f, "the data were cut for another path MTU than {mtu} bytes")
            }
            Self::MessageCut { mtu } => write!(
                f,
                "the message was cut for another path MTU than {mtu} bytes"
            ),
            Self::NoBeginning => write!(
                f,
                "{}: it is the rest of a message whose beginning was not taken",
                DropReason::FirstPsn
            ),
            Self::NoReads => f.write_str("max_rd_atomic is 0"),
            Self::NoReadsThere => f.write_str("max_dest_rd_atomic is 0"),
            Self::AtomicLength(length) => {
                write!(f, "an atomic takes 8 bytes, and not {length}")
            }
            Self::Misaligned => f.write_str("the address is not a multiple of 8"),
            Self::QpForbids { qp_num, needed } => {
                write!(f, "qp {qp_num:#x} does not allow {}", access_names(*needed))
            }
            Self::Overrun(cq) => write!(
                f,
                "{cq}, where its receive completes, has overrun: the completion is lost"
            ),
            Self::NotInvalidated { rkey } => {
                write!(f, "the rkey {rkey:#x} cannot be invalidated")
            }
            Self::Invalid => f.write_str("the request is invalid there"),
            Self::NoWindow { rkey } => write!(f, "no window of rkey {rkey:#x} opens that"),
            Self::NoRegion(kind, key) => write!(f, "no region has the {kind} {key:#x}"),
            Self::Deregistered { region, kind, key } => {
                write!(f, "{region}, of the {kind} {key:#x}, was deregistered")
            }
            Self::OtherKey {
                region,
                key,
                needed,
            } => {
                let kind = match needed {
                    KeyKind::Lkey => KeyKind::Rkey,
                    KeyKind::Rkey => KeyKind::Lkey,
                };
                write!(f, "{key:#x} is the {kind} of {region}, not its {needed}")
            }
            Self::OtherPd(region) => write!(f, "{region} is of another protection domain"),
            Self::Missing { region, rights } => {
                write!(f, "{region} does not allow {}", access_names(*rights))
            }
            Self::OutOf {
                region,
                offset,
                length,
                bytes,
            } => write!(
                f,
                "{length} bytes from {offset:#x} on are not in {region}, which has {bytes}"
            ),
            Self::FarFrom(region) => write!(f, "the address is not in {region}"),
            Self::NotMapped { mr, offset, length } => write!(
                f,
                "{length} bytes from {offset:#x} on of {mr} are not all mapped"
            ),
            Self::Unusable(region) => write!(f, "{region} cannot be used so"),
        }
    }
}

impl fmt::Display for LabCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Injected => "a fault rule wants it",
            Self::Lost => "a fault rule lost the request or its answer",
            Self::Damaged => "a fault rule damaged the request or its answer",
            Self::Late => "a fault rule held back the request or its answer",
            Self::Link => "a fault rule cut the link to its peer",
            Self::Port => "a port on the way to its peer was down",
            Self::Device => "the device of its peer was dead",
            Self::Peer => {
                "its peer had stopped before, since a fault rule or the laboratory let it fail"
            }
            Self::Tables => "the laboratory changed a GID or a P_Key that the connection needs",
            Self::Srq => "the laboratory let the SRQ of the receiver fail",
        })
    }
}
