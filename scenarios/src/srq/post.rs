//! Posting receives on an SRQ, and on a queue pair that has one.

use verbs_api::{ErrorKind, RecvWr, SrqInit};

use super::{PLACES, ROOM, Shared};
use crate::failure::{check_eq, in_case, value_in_case};
use crate::{OfRule, PairOptions, Result, Setup, expect_err, expect_err_among};

scenario!(list_of_receives_stops_at_the_bad_one: "SRQ-04"; needs SRQ);
fn list_of_receives_stops_at_the_bad_one(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-04";
    let usual = Shared::new(setup, 8)?;
    let init = SrqInit::new(8).max_sge(2);
    let srq = setup.create_srq(usual.pd, &init)?;
    let shared = Shared { srq, ..usual };
    let pair = shared.pair(PairOptions::default())?;
    let most = setup.srq_init(srq)?.attr.max_sge as usize;
    let room = |wr_id: u64| shared.mem.sge(wr_id * u64::from(ROOM), ROOM);
    for bad in 0..3 {
        let good: Vec<_> = (0..4).map(|wr_id| [room(wr_id)]).collect();
        let too_many = vec![room(9); most + 1];
        let mut list: Vec<_> = (0..4).map(|i| RecvWr::new(i, &good[i as usize])).collect();
        list[bad] = RecvWr::new(9, &too_many);
        let posted = setup.post_srq_recv(srq, &list);
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
    // An empty list is not a request, and as many entries as allowed are fine.
    setup.post_srq_recv(srq, &[]).rule(RULE)?;
    let many = vec![shared.mem.sge(0, ROOM / most as u32); most];
    setup
        .post_srq_recv(srq, &[RecvWr::new(0, &many)])
        .rule(RULE)
}

scenario!(full_queue_takes_no_more: "SRQ-04"; needs SRQ);
fn full_queue_takes_no_more(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SRQ-04";
    let shared = Shared::new(setup, 8)?;
    let pair = shared.pair(PairOptions::default())?;
    let most = u64::from(shared.max_wr()?).min(PLACES);
    shared.post(0..most).rule(RULE)?;
    let room = [shared.mem.sge(0, ROOM)];
    let more = [RecvWr::new(70, &room), RecvWr::new(71, &room)];
    for _ in 0..2 {
        let refused = expect_err(
            setup.post_srq_recv(shared.srq, &more),
            ErrorKind::NoMemory,
            RULE,
        )?;
        check_eq!(RULE, refused.bad_wr, 0, "the bad one");
    }
    // One is taken and polled: there is room for one, and no more.
    shared.takes(&pair, 1, 0, RULE)?;
    let list = [RecvWr::new(0, &room), RecvWr::new(72, &room)];
    let refused = expect_err(
        setup.post_srq_recv(shared.srq, &list),
        ErrorKind::NoMemory,
        RULE,
    )?;
    check_eq!(RULE, refused.bad_wr, 1, "the bad one");
    for wr_id in (1..most).chain([0]) {
        shared.takes(&pair, wr_id as u8, wr_id, RULE)?;
    }
    setup.no_completion(pair.b.recv_cq, RULE)
}

scenario!(gone_queue_takes_no_receive: "SRQ-04"; needs SRQ);
fn gone_queue_takes_no_receive(setup: &Setup<'_>) -> Result {
    let shared = Shared::new(setup, 8)?;
    shared.destroy()?;
    let room = [shared.mem.sge(0, ROOM)];
    let list = [RecvWr::new(1, &room), RecvWr::new(2, &room)];
    let posted = setup.post_srq_recv(shared.srq, &list);
    let refused = expect_err(posted, ErrorKind::Invalid, "SRQ-04")?;
    check_eq!("SRQ-04", refused.bad_wr, 0, "the bad one");
    Ok(())
}

scenario!(memory_of_posted_receives_is_the_devices: "SQ-17"; needs SRQ, LAB);
/// Each receive owns its memory until its own completion has been polled.
fn memory_of_posted_receives_is_the_devices(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-17";
    let shared = Shared::new(setup, 8)?;
    let pair = shared.pair(PairOptions::default())?;
    let look = |place: u64| {
        let offset = (place * u64::from(ROOM)) as usize;
        setup.read_mr(shared.mr, offset, &mut [0])
    };
    let usage = |place: u64| {
        let refused = expect_err(look(place), ErrorKind::Usage, RULE);
        in_case(&format!("place {place}"), refused.map(drop))
    };
    for round in 0..2 {
        // Two are posted, and later one more.
        shared.post([0, 1])?;
        usage(0)?;
        usage(1)?;
        look(2).rule(RULE)?;
        shared.post([2])?;
        usage(2)?;
        for wr_id in 0..3 {
            (wr_id..3).try_for_each(usage)?;
            shared.takes(&pair, round, wr_id, RULE)?;
            look(wr_id).rule(RULE)?;
        }
    }
    // Along with a send on the same domain.
    shared.post([3])?;
    pair.a.recv(1, 8)?;
    pair.b.send(1, 8)?;
    usage(3)?;
    setup.successes(pair.b.send_cq, 1)?;
    shared.takes(&pair, 1, 3, RULE)?;
    look(3).rule(RULE)?;
    // A waiting receive is released when its queue is destroyed.
    shared.post([3])?;
    usage(3)?;
    setup.destroy_qp(pair.b.qp, setup.wait())?;
    shared.destroy()?;
    look(3).rule(RULE)
}

scenario!(receive_posted_on_a_qp_with_one_is_refused: "RQ-09"; needs SRQ; hazards MAY_CRASH);
fn receive_posted_on_a_qp_with_one_is_refused(setup: &Setup<'_>) -> Result {
    const RULE: &str = "RQ-09";
    let shared = Shared::new(setup, 8)?;
    let pair = shared.pair(PairOptions::default())?;
    let kinds = [
        ErrorKind::Invalid,
        ErrorKind::NoMemory,
        ErrorKind::NotSupported,
    ];
    let room = [shared.mem.sge(0, ROOM)];
    let posted = setup.post_recv(pair.b.qp, &[RecvWr::new(1, &room)]);
    let refused = expect_err_among(posted, &kinds, RULE)?;
    check_eq!(RULE, refused.bad_wr, 0, "the bad one");
    shared.post([2])?;
    shared.takes(&pair, 1, 2, RULE).map(drop)
}
