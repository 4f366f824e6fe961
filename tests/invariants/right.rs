//! Random programs that do nothing wrong, on devices without a defect.

use core::time::Duration;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::select;
use verbs_api::lab::{Effect, Fault, PacketFilter};
use verbs_api::profile::Profile;
use verbs_api::{
    Access, Arm, Cq, CqFlags, CqInit, CqInitEx, CqModeration, ErrorKind, Qp, QpModify, QpState,
    QpType, RcParams, RecvWr, SendWr, Sge, Srq, SrqInit, Verbs, Wait, Wc, WcFields, Xrcd, XrcdInit,
    connect,
};
use verbs_explore::Checked;
use verbs_sim::{Sim, SimConfig};

use crate::common::{End, property_config};

/// A step of the program, for the connection with this index.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send {
        length: u32,
        imm: bool,
        signaled: bool,
    },
    Write {
        offset: u64,
        length: u32,
    },
    Read {
        offset: u64,
        length: u32,
    },
    Add {
        counter: u64,
        add: u64,
    },
    /// A send whose memory has a bad key.
    Fail,
    Poll(usize),
    /// Advances an iteration to completion number `usize`, and reads the first one.
    Iterate(usize),
    Moderate(CqModeration),
    Settle,
    Arm(Arm),
    TakeEvents,
    Look(usize),
    Fill(u8),
    /// Both ends are reset and connected again, whatever they hold.
    Reconnect,
    /// Both ends are destroyed and made again.
    Renew,
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let step = prop_oneof![
        6 => (0_u32..65, any::<bool>(), any::<bool>())
            .prop_map(|(length, imm, signaled)| Step::Send { length, imm, signaled }),
        2 => (0_u64..64, 1_u32..64).prop_map(|(offset, length)| Step::Write { offset, length }),
        2 => (0_u64..64, 1_u32..64).prop_map(|(offset, length)| Step::Read { offset, length }),
        2 => (0_u64..2, 0_u64..100).prop_map(|(counter, add)| Step::Add { counter, add }),
        1 => Just(Step::Fail),
        4 => (1_usize..5).prop_map(Step::Poll),
        4 => (1_usize..5).prop_map(Step::Iterate),
        1 => (0_u16..4, 0_u16..200).prop_map(|(cq_count, cq_period)| {
            Step::Moderate(CqModeration { cq_count, cq_period })
        }),
        2 => Just(Step::Settle),
        1 => select(&[Arm::NEXT, Arm::SOLICITED][..]).prop_map(Step::Arm),
        1 => Just(Step::TakeEvents),
        2 => (0_usize..2000).prop_map(Step::Look),
        1 => any::<u8>().prop_map(Step::Fill),
        1 => Just(Step::Reconnect),
        1 => Just(Step::Renew),
    ];
    (0_usize..2, step)
}

/// The CQ of an end: its fields, flags and number of entries.
fn cq() -> impl Strategy<Value = CqInitEx> {
    let all = WcFields::STANDARD;
    let fields = select(vec![all, all - WcFields::QP_NUM, WcFields::empty()]);
    let overwriting = (Just(8), Just(CqFlags::IGNORE_OVERRUN));
    let size = prop_oneof![2 => Just((128, CqFlags::empty())), 1 => overwriting];
    (fields, size).prop_map(|(fields, (cqe, flags))| {
        CqInitEx::new(CqInit::new(cqe))
            .wc_flags(fields)
            .flags(flags)
    })
}

proptest! {
    #![proptest_config(property_config())]

    /// Whatever the profile, the loss and the order of steps: no invariant is broken.
    #[test]
    fn nothing_is_found_in_right_programs(
        seed in any::<u64>(),
        profile in select(&[Profile::SPEC, Profile::RXE, Profile::MLX5, Profile::ADVERSARIAL][..]),
        loss in select(&[0, 50_000][..]),
        qp_type in select(&[QpType::Rc, QpType::XrcSend][..]),
        cqs in [cq(), cq()],
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let sim = Sim::new(SimConfig::new().seed(seed).behavior(profile.behavior));
        let sim: Arc<dyn Verbs> = Arc::new(sim);
        let checked = Checked::new(sim);
        let lab = checked.lab().unwrap();
        for effect in [Effect::Drop, Effect::Duplicate(Duration::ZERO)] {
            let fault = Fault::packet(PacketFilter::EVERY, effect).per_million(loss);
            lab.inject(fault).unwrap();
        }
        let ends = [("sim0", &cqs[0]), ("sim1", &cqs[1])]
            .map(|(name, cq)| Area::open(&checked, name, cq));
        let mut pairs = [0, 1].map(|index| Pair::new(&ends, qp_type, index, 0));
        for (index, step) in steps {
            pairs[index].take(&checked, &ends, step);
        }
        let summary = checked.finish();
        prop_assert!(summary.is_ok(), "{}", summary.unwrap_err());
        // Again, and after the end nothing is looked at.
        prop_assert_eq!(checked.finish(), summary);
    }
}

/// An end with memory: for each connection 512 bytes to send from, 512 to receive into, and 512
/// that peers reach.
struct Area<'v> {
    end: End<'v>,
    xrcd: Option<Xrcd>,
    /// An SRQ of XRC for each connection.
    srqs: Vec<Srq>,
}

impl<'v> Area<'v> {
    fn open(verbs: &'v dyn Verbs, name: &str, cq: &CqInitEx) -> Self {
        let mut end = End::open(verbs, name, 128, 4096);
        let init = CqInitEx {
            cq: cq.cq.channel(end.channel),
            ..*cq
        };
        end.cq = verbs.create_cq_ex(end.context, &init).unwrap();
        let access = Access::ALL_RDMA | Access::REMOTE_ATOMIC;
        end.mr = verbs.alloc_mr(end.pd, 4096, access).unwrap();
        end.mem = verbs.query_mr(end.mr).unwrap();
        // Some profiles have no XRC.
        let xrcd = verbs.open_xrcd(end.context, &XrcdInit::private()).ok();
        let srqs = xrcd.into_iter().flat_map(|xrcd| {
            let init = SrqInit::new(64).xrc(xrcd, end.cq);
            [(); 2].map(|()| verbs.create_srq(end.pd, &init).unwrap())
        });
        let srqs = srqs.collect();
        Self { end, xrcd, srqs }
    }
}

struct Pair {
    qps: [Qp; 2],
    /// Which connection it is.
    index: usize,
    /// Where its messages go, if it is one of XRC.
    srq: Option<Srq>,
    /// Work that was posted since all was polled.
    posted: u32,
    next: u64,
}

impl Pair {
    fn new(ends: &[Area<'_>; 2], qp_type: QpType, index: usize, next: u64) -> Self {
        let [a, b] = [ends[0].end, ends[1].end];
        let (qps, srq) = match (qp_type, ends[1].xrcd) {
            (QpType::XrcSend, Some(xrcd)) => {
                let target = b.verbs.create_xrc_recv_qp(xrcd).unwrap();
                ([a.qp(qp_type, 16), target], Some(ends[1].srqs[index]))
            }
            _ => ([a, b].map(|end| end.qp(QpType::Rc, 16)), None),
        };
        let pair = Self {
            qps,
            index,
            srq,
            posted: 0,
            next,
        };
        pair.connect(ends);
        pair
    }

    fn connect(&self, ends: &[Area<'_>; 2]) {
        // So that nothing of an earlier connection is taken for this one's.
        let psn = (self.next as u32 + 1) * 4096;
        let params = RcParams {
            psn_a: psn,
            psn_b: psn,
            access: Access::ALL_RDMA | Access::REMOTE_ATOMIC,
            timeout: 8,
            ..RcParams::default()
        };
        let [a, b] = self.qps;
        connect::by_attributes(ends[0].end.verbs, a, b, &params).unwrap();
    }

    fn take(&mut self, verbs: &Checked, ends: &[Area<'_>; 2], step: Step) {
        let [a, b] = [ends[0].end, ends[1].end];
        let [qp, peer] = self.qps;
        let base = self.index as u64 * 2048;
        if self.posted >= 14 {
            verbs.lab().unwrap().settle().unwrap();
            for end in [a, b] {
                poll(verbs, end.cq, 64);
            }
            self.posted = 0;
        }
        self.next += 1;
        let wr_id = self.next % 4;
        let number = self.srq.map(|srq| verbs.srq_num(srq).unwrap());
        let post = |wr: SendWr<'_>| {
            let wr = number.map_or(wr, |number| wr.to_srq(number));
            // A queue pair in error takes no work under some profiles.
            let _ = verbs.post_send(qp, &[wr]);
        };
        match step {
            Step::Send {
                length,
                imm,
                signaled,
            } => {
                let slot = base + 512 + self.next % 8 * 64;
                let room = [b.mem.sge(slot, 64)];
                // Receives of an SRQ complete in no order, and need different numbers.
                let of_all = self.next * 2 + self.index as u64;
                let _ = match self.srq {
                    Some(srq) => verbs.post_srq_recv(srq, &[RecvWr::new(of_all, &room)]),
                    None => verbs.post_recv(peer, &[RecvWr::new(wr_id, &room)]),
                };
                let list = [a.mem.sge(base, length)];
                let wr = if imm {
                    SendWr::send_with_imm(wr_id, &list, [1, 2, 3, self.next as u8])
                } else {
                    SendWr::send(wr_id, &list).solicited()
                };
                post(if signaled { wr } else { wr.unsignaled() });
                self.posted += 1;
            }
            Step::Write { offset, length } => {
                let list = [a.mem.sge(base + 64, length)];
                post(SendWr::rdma_write(
                    wr_id,
                    &list,
                    b.mem.remote(base + 1024 + offset),
                ));
                self.posted += 1;
            }
            Step::Read { offset, length } => {
                let list = [a.mem.sge(base + 512 + offset, length)];
                post(SendWr::rdma_read(wr_id, &list, b.mem.remote(base + 1024)));
                self.posted += 1;
            }
            Step::Add { counter, add } => {
                let list = [a.mem.sge(base + 768, 8)];
                let remote = b.mem.remote(base + 1536 + counter * 8);
                post(SendWr::fetch_and_add(wr_id, &list, remote, add));
                self.posted += 1;
            }
            Step::Fail => {
                let bad = Sge {
                    lkey: !a.mem.lkey,
                    ..a.mem.sge(base, 8)
                };
                post(SendWr::send(wr_id, &[bad]));
                self.posted += 1;
            }
            Step::Poll(n) => {
                poll(verbs, a.cq, n);
                poll(verbs, b.cq, n);
            }
            Step::Iterate(n) => {
                for end in [a, b] {
                    iterate(verbs, end.cq, n);
                }
            }
            Step::Moderate(moderation) => {
                for end in [a, b] {
                    // Not every profile has that.
                    let _ = verbs.modify_cq(end.cq, &moderation);
                }
            }
            Step::Settle => verbs.lab().unwrap().settle().unwrap(),
            Step::Arm(arm) => {
                for end in [a, b] {
                    verbs.req_notify_cq(end.cq, arm).unwrap();
                }
            }
            Step::TakeEvents => {
                for end in [a, b] {
                    while let Ok(event) = verbs.get_cq_event(end.channel, Wait::Poll) {
                        verbs.ack_cq_events(event.cq, 1).unwrap();
                    }
                }
            }
            Step::Look(offset) => {
                for end in [a, b] {
                    let mut bytes = [0; 64];
                    let looked =
                        verbs.read_mr(end.mr, base as usize + offset.min(1984), &mut bytes);
                    // Work may own it.
                    assert!(looked.is_ok() || looked.unwrap_err().kind() == ErrorKind::Usage);
                }
            }
            Step::Fill(byte) => drop(verbs.write_mr(a.mr, base as usize + 64, &[byte; 64])),
            Step::Reconnect => {
                let to_reset = QpModify::to(QpState::Reset);
                for qp in self.qps {
                    verbs.modify_qp(qp, &to_reset.attr, to_reset.mask).unwrap();
                }
                self.connect(ends);
            }
            Step::Renew => {
                for qp in self.qps {
                    verbs.destroy_qp(qp, Wait::Poll).unwrap();
                }
                let qp_type = self.srq.map_or(QpType::Rc, |_| QpType::XrcSend);
                *self = Self::new(ends, qp_type, self.index, self.next);
            }
        }
    }
}

fn poll(verbs: &dyn Verbs, cq: Cq, n: usize) {
    let mut wc = [Wc::default(); 64];
    verbs.poll_cq(cq, &mut wc[..n]).unwrap();
}

fn iterate(verbs: &dyn Verbs, cq: Cq, n: usize) {
    if verbs.start_poll(cq).is_err() {
        return;
    }
    verbs.read_wc(cq).unwrap();
    let _ = (1..n).find(|_| verbs.next_poll(cq).is_err());
    verbs.end_poll(cq).unwrap();
}
