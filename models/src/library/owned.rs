//! The owning objects: their waits, and programs that arm by themselves.

use verbs_api::owned::{CompChannel, Context, Cq, Qp, RecvWr, SendWr};
use verbs_api::{Arm, Error, ErrorKind, PostError, QpType, RcParams, Wait};

use super::Model;
use crate::{Harness, Outcome, Search};

const BOUNDED: Search = Search::new().preemptions(2);

pub(super) const MODELS: &[Model] = &[
    Model::holds(
        "owned.cq_wait",
        &["CQ-ARM-31", "CQ-ARM-37", "CHAN-34"],
        cq_wait,
    )
    .search(BOUNDED),
    Model::holds(
        "owned.two_threads_wait_for_one_cq",
        &["CHAN-20", "CQ-ARM-38", "CQ-POLL-05"],
        two_threads,
    )
    .threads(3)
    .search(BOUNDED),
    Model::holds(
        "owned.channel_wait",
        &["CHAN-06", "CHAN-23", "CQ-ARM-31"],
        channel_wait,
    )
    .search(BOUNDED),
    Model::holds(
        "owned.task_waits_for_one_cq",
        &["CQ-ARM-31", "CHAN-29", "CHAN-34"],
        task,
    )
    .search(BOUNDED),
    Model::holds(
        "owned.dropped_while_its_event_is_read",
        &["CHAN-35", "CHAN-36", "CQ-DESTROY-03"],
        dropped,
    )
    .completions(1)
    .search(BOUNDED),
    Model::fails(
        "owned.own_arming_without_polling_again",
        &["CQ-ARM-03", "CQ-ARM-31"],
        "It was not polled after arming",
        own_arming,
    )
    .search(BOUNDED),
];

/// A context of the owning layer, a channel, and CQs with a connection that completes there.
struct Rig {
    channel: CompChannel,
    ends: Vec<End>,
}

struct End {
    cq: Cq,
    near: Qp,
    /// Held for its receives.
    far: Qp,
}

fn rig(harness: &Harness, cqs: usize, receives: u64) -> Outcome<Rig> {
    let context = Context::open(harness.sim().clone(), "sim0")?;
    let pd = context.alloc_pd()?;
    let channel = context.create_comp_channel()?;
    let send_cq = context.cq(16).create()?;
    let mut ends = Vec::new();
    for _ in 0..cqs {
        let cq = context.cq(4).channel(&channel).create()?;
        let near = pd.qp(QpType::Rc, &send_cq, &send_cq).create()?;
        let far = pd.qp(QpType::Rc, &send_cq, &cq).create()?;
        near.connect_rc(&far, &RcParams::default())?;
        for wr_id in 0..receives {
            far.post_recv(RecvWr::new(wr_id, &[]))?;
        }
        ends.push(End { cq, near, far });
    }
    Ok(Rig { channel, ends })
}

fn send(qp: &Qp) -> Result<(), PostError> {
    qp.post_send(SendWr::send(0, &[]).unsignaled())
}

/// The body keeps what it joins its threads with, so that nothing is destroyed while they run.
fn cq_wait(harness: &Harness) -> Outcome {
    let mut rig = rig(harness, 1, 2)?;
    let End { cq, near, far } = rig.ends.remove(0);
    let consumer = harness.spawn("loop", move |_| {
        let mut left = 2;
        while left > 0
            && let Some(completions) = cq.wait(Wait::Forever)?
        {
            left -= completions.count();
        }
        Ok::<_, Error>(())
    });
    let peer = harness.spawn("peer", move |_| {
        send(&near)?;
        send(&near).map(|()| near)
    });
    let near = peer.join()?;
    consumer.join()?;
    drop((near, far));
    Ok(())
}

fn two_threads(harness: &Harness) -> Outcome {
    let mut rig = rig(harness, 1, 2)?;
    let End { cq, near, far } = rig.ends.remove(0);
    let spawn = |name| {
        let cq = cq.clone();
        harness.spawn(name, move |_| {
            let mut polled = 0;
            loop {
                match cq.wait(Wait::Forever) {
                    Ok(completions) => polled += completions.into_iter().flatten().count(),
                    Err(error) if error.kind() == ErrorKind::Stalled => return Ok(polled),
                    Err(error) => return Err(error),
                }
            }
        })
    };
    let (a, b) = (spawn("a"), spawn("b"));
    let peer = harness.spawn("peer", move |_| {
        send(&near)?;
        send(&near).map(|()| near)
    });
    let near = peer.join()?;
    let polled = a.join()? + b.join()?;
    assert_eq!(polled, 2, "each completion is polled once");
    drop((near, far));
    Ok(())
}

fn channel_wait(harness: &Harness) -> Outcome {
    let Rig { channel, mut ends } = rig(harness, 2, 1)?;
    let (second, first) = (ends.remove(1), ends.remove(0));
    let consumer = harness.spawn("loop", move |_| {
        let mut left = 2;
        while left > 0
            && let Some(completions) = channel.wait(Wait::Forever)?
        {
            left -= completions.count();
        }
        Ok::<_, Error>(())
    });
    let peer = harness.spawn("peer", move |_| {
        send(&first.near)?;
        send(&second.near).map(|()| [first, second])
    });
    let ends = peer.join()?;
    consumer.join()?;
    drop(ends);
    Ok(())
}

/// A completion may come at any step of a task: before it looks, while it registers, while it
/// sleeps.
fn task(harness: &Harness) -> Outcome {
    let mut rig = rig(harness, 1, 2)?;
    let End { cq, near, far } = rig.ends.remove(0);
    let consumer = harness.spawn("task", move |harness| {
        harness.block_on(async {
            let mut left = 2;
            while left > 0 {
                left -= cq.next().await?.count();
            }
            Ok::<_, Error>(())
        })
    });
    let peer = harness.spawn("peer", move |_| {
        send(&near)?;
        send(&near).map(|()| near)
    });
    let near = peer.join()?;
    consumer.join()?;
    drop((near, far));
    Ok(())
}

/// One thread reads an event while another drops the CQ: the later one destroys it.
fn dropped(harness: &Harness) -> Outcome {
    let Rig { channel, mut ends } = rig(harness, 1, 1)?;
    let End { cq, near, far } = ends.remove(0);
    cq.req_notify(Arm::NEXT)?;
    send(&near)?;
    drop((near, far));
    let context = channel.context().clone();
    let of_reader = channel.clone();
    let reader = harness.spawn("reader", move |_| {
        drop(of_reader.get_event(Wait::Poll)?);
        Ok::<_, Error>(())
    });
    let owner = harness.spawn("owner", move |_| {
        // A step of the device: counting references is not a step, so the drop alone would be tried
        // at one place only.
        cq.query()?;
        drop(cq);
        Ok::<_, Error>(())
    });
    reader.join()?;
    owner.join()?;
    // Nothing of it is left, whichever thread was last.
    channel.destroy().map_err(Error::from)?;
    context.close().map_err(Error::from)?;
    Ok(())
}

fn own_arming(harness: &Harness) -> Outcome {
    let Rig { channel, mut ends } = rig(harness, 1, 2)?;
    let End { cq, near, far } = ends.remove(0);
    let consumer = harness.spawn("loop", move |_| {
        let mut left = 2;
        loop {
            left -= cq.poll()?.count();
            if left == 0 {
                return Ok::<_, Error>(());
            }
            cq.req_notify(Arm::NEXT)?;
            drop(channel.get_event(Wait::Forever)?);
        }
    });
    let peer = harness.spawn("peer", move |_| {
        send(&near)?;
        send(&near).map(|()| near)
    });
    let near = peer.join()?;
    consumer.join()?;
    drop((near, far));
    Ok(())
}
