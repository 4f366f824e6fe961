//! Posting receives on an SRQ, and on a queue pair that has one.

use verbs_api::{ErrorKind, RecvWr, SrqInit};

use super::{PLACES, ROOM, Shared};
use crate::failure::{check_eq, value_in_case};
use crate::{Bench, OfRule, PairOptions, Result, expect_err, expect_err_among};

scenario!(list_of_receives_stops_at_the_bad_one: "SRQ-04"; needs SRQ);
fn list_of_receives_stops_at_the_bad_one(bench: &Bench<'_>) -> Result {
    const RULE: &str = "SRQ-04";
    let usual = Shared::new(bench, 8)?;
    let init = SrqInit::new(8).max_sge(2);
    let srq = bench.create_srq(usual.pd, &init)?;
    let shared = Shared { srq, ..usual };
    let pair = shared.pair(PairOptions::default())?;
    let most = bench.srq_init(srq)?.attr.max_sge as usize;
    let room = |wr_id: u64| shared.mem.sge(wr_id * u64::from(ROOM), ROOM);
    for bad in 0..3 {
        let good: Vec<_> = (0..4).map(|wr_id| [room(wr_id)]).collect();
        let too_many = vec![room(9); most + 1];
        let mut list: Vec<_> = (0..4).map(|i| RecvWr::new(i, &good[i as usize])).collect();
        list[bad] = RecvWr::new(9, &too_many);
        let posted = bench.post_srq_recv(srq, &list);
        let error = expect_err(posted, ErrorKind::Invalid, RULE);
        let error = value_in_case(&format!("the bad one is {bad}"), error)?;
        check_eq!(RULE, error.bad_wr, bad, "the bad one");
        for wr_id in 0..bad {
            shared.takes(&pair, 5, wr_id as u64, RULE)?;
        }
        // It takes one of its own: nothing behind the bad one was posted.
        shared.post([7])?;
        shared.takes(&pair, 6, 7, RULE)?;
    }
    // An empty list is none, and as many entries as there may be are fine.
    bench.post_srq_recv(srq, &[]).rule(RULE)?;
    let many = vec![shared.mem.sge(0, ROOM / most as u32); most];
    bench
        .post_srq_recv(srq, &[RecvWr::new(0, &many)])
        .rule(RULE)
}

scenario!(full_queue_takes_no_more: "SRQ-04"; needs SRQ);
fn full_queue_takes_no_more(bench: &Bench<'_>) -> Result {
    const RULE: &str = "SRQ-04";
    let shared = Shared::new(bench, 8)?;
    let pair = shared.pair(PairOptions::default())?;
    let most = u64::from(shared.max_wr()?).min(PLACES);
    shared.post(0..most).rule(RULE)?;
    let room = [shared.mem.sge(0, ROOM)];
    let more = [RecvWr::new(70, &room), RecvWr::new(71, &room)];
    for _ in 0..2 {
        let refused = expect_err(
            bench.post_srq_recv(shared.srq, &more),
            ErrorKind::NoMemory,
            RULE,
        )?;
        check_eq!(RULE, refused.bad_wr, 0, "the bad one");
    }
    // One is taken and polled: there is room for one, and no more.
    shared.takes(&pair, 1, 0, RULE)?;
    let list = [RecvWr::new(0, &room), RecvWr::new(72, &room)];
    let refused = expect_err(
        bench.post_srq_recv(shared.srq, &list),
        ErrorKind::NoMemory,
        RULE,
    )?;
    check_eq!(RULE, refused.bad_wr, 1, "the bad one");
    for wr_id in (1..most).chain([0]) {
        shared.takes(&pair, wr_id as u8, wr_id, RULE)?;
    }
    bench.no_completion(pair.b.recv_cq, RULE)
}

scenario!(receive_posted_on_a_qp_with_one_is_refused: "RQ-09"; needs SRQ; hazards MAY_CRASH);
fn receive_posted_on_a_qp_with_one_is_refused(bench: &Bench<'_>) -> Result {
    const RULE: &str = "RQ-09";
    let shared = Shared::new(bench, 8)?;
    let pair = shared.pair(PairOptions::default())?;
    let kinds = [
        ErrorKind::Invalid,
        ErrorKind::NoMemory,
        ErrorKind::NotSupported,
    ];
    let room = [shared.mem.sge(0, ROOM)];
    let posted = bench.post_recv(pair.b.qp, &[RecvWr::new(1, &room)]);
    let refused = expect_err_among(posted, &kinds, RULE)?;
    check_eq!(RULE, refused.bad_wr, 0, "the bad one");
    shared.post([2])?;
    shared.takes(&pair, 1, 2, RULE).map(drop)
}
