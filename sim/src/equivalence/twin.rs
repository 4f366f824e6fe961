//! One of the simulations that are compared: its objects, and random calls.

use core::time::Duration;
use std::fmt::Write as _;

use verbs_api::behavior::Check;
use verbs_api::connect::by_attributes;
use verbs_api::lab::{Effect, Fault, FaultId, Lab, PacketFilter};
use verbs_api::profile::Profile;
use verbs_api::{
    Access, Ah, AhAttr, Arm, BatchEnd, Capabilities, CompChannel, Context, Cq, CqInit,
    CqModeration, DmInit, Ece, ErrorKind, Gid, Handle, Mr, MrAttr, Mtu, Pd, PlacementType, Qp,
    QpAttr, QpAttrMask, QpCap, QpInit, QpState, QpType, RcParams, RecvWr, SelectivityLevel,
    SendFlags, SendOp, SendOps, SendWr, Sge, Srq, SrqAttr, SrqAttrMask, SrqInit, Verb, Verbs, Wait,
    Wc, WcStatus, transition,
};

use super::state::snapshot;
use crate::rng::Random;
use crate::{Mode, Sim, SimConfig};

/// The random choices of one step.
pub(super) struct Choices(pub(super) Random);

impl Choices {
    fn below(&mut self, count: u64) -> u64 {
        self.0.any() % count
    }

    fn index(&mut self, count: usize) -> usize {
        self.below(count as u64) as usize
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn any<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }
}

pub(super) struct End {
    pub(super) context: Context,
    pub(super) pd: Pd,
    pub(super) channel: CompChannel,
    pub(super) cqs: [Cq; 3],
    pub(super) srq: Option<Srq>,
    pub(super) mrs: Vec<(Mr, MrAttr)>,
    pub(super) ah: Ah,
}

/// Two queue pairs, each with its node.
pub(super) type Pair = [(usize, Qp); 2];

pub(super) struct Twin {
    pub(super) sim: Sim,
    pub(super) ends: Vec<End>,
    pub(super) pairs: Vec<Pair>,
    pub(super) faults: Vec<FaultId>,
    pub(super) lacks: Capabilities,
}

const BYTES: usize = 4096;
const CAP: QpCap = QpCap {
    max_send_wr: 4,
    max_recv_wr: 8,
    max_send_sge: 2,
    max_recv_sge: 2,
    max_inline_data: 64,
};
const ONLY_LOCAL: usize = 2;
const OF_DEVICE: usize = 1;
const BYTES_OF_THEIR_OWN: [u8; 70] = [0x5a; 70];
const ACCESS: Access = Access::ALL_RDMA
    .union(Access::REMOTE_ATOMIC)
    .union(Access::FLUSH_GLOBAL);
/// What devices have or lack together here.
const EXTENSIONS: Capabilities = Capabilities::FLUSH.union(Capabilities::ATOMIC_WRITE);

impl Twin {
    pub(super) fn new(profile: Profile, only_packets: bool) -> Self {
        let config = SimConfig::new().mode(Mode::Inline).seed(5);
        Self::with(config.profile(profile), profile, only_packets)
    }

    pub(super) fn with(mut config: SimConfig, profile: Profile, only_packets: bool) -> Self {
        // Some queue pairs are connected to an address that no device has.
        config.behavior.unowned_gid = Check::Accepted;
        let sim = Sim::new(config);
        sim.runtime.with(|fabric| {
            fabric.direct.tally.only_packets = only_packets;
            fabric.rewire(|_| ());
        });
        let mut srq_init = SrqInit::new(12);
        srq_init.attr.max_sge = 2;
        let ends = ["sim0", "sim1"].map(|name| {
            let context = sim.open_device(name).unwrap();
            let pd = sim.alloc_pd(context).unwrap();
            let channel = sim.create_comp_channel(context).unwrap();
            let cqs = [400, 60, 5].map(|cqe| {
                sim.create_cq(context, &CqInit::new(cqe).channel(channel))
                    .unwrap()
            });
            let srq = sim.create_srq(pd, &srq_init).ok();
            let mrs = (0..3).map(|at| region(&sim, pd, at, false)).collect();
            let other = if name == "sim0" { "sim1" } else { "sim0" };
            let far = sim.open_device(other).unwrap();
            let gid = sim.query_gid(far, 1, 0).unwrap();
            let ah = sim
                .create_ah(pd, &AhAttr::global(1, 0, gid))
                .unwrap_or_default();
            End {
                context,
                pd,
                channel,
                cqs,
                srq,
                mrs,
                ah,
            }
        });
        let mut twin = Self {
            sim,
            ends: ends.into(),
            pairs: Vec::new(),
            faults: Vec::new(),
            lacks: profile.lacks,
        };
        let uc = if profile.lacks.contains(Capabilities::UC) {
            QpType::Rc
        } else {
            QpType::Uc
        };
        for (ends, qp_type, cq, shares) in [
            ([0, 1], QpType::Rc, 0, false),
            ([0, 1], QpType::Rc, 1, true),
            ([0, 0], QpType::Rc, 0, false),
            ([1, 1], QpType::Rc, 1, false),
            ([1, 0], QpType::Rc, 2, false),
            ([0, 1], uc, 0, false),
            ([1, 0], uc, 1, false),
            ([1, 1], uc, 0, false),
            ([0, 1], QpType::Ud, 0, false),
            ([1, 0], QpType::Ud, 1, true),
        ] {
            let made = ends.map(|end| (end, twin.make_qp(end, qp_type, cq, shares)));
            if let [(a, Some(first)), (b, Some(second))] = made {
                twin.pairs.push([(a, first), (b, second)]);
            }
        }
        // A queue pair whose peer is itself.
        if let Some(own) = twin.make_qp(0, QpType::Rc, 0, false) {
            twin.pairs.push([(0, own), (0, own)]);
        }
        for pair in twin.pairs.clone() {
            twin.connect(pair, &params()).unwrap();
        }
        twin
    }

    fn make_qp(&self, end: usize, qp_type: QpType, cq: usize, shares: bool) -> Option<Qp> {
        let own = &self.ends[end];
        let mut init = QpInit::new(qp_type, own.cqs[cq], own.cqs[cq]).cap(CAP);
        if shares {
            init = init.srq(own.srq?);
        }
        let mut batches = SendOps::SEND | SendOps::SEND_WITH_IMM;
        if qp_type == QpType::Rc && !self.lacks.intersects(EXTENSIONS) {
            batches |= SendOps::RDMA_WRITE | SendOps::FLUSH | SendOps::ATOMIC_WRITE;
        }
        let with_batches = init.send_ops(batches);
        let made = self.sim.create_qp(own.pd, &with_batches);
        made.or_else(|_| self.sim.create_qp(own.pd, &init)).ok()
    }

    fn connect(&self, [(end, a), (_, b)]: Pair, params: &RcParams) -> verbs_api::Result<()> {
        if a == b {
            self.connect_with_itself(end, a)
        } else {
            by_attributes(&self.sim, a, b, params)
        }
    }

    fn connect_with_itself(&self, end: usize, qp: Qp) -> verbs_api::Result<()> {
        let gid = self.sim.query_gid(self.ends[end].context, 1, 0)?;
        self.connect_one(qp, qp, gid, Mtu::Mtu1024)
    }

    /// Connects one end.
    fn connect_one(&self, qp: Qp, peer: Qp, gid: Gid, path_mtu: Mtu) -> verbs_api::Result<()> {
        let qp_type = self.sim.query_qp(qp, QpAttrMask::empty())?.init.qp_type;
        let attr = QpAttr {
            path_mtu,
            dest_qp_num: self.sim.qp_num(peer)?,
            qp_access_flags: ACCESS,
            ah_attr: Some(AhAttr::global(1, 0, gid)),
            port_num: 1,
            max_rd_atomic: 1,
            max_dest_rd_atomic: 1,
            timeout: 1,
            retry_cnt: 2,
            rnr_retry: 2,
            ..QpAttr::default()
        };
        let mut from = QpState::Reset;
        for to in [QpState::Init, QpState::Rtr, QpState::Rts] {
            let Some(attributes) = transition::attributes(qp_type, from, to) else {
                break;
            };
            let attr = QpAttr {
                qp_state: to,
                ..attr
            };
            let mask = attributes.required | QpAttrMask::STATE;
            self.sim.modify_qp(qp, &attr, mask)?;
            from = to;
        }
        Ok(())
    }

    fn is_uc(&self, qp: Qp) -> bool {
        let query = self.sim.query_qp(qp, QpAttrMask::empty()).unwrap();
        query.init.qp_type == QpType::Uc
    }

    fn reset(&self, qp: Qp) -> verbs_api::Result<()> {
        let attr = QpAttr {
            qp_state: QpState::Reset,
            ..QpAttr::default()
        };
        self.sim.modify_qp(qp, &attr, QpAttrMask::STATE)
    }

    fn state_of(&self, qp: Qp) -> QpState {
        let query = self.sim.query_qp(qp, QpAttrMask::STATE).unwrap();
        query.attr.qp_state
    }

    fn list(&self, end: usize, draw: &mut Choices) -> Vec<Sge> {
        let count = draw.any(&[1, 1, 1, 1, 1, 1, 1, 2, 2, 0]);
        let sge = |_| {
            let mem = self.ends[end].mrs[draw.index(3)].1;
            let mut sge = mem.sge(0, 0);
            (sge.addr, sge.length) = match draw.below(120) {
                0 => (mem.addr + draw.below(5000), draw.below(5000) as u32),
                1 => (mem.addr, 0),
                2..14 => (mem.addr + draw.below(8) * 8, 8),
                14..30 => (mem.addr + draw.below(2000), 1 + draw.below(60) as u32),
                _ => (mem.addr + draw.below(1500), 1 + draw.below(1500) as u32),
            };
            if draw.one_in(250) {
                sge.lkey ^= 1 << draw.below(20);
            }
            sge
        };
        (0..count).map(sge).collect()
    }

    fn op(&self, far: usize, draw: &mut Choices) -> SendOp {
        let at = if draw.one_in(80) {
            ONLY_LOCAL
        } else {
            draw.index(2)
        };
        let mut remote = self.ends[far].mrs[at].1.remote(0);
        let is_atomic = draw.one_in(10);
        remote.addr += if is_atomic {
            8 * draw.below(100) + u64::from(draw.one_in(12))
        } else {
            draw.below(1600)
        };
        if draw.one_in(150) {
            remote.rkey ^= 1 << draw.below(32);
        }
        let imm_data = [1, 2, 3, draw.below(255) as u8];
        match draw.below(17) {
            _ if is_atomic && draw.one_in(2) => SendOp::FetchAndAdd { remote, add: 7 },
            _ if is_atomic => SendOp::CompareAndSwap {
                remote,
                compare: draw.below(2),
                swap: 9,
            },
            0..5 => SendOp::RdmaWrite { remote },
            5..10 => SendOp::Send,
            10..12 => SendOp::SendWithImm { imm_data },
            12..14 => SendOp::RdmaWriteWithImm { remote, imm_data },
            14..16 => SendOp::RdmaRead { remote },
            _ if draw.one_in(8) => SendOp::SendWithInv { rkey: 77 },
            _ => SendOp::Send,
        }
    }

    /// A flush or an atomic write.
    fn extension(&self, far: usize, draw: &mut Choices) -> SendWr<'static> {
        let mut remote = self.ends[far].mrs[draw.index(2)].1.remote(0);
        let wr_id = draw.below(1 << 40);
        if draw.one_in(2) {
            remote.addr += 8 * draw.below(100) + u64::from(draw.one_in(20));
            return SendWr::atomic_write(wr_id, remote, [draw.below(255) as u8; 8]);
        }
        remote.addr += draw.below(1600);
        let level = draw.any(&[SelectivityLevel::Range, SelectivityLevel::Mr]);
        let length = draw.below(2000) as u32;
        SendWr::flush(wr_id, remote, length, PlacementType::GLOBAL, level)
    }

    fn post(&self, [(near, qp), (far, peer)]: Pair, draw: &mut Choices) -> String {
        let count = if draw.one_in(12) {
            2 + draw.index(3)
        } else {
            1
        };
        let init = self.sim.query_qp(qp, QpAttrMask::empty()).unwrap().init;
        let is_datagram = init.qp_type == QpType::Ud;
        let lists: Vec<_> = (0..count).map(|_| self.list(near, draw)).collect();
        let wrs: Vec<_> = lists
            .iter()
            .map(|list| {
                let mut op = self.op(far, draw);
                let is_sent = matches!(op, SendOp::Send | SendOp::SendWithImm { .. });
                let lacks = self.lacks;
                let is_legal = match init.qp_type {
                    _ if lacks.contains(Capabilities::ATOMICS)
                        && !matches!(op, SendOp::Send | SendOp::RdmaWrite { .. }) =>
                    {
                        matches!(op, SendOp::RdmaRead { .. })
                    }
                    QpType::Rc => true,
                    QpType::Uc => !op.reads(),
                    _ => is_sent,
                };
                if !is_legal && !draw.one_in(20) {
                    op = SendOp::Send;
                }
                let atomic = matches!(
                    op,
                    SendOp::FetchAndAdd { .. } | SendOp::CompareAndSwap { .. }
                );
                let short = list.first().is_some_and(|sge| sge.length >= 8);
                if atomic && !short {
                    op = SendOp::Send;
                }
                let mut flags = SendFlags::empty();
                let chances = [
                    (SendFlags::SIGNALED, 6),
                    (SendFlags::SOLICITED, 2),
                    (SendFlags::FENCE, 2),
                ];
                for (flag, chance) in chances {
                    flags.set(flag, draw.below(8) < chance);
                }
                let length: u32 = list.iter().map(|sge| sge.length).sum();
                flags.set(
                    SendFlags::INLINE,
                    length <= 64 && !op.reads() && draw.one_in(2),
                );
                let mut wr = SendWr::new(draw.below(1 << 40), op, list).flags(flags);
                if flags.contains(SendFlags::INLINE) && draw.one_in(3) {
                    wr = wr.inline_data(&BYTES_OF_THEIR_OWN[..draw.index(70)]);
                }
                if is_datagram {
                    let number = self.sim.qp_num(peer).unwrap();
                    let qkey = u32::from(draw.one_in(40));
                    wr.to(self.ends[near].ah, number, qkey)
                } else {
                    wr
                }
            })
            .collect();
        let is_for_batch = |wr: &SendWr<'_>| init.send_ops.contains(SendOps::of(&wr.op));
        if wrs.iter().all(is_for_batch) && draw.one_in(4) {
            let mut wrs = wrs;
            if init.send_ops.contains(SendOps::FLUSH) && draw.one_in(2) {
                let at = draw.index(wrs.len() + 1);
                wrs.insert(at, self.extension(far, draw));
            }
            let done = self.sim.post_batch(qp, &wrs, BatchEnd::Complete);
            return format!("batch {wrs:?}: {done:?}");
        }
        format!("post {wrs:?}: {:?}", self.sim.post_send(qp, &wrs))
    }

    fn receive(&self, end: usize, qp: Qp, draw: &mut Choices) -> String {
        let mem = self.ends[end].mrs[draw.index(3)].1;
        let mut list = vec![mem.sge(draw.below(80), 2000 + draw.below(1500) as u32)];
        match draw.below(120) {
            0 => list.push(mem.sge(3000, 500)),
            1 => list[0].length = 10,
            2 => list[0].addr += 3000,
            3 => list[0].lkey ^= 2,
            4 => list.clear(),
            _ => {}
        }
        let other = [mem.sge(0, 4000)];
        let wr = [
            RecvWr::new(draw.below(1 << 40), &list),
            RecvWr::new(draw.below(1 << 40), &other),
        ];
        let init = self.sim.query_qp(qp, QpAttrMask::empty()).unwrap().init;
        let posted = match init.srq {
            Some(srq) => self.sim.post_srq_recv(srq, &wr),
            None => self.sim.post_recv(qp, &wr),
        };
        format!("{posted:?}")
    }

    pub(super) fn poll(&self, cq: Cq, room: usize) -> String {
        let mut wc = [Wc::default(); 64];
        let count = self.sim.poll_cq(cq, &mut wc[..room]);
        let polled = &wc[..*count.as_ref().unwrap_or(&0)];
        format!("{count:?} {polled:?}")
    }

    /// Repairs everything that is broken.
    fn mend(&mut self, draw: &mut Choices) -> String {
        let mut said = String::new();
        for pair @ [(_, qp), (_, peer)] in self.pairs.clone() {
            let broken = [qp, peer].map(|of| self.state_of(of) != QpState::Rts);
            if broken.contains(&true) || draw.one_in(100) {
                for of in [qp, peer] {
                    write!(said, "{:?}", self.reset(of)).unwrap();
                }
                let mut params = params();
                if draw.one_in(16) {
                    params.access = draw.any(&[Access::REMOTE_READ, Access::empty()]);
                }
                if draw.one_in(16) {
                    params.max_rd_atomic = 0;
                }
                write!(said, "{:?}", self.connect(pair, &params)).unwrap();
            }
        }
        said
    }

    /// Makes wrong connections.
    fn mutate(&mut self, draw: &mut Choices) -> String {
        let [pair, other] = [0; 2].map(|_| self.pairs[draw.index(self.pairs.len())]);
        let [(_, qp), (_, peer)] = pair;
        let mut said = String::new();
        let again = |said: &mut String, of: [Qp; 2]| {
            for qp in of {
                write!(said, "{:?}", self.reset(qp)).unwrap();
            }
        };
        let gid_of = |end: usize| self.sim.query_gid(self.ends[end].context, 1, 0).unwrap();
        let [(end, _), (far, _)] = pair;
        match draw.below(8) {
            // One end has another path MTU.
            0 => {
                again(&mut said, [qp, peer]);
                for (own, other, end, mtu) in
                    [(qp, peer, far, Mtu::Mtu1024), (peer, qp, end, Mtu::Mtu256)]
                {
                    let connected = self.connect_one(own, other, gid_of(end), mtu);
                    write!(said, "{connected:?}").unwrap();
                }
            }
            // One end is connected to another queue pair.
            1 => {
                again(&mut said, [qp, qp]);
                let (end, other) = other[1];
                let connected = self.connect_one(qp, other, gid_of(end), Mtu::Mtu1024);
                write!(said, "{connected:?}").unwrap();
            }
            // One end is connected to an unknown queue pair.
            5 => {
                again(&mut said, [qp, qp]);
                let nowhere = Gid([0x20; 16]);
                let connected = self.connect_one(qp, peer, nowhere, Mtu::Mtu1024);
                write!(said, "{connected:?}").unwrap();
            }
            // The end of a message is lost, and only UC continues.
            6 | 7 => {
                let uc = self.pairs.iter().find(|[(_, qp), _]| self.is_uc(*qp));
                let [(end, qp), (far, _)] = *uc.unwrap_or(&pair);
                let fault = self.sim.inject(Fault::drop(PacketFilter::EVERY).nth(2));
                let list = [self.ends[end].mrs[0].1.sge(0, 1500)];
                let remote = self.ends[far].mrs[1].1.remote(0);
                let wr = SendWr::rdma_write(3, &list, remote);
                write!(said, "{:?}", self.sim.post_send(qp, &[wr])).unwrap();
                write!(said, "{:?}", self.sim.remove(fault.unwrap())).unwrap();
            }
            // Neither end has an address.
            2 => again(&mut said, [peer, peer]),
            // The sequence numbers differ.
            3 => {
                again(&mut said, [qp, peer]);
                let params = RcParams {
                    psn_a: 0x00ff_fffd,
                    psn_b: 5,
                    ..params()
                };
                write!(said, "{:?}", self.connect(pair, &params)).unwrap();
            }
            _ => {
                let state = draw.any(&[QpState::Err, QpState::Sqd, QpState::Rts]);
                let attr = QpAttr {
                    qp_state: state,
                    ..QpAttr::default()
                };
                let changed = self.sim.modify_qp(qp, &attr, QpAttrMask::STATE);
                write!(said, "{state:?} {changed:?}").unwrap();
            }
        }
        said
    }

    fn break_rules(&mut self, draw: &mut Choices) -> String {
        let fault = match draw.below(7) {
            0 => Fault::fail(Verb::PostSend, ErrorKind::NoMemory).nth(1 + draw.below(3)),
            1 => Fault::complete(WcStatus::RemOpErr).nth(1 + draw.below(3)),
            2..5 => Fault::complete(WcStatus::LocProtErr)
                .node(1)
                .nth(40 + draw.below(9)),
            5 => Fault::drop(PacketFilter::EVERY).nth(1 + draw.below(5)),
            _ => {
                let by = Effect::Delay(Duration::from_micros(10));
                Fault::packet(PacketFilter::EVERY, by).nth(1 + draw.below(3))
            }
        };
        match self.sim.inject(fault) {
            Ok(fault) => self.faults.push(fault),
            Err(error) => return error.to_string(),
        }
        String::new()
    }

    pub(super) fn act(&mut self, draw: &mut Choices) -> String {
        if draw.one_in(400) {
            // A queue pair that does not exist.
            let wr = SendWr::send(1, &[]);
            let context = self.ends[0].context;
            let qp = Qp::from_parts(context, draw.below(20) as u32, 7);
            return format!("{:?}", self.sim.post_send(qp, &[wr]));
        }
        let pair = self.pairs[draw.index(self.pairs.len())];
        let pair = if draw.one_in(2) {
            pair
        } else {
            [pair[1], pair[0]]
        };
        let end = pair[0].0;
        let cq = self.ends[end].cqs[draw.index(3)];
        let (sim, ends) = (&self.sim, &self.ends);
        match draw.below(64) {
            0..23 => self.post(pair, draw),
            23..40 => self.receive(pair[1].0, pair[1].1, draw),
            40..44 => {
                let all = ends.iter().flat_map(|end| end.cqs);
                all.map(|cq| self.poll(cq, 64)).collect()
            }
            44..47 => self.poll(cq, 1 + draw.index(8)),
            47..50 => self.mend(draw),
            50 => format!(
                "{:?}",
                sim.req_notify_cq(cq, draw.any(&[Arm::NEXT, Arm::SOLICITED]))
            ),
            51 => {
                let event = sim.get_cq_event(ends[end].channel, Wait::Poll);
                if let Ok(event) = &event {
                    sim.ack_cq_events(event.cq, 1).unwrap();
                }
                format!("{event:?}")
            }
            52 if draw.one_in(4) => self.mutate(draw),
            52..55 => self.mend(draw),
            55 if draw.one_in(24) => {
                let up = draw.one_in(2);
                format!("{:?}", sim.set_port(ends[end].context, 1, up))
            }
            56 if draw.one_in(12) => self.break_rules(draw),
            55..58 => {
                for end in &self.ends {
                    self.sim.set_port(end.context, 1, true).unwrap();
                    self.sim.set_pkey(end.context, 1, 0, 0xffff).unwrap();
                }
                let faults = std::mem::take(&mut self.faults);
                let removed = faults.into_iter().map(|fault| self.sim.remove(fault));
                format!("{:?}", removed.collect::<Vec<_>>())
            }
            58 if draw.one_in(24) => {
                let pkey = draw.any(&[0xffff, 0x7fff, 0x8001]);
                format!("{:?}", sim.set_pkey(ends[end].context, 1, 0, pkey))
            }
            59 if draw.one_in(4) => {
                let by = Duration::from_micros(draw.below(100));
                format!("{:?}", sim.advance(by))
            }
            59 | 60 => format!("{:?}", sim.settle()),
            61 if draw.one_in(12) => {
                let set = CqModeration {
                    cq_count: draw.below(4) as u16,
                    cq_period: draw.below(3) as u16,
                };
                format!("{:?}", sim.modify_cq(cq, &set))
            }
            61 if draw.one_in(8) => {
                let [(_, qp), _] = pair;
                let set = Ece::new(Profile::SPEC.ece.vendor_id, draw.below(8) as u32);
                format!("{:?} {:?}", sim.set_ece(qp, &set), sim.query_ece(qp))
            }
            61 => {
                let Some(srq) = ends[end].srq else {
                    return String::new();
                };
                let attr = SrqAttr {
                    srq_limit: 1 + draw.below(3) as u32,
                    ..SrqAttr::default()
                };
                format!("{:?}", sim.modify_srq(srq, &attr, SrqAttrMask::LIMIT))
            }
            62 => {
                let (mr, _) = ends[end].mrs[draw.index(3)];
                let bytes = vec![draw.below(256) as u8; draw.index(96)];
                format!("{:?}", sim.write_mr(mr, draw.index(4000), &bytes))
            }
            63 if draw.one_in(8) => {
                let at = draw.index(3);
                let gone = sim.dereg_mr(ends[end].mrs[at].0);
                let on_demand = draw.one_in(3);
                self.ends[end].mrs[at] = region(&self.sim, self.ends[end].pd, at, on_demand);
                format!("{gone:?}")
            }
            63 if draw.one_in(4) => {
                let (mr, _) = ends[end].mrs[draw.index(3)];
                format!("{:?}", sim.map_mr(mr, draw.one_in(2)))
            }
            _ => String::new(),
        }
    }

    /// The whole state, except for what no program can observe.
    pub(super) fn snapshot(&self) -> String {
        self.sim.runtime.with(|fabric| {
            let nodes = [0, 1].map(|node| snapshot(fabric.node(node))).concat();
            // Finished work keeps no call site.
            let nodes = nodes.replace("site: Some(Address(1))", "site: None");
            format!("{:?} {:?}\n{nodes}", fabric.now(), fabric.timers())
        })
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.sim
            .runtime
            .with(|fabric| fabric.memory.lock().all_bytes())
    }
}

/// Timeouts and retries are short.
fn params() -> RcParams {
    RcParams {
        timeout: 1,
        retry_cnt: 2,
        rnr_retry: 2,
        access: ACCESS,
        ..RcParams::default()
    }
}

/// The region with the first of these rights that the device gives.
fn first_taken<const N: usize>(
    rights: [Access; N],
    register: impl FnMut(Access) -> verbs_api::Result<Mr>,
) -> Mr {
    let mut made = rights.into_iter().map(register);
    made.find_map(Result::ok).unwrap()
}

fn region(sim: &Sim, pd: Pd, at: usize, on_demand: bool) -> (Mr, MrAttr) {
    let bytes: Vec<u8> = (0..BYTES).map(|byte| (byte * 7 + at) as u8).collect();
    if at == OF_DEVICE
        && let Ok(dm) = sim.alloc_dm(pd.context(), &DmInit::new(BYTES))
    {
        sim.copy_to_dm(dm, 0, &bytes).unwrap();
        // Some devices lack flushes.
        let of = [ACCESS, ACCESS - Access::FLUSH_GLOBAL].map(|of| of | Access::ZERO_BASED);
        let mr = first_taken(of, |access| sim.reg_dm_mr(pd, dm, 0, BYTES, access));
        return (mr, sim.query_mr(mr).unwrap());
    }
    let mut access = match at {
        ONLY_LOCAL => Access::LOCAL_WRITE,
        // It has no effect where data is placed at its arrival.
        0 => ACCESS | Access::RELAXED_ORDERING,
        _ => ACCESS,
    };
    access.set(Access::ON_DEMAND, on_demand);
    // Some devices lack flushes, or on-demand paging.
    let of = [access, access - Access::FLUSH_GLOBAL, Access::ALL_RDMA];
    let mr = first_taken(of, |access| sim.alloc_mr(pd, BYTES, access));
    sim.write_mr(mr, 0, &bytes).unwrap();
    (mr, sim.query_mr(mr).unwrap())
}
