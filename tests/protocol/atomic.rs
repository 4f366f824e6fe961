//! Atomics under faults: as if each were executed once, at its place in the queue.

use core::time::Duration;

use proptest::prelude::*;
use verbs_api::lab::{Effect, Fault, PacketFilter};
use verbs_api::{Access, QpType, RcParams, SendWr, Verbs, WcStatus};
use verbs_sim::SimConfig;

use crate::common::{End, checked, pair, property_config, settle};
use crate::link::wr_ids;

/// What is done to one number in the peer's memory.
#[derive(Clone, Copy, Debug)]
enum Work {
    Add(u64),
    /// Compares with, and swaps for.
    Swap(u64, u64),
    Write(u64),
    Read,
}

impl Work {
    /// What comes back, if anything, and what is there then.
    fn on(self, value: u64) -> (Option<u64>, u64) {
        match self {
            Self::Add(add) => (Some(value), value.wrapping_add(add)),
            Self::Swap(compare, swap) if compare == value => (Some(value), swap),
            Self::Swap(..) => (Some(value), value),
            Self::Write(written) => (None, written),
            // What it brings may be of later: it is read again if the answer is lost.
            Self::Read => (None, value),
        }
    }
}

fn work() -> impl Strategy<Value = Work> {
    // Few values, so that they coincide.
    let value = prop_oneof![4 => 0..4_u64, 1 => any::<u64>()];
    let values = (value.clone(), value.clone());
    prop_oneof![
        3 => value.clone().prop_map(Work::Add),
        3 => values.prop_map(|(compare, swap)| Work::Swap(compare, swap)),
        1 => value.prop_map(Work::Write),
        1 => Just(Work::Read),
    ]
}

const ACCESS: Access = Access::ALL_RDMA.union(Access::REMOTE_ATOMIC);
const BYTES: u64 = 8;
/// Where the results of the near end lie.
const RESULTS: u64 = 1024;

proptest! {
    #![proptest_config(property_config())]

    /// ATOM-01, ATOM-02, ATOM-09, ATOM-13, SQ-14, TMR-09: with packets lost, late or coming twice,
    /// results and memory are those of one execution in order; or up to some work request, which
    /// fails with RETRY_EXC_ERR, and then it was executed once or not at all.
    #[test]
    fn atomics_are_executed_once_and_in_order(
        program in prop::collection::vec(work(), 1..16),
        (lost, twice, late) in (0..200_000_u32, 0..200_000_u32, 0..100_000_u32),
        by in prop_oneof![Just(0), 1..50_u64, 1..200_000_u64].prop_map(Duration::from_micros),
        seed: u64,
        max_rd_atomic in 1..5_u8,
        psn_a in prop_oneof![Just(0), 0xff_fff0..0x100_0000_u32],
    ) {
        let params = RcParams { access: ACCESS, max_rd_atomic, psn_a, ..RcParams::default() };
        let sim = checked(SimConfig::new().seed(seed));
        let [near, far] = ["sim0", "sim1"].map(|name| End::open(&sim, name, 64, 4096));
        let (qp, _) = pair((&near, &far), QpType::Rc, 16, &params);
        let mr = sim.alloc_mr(far.pd, BYTES as usize, ACCESS).unwrap();
        let remote = sim.query_mr(mr).unwrap().remote(0);
        for (rate, effect) in [
            (lost, Effect::Drop),
            (twice, Effect::Duplicate(by)),
            (late, Effect::Delay(by + Duration::from_nanos(1))),
        ] {
            let fault = Fault::packet(PacketFilter::EVERY, effect).per_million(rate);
            sim.lab().unwrap().inject(fault).unwrap();
        }
        for (place, work) in (0..).zip(&program) {
            let at = place * BYTES;
            if let Work::Write(value) = work {
                near.write(at as usize, &value.to_ne_bytes());
            }
            let (from, into) = ([near.mem.sge(at, 8)], [near.mem.sge(RESULTS + at, 8)]);
            near.post(qp, match *work {
                Work::Add(add) => SendWr::fetch_and_add(place, &into, remote, add),
                Work::Swap(compare, swap) => {
                    SendWr::compare_and_swap(place, &into, remote, compare, swap)
                }
                Work::Write(_) => SendWr::rdma_write(place, &from, remote),
                Work::Read => SendWr::rdma_read(place, &into, remote),
            });
        }
        settle(&sim);
        let done = near.drain();
        let each: Vec<_> = (0..program.len() as u64).collect();
        prop_assert_eq!(wr_ids(&done), each);
        let failed = done.iter().position(|wc| wc.status != WcStatus::Success);
        let mut value = 0;
        for (place, work) in program[..failed.unwrap_or(program.len())].iter().enumerate() {
            let (result, after) = work.on(value);
            value = after;
            if let Some(result) = result {
                let seen = near.read(RESULTS as usize + place * 8, 8);
                prop_assert_eq!(seen, result.to_ne_bytes(), "the result of {}", place);
            }
        }
        let mut possible = vec![value];
        if let Some(failed) = failed {
            prop_assert_eq!(done[failed].status, WcStatus::RetryExcErr);
            let behind = &done[failed + 1..];
            prop_assert!(behind.iter().all(|wc| wc.status == WcStatus::WrFlushErr));
            // What was under way may have been executed, each once and in order.
            for work in &program[failed..] {
                value = work.on(value).1;
                possible.push(value);
            }
        }
        let mut seen = [0; 8];
        sim.read_mr(mr, 0, &mut seen).unwrap();
        let seen = u64::from_ne_bytes(seen);
        prop_assert!(possible.contains(&seen), "{seen:#x} is none of {possible:x?}");
    }
}
