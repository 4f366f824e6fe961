//! Which work gives a completion, and how many.

use std::collections::BTreeMap;

use verbs_api::{QpType, Remote, SendWr, Sge, Wc, WcStatus};

use super::Kind;
use crate::failure::{check, check_eq};
use crate::{End, Pair, PairOptions, Result, Setup, wr_ids};

/// What makes work fail, and the status that comes of it.
#[derive(Clone, Copy, Debug)]
enum Flaw {
    LocalKey,
    RemoteKey,
}

impl Flaw {
    const ALL: [Self; 2] = [Self::LocalKey, Self::RemoteKey];

    fn status(self) -> WcStatus {
        match self {
            Self::LocalKey => WcStatus::LocProtErr,
            Self::RemoteKey => WcStatus::RemAccessErr,
        }
    }

    /// Where a write with this flaw goes.
    fn remote(self, a: &End<'_>) -> Remote {
        match self {
            Self::LocalKey => a.remote(),
            Self::RemoteKey => a.bad_remote(),
        }
    }

    /// Where a write with this flaw takes its data.
    fn sge(self, a: &End<'_>) -> Sge {
        let good = a.sge(0, 8);
        match self {
            Self::LocalKey => Sge {
                lkey: good.lkey ^ 0xa5,
                ..good
            },
            Self::RemoteKey => good,
        }
    }
}

scenario!(unsignaled_failure_gives_a_completion: "WC-17");
fn unsignaled_failure_gives_a_completion(setup: &Setup<'_>) -> Result {
    for flaw in Flaw::ALL {
        let Pair { a, .. } = setup.rc_pair()?;
        a.post(SendWr::rdma_write(1, &[flaw.sge(&a)], flaw.remote(&a)).unsignaled())?;
        let wc = setup.one_with(a.send_cq, flaw.status(), "WC-17")?;
        check_eq!("WC-17", wc.wr_id, 1);
        // The queue pair is in error now: this is flushed.
        a.post(SendWr::send(2, &[]).unsignaled())?;
        let wc = setup.one_with(a.send_cq, WcStatus::WrFlushErr, "WC-17")?;
        check_eq!("WC-17", wc.wr_id, 2);
    }
    Ok(())
}

scenario!(unsignaled_success_gives_no_completion: "WC-18"; needs RDMA_READ);
fn unsignaled_success_gives_no_completion(setup: &Setup<'_>) -> Result {
    let kinds = [Kind::Send, Kind::Write, Kind::Read];
    silent(setup, PairOptions::default(), &kinds)
}

scenario!(unsignaled_success_gives_no_completion_on_uc: "WC-18"; needs UC);
fn unsignaled_success_gives_no_completion_on_uc(setup: &Setup<'_>) -> Result {
    silent(
        setup,
        PairOptions::of(QpType::Uc),
        &[Kind::Send, Kind::Write],
    )
}

scenario!(unsignaled_success_gives_no_completion_on_ud: "WC-18"; needs UD);
fn unsignaled_success_gives_no_completion_on_ud(setup: &Setup<'_>) -> Result {
    silent(setup, PairOptions::of(QpType::Ud), &[Kind::Send])
}

/// Behind unsignaled work of each kind, only the signaled marker completes.
fn silent(setup: &Setup<'_>, options: PairOptions, kinds: &[Kind]) -> Result {
    const MARKER: u64 = 99;
    let Pair { a, b } = setup.pair(options)?;
    let mut receives = 0;
    for (wr_id, kind) in (0..).zip(kinds.repeat(3)) {
        if kind.takes_a_receive() {
            b.recv(wr_id, 8)?;
            receives += 1;
        }
        let offset = if kind == Kind::Read { a.landing() } else { 0 };
        a.post(kind.work(&a, wr_id, &[a.sge(offset, 8)]).unsignaled())?;
    }
    b.recv(MARKER, 8)?;
    a.send(MARKER, 8)?;
    check_eq!("WC-18", wr_ids(&setup.successes(a.send_cq, 1)?), [MARKER]);
    setup.successes(b.recv_cq, receives + 1)?;
    setup.no_completion(a.send_cq, "WC-18")
}

scenario!(every_send_completes_where_all_are_signaled: "WC-19"; needs RDMA_READ);
fn every_send_completes_where_all_are_signaled(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.pair(PairOptions {
        sq_sig_all: true,
        ..PairOptions::default()
    })?;
    for (wr_id, kind) in (0..).zip([Kind::Send, Kind::Write, Kind::Read].repeat(2)) {
        b.recv(wr_id, 8)?;
        let sges = [a.sge(a.landing(), 8)];
        let work = kind.work(&a, wr_id, &sges);
        a.post(if wr_id < 3 { work.unsignaled() } else { work })?;
    }
    let seen = wr_ids(&setup.successes(a.send_cq, 6)?);
    check_eq!("WC-19", seen, [0, 1, 2, 3, 4, 5]);
    setup.no_completion(a.send_cq, "WC-19")
}

scenario!(every_consumed_receive_completes: "WC-20");
fn every_consumed_receive_completes(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    for wr_id in 0..8 {
        b.recv(wr_id, 64)?;
    }
    for len in [0, 64, 1, 0, 8] {
        a.post(SendWr::send(1, &[a.sge(0, len)]).unsignaled())?;
    }
    let seen = wr_ids(&setup.successes(b.recv_cq, 5)?);
    check_eq!("WC-20", seen, [0, 1, 2, 3, 4], "consumed receives");
    setup.no_completion(b.recv_cq, "WC-20")?;
    setup.to_err(b.qp)?;
    let seen = wr_ids(&setup.poll(b.recv_cq, 3)?);
    check_eq!("WC-20", seen, [5, 6, 7], "flushed receives");
    setup.no_completion(b.recv_cq, "WC-20")
}

scenario!(no_work_request_completes_twice: "WC-21", "WC-17");
/// Sends 0 to 5 succeed, 6 fails, 7 to 9 are flushed; those with odd numbers are unsignaled.
fn no_work_request_completes_twice(setup: &Setup<'_>) -> Result {
    let Pair { a, b } = setup.rc_pair()?;
    let data = [a.sge(0, 8)];
    let work: Vec<_> = (0..10)
        .map(|wr_id| {
            let work = match wr_id {
                6 => SendWr::rdma_write(wr_id, &data, a.bad_remote()),
                _ => SendWr::send(wr_id, &data),
            };
            if wr_id % 2 == 0 {
                work
            } else {
                work.unsignaled()
            }
        })
        .collect();
    for wr_id in 0..8 {
        b.recv(wr_id, 8)?;
    }
    // In one call: once the write has failed, a device may take no more.
    setup.post_send(a.qp, &work)?;
    let sends = counts(&setup.poll_all(a.send_cq)?);
    let expected = [0, 2, 4, 6, 7, 8, 9].map(|wr_id| (wr_id, 1));
    let expected = BTreeMap::from(expected);
    check_eq!(["WC-21", "WC-17"], sends, expected, "completed sends");
    // The peer has failed too, but need not have.
    setup.to_err(b.qp)?;
    let receives = counts(&setup.poll_all(b.recv_cq)?);
    let expected = (0..8).map(|wr_id| (wr_id, 1)).collect();
    check_eq!("WC-21", receives, expected, "completed receives");
    for end in [a, b] {
        setup.to_reset(end.qp)?;
        setup.no_completion(end.send_cq, "WC-21")?;
        setup.no_completion(end.recv_cq, "WC-21")?;
    }
    Ok(())
}

fn counts(list: &[Wc]) -> BTreeMap<u64, u32> {
    let mut counts = BTreeMap::new();
    for wc in list {
        *counts.entry(wc.wr_id).or_default() += 1;
    }
    counts
}

scenario!(first_failure_has_its_status_and_the_rest_is_flushed: "WC-33");
fn first_failure_has_its_status_and_the_rest_is_flushed(setup: &Setup<'_>) -> Result {
    for flaw in Flaw::ALL {
        let Pair { a, b } = setup.rc_pair()?;
        for wr_id in 0..4 {
            b.recv(wr_id, 8)?;
        }
        let (good, bad) = ([a.sge(0, 8)], [flaw.sge(&a)]);
        setup.post_send(
            a.qp,
            &[
                SendWr::send(0, &good),
                SendWr::rdma_write(1, &bad, flaw.remote(&a)),
                SendWr::send(2, &good),
                SendWr::rdma_write(3, &bad, flaw.remote(&a)),
            ],
        )?;
        let up_to_the_failure = [(0, WcStatus::Success), (1, flaw.status())];
        let the_rest = [(2, WcStatus::WrFlushErr), (3, WcStatus::WrFlushErr)];
        for expected in [up_to_the_failure, the_rest] {
            let seen = setup.poll(a.send_cq, expected.len())?;
            let seen: Vec<_> = seen.iter().map(|wc| (wc.wr_id, wc.status)).collect();
            check_eq!("WC-33", seen, expected, format!("what {flaw:?} leads to"));
        }
        setup.no_completion(a.send_cq, "WC-33")?;
    }
    Ok(())
}

scenario!(success_stands_for_all_work_before_it: "WC-34");
fn success_stands_for_all_work_before_it(setup: &Setup<'_>) -> Result {
    const ROOM: u64 = 3072;
    let Pair { a, b } = setup.rc_pair()?;
    // Odd numbers are sends, the others are writes.
    let lengths: [u32; 8] = [1, 3000, 64, 1024, 8, 2049, 1025, 1];
    for (wr_id, len) in (0..).zip(lengths) {
        let offset = wr_id * ROOM;
        a.fill_at(offset, wr_id as u8, len)?;
        let sges = [a.sge(offset, len)];
        let work = if wr_id % 2 == 1 {
            b.recv_at(wr_id, b.landing() + offset, len)?;
            SendWr::send(wr_id, &sges)
        } else {
            SendWr::rdma_write(wr_id, &sges, b.mem.remote(b.landing() + offset))
        };
        a.post(if wr_id == 7 { work } else { work.unsignaled() })?;
    }
    let seen = wr_ids(&setup.successes(a.send_cq, 1)?);
    check_eq!("WC-34", seen, [7], "the signaled send");
    setup.successes(b.recv_cq, 4)?;
    for (wr_id, len) in (0..).zip(lengths) {
        let offset = b.landing() + wr_id * ROOM;
        b.expect_data_at(offset, wr_id as u8, len, "WC-34")?;
    }
    Ok(())
}

scenario!(no_success_behind_an_unsignaled_failure: "WC-34", "WC-33");
fn no_success_behind_an_unsignaled_failure(setup: &Setup<'_>) -> Result {
    for flaw in Flaw::ALL {
        let Pair { a, b } = setup.rc_pair()?;
        b.recv(1, 8)?;
        let (good, bad) = ([a.sge(0, 8)], [flaw.sge(&a)]);
        let fails = SendWr::rdma_write(1, &bad, flaw.remote(&a)).unsignaled();
        setup.post_send(a.qp, &[fails, SendWr::send(2, &good)])?;
        let failed = setup.one(a.send_cq)?;
        check_eq!("WC-33", failed.status, flaw.status());
        let behind = setup.one(a.send_cq)?;
        check!(
            "WC-34",
            behind.wr_id == 2 && behind.status == WcStatus::WrFlushErr,
            "wr_id 2 is flushed",
            "{behind}"
        );
    }
    Ok(())
}
