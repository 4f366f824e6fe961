//! What leads to each status.

use std::collections::BTreeSet;

use verbs_api::behavior::Check;
use verbs_api::{Cq, ErrorKind, QpType, RcParams, RecvWr, SendWr, Sge, Wc, WcStatus};

use crate::end::gives_up_soon;
use crate::failure::{check, check_eq};
use crate::{End, Failure, OfRule, Pair, PairOptions, Result, Setup, expect_err, wr_ids};

scenario!(receive_too_small_is_a_length_error: "WC-22", "WC-27");
fn receive_too_small_is_a_length_error(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    b.recv(5, 64)?;
    a.send(6, 64)?;
    setup.successes(b.recv_cq, 1).rule("WC-22")?;
    setup.successes(a.send_cq, 1).rule("WC-27")?;
    b.recv(7, 63)?;
    a.send(8, 64)?;
    only(setup, b.recv_cq, 7, WcStatus::LocLenErr, "WC-22")?;
    only(setup, a.send_cq, 8, WcStatus::RemInvReqErr, "WC-27")
}

scenario!(datagram_above_the_mtu_is_a_length_error: "WC-22", "UD-10"; needs UD);
fn datagram_above_the_mtu_is_a_length_error(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.pair(PairOptions::of(QpType::Ud))?;
    let mtu = setup.query_port(a.context, setup.port())?.active_mtu;
    let mtu = mtu.bytes().unwrap_or(4096);
    b.recv(1, mtu + 1)?;
    a.send(2, mtu + 1)?;
    let wc = setup.one(a.send_cq)?;
    let seen = match wc.status {
        WcStatus::LocLenErr => Ok(Check::Refused),
        WcStatus::Success => Ok(Check::Accepted),
        _ => Err(unexpected(&wc, "LOC_LEN_ERR or SUCCESS")),
    };
    let seen = seen.rule("WC-22")?;
    setup.as_declared("UD-10", setup.behavior()?.ud_over_mtu, seen)?;
    setup.no_completion(b.recv_cq, "UD-10")
}

scenario!(read_without_read_depth_is_as_declared: "WC-23", "RDMA-20"; needs RDMA_READ);
fn read_without_read_depth_is_as_declared(setup: &Setup<'_>) -> Result {
    let rc = RcParams {
        max_rd_atomic: 0,
        ..RcParams::default()
    };
    let a = with(setup, rc)?.a;
    let into = [a.sge(a.landing(), 8)];
    let read = SendWr::rdma_read(1, &into, a.remote());
    let declared = setup.behavior()?.read_without_depth;
    let seen = match setup.post_send(a.qp, &[read]) {
        Ok(()) if declared == Some(Check::Refused) => {
            return only(setup, a.send_cq, 1, WcStatus::LocQpOpErr, "WC-23");
        }
        Ok(()) => match setup.poll_all(a.send_cq)?[..] {
            [] => Check::Accepted,
            [wc] if wc.status == WcStatus::LocQpOpErr => {
                check_eq!("WC-23", wc.wr_id, 1);
                Check::Refused
            }
            [wc, ..] => return Err(unexpected(&wc, "LOC_QP_OP_ERR or none")).rule("WC-23"),
        },
        refused => {
            expect_err(refused, ErrorKind::Invalid, "RDMA-20")?;
            Check::Refused
        }
    };
    setup.as_declared("RDMA-20", declared, seen)
}

scenario!(address_handle_of_another_pd_is_an_operation_error: "WC-23", "UD-12"; needs UD);
fn address_handle_of_another_pd_is_an_operation_error(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.pair(PairOptions::of(QpType::Ud))?;
    let other_pd = setup.alloc_pd(a.context)?;
    let ah = setup.create_ah(other_pd, &setup.route_to(b.context)?)?;
    b.recv(1, 8)?;
    let data = [a.sge(0, 8)];
    let send = SendWr::send(2, &data).to(ah, b.qp_num, setup.qkey());
    setup.post_send(a.qp, &[send])?;
    let wc = setup.one(a.send_cq)?;
    let seen = match wc.status {
        WcStatus::LocQpOpErr => Ok(Check::Refused),
        WcStatus::Success => Ok(Check::Accepted),
        _ => Err(unexpected(&wc, "LOC_QP_OP_ERR or SUCCESS")),
    };
    let seen = seen.rule("WC-23")?;
    if seen == Check::Refused {
        setup.no_completion(b.recv_cq, "UD-12")?;
    }
    setup.as_declared("UD-12", setup.behavior()?.ah_pd_check, seen)
}

scenario!(send_from_memory_with_a_bad_key_is_a_protection_error: "WC-24");
fn send_from_memory_with_a_bad_key_is_a_protection_error(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    b.recv(1, 8)?;
    a.post(SendWr::send(2, &[bad_key(&a)]))?;
    only(setup, a.send_cq, 2, WcStatus::LocProtErr, "WC-24")?;
    setup.no_completion(b.recv_cq, "WC-24")
}

scenario!(receive_into_memory_with_a_bad_key_is_a_protection_error: "WC-24", "WC-29");
fn receive_into_memory_with_a_bad_key_is_a_protection_error(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    setup.post_recv(b.qp, &[RecvWr::new(1, &[bad_key(&b)])])?;
    setup.no_completion(b.recv_cq, "WC-24")?;
    a.send(2, 8)?;
    only(setup, b.recv_cq, 1, WcStatus::LocProtErr, "WC-24")?;
    only(setup, a.send_cq, 2, WcStatus::RemOpErr, "WC-29")
}

scenario!(work_of_a_qp_in_error_is_flushed: "WC-25");
fn work_of_a_qp_in_error_is_flushed(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    b.recv(1, 8)?;
    a.send(2, 8)?;
    setup.successes(b.recv_cq, 1)?;
    setup.successes(a.send_cq, 1)?;
    b.recv(3, 8)?;
    b.recv(4, 8)?;
    setup.to_err(b.qp)?;
    b.recv(5, 8)?;
    b.send(6, 8)?;
    for (cq, expected) in [(b.recv_cq, vec![3, 4, 5]), (b.send_cq, vec![6])] {
        let seen = setup.poll_all(cq)?;
        check_eq!("WC-25", wr_ids(&seen), expected);
        for wc in &seen {
            check_eq!("WC-25", wc.status, WcStatus::WrFlushErr);
        }
    }
    Ok(())
}

scenario!(write_with_a_bad_rkey_is_a_remote_access_error: "WC-28");
fn write_with_a_bad_rkey_is_a_remote_access_error(setup: &Setup<'_>) -> Result {
    let a = setup.rc_pair()?.a;
    a.post(SendWr::rdma_write(1, &[a.sge(0, 8)], a.bad_remote()))?;
    only(setup, a.send_cq, 1, WcStatus::RemAccessErr, "WC-28")
}

scenario!(read_with_a_bad_rkey_is_a_remote_access_error: "WC-28"; needs RDMA_READ);
fn read_with_a_bad_rkey_is_a_remote_access_error(setup: &Setup<'_>) -> Result {
    let a = setup.rc_pair()?.a;
    let into = [a.sge(a.landing(), 8)];
    a.post(SendWr::rdma_read(1, &into, a.bad_remote()))?;
    only(setup, a.send_cq, 1, WcStatus::RemAccessErr, "WC-28")
}

scenario!(silent_peer_uses_up_the_retries: "WC-30");
fn silent_peer_uses_up_the_retries(setup: &Setup<'_>) -> Result {
    let rc = gives_up_soon();
    let Pair { a, b } = with(setup, rc)?;
    setup.to_err(b.qp)?;
    // On iWARP the sender is notified.
    setup.settle()?;
    a.send(1, 8)?;
    only(setup, a.send_cq, 1, WcStatus::RetryExcErr, "WC-30")
}

scenario!(peer_without_receives_uses_up_the_rnr_retries: "WC-31"; needs RNR);
fn peer_without_receives_uses_up_the_rnr_retries(setup: &Setup<'_>) -> Result {
    for rnr_retry in [0, 1] {
        let rc = RcParams {
            rnr_retry,
            ..RcParams::default()
        };
        let a = with(setup, rc)?.a;
        a.send(1, 8)?;
        only(setup, a.send_cq, 1, WcStatus::RnrRetryExcErr, "WC-31")?;
    }
    Ok(())
}

scenario!(every_status_has_a_text_of_its_own: "WC-32"; without RC);
fn every_status_has_a_text_of_its_own(_: &Setup<'_>) -> Result {
    let texts: BTreeSet<_> = WcStatus::ALL.iter().map(|s| s.describe()).collect();
    check_eq!("WC-32", texts.len(), WcStatus::ALL.len(), "texts");
    check!("WC-32", !texts.contains(""), "no empty text", "one");
    let beyond = WcStatus::ALL.len() as u32;
    for raw in [beyond, u32::MAX] {
        let text = WcStatus::from(raw).describe();
        check!("WC-32", !text.is_empty(), "a text", "none for {raw}");
    }
    Ok(())
}

/// The next completion is of this work with this status, and no other follows it.
fn only(setup: &Setup<'_>, cq: Cq, wr_id: u64, status: WcStatus, rule: &'static str) -> Result {
    let wc = setup.one_with(cq, status, rule)?;
    check_eq!(rule, wc.wr_id, wr_id);
    setup.no_completion(cq, rule)
}

fn with<'b>(setup: &'b Setup<'_>, rc: RcParams) -> Result<Pair<'b>> {
    setup.pair(PairOptions {
        rc,
        ..PairOptions::default()
    })
}

fn bad_key(end: &End<'_>) -> Sge {
    Sge {
        lkey: end.mem.lkey ^ 0xa5,
        ..end.sge(end.landing(), 8)
    }
}

fn unexpected(wc: &Wc, expected: &str) -> Failure {
    Failure::assertion(expected, wc.to_string())
}
