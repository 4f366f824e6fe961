//! What a random program does with its objects.

use verbs_api::{
    Access, Advice, AdviseFlags, PlacementType, QpState, QpType, SelectivityLevel, SendFlags,
    SendOps,
};

use super::Pace;
use super::call::{Call, Key, Number, Op, Remote, Send, Sge, Target};
use super::generate::{Draft, Kind, MrDraft, QpDraft};

/// What is done next.
#[derive(Clone, Copy)]
enum Act {
    Talk,
    Receive,
    Poll,
    Arm,
    Event,
    Ack,
    Resize,
    Look,
    Modify,
    Revive,
    Touch,
    Make,
    Destroy,
    Async,
    Limit,
    Settle,
}

const ACTS: &[(u32, Act)] = &[
    (40, Act::Talk),
    (6, Act::Receive),
    (18, Act::Poll),
    (8, Act::Arm),
    (6, Act::Event),
    (3, Act::Ack),
    (3, Act::Resize),
    (3, Act::Look),
    (4, Act::Modify),
    (3, Act::Revive),
    (5, Act::Touch),
    (3, Act::Make),
    (4, Act::Destroy),
    (4, Act::Async),
    (2, Act::Limit),
    (6, Act::Settle),
];

impl Draft {
    pub(super) fn act(&mut self) {
        match self.dice.weighted(ACTS) {
            Act::Talk => self.talk(),
            Act::Receive => {
                let qp = self.any_qp();
                self.receive(qp, 64);
            }
            Act::Poll => {
                let cq = self.any_cq();
                let max = match self.pace {
                    Pace::Free => self.dice.one(&[0, 1, 2, 4, 64]),
                    // What is left behind would be another of several that came at once.
                    Pace::Settled => 64,
                };
                self.say(Call::Poll { cq, max });
            }
            Act::Arm => {
                let cq = self.any_cq();
                let solicited = self.dice.percent(40);
                self.say(Call::Arm { cq, solicited });
                if self.dice.percent(70) {
                    self.talk();
                    let channel = self.any_channel();
                    self.say(Call::GetEvent { channel });
                }
            }
            Act::Event => {
                let channel = self.any_channel();
                self.say(Call::GetEvent { channel });
            }
            Act::Ack => {
                let cq = self.any_cq();
                let events = self.dice.one(&[0, 1, 1, 1, 2]);
                self.say(Call::Ack { cq, events });
            }
            Act::Resize => {
                let cq = self.any_cq();
                let cqe = self.dice.one(&[-1, 0, 1, 2, 4, 8, 12, 30, 60]);
                self.say(Call::ResizeCq { cq, cqe });
            }
            Act::Look => {
                let call = if self.dice.percent(70) {
                    let qp = self.any_qp();
                    let qp = self.number(Kind::Qp, self.qps[qp].number);
                    match self.dice.weighted(&[(6, 0), (2, 1), (2, 2)]) {
                        0 => Call::QueryQp { qp },
                        1 => Call::QueryEce { qp },
                        _ => Call::SetEce {
                            qp,
                            options: self.dice.one(&[0, 1, u32::MAX]),
                        },
                    }
                } else {
                    let cq = self.any_cq();
                    Call::QueryCq { cq }
                };
                self.say(call);
            }
            Act::Modify => self.modify(),
            Act::Revive => self.revive(),
            Act::Touch => self.touch(),
            Act::Make => self.make(),
            Act::Destroy => self.destroy(),
            Act::Async => {
                let at = self.dice.below(self.contexts.len() as u32) as usize;
                let context = self.number(Kind::Context, self.contexts[at].context);
                self.say(Call::GetAsyncEvent { context });
                if self.dice.percent(30) {
                    self.say(Call::AckAsyncEvent { context });
                }
            }
            Act::Limit => self.limit(),
            Act::Settle => self.say(Call::Settle),
        }
    }

    fn any_qp(&mut self) -> usize {
        // What is broken stays so until it is revived: mostly of no use.
        for chance in [90, 80, 70] {
            let at = self.dice.below(self.qps.len() as u32) as usize;
            let QpDraft {
                is_broken,
                is_gone,
                peer,
                ..
            } = self.qps[at];
            let is_alone = self.qps[peer].is_broken || self.qps[peer].is_gone;
            if !(is_broken || is_gone || is_alone) || !self.dice.percent(chance) {
                return at;
            }
        }
        self.dice.below(self.qps.len() as u32) as usize
    }

    fn any_cq(&mut self) -> Number {
        if self.cqs.is_empty() {
            return 0;
        }
        let at = self.dice.below(self.cqs.len() as u32) as usize;
        self.number(Kind::Cq, self.cqs[at].number)
    }

    fn any_channel(&mut self) -> Number {
        let at = self.dice.below(self.contexts.len() as u32) as usize;
        let channel = self.contexts[at].channel.or(self.contexts[0].channel);
        self.number(Kind::Channel, channel.unwrap_or(0))
    }

    // Work

    /// Posts sends of one queue pair, and mostly the receives that they need.
    fn talk(&mut self) {
        let from = self.any_qp();
        let QpDraft {
            number,
            make,
            peer,
            is_broken,
            is_gone,
            ..
        } = self.qps[from];
        if self.dice.percent(80) {
            if is_gone || self.qps[peer].is_gone {
                return self.make();
            }
            if is_broken || self.qps[peer].is_broken {
                return self.revive();
            }
        }
        let mut list = Vec::new();
        let mut need = 0;
        let mut longest = 0;
        for _ in 0..self.dice.weighted(&[(12, 1), (6, 2), (2, 3), (1, 8)]) {
            let send = self.send(from);
            let takes_receive = match send.op {
                Op::Send | Op::SendWithImm(_) | Op::WriteWithImm(..) => 1,
                _ => 0,
            };
            need += takes_receive;
            longest = longest.max(send.list.iter().map(|sge| sge.length).sum());
            list.push(send);
        }
        let there = self.receives_at(peer);
        if there < need && self.dice.percent(95) {
            let header = if make.qp_type == QpType::Ud { 40 } else { 0 };
            for _ in there..need {
                if self.receives_at(peer) < need {
                    self.receive(peer, longest + header);
                }
            }
        }
        self.take_receives(peer, need);
        let qp = self.number(Kind::Qp, number);
        if self.pace == Pace::Settled {
            settle(qp, &mut list);
        }
        let in_batch = !make.send_ops.is_empty() && self.dice.percent(70);
        self.say(if in_batch {
            Call::PostBatch { qp, list }
        } else {
            Call::PostSend { qp, list }
        });
        for (chance, cq) in [(60, make.send_cq), (40, self.qps[peer].make.recv_cq)] {
            if self.dice.percent(chance) {
                self.say(Call::Poll { cq, max: 64 });
            }
        }
    }

    fn receives_at(&self, qp: usize) -> u32 {
        let qp = &self.qps[qp];
        let srq = self.srqs.iter().find(|srq| Some(srq.number) == qp.make.srq);
        srq.map_or(qp.recvs, |srq| srq.recvs)
    }

    fn take_receives(&mut self, qp: usize, count: u32) {
        let srq = self.qps[qp].make.srq;
        let queue = self.srqs.iter_mut().find(|of| Some(of.number) == srq);
        let recvs = queue.map_or(&mut self.qps[qp].recvs, |srq| &mut srq.recvs);
        *recvs = recvs.saturating_sub(count);
    }

    fn send(&mut self, from: usize) -> Send {
        let QpDraft { context, peer, .. } = self.qps[from];
        let to_context = self.qps[peer].context;
        let make = self.qps[from].make;
        let qp_type = make.qp_type;
        let imm = self.dice.any();
        let value = u64::from(self.dice.below(3));
        let length = self.length();
        let target = self.place(to_context, length, Zone::Target);
        let source = self.place(to_context, length, Zone::Source);
        // What the transport does not have is asked for now and then.
        let as_type = if self.dice.percent(2) {
            QpType::Rc
        } else {
            qp_type
        };
        let op = match as_type {
            _ if make.send_ops.contains(SendOps::FLUSH) => self.op_of_batch(from, length),
            QpType::Ud => self.dice.one(&[Op::Send, Op::Send, Op::SendWithImm(imm)]),
            QpType::Uc => match self.dice.one(&[
                Op::Send,
                Op::SendWithImm(imm),
                Op::Write(target),
                Op::WriteWithImm(target, imm),
            ]) {
                // Where there is no receive for one of several packets, soft-RoCE of Linux 6.1
                // takes nothing more: it waits for the last packet (check_op_seq,
                // do_class_d1e_error).
                Op::WriteWithImm(..) if self.pace == Pace::Settled && length > ONE_PACKET => {
                    Op::Write(target)
                }
                op => op,
            },
            _ => self.dice.weighted(&[
                (5, Op::Send),
                (2, Op::SendWithImm(imm)),
                (4, Op::Write(target)),
                (2, Op::WriteWithImm(target, imm)),
                (4, Op::Read(source)),
                (1, Op::CompareAndSwap(aligned(target), value, value + 1)),
                (1, Op::FetchAndAdd(aligned(target), value + 1)),
            ]),
        };
        let list = match op {
            Op::CompareAndSwap(..) | Op::FetchAndAdd(..) => {
                let length = if self.dice.percent(3) { 4 } else { 8 };
                vec![self.sge(context, length, Zone::Landing)]
            }
            Op::Read(_) => self.sges(context, length, Zone::Landing, 4),
            Op::Flush(..) | Op::AtomicWrite(..) => Vec::new(),
            _ => self.sges(context, length, Zone::Source, 4),
        };
        let mut flags = SendFlags::empty();
        let inline = match self.pace {
            _ if !op.reads() && length <= 64 => 20,
            // Soft-RoCE takes an inline read, and the data for its list.
            Pace::Settled if op.reads() => 0,
            _ => 1,
        };
        for (chance, flag) in [
            (75, SendFlags::SIGNALED),
            (20, SendFlags::SOLICITED),
            (15, SendFlags::FENCE),
            (inline, SendFlags::INLINE),
        ] {
            if self.dice.percent(chance) {
                flags |= flag;
            }
        }
        // Inline data lies at addresses of the process, which it has mapped.
        if list.iter().any(|sge| self.foreign.contains(&sge.mr)) {
            flags.remove(SendFlags::INLINE);
        }
        let to = (qp_type == QpType::Ud).then(|| {
            let fits =
                |ah: &&super::generate::AhDraft| ah.context == context && ah.to == to_context;
            let ah = self.ahs.iter().find(fits).map_or(0, |ah| ah.number);
            Target {
                ah: self.number(Kind::Ah, ah),
                qp: self.number(Kind::Qp, self.qps[peer].number),
                qkey: self.qkey(),
            }
        });
        Send {
            op,
            flags,
            list,
            to,
        }
    }

    /// An operation of a queue pair with batches. Flushes and atomic writes mostly name a region
    /// that allows them.
    fn op_of_batch(&mut self, from: usize, length: u32) -> Op {
        let to_context = self.qps[self.qps[from].peer].context;
        let target = self.place(to_context, length, Zone::Target);
        let source = self.place(to_context, length, Zone::Source);
        let mut flushed = target;
        let allows =
            |mr: &&MrDraft| mr.context == to_context && mr.access.contains(Access::FLUSH_GLOBAL);
        if let Some(mr) = self.mrs.iter().find(allows).copied()
            && !self.dice.rarely()
        {
            let offset = mr.length / ZONES / 8 * 8;
            (flushed.mr, flushed.offset) = (mr.number, offset);
        }
        let level = self
            .dice
            .one(&[SelectivityLevel::Range, SelectivityLevel::Mr]);
        let placement = if self.dice.rarely() {
            PlacementType::PERSISTENT
        } else {
            PlacementType::GLOBAL
        };
        let value = self.dice.any().into();
        self.dice.weighted(&[
            (3, Op::Send),
            (4, Op::Write(flushed)),
            (2, Op::Write(target)),
            (2, Op::Read(source)),
            (4, Op::Flush(flushed, length, placement, level)),
            (3, Op::AtomicWrite(aligned(flushed), value)),
        ])
    }

    /// Posts a receive, or two, for messages of `length` bytes, on the queue that the queue pair
    /// receives from.
    fn receive(&mut self, qp: usize, length: u32) {
        let QpDraft {
            number,
            context,
            make,
            ..
        } = self.qps[qp];
        let length = match self.dice.below(30) {
            0 => length / 2,
            1..6 => length + 8,
            _ => length,
        };
        let count = self.dice.weighted(&[(8, 1), (2, 2)]);
        let is_full = self.receives_at(qp) + count > make.cap.max_recv_wr;
        if is_full && make.srq.is_none() && self.dice.percent(90) {
            return;
        }
        let srq = self.srqs.iter_mut().find(|of| Some(of.number) == make.srq);
        if let Some(srq) = srq {
            srq.recvs += count;
            let (srq, max_sge) = (srq.number, srq.max_sge);
            let list = self.receives(context, length, count, max_sge);
            let srq = self.number(Kind::Srq, srq);
            self.say(Call::PostSrqRecv { srq, list });
        } else {
            self.qps[qp].recvs += count;
            let list = self.receives(context, length, count, make.cap.max_recv_sge);
            let qp = self.number(Kind::Qp, number);
            self.say(Call::PostRecv { qp, list });
        }
    }

    fn receives(
        &mut self,
        context: Number,
        length: u32,
        count: u32,
        max_sge: u32,
    ) -> Vec<Vec<Sge>> {
        let one = |_| self.sges(context, length, Zone::Target, max_sge);
        (0..count).map(one).collect()
    }

    fn length(&mut self) -> u32 {
        self.dice
            .one(&[0, 1, 8, 8, 16, 40, 64, 100, 256, 300, 1000])
    }

    /// Parts of regions of a context that together have `length` bytes.
    fn sges(&mut self, context: Number, length: u32, zone: Zone, max_sge: u32) -> Vec<Sge> {
        let mut count = self.dice.weighted(&[(6, 1), (2, 2), (1, 3)]).min(max_sge);
        if self.dice.rarely() {
            count = max_sge + 1;
        }
        if length == 0 && self.dice.percent(50) {
            return Vec::new();
        }
        let one = length / count;
        let lengths = (1..=count).map(|n| {
            if n < count {
                one
            } else {
                length - one * (count - 1)
            }
        });
        lengths
            .map(|length| self.sge(context, length, zone))
            .collect()
    }

    fn sge(&mut self, context: Number, length: u32, zone: Zone) -> Sge {
        let place = self.place(context, length, zone);
        Sge {
            mr: place.mr,
            offset: place.offset,
            length,
            key: place.key,
        }
    }

    /// A place for `length` bytes in a region of a context.
    fn place(&mut self, context: Number, length: u32, zone: Zone) -> Remote {
        let of_context = |mr: &&MrDraft| mr.context == context;
        let fits =
            |mr: &&MrDraft| of_context(mr) && mr.length / ZONES >= length && zone.allowed(mr);
        let all = self.mrs.iter();
        let mr = if all.clone().any(|mr| fits(&mr)) && !self.dice.rarely() {
            *self.dice.one_of(all.filter(fits))
        } else if all.clone().any(|mr| of_context(&mr)) {
            *self.dice.one_of(all.filter(of_context))
        } else {
            self.dice.one(&self.mrs)
        };
        let zone_bytes = mr.length / ZONES / 8 * 8;
        let room = zone_bytes.saturating_sub(length) / 8 + 1;
        let mut offset = zone as u32 * zone_bytes + 8 * self.dice.below(room);
        if self.dice.rarely() {
            offset = mr.length.saturating_sub(length / 2);
        }
        let key = if self.dice.rarely() {
            Key::Wrong
        } else {
            Key::Right
        };
        Remote {
            mr: self.number(Kind::Mr, mr.number),
            offset,
            key,
        }
    }

    // Objects

    fn modify(&mut self) {
        let at = self.any_qp();
        let qp = self.number(Kind::Qp, self.qps[at].number);
        let to = self.dice.weighted(&[
            (3, QpState::Reset),
            (1, QpState::Init),
            (1, QpState::Rtr),
            (3, QpState::Rts),
            (3, QpState::Sqd),
            (1, QpState::Sqe),
            (3, QpState::Err),
        ]);
        if matches!(to, QpState::Reset | QpState::Err) {
            self.qps[at].is_broken = true;
        }
        self.say(Call::ModifyQp { qp, to });
    }

    /// Brings a pair back from wherever it is.
    fn revive(&mut self) {
        let is_broken = |qp: &QpDraft| qp.is_broken && !qp.is_gone;
        let broken = self.qps.iter().position(is_broken);
        let at = broken.unwrap_or(self.dice.below(self.qps.len() as u32) as usize);
        for qp in [at, self.qps[at].peer] {
            let qp = self.qps[qp].number;
            let to = QpState::Reset;
            self.say(Call::ModifyQp { qp, to });
        }
        self.connect(at);
    }

    fn touch(&mut self) {
        let at = self.dice.below(self.mrs.len() as u32) as usize;
        let MrDraft { number, length, .. } = self.mrs[at];
        let mr = self.number(Kind::Mr, number);
        // Both are refused of other regions.
        let is_on_demand = self.mrs[at].access.contains(Access::ON_DEMAND);
        if self.dice.percent(if is_on_demand { 50 } else { 2 }) {
            self.page(mr, length);
            return;
        }
        let third = length / ZONES;
        if self.dice.percent(50) {
            let offset = self.dice.below(third.max(1));
            let length = self.dice.between(0, 32);
            let value = self.dice.any() as u8;
            self.say(Call::WriteMr {
                mr,
                offset,
                length,
                value,
            });
        } else {
            let offset = self.dice.below(length + 1);
            let length = self.dice.between(0, 32);
            self.say(Call::ReadMr { mr, offset, length });
        }
    }

    /// Maps or unmaps memory, or advises about it.
    fn page(&mut self, mr: Number, length: u32) {
        if self.dice.percent(60) {
            let mapped = self.dice.percent(60);
            self.say(Call::MapMr { mr, mapped });
            return;
        }
        let at = self.dice.below(self.contexts.len() as u32) as usize;
        let pd = self.number(Kind::Pd, self.contexts[at].pd);
        let offset = self.dice.below(length + 1);
        let length = self.dice.between(0, 64);
        let advice = self.dice.one(Advice::ALL);
        let flags = AdviseFlags::from_bits_retain(self.dice.below(3));
        self.say(Call::AdviseMr {
            pd,
            mr,
            offset,
            length,
            advice,
            flags,
        });
    }

    fn make(&mut self) {
        let at = self.dice.below(self.contexts.len() as u32) as usize;
        let has_all_gone = self.qps.iter().all(|qp| qp.is_gone);
        match self.dice.below(5) {
            _ if has_all_gone => self.new_pair(),
            0 => self.new_mr(at, false),
            1 => {
                let is_recv = self.dice.percent(50);
                self.new_cq(at, is_recv);
            }
            2 => self.new_srq(at),
            3 if self.qps.len() < 8 => self.new_pair(),
            _ => {
                let context = self.contexts[at].context;
                self.new_ah(context, context);
            }
        }
    }

    /// Destroys something, in use or not.
    fn destroy(&mut self) {
        let at = self.dice.below(self.contexts.len() as u32) as usize;
        let call = match self.dice.below(20) {
            // With what it still has: on a real device more than the program may have to wait then.
            0 if self.pace == Pace::Free => Call::CloseDevice {
                context: self.number(Kind::Context, self.contexts[at].context),
            },
            1 | 2 => Call::DeallocPd {
                pd: self.number(Kind::Pd, self.contexts[at].pd),
            },
            3 => Call::DestroyChannel {
                channel: self.any_channel(),
            },
            4..8 => Call::DestroyCq { cq: self.any_cq() },
            8..12 => {
                let at = self.dice.below(self.mrs.len() as u32) as usize;
                let mr = self.number(Kind::Mr, self.mrs[at].number);
                if self.mrs.len() > 1 && self.dice.percent(80) {
                    self.mrs.remove(at);
                }
                Call::DeregMr { mr }
            }
            12 | 13 if !self.ahs.is_empty() => {
                let ah = self.dice.below(self.ahs.len() as u32) as usize;
                Call::DestroyAh {
                    ah: self.number(Kind::Ah, self.ahs[ah].number),
                }
            }
            14 | 15 if !self.srqs.is_empty() => {
                let srq = self.dice.below(self.srqs.len() as u32) as usize;
                Call::DestroySrq {
                    srq: self.number(Kind::Srq, self.srqs[srq].number),
                }
            }
            _ => {
                let qp = self.any_qp();
                self.qps[qp].is_gone = true;
                Call::DestroyQp {
                    qp: self.number(Kind::Qp, self.qps[qp].number),
                }
            }
        };
        self.say(call);
    }

    fn limit(&mut self) {
        if self.srqs.is_empty() {
            return self.say(Call::Settle);
        }
        let at = self.dice.below(self.srqs.len() as u32) as usize;
        let srq = self.number(Kind::Srq, self.srqs[at].number);
        let limit = self.dice.below(4);
        self.say(Call::LimitSrq { srq, limit });
    }
}

/// Bytes that any path takes in one packet.
const ONE_PACKET: u32 = 256;

/// Creates a list of this queue pair one of which every device does the same.
///
/// A read or atomic whose answer cannot be stored breaks its queue pair, and how much of what is
/// behind it has been done by then depends on the device. So the reads come last, and before them
/// one atomic. Nor does a queue pair send a datagram to itself: its receive may break it before the
/// send is done.
fn settle(qp: Number, list: &mut Vec<Send>) {
    let rank = |send: &Send| match send.op {
        Op::Read(_) => 2,
        op => u8::from(op.reads()),
    };
    list.sort_by_key(rank);
    let mut has_atomic = false;
    list.retain(|send| rank(send) != 1 || !std::mem::replace(&mut has_atomic, true));
    for target in list.iter_mut().filter_map(|send| send.to.as_mut()) {
        if target.qp == qp {
            target.qp = Number::MAX;
        }
    }
}

/// Parts of a region that are used for one thing each, so that work of one list does not read what
/// other work of it writes.
#[derive(Clone, Copy)]
enum Zone {
    /// Sends gather here, and peers read.
    Source = 0,
    /// Receives scatter here, and peers write.
    Target = 1,
    /// What reads and atomics bring comes here.
    Landing = 2,
}

const ZONES: u32 = 3;

impl Zone {
    fn allowed(self, mr: &MrDraft) -> bool {
        use verbs_api::Access;
        match self {
            Self::Source => mr.access.contains(Access::REMOTE_READ),
            Self::Target => mr.access.contains(Access::ALL_RDMA | Access::REMOTE_ATOMIC),
            Self::Landing => mr.access.contains(Access::LOCAL_WRITE),
        }
    }
}

fn aligned(remote: Remote) -> Remote {
    Remote {
        offset: remote.offset / 8 * 8,
        ..remote
    }
}
