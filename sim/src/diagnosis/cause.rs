//! Why work failed or a peer's request was refused: data, with their sentences in one place.

use core::fmt;

use verbs_api::site::Site;
use verbs_api::{Access, Cq, Gid, Mr};

use super::Class;
use crate::displayed::displayed;
use crate::packet::DropReason;

/// The cause of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Why {
    /// The node that found the cause, if it is another one: the responder's.
    pub node: Option<u32>,
    pub(crate) cause: FailureCause,
    /// The label of the receive that the message takes, if the cause is about the receive.
    pub(super) receive: Option<u64>,
    /// The node that has what the cause is about, if it is a third one.
    pub(super) owner: Option<u32>,
    /// A place that the cause refers to, with the words that introduce it, if it is known.
    pub place: Option<(&'static str, Site)>,
    /// Where the region that the cause is about was registered, if it was deregistered since and
    /// the place is known.
    pub registered: Option<Site>,
}

impl From<FailureCause> for Why {
    fn from(cause: FailureCause) -> Self {
        Self {
            node: None,
            cause,
            receive: None,
            owner: None,
            place: None,
            registered: None,
        }
    }
}

impl Why {
    /// The cause, as a finding prints it.
    pub fn text(&self) -> String {
        match self.receive {
            None => self.cause.to_string(),
            Some(label) => format!("for receive {label:#x}, {}", self.cause),
        }
    }

    /// Adds a place that the cause refers to, if it is known.
    pub(crate) fn at(self, what: &'static str, site: Option<Site>) -> Self {
        let place = site.map(|site| (what, site));
        Self { place, ..self }
    }

    /// Adds where a region that was deregistered had been registered, if that is known.
    pub(crate) fn registered_at(self, registered: Option<Site>) -> Self {
        Self { registered, ..self }
    }

    /// The same cause, for the receive that a message takes.
    pub(crate) fn for_receive(self, label: u64) -> Self {
        let receive = Some(label);
        Self { receive, ..self }
    }
}

/// Access rights, printed by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rights(pub(crate) Access);

displayed! {
    /// The kind of a region's key.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum KeyKind {
        Lkey = "lkey";
        Rkey = "rkey";
    }
}

displayed! {
    /// The argument of rdma_cm that an attribute of a queue pair has its value from.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum CmArgument {
        Depth = "initiator_depth in rdma_connect";
        DepthOfServer = "initiator_depth in rdma_accept";
        ResourcesOfPeer = "responder_resources in its peer's rdma_accept";
        RnrRetryOfServer = "rnr_retry_count in its peer's rdma_accept";
        RnrRetryOfClient = "rnr_retry_count in its peer's rdma_connect";
    }
}

/// The arguments of rdma_cm that attributes of a queue pair have their values from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CmOrigin {
    /// The argument that `max_rd_atomic` is from.
    pub(crate) depth: CmArgument,
    /// The argument that `rnr_retry` is from.
    pub(crate) rnr_retry: CmArgument,
}

/// Why a request gets no answer, as far as the fabric knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossCause {
    /// A fault rule or the test controls lost it.
    Lab(LabCause),
    /// The program lost it, for a reason that a retry cannot remove.
    Lasting,
}

displayed! {
    /// Why a work request failed, or a request of a peer was refused.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) enum FailureCause {
        // Where the work was posted.
        Lab(cause: LabCause) = "{cause}";
        PeerNotReady = "its peer had no receive posted";
        TriesByCm { tries: u8, of: CmArgument }
            = "its peer had no receive posted, and rnr_retry is {tries}: that is {of}";
        UnownedGid { gid: Gid } = "no device has the address {gid}";
        WasUnowned { gid: Gid } = "no device had the address {gid} when the qp was connected with it";
        UnownedLid = "no port has the address it is connected with";
        NoAnswer = "its peer, in another process, did not answer";
        RefusedElsewhere = "its peer, in another process, refused it";
        Dropped { qp_num: u32, why: DropReason } = "for qp {qp_num:#x}, {why}";
        LongerThanReceive { room: u64 } = "the message is longer than its {room} bytes";
        AhGone = "its address handle was destroyed";
        AhOfOtherPd = "its address handle is of another protection domain";
        OverMtu { length: u32, mtu: u32 } = "{length} bytes are more than the MTU, {mtu}";
        AnswerCut { mtu: u32 } = "the data were cut for another path MTU than {mtu} bytes";
        NoReads = "max_rd_atomic is 0";
        NoReadsByCm { of: CmArgument } = "max_rd_atomic is 0: that is {of}";
        AtomicLength { length: u32 } = "an atomic takes 8 bytes, and not {length}";

        // Where a request of a peer was refused.
        NoReceive = "no receive is posted";
        LongerThan { label: u64, room: u64 }
            = "the message is longer than the {room} bytes of receive {label:#x}";
        MessageCut { mtu: u32 } = "the message was cut for another path MTU than {mtu} bytes";
        NoBeginning = "the qp waits for another PSN first (rq_psn): it is the rest of a message whose beginning was not taken";
        NoReadsThere = "max_dest_rd_atomic is 0";
        Misaligned = "the address is not a multiple of 8";
        QpForbids { qp_num: u32, rights: Rights } = "qp {qp_num:#x} does not allow {rights}";
        Overrun { cq: Cq } = "{cq}, where its receive completes, has overrun: the completion is lost";
        NotInvalidated { rkey: u32 } = "the rkey {rkey:#x} cannot be invalidated";
        Invalid = "the request is invalid there";

        // Memory.
        NoWindow { rkey: u32 } = "no window of rkey {rkey:#x} opens that";
        NoRegion { kind: KeyKind, key: u32 } = "no region has the {kind} {key:#x}";
        Deregistered { region: u32, kind: KeyKind, key: u32 }
            = "mr#{region}, of the {kind} {key:#x}, was deregistered";
        OfOtherDevice { region: u32, kind: KeyKind, key: u32 }
            = "{key:#x} is the {kind} of mr#{region} of another device";
        IsLkey { region: u32, key: u32 } = "{key:#x} is the lkey of mr#{region}, not its rkey";
        IsRkey { region: u32, key: u32 } = "{key:#x} is the rkey of mr#{region}, not its lkey";
        OtherPd { region: u32 } = "mr#{region} is of another protection domain";
        Missing { region: u32, rights: Rights } = "mr#{region} does not allow {rights}";
        OutOf { region: u32, offset: u64, length: u64, bytes: u64 }
            = "{length} bytes from {offset:#x} on are not in mr#{region}, which has {bytes}";
        FarFrom { region: u32 } = "the address is not in mr#{region}";
        NotMapped { mr: Mr, offset: u64, length: u64 }
            = "{length} bytes from {offset:#x} on of {mr} are not all mapped";
        Withdrawn { mr: Mr, offset: u64, length: u64 }
            = "the exporter of the dma-buf of {mr} has withdrawn {length} bytes from {offset:#x} on";
        NoPaging { region: u32 }
            = "the device cannot use the on-demand region mr#{region} in this operation (odp_caps)";
        Unusable { region: u32 } = "mr#{region} cannot be used that way";
    }
}

displayed! {
    /// What a fault rule or the test controls did to make work fail, which is not a mistake of the
    /// program.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum LabCause {
        Injected = "a fault rule wants it";
        Lost = "a fault rule lost the request or its answer";
        Damaged = "a fault rule damaged the request or its answer";
        Late = "a fault rule held back the request or its answer";
        Link = "a fault rule cut the link to its peer";
        Port = "a port on the way to its peer was down";
        Device = "the device of its peer was dead";
        Peer = "its peer had stopped before, since a fault rule or a test control let it fail";
        Tables = "a test control changed a GID or a P_Key that the connection needs";
        Srq = "a test control let the SRQ of the receiver fail";
        Exporter = "a test control let the exporter of its dma-buf withdraw the memory";
    }
}

impl From<LabCause> for Why {
    fn from(cause: LabCause) -> Self {
        FailureCause::Lab(cause).into()
    }
}

impl FailureCause {
    /// The class of work that fails for it, if it decides the class whatever the status is.
    pub(super) fn class(&self) -> Option<Class> {
        match self {
            Self::Lab(_) => Some(Class::Injected),
            Self::Deregistered { .. } => Some(Class::Deregistered),
            Self::NotMapped { .. } | Self::Withdrawn { .. } => Some(Class::Unmapped),
            Self::AnswerCut { .. } | Self::MessageCut { .. } | Self::NoBeginning => {
                Some(Class::EndsDiffer)
            }
            Self::NoReads | Self::NoReadsByCm { .. } | Self::NoReadsThere => {
                Some(Class::EndsDiffer)
            }
            Self::Misaligned | Self::AtomicLength { .. } => Some(Class::Atomic),
            Self::Dropped { why, .. } => match why {
                DropReason::MemoryGone => Some(Class::Deregistered),
                DropReason::PathMtu => Some(Class::EndsDiffer),
                _ => None,
            },
            _ => None,
        }
    }
}

impl LabCause {
    /// The cause of a failure whose packets were dropped for this reason.
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

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter_names().map(|(name, _)| name).collect();
        f.write_str(&names.join(" and "))
    }
}
