//! Programs of work requests, and two connected queue pairs to run them on.

use core::time::Duration;

use crate::common::{End, checked, pair, settle};
use verbs_api::lab::{Fault, PacketFilter, TappedPacket, When};
use verbs_api::{
    Qp, QpAttr, QpAttrMask, QpModify, QpState, QpType, RcParams, SendOp, SendWr, Verbs, Wc,
    WcFlags, WcOpcode, WcStatus, transition,
};
use verbs_sim::SimConfig;

/// An operation of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) kind: Kind,
    pub(crate) length: u32,
    pub(crate) signaled: bool,
    pub(crate) fenced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Send,
    SendImm,
    Write,
    WriteImm,
    Read,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [
        Self::Send,
        Self::Write,
        Self::Read,
        Self::WriteImm,
        Self::SendImm,
    ];

    /// How it completes at the sender, and at the receiver if it consumes a receive.
    pub(crate) fn opcodes(self) -> (WcOpcode, Option<WcOpcode>) {
        match self {
            Self::Send | Self::SendImm => (WcOpcode::Send, Some(WcOpcode::Recv)),
            Self::Write => (WcOpcode::RdmaWrite, None),
            Self::WriteImm => (WcOpcode::RdmaWrite, Some(WcOpcode::RecvRdmaWithImm)),
            Self::Read => (WcOpcode::RdmaRead, None),
        }
    }
}

impl Work {
    pub(crate) fn new(kind: Kind, length: u32) -> Self {
        Self {
            kind,
            length,
            signaled: true,
            fenced: false,
        }
    }

    pub(crate) fn unsignaled(self) -> Self {
        Self {
            signaled: false,
            ..self
        }
    }

    pub(crate) fn has_imm(self) -> bool {
        matches!(self.kind, Kind::SendImm | Kind::WriteImm)
    }
}

/// How the memory of both ends is laid out. There are three areas with a slot for each operation:
/// what leaves (by sends and writes, and as the answer to reads), what comes without a receive (by
/// writes; at the near end by reads), and the receives.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    /// Bytes.
    pub(crate) slot: usize,
    pub(crate) slots: usize,
}

impl Layout {
    /// With a byte more than needed in each slot, so that one too many would be seen.
    pub(crate) fn of(program: &[Work]) -> Self {
        let longest = program.iter().map(|work| work.length).max();
        Self {
            slot: longest.unwrap_or(0) as usize + 1,
            slots: program.len(),
        }
    }

    pub(crate) fn leaving(self, slot: usize) -> usize {
        slot * self.slot
    }

    pub(crate) fn coming(self, slot: usize) -> usize {
        (self.slots + slot) * self.slot
    }

    pub(crate) fn receive(self, slot: usize) -> usize {
        (2 * self.slots + slot) * self.slot
    }

    pub(crate) fn bytes(self) -> usize {
        3 * self.slots * self.slot
    }
}

/// Immediate data of the operation with this number.
pub(crate) fn imm(number: usize) -> [u8; 4] {
    (0xabcd_0000 | number as u32).to_be_bytes()
}

/// The bytes that leave an end in the operation with this number.
pub(crate) fn leaving(end: u8, number: usize, length: u32) -> Vec<u8> {
    let byte = |i: u32| (i ^ i >> 8) as u8 ^ (number as u8) << 1 ^ end << 7;
    (0..length).map(byte).collect()
}

/// Two connected queue pairs.
pub(crate) struct Link<'v> {
    pub(crate) near: End<'v>,
    pub(crate) far: End<'v>,
    pub(crate) qp: Qp,
    pub(crate) peer: Qp,
    pub(crate) layout: Layout,
}

impl<'v> Link<'v> {
    /// With room for 16 operations of 4095 bytes.
    pub(crate) fn new(verbs: &'v dyn Verbs, qp_type: QpType, params: &RcParams) -> Self {
        let layout = Layout {
            slot: 4096,
            slots: 16,
        };
        Self::with(layout, verbs, qp_type, params)
    }

    pub(crate) fn with(
        layout: Layout,
        verbs: &'v dyn Verbs,
        qp_type: QpType,
        params: &RcParams,
    ) -> Self {
        let near = End::open(verbs, "sim0", 64, layout.bytes());
        let far = End::open(verbs, "sim1", 64, layout.bytes());
        let (qp, peer) = pair((&near, &far), qp_type, 16, params);
        Self {
            near,
            far,
            qp,
            peer,
            layout,
        }
    }

    pub(crate) fn fill(&self, program: &[Work]) {
        for (number, work) in program.iter().enumerate() {
            let at = self.layout.leaving(number);
            self.near.write(at, &leaving(0, number, work.length));
            self.far.write(at, &leaving(1, number, work.length));
        }
    }

    /// A receive for each operation that consumes one.
    pub(crate) fn post_receives(&self, program: &[Work]) {
        let consumers = program
            .iter()
            .filter(|work| work.kind.opcodes().1.is_some());
        for number in 0..consumers.count() {
            let (at, length) = (self.layout.receive(number), self.layout.slot);
            self.far
                .recv(self.peer, number as u64, at as u64, length as u32);
        }
    }

    pub(crate) fn post(&self, program: &[Work]) {
        for (number, work) in program.iter().enumerate() {
            let (leaving, coming) = (self.layout.leaving(number), self.layout.coming(number));
            let (local, remote) = match work.kind {
                Kind::Read => (coming, leaving),
                _ => (leaving, coming),
            };
            let remote = self.far.mem.remote(remote as u64);
            let imm_data = imm(number);
            let op = match work.kind {
                Kind::Send => SendOp::Send,
                Kind::SendImm => SendOp::SendWithImm { imm_data },
                Kind::Write => SendOp::RdmaWrite { remote },
                Kind::WriteImm => SendOp::RdmaWriteWithImm { remote, imm_data },
                Kind::Read => SendOp::RdmaRead { remote },
            };
            let list = [self.near.mem.sge(local as u64, work.length)];
            let mut wr = SendWr::new(number as u64, op, &list);
            if !work.signaled {
                wr = wr.unsignaled();
            }
            if work.fenced {
                wr = wr.fence();
            }
            self.near.post(self.qp, wr);
        }
    }

    pub(crate) fn run(&self, program: &[Work]) {
        self.fill(program);
        self.post_receives(program);
        self.post(program);
        settle(self.near.verbs);
    }

    /// Runs the program, with receives that are posted `late` after the sends.
    pub(crate) fn run_late(&self, program: &[Work], late: Duration) {
        self.fill(program);
        self.post(program);
        self.near.verbs.lab().unwrap().advance(late).unwrap();
        self.post_receives(program);
        settle(self.near.verbs);
    }

    /// The results; ends the connection, so that all memory can be read.
    pub(crate) fn results(&self) -> Results {
        let verbs = self.near.verbs;
        let (sent, received) = (self.near.drain(), self.far.drain());
        for (end, qp) in [(&self.near, self.qp), (&self.far, self.peer)] {
            end.fail(qp);
            end.drain();
            // Frees what completed without a completion.
            let reset = QpModify::to(QpState::Reset);
            verbs.modify_qp(qp, &reset.attr, reset.mask).unwrap();
        }
        let slots = |end: &End<'_>, at: fn(Layout, usize) -> usize| {
            let slots = 0..self.layout.slots;
            let slots = slots.map(|slot| end.read(at(self.layout, slot), self.layout.slot));
            slots.collect::<Vec<_>>()
        };
        Results {
            layout: self.layout,
            qp_nums: [self.qp, self.peer].map(|qp| verbs.qp_num(qp).unwrap()),
            sent,
            received,
            read: slots(&self.near, Layout::coming),
            written: slots(&self.far, Layout::coming),
            arrived: slots(&self.far, Layout::receive),
        }
    }

    /// Brings a queue pair back to RTS with other attributes.
    pub(crate) fn change(&self, qp: Qp, change: impl Fn(&mut QpAttr)) {
        let verbs = self.near.verbs;
        let mut attr = verbs.query_qp(qp, QpAttrMask::all()).unwrap().attr;
        change(&mut attr);
        let states = [QpState::Reset, QpState::Init, QpState::Rtr, QpState::Rts];
        let reset = QpModify::to(QpState::Reset);
        verbs.modify_qp(qp, &reset.attr, reset.mask).unwrap();
        for step in states.windows(2) {
            attr.qp_state = step[1];
            let row = transition::attributes(QpType::Rc, step[0], step[1]).unwrap();
            let mask = QpAttrMask::STATE | row.required;
            verbs.modify_qp(qp, &attr, mask).unwrap();
        }
    }

    /// The packets of the near end.
    pub(crate) fn requests<'t>(
        &self,
        tapped: &'t [TappedPacket],
    ) -> impl Iterator<Item = &'t TappedPacket> {
        let near = self.near.verbs.query_gid(self.near.context, 1, 0).unwrap();
        tapped
            .iter()
            .filter(move |tapped| tapped.packet.sgid == near)
    }
}

/// What a program can see.
pub(crate) struct Results {
    pub(crate) layout: Layout,
    pub(crate) qp_nums: [u32; 2],
    pub(crate) sent: Vec<Wc>,
    pub(crate) received: Vec<Wc>,
    /// By operation: what reads have brought, and what writes have.
    pub(crate) read: Vec<Vec<u8>>,
    pub(crate) written: Vec<Vec<u8>>,
    /// By receive.
    pub(crate) arrived: Vec<Vec<u8>>,
}

impl Results {
    /// What a program must see that gave these results.
    pub(crate) fn expected(&self, program: &[Work]) -> Self {
        let (layout, qp_nums) = (self.layout, self.qp_nums);
        let empty = vec![Vec::new(); layout.slots];
        let mut results = Self {
            layout,
            qp_nums,
            sent: Vec::new(),
            received: Vec::new(),
            read: empty.clone(),
            written: empty.clone(),
            arrived: empty,
        };
        for (number, work) in program.iter().enumerate() {
            let (opcode, at_receiver) = work.kind.opcodes();
            let mut wc = Wc::default();
            wc.wr_id = number as u64;
            wc.opcode = opcode;
            wc.byte_len = work.length;
            wc.qp_num = qp_nums[0];
            if work.signaled {
                results.sent.push(wc);
            }
            let data = leaving((work.kind == Kind::Read).into(), number, work.length);
            if let Some(opcode) = at_receiver {
                let mut received = wc;
                received.wr_id = results.received.len() as u64;
                received.opcode = opcode;
                received.qp_num = qp_nums[1];
                if work.has_imm() {
                    received.imm_data = imm(number);
                    received.wc_flags = WcFlags::WITH_IMM;
                }
                results.received.push(received);
                if matches!(work.kind, Kind::Send | Kind::SendImm) {
                    results.arrived[results.received.len() - 1].clone_from(&data);
                }
            }
            match work.kind {
                Kind::Read => results.read[number] = data,
                Kind::Write | Kind::WriteImm => results.written[number] = data,
                _ => {}
            }
        }
        for slots in [
            &mut results.read,
            &mut results.written,
            &mut results.arrived,
        ] {
            slots
                .iter_mut()
                .for_each(|bytes| bytes.resize(layout.slot, 0));
        }
        results
    }

    pub(crate) fn assert_like(&self, program: &[Work], when: &str) {
        let expected = self.expected(program);
        for (what, seen, expected) in [
            ("sent", &self.sent, &expected.sent),
            ("received", &self.received, &expected.received),
        ] {
            let (words, expected_words) = (in_words(seen), in_words(expected));
            assert_eq!(words, expected_words, "{what}, {when}: {program:?}");
            assert_eq!(seen, expected, "{what}, {when}: {program:?}");
        }
        for (what, seen, expected) in [
            ("read", &self.read, &expected.read),
            ("write", &self.written, &expected.written),
            ("receive", &self.arrived, &expected.arrived),
        ] {
            let wrong = seen.iter().zip(expected).position(|(a, b)| a != b);
            assert_eq!(wrong, None, "the data of a {what}, {when}: {program:?}");
        }
    }
}

pub(crate) fn in_words(completions: &[Wc]) -> Vec<String> {
    completions.iter().map(Wc::to_string).collect()
}

/// The results of a run, and what the simulator recorded.
pub(crate) struct Ran {
    pub(crate) results: Results,
    pub(crate) packets: u64,
    pub(crate) lost: u64,
}

impl core::ops::Deref for Ran {
    type Target = Results;

    fn deref(&self) -> &Results {
        &self.results
    }
}

impl Ran {
    /// TMR-09: all work is as in [`assert_like`](Results::assert_like); or up to some work request,
    /// which ends with RETRY_EXC_ERR after more than `retry_cnt` losses, and flushes behind it.
    pub(crate) fn assert_like_or_fails_once(&self, program: &[Work], retry_cnt: u8, when: &str) {
        let failed = self
            .sent
            .iter()
            .position(|wc| wc.status != WcStatus::Success);
        let Some(failed) = failed else {
            return self.assert_like(program, when);
        };
        assert!(self.lost > retry_cnt.into(), "{} lost, {when}", self.lost);
        assert_eq!(self.sent[failed].status, WcStatus::RetryExcErr);
        let behind = &self.sent[failed + 1..];
        assert!(behind.iter().all(|wc| wc.status == WcStatus::WrFlushErr));
        let expected = self.expected(program);
        assert_eq!(&self.sent[..failed], &expected.sent[..failed]);
        let received = self.received.len();
        assert_eq!(&self.received[..], &expected.received[..received]);
        assert!(self.arrived[..received] == expected.arrived[..received]);
    }
}

/// Runs a program in a fresh simulation with these faults.
pub(crate) fn run(program: &[Work], params: &RcParams, faults: &[Fault], seed: u64) -> Ran {
    let config = SimConfig::new().seed(seed);
    run_on(config, program, params, faults, |link| link.run(program))
}

/// Runs the program in a simulation of another kind and in another way.
pub(crate) fn run_on(
    config: SimConfig,
    program: &[Work],
    params: &RcParams,
    faults: &[Fault],
    run: impl FnOnce(&Link<'_>),
) -> Ran {
    let sim = checked(config);
    let link = Link::with(Layout::of(program), &sim, QpType::Rc, params);
    sim.lab().unwrap().tap();
    let faults: Vec<_> = faults
        .iter()
        .map(|fault| sim.lab().unwrap().inject(fault.clone()).unwrap())
        .collect();
    run(&link);
    let lost = faults
        .into_iter()
        .map(|fault| sim.lab().unwrap().remove(fault).unwrap())
        .sum();
    let packets = sim.lab().unwrap().tapped().len() as u64;
    let results = link.results();
    Ran {
        results,
        packets,
        lost,
    }
}

pub(crate) fn statuses(completions: &[Wc]) -> Vec<WcStatus> {
    completions.iter().map(|wc| wc.status).collect()
}

pub(crate) fn wr_ids(completions: &[Wc]) -> Vec<u64> {
    completions.iter().map(|wc| wc.wr_id).collect()
}

/// A fault that loses packets.
pub(crate) fn lose(when: When) -> Fault {
    Fault::drop(PacketFilter::EVERY).at(when)
}
