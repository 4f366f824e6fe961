//! Connected queue pairs.

use verbs_api::connect::{by_attributes, ud_to_rts};
use verbs_api::{
    Access, Ah, AhAttr, CompChannel, Cq, CqInit, Handle, Mr, MrAttr, Pd, Qp, QpCap, QpInit, QpType,
    RcParams, SendWr, Srq, SrqInit, Verbs, Wait, Wc,
};
use verbs_sim::{Mode, Sim, SimConfig};

use crate::calls::{Calls, NoOp};

/// A simulation.
pub(crate) struct Fabric {
    pub(crate) sim: Sim,
}

/// A pair of connected queue pairs, with the objects they need. Operations go from `near` to `far`.
#[derive(Clone, Copy)]
pub(crate) struct Link<'f> {
    pub(crate) verbs: &'f dyn Calls,
    pub(crate) near: End,
    pub(crate) far: End,
    pub(crate) qp: Qp,
    pub(crate) peer: Qp,
    /// The number, the SRQ and the address of the peer, as far as it needs them.
    pub(crate) num: u32,
    pub(crate) srq: Srq,
    pub(crate) ah: Ah,
}

/// One object of each kind that a queue pair needs.
#[derive(Clone, Copy)]
pub(crate) struct End {
    pd: Pd,
    pub(crate) mr: Mr,
    pub(crate) mem: MrAttr,
    pub(crate) channel: CompChannel,
    pub(crate) cq: Cq,
}

/// The kind of queue pairs that are created.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) qp_type: QpType,
    pub(crate) cap: QpCap,
    /// The access that both ends allow to each other.
    pub(crate) access: Access,
    /// Whether the receives of the peer come from an SRQ.
    pub(crate) shares: bool,
}

pub(crate) const QKEY: u32 = 1;
/// The number of sends of one queue pair that fills a CQ.
const SENDS: u32 = 1 << 10;

impl Kind {
    pub(crate) fn of(qp_type: QpType) -> Self {
        Self {
            qp_type,
            cap: QpCap::default(),
            access: Access::ALL_RDMA,
            shares: false,
        }
    }
}

impl Fabric {
    /// A fabric in inline mode.
    pub(crate) fn new(nodes: u32) -> Self {
        Self::with(SimConfig::new().nodes(nodes).mode(Mode::Inline))
    }

    pub(crate) fn with(config: SimConfig) -> Self {
        Self {
            sim: Sim::new(config),
        }
    }

    /// A link with regions of `bytes` bytes, between these nodes.
    pub(crate) fn link(&self, from: u32, to: u32, bytes: usize) -> Link<'_> {
        self.link_of(Kind::of(QpType::Rc), from, to, bytes)
    }

    /// A link of this kind.
    pub(crate) fn link_of(&self, kind: Kind, from: u32, to: u32, bytes: usize) -> Link<'_> {
        let [near, far] = [from, to].map(|node| self.end(node, bytes, kind.access));
        self.connect(near, far, kind)
    }

    /// Another link between the ends of a link.
    pub(crate) fn another(&self, link: &Link<'_>) -> Link<'_> {
        self.connect(link.near, link.far, Kind::of(QpType::Rc))
    }

    fn end(&self, node: u32, bytes: usize, access: Access) -> End {
        let verbs = &self.sim;
        let context = verbs.open_device(&format!("sim{node}")).unwrap();
        let pd = verbs.alloc_pd(context).unwrap();
        let mr = verbs.alloc_mr(pd, bytes, access).unwrap();
        let mem = verbs.query_mr(mr).unwrap();
        verbs.write_mr(mr, 0, &vec![1; bytes]).unwrap();
        let channel = verbs.create_comp_channel(context).unwrap();
        let init = CqInit::new(64).channel(channel);
        let cq = verbs.create_cq(context, &init).unwrap();
        End {
            pd,
            mr,
            mem,
            channel,
            cq,
        }
    }

    /// A CQ with `entries` entries.
    pub(crate) fn cq(&self, node: u32, entries: u32) -> End {
        let mut end = self.end(node, 4096, Access::ALL_RDMA);
        let context = end.cq.context();
        let entries = i32::try_from(entries).unwrap();
        end.cq = self.sim.create_cq(context, &CqInit::new(entries)).unwrap();
        end
    }

    /// Adds `count` completions to a CQ, of queue pairs that are destroyed after that.
    pub(crate) fn fill_cq(&self, end: End, count: u32) {
        let mut kind = Kind::of(QpType::Rc);
        kind.cap.max_send_wr = SENDS;
        let peer_end = self.end(1, 4096, kind.access);
        let list = [end.mem.sge(0, 8)];
        let wr = SendWr::rdma_write(1, &list, peer_end.mem.remote(0));
        for _ in 0..count / SENDS {
            let link = self.connect(end, peer_end, kind);
            for _ in 0..SENDS {
                link.verbs.post_send(link.qp, &[wr]).unwrap();
            }
            for qp in [link.qp, link.peer] {
                self.sim.destroy_qp(qp, Wait::Poll).unwrap();
            }
        }
    }

    /// Polls `count` completions.
    pub(crate) fn empty_cq(&self, end: End, count: u32) {
        let mut wc = [Wc::default(); 64];
        let mut got = 0;
        while got < count as usize {
            got += Calls::poll_cq(&self.sim, end.cq, &mut wc).unwrap();
        }
    }

    fn connect(&self, near: End, far: End, kind: Kind) -> Link<'_> {
        let sim = &self.sim;
        let init_of = |end: End| QpInit::new(kind.qp_type, end.cq, end.cq).cap(kind.cap);
        let qp = sim.create_qp(near.pd, &init_of(near)).unwrap();
        let srq = kind
            .shares
            .then(|| sim.create_srq(far.pd, &SrqInit::new(16)).unwrap());
        let mut init = init_of(far);
        init.srq = srq;
        let peer = sim.create_qp(far.pd, &init).unwrap();
        let params = RcParams {
            access: kind.access,
            ..RcParams::default()
        };
        let mut ah = Ah::default();
        match kind.qp_type {
            QpType::Ud => {
                ud_to_rts(sim, qp, 1, QKEY).unwrap();
                ud_to_rts(sim, peer, 1, QKEY).unwrap();
                let gid = sim.query_gid(far.cq.context(), 1, 0).unwrap();
                ah = sim.create_ah(near.pd, &AhAttr::global(1, 0, gid)).unwrap();
            }
            QpType::Uc => by_attributes(sim, qp, peer, &params).unwrap(),
            _ => sim.connect_rc(qp, peer, &params).unwrap(),
        }
        Link {
            verbs: sim,
            near,
            far,
            qp,
            peer,
            num: sim.qp_num(peer).unwrap(),
            srq: srq.unwrap_or_default(),
            ah,
        }
    }
}

impl Link<'_> {
    /// This link, and a copy on which verbs do nothing.
    pub(crate) fn and_no_op(self) -> [Self; 2] {
        let verbs = &NoOp;
        [self, Self { verbs, ..self }]
    }
}
