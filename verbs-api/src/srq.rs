//! Shared receive queues.

use bitflags::bitflags;

use crate::handle::{Cq, Xrcd};
use crate::xrc::XrcSrq;

bitflags! {
    /// Which attributes of an SRQ a modify names (`enum ibv_srq_attr_mask`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct SrqAttrMask: u32 {
        /// `max_wr`
        const MAX_WR = 1 << 0;
        /// `srq_limit`
        const LIMIT = 1 << 1;
        const _ = !0;
    }
}

/// Attributes of an SRQ (`struct ibv_srq_attr`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SrqAttr {
    /// Work requests, 1 to [`DeviceAttr::max_srq_wr`](crate::DeviceAttr::max_srq_wr).
    pub max_wr: u32,
    /// Scatter/gather entries of one work request, up to
    /// [`DeviceAttr::max_srq_sge`](crate::DeviceAttr::max_srq_sge). Cannot be changed.
    pub max_sge: u32,
    /// When fewer work requests than this are left, `SRQ_LIMIT_REACHED` is raised, once (SRQ-05). 0
    /// asks for no event, and a query gives it when none is asked for (SRQ-06).
    pub srq_limit: u32,
}

/// What `ibv_create_srq` takes (`struct ibv_srq_init_attr`), and with an XRC domain
/// `ibv_create_srq_ex` (`struct ibv_srq_init_attr_ex`).
///
/// ```
/// use verbs_api::SrqInit;
///
/// let init = SrqInit::new(100).max_sge(2);
/// assert_eq!((init.attr.max_wr, init.attr.max_sge), (100, 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SrqInit {
    /// Sizes: at least these. `srq_limit` is ignored at creation (SRQ-01).
    pub attr: SrqAttr,
    /// The caller's own value.
    pub srq_context: u64,
    /// What makes it an XRC SRQ. Default: `None`, a plain SRQ for RC and UD.
    pub xrc: Option<XrcSrq>,
}

impl SrqInit {
    /// An SRQ of `max_wr` work requests of one scatter/gather entry, context 0.
    pub const fn new(max_wr: u32) -> Self {
        let attr = SrqAttr {
            max_wr,
            max_sge: 1,
            srq_limit: 0,
        };
        Self {
            attr,
            srq_context: 0,
            xrc: None,
        }
    }

    /// With this many scatter/gather entries in a work request.
    #[must_use]
    pub const fn max_sge(mut self, max_sge: u32) -> Self {
        self.attr.max_sge = max_sge;
        self
    }

    /// As an XRC SRQ: in a domain, with a CQ of its own.
    #[must_use]
    pub const fn xrc(self, xrcd: Xrcd, cq: Cq) -> Self {
        Self {
            xrc: Some(XrcSrq { xrcd, cq }),
            ..self
        }
    }

    /// With the caller's own value.
    #[must_use]
    pub const fn context(self, srq_context: u64) -> Self {
        Self {
            srq_context,
            ..self
        }
    }
}
