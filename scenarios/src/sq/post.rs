//! What a post takes and answers; inline data.

use verbs_api::behavior::SqRelease;
use verbs_api::{ErrorKind, QpAttrMask, QpCap, QpState, QpType, RecvWr, SendFlags, SendWr, Sge};

use crate::failure::{check, check_eq, in_case};
use crate::fresh_qp::FreshQp;
use crate::kind::Kind;
use crate::{
    End, Failure, OfRule, Pair, PairOptions, Result, Setup, expect_err, expect_err_among, pattern,
    wr_ids,
};

/// Queues of several sizes, with room for their completions, and how many sends each takes.
fn of_sizes(setup: &Setup<'_>, test: impl Fn(&Pair<'_>, usize) -> Result) -> Result {
    for max_send_wr in [1, 2, 5, 16, 60] {
        let pair = setup.pair(PairOptions {
            send_cqe: 256,
            cap: QpCap {
                max_send_wr,
                ..QpCap::default()
            },
            ..PairOptions::default()
        })?;
        let most = setup.query_qp(pair.a.qp, QpAttrMask::CAP)?.init.cap;
        check!(
            "SQ-04",
            most.max_send_wr >= max_send_wr,
            format!("at least {max_send_wr}"),
            "{}",
            most.max_send_wr
        );
        let result = test(&pair, most.max_send_wr as usize);
        in_case(&format!("{max_send_wr} asked for"), result)?;
    }
    Ok(())
}

scenario!(queue_takes_as_much_at_once_as_it_says: "SQ-04");
fn queue_takes_as_much_at_once_as_it_says(setup: &Setup<'_>) -> Result {
    of_sizes(setup, |Pair { a, .. }, most| {
        let data = [a.sge(0, 8)];
        let work = |wr_id| SendWr::rdma_write(wr_id, &data, a.remote());
        let list: Vec<_> = (0..most as u64).map(work).collect();
        setup.post_send(a.qp, &list).rule("SQ-04")?;
        let got = setup.successes(a.send_cq, most).rule("SQ-04")?;
        check_eq!("SQ-04", wr_ids(&got), (0..most as u64).collect::<Vec<_>>());
        // And again, now that they have been polled.
        setup.post_send(a.qp, &list).rule("SQ-04")?;
        setup.successes(a.send_cq, most).rule("SQ-04").map(drop)
    })
}

scenario!(waiting_queue_takes_as_much_as_it_says: "SQ-04"; needs RNR);
/// One by one, while the peer has no receive for the first.
fn waiting_queue_takes_as_much_as_it_says(setup: &Setup<'_>) -> Result {
    of_sizes(setup, |Pair { a, b }, most| {
        for wr_id in 0..most as u64 {
            let posted = a.send(wr_id, 8).rule("SQ-04");
            in_case(&format!("number {wr_id}"), posted)?;
        }
        for wr_id in 0..most as u64 {
            b.recv(wr_id, 8)?;
            setup.successes(b.recv_cq, 1).rule("SQ-04")?;
        }
        setup.successes(a.send_cq, most).rule("SQ-04").map(drop)
    })
}

scenario!(number_of_an_error_is_positive: "SQ-02");
/// Where a C call returned it: the queue pair has room for one entry, the device for fewer than
/// these.
fn number_of_an_error_is_positive(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    let Pair { a, b } = pair;
    let too_many = vec![a.sge(0, 1); 64];
    let posts = [
        setup.post_send(a.qp, &[SendWr::send(1, &too_many)]),
        setup.post_recv(b.qp, &[RecvWr::new(1, &too_many)]),
    ];
    for posted in posts {
        let kinds = [ErrorKind::Invalid, ErrorKind::NoMemory];
        let refused = expect_err_among(posted, &kinds, "SQ-02")?.error;
        let number = refused.raw().unwrap_or(refused.kind().errno());
        let verb = refused.verb();
        check!("SQ-02", number > 0, "an errno value", "{number} of {verb}");
    }
    pair.still_works("SQ-02")
}

scenario!(empty_list_is_posted_with_success: "SQ-24");
fn empty_list_is_posted_with_success(setup: &Setup<'_>) -> Result {
    let pair = setup.rc_pair()?;
    setup.post_send(pair.a.qp, &[]).rule("SQ-24")?;
    setup.post_recv(pair.b.qp, &[]).rule("SQ-24")?;
    pair.still_works("SQ-24")
}

scenario!(message_without_entries_has_no_bytes: "SQ-07"; needs RDMA_READ);
fn message_without_entries_has_no_bytes(setup: &Setup<'_>) -> Result {
    without_entries(setup, QpType::Rc, &[Kind::Send, Kind::Write, Kind::Read])
}

scenario!(message_without_entries_has_no_bytes_on_uc: "SQ-07"; needs UC);
fn message_without_entries_has_no_bytes_on_uc(setup: &Setup<'_>) -> Result {
    without_entries(setup, QpType::Uc, &[Kind::Send, Kind::Write])
}

scenario!(message_without_entries_has_no_bytes_on_ud: "SQ-07"; needs UD);
fn message_without_entries_has_no_bytes_on_ud(setup: &Setup<'_>) -> Result {
    without_entries(setup, QpType::Ud, &[Kind::Send])
}

fn without_entries(setup: &Setup<'_>, qp_type: QpType, kinds: &[Kind]) -> Result {
    let pair = setup.pair(PairOptions::of(qp_type))?;
    let Pair { a, b } = pair;
    for kind in kinds {
        let run = || -> Result {
            b.fill_at(b.landing(), 4, 64)?;
            if kind.takes_a_receive() {
                b.recv(1, 64)?;
            }
            a.post(kind.work(&a, 2, &[])).rule("SQ-07")?;
            let sent = setup.successes(a.send_cq, 1).rule("SQ-07")?[0];
            check_eq!("SQ-07", sent.wr_id, 2);
            if kind.takes_a_receive() {
                let wc = setup.successes(b.recv_cq, 1).rule("SQ-07")?[0];
                let grh = if qp_type == QpType::Ud { 40 } else { 0 };
                check_eq!("SQ-07", wc.byte_len, grh);
            }
            if qp_type != QpType::Ud {
                b.expect_data_at(b.landing(), 4, 64, "SQ-07")?;
            }
            Ok(())
        };
        in_case(&format!("{kind:?}"), run())?;
    }
    pair.still_works("SQ-07")
}

const INLINE: u32 = 48;

fn inline_pair<'b>(setup: &'b Setup<'_>) -> Result<Pair<'b>> {
    setup.pair(PairOptions {
        cap: QpCap {
            max_inline_data: INLINE,
            ..QpCap::default()
        },
        ..PairOptions::default()
    })
}

scenario!(inline_data_is_taken_at_the_post: "SQ-08");
/// Each is overwritten right behind its post.
fn inline_data_is_taken_at_the_post(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = inline_pair(setup)?;
    for tag in 0..8 {
        b.recv(1, INLINE)?;
        a.fill(tag, INLINE)?;
        a.post(SendWr::send(2, &[a.sge(0, INLINE)]).inline())?;
        a.fill(0xee, INLINE).rule("SQ-08")?;
        setup.successes(b.recv_cq, 1)?;
        setup.successes(a.send_cq, 1)?;
        b.expect_data(tag, INLINE, "SQ-08")?;
    }
    Ok(())
}

scenario!(inline_data_is_taken_at_the_post_however_long_it_waits: "SQ-08"; needs RNR);
/// Both a send and the write before it wait until the peer has a receive for another.
fn inline_data_is_taken_at_the_post_however_long_it_waits(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = inline_pair(setup)?;
    let post = |wr: SendWr<'_>, tag| -> Result {
        a.fill(tag, INLINE)?;
        a.post(wr.inline())?;
        a.fill(0xee, INLINE).rule("SQ-08")
    };
    let data = [a.sge(0, INLINE)];
    a.send(1, 0)?;
    post(SendWr::rdma_write(2, &data, a.remote()), 5)?;
    post(SendWr::send(3, &data), 6)?;
    let mut bytes = pattern(7, INLINE);
    a.post(SendWr::send(4, &[]).inline_data(&bytes))?;
    bytes.fill(0xee);
    b.recv_at(1, 0, INLINE)?;
    b.recv_at(3, 0, INLINE)?;
    b.recv_at(4, 64, INLINE)?;
    setup.successes(b.recv_cq, 3)?;
    setup.successes(a.send_cq, 4)?;
    b.expect_data(5, INLINE, "SQ-08")?;
    b.expect_data_at(0, 6, INLINE, "SQ-08")?;
    b.expect_data_at(64, 7, INLINE, "SQ-08")
}

scenario!(inline_data_is_gathered: "SQ-08");
/// From several places, for each send of a list.
fn inline_data_is_gathered(setup: &Setup<'_>) -> Result {
    const EACH: u32 = INLINE / 3;
    let Pair { a, b } = setup.pair(PairOptions {
        cap: QpCap {
            max_inline_data: INLINE,
            max_send_sge: 3,
            ..QpCap::default()
        },
        ..PairOptions::default()
    })?;
    let at = |n: u64| b.landing() + 64 * n;
    let parts = |n: u64| [0, 1, 2].map(|part| a.sge(256 * part + 64 * n, EACH));
    let lists = [0, 1, 2].map(parts);
    let mut sent = Vec::new();
    for (n, list) in (0..).zip(&lists) {
        b.recv_at(n, at(n), INLINE)?;
        for (part, _) in (0..).zip(list) {
            a.fill_at(256 * part + 64 * n, (10 * n + part) as u8, EACH)?;
        }
        sent.push(SendWr::send(n, list).inline());
    }
    setup.post_send(a.qp, &sent).rule("SQ-08")?;
    a.fill_at(0, 0xee, 1024).rule("SQ-08")?;
    setup.successes(a.send_cq, 3).rule("SQ-08")?;
    setup.successes(b.recv_cq, 3).rule("SQ-08")?;
    for n in 0..3 {
        for part in 0..3 {
            let tag = (10 * n + part) as u8;
            b.expect_data_at(at(n) + part * u64::from(EACH), tag, EACH, "SQ-08")?;
        }
    }
    Ok(())
}

scenario!(inline_data_needs_no_region: "SQ-08");
/// Its bytes are anywhere, and no more after the post. A send behind a write says that it is there.
fn inline_data_needs_no_region(setup: &Setup<'_>) -> Result {
    let pair = inline_pair(setup)?;
    let Pair { a, b } = pair;
    for kind in [Kind::Send, Kind::Write] {
        for (tag, length) in [0, 1, 7, INLINE].into_iter().enumerate() {
            let run = || -> Result {
                let before = b.bytes(b.landing(), 64)?;
                b.recv(1, 64)?;
                let bytes = pattern(tag as u8, length);
                a.post(kind.work(&a, 2, &[]).inline_data(&bytes))
                    .rule("SQ-08")?;
                drop(bytes);
                if !kind.takes_a_receive() {
                    a.send(3, 0)?;
                    setup.successes(a.send_cq, 1).rule("SQ-08")?;
                }
                setup.successes(a.send_cq, 1).rule("SQ-08")?;
                let wc = setup.successes(b.recv_cq, 1).rule("SQ-08")?[0];
                if kind.takes_a_receive() {
                    check_eq!("SQ-08", wc.byte_len, length);
                }
                b.expect_data(tag as u8, length, "SQ-08")?;
                let behind = b.bytes(b.landing() + u64::from(length), 64 - length as usize)?;
                check_eq!(
                    "SQ-08",
                    behind,
                    before[length as usize..],
                    "the bytes behind"
                );
                Ok(())
            };
            in_case(&format!("{kind:?} of {length} bytes"), run())?;
        }
    }
    pair.still_works("SQ-08")
}

scenario!(inline_data_is_refused_without_its_flag: "SQ-08");
/// So the bytes are not taken for none.
fn inline_data_is_refused_without_its_flag(setup: &Setup<'_>) -> Result {
    let pair = inline_pair(setup)?;
    let mut wr = SendWr::send(1, &[]).inline_data(&[7; 8]);
    wr.flags = SendFlags::SIGNALED;
    let posted = setup.post_send(pair.a.qp, &[wr]);
    expect_err(posted, ErrorKind::Invalid, "SQ-08")?;
    pair.still_works("SQ-08")
}

scenario!(inline_data_needs_no_key: "SQ-08");
/// Its key is invalid, or of another domain.
fn inline_data_needs_no_key(setup: &Setup<'_>) -> Result {
    let pair = inline_pair(setup)?;
    let Pair { a, b } = pair;
    let other = setup.end(setup.ctx_a(), PairOptions::default())?;
    let good = a.sge(0, INLINE);
    let keys = [good.lkey ^ 0xa5, 0, other.mem.lkey];
    for (tag, lkey) in keys.into_iter().enumerate() {
        a.fill(tag as u8, INLINE)?;
        b.recv(1, INLINE)?;
        let data = [Sge { lkey, ..good }];
        a.post(SendWr::send(2, &data).inline()).rule("SQ-08")?;
        setup.successes(a.send_cq, 1).rule("SQ-08")?;
        setup.successes(b.recv_cq, 1).rule("SQ-08")?;
        b.expect_data(tag as u8, INLINE, "SQ-08")?;
    }
    Ok(())
}

scenario!(memory_of_posted_work_is_the_devices: "SQ-17"; needs RDMA_READ, LAB);
/// The simulator refuses to touch it until a completion that covers it has been polled.
fn memory_of_posted_work_is_the_devices(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    let write = |end: &End<'_>, offset: u64| setup.write_mr(end.mr, offset as usize, &[1; 4]);
    let usage = |result| expect_err(result, ErrorKind::Usage, "SQ-17").map(drop);
    let (inside, last, behind) = (60, 63, 64);
    a.post(SendWr::send(1, &[a.sge(0, 64)]).unsignaled())?;
    a.send(2, 0)?;
    a.read(3, 64)?;
    for offset in [0, inside, last, a.landing()] {
        usage(write(&a, offset))?;
    }
    write(&a, behind).rule("SQ-17")?;
    // Bytes that are only sent may be read, those that are waited for may not.
    let mut byte = [0];
    setup.read_mr(a.mr, 0, &mut byte).rule("SQ-17")?;
    usage(setup.read_mr(a.mr, a.landing() as usize, &mut byte))?;
    let room = [b.sge(b.landing(), 64)];
    let receives = [1, 2].map(|wr_id| RecvWr::new(wr_id, &room));
    setup.post_recv(b.qp, &receives)?;
    setup.settle()?;
    // All work is done, but no completion is polled yet.
    if setup.behavior()?.sq_release == Some(SqRelease::Poll) {
        usage(write(&a, 0))?;
        usage(write(&a, a.landing()))?;
    }
    let done = wr_ids(&setup.successes(a.send_cq, 2)?);
    check_eq!("SQ-17", done, [2, 3]);
    write(&a, 0).rule("SQ-17")?;
    write(&a, a.landing()).rule("SQ-17")
}

scenario!(bytes_of_receives_are_the_devices_up_to_the_last: "SQ-17"; needs LAB);
/// Whatever their number, whatever was there before.
fn bytes_of_receives_are_the_devices_up_to_the_last(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-17";
    const SIZES: [u32; 9] = [1, 2, 3, 4, 7, 8, 64, 100, 129];
    let Pair { a, b } = setup.pair(PairOptions {
        cap: QpCap {
            max_recv_wr: 2 * SIZES.len() as u32,
            ..QpCap::default()
        },
        ..PairOptions::default()
    })?;
    let look = |offset: u64| setup.read_mr(b.mr, offset as usize, &mut [0]);
    let free = |offset| {
        in_case(
            &format!("byte {offset}"),
            look(offset).map_err(Failure::from),
        )
        .rule(RULE)
    };
    let taken = |offset| {
        let refused = expect_err(look(offset), ErrorKind::Usage, RULE);
        in_case(&format!("byte {offset}"), refused.map(drop))
    };
    let take = |count: usize| -> Result {
        (0..count).try_for_each(|_| a.send(1, 1))?;
        setup.successes(a.send_cq, count)?;
        setup.successes(b.recv_cq, count).map(drop)
    };
    let place = |n: usize| 1000 * (n as u64 + 1);
    for round in 0..2 {
        for (n, size) in SIZES.into_iter().enumerate() {
            let (first, last) = (place(n), place(n) + u64::from(size) - 1);
            b.recv_at(n as u64, first, size)?;
            [first - 1, last + 1].into_iter().try_for_each(free)?;
            [first, last].into_iter().try_for_each(taken)?;
            // Two receives into the same bytes.
            if round == 1 {
                b.recv_at(n as u64, first, size)?;
                [first, last].into_iter().try_for_each(taken)?;
            }
        }
        take(SIZES.len())?;
        if round == 1 {
            (0..SIZES.len()).map(place).skip(4).try_for_each(taken)?;
            take(SIZES.len())?;
        }
        (0..SIZES.len()).map(place).try_for_each(free)?;
    }
    // Over bytes of one that is done, from the left and from the right.
    for [done, posted] in [[20_000, 20_032], [21_032, 21_000]] {
        b.recv_at(1, done, 64)?;
        taken(done)?;
        take(1)?;
        b.recv_at(2, posted, 64)?;
        taken(20_040.max(posted + 40))?;
        taken(posted.max(done))?;
        take(1)?;
        free(posted)?;
    }
    Ok(())
}

scenario!(empty_list_is_posted_with_success_before_rts: "SQ-24"; needs MODIFY_CONNECT, LAB);
/// Where a send is refused. In C an empty list has no first work request, and devices differ.
fn empty_list_is_posted_with_success_before_rts(setup: &Setup<'_>) -> Result {
    let qp = FreshQp::new(setup, QpType::Rc)?;
    for state in [QpState::Reset, QpState::Init, QpState::Rtr] {
        qp.reach(state)?;
        let posted = setup.post_send(qp.end.qp, &[]).rule("SQ-24");
        in_case(&state.to_string(), posted)?;
    }
    Ok(())
}

scenario!(destination_is_for_datagrams: "SQ-32"; needs RC, UC, UD);
/// Sends of connected queue pairs name a UD queue pair of their peer's device.
fn destination_is_for_datagrams(setup: &Setup<'_>) -> Result {
    const RULE: &str = "SQ-32";
    for qp_type in [QpType::Rc, QpType::Uc] {
        let Pair { a, b } = setup.pair(PairOptions::of(qp_type))?;
        let other = setup.pair(PairOptions::of(QpType::Ud))?.b;
        let ah = setup.create_ah(a.pd, &setup.route_to(b.context)?)?;
        b.recv(1, 8)?;
        other.recv(2, 8)?;
        a.fill(3, 8)?;
        let data = [a.sge(0, 8)];
        let send = SendWr::send(4, &data).to(ah, other.qp_num, setup.qkey());
        setup.post_send(a.qp, &[send])?;
        for cq in [a.send_cq, b.recv_cq] {
            let done = setup.successes(cq, 1).rule(RULE);
            in_case(&qp_type.to_string(), done.map(drop))?;
        }
        b.expect_data(3, 8, RULE)?;
        setup.no_completion(other.recv_cq, RULE)?;
    }
    Ok(())
}
