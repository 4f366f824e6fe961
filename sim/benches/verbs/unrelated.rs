//! The cost of verbs with many unrelated objects, compared with few.

use std::sync::Arc;
use std::thread;

use verbs_api::connect::by_attributes;
use verbs_api::lab::{Fault, Lab, PacketFilter};
use verbs_api::profile::Profile;
use verbs_api::{
    Access, AhAttr, Arm, AsyncEventType, CompChannel, Context, Cq, CqInit, ErrorKind, MrAttr,
    MwType, Pd, Qp, QpAttrMask, QpCap, QpInit, QpModify, QpState, QpType, RcParams, SendWr, Verb,
    Verbs, Wait, Wc, WcStatus, owned,
};
use verbs_sim::{Mode, Sim, SimConfig};

use crate::memory::allocated;
use crate::table::{Line, MISS, NOTHING};
use crate::time;

/// The number of objects that counts as few.
const FEW: u32 = 10;
/// The number of batches. The fastest one counts.
const BATCHES: u32 = 60;
const ROUNDS: u32 = 50;

/// All lines. A `scale` of 1 measures, and a smaller one checks that the benchmarks work.
pub(crate) fn lines(scale: f64) -> Vec<Line> {
    let many = |most: u32| ((f64::from(most) * scale) as u32).max(FEW);
    let make_qp = |desk: &Desk| desk.destroy_qp(desk.qp());
    let make_mr = |desk: &Desk| {
        let mr = desk.sim.alloc_mr(desk.pd, 64, Access::LOCAL_WRITE).unwrap();
        desk.sim.dereg_mr(mr).unwrap();
    };
    let make_ah = |desk: &Desk| {
        let gid = desk.sim.query_gid(desk.context, 1, 0).unwrap();
        let attr = AhAttr::global(1, 0, gid);
        let ah = desk.sim.create_ah(desk.pd, &attr).unwrap();
        desk.sim.destroy_ah(ah).unwrap();
    };
    let open = |desk: &Desk| {
        let context = desk.sim.open_device("sim0").unwrap();
        desk.sim.close_device(context).unwrap();
    };
    let inject = |desk: &Desk| {
        let fault = Fault::fail(Verb::DeallocPd, ErrorKind::NoMemory);
        let id = desk.sim.inject(fault).unwrap();
        desk.sim.remove(id).unwrap();
    };
    let arm = |desk: &Desk| desk.sim.req_notify_cq(desk.cq, Arm::SOLICITED).unwrap();
    let make_cq = |desk: &Desk| {
        let cq = desk.cq_on_channel(1);
        desk.raise_event(cq);
        desk.sim.destroy_cq(cq, Wait::Poll).unwrap();
    };
    let write = |desk: &Desk| desk.write_on(desk.link);
    let windows = |desk: &Desk, count| {
        for _ in 0..count {
            desk.sim.alloc_mw(desk.pd, MwType::Type2).unwrap();
        }
    };
    let qps = |desk: &Desk, count| {
        for _ in 0..count {
            desk.qp();
        }
    };
    let cqs = |desk: &Desk, count| {
        for _ in 0..count {
            desk.cq_on_channel(1);
        }
    };
    #[cfg(all(feature = "fd", target_os = "linux"))]
    let descriptors = |desk: &Desk, count| {
        for _ in 0..count {
            let channel = desk.sim.create_comp_channel(desk.context).unwrap();
            drop(desk.sim.channel_fd(channel).unwrap());
        }
    };
    let unread = |desk: &Desk, count| {
        for _ in 0..count {
            desk.raise_event(desk.cq_on_channel(1));
        }
    };
    let unread_async = |desk: &Desk, count| {
        let tell = |_| {
            desk.sim
                .announce(desk.context, 1, AsyncEventType::LidChange)
        };
        (0..count).try_for_each(tell).unwrap();
    };
    let rules = |desk: &Desk, count| {
        for _ in 0..count {
            let fault = Fault::complete(WcStatus::LocProtErr).qpn(0);
            desk.sim.inject(fault).unwrap();
        }
    };
    let sleepers = |desk: &Desk, count| {
        for _ in 0..count {
            let channel = desk.sim.create_comp_channel(desk.context).unwrap();
            let sim = desk.sim.clone();
            // The end of the desk ends the wait.
            thread::spawn(move || sim.get_cq_event(channel, Wait::Forever));
        }
    };
    let held = |desk: &Desk, count: u32| {
        let fault = Fault::reorder(PacketFilter::EVERY, u32::MAX).first(count.into());
        desk.sim.inject(fault).unwrap();
        let uc = desk.connected(QpType::Uc, desk.link_cq, 16);
        (0..count).for_each(|_| desk.write_on(uc));
    };
    #[rustfmt::skip]
    let mut lines = vec![
        line("queue pair made and destroyed", "windows", many(60_000), windows, make_qp).more(MISS),
        line("region made and deregistered", "windows", many(60_000), windows, make_mr).more(MISS),
        line("req_notify_cq, solicited", "completions", many(1_000_000), Desk::fill, arm).more(NOTHING),
        line("queue pair made and destroyed", "completions", many(1_000_000), Desk::fill, make_qp).more(MISS),
        line("address handle made and destroyed", "queue pairs", many(60_000), qps, make_ah).more(MISS),
        line("context opened and closed", "queue pairs", many(60_000), qps, open).more(MISS),
        line("rule put in force and taken out", "CQs", many(60_000), cqs, inject).more(MISS),
        line("CQ with an event, made and destroyed", "unread events", many(60_000), unread, make_cq).more(2.0 * MISS),
        line("queue pair made and destroyed", "unread async events", many(1_000_000), unread_async, make_qp).more(MISS),
        line("CQ with an event, made and destroyed", "sleeping threads", many(500), sleepers, make_cq).more(MISS),
        line("write of 64 B", "rules for other queue pairs", many(10_000), rules, write).more(NOTHING),
        line("write of 64 B", "packets held back", many(20_000), held, write).more(NOTHING),
    ];
    #[cfg(all(feature = "fd", target_os = "linux"))]
    lines.push(
        line(
            "write of 64 B",
            "channels with descriptors",
            many(900),
            descriptors,
            write,
        )
        .more(NOTHING),
    );
    lines.extend(owned_queue_pairs(many(20_000)));
    lines
}

/// The cost of `run` with many objects that `fill` creates, compared with few.
fn line(
    what: &str,
    others: &str,
    many: u32,
    fill: impl Fn(&Desk, u32),
    run: impl Fn(&Desk),
) -> Line {
    let [few_time, time] = [FEW, many].map(|count| {
        let desk = Desk::new();
        fill(&desk, count);
        fastest(|| run(&desk))
    });
    let few_name = format!("with {FEW}");
    Line::ns(&format!("{what}, with {many} {others}"), time).against(&Line::ns(&few_name, few_time))
}

/// Nanoseconds of one round, in the fastest batch.
pub(crate) fn fastest(mut run: impl FnMut()) -> f64 {
    let batch = |_| {
        let start = time::of_thread();
        (0..ROUNDS).for_each(|_| run());
        (time::of_thread() - start).as_nanos() as f64 / f64::from(ROUNDS)
    };
    (0..BATCHES).map(batch).fold(f64::INFINITY, f64::min)
}

/// Owning queue pairs that are used and dropped, on a CQ that is never empty: the time for each of
/// many, and the bytes that remain allocated for each.
fn owned_queue_pairs(many: u32) -> [Line; 2] {
    let sim: Arc<dyn Verbs> = Arc::new(Sim::new(SimConfig::new().mode(Mode::Inline)));
    let context = owned::Context::open(sim, "sim0").unwrap();
    let pd = context.alloc_pd().unwrap();
    let cq = context.cq(64).create().unwrap();
    let mut wc = [owned::Completion::default()];
    let mut use_and_drop = |polls: bool| {
        let qp = pd.qp(QpType::Rc, &cq, &cq).create().unwrap();
        to_error().iter().try_for_each(|to| qp.modify(to)).unwrap();
        qp.post_send(owned::SendWr::send(1, &[])).unwrap();
        if polls {
            assert_eq!(cq.poll_into(&mut wc).unwrap(), 1);
        }
    };
    use_and_drop(false);
    let few_time = fastest(|| use_and_drop(true));
    let bytes = allocated(|| (0..many).for_each(|_| use_and_drop(true)));
    let time = fastest(|| use_and_drop(true));
    let what = "owned queue pair used and dropped, the CQ never empty";
    [
        Line::ns(&format!("{what}, after {many}"), time)
            .against(&Line::ns("the first", few_time))
            .more(MISS),
        Line::new(
            &format!("{what}: memory left"),
            bytes as f64 / f64::from(many),
            "B",
        )
        .most(1.0),
    ]
}

/// The attributes of the transition from RESET to the error state.
fn to_error() -> [QpModify; 2] {
    let init = QpModify::to(QpState::Init)
        .set(QpAttrMask::PORT, |attr| attr.port_num = 1)
        .set(QpAttrMask::PKEY_INDEX, |attr| attr.pkey_index = 0)
        .set(QpAttrMask::ACCESS_FLAGS, |_| ());
    [init, QpModify::to(QpState::Err)]
}

/// A device on which queue pairs are connected with each other, one object of each kind, and a
/// link.
struct Desk {
    sim: Arc<Sim>,
    context: Context,
    pd: Pd,
    channel: CompChannel,
    cq: Cq,
    mem: MrAttr,
    link: Qp,
    link_cq: Cq,
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.sim.close();
    }
}

impl Desk {
    fn new() -> Self {
        // This device merges events and purges CQs, where others do less.
        let config = SimConfig::new().mode(Mode::Inline).profile(Profile::MLX5);
        let sim = Arc::new(Sim::new(config));
        let context = sim.open_device("sim0").unwrap();
        let channel = sim.create_comp_channel(context).unwrap();
        let cq = |entries| sim.create_cq(context, &CqInit::new(entries).channel(channel));
        let [cq, link_cq] = [1 << 20, 64].map(|entries| cq(entries).unwrap());
        let pd = sim.alloc_pd(context).unwrap();
        let mr = sim.alloc_mr(pd, 4096, Access::ALL_RDMA).unwrap();
        let mem = sim.query_mr(mr).unwrap();
        let mut desk = Self {
            link: Qp::default(),
            sim,
            context,
            pd,
            channel,
            cq,
            mem,
            link_cq,
        };
        desk.link = desk.connected(QpType::Rc, link_cq, 16);
        desk
    }

    fn cq_on_channel(&self, entries: i32) -> Cq {
        let init = CqInit::new(entries).channel(self.channel);
        self.sim.create_cq(self.context, &init).unwrap()
    }

    /// An unused queue pair.
    fn qp(&self) -> Qp {
        self.qp_on(self.cq)
    }

    fn qp_on(&self, cq: Cq) -> Qp {
        let init = QpInit::new(QpType::Rc, cq, cq);
        self.sim.create_qp(self.pd, &init).unwrap()
    }

    fn destroy_qp(&self, qp: Qp) {
        self.sim.destroy_qp(qp, Wait::Poll).unwrap();
    }

    /// A queue pair in the error state, on which all posted work completes immediately.
    fn failed_qp(&self, cq: Cq) -> Qp {
        let qp = self.qp_on(cq);
        for modify in to_error() {
            self.sim.modify_qp(qp, &modify.attr, modify.mask).unwrap();
        }
        qp
    }

    /// A queue pair for `depth` sends that is connected with another one of this device.
    fn connected(&self, qp_type: QpType, cq: Cq, depth: u32) -> Qp {
        let cap = QpCap {
            max_send_wr: depth,
            ..QpCap::default()
        };
        let init = QpInit::new(qp_type, cq, cq).cap(cap);
        let [qp, peer] = [0, 1].map(|_| self.sim.create_qp(self.pd, &init).unwrap());
        by_attributes(&*self.sim, qp, peer, &RcParams::default()).unwrap();
        qp
    }

    /// Makes an event of a CQ, which stays unread.
    fn raise_event(&self, cq: Cq) {
        self.sim.req_notify_cq(cq, Arm::NEXT).unwrap();
        let qp = self.failed_qp(cq);
        self.sim.post_send(qp, &[SendWr::send(1, &[])]).unwrap();
        self.destroy_qp(qp);
    }

    /// Adds unsolicited completions to the CQ.
    fn fill(&self, count: u32) {
        const DEPTH: u32 = 1 << 14;
        for first in (0..count).step_by(DEPTH as usize) {
            let qp = self.connected(QpType::Rc, self.cq, DEPTH);
            (first..count.min(first + DEPTH)).for_each(|_| self.post_write(qp));
        }
    }

    fn post_write(&self, qp: Qp) {
        let list = [self.mem.sge(0, 64)];
        let wr = SendWr::rdma_write(1, &list, self.mem.remote(64));
        self.sim.post_send(qp, &[wr]).unwrap();
    }

    fn write_on(&self, qp: Qp) {
        self.post_write(qp);
        let mut wc = [Wc::default()];
        assert_eq!(self.sim.poll_cq(self.link_cq, &mut wc).unwrap(), 1);
    }
}
