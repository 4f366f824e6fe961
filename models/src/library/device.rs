//! The simulator's own concurrency.

use verbs_api::{
    Arm, Cq, CqInit, Error, ErrorKind, Qp, QpInit, QpType, RcParams, RecvWr, SendWr, Verbs, Wait,
    Wc,
};

use verbs_sim::SimConfig;

use super::{Model, arm};
use crate::{Harness, Outcome, Search};

pub(super) const MODELS: &[Model] = &[
    Model::holds(
        "device.two_threads_deliver_between_two_nodes",
        &["CQ-POLL-07", "LIFE-03"],
        (2, 4),
        two_nodes,
    )
    .search(Search::new().config(SimConfig::new().nodes(2))),
    Model::holds(
        "device.two_threads_post_on_one_queue",
        &["SQ-11", "CQ-POLL-07"],
        (2, 4),
        one_queue,
    ),
    Model::holds(
        "device.event_is_read_or_discarded_by_a_destroy",
        &["CHAN-36", "CHAN-35", "CQ-DESTROY-07"],
        (2, 1),
        event_against_destroy,
    ),
    Model::holds(
        "device.polls_against_deliveries",
        &["CQ-POLL-05", "CQ-POLL-03", "CQ-POLL-07"],
        (3, 2),
        polls_against_deliveries,
    )
    .search(Search::new().preemptions(3)),
    Model::holds(
        "device.stale_handle_never_names_a_new_object",
        &["CQ-DESTROY-05", "CQ-ARM-35", "LIFE-03"],
        (2, 1),
        handle_reuse,
    ),
];

fn numbers(harness: &Harness, cq: Cq) -> Result<Vec<u64>, Error> {
    let mut wcs = [Wc::default(); 4];
    let count = harness.sim().poll_cq(cq, &mut wcs)?;
    Ok(wcs[..count].iter().map(|wc| wc.wr_id).collect())
}

/// A connection between two devices, and on each side a thread that posts: what arrives completes
/// in the order of the receives, while the same thread's sends are acknowledged there.
fn two_nodes(harness: &Harness) -> Outcome {
    let sim = harness.sim();
    let mut ends: Vec<(Qp, Cq)> = Vec::new();
    for device in ["sim0", "sim1"] {
        let context = sim.open_device(device)?;
        let pd = sim.alloc_pd(context)?;
        let send_cq = sim.create_cq(context, &CqInit::new(4))?;
        let recv_cq = sim.create_cq(context, &CqInit::new(4))?;
        let qp = sim.create_qp(pd, &QpInit::new(QpType::Rc, send_cq, recv_cq))?;
        ends.push((qp, recv_cq));
    }
    sim.connect_rc(ends[0].0, ends[1].0, &RcParams::default())?;
    for (qp, _) in &ends {
        sim.post_recv(*qp, &[RecvWr::new(0, &[]), RecvWr::new(1, &[])])?;
    }
    let threads = ["a", "b"].map(|name| {
        let (qp, _) = ends[usize::from(name == "b")];
        harness.spawn(name, move |harness| -> Outcome {
            for wr_id in [0, 1] {
                let wr = SendWr::send(wr_id, &[]).unsignaled();
                harness.sim().post_send(qp, &[wr])?;
            }
            Ok(())
        })
    });
    for thread in threads {
        thread.join()?;
    }
    for (_, cq) in ends {
        assert_eq!(numbers(harness, cq)?, [0, 1]);
    }
    Ok(())
}

/// Two threads post on one send queue: its completions come in the order of posting.
fn one_queue(harness: &Harness) -> Outcome {
    let (send_cq, recv_cq) = (harness.cq(4)?, harness.cq(4)?);
    let link = harness.link_between(send_cq, recv_cq, 4)?;
    let threads = [("a", [10, 11]), ("b", [20, 21])].map(|(name, wr_ids)| {
        harness.spawn(name, move |harness| {
            wr_ids
                .into_iter()
                .try_for_each(|wr_id| link.send_signaled(harness, wr_id))
        })
    });
    for thread in threads {
        thread.join()?;
    }
    let sent = numbers(harness, send_cq)?;
    for (first, second) in [(10, 11), (20, 21)] {
        let place = |wr_id| sent.iter().position(|sent| *sent == wr_id);
        assert!(place(first) < place(second), "{sent:?}");
    }
    assert_eq!(sent.len(), 4);
    assert_eq!(numbers(harness, recv_cq)?, [0, 1, 2, 3]);
    Ok(())
}

fn event_against_destroy(harness: &Harness) -> Outcome {
    let cq = harness.cq(4)?;
    let link = harness.link(cq, 1)?;
    arm(harness, cq)?;
    link.send(harness, 0)?;
    link.destroy(harness)?;
    let reader = harness.spawn("reader", move |harness| {
        match harness.sim().get_cq_event(harness.channel(), Wait::Poll) {
            Ok(event) => harness.sim().ack_cq_events(event.cq, 1).map(|()| true),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    });
    let owner = harness.spawn("owner", move |harness| {
        harness.sim().destroy_cq(cq, Wait::Forever)
    });
    reader.join()?;
    owner.join()?;
    let left = harness.sim().get_cq_event(harness.channel(), Wait::Poll);
    assert_eq!(
        left.map_err(|error| error.kind()),
        Err(ErrorKind::WouldBlock)
    );
    Ok(harness.sim().destroy_comp_channel(harness.channel())?)
}

/// Two threads poll while completions are added: each comes once, and to one thread in order.
fn polls_against_deliveries(harness: &Harness) -> Outcome {
    let cq = harness.cq(4)?;
    let link = harness.link(cq, 2)?;
    let poller = move |harness: &Harness| {
        let mut seen = numbers(harness, cq)?;
        seen.extend(numbers(harness, cq)?);
        Ok::<_, Error>(seen)
    };
    let pollers = [harness.spawn("a", poller), harness.spawn("b", poller)];
    let peer = harness.spawn("peer", move |harness| {
        link.send(harness, 0)?;
        link.send(harness, 1)
    });
    peer.join()?;
    let mut all = Vec::new();
    for poller in pollers {
        let seen = poller.join()?;
        assert!(seen.is_sorted(), "{seen:?}");
        all.extend(seen);
    }
    all.extend(numbers(harness, cq)?);
    all.sort_unstable();
    assert_eq!(all, [0, 1]);
    Ok(())
}

/// A CQ goes and another takes its place while a thread still uses the old handle: the call is for
/// the old CQ or refused, and never for the new one.
fn handle_reuse(harness: &Harness) -> Outcome {
    let old = harness.cq(4)?;
    let late = harness.spawn("late", move |harness| {
        match harness.sim().req_notify_cq(old, Arm::NEXT) {
            Err(error) if error.kind() != ErrorKind::Invalid => Err(error),
            _ => Ok(()),
        }
    });
    let owner = harness.spawn("owner", move |harness| -> Outcome<Cq> {
        harness.sim().destroy_cq(old, Wait::Forever)?;
        let new = harness.cq(4)?;
        let link = harness.link(new, 1)?;
        link.send(harness, 0)?;
        Ok(new)
    });
    late.join()?;
    let new = owner.join()?;
    let event = harness.sim().get_cq_event(harness.channel(), Wait::Poll);
    assert_eq!(
        event.map_err(|error| error.kind()),
        Err(ErrorKind::WouldBlock),
        "{new} was never armed"
    );
    assert_eq!(numbers(harness, new)?, [0]);
    Ok(())
}
