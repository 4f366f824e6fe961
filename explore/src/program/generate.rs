//! A program of a seed.
//!
//! A draft keeps what the program is believed to have at each point, so that most calls make sense
//! and programs get far; some are wrong on purpose.

use verbs_api::{Access, Mtu, QpCap, QpState, QpType, SendOps};

use super::call::{Call, Link, Number, QKEY, QpMake};
use super::dice::Dice;
use super::{Pace, Program};

impl Program {
    /// The program of a seed: about 15 to 70 calls. For one version of this package it is always
    /// the same.
    pub fn of_seed(seed: u64, pace: Pace) -> Self {
        let mut draft = Draft::new(seed, pace);
        draft.set_up();
        for _ in 0..draft.dice.between(6, 30) {
            draft.act();
            draft.act_rarely();
        }
        Self {
            pace,
            calls: draft.calls,
        }
    }
}

/// What the program is believed to have.
pub(super) struct Draft {
    pub(super) dice: Dice,
    /// Chooses what not every device has. It is apart, so that the rest of a program does not
    /// depend on it.
    pub(super) rare: Dice,
    pub(super) pace: Pace,
    pub(super) calls: Vec<Call>,
    pub(super) contexts: Vec<ContextDraft>,
    pub(super) mrs: Vec<MrDraft>,
    pub(super) dms: Vec<DmDraft>,
    /// The regions that may be of memory which inline data cannot be in: dma-bufs, device memory,
    /// and what may be unmapped.
    pub(super) foreign: Vec<Number>,
    pub(super) cqs: Vec<CqDraft>,
    pub(super) srqs: Vec<SrqDraft>,
    pub(super) qps: Vec<QpDraft>,
    pub(super) ahs: Vec<AhDraft>,
    /// How many reads may be outstanding on each connection, where that is the same for all.
    depth: Option<u8>,
    /// The next number of each kind.
    pub(super) next: [Number; KINDS],
}

#[derive(Clone, Copy)]
pub(super) struct ContextDraft {
    pub(super) context: Number,
    pub(super) pd: Number,
    pub(super) channel: Option<Number>,
}

#[derive(Clone, Copy)]
pub(super) struct MrDraft {
    pub(super) number: Number,
    pub(super) context: Number,
    pub(super) length: u32,
    pub(super) access: Access,
}

#[derive(Clone, Copy)]
pub(super) struct DmDraft {
    pub(super) number: Number,
    pub(super) context: Number,
    /// Its regions: where they start, and how long they are.
    pub(super) offset: u32,
    pub(super) length: u32,
    /// The first of them.
    pub(super) region: Number,
}

#[derive(Clone, Copy)]
pub(super) struct CqDraft {
    pub(super) number: Number,
    pub(super) context: Number,
    /// A queue of receives, or of sends.
    pub(super) is_recv: bool,
}

#[derive(Clone, Copy)]
pub(super) struct SrqDraft {
    pub(super) number: Number,
    pub(super) context: Number,
    pub(super) recvs: u32,
    pub(super) max_sge: u32,
}

#[derive(Clone, Copy)]
pub(super) struct QpDraft {
    pub(super) number: Number,
    pub(super) context: Number,
    pub(super) make: QpMake,
    /// The QP that it sends to, as its position in the list of QPs.
    pub(super) peer: usize,
    /// Receives that nothing has taken yet.
    pub(super) recvs: u32,
    /// It was put into the error state, or is believed to have come there.
    pub(super) is_broken: bool,
    /// It was destroyed.
    pub(super) is_gone: bool,
}

#[derive(Clone, Copy)]
pub(super) struct AhDraft {
    pub(super) number: Number,
    pub(super) context: Number,
    pub(super) to: Number,
}

/// Kinds of objects that have numbers.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Context,
    Pd,
    Td,
    Mr,
    Dm,
    Channel,
    Cq,
    Srq,
    Qp,
    Ah,
}

const KINDS: usize = Kind::Ah as usize + 1;

/// The rights of peers, apart from flushes.
const ALL: Access = Access::ALL_RDMA.union(Access::REMOTE_ATOMIC);

/// The operations of queue pairs with batches.
const OPS_OF_BATCHES: SendOps = SendOps::SEND
    .union(SendOps::RDMA_WRITE)
    .union(SendOps::RDMA_READ)
    .union(SendOps::FLUSH)
    .union(SendOps::ATOMIC_WRITE);

/// Most programs have fewer.
const CALLS: usize = 80;

impl Draft {
    fn new(seed: u64, pace: Pace) -> Self {
        Self {
            dice: Dice::new(seed),
            rare: Dice::new(!seed),
            pace,
            calls: Vec::with_capacity(CALLS),
            contexts: Vec::new(),
            mrs: Vec::new(),
            dms: Vec::new(),
            foreign: Vec::new(),
            cqs: Vec::new(),
            srqs: Vec::new(),
            qps: Vec::new(),
            ahs: Vec::new(),
            depth: None,
            next: [0; KINDS],
        }
    }

    pub(super) fn say(&mut self, call: Call) {
        self.calls.push(call);
    }

    /// A number for a new object: rarely one that another has.
    pub(super) fn new_number(&mut self, kind: Kind) -> Number {
        let next = self.next[kind as usize];
        if next > 0 && self.dice.rarely() {
            return self.dice.below(u32::from(next)) as Number;
        }
        self.next[kind as usize] += 1;
        next
    }

    /// The number that is meant; now and then that of any object, or of none.
    pub(super) fn number(&mut self, kind: Kind, meant: Number) -> Number {
        if !self.dice.rarely() {
            return meant;
        }
        self.dice.below(u32::from(self.next[kind as usize]) + 1) as Number
    }

    fn set_up(&mut self) {
        let contexts = self.dice.weighted(&[(6, 2), (2, 3), (1, 4)]);
        for node in 0..contexts {
            self.open(node);
        }
        let pairs = self.dice.weighted(&[(5, 1), (3, 2), (1, 3)]);
        for _ in 0..pairs {
            self.new_pair();
        }
    }

    /// A context, with what queue pairs on it need.
    fn open(&mut self, node: u8) {
        let context = self.new_number(Kind::Context);
        let pd = self.new_number(Kind::Pd);
        self.say(Call::OpenDevice { context, node });
        self.say(Call::AllocPd { pd, context });
        let channel = self
            .dice
            .percent(80)
            .then(|| self.new_number(Kind::Channel));
        if let Some(channel) = channel {
            self.say(Call::CreateChannel { channel, context });
        }
        self.contexts.push(ContextDraft {
            context,
            pd,
            channel,
        });
        let at = self.contexts.len() - 1;
        self.new_mr(at, true);
        if self.dice.percent(50) {
            self.new_mr(at, false);
        }
        self.new_cq(at, false);
        self.new_cq(at, true);
        if self.dice.percent(20) {
            self.new_srq(at);
        }
    }

    /// A region: one that is good for everything, or any.
    pub(super) fn new_mr(&mut self, at: usize, is_good: bool) {
        let access = match self.dice.below(20) {
            _ if is_good => ALL,
            0 => Access::empty(),
            1 => Access::LOCAL_WRITE,
            2 => Access::REMOTE_READ,
            3 => Access::LOCAL_WRITE | Access::REMOTE_READ,
            4 => Access::LOCAL_WRITE | Access::REMOTE_WRITE,
            5 => Access::ALL_RDMA,
            6 => Access::LOCAL_WRITE | Access::REMOTE_ATOMIC,
            7 => Access::from_bits_retain(self.dice.below(16)),
            8..=10 => ALL | Access::RELAXED_ORDERING,
            11 => ALL | Access::ON_DEMAND,
            _ => ALL,
        };
        let length = match self.dice.below(40) {
            _ if is_good => self.dice.one(&[3072, 6144]),
            0 => 0,
            1 => 24,
            _ => self.dice.one(&[192, 768, 3072, 6144]),
        };
        let is_dmabuf = !is_good && self.rare.below(8) == 0;
        self.new_mr_of(at, access, length, is_dmabuf);
    }

    fn new_mr_of(&mut self, at: usize, access: Access, length: u32, is_dmabuf: bool) {
        let ContextDraft { context, pd, .. } = self.contexts[at];
        let mr = self.new_number(Kind::Mr);
        let pd = self.number(Kind::Pd, pd);
        if is_dmabuf || access.contains(Access::ON_DEMAND) {
            self.foreign.push(mr);
        }
        let call = if is_dmabuf {
            Call::RegDmabufMr {
                mr,
                pd,
                length,
                access,
            }
        } else {
            Call::AllocMr {
                mr,
                pd,
                length,
                access,
            }
        };
        self.say(call);
        let writes = Access::REMOTE_WRITE | Access::REMOTE_ATOMIC;
        let is_good = access.contains(Access::LOCAL_WRITE) || !access.intersects(writes);
        if is_good && length > 0 || self.mrs.is_empty() {
            self.mrs.push(MrDraft {
                number: mr,
                context,
                length,
                access,
            });
        }
    }

    pub(super) fn new_cq(&mut self, at: usize, is_recv: bool) {
        let ContextDraft {
            context, channel, ..
        } = self.contexts[at];
        let cqe = match self.dice.below(60) {
            0 => 0,
            1 => -1,
            2 | 3 => 1,
            4..10 => self.dice.between(2, 4) as i32,
            _ => self.dice.between(8, 40) as i32,
        };
        let cq = self.new_number(Kind::Cq);
        let channel = channel.filter(|_| self.dice.percent(90));
        let channel = channel.map(|channel| self.number(Kind::Channel, channel));
        let on = self.number(Kind::Context, context);
        self.say(Call::CreateCq {
            cq,
            context: on,
            cqe,
            channel,
        });
        if cqe > 0 {
            self.cqs.push(CqDraft {
                number: cq,
                context,
                is_recv,
            });
        }
    }

    pub(super) fn new_srq(&mut self, at: usize) {
        let ContextDraft { context, pd, .. } = self.contexts[at];
        let srq = self.new_number(Kind::Srq);
        let pd = self.number(Kind::Pd, pd);
        let max_wr = self.dice.one(&[3, 7, 15]);
        let max_sge = self.dice.between(1, 2);
        self.say(Call::CreateSrq {
            srq,
            pd,
            max_wr,
            max_sge,
        });
        self.srqs.push(SrqDraft {
            number: srq,
            context,
            recvs: 0,
            max_sge,
        });
    }

    /// Two queue pairs that can talk.
    pub(super) fn new_pair(&mut self) {
        let contexts = self.contexts.len() as u32;
        let at = self.dice.below(contexts) as usize;
        let other = (at + self.dice.one(&[0, 1, 1, 1]) as usize) % contexts as usize;
        let qp_type = self
            .dice
            .weighted(&[(12, QpType::Rc), (4, QpType::Uc), (6, QpType::Ud)]);
        let first = self.qps.len();
        // Not every device has all these operations, or batches.
        let has_batches = qp_type == QpType::Rc && self.dice.percent(8);
        let send_ops = if has_batches {
            for at in [at, other] {
                self.new_mr_of(at, ALL | Access::FLUSH_GLOBAL, 3072, false);
            }
            OPS_OF_BATCHES
        } else {
            SendOps::empty()
        };
        self.new_qp(at, qp_type, send_ops, first + 1);
        self.new_qp(other, qp_type, send_ops, first);
        if self.dice.percent(97) {
            self.connect(first);
        }
    }

    fn new_qp(&mut self, at: usize, qp_type: QpType, send_ops: SendOps, peer: usize) {
        let ContextDraft { context, pd, .. } = self.contexts[at];
        let send_cq = self.cq_of(context, false);
        let recv_cq = self.cq_of(context, true);
        let srqs = self.srqs.iter().filter(|srq| srq.context == context);
        let takes_srq = qp_type != QpType::Uc || self.dice.percent(10);
        let has_srq = srqs.clone().next().is_some() && takes_srq && self.dice.percent(60);
        let srq = has_srq.then(|| self.dice.one_of(srqs).number);
        let qp = self.new_number(Kind::Qp);
        let make = QpMake {
            pd: self.number(Kind::Pd, pd),
            qp_type,
            send_cq: self.number(Kind::Cq, send_cq),
            recv_cq: self.number(Kind::Cq, recv_cq),
            srq: srq.map(|srq| self.number(Kind::Srq, srq)),
            cap: self.cap(),
            sq_sig_all: self.dice.percent(15),
            send_ops,
        };
        self.say(Call::CreateQp { qp, make });
        self.qps.push(QpDraft {
            number: qp,
            context,
            make,
            peer,
            recvs: 0,
            is_broken: false,
            is_gone: false,
        });
    }

    /// Sizes that devices are known to give exactly as asked, so that what is too much is the same
    /// everywhere.
    fn cap(&mut self) -> QpCap {
        QpCap {
            max_send_wr: self.dice.one(&[3, 7, 15]),
            max_recv_wr: self.dice.one(&[3, 7, 15]),
            max_send_sge: 4,
            max_recv_sge: self.dice.between(1, 2),
            max_inline_data: 64,
        }
    }

    /// A CQ of a context. If work does not race, those of sends and of receives are apart: one
    /// message ends on both sides at the same time.
    fn cq_of(&mut self, context: Number, is_recv: bool) -> Number {
        let is_free = self.pace == Pace::Free;
        let fits = |cq: &&CqDraft| cq.context == context && (is_free || cq.is_recv == is_recv);
        let cqs = self.cqs.iter().filter(fits);
        if cqs.clone().next().is_some() {
            return self.dice.one_of(cqs).number;
        }
        let cq = self.new_number(Kind::Cq);
        self.say(Call::CreateCq {
            cq,
            context,
            cqe: 16,
            channel: None,
        });
        cq
    }

    /// Brings a pair to RTS.
    pub(super) fn connect(&mut self, first: usize) {
        let QpDraft {
            number,
            make,
            peer,
            context,
            ..
        } = self.qps[first];
        let other = self.qps[peer];
        let number = self.number(Kind::Qp, number);
        if make.qp_type == QpType::Ud {
            self.say(Call::StartUd { qp: number });
            self.say(Call::StartUd { qp: other.number });
            self.new_ah(context, other.context);
            self.new_ah(other.context, context);
        } else {
            let link = self.link(make.send_ops);
            if self.dice.percent(6) {
                let states = [QpState::Init, QpState::Rtr, QpState::Rts];
                for (qp, peer) in [(number, other.number), (other.number, number)] {
                    let to = self.dice.one(&states);
                    self.say(Call::Toward { qp, peer, to, link });
                }
            } else {
                let (a, b) = (number, other.number);
                self.say(Call::Connect { a, b, link });
            }
        }
        for qp in [first, peer] {
            self.qps[qp].is_broken = false;
            self.qps[qp].recvs = 0;
        }
    }

    fn link(&mut self, send_ops: SendOps) -> Link {
        let all = if send_ops.contains(SendOps::FLUSH) {
            ALL | Access::FLUSH_GLOBAL
        } else {
            ALL
        };
        let access = self.dice.weighted(&[
            (30, all),
            (1, Access::LOCAL_WRITE),
            (1, Access::LOCAL_WRITE | Access::REMOTE_READ),
            (1, Access::LOCAL_WRITE | Access::REMOTE_WRITE),
        ]);
        let retries = match self.pace {
            Pace::Free => self.dice.below(4) as u8,
            Pace::Settled => 0,
        };
        Link {
            path_mtu: self.dice.one(&[Mtu::Mtu256, Mtu::Mtu512, Mtu::Mtu1024]),
            access,
            retries,
            // Soft-RoCE of Linux 6.1.176 frees as many reads as a responder can now have, of memory
            // that has room for those of before (rxe_qp_from_attr): never 0, and never more than
            // before.
            depth: match self.pace {
                Pace::Free => self.dice.weighted(&[(1, 0), (10, 1), (10, 4)]),
                Pace::Settled => {
                    let depth = self.dice.one(&[1, 4]);
                    *self.depth.get_or_insert(depth)
                }
            },
        }
    }

    pub(super) fn new_ah(&mut self, context: Number, to: Number) {
        let pd = self.contexts.iter().find(|of| of.context == context);
        let pd = pd.map_or(0, |of| of.pd);
        let ah = self.new_number(Kind::Ah);
        let pd = self.number(Kind::Pd, pd);
        self.say(Call::CreateAh { ah, pd, to });
        self.ahs.push(AhDraft {
            number: ah,
            context,
            to,
        });
    }

    /// The Q_Key for a datagram.
    pub(super) fn qkey(&mut self) -> u32 {
        if self.dice.percent(2) { 1 } else { QKEY }
    }
}
