//! The operations that are timed: from posting to polling the completions.

use verbs_api::{Arm, RecvWr, SendWr, Verbs, Wait, Wc, WcStatus};

use crate::link::{End, Fabric, Link, QKEY};

/// The number of work requests that are posted together, and of completions that are polled
/// together.
pub(crate) const LIST: usize = 16;
/// The bytes before the data of a datagram.
const GRH: u32 = 40;

impl Link<'_> {
    /// An RDMA Write of `length` bytes.
    pub(crate) fn write(&self, length: u32) {
        let list = [self.near.mem.sge(0, length)];
        self.post(SendWr::rdma_write(1, &list, self.far.mem.remote(0)));
        self.poll(self.near);
    }

    /// An RDMA Write of `length` bytes from two entries.
    pub(crate) fn write_pieces(&self, length: u32) {
        let piece = |place| self.near.mem.sge(place, length / 2);
        let list = [piece(128), piece(0)];
        self.post(SendWr::rdma_write(1, &list, self.far.mem.remote(0)));
        self.poll(self.near);
    }

    /// An RDMA Write of `length` bytes of inline data.
    pub(crate) fn write_inline(&self, length: u32) {
        let list = [self.near.mem.sge(0, length)];
        self.post(SendWr::rdma_write(1, &list, self.far.mem.remote(0)).inline());
        self.poll(self.near);
    }

    /// A list of RDMA Writes of `length` bytes.
    pub(crate) fn writes(&self, length: u32) {
        let list = [self.near.mem.sge(0, length)];
        let wr = SendWr::rdma_write(1, &list, self.far.mem.remote(0));
        self.verbs.post_send(self.qp, &[wr; LIST]).unwrap();
        self.poll_list(self.near);
    }

    /// An RDMA Read of `length` bytes.
    pub(crate) fn read(&self, length: u32) {
        let list = [self.near.mem.sge(0, length)];
        self.post(SendWr::rdma_read(1, &list, self.far.mem.remote(0)));
        self.poll(self.near);
    }

    /// Fetch-and-add.
    pub(crate) fn add(&self) {
        let list = [self.near.mem.sge(0, 8)];
        self.post(SendWr::fetch_and_add(1, &list, self.far.mem.remote(0), 1));
        self.poll(self.near);
    }

    /// A receive and a Send of `length` bytes.
    pub(crate) fn send(&self, length: u32) {
        self.receive(length);
        self.post(SendWr::send(1, &[self.near.mem.sge(0, length)]));
        self.poll(self.far);
        self.poll(self.near);
    }

    /// A list of receives and a list of Sends of `length` bytes.
    pub(crate) fn sends(&self, length: u32) {
        let [from, into] = [self.near, self.far].map(|end| [end.mem.sge(0, length)]);
        let receives = [RecvWr::new(1, &into); LIST];
        self.verbs.post_recv(self.peer, &receives).unwrap();
        let sends = [SendWr::send(1, &from); LIST];
        self.verbs.post_send(self.qp, &sends).unwrap();
        self.poll_list(self.far);
        self.poll_list(self.near);
    }

    /// A receive on an SRQ, and a Send.
    pub(crate) fn send_shared(&self, length: u32) {
        let list = [self.far.mem.sge(0, length)];
        let wr = RecvWr::new(1, &list);
        self.verbs.post_srq_recv(self.srq, &[wr]).unwrap();
        self.post(SendWr::send(1, &[self.near.mem.sge(0, length)]));
        self.poll(self.far);
        self.poll(self.near);
    }

    /// A receive, and a datagram.
    pub(crate) fn send_datagram(&self, length: u32) {
        self.receive(length + GRH);
        let list = [self.near.mem.sge(0, length)];
        self.post(SendWr::send(1, &list).to(self.ah, self.num, QKEY));
        self.poll(self.far);
        self.poll(self.near);
    }

    /// A receive, and an RDMA Write with immediate data.
    pub(crate) fn write_with_imm(&self, length: u32) {
        self.receive(length);
        let list = [self.near.mem.sge(0, length)];
        let remote = self.far.mem.remote(0);
        self.post(SendWr::rdma_write_with_imm(1, &list, remote, [1; 4]));
        self.poll(self.far);
        self.poll(self.near);
    }

    /// A Send that makes an event of the receiver's armed CQ. The event is read and acknowledged.
    pub(crate) fn event(&self, length: u32) {
        self.receive(length);
        self.verbs.req_notify_cq(self.far.cq, Arm::NEXT).unwrap();
        self.post(SendWr::send(1, &[self.near.mem.sge(0, length)]));
        let event = self.verbs.get_cq_event(self.far.channel, Wait::Poll);
        self.verbs.ack_cq_events(event.unwrap().cq, 1).unwrap();
        self.poll(self.far);
        self.poll(self.near);
    }

    /// Fills both queues of both ends, and empties them again.
    pub(crate) fn fill_queues(&self) {
        let back = Self {
            near: self.far,
            far: self.near,
            qp: self.peer,
            peer: self.qp,
            ..*self
        };
        self.sends(64);
        back.sends(64);
    }

    fn post(&self, wr: SendWr<'_>) {
        self.verbs.post_send(self.qp, &[wr]).unwrap();
    }

    fn receive(&self, length: u32) {
        let list = [self.far.mem.sge(0, length)];
        let wr = RecvWr::new(1, &list);
        self.verbs.post_recv(self.peer, &[wr]).unwrap();
    }

    fn poll(&self, end: End) {
        let mut wc = [Wc::default()];
        assert_eq!(self.verbs.poll_cq(end.cq, &mut wc).unwrap(), 1);
        assert_eq!(wc[0].status, WcStatus::Success);
    }

    fn poll_list(&self, end: End) {
        let mut wc = [Wc::default(); LIST];
        assert_eq!(self.verbs.poll_cq(end.cq, &mut wc).unwrap(), LIST);
        assert!(wc.iter().all(|wc| wc.status == WcStatus::Success));
    }
}

impl Fabric {
    /// A poll of an empty CQ, into a buffer that is reused as in a program.
    pub(crate) fn empty_poll(&self, link: &Link<'_>) -> impl FnMut() {
        let mut wc = [Wc::default(); LIST];
        let (sim, cq) = std::hint::black_box((&self.sim, link.near.cq));
        move || assert!(matches!(sim.poll_cq(cq, &mut wc), Ok(0)))
    }
}
