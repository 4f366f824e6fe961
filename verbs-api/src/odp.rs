//! On-demand paging: what a device can do with memory that comes and goes, and advice about it.

use bitflags::bitflags;

use crate::c_enum::c_enum;
use crate::{Capabilities, QpType};

/// The on-demand paging of a device (`struct ibv_odp_caps` and `xrc_odp_caps`, ODP-01). By default
/// all of it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OdpCaps {
    /// What it has at all.
    pub general: OdpGeneral,
    /// The operations of RC queue pairs.
    pub rc: OdpOps,
    /// The operations of UC queue pairs.
    pub uc: OdpOps,
    /// The operations of UD queue pairs.
    pub ud: OdpOps,
    /// The operations of XRC queue pairs.
    pub xrc: OdpOps,
}

bitflags! {
    /// The kinds of on-demand regions (`enum ibv_odp_general_caps`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct OdpGeneral: u64 {
        /// Regions of a range of memory.
        const SUPPORT = 1 << 0;
        /// Regions of all memory of the process (ODP-06).
        const IMPLICIT = 1 << 1;
        const _ = !0;
    }
}

bitflags! {
    /// The operations of a transport that can use on-demand regions, at both ends
    /// (`enum ibv_odp_transport_cap_bits`, ODP-05).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct OdpOps: u32 {
        /// Sends.
        const SEND = 1 << 0;
        /// Receives of a receive queue.
        const RECV = 1 << 1;
        /// RDMA Writes.
        const WRITE = 1 << 2;
        /// RDMA Reads.
        const READ = 1 << 3;
        /// Atomics.
        const ATOMIC = 1 << 4;
        /// Receives of an SRQ.
        const SRQ_RECV = 1 << 5;
        /// Flushes, of the target's memory.
        const FLUSH = 1 << 6;
        /// Atomic writes, of the target's memory.
        const ATOMIC_WRITE = 1 << 7;
        const _ = !0;
    }
}

impl OdpOps {
    /// Sends and receives.
    const MESSAGES: Self = Self::SEND.union(Self::RECV).union(Self::SRQ_RECV);
    /// Every operation of XRC. RC has atomic writes too (MPE-14).
    const EVERY: Self = Self::MESSAGES
        .union(Self::WRITE)
        .union(Self::READ)
        .union(Self::ATOMIC)
        .union(Self::FLUSH);
}

impl OdpCaps {
    /// Every operation of each transport, and both kinds of regions.
    pub const EVERY: Self = Self {
        general: OdpGeneral::SUPPORT.union(OdpGeneral::IMPLICIT),
        rc: OdpOps::EVERY.union(OdpOps::ATOMIC_WRITE),
        uc: OdpOps::MESSAGES.union(OdpOps::WRITE),
        ud: OdpOps::MESSAGES,
        xrc: OdpOps::EVERY,
    };

    /// What the driver of mlx5 can report. Which of it a card does report is up to its firmware.
    pub(crate) const MLX5: Self = Self {
        uc: OdpOps::empty(),
        ud: OdpOps::SEND.union(OdpOps::SRQ_RECV),
        ..Self::EVERY
    };

    /// The operations of a transport.
    pub fn of(&self, qp_type: QpType) -> OdpOps {
        match qp_type {
            QpType::Rc => self.rc,
            QpType::Uc => self.uc,
            QpType::Ud => self.ud,
            QpType::XrcSend | QpType::XrcRecv => self.xrc,
            _ => OdpOps::empty(),
        }
    }

    /// What is left of it on a device that lacks these capabilities; for backends.
    #[must_use]
    pub fn without(mut self, lacks: Capabilities) -> Self {
        if lacks.contains(Capabilities::ODP) {
            return Self::default();
        }
        for (capability, ops) in [
            (Capabilities::RC, &mut self.rc),
            (Capabilities::UC, &mut self.uc),
            (Capabilities::UD, &mut self.ud),
            (Capabilities::XRC, &mut self.xrc),
        ] {
            for (capability, lost) in [
                (capability, OdpOps::all()),
                (Capabilities::RDMA_READ, OdpOps::READ),
                (Capabilities::ATOMICS, OdpOps::ATOMIC),
                (Capabilities::SRQ, OdpOps::SRQ_RECV),
                (Capabilities::FLUSH, OdpOps::FLUSH),
                (Capabilities::ATOMIC_WRITE, OdpOps::ATOMIC_WRITE),
            ] {
                if lacks.contains(capability) {
                    ops.remove(lost);
                }
            }
        }
        if lacks.contains(Capabilities::ODP_IMPLICIT) {
            self.general.remove(OdpGeneral::IMPLICIT);
        }
        self
    }
}

c_enum! {
    /// What a program advises about on-demand regions (`enum ibv_advise_mr_advice`).
    Advice {
        /// Make pages present for reading.
        Prefetch = 0, "PREFETCH";
        /// Make pages present for reading and writing.
        PrefetchWrite = 1, "PREFETCH_WRITE";
        /// Use the pages that are present, and bring no others.
        PrefetchNoFault = 2, "PREFETCH_NO_FAULT";
    }
}

bitflags! {
    /// How advice is followed (`enum ibv_advise_mr_flags`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct AdviseFlags: u32 {
        /// Before the call returns. Without it the device may follow the advice later, or not.
        const FLUSH = 1 << 0;
        const _ = !0;
    }
}
