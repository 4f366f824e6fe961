//! Connected queue pairs, and the operations that are timed.

use std::hint::black_box;

use verbs_api::{
    Access, Arm, CompChannel, Cq, CqInit, Handle, Mr, MrAttr, Pd, Qp, QpCap, QpInit, QpType,
    RcParams, RecvWr, SendWr, Verbs, Wait, Wc, WcStatus,
};
use verbs_sim::{Mode, Sim, SimConfig};

use crate::calls::{Calls, Nobody};

/// A simulation in inline mode.
pub(crate) struct Fabric {
    sim: Sim,
}

/// A pair of connected RC queue pairs, with all they need. Timed operations go from `near` to
/// `far`.
#[derive(Clone, Copy)]
pub(crate) struct Link<'f> {
    verbs: &'f dyn Calls,
    near: End,
    far: End,
    qp: Qp,
    peer: Qp,
}

/// Many links between the same two ends.
pub(crate) struct Links<'f> {
    sim: &'f Sim,
    first: Link<'f>,
    qps: Vec<Qp>,
}

/// Sends of one queue pair that fills a CQ.
const SENDS: u32 = 1 << 10;

/// One of everything that a queue pair needs.
#[derive(Clone, Copy)]
pub(crate) struct End {
    pd: Pd,
    mr: Mr,
    mem: MrAttr,
    channel: CompChannel,
    cq: Cq,
}

impl Fabric {
    pub(crate) fn new(nodes: u32) -> Self {
        Self::with_mode(nodes, Mode::Inline)
    }

    pub(crate) fn with_mode(nodes: u32, mode: Mode) -> Self {
        Self {
            sim: Sim::new(SimConfig::new().nodes(nodes).mode(mode)),
        }
    }

    /// A link with regions of so many bytes, between these nodes.
    pub(crate) fn link(&self, from: u32, to: u32, bytes: usize) -> Link<'_> {
        let (near, far) = (self.end(from, bytes), self.end(to, bytes));
        self.connect(near, far)
    }

    /// Another link between the ends of one.
    pub(crate) fn another(&self, link: &Link<'_>) -> Link<'_> {
        self.connect(link.near, link.far)
    }

    /// So many links between the same ends.
    pub(crate) fn links(&self, from: u32, to: u32, bytes: usize, count: usize) -> Links<'_> {
        let first = self.link(from, to, bytes);
        let mut links = Links {
            sim: &self.sim,
            first,
            qps: vec![first.qp],
        };
        links.extend(self, count - 1);
        links
    }

    fn end(&self, node: u32, bytes: usize) -> End {
        let verbs = &self.sim;
        let context = verbs.open_device(&format!("sim{node}")).unwrap();
        let pd = verbs.alloc_pd(context).unwrap();
        let mr = verbs.alloc_mr(pd, bytes, Access::ALL_RDMA).unwrap();
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

    /// A CQ of so many entries.
    pub(crate) fn cq(&self, node: u32, entries: u32) -> End {
        let mut end = self.end(node, 4096);
        let context = end.cq.context();
        let entries = i32::try_from(entries).unwrap();
        end.cq = self.sim.create_cq(context, &CqInit::new(entries)).unwrap();
        end
    }

    /// Puts so many completions into a CQ, of queue pairs that are gone then.
    pub(crate) fn fill_cq(&self, end: End, count: u32) {
        let cap = QpCap {
            max_send_wr: SENDS,
            ..QpCap::default()
        };
        let peer_end = self.end(1, 4096);
        let list = [end.mem.sge(0, 8)];
        let wr = SendWr::rdma_write(1, &list, peer_end.mem.remote(0));
        for _ in 0..count / SENDS {
            let link = self.connect_with(end, peer_end, cap);
            for _ in 0..SENDS {
                link.verbs.post_send(link.qp, &[wr]).unwrap();
            }
            for qp in [link.qp, link.peer] {
                self.sim.destroy_qp(qp, Wait::Poll).unwrap();
            }
        }
    }

    /// Polls so many completions.
    pub(crate) fn empty_cq(&self, end: End, count: u32) {
        let mut wc = [Wc::default(); 64];
        let mut got = 0;
        while got < count as usize {
            got += Calls::poll_cq(&self.sim, end.cq, &mut wc).unwrap();
        }
    }

    fn connect(&self, near: End, far: End) -> Link<'_> {
        self.connect_with(near, far, QpCap::default())
    }

    fn connect_with(&self, near: End, far: End, cap: QpCap) -> Link<'_> {
        let [qp, peer] = [near, far].map(|end| {
            let init = QpInit::new(QpType::Rc, end.cq, end.cq).cap(cap);
            self.sim.create_qp(end.pd, &init).unwrap()
        });
        self.sim.connect_rc(qp, peer, &RcParams::default()).unwrap();
        Link {
            verbs: &self.sim,
            near,
            far,
            qp,
            peer,
        }
    }
}

impl Link<'_> {
    /// The same link, on which nothing happens.
    pub(crate) fn of_nobody(self) -> Self {
        Self {
            verbs: &Nobody,
            ..self
        }
    }

    /// RDMA Write of so many bytes, and its completion polled.
    pub(crate) fn write(&self, length: u32) {
        let list = [self.near.mem.sge(0, length)];
        let wr = SendWr::rdma_write(1, &list, self.far.mem.remote(0));
        self.verbs.post_send(self.qp, &[wr]).unwrap();
        self.poll(self.near);
    }

    /// A receive and a Send of so many bytes, and both completions polled.
    pub(crate) fn send(&self, length: u32) {
        self.receive(length);
        let list = [self.near.mem.sge(0, length)];
        self.verbs
            .post_send(self.qp, &[SendWr::send(1, &list)])
            .unwrap();
        self.poll(self.far);
        self.poll(self.near);
    }

    /// The receiver's CQ is armed; a Send makes an event, which is read and acknowledged; both
    /// completions are polled.
    pub(crate) fn event(&self, length: u32) {
        self.receive(length);
        self.verbs.req_notify_cq(self.far.cq, Arm::NEXT).unwrap();
        let list = [self.near.mem.sge(0, length)];
        self.verbs
            .post_send(self.qp, &[SendWr::send(1, &list)])
            .unwrap();
        let event = self.verbs.get_cq_event(self.far.channel, Wait::Poll);
        self.verbs.ack_cq_events(event.unwrap().cq, 1).unwrap();
        self.poll(self.far);
        self.poll(self.near);
    }

    /// A poll that finds nothing, into a buffer that is used again as a program does.
    pub(crate) fn empty_poll(&self) -> impl FnMut() {
        let mut wc = [Wc::default(); 16];
        let (verbs, cq) = black_box((self.verbs, self.near.cq));
        move || assert!(matches!(verbs.poll_cq(cq, &mut wc), Ok(0)))
    }

    /// Fills both queues of both ends as far as they go, and empties them again.
    pub(crate) fn fill_queues(&self) {
        let back = Self {
            near: self.far,
            far: self.near,
            qp: self.peer,
            peer: self.qp,
            ..*self
        };
        for link in [self, &back] {
            for _ in 0..16 {
                link.receive(64);
            }
            for _ in 0..16 {
                let list = [link.near.mem.sge(0, 64)];
                let wr = SendWr::send(1, &list);
                link.verbs.post_send(link.qp, &[wr]).unwrap();
            }
            for _ in 0..16 {
                link.poll(link.near);
                link.poll(link.far);
            }
        }
    }

    fn receive(&self, length: u32) {
        let list = [self.far.mem.sge(0, length)];
        self.verbs
            .post_recv(self.peer, &[RecvWr::new(1, &list)])
            .unwrap();
    }

    fn poll(&self, end: End) {
        let mut wc = [Wc::default()];
        assert_eq!(self.verbs.poll_cq(end.cq, &mut wc).unwrap(), 1);
        assert_eq!(wc[0].status, WcStatus::Success);
    }
}

impl<'f> Links<'f> {
    /// So many more.
    pub(crate) fn extend(&mut self, fabric: &'f Fabric, more: usize) {
        let first = self.first;
        self.qps
            .extend((0..more).map(|_| fabric.another(&first).qp));
    }

    /// RDMA Write of 64 bytes on the link of this number, and its completion polled.
    pub(crate) fn write(&self, number: usize) {
        let qp = self.qps[number];
        Link { qp, ..self.first }.write(64);
    }

    /// Posts a receive on each, behind the first 64 bytes of the program's memory.
    pub(crate) fn receive(&self) {
        let Link { verbs, near, .. } = self.first;
        for (offset, qp) in (0..4000).cycle().zip(&self.qps) {
            let list = [near.mem.sge(64 + offset, 16)];
            verbs.post_recv(*qp, &[RecvWr::new(1, &list)]).unwrap();
        }
    }

    /// The program writes 64 bytes of its own memory.
    pub(crate) fn fill(&self) {
        let near = self.first.near;
        self.sim.write_mr(near.mr, 0, black_box(&[1; 64])).unwrap();
    }
}
