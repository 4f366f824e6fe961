//! All the books, and what the calls mean for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use verbs_api::{
    Cause, CmId, Context, Cq, Error, Gid, Handle, Pd, Qp, QpAttr, QpAttrMask, QpInit, QpState,
    QpType, RcParams, RecvWr, SendOp, SendWr, Sge, Srq, SrqInit, Verb, WcEx, WcOpcode, WcStatus,
    Xrcd, XrcdInit,
};

use super::broken::{Broken, Invariant};
use super::delivery::{Address, Delivery};
use super::domains::{Domain, Domains};
use super::events::Events;
use super::map::Map;
use super::memory::{Device, Memory, Readable, Wrong};
use super::objects::{Id, Leaving, Objects};
use super::polled::Polled;
use super::queues::{Completed, Queues};
use super::summary::Summary;
use super::witness::Witness;
use super::work::{Found, Over, What, Work};

/// What is known from the calls so far.
#[derive(Debug, Default)]
pub(crate) struct Books {
    pub(crate) summary: Summary,
    /// The first that was found.
    pub(crate) broken: Option<Broken>,
    /// Room for bytes that are compared.
    pub(crate) room: Vec<u8>,
    /// Nothing is looked at any more.
    pub(crate) closed: bool,
    /// At the end, no call shows what is wrong.
    pub(crate) ending: bool,
    /// The witness to notify, if any.
    pub(crate) witness: Option<Arc<Witness>>,
    contexts: Map<Context, Device>,
    /// Contexts that ids have, which no program opens or closes.
    pub(crate) of_ids: BTreeSet<Context>,
    devices: Vec<String>,
    /// Where the GIDs are that a program has asked for; `None` if there were several places.
    gids: Map<[u8; 16], Option<Device>>,
    /// Ids of rdma_cm whose queue pairs were connected.
    pub(crate) connected_ids: BTreeSet<CmId>,
    pub(crate) domains: Domains,
    pub(crate) queues: Queues,
    pub(crate) delivery: Delivery,
    pub(crate) events: Events,
    pub(crate) memory: Memory,
    pub(crate) objects: Objects,
}

impl Books {
    /// Whether there is anything to be found any more.
    pub(crate) fn are_open(&self) -> bool {
        !self.closed && self.broken.is_none()
    }

    /// Notes what is wrong, if anything is.
    pub(crate) fn judge(&mut self, invariant: Invariant, verb: Verb, result: Result<(), String>) {
        if let Err(facts) = result
            && self.are_open()
        {
            self.broken = Some(Broken {
                invariant,
                verb: (!self.ending).then_some(verb),
                call: self.summary.calls,
                facts,
            });
            if let Some(witness) = &self.witness {
                witness.broken();
            }
        }
    }

    pub(crate) fn opened(&mut self, context: Context, name: &str) {
        let known = self.devices.iter().position(|device| device == name);
        let device = known.unwrap_or_else(|| {
            self.devices.push(name.to_string());
            self.devices.len() - 1
        });
        self.contexts.insert(context, device);
    }

    pub(crate) fn closed(&mut self, context: Context) {
        for qp in self.queues.qps_of(context) {
            self.delivery.gone(qp);
        }
        self.queues.closed(context);
        self.domains.closed(context);
        self.events.closed(context);
        self.objects.closed(context);
        self.memory.closed(context);
        self.memory.forget_counters();
        self.contexts.remove(&context);
    }

    /// The open contexts that are wanted.
    pub(crate) fn contexts_where(&self, wanted: impl Fn(Context) -> bool) -> Vec<Context> {
        let contexts = self.contexts.keys().copied();
        contexts.filter(|context| wanted(*context)).collect()
    }

    /// The name and the open contexts of each device that has some.
    pub(crate) fn devices(&self) -> Vec<(String, Vec<Context>)> {
        let mut open = BTreeMap::<Device, Vec<Context>>::new();
        for (context, device) in &self.contexts {
            open.entry(*device).or_default().push(*context);
        }
        let named = |(device, contexts): (Device, _)| (self.devices[device].clone(), contexts);
        open.into_iter().map(named).collect()
    }

    pub(crate) fn device(&self, context: Context) -> Device {
        self.contexts.get(&context).copied().unwrap_or(usize::MAX)
    }

    fn address(&self, qp: Qp, qp_num: u32) -> Address {
        let device = self.device(qp.context());
        Address { device, qp_num }
    }

    pub(crate) fn saw_gid(&mut self, context: Context, gid: Gid) {
        let device = self.device(context);
        let place = self.gids.or_insert_with(gid.0, || Some(device));
        if *place != Some(device) {
            *place = None;
        }
    }

    // Objects

    pub(crate) fn made<H: Handle>(&mut self, handle: H, parents: &[Id]) {
        self.objects.made(Id::of(handle), parents);
    }

    pub(crate) fn gone<H: Handle>(&mut self, verb: Verb, handle: H) {
        let wrong = self.objects.gone(Id::of(handle));
        self.judge(Invariant::Resource, verb, wrong);
    }

    pub(crate) fn stays<H: Handle>(&mut self, handle: H, before: Leaving, error: &Error) {
        let injected = *error.cause() == Cause::Injected;
        let busy = error.kind() == verbs_api::ErrorKind::Busy && !injected;
        let wrong = self.objects.stays(Id::of(handle), before, busy);
        self.judge(Invariant::Resource, error.verb(), wrong);
    }

    // Queue pairs

    pub(crate) fn made_qp(&mut self, qp: Qp, number: Option<u32>, init: &QpInit, pd: Id) {
        let (send_cq, recv_cq) = (Id::of(init.send_cq), Id::of(init.recv_cq));
        match init.srq.map(Id::of) {
            _ if init.qp_type == QpType::XrcSend => self.made(qp, &[pd, send_cq]),
            None => self.made(qp, &[pd, send_cq, recv_cq]),
            Some(srq) => self.made(qp, &[pd, send_cq, recv_cq, srq]),
        }
        let Some(number) = number else { return };
        self.queues.made_qp(qp, number, init);
        let address = self.address(qp, number);
        if self.queues.is_rc(qp) {
            self.delivery.made(qp, address)
        } else {
            self.delivery.used(address)
        }
    }

    /// A QP of XRC_RECV was made in a domain, or opened.
    pub(crate) fn made_target(&mut self, qp: Qp, number: Option<u32>, xrcd: Xrcd) {
        self.made(qp, &[Id::of(xrcd)]);
        if let (Some(number), Some(domain)) = (number, self.domains.of(xrcd)) {
            self.queues.made_target(qp, number, domain);
            self.delivery.used(self.address(qp, number));
        }
    }

    pub(crate) fn gone_qp(&mut self, qp: Qp) {
        self.queues.gone_qp(qp);
        self.delivery.gone(qp);
        self.memory.forget_counters();
    }

    pub(crate) fn modified(&mut self, qp: Qp, attr: &QpAttr, mask: QpAttrMask) {
        let no_timer = mask.contains(QpAttrMask::TIMEOUT) && attr.timeout == 0;
        let no_reads = mask.contains(QpAttrMask::MAX_QP_RD_ATOMIC) && attr.max_rd_atomic == 0;
        if no_timer || no_reads {
            self.queues.waits_for_ever(qp);
        }
        if !mask.contains(QpAttrMask::STATE) {
            return;
        }
        self.changed(qp, attr.qp_state);
        match attr.qp_state {
            QpState::Reset => {
                self.delivery.reset(qp);
                self.memory.forget_counters();
            }
            QpState::Rtr => {
                let route = attr.ah_attr.and_then(|ah| ah.grh);
                let device = route.and_then(|grh| self.gids.get(&grh.dgid.0).copied().flatten());
                self.queues.connected(qp, device);
                let qp_num = attr.dest_qp_num;
                let peer = device.map(|device| Address { device, qp_num });
                self.delivery.connected(qp, peer);
            }
            _ => {}
        }
    }

    /// A QP has gone to a state.
    pub(crate) fn changed(&mut self, qp: Qp, state: QpState) {
        let is_new = self.queues.changed(qp, state);
        if is_new && self.summary.failed > 0 {
            self.summary.reconnected += 1;
        }
    }

    pub(crate) fn connected(&mut self, a: Qp, b: Qp, params: &RcParams) {
        for (qp, peer) in [(a, b), (b, a)] {
            if params.timeout == 0 || params.max_rd_atomic == 0 {
                self.queues.waits_for_ever(qp);
            }
            self.changed(qp, QpState::Rts);
            self.queues.connected(qp, Some(self.device(peer.context())));
        }
        self.delivery.connected_both(a, b);
    }

    // XRC domains and SRQs

    pub(crate) fn opened_xrcd(&mut self, xrcd: Xrcd, init: &XrcdInit<'_>) {
        self.made(xrcd, &[]);
        let domain = match init.file {
            Some(_) => Domain::OfFile(self.device(xrcd.context())),
            None => Domain::Private(xrcd),
        };
        self.domains.opened(xrcd, domain);
    }

    pub(crate) fn made_srq(&mut self, srq: Srq, pd: Pd, init: &SrqInit) {
        match init.xrc {
            None => self.made(srq, &[Id::of(pd)]),
            Some(xrc) => self.made(srq, &[Id::of(pd), Id::of(xrc.xrcd), Id::of(xrc.cq)]),
        }
        let in_domain = init
            .xrc
            .and_then(|xrc| Some((self.domains.of(xrc.xrcd)?, xrc.cq)));
        self.queues.made_srq(srq, in_domain);
    }

    // Work

    /// A send was posted; `maybe` if it was refused but may have been queued.
    pub(crate) fn sent(&mut self, qp: Qp, wr: &SendWr<'_>, maybe: bool) {
        let mut work = Work::send(qp, wr);
        work.maybe = maybe;
        let device = self.device(qp.context());
        let length = wr.length();
        match wr.op {
            SendOp::RdmaWrite { remote } | SendOp::RdmaWriteWithImm { remote, .. } => {
                self.memory.remote(remote, length);
            }
            SendOp::CompareAndSwap { remote, .. } | SendOp::AtomicWrite { remote, .. } => {
                self.memory.remote(remote, 8)
            }
            SendOp::FetchAndAdd { remote, add, .. } => {
                let is_clear = !maybe && self.delivery.is_first_connection(qp);
                let peer = self.queues.peer(qp).filter(|_| is_clear);
                let outstanding = writes(&self.queues, &self.contexts);
                work.add = self.memory.add(peer, remote, add, outstanding);
            }
            SendOp::BindMw { info, .. } => self.memory.bound(info.mr, info.access),
            _ => {}
        }
        self.memory.local(device, &work.writes);
        self.delivery.sent(qp, wr, maybe);
        self.posted(qp, work);
    }

    pub(crate) fn received(&mut self, qp: Qp, wr: &RecvWr<'_>) {
        let work = Work::recv(Some(qp), wr);
        let device = self.device(qp.context());
        self.memory.local(device, &work.writes);
        self.posted(qp, work);
    }

    pub(crate) fn posted(&mut self, qp: Qp, work: Work) {
        self.summary.posted += 1;
        if let Some(cq) = self.queues.post(qp, work) {
            self.events.busy(cq);
        }
    }

    pub(crate) fn received_shared(&mut self, srq: Srq, wr: &RecvWr<'_>) {
        let work = Work::recv(None, wr);
        let device = self.device(srq.context());
        self.memory.local(device, &work.writes);
        self.summary.posted += 1;
        for cq in self.queues.post_shared(srq, work) {
            self.events.busy(cq);
        }
    }

    /// A completion was polled.
    pub(crate) fn polled(&mut self, verb: Verb, cq: Cq, polled: &Polled) {
        self.summary.polled += 1;
        if !self.ending && !polled.is_success() && polled.wc.status != WcStatus::WrFlushErr {
            self.summary.failed += 1;
        }
        match self.queues.complete(cq, polled) {
            Ok(completed) => self.completed(verb, cq, polled, completed),
            Err(facts) => self.judge(Invariant::Completion, verb, Err(facts)),
        }
    }

    /// The completion that an iteration has come to was read, perhaps not for the first time.
    pub(crate) fn read_wc(&mut self, verb: Verb, cq: Cq, read: WcEx) {
        if self.queues.is_unread(cq) {
            self.queues.was_read(cq);
            self.polled(verb, cq, &Polled::from(read));
        }
    }

    /// A CQ was seen empty.
    pub(crate) fn seen_empty(&mut self, cq: Cq) {
        let over = self.queues.seen_empty(cq);
        self.released(cq, over);
        let stuck = self.queues.stuck(cq).map_or(Ok(()), Err);
        self.judge(Invariant::Lost, Verb::PollCq, stuck);
    }

    pub(crate) fn gone_cq(&mut self, cq: Cq) {
        let over = self.queues.gone_cq(cq);
        self.released(cq, over);
    }

    /// Work is over of which no completion was polled.
    fn released(&mut self, cq: Cq, over: Over) {
        let device = self.device(cq.context());
        for work in over {
            self.memory.released(device, &work.writes, u64::MAX);
        }
    }

    fn completed(&mut self, verb: Verb, cq: Cq, polled: &Polled, completed: Completed) {
        let Completed {
            found,
            shared,
            lossy,
            owners,
            over,
        } = completed;
        let device = self.device(cq.context());
        let (wc, is_success) = (&polled.wc, polled.is_success());
        let of = match &found {
            Found::Work { number, .. } => Some(*number),
            _ => None,
        };
        for work in over.iter().chain(&shared) {
            let is_it = of == Some(work.number) || of.is_none() && shared.is_some();
            let most = match work.what {
                What::Recv if work.unreliable || !is_it || !is_success => u64::MAX,
                What::Recv if wc.opcode == WcOpcode::RecvRdmaWithImm => 0,
                What::Recv => polled.most_bytes(),
                What::Send(_) => u64::MAX,
            };
            self.memory.released(device, &work.writes, most);
            if is_it
                && is_success
                && let Some(add) = &work.add
            {
                let is_first = |qp| self.delivery.is_first_connection(qp);
                if work.qp.is_some_and(is_first) {
                    self.memory.added(add)
                } else {
                    self.memory.forget_counters()
                }
            }
        }
        if !is_success || !wc.opcode.is_recv() {
            return;
        }
        let receiver = match (found, &owners[..]) {
            (Found::Work { qp, epoch, .. }, _) => qp.map(|qp| (qp, epoch)),
            // Which of its lives it was is only known while there is one.
            (Found::Shared, [owner]) => Some(*owner).filter(|(_, epoch)| *epoch == 0),
            (Found::Shared | Found::Unclear, _) => {
                for (qp, _) in owners {
                    self.delivery.deafen(qp);
                }
                None
            }
        };
        if let Some((qp, epoch)) = receiver {
            let wrong = self.delivery.received(qp, epoch, lossy, polled);
            self.judge(Invariant::Delivery, verb, wrong);
        }
    }

    // Memory

    /// Bytes of a region were read.
    pub(crate) fn read(&mut self, verb: Verb, of: Readable, offset: usize, bytes: &[u8]) {
        let outstanding = writes(&self.queues, &self.contexts);
        let wrong = self.memory.check(of, offset, bytes, outstanding);
        self.summary.bytes += bytes.len() as u64;
        match wrong {
            Ok(()) => {}
            Err(Wrong::Byte(facts)) => self.judge(Invariant::Memory, verb, Err(facts)),
            Err(Wrong::Counter(facts)) => self.judge(Invariant::Atomic, verb, Err(facts)),
        }
    }
}

/// What outstanding work may write, and on which device.
fn writes<'a>(
    queues: &'a Queues,
    contexts: &'a Map<Context, Device>,
) -> impl Iterator<Item = (Device, Sge)> + 'a {
    let all = queues.writes();
    all.filter_map(|(context, sge)| Some((*contexts.get(&context)?, sge)))
}
